"""The ASGI application of the API: its routes. Each GET address holds everything its answer depends on.

from transformer.api.app import create_app
app = create_app()          # uvicorn some_module:app, or Mount("/api", app)
"""

import time
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import Mount

from ..checkpoints.folder import Checkpoint
from ..frontend import FOLDER
from ..inference.circuits import circuits_of
from ..inference.patching import patching
from ..jobs import progress
from ..model.registry import attention_modules
from . import (
    ablation_and_patching,
    analyses,
    browser_models,
    exports,
    generation_routes,
    masked_words,
    outlines,
    predictions,
    text_reading,
)
from .docs import page_of
from .errors import ApiError, on_api_error, on_exception, on_http_error, on_invalid, wrong
from .frontend_modules import FrontendModules, files_in
from .heads_and_redirects import HeadsAndRedirects
from .limits import Limits, proxies, share_in
from .model_library import Library
from .pass_inputs import PassInputs
from .request_parameters import (
    AblationQuery,
    AttributionQuery,
    CircuitQuery,
    ExportQuery,
    LensQuery,
    OverviewQuery,
    PassQuery,
    PatchingQuery,
    PredictionsQuery,
    TensorsQuery,
    check_position,
    check_size,
    check_token,
    clean_inputs_of,
    ids_of,
    kind_of,
    orders_of,
    part_named,
)
from .responses import Asked, Responder, as_json
from .routing import FILE, JSON, STREAM, Routes
from .server_metrics import Gauges, Histogram, Latency, gauge_lines, resident_bytes

DESCRIPTION = """Every number of a forward pass, over HTTP. An address holds all that its answer depends on; what is
longer than 8,192 bytes is sent as the JSON body of a POST to the same address, with the same fields. Tensors come as
safetensors files, whose metadata says what belongs to them; errors as JSON, `error` (one sentence) and `parameter`.
HEAD answers what GET would, without the body."""


def create_app(
    library: Callable[[], Library] | None = None,
    own: Callable[[str], Checkpoint | None] = lambda token: None,
    limits: Callable[..., Any] = Limits,
    gauges: Gauges = dict,
) -> FastAPI:
    """The application. library: gives the models that ship, those of the default folder unless it is told.

    own: gives the model of a token, if there is one. limits: the middleware that holds the limits. gauges: what else
    /metrics tells.
    Raises: ValueError, saying what would do, for an environment variable that says what it can't.
    """
    proxies()
    if library is None:
        default = Library()
        library = lambda: default  # noqa: E731
    responder = Responder(library, own)
    app = FastAPI(title="HeadsUp", description=DESCRIPTION, version="1", docs_url=None, redoc_url=None)
    app.state.responder = responder
    app.state.modules = FrontendModules(files_in(FOLDER, "frontend"))
    latency = Histogram()
    app.add_middleware(limits)
    app.add_middleware(Latency, histogram=latency)
    app.add_middleware(HeadsAndRedirects)
    app.exception_handler(ApiError)(on_api_error)
    app.exception_handler(RequestValidationError)(on_invalid)
    app.exception_handler(HTTPException)(on_http_error)
    app.exception_handler(Exception)(on_exception)
    app.include_router(_about(responder, latency, gauges))
    app.include_router(_passes(responder))
    app.include_router(generation_routes.routes(responder))
    app.include_router(browser_models.routes(responder))
    app.include_router(text_reading.routes(responder))
    app.router.routes.append(Mount("/modules", app.state.modules))
    return app


def _about(responder: Responder, latency: Histogram, gauges: Gauges) -> APIRouter:
    """The routes about the server and its models."""
    router, started = APIRouter(tags=["server"]), time.time()

    @router.get("/health", summary="Whether the engine answers: 503 if it doesn't")
    async def health() -> Response:
        return as_json({"status": "ok", "models": await responder.readable_models()})

    @router.get("/metrics", summary="Counts for Prometheus")
    async def metrics() -> PlainTextResponse:
        lines = [f"headsup_uptime_seconds {time.time() - started:.0f}"]
        for name, count in sorted(responder.counts.items()):
            address, _, how = name.partition(":")
            lines.append(f'headsup_answers_total{{address="{address}",how="{how}"}} {count}')
        lines += [*gauge_lines({**responder.gauges(), **resident_bytes(), **gauges()})]
        lines += latency.lines("headsup_latency_seconds")
        return PlainTextResponse("\n".join(lines) + "\n", headers={"Cache-Control": "no-store"})

    @router.get("/docs", summary="This documentation", include_in_schema=False)
    async def docs(request: Request) -> HTMLResponse:
        return HTMLResponse(page_of(request.app.openapi()), headers={"Cache-Control": "no-cache"})

    @router.get("/models", summary="The models that can be asked")
    async def models(request: Request) -> Response:
        return as_json({"models": await responder.read(lambda: _listed(responder.library), share_in(request))})

    return router


def _passes(responder: Responder) -> APIRouter:
    """The routes about a forward pass."""
    routes = Routes(responder)

    @routes.of_pass("/overview", OverviewQuery, "All heads of an attention at a glance", compresses=True)
    def overview(query: OverviewQuery, inputs: PassInputs) -> Callable:
        """Tensors `overview` (layer, head, query, key), a byte a cell, and `measures` (layer, head, measure)."""
        kind = kind_of(query, inputs.model)
        return lambda: outlines.overview(*inputs.passed, kind, inputs.interventions)

    @routes.of_pass("/outline", PassQuery, "The picture of the whole pass", compresses=True)
    def outline(query: PassQuery, inputs: PassInputs) -> Callable:
        """Statistics of every tensor, a strip of each point as wide as the stream, arcs, the logit lens."""
        return lambda: outlines.outline(*inputs.passed, inputs.interventions)

    @routes.of_pass("/tensors", TensorsQuery, "Any tensors of a pass, whole or in part")
    def some_tensors(query: TensorsQuery, inputs: PassInputs) -> Callable:
        """Each under the name that it was asked by: float32, truth values as bytes. Metadata `config`, and `labels` and
        `ids` of `text` and `source`."""
        parts = [part_named(name, "names", inputs) for name in dict.fromkeys(query.names)]
        check_size(parts, "names")
        return lambda: analyses.named_tensors(*inputs.passed, parts, inputs.interventions)

    @routes.of_pass("/lens", LensQuery, "The logit lens at one position")
    def lens(query: LensQuery, inputs: PassInputs) -> Callable:
        """The logit lens: tensors `lens`, `lens.probability`, `lens.right`, `lens.rank`; with `of`, `lens.of` (depth,
        token): the probabilities of those tokens."""
        check_position(query.position, inputs)
        of = ids_of(query.of)
        for token in of:
            check_token("of", token, inputs.model)
        return lambda: analyses.lens(*inputs.passed, query.position, inputs.interventions, of)

    @routes.of_pass("/attribution", AttributionQuery, "Each part's share in a logit")
    def attribution(query: AttributionQuery, inputs: PassInputs) -> Callable:
        """Direct logit attribution: tensor `shares` (part,), metadata `names`."""
        check_position(query.position, inputs)
        check_token("token", query.token, inputs.model)
        return lambda: analyses.attribution(*inputs.passed, query.position, query.token, inputs.interventions)

    @routes.of_pass("/masked", PassQuery, "What an encoder expects at each mask of a text", responder.json, JSON)
    def masked(query: PassQuery, inputs: PassInputs) -> Callable:
        """`masks`, each {position, candidates}, with the likeliest tokens as {id, probability}; `kinds`, tokens' names
        and what they add to a text."""
        if inputs.model.checkpoint.model.config.is_causal:
            raise wrong("model", "it sees nothing after a token, so it fills no masks; ask /generate")
        return lambda: masked_words.masked_words(inputs.model, inputs.tokens, inputs.interventions)

    @routes.of_pass("/predictions", PredictionsQuery, "What a model predicts at each position of a pass")
    def predicted(query: PredictionsQuery, inputs: PassInputs) -> Callable:
        """By position, after each token, or of an encoder in place of each, which is masked for it: `logits`, or with a
        large vocabulary only those of the likeliest tokens. With `orders`, a row for the text and one for each."""
        first, last = query.first, len(inputs.tokens) - 1 if query.last is None else query.last
        if not first <= last < len(inputs.tokens):
            raise wrong("last", f"first and last are positions from 0 to {len(inputs.tokens) - 1}, in this order")
        texts = orders_of(query, inputs)
        if len(texts) > 1 and first != last:
            raise wrong("orders", "first and last are one position then")
        checkpoint = inputs.model.checkpoint
        most = predictions.most_masked(checkpoint, len(inputs.tokens))
        if not checkpoint.model.config.is_causal and len(texts) * (last - first + 1) > most:
            raise ApiError(413, f"At most {most} tokens of this text can be masked in turn; ask for fewer.", "first")
        return lambda: predictions.predictions(inputs.model, texts, first, last, inputs.interventions)

    @routes.of_pass("/checks", PassQuery, "Every tensor of a pass against its equation", responder.json, JSON)
    def checks(query: PassQuery, inputs: PassInputs) -> Callable:
        """`checks`, by tensor: the largest difference, its magnitude, and what was changed in it."""
        return lambda: {"checks": [each.to_dict() for each in analyses.checks(*inputs.passed, inputs.interventions)]}

    @routes.both("/circuit", CircuitQuery, "A circuit of a head")
    async def circuit(request: Request, query: CircuitQuery) -> Response:
        """The two factors of a head's QK or OV circuit, over all tokens or the strongest of very many."""
        model = await responder.model(query, request)
        config = model.checkpoint.model.config
        modules = [module for of_kind in attention_modules(config).values() for module in of_kind]
        if query.attention not in modules or query.kind not in circuits_of(config, query.attention):
            raise wrong("attention", f"this model has no {query.kind} circuit in {query.attention[:60]!r}")
        if query.head >= config.n_heads:
            raise wrong("head", f"this model has heads 0 to {config.n_heads - 1}")
        read = frozenset(ids_of(query.tokens))
        if read and max(read) >= config.vocab_size:
            raise wrong("tokens", f"{max(read)} is not in this model's vocabulary of {config.vocab_size}")
        made = lambda: analyses.circuit(model, query.kind, query.attention, query.head, read)  # noqa: E731
        return await responder.recording(Asked(request, query, model), made)

    @routes.of_pass(
        "/ablation", AblationQuery, "What each head and feed-forward layer does for a text", responder.stream, STREAM
    )
    def ablation(query: AblationQuery, inputs: PassInputs) -> Callable:
        """Events `progress` {share}, then `result`: `parts`, each {point, head}, and what happens without it: how much
        the mean `loss` rises, in nats, and the `logit` of `token`; the token's probability `with` the part and
        `without` it; the `divergence` of the next token. Or `error`."""
        predicted = inputs.model.checkpoint.predicted_position(inputs.tokens)
        position = predicted if query.position is None else query.position
        check_position(position, inputs)
        if query.token is not None:
            check_token("token", query.token, inputs.model)
        engine = inputs.model.checkpoint.model
        work = ablation_and_patching.work_of_ablation(engine, len(inputs.tokens), len(inputs.source))
        ablation_and_patching.check_work(work)
        arguments = engine, inputs.tokens, inputs.source, position, query.begin, inputs.changes
        return lambda: ablation_and_patching.ablation_json(ablation_and_patching.ablation(*arguments), query.token)

    @routes.of_pass(
        "/patching", PatchingQuery, "Activation patching: what each position carries", responder.stream, STREAM
    )
    def patched(query: PatchingQuery, inputs: PassInputs) -> Callable:
        """Events `progress` {share}, then `result`: `restored` (site, layer, pos), how much of the logit difference of
        `answer` and `against` comes back; `sites` and their hook `points`; the difference of the `clean` and of the
        `corrupted` text. Or `error`."""
        tokens, source = clean_inputs_of(query, inputs)
        check_token("answer", query.answer, inputs.model)
        check_token("against", query.against, inputs.model)
        engine = inputs.model.checkpoint.model
        if query.stack is not None and query.stack not in (kinds := attention_modules(engine.config)):
            raise wrong("stack", f"this model has {', '.join(kinds) or 'no attention'}")
        work = ablation_and_patching.work_of_patching(
            engine, tokens, inputs.tokens, len(inputs.source), inputs.interventions
        )
        ablation_and_patching.check_work(work)
        arguments = engine, tokens, inputs.tokens, query.answer, query.against, source, inputs.source
        position = inputs.model.checkpoint.predicted_position(tokens)
        more = {"stack": query.stack or "", "position": position, "interventions": inputs.interventions}
        return lambda: ablation_and_patching.patching_json(patching(*arguments, **more, on_progress=progress))

    @routes.of_pass(
        "/export",
        ExportQuery,
        "A pass as a file: safetensors, CSV or an HTML page",
        responder.answer,
        FILE,
        takes_long=True,
        keeps=False,
    )
    def export(query: ExportQuery, inputs: PassInputs) -> Callable:
        """Of safetensors the whole pass, or what `name` names; of CSV the tensor that it names, or a part of one; of
        HTML a page that needs no server."""
        return exports.export(query, inputs)

    return routes.router


def _listed(library: Library) -> list[dict[str, Any]]:
    """Every model that can be asked, with what a question needs to know of it."""
    of_card = ("title", "summary", "task", "language", "parameters", "examples", "validation_loss")
    of_config = ("architecture", "context_length", "n_layers", "n_heads", "vocab_size")
    return [
        {
            "name": entry.name,
            "version": library.version(entry.name),
            **{name: getattr(entry.card, name) for name in of_card},
            **{name: getattr(entry.config, name) for name in of_config},
            "attentions": attention_modules(entry.config),
        }
        for entry in library.entries()
        if entry.problem is None
    ]


__all__ = ["create_app"]
