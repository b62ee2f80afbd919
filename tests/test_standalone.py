"""An instrument as one HTML page: what it needs is asked for, and nothing of a text becomes markup."""

import numpy as np
import pytest
import torch

from tests.helpers import some_inputs, tiny_encoder_decoder, tiny_model
from transformer import Recording, record, show


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


def test_a_recording_takes_parameters_along():
    model = tiny_model()
    found = record(model, some_inputs(model.config)[0][:1], "hook_embed", parameters=["blocks.0.attn.out.weight"])
    assert list(found.tensors) == ["hook_embed", "blocks.0.attn.out.weight"]
    np.testing.assert_array_equal(found.tensors["blocks.0.attn.out.weight"], model.blocks[0].attn.out.weight.detach())
    with pytest.raises(ValueError, match="no parameter"):
        record(model, torch.zeros(1, 2, dtype=torch.long), None, parameters=["blocks.9.attn.out.weight"])
