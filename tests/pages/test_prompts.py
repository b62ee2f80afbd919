"""Tests prompts: any text can be typed, and unknown characters are named."""

import json

import numpy as np
import pytest

from tests import app_driver as app
from tests.app_driver import checked, every_page, given, link_of, named, overview, prompt, said, start, type_prompt
from tests.tiny_models import CONTEXT, EXAMPLES, save_encoder

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("page", "typed", "named_as", "left"),
    [
        ("Generate", "Romé", "“`é`” (character 4)", "Rom"),
        ("Attention", "a😀b😀", "“`😀`” (character 2), “`😀`” (character 4)", "ab"),
        ("Generate", "\tx", "“`⇥`” (character 1)", "x"),
        ("Generate", "<script>alert(1)</script>ß", "“`ß`” (character 26)", "<script>alert(1)</script>"),
        ("Attention", "[x]@", "“`[`” (character 1), “`]`” (character 3), “`@`” (character 4)", "x"),
        ("Generate", "中" * 9, "(character 6), and 3 more", ""),
    ],
)
def test_what_the_model_has_never_seen_is_named_and_can_be_removed_while_the_last_prompt_stays_in_sight(
    page, typed, named_as, left
):
    at = start(page)
    shown, link = given(at)["request"], link_of(at)
    type_prompt(at, typed)
    (error,) = at.error
    assert error.value.startswith("This model has never seen") and named_as in error.value
    assert prompt(at) == typed
    assert any("the last prompt that could be read" in caption.value for caption in at.caption)
    assert given(at)["request"] == shown and link_of(at) == link
    assert page != "Generate" or given(at)["frozen"]
    app.press(at, "Remove what is unknown")
    assert prompt(at) == left and not at.error
    assert ("The prompt is empty." in said(at)) == (not left)
    assert page != "Generate" or not left or not given(at)["frozen"]


def test_an_encoder_s_prompt_and_changes_are_those_of_a_model_that_reads_in_both_directions(tmp_path, monkeypatch):
    save_encoder(tmp_path)
    app.use(monkeypatch, tmp_path)
    at = start("Masks", model="encoder")
    assert prompt(at) == "To [mask]e [mask]r" and "fills in `[mask]`" in named(at.text_area, "Prompt").help
    at.session_state["popover_changes"] = True
    app.choose(checked(at.run()), "What", "rule")
    rules = ["Without ÷ √d_head", "Without positions", "Without the norm's division"]
    assert named(at.selectbox, "Which").options == rules
    long = "The prompt has 17 tokens, and this model reads at most 16. Take 1 away."
    assert long in said(type_prompt(at, "To be, or not to "))
    at = start("Generate", model="encoder")
    for typed, is_frozen in (("To [mask]e", False), ("é", True)):
        shown = json.loads(app.component(type_prompt(at, typed), "headsup_filling").json)
        assert shown["frozen"] == is_frozen and shown["opening"] == {"layer": 0, "head": 0}
        assert shown["prompt"] == list(app.ids("To [mask]e", "encoder"))


@every_page
def test_markup_is_text_an_empty_prompt_is_explained_and_a_long_one_is_read_from_its_end(page):
    typed = "<script>*_$`"
    at = type_prompt(start(page, tokens=20), typed)
    assert prompt(at) == typed and not said(at)
    assert not [element for element in at.markdown if element.proto.allow_html]
    assert not [block for block in at.get("html") if "script" in block.proto.body]
    assert not [chart for chart in at.get("plotly_chart") if "<script" in chart.proto.spec]
    if page == "Generate":
        kinds = app.writing(at).metadata["kinds"]
        assert "".join(kinds[str(token)][0] for token in given(at)["prompt"]) == typed
    if page == "Attention":
        assert "".join(overview(at).metadata["labels"]["text"]) == typed
    type_prompt(at, "")
    assert "The prompt is empty." in said(at) and link_of(at)["prompt"] == ""
    assert "The prompt is empty." in said(start(page, **link_of(at)))
    for example in reversed(EXAMPLES):
        checked(named(at.menu_button, "Examples").click(example).run())
        assert prompt(at) == example and not said(at)
    long = "ROMEO: " * 20
    type_prompt(at, long)
    context = f"This model's context holds {CONTEXT} and moves by a quarter of that at a time"
    assert f"The prompt has 140 tokens. {context}: it reads the last {CONTEXT}." in said(at)
    if page == "Generate":
        app.write(at)
        assert len(app.ids_of(at)) == 20 and app.writing(at).tensors["window_start"][-1] == 160 - CONTEXT
    if page == "Attention":
        about = overview(at).metadata
        assert about["queries"] == about["keys"] == CONTEXT and about["offsets"]["queries"] == 140 - CONTEXT
        own = app.cache_of("shakespeare", long)["rot_q", 0][0, :, 0]
        assert np.allclose(app.parts(at).tensors["blocks.0.attn.hook_rot_q[:, 0]"], own, atol=1e-5)
    if page == "Masks":  # of one token too many, the first quarter of the context is not read
        told = f"it reads the last {CONTEXT + 1 - CONTEXT // 4}."
        assert told in said(type_prompt(at, "a" * (CONTEXT + 1)))
