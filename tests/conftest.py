"""What every test shares: how hypothesis searches, how many threads torch may take, and queues that leave no thread."""

import importlib.util
import os
import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no failure: no deadline, and slow generation is not held against a test. On CI the
# examples are the same every time, so that a red run can be repeated.
_COMMON = {"deadline": None, "max_examples": 50, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("dev", **_COMMON)
settings.register_profile("ci", **_COMMON, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(scope="session", autouse=True)
def one_torch_thread() -> None:
    """One thread: tiny tensors gain nothing from more, and on a busy core several wait for each other."""
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)


@pytest.fixture
def queues() -> Iterator[Callable]:
    """Makes queues of trainings, and leaves no thread of theirs behind."""
    from transformer.training.queue import Queue

    made: list[Queue] = []

    def make(limit: int = 1, **fields) -> Queue:
        made.append(Queue(limit, **fields))
        return made[-1]

    yield make
    for queue in made:
        queue.close(20)
    assert not [thread for thread in threading.enumerate() if thread.name == "training"]
