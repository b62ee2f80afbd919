"""Tests the optimizers: parameter groups, and the orthogonal updates of Muon."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.helpers import tiny_config
from transformer import build_model
from transformer.training.optimizers import AdamW, Muon, Optimizer, make_optimizers, orthogonalise


def optimizers_of(model: nn.Module, muon: bool = True, **fields) -> list[Optimizer]:
    return make_optimizers(
        model,
        **{"muon": muon, "learning_rate": 1e-3, "betas": (0.9, 0.99), "momentum": 0.95, "weight_decay": 0.1, **fields},
    )


class TestOrthogonalising:
    @given(st.sampled_from([(1, 8, 8), (2, 16, 8), (1, 8, 32), (3, 8, 8), (2, 12, 6)]), st.integers(0, 2**32 - 1))
    def test_it_brings_all_singular_values_near_one(self, shape, seed):
        matrices = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
        before, after = torch.linalg.svdvals(matrices), torch.linalg.svdvals(orthogonalise(matrices))
        ample = before > 0.02 * before.amax(-1, keepdim=True)  # what is nearly nothing takes more iterations
        assert after.max() < 1.3
        assert after[ample].min() > 0.5

    @pytest.mark.parametrize("shape", [(6, 6), (9, 6), (4, 6)])
    def test_it_keeps_the_directions(self, shape):
        matrix = torch.randn(shape, generator=torch.Generator().manual_seed(0))
        left, _, right = torch.linalg.svd(matrix, full_matrices=False)
        core = left.T @ orthogonalise(matrix[None])[0] @ right.T
        torch.testing.assert_close(core, core.diagonal().diag(), atol=1e-4, rtol=0)


class TestWhoUpdatesWhat:
    @pytest.mark.parametrize("architecture", ["decoder-only", "encoder-decoder"])
    @pytest.mark.parametrize("muon", [False, True])
    def test_every_parameter_has_one_optimizer_and_only_matrices_decay(self, muon, architecture):
        model = build_model(tiny_config(positions="learned", architecture=architecture), seed=0)
        optimizers = optimizers_of(model, muon)
        groups = [group for optimizer in optimizers for group in optimizer.param_groups]
        ids = [id(parameter) for group in groups for parameter in group["params"]]
        assert sorted(ids) == sorted(id(parameter) for parameter in model.parameters())
        for group in groups:
            assert {parameter.dim() == 2 for parameter in group["params"]} == {group["weight_decay"] > 0}
        in_blocks = {id(p) for name, p in model.named_parameters() if "blocks." in name and p.dim() == 2}
        if muon:
            assert {id(parameter) for parameter in optimizers[0].param_groups[0]["params"]} == in_blocks

    def test_both_are_set_as_was_asked(self):
        muon, adamw = optimizers_of(
            build_model(tiny_config(), seed=0), learning_rate=0.5, betas=(0.1, 0.2), momentum=0.3, weight_decay=0.4
        )
        assert [(g["lr"], g["momentum"], g["weight_decay"]) for g in muon.param_groups] == [(0.5, 0.3, 0.4)]
        assert [(g["lr"], g["betas"], g["weight_decay"]) for g in adamw.param_groups] == [
            (0.5, (0.1, 0.2), 0.4),
            (0.5, (0.1, 0.2), 0.0),
        ]

    def test_without_blocks_there_is_nothing_for_muon(self):
        (adamw,) = optimizers_of(build_model(tiny_config(n_layers=0), seed=0))
        assert isinstance(adamw, AdamW)


class TestAdamW:
    def test_it_updates_as_pytorch_s_does_to_the_last_bit(self):
        """Five steps with falling rates; a weight that has no gradient stays; what is remembered can be taken over."""
        generator = torch.Generator().manual_seed(0)
        ours, theirs = (
            [nn.Parameter(weight.clone()) for weight in weights]
            for weights in [[torch.randn(shape, generator=generator) for shape in ((4, 3), (5,), (2, 2))]] * 2
        )
        betas, decays = (0.9, 0.99), (0.5, 0.0)
        parts = slice(1), slice(1, None)
        groups = [
            [{"params": weights[part], "weight_decay": decay} for part, decay in zip(parts, decays, strict=True)]
            for weights in (ours, theirs)
        ]
        adamw = AdamW(groups[0], lr=1.0, betas=betas)
        reference = torch.optim.AdamW(groups[1], lr=1.0, betas=betas, fused=True)
        for step in range(5):
            for one, other in zip(ours[:2], theirs[:2], strict=True):
                one.grad = torch.randn(one.shape, generator=generator)
                other.grad = one.grad.clone()
            if step == 2:
                states, adamw = adamw.states(), AdamW(adamw.param_groups, lr=1.0, betas=betas)
                adamw.load_states(states)
            for optimizer in (adamw, reference):
                for group in optimizer.param_groups:
                    group["lr"] = 0.1 / (step + 1)
                optimizer.step()
                optimizer.zero_grad()
        assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))
        assert adamw.states().keys() == reference.state_dict()["state"].keys() == {0, 1}
        assert all(weight.grad is None for weight in ours)


class TestMuon:
    @pytest.mark.parametrize(
        ("name", "parts"),
        [
            *((f"{side}.blocks.0.attn.qkv", 3) for side in ("encoder", "decoder")),
            *(("decoder.blocks.0.cross_attn.kv", 2), ("decoder.blocks.0.cross_attn.q", 1)),
            *((f"encoder.blocks.0.{name}", 1) for name in ("attn.out", "mlp.up", "mlp.down")),
        ],
    )
    @pytest.mark.parametrize("d_ff", [32, 24, 5])
    def test_what_one_weight_holds_is_made_orthogonal_matrix_by_matrix(self, name, parts, d_ff):
        """Queries, keys and values each for itself; but the feed-forward layer is one matrix, whatever its shape."""
        model = build_model(tiny_config(architecture="encoder-decoder", d_ff=d_ff), seed=0)
        muon, _ = optimizers_of(model, learning_rate=0.01, weight_decay=0.0)
        weight = model.get_submodule(name).weight
        before = weight.detach().clone()
        weight.grad = torch.randn(weight.shape, generator=torch.Generator().manual_seed(0))
        weight.grad[: len(weight) // parts] *= 1000  # however large the gradient of one part
        expected = orthogonalise(weight.grad.view(parts, -1, weight.shape[1]))
        muon.step()
        size = 0.01 * 0.2 * max(expected.shape[1:]) ** 0.5  # AdamW's typical size, times the learning rate
        torch.testing.assert_close(before - weight.detach(), expected.view(weight.shape) * size, atol=1e-5, rtol=1e-3)

    def test_matrices_of_one_shape_are_updated_together_as_they_would_be_one_by_one(self):
        """Momentum, Nesterov's look ahead, and decay, over three steps, against the formula written out."""
        generator = torch.Generator().manual_seed(0)
        shapes = {"a": (8, 8), "b.attn.qkv.weight": (24, 8), "c": (8, 8), "up": (32, 8), "down": (8, 32), "d": (24, 8)}
        together = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
        alone = {name: weight.clone() for name, weight in together.items()}
        momenta = {name: torch.zeros_like(weight) for name, weight in alone.items()}
        still = torch.ones(2, 2)  # a weight without a gradient stays as it is
        weights = [*together.items(), ("still", still)]
        muon = Muon(weights, lr=0.1, momentum=0.9, weight_decay=0.5, rows={"qkv.weight": (8, 12, 4)})
        for _ in range(3):
            for weight in together.values():
                weight.grad = torch.randn(weight.shape, generator=generator)
            gradients = {name: weight.grad.clone() for name, weight in together.items()}
            muon.step()
            for name, weight in alone.items():
                momenta[name] = 0.9 * momenta[name] + 0.1 * gradients[name]
                direction = 0.9 * momenta[name] + 0.1 * gradients[name]
                weight.mul_(1 - 0.1 * 0.5)
                parts = [slice(8), slice(8, 20), slice(20, 24)] if name.endswith("qkv.weight") else [slice(None)]
                for part in parts:
                    size = 0.2 * max(weight[part].shape) ** 0.5
                    weight[part] -= 0.1 * size * orthogonalise(direction[part][None])[0]
        assert (still == 1).all()
        for name in shapes:
            torch.testing.assert_close(together[name], alone[name], atol=1e-5, rtol=1e-4)
