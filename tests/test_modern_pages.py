"""Every page on models with what has changed since 2017: what a page draws from is what the engine computes."""

import math

import numpy as np
import pytest
import torch

from pages.ui.models import cache, recordings
from pages.ui.models.library import OpenModel
from tests.app_driver import every_page, outline, overview, said, start, step, text_of, use
from tests.helpers import MODERN, modern_config, tiny_model
from tests.tiny_models import save_tiny
from transformer import Card, Checkpoint, Tokenizer, hook_points

TOKENS = (3, 1, 4, 1, 5, 3, 2)


@pytest.mark.parametrize("kind", MODERN)
def test_weights_and_averages_follow_from_what_is_sent_of_a_head(kind):
    cache.clear()
    config = modern_config(kind)
    engine = tiny_model(config)
    model = OpenModel("tiny", kind, Checkpoint(engine, Tokenizer.of_characters("abcdefghijk"), Card(title="x")))
    with torch.no_grad():
        _, recorded = engine.run_with_cache(torch.tensor([TOKENS]), names_filter=list(hook_points(config)))
    for layer in range(config.n_layers):
        names = recordings.names_around(config, "self", layer)
        for head in range(config.n_heads):
            shared = head * config.kv_heads // config.n_heads
            found = recordings.head(model, TOKENS, (), "self", layer, head).tensors
            heads = (("q", head), ("k", shared), ("v", shared))
            q, k, v = (torch.tensor(found[f"{names[part]}[:, {at}]"]) for part, at in heads)
            scores = q @ k.T / (math.sqrt(config.d_head) if config.attention_scale else 1)
            weights = scores.masked_fill(~recorded[f"blocks.{layer}.attn.hook_mask"].view(7, 7), -math.inf).softmax(-1)
            close(weights, recorded["pattern", layer][0, head])
            close(weights @ v, recorded["z", layer][0, :, head])
            row = recordings.row(model, TOKENS, (), "self", layer, head, 3).tensors
            part_of_w_o = row[f"blocks.{layer}.attn.out.weight[:, {head}]"]
            close(part_of_w_o @ recorded["z", layer][0, 3, head].numpy(), recorded["result", layer][0, 3, head])
        if names["after"]:
            close(recorded[names["before"]] + recorded[names["out"]], recorded[names["after"]])


def close(found, expected) -> None:
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-4)


@every_page
def test_a_page_opens(page, tmp_path, monkeypatch):
    use(monkeypatch, tmp_path)
    save_tiny(tmp_path, "shakespeare", **{"n_heads": 4, **MODERN["all at once"], "pad_token_id": None})
    at = start(page)
    assert not said(at)
    if page == "Generate":
        assert len(text_of(step(at))) >= 1
    elif page == "Attention":
        assert overview(at).tensors["overview"].shape[:2] == (2, 4)
    elif page == "Inside":
        assert outline(at).tensors["next"].size
