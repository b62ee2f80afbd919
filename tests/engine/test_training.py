"""Tests training: each step as the papers have it, resumed exactly, and never with broken weights."""

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError
from safetensors.torch import save
from torch import nn
from torch.nn import functional as F

from tests.helpers import tiny_config
from tests.training_plans import batches, same, state
from transformer import Batch, NotFiniteError, TrainingConfig, TrainingRun, build_model, train
from transformer.training import loop
from transformer.training.execution import Execution
from transformer.training.optimizers import orthogonalise

BY_HAND = {
    "steps": st.just(4),
    "learning_rate": st.just(0.02),
    "final_learning_rate": st.sampled_from([0.0, 0.1]),
    "warmup_steps": st.sampled_from([0, 2]),
    "optimizer": st.sampled_from(["adamw", "muon"]),
    "betas": st.sampled_from([(0.9, 0.99), (0.5, 0.7)]),
    "momentum": st.sampled_from([0.9, 0.5]),
    "weight_decay": st.sampled_from([0.0, 0.5]),
    "gradient_clip": st.sampled_from([0.0, 0.1, 1e6]),
    "average_decay": st.sampled_from([0.0, 0.75]),
}
SHAPES = [
    *({}, {"n_kv_heads": 1, "d_ff": 5}, {"positions": "learned", "tie_embeddings": True}, {"n_layers": 0}),
    *({"architecture": "encoder-decoder", "d_ff": d_ff} for d_ff in (24, 32)),
]


def batch_for(model: nn.Module, step: int) -> Batch:
    """The batch of a step; an encoder–decoder's source is the same text backwards."""
    inputs, targets = batches()(step)
    is_pair = model.config.architecture == "encoder-decoder"
    return Batch((inputs[0].flip(1), *inputs) if is_pair else inputs, targets)


def trained_by_hand(model: nn.Module, config: TrainingConfig) -> tuple[list[float], dict, dict]:
    """Losses, weights and averaged weights: with PyTorch's AdamW, and Muon's formula matrix by matrix."""
    learnt = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    matrices = {name for name, weight in learnt.items() if "blocks." in name and weight.dim() == 2}
    by_muon = {name: torch.zeros_like(learnt[name]) for name in matrices if config.optimizer == "muon"}
    others = [weight for name, weight in learnt.items() if name not in by_muon]
    adamw = torch.optim.AdamW(
        [{"params": [weight], "weight_decay": config.weight_decay * (weight.dim() == 2)} for weight in others],
        betas=config.betas,
    )
    heads, keys = model.config.n_heads * model.config.d_head, model.config.kv_heads * model.config.d_head
    rows_of = {"attn.qkv.weight": [heads, keys, keys], "cross_attn.kv.weight": [keys, keys]}
    losses, average = [], None
    for step in range(config.steps):
        progress = (step - config.warmup_steps) / (config.steps - config.warmup_steps)
        cosine = config.final_learning_rate + (1 - config.final_learning_rate) * (1 + math.cos(math.pi * progress)) / 2
        warm = (step + 1) / config.warmup_steps if step < config.warmup_steps else None
        rate = config.learning_rate * (cosine if warm is None else warm)
        inputs, targets = batch_for(model, step)
        model.zero_grad()
        loss = F.cross_entropy(model(*inputs).float().flatten(0, 1), targets.flatten())
        loss.backward()
        losses.append(loss.item())
        norm = torch.cat([weight.grad.flatten() for weight in learnt.values()]).norm()
        for weight in learnt.values():
            if config.gradient_clip and norm > config.gradient_clip:
                weight.grad *= config.gradient_clip / norm
        for group in adamw.param_groups:
            group["lr"] = rate
        adamw.step()
        with torch.no_grad():
            for name, momentum in by_muon.items():
                weight, gradient = learnt[name], learnt[name].grad
                momentum.copy_(config.momentum * momentum + (1 - config.momentum) * gradient)
                ahead = config.momentum * momentum + (1 - config.momentum) * gradient  # Nesterov's look
                weight *= 1 - rate * config.weight_decay
                rows = next((rows for ending, rows in rows_of.items() if name.endswith(ending)), len(weight))
                for matrix, direction in zip(weight.split(rows), ahead.split(rows), strict=True):
                    matrix -= rate * 0.2 * max(matrix.shape) ** 0.5 * orthogonalise(direction[None])[0]
        before, decay = average or state(model), config.average_decay
        average = {name: decay * before[name] + (1 - decay) * weight for name, weight in state(model).items()}
    return losses, state(model), average


@given(st.builds(TrainingConfig, **BY_HAND), st.sampled_from(SHAPES), st.sampled_from(["", "mlp.up.weight", "embed."]))
def test_training_is_what_it_is_by_hand(config, shape, frozen):
    """Who updates what, how fast, how far, and what of it is averaged; a weight without a gradient stays."""
    models = [build_model(tiny_config(**shape), seed=0).double() for _ in range(2)]
    for model in models:
        for name, weight in model.named_parameters():
            weight.requires_grad_(not frozen or frozen not in name)
    losses, weights, average = trained_by_hand(models[0], config)
    reports = []
    run = train(models[1], lambda step: batch_for(models[1], step), config, reports.append)
    assert [report.step for report in reports] == [1, 2, 3, 4] and run.step == 4
    assert all(report.tokens_per_second > 0 for report in reports)
    assert [report.loss for report in reports] == pytest.approx(losses, rel=1e-6)
    torch.testing.assert_close(state(models[1]), weights, atol=1e-7, rtol=1e-6)
    torch.testing.assert_close(state(run.best_model), average, atol=1e-7, rtol=1e-6)


@given(st.sampled_from([(1, 8, 8), (2, 16, 8), (1, 8, 32), (3, 8, 8), (2, 12, 6)]), st.integers(0, 2**32 - 1))
def test_orthogonalising_keeps_directions_and_brings_all_singular_values_near_one(shape, seed):
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    left, before, right = torch.linalg.svd(matrices, full_matrices=False)
    core = left.mT @ orthogonalise(matrices) @ right.mT
    after = core.diagonal(dim1=-2, dim2=-1)
    torch.testing.assert_close(core, after.diag_embed(), atol=1e-3, rtol=0)
    ample = before > 0.02 * before.amax(-1, keepdim=True)  # what is nearly nothing takes more iterations
    assert after.max() < 1.3 and after[ample].min() > 0.5


@pytest.mark.parametrize(
    ("d_model", "has_units", "asked", "dtype"),
    [
        *((192, True, None, torch.bfloat16), (190, True, None, torch.float32), (192, False, None, torch.float32)),
        *((8, False, "bfloat16", torch.bfloat16), (192, True, "float32", torch.float32)),
    ],
)
def test_a_step_computes_in_what_was_asked_for_or_is_faster(monkeypatch, d_model, has_units, asked, dtype):
    monkeypatch.setattr(loop, "has_bfloat16_units", lambda: has_units)
    assert loop.trains_in_bfloat16(torch.device("cuda"), d_model)
    model, seen, moved = build_model(tiny_config(d_model=d_model, n_layers=1, n_heads=1), seed=0), [], []
    batch, to = batches()(0), Batch.to
    exact = F.cross_entropy(model(*batch.inputs).flatten(0, 1), batch.targets.flatten()).item()
    model.blocks[0].mlp.up.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    monkeypatch.setattr(Batch, "to", lambda batch, device: moved.append(device) or to(batch, device))
    loss = TrainingRun(model, TrainingConfig(steps=1), Execution(dtype=asked)).take_step(batch)
    assert loss == pytest.approx(exact, rel=1e-6 if dtype is torch.float32 else 1e-2)
    assert seen == [dtype] and all(parameter.dtype == torch.float32 for parameter in model.parameters())
    assert moved == [torch.device("cpu")]  # where the model is


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("average_decay", [0.0, 0.8])
@pytest.mark.parametrize("tied", [False, True])
def test_a_run_that_was_interrupted_ends_as_if_it_had_not_been(tmp_path, optimizer, average_decay, tied):
    config = TrainingConfig(steps=6, warmup_steps=2, optimizer=optimizer, average_decay=average_decay, seed=3)
    losses, parts = [], []

    def fresh(seed: int = 0) -> nn.Module:
        return build_model(tiny_config(dropout=0.3, positions="learned", tie_embeddings=tied), seed=seed)

    whole = train(fresh(), batches(), config, lambda report: losses.append(report.loss))  # None stops nothing
    run = train(fresh(), batches(), config, lambda report: parts.append(report.loss) or len(parts) < 3)
    (tmp_path / "state.tmp").write_text("what a save left that was killed")
    kept, notes = {"a.b": torch.arange(3), "embed": torch.ones(2, 2)}, {"losses": [0.1, 1 / 3], "best": None}
    run.save(tmp_path / "state", kept=kept, notes=notes)
    resumed = TrainingRun(fresh(seed=99), config)
    found, said = resumed.resume(tmp_path / "state")
    assert same(found, kept) and said == notes and resumed.step == 3
    train(resumed.model, batches(), config, lambda report: parts.append(report.loss), run=resumed)
    assert parts == losses
    assert same(state(resumed.model), state(whole.model))
    assert same(state(resumed.best_model), state(whole.best_model))
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_a_run_has_random_numbers_of_its_own():
    """Nothing else that draws disturbs it, and it disturbs nothing else; dropout falls in any mode."""
    ends = {}
    for disturbed in ("nothing", "global", "mode", "own", "seed"):
        model = build_model(tiny_config(dropout=0.3), seed=0)
        run = train(
            model, batches(), TrainingConfig(steps=4, seed=int(disturbed == "seed")), lambda report: report.step < 2
        )
        if disturbed == "global":
            torch.rand(7)
        if disturbed == "mode":
            model.eval()
        if disturbed == "own":
            run.generator.manual_seed(7)
        before = torch.get_rng_state()
        ends[disturbed] = state(train(model, batches(), run.config, run=run).model)
        assert torch.equal(torch.get_rng_state(), before)
    is_same = {disturbed: same(end, ends["nothing"]) for disturbed, end in ends.items()}
    assert is_same == {"nothing": True, "global": True, "mode": True, "own": False, "seed": False}


class TestStatesOnDisk:
    @pytest.fixture
    def run(self, tmp_path) -> TrainingRun:
        run = train(build_model(tiny_config(), seed=0), batches(), TrainingConfig(steps=2))
        run.save(tmp_path / "state")
        return run

    @pytest.mark.parametrize(
        ("model", "config", "what"),
        [
            ({"d_model": 16}, {}, "model.blocks.0"),
            ({"n_layers": 1}, {}, "model.blocks.1"),
            ({}, {"average_decay": 0.5}, "average."),
            ({}, {"optimizer": "muon"}, "optimizer"),
            ({}, None, "random_state"),  # of another device
        ],
    )
    def test_that_of_another_training_is_refused_before_anything_changes(self, run, tmp_path, model, config, what):
        other = TrainingRun(build_model(tiny_config(**model), seed=1), TrainingConfig(steps=2, **config or {}))
        if config is None:
            other.generator = type("OnAGraphicsCard", (), {"get_state": lambda self: torch.zeros(16)})()
        before = state(other.model)
        with pytest.raises(ValueError, match=f"is the state of another training.*: its {what}.* doesn't fit"):
            other.resume(tmp_path / "state")
        assert same(state(other.model), before) and other.step == 0

    def test_a_damaged_one_and_another_file_are_refused(self, run, tmp_path):
        content = (tmp_path / "state").read_bytes()
        for damaged in (content[: len(content) // 2], b"{}", b"", save({"embed.weight": torch.zeros(2)})):
            (tmp_path / "state").write_bytes(damaged)
            with pytest.raises(ValueError, match="is no state of a training"):
                run.resume(tmp_path / "state")

    def test_a_full_disk_leaves_the_one_before_whole(self, run, tmp_path, monkeypatch):
        before = (tmp_path / "state").read_bytes()

        def full(tensors, partial, metadata):
            Path(partial).write_bytes(b"half of it")
            raise SafetensorError("No space left on device")

        monkeypatch.setattr(loop, "save_file", full)
        with pytest.raises(OSError, match=r"can't be written to .*state: No space left on device"):
            run.save(tmp_path / "state")
        assert [path.name for path in tmp_path.iterdir()] == ["state"]
        assert (tmp_path / "state").read_bytes() == before


class Fragile(nn.Module):
    """Logits are weight · input, so that a batch can make the loss, or only its gradient, anything."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.config = tiny_config()

    def forward(self, factor: torch.Tensor) -> torch.Tensor:
        return (self.weight * factor).sqrt().expand(1, 1, 4) * torch.tensor([1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize("gradient_clip", [0.0, 1.0])
@pytest.mark.parametrize(("factor", "what"), [(math.nan, "loss"), (-1.0, "loss"), (0.0, "gradient")])
def test_where_a_number_is_none_the_weights_stay_those_of_before_the_step(factor, what, gradient_clip):
    factors, target, model, history = [1.0, 1.0, factor], torch.zeros(1, 1, dtype=torch.long), Fragile(), []
    config = TrainingConfig(steps=9, warmup_steps=0, gradient_clip=gradient_clip, average_decay=0.5)
    run = TrainingRun(model, config)
    with pytest.raises(NotFiniteError, match=rf"{what} became (nan|inf|-inf) at step 3; a lower learning rate"):
        train(
            model,
            lambda step: Batch((torch.tensor(factors[step]),), target),
            config,
            lambda report: history.append((state(model), state(run.best_model))),
            run=run,
        )
    assert len(history) == run.step == 2
    assert same(state(model), history[-1][0]) and same(state(run.best_model), history[-1][1])
    assert model.weight.grad is None and model.weight.isfinite().all()


@pytest.mark.parametrize(
    ("field", "values"),
    [
        *(("steps", [0]), ("weight_decay", [math.inf]), ("optimizer", ["sgd"])),
        ("learning_rate", [0.0, -1.0, math.nan, math.inf]),
        *((field, [1.0, -0.1]) for field in ("average_decay", "momentum")),
    ],
)
def test_a_wrong_field_is_named(field, values):
    for value in values:
        with pytest.raises(ValueError, match=f"^{field} is {value!r}"):
            TrainingConfig(**{"steps": 1, field: value})
