"""Tests what hooks see and change, forwards and backwards, and that each belongs to one call."""

import contextlib
import copy
import itertools
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tests.helpers import any_configs, close, some_inputs, some_text, some_tokens, tiny_config, tiny_model, unpadded
from transformer import ablation, deviations, generate, record_pass, trace_pass
from transformer.inference.generation import write_greedily


def change(tensor: Tensor, hook: object = None) -> Tensor:
    return tensor.logical_not() if tensor.dtype == torch.bool else tensor * 1.5 + 0.25


def write(tensor: Tensor, hook: object) -> None:
    tensor.copy_(change(tensor))


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
        cheap = [name for name in model.hook_names() if not name.endswith("hook_result")]
        for names_filter, names in (
            (None, cheap),
            ("hook_embed", ["hook_embed"]),
            (["ln_final.hook_scale", "hook_embed"], ["hook_embed", "ln_final.hook_scale"]),
            (lambda name: name.endswith("hook_z"), ["blocks.0.attn.hook_z", "blocks.1.attn.hook_z"]),
            ("blocks.1.attn.hook_result", ["blocks.1.attn.hook_result"]),
            ((), []),
        ):
            assert list(model.run_with_cache(some_tokens(model.config), names_filter=names_filter)[1]) == names

    @given(any_configs(), st.data())
    def test_what_is_recorded_depends_on_nothing_else_that_is_and_a_pass_may_end_with_it(self, config, data):
        model, inputs, reached = tiny_model(config), some_inputs(config), []
        _, everything = model.run_with_cache(*inputs, names_filter=model.hook_names())
        chosen = data.draw(st.lists(st.sampled_from(list(everything)), unique=True))
        logits, cache = model.run_with_cache(*inputs, names_filter=chosen)
        note = (lambda name: True, lambda tensor, hook: reached.append(hook.name))
        until = model.run_until_recorded(*inputs, names_filter=chosen, fwd_hooks=[note])
        close(logits, model(*inputs))
        for found in (cache, until):
            assert list(found) == [name for name in everything if name in chosen]
            assert not any(tensor.requires_grad for tensor in found.values())
            for name in chosen:
                close(found[name].float(), everything[name].float())
        assert reached[-1] == (list(until) or list(everything))[-1]

    def test_it_leaves_the_gradient_and_the_table_of_positions_alone(self):
        for positions in ("learned", "sinusoidal"):
            model = tiny_model(positions=positions)
            tokens = some_tokens(model.config)
            plain = model(tokens)
            logits, cache = model.run_with_cache(tokens)
            found, expected = (torch.autograd.grad(each.sum(), [*model.parameters()]) for each in (logits, plain))
            torch.testing.assert_close(found, expected)
            cache["pos_embed"].zero_()
            with torch.no_grad():
                model.run_with_hooks(tokens, fwd_hooks=[("hook_pos_embed", lambda rows, hook: rows.zero_())])
            assert torch.equal(model(tokens), plain)

    @pytest.mark.parametrize(
        ("names_filter", "words"),
        [
            ("blocks.0.attn.hook_patern", r"hook_patern.* Did you mean blocks\.0\.attn\.hook_pattern[^:]*\?$"),
            (["hook_embed", "blocks.0.attn.hook_patern"], r"Did you mean blocks\.0\.attn\.hook_pattern"),
            ("pattern", r"Did you mean blocks\.0\.attn\.hook_pattern\? For some of all layers, give a fun"),
            ("zzz", r"'zzz' is no hook point of this model\.$"),
        ],
    )
    def test_a_name_that_is_none_is_refused_with_a_suggestion(self, names_filter, words):
        model = tiny_model()
        for run in (model.run_with_cache, model.run_until_recorded):
            with pytest.raises(ValueError, match=words):
                run(some_tokens(model.config), names_filter=names_filter)
        with pytest.raises(ValueError, match=words):
            model.run_with_hooks(some_tokens(model.config), fwd_hooks=[(names_filter, change)])

    @pytest.mark.parametrize(
        ("hooks", "words"),
        [
            (("hook_embed", change), r"a list of pairs, also of one.*'hook_embed' is no such pair"),
            (change, "a list of pairs, also of one"),
            ([("hook_embed",)], r"\('hook_embed',\) is no such pair"),
            ([("hook_embed", "change")], "is no such pair"),
            ([(3, change)], "by a name, a list of names or a function of names, not by 3"),
        ],
    )
    def test_what_are_no_pairs_of_a_point_and_a_function_is_said(self, hooks, words):
        model, tokens = tiny_model(), unpadded(tiny_config())
        for ask in (
            lambda: model.run_with_hooks(tokens, fwd_hooks=hooks),
            lambda: model.run_with_cache(tokens, fwd_hooks=hooks),
            lambda: model.run_with_gradients(tokens, of=torch.sum, bwd_hooks=hooks),
        ):
            with pytest.raises(TypeError, match=words):
                ask()

    def test_a_predicate_that_is_true_of_nothing_is_warned_of(self):
        model, tokens = tiny_model(), unpadded(tiny_config())
        for asked in ({"names_filter": lambda name: "patern" in name}, {"fwd_hooks": [(lambda name: False, change)]}):
            with pytest.warns(UserWarning, match="chooses none of this model's hook points"):
                model.run_with_cache(tokens, **asked)


class TestInterventions:
    @given(any_configs(), st.data())
    def test_what_a_hook_leaves_is_recorded_and_what_all_that_follows_computes_with(self, config, data):
        """Whether it returns a tensor or writes into its own, and whether it is one of ours or of PyTorch's."""
        model, inputs = tiny_model(config), some_inputs(config)
        names = model.hook_names()
        name = data.draw(st.sampled_from(names))
        point = model.get_submodule(name)
        _, plain = model.run_with_cache(*inputs, names_filter=names)
        hooks = [(name, change)]
        logits, changed = model.run_with_cache(*inputs, names_filter=names, fwd_hooks=hooks)
        close(model.run_with_hooks(*inputs, fwd_hooks=hooks), logits)
        torch.testing.assert_close(changed[name], change(plain[name]))
        for before in itertools.takewhile(lambda each: each != name, plain):
            close(changed[before].float(), plain[before].float())
        ways = [model.run_with_cache(*inputs, names_filter=names, fwd_hooks=[(name, write)])]
        for function in (change, write):
            handle = point.register_forward_hook(lambda point, given, out, function=function: function(out, point))
            ways.append(model.run_with_cache(*inputs, names_filter=names))
            close(model(*inputs), logits)
            handle.remove()
        for again, found in ways:
            close(again, logits)
            for each in names:
                close(found[each].float(), changed[each].float())
        elsewhere = {name}
        if name.endswith("hook_result"):  # which the equation of their sum goes around
            block, _, module = name.removesuffix(".hook_result").rpartition(".")
            bias, total = model.get_submodule(f"{block}.{module}.out").bias, f"{block}.hook_{module}_out"
            close(changed[total], changed[name].sum(2) + (0 if bias is None else bias))
            elsewhere.add(total)
        for found in deviations(trace_pass(model, *some_text(config), interventions=[Change(name)])):
            assert found.name in elsewhere or found.largest <= 1e-5 * max(found.magnitude, 1.0), (name, found)

    def test_hooks_follow_one_another_and_pytorchs_come_last(self):
        model, tokens = tiny_model(), unpadded(tiny_config())
        hooks = [("hook_embed", lambda x, hook: x * 0), (lambda name: name == "hook_embed", lambda x, hook: x + 1)]
        hooks.append(("hook_embed", lambda x, hook: None))
        for register, double in (
            (model.hook_embed.register_forward_pre_hook, lambda module, given: (given[0] * 2,)),
            (model.hook_embed.register_forward_hook, lambda module, given, out: out * 2),
        ):
            handle = register(double)
            assert (model.run_with_cache(tokens, fwd_hooks=hooks)[1]["embed"] == 2).all()
            handle.remove()

    def test_a_replacement_of_another_shape_is_refused(self):
        model, point = tiny_model(), "blocks.1.hook_mlp_out"
        for replacement, what in ((torch.zeros(3), r"\(3,\)"), (1.0, "float"), (True, "bool"), ([], "list")):
            hooks = [(point, lambda tensor, hook, replacement=replacement: replacement)]
            words = rf"blocks\.1\.hook_mlp_out returned {what}.*shape \(2, 8, 8\)"
            with pytest.raises(ValueError, match=words):
                model.run_with_hooks(some_tokens(model.config), fwd_hooks=hooks)
            with pytest.raises(ValueError, match=words):
                model.run_with_gradients(some_tokens(model.config), of=torch.sum, bwd_hooks=hooks)


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
        lambda model, tokens: model.run_with_gradients(tokens, of=torch.sum)[0][0, -1],
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
        model, seen = tiny_model(), []
        tokens = unpadded(model.config, batch=1, pos=5)
        hooks = [("blocks.1.hook_resid_pre", lambda x, hook: seen.append(x.shape[1])), *self.HOOKS]
        own = next(generate(model, tokens, max_new_tokens=1, fwd_hooks=hooks)).logits
        steps = generate(model, tokens, max_new_tokens=1)
        with model.hooked(hooks):
            torch.testing.assert_close(next(steps).logits, own)
            assert int(write_greedily(model, tokens, 3)[0, 0]) == int(own.argmax())
        assert seen == [5, 5, 5, 6, 7]

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

    def test_a_model_that_runs_inside_a_hook_is_a_call_of_its_own(self):
        """Inside one of ours, and one of PyTorch's."""
        model, inner = tiny_model(), []
        tokens, other = unpadded(model.config, batch=1), unpadded(model.config, batch=1, seed=5)
        reference = model.run_with_cache(tokens)[1]

        def within(*call) -> None:
            if not inner:  # not again for the pass that this one starts
                inner.append(None)
                inner[0] = model.run_with_cache(other, names_filter="blocks.0.hook_resid_pre")[1]

        for hooks in ([("blocks.1.hook_resid_pre", within)], []):
            if not hooks:
                model.blocks[1].hook_resid_pre.register_forward_hook(within)
            _, cache = model.run_with_cache(tokens, fwd_hooks=hooks)
            assert list(cache) == list(reference)
            assert all(torch.equal(cache[name], reference[name]) for name in cache)
            assert list(inner[0]) == ["blocks.0.hook_resid_pre"]
            assert not torch.equal(inner.pop()["resid_pre", 0], reference["resid_pre", 0])

    @given(any_configs(), st.booleans())
    def test_nothing_is_left_on_the_model(self, config, fails):
        model, inputs = tiny_model(config), some_inputs(config)
        plain, before = model(*inputs), {name: dict(vars(module)) for name, module in model.named_modules()}
        last = model.hook_names()[-1]
        hooks = [(lambda name: True, lambda tensor, hook: 1 / (not fails or hook.name != last) and None)]
        for run in (model.run_with_cache, model.run_until_recorded):
            with pytest.raises(ZeroDivisionError) if fails else contextlib.nullcontext():
                run(*inputs, names_filter=last, fwd_hooks=hooks)
        for name, module in model.named_modules():
            assert vars(module).keys() == before[name].keys()
            assert all(vars(module)[key] is value for key, value in before[name].items())
        assert torch.equal(model(*inputs), plain)


def last_logit(logits: Tensor) -> Tensor:
    return logits[0, -1, 3]


class TestGradients:
    @given(any_configs(), st.data())
    def test_one_says_how_the_number_changes_with_the_tensor(self, config, data):
        """A small step along any direction, at any point, changes the number as the gradient says (in float64)."""
        model, inputs = tiny_model(config).double(), some_inputs(config, unpadded)
        model.requires_grad_(data.draw(st.booleans()))
        with torch.no_grad():
            output, found = model.run_with_gradients(*inputs, of=last_logit, names_filter=model.hook_names())
        assert list(found) == [name for name in model.hook_names() if not name.endswith("hook_mask")]
        _, cache = model.run_with_cache(*inputs, names_filter=model.hook_names())
        for name in data.draw(st.lists(st.sampled_from(sorted(found)), max_size=4, unique=True)):
            assert found[name].shape == cache[name].shape
            step = torch.randn(found[name].shape, dtype=torch.float64).where(cache[name].isfinite(), 0.0)

            def moved(size, name=name, step=step):
                hook = (name, lambda tensor, hook: tensor.double() + size * step)
                return float(last_logit(model.run_with_hooks(*inputs, fwd_hooks=[hook])).detach())

            slope = (moved(1e-6) - moved(-1e-6)) / 2e-6
            # A feed-forward layer's corners aside, where the slope on one side isn't that on the other.
            assert slope == pytest.approx(float((found[name] * step).sum()), abs=1e-4, rel=1e-3)
            seen, weights = [], [parameter for parameter in model.parameters() if parameter.requires_grad]
            note = model.get_submodule(name).register_full_backward_hook(
                lambda *call, seen=seen: seen.append(call[2][0])
            )
            if weights:
                torch.autograd.grad(last_logit(model(*inputs)), weights, allow_unused=True)
            note.remove()
            for gradient in seen:  # PyTorch's own hook sees the same
                close(gradient, found[name])
            is_constant = config.attention == "uniform" or name.endswith("hook_pos_embed")
            assert seen or not weights or is_constant or not found[name].any()
        torch.testing.assert_close(output, model(*inputs).detach())
        assert all(parameter.grad is None for parameter in model.parameters())

    def test_a_backward_hook_may_replace_it_for_all_that_comes_before(self):
        model, inputs, seen = tiny_model(n_layers=3), some_inputs(tiny_config()), {}
        before, stops, after = "blocks.0.hook_resid_post", "blocks.1.hook_resid_pre", "blocks.1.hook_resid_post"
        q = "blocks.1.attn.hook_q"  # which isn't recorded

        def stop(gradient, hook):
            seen[hook.name] = gradient.clone()
            return torch.zeros_like(gradient)

        hooks = [(stops, stop), (q, lambda gradient, hook: seen.update({hook.name: gradient}))]
        asked = {"of": last_logit, "names_filter": [before, stops, after]}
        _, free = model.run_with_gradients(*inputs, **asked)
        _, stopped = model.run_with_gradients(*inputs, **asked, bwd_hooks=hooks)
        assert list(seen) == [q, stops] and list(stopped) == list(free)
        torch.testing.assert_close(seen[stops], free[stops])
        assert free[before].any() and not stopped[before].any()
        assert not stopped[stops].any(), "what is recorded is what the hooks left"
        torch.testing.assert_close(stopped[after], free[after])

    def test_what_can_t_be_is_said(self):
        model, inputs = tiny_model(), some_inputs(tiny_config())
        with pytest.raises(ValueError, match="one number"):
            model.run_with_gradients(*inputs, of=lambda logits: logits[0])
        with pytest.raises(ValueError, match="no hook point"):
            model.run_with_gradients(*inputs, of=last_logit, bwd_hooks=[("blocks.9.attn.hook_q", print)])
        with torch.inference_mode(), pytest.raises(RuntimeError, match="no gradients inside"):
            model.run_with_gradients(*inputs, of=last_logit)
