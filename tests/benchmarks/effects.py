"""Benchmarks ablation and activation patching.

The model `shakespeare` as it ships (6 layers of 6 heads) reads 64 characters, on one thread, as in the app:

- silencing: all 36 heads and 6 feed-forward layers, one at a time, in batches, as the page What if asks for them.
- one by one: the same, a pass for each part. The benchmark stops if it says anything else.
- patching: another text's residual stream, attention and feed-forward outputs, put in one place at a time: of each, 6
  layers × 64 positions.

Seconds are those of the clock; beside them, those of the processor, which leave out what other programs take of it.
"""

import time
from collections.abc import Callable

import torch

from tests.browser.servers import ROOT
from transformer import DecoderOnly, load_checkpoint, patching, silencing
from transformer.inference.interventions import hooks_of

from .measuring import alternate, keep_freed_memory, machine, print_table, ratio

MODEL = "shakespeare"
TEXT = "To be, or not to be, that is the question: whether 'tis nobler in"
OTHER = "To be, or not to be, that is the question: whether 'tis nobler on"
LENGTH = 64
TARGETS = {"silencing_seconds": 2.0}


def run(quick: bool = False) -> dict:
    """Measure, print the table, and return every figure."""
    torch.set_num_threads(1)
    keep_freed_memory()
    checkpoint = load_checkpoint(ROOT / "checkpoints" / MODEL)
    text, other = (checkpoint.tokenizer.encode(each)[-LENGTH:] for each in (TEXT, OTHER))
    return measure(checkpoint.model, text, other, rounds=2 if quick else 8)


def measure(model: DecoderOnly, text: list[int], other: list[int], rounds: int) -> dict:
    """Measure a model on two texts of equal length that differ; print the table, and return every figure."""
    found = silencing(model, text)
    torch.testing.assert_close(_one_by_one(model, text), found.logits, atol=1e-4, rtol=1e-4)
    with torch.no_grad():
        answer, against = (int(model(torch.tensor([each]))[0, -1].argmax()) for each in (text, other))
    if answer == against:
        raise SystemExit("Both texts are continued alike, so that there is nothing to trace.")
    things: dict[str, Callable[[], object]] = {
        "silencing": lambda: silencing(model, text),
        "one_by_one": lambda: _one_by_one(model, text),
        "patching": lambda: patching(model, text, other, answer, against),
    }
    clocks = {"seconds": time.perf_counter, "processor_seconds": time.thread_time}
    timings = {name: alternate(things, rounds, clock=clock, warm_up=1) for name, clock in clocks.items()}
    rows = [
        (
            name.replace("_", " "),
            *(f"{timings[clock][name].median:.3f}" for clock in clocks),
            f"{TARGETS[target]:.1f}" if (target := f"{name}_seconds") in TARGETS else "",
        )
        for name in things
    ]
    print_table((f"{len(found.parts)} parts, {len(text)} tokens", "median s", "of processor", "at most"), rows)
    batched = ratio(timings["processor_seconds"]["one_by_one"], to=timings["processor_seconds"]["silencing"])
    return {
        **{f"{name}_{clock}": round(timings[clock][name].median, 4) for name in things for clock in clocks},
        **{f"{name}_target": target for name, target in TARGETS.items()},
        "one_by_one_ratio": batched["median"],
        "parts": len(found.parts),
        "tokens": len(text),
        **machine(),
    }


@torch.no_grad()
def _one_by_one(model: DecoderOnly, text: list[int]) -> torch.Tensor:
    """(part, pos, vocab): the logits without each part, each by a pass of its own."""
    tokens = torch.tensor([text])
    parts = silencing(model, text[:1]).parts
    return torch.cat([model.run_with_hooks(tokens, fwd_hooks=hooks_of((part,), model)) for part in parts])
