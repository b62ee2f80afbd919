"""Writes Python that computes what a page shows, from `transformer` alone."""

from collections.abc import Iterable
from typing import Any

import streamlit as st

from pages.ui.frame.page import Session
from pages.ui.models import library
from pages.ui.models.changes import as_python
from transformer import Intervention


def written(
    template: str, session: Session, interventions: Iterable[Intervention], *imported: str, **values: Any
) -> str:
    """The lines of a template with its values: of the page's model, changed by these interventions.

    The template can name `{imports}`, `{loaded}`, the checkpoint with the prompt's new words, `{changes}`, a list, and
    `{option}`: the same as an argument, which is left out where there are none.
    """
    names, changes = as_python(interventions)
    words = session.tokenizer.new_words
    named = f".with_new_words({list(words)})" if words else ""
    return template.format(
        imports=", ".join(sorted({*names, *imported})),
        loaded=f"load_checkpoint({folder_of(session.name)!r}){named}",
        changes=changes,
        option=f", interventions={changes}" if names else "",
        **values,
    )


def folder_of(name: str) -> str:
    """Where a program finds the model."""
    return "the folder of your model" if library.opened(name).is_own else f"checkpoints/{name}"


def show(*programs: str) -> None:
    """Show them, wrapped and in one colour: those of code are too faint to be read, and what has to be scrolled can't
    be reached by keys."""
    for program in programs:
        st.code(program, language=None, wrap_lines=True)
