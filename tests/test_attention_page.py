"""The page Attention: its figures and its arithmetic are the model's own numbers."""

import re

import numpy as np
import pytest
from safetensors.numpy import load

from tests.app_driver import (
    cache_of,
    checked,
    choose,
    component,
    dial,
    drawn,
    figure,
    go,
    link_of,
    lower,
    markdown_with,
    named,
    start,
    text_of,
    use,
    write,
)
from tests.helpers import metadata_of
from tests.tiny_models import save_tiny

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize("model", ["shakespeare", "martin-fierro"])
@pytest.mark.parametrize(("layer", "head"), [(0, 0), (1, 1), (0, 1)])
def test_the_heatmaps_are_the_model_s_own_numbers(model, layer, head):
    typed = "To be, or not"
    at = start("Attention", model=model, prompt=typed, layer=layer, head=head)
    cache = cache_of(model, typed)

    def own(point):
        return cache[f"blocks.{layer}.attn.{point}"][0, head].numpy()

    hidden = ~np.tri(len(typed), dtype=bool)
    for key, name, point in (("clicked_weights", "weight", "pattern"), ("clicked_scores", "score", "attn_scores")):
        shown = drawn(at, key, name)
        assert np.allclose(lower(shown), lower(own(f"hook_{point}")), atol=1e-6)
        assert np.isnan(shown[hidden]).all()
    assert np.allclose(drawn(at, "plain_before", "score"), own("hook_scaled_scores"), atol=1e-6)
    visible = drawn(at, "plain_mask", "visible")
    assert (np.isfinite(visible) == ~hidden).all()
    assert (np.isfinite(drawn(at, "plain_mask", "hidden")) == hidden).all()
    (stage,) = [group for group in at.get("button_group") if group.label == "Scores"]
    checked(stage.set_value("raw").run())
    assert np.allclose(drawn(at, "plain_before", "score"), own("hook_raw_scores"), atol=1e-5)


@pytest.mark.parametrize("cell", [(0, 0), (5, 2), (12, 12), (12, 0)])
def test_by_hand_arrives_at_the_number_in_the_heatmap(cell):
    at = start("Attention", prompt="To be, or not", layer=1, head=1, query=cell[0], key=cell[1])
    words = markdown_with(at, "The query of")
    bold = [float(number.replace("−", "-")) for number in re.findall(r"\*\*(-?[\d.]+)\*\*", words)]
    raw, scaled, exponential, weight = bold
    assert weight == pytest.approx(drawn(at, "clicked_weights", "weight")[cell], abs=6e-6)
    assert scaled == pytest.approx(drawn(at, "clicked_scores", "score")[cell], abs=6e-6)
    assert raw / np.sqrt(8) == pytest.approx(scaled, abs=2e-5)
    row_sum = float(re.search(r"÷ ([\d.]+) = \*\*[\d.]+\*\*, the weight", words)[1])
    assert exponential / row_sum == pytest.approx(weight, abs=2e-5)
    products = at.dataframe[0].value
    assert products["query × key"].sum() == pytest.approx(raw, abs=1e-4)
    assert np.allclose(products["query"] * products["key"], products["query × key"])


def test_by_hand_explains_a_hidden_cell():
    at = start("Attention", prompt="To be, or not", query=3, key=9)
    words = markdown_with(at, "The query of")
    assert "−∞" in words and words.endswith("the weight is **0**")


def test_the_cell_is_the_last_query_and_its_heaviest_key_until_one_is_chosen():
    at = start("Attention", prompt="To be, or not")
    pattern = drawn(at, "clicked_weights", "weight")
    assert dial(at, "Query (row)").value == 12
    assert dial(at, "Key (column)").value == int(np.nanargmax(pattern[12]))
    choose(at, "Query (row)", 7)
    assert dial(at, "Key (column)").value == int(np.nanargmax(pattern[7]))
    choose(at, "Key (column)", 2)
    assert markdown_with(at, "The query of").startswith("The query of `o` at place 7 meets the key of `␣` at place 2:")
    assert {"query": "7", "key": "2"}.items() <= link_of(at).items()


def test_the_text_that_was_written_can_be_looked_at():
    at = go(write(start(tokens=5, prompt="To be")), "Attention")
    assert drawn(at, "clicked_weights", "weight").shape == (5, 5)
    checked(named(at.get("button_group"), "Text").set_value("all").run())
    shown = drawn(at, "clicked_weights", "weight")
    pattern = cache_of("shakespeare", "To be" + text_of(at))["pattern", 0][0, 0]
    assert np.allclose(lower(shown), lower(pattern), atol=1e-6)


def test_a_long_text_is_drawn_from_its_end_and_more_can_be_asked_for(tmp_path, monkeypatch):
    save_tiny(tmp_path, "shakespeare", context_length=80)
    use(monkeypatch, tmp_path)
    typed = "".join(chr(97 + i % 26) for i in range(70))
    at = start("Attention", prompt=typed)
    pattern = cache_of("shakespeare", typed)["pattern", 0][0, 0].numpy()
    for count in (48, 70, 8):
        checked(named(at.slider, "Tokens shown, from the end").set_value(count).run())
        shown = drawn(at, "clicked_weights", "weight")
        assert np.allclose(lower(shown), lower(pattern[-count:, -count:]), atol=1e-6)
        assert list(figure(at, "clicked_weights")["layout"]["xaxis"]["range"]) == [69.5 - count, 69.5]
        assert markdown_with(at, "The query of").startswith("The query of `r` at place 69 ")


def test_the_grid_has_all_heads_of_the_layer_or_of_the_model():
    at = start("Attention", model="martin-fierro", layer=2)

    def grid():
        content = component(at, "headsup_head_grid").bytes
        return metadata_of(content)["grid"] | {"heads": load(content)["overview"].shape[1]}

    assert grid() == {"layers": [2], "heads": 4, "selected": [2, 0]}
    checked(named(at.toggle, "All layers").set_value(True).run())
    assert grid()["layers"] == [0, 1, 2]


def test_the_matrices_are_offered_as_a_table():
    at = start("Attention", prompt="To be")
    table = at.dataframe[1].value
    assert len(table) == 25
    assert list(table.columns[:4]) == ["query position", "query", "key position", "key"]
    rows = table.groupby("query position")["weight"].sum()
    assert np.allclose(rows, 1, atol=1e-6)


def test_the_page_says_which_tokens_have_no_label(tmp_path, monkeypatch):
    save_tiny(tmp_path, "shakespeare", context_length=64)
    use(monkeypatch, tmp_path)
    note = "Every third token is labelled; pointing at a cell names both of its tokens."
    assert len([c for c in start("Attention", prompt="To be, or not to be: " * 3).caption if note in c.value]) == 4
    assert not [c for c in start("Attention", prompt="To be").caption if "labelled" in c.value]
