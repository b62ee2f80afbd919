"""Shows Python code that computes the views of the page What if without the app."""

from pages.ui.computations.prompt_pairs import PromptPair
from pages.ui.expanders import drawer
from pages.ui.frame.page import Session
from pages.ui.models import library
from pages.ui.models.changes import as_python
from pages.ui.views import python_lines
from pages.ui.views.what_if.ablation_map import AblationMap
from pages.ui.views.what_if.comparison_sides import Side
from pages.ui.views.what_if.shared import ModelInput
from transformer import Intervention, Sampling, in_window

NEXT_TOKEN = """from transformer import {imports}

checkpoint = load_checkpoint({path!r})
text, source = {text}, {source}
for changes in ([], {changes}):
    steps = list(generate(checkpoint.model, text, source=source or None, max_new_tokens={count}, sampling={sampling},
                          stop_tokens={stop}, interventions=changes))
    values, tokens = steps[0].logits.softmax(-1).topk(5)
    print(list(zip(checkpoint.tokenizer.labels(tokens.tolist()), values.tolist())))  # what it says next
    print(checkpoint.tokenizer.decode([step.token_id for step in steps]))  # what it writes"""

FILLED = """from transformer import {imports}

checkpoint = load_checkpoint({path!r})
text, position = {text}, {position}
for changes in ([], {changes}):
    trace = trace_pass(checkpoint.model, text, interventions=changes)
    values, tokens = trace.tensors["probabilities"][position].topk(5)
    print(list(zip(checkpoint.tokenizer.labels(tokens.tolist()), values.tolist())))  # what it predicts there
    steps = fill_masks(checkpoint.model, text, {mask}, interventions=changes)
    print([(step.position, checkpoint.tokenizer.label(step.token_id)) for step in steps])  # what it fills in"""

ABLATION = """from transformer import {imports}

checkpoint = load_checkpoint({path!r})
text, source = {text}, {source}
ablated = ablation(checkpoint.model, text, source{option})
effects = {effects}
for part, effect in zip(ablated.parts, effects.tolist()):
    print(part, effect){note}"""
PATCHING = """from transformer import {imports}

checkpoint = load_checkpoint({path!r})
prompt, other = {own}, {other}
patched = patching(checkpoint.model, other, prompt, answer={answer}, against={against}{options}{option})
for site, layers in zip(patched.sites, patched.restored):
    print(site, layers)  # (layer, position): the share that each patch brings of the other answer"""

COMPARISON = """from transformer import {imports}

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
    changed = session.name, session.interventions
    if not session.config.is_causal:
        return python_lines.written(
            FILLED,
            *changed,
            "fill_masks",
            "load_checkpoint",
            "trace_pass",
            text=list(model_input.tokens),
            position=model_input.position,
            mask=library.model(session.name).card.mask_token_id,
        )
    room = session.config.context_length - len(model_input.before) if model_input.source else count
    return python_lines.written(
        NEXT_TOKEN,
        *changed,
        "Sampling",
        "generate",
        "load_checkpoint",
        text=list(model_input.before),
        source=list(model_input.source),
        count=max(min(count, room), 1),
        sampling=_sampling(session.visitor.sampling),
        stop=list(library.model(session.name).card.stop_tokens),
    )


def _ablation(session: Session, model_input: ModelInput, mapped: AblationMap) -> str:
    return python_lines.written(
        ABLATION,
        session.name,
        in_window(session.interventions, model_input.begin),
        "load_checkpoint",
        "ablation",
        text=list(model_input.tokens),
        source=list(model_input.source),
        effects=EFFECTS[mapped.effect].format(position=model_input.position, token=mapped.token),
        note=NOTE if session.interventions else "",
    )


def activation_patching(
    session: Session, pair: PromptPair, answers: tuple[int, int], stack: str, interventions: tuple[Intervention, ...]
) -> None:
    """The lines that patch one position after another.

    answers: the token that is the prompt's own, and the other's. stack: as in `patching`.
    """
    options = "".join(
        [
            f", source={list(pair.sources[1])}, corrupted_source={list(pair.sources[0])}" if pair.sources[0] else "",
            f", stack={stack!r}" if pair.sources[0] else "",
            f", position={pair.position}" if not session.config.is_causal else "",
        ]
    )
    own, other = map(list, pair.tokens)
    against, answer = answers
    chosen = {"own": own, "other": other, "answer": answer, "against": against, "options": options}
    _show(python_lines.written(PATCHING, session.name, interventions, "load_checkpoint", "patching", **chosen))


def comparison(sides: tuple[Side, Side]) -> None:
    """The lines that read both sides."""
    names: set[str] = {"load_checkpoint", "logit_lens", "trace_pass"}
    rows = []
    for side in sides:
        more, changes = as_python(in_window(side.interventions, side.begin))
        names |= set(more)
        path = python_lines.folder_of(side.name)
        rows.append(f"({path!r}, {list(side.tokens)}, {list(side.source)}, {side.position}, {changes})")
    _show(COMPARISON.format(imports=", ".join(sorted(names)), one=rows[0], two=rows[1]))


def _show(*programs: str) -> None:
    drawer("Python code for this view", "drawer_python", lambda: python_lines.show(*programs), icon=":material/code:")


def _sampling(sampling: Sampling) -> str:
    given = {
        name: value
        for name in ("temperature", "top_k", "top_p", "seed")
        if (value := getattr(sampling, name)) is not None
    }
    return f"Sampling({', '.join(f'{name}={value!r}' for name, value in given.items())})"
