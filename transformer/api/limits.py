"""Limits for every client: request rate, concurrent requests, and the size of a request.

A signed cookie identifies a visitor. Clients without one are counted together by their address, as a few visitors, and
all clients of an address share a cap that a class of thirty never reaches.

Visitors who wait are served in turn. New cookies share a few turns with all strangers at their address, so fetching
many cookies gains nothing.
"""

import functools
import ipaddress
import os
import secrets
import time
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from itsdangerous import BadSignature, TimestampSigner
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .errors import ApiError
from .request_counts import Counts

COOKIE = "headsup_visitor"
LONGEST_QUERY = 8_192
"""Bytes of a URL's parameters; longer ones are sent by POST."""
LARGEST_BODY = 262_144
"""Bytes of a POST."""
CLASSES, STRANGERS = 60, 8
"""The visitors' worth of requests of an address, and of all clients without a cookie at one address."""
NEW_FOR = 60.0
"""Seconds for which a cookie is new."""
LONGEST_ADDRESS = 64
"""Characters of what a proxy calls an address."""
SECRET_VARIABLE, PROXIES_VARIABLE = "HEADSUP_SECRET", "HEADSUP_PROXIES"
_SHARE = "headsup.share"


class Share(NamedTuple):
    """Who gets a turn when many wait. who: a visitor, or some of the strangers at an address. address: the counted
    address; None if all visitors have it."""

    who: str
    address: str | None

    @property
    def is_visitor(self) -> bool:
        return self.who.startswith("visitor")


@functools.lru_cache(maxsize=1)
def _signer(secret: str) -> TimestampSigner:
    """The signer of this process's cookies; without a secret, it makes one."""
    return TimestampSigner(secret or secrets.token_bytes(32), salt=COOKIE)


def signer() -> TimestampSigner:
    """Signs visitors' cookies."""
    return _signer(os.environ.get(SECRET_VARIABLE, ""))


def visitor_of(cookie: str) -> tuple[str, float]:
    """The visitor in a cookie, and the cookie's age in seconds; "" for a cookie that this server didn't sign."""
    try:
        visitor, since = signer().unsign(cookie, return_timestamp=True)
    except BadSignature:
        return "", 0.0
    return visitor.decode(), time.time() - since.timestamp()


def share_of(cookie: str, address: str | None, stranger: str = "") -> Share:
    """The share that a visitor's requests count for.

    address: as `counted_address` says. stranger: the name of a client without a cookie. Behind a proxy that
    nobody has named, everybody is a visitor.
    """
    visitor, seconds = visitor_of(cookie)
    who = visitor or stranger
    if address is None or (visitor and seconds >= NEW_FOR):
        return Share(f"visitor {who}", address)
    return Share(f"strangers {address} {zlib.crc32(who.encode()) % STRANGERS}", address)


def share_in(request: Request) -> Share | None:
    """The share of a request that came through `Limits`."""
    return request.scope.get(_SHARE)


class Limits:
    """ASGI middleware that enforces the limits. lasting: whether answers last for hours, as streams do; then only the
    rate of requests is limited."""

    def __init__(self, app: ASGIApp, counts: Counts | None = None, *, lasting: bool = False) -> None:
        self._app, self._counts = app, counts or Counts()
        self._lasting = lasting

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        begun: list[str] = []
        cookie = request.cookies.get(COOKIE, "")
        visitor, _ = visitor_of(cookie)
        connected = request.client.host if request.client else "", request.headers.getlist("x-forwarded-for")
        address, scope[_SHARE] = address_of(*connected), share_of(cookie, counted_address(*connected))
        try:
            if len(scope["query_string"]) > LONGEST_QUERY:
                raise ApiError(
                    414,
                    f"The address has more than {LONGEST_QUERY:,} bytes of parameters; send them as "
                    "the body of a POST to the same address.",
                )
            # The visitor's own count first: a request beyond it costs the others at the address nothing.
            own = (f"visitor {visitor}", 1) if visitor else (f"strangers {address}", STRANGERS)
            for who, many in (own, (f"address {address}", CLASSES)):
                self._counts.begin(who, many)
                if self._lasting:
                    self._counts.end(who)
                else:
                    begun.append(who)
            await self._app(scope, _bounded(receive), send if visitor else self._with_cookie(send))
        except ApiError as error:
            await error.response()(scope, receive, send)
        finally:
            for who in begun:
                self._counts.end(who)

    def _with_cookie(self, send: Send) -> Send:
        cookie = signer().sign(secrets.token_hex(8)).decode()

        async def with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.append("Set-Cookie", f"{COOKIE}={cookie}; Path=/; HttpOnly; SameSite=Lax")
                if (cached := headers.get("cache-control", "")).startswith("public"):
                    headers["Cache-Control"] = cached.replace("public", "private", 1)  # it is nobody else's cookie
            await send(message)

        return with_cookie


Networks = list[ipaddress.IPv4Network | ipaddress.IPv6Network]


def proxies() -> Networks:
    """The proxies that the environment names. Raises: ValueError, saying what would do, for what is none."""
    setting = os.environ.get(PROXIES_VARIABLE, "")
    try:
        return _networks(setting)
    except ValueError:
        raise ValueError(
            f"{PROXIES_VARIABLE} is {setting[:60]!r}; it must name addresses or networks, such as "
            "'10.0.0.5, 172.16.0.0/12'."
        ) from None


def address_of(address: str, forwarded: Sequence[str]) -> str:
    """The address of a client; for IPv6 its /64 network, since a household has as many addresses as it likes.

    address: the connection's. forwarded: the headers X-Forwarded-For, trusted only from a configured proxy.
    """
    known = proxies()
    for before in reversed(",".join(forwarded).split(",")):
        if not before.strip() or not _is_within(address, known):
            break
        address = before.strip()
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:LONGEST_ADDRESS]
    return str(ipaddress.ip_network((parsed, 64), strict=False)) if parsed.version == 6 else address


def counted_address(address: str, forwarded: Sequence[str]) -> str | None:
    """As `address_of`; None behind a proxy while `HEADSUP_PROXIES` names none: all visitors have its address.

    Once it names one, every other connection is direct, whatever its headers say.
    """
    if not proxies() and any(each.strip() for each in forwarded):
        return None
    return address_of(address, forwarded)


@functools.lru_cache(maxsize=8)
def _networks(setting: str) -> Networks:
    return [ipaddress.ip_network(name.strip(), strict=False) for name in setting.split(",") if name.strip()]


def _is_within(address: str, networks: Networks) -> bool:
    try:
        return any(ipaddress.ip_address(address) in network for network in networks)
    except ValueError:
        return False


def _bounded(receive: Receive) -> Receive:
    """Refuse a body once it is too large."""
    taken = 0

    async def bounded() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > LARGEST_BODY:
            raise ApiError(413, f"The body has more than {LARGEST_BODY:,} bytes; ask for less at once.")
        return message

    return bounded
