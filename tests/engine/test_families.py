"""Tests pretrained families at tiny sizes against transformers."""

import json
import random
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.helpers import tiny_model
from transformer import Card, Checkpoint, CheckpointError, Sampling, Tokenizer, generate, load_checkpoint
from transformer.checkpoints.exporting import export_pretrained
from transformer.checkpoints.families import FAMILIES
from transformer.checkpoints.pretrained import load_pretrained

transformers = pytest.importorskip("transformers", reason="requirements-dev.txt installs what models are compared with")
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

ROOT = Path(__file__).resolve().parents[2]
VOCABULARY, CONTEXT = 31, 24
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


SEEDS = range(4)


class Spread:
    """Chooses at random, but so that the seeds together choose every option of at most as many."""

    def __init__(self, family: str, seed: int) -> None:
        self.family, self.seed, self.calls = family, seed, 0

    def choice(self, options):
        """One of the options, by how many were chosen before."""
        self.calls += 1
        order = [options[at % len(options)] for at in SEEDS]
        random.Random(f"{self.family} {self.calls}").shuffle(order)
        return order[self.seed]


def drawn(family: str, chosen: Spread | random.Random) -> dict:
    """A random configuration of a family, every flag of it varied, as its config.json has it."""
    pick = chosen.choice
    heads, of_head, layers = pick([2, 4]), pick([4, 6, 8]), pick([1, 2, 3])
    width, tied = heads * of_head, pick([True, False])
    no_ends = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    common = {"vocab_size": VOCABULARY, "tie_word_embeddings": tied, **no_ends}
    deep = {
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "hidden_size": width,
        "max_position_embeddings": CONTEXT,
        "intermediate_size": pick([20, 48]),
    }
    base = pick([10000.0, 500.0])
    match family:
        case "gpt2":
            return common | {
                "n_layer": layers,
                "n_head": heads,
                "n_embd": width,
                "n_inner": pick([None, 20]),
                "n_positions": CONTEXT,
                "activation_function": pick(["gelu_new", "gelu", "relu", "silu"]),
                "layer_norm_epsilon": pick([1e-5, 1e-3]),
                "scale_attn_weights": pick([True, False]),
            }
        case "gpt_neo":
            kinds = pick([["global"], ["local"], ["global", "local"]])
            return common | {
                "num_layers": 2 * len(kinds),
                "num_heads": heads,
                "hidden_size": width,
                "intermediate_size": pick([None, 20]),
                "max_position_embeddings": CONTEXT,
                "attention_types": [[kinds, 2]],
                "window_size": pick([3, 5, 40]),
                "activation_function": pick(["gelu_new", "relu"]),
                "layer_norm_epsilon": pick([1e-5, 1e-3]),
            }
        case "gpt_neox":
            fraction = pick([0.5, 1.0] if of_head != 8 else [0.25, 0.5, 1.0])
            fraction = 1.0 if of_head == 6 else fraction
            return (
                common
                | deep
                | {
                    "rope_parameters": {"rope_type": "default", "rope_theta": base, "partial_rotary_factor": fraction},
                    "use_parallel_residual": pick([True, False]),
                    "attention_bias": pick([True, False]),
                    "hidden_act": pick(["gelu", "relu"]),
                    "layer_norm_eps": pick([1e-5, 1e-3]),
                }
            )
        case "llama":
            return (
                common
                | deep
                | {
                    "num_key_value_heads": pick([1, 2, heads]),
                    "head_dim": pick([of_head, 10]),
                    "rope_parameters": {"rope_type": "default", "rope_theta": base},
                    "attention_bias": pick([True, False]),
                    "mlp_bias": pick([True, False]),
                    "rms_norm_eps": pick([1e-6, 1e-3]),
                    "hidden_act": pick(["silu", "gelu"]),
                }
            )
        case "qwen2":
            return (
                common
                | deep
                | {
                    "num_key_value_heads": pick([1, 2, heads]),
                    "rope_parameters": {"rope_type": "default", "rope_theta": base},
                    "use_sliding_window": pick([True, False]),
                    "sliding_window": pick([3, 40]),
                    "max_window_layers": 1,
                    "rms_norm_eps": pick([1e-6, 1e-3]),
                }
            )


def theirs(family: str, fields: dict, seed: int) -> torch.nn.Module:
    """A model of transformers' own, in which no bias is 0 and no gain is 1."""
    kind = getattr(transformers, FAMILIES[family].architecture)
    torch.manual_seed(seed)
    config = kind.config_class(**fields, attn_implementation="eager")
    model = kind(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model


def save(folder, model) -> None:
    """As people share it: transformers writes the model, and the tokenizer lies beside it."""
    model.save_pretrained(folder)
    Tokenizer.of_characters(ALPHABET).save(folder / "tokenizer.json")


@pytest.fixture(scope="module", params=[(family, seed) for family in FAMILIES for seed in SEEDS], ids=str)
def both(request, tmp_path_factory):
    """(theirs, ours, tokens)."""
    family, seed = request.param
    folder = tmp_path_factory.mktemp(family)
    model = theirs(family, drawn(family, Spread(family, seed)), seed)
    save(folder, model)
    tokens = torch.randint(VOCABULARY, (2, 14), generator=torch.Generator().manual_seed(seed))
    return model, load_pretrained(folder), tokens


FLAGS = {
    "gpt2": ("scale_attn_weights", "n_inner", "activation_function"),
    "gpt_neo": ("attention_types", "window_size", "intermediate_size", "activation_function"),
    "gpt_neox": ("use_parallel_residual", "partial_rotary_factor", "rope_theta", "attention_bias", "hidden_act"),
    "llama": ("num_key_value_heads", "head_dim", "rope_theta", "attention_bias", "mlp_bias", "hidden_act"),
    "qwen2": ("num_key_value_heads", "use_sliding_window", "sliding_window", "rope_theta"),
}
"""What tells models of a family apart, sizes left out."""


@pytest.mark.parametrize("family", FAMILIES)
def test_every_flag_of_a_family_is_varied(family):
    made = [drawn(family, Spread(family, seed)) for seed in SEEDS]
    made = [fields | fields.get("rope_parameters", {}) for fields in made]
    for flag in ("tie_word_embeddings", *FLAGS[family]):
        assert len({str(fields[flag]) for fields in made}) >= 2, flag
    if family in ("llama", "qwen2"):  # one head of keys for all, some for a few each, and one for each
        ratios = {fields["num_key_value_heads"] / fields["num_attention_heads"] for fields in made}
        assert 1 in ratios and min(ratios) < 1
    if family == "gpt_neo":
        assert {str(fields["attention_types"][0][0]) for fields in made} >= {"['global']", "['local']"}


@torch.no_grad()
def test_logits_are_those_of_transformers(both):
    model, ours, tokens = both
    torch.testing.assert_close(ours.model(tokens), model(tokens).logits, atol=1e-4, rtol=0)


@torch.no_grad()
def test_recorded_attention_is_what_transformers_gives_out(both):
    model, ours, tokens = both
    patterns = model(tokens, output_attentions=True).attentions
    _, cache = ours.model.run_with_cache(tokens, names_filter=lambda name: name.endswith("hook_pattern"))
    assert len(patterns) == len(cache)
    for layer, pattern in enumerate(patterns):
        torch.testing.assert_close(cache["pattern", layer], pattern, atol=1e-5, rtol=0)


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


@pytest.mark.parametrize(
    "fields, family",
    [
        ({"positions": "learned"}, "gpt2"),
        ({"positions": "rotary", "tie_embeddings": True}, "gpt_neox"),  # neighbours are turned: rows change places
        ({"positions": "rotary", "rotary_dims": 2, "parallel_residual": True}, "gpt_neox"),
        (
            {
                "positions": "rotary",
                "norm_kind": "rms",
                "mlp_gate": True,
                "activation": "silu",
                "attention_bias": False,
                "mlp_bias": False,
                "n_kv_heads": 1,
            },
            "llama",
        ),
    ],
)
@torch.no_grad()
def test_a_model_of_ours_goes_out_to_the_family_that_can_express_it(fields, family, tmp_path):
    ours = Checkpoint(tiny_model(**fields), Tokenizer.of_characters("abcdefghijk"), Card(title="x"))
    assert export_pretrained(tmp_path / "out", ours).model_type == family
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    tokens = torch.randint(11, (2, 8))
    torch.testing.assert_close(again(tokens).logits, ours.model(tokens), atol=1e-4, rtol=0)
    back = load_pretrained(tmp_path / "out")
    torch.testing.assert_close(back.model(tokens), ours.model(tokens), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name, family", [("martin-fierro", "gpt2"), ("shakespeare", "gpt_neox")])
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
    "fields", [{"norm": "post"}, {"positions": "none"}, {"residual": False}, {"architecture": "encoder-decoder"}]
)
def test_what_no_family_can_express_is_said_and_nothing_is_written(fields, tmp_path):
    ours = Checkpoint(tiny_model(**fields), Tokenizer.of_characters("abcdefghijk"), Card(title="x"))
    with pytest.raises(CheckpointError, match="No family that is known has models of this shape"):
        export_pretrained(tmp_path / "out", ours)
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


def test_several_shards_are_one_model(tmp_path):
    model = theirs("llama", drawn("llama", random.Random(5)), 5)
    save(tmp_path, model)
    whole = load_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    model.save_pretrained(tmp_path, max_shard_size="4KB")
    assert json.loads((tmp_path / "model.safetensors.index.json").read_text())["weight_map"]
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    tokens = torch.randint(VOCABULARY, (1, 9))
    assert torch.equal(load_pretrained(tmp_path).model(tokens), whole.model(tokens))


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
