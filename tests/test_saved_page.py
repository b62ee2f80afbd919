"""An instrument as one HTML page: what it needs is asked for, and nothing of a text becomes markup."""

import numpy as np
import pytest
import torch

from tests.helpers import some_inputs, tiny_encoder_decoder, tiny_model
from transformer import Recording, record, record_pass, show
from transformer.frontend import saved_page


def whole(model, **chosen):
    """A whole pass over a few tokens, shown."""
    *source, tokens = (row[0].tolist() for row in some_inputs(model.config))
    return show(record_pass(model, tokens, *source), **chosen)


def recorded(model, **labels):
    inputs = tuple(tokens[:1] for tokens in some_inputs(model.config))
    return record(model, inputs, None, labels=labels)


def test_labels_are_never_read_as_markup():
    page = show(recorded(tiny_model(), text=["</script><b>"] * 8), title="<b>&").html
    assert "</script><b>" not in page
    assert "<title>&lt;b&gt;&amp;</title>" in page
    assert page.count("<script") == page.count("</script>") == 3


def test_nothing_can_be_loaded_from_elsewhere():
    page = show(recorded(tiny_model())).html
    assert "default-src 'none'" in page
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert "import(" not in page


def test_a_notebook_gets_the_page_in_a_frame():
    shown = show(recorded(tiny_model()))
    assert shown._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html&gt;')


def test_it_is_saved_as_it_is(tmp_path):
    shown = show(recorded(tiny_model(), text=["é"] * 8))
    shown.save(tmp_path / "view.html")
    assert (tmp_path / "view.html").read_text(encoding="utf-8") == shown.html


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


def test_labels_of_a_whole_pass_are_never_read_as_markup():
    model = tiny_model()
    found = record_pass(model, [1, 2], labels=lambda tokens: ["</script><b>"] * len(tokens))
    page = show(found, title="<b>&").html
    assert "</script><b>" not in page and "<title>&lt;b&gt;&amp;</title>" in page
    assert page.count("<script") == page.count("</script>") == 3
    assert "default-src 'none'" in page and "import(" not in page


def test_what_there_is_nothing_of_can_t_be_looked_at_first():
    for chosen, words in (
        ({"open": "blocks.9"}, r"no blocks\.9; it has hook_embed"), ({"open": "logits", "cell": (0, 9999)}, "no cell"),
        ({"open": "blocks.0", "cell": (0,)}, "no cell"), ({"cell": (-1, 0), "open": "logits"}, "no cell"),
    ):  # fmt: skip
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
