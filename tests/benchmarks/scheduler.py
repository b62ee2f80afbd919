"""Benchmarks the scheduler: thirty texts at once, with one model or two.

Each is read by a coroutine, as a stream over HTTP is, and has 200 tokens drawn with temperature 0.8, after prompts of 5
to 16 tokens, or of 257 to 320, which is past the context of 256. The first token counts from the moment at which all
are submitted; tokens a second are those after the first, of the slowest text. `alone` is one text past the context
without a scheduler.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from pathlib import Path

import numpy as np
import torch

from transformer import DecoderOnly, Sampling, generate, load_checkpoint
from transformer.inference.generation import DecodeState
from transformer.inference.scheduler import schedulers

from .measuring import machine, print_table

CHECKPOINTS = Path(__file__).parents[2] / "checkpoints"
TEXTS, TOKENS = 30, 200
SHORT, LONG = 5, 257
TARGETS = {"short_first_95": 0.4, "short_least": 20, "long_least": 15}


def run(quick: bool = False) -> dict:
    """Returns seconds to the first token, 95 %, and tokens a second, the least, of each setting, and the machine."""
    torch.set_num_threads(1)
    one, other = (load_checkpoint(CHECKPOINTS / name).model for name in ("shakespeare", "martin-fierro"))
    settings = {
        "short": ([one], SHORT),
        "long": ([one], LONG),
        "two_models": ([one, other], SHORT),
        "two_models_long": ([one, other], LONG),
    }
    figures: dict[str, float] = {}
    for name, (models, length) in settings.items():
        asyncio.run(_write(models, length, 5))
        found = [asyncio.run(_write(models, length, TOKENS)) for _ in range(1 if quick else 3)]
        figures[f"{name}_first_95"], figures[f"{name}_least"] = (round(float(each), 3) for each in np.median(found, 0))
    figures["alone_long"] = round(_alone(one), 1)
    rows = [(name, f"{figures[f'{name}_first_95']:.2f} s", f"{figures[f'{name}_least']:.1f}") for name in settings]
    print_table((f"{TEXTS} texts", "first token, 95 %", "tokens a second, least"), rows)
    return {**figures, **{f"{name}_target": target for name, target in TARGETS.items()}, **machine()}


async def _write(models: list[DecoderOnly], length: int, tokens: int) -> tuple[float, float]:
    """Seconds to the first token, 95 % of texts; tokens a second, the least."""
    began = time.perf_counter()
    arrivals = await asyncio.gather(
        *(_read(models[number % len(models)], length, number, tokens) for number in range(TEXTS))
    )
    first = [times[0] - began for times in arrivals]
    return np.quantile(first, 0.95, method="higher"), min((tokens - 1) / (times[-1] - times[0]) for times in arrivals)


async def _read(model: DecoderOnly, length: int, number: int, tokens: int) -> list[float]:
    """When each token came."""
    state = DecodeState(model, _prompt(length, number), sampling=Sampling(0.8, seed=number))
    return [time.perf_counter() async for _ in schedulers.of(model).submit(state, max_new_tokens=tokens)]


def _alone(model: DecoderOnly) -> float:
    """Tokens a second of one text past the context."""
    steps = generate(model, _prompt(LONG, 0), max_new_tokens=TOKENS + 1, sampling=Sampling(0.8, seed=0))
    next(steps)
    began = time.perf_counter()
    return len(list(itertools.islice(steps, TOKENS))) / (time.perf_counter() - began)


def _prompt(length: int, number: int) -> list[int]:
    spread = 64 if length > SHORT else 12
    return [(3 * place + number) % 60 for place in range(length + number * 7 % spread)]
