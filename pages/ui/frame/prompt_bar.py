"""Opens the model of the page state, and reads its prompt; the shell says what is wrong with either."""

from collections.abc import Callable
from typing import NoReturn

from pages.ui.frame import changes, model_picker
from pages.ui.frame.state import kept_from_tab, visitor
from pages.ui.frame.visitor_choices import Visitor
from pages.ui.models import library
from transformer.api.text_reading import reading


def pick(current: Visitor, stop: Callable[[], NoReturn]) -> tuple[str, str]:
    """The model and the prompt. stop: ends the page where there is no model at all."""
    with kept_from_tab():  # the shell replaces a model that isn't here by itself
        name = model_picker.pick_model(current, stop)
    changes.settle(name, library.config(name))
    return name, next(iter(library.model(name).card.examples), "") if current.prompt is None else current.prompt


def read_prompt(name: str, prompt: str) -> tuple[tuple[int, ...] | None, tuple[int, ...]]:
    """What the decoder continues, or an encoder-only model reads, and the source; None for the first if it can't be."""
    checkpoint = library.model(name)
    read = reading(checkpoint, prompt, visitor().reads)
    tokens = tuple(read["tokens"])
    if read["problem"]:
        return None, ()
    is_source = checkpoint.model.config.architecture == "encoder-decoder"
    return (checkpoint.card.start_tokens, tokens) if is_source else (tokens, ())
