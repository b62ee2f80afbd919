"""Tests the page Positions: table and formula are the paper's, and the model's positions are shown."""

import json
import re

import numpy as np
import pytest
import torch

from pages.ui.models import library
from tests import app_driver as app
from tests.app_driver import checked, figure, link_of, markdown_with, named, numbers, said, start, tell_page
from tests.tiny_models import CONTEXT, save_encoder, save_tiny, save_translator
from transformer import Recording, Without, sinusoidal_encoding
from transformer.inference.interventions import hooks_of
from transformer.model.positions import position_angles

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder of models of a test's own, in which the app looks for them."""
    app.use(monkeypatch, tmp_path)
    return tmp_path


def visit(**link):
    """A visitor who opens the page, perhaps by a link, and all that is folded there."""
    return app.open_folds(start("Positions", **link))


def drawn(at, name):
    """The numbers of a heatmap, by what it is called."""
    found = [Recording.from_bytes(proto.bytes) for proto in app.components(at, "headsup_matrix")]
    (values,) = [each.tensors["values"] for each in found if each.metadata["about"]["name"] == name]
    return values


TABLE, ALIKE, OWN = "Sinusoidal table", "Similarity of positions", "The model's own table"
TURNED = "Sines and cosines of rotary positions"


@pytest.mark.parametrize(
    ("model", "positions", "ways"),
    [
        ("shakespeare", "rotary", 3),
        ("shakespeare", "learned", 3),
        ("shakespeare", "sinusoidal", 3),
        ("shakespeare", "none", 2),
        ("translator", "", 2),
    ],
)
def test_attention_alone_predicts_the_same_whatever_the_order(model, positions, ways, own):
    save_tiny(own, model, positions=positions) if positions else save_translator(own)
    at = start("Positions", model=model, prompt="two hundred and five" if model == "translator" else "To be, or not")
    (proto,) = app.components(at, "headsup_word_orders")
    shown = json.loads(proto.json)
    (first, text), (_, other) = shown["texts"]
    assert first == "Original" and sorted(text) == sorted(other) and text != other
    assert shown["moved"][-1] < 1e-5 and len(shown["ways"]) == ways
    assert markdown_with(at, "**the same next token for both orders**")
    if positions not in ("none", ""):
        assert text[-1] == other[-1] and shown["moved"][0] > 1e-3


@pytest.mark.parametrize("windows", [(), (3, 0)])
def test_an_encoder_s_masks_stay_where_they_are_and_without_positions_and_windows_order_is_nothing(windows, own):
    checkpoint = save_encoder(own, attention_windows=windows)
    at = start("Positions", model="encoder", prompt="To [mask]e, or [mask]ot")
    shown = json.loads(app.components(at, "headsup_word_orders")[0].json)
    (_, text), (_, other) = shown["texts"]
    assert sorted(text) == sorted(other) and text != other and text.index("[mask]") == other.index("[mask]") == 3
    assert shown["moved"][-1] < 1e-5 < shown["moved"][0]
    assert shown["ways"] == ["With positions", "Without positions", *["No positions, no windows"] * bool(windows)]
    assert markdown_with(at, "**the same token for both orders**") and any(
        "the masks stay" in each.value for each in at.caption
    )
    tokens = [
        checkpoint.tokenizer.special_id("[mask]")
        if each == "[mask]"
        else checkpoint.tokenizer.encode(each.replace("␣", " "))[0]
        for each in other
    ]
    odds = app.logits("encoder", tokens)[3].double().softmax(-1)
    assert shown["cells"][1][0][0][1] == pytest.approx(float(odds.max()), abs=1e-6)


def test_what_follows_both_orders_is_what_the_model_says(own):
    checkpoint = save_tiny(own, "shakespeare", positions="learned")
    at = start("Positions", prompt="To be, or not", changes="without~positions~")  # which is compared with anyway
    shown = json.loads(app.components(at, "headsup_word_orders")[0].json)
    table = app.open_drawers(at).dataframe[0].value
    model, tokenizer = library.model("shakespeare").model, checkpoint.tokenizer
    changes = [(), (Without("positions"),), (Without("positions"), Without("mask"))]
    for name, labels in shown["texts"]:
        tokens = torch.tensor([tokenizer.encode("".join(labels).replace("␣", " "))])
        for way, change in zip(shown["ways"], changes, strict=True):
            with torch.no_grad(), model.hooked(hooks_of(change, model)):
                odds = model(tokens)[0, -1].double().softmax(-1).numpy()
            rows = table[(table["order"] == name) & (table["reads"] == way)]
            assert np.allclose(rows["probability"], np.sort(odds)[::-1][:3], atol=1e-6)
            assert rows["token"].tolist() == tokenizer.labels(np.argsort(-odds)[:3].tolist())


def test_a_text_without_another_order_says_so_and_an_unreadable_one_leaves_the_table():
    assert "is too short to be shuffled" in said(start("Positions", prompt="aaab"))
    at = start("Positions", prompt="é")
    assert drawn(at, TABLE).shape == (64, 64) and not app.components(at, "headsup_word_orders")


def test_the_formula_arrives_at_the_number_in_the_table():
    at = start("Positions")
    assert not at.get("plotly_chart") and not at.latex  # at first
    values = drawn(at, TABLE)
    for position, dimension in ((0, 0), (0, 1), (5, 4), (63, 63), (17, 31), (7, 3)):
        tell_page(at, "headsup_matrix", "chosen", {"row": position, "column": dimension})
        (formula,) = [element.value for element in at.latex]
        assert rf"PE_{{({position},\,{dimension})}}" in formula
        final = float(re.search(r"&= (-?[\d.]+)\\end", formula)[1])
        assert final == pytest.approx(values[position, dimension], abs=1e-6)
        angle = float(re.search(r"\\(?:sin|cos)\(([\d.e+-]+)\)", formula)[1])
        assert (np.cos if dimension % 2 else np.sin)(angle) == pytest.approx(final, abs=1e-4)
    tell_page(at, "headsup_matrix", "chosen", {"row": 64, "column": 0})  # which isn't there
    assert {"position": "7", "dimension": "3"}.items() <= link_of(at).items()
    (formula,) = [element.value for element in visit(position=5, dimension=4).latex]
    assert r"PE_{(5,\,4)}" in formula, "a link brings the cell"


@pytest.mark.parametrize(
    ("dials", "table", "waves"),
    [
        ({}, "slow ones on the right, near from far", "from 2π to 2π · 10000^(62/64), about 47,117."),
        (
            {"length": 20, "width": 10, "base": 100},
            "the last takes about 250 positions to come round",
            "from 2π to 2π · 100^(8/10), about 250.",
        ),
        (
            {"length": 40, "width": 64, "base": 2},
            "they slow down to the right, and the last takes about 12 positions",
            "from 2π to 2π · 2^(62/64), about 12.",
        ),
        ({"length": 2, "width": 2, "base": 2}, "one fast wave, its sine and its cosine", "on a logarithmic axis: 2π."),
    ],
)
def test_the_table_is_the_paper_s_and_is_told_of_as_it_is(dials, table, waves):
    at = visit(**dials)
    captions = " ".join(element.value for element in at.caption)
    assert table in captions and waves in captions
    length, width, base = dials.get("length", 64), dials.get("width", 64), dials.get("base", 10000)
    values = drawn(at, TABLE)
    assert np.allclose(values, sinusoidal_encoding(length, width, base), atol=1e-6)
    position, pair = np.arange(length)[:, None], np.arange(width // 2)[None]
    angle = position / base ** (2 * pair / width)
    assert np.allclose(values[:, ::2], np.sin(angle), atol=1e-4)
    assert np.allclose(values[:, 1::2], np.cos(angle), atol=1e-4)


def test_the_wavelengths_and_the_rotation_come_from_the_engine_s_angles():
    at = visit(length=20, width=10, base=100, dimension=4, position=3, shift=2)
    angles = position_angles(20, 10, 100.0).numpy()
    (waves,) = [t["y"] for t in figure(at, "positions_spectrum")["data"] if t["name"] == "wavelength"]
    assert np.allclose(numbers(waves), 2 * np.pi / angles[1])
    assert markdown_with(at, f"One position turns it by {angles[1, 2]:.6g} radians")
    assert "**1 radian** (57.3°)" in markdown_with(visit(dimension=0, shift=1), "turns it by 1 radian. ")
    (formula,) = [element.value for element in at.latex]
    assert f"sin({angles[3, 2]:.6g})" in formula


def test_the_waves_and_how_alike_positions_are_come_from_the_table():
    at = visit(length=12, width=8, waves="1,4")
    table = sinusoidal_encoding(12, 8).numpy()
    lines = [t["y"] for t in figure(at, "positions_waves")["data"] if t["name"].startswith("dimension")]
    assert np.allclose(list(map(numbers, lines)), table[:, [1, 4]].T, atol=1e-6)
    alike = drawn(at, ALIKE)
    lengths = np.linalg.norm(table, axis=1)
    assert np.allclose(alike, table @ table.T / np.outer(lengths, lengths), atol=1e-5)


@pytest.mark.parametrize(
    ("positions", "words", "name"),
    [
        ("sinusoidal", "It adds the paper's fixed table", OWN),
        ("learned", "It adds a learned table", OWN),
        ("rotary", "It adds no table.", TURNED),
        ("none", "It has no positions.", None),
    ],
)
def test_the_model_s_own_positions_are_shown(positions, words, name, own):
    checkpoint = save_tiny(own, "shakespeare", positions=positions)
    at = visit()
    assert markdown_with(at, words) and markdown_with(at, f"uses **{positions.replace('none', 'no')}** positions")
    if name is None:
        assert len(app.components(at, "headsup_matrix")) == 2
        return
    values = drawn(at, name)
    own = {
        "sinusoidal": sinusoidal_encoding(CONTEXT, 16),
        "learned": checkpoint.model.state_dict().get("pos_embed.weight"),
        "rotary": sinusoidal_encoding(CONTEXT, 8),  # d_head
    }[positions]
    assert np.allclose(values, own, atol=1e-6)


def test_rotary_positions_are_those_that_the_model_is_told(own):
    save_tiny(own, "shakespeare", positions="rotary", rotary_base=500.0, rotary_dims=4)
    at = visit()
    assert markdown_with(at, "the first 4 of 8 dimensions a head") == markdown_with(at, "p ÷ 500^(2i ÷ 4) radians")
    values = drawn(at, TURNED)
    assert np.allclose(values, sinusoidal_encoding(CONTEXT, 4, 500.0), atol=1e-6)


def test_a_model_without_attention_has_no_use_for_positions(own):
    save_tiny(own, "shakespeare", positions="none", n_layers=0)
    assert markdown_with(visit(), "needs none: without attention it reads one token alone")


def test_the_dials_of_positions_can_go_to_their_ends():
    at = visit(position=60, dimension=60, shift=60)
    for label, value in (("Length: positions", 2), ("Width: d_model", 2)):
        checked(named(at.slider, label).set_value(value).run())
    checked(named(at.number_input, "Base").set_value(2.0).run())
    assert {"length": "2", "width": "2", "base": "2", "position": "1", "dimension": "1", "shift": "1"}.items() <= (
        link_of(at).items()
    )
    checked(at.multiselect[0].set_value([]).run())
    assert "Pick at least one dimension" in said(at)
    for label, value in (("Length: positions", 512), ("Width: d_model", 512)):
        checked(named(at.slider, label).set_value(value).run())
    checked(named(at.number_input, "Base").set_value(1e6).run())
