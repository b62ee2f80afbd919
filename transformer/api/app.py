"""The ASGI application of the API: its routes. Each GET address holds everything its answer depends on.

from transformer.api.app import create_app
app = create_app()          # uvicorn some_module:app, or Mount("/api", app)
"""

import time
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Body, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import Mount

from ..checkpoints.folder import Checkpoint
from ..frontend import FOLDER
from ..inference.circuits import circuits_of
from ..inference.patching import patching
from ..inference.recording import Recording
from ..model.registry import attention_modules
from . import ablation_and_patching, analyses, exports, generate, overviews, tensors
from .docs import page_of
from .errors import ApiError, on_api_error, on_exception, on_http_error, on_invalid, wrong
from .frontend_modules import FrontendModules
from .library import Library
from .limits import Limits, proxies
from .queries import (
    AblationQuery,
    AttributionQuery,
    CircuitQuery,
    ExportQuery,
    LensQuery,
    ModelQuery,
    OverviewQuery,
    PassInputs,
    PassQuery,
    PatchingQuery,
    TensorsQuery,
    check_position,
    check_size,
    check_token,
    clean_inputs_of,
    ids_of,
    inputs_of,
    kind_of,
    part_named,
)
from .server_sent_events import MEDIA_TYPE as STREAM
from .service import OWN, RECORDING, Service, as_json

DESCRIPTION = """Every number of a forward pass, over HTTP. An address holds all that its answer depends on; what is
longer than 8,192 bytes is sent as the JSON body of a POST to the same address, with the same fields. Tensors come as
safetensors files, whose metadata says what belongs to them; errors as JSON, `error` (one sentence) and `parameter`."""
ERRORS = {
    400: "A parameter can't be what it is; the sentence says which, and what would do.",
    404: "There is no such model.",
    409: "The model has been replaced by another version.",
    413: "More is asked for than one answer holds.",
    429: "Too many questions; Retry-After says when to ask again.",
    503: "There is no room just now; Retry-After says when to ask again.",
}
JSON, FILE = "application/json", "application/octet-stream"
ANSWERS = {RECORDING: "A recording.", JSON: "JSON.", STREAM: "Server-sent events.", FILE: "A file."}


def create_app(
    library: Callable[[], Library] | None = None,
    own: Callable[[str], Checkpoint | None] = lambda token: None,
    limits: Callable[..., Any] = Limits,
) -> FastAPI:
    """The application. library: gives the models that ship, those of the default folder unless it is told.

    own: gives the model of a token, if there is one. limits: the middleware that holds the limits.
    Raises: ValueError, saying what would do, for an environment variable that says what it can't.
    """
    proxies()
    if library is None:
        default = Library()
        library = lambda: default  # noqa: E731
    service = Service(library, own)
    app = FastAPI(
        title="HeadsUp",
        description=DESCRIPTION,
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.state.service = service
    app.state.modules = FrontendModules({"frontend": FOLDER})
    app.add_middleware(limits)
    app.exception_handler(ApiError)(on_api_error)
    app.exception_handler(RequestValidationError)(on_invalid)
    app.exception_handler(HTTPException)(on_http_error)
    app.exception_handler(Exception)(on_exception)
    app.include_router(_about(service))
    app.include_router(_passes(service))
    app.include_router(generate.routes(service, both))
    app.router.routes.append(Mount("/modules", app.state.modules))
    return app


def _about(service: Service) -> APIRouter:
    """What there is, and how it fares."""
    router, started = APIRouter(tags=["server"]), time.time()

    @router.get("/health", summary="Whether the server answers")
    async def health() -> Response:
        entries = await service.read(lambda: service.library.entries())
        return as_json({"status": "ok", "models": sum(not entry.problem for entry in entries)})

    @router.get("/metrics", summary="Counts for Prometheus")
    async def metrics() -> PlainTextResponse:
        lines = [f"headsup_uptime_seconds {time.time() - started:.0f}"]
        for name, count in sorted(service.counts.items()):
            address, _, how = name.partition(":")
            lines.append(f'headsup_answers_total{{address="{address}",how="{how}"}} {count}')
        return PlainTextResponse("\n".join(lines) + "\n", headers={"Cache-Control": "no-store"})

    @router.get("/docs", summary="This documentation", include_in_schema=False)
    async def docs(request: Request) -> HTMLResponse:
        return HTMLResponse(page_of(request.app.openapi()), headers={"Cache-Control": "no-cache"})

    @router.get("/models", summary="The models that can be asked")
    async def models() -> Response:
        return as_json({"models": await service.read(lambda: _listed(service.library))})

    return router


def _passes(service: Service) -> APIRouter:
    """What is asked of a forward pass."""
    router = APIRouter(responses={status: {"description": words} for status, words in ERRORS.items()})

    async def pass_inputs(request: Request, query: PassQuery) -> PassInputs:
        return inputs_of(query, await service.model(query, request))

    @both(router, "/overview", OverviewQuery, "All heads of an attention at a glance")
    async def overview(request: Request, query: OverviewQuery) -> Response:
        """Tensors `overview` (layer, head, query, key), a byte a cell, and `measures` (layer, head, measure)."""
        found = await pass_inputs(request, query)
        kind = kind_of(query, found.model)
        return await service.recording(
            request,
            query,
            found.model,
            lambda: overviews.overview(found.model, found.tokens, found.source, kind, found.interventions),
            compresses=True,
        )

    @both(router, "/outline", PassQuery, "The picture of the whole pass")
    async def outline(request: Request, query: PassQuery) -> Response:
        """Statistics of every tensor, a strip of each point as wide as the stream, arcs, the logit lens."""
        found = await pass_inputs(request, query)
        return await service.recording(
            request,
            query,
            found.model,
            lambda: overviews.outline(found.model, found.tokens, found.source, found.interventions),
            compresses=True,
        )

    @both(router, "/tensors", TensorsQuery, "Any tensors of a pass, whole or in part")
    async def some_tensors(request: Request, query: TensorsQuery) -> Response:
        """Each under the name that it was asked by: float32, truth values as bytes."""
        found = await pass_inputs(request, query)
        parts = [part_named(name, "names", found) for name in dict.fromkeys(query.names)]
        check_size(parts, "names")

        def compute() -> Recording:
            taken = tensors.tensors(found.model, found.tokens, found.source, parts, found.interventions)
            rows = [
                taken[part.text]
                for part in parts
                if tensors.is_by_row(part.info) and taken[part.text].ndim == 1 and part.info.dims[-1] == "vocab"
            ]
            named = {token for row in rows for token in analyses.likeliest(row)}
            return Recording(taken, {"vocabulary": analyses.labels_of(found.model, named)} if named else {})

        return await service.recording(request, query, found.model, compute)

    @both(router, "/lens", LensQuery, "The logit lens at one position")
    async def lens(request: Request, query: LensQuery) -> Response:
        """The logit lens: tensors `lens`, `lens.probability`, `lens.right`, `lens.rank`."""
        found = await pass_inputs(request, query)
        check_position(query.position, found)
        return await service.recording(
            request,
            query,
            found.model,
            lambda: analyses.lens(found.model, found.tokens, found.source, query.position, found.interventions),
        )

    @both(router, "/attribution", AttributionQuery, "Each part's share in a logit")
    async def attribution(request: Request, query: AttributionQuery) -> Response:
        """Direct logit attribution: tensor `shares` (part,), metadata `names`."""
        found = await pass_inputs(request, query)
        check_position(query.position, found)
        check_token("token", query.token, found.model)
        return await service.recording(
            request,
            query,
            found.model,
            lambda: analyses.attribution(
                found.model, found.tokens, found.source, query.position, query.token, found.interventions
            ),
        )

    @both(router, "/checks", PassQuery, "Every tensor of a pass against its equation", answers=JSON)
    async def checks(request: Request, query: PassQuery) -> Response:
        """`checks`, by tensor: the largest difference, its magnitude, and what was changed in it."""
        found = await pass_inputs(request, query)
        return await service.json(
            request,
            query,
            found.model,
            lambda: {
                "checks": [
                    dict(vars(each))
                    for each in analyses.checks(found.model, found.tokens, found.source, found.interventions)
                ]
            },
        )

    @both(router, "/circuit", CircuitQuery, "A circuit of a head")
    async def circuit(request: Request, query: CircuitQuery) -> Response:
        """The two factors of a head's QK or OV circuit, over all tokens or the strongest of very many."""
        model = await service.model(query, request)
        config = model.checkpoint.model.config
        modules = [module for found in attention_modules(config).values() for module in found]
        if query.attention not in modules or query.kind not in circuits_of(config, query.attention):
            raise wrong("attention", f"this model has no {query.kind} circuit in {query.attention[:60]!r}")
        if query.head >= config.n_heads:
            raise wrong("head", f"this model has heads 0 to {config.n_heads - 1}")
        read = frozenset(ids_of(query.tokens))
        if read and max(read) >= config.vocab_size:
            raise wrong("tokens", f"{max(read)} is not in this model's vocabulary of {config.vocab_size}")
        return await service.recording(
            request, query, model, lambda: analyses.circuit(model, query.kind, query.attention, query.head, read)
        )

    @both(router, "/ablation", AblationQuery, "What each head and feed-forward layer does for a text", answers=STREAM)
    async def ablation(request: Request, query: AblationQuery) -> Response:
        """Events `progress` {share}, then `result`: `parts`, each {point, head}, and what happens without it: how much
        the mean `loss` rises, in nats, and the `logit` of `token`; the `divergence` of the next token. Or `error`."""
        found = await pass_inputs(request, query)
        position = len(found.tokens) - 1 if query.position is None else query.position
        check_position(position, found)
        if query.token is not None:
            check_token("token", query.token, found.model)
        engine = found.model.checkpoint.model
        work = ablation_and_patching.work_of_ablation(engine, len(found.tokens), len(found.source))
        ablation_and_patching.check_work(work, "text")
        return await service.stream(
            request,
            query,
            found.model,
            lambda progress: ablation_and_patching.ablation_json(
                ablation_and_patching.ablation(
                    engine, found.tokens, found.source, position, query.begin, found.changes, progress
                ),
                query.token,
            ),
        )

    @both(router, "/patching", PatchingQuery, "Activation patching: what each position carries", answers=STREAM)
    async def patched(request: Request, query: PatchingQuery) -> Response:
        """Events `progress` {share}, then `result`: `restored` (site, layer, pos), how much of the logit difference of
        `answer` and `against` comes back; `sites` and their hook `points`; the difference of the `clean` and of the
        `corrupted` text. Or `error`."""
        found = await pass_inputs(request, query)
        tokens, source = clean_inputs_of(query, found)
        check_token("answer", query.answer, found.model)
        check_token("against", query.against, found.model)
        engine = found.model.checkpoint.model
        if query.stack is not None and query.stack not in (kinds := attention_modules(engine.config)):
            raise wrong("stack", f"this model has {', '.join(kinds) or 'no attention'}")
        work = ablation_and_patching.work_of_patching(
            engine, tokens, found.tokens, len(found.source), found.interventions
        )
        ablation_and_patching.check_work(work, "text")
        return await service.stream(
            request,
            query,
            found.model,
            lambda progress: ablation_and_patching.patching_json(
                patching(
                    engine,
                    tokens,
                    found.tokens,
                    query.answer,
                    query.against,
                    source,
                    found.source,
                    stack=query.stack or "",
                    interventions=found.interventions,
                    on_progress=progress,
                )
            ),
        )

    @both(router, "/export", ExportQuery, "A pass as a file: safetensors, CSV or an HTML page", answers=FILE)
    async def export(request: Request, query: ExportQuery) -> Response:
        """Of safetensors the whole pass, or what `name` names; of CSV the tensor that it names, or a part of one; of
        HTML a page that needs no server."""
        found = await pass_inputs(request, query)
        made = exports.export(query, found)
        return await service.answer(request, query, found.model, made, takes_long=True, keeps=False)

    return router


def both(
    router: APIRouter, path: str, query_type: type[ModelQuery], summary: str, *, answers: str = RECORDING
) -> Callable:
    """Registers a handler for GET, with its fields in the address, and for POST, with the same fields as the body."""

    def register(handler: Callable) -> Callable:
        async def by_get(request: Request, query: Annotated[query_type, Query()]) -> Response:  # pyright: ignore[reportInvalidTypeForm]
            return await handler(request, query)

        async def by_post(request: Request, query: Annotated[query_type, Body()]) -> Response:  # pyright: ignore[reportInvalidTypeForm]
            return await handler(request, query)

        for method, answer in (("GET", by_get), ("POST", by_post)):
            router.add_api_route(
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


def _listed(library: Library) -> list[dict[str, Any]]:
    """Every model that can be asked, with what a question needs to know of it."""
    found = []
    for entry in library.entries():
        card, config = entry.card, entry.config
        if card is None or config is None:
            continue
        found.append(
            {
                "name": entry.name,
                "version": library.version(entry.name),
                "title": card.title,
                "summary": card.summary,
                "task": card.task,
                "language": card.language,
                "parameters": card.parameters,
                "examples": card.examples,
                "architecture": config.architecture,
                "context_length": config.context_length,
                "n_layers": config.n_layers,
                "n_heads": config.n_heads,
                "vocab_size": config.vocab_size,
                "attentions": attention_modules(config),
                "validation_loss": card.validation_loss,
            }
        )
    return found


__all__ = ["OWN", "create_app"]
