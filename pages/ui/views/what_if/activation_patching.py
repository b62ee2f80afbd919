"""Draws the view Activation patching: the effect of each activation patched in from another prompt.

Dimensions: site, layer, pos.
"""

from itertools import groupby

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui.components.effect_heatmaps import Matrix, effect_heatmaps
from pages.ui.computations import comparable_models, prompt_pairs
from pages.ui.computations.activations import log_softmax
from pages.ui.computations.prompt_pairs import PromptPair
from pages.ui.frame import changes, widgets
from pages.ui.frame.page import Session
from pages.ui.frame.widgets import Binding
from pages.ui.markdown import code, counted, signed
from pages.ui.models import library
from pages.ui.number_format import percent
from pages.ui.tables import offer_data
from pages.ui.views.what_if import other_prompt, python_code
from pages.ui.views.what_if.long_computation import compute_with_progress
from pages.ui.views.what_if.shared import TOO_LARGE, suggest_attention_model
from transformer import Patch
from transformer.inference.patching import Patching
from transformer.inference.plain_names import describe_module

SITES = {
    "stream": "The residual stream, as it enters a layer",
    "attention": "What attention adds",
    "cross-attention": "What cross-attention adds",
    "feed-forward": "What the feed-forward layer adds",
}
STACKS = {"encoder": "In the encoder, over the source", "decoder": "In the decoder, over the tokens it has read"}
DIALS = {"own_token": "Answer to your prompt", "other_token": "Answer to the other"}
CHOOSABLE = 300
"""Tokens that can be chosen from, the likeliest of a large vocabulary."""
BEFORE = 2
"""Positions that are drawn before the first that differs."""
SLIGHT = 0.1
"""A share this small isn't worth a sentence."""


def show(session: Session) -> None:
    if not session.config.n_layers:
        suggest_attention_model(session)
        return
    own = session.source or session.require_tokens()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        with st.container(width=420):
            other = other_prompt.other_prompt(session)
        dials = st.container(horizontal=True, width=420)
        other_prompt.offer_pairs(session)
        widgets.button("Swap the prompts", other_prompt.swap, session, icon="swap_vert")
    if other is None or not _fit(session, own, other):
        return
    put_in = any(isinstance(intervention, Patch) for intervention in session.interventions)
    kept = tuple(intervention for intervention in session.interventions if not isinstance(intervention, Patch))
    start = session.require_tokens() if session.source else ()
    pair = prompt_pairs.prompt_pair(session.name, own, other, start, interventions=kept)
    if not np.isfinite(pair.logits).all():
        st.warning(TOO_LARGE)
        return
    is_causal, most = session.config.is_causal, prompt_pairs.MAX_TOKENS
    if is_causal and pair.differing > most:
        st.info(
            f"From the first token that differs to the end there are {pair.differing} tokens; at most {most} can be "
            "traced. Let the prompts differ later, or shorten both."
        )
        return
    if not is_causal and len(own) > most:
        st.info(f"The prompts have {len(own)} tokens; at most {most} can be traced. Shorten both.")
        return
    with dials:
        answers = _answers(session, pair)
    st.caption(
        "Each cell runs your prompt (clean) with one activation copied in from the other prompt (corrupted). **0**: no "
        "effect. **1**: the logit difference becomes that of the other prompt."
        + (" Tokens well before the first that differs are left out: they are the same in both." if is_causal else "")
    )
    if put_in:
        st.caption("Patches that are already in force are left out of this map.")
    try:
        stacks = {
            stack: compute_with_progress(
                prompt_pairs.patching_effects,
                session.name,
                pair.tokens,
                pair.sources,
                answers,
                stack,
                pair.position,
                interventions=kept,
                ask="Trace",
                does="Each position is patched in turn.",
            )
            for stack in (STACKS if session.source else ("self",))
        }
        if None in stacks.values():
            return
    except ValueError as error:
        st.info(str(error))
        return
    for stack, effects in stacks.items():
        _picture(session, pair, stack, effects)
    _explain(session, pair, answers)
    offer_data(
        lambda: pd.concat(_table(session, pair, stack, effects) for stack, effects in stacks.items()),
        "These shares as a table",
        f"{session.file_name}-patching.csv",
    )
    python_code.activation_patching(session, pair, answers, next(iter(stacks)), kept)


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
    elif (
        not session.config.is_causal and len(set(map(library.model(session.name).predicted_position, (own, other)))) > 1
    ):
        st.info("The first masks of the prompts are at different positions. Let both have it at the same one.")
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
                    f"{tokenizer.label(token)}   " + " | ".join(percent(row) for row in probabilities[:, token])
                ),
                width=200,
                help=f"Its probability {_where(session)} your prompt and {_where(session)} the other one.",
            )
        )
    return chosen[0], chosen[1]


def _where(session: Session) -> str:
    """Where a prediction is: after a prompt, or at a mask in it."""
    return "after" if session.config.is_causal else "in"


def _explain(session: Session, pair: PromptPair, answers: tuple[int, int]) -> None:
    labels = library.tokenizer(session.name).labels
    own, other = labels(answers)
    first, then = (float(row[answers[1]] - row[answers[0]]) for row in pair.logits)
    whose = ""
    if session.source:
        written = " ".join(labels(pair.tokens[0][1:]))
        whose = f" Its decoder has read {code(written)} by then, which both sources begin with." if written else ""
    same = ""
    if len(set(pair.logits.argmax(1).tolist())) == 1:
        same = " Both prompts lead to the same likeliest token, so this is about the two whose probabilities move most."
    st.caption(
        f"**Logit difference:** the logit of {code(other)} minus that of {code(own)}, {signed(first, 2)} "
        f"{_where(session)} your prompt, {signed(then, 2)} {_where(session)} the other one.{whose}{same} A cell is "
        "(patched − yours) ÷ (the other's − yours)."
    )


def _picture(session: Session, pair: PromptPair, stack: str, patching: Patching) -> None:
    """A heatmap for each kind of hook point. Choosing a cell patches it, on every page."""
    every = patching.restored.numpy()
    texts = pair.sources if stack == "encoder" else pair.tokens
    labels, others = ([comparable_models.vocabulary(session.name)[token] for token in text] for text in texts)
    names = [
        f"position {position}, {one}" if one == other else f"position {position}, {one} (the other prompt has {other})"
        for position, (one, other) in enumerate(zip(labels, others, strict=True))
    ]
    drawn = [one if one == other else f"{one}|{other}" for one, other in zip(labels, others, strict=True)]
    differing = next((position for position, (one, other) in enumerate(zip(*texts, strict=True)) if one != other), 0)
    looks_back = session.config.is_causal and stack != "encoder"  # else what differs is seen from before it, too
    first = max(differing - BEFORE, 0) if looks_back else 0
    changed = {
        (site, layer, position): Patch(
            patching.points[site][layer], position=position, tokens=pair.tokens[1], source=pair.sources[1]
        )
        for site, layer, position in np.ndindex(every.shape)
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
            marked=[(layer, at - first) for site, layer, at in in_force if site == number and at >= first],
        )
        for number, (kind, points, shares) in enumerate(zip(patching.sites, patching.points, every, strict=True))
    ]
    if stack in STACKS:
        st.markdown(f"**{STACKS[stack]}**")
    effect_heatmaps(
        matrices,
        key=f"what_if_patching_{stack}",
        name=STACKS.get(stack, "Effect of each patch"),
        sentences=(
            "Patching {cell} moves the logit difference {value} of the way to that of the other prompt.",
            "Patching {cell} moves the logit difference {value} of the way in the other direction.",
        ),
        actions=("patch it, on every page", "take the patch back"),
        limit=1.0,
        on_choose=lambda cell: changes.switch(changed[cell.matrix, cell.row, cell.column + first]),
    )
    if first:
        st.caption(
            f"The prompts differ from position {differing} on, and the map begins at {first}: "
            "where they are the same before that, patching changes nothing."
        )
    st.markdown(_in_words(labels, patching))


def _in_words(labels: list[str], patching: Patching) -> str:
    """Where in the stream the difference stands, layer by layer, and which sublayers carry most of it."""
    pair = []
    for site, shares in zip(patching.sites, patching.restored.numpy(), strict=True):
        if site == "stream":
            pair.append(_path(labels, shares))
            continue
        layer, position = np.unravel_index(int(shares.argmax()), shares.shape)
        if shares[layer, position] > SLIGHT:
            pair.append(
                f"{SITES[site]} matters most in layer {layer} at position {position}, {code(labels[position])}: "
                f"{shares[layer, position]:.2f}."
            )
    return " ".join(filter(None, pair))


def _path(labels: list[str], shares: np.ndarray) -> str:
    """The position that carries most of the stream's difference, from layer to layer. shares: (layer, pos)."""
    steps = []
    for position, layers in groupby(range(len(shares)), key=lambda layer: int(shares[layer].argmax())):
        run = list(layers)
        if shares[run, position].max() <= SLIGHT:
            continue
        where = f"layer {run[0]}" if len(run) == 1 else f"layers {run[0]} to {run[-1]}"
        low, high = (f"{share:.2f}" for share in (shares[run, position].min(), shares[run, position].max()))
        between = high if low == high else f"{low} to {high}"
        steps.append(f"into {where} at position {position}, {code(labels[position])} ({between})")
    if steps:
        return f"The residual stream carries the difference {', then '.join(steps)}."
    return "No single position of the residual stream carries much of the difference."


def _table(session: Session, pair: PromptPair, stack: str, patching: Patching) -> pd.DataFrame:
    texts = pair.sources if stack == "encoder" else pair.tokens
    own, other = (np.array(library.tokenizer(session.name).labels(text), dtype=object) for text in texts)
    site, layer, position = (indices.ravel() for indices in np.indices(patching.restored.numpy().shape))
    return pd.DataFrame(
        {
            "hook point": [patching.points[row][column] for row, column in zip(site, layer, strict=True)],
            "position": position,
            "token": own[position],
            "other token": other[position],
            "share": patching.restored.numpy().ravel(),
        }
    )
