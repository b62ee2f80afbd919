"""Tests the page Positions: table and formula are the paper's, and the model's positions are shown."""

from urllib.parse import urlencode

import numpy as np
import pandas as pd
import pytest

from pages.ui.models import library
from tests import app_driver as app
from tests.app_driver import checked, figure, markdown_with, named, numbers, said, start
from tests.frontend_calls import Looked, frontend
from tests.tiny_models import CONTEXT, save_encoder, save_tiny, save_translator
from transformer import Recording, Without, sinusoidal_encoding
from transformer.model.positions import alibi

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder of models of a test's own, in which the app looks for them."""
    app.use(monkeypatch, tmp_path)
    return tmp_path


def visit(**link):
    """A visitor who opens the page, perhaps by a link, and all that is folded there."""
    return app.open_folds(start("Positions", **link))


def matrices(at):
    """The heatmaps' numbers, by what they are called."""
    found = [Recording.from_bytes(proto.bytes) for proto in app.components(at, "headsup_matrix")]
    return {each.metadata["about"]["name"]: each.tensors["values"] for each in found}


def traces(at, name):
    """The lines of a figure, by their names: x and y."""
    return {t.get("name"): (numbers(t["x"]), numbers(t["y"])) for t in figure(at, f"positions_{name}")["data"]}


def captions(at):
    return " ".join(each.value for each in at.caption)


def shown(model="shakespeare", **link):
    """What the frontend shows of a link."""
    state = Looked(urlencode({"model": model, **link}))
    return frontend("../../tests/frontend/shown_positions.mjs", "shownPositions", state, ask=app.ask)


ALIKE, OWN = "Similarity of positions", "The model's own table"
TURNED, COSTS = "Sines and cosines of rotary positions", "What distance costs"


# The order of a prompt's tokens

WAYS = [(), (Without("positions"),), (Without("positions"), Without("mask"))]
"""What the model is changed by in each way of reading, if it has positions."""


@pytest.mark.parametrize(
    ("model", "fields", "ways"),
    [
        ("shakespeare", {"positions": "rotary"}, WAYS),
        ("shakespeare", {"positions": "learned"}, WAYS),
        ("shakespeare", {"positions": "sinusoidal"}, WAYS),
        ("shakespeare", {"positions": "none"}, [WAYS[0], (Without("mask"),)]),
        ("shakespeare", {"positions": "none", "n_layers": 0}, WAYS[:1]),
        ("encoder", {}, WAYS[:2]),
        ("encoder", {"attention_windows": (3, 0)}, [*WAYS[:2], None]),
        ("translator", {}, [None, None]),
    ],
)
def test_of_both_orders_it_is_told_what_the_model_predicts_and_attention_alone_predicts_the_same(
    model, fields, ways, own
):
    save = {"shakespeare": save_tiny, "encoder": save_encoder, "translator": save_translator}[model]
    tokenizer = save(own, model, **fields).tokenizer
    prompt = {"encoder": "To [mask]e, or [mask]ot", "translator": "two hundred and five"}.get(model, "To be, or not")
    found = shown(model, prompt=prompt, **({"changes": "without~positions~"} if ways == WAYS else {}))
    text, other = found["texts"]
    assert sorted(text) == sorted(other) and text != other
    assert found["moved"][-1] < 1e-5 and len(found["ways"]) == len(ways)
    assert len(ways) < 3 or found["moved"][0] > 1e-3
    same = f"**the same {'token' if model == 'encoder' else 'next token'} for both orders**"
    assert (same if len(ways) > 1 else "Without attention it reads the last token alone") in found["verdict"]
    assert ("even if you have removed them" in found["how"]) == (ways == WAYS)
    if model == "encoder":
        assert text.index("[mask]") == other.index("[mask]") == 3 and "the masks stay" in found["how"]
    elif len(ways) == 3:
        assert text[-1] == other[-1], "the last token stays"
    table = pd.DataFrame(found["table"]["rows"], columns=found["table"]["columns"])
    ids = {label: token for token, label in enumerate(tokenizer.labels(range(tokenizer.vocab_size)))}
    for name, labels in zip(("Original", "Shuffled"), found["texts"], strict=True):
        for way, change in zip(found["ways"], ways, strict=True):
            if change is None:  # its windows, or its source, can't be taken away like this
                continue
            at_mask = 3 if model == "encoder" else -1
            odds = app.logits(model, [ids[label] for label in labels], *change)[at_mask].double().softmax(-1).numpy()
            rows = table[(table["order"] == name) & (table["reads"] == way)]
            assert np.allclose(rows["probability"], np.sort(odds)[::-1][:3], atol=1e-6)
            assert rows["token"].tolist() == tokenizer.labels(np.argsort(-odds)[:3].tolist())


def test_a_text_without_another_order_has_none():
    assert "texts" not in shown(prompt="aaab")


def test_no_prompt_and_no_dial_runs_the_page_while_all_is_folded():
    at = start("Positions")
    assert not at.get("plotly_chart") and not app.components(at, "headsup_matrix") and not app.told_of(at)["drawn"]
    assert {*app.told_of(app.open_folds(at))["drawn"]} == {"length", "width", "base", "position", "dimension"}


# The paper's table


@pytest.mark.parametrize(
    ("dials", "waves"),
    [
        ({}, "from 2π to 2π · 10000^(62/64), about 47,117."),
        (
            {"length": 20, "width": 10, "base": 100, "dimension": 4, "position": 3, "shift": 2, "waves": "1,4"},
            "from 2π to 2π · 100^(8/10), about 250.",
        ),
        ({"length": 40, "width": 64, "base": 2}, "from 2π to 2π · 2^(62/64), about 12."),
        ({"length": 2, "width": 2, "base": 2}, "on a logarithmic axis: 2π."),
    ],
)
def test_figures_are_of_the_paper_s_table(dials, waves):
    at = visit(**dials)
    assert waves in captions(at)
    length, width, base = dials.get("length", 64), dials.get("width", 64), dials.get("base", 10000)
    values = sinusoidal_encoding(length, width, base).numpy()
    drawn = frontend("positions/sinusoidal.js", "sinusoidalTable", length, width, base)
    assert np.allclose([*drawn.values()], values.ravel(), atol=1e-6)
    angle = np.arange(length)[:, None] / base ** (2 * np.arange(width // 2)[None] / width)
    lengths = np.linalg.norm(values, axis=1)
    assert np.allclose(matrices(at)[ALIKE], values @ values.T / np.outer(lengths, lengths), atol=1e-5)
    assert np.allclose(traces(at, "distance").popitem()[1][1], matrices(at)[ALIKE][0], atol=1e-5)
    wavelengths, spectrum = 2 * np.pi / angle[1], figure(at, "positions_spectrum")["layout"]
    assert np.allclose(traces(at, "spectrum")["wavelength"][1], wavelengths)
    low, high = 10 ** np.array(spectrum["yaxis"]["range"])
    assert low < wavelengths[0] and max(wavelengths[-1], *(line["y0"] for line in spectrum["shapes"])) < high
    assert {note["text"] for note in spectrum["annotations"]} == {"2π", f"2π · {base}", f"length {length}"}
    if "waves" in dials:
        assert traces(at, "spectrum")["selected pair"][1] == pytest.approx(wavelengths[2])
        lines = {name: values for name, (_, values) in traces(at, "waves").items()}
        names = ["dimension 1 (cosine), wavelength 6.283", f"dimension 4 (sine), wavelength {wavelengths[2]:.4g}"]
        assert list(lines) == names and np.allclose(list(lines.values()), values[:, [1, 4]].T, atol=1e-6)
        turned = traces(at, "rotation")
        before, after = (complex(turned[f"position {at}"][0][1], turned[f"position {at}"][1][1]) for at in (3, 5))
        assert after / before == pytest.approx(np.exp(2j * angle[1, 2]))
        assert markdown_with(at, f"One position turns it by {angle[1, 2]:.6g} radians")
        assert "**1 radian** (57.3°)" in markdown_with(visit(dimension=0, shift=1), "turns it by 1 radian. ")


def test_of_a_small_table_the_last_cell_is_taken_for_one_that_it_lacks():
    at = visit(position=60, dimension=60, shift=60, length=2, width=2, base=2)
    assert named(at.slider, "Step k").max == 1 and markdown_with(at, "From position 1 to 2 it turns by 1")
    checked(at.multiselect[0].set_value([]).run())
    assert "Pick at least one dimension" in said(at)


# The model's own positions


@pytest.mark.parametrize(
    ("fields", "words", "name"),
    [
        ({"positions": "sinusoidal"}, ["It adds the paper's fixed table", "uses **sinusoidal** positions"], OWN),
        ({"positions": "learned"}, ["It adds a learned table", "uses **learned** positions"], OWN),
        ({"positions": "rotary"}, ["It adds no table.", "8 dimensions a head", "p ÷ 10000^(2i ÷ 8) radians"], TURNED),
        (
            {"positions": "rotary", "rotary_base": 500.0, "rotary_dims": 4, "unrotated_layers": (1,)},
            ["the first 4 of 8 dimensions a head", "p ÷ 500^(2i ÷ 4) radians", "Layer 1 rotates nothing: only the"],
            TURNED,
        ),
        (
            {"positions": "rotary", "rotary_factors": (1.0, 2.0, 4.0, 8.0), "rotary_scale": 1.5},
            ["its pairs turn 1 to 8 times slower than that. Rotated queries and keys are multiplied by 1.5."],
            TURNED,
        ),
        ({"positions": "alibi"}, ["Each head takes from a score in proportion to how far away"], COSTS),
        ({"positions": "none"}, ["It has no positions. Only its causal mask tells it the order."], None),
        ({"positions": "none", "n_layers": 0}, ["needs none: without attention it reads one token alone"], None),
    ],
)
def test_the_model_s_own_positions_are_shown(fields, words, name, own):
    config, found = save_tiny(own, "shakespeare", **fields).model.config, shown()
    assert all(each in f"uses **{found['kind']}** positions {found['own']}" for each in words)
    expected = {
        "sinusoidal": lambda: sinusoidal_encoding(CONTEXT, 16),
        "learned": lambda: library.model("shakespeare").model.state_dict()["pos_embed.weight"],
        "rotary": lambda: sinusoidal_encoding(CONTEXT, config.rotated_dims, config.rotary_base, config.rotary_factors),
        "alibi": lambda: alibi(config, 1, CONTEXT)[:, 0].flip(-1),
    }.get(config.positions)
    if expected is None:
        assert found["drawn"] is None
        return
    drawn = found["drawn"]
    assert drawn["name"] == name
    assert np.allclose(np.reshape(drawn["values"], (drawn["rows"], drawn["columns"])), expected(), atol=1e-5)
