"""Registers the API's addresses: each for GET, with its fields in the address, and for POST, with them as the body."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request
from fastapi.responses import Response

from .errors import ERRORS
from .pass_inputs import PassInputs
from .request_parameters import ModelQuery, inputs_of
from .responses import RECORDING, Asked, Responder
from .server_sent_events import MEDIA_TYPE as STREAM

JSON, FILE = "application/json", "application/octet-stream"
ANSWERS = {RECORDING: "A recording.", JSON: "JSON.", STREAM: "Server-sent events.", FILE: "A file."}


class Routes:
    """Routes about a model. read: makes the inputs of a query, as `inputs_of` does."""

    def __init__(self, responder: Responder, read: Callable[[Any, Any], PassInputs] = inputs_of) -> None:
        self.router = APIRouter(responses={status: {"description": words} for status, words in ERRORS.items()})
        self._responder, self._read = responder, read

    def of_pass(
        self,
        path: str,
        query_type: type[ModelQuery],
        summary: str,
        respond: Callable[..., Awaitable[Response]] | None = None,
        answers: str = RECORDING,
        **how: Any,
    ) -> Callable:
        """Register a function that checks a query and its inputs, and returns a function that computes the answer.

        respond: the method of the responder that gets this function and `how`; by default `recording`.
        """

        def register(prepare: Callable[[Any, PassInputs], Callable]) -> Callable:
            async def answer(request: Request, query: Any) -> Response:
                parameters = self._read(query, await self._responder.model(query, request))
                made = prepare(query, parameters)
                asked = Asked(request, query, parameters.model)
                return await (respond or self._responder.recording)(asked, made, **how)

            answer.__doc__ = prepare.__doc__
            return self.both(path, query_type, summary, answers)(answer)

        return register

    def both(self, path: str, query_type: type[ModelQuery], summary: str, answers: str = RECORDING) -> Callable:
        """Register a handler of a request and its query."""

        def register(handler: Callable[..., Awaitable[Response]]) -> Callable:
            for method, where in (("GET", Query()), ("POST", Body())):

                async def answer(request: Request, query: ModelQuery) -> Response:
                    return await handler(request, query)

                answer.__annotations__["query"] = Annotated[query_type, where]  # FastAPI reads the fields from it
                self.router.add_api_route(
                    path,
                    answer,
                    methods=[method],
                    summary=summary,
                    description=handler.__doc__,
                    response_model=None,
                    responses={200: {"content": {answers: {}}, "description": ANSWERS[answers]}},
                    operation_id=f"{method.lower()}_{path.strip('/')}",
                )
            return handler

        return register
