"""A Python client of the API, built on the standard library and NumPy.

client = Client("http://localhost:8501")
client.tensors("shakespeare", "To be, or", ["blocks.0.attn.hook_pattern[3]"]).tensors
"""

import base64
import json
from collections.abc import Iterator, Sequence
from http.client import HTTPResponse
from http.cookiejar import CookieJar
from typing import Any
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

import numpy as np

from ..inference.http_client import ResponseError, open_url
from ..inference.recording import Recording

LONGEST_ADDRESS = 7_500
"""Bytes of parameters in a URL; longer ones are sent as a body."""


class Client:
    """One visitor of a server. url: where the app is, or `python -m transformer serve`.

    token: of an own model, which is then called "own". timeout: seconds without an answer.

    Parameters that are None are left out. All methods raise ResponseError, a ValueError with the server's sentence,
    where it answers with an error, and OSError where it can't be reached.
    """

    def __init__(self, url: str, token: str | None = None, timeout: float = 60.0) -> None:
        self._base, self._timeout = f"{url.rstrip('/')}/api", timeout
        self._headers = {"HeadsUp-Model": token} if token else {}
        self._opener = build_opener(HTTPCookieProcessor(CookieJar()))

    def ask(self, path: str, **parameters: Any) -> HTTPResponse:
        """The response of a path, such as "overview"; the caller reads and closes it."""
        given = {name: value for name, value in parameters.items() if value is not None}
        query, headers = urlencode(given, doseq=True), self._headers
        request = Request(f"{self._base}/{path}{'?' if query else ''}{query}", headers=headers)
        if len(query) > LONGEST_ADDRESS:
            body = json.dumps(given).encode()
            request = Request(f"{self._base}/{path}", body, {**headers, "Content-Type": "application/json"})
        return open_url(request, self._timeout, self._opener)

    def json(self, path: str, **parameters: Any) -> Any:
        """The JSON that a path answers with."""
        with self.ask(path, **parameters) as response:
            return json.load(response)

    def recording(self, path: str, **parameters: Any) -> Recording:
        """The recording that a path answers with."""
        with self.ask(path, **parameters) as response:
            return Recording.from_bytes(response.read())

    def events(self, path: str, **parameters: Any) -> Iterator[tuple[str, Any]]:
        """The events of a stream, (name, data) each. Closing the iterator ends the stream, and the computing."""
        with self.ask(path, **parameters) as response:
            name, data = "", ""
            for line in response:
                field, _, value = line.decode().rstrip("\r\n").partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    data += value
                elif not field and data:
                    content = json.loads(data)
                    if name == "error":
                        raise ResponseError(content["error"], parameter=content["parameter"])
                    yield name, content
                    name, data = "", ""

    def models(self) -> list[dict[str, Any]]:
        """The available models, with what a request needs to know of each."""
        return self.json("models")["models"]

    def tensors(self, model: str, text: str | None, names: Sequence[str], **more: Any) -> Recording:
        """Tensors of a pass, whole or in part. more: the other parameters of the address, such as `changes`."""
        return self.recording("tensors", model=model, text=text, names=names, **more)

    def generate(self, model: str, text: str | None, **more: Any) -> Iterator[dict[str, Any]]:
        """The tokens that a model writes after a text, as they come: `id`, `label`, `probability` and so on, and arrays
        of `logits` (vocab,) and of the `row` (key,) of a head that is asked for. Closing the iterator ends the text.
        """
        for name, data in self.events("generate", model=model, text=text, **more):
            if name == "token":
                yield _with_arrays(data)

    def result(self, path: str, **parameters: Any) -> dict[str, Any]:
        """The result of a stream of progress: of "ablation" or "patching"."""
        return dict(self.events(path, **parameters))["result"]


def _with_arrays(data: dict[str, Any]) -> dict[str, Any]:
    """A token, with its base64 fields decoded into float32 arrays."""
    packed = {name: np.frombuffer(base64.b64decode(data[name]), "<f4") for name in ("logits", "row") if name in data}
    top = {"top": _with_arrays(data["top"])} if "top" in data else {}
    return {**data, **packed, **top}
