"""Draws the view Activation patching: the effect of each activation patched in from another prompt.

Dimensions: site, layer, pos.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui.components.effects import Cell, Matrix, effect_heatmaps
from pages.ui.figures.what_if import percent
from pages.ui.frame import changes, widgets
from pages.ui.frame.page import Session
from pages.ui.frame.widgets import Binding
from pages.ui.markdown import code, counted
from pages.ui.models import activation_patching, library
from pages.ui.models.activation_patching import PatchingEffects, PromptPair
from pages.ui.tables import offer_data
from pages.ui.views.what_if import other_prompt, python_code
from pages.ui.views.what_if.long_computation import compute_with_progress
from pages.ui.views.what_if.shared import TOO_LARGE, log_softmax, suggest_attention_model
from transformer import Patch
from transformer.inference.interventions import describe_module

SITES = {
    "stream": "The residual stream, as it enters a layer",
    "attention": "What attention adds",
    "cross-attention": "What cross-attention adds",
    "feed-forward": "What the feed-forward layer adds",
}
STACKS = {"encoder": "In the encoder, over the source", "decoder": "In the decoder, over what it has read"}
DIALS = {"own_token": "Its own answer", "other_token": "The other's answer"}
CHOOSABLE = 300
"""Tokens that can be chosen from, the likeliest of a large vocabulary."""
BEFORE = 8
"""Positions that are drawn before the first that changes anything."""
SLIGHT = 0.1
"""A share this small isn't worth a sentence."""


def show(session: Session) -> None:
    """The view."""
    if not session.config.n_layers:
        suggest_attention_model(session)
        return
    own = session.source or session.require_tokens()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        with st.container(width=420):
            other = other_prompt.other_prompt(session)
        dials = st.container(horizontal=True, width=420)
        other_prompt.offer_pairs(session)
        st.button("Swap the prompts", icon=":material/swap_vert:", on_click=other_prompt.swap, args=(session,))
    if other is None or not _fit(session, own, other):
        return
    put_in = any(isinstance(each, Patch) for each in session.interventions)
    kept = tuple(each for each in session.interventions if not isinstance(each, Patch))
    start = session.require_tokens() if session.source else ()
    pair = activation_patching.prompt_pair(session.name, own, other, start, interventions=kept)
    if not np.isfinite(pair.logits).all():
        st.warning(TOO_LARGE)
        return
    if pair.differing > activation_patching.MAX_TOKENS:
        st.info(
            f"From the first token that differs to the end there are {pair.differing} tokens; at most "
            f"{activation_patching.MAX_TOKENS} can be traced. Let the prompts differ later, or shorten both."
        )
        return
    with dials:
        answers = _answers(session, pair)
    st.caption(
        "Each cell patches one position in one layer with what the model computed there for the other "
        "prompt. **0**: no effect. **1**: the answer becomes the other prompt's."
    )
    if put_in:
        st.caption("Patches that are already in force are left out of this map.")
    try:
        found = {
            stack: compute_with_progress(
                activation_patching.patching_effects,
                session.name,
                pair.tokens,
                pair.sources,
                answers,
                stack,
                interventions=kept,
                ask="Trace",
                does="Each position is patched in turn.",
            )
            for stack in (STACKS if session.source else ("self",))
        }
        if None in found.values():
            return
    except ValueError as error:
        st.info(str(error))
        return
    for stack, traced in found.items():
        _picture(session, pair, stack, traced)
    _explain(session, pair, answers)
    offer_data(
        lambda: pd.concat(_table(session, pair, stack, traced) for stack, traced in found.items()),
        "These shares as a table",
        f"{session.file_name}-traced.csv",
    )
    python_code.activation_patching(session, pair, answers, next(iter(found)), kept)


def _fit(session: Session, own: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two prompts can be traced; if not, what to do is said."""
    longest = session.config.context_length
    if max(len(own), len(other)) > longest:
        st.info(
            f"Your prompt has {counted(len(own), 'token')}, the other one {counted(len(other), 'token')}, and this "
            f"model's context holds {longest}. Shorten them until they fit."
        )
    elif len(own) != len(other):
        do = f"Add {len(own) - len(other)} to" if len(own) > len(other) else f"Take {len(other) - len(own)} away from"
        st.info(
            f"Your prompt has {counted(len(own), 'token')}, the other one {len(other)}. Patching needs equal "
            f"lengths. {do} the other prompt, or let one be suggested."
        )
    elif own == other:
        st.info("Both prompts are the same. Change a word or a letter of the other one.")
    else:
        return True
    return False


def _answers(session: Session, pair: PromptPair) -> tuple[int, int]:
    """The two tokens whose logits are compared, and the dials that choose them."""
    probabilities = np.exp(log_softmax(pair.logits))
    tokenizer, current = library.tokenizer(session.name), session.visitor
    likeliest = np.argsort(-probabilities.max(0), kind="stable")[:CHOOSABLE].tolist()
    chosen = []
    for number, (field, label) in enumerate(DIALS.items()):
        default, wish = pair.answers[number], getattr(current, field)
        if wish is not None and wish >= session.config.vocab_size:
            st.warning(f"This model has no token {wish}; the likeliest is taken.")
            setattr(current, field, None)
            wish = None
        options = list(dict.fromkeys([default, *likeliest, *([] if wish is None else [wish])]))
        chosen.append(
            widgets.selectbox(
                label,
                options,
                Binding(field, default=default),
                lambda token: (
                    f"{tokenizer.label(token)}   " + " | ".join(percent(each) for each in probabilities[:, token])
                ),
                width=200,
                help="Its probability after your prompt and after the other one.",
            )
        )
    return chosen[0], chosen[1]


def _explain(session: Session, pair: PromptPair, answers: tuple[int, int]) -> None:
    labels = library.tokenizer(session.name).labels
    own, other = labels(answers)
    first, then = (float(row[answers[1]] - row[answers[0]]) for row in pair.logits)
    whose = ""
    if session.source:
        written = " ".join(labels(pair.tokens[0][1:]))
        whose = f" Its decoder has read {code(written)} by then, which both sources begin with." if written else ""
    same = (
        " Both prompts lead to the same likeliest token, so this is about the two whose probabilities move most."
        if len(set(pair.logits.argmax(1).tolist())) == 1
        else ""
    )
    st.caption(
        f"**Logit difference:** the logit of {code(other)} less that of {code(own)}, {first:+.2f} after your prompt, "
        f"{then:+.2f} after the other one.{whose}{same} A cell is (patched − yours) ÷ (the other's − yours)."
    )


def _picture(session: Session, pair: PromptPair, stack: str, found: PatchingEffects) -> None:
    """A heatmap for each kind of place. Choosing a cell puts that place in, on every page."""
    texts = pair.sources if stack == "encoder" else pair.tokens
    labels, others = map(library.tokenizer(session.name).labels, texts)
    names = [
        f"position {place}, {one}" if one == other else f"position {place}, {one} (the other prompt has {other})"
        for place, (one, other) in enumerate(zip(labels, others, strict=True))
    ]
    drawn = [one if one == other else f"{one}|{other}" for one, other in zip(labels, others, strict=True)]
    changing = np.flatnonzero(found.shares.any((0, 1)))
    first = max(int(changing[0]) - BEFORE, 0) if len(changing) else 0
    changed = {
        (site, layer, place): activation_patching.patch_at(found, (pair.tokens[1], pair.sources[1]), site, layer, place)
        for site, layer, place in np.ndindex(found.shares.shape)
    }
    in_force = [cell for cell, change in changed.items() if change in session.interventions]
    matrices = [
        Matrix(
            SITES[kind],
            shares[:, first:],
            rows=[describe_module(point) for point in points],
            columns=names[first:],
            row_labels=[f"layer {layer}" for layer in range(len(points))],
            column_labels=drawn[first:],
            marked=[(layer, place - first) for site, layer, place in in_force if site == number and place >= first],
        )
        for number, (kind, points, shares) in enumerate(zip(found.sites, found.points, found.shares, strict=True))
    ]

    def choose(cell: Cell) -> None:
        change = changed[cell.matrix, cell.row, cell.column + first]
        if change in session.interventions:
            changes.without([change])
        else:
            changes.add(change)

    if stack in STACKS:
        st.markdown(f"**{STACKS[stack]}**")
    effect_heatmaps(
        matrices,
        key=f"what_if_traced_{stack}",
        name=STACKS.get(stack, "Effect of each patch"),
        says=(
            "{cell} takes it {value} of the way to the other answer.",
            "{cell} takes it {value} of the way in the other direction.",
        ),
        acts=("patch it, on every page", "take the patch back"),
        limit=1.0,
        on_choose=choose,
    )
    if first:
        st.caption(f"The picture begins at position {first}: before the prompts differ, no cell changes anything.")
    st.markdown(_in_words(labels, found))


def _in_words(labels: list[str], found: PatchingEffects) -> str:
    """Where in the stream the difference stands, layer by layer, and which sublayers carry most of it."""
    pair = []
    for site, shares in zip(found.sites, found.shares, strict=True):
        if site == "stream":
            pair.append(_path(labels, shares))
            continue
        layer, place = np.unravel_index(int(shares.argmax()), shares.shape)
        if shares[layer, place] > SLIGHT:
            pair.append(
                f"{SITES[site]} counts for most in layer {layer} at position {place}, {code(labels[place])}: "
                f"{shares[layer, place]:.2f}."
            )
    return " ".join(filter(None, pair))


def _path(labels: list[str], shares: np.ndarray) -> str:
    """The position that carries most of the stream's difference, from layer to layer. shares: (layer, pos)."""
    steps = []
    for place, layers in groupby(range(len(shares)), key=lambda layer: int(shares[layer].argmax())):
        run = list(layers)
        if shares[run, place].max() <= SLIGHT:
            continue
        where = f"layer {run[0]}" if len(run) == 1 else f"layers {run[0]} to {run[-1]}"
        steps.append(f"into {where} at position {place}, {code(labels[place])} ({_range(shares[run, place])})")
    return (
        f"The residual stream carries the difference {', then '.join(steps)}."
        if steps
        else "No single position of the residual stream carries much of the difference."
    )


def _range(values: np.ndarray) -> str:
    low, high = f"{values.min():.2f}", f"{values.max():.2f}"
    return high if low == high else f"{low} to {high}"


def _table(session: Session, pair: PromptPair, stack: str, found: PatchingEffects) -> pd.DataFrame:
    texts = pair.sources if stack == "encoder" else pair.tokens
    own, other = (np.array(library.tokenizer(session.name).labels(text), dtype=object) for text in texts)
    site, layer, place = (indices.ravel() for indices in np.indices(found.shares.shape))
    return pd.DataFrame(
        {
            "hook point": [found.points[row][column] for row, column in zip(site, layer, strict=True)],
            "position": place,
            "token": own[place],
            "other token": other[place],
            "share": found.shares.ravel(),
        }
    )
