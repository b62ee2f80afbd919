"""Tests every analysis with models whose layers were pruned, parametrised, quantised, wrapped or replaced."""

import re

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune

from tests.helpers import tiny_model
from transformer import (
    Checkpoint,
    CheckpointError,
    ModelCard,
    Tokenizer,
    ablation,
    deviations,
    direct_logit_attribution,
    export_pretrained,
    generate,
    load_checkpoint,
    logit_lens,
    ov_circuit,
    patching,
    qk_circuit,
    record,
    record_pass,
    save_checkpoint,
    show,
    trace_pass,
)
from transformer.inference.pass_outline import outline_of_text
from transformer.inference.tracing import deviations_of_text

TOKENS = torch.tensor([[1, 2, 0, 3, 4]])


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


class Adapted(nn.Module):
    """A linear layer with what LoRA learns beside it."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.linear = linear
        self.down, self.up = nn.Linear(linear.in_features, 2, bias=False), nn.Linear(2, linear.out_features, bias=False)

    def forward(self, x):
        return self.linear(x) + self.up(self.down(x))


class Biased(Adapted):
    """One that adds what its configuration doesn't know."""

    def forward(self, x):
        return super().forward(x) + 1


class Curved(Adapted):
    """One that isn't linear."""

    def forward(self, x):
        return self.linear(x) + self.up(self.down(x).tanh())


def replaced(model, change, *, last=""):
    """The model with each linear layer, or each of that name, changed."""
    for path, layer in list(model.named_modules()):
        parent, _, name = path.rpartition(".")
        if isinstance(layer, nn.Linear) and last in ("", name) and (put := change(layer)) is not None:
            setattr(model.get_submodule(parent), name, put)
    return model.eval()


def pruned(linear):
    prune.l1_unstructured(linear, "weight", 0.5)
    linear.weight_orig.mul_(1.5)  # as a step of training would


def computed(linear):
    forward = linear.forward
    linear.forward = lambda x: 1.5 * forward(x)


KINDS = {
    "adapted": lambda model: replaced(model, Adapted),
    "pruned": lambda model: replaced(model, pruned),
    "parametrised": lambda model: replaced(model, lambda linear: parametrizations.weight_norm(linear) and None),
    "computed": lambda model: replaced(model, computed),
    "quantised": lambda model: torch.ao.quantization.quantize_dynamic(model, {nn.Linear}),
}
REFUSED = {
    "curved": (lambda model: replaced(model, Curved, last="up"), r"blocks\.0\.mlp\.up is a Curved, .* no linear map"),
    "biased": (lambda model: replaced(model, Biased, last="unembed"), "unembed adds a bias, which the model's"),
    "another part": (
        lambda model: _with_part(model, "mlp", nn.Linear(8, 8)),
        r"blocks\.0\.mlp is a Linear, which has no",
    ),
    "another norm": (
        lambda model: _with_part(model, "ln1", nn.LayerNorm(8)),
        r"blocks\.0\.ln1 is a LayerNorm, which is",
    ),
}
TEXT, OTHER = [1, 2, 0, 3, 4], [1, 2, 5, 3, 4]


def _with_part(model, name, part):
    setattr((model.encoder if hasattr(model, "encoder") else model).blocks[0], name, part)
    return model.eval()


def _is_pair(model):
    return model.config.architecture == "encoder-decoder"


def _checkpoint(model):
    card = ModelCard(title="x", summary="y", group="z", parameters=1, examples=["a"], start_token_id=1, end_token_id=2)
    return Checkpoint(model, Tokenizer.of_characters("abcdefghijk"), card)


def _saved(model, folder):
    save_checkpoint(folder / "saved", _checkpoint(model))
    return load_checkpoint(folder / "saved").model


def _stack(model):
    return model.decoder if _is_pair(model) else model


WEIGHTS = ("W_E", "W_Q", "W_K", "W_V", "W_O", "W_in", "W_out", "b_Q", "b_K", "b_V", "b_O", "b_in", "b_out")
ANALYSES = {
    "weights": lambda model, source, folder: (
        [getattr(_stack(model), name) for name in WEIGHTS] + [model.W_U, model.b_U]
    ),
    "trace": lambda model, source, folder: deviations(trace_pass(model, TEXT, source)),
    "text": lambda model, source, folder: deviations_of_text(model, TEXT, source),
    "lens": lambda model, source, folder: logit_lens(trace_pass(model, TEXT, source)).of(TEXT),
    "attribution": lambda model, source, folder: direct_logit_attribution(trace_pass(model, TEXT, source), TEXT),
    "query and key": lambda model, source, folder: qk_circuit(model, _first_attention(model), 0).full(),
    "value and output": lambda model, source, folder: ov_circuit(model, _first_attention(model), 1).full(),
    "pass": lambda model, source, folder: show(record_pass(model, TEXT, source)),
    "outline": lambda model, source, folder: outline_of_text(model, TEXT, source),
    "recording": lambda model, source, folder: record(
        model,
        [torch.tensor([ids]) for ids in (source, TEXT) if ids],
        (),
        parameters=[f"{_first_attention(model)}.out.bias"],
    ),
    "page": lambda model, source, folder: None if source else show(_checkpoint(model), "abc"),
    "saved": lambda model, source, folder: _saved(model, folder),
    "exported": lambda model, source, folder: None if source else export_pretrained(folder / "out", _checkpoint(model)),
    "heads": lambda model, source, folder: None if source else _heads(model),
    # What needs no weight works with whatever computes.
    "ablation": lambda model, source, folder: ablation(model, TEXT, source).loss(TEXT),
    "patching": lambda model, source, folder: patching(model, TEXT, OTHER, 1, 2, source, source[::-1]),
    "writing": lambda model, source, folder: list(generate(model, TEXT, max_new_tokens=1, source=source)),
}
NEEDS_NO_WEIGHTS = ("ablation", "patching", "writing")


def _heads(model):
    cache = model.run_with_cache(TOKENS)[1]
    heads = cache.stack_head_results()
    biases = model.b_O.sum(0) + cache["mlp_out", 0] + cache["mlp_out", 1] + cache["embed"] + cache["pos_embed"]
    torch.testing.assert_close(heads.sum(0) + biases, cache["resid_post", -1], atol=0.1, rtol=0)
    return cache.logit_attrs(heads, 1)


def _first_attention(model):
    return "decoder.blocks.0.attn" if _is_pair(model) else "blocks.0.attn"


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("shape", [{}, {"architecture": "encoder-decoder", "tie_embeddings": True}])
@pytest.mark.parametrize("kind", [*KINDS, *REFUSED])
def test_every_analysis_follows_the_layer_that_is_there_or_refuses_it_by_name(kind, shape, tmp_path):
    model = (KINDS[kind] if kind in KINDS else REFUSED[kind][0])(tiny_model(**shape))
    source = [3, 4, 5] if _is_pair(model) else []
    inputs = [torch.tensor([ids]) for ids in (source, TEXT) if ids]
    rounding = 0.3 if kind == "quantised" else 1e-5  # which is of what enters its layers
    plain = model(*inputs)
    for name, analyse in ANALYSES.items():
        refused = kind in REFUSED and name not in NEEDS_NO_WEIGHTS
        of_whole = not (kind == "another norm" and name in ("weights", "heads"))
        try:
            found = analyse(model, source, tmp_path)
        except (ValueError, CheckpointError) as error:
            assert refused and re.search(REFUSED[kind][1].replace("blocks", r"(encoder\.)?blocks"), str(error)), (
                name,
                error,
            )
            continue
        parts = {"recording", "heads", "weights", "page", "exported"}
        assert not refused or name in parts or not of_whole, name
        if name in ("trace", "text"):
            assert all(each.largest <= rounding * max(each.magnitude, 1.0) for each in found), found
        if name == "saved":
            assert (found(*inputs) - plain).abs().max() <= rounding * plain.abs().max()
    looked, _ = model.run_with_cache(*inputs, names_filter=lambda name: name.endswith("hook_result"))
    torch.testing.assert_close(looked, plain)
