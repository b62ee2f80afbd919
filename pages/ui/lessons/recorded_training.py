"""The losses of a training that was recorded, for pages on which nothing can be trained.

`python -m pages.ui lesson training` trains it again, and writes the file.
"""

import dataclasses
import functools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from transformer import TASKS
from transformer.training.objectives import TaskObjective
from transformer.training.plan import plan_of
from transformer.training.quick_presets import QUICK
from transformer.training.trainer import Trainer

PRESET = "quick-induction"
"""What the page Train suggests for the lesson on induction."""
EVALUATE_EVERY = 15
"""Steps."""
FILE = Path(__file__).with_suffix(".json")

_is_shown: ContextVar[bool] = ContextVar("is_shown", default=False)


@contextmanager
def instead_of_a_visitor_s() -> Iterator[None]:
    """Within this, what is measured of a visitor's training is measured of the recorded one."""
    token = _is_shown.set(True)
    try:
        yield
    finally:
        _is_shown.reset(token)


def losses_shown(task: str) -> list[tuple[int, float]]:
    """Step and validation loss, in nats, where the recorded training stands for a visitor's; else, and for a task
    whose training wasn't recorded, none."""
    recorded = _read() if _is_shown.get() else {}
    return [(step, loss) for step, loss in recorded["losses"]] if recorded.get("task") == task else []


def record() -> str:
    """Train, and write the file; returns what was done, in a sentence."""
    preset = QUICK[PRESET]
    assert preset.task is not None
    objective = TaskObjective(TASKS[preset.task], preset.batch, preset.training.seed)
    plan = dataclasses.replace(plan_of(preset, objective), is_thorough=False, evaluate_every=EVALUATE_EVERY)
    trainer = Trainer(plan)
    trainer.go()
    losses = [[step, round(loss, 4)] for step, loss in trainer.progress.validation_losses]
    FILE.write_text(json.dumps({"preset": PRESET, "task": preset.task, "losses": losses}) + "\n", encoding="utf-8")
    _read.cache_clear()
    return f"Wrote {FILE.name}: {len(losses)} losses, the last {losses[-1][1]:.2f} nats."


@functools.cache
def _read() -> dict:
    return json.loads(FILE.read_text(encoding="utf-8"))
