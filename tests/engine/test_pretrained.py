"""Tests the import of untrusted pretrained files: errors are sentences, nothing is half-written."""

import json
import os
import struct

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.helpers import tiny_model
from tests.tiny_models import save_chatty
from transformer import (
    Card,
    Checkpoint,
    CheckpointError,
    Sampling,
    Tokenizer,
    export_pretrained,
    generate,
    load_checkpoint,
    load_pretrained,
    save_checkpoint,
)
from transformer import __main__ as command_line
from transformer.checkpoints import importing
from transformer.checkpoints.families import FAMILIES
from transformer.checkpoints.pretrained import config_of
from transformer.data.tokenizers import HALF

LLAMA = {
    "norm_kind": "rms",
    "mlp_gate": True,
    "activation": "silu",
    "n_kv_heads": 1,
    "positions": "rotary",
    "rotary_pairs": "halves",
    "attention_bias": False,
    "mlp_bias": False,
}


@pytest.fixture
def ours() -> Checkpoint:
    return Checkpoint(tiny_model(**LLAMA), Tokenizer.of_characters("abcdefghijk"), Card(title="x", end_token_id=3))


@pytest.fixture
def folder(ours, tmp_path):
    """A small Llama in Hugging Face layout."""
    export_pretrained(tmp_path / "small-llama", ours)
    return tmp_path / "small-llama"


def say(folder, **fields) -> None:
    """Change what config.json says; None takes a field away."""
    path = folder / "config.json"
    told = {**json.loads(path.read_text()), **fields}
    path.write_text(json.dumps({name: value for name, value in told.items() if value is not None}))


def rewrite(folder, change) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors")


def test_what_was_written_is_read(ours, folder):
    found = load_pretrained(folder)
    tokens = torch.arange(8)[None]
    torch.testing.assert_close(found.model(tokens), ours.model(tokens), atol=0, rtol=0)
    assert found.model.config.norm_kind == "rms" and found.card.end_token_id == 3
    assert found.card.parameters == ours.model.parameter_count() and not found.model.training
    assert (found.tokenizer.encode("abc"), found.card.title) == ([0, 1, 2], "small-llama")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_of_half_the_bytes_are_read_as_float32(folder, dtype):
    rewrite(folder, lambda weights: weights.update({name: each.to(dtype) for name, each in weights.items()}))
    expected = load_file(folder / "model.safetensors")["model.norm.weight"].float()
    weight = load_pretrained(folder).model.ln_final.weight
    assert weight.dtype == torch.float32 and torch.equal(weight, expected)


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"model_type": "mamba"}, r"type 'mamba' can't be read; known are GPT-2 \(gpt2\), .*Qwen2 \(qwen2\)"),
        ({"model_type": ["llama"]}, "can't be read; known are"),
        ({"hidden_size": None}, "lacks hidden_size"),
        ({"hidden_size": "wide"}, "hidden_size is 'wide', where a whole number"),
        ({"hidden_size": 16}, "embed_tokens.weight is 11 × 8 in the file; the configuration needs 11 × 16"),
        ({"hidden_size": 10**12}, "embed_tokens.weight is 11 × 8|no model can have"),
        ({"vocab_size": 10**30}, "no model can have|can't be used"),
        ({"num_hidden_layers": 3}, "weights of layers.2.input_layernorm.weight are missing"),
        ({"num_hidden_layers": 10**9}, "at most 1,000 layers"),
        ({"num_hidden_layers": 1}, "weights that no Llama model has, layers.1"),
        ({"num_attention_heads": 3, "head_dim": None}, "heads can't share equally"),
        ({"hidden_act": "tanh"}, "hidden_act is 'tanh'; known are relu"),
        ({"rms_norm_eps": -1}, "a number above 0"),
        ({"attention_bias": "yes"}, "true or false"),
        ({"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5}}, "of the type 'llama3'; only plain ones"),
        ({"rope_parameters": None, "rope_scaling": {"type": "linear", "factor": 2}}, "of the type 'linear'"),
        ({"rope_parameters": 7}, "no set of named values"),
        ({"rope_parameters": {"full_attention": {"rope_theta": 5e5}}}, "say full_attention, which isn't known"),
        ({"rope_parameters": {"rope_theta": 5e5, "factor": 4.0}}, "say factor, which isn't known"),
        ({"rope_parameters": {"rope_theta": 5e5, "partial_rotary_factor": 0.5}}, "turns 0.5 of each head"),
        ({"layer_types": ["chunked_attention"] * 2}, "layers of 'chunked_attention'; known are full_attention"),
        ({"layer_types": ["sliding_attention"] * 2}, "sliding_attention, which no Llama has"),
        ({"layer_types": ["full_attention"]}, "don't name a kind for each layer"),
        ({"logits_scaling": 8.0}, "sets logits_scaling, which isn't known and may change what the model computes"),
        ({"rope_interleaved": True}, "sets rope_interleaved"),
        ({"is_causal": False}, "sets is_causal to something else"),
        (
            {"architectures": ["LlamaForSequenceClassification"]},
            "is a LlamaForSequenceClassification; of this family, a",
        ),
        ({"quantization_config": {"quant_method": "gptq"}}, r"weights are quantised \(gptq\)"),
        ({"vocab_size": 7}, "The tokenizer has 11 tokens, but the model only 7"),
    ],
)
def test_a_configuration_that_lies_is_refused(folder, fields, words):
    say(folder, **fields)
    with pytest.raises(CheckpointError, match=f"small-llama: .*{words}|small-llama: ({words})"):
        load_pretrained(folder)


def test_what_changes_nothing_may_stand_there(folder):
    off = {"rope_interleaved": False, "attention_dropout": 0.1, "torch_dtype": "bfloat16", "layer_types": None}
    more = {
        "unsloth_version": "2025",
        "transformers.js_config": {"dtype": "q4"},
        "_name_or_path": "x",
        "pretraining_tp": 2,
    }
    say(folder, **off, **more, architectures=["LlamaForCausalLM"])
    assert load_pretrained(folder).model.config.n_layers == 2


DEEP = {
    "hidden_size": 128,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 512,
    "vocab_size": 99,
}


@pytest.mark.parametrize(
    "family, fields",
    [
        (
            "gpt_neox",
            {"rotary_emb_base": 10000, "rotary_pct": 0.25, "rope_theta": 10000, "partial_rotary_factor": 0.25},
        ),
        ("gpt_neox", {"rope_theta": 10000, "partial_rotary_factor": 0.25, "rope_scaling": None, "hidden_dropout": 0.1}),
        ("qwen2", {"sliding_window": 32768, "max_window_layers": 21, "use_sliding_window": False, "use_mrope": False}),
        ("llama", {"max_sequence_length": 2048, "pretraining_tp": 1, "pad_token_id": -1, "rope_scaling": None}),
    ],
)
def test_configurations_of_several_years_are_read(family, fields):
    config = config_of(FAMILIES[family], {**DEEP, "max_position_embeddings": 2048, **fields})
    assert config.turned_dims == (8 if family == "gpt_neox" else 32) and not any(config.attention_windows)


def test_a_text_ends_after_any_of_its_end_tokens(folder, tmp_path):
    say(folder, eos_token_id=4)
    assert load_pretrained(folder).card.stop_tokens == (4,)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [5, 3, 5, 99, None]}))
    checkpoint = load_pretrained(folder)
    assert checkpoint.card.stop_tokens == (5, 3)
    save_checkpoint(tmp_path / "kept", checkpoint)
    assert load_checkpoint(tmp_path / "kept").card.stop_tokens == (5, 3)


def swap(name, tensor):
    return lambda weights: weights.update({name: tensor})


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda weights: weights.pop("model.norm.weight"), "weights of norm.weight are missing"),
        (lambda weights: weights.pop("lm_head.weight"), "weights of lm_head.weight are missing"),
        (swap("model.norm.weight", torch.ones(9)), "norm.weight is 9 in the file; the configuration needs 8"),
        (swap("model.norm.weight", torch.full((8,), torch.inf)), "norm.weight holds numbers that are infinite"),
        (swap("model.norm.weight", torch.ones(8, dtype=torch.int32)), "which no weights are stored as"),
        (swap("model.layers.0.self_attn.q_norm.weight", torch.ones(4)), "weights that no Llama model has"),
    ],
)
def test_weights_that_don_t_fit_are_refused(folder, change, words):
    rewrite(folder, change)
    with pytest.raises(CheckpointError, match=words):
        load_pretrained(folder)


def test_tables_that_follow_from_the_sizes_are_left_aside(folder):
    rewrite(folder, swap("model.layers.0.self_attn.rotary_emb.inv_freq", torch.ones(2)))
    assert load_pretrained(folder).model.config.n_layers == 2


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_file_that_is_missing_cut_off_or_something_else_is_refused(folder, name):
    path = folder / name
    content = path.read_bytes()
    for damaged in (content[: len(content) // 2], b"", b"[1, 2]", struct.pack("<Q", 2**60) + b"{}"):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"^small-llama: \S.*\.$"):
            load_pretrained(folder)
    path.unlink()
    with pytest.raises(CheckpointError, match=f"{name} is missing"):
        load_pretrained(folder)


def test_a_pickle_is_never_opened(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"pickles, which are never opened: .*save_pretrained"):
        load_pretrained(folder)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(CheckpointError, match="read from safetensors files alone"):
        load_pretrained(folder)


def test_a_pointer_that_git_lfs_left_is_told_from_a_damaged_file(folder):
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    with pytest.raises(CheckpointError, match=r"safetensors is a Git LFS pointer, .*git lfs pull"):
        load_pretrained(folder)


@pytest.mark.parametrize(
    "found, words",
    [
        ({"a": "../other.safetensors"}, "no safetensors file of this folder"),
        ({"a": "/etc/passwd"}, "no safetensors file of this folder"),
        ({"a": "gone.safetensors"}, "gone.safetensors is missing"),
        ({"a": 7}, "doesn't say which file"),
        ("a", "doesn't say which file"),
        ({"a": "part.safetensors"}, "names a, which is in no file"),
    ],
)
def test_an_index_leads_nowhere_else(folder, found, words):
    (folder / "model.safetensors").rename(folder / "part.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": found}))
    with pytest.raises(CheckpointError, match=words):
        load_pretrained(folder)


def test_something_that_isn_t_there_is_said(tmp_path):
    with pytest.raises(CheckpointError, match="no such folder"):
        load_pretrained(tmp_path / "nothing")


def test_a_folder_of_theirs_is_no_checkpoint_of_ours(folder):
    with pytest.raises(CheckpointError, match=r"small-llama: It is a folder in Hugging Face layout; .* import"):
        load_checkpoint(folder)


class TestOnTheCommandLine:
    def run(self, tmp_path, *words: str) -> int:
        return command_line.main(["--checkpoints", str(tmp_path / "checkpoints"), *words])

    def test_a_model_comes_in_and_goes_out(self, folder, tmp_path, capsys):
        assert self.run(tmp_path, "import", str(folder), "--name", "mine") == 0
        assert "2 layers, 2 heads, 11 tokens" in capsys.readouterr().out
        tokens = torch.arange(8)[None]
        expected = load_pretrained(folder).model(tokens)
        assert torch.equal(load_checkpoint(tmp_path / "checkpoints" / "mine").model(tokens), expected)
        assert self.run(tmp_path, "export", "mine", str(tmp_path / "out")) == 0
        assert "LlamaForCausalLM" in capsys.readouterr().out
        assert torch.equal(load_pretrained(tmp_path / "out").model(tokens), expected)

    def test_what_is_written_comes_in_whole_characters(self, tmp_path, capsys):
        checkpoint = save_chatty(tmp_path / "checkpoints")
        assert self.run(tmp_path, "generate", "chatty", "the ñ", "--tokens", "40", "--seed", "1") == 0
        ids = checkpoint.tokenizer.encode("the ñ")
        steps = generate(checkpoint.model, ids, max_new_tokens=40, sampling=Sampling(0.8, seed=1), stop_tokens=[259])
        expected = checkpoint.tokenizer.decode([*ids, *(step.token_id for step in steps)])
        assert capsys.readouterr().out == expected + "\n" and HALF in expected

    def test_an_imported_model_has_no_text_to_be_measured_on(self, folder, tmp_path, capsys):
        assert self.run(tmp_path, "import", str(folder), "--name", "mine") == 0
        assert self.run(tmp_path, "evaluate", "mine") == 1
        assert "names no text that mine was trained on" in capsys.readouterr().err

    def test_a_model_of_the_hub_needs_its_owner(self, tmp_path, capsys):
        assert self.run(tmp_path, "import", "gpt2") == 1
        assert "a model on the hub is named by OWNER/NAME, as openai-community/gpt2" in capsys.readouterr().err

    def test_what_fails_leaves_nothing(self, folder, tmp_path, capsys):
        rewrite(folder, lambda weights: weights.pop("model.norm.weight"))
        assert self.run(tmp_path, "import", str(folder)) == 1
        assert "Error: small-llama: The weights of norm.weight are missing." in capsys.readouterr().err
        assert not (tmp_path / "checkpoints").exists() or not os.listdir(tmp_path / "checkpoints")

    def test_no_checkpoint_and_no_folder_is_written_over(self, folder, tmp_path, capsys):
        assert self.run(tmp_path, "import", str(folder)) == 0
        assert self.run(tmp_path, "import", str(folder)) == 1
        assert "There is a checkpoint 'small-llama' already" in capsys.readouterr().err
        assert self.run(tmp_path, "export", "small-llama", str(folder)) == 1
        assert "exists already" in capsys.readouterr().err

    @pytest.mark.parametrize("name", ["../up", ".hidden", "a/b", "x" * 101])
    def test_a_name_is_a_name(self, folder, tmp_path, capsys, name):
        assert self.run(tmp_path, "import", str(folder), "--name", name) == 1
        assert "can't be a checkpoint's name" in capsys.readouterr().err

    def test_a_model_of_the_hub_is_fetched_without_code_and_pickles(self, folder, tmp_path, monkeypatch, capsys):
        asked = {}

        def snapshot(model: str, allow_patterns: list[str]) -> str:
            asked.update(model=model, patterns=allow_patterns)
            return str(folder)

        monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
        assert self.run(tmp_path, "import", "somebody/Small.Model") == 0
        assert asked == {"model": "somebody/Small.Model", "patterns": list(importing.WANTED)}
        assert not [each for each in importing.WANTED if each.endswith((".bin", ".py", ".pt", "*"))]
        assert (tmp_path / "checkpoints" / "small.model").is_dir()

    def test_without_a_network_it_says_what_to_do(self, tmp_path, monkeypatch, capsys):
        def snapshot(model: str, allow_patterns: list[str]) -> str:
            raise ConnectionError("no route")

        monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
        assert self.run(tmp_path, "import", "somebody/model") == 1
        assert "Download it elsewhere and name its folder." in capsys.readouterr().err
