"""The routes that say what a page must know before it asks anything else: what a model is, and how it reads a text."""

import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import Field

from ..checkpoints.folder import Checkpoint
from ..data.chat import Chat
from ..data.tasks import TASKS
from ..data.token_text import UnknownPiece
from ..data.tokenizers import Tokenizer
from ..frontend.live_model import about_card, about_model
from ..inference.context_windows import window_start
from .browser_models import is_for_browsers
from .file_names import slug
from .open_models import OpenModel, is_large
from .prompt_pairs import prompt_pairs
from .request_parameters import LONGEST_TEXT, ModelQuery
from .responses import Asked, Responder
from .routing import JSON, Routes

MOST_WORDS = 60
"""Of a vocabulary that is listed."""
MOST_NAMES = 20_000
"""Tokens of a vocabulary whose names a page is told."""
NAMED = 6
"""Unknown pieces that a sentence names."""


class PromptQuery(ModelQuery):
    """Which prompt."""

    text: Annotated[str, Field(max_length=LONGEST_TEXT)]


class TextQuery(ModelQuery):
    """Which text."""

    text: Annotated[str, Field(max_length=LONGEST_TEXT)]
    """The text: a decoder continues it, an encoder reads it, an encoder–decoder has it for its source."""
    reads: Literal["plain", "chat"] = "plain"
    """Whether a model that was tuned to answer reads the text in its chat template."""


def routes(responder: Responder) -> APIRouter:
    routes = Routes(responder)

    @routes.router.get("/models/{name}", summary="All that a page knows of a model beside its weights")
    async def model(
        request: Request,
        name: Annotated[str, Path(min_length=1, max_length=200)],
        version: Annotated[str | None, Query(max_length=80)] = None,
    ) -> Response:
        """`version`, `about` (configuration, equations, tensors, tokens' names), `card`, `file_name`; `in_browser`:
        whether browsers compute it; `is_large`: whether many passes take long; `tokenizer`, as in tokenizer.json,
        where they read texts, too."""
        query = ModelQuery(model=name, version=version)
        model = await responder.model(query, request)
        return await responder.json(Asked(request, query, model), lambda: description(model), takes_long=False)

    @routes.both("/tokens", TextQuery, "What a model reads a text as", JSON)
    async def tokens(request: Request, query: TextQuery) -> Response:
        """`tokens` and their `labels`; `new_words`, those that are given and then the text's; `window`, the position of
        the first token that predicts the next one; `chat`, the text in the chat template. `problem`: in a sentence, why
        it can't be read; then `unknown` may have pieces that the vocabulary lacks, each {text, position}, `known` the
        text without them, and `words` all there are."""
        model = await responder.model(query, request)
        made = lambda: reading(model.checkpoint, query.text, query.reads)  # noqa: E731
        return await responder.json(Asked(request, query, model), made, takes_long=False)

    @routes.both("/vocabulary", ModelQuery, "What a model's tokens are called", JSON)
    async def vocabulary(request: Request, query: ModelQuery) -> Response:
        """`labels`, of every token, by its id."""
        model = await responder.model(query, request)
        tokenizer = model.checkpoint.tokenizer
        made = lambda: {"labels": tokenizer.labels(range(tokenizer.vocab_size))}  # noqa: E731
        return await responder.json(Asked(request, query, model), made)

    @routes.both("/prompt-pairs", PromptQuery, "Prompts to put beside one another", JSON)
    async def pairs(request: Request, query: PromptQuery) -> Response:
        """`suggested`, another prompt that changes what the model predicts, or null; `pairs` of `prompts` that suit the
        model, and whether it `continues` them, rather than to answer."""
        model = (await responder.model(query, request)).with_new_words([*query.new_words, query.text])
        return await responder.json(Asked(request, query, model), lambda: prompt_pairs(model, query.text))

    return routes.router


def description(model: OpenModel) -> dict[str, Any]:
    """The answer of `/models/NAME`."""
    checkpoint = model.checkpoint
    config, tokenizer = checkpoint.model.config, checkpoint.tokenizer
    is_small, written = is_for_browsers(model), json.loads(tokenizer.to_json())
    task = TASKS.get(checkpoint.card.task)
    is_read_there = is_small and written["model"]["type"] == "WordLevel" and (task is None or task.takes_any_text)
    return {
        "version": None if model.is_own else model.version,
        "about": about_model(config, tokenizer, checkpoint.card, names=tokenizer.vocab_size <= MOST_NAMES),
        "card": about_card(checkpoint.card),
        "file_name": slug(checkpoint.card.title) if model.is_own else model.name.replace("/", "-"),
        "in_browser": is_small,
        "is_large": is_large(model.checkpoint),
        "tokenizer": written if is_read_there else None,
    }


def reading(checkpoint: Checkpoint, text: str, reads: str) -> dict[str, Any]:
    """The answer of `/tokens`."""
    card, known = checkpoint.card, checkpoint.tokenizer
    checkpoint = checkpoint.with_new_words([*known.new_words, text])
    tokenizer = checkpoint.tokenizer
    chat = Chat(**card.chat) if reads == "chat" and card.chat is not None and text else None
    unknown = tokenizer.unknown_pieces(text)
    tokens = [] if unknown else list(chat.tokens(tokenizer, text) if chat else tokenizer.encode(text))
    answer = {
        "tokens": tokens,
        "labels": tokenizer.labels(tokens),
        "new_words": tokenizer.new_words,
        "window": window_start(len(tokens), checkpoint.model.config.context_length),
        "chat": chat.text(text) if chat else None,
        "unknown": [{"text": piece.text, "position": piece.position} for piece in unknown],
        "problem": problem_of(checkpoint, text, tokens, unknown),
    }
    if unknown:
        answer |= {"known": tokenizer.without_unknown(text), "words": known_words(known)}
    return answer


def problem_of(checkpoint: Checkpoint, text: str, tokens: list[int], unknown: list[UnknownPiece]) -> str | None:
    """Why a model can't read a text, in a sentence."""
    config, task = checkpoint.model.config, checkpoint.card.task
    if text.strip() and task in TASKS and (problem := TASKS[task].problem(text)):
        return problem
    if unknown:
        return unknown_sentence(unknown, checkpoint.tokenizer.limit)
    if not tokens:
        return "The prompt is empty. Type a text or pick an example."
    over, is_source = len(tokens) - config.context_length, config.architecture == "encoder-decoder"
    if over > 0 and (is_source or not config.is_causal):  # an encoder has no newest tokens that would do
        return (
            f"The {'source' if is_source else 'prompt'} has {len(tokens):,} tokens, and this model reads at most "
            f"{config.context_length:,}. Take {over:,} away."
        )
    return None


def unknown_sentence(unknown: list[UnknownPiece], limit: str) -> str:
    """The error for a text with pieces that the vocabulary lacks. limit: of the new words that the model reads."""
    listed = ", ".join(f"“{piece.text}” (character {piece.position + 1})" for piece in unknown[:NAMED])
    more = f", and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
    it = "it" if len(unknown) == 1 else "them"
    return f"This model has never seen {listed}{more}.{limit} Remove {it}, or pick another model."


def known_words(tokenizer: Tokenizer) -> list[str]:
    """All words of a model with few of them; none for one that reads characters, or has many."""
    if tokenizer.vocab_size > MOST_WORDS:
        return []
    return sorted(word for word in tokenizer.labels(range(tokenizer.vocab_size)) if len(word) > 1 and word.isalpha())
