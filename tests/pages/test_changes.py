"""Tests changes to models: in links, in the list, and in windows of long texts."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import transformer
from pages.ui.models.changes import as_python, read_changes
from tests.engine.test_interventions import as_texts, changes, one_text
from tests.frontend_calls import frontend
from tests.helpers import any_configs, tiny_config, tiny_model
from transformer import (
    MeanAblate,
    Patch,
    Scale,
    SetAttention,
    Steer,
    Without,
    deviations,
    generate,
    in_window,
    overwritten_values,
    to_code,
    trace_pass,
)
from transformer.inference.intervention_kinds import MOST_CHANGES, MOST_CHARACTERS
from transformer.model.equations import equations_json

POINT = "blocks.0.attn.hook_z"
PATTERN = "blocks.0.attn.hook_pattern"
SOME = [
    Scale(POINT, 0),
    Scale(POINT, 1, 3, -0.5),
    MeanAblate("blocks.1.hook_mlp_out"),
    Without("mask"),
    Without("norm", "blocks.1."),
    Patch("blocks.0.hook_resid_pre", tokens=(1, 2, 3)),
    Steer("blocks.0.hook_resid_pre", None, 2, (1,), (2, 3), (), 1.5),
    SetAttention(PATTERN, 1, 2, 0, 0.25, False),
]
interventions = st.sampled_from(SOME)


@st.composite
def links(draw, config):
    """Changes as a link may have them: possible ones, on and off, with other dials, of another model, and garbage."""
    drawn = [draw(changes(config)) for _ in range(draw(st.integers(0, 4)))]
    turned = [replace(each, factor=draw(st.sampled_from([0.5, 30.0]))) for each in drawn if hasattr(each, "factor")]
    codes = draw(st.permutations([to_code(each) for each in (*drawn, *turned, *SOME)]))
    garbage = st.text(alphabet="!-~a0", max_size=5)
    return "!".join(draw(st.sampled_from(["", "-"])) + draw(st.just(code) | garbage) for code in codes[:6])


@given(any_configs(), st.data())
def test_a_link_reads_as_in_the_browser(config, data):
    link = data.draw(links(config))
    described = {"config": config.to_dict(), "equations": equations_json(config)}
    told = frontend("changes.js", "readChanges", link, described)
    found, problems = read_changes(link, config)
    assert list(map(to_code, found)) == [code for code in told["now"].split("!") if code and code[0] != "-"]
    assert bool(problems) == bool(told["problems"])


@pytest.mark.parametrize(
    ("text", "sentence", "kept"),
    [
        ("x" * (MOST_CHARACTERS + 1), "have more than", 0),
        ("x" * MOST_CHARACTERS, "there is no change called", 0),
        ("!".join(f"scale~{POINT}~0~{at}~0.0" for at in range(MOST_CHANGES + 2)), "at most 24 changes", MOST_CHANGES),
        (f"scale~{POINT}~0~~1e9", "the factor is from −20 to 20", 0),
        (f"scale~{POINT}~0~~nan!without~mask~", "the factor must be a number", 1),
        ("-!without~mask~", "there is no change called “”", 1),
        ("scale~blocks.9.attn.hook_z~0~~0.0", "blocks.9.attn.hook_z", 0),
    ],
)
def test_what_can_t_be_in_a_link_is_left_out_with_a_reason(text, sentence, kept):
    found, problems = read_changes(text, tiny_config(context_length=99))
    assert sentence in problems[0] and len(found) == kept


@given(st.lists(interventions, max_size=4), st.integers(0, 9))
def test_as_python_is_the_same(several, begin):
    several = in_window(several, begin)
    names, expression = as_python(several)
    assert eval(expression, {name: getattr(transformer, name) for name in names}) == list(several)


@given(any_configs(), st.data())
def test_a_window_of_a_text_is_changed_as_the_writing_was(config, data):
    """Past the context: what is recorded of the last tokens is what the writing saw there."""
    model = tiny_model(config)
    *source, tokens = (each[0].tolist() for each in one_text(config))
    changed = [data.draw(changes(config, lambda name: not name.startswith("encoder.")))]
    text = (tokens * 3)[: config.context_length + 3]
    options = {"source": source[0] if source else None, "max_new_tokens": 1, "interventions": changed}
    (step,) = generate(model, text, **options)
    begin = max(len(text) - config.context_length, 0)
    found = trace_pass(model, text[begin:], *source, interventions=in_window(changed, begin))
    torch.testing.assert_close(found.tensors["logits"][-1], step.logits, atol=1e-4, rtol=1e-4)


def test_left_padding_moves_positions_on():
    model, (tokens,) = tiny_model(), one_text(tiny_config())
    own = Patch("blocks.0.hook_resid_pre", None, 1, **as_texts((tokens,)))
    (moved,) = in_window([own], -2)
    plain = trace_pass(model, tokens[0].tolist()).tensors["blocks.0.hook_resid_pre"]
    padded = trace_pass(model, [0, 0, *tokens[0, :5].tolist()], interventions=[moved])
    torch.testing.assert_close(padded.tensors["blocks.0.hook_resid_pre"][3], plain[1])
    assert str(moved) == str(own) and not moved.looks_ahead


@given(any_configs(), st.data())
def test_all_that_isn_t_set_follows_from_its_equation(config, data):
    """The arithmetic of a changed pass adds up, but where something is said to have set its result."""
    *source, tokens = (each[0].tolist() for each in one_text(config))
    changed = [data.draw(changes(config))]
    changed += [SetAttention(point, 0, 2, 1, 0.5) for point in transformer.hook_points(config) if point == PATTERN]
    for rule in map(Without, ("mask", "scale", "positions", "norm")):
        try:
            rule.check(config)
        except ValueError:  # the model has no such rule
            continue
        changed.append(rule)
    changed = in_window(changed, data.draw(st.integers(0, 1)))
    for each in deviations(trace_pass(tiny_model(config), tokens, *source, interventions=changed)):
        assert each.set_by or each.largest <= 2e-4 * max(each.magnitude, 1), each
    assert {place.words for place in overwritten_values(changed, config)} == {str(each) for each in changed}


def test_only_the_head_and_position_are_set():
    several = in_window([Scale(POINT, 1, 4), SetAttention(PATTERN, 1, 4, 2, 0.5)], 1)
    one, weight = overwritten_values(several, tiny_config())
    assert (one.point, one.head, one.position, one.ablated) == (POINT, 1, 3, True)
    assert (weight.position, weight.weighed) == (3, (1, 0.5, True))
