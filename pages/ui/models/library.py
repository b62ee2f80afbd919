"""Opens models: the shipped ones, once for everybody, and the visitor's own.

A checkpoint may be replaced while the server runs. A page must not draw one version's attention over another
version's text, so a page's run sees each model as it was when the run first asked for it; `begin_run` looks again.
"""

import contextlib
import functools
from contextvars import ContextVar

import streamlit as st
import torch

from pages.ui.session.session_store import has_session
from pages.ui.session.visitor_models import is_own, own_models, shared_models
from transformer import Checkpoint, CheckpointEntry, CheckpointError, ModelConfig, Tokenizer, UnreadableCheckpoint
from transformer.api.file_names import slug
from transformer.api.model_library import FOLDER, Library
from transformer.api.model_store import model_store
from transformer.api.open_models import OpenModel
from transformer.api.open_models import is_large as is_large
from transformer.inference import context_windows

# Tiny tensors gain nothing from several threads, and the threads of visitors served at once would wait for each other.
# A large model writes hardly faster on two cores than on one, and on a busy machine twenty times slower: they spin.
torch.set_num_threads(1)

_SEEN: ContextVar[dict[str, OpenModel] | None] = ContextVar("models_seen", default=None)
"""The models that a run of a page has opened; each has a thread, and so a context, of its own. None outside of one."""


def shared() -> Library:
    """The models that ship, opened once for all visitors."""
    return _library(FOLDER)


_library = functools.cache(Library)


def catalogue() -> tuple[CheckpointEntry | UnreadableCheckpoint, ...]:
    """Every checkpoint folder, the damaged ones with what is wrong; the same objects for everybody."""
    return shared().entries()


def usable() -> dict[str, CheckpointEntry]:
    """The checkpoints that can be picked, by name: everybody's, those of links, and the visitor's own."""
    there = {entry.name: entry for entry in catalogue() if entry.problem is None}
    return there | shared_models() | own_models()


def rungs(group: str) -> dict[str, CheckpointEntry]:
    """The models of a ladder that are here, from the lowest rung to the highest."""
    return {name: entry for name, entry in sorted(usable().items()) if entry.card.group == group}


def begin_run() -> None:
    """From here on, see models as they are now."""
    _SEEN.set({})


def opened(name: str) -> OpenModel:
    """A model: one that ships, opened once for everybody, or somebody's own, by its token.

    Raises: CheckpointError if it can't be opened.
    """
    seen = _SEEN.get()
    if seen is None:
        seen = {}
    if name not in seen:
        if is_own(name):
            seen[name] = _own(name)
        else:
            seen[name] = shared().open(name, _waiting)
    return seen[name]


def model(name: str) -> Checkpoint:
    """A model's checkpoint, as `opened` finds it."""
    return opened(name).checkpoint


def file_name(name: str) -> str:
    """What files of a model begin with: its name; of an own model, whose name is its key, its title."""
    opening = opened(name)
    return slug(opening.checkpoint.card.title) if opening.is_own else name.replace("/", "-")


def config(name: str) -> ModelConfig:
    return model(name).model.config


def tokenizer(name: str) -> Tokenizer:
    return model(name).tokenizer


def window(name: str, tokens: tuple[int, ...]) -> tuple[int, ...]:
    """The last tokens, as many as the model reads to predict the next one: past its context, its window."""
    return tokens[window_start(name, len(tokens)) :]


def window_start(name: str, length: int) -> int:
    """Where that window of a text of so many tokens begins."""
    return context_windows.window_start(length, config(name).context_length)


def _waiting() -> contextlib.AbstractContextManager:
    return st.spinner("Opening the model …") if has_session() else contextlib.nullcontext()


def _own(token: str) -> OpenModel:
    checkpoint = model_store().get(token)
    if checkpoint is None:
        raise CheckpointError("It is no longer kept here.")
    return OpenModel(token, token, checkpoint, is_own=True)
