"""Sets the security headers of every answer: what a page may load and run, and which pages may frame it.

Scripts come from the server alone, and none is inline. Two sources more are Streamlit's needs: `blob:`, from which it
imports the scripts of components, and the hash of the one inline script in its index.html. Its styles are inline:
its own library for them (Emotion) writes them as the page is drawn, without a nonce. `'wasm-unsafe-eval'` is for the
WebAssembly of models that browsers compute.
"""

import os
import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

VARIABLE = "HEADSUP_FRAME_ANCESTORS"
ORIGIN = re.compile(r"https?://(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?", re.ASCII | re.IGNORECASE)
STREAMLIT_SCRIPT = "'sha256-THxz9J9+wf7rhwR2YkXJoSZ13UCmYyC+3lNDv2+8ugA='"
"""Of `window.prerenderReady = false`, which tells search engines when they may read the page."""
SOURCES = {
    "default-src": "'self'",
    "script-src": f"'self' blob: 'wasm-unsafe-eval' {STREAMLIT_SCRIPT}",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "worker-src": "'self' blob:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
}


def frame_ancestors() -> tuple[str, ...]:
    """The origins whose pages may frame the app. Raises: ValueError, saying what would do, for what is none."""
    setting = os.environ.get(VARIABLE, "")
    origins = tuple(setting.replace(",", " ").split())
    if wrong := next((origin for origin in origins if not ORIGIN.fullmatch(origin)), None):
        raise ValueError(
            f"{VARIABLE} names {wrong[:60]!r}; it must name origins, such as "
            "'https://moodle.school.example, https://*.school.example'."
        )
    return origins


class SecurityHeaders:
    """ASGI middleware that sets them.

    Where other origins may frame the app, its cookies are set so that a browser sends them from within such a frame,
    one jar for each origin that frames it (Cookies Having Independent Partitioned State), over HTTPS.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._ancestors = app, frame_ancestors()
        sources = SOURCES | {"frame-ancestors": " ".join(["'self'", *self._ancestors])}
        self._headers = {
            "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in sources.items()),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_framed_safely = self._ancestors and is_https(scope)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(self._headers)
                if is_framed_safely:
                    message["headers"] = [(name, _for_frames(name, value)) for name, value in message["headers"]]
            await send(message)

        await self._app(scope, receive, with_headers)


def is_https(scope: Scope) -> bool:
    """Whether the visitor's connection is. A proxy says so; who lies about it gets a cookie that is of no use to
    them."""
    return "https" in (scope["scheme"], Headers(scope=scope).get("x-forwarded-proto", "").split(",")[0].strip())


def _for_frames(name: bytes, value: bytes) -> bytes:
    """The value of a header; that of a cookie so that it is sent from within another origin's page."""
    if name.lower() != b"set-cookie":
        return value
    kept = [part for part in value.split(b";") if not re.match(rb"\s*(samesite|secure|partitioned)\b", part, re.I)]
    return b";".join(kept) + b"; SameSite=None; Secure; Partitioned"
