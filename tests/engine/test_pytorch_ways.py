"""Tests models with PyTorch's own tools: replaced parts, parametrizations, compilation, casting."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.checkpoint import checkpoint

from tests.helpers import (
    MODERN,
    close,
    modern_config,
    some_inputs,
    some_tokens,
    tiny_config,
    tiny_encoder_decoder,
    tiny_model,
    unpadded,
)
from transformer import ActivationCache, Steer, checkpoint_contexts
from transformer.inference.interventions import hooks_of
from transformer.model import positions
from transformer.model.caches import KeyValueCache

TOKENS = torch.tensor([[1, 2, 0, 3, 4]])


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def test_a_hook_of_pytorch_is_called_on_every_module():
    model = tiny_model()
    called = []
    named = {name: each for name, each in model.named_modules() if not isinstance(each, nn.ModuleList)}
    named = {name: each for name, each in named.items() if not name.endswith("hook_result")}  # another way to W_O
    for name, module in named.items():
        module.register_forward_hook(lambda module, given, found, name=name: called.append(name))
    model(TOKENS)
    assert set(called) == set(named)


SHAPES = {kind: modern_config(kind) for kind in MODERN}
SHAPES |= {kind: tiny_config(positions=kind) for kind in ("sinusoidal", "learned", "rotary", "none")}
SHAPES |= {
    "translator": tiny_config(architecture="encoder-decoder", positions="rotary"),
    "encoder": tiny_config(architecture="encoder-only", masked_word_head=True, n_segments=2, separator_token_id=3),
    "norms of queries, by length": modern_config("norms of queries", norm_kind="rms"),
    "uniform": tiny_config(attention="uniform"),
}
NUMBERS = {"half": torch.half, "brain": torch.bfloat16, "double": torch.double}
ROUNDING = {"half": 0.02, "brain": 0.05, "double": 1e-9, "norms": 0.02, "automatic": 0.05}
"""Of the largest logit."""


@pytest.mark.parametrize("kind", SHAPES)
def test_what_is_looked_at_is_what_is_computed_in_any_type_of_numbers(kind):
    """Though products of queries and keys, and squares of either, exceed what 16 bits hold."""
    config, inputs = SHAPES[kind], some_inputs(SHAPES[kind])
    shift = (140_000 / config.d_head) ** 0.5
    for numbers, rounding in ROUNDING.items():
        model = tiny_model(config)
        for name, parameter in model.named_parameters():
            if name.endswith(("attn.qkv.bias", "cross_attn.q.bias", "cross_attn.kv.bias")):
                parameter[: (config.n_heads + config.kv_heads * (".q." not in name)) * config.d_head] += shift
        model = model.to(NUMBERS.get(numbers, torch.half if numbers == "norms" else torch.float))
        if numbers == "norms":  # these in float32, all else in 16 bits
            for name, module in model.named_modules():
                if name.rpartition(".")[2].startswith("ln") or name.endswith("_norm"):
                    module.float()
        with torch.autocast("cpu", torch.half, enabled=numbers == "automatic"):
            plain = model(*inputs).double()
            looked, cache = model.run_with_cache(*inputs, names_filter=model.hook_names())
        torch.testing.assert_close(looked.double(), plain, atol=rounding * float(plain.abs().max()), rtol=0)
        assert all(cache[name].isfinite().all() for name in cache if not name.endswith("hook_attn_scores"))
        if numbers == "half" and "blocks.0.attn.hook_raw_scores" in cache and config.attention_bias:
            assert cache["raw_scores", 0].abs().max() > 65504 or config.qk_norm != "none" or config.qkv_clip


MODELS = {
    "sinusoidal": (tiny_model, 1),
    "rotary, padded": (lambda: tiny_model(positions="rotary", pad_token_id=0), 1),
    "translator": (lambda: tiny_encoder_decoder(pad_token_id=0), 2),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_can_be_compiled_and_exported(kind):
    make, count = MODELS[kind]
    model, inputs = make(), [TOKENS] * count
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the compiler's own
        exported = torch.export.export(model, tuple(inputs)).module()
        for tokens in (TOKENS, TOKENS.flip(1), torch.ones_like(TOKENS)):  # with padding and without
            torch.testing.assert_close(exported(*[tokens] * count), model(*[tokens] * count))
        torch._dynamo.reset()
        counters.clear()
        compiled = torch.compile(model, backend="eager")
        plain = compiled(*inputs)
        torch.testing.assert_close(plain, model(*inputs))
        assert counters["stats"]["unique_graphs"] == 1 and not counters["graph_break"]  # while nobody looks
        hooks = [(lambda name: name.endswith("hook_mlp_out"), lambda tensor, hook: tensor * 0)]
        with model.hooked(hooks):  # who looks sees all the same
            torch.testing.assert_close(compiled(*inputs), model(*inputs))
            assert not torch.allclose(compiled(*inputs), plain)
        assert isinstance(compiled.run_with_cache(*inputs)[1], ActivationCache)
        torch.testing.assert_close(compiled(*inputs), plain)
        if kind == "rotary, padded":
            shorter = TOKENS[:, :3]
            torch.testing.assert_close(compiled(shorter), model(shorter))


def keeping_no_tables(model, inputs):
    positions._rotation_table.cache_clear()
    positions._sinusoidal_table.cache_clear()
    return model, inputs


def exported_at_any_length(model, inputs):
    names = ("source", "target") if len(inputs) == 2 else ("tokens",)
    shapes = {name: {1: torch.export.Dim(f"{name}_length", min=2, max=8)} for name in names}
    exported = torch.export.export(model, inputs, dynamic_shapes=shapes).module()
    for pos in (2, 3, 6):
        some = [tokens[:, :pos] for tokens in inputs]
        close(exported(*some), model(*some))


def faked(model, inputs):
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert type(model(*map(mode.from_tensor, inputs))) is not Tensor


def mapped(model, inputs):
    def recorded(*texts):
        _, cache = model.run_with_cache(*(text[None] for text in texts), names_filter=lambda name: True)
        return {name: tensor[0] for name, tensor in cache.items() if not name.endswith("hook_mask")}

    found, (_, expected) = torch.func.vmap(recorded)(*inputs), model.run_with_cache(*inputs)
    for name in expected:
        if not name.endswith("hook_mask"):
            close(found[name], expected[name])


def differentiated(model, inputs):
    weights = {name: weight.detach() for name, weight in model.named_parameters()}
    torch.func.grad(lambda weights: torch.func.functional_call(model, weights, inputs).sum())(weights)


def without_history(model, inputs):
    with torch.inference_mode():
        model(*inputs)


def on_another_device(model, inputs):
    with torch.device("meta"):
        assert model(*inputs).device.type == "cpu"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["sinusoidal", "all at once", "translator"])
def test_what_outlives_a_call_is_made_under_none_of_its_modes(kind):
    """And each of them works: with lengths that are open, with tensors that have no numbers, and with many at once."""
    model, inputs = tiny_model(SHAPES[kind]), some_inputs(SHAPES[kind])
    expected = model(*inputs)
    for way in (faked, mapped, differentiated, without_history, on_another_device, exported_at_any_length):
        way(*keeping_no_tables(model, inputs))
        found = model(*inputs)
        assert type(found) is Tensor and torch.equal(found, expected), way
        with torch.enable_grad():
            model(*inputs).sum().backward()


@pytest.mark.parametrize("order", [(True, False, True), (False, True, False), (True, True, False)])
def test_what_is_cached_in_inference_mode_is_used_outside_of_it(order):
    """Keys and values, and what an intervention has of another text."""
    for model in (tiny_model(), tiny_encoder_decoder(positions="rotary")):
        tokens = some_tokens(model.config)
        source, past = [tokens] * _is_pair(model), KeyValueCache.for_model(model.config)
        prefix = "decoder." * _is_pair(model)
        other = {"tokens": (1, 2, 3), "source": (1, 2) * _is_pair(model)}
        hooks = hooks_of([Steer(f"{prefix}blocks.0.hook_mlp_out", against=(2,), **other)], model)
        for step, inside in enumerate(order):
            with torch.enable_grad(), torch.inference_mode(inside):
                found = model(*source, tokens[:, 2 * step : 2 * step + 2], past)
                changed = model.run_with_hooks(*source, tokens, fwd_hooks=hooks)
        with torch.enable_grad():
            torch.testing.assert_close(found.clone(), model(*source, tokens[:, :6])[:, -2:])
            if not order[-1]:
                (found.sum() + changed.sum()).backward()


def _is_pair(model):
    return model.config.architecture == "encoder-decoder"


def checkpointed(model, **options):
    """The same model, each block of which is computed again for its gradient."""
    for block in model.blocks:
        forward = block.forward
        block.forward = lambda *given, forward=forward: checkpoint(forward, *given, **options)
    return model


class TestCheckpointing:
    """What a call changes is changed in a block that is computed again, too, or else is refused."""

    HOOKS = (("blocks.1.attn.hook_z", lambda z, hook: z * 0), ("blocks.0.hook_mlp_out", lambda x, hook: x.mul_(2)))

    @pytest.fixture(autouse=True)
    def with_gradients(self, without_gradients):
        with torch.enable_grad():
            yield

    def inside(self, model, tokens):
        with model.hooked(self.HOOKS):
            model(tokens).sum().backward()

    def outside(self, model, tokens):
        with model.hooked(self.HOOKS[:1]), model.hooked(self.HOOKS[1:]):
            loss = model(tokens).sum()
        loss.backward()

    def twice(self, model, tokens):
        loss = model.run_with_hooks(tokens, fwd_hooks=self.HOOKS).sum()
        loss.backward(retain_graph=True)
        loss.backward()

    def elsewhere(self, model, tokens):
        loss = model.run_with_hooks(tokens, fwd_hooks=self.HOOKS).sum()
        with ThreadPoolExecutor(1) as thread:
            thread.submit(loss.backward).result()

    def everywhere(self, model, tokens):
        asked = {"of": torch.sum, "names_filter": model.hook_names(), "fwd_hooks": self.HOOKS}
        hooks = [("blocks.1.hook_mlp_out", lambda gradient, hook: gradient * 2)]
        return model.run_with_gradients(tokens, **asked, bwd_hooks=hooks)[1]

    @pytest.mark.parametrize("way", ["inside", "outside", "twice", "elsewhere", "everywhere"])
    def test_gradients_are_those_of_the_changed_model(self, way):
        tokens, expected = unpadded(tiny_config()), tiny_model()
        model = checkpointed(tiny_model(), use_reentrant=False, context_fn=checkpoint_contexts)
        found, gradients = getattr(self, way)(model, tokens), getattr(self, way)(expected, tokens)
        if found is not None:
            torch.testing.assert_close(dict(found), dict(gradients))
        for parameter, plain in zip(model.parameters(), expected.parameters(), strict=True):
            torch.testing.assert_close(parameter.grad, plain.grad)
        for use_reentrant in (False, True):
            with pytest.raises(RuntimeError, match=r"computed again.*context_fn=transformer\.checkpoint_contexts"):
                getattr(self, way)(checkpointed(tiny_model(), use_reentrant=use_reentrant), tokens)

    @pytest.mark.parametrize("use_reentrant", [False, True])
    def test_nothing_is_refused_where_nothing_is_changed_or_there_is_no_gradient(self, use_reentrant):
        tokens, plain = unpadded(tiny_config()), tiny_model()
        model = checkpointed(tiny_model(), use_reentrant=use_reentrant)
        close(model(tokens), plain(tokens))
        model(tokens).sum().backward()
        with torch.no_grad():
            changed = model.run_with_hooks(tokens, fwd_hooks=self.HOOKS)
            close(changed, plain.run_with_hooks(tokens, fwd_hooks=self.HOOKS))
            assert list(model.run_with_cache(tokens)[1]) == list(plain.run_with_cache(tokens)[1])
