"""Benchmarks the engine in JavaScript, by Node.

Of some shipped models: the milliseconds in which a file of weights becomes a model (`opened`); in which the logits of a
prompt are computed, 64 tokens or a whole context, by the first pass (`first`) and by later ones (`prompt`); and every
tensor of such a pass (`whole`). Then the tokens a second that are written after that prompt, keys and values cached;
past the context, the window that has moved is read again. All but the first two are medians.

The targets: Shakespeare's prompt within 150 ms, and 100 tokens a second; 1,000 a second of the small ones.
"""

import json
import subprocess
from pathlib import Path

from playwright._impl._driver import compute_driver_executable

from transformer import load_checkpoint
from transformer.model.equations import equations_json

from .measuring import machine, print_table

CHECKPOINTS = Path(__file__).resolve().parents[2] / "checkpoints"
MODELS = ("ladder-8-blocks", "stories", "since-8-muon", "martin-fierro", "shakespeare")
SMALL = MODELS[:4]
TARGETS = {"shakespeare_prompt": 150, "shakespeare_tokens_a_second": 100}
TARGETS |= {f"{name}_tokens_a_second": 1_000 for name in SMALL}


def run(quick: bool = False) -> dict:
    """Measure, print the table, and return every figure."""
    asked = {"models": [_asked(name) for name in MODELS], "rounds": 3 if quick else 9, "written": 100 if quick else 180}
    command = [compute_driver_executable()[0], "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON"]
    script = Path(__file__).with_suffix(".mjs")
    found = subprocess.run([*command, script], input=json.dumps(asked), capture_output=True, text=True, check=True)
    figures = json.loads(found.stdout)
    print_table(
        ("model", "opened, ms", "first, ms", "prompt, ms", "whole, ms", "tokens/s"),
        [(name, *(f"{figure:,.0f}" for figure in of.values())) for name, of in _by_name(figures).items()],
    )
    return {
        **{f"{name}_{figure}": value for name, of in _by_name(figures).items() for figure, value in of.items()},
        "targets": TARGETS,
        "machine": machine(),
    }


def _by_name(figures: list[dict]) -> dict[str, dict[str, float]]:
    return {of["name"]: {figure: round(value, 1) for figure, value in of.items() if figure != "name"} for of in figures}


def _asked(name: str) -> dict:
    checkpoint = load_checkpoint(CHECKPOINTS / name)
    config = checkpoint.model.config
    tokens = [7 * at % config.vocab_size for at in range(min(64, config.context_length))]
    about = {"config": config.to_dict(), "equations": equations_json(config), "tokens": tokens}
    return {"name": name, "weights": str(CHECKPOINTS / name / "model.safetensors"), **about}
