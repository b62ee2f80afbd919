"""Tests the import of untrusted pretrained files: errors are sentences, nothing is half-written."""

import json
import os
import struct

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.helpers import MODERN, tiny_model
from tests.tiny_models import save_chatty
from transformer import (
    Checkpoint,
    CheckpointError,
    ModelCard,
    Sampling,
    Tokenizer,
    export_pretrained,
    generate,
    load_checkpoint,
    load_pretrained,
    save_checkpoint,
)
from transformer import __main__ as command_line
from transformer.checkpoints import importing, weight_numbers
from transformer.data.tokenizers import HALF

LLAMA = MODERN["llama"] | {"n_kv_heads": 1, "tie_embeddings": False}


@pytest.fixture
def ours() -> Checkpoint:
    return Checkpoint(tiny_model(**LLAMA), Tokenizer.of_characters("abcdefghijk"), ModelCard(title="x", end_token_id=3))


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


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("large", [False, True])
def test_weights_of_half_the_bytes_are_read_as_float32_unless_they_are_very_many(
    folder, large, dtype, tmp_path, monkeypatch
):
    """And one that takes more memory than models may is refused before a weight is read."""
    rewrite(folder, lambda weights: weights.update({name: each.to(dtype) for name, each in weights.items()}))
    expected = load_file(folder / "model.safetensors")["model.norm.weight"]
    monkeypatch.setattr(weight_numbers, "LARGE", 0 if large else 10**9)
    found, name = load_pretrained(folder), str(dtype).removeprefix("torch.")
    assert (f"Its numbers are {name}." in found.card.summary) == large == ("float" in found.card.summary)
    save_checkpoint(tmp_path / "kept", found)
    export_pretrained(tmp_path / "out", found)
    kept = name if large else "float32"
    assert json.loads((tmp_path / "out" / "config.json").read_text())["dtype"] == kept
    assert (found.card.title, found.card.end_token_id, found.model.training) == ("small-llama", 3, False)
    for each in (found, load_checkpoint(tmp_path / "kept"), load_pretrained(tmp_path / "out")):
        assert {weight.dtype for weight in each.model.parameters()} == {getattr(torch, kept)}
        assert torch.equal(each.model.ln_final.weight.float(), expected.float())
    size = (2 if large else 4) * found.card.parameters
    monkeypatch.setenv("HEADSUP_MODEL_MEMORY", f"{size / 1e6:.6f} MB")
    assert load_checkpoint(tmp_path / "kept").card == load_pretrained(folder).card == found.card
    monkeypatch.setenv("HEADSUP_MODEL_MEMORY", f"{(size - 1) / 1e6:.6f} MB")
    monkeypatch.setattr("torch.Tensor.to", None)  # which every weight that is read goes through
    for load, path in ((load_checkpoint, tmp_path / "kept"), (load_pretrained, folder)):
        with pytest.raises(CheckpointError, match=f"{path.name}: Its weights need .*HEADSUP_MODEL_MEMORY can allow"):
            load(path)


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"model_type": "parrot"}, r"type 'parrot' can't be read; known are GPT-2 \(gpt2\), .*Qwen2 \(qwen2\)"),
        ({"model_type": "mixtral"}, "can't be read: a router picks a few of many feed-forward networks"),
        ({"model_type": "deepseek_v3"}, r"compressed vector \(MLA\), and a router picks"),
        *(({"model_type": name}, "carry a state from token to token") for name in ("mamba", "jamba", "rwkv")),
        ({"model_type": "gemma3"}, "images or sounds besides text; its text model alone, saved as gemma3_text"),
        *(
            ({"model_type": "electra"}, "it is an encoder; of encoders, BERT, .* can be"),
            ({"model_type": "umt5"}, "it is an encoder with a decoder; of those, T5, .* can be"),
        ),
        ({"model_type": ["llama"]}, "can't be read; known are"),
        *(({"hidden_size": None}, "lacks hidden_size"), ({"rms_norm_eps": -1}, "a number above 0")),
        ({"hidden_size": "wide"}, "hidden_size is 'wide', where a whole number"),
        ({"hidden_size": 16}, "embed_tokens.weight is 11 × 8 in the file; the configuration needs 11 × 16"),
        ({"hidden_size": 10**12}, "embed_tokens.weight is 11 × 8|no model can have"),
        ({"vocab_size": 10**30}, "no model can have|can't be used"),
        ({"num_hidden_layers": 3}, "weights of layers.2.input_layernorm.weight are missing"),
        ({"num_hidden_layers": 10**9}, "at most 1,000 layers"),
        ({"num_hidden_layers": 1}, "weights that no Llama model has, layers.1"),
        ({"num_attention_heads": 3, "head_dim": None}, "heads can't share equally"),
        *(({"hidden_act": "tanh"}, "known are relu"), ({"attention_bias": "yes"}, "true or false")),
        ({"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5}}, "lack factor, which llama3 has"),
        ({"rope_parameters": None, "rope_scaling": {"type": "spiral", "factor": 2}}, "of the type 'spiral'; known are"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 2.0, "spin": 1}}, "say spin, which isn't known"),
        ({"rope_parameters": 7}, "no set of named values"),
        ({"rope_parameters": {"full_attention": {"spin": 5e5}}}, "say spin, which isn't known"),
        ({"rope_parameters": {"rope_theta": 5e5, "factor": 4.0}}, "a factor, but not the kind of scaling"),
        ({"rope_parameters": {"rope_theta": 5e5, "partial_rotary_factor": 0.5}}, "turns a part of each head"),
        ({"layer_types": ["chunked_attention"] * 2}, "layers of 'chunked_attention'; known are full_attention"),
        ({"layer_types": ["sliding_attention"] * 2}, "sliding_attention, which no Llama has"),
        ({"layer_types": ["full_attention"]}, "don't name a kind for each layer"),
        ({"logits_scaling": 8.0}, "sets logits_scaling, which isn't known and may change what the model computes"),
        *(({"rope_interleaved": True}, "sets rope_interleaved"), ({"is_causal": False}, "sets is_causal to something")),
        ({"architectures": ["LlamaForTokenClassification"]}, "is a LlamaForTokenClassification; of this family, a"),
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
    more = {"unsloth_version": "1", "transformers.js_config": {"a": 1}, "_name_or_path": "x", "pretraining_tp": 2}
    say(folder, **off, **more, architectures=["LlamaForCausalLM"])
    rewrite(folder, swap("model.layers.0.self_attn.rotary_emb.inv_freq", torch.ones(2)))  # it follows from the sizes
    assert load_pretrained(folder).model.config.n_layers == 2


def test_a_text_ends_after_any_of_its_end_tokens(folder, tmp_path):
    say(folder, eos_token_id=4)
    assert load_pretrained(folder).card.stop_tokens == (4,)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [5, 3, 5, 99, None]}))
    save_checkpoint(tmp_path / "kept", load_pretrained(folder))
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


def test_only_safetensors_are_read_and_a_pickle_is_never_opened(folder):
    with pytest.raises(CheckpointError, match=r"small-llama: It is a folder in Hugging Face layout; .* import"):
        load_checkpoint(folder)
    weights = folder / "model.safetensors"
    (folder / "pytorch_model.bin").write_bytes(weights.read_bytes())
    weights.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    with pytest.raises(CheckpointError, match=r"safetensors is a Git LFS pointer, .*git lfs pull"):
        load_pretrained(folder)
    weights.unlink()
    with pytest.raises(CheckpointError, match=r"pickles, which are never opened: .*save_pretrained"):
        load_pretrained(folder)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(CheckpointError, match="read from safetensors files alone"):
        load_pretrained(folder)
    with pytest.raises(CheckpointError, match="no such folder"):
        load_pretrained(folder / "nothing")


@pytest.mark.parametrize(
    "found, words",
    [
        ({"a": "../other.safetensors"}, "no safetensors file of this folder"),
        ({"a": "/etc/passwd"}, "no safetensors file of this folder"),
        ({"a": "gone.safetensors"}, "gone.safetensors is missing"),
        ({"a": 7}, "doesn't say which file"),
        ("a", "doesn't say which file"),
        ({"a": "part.safetensors"}, "names a, which is in no file"),
        ({"a": "cut.safetensors"}, "cut.safetensors is damaged"),
    ],
)
def test_an_index_leads_nowhere_else(folder, found, words):
    weights = folder / "model.safetensors"
    (folder / "cut.safetensors").write_bytes(weights.read_bytes()[:-9])
    weights.rename(folder / "part.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": found}))
    with pytest.raises(CheckpointError, match=words):
        load_pretrained(folder)


@pytest.fixture
def run(tmp_path, capsys):
    """Runs a command; gives its status, and all that was said."""

    def call(*words: object) -> tuple[int, str]:
        status = command_line.main(["--checkpoints", str(tmp_path / "checkpoints"), *map(str, words)])
        return status, "".join(capsys.readouterr())

    return call


def test_by_commands_a_model_comes_in_and_goes_out_and_nothing_is_written_over(run, folder, tmp_path):
    status, said = run("import", folder, "--name", "mine")
    assert status == 0 and "2 layers, 2 heads, 11 tokens" in said
    tokens = torch.arange(8)[None]
    expected = load_pretrained(folder).model(tokens)
    assert torch.equal(load_checkpoint(tmp_path / "checkpoints" / "mine").model(tokens), expected)
    status, said = run("export", "mine", tmp_path / "out")
    assert status == 0 and "LlamaForCausalLM" in said
    assert torch.equal(load_pretrained(tmp_path / "out").model(tokens), expected)
    written = [run("generate", name, "abc", "--tokens", "3", "--seed", "1") for name in ("mine", folder)]
    assert written[0] == written[1] and written[0][0] == 0 and written[0][1].startswith("abc")
    assert run("import", folder)[0] == 0
    for words, message in (
        (("import", folder), "There is a checkpoint 'small-llama' already"),
        (("export", "mine", folder), "exists already"),
        (("export", "mine", tmp_path / "a.gguf"), "name a folder, such as a; llama.cpp's convert_hf_to_gguf.py makes"),
        *(
            (("export", "mine", tmp_path / f"b{kind}"), f"b{kind} is the name of a {kind.lower()} file, and a model is")
            for kind in (".safetensors", ".ZIP", ".bin", ".onnx")
        ),
        (("export", "mine", folder / "config.json" / "x"), "x can't be written: config.json is a file"),
        (("export", "mine", tmp_path / ("x" * 300)), "can't be written: File name too long"),
        (("export", "mine", tmp_path / "a\0b"), "null"),
        (("evaluate", "mine"), "names no text that mine was trained on"),
    ):
        status, said = run(*words)
        assert status == 1 and message in said and said.startswith("Error: ") and said.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoints", "out", "small-llama"]


def test_what_a_command_writes_comes_in_whole_characters(run, tmp_path):
    checkpoint = save_chatty(tmp_path / "checkpoints")
    ids = checkpoint.tokenizer.encode("the ñ")
    steps = generate(checkpoint.model, ids, max_new_tokens=40, sampling=Sampling(0.8, seed=1), stop_tokens=[259])
    expected = checkpoint.tokenizer.decode([*ids, *(step.token_id for step in steps)])
    found = run("generate", "chatty", "the ñ", "--tokens", "40", "--seed", "1")
    assert found == (0, expected + "\n") and HALF in expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("gpt2",), "a model on the hub is named by OWNER/NAME, as openai-community/gpt2"),
        (("FOLDER",), "Error: small-llama: The weights of norm.weight are missing."),
        *(
            (("FOLDER", "--name", name), "can't be a checkpoint's name")
            for name in ("../up", ".hidden", "a/b", "x" * 101)
        ),
        (("somebody/model",), "Download it elsewhere and name its folder."),
    ],
)
def test_what_a_command_can_t_do_is_said_and_leaves_nothing(run, folder, tmp_path, monkeypatch, words, message):
    def snapshot(model: str, allow_patterns: list[str]) -> str:
        raise ConnectionError("no route")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    rewrite(folder, lambda weights: weights.pop("model.norm.weight"))
    status, said = run("import", *(folder if word == "FOLDER" else word for word in words))
    assert status == 1 and message in said
    assert not (tmp_path / "checkpoints").exists() or not os.listdir(tmp_path / "checkpoints")


def test_a_model_of_the_hub_is_fetched_without_code_and_pickles(run, folder, tmp_path, monkeypatch):
    asked = []

    def snapshot(model: str, allow_patterns: list[str]) -> str:
        asked.append((model, allow_patterns))
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    assert run("import", "somebody/Small.Model")[0] == 0
    assert asked == [("somebody/Small.Model", list(importing.WANTED))]
    assert not [each for each in importing.WANTED if each.endswith((".bin", ".py", ".pt", "*"))]
    assert {"added_tokens.json", "special_tokens_map.json", "generation_config.json"} <= {*importing.WANTED}
    assert (tmp_path / "checkpoints" / "small.model").is_dir()
