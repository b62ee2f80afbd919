"""Before and after: what the model says next and writes, with the changes that are set and without them.

Dimensions: vocab, part.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui.components.versions import Version, versions
from pages.ui.figures.what_if import paired_bars, percent
from pages.ui.frame import changes
from pages.ui.frame.page import Session
from pages.ui.frame.state import visitor
from pages.ui.markdown import code, counted, plain
from pages.ui.models import activations, changed, library
from pages.ui.tables import offer_data
from pages.ui.views.charts import chart
from pages.ui.views.what_if import lines
from pages.ui.views.what_if.needed import needed_here
from pages.ui.views.what_if.reading import TOO_LARGE, Read, after_what, divergence, lead_on, log_softmax, read
from transformer.inference.interventions import part_in_words

CANDIDATES = 5
"""Tokens of each distribution that have bars."""
MOVED = 5
"""Tokens named among those that gained most, and that lost most."""
SUGGESTED = 3
LENGTH = 60
"""Tokens that each of the two models writes."""
LONGEST = 120
"""Characters shown of what stands before them."""
FAR = 0.01
"""A divergence, in nats, of less isn't far."""
UNMOVED = 1e-5
"""A change of probability, or a divergence, this small is rounding."""


def show(session: Session) -> None:
    """The view."""
    if not session.interventions and not session.config.n_layers:
        lead_on(session)
        return
    reading = read(session)
    if not session.interventions:
        _suggest(session, reading)
        return
    logits = [activations.next_token(session.name, reading.before, reading.source, interventions=each)[0]
              for each in ((), session.interventions)]  # fmt: skip
    if not np.isfinite(logits[1]).all():
        st.warning(TOO_LARGE)
        return
    before, after = map(log_softmax, logits)
    _next_token(session, reading, before, after)
    _writing(session, reading)
    lines.before(session, reading, LENGTH)


def _suggest(session: Session, reading: Read) -> None:
    """Nothing is changed: what is worth trying, which is what moves the next token most."""
    st.header("Nothing is changed yet", anchor=False)
    found = needed_here(session, reading)
    if found is None:
        return
    st.markdown("Take a part of the model away, and see what it was for. Of all heads and feed-forward layers, these "
                f"move the odds of the token {after_what(session, reading)} most when they are silenced, one at a "
                "time.")  # fmt: skip
    (with_it, without), moved = found.odds, found.moved
    likeliest = int(with_it[0].argmax())
    label = code(library.tokenizer(session.name).label(int(found.tokens[likeliest])))
    for rank, row in enumerate(np.argsort(-moved, kind="stable")[:SUGGESTED]):
        part = found.parts[row]
        was, becomes = np.exp([with_it[row, likeliest], without[row, likeliest]])
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(f"Silence {part_in_words(part)}", key=f"suggested_{rank}", on_click=changes.add, args=(part,),
                      type="primary" if rank == 0 else "secondary")  # fmt: skip
            st.markdown(f"{label}: {percent(was)} → {percent(becomes)}")
    st.button("See what every part is needed for", type="tertiary", icon=":material/arrow_forward:", on_click=_see_all)
    if moved.max() < FAR:
        st.caption("No part alone moves it far: what one does, the others can do without it. Try several together.")


def _see_all() -> None:
    visitor().question = "needed"


def _next_token(session: Session, reading: Read, before: np.ndarray, after: np.ndarray) -> None:
    """Two distributions on one axis. before, after: log-probabilities (vocab,)."""
    st.header("What it says next", anchor=False)
    tokenizer, old, new = library.tokenizer(session.name), np.exp(before), np.exp(after)
    first, then = int(old.argmax()), int(new.argmax())
    lost = float(divergence(before, after))
    with st.container(horizontal=True):
        st.metric("Likeliest, unchanged", f"{plain(tokenizer.label(first))} · {percent(old[first])}", width=220)
        st.metric("Likeliest, changed", f"{plain(tokenizer.label(then))} · {percent(new[then])}", width=220)
        st.metric("KL(unchanged ‖ changed)", f"{max(lost, 0):.4g} nats", width=220,
                  help="The mean of ln (unchanged ÷ changed) over what the unchanged model expects: how much worse the "
                       "changed one would predict it. 0 if they are the same.")  # fmt: skip
    st.markdown(_in_words(session, reading, old, new))
    union = np.union1d(*(np.argsort(-odds, kind="stable")[:CANDIDATES] for odds in (old, new)))
    shown = union[np.argsort(-old[union], kind="stable")]
    figure = paired_bars(tokenizer.labels(shown.tolist()), old[shown], new[shown], theme=session.theme)
    chart(figure, "what_if_next")
    st.caption(f"The probability of the token {after_what(session, reading)}: the {CANDIDATES} likeliest of both, in "
               "the order of the unchanged model.")  # fmt: skip
    table = {
        "token id": range(len(old)), "token": tokenizer.labels(range(len(old))), "probability unchanged": old,
        "probability changed": new, "ln unchanged": before, "ln changed": after,
    }  # fmt: skip
    offer_data(lambda: pd.DataFrame(table).sort_values("probability unchanged", ascending=False),
               "Both distributions as a table", f"{session.file_name}-before-and-after.csv")  # fmt: skip


def _in_words(session: Session, reading: Read, old: np.ndarray, new: np.ndarray) -> str:
    """What gained most and what lost most."""
    change = new - old
    if float(np.abs(change).max()) < UNMOVED:
        return f"These changes move no probability {after_what(session, reading)}."
    labels = library.tokenizer(session.name).labels
    told = ["What changed most:"]
    for word, sign in (("Less likely", -1), ("Likelier", 1)):
        order = [token for token in np.argsort(-sign * change, kind="stable")[:MOVED] if sign * change[token] > UNMOVED]
        named = [f"{code(label)} {percent(old[token])} → {percent(new[token])}"
                 for token, label in zip(order, labels(order), strict=True)]  # fmt: skip
        told.append(f"- **{word}:** {', '.join(named)}" if named else f"- **{word}:** none")
    return "\n".join(told)


def _writing(session: Session, reading: Read) -> None:
    """The text that both models write, with the first difference marked."""
    st.header("What it writes", anchor=False)
    sampling = session.visitor.sampling
    both = [changed.written(session.name, reading.before, reading.source, sampling, LENGTH, each)
            for each in ((), session.interventions)]  # fmt: skip
    same = next((at for at, (one, other) in enumerate(zip(*both, strict=False)) if one != other), min(map(len, both)))
    versions(key="what_if_versions", versions=[
        _version(session, title, reading.before, tokens, same)
        for title, tokens in zip(("Unchanged", "Changed"), both, strict=True)
    ])  # fmt: skip
    dials = "always the likeliest token" if sampling.temperature == 0 else (
        f"temperature {sampling.temperature:g}, seed {sampling.seed}: the same random numbers for both")
    told = "Both write the same." if len(set(both)) == 1 else (
        "They differ from the first token on." if same == 0 else f"They differ after {counted(same, 'token')}.")
    end = " to the end of the text" if session.source else ""
    st.caption(f"{told} Up to {LENGTH} tokens{end}, with {dials}.")


def _version(session: Session, title: str, text: tuple[int, ...], tokens: tuple[int, ...], same: int) -> Version:
    """What one of the models writes after a text. same: how many tokens the other writes, too."""
    tokenizer = library.tokenizer(session.name)
    before = tokenizer.decode(text)
    before = before if len(before) <= LONGEST else f"…{before[-LONGEST:]}"
    pieces = tokenizer.pieces((*text, *tokens))[len(text) :]
    end = library.model(session.name).card.end_token_id
    parts = pieces[:same], pieces[same : same + 1], pieces[same + 1 :]
    return Version(title, before, *map("".join, parts), ends=bool(tokens) and tokens[-1] == end)
