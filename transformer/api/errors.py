"""The API's errors: a status, one sentence, and the name of the wrong parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from .server_sent_events import event

if TYPE_CHECKING:  # pages raise these errors before anybody asks the API, which alone needs FastAPI
    from fastapi.exceptions import RequestValidationError

LONGEST_SHOWN = 60
"""Characters of a wrong value that an error quotes."""
BODY = "The body must be a JSON object with the same fields as the address."
BROKEN = "Something is wrong in the server; it has been noted in its log."
STOPPING = "The server is stopping; ask again in a minute."
ERRORS = {
    400: "A parameter can't be what it is; the sentence says which, and what would do.",
    404: "There is no such model.",
    409: "The model has been replaced by another version.",
    413: "More is asked for than one answer holds.",
    429: "Too many questions; Retry-After says when to ask again.",
    503: "There is no room just now; Retry-After says when to ask again.",
}
"""The meaning of each status."""


class ApiError(HTTPException):
    """An error as the answer. retry_after: seconds after which a client may ask again."""

    def __init__(self, status: int, sentence: str, parameter: str = "", retry_after: int | None = None) -> None:
        super().__init__(status, sentence)
        # A quoted value may be no text that can be sent, such as half of a surrogate pair.
        self.sentence, self.parameter = (
            text.encode("utf-8", "backslashreplace").decode() for text in (sentence, parameter)
        )
        self.retry_after = retry_after

    def content(self) -> dict[str, str]:
        """The JSON: `error`, one sentence, and `parameter`, empty if none was wrong."""
        return {"error": self.sentence, "parameter": self.parameter}

    def event(self) -> bytes:
        """The error as an event, with `retry_after` if asking again may help: a stream has no status to say so."""
        again = {} if self.retry_after is None else {"retry_after": self.retry_after}
        return event("error", {**self.content(), **again})

    def response(self) -> JSONResponse:
        headers = {"Cache-Control": "no-store"}
        if self.retry_after is not None:
            headers["Retry-After"] = str(self.retry_after)
        return JSONResponse(self.content(), self.status_code, headers)


def stopping() -> ApiError:
    """The error for requests that a stopping server refuses or breaks off."""
    return ApiError(503, STOPPING, retry_after=60)


def sentence_of(error: Exception) -> str:
    """An error's message as a sentence."""
    words = str(error)[:400].strip()
    return words if words.endswith(".") else f"{words or 'This can not be computed'}."


def wrong(parameter: str, problem: object) -> ApiError:
    """The error 400 for a parameter, with its problem as a sentence."""
    words = str(problem).strip().rstrip(".")
    return ApiError(400, f"{parameter} can't be used: {words[:400]}.", parameter)


async def on_api_error(request: Request, error: ApiError) -> JSONResponse:
    return error.response()


async def on_invalid(request: Request, error: RequestValidationError) -> JSONResponse:
    """400 instead of FastAPI's 422, with the first thing that is wrong."""
    first = error.errors()[0]
    parameter = str(next((part for part in first["loc"][1:] if isinstance(part, str)), ""))[:LONGEST_SHOWN]
    if first["type"] == "missing":
        return ApiError(400, f"The parameter {parameter} is missing.", parameter).response()
    if first["type"] == "extra_forbidden":
        return ApiError(400, f"There is no parameter {parameter!r} here.", parameter).response()
    if first["type"].startswith("json") or not parameter:
        return ApiError(400, BODY).response()
    problem = first["msg"].removeprefix("Value error, ")
    shown = "" if first["type"] == "value_error" else f"{str(first.get('input'))[:LONGEST_SHOWN]!r}: "
    return wrong(parameter, f"{shown}{problem[:1].lower()}{problem[1:]}").response()


async def on_http_error(request: Request, error: HTTPException) -> JSONResponse:
    """Unknown paths and methods."""
    sentences = {
        400: BODY,
        404: "There is nothing at this address; /api/docs lists what there is.",
        405: "This address can't be asked like that; /api/docs says how.",
    }
    return ApiError(error.status_code, sentences.get(error.status_code, str(error.detail))).response()


async def on_exception(request: Request, error: Exception) -> JSONResponse:
    """Unexpected errors, which the server logs as well."""
    return ApiError(500, BROKEN).response()
