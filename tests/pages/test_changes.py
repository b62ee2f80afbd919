"""Tests changes to models: in links, in the list, and in windows of long texts."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import transformer
from pages.ui.models.changes import Change, PartlyInvalidError, as_python, as_text, from_text, in_force, with_change
from tests.engine.test_interventions import as_texts, changes, one_text
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


@given(st.dictionaries(interventions, st.booleans()))
def test_a_link_reads_back_as_it_was(several):
    listed = tuple(Change(intervention, on) for intervention, on in several.items())
    assert from_text(as_text(listed)) == listed
    assert in_force(listed) == tuple(intervention for intervention, on in several.items() if on)


@given(st.lists(st.text(max_size=20) | interventions.map(to_code), max_size=8))
def test_what_a_link_has_that_can_t_be_read_is_left_out_with_a_sentence(codes):
    try:
        found = from_text("!".join(codes))
    except PartlyInvalidError as error:
        found = error.kept
        assert "left out" in str(error) and len(str(error)) < 400
    read = {code.removeprefix("-") for each in codes for code in each.split("!")}
    assert {to_code(each.intervention) for each in found} <= read
    assert {each for each in SOME if to_code(each) in read} == {each.intervention for each in found} & set(SOME)


@pytest.mark.parametrize(
    ("text", "sentence", "kept"),
    [
        ("x" * (MOST_CHARACTERS + 1), "have more than", 0),
        ("x" * MOST_CHARACTERS, "there is no change called", 0),
        ("!".join(f"scale~{POINT}~0~{at}~0.0" for at in range(MOST_CHANGES + 2)), "at most 24 changes", MOST_CHANGES),
        (f"scale~{POINT}~0~~1e9", "the factor is from −20 to 20", 0),
        (f"scale~{POINT}~0~~nan!-without~mask~", "the factor is from −20 to 20", 1),
        ("-!", "1 more are left out", 0),
        ("!", "there is no change called “”", 0),
    ],
)
def test_too_much_in_a_link_is_left_out(text, sentence, kept):
    with pytest.raises(PartlyInvalidError, match="left out") as error:
        from_text(text)
    assert sentence in str(error.value) and len(error.value.kept) == kept


@given(interventions)
def test_one_that_differs_by_its_dial_takes_the_other_s_place_and_is_turned_on(intervention):
    at_another_position = Scale(POINT, 0, 9)
    several = with_change(with_change((), intervention, on=False), at_another_position)
    assert in_force(several) == (at_another_position,)
    dials = {"factor": 2.0, "weight": 0.75, "renormalised": True}
    turned = replace(intervention, **{name: dials[name] for name in dials if hasattr(intervention, name)})
    assert in_force(with_change(several, turned)) == (turned, at_another_position)


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
