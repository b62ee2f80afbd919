"""The routes from which a visitor's browser fetches a small model, to compute its passes and texts itself."""

from collections.abc import Sequence

from fastapi import APIRouter, Request
from fastapi.responses import Response

from ..checkpoints.folder import Checkpoint
from ..frontend.live_model import SAMPLED, about_model, sample_of, weights_of
from ..inference.recording import Recording
from .errors import ApiError
from .open_models import MOST_PARAMETERS, is_for_browsers
from .request_parameters import ModelQuery
from .responses import RECORDING, Answer, Asked, Responder
from .routing import Routes


def routes(responder: Responder) -> APIRouter:
    routes = Routes(responder)

    async def small(query: ModelQuery, request: Request) -> Asked:
        model = await responder.model(query, request)
        if not is_for_browsers(model):
            raise ApiError(413, f"Browsers compute models of at most {MOST_PARAMETERS:,} parameters here.", "model")
        return Asked(request, query, model)

    @routes.both("/weights", ModelQuery, "A small model's weights, for a browser that computes with them")
    async def weights(request: Request, query: ModelQuery) -> Response:
        """A safetensors file, with half precision where that has a weight's numbers exactly."""
        asked = await small(query, request)
        make = lambda: Answer(RECORDING, weights_of(asked.model.checkpoint.model))  # noqa: E731
        return await responder.answer(asked, make, keeps=not asked.model.is_own)

    @routes.both("/description", ModelQuery, "What such a browser needs to know of a model beside its weights")
    async def description(request: Request, query: ModelQuery) -> Response:
        """Metadata `about`: configuration, equations, tensors, tokens' names. `tokens`, `source`: a sample; tensors:
        what the engine computes of it, which a browser compares its own numbers with."""
        asked = await small(query, request)
        return await responder.recording(asked, lambda: describe(asked.model.checkpoint), compresses=True)

    return routes.router


def describe(checkpoint: Checkpoint) -> Recording:
    """The answer of `/description`."""
    config, card = checkpoint.model.config, checkpoint.card
    text = _some_tokens(checkpoint)
    texts = (card.start_tokens, text) if config.architecture == "encoder-decoder" else (text, ())
    sample = sample_of(checkpoint.model, *texts)
    return Recording(sample.tensors, {"about": about_model(config, checkpoint.tokenizer, card), **sample.metadata})


def _some_tokens(checkpoint: Checkpoint) -> Sequence[int]:
    """Ordinary tokens from all over the vocabulary."""
    config, card = checkpoint.model.config, checkpoint.card
    special = {*card.start_tokens, *card.stop_tokens, card.mask_token_id, config.pad_token_id}
    ordinary = [token for token in range(config.vocab_size) if token not in special] or [0]
    return [ordinary[7 * at % len(ordinary)] for at in range(min(SAMPLED, config.context_length))]
