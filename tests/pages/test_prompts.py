"""Tests prompts: any text can be typed, and a long one is read from its end."""

import numpy as np
import pytest

from tests import app_driver as app
from tests.app_driver import every_page, given, link_of, overview, prompt, said, start, type_prompt
from tests.tiny_models import CONTEXT, save_encoder

pytestmark = pytest.mark.usefixtures("folder")


def test_an_encoder_fills_in_a_prompt_that_isn_t_too_long(tmp_path, monkeypatch):
    save_encoder(tmp_path)
    app.use(monkeypatch, tmp_path)
    at = start(model="encoder")
    assert prompt(at) == "To [mask]e [mask]r"
    shown = given(type_prompt(at, "To [mask]e"))
    assert shown["opening"] == {"layer": 0, "head": 0} and shown["prompt"] == list(app.ids("To [mask]e", "encoder"))
    long = "The prompt has 17 tokens, and this model reads at most 16. Take 1 away."
    assert long in said(type_prompt(at, "To be, or not to "))


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
