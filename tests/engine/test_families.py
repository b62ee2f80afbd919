"""Tests pretrained families at tiny sizes against transformers."""

import copy
import json
import random
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.helpers import MODERN, tiny_model
from transformer import Checkpoint, CheckpointError, ModelCard, Sampling, Tokenizer, generate, load_checkpoint
from transformer.checkpoints import weight_numbers
from transformer.checkpoints.exporting import export_pretrained
from transformer.checkpoints.families import FAMILIES
from transformer.checkpoints.pretrained import load_pretrained

transformers = pytest.importorskip("transformers", reason="requirements-dev.txt installs what models are compared with")
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

ROOT = Path(__file__).resolve().parents[2]
VOCABULARY, CONTEXT = 31, 24
ALPHABET = "abcdefghijklmnopqrstuvwxyz"

DECODERS = [name for name, family in FAMILIES.items() if family.shape == "decoder-only"]


class Spread:
    """Chooses at random, but so that the seeds together choose every option: there are as many as the longest list."""

    def __init__(self, family: str, seed: int, options: dict[str, list]) -> None:
        self.family, self.seed, self.calls, self.seeds = family, seed, 0, seeds(options)

    def choice(self, options):
        """One of the options, by how many were chosen before."""
        self.calls += 1
        order = [options[at % len(options)] for at in range(self.seeds)]
        random.Random(f"{self.family} {self.calls}").shuffle(order)
        return order[self.seed]


def seeds(options: dict[str, list]) -> int:
    return max(map(len, options.values()))


ACTIVATIONS, SMALL, TRUE_OR_FALSE = ["gelu_new", "gelu", "relu", "silu"], [1e-5, 1e-3], [True, False]
KINDS = [["sliding_attention", "full_attention", "sliding_attention"], None, ["full_attention"] * 3]
OPTIONS = {
    "gpt2": {
        **{"n_inner": [None, 20], "activation_function": ACTIVATIONS, "layer_norm_epsilon": SMALL},
        **{"scale_attn_weights": TRUE_OR_FALSE, "scale_attn_by_inverse_layer_idx": TRUE_OR_FALSE},
    },
    "gpt_bigcode": {
        **{"n_inner": [None, 20], "activation_function": ACTIVATIONS, "layer_norm_epsilon": SMALL},
        **{"scale_attn_weights": TRUE_OR_FALSE, "multi_query": TRUE_OR_FALSE},
    },
    "gptj": {"n_inner": [None, 20], "rotary_dim": [2, 4], "layer_norm_epsilon": SMALL},
    "bloom": {"layer_norm_epsilon": SMALL, "slow_but_exact": TRUE_OR_FALSE},
    "opt": {
        **{"do_layer_norm_before": TRUE_OR_FALSE, "word_embed_proj_dim": [None, 6], "enable_bias": TRUE_OR_FALSE},
        **{"layer_norm_elementwise_affine": TRUE_OR_FALSE, "activation_function": ["relu", "gelu"]},
        "ffn_dim": [20, 48, 20, 48],
    },
    "falcon": {
        "kind": [
            {"multi_query": True, "parallel_attn": True},
            {"new_decoder_architecture": True, "num_kv_heads": 2},
            {"new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1},
            {"alibi": True, "parallel_attn": False, "multi_query": False},
        ],
        **{"bias": TRUE_OR_FALSE, "ffn_hidden_size": [None, 20]},
    },
    "phi": {
        **{"num_key_value_heads": [1, 2], "qk_layernorm": TRUE_OR_FALSE, "partial_rotary_factor": [0.5, 1.0]},
        "hidden_act": ["gelu_new", "relu"],
    },
    "stablelm": {
        **{"num_key_value_heads": [1, 2], "qk_layernorm": TRUE_OR_FALSE, "partial_rotary_factor": [0.5, 1.0]},
        **{"use_qkv_bias": TRUE_OR_FALSE, "use_parallel_residual": 2 * TRUE_OR_FALSE},
    },
    "starcoder2": {"num_key_value_heads": [1, 2], "use_bias": TRUE_OR_FALSE, "sliding_window": [None, 3]},
    "gpt_neo": {
        **{"kinds": [["global"], ["local"], ["global", "local"]], "intermediate_size": [None, 20]},
        **{"window_size": [3, 5, 40], "activation_function": ["gelu_new", "relu"], "layer_norm_epsilon": SMALL},
    },
    "gpt_neox": {
        **{"partial_rotary_factor": [0.5, 1.0, 0.75], "use_parallel_residual": TRUE_OR_FALSE},
        **{"attention_bias": TRUE_OR_FALSE, "hidden_act": ["gelu", "relu"], "layer_norm_eps": SMALL},
    },
    "llama": {
        **{"num_key_value_heads": [1, 2, "all"], "head_dim": ["own", 10], "hidden_act": ["silu", "gelu"]},
        **{"attention_bias": TRUE_OR_FALSE, "mlp_bias": TRUE_OR_FALSE, "rms_norm_eps": [1e-6, 1e-3]},
        "rope_parameters": ["llama3", "yarn", "linear", "longrope"],
    },
    "mistral": {"num_key_value_heads": [1, 2], "sliding_window": [None, 3], "head_dim": ["own", 10]},
    "ministral": {"num_key_value_heads": [1, 2], "sliding_window": [3, 5], "layer_types": KINDS, "head_dim": [6, 10]},
    "ministral3": {
        **{"num_key_value_heads": [1, 2], "sliding_window": [None, 3], "head_dim": [6, 10]},
        "rope_parameters": ["further on", "no further"],
    },
    "qwen2": {
        **{"num_key_value_heads": [1, 2, "all"], "use_sliding_window": TRUE_OR_FALSE, "sliding_window": [3, 40]},
        **{"max_window_layers": [1], "rms_norm_eps": [1e-6, 1e-3], "rope_parameters": ["default", "yarn"]},
    },
    "qwen3": {
        **{"num_key_value_heads": [1, 2, "all"], "use_sliding_window": TRUE_OR_FALSE, "sliding_window": [3]},
        **{"max_window_layers": [1], "head_dim": [6, 10], "attention_bias": TRUE_OR_FALSE},
    },
    "smollm3": {
        **{"num_key_value_heads": [1, 2], "pad_token_id": [0]},
        **{"no_rope_layers": [None, [0, 1, 0]], "no_rope_layer_interval": [2, 3], "sliding_window": [3]},
        **{"use_sliding_window": TRUE_OR_FALSE, "attention_bias": TRUE_OR_FALSE, "mlp_bias": TRUE_OR_FALSE},
    },
    "phi3": {
        **{"num_key_value_heads": [1, 2], "sliding_window": [None, 3], "partial_rotary_factor": [0.5, 1.0]},
        **{"rope_parameters": ["default", "longrope"], "original_max_position_embeddings": [CONTEXT]},
    },
    "gemma": {
        **{"num_key_value_heads": [1, 2], "head_dim": [6, 10], "hidden_act": ["gelu", "gelu_pytorch_tanh"]},
        "attention_bias": TRUE_OR_FALSE,
    },
    "gemma2": {
        **{"num_key_value_heads": [1, 2], "head_dim": [6, 10], "query_pre_attn_scalar": [6, 50], "layer_types": KINDS},
        **{"attn_logit_softcapping": [None, 0.5], "final_logit_softcapping": [None, 0.7], "sliding_window": [3]},
        "attention_bias": TRUE_OR_FALSE,
    },
    "gemma3_text": {
        **{"num_key_value_heads": [1, 2], "head_dim": [6, 10], "query_pre_attn_scalar": [6, 50], "layer_types": KINDS},
        **{"final_logit_softcapping": [None, 0.7], "sliding_window": [3], "attention_bias": TRUE_OR_FALSE},
        "rope_parameters": ["by layer", "default by layer"],
    },
    "olmo": {"num_key_value_heads": [1, 2], "clip_qkv": [None, 0.3], "attention_bias": TRUE_OR_FALSE},
    "olmo2": {"num_key_value_heads": [1, 2], "rms_norm_eps": [1e-5, 1e-3], "attention_bias": TRUE_OR_FALSE},
    "olmo3": {
        **{"num_key_value_heads": [1, 2], "sliding_window": [3], "layer_types": KINDS, "attention_bias": TRUE_OR_FALSE},
        "rope_parameters": ["by layer", "default by layer"],
    },
    "granite": {
        **{"embedding_multiplier": [1.0, 3.0], "residual_multiplier": [1.0, 0.4], "logits_scaling": [1.0, 2.5]},
        **{"attention_multiplier": [1.0, 0.2], "attention_bias": TRUE_OR_FALSE, "mlp_bias": TRUE_OR_FALSE},
    },
    "cohere": {
        **{"num_key_value_heads": [1, 2], "logit_scale": [0.5, 2.0], "use_qk_norm": TRUE_OR_FALSE},
        "attention_bias": TRUE_OR_FALSE,
    },
    "cohere2": {
        **{"num_key_value_heads": [1, 2], "logit_scale": [0.5, 2.0], "sliding_window": [3], "layer_types": KINDS},
        "attention_bias": TRUE_OR_FALSE,
    },
    "glm": {"num_key_value_heads": [1, 2], "head_dim": [8, 12], "attention_bias": TRUE_OR_FALSE},
    "glm4": {"num_key_value_heads": [1, 2], "head_dim": [8, 12], "attention_bias": TRUE_OR_FALSE},
}
"""What tells models of a family apart, sizes left out."""
SCALED = {
    "default": {"rope_type": "default"},
    "linear": {"rope_type": "linear", "factor": 3.0},
    "llama3": {
        **{"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
        "original_max_position_embeddings": 12,
    },
    "yarn": {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 12},
    "further on": {
        **{"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": CONTEXT},
        "llama_4_scaling_beta": 0.1,
    },
    "no further": {
        **{"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 12, "mscale": 1.0},
        **{"mscale_all_dim": 0.5, "llama_4_scaling_beta": 0.0},
    },
}


def scaled(kind: str, base: float, pairs: int) -> dict:
    """What rope_parameters say of a kind of scaling."""
    if kind.endswith("by layer"):
        full = SCALED["yarn" if kind == "by layer" else "default"]
        near = {"rope_type": "default", "rope_theta": base / 10}
        return {"full_attention": {**full, "rope_theta": base}, "sliding_attention": near}
    if kind == "longrope":
        factors = [1.0 + at / 2 for at in range(pairs)]
        said = {"short_factor": factors, "long_factor": [2.0] * pairs, "original_max_position_embeddings": CONTEXT}
        return {"rope_type": "longrope", "factor": 2.0, "rope_theta": base, **said}
    return {**SCALED[kind], "rope_theta": base}


def drawn(family: str, chosen: Spread | random.Random) -> dict:
    """A random configuration of a family, every flag of it varied, as its config.json has it."""
    pick = chosen.choice
    heads, of_head, layers = pick([2, 4]), pick([4, 6, 8]), pick([2, 1, 3])
    own = {name: pick(options) for name, options in OPTIONS[family].items()}
    own |= {name: {"all": heads, "own": of_head}[value] for name, value in own.items() if value in ("all", "own")}
    common = {"vocab_size": VOCABULARY, "tie_word_embeddings": pick(TRUE_OR_FALSE)}
    common |= dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))
    if family in ("gpt2", "gpt_bigcode", "gptj"):
        return common | own | {"n_layer": layers, "n_head": heads, "n_embd": heads * of_head, "n_positions": CONTEXT}
    if family == "bloom":
        return common | own | {"n_layer": layers, "n_head": heads, "hidden_size": heads * of_head}
    if family == "falcon":
        own |= own.pop("kind")
    common |= {"hidden_size": heads * of_head, "max_position_embeddings": CONTEXT}
    if family == "gpt_neo":
        kinds = own.pop("kinds")
        return common | own | {"num_layers": 2 * len(kinds), "num_heads": heads, "attention_types": [[kinds, 2]]}
    if family in ("phi", "stablelm"):
        of_head = 8
        common["hidden_size"] = heads * of_head
    base = pick([10000.0, 500.0])
    fraction = own.pop("partial_rotary_factor", 1.0)
    if family in ("glm", "glm4"):
        fraction = 0.5
    pairs = int((own.get("head_dim") or of_head) * fraction) // 2
    rope = scaled(own.pop("rope_parameters", "default"), base, pairs)
    if fraction != 1.0 or family in ("gpt_neox", "phi", "stablelm"):
        rope["partial_rotary_factor"] = fraction
    if {"layer_types", "no_rope_layers"} & {*own}:
        layers = 3
    own = {name: value for name, value in own.items() if value is not None or name not in ("layer_types",)}
    if family in ("opt", "falcon"):
        deep = {"num_hidden_layers": layers, "num_attention_heads": heads}
        return common | own | deep | ({"rope_parameters": rope} if family == "falcon" else {"pad_token_id": 0})
    deep = {"num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": pick([20, 48])}
    return common | own | deep | {"rope_parameters": rope}


def theirs(family: str, fields: dict, seed: int) -> torch.nn.Module:
    """A model of transformers' own, in which no bias is 0 and no gain is 1."""
    kind = getattr(transformers, FAMILIES[family].architecture)
    torch.manual_seed(seed)
    # Where ALiBi is added step by step, transformers adds a Falcon's twice.
    config = kind.config_class(**fields, attn_implementation="sdpa" if fields.get("alibi") else "eager")
    model = kind(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model


def save(folder, model, special=()) -> None:
    """As people share it: transformers writes the model, and the tokenizer lies beside it."""
    model.save_pretrained(folder)
    Tokenizer.of_characters(ALPHABET, special).save(folder / "tokenizer.json")


ALL = [(family, seed) for family in DECODERS for seed in range(seeds(OPTIONS[family]))]


@pytest.fixture(scope="module", params=ALL, ids=str)
def both(request, tmp_path_factory):
    """(theirs, ours, tokens)."""
    family, seed = request.param
    folder = tmp_path_factory.mktemp(family)
    model = theirs(family, drawn(family, Spread(family, seed, OPTIONS[family])), seed)
    save(folder, model)
    tokens = torch.randint(VOCABULARY, (2, 14), generator=torch.Generator().manual_seed(seed))
    return model, load_pretrained(folder), tokens


@torch.no_grad()
def test_logits_and_patterns_are_those_of_transformers(both):
    model, ours, tokens = both
    has_patterns = not getattr(model.config, "alibi", False)  # of which it gives out others than it uses
    expected = model(tokens, output_attentions=has_patterns)
    logits, cache = ours.model.run_with_cache(tokens, names_filter=lambda name: name.endswith("hook_pattern"))
    for found in (logits, ours.model(tokens)):  # step by step, and in one call
        torch.testing.assert_close(found, expected.logits, atol=1e-4, rtol=0)
    if has_patterns:
        assert len(expected.attentions) == len(cache)
        for layer, pattern in enumerate(expected.attentions):
            torch.testing.assert_close(cache["pattern", layer], pattern, atol=1e-5, rtol=0)


SMALL_ONE = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4}
SMALL_ONE |= {"num_key_value_heads": 2, "intermediate_size": 20, "max_position_embeddings": 64, "use_cache": True}
AS_SHARED = {
    "llama": [{"rope_scaling": {"type": "linear", "factor": 4.0}, "rope_theta": 1e5}, {"rope_scaling": None}],
    "mistral": [{}, {"sliding_window": 5, "rope_theta": 1e6}],
    "qwen2": [
        {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 2, "use_mrope": False},
        {"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}},
        {"rope_scaling": {"type": "dynamic", "factor": 4.0}, "use_sliding_window": True, "sliding_window": None},
    ],
    "smollm3": [{"no_rope_layers": [1, 1, 1, 0], "max_window_layers": 28, "pad_token_id": 4}],
    "phi3": [
        {"pad_token_id": 2, "auto_map": {"AutoConfig": "configuration.Ours"}, "sliding_window": 7},
        {
            **{"pad_token_id": 2, "full_attn_mod": 1, "interpolate_factor": 1, "partial_rotary_factor": 0.75},
            **{"original_max_position_embeddings": 16, "tie_word_embeddings": True},
            "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.1, 1.2], "long_factor": [4.0] * 3},
        },
    ],
    "gemma": [{"head_dim": 6, "hidden_act": "gelu", "hidden_activation": None}],
    "gemma2": [{"head_dim": 6, "cache_implementation": "hybrid", "hidden_act": "gelu_pytorch_tanh"}],
    "gemma3_text": [
        {"head_dim": 6, "sliding_window": 5, "sliding_window_pattern": 2, "rope_local_base_freq": 500.0},
        {"head_dim": 6, "sliding_window": 5, "rope_theta": 1e5, "rope_scaling": {"type": "linear", "factor": 8.0}},
    ],
    "olmo2": [{"pad_token_id": 1}],
    "olmo3": [
        {
            **{"pad_token_id": 1, "sliding_window": 5, "rope_theta": 500000.0},
            "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 8},
        }
    ],
    "granite": [{}],
    "phi": [{}],
    "falcon": [{"intermediate_size": None, "num_key_value_heads": None, "ffn_hidden_size": 20}],
    "cohere": [{"model_max_length": 131072}],
    "cohere2": [{"sliding_window_pattern": 2, "sliding_window": 5, "layer_switch": 4, "rotary_pct": 1.0}],
    "glm": [{"head_dim": 8, "pad_token_id": 1}],
}
"""What files on the Hub say besides sizes: older spellings, fields that change nothing; and much that is left out."""


@pytest.mark.parametrize("family, said", [(family, said) for family, files in AS_SHARED.items() for said in files])
@torch.no_grad()
def test_files_as_people_share_them_are_read_as_transformers_reads_them(family, said, tmp_path):
    fields = {**SMALL_ONE, **said, "model_type": family}
    model = theirs(family, copy.deepcopy(fields), 3)
    save(tmp_path, model)
    (tmp_path / "config.json").write_text(json.dumps(fields))
    tokens = torch.arange(14)[None]
    torch.testing.assert_close(load_pretrained(tmp_path).model(tokens), model(tokens).logits, atol=1e-4, rtol=0)


@pytest.mark.parametrize("both", [each for each in ALL if each[1] == 0], indirect=True, ids=str)
@torch.no_grad()
def test_what_is_written_with_a_cache_is_what_transformers_writes(both):
    model, ours, tokens = both
    expected = model.generate(tokens[:1], max_new_tokens=8, do_sample=False, attention_mask=torch.ones(1, 14))
    steps = generate(ours.model, tokens[:1], max_new_tokens=8, sampling=Sampling(temperature=0))
    assert [step.token_id for step in steps] == expected[0, 14:].tolist()


@torch.no_grad()
def test_written_again_transformers_opens_it_with_equal_logits(both, tmp_path):
    _, ours, tokens = both
    family = export_pretrained(tmp_path / "out", ours)
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert again.config.model_type == family.model_type
    torch.testing.assert_close(again(tokens).logits, ours.model(tokens), atol=1e-4, rtol=0)


AS_BERT = {"architecture": "encoder-only", "norm": "post", "embed_norm": True, "masked_word_head": True}
AS_MODERN = {**AS_BERT, "norm": "pre", "norm_first_input": False, "mlp_gate": True, "positions": "rotary"}


def of_ours(**fields) -> Checkpoint:
    """A model of ours; its last token, where it is an encoder, stands for a masked word."""
    card = ModelCard(title="x", mask_token_id=10 if fields.get("architecture") == "encoder-only" else None)
    return Checkpoint(tiny_model(**fields), Tokenizer.of_characters("abcdefghij", ["[mask]"]), card)


@pytest.mark.parametrize(
    "fields, family",
    [
        ({"positions": "learned"}, "gpt2"),
        ({"positions": "rotary", "tie_embeddings": True}, "gpt_neox"),  # neighbours are turned: rows change places
        ({"positions": "rotary", "rotary_dims": 2, "parallel_residual": True}, "gpt_neox"),
        ({**MODERN["llama"], "n_kv_heads": 1, "rotary_pairs": "neighbours", "tie_embeddings": False}, "llama"),
        ({**AS_BERT, "positions": "learned", "n_segments": 2}, "bert"),
        ({**AS_BERT, "positions": "sinusoidal", "tie_embeddings": True, "attention_bias": False}, "bert"),
        ({**AS_MODERN, "attention_windows": (0, 3), "tie_embeddings": True}, "modernbert"),
        ({**AS_MODERN, "rotary_pairs": "halves", "mlp_bias": False, "unembed_bias": True}, "modernbert"),
    ],
)
@torch.no_grad()
def test_a_model_of_ours_goes_out_to_the_family_that_can_express_it(fields, family, tmp_path):
    ours = of_ours(**fields)
    assert export_pretrained(tmp_path / "out", ours).model_type == family
    again = getattr(transformers, FAMILIES[family].architecture).from_pretrained(tmp_path / "out")
    tokens = torch.randint(11, (2, 8))
    torch.testing.assert_close(again(tokens).logits, ours.model(tokens), atol=1e-4, rtol=0)
    back = load_pretrained(tmp_path / "out")
    torch.testing.assert_close(back.model(tokens), ours.model(tokens), atol=1e-5, rtol=0)
    assert back.card.mask_token_id == ours.card.mask_token_id


@pytest.mark.parametrize("name, family", [("martin-fierro", "opt"), ("shakespeare", "starcoder2")])
@torch.no_grad()
def test_shipped_models_go_out_too(name, family, tmp_path):
    """Biases that they haven't are zeros there, a sinusoidal table is a learned one, neighbours are halves."""
    shipped = load_checkpoint(ROOT / "checkpoints" / name)
    assert export_pretrained(tmp_path / "out", shipped).model_type == family
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    prompt = shipped.card.examples[0]
    tokens = torch.tensor([shipped.tokenizer.encode(prompt)])
    torch.testing.assert_close(again(tokens).logits, shipped.model(tokens), atol=1e-4, rtol=0)
    fast = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert fast(prompt)["input_ids"] == shipped.tokenizer.encode(prompt)


@pytest.mark.parametrize(
    "fields, known",
    [
        *(({"norm": "none"}, ""), ({"positions": "none"}, ""), ({"residual": False}, "")),
        ({"architecture": "encoder-decoder", "positions": "rotary"}, ""),
        ({**AS_BERT, "norm": "pre"}, r"BERT \(its norms come after each sublayer, on the stream\), .*ModernBERT"),
        ({**AS_BERT, "masked_word_head": False}, r"BERT \(it has a norm on its embeddings, and a head"),
    ],
)
def test_what_no_family_can_express_is_said_and_nothing_is_written(fields, known, tmp_path):
    with pytest.raises(CheckpointError, match=f"No family that is known has models of this shape; known are {known}"):
        export_pretrained(tmp_path / "out", of_ours(**fields))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("family", ["llama", "gpt2", "gpt_neox"])
@torch.no_grad()
def test_an_unembedding_of_its_own_counts_whatever_the_configuration_says(family, tmp_path):
    fields = drawn(family, random.Random(5)) | {"tie_word_embeddings": True}
    save(tmp_path, theirs(family, fields, 5))
    assert load_pretrained(tmp_path).model.config.tie_embeddings
    weights = load_file(tmp_path / "model.safetensors")
    (name,) = (name for name in weights if name.endswith(("embed_tokens.weight", "wte.weight", "embed_in.weight")))
    head = "embed_out.weight" if family == "gpt_neox" else "lm_head.weight"
    save_file({**weights, head: weights[name].clone()}, tmp_path / "model.safetensors", {"format": "pt"})
    assert load_pretrained(tmp_path).model.config.tie_embeddings
    save_file({**weights, head: torch.randn(weights[name].shape)}, tmp_path / "model.safetensors", {"format": "pt"})
    tokens = torch.arange(9)[None]
    expected = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)(tokens).logits
    torch.testing.assert_close(load_pretrained(tmp_path).model(tokens), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma3_text", "falcon", "bloom", "olmo2"])
@torch.no_grad()
def test_a_large_model_of_16_bits_computes_in_them_as_transformers_does(family, tmp_path, monkeypatch):
    dtype, apart = (torch.float16, 0.02) if family in ("llama", "falcon") else (torch.bfloat16, 0.1)
    monkeypatch.setattr(weight_numbers, "LARGE", 0)
    model = theirs(family, drawn(family, random.Random(5)), 5).to(dtype)
    save(tmp_path, model)
    (tmp_path / "model.safetensors").unlink()
    model.save_pretrained(tmp_path, max_shard_size="4KB")
    ours, tokens = (
        load_pretrained(tmp_path),
        torch.randint(VOCABULARY, (1, 9), generator=torch.Generator().manual_seed(0)),
    )
    assert {each.dtype for each in (*ours.model.parameters(), ours.model(tokens))} == {dtype}
    torch.testing.assert_close(ours.model(tokens), model(tokens).logits, atol=apart, rtol=0)
    steps = generate(ours.model, tokens, max_new_tokens=12, sampling=Sampling(temperature=0))
    written = torch.tensor([[step.token_id for step in steps]])
    logits = model(torch.cat((tokens, written), 1)).logits[:, 8:-1]  # theirs, before each token of ours
    assert (
        logits.amax(-1) - logits.gather(-1, written[..., None])[..., 0]
    ).max() <= apart  # the likeliest, or as likely


@pytest.mark.parametrize("kept", [0, 7, 0.5, 0.99, None])
def test_a_shard_that_is_cut_off_or_missing_is_refused(kept, tmp_path):
    model = theirs("llama", drawn("llama", random.Random(5)), 5)
    model.save_pretrained(tmp_path, max_shard_size="4KB")
    Tokenizer.of_characters(ALPHABET).save(tmp_path / "tokenizer.json")
    shard = sorted(tmp_path.glob("*.safetensors"))[-1]
    content = shard.read_bytes()
    if kept is None:
        shard.unlink()
    else:
        shard.write_bytes(content[: kept if isinstance(kept, int) else int(kept * len(content))])
    with pytest.raises(CheckpointError, match=shard.name):
        load_pretrained(tmp_path)
