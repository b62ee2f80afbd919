"""Tests what hooks see and change, and that each belongs to one call."""

import contextlib
import copy
import itertools
import math
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tests.helpers import any_configs, close, some_inputs, some_tokens, tiny_config, tiny_model, unpadded
from transformer import (
    ActivationCache,
    DecoderOnly,
    HookPoint,
    ModelConfig,
    Sampling,
    ablation,
    deviations,
    generate,
    record_pass,
    trace_pass,
)
from transformer.inference.generation import write_greedily

GREEDY = Sampling(temperature=0)


def record(config: ModelConfig) -> tuple[DecoderOnly, Tensor, ActivationCache]:
    """A model, its logits for some tokens, and everything that can be recorded of that pass."""
    model = tiny_model(config)
    return model, *model.run_with_cache(*some_inputs(config), names_filter=model.hook_names())


def change(tensor: Tensor, hook: HookPoint) -> Tensor:
    return tensor.logical_not() if tensor.dtype == torch.bool else tensor * 1.5 + 0.25


@dataclass(frozen=True)
class Change:
    """`change` at a point, as an intervention."""

    point: str

    def check(self, config):
        """Any will do."""

    def fwd_hooks(self, model, start=None):
        return [(self.point, change)]


class TestRecording:
    def test_a_filter_is_none_a_name_a_list_or_a_predicate(self):
        model = tiny_model()
        tokens = some_tokens(model.config)

        def names(names_filter) -> list[str]:
            return list(model.run_with_cache(tokens, names_filter=names_filter)[1])

        assert names(None) == [name for name in model.hook_names() if not name.endswith("hook_result")]
        assert names("hook_embed") == ["hook_embed"]
        assert names(["ln_final.hook_scale", "hook_embed"]) == ["hook_embed", "ln_final.hook_scale"]
        assert names(lambda name: name.endswith("hook_z")) == ["blocks.0.attn.hook_z", "blocks.1.attn.hook_z"]
        assert names("blocks.1.attn.hook_result") == ["blocks.1.attn.hook_result"]
        assert names(()) == []

    @given(any_configs(), st.data())
    def test_what_is_recorded_does_not_depend_on_what_else_is(self, config, data):
        model, _, everything = record(config)
        chosen = data.draw(st.lists(st.sampled_from(model.hook_names()), unique=True))
        logits, cache = model.run_with_cache(*some_inputs(config), names_filter=chosen)
        assert set(cache) == set(chosen)
        for name in chosen:
            close(cache[name].float(), everything[name].float())
        close(logits, model(*some_inputs(config)))

    @given(any_configs(), st.data())
    def test_a_pass_can_end_with_the_last_point_that_is_wanted(self, config, data):
        model, _, everything = record(config)
        names = list(everything)  # in the order of the pass
        chosen = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        reached = []
        cache = model.run_until_recorded(
            *some_inputs(config),
            names_filter=chosen,
            fwd_hooks=[(lambda name: True, lambda tensor, hook: reached.append(hook.name))],
        )
        assert list(cache) == [name for name in names if name in chosen]
        for name in chosen:
            close(cache[name].float(), everything[name].float())
        assert reached[-1] == list(cache)[-1]

    def test_what_is_recorded_until_then_is_what_the_hooks_left(self):
        model = tiny_model()
        tokens, double = some_tokens(model.config), ("blocks.0.hook_mlp_out", lambda tensor, hook: 2 * tensor)
        wanted = ["blocks.0.hook_mlp_out", "blocks.1.hook_resid_pre"]
        cache = model.run_until_recorded(tokens, names_filter=wanted, fwd_hooks=[double])
        _, whole = model.run_with_cache(tokens, names_filter=wanted, fwd_hooks=[double])
        assert all(torch.equal(cache[name], whole[name]) for name in wanted)
        with pytest.raises(ValueError, match="no hook point"):
            model.run_until_recorded(tokens, names_filter="blocks.7.hook_mlp_out")
        with pytest.raises(ZeroDivisionError):
            model.run_until_recorded(tokens, names_filter=wanted, fwd_hooks=[(wanted[0], lambda *_: 1 / 0)])
        assert len(model.run_until_recorded(tokens, names_filter=())) == 0

    def test_recorded_tensors_are_detached_and_leave_the_gradient_alone(self):
        model = tiny_model()
        tokens = some_tokens(model.config)
        logits, cache = model.run_with_cache(tokens)
        assert not any(tensor.requires_grad for tensor in cache.values())
        logits.sum().backward()
        recorded = [parameter.grad.clone() for parameter in model.parameters()]
        model.zero_grad()
        model(tokens).sum().backward()
        for ours, plain in zip(recorded, (p.grad for p in model.parameters()), strict=True):
            close(ours, plain)

    @pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
    def test_recorded_positions_are_a_copy(self, positions):
        model = tiny_model(positions=positions)
        tokens = some_tokens(model.config, batch=1)
        before = model(tokens)
        model.run_with_cache(tokens)[1]["pos_embed"].zero_()
        with torch.no_grad():
            model.run_with_hooks(tokens, fwd_hooks=[("hook_pos_embed", lambda rows, hook: rows.zero_())])
        assert torch.equal(model(tokens), before)

    @pytest.mark.parametrize(
        ("names_filter", "words"),
        [
            ("blocks.0.attn.hook_patern", r"hook_patern.* Did you mean blocks\.0\.attn\.hook_pattern"),
            (["hook_embed", "blocks.0.attn.hook_patern"], r"Did you mean blocks\.0\.attn\.hook_pattern"),
            ("pattern", r"Did you mean blocks\.0\.attn\.hook_pattern\? For some of all layers, give a fun"),
            ("zzz", r"'zzz' is no hook point of this model\.$"),
        ],
    )
    def test_a_name_that_is_none_is_refused_with_a_suggestion(self, names_filter, words):
        with pytest.raises(ValueError, match=words):
            tiny_model().run_with_cache(some_tokens(tiny_config()), names_filter=names_filter)

    def test_a_copy_is_recorded_as_itself_and_no_part_of_it_is_an_old_one(self):
        """Parts are found without nn.Module's search; what is found has to be what the search finds."""
        model, other = tiny_model(), tiny_model(seed=5)
        twin, tokens = copy.deepcopy(model), unpadded(model.config)
        assert torch.equal(twin.run_with_cache(tokens)[1]["pattern", 0], model.run_with_cache(tokens)[1]["pattern", 0])
        twin.blocks[1].mlp, twin.ln_final = other.blocks[1].mlp, other.ln_final
        for owner in twin.modules():
            assert all(getattr(owner, name) is part for name, part in owner.named_children())
        assert twin.blocks[0].attn.hook_q is not model.blocks[0].attn.hook_q
        assert not torch.equal(twin(tokens), model(tokens))


class TestInterventions:
    @given(any_configs(), st.data())
    def test_a_tensor_put_in_is_what_follows_computes_with(self, config, data):
        """What a point hands on is what the recording has; and all that follows is as its equation says of it."""
        model, inputs = tiny_model(config), some_inputs(config)
        name = data.draw(st.sampled_from(model.hook_names()))
        _, plain = model.run_with_cache(*inputs, names_filter=name)
        hooks = [(name, change)]
        logits, changed = model.run_with_cache(*inputs, names_filter=name, fwd_hooks=hooks)
        torch.testing.assert_close(changed[name], change(plain[name], model.get_submodule(name)))
        assert torch.equal(logits, model.run_with_hooks(*inputs, fwd_hooks=hooks))
        *source, tokens = (each[0].tolist() for each in inputs)
        elsewhere = {name}
        if name.endswith("hook_result"):  # which the equation of their sum goes around
            block, _, module = name.removesuffix(".hook_result").rpartition(".")
            elsewhere, out = {name, f"{block}.hook_{module}_out"}, model.get_submodule(f"{block}.{module}.out")
            _, cache = model.run_with_cache(*inputs, names_filter=elsewhere, fwd_hooks=hooks)
            bias = 0 if out.bias is None else out.bias
            close(cache[f"{block}.hook_{module}_out"], cache[name].sum(2) + bias)
        for found in deviations(trace_pass(model, tokens, *source, interventions=[Change(name)])):
            assert found.name in elsewhere or found.largest <= 1e-5 * max(found.magnitude, 1.0), (name, found)

    @pytest.mark.parametrize("norm", ["pre", "post"])
    @pytest.mark.parametrize(
        "fields",
        [
            *({"positions": "rotary", "attention": attention} for attention in ("softmax", "uniform")),
            *(
                {"architecture": "encoder-decoder", "positions": positions, "tie_embeddings": tied}
                for positions in ("learned", "rotary")
                for tied in (False, True)
            ),
        ],
        ids=str,
    )
    def test_every_point_reaches_the_logits(self, norm, fields):
        model = tiny_model(norm=norm, n_layers=1, **fields)
        inputs = some_inputs(model.config, unpadded)
        plain = model(*inputs)

        def change(tensor: Tensor, hook: HookPoint) -> Tensor:
            if tensor.dtype == torch.bool:
                return torch.eye(*tensor.shape, dtype=torch.bool)
            noise = torch.randn(tensor.shape, generator=torch.Generator().manual_seed(0))
            return (tensor + noise.abs()).nan_to_num(neginf=0.0)

        for name in model.hook_names():
            changed = model.run_with_hooks(*inputs, fwd_hooks=[(name, change)])
            assert (changed - plain).abs().max() > 1e-4, name

    def test_an_old_name_is_understood_with_a_warning(self):
        model, tokens = tiny_model(), unpadded(tiny_config())
        with pytest.warns(DeprecationWarning, match="hook_normalized is without gain and shift"):
            assert model.run_with_cache(tokens)[1]["normalized", 0, "ln1"].shape == (2, 8, 8)
        with pytest.warns(DeprecationWarning, match="is now called blocks.0.ln1.hook_out"):
            name = "blocks.0.ln1.hook_normalized"
            assert list(model.run_with_cache(tokens, names_filter=name)[1]) == ["blocks.0.ln1.hook_out"]

    def test_none_leaves_the_tensor_and_hooks_follow_one_another(self):
        model, tokens, seen = tiny_model(), unpadded(tiny_config()), []

        def look(tensor, hook):
            seen.append(tensor.clone())

        hooks = [("hook_embed", look), ("hook_embed", lambda x, hook: x + 1), (lambda name: name == "hook_embed", look)]
        model.run_with_hooks(tokens, fwd_hooks=hooks)
        assert torch.equal(seen[0] + 1, seen[1])
        close(model.run_with_hooks(tokens, fwd_hooks=[(lambda name: True, look)]), model(tokens))

    @given(any_configs(), st.data())
    def test_a_hook_may_write_into_its_tensor(self, config, data):
        """Which is its own: what was recorded before, and what others go on with, stays as it is."""
        model, _, plain = record(config)
        inputs = some_inputs(config)
        name = data.draw(st.sampled_from([name for name in model.hook_names() if not name.endswith("hook_mask")]))

        def write(tensor: Tensor, hook: HookPoint) -> None:
            tensor.mul_(2)

        for way in ("ours", "PyTorch's"):
            handle = None
            if way == "ours":
                _, found = model.run_with_cache(*inputs, names_filter=list(plain), fwd_hooks=[(name, write)])
            else:
                handle = model.get_submodule(name).register_forward_hook(lambda point, given, out: write(out, point))
                _, found = model.run_with_cache(*inputs, names_filter=list(plain))
                handle.remove()
            torch.testing.assert_close(found[name], plain[name] * 2)
            for before in itertools.takewhile(lambda each: each != name, plain):
                close(found[before].float(), plain[before].float())

    @pytest.mark.parametrize(
        ("replacement", "given"), [(torch.zeros(3), r"\(3,\)"), (1.0, "float"), (True, "bool"), ([], "list")]
    )
    def test_a_replacement_of_another_shape_is_refused(self, replacement, given):
        model = tiny_model()
        with pytest.raises(ValueError, match=rf"blocks\.1\.hook_mlp_out returned {given}.*shape \(2, 8, 8\)"):
            model.run_with_hooks(
                some_tokens(model.config), fwd_hooks=[("blocks.1.hook_mlp_out", lambda tensor, hook: replacement)]
            )

    @pytest.mark.parametrize("attention", ["softmax", "uniform"])
    def test_a_query_that_a_hook_leaves_no_key_gets_zeros(self, attention):
        model = tiny_model(attention=attention)
        blind = [("blocks.0.attn.hook_mask", lambda mask, hook: torch.zeros_like(mask))]
        logits, cache = model.run_with_cache(unpadded(model.config), fwd_hooks=blind)
        assert (cache["pattern", 0] == 0).all()
        logits.sum().backward()
        assert all(p.grad.isfinite().all() for p in model.parameters())

    def test_a_number_that_is_none_stays_visible(self):
        """Zeros are for rows that see nothing: a model gone wrong must not look healthy."""
        model = tiny_model()
        broken = [("blocks.0.attn.hook_q", lambda q, hook: q * math.nan)]
        _, cache = model.run_with_cache(unpadded(model.config), fwd_hooks=broken)
        assert cache["pattern", 0][0, 0, 1:, 0].isnan().all()


class TestPytorchsOwnHooks:
    @given(any_configs(), st.data())
    def test_they_can_replace_and_the_cache_has_what_they_left(self, config, data):
        model, inputs = tiny_model(config), some_inputs(config)
        name = data.draw(st.sampled_from(model.hook_names()))
        ours, expected = model.run_with_cache(*inputs, names_filter=name, fwd_hooks=[(name, change)])
        model.get_submodule(name).register_forward_hook(lambda module, inputs, output: change(output, module))
        logits, cache = model.run_with_cache(*inputs, names_filter=name)
        assert torch.equal(logits, ours) and torch.equal(model(*inputs), ours)
        assert torch.equal(cache[name], expected[name])

    @given(any_configs(), st.data())
    def test_hooks_of_the_backward_pass_see_the_gradient(self, config, data):
        """What arrives at a point on the way back is the derivative by what a forward hook adds there."""
        model = tiny_model(config)
        names = [name for name in model.hook_names() if not name.endswith("hook_mask")]  # nothing flows to a boolean
        name, seen = data.draw(st.sampled_from(names)), []
        handle = model.get_submodule(name).register_full_backward_hook(lambda point, into, out: seen.append(out[0]))
        model(*some_inputs(config, unpadded)).square().sum().backward()
        handle.remove()
        added, learned = [], []

        def add(tensor: Tensor, hook: object) -> Tensor:
            learned.append(tensor.requires_grad)  # not a table of sines, nor a plain average's weights
            added.append(torch.zeros_like(tensor, requires_grad=True))
            return tensor + added[0]

        out = model.run_with_hooks(*some_inputs(config, unpadded), fwd_hooks=[(name, add)])
        (expected,) = torch.autograd.grad(out.square().sum(), added, allow_unused=True)
        assert bool(seen) == (learned[0] and expected is not None)
        if seen:
            close(seen[0], expected)

    @pytest.mark.parametrize("is_before", [False, True])
    def test_they_come_after_the_edits_of_the_call(self, is_before):
        model = tiny_model()
        if is_before:
            model.hook_embed.register_forward_pre_hook(lambda module, given: (given[0] * 2,))
        else:
            model.hook_embed.register_forward_hook(lambda module, given, out: out * 2)
        _, cache = model.run_with_cache(unpadded(model.config), fwd_hooks=[("hook_embed", lambda x, hook: x * 0 + 1)])
        assert (cache["embed"] == 2).all()


class TestHooked:
    """What is changed inside `hooked` is changed for all that is asked of the model there."""

    HOOKS = (("blocks.0.attn.hook_z", lambda z, hook: z.mul_(0)), ("hook_embed", lambda x, hook: x + 1))
    ASKED = (
        lambda model, tokens: model(tokens)[0, -1],
        lambda model, tokens: model.run_with_cache(tokens)[0][0, -1],
        lambda model, tokens: model.run_with_hooks(tokens, fwd_hooks=[("hook_embed", lambda x, hook: None)])[0, -1],
        lambda model, tokens: next(generate(model, tokens, max_new_tokens=3)).logits,
        lambda model, tokens: trace_pass(model, tokens).tensors["logits"][-1],
        lambda model, tokens: record_pass(model, tokens).tensors["logits"][-1],
        lambda model, tokens: ablation(model, tokens).plain[-1],
        lambda model, tokens: model.run_with_gradients(tokens, of=lambda logits: logits.sum())[0][0, -1],
    )

    @pytest.mark.parametrize("ask", ASKED)
    def test_whatever_is_asked(self, ask):
        model = tiny_model()
        tokens = unpadded(model.config, batch=1, pos=5)
        expected = model.run_with_hooks(tokens, fwd_hooks=self.HOOKS)[0, -1]
        with torch.no_grad(), model.hooked(self.HOOKS[:1]), model.hooked(self.HOOKS[1:]), model.hooked([]):
            close(torch.as_tensor(ask(model, tokens)), expected)
        assert not torch.allclose(expected, model(tokens)[0, -1])

    def test_a_text_is_written_as_with_hooks_of_its_own(self):
        """Whichever steps are taken inside, each sees the whole window."""
        model = tiny_model()
        tokens = unpadded(model.config, batch=1, pos=5)
        seen = []
        hooks = [("blocks.1.hook_resid_pre", lambda x, hook: seen.append(x.shape[1])), *self.HOOKS]
        own = [step.logits for step in generate(model, tokens, max_new_tokens=3, fwd_hooks=hooks, sampling=GREEDY)]
        steps = generate(model, tokens, max_new_tokens=3, sampling=GREEDY)
        with model.hooked(hooks):
            torch.testing.assert_close([step.logits for step in steps], own)
            assert seen == [5, 6, 7] * 2
            written = write_greedily(model, tokens, 3)
        assert written[0].tolist() == [int(logits.argmax()) for logits in own]

    def test_another_model_is_left_alone(self):
        one, other = tiny_model(), tiny_model(seed=5)
        tokens = unpadded(one.config)
        for inner in (other, copy.deepcopy(one)):
            expected = inner(tokens)
            with one.hooked(self.HOOKS):
                assert torch.equal(inner(tokens), expected)
                with inner.hooked([]):
                    assert torch.equal(one(tokens), one.run_with_hooks(tokens))
                    assert not torch.equal(one(tokens), tiny_model()(tokens))


class TestNesting:
    """A model that runs inside a hook is a call of its own."""

    @pytest.mark.parametrize("way", ["ours", "PyTorch's"])
    def test_inside_a_hook(self, way):
        model = tiny_model()
        tokens, other = unpadded(model.config, batch=1), unpadded(model.config, batch=1, seed=5)
        reference = model.run_with_cache(tokens)[1]
        inner = []

        def within(tensor: Tensor) -> None:
            if len(inner) < 1:  # not again for the pass that this one starts
                inner.append(None)
                model(other)
                inner[0] = model.run_with_cache(other, names_filter="blocks.0.hook_resid_pre")[1]

        hooks = [("blocks.1.hook_resid_pre", lambda tensor, hook: within(tensor))]
        if way != "ours":
            model.blocks[1].hook_resid_pre.register_forward_hook(lambda module, inputs, output: within(output))
        _, cache = model.run_with_cache(tokens, fwd_hooks=hooks if way == "ours" else ())
        assert list(cache) == list(reference)
        for name in cache:
            assert torch.equal(cache[name], reference[name]), name
        assert list(inner[0]) == ["blocks.0.hook_resid_pre"]
        assert not torch.equal(inner[0]["resid_pre", 0], reference["resid_pre", 0])


@given(any_configs(), st.booleans())
def test_nothing_is_left_on_the_model(config, fails):
    model, inputs = tiny_model(config), some_inputs(config)
    plain, before = model(*inputs), {name: dict(vars(module)) for name, module in model.named_modules()}
    last = model.hook_names()[-1] if model.hook_names() else ""
    hooks = [(lambda name: True, lambda tensor, hook: 1 / (not fails or hook.name != last) and None)]
    with pytest.raises(ZeroDivisionError) if fails else contextlib.nullcontext():
        model.run_with_cache(*inputs, fwd_hooks=hooks)
    for name, module in model.named_modules():
        assert vars(module).keys() == before[name].keys()
        assert all(vars(module)[key] is value for key, value in before[name].items())
    assert torch.equal(model(*inputs), plain)
