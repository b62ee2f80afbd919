"""Serves the API without the pages: `python -m transformer serve`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import torch
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Mount, Route

from ..inference.scheduler import schedulers
from .app import create_app
from .graceful_shutdown import ending_in_order
from .model_library import Library
from .model_store import model_store
from .settings import CHECKS, check_all


def application(library: Library) -> Starlette:
    """An ASGI application that has the API under /api, and leads from / to its documentation.

    Raises: ValueError for an environment variable that says what it can't.
    """
    check_all(CHECKS)
    api = create_app(lambda: library, model_store().get)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        torch.set_num_threads(1)  # several answers are computed at once, and tiny tensors gain nothing from more
        responder = api.state.responder

        def cancel() -> None:
            responder.close()
            schedulers.close()

        with ending_in_order(responder.stop, lambda: not schedulers.texts, cancel):
            yield
        responder.close()

    async def lead(request: Request) -> RedirectResponse:
        return RedirectResponse("api/docs")

    return Starlette(routes=[Route("/", lead), Route("/api", lead), Mount("/api", api)], lifespan=lifespan)


def serve(library: Library, host: str, port: int) -> None:
    """Serve until interrupted. Raises: as `application`."""
    # Whose forwarded addresses count is HEADSUP_PROXIES' to say, not uvicorn's. Its log of who asked what has addresses
    # and texts, which are nobody's business.
    uvicorn.run(application(library), host=host, port=port, proxy_headers=False, server_header=False, access_log=False)
