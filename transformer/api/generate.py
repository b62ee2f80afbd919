"""The routes for text generation: streams tokens as events, and answers questions about a text in progress."""

from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from ..inference.generation import DecodeState
from ..inference.scheduler import schedulers
from ..model.registry import attention_modules
from . import generated_texts
from .errors import ApiError, wrong
from .open_models import OpenModel
from .queries import MOST_CELLS, GenerateQuery, PassInputs, RowsQuery, ScoresQuery, inputs_of
from .server_sent_events import MEDIA_TYPE, event, stream_of
from .service import Service

MOST_TOKENS = 20_000
"""Of a text that is written on."""


def routes(service: Service, both: Callable) -> APIRouter:
    """The addresses. both: registers a handler for GET and for POST."""
    router = APIRouter()

    async def pass_inputs(request: Request, query: Any) -> PassInputs:
        found = inputs_of(query, await service.model(query, request), fits=False)
        if len(found.tokens) > MOST_TOKENS:
            raise ApiError(
                413, f"The text has {len(found.tokens):,} tokens, and at most {MOST_TOKENS:,} are read.", "tokens"
            )
        return found

    @both(router, "/generate", GenerateQuery, "Continue a text, a token an event", answers=MEDIA_TYPE)
    async def generate(request: Request, query: GenerateQuery) -> Response:
        """Events `token` (its id, label, probability, rank, entropy, the random number `point`, where its window
        begins, logits or the likeliest of them, and the newest row of a head), then `end`, or `error`. The text that is
        continued may be longer than the context; ending the request ends the computing."""
        found = await pass_inputs(request, query)
        module, head = _looked_at(query.attention, query.head, found.model)
        try:
            state = DecodeState(
                found.model.checkpoint.model,
                found.tokens,
                sampling=query.sampling(),
                source=found.source or None,
                names_filter=f"{module}.hook_pattern" if module else (),
                interventions=found.changes,
            )
        except ValueError as error:
            raise wrong("tokens", error) from None
        return stream_of(_events(found, state, query.max_new_tokens, module, head))

    @both(router, "/scores", ScoresQuery, "What a model thought of each token of a text, and of the one to come")
    async def scores(request: Request, query: ScoresQuery) -> Response:
        """By position, from `first` to the one after the text: the token that would be `drawn`, and the random number
        in `points` that decides it; `probability`, `rank`, `entropy`; `logits`, or with a large vocabulary only
        those of the likeliest tokens."""
        found = await pass_inputs(request, query)
        if not 1 <= query.first <= len(found.tokens):
            raise wrong("first", f"it is a position from 1 to {len(found.tokens)}, the one after the text")
        vocabulary = min(found.model.checkpoint.model.config.vocab_size, generated_texts.SMALL_VOCABULARY)
        if (len(found.tokens) - query.first + 1) * vocabulary > MOST_CELLS:
            raise ApiError(413, "One answer can't hold so much of a text; start from a later position.", "first")
        return await service.recording(
            request,
            query,
            found.model,
            lambda: generated_texts.scores(
                found.model, found.tokens, found.source, query.first, query.sampling(), found.changes
            ),
        )

    @both(router, "/rows", RowsQuery, "Where a head looked to choose each token of a text")
    async def rows(request: Request, query: RowsQuery) -> Response:
        """Tensors `rows`, one after another, and of each `place`, `start` and `length`."""
        found = await pass_inputs(request, query)
        module, head = _looked_at(query.attention, query.head, found.model)
        if not 1 <= query.first <= query.last <= len(found.tokens):
            raise wrong("last", f"first and last are positions from 1 to {len(found.tokens)}, in this order")
        positions = range(query.first, query.last + 1)
        return await service.recording(
            request,
            query,
            found.model,
            lambda: generated_texts.rows(
                found.model, found.tokens, found.source, str(module), head, positions, found.changes
            ),
        )

    return router


async def _events(
    found: PassInputs, state: DecodeState, max_new_tokens: int, module: str | None, head: int
) -> AsyncIterator[bytes]:
    """The events of a text, as the scheduler writes it among all others of its model."""
    checkpoint = found.model.checkpoint
    ends = checkpoint.card.stop_tokens
    request = schedulers.of(checkpoint.model).submit(state, max_new_tokens=max_new_tokens, stop_tokens=ends)
    last = None
    yield event("begin", {"seed": state.sampling.seed})
    try:
        async for step in request:
            last = step.token_id
            yield event("token", generated_texts.step_json(step, checkpoint.tokenizer, module, head))
        yield event("end", {"reason": "stop" if last in ends else "length"})
    except Exception as error:
        yield event("error", {"error": f"The text can't be written on: {str(error)[:300]}", "parameter": ""})
        if not isinstance(error, ValueError):
            raise


def _looked_at(attention: str | None, head: int, model: OpenModel) -> tuple[str | None, int]:
    """The attention and head whose rows are asked for. Raises: ApiError for those that the model's decoder hasn't."""
    config = model.checkpoint.model.config
    modules = [module for kind, found in attention_modules(config).items() if kind != "encoder" for module in found]
    if attention is None:
        return None, 0
    if attention not in modules:
        raise wrong("attention", f"this model's decoder has {', '.join(modules[:3]) or 'none'}")
    if head >= config.n_heads:
        raise wrong("head", f"this model has heads 0 to {config.n_heads - 1}")
    return attention, head
