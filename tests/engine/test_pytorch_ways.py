"""Tests models with PyTorch's own tools: replaced parts, parametrizations, compilation, casting."""

import copy
import warnings

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune

from tests.helpers import tiny_encoder_decoder, tiny_model
from transformer import ActivationCache, ablation, deviations, generate, record_pass, trace_pass
from transformer.model.layers import make_mlp

TOKENS = torch.tensor([[1, 2, 0, 3, 4]])


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


class TestParts:
    @pytest.mark.parametrize("put_in", ["add_module", "register_module", "setattr", "_modules"])
    def test_a_part_that_is_put_in_is_run_and_looked_at(self, put_in):
        model = tiny_model()
        before, block, other = model(TOKENS), model.blocks[1], make_mlp(model.config)
        if put_in == "setattr":
            block.mlp = other
        elif put_in == "_modules":  # as PyTorch's quantisation does
            block._modules["mlp"] = other
        else:
            getattr(block, put_in)("mlp", other)
        logits, cache = model.run_with_cache(TOKENS)
        assert not torch.allclose(logits, before)
        assert block.mlp is other
        torch.testing.assert_close(cache["mlp.hook_pre", 1], other.up(cache["hook_out", 1, "ln2"]))

    def test_a_copied_part_is_looked_at_where_it_stands(self):
        model = tiny_model()
        expected = model.run_with_cache(TOKENS)[1]["mlp.hook_post", 0]
        model.blocks[0].mlp = copy.deepcopy(model.blocks[0].mlp)
        torch.testing.assert_close(model.run_with_cache(TOKENS)[1]["mlp.hook_post", 0], expected)

    def test_a_part_that_is_missing_is_missed_as_in_pytorch(self):
        block = tiny_model().blocks[0]
        del block.mlp
        assert not hasattr(block, "mlp")
        with pytest.raises(AttributeError, match="object has no attribute 'mlp'"):
            block.mlp  # noqa: B018
        block.mlp = "anything"
        assert block.mlp == "anything"

    def test_a_hook_of_pytorch_is_called_on_every_module(self):
        model = tiny_model()
        called = []
        named = {name: each for name, each in model.named_modules() if not isinstance(each, nn.ModuleList)}
        named = {name: each for name, each in named.items() if not name.endswith("hook_result")}  # another way to W_O
        for name, module in named.items():
            module.register_forward_hook(lambda module, given, found, name=name: called.append(name))
        model(TOKENS)
        assert set(called) == set(named)


class TestWeights:
    def test_pruned_weights_count(self):
        model = tiny_model()
        prune.l1_unstructured(model.blocks[0].attn.qkv, "weight", amount=0.5)
        prune.random_unstructured(model.blocks[0].ln1, "weight", amount=1.0)
        _, cache = model.run_with_cache(TOKENS)
        torch.testing.assert_close(cache["out", 0, "ln1"], model.blocks[0].ln1.bias.expand(1, 5, -1))

    def test_a_parametrised_weight_is_the_same_weight(self):
        model = tiny_model()
        before = model(TOKENS)
        parametrizations.weight_norm(model.blocks[1].mlp.up)
        torch.testing.assert_close(model(TOKENS), before)
        model.blocks[1].mlp.up.parametrizations.weight.original0.zero_()
        assert not torch.allclose(model(TOKENS), before)

    @pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
    def test_linear_layers_can_be_quantised(self):
        model = tiny_model()
        quantised = torch.ao.quantization.quantize_dynamic(model, {nn.Linear})
        assert type(quantised.blocks[0].attn.qkv) is not nn.Linear
        assert (quantised(TOKENS) - model(TOKENS)).abs().max() < 0.1 * model(TOKENS).abs().max()
        assert next(generate(quantised, TOKENS[0], max_new_tokens=1)).token_id < model.config.vocab_size

    @pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
    @pytest.mark.parametrize("cast", ["half", "bfloat16"])
    def test_narrower_numbers_go_all_the_way(self, cast, positions):
        model = getattr(tiny_model(positions=positions), cast)()
        assert model(TOKENS).dtype == getattr(torch, cast)
        recording = record_pass(model, TOKENS)
        assert recording.from_bytes(recording.to_bytes()).tensors["logits"].shape == (5, model.config.vocab_size)
        off = {each.name: each.largest / max(each.magnitude, 1) for each in deviations(trace_pass(model, TOKENS))}
        assert max(off.values()) < 0.05
        assert torch.isfinite(ablation(model, TOKENS).loss(TOKENS[0])).all()


MODELS = {
    "sinusoidal": (lambda: tiny_model(), 1),
    "rotary, padded": (lambda: tiny_model(positions="rotary", pad_token_id=0), 1),
    "translator": (lambda: tiny_encoder_decoder(pad_token_id=0), 2),
}


class TestCompiling:
    @pytest.fixture(params=MODELS)
    def given(self, request):
        make, inputs = MODELS[request.param]
        torch._dynamo.reset()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the compiler's own
            yield make(), [TOKENS] * inputs

    def test_one_graph_while_nobody_looks(self, given):
        model, inputs = given
        compiled = torch.compile(model, fullgraph=True, backend="eager")
        for shorter in (5, 3):
            some = [tokens[:, :shorter] for tokens in inputs]
            torch.testing.assert_close(compiled(*some), model(*some))

    def test_who_looks_sees_all_the_same(self, given):
        model, inputs = given
        compiled = torch.compile(model, backend="eager")
        plain, _ = compiled(*inputs), compiled(*inputs)
        hooks = [(lambda name: name.endswith("hook_mlp_out"), lambda tensor, hook: tensor * 0)]
        with model.hooked(hooks):
            torch.testing.assert_close(compiled(*inputs), model(*inputs))
            assert not torch.allclose(compiled(*inputs), plain)
        assert isinstance(compiled.run_with_cache(*inputs)[1], ActivationCache)
        torch.testing.assert_close(compiled(*inputs), plain)

    def test_it_can_be_exported(self, given):
        model, inputs = given
        exported = torch.export.export(model, tuple(inputs)).module()
        for tokens in (TOKENS, TOKENS.flip(1), torch.ones_like(TOKENS)):  # with padding and without
            some = [tokens] * len(inputs)
            torch.testing.assert_close(exported(*some), model(*some))
