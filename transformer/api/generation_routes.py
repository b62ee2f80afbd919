"""The routes for text generation: streams tokens as events, and answers questions about a text in progress."""

from collections.abc import AsyncIterator, Callable

from fastapi import APIRouter, Request
from fastapi.responses import Response

from ..inference.generation import DecodeState
from ..inference.scheduler import schedulers
from ..model.registry import attention_modules
from . import generated_texts
from .errors import ApiError, stopping, wrong
from .limits import Share, share_in
from .open_models import OpenModel
from .pass_inputs import PassInputs
from .request_parameters import MOST_CELLS, GenerateQuery, PassQuery, RowsQuery, ScoresQuery, inputs_of
from .responses import Responder
from .routing import STREAM, Routes
from .server_sent_events import event, stream_of

MOST_TOKENS = 20_000
"""The longest text to continue."""


def read(query: PassQuery, model: OpenModel) -> PassInputs:
    """As `inputs_of`, for a text that may be longer than the context."""
    inputs = inputs_of(query, model, fits=False)
    if len(inputs.tokens) > MOST_TOKENS:
        raise ApiError(
            413, f"The text has {len(inputs.tokens):,} tokens, and at most {MOST_TOKENS:,} are read.", "tokens"
        )
    return inputs


def routes(responder: Responder) -> APIRouter:
    routes = Routes(responder, read)

    @routes.both("/generate", GenerateQuery, "Continue a text, a token an event", STREAM)
    async def generate(request: Request, query: GenerateQuery) -> Response:
        """Events `token` (its id, label, probability, rank, entropy, the random number `point`, where its window
        begins, logits or the likeliest of them, and the newest row of a head), then `end` with its `reason`, `stop` or
        `length`, or `error`, with `retry_after` where the server is stopping and has cut the text off. The text that is
        continued may be longer than the context; ending the request ends the computing."""
        inputs = read(query, await responder.model(query, request))
        module, head = _looked_at(query.attention, query.head, inputs.model)
        try:
            state = DecodeState(
                inputs.model.checkpoint.model,
                inputs.tokens,
                sampling=query.sampling(),
                source=inputs.source or None,
                names_filter=f"{module}.hook_pattern" if module else (),
                interventions=inputs.changes,
            )
        except ValueError as error:
            raise wrong("tokens", error) from None
        return stream_of(_events(inputs, state, query.max_new_tokens, module, head, share_in(request)))

    @routes.of_pass("/scores", ScoresQuery, "What a model thought of each token of a text, and of the one to come")
    def scores(query: ScoresQuery, inputs: PassInputs) -> Callable:
        """By position, from `first` to the one after the text: the token that would be `drawn`, and the random number
        in `points` that decides it; `probability`, `rank`, `entropy`; `logits`, or with a large vocabulary only
        those of the likeliest tokens."""
        if not 1 <= query.first <= len(inputs.tokens):
            raise wrong("first", f"it is a position from 1 to {len(inputs.tokens)}, the one after the text")
        vocabulary = min(inputs.model.checkpoint.model.config.vocab_size, generated_texts.SMALL_VOCABULARY)
        if (len(inputs.tokens) - query.first + 1) * vocabulary > MOST_CELLS:
            raise ApiError(413, "One answer can't hold so much of a text; start from a later position.", "first")
        return lambda: generated_texts.scores(*inputs.passed, query.first, query.sampling(), inputs.changes)

    @routes.of_pass("/rows", RowsQuery, "Where a head looked to choose each token of a text")
    def rows(query: RowsQuery, inputs: PassInputs) -> Callable:
        """Tensors `rows`, one after another, and of each `place`, `start` and `length`."""
        module, head = _looked_at(query.attention, query.head, inputs.model)
        if not 1 <= query.first <= query.last <= len(inputs.tokens):
            raise wrong("last", f"first and last are positions from 1 to {len(inputs.tokens)}, in this order")
        positions = range(query.first, query.last + 1)
        return lambda: generated_texts.rows(*inputs.passed, str(module), head, positions, inputs.changes)

    return routes.router


async def _events(
    inputs: PassInputs, state: DecodeState, max_new_tokens: int, module: str | None, head: int, share: Share | None
) -> AsyncIterator[bytes]:
    """The events of a text, as the scheduler writes it among all others of its model."""
    checkpoint = inputs.model.checkpoint
    ends = checkpoint.card.stop_tokens
    request = schedulers.of(checkpoint.model).submit(
        state, max_new_tokens=max_new_tokens, stop_tokens=ends, owner=share
    )
    last, count = None, 0
    yield event("begin", {"seed": state.sampling.seed})
    try:
        async for step in request:
            last, count = step.token_id, count + 1
            yield event("token", generated_texts.step_json(step, checkpoint.tokenizer, module, head))
        if last in ends or count == max_new_tokens:
            yield event("end", {"reason": "stop" if last in ends else "length"})
        else:  # the schedulers have been closed
            yield stopping().event()
    except Exception as error:
        yield event("error", {"error": f"The text can't be written on: {str(error)[:300]}", "parameter": ""})
        if not isinstance(error, ValueError):
            raise


def _looked_at(attention: str | None, head: int, model: OpenModel) -> tuple[str | None, int]:
    """The attention and head whose rows are asked for. Raises: ApiError for those that the model's decoder hasn't."""
    config = model.checkpoint.model.config
    modules = [module for kind, of_kind in attention_modules(config).items() if kind != "encoder" for module in of_kind]
    if attention is None:
        return None, 0
    if attention not in modules:
        raise wrong("attention", f"this model's decoder has {', '.join(modules[:3]) or 'none'}")
    if head >= config.n_heads:
        raise wrong("head", f"this model has heads 0 to {config.n_heads - 1}")
    return attention, head
