"""Serves the frontend's ES modules under a path that holds a hash of their content, so browsers cache them forever."""

import functools
import gzip
import hashlib
from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".json": "application/json"}


def files_in(folder: Path, path: str) -> dict[str, bytes]:
    """The scripts and style sheets below a folder, by what they are served under, below a path."""
    files = sorted(file for file in folder.rglob("*") if file.suffix in TYPES)
    return {f"{path}/{file.relative_to(folder).as_posix()}": file.read_bytes() for file in files}


class FrontendModules:
    """An ASGI application that serves some texts, by their paths, and nothing else."""

    def __init__(self, texts: Mapping[str, bytes]) -> None:
        self._texts = dict(texts)
        digest = hashlib.blake2b(digest_size=8)
        for path, text in self._texts.items():
            digest.update(b"%s\0%d\0%s" % (path.encode(), len(text), text))
        self.version = digest.hexdigest()
        """Another one whenever any of the files is another."""

    def address(self, path: str) -> str:
        """A file's address, relative to where this is mounted. Raises: KeyError if there is no such file."""
        self._texts[path]
        return f"{self.version}/{path}"

    def compress(self) -> None:
        """Compress everything now, rather than each file when a browser first asks for it."""
        for path in self._texts:
            self._compressed(path)

    @functools.cache  # noqa: B019  it lives as long as the process
    def _compressed(self, path: str) -> bytes:
        return gzip.compress(self._texts[path], 9, mtime=0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        path = request.url.path.removeprefix(scope.get("root_path", "")).lstrip("/")
        version, _, name = path.partition("/")
        response: Response
        if name not in self._texts or version != self.version:
            sentence = "There is no such module; reload the page."
            response = PlainTextResponse(sentence, 404, {"Cache-Control": "no-store"})
        elif request.method not in ("GET", "HEAD"):
            response = PlainTextResponse("Modules can only be read.", 405)
        else:
            headers = {
                "Cache-Control": "public, max-age=31536000, immutable",
                "Vary": "Accept-Encoding",
                "X-Content-Type-Options": "nosniff",
            }
            body = self._texts[name]
            if "gzip" in request.headers.get("accept-encoding", ""):
                body, headers["Content-Encoding"] = self._compressed(name), "gzip"
            response = Response(body, 200, headers, TYPES[Path(name).suffix])
        await response(scope, receive, send)
