"""Estimates the cost of a training before it starts: parameters, memory and time.

Numbers: N weights that multiply, T tokens of a batch, L attentions, n context length, d = d_model.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from statistics import median

import torch

from ..config import ModelConfig
from ..data.batches import Batch
from ..model.models import Model, build_model, shapes_alone
from .loop import TrainingConfig, TrainingRun

COPIES = 5
"""Copies of each parameter in float32: the weight, its gradient, two moments of Adam, and a moving average."""
MOVING = 400
"""FLOPs that take as long as writing one activation and reading it again in the backward pass."""
SMALL = ModelConfig(vocab_size=16, context_length=8, n_layers=2, n_heads=2, d_model=16)
LARGE = ModelConfig(vocab_size=64, context_length=64, n_layers=1, n_heads=4, d_model=96)
CALIBRATED_WITH = ((SMALL, 4), (LARGE, 16))
"""Two steps to measure, configuration and batch: one shows the price of operations, one that of arithmetic."""
CALIBRATION_SECONDS = 0.12
"""Seconds for measuring each of the two."""
AGAIN_AFTER, KEPT = 60.0, 16
"""Seconds after which the machine is measured again, and how many measurements count."""
_measurements: deque[list[float]] = deque(maxlen=KEPT)
_measured_at = -math.inf
_ONE_AT_A_TIME = threading.Lock()


def parameter_count(config: ModelConfig) -> int:
    """The number of trainable parameters. Allocates nothing: the model is built from shapes alone."""
    return _shapes(config).parameter_count()


def training_memory(config: ModelConfig, batch: int) -> int:
    """The peak memory of a training in bytes, on top of the process's own.

    Counts each parameter `COPIES` times, and every activation that the backward pass needs, in float32.
    """
    return 4 * (COPIES * parameter_count(config) + batch * _activations(config))


def training_flops(config: ModelConfig, batch: int) -> int:
    """Floating-point operations of one step: 6·N·T + 12·L·d·n·T, and the optimiser's.

    Forward and backward take 6 for each weight and token (Kaplan et al. 2020, §2.1), and 12 for each token, dimension
    and position attended to (Chowdhery et al. 2022, PaLM, appendix B). Muon's five iterations of three products take
    30 · d_model for each weight inside a block, whatever the batch.
    """
    weights = dict(_shapes(config).named_parameters())
    inside = sum(weight.numel() for name, weight in weights.items() if "blocks." in name and weight.dim() == 2)
    multiplying = inside + config.vocab_size * config.d_model  # the unembedding; other tables are only looked up
    tokens = batch * config.context_length
    width = config.n_heads * config.d_head
    attention = 12 * _attentions(config) * width * config.context_length * tokens
    return 6 * multiplying * tokens + attention + 30 * config.d_model * inside


def training_seconds(config: ModelConfig, batch: int, steps: int) -> float:
    """Estimate the time to train with Muon on this machine when it is idle, to a factor of two.

    seconds = steps · (operations · price of each + (FLOPs + MOVING · activations) / speed)

    Price and speed come from measuring a quarter of a second of training now and then. For small models the operations
    dominate, in proportion to the number of parameter tensors, however small; for wide ones the FLOPs do.
    """
    return steps * machine().step_seconds(config, batch)


@dataclass(frozen=True)
class Machine:
    """The costs of a training step, as measured on one machine."""

    tensor_seconds: float
    """The fixed price of the operations on one parameter tensor, in seconds."""
    flops_per_second: float

    def step_seconds(self, config: ModelConfig, batch: int) -> float:
        """The time of one step."""
        return self.tensor_seconds * _tensors(config) + _work(config, batch) / self.flops_per_second


def machine() -> Machine:
    """The fastest of this machine's last measurements: other programs slowed the others down.

    If the newest is older than `AGAIN_AFTER`, the caller waits for a new one.
    """
    global _measured_at
    with _ONE_AT_A_TIME:
        if time.monotonic() - _measured_at > AGAIN_AFTER:
            _measurements.append(_measured())
            _measured_at = time.monotonic()
        small, large = map(min, zip(*_measurements, strict=True))
        return _machine(small, large)


def _machine(small: float, large: float) -> Machine:
    """Solve for the machine that takes these seconds for the two steps."""
    (few, little), (many, much) = _parts()
    # Two equations, seconds = price · tensors + work / speed.
    pace = (large * few - small * many) / (much * few - little * many)
    pace = min(max(pace, 0.1 * large / much), large / much)  # a disturbed measurement could give a negative number
    return Machine(max(small - pace * little, 0.1 * small) / few, 1 / pace)


def _parts() -> list[tuple[int, int]]:
    return [(_tensors(config), _work(config, batch)) for config, batch in CALIBRATED_WITH]


def _measured() -> list[float]:
    """Median seconds of each of the two steps."""
    medians = []
    for config, batch in CALIBRATED_WITH:
        run = TrainingRun(build_model(config, seed=0), TrainingConfig(steps=1, optimizer="muon", warmup_steps=0))
        tokens = torch.arange(batch * config.context_length).view(batch, -1) % config.vocab_size
        times: list[float] = []
        begun = time.perf_counter()
        while len(times) < 4 or time.perf_counter() - begun < CALIBRATION_SECONDS:
            started = time.perf_counter()
            run.take_step(Batch((tokens,), tokens))
            times.append(time.perf_counter() - started)
        medians.append(median(times[1:]))  # the first step also allocates memory
    return medians


@lru_cache(maxsize=32)
def _shapes(config: ModelConfig) -> Model:
    return shapes_alone(config)


def _tensors(config: ModelConfig) -> int:
    return sum(1 for _ in _shapes(config).parameters())


def _work(config: ModelConfig, batch: int) -> int:
    """FLOPs of one step, with each activation counted as `MOVING` FLOPs."""
    return training_flops(config, batch) + MOVING * batch * _activations(config)


def _attentions(config: ModelConfig) -> int:
    """The number of attentions: in an encoder–decoder, self-attentions of both sides and cross-attentions."""
    return config.n_encoder_layers + 2 * config.n_layers if _has_two_sides(config) else config.n_layers


def _has_two_sides(config: ModelConfig) -> bool:
    return config.architecture == "encoder-decoder"


def _activations(config: ModelConfig) -> int:
    """How many activations of one sequence the backward pass needs.

    Attention keeps its input, plain and normalised, queries, keys, values, z and two more like z, but not the scores,
    which the fused kernel recomputes; keys and values count twice if heads share them. The feed-forward layer keeps its
    input, plain and normalised, and its hidden layer before and after the activation and the gate; the unembedding
    three numbers for each token of the vocabulary.
    """
    encoder = config.n_encoder_layers if _has_two_sides(config) else 0
    inside = (4 if config.mlp_gate else 2) * config.d_ff
    feed_forward = (encoder + config.n_layers) * (2 * config.d_model + inside) if config.d_ff else 0
    of_heads = 4 * config.n_heads + 2 * config.kv_heads  # queries, z and two of the backward pass; keys and values
    if config.kv_heads < config.n_heads:
        of_heads += 2 * config.n_heads
    attention = (2 * config.d_model + of_heads * config.d_head) * _attentions(config)
    position = attention + feed_forward + 3 * config.vocab_size
    uniform = config.attention == "uniform"  # uniform attention keeps its weights as a tensor
    scores = (encoder + config.n_layers) * config.n_heads * config.context_length**2 if uniform else 0
    return position * config.context_length + scores
