"""Tests instruments saved as one HTML page, and the escaping of texts."""

import base64
import io
import re

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers import some_inputs, tiny_encoder_decoder, tiny_model
from transformer import Recording, Scale, record, record_pass, show
from transformer.frontend import saved_page
from transformer.frontend.static_image import still
from transformer.inference.pass_recording import pass_of, whole_view


def whole(model, **chosen):
    """A whole pass over a few tokens, shown."""
    *source, tokens = (row[0].tolist() for row in some_inputs(model.config))
    return show(record_pass(model, tokens, *source), **chosen)


def recorded(model, **labels):
    inputs = tuple(tokens[:1] for tokens in some_inputs(model.config))
    return record(model, inputs, None, labels=labels)


@pytest.mark.parametrize("make", [record_pass, recorded])
def test_labels_are_never_read_as_markup_and_nothing_is_loaded_from_elsewhere(make, tmp_path):
    markup = ["</script><b>", "é"] * 4
    if make is recorded:
        found = recorded(tiny_model(), text=markup)
    else:
        found = record_pass(tiny_model(), [1, 2], labels=lambda tokens: markup[: len(tokens)])
    shown = show(found, title="<b>&")
    page = shown.html
    assert "</script><b>" not in page and "<title>&lt;b&gt;&amp;</title>" in page
    assert page.count("<script") == page.count("</script>") == 3
    assert "default-src 'none'" in page and "import(" not in page
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert shown._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    shown.save(tmp_path / "view.html")
    assert (tmp_path / "view.html").read_text(encoding="utf-8") == page


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_every_kind_of_attention_can_be_shown(kind):
    assert "<main>" in show(recorded(tiny_encoder_decoder()), kind).html


def test_what_can_t_be_shown_is_said():
    whole = recorded(tiny_model())
    with pytest.raises(ValueError, match="no attention cross; it has self"):
        show(whole, "cross")
    with pytest.raises(ValueError, match="it has none"):
        show(recorded(tiny_model(n_layers=0)))
    for name in ("hook_embed", "blocks.1.attn.hook_mask", "blocks.0.attn.hook_q"):
        less = {other: tensor for other, tensor in whole.tensors.items() if other != name}
        with pytest.raises(ValueError, match=f"lacks {name}"):
            show(Recording(less, whole.metadata))


# A whole pass


@pytest.mark.parametrize("model", [tiny_model(), tiny_encoder_decoder(), tiny_model(n_layers=0, norm="none")])
def test_a_whole_pass_is_shown_inside_and_its_attention_on_demand(model):
    assert "showInside();" in whole(model).html
    if model.config.n_layers:
        kind = "self" if model.config.architecture == "decoder-only" else "cross"
        assert "showAttention();" in whole(model, kind=kind, layer=0).html


def test_what_there_is_nothing_of_can_t_be_looked_at_first():
    for chosen, words in (
        ({"open": "blocks.9"}, r"no blocks\.9; it has hook_embed"),
        ({"open": "logits", "cell": (0, 9999)}, "no cell"),
        ({"open": "blocks.0", "cell": (0,)}, "no cell"),
        ({"cell": (-1, 0), "open": "logits"}, "no cell"),
        ({"token": 500}, r"no token 500; of those, this pass has from 0 to 7"),
        ({"head": -1}, "no head -1"),
        ({"source": 0}, "no source 0; of those, this pass has none"),
        ({"kind": "self", "layer": 99}, "no layer 99; of those, this pass has from 0 to 1"),
        ({"kind": "self", "query": 8}, "no query 8"),
        ({"kind": "self", "layerr": 1}, "'layerr' is nothing that can be looked at first; that is layer, head"),
    ):
        with pytest.raises(ValueError, match=words):
            whole(tiny_model(), **chosen)
    with pytest.raises(TypeError, match="zoom"):
        whole(tiny_model(), zoom=2)


def test_of_what_is_too_large_for_a_page_a_part_is_left_out_and_then_it_is_said(monkeypatch):
    model = tiny_model()
    all_of_it = whole(model).html
    monkeypatch.setattr(saved_page, "MOST_BYTES", saved_page.page_fit(model.config, 8).size - 1)
    less, fit = whole(model).html, saved_page.page_fit(model.config, 8)
    assert fit.kinds == ("weights",) and len(less) < len(all_of_it)
    monkeypatch.setattr(saved_page, "MOST_BYTES", 100)
    assert saved_page.page_fit(model.config, 8) is None
    with pytest.raises(ValueError, match="take a shorter text"):
        whole(model)


def test_a_recording_takes_parameters_along():
    model = tiny_model()
    found = record(model, some_inputs(model.config)[0][:1], "hook_embed", parameters=["blocks.0.attn.out.weight"])
    assert list(found.tensors) == ["hook_embed", "blocks.0.attn.out.weight"]
    np.testing.assert_array_equal(found.tensors["blocks.0.attn.out.weight"], model.blocks[0].attn.out.weight.detach())
    with pytest.raises(ValueError, match="no parameter"):
        record(model, torch.zeros(1, 2, dtype=torch.long), None, parameters=["blocks.9.attn.out.weight"])


# How much of a recording a page has


def own_points(model, tokens):
    """A recording of no more than attention's own points of a decoder-only model."""
    points = ("hook_q", "hook_k", "hook_rot_q", "hook_rot_k", "hook_v", "hook_pattern", "hook_mask")
    return record(model, torch.tensor([tokens]), lambda name: name == "hook_embed" or name.endswith(points))


@pytest.mark.parametrize("changes", [{}, {"positions": "rotary", "d_model": 64}, {"attention": "uniform"}])
@pytest.mark.parametrize("length", [3, 40])
def test_attention_of_a_whole_pass_is_hardly_larger_than_from_its_own_points(changes, length):
    model = tiny_model(context_length=40, **changes)
    tokens = [at % model.config.vocab_size for at in range(length)]
    attention, least, everything = (
        len(show(recording, *kind).html)
        for recording, kind in (
            (record_pass(model, tokens), ["self"]),
            (own_points(model, tokens), ["self"]),
            (record_pass(model, tokens), []),
        )
    )
    assert attention <= 1.2 * least and attention < everything


def embedded(shown):
    """The tensors that lie in a page as `whole`."""
    text = shown.html.partition('id="whole">')[2].partition("</script>")[0]
    return Recording.from_bytes(base64.b64decode(text)).tensors


def test_a_page_has_what_the_picture_is_derived_from_and_something_to_compare_it_with():
    model = tiny_model(positions="rotary")
    long, short = (embedded(show(record_pass(model, range(length)), "self")) for length in (8, 1))
    starts = {f"blocks.{layer}.attn.hook_{point}" for layer in (0, 1) for point in ("rot_q", "rot_k", "v")}
    assert long.keys() == starts | {"blocks.0.attn.hook_z", "blocks.1.attn.hook_z"}  # d_head is below 8
    assert short.keys() == starts | {"blocks.0.attn.hook_pattern", "blocks.1.attn.hook_pattern"}
    changed = record_pass(model, range(8), interventions=[Scale("blocks.1.attn.hook_z", head=0)])
    assert embedded(show(changed, "self")).keys() == long.keys() | {"blocks.1.attn.hook_pattern"}


def test_of_chosen_points_all_are_there_while_there_is_room(monkeypatch):
    model = tiny_model()
    chosen = record(model, some_inputs(model.config)[0][:1], None, parameters=["blocks.0.attn.out.weight"])
    all_of_it = embedded(show(chosen))
    assert {"blocks.0.attn.out.weight", "blocks.1.attn.hook_raw_scores", "blocks.0.attn.hook_z"} <= all_of_it.keys()
    assert not [name for name in all_of_it if "mlp" in name or "mask" in name]
    monkeypatch.setattr(saved_page, "MOST_BYTES", sum(array.nbytes for array in all_of_it.values()) - 1)
    least = embedded(show(chosen))
    assert least.keys() < all_of_it.keys()
    size = sum(array.nbytes for array in least.values())
    monkeypatch.setattr(saved_page, "MOST_BYTES", size)
    assert saved_page.attention_fits(model.config, "self", 8) and embedded(show(chosen)).keys() == least.keys()
    monkeypatch.setattr(saved_page, "MOST_BYTES", size - 1)
    assert not saved_page.attention_fits(model.config, "self", 8)
    with pytest.raises(ValueError, match="take a shorter text"):
        show(chosen)
    with pytest.raises(ValueError, match="take a shorter text"):
        whole(model, kind="self")


@pytest.mark.parametrize("model", [tiny_model(), tiny_encoder_decoder(), tiny_model(n_layers=0, norm="none")])
@pytest.mark.parametrize("length", [1, 6])
def test_how_large_a_page_gets_is_known_before_it_is_made(model, length):
    source = [] if model.config.architecture == "decoder-only" else [1, 2, 3]
    found = record_pass(model, range(length), source)
    fit = saved_page.page_fit(model.config, length, len(source))
    outlined, _ = whole_view(pass_of(found), found.metadata["vocabulary"])
    assert saved_page.page_size(model.config, outlined, fit) == pytest.approx(len(show(found).html.encode()), rel=0.02)


# Where scripts don't run


def without_scripts(page):
    """What is left of a page where neither scripts nor styles are read."""
    return re.sub(r"(?s)<(script|style)\b.*?</\1>", "", page.partition("<body>")[2] or page)


@pytest.mark.parametrize("model", [tiny_model(), tiny_encoder_decoder(), tiny_model(n_layers=0, norm="none")])
def test_where_scripts_are_blocked_there_is_a_picture_and_a_sentence(model):
    shown = whole(model)
    around = re.sub(r"(?s)<iframe.*?</iframe>", "", shown._repr_html_())
    for seen in map(without_scripts, (shown.html, around)):
        assert "scripts are needed to explore it" in seen and seen.count("data:image/png;base64,") == 1
    assert len(shown.picture) <= 30_000
    assert re.fullmatch(r"<SavedPage: a whole pass over \d+ tokens, \d+ tensors, \d+ kB of HTML>", repr(shown))


def test_the_still_picture_is_drawn_from_the_weights():
    model, tokens = tiny_model(), [3, 1, 2, 4]
    found = record_pass(model, tokens)
    png = base64.b64decode(re.search(r"base64,([\w+/=]+)", show(found, "self").picture)[1])
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGBA")).astype(int)
    assert pixels.shape == (4 * 2 + 1, 4 * model.config.n_heads + model.config.n_heads - 1, 4)
    for layer, head in np.ndindex(2, model.config.n_heads):
        drawn = pixels[5 * layer :, 5 * head :][:4, :4]
        weights = found.tensors[f"blocks.{layer}.attn.hook_pattern"][head]
        assert np.array_equal(drawn[..., 3] == 255, np.tri(4, dtype=bool))  # what the mask hides is transparent
        order = np.argsort(weights[3])
        assert (np.diff(drawn[3, order, 1]) >= 0).all()  # a larger weight is a lighter green


@pytest.mark.parametrize(("layers", "heads", "length"), [(12, 12, 64), (6, 6, 64), (1, 1, 64), (48, 32, 64), (9, 9, 2)])
def test_a_still_picture_stays_small(layers, heads, length):
    noise = np.random.default_rng(0).integers(0, 255, (heads, length, length), dtype=np.uint8)
    png, width, height = still([noise] * layers)
    assert len(png) * 4 / 3 < 29_000
    assert Image.open(io.BytesIO(png)).size == (width, height)
