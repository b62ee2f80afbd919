"""Limits for every client: request rate, concurrent requests, and the size of a request.

A visitor is told apart by a signed cookie. Clients without one are counted together by their address, as a few
visitors, and all of an address together have a cap so generous that a class of thirty behind it never meets it.

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
"""Bytes of an address's parameters; what is longer is asked by POST."""
LARGEST_BODY = 262_144
"""Bytes of a POST."""
CLASSES, STRANGERS = 60, 8
"""How many visitors' worth of all these an address has, and those at one address together that show no cookie."""
NEW_FOR = 60.0
"""Seconds for which a cookie is new."""
LONGEST_ADDRESS = 64
"""Characters of what a proxy calls an address."""
SECRET_VARIABLE, PROXIES_VARIABLE = "HEADSUP_SECRET", "HEADSUP_PROXIES"
_SHARE = "headsup.share"


class Share(NamedTuple):
    """Who has a turn where many wait. who: a visitor, or some of the strangers at an address. address: the one that is
    counted; None if all visitors have it."""

    who: str
    address: str | None

    @property
    def is_visitor(self) -> bool:
        return self.who.startswith("visitor")


@functools.lru_cache(maxsize=1)
def _signer(secret: str) -> TimestampSigner:
    """Of all cookies of this process: without a secret it makes one."""
    return TimestampSigner(secret or secrets.token_bytes(32), salt=COOKIE)


def signer() -> TimestampSigner:
    """Signs visitors' cookies."""
    return _signer(os.environ.get(SECRET_VARIABLE, ""))


def visitor_of(cookie: str) -> tuple[str, float]:
    """The visitor whom a cookie names, and for how many seconds it has; "" for one that this server hasn't signed."""
    try:
        visitor, since = signer().unsign(cookie, return_timestamp=True)
    except BadSignature:
        return "", 0.0
    return visitor.decode(), time.time() - since.timestamp()


def share_of(cookie: str, address: str | None, stranger: str = "") -> Share:
    """Whose turn it is when this visitor's is.

    address: as `counted_address` says. stranger: who it is without a cookie. Behind a proxy that nobody has named,
    everybody is a visitor.
    """
    visitor, seconds = visitor_of(cookie)
    who = visitor or stranger
    if address is None or (visitor and seconds >= NEW_FOR):
        return Share(f"visitor {who}", address)
    return Share(f"strangers {address} {zlib.crc32(who.encode()) % STRANGERS}", address)


def share_in(request: Request) -> Share | None:
    """Whose turn it is when a request's is, which has come through `Limits`."""
    return request.scope.get(_SHARE)


class Limits:
    """ASGI middleware that holds the limits. lasting: whether answers last, as streams do that somebody follows for
    hours; then only how often they are asked for is limited."""

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
            # A visitor's own count first: who is over it takes nothing from the others at the address.
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
    """Where a question comes from. address: of the connection. forwarded: the headers X-Forwarded-For, which count only
    from a configured proxy. Of IPv6 the network of a household, which has as many addresses as it likes."""
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
    """What is sent to us, up to the largest body."""
    taken = 0

    async def bounded() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > LARGEST_BODY:
            raise ApiError(413, f"The body has more than {LARGEST_BODY:,} bytes; ask for less at once.")
        return message

    return bounded
