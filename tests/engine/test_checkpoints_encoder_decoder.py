"""Tests the checkpoints of encoder–decoders."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from safetensors.torch import load_file, save_file

from tests.helpers import encoder_decoder_configs, some_inputs, tiny_config, tiny_model
from transformer import (
    Card,
    Checkpoint,
    CheckpointError,
    ModelConfig,
    Sampling,
    Tokenizer,
    generate,
    list_checkpoints,
    load_checkpoint,
    save_checkpoint,
)

TOKENIZER = Tokenizer.of_characters("abcdefgh", ("[pad]", "[start]", "[end]"))
CARD = Card(title="A title", task="none", examples=["ab"], start_token_id=9, end_token_id=10)
DEEPER_ENCODER = {"architecture": "encoder-decoder", "n_encoder_layers": 3, "n_layers": 1, "pad_token_id": 8}


def saved_at(path: Path, config: ModelConfig, card: Card = CARD) -> Checkpoint:
    checkpoint = Checkpoint(tiny_model(config), TOKENIZER, card)
    save_checkpoint(path, checkpoint)
    return checkpoint


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    """A checkpoint that tests copy and never change: three blocks in the encoder, one in the decoder."""
    path = tmp_path_factory.mktemp("good") / "good"
    saved_at(path, tiny_config(**DEEPER_ENCODER))
    return path


def refused(folder: Path, *words: str) -> None:
    """Loading says what is wrong, and so does the list, which reads no weights."""
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(folder)
    (entry,) = list_checkpoints(folder.parent)
    assert entry.problem == str(caught.value)
    assert entry.problem.startswith("damaged: ")
    for word in words:
        assert word in entry.problem


def change_json(folder: Path, name: str, **fields) -> None:
    content = json.loads((folder / name).read_text(encoding="utf-8"))
    (folder / name).write_text(json.dumps({**content, **fields}))


class TestRoundTrip:
    @given(config=encoder_decoder_configs())
    @settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_everything_comes_back(self, config, tmp_path):
        saved = saved_at(tmp_path / "model", config)
        loaded = load_checkpoint(tmp_path / "model")
        assert loaded.model.config == config
        assert loaded.card == CARD
        assert not loaded.model.training
        for name, tensor in saved.model.state_dict().items():
            assert torch.equal(tensor, loaded.model.state_dict()[name])
        inputs = some_inputs(config)
        assert torch.equal(saved.model(*inputs), loaded.model(*inputs))

    @pytest.mark.parametrize("tied", [False, True])
    def test_tied_embeddings_are_stored_once_and_serve_three_ends_again(self, tied, tmp_path):
        saved_at(tmp_path / "model", tiny_config(**DEEPER_ENCODER, tie_embeddings=tied))
        stored = {name for name in load_file(tmp_path / "model/model.safetensors") if "embed" in name}
        three = {"encoder.embed.weight", "decoder.embed.weight", "unembed.weight"}
        assert stored == ({"embed.weight"} if tied else three)
        model = load_checkpoint(tmp_path / "model").model
        plain = model(torch.tensor([[1, 2]]), torch.tensor([[3]]))
        if tied:
            assert model.unembed.weight is model.embed.weight
            with torch.no_grad():
                model.embed.weight[1] += 1.0  # a token of the source
            assert not torch.allclose(model(torch.tensor([[1, 2]]), torch.tensor([[3]])), plain)

    def test_a_loaded_model_writes_what_the_saved_one_wrote(self, good):
        checkpoint = load_checkpoint(good)
        source, start = TOKENIZER.encode("hag"), [checkpoint.card.start_token_id]
        first, second = (
            [
                step.token_id
                for step in generate(model, start, source=source, max_new_tokens=5, sampling=Sampling(seed=1))
            ]
            for model in (checkpoint.model, tiny_model(tiny_config(**DEEPER_ENCODER)))
        )
        assert first == second
        assert len(first) == 5

    def test_half_the_bytes_hold_both_sides(self, tmp_path):
        checkpoint = Checkpoint(tiny_model(tiny_config(**DEEPER_ENCODER)), TOKENIZER, CARD)
        save_checkpoint(tmp_path / "model", checkpoint, dtype=torch.float16)
        loaded = load_checkpoint(tmp_path / "model").model.state_dict()
        for name, tensor in checkpoint.model.state_dict().items():
            assert torch.equal(loaded[name], tensor.half().float())


class TestClaims:
    @pytest.mark.parametrize(
        "claims",
        [
            {"n_encoder_layers": 4},
            {"n_encoder_layers": 2},
            {"n_encoder_layers": 0},
            {"n_encoder_layers": 10**9},
            {"n_encoder_layers": 10**30},
            {"n_layers": 2},
            {"n_layers": 0},
            {"n_layers": 10**9},
            {"n_encoder_layers": 1, "n_layers": 3},
            {"architecture": "decoder-only"},
            {"tie_embeddings": True},
            {"d_model": 10**6},
            {"d_model": 16},
            {"vocab_size": 12},
            {"d_ff": 0},
            {"d_ff": 31},
            {"norm": "none"},
            {"attention": "uniform"},
            {"positions": "learned"},
            {"attention_bias": False},
            {"unembed_bias": True},
        ],
        ids=lambda claims: " ".join(f"{key}={str(value)[:8]}" for key, value in claims.items()),
    )
    def test_a_configuration_that_claims_what_is_not_there(self, copied, claims):
        change_json(copied, "config.json", **claims)
        refused(copied, "config.json", "model.safetensors")

    def test_the_side_that_claims_more_than_the_file_holds_is_refused_before_anything_is_built(
        self, copied, monkeypatch
    ):
        change_json(copied, "config.json", n_encoder_layers=50)
        monkeypatch.setattr("transformer.checkpoints.folder.with_weights", lambda *args, **kwargs: pytest.fail("built"))
        refused(copied, "claims 50 layers")

    @pytest.mark.parametrize(
        ("name", "shape"),
        [
            ("decoder.blocks.0.cross_attn.q.weight", (8, 9)),
            ("decoder.blocks.0.cross_attn.kv.weight", (24, 8)),
            ("decoder.blocks.0.cross_attn.out.bias", (1, 8)),
            ("decoder.blocks.0.ln_cross.weight", (7,)),
            ("encoder.blocks.2.attn.qkv.weight", (8, 24)),
            ("encoder.ln_final.weight", (1,)),
            ("encoder.embed.weight", (12, 8)),
            ("decoder.embed.weight", (8, 11)),
        ],
    )
    def test_a_weight_of_another_shape_is_named(self, copied, name, shape):
        weights = load_file(copied / "model.safetensors")
        assert name in weights
        weights[name] = torch.zeros(shape)
        save_file(weights, copied / "model.safetensors")
        refused(copied, name, " × ".join(map(str, shape)))

    @pytest.mark.parametrize(
        "name", ["decoder.blocks.0.cross_attn.kv.bias", "encoder.blocks.1.ln1.bias", "decoder.embed.weight"]
    )
    def test_a_weight_that_is_missing_is_named(self, copied, name):
        weights = load_file(copied / "model.safetensors")
        del weights[name]
        save_file(weights, copied / "model.safetensors")
        refused(copied, f"{name} is absent")

    @pytest.mark.parametrize(
        "name", ["encoder.blocks.0.cross_attn.q.weight", "encoder.blocks.3.ln1.bias", "embed.weight"]
    )
    def test_a_weight_that_has_no_place_is_named(self, copied, name):
        weights = load_file(copied / "model.safetensors")
        weights[name] = torch.zeros(8, 8)
        save_file(weights, copied / "model.safetensors")
        refused(copied, name)


class TestSpecialTokens:
    @pytest.mark.parametrize("field", ["start_token_id", "end_token_id"])
    @pytest.mark.parametrize("token", [11, -1, 10**9])
    def test_one_that_the_model_does_not_have_is_refused(self, copied, field, token):
        change_json(copied, "card.json", **{field: token})
        refused(copied, "card.json", f"{field} {token}" if token > 0 else field)

    def test_without_a_token_to_start_from_it_is_refused(self, copied):
        change_json(copied, "card.json", start_token_id=None)
        refused(copied, "card.json", "start_token_id")

    def test_without_a_token_to_end_with_it_is_read(self, copied):
        change_json(copied, "card.json", end_token_id=None)
        assert load_checkpoint(copied).card == dataclasses.replace(CARD, end_token_id=None)

    def test_they_come_back_with_the_tokenizer(self, good):
        tokenizer = load_checkpoint(good).tokenizer
        assert [tokenizer.special_id(token) for token in ("[pad]", "[start]", "[end]")] == [8, 9, 10]
        assert tokenizer.decode([9, 0, 1, 10, 8]) == "ab"
