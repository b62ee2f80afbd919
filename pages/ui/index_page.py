"""Rewrites the page that Streamlit serves at every address: title, description, icon, preview, files to fetch early.

Search engines, and messengers that show a preview of a link, read that page and run no script.
"""

import asyncio
import hashlib
import html
import re
from gzip import compress
from pathlib import Path
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pages.ui.security_headers import is_https
from transformer.frontend.page_titles import SENTENCES

ICON = (
    "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 100 100'>"
    "<text y='.9em' font-size='90'>%F0%9F%94%8E</text></svg>"
)
"""A magnifying glass, 🔎. For a plain emoji Streamlit would read a table of all there are: a quarter of a second."""
PREVIEW = Path(__file__).with_name("preview.png")
"""The picture of a link's preview, 1200 × 630 pixels; its name is its address, relative to the app's pages."""
LONGEST = 60
"""Characters of a prompt in a title."""
STREAMLITS = "<title>Streamlit</title>"
NOSCRIPT = "<noscript><p>HeadsUp computes and draws in your browser: allow JavaScript for this page.</p></noscript>"
OTHERS = frozenset(("_stcore", "api", "app", "component", "media", "modules", "static"))
"""First names of paths at which this page is not served."""
CONDITIONS = (b"if-none-match", b"if-modified-since", b"if-range", b"range", b"accept-encoding")
"""Headers that would be answered for the page as it was before."""
HOST = re.compile(r"([\w.-]+|\[[0-9a-f:.]+\])(:\d+)?", re.ASCII | re.IGNORECASE)


class IndexPage:
    """ASGI middleware. base: the path of the app's pages."""

    def __init__(self, app: ASGIApp, base: str = "") -> None:
        self._app, self._base = app, f"/{base.strip('/')}".rstrip("/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or not self._is_page(scope["path"]):
            await self._app(scope, receive, send)
            return
        start: Message = {}
        body = b""

        async def rewritten(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                if message["status"] == 200 and Headers(scope=message).get("content-type", "").startswith("text/html"):
                    start = message
                    return
            elif start:
                body += message.get("body", b"")
                if message.get("more_body"):
                    return
                await self._answer(scope, start, body, send)
                return
            await send(message)

        headers = [(name, value) for name, value in scope["headers"] if name not in CONDITIONS]
        await self._app({**scope, "headers": headers}, receive, rewritten)

    def _is_page(self, path: str) -> bool:
        first, *_ = path.removeprefix(self._base).lstrip("/").split("/")
        return first not in OTHERS and "." not in path.rpartition("/")[2]

    async def _answer(self, scope: Scope, start: Message, body: bytes, send: Send) -> None:
        """Send the page: rewritten, if it is Streamlit's, compressed, or only that it hasn't changed."""
        asked, headers = Headers(scope=scope), MutableHeaders(scope=start)
        page = body.decode("utf-8", "replace")
        if STREAMLITS in page:
            preview = f"{origin}{self._base}/{PREVIEW.name}" if (origin := _origin(scope)) else ""
            in_head = await asyncio.to_thread(head, scope["path"], scope["query_string"], preview)
            body = with_head(page, in_head).encode()
            del headers["last-modified"], headers["accept-ranges"]
            headers["ETag"] = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
            headers["Vary"] = "Accept-Encoding"
            if headers["ETag"] in re.split(r",\s*(?:W/)?", f",{asked.get('if-none-match', '')}"):
                start["status"], body = 304, b""
                del headers["content-type"]
            elif "gzip" in asked.get("accept-encoding", ""):
                body, headers["Content-Encoding"] = compress(body, mtime=0), "gzip"
            headers["Content-Length"] = str(len(body))
        await send(start)
        await send({"type": "http.response.body", "body": body})


def head(path: str, query: bytes, preview: str) -> str:
    """What the page at an address has in its head. preview: the address of the picture, or ""."""
    from pages.ui.components.assets import (
        SHELL_STYLE,
        address,
        first_scripts,
    )  # which bundles all scripts, so not at the start

    name = path.rpartition("/")[2].replace("_", " ")
    page = name if name in SENTENCES else next(iter(SENTENCES))
    title, sentence = f"{page} · HeadsUp", SENTENCES[page]
    properties = {"og:type": "website", "og:site_name": "HeadsUp", "og:title": _link_title(query, title)}
    properties |= {"og:description": sentence, "og:image": preview}
    metas = {"description": sentence, "twitter:card": "summary_large_image" if preview else "summary"}
    lines = [
        f"<title>{html.escape(title)}</title>",
        *(f'<meta name="{name}" content="{html.escape(value)}" />' for name, value in metas.items()),
        *(f'<meta property="{name}" content="{html.escape(value)}" />' for name, value in properties.items() if value),
        f'<link rel="preload" as="style" href="./{address(SHELL_STYLE)}" />',
        *(f'<link rel="modulepreload" href="./{script}" />' for script in first_scripts(page)),
    ]
    return "\n    ".join(lines)


def with_head(page: str, head: str) -> str:
    """Streamlit's page with this in its head, and our icon and our sentence for browsers without scripts."""
    icon = f'<link rel="shortcut icon" href="{html.escape(ICON)}" />'
    for pattern, text in (
        (re.escape(STREAMLITS), head),
        ('<link rel="shortcut icon"[^>]*>', icon),
        ("<noscript>.*?</noscript>", NOSCRIPT),
    ):
        page = re.sub(pattern, lambda _, text=text: text, page, count=1, flags=re.DOTALL)
    return page


def _link_title(query: bytes, title: str) -> str:
    """The title of a link's preview: its prompt and its model, if it has any, and the page."""
    try:
        given = dict(parse_qsl(query.decode("latin-1"), max_num_fields=200))
    except ValueError:
        given = {}
    prompt = _one_line(given.get("prompt", ""))
    model = given.get("model", "") if re.fullmatch(r"[\w./-]{1,60}", given.get("model", "")) else ""
    parts = [f"“{prompt}”" if prompt else "", model if not model.startswith("own-") else "", title]
    return " · ".join(filter(None, parts))


def _one_line(text: str) -> str:
    """A text on one line, shortened, without characters that can't be seen or that turn the direction."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text[:1_000]).split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1].rstrip()}…"


def _origin(scope: Scope) -> str:
    """Scheme and host that the visitor asked, as far as the server is told; "" for a host that can't be one."""
    host = Headers(scope=scope).get("host", "")
    return f"{'https' if is_https(scope) else 'http'}://{host}" if HOST.fullmatch(host) else ""
