"""The lines of Python that compute, without the app, what *Before and after* and *What is needed here* show."""

from __future__ import annotations

import streamlit as st

from pages.ui.models import library
from pages.ui.models.changes import as_python
from pages.ui.shell.sidebar import Session
from pages.ui.views.what_if.reading import Read
from transformer import Sampling, in_window

BEFORE = """from transformer import {names}

checkpoint = load_checkpoint({path!r})
text, source = {text}, {source}
for changes in ([], {changes}):
    steps = list(generate(checkpoint.model, text, source=source or None, max_new_tokens={count}, sampling={sampling},
                          stop_tokens={stop}, interventions=changes))
    values, tokens = steps[0].logits.softmax(-1).topk(5)
    print(dict(zip(checkpoint.tokenizer.labels(tokens.tolist()), values.tolist())))  # what it says next
    print(checkpoint.tokenizer.decode([step.token_id for step in steps]))  # what it writes"""

NEEDED = """from transformer import {names}

checkpoint = load_checkpoint({path!r})
text, source = {text}, {source}
found = silencing(checkpoint.model, text, source{changes})
effects = {effects}
for part, effect in zip(found.parts, effects.tolist()):
    print(part, effect){note}"""
NOTE = "  # for what is silenced in every pass, 0"


def before(session: Session, reading: Read, count: int) -> None:
    """The lines that say and write what both models do. count: tokens that are written, at most."""
    names, changes = as_python(session.interventions)
    end = library.model(session.name).card.end_token_id
    room = session.config.context_length - len(reading.before) if reading.source else count
    _show(BEFORE.format(
        names=", ".join(sorted([*names, "Sampling", "generate", "load_checkpoint"])), path=_path(session),
        text=list(reading.before), source=list(reading.source), changes=changes, count=max(min(count, room), 1),
        sampling=_sampling(session.visitor.sampling), stop=[] if end is None else [end],
    ))  # fmt: skip


def needed(session: Session, reading: Read, token: int | None) -> None:
    """The lines that silence one part after another. token: whose logit is looked at; None: the loss."""
    names, changes = as_python(in_window(session.interventions, reading.begin))
    _show(NEEDED.format(
        names=", ".join(sorted([*names, "load_checkpoint", "silencing"])), path=_path(session),
        text=list(reading.tokens), source=list(reading.source), changes=f", {changes}" if names else "",
        effects="found.loss(text)" if token is None else f"found.logit({reading.place}, {token})",
        note=NOTE if names else "",
    ))  # fmt: skip


def _show(code: str) -> None:
    with st.expander("The lines of Python that compute this", icon=":material/code:"):
        st.code(code, language=None, wrap_lines=True)


def _path(session: Session) -> str:
    return "the folder of your model" if library.opened(session.name).is_own else f"checkpoints/{session.name}"


def _sampling(sampling: Sampling) -> str:
    given = {name: value for name in ("temperature", "top_k", "top_p", "seed")
             if (value := getattr(sampling, name)) is not None}  # fmt: skip
    return f"Sampling({', '.join(f'{name}={value!r}' for name, value in given.items())})"
