"""Tests the page Positions: table and formula are the paper's, and the model's positions are shown."""

import base64
import json
import re

import numpy as np
import pytest
import torch

from pages.ui.models import library
from tests.app_driver import (
    checked,
    figure,
    link_of,
    markdown_with,
    named,
    open_drawers,
    open_folds,
    said,
    start,
    tell_page,
    use,
)
from tests.tiny_models import CONTEXT, save_tiny, save_translator
from transformer import Recording, Without, sinusoidal_encoding
from transformer.inference.interventions import hooks_of
from transformer.model.positions import position_angles

pytestmark = pytest.mark.usefixtures("folder")


def visit(**link):
    """A visitor who opens the page, perhaps by a link, and all that is folded there."""
    return open_folds(start("Positions", **link))


def components(at, name):
    return [c.proto for c in at.get("bidi_component") if c.proto.component_name == name]


def drawn(at, name):
    """The numbers of a heatmap, by what it is called."""
    found = [Recording.from_bytes(proto.bytes) for proto in components(at, "headsup_matrix")]
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
def test_attention_alone_predicts_the_same_whatever_the_order(model, positions, ways, tmp_path, monkeypatch):
    save_tiny(tmp_path, model, positions=positions) if positions else save_translator(tmp_path)
    use(monkeypatch, tmp_path)
    at = start("Positions", model=model, prompt="two hundred and five" if model == "translator" else "To be, or not")
    (proto,) = components(at, "headsup_two_orders")
    shown = json.loads(proto.json)
    (first, text), (_, other) = shown["texts"]
    assert first == "Original" and sorted(text) == sorted(other) and text != other
    assert shown["moved"][-1] < 1e-5 and len(shown["ways"]) == ways
    assert markdown_with(at, "Attention alone can't tell the order")
    if positions not in ("none", ""):
        assert text[-1] == other[-1] and shown["moved"][0] > 1e-3


def test_what_follows_both_orders_is_what_the_model_says(tmp_path, monkeypatch):
    checkpoint = save_tiny(tmp_path, "shakespeare", positions="learned")
    use(monkeypatch, tmp_path)
    at = start("Positions", prompt="To be, or not", changes="without~positions~")  # which is compared with anyway
    shown = json.loads(components(at, "headsup_two_orders")[0].json)
    table = open_drawers(at).dataframe[0].value
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
    assert drawn(at, TABLE).shape == (64, 64) and not components(at, "headsup_two_orders")


def test_at_first_nothing_is_drawn_by_plotly_and_a_chosen_number_opens_its_formula():
    at = start("Positions")
    assert not at.get("plotly_chart") and not at.latex
    for cell, link in (({"row": 7, "column": 3}, {"position": "7", "dimension": "3"}), ({"row": 64, "column": 0}, {})):
        tell_page(at, "headsup_matrix", "chosen", cell)
        assert link.items() <= link_of(at).items() and link_of(at)["position"] == "7"
        (formula,) = [element.value for element in at.latex]
        assert r"PE_{(7,\,3)}" in formula


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


@pytest.mark.parametrize(("position", "dimension"), [(0, 0), (0, 1), (5, 4), (63, 63), (17, 31)])
def test_the_formula_arrives_at_the_number_in_the_table(position, dimension):
    at = visit(position=position, dimension=dimension)
    (formula,) = [element.value for element in at.latex]
    values = drawn(at, TABLE)
    final = float(re.search(r"&= (-?[\d.]+)\\end", formula)[1])
    assert final == pytest.approx(values[position, dimension], abs=1e-6)
    angle = float(re.search(r"\\(?:sin|cos)\(([\d.e+-]+)\)", formula)[1])
    wave = np.cos if dimension % 2 else np.sin
    assert wave(angle) == pytest.approx(final, abs=1e-4)


def test_the_wavelengths_and_the_rotation_come_from_the_engine_s_angles():
    at = visit(length=20, width=10, base=100, dimension=4, position=3, shift=2)
    angles = position_angles(20, 10, 100.0).numpy()
    (waves,) = [t["y"] for t in figure(at, "positions_spectrum")["data"] if t["name"] == "wavelength"]
    assert np.allclose(np.frombuffer(base64.b64decode(waves["bdata"])), 2 * np.pi / angles[1])
    assert markdown_with(at, f"One position turns it by {angles[1, 2]:.6g} radians")
    assert "**1 radian** (57.3°)" in markdown_with(visit(dimension=0, shift=1), "turns it by 1 radian. ")
    (formula,) = [element.value for element in at.latex]
    assert f"sin({angles[3, 2]:.6g})" in formula


def test_the_waves_and_how_alike_positions_are_come_from_the_table():
    at = visit(length=12, width=8, waves="1,4")
    table = sinusoidal_encoding(12, 8).numpy()
    lines = [t["y"] for t in figure(at, "positions_waves")["data"] if t["name"].startswith("dimension")]
    waves = [np.frombuffer(base64.b64decode(y["bdata"]), y["dtype"]) for y in lines]
    assert np.allclose(waves, table[:, [1, 4]].T, atol=1e-6)
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
def test_the_model_s_own_positions_are_shown(positions, words, name, tmp_path, monkeypatch):
    checkpoint = save_tiny(tmp_path, "shakespeare", positions=positions)
    use(monkeypatch, tmp_path)
    at = visit()
    assert markdown_with(at, words) and markdown_with(at, f"uses **{positions.replace('none', 'no')}** positions")
    if name is None:
        assert len(components(at, "headsup_matrix")) == 2
        return
    values = drawn(at, name)
    own = {
        "sinusoidal": sinusoidal_encoding(CONTEXT, 16),
        "learned": checkpoint.model.state_dict().get("pos_embed.weight"),
        "rotary": sinusoidal_encoding(CONTEXT, 8),  # d_head
    }[positions]
    assert np.allclose(values, own, atol=1e-6)


def test_rotary_positions_are_those_that_the_model_is_told(tmp_path, monkeypatch):
    save_tiny(tmp_path, "shakespeare", positions="rotary", rotary_base=500.0, rotary_dims=4)
    use(monkeypatch, tmp_path)
    at = visit()
    assert markdown_with(at, "the first 4 of 8 dimensions a head") == markdown_with(at, "p ÷ 500^(2i ÷ 4) radians")
    values = drawn(at, TURNED)
    assert np.allclose(values, sinusoidal_encoding(CONTEXT, 4, 500.0), atol=1e-6)


def test_a_model_without_attention_has_no_use_for_positions(tmp_path, monkeypatch):
    save_tiny(tmp_path, "shakespeare", positions="none", n_layers=0)
    use(monkeypatch, tmp_path)
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
