"""The models that can be picked: those that ship, opened once for everybody, and the visitor's own.

A checkpoint may be replaced while the server runs. A page must not draw one version's attention over another
version's text, so a page's run sees each model as it was when the run first asked for it; `begin_run` looks again.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st
import torch
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages.ui.models.own_models import own_entries, own_models
from transformer import Checkpoint, CheckpointEntry, ModelConfig, Tokenizer
from transformer.api.file_names import slug
from transformer.api.library import FOLDER, Library
from transformer.api.open_models import OpenModel
from transformer.data.chat import Chat

# Tiny tensors gain nothing from several threads, and the threads of visitors served at once would wait for each other.
# A large model writes hardly faster on two cores than on one, and on a busy machine twenty times slower: they spin.
torch.set_num_threads(1)

MANY_PARAMETERS = 40_000_000
"""A model from this size on is called large."""


def shared() -> Library:
    """The models that ship, opened once for all visitors."""
    return _library(FOLDER)


@st.cache_resource(show_spinner=False)
def _library(folder: Path) -> Library:
    return Library(folder)


def catalogue() -> tuple[CheckpointEntry, ...]:
    """Every checkpoint folder, the damaged ones with what is wrong; the same objects for everybody."""
    return shared().entries()


def usable() -> dict[str, CheckpointEntry]:
    """The checkpoints that can be picked, by name: the visitor's own, and everybody's."""
    there = {entry.name: entry for entry in catalogue() if not entry.problem}
    seen = {name: CheckpointEntry(name, FOLDER / name, model.checkpoint.card, model.checkpoint.model.config)
            for name, model in _seen().items()}  # fmt: skip
    return there | seen | own_entries()


def begin_run(keep: OpenModel | None = None) -> None:
    """From here on, see models as they are now; all but the one to `keep`, whose text is on the page."""
    seen = _seen()
    seen.clear()
    if keep and not keep.is_own:
        seen[keep.name] = keep


def opened(name: str) -> OpenModel:
    """A model: the visitor's own, or one that is opened once and shared. Raises CheckpointError if it can't be."""
    if own := own_models().get(name):
        return OpenModel(name, name, own, is_own=True)
    seen = _seen()
    if name not in seen:
        seen[name] = shared().open(name, lambda: st.spinner("Opening the model …"))
    return seen[name]


def model(name: str) -> Checkpoint:
    """A model's checkpoint, as `opened` finds it."""
    return opened(name).checkpoint


def file_name(name: str) -> str:
    """What files of a model begin with: its name; of an own model, whose name is its key, its title."""
    found = opened(name)
    return slug(found.checkpoint.card.title) if found.is_own else name.replace("/", "-")


def config(name: str) -> ModelConfig:
    """A model's configuration."""
    return model(name).model.config


def tokenizer(name: str) -> Tokenizer:
    """A model's tokenizer."""
    return model(name).tokenizer


def chat(name: str) -> Chat | None:
    """What stands around the words that a model was tuned to answer; None for one that only continues texts."""
    found = model(name).card.chat
    return None if found is None else Chat(**found)


def encoded(name: str, text: str, reads: str) -> tuple[int, ...]:
    """A prompt's tokens, in its model's chat template if it has one and `reads` is "chat".

    Raises: UnknownTokenError for pieces that the vocabulary lacks.
    """
    around = chat(name) if reads == "chat" else None
    return tuple(around.tokens(tokenizer(name), text) if around and text else tokenizer(name).encode(text))


def window(name: str, tokens: tuple[int, ...]) -> tuple[int, ...]:
    """The last tokens, as many as the model's context holds."""
    return tokens[-config(name).context_length :]


def _seen() -> dict[str, OpenModel]:
    """The shared models that this visitor's page has asked for, as they were then; outside of a page, none."""
    return {} if get_script_run_ctx(suppress_warning=True) is None else st.session_state.setdefault("models_seen", {})


def is_large(checkpoint: Checkpoint) -> bool:
    """Whether a model is so large that passes over many variants of a text take long."""
    return checkpoint.card.parameters >= MANY_PARAMETERS
