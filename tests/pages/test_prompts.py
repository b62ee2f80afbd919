"""Tests prompts: any text can be typed, and unknown characters are named."""

import numpy as np
import pytest

from tests.app_driver import (
    INSTRUMENTS,
    cache_of,
    checked,
    every_page,
    given,
    ids_of,
    link_of,
    named,
    overview,
    parts,
    press,
    prompt,
    said,
    start,
    type_prompt,
    write,
    writing,
)
from tests.tiny_models import CONTEXT, EXAMPLES

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize("page", ["Generate", "Attention"])
@pytest.mark.parametrize(
    ("typed", "named_as", "left"),
    [
        ("Romé", "“`é`” (character 4)", "Rom"),
        ("a😀b😀", "“`😀`” (character 2), “`😀`” (character 4)", "ab"),
        ("\tx", "“`⇥`” (character 1)", "x"),
        ("<script>alert(1)</script>ß", "“`ß`” (character 26)", "<script>alert(1)</script>"),
        ("[x]@", "“`[`” (character 1), “`]`” (character 3), “`@`” (character 4)", "x"),
        ("中" * 9, "(character 6), and 3 more", ""),
    ],
)
def test_what_the_model_has_never_seen_is_named_and_can_be_removed(page, typed, named_as, left):
    at = type_prompt(start(page), typed)
    (error,) = at.error
    assert error.value.startswith("This model has never seen") and named_as in error.value
    assert prompt(at) == typed
    drawn = {component.proto.component_name for component in at.get("bidi_component")}
    assert not at.get("plotly_chart") and not drawn & INSTRUMENTS.keys()
    press(at, "Remove what is unknown")
    assert prompt(at) == left
    assert not at.error
    assert ("The prompt is empty." in said(at)) == (not left)


@every_page
def test_markup_in_a_prompt_is_text(page):
    typed = "<script>*_$`"
    at = type_prompt(start(page), typed)
    assert prompt(at) == typed
    assert not said(at)
    for element in at.markdown:
        assert not element.proto.allow_html
    assert not [block for block in at.get("html") if "script" in block.proto.body]
    for chart in at.get("plotly_chart"):
        assert "<script" not in chart.proto.spec
    if page == "Generate":
        kinds = writing(at).metadata["kinds"]
        assert "".join(kinds[str(token)][0] for token in given(at)["prompt"]) == typed
    if page == "Attention":
        assert "".join(overview(at).metadata["labels"]["text"]) == typed


@every_page
def test_an_empty_prompt_is_explained(page):
    at = type_prompt(start(page), "")
    assert "The prompt is empty." in said(at)
    assert link_of(at)["prompt"] == ""
    assert "The prompt is empty." in said(start(page, **link_of(at)))
    checked(named(at.menu_button, "Examples").click("To be, or not").run())
    assert prompt(at) == "To be, or not" and not said(at)


def test_of_a_prompt_one_token_too_long_the_first_quarter_of_the_context_is_not_read():
    quarter = CONTEXT // 4
    told = f"it reads the last {CONTEXT + 1 - quarter}."
    assert told in said(start("Masks", prompt="a" * (CONTEXT + 1)))


@every_page
def test_a_prompt_longer_than_the_context_is_read_from_its_end(page):
    long = "ROMEO: " * 20
    at = type_prompt(start(page, tokens=20), long)
    assert f"The prompt has 140 tokens, and this model's context holds {CONTEXT}: it reads the last {CONTEXT}." in said(
        at
    )
    if page == "Generate":
        write(at)
        assert len(ids_of(at)) == 20 and writing(at).tensors["window_start"][-1] == 160 - CONTEXT
    if page == "Attention":
        about = overview(at).metadata
        assert about["queries"] == about["keys"] == CONTEXT and about["offsets"]["queries"] == 140 - CONTEXT
        own = cache_of("shakespeare", long)["rot_q", 0][0, :, 0]
        assert np.allclose(parts(at).tensors["blocks.0.attn.hook_rot_q[:, 0]"], own, atol=1e-5)


def test_an_example_is_a_click_away():
    at = start()
    for example in reversed(EXAMPLES):
        checked(named(at.menu_button, "Examples").click(example).run())
        assert prompt(at) == example
