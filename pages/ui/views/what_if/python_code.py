"""Shows Python code that computes the views of the page What if without the app."""

from __future__ import annotations

import streamlit as st

from pages.ui.frame.page import Session
from pages.ui.models import library
from pages.ui.models.activation_patching import PromptPair
from pages.ui.models.changes import as_python
from pages.ui.views.what_if.ablation_map import AblationMap
from pages.ui.views.what_if.comparison_sides import Side
from pages.ui.views.what_if.shared import ModelInput
from transformer import Intervention, Sampling, in_window

NEXT_TOKEN = """from transformer import {names}

checkpoint = load_checkpoint({path!r})
text, source = {text}, {source}
for changes in ([], {changes}):
    steps = list(generate(checkpoint.model, text, source=source or None, max_new_tokens={count}, sampling={sampling},
                          stop_tokens={stop}, interventions=changes))
    values, tokens = steps[0].logits.softmax(-1).topk(5)
    print(list(zip(checkpoint.tokenizer.labels(tokens.tolist()), values.tolist())))  # what it says next
    print(checkpoint.tokenizer.decode([step.token_id for step in steps]))  # what it writes"""

FILLED = """from transformer import {names}

checkpoint = load_checkpoint({path!r})
text, position = {text}, {position}
for changes in ([], {changes}):
    trace = trace_pass(checkpoint.model, text, interventions=changes)
    values, tokens = trace.tensors["probabilities"][position].topk(5)
    print(list(zip(checkpoint.tokenizer.labels(tokens.tolist()), values.tolist())))  # what it predicts there
    steps = fill_masks(checkpoint.model, text, {mask}, interventions=changes)
    print([(step.position, checkpoint.tokenizer.label(step.token_id)) for step in steps])  # what it fills in"""

ABLATION = """from transformer import {names}

checkpoint = load_checkpoint({path!r})
text, source = {text}, {source}
ablated = ablation(checkpoint.model, text, source{changes})
effects = {effects}
for part, effect in zip(ablated.parts, effects.tolist()):
    print(part, effect){note}"""
PATCHING = """from transformer import {names}

checkpoint = load_checkpoint({path!r})
prompt, other = {own}, {other}
patched = patching(checkpoint.model, other, prompt, answer={answer}, against={against}{options})
for site, layers in zip(patched.sites, patched.restored):
    print(site, layers)  # (layer, position): the share that each patch brings of the other answer"""

COMPARISON = """from transformer import {names}

for path, text, source, position, changes in [
    {one},
    {two},
]:
    checkpoint = load_checkpoint(path)
    trace = trace_pass(checkpoint.model, text, source, interventions=changes)
    values, tokens = trace.tensors["probabilities"][position].topk(5)
    print(list(zip(checkpoint.tokenizer.labels(tokens.tolist()), values.tolist())))  # what it says next
    print(logit_lens(trace).logits[:, position].argmax(-1))  # the likeliest token after each layer"""
NOTE = "  # for what is ablated in every pass, 0"


EFFECTS = {
    "loss": "ablated.loss(text)",
    "logit": "ablated.logit({position}, {token})",
    "probability": "100 * (ablated.logits.softmax(-1) - ablated.plain.softmax(-1))[:, {position}, {token}]",
}


def ablation(session: Session, model_input: ModelInput, count: int, mapped: AblationMap | None) -> None:
    """The lines that say and write what both models do, and those that ablate one part after another.

    count: tokens that are written, at most. mapped: what the map shows, if there is one.
    """
    _show(_before(session, model_input, count), *([_ablation(session, model_input, mapped)] if mapped else []))


def _before(session: Session, model_input: ModelInput, count: int) -> str:
    names, changes = as_python(session.interventions)
    if not session.config.is_causal:
        return FILLED.format(
            names=", ".join(sorted([*names, "fill_masks", "load_checkpoint", "trace_pass"])),
            path=_path(session),
            text=list(model_input.tokens),
            position=model_input.position,
            changes=changes,
            mask=library.model(session.name).card.mask_token_id,
        )
    room = session.config.context_length - len(model_input.before) if model_input.source else count
    return NEXT_TOKEN.format(
        names=", ".join(sorted([*names, "Sampling", "generate", "load_checkpoint"])),
        path=_path(session),
        text=list(model_input.before),
        source=list(model_input.source),
        changes=changes,
        count=max(min(count, room), 1),
        sampling=_sampling(session.visitor.sampling),
        stop=list(library.model(session.name).card.stop_tokens),
    )


def _ablation(session: Session, model_input: ModelInput, mapped: AblationMap) -> str:
    names, changes = as_python(in_window(session.interventions, model_input.begin))
    return ABLATION.format(
        names=", ".join(sorted([*names, "load_checkpoint", "ablation"])),
        path=_path(session),
        text=list(model_input.tokens),
        source=list(model_input.source),
        changes=f", {changes}" if names else "",
        effects=EFFECTS[mapped.effect].format(position=model_input.position, token=mapped.token),
        note=NOTE if names else "",
    )


def activation_patching(
    session: Session, pair: PromptPair, answers: tuple[int, int], stack: str, interventions: tuple[Intervention, ...]
) -> None:
    """The lines that patch one position after another.

    answers: the token that is the prompt's own, and the other's. stack: as in `patching`.
    """
    names, changes = as_python(interventions)
    options = "".join(
        [
            f", source={list(pair.sources[1])}, corrupted_source={list(pair.sources[0])}" if pair.sources[0] else "",
            f", stack={stack!r}" if pair.sources[0] else "",
            f", position={pair.position}" if not session.config.is_causal else "",
            f", interventions={changes}" if names else "",
        ]
    )
    _show(
        PATCHING.format(
            names=", ".join(sorted([*names, "load_checkpoint", "patching"])),
            path=_path(session),
            own=list(pair.tokens[0]),
            other=list(pair.tokens[1]),
            answer=answers[1],
            against=answers[0],
            options=options,
        )
    )


def comparison(sides: tuple[Side, Side]) -> None:
    """The lines that read both sides."""
    names: set[str] = {"load_checkpoint", "logit_lens", "trace_pass"}
    rows = []
    for side in sides:
        more, changes = as_python(in_window(side.interventions, side.begin))
        names |= set(more)
        rows.append(f"({_path(side)!r}, {list(side.tokens)}, {list(side.source)}, {side.position}, {changes})")
    _show(COMPARISON.format(names=", ".join(sorted(names)), one=rows[0], two=rows[1]))


def _show(*codes: str) -> None:
    # Opening it runs the page: code that nobody sees takes the browser as long as a chart.
    opened = st.expander("Python code for this view", icon=":material/code:", key="drawer_python", on_change="rerun")
    if opened.open:
        for code in codes:
            opened.code(code, language=None, wrap_lines=True)


def _path(model: Session | Side) -> str:
    return "the folder of your model" if library.opened(model.name).is_own else f"checkpoints/{model.name}"


def _sampling(sampling: Sampling) -> str:
    given = {
        name: value
        for name in ("temperature", "top_k", "top_p", "seed")
        if (value := getattr(sampling, name)) is not None
    }
    return f"Sampling({', '.join(f'{name}={value!r}' for name, value in given.items())})"
