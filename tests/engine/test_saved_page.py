"""Tests instruments saved as one HTML page, and the escaping of texts."""

import base64
import hashlib
import io
import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.helpers import some_inputs, some_text, tiny_encoder_decoder, tiny_model
from transformer import Recording, Scale, record, record_pass, show
from transformer.frontend import saved_recording
from transformer.frontend.html_scripts import as_json, json_in_html, script_in_html
from transformer.frontend.startup import SCRIPT
from transformer.frontend.static_image import still
from transformer.inference.pass_recording import pass_of, whole_view

MODELS = [tiny_model(), tiny_encoder_decoder(), tiny_model(n_layers=0, norm="none")]


def whole(model, **chosen):
    """A whole pass over a few tokens, shown."""
    return show(record_pass(model, *some_text(model.config)), **chosen)


def recorded(model, **more):
    return record(model, tuple(tokens[:1] for tokens in some_inputs(model.config)), None, **more)


def embedded(shown):
    """The tensors that lie in a page as `whole`."""
    text = shown.html.partition('id="whole">')[2].partition("</script>")[0]
    return Recording.from_bytes(base64.b64decode(text)).tensors


MARKUP = ["</script><b>", "é"] * 4


@pytest.mark.parametrize(
    "recording",
    [
        recorded(tiny_model(), labels={"text": MARKUP}),
        record_pass(tiny_model(), [1, 2], labels=lambda tokens: MARKUP[: len(tokens)]),
    ],
)
def test_labels_are_never_read_as_markup_and_nothing_is_loaded_from_elsewhere(recording, tmp_path):
    shown = show(recording, title="<b>&")
    page = shown.html
    assert "</script><b>" not in page and "<title>&lt;b&gt;&amp;</title>" in page
    assert page.count("<script") == page.count("</script>") == 4
    assert "default-src 'none'" in page and "import(" not in page
    (script,) = re.findall(r'(?s)<script type="module">(.*?)</script>', page)
    digests = (base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in (SCRIPT, script))
    hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
    assert f"script-src {hashes} 'wasm-unsafe-eval';" in page, "no other script runs, nor a handler"
    assert "http://" not in page.replace("http://www.w3.org/", "")
    frame = shown._repr_html_()
    assert frame.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert 'sandbox="allow-scripts allow-downloads"' in frame.partition("</iframe>")[0]
    shown.save(tmp_path / "view.html")
    assert (tmp_path / "view.html").read_text(encoding="utf-8") == page


HOSTILE = [
    "</script>",
    "</SCRIPT\t",
    "<!--<script>",
    "-->",
    "]]>",
    '"',
    "&lt;",
    "\\u003c",
    "\u2028",
    "\u2029",
    "\0",
    "\r",
    "é",
]
hostile = st.lists(st.sampled_from(HOSTILE), max_size=6).map("".join)


@given(
    st.recursive(
        hostile | st.text() | st.integers() | st.none(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(hostile, inner, max_size=3),
    )
)
def test_json_in_a_page_means_the_same_and_has_nothing_that_html_or_a_script_reads_otherwise(data):
    written = as_json(data)
    assert json.loads(written) == json.loads(json_in_html(json.dumps(data))) == data
    assert not re.search("[<\u2028\u2029]", written)
    assert script_in_html(written) == written


@pytest.mark.parametrize("markup", ["</script>", "</SCRIPT ", "<!--", "<ScRiPt>"])
def test_a_script_that_would_end_its_element_stands_in_no_page(markup):
    with pytest.raises(ValueError, match="can't stand in a page"):
        script_in_html(f"const a = '{markup}';")


@pytest.mark.parametrize("model", MODELS)
def test_a_whole_pass_is_shown_inside_and_its_attention_on_demand(model):
    """Where scripts don't run there is a picture and a sentence."""
    shown = whole(model)
    assert "showInside();" in shown.html
    around = re.sub(r"(?s)<iframe.*?</iframe>", "", shown._repr_html_())
    for page in (shown.html.partition("<body>")[2], around):
        seen = re.sub(r"(?s)<(script|style)\b.*?</\1>", "", page)
        assert "scripts are needed to explore it" in seen and seen.count("data:image/png;base64,") == 1
    assert len(shown.picture) <= 30_000
    assert re.fullmatch(r"<SavedPage: a whole pass over \d+ tokens, \d+ tensors, \d+ kB of HTML>", repr(shown))
    if model.config.n_layers:
        has_two = model.config.architecture != "decoder-only"
        for kind in ("encoder", "decoder", "cross") if has_two else ("self",):
            assert "showAttention();" in whole(model, kind=kind, layer=0).html
            assert "showAttention();" in show(recorded(model), kind).html


def test_what_can_t_be_shown_is_said():
    recording = recorded(tiny_model())
    with pytest.raises(ValueError, match="no attention cross; it has self"):
        show(recording, "cross")
    with pytest.raises(ValueError, match="it has none"):
        show(recorded(tiny_model(n_layers=0)))
    for name in ("hook_embed", "blocks.1.attn.hook_mask", "blocks.0.attn.hook_q"):
        less = {other: tensor for other, tensor in recording.tensors.items() if other != name}
        with pytest.raises(ValueError, match=f"lacks {name}"):
            show(Recording(less, recording.metadata))


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"open": "blocks.9"}, r"no blocks\.9; it has hook_embed"),
        ({"open": "logits", "cell": (0, 9999)}, "no cell"),
        ({"open": "blocks.0", "cell": (0,)}, "no cell"),
        ({"open": "logits", "cell": (-1, 0)}, "no cell"),
        ({"token": 500}, r"no token 500; of those, this pass has from 0 to 7"),
        ({"head": -1}, "no head -1"),
        ({"source": 0}, "no source 0; of those, this pass has none"),
        ({"kind": "self", "layer": 99}, "no layer 99; of those, this pass has from 0 to 1"),
        ({"kind": "self", "query": 8}, "no query 8"),
        ({"kind": "self", "layerr": 1}, "'layerr' is nothing that can be looked at first; that is layer, head"),
    ],
)
def test_what_there_is_nothing_of_can_t_be_looked_at_first(chosen, words):
    with pytest.raises(ValueError, match=words):
        whole(tiny_model(), **chosen)


def test_of_what_is_too_large_for_a_page_a_part_is_left_out_and_then_it_is_said(monkeypatch):
    model = tiny_model()
    all_of_it = whole(model).html
    monkeypatch.setattr(saved_recording, "MOST_BYTES", saved_recording.page_fit(model.config, 8).size - 1)
    less, fit = whole(model).html, saved_recording.page_fit(model.config, 8)
    assert fit.kinds == ("weights",) and len(less) < len(all_of_it)
    monkeypatch.setattr(saved_recording, "MOST_BYTES", 100)
    assert saved_recording.page_fit(model.config, 8) is None
    with pytest.raises(ValueError, match="take a shorter text"):
        whole(model)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("length", [1, 6])
def test_how_large_a_page_gets_is_known_before_it_is_made(model, length):
    source = [] if model.config.architecture == "decoder-only" else [1, 2, 3]
    found = record_pass(model, range(length), source)
    fit = saved_recording.page_fit(model.config, length, len(source))
    outlined, _ = whole_view(pass_of(found), found.metadata["vocabulary"])
    assert saved_recording.page_size(model.config, outlined, fit) == pytest.approx(
        len(show(found).html.encode()), rel=0.02
    )


class TestAttention:
    def test_a_page_has_what_the_picture_is_derived_from_and_something_to_compare_it_with(self):
        model = tiny_model(positions="rotary")
        long, short = (embedded(show(record_pass(model, range(length)), "self")) for length in (8, 1))
        starts = {f"blocks.{layer}.attn.hook_{point}" for layer in (0, 1) for point in ("rot_q", "rot_k", "v")}
        assert long.keys() == starts | {"blocks.0.attn.hook_z", "blocks.1.attn.hook_z"}  # d_head is below 8
        assert short.keys() == starts | {"blocks.0.attn.hook_pattern", "blocks.1.attn.hook_pattern"}
        changed = record_pass(model, range(8), interventions=[Scale("blocks.1.attn.hook_z", head=0)])
        assert embedded(show(changed, "self")).keys() == long.keys() | {"blocks.1.attn.hook_pattern"}

    def test_of_chosen_points_all_are_there_while_there_is_room(self, monkeypatch):
        model = tiny_model()
        chosen = recorded(model, parameters=["blocks.0.attn.out.weight"])
        all_of_it = embedded(show(chosen))
        assert {"blocks.0.attn.out.weight", "blocks.1.attn.hook_raw_scores", "blocks.0.attn.hook_z"} <= {*all_of_it}
        assert not [name for name in all_of_it if "mlp" in name or "mask" in name]
        monkeypatch.setattr(saved_recording, "MOST_BYTES", sum(array.nbytes for array in all_of_it.values()) - 1)
        least = embedded(show(chosen))
        assert least.keys() < all_of_it.keys()
        size = sum(array.nbytes for array in least.values())
        monkeypatch.setattr(saved_recording, "MOST_BYTES", size)
        assert saved_recording.attention_fits(model.config, "self", 8) and embedded(show(chosen)).keys() == least.keys()
        monkeypatch.setattr(saved_recording, "MOST_BYTES", size - 1)
        assert not saved_recording.attention_fits(model.config, "self", 8)
        for show_it in (lambda: show(chosen), lambda: whole(model, kind="self")):
            with pytest.raises(ValueError, match="take a shorter text"):
                show_it()


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
        assert (np.diff(drawn[3, np.argsort(weights[3]), 1]) >= 0).all()  # a larger weight is a lighter green


@pytest.mark.parametrize(("layers", "heads", "length"), [(12, 12, 64), (1, 1, 64), (48, 32, 64), (9, 9, 2)])
def test_a_still_picture_stays_small(layers, heads, length):
    noise = np.random.default_rng(0).integers(0, 255, (heads, length, length), dtype=np.uint8)
    png, width, height = still([noise] * layers)
    assert len(png) * 4 / 3 < 29_000
    assert Image.open(io.BytesIO(png)).size == (width, height)
