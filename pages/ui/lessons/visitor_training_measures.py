"""Measures the training that the visitor has run on the page Train. See `measures`.

The measures are of losses on what is held out; a training that has not ended yet has none.
"""

from collections.abc import Sequence

import numpy as np

from pages.ui.lessons.measure_registry import uncached_measure
from pages.ui.lessons.measure_setup import MeasureError, NotMeasurableYet, Setup
from pages.ui.lessons.recorded_training import losses_shown
from pages.ui.models import library
from pages.ui.session import visitor_training
from transformer.training.training_job import ENDED

FEWEST = 8
"""Validations, for the shape of a curve to be told."""


@uncached_measure
def own_steepest_fall(setup: Setup, share: float = 0.1) -> float:
    """Of all that the loss fell, the part that it fell within its steepest stretch: a `share` of all steps."""
    return steepest(_losses(setup), share)[0]


@uncached_measure
def own_steepest_at(setup: Setup, share: float = 0.1) -> float:
    """Where the middle of that stretch is, as a share of all steps."""
    return steepest(_losses(setup), share)[1]


@uncached_measure
def own_last_loss(setup: Setup) -> float:
    """The loss after the last step."""
    return _losses(setup)[-1][1]


def steepest(losses: Sequence[tuple[int, float]], share: float) -> tuple[float, float]:
    """The steepest stretch of a curve: what part of the whole fall it has, and where its middle is.

    losses: step and loss. share: the length of the stretch; both it and the middle are shares of the last step.
    Raises: MeasureError for a share that is none, and for a curve that doesn't fall.
    """
    if not 0 < share <= 1:
        raise MeasureError("share is more than 0 and at most 1")
    steps, values = np.array(losses, dtype=float).T
    fall = values[0] - values.min()
    if not fall > 0:
        raise MeasureError("the loss of this training didn't fall")
    length = share * steps[-1]
    begins = np.linspace(steps[0], max(steps[-1] - length, steps[0]), 400)
    falls = np.interp(begins, steps, values) - np.interp(begins + length, steps, values)
    best = int(falls.argmax())
    return float(falls[best] / fall), float((begins[best] + length / 2) / steps[-1])


def _losses(setup: Setup) -> list[tuple[int, float]]:
    """The validation losses of the visitor's training of the task that the setup's model has learned."""
    if recorded := losses_shown(library.model(setup.name).card.task):
        return recorded
    job = visitor_training.training_record().job
    if job is None:
        raise NotMeasurableYet("nothing has been trained yet; press Train in the view, and wait until it has ended")
    if job.state not in ENDED:
        raise NotMeasurableYet("the training is still under way; wait until it has ended")
    losses = list(job.progress.validation_losses)
    task = library.model(setup.name).card.task
    if job.checkpoint is None or job.checkpoint.card.task != task:
        raise NotMeasurableYet(f"what was trained last is something else; train {task}")
    if len(losses) < FEWEST:
        raise NotMeasurableYet("the training was stopped too early to have a shape; let it run to its end")
    return losses
