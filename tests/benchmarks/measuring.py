"""Measures alternatives in turn, and estimates the uncertainty."""

import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Timing:
    """Seconds that each repetition took, in the order measured."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        return quartiles(self.seconds)


def alternate(
    things: dict[str, Callable[[], object]],
    rounds: int,
    *,
    clock: Callable[[], float] = time.perf_counter,
    warm_up: int = 20,
    before_each: Callable[[], object] = lambda: None,
) -> dict[str, Timing]:
    """Time each thing once a round, beginning each round with another one.

    Whatever slows the machine for a while slows all of them alike, so that their ratios hold even where the
    times themselves don't.
    clock: `time.thread_time` for work on one thread, which leaves out what other programs take of the processor;
        `time.perf_counter` for anything else.
    before_each: done before each thing, and not timed, such as `gc.collect` where one would have to clear away what
        the one before it left.
    """
    for thing in things.values():
        for _ in range(warm_up):
            thing()
    seconds: dict[str, list[float]] = {name: [] for name in things}
    names = list(things)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            before_each()
            started = clock()
            things[name]()
            seconds[name].append(clock() - started)
    return {name: Timing(tuple(values)) for name, values in seconds.items()}


def keep_freed_memory() -> None:
    """Let glibc keep what is freed for the next allocation, as it does in the app.

    Until a program has freed one large block, glibc hands freed memory back to the system, and every pass that
    keeps many tensors pays for getting it again page by page (mallopt(3), "dynamic mmap threshold"). Importing
    Streamlit frees such blocks; a bare Python process has not yet.
    """
    torch.empty(7_000_000)


def ratio(timing: Timing, to: Timing) -> dict[str, float]:
    """How many times as long: the median over rounds of each round's own ratio, and its quartiles."""
    ratios = [a / b for a, b in zip(timing.seconds, to.seconds, strict=True)]
    low, high = quartiles(ratios)
    return {"median": round(statistics.median(ratios), 4), "low": round(low, 4), "high": round(high, 4)}


def quartiles(values: list[float] | tuple[float, ...]) -> tuple[float, float]:
    """The values below which a quarter and three quarters lie."""
    low, _, high = statistics.quantiles(values, n=4)
    return low, high


def percentile(values: Sequence[float], percent: float) -> float:
    """The least of the values that is at least as large as so many per cent of them."""
    ordered = sorted(values)
    return ordered[max(math.ceil(len(ordered) * percent / 100) - 1, 0)]


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, 95th percentile and worst."""
    return {"median": round(statistics.median(values), 3), "95": percentile(values, 95), "worst": max(values)}


def print_timings(what: str, timings: dict[str, Timing]) -> None:
    """A table of medians and quartiles, in milliseconds."""
    rows = [
        (name, f"{1000 * timing.median:.3f}", " – ".join(f"{1000 * q:.3f}" for q in timing.quartiles))
        for name, timing in timings.items()
    ]
    print_table((what, "median ms", "quartiles"), rows)


def print_ratios(ratios: dict[str, dict[str, float]], targets: dict[str, float], aim: str) -> None:
    """A table of ratios, and of what they should be, by the ends of their names. aim: "at most" or "at least"."""
    print_table(
        ("ratio", "median", "quartiles", aim),
        [
            (
                name,
                f"{value['median']:.3f}",
                f"{value['low']:.3f} – {value['high']:.3f}",
                next((f"{target:.2f}" for end, target in targets.items() if name.endswith(end)), ""),
            )
            for name, value in ratios.items()
        ],
    )


def figures_of(ratios: dict[str, dict[str, float]]) -> dict[str, object]:
    """Ratios as a benchmark returns them: medians, and their quartiles."""
    medians = {name: value["median"] for name, value in ratios.items()}
    return medians | {f"{name}_quartiles": [value["low"], value["high"]] for name, value in ratios.items()}


def machine() -> dict[str, str | int]:
    """What the absolute times were measured on."""
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count() or 0,
        "torch": torch.__version__,
        "torch_threads": torch.get_num_threads(),
        "python": platform.python_version(),
    }


def print_table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Columns as wide as they need to be; the first left-aligned, the others right-aligned."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    for row in [header, tuple("-" * width for width in widths), *rows]:
        first, *others = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join([first.strip().ljust(widths[0]), *others]).rstrip())
