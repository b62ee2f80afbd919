"""Runs one benchmark and prints a table, then one line of JSON.

python -m tests.benchmarks NAME [--quick]
"""

import argparse
import importlib
import json
import pkgutil
import sys
from pathlib import Path

from transformer.output_pipe import until_closed

SUPPORT = {"__main__", "chromium", "engine_client", "measuring", "protocol", "serving", "visitors"}
"""Modules of this folder that are no benchmarks."""


def benchmark_names() -> list[str]:
    """Every module of this folder with a function `run(quick) -> dict`."""
    return sorted({module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])} - SUPPORT)


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark that is named; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("name", metavar="NAME", help=", ".join(benchmark_names()))
    parser.add_argument("--quick", action="store_true", help="fewer repetitions: a rougher figure, sooner")
    options = parser.parse_args(arguments)
    if options.name not in benchmark_names():
        print(f"There is no benchmark {options.name!r}; there are {', '.join(benchmark_names())}.", file=sys.stderr)
        return 1
    benchmark = importlib.import_module(f"{__package__}.{options.name}")
    figures = benchmark.run(quick=options.quick)
    print(json.dumps({"benchmark": options.name, "quick": options.quick, **figures}))
    return 0


if __name__ == "__main__":
    sys.exit(until_closed(main))
