"""Configures pytest: fixtures, hypothesis, threads, tiny models for the app."""

import functools
import gc
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no failure: no deadline, and slow generation is not held against a test. On CI the
# examples are the same every time, so that a red run can be repeated.
_COMMON = {"deadline": None, "max_examples": 30, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("dev", **_COMMON)
settings.register_profile("ci", **_COMMON, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """The whole suite in three processes, in files that each stay in one: on two cores, as one in seven seconds a test
    waits. Whatever is picked by name in this one, where it begins sooner, and where printing and a debugger work as
    ever."""
    picked = config.option.keyword or any(Path(name.partition("::")[0]).suffix for name in config.args)
    return 0 if picked else 3


gc.disable()  # while tests are collected: what is imported is no garbage, and it would look for some again and again


def pytest_collection_finish() -> None:
    """What is there by now stays to the end, and the garbage collector needn't go through it; nor, more than now and
    then, through what tests leave for good."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(*gc.get_threshold()[:2], 100)


@pytest.fixture(scope="session", autouse=True)
def one_torch_thread() -> None:
    """One thread: tiny tensors gain nothing from more, and on a busy core several wait for each other."""
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def the_models_that_ship() -> Iterator[None]:
    """After a test that had the app find its models elsewhere, nothing of those is remembered."""
    yield
    driver = sys.modules.get("tests.app_driver")
    if driver and driver.elsewhere:
        driver.forget_models()


@pytest.fixture(scope="session")
def node() -> Callable[..., subprocess.CompletedProcess]:
    """`node(*arguments, **options)`: runs the Node that comes with Playwright."""
    try:
        from playwright._impl._driver import compute_driver_executable
    except ImportError:
        if os.environ.get("HEADSUP_REQUIRE_BROWSER"):
            pytest.fail("HEADSUP_REQUIRE_BROWSER is set, but playwright is not installed", pytrace=False)
        pytest.skip("playwright, which brings Node, is not installed: see requirements-dev.txt")
    executable = compute_driver_executable()[0]

    def run(*arguments, **options):
        # No folder above the scripts says that they are modules; Node finds out by reading them.
        command = [executable, "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=250, **options)

    return run


@pytest.fixture
def queues() -> Iterator[Callable]:
    """Makes queues of trainings, and leaves no thread of theirs behind."""
    from transformer.training.training_queue import TrainingQueue

    made: list[TrainingQueue] = []

    def make(limit: int = 1, **fields) -> TrainingQueue:
        made.append(TrainingQueue(limit, **fields))
        return made[-1]

    yield make
    for queue in made:
        queue.close(60)
    for thread in threading.enumerate():
        if thread.name == "training":
            thread.join(60)
            assert not thread.is_alive()


@pytest.fixture(scope="session")
def quick_app_test() -> Iterator[None]:
    """AppTest reads the metadata of every installed package each time it opens an app, which takes longer than any
    page, and compiles the app's scripts with every run; here it does so once. And it looks a thousand times a second
    whether a script has ended, which takes the script's own time; here it waits for its thread."""
    from streamlit.components.v2 import manifest_scanner
    from streamlit.runtime.scriptrunner.script_cache import ScriptCache
    from streamlit.testing.v1 import local_script_runner

    look = local_script_runner.require_widgets_deltas

    def wait(runner, timeout: float = 3) -> None:
        runner._script_thread.join(timeout)
        if not runner.script_stopped():
            look(runner, 0)  # which says that it timed out

    with pytest.MonkeyPatch.context() as patch:
        scan = functools.cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", scan)
        patch.setattr(local_script_runner, "require_widgets_deltas", wait)
        patch.setattr(ScriptCache, "get_bytecode", functools.partial(ScriptCache.get_bytecode, ScriptCache()))
        yield


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two tiny models under the names of the shipped ones. Only to be read."""
    from tests.tiny_models import save_pair

    folder = tmp_path_factory.mktemp("checkpoints")
    save_pair(folder)
    return folder


@pytest.fixture(scope="session")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny model of each kind that masks are drawn for. Only to be read."""
    from tests.masks_page import save_kinds

    return save_kinds(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that tests copy and never change: a small one, unless the module says otherwise."""
    from tests.saved_checkpoints import checkpoint
    from transformer import save_checkpoint

    path = tmp_path_factory.mktemp("good") / "good"
    save_checkpoint(path, checkpoint())
    return path


@pytest.fixture
def copied(good: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(good, tmp_path / "damaged"))


@pytest.fixture(scope="module")
def tiny(pair: Path) -> Path:
    """The models that the app has in this module: the pair, unless the module says otherwise."""
    return pair


@pytest.fixture
def folder(tiny: Path, quick_app_test: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the app find the models of `tiny`, and nothing that an earlier test has left behind."""
    from tests.app_driver import use

    use(monkeypatch, tiny)
    return tiny


@pytest.fixture
def long(tmp_path: Path, quick_app_test: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """A text of 100 tokens for a model that reads the last 80, the only one that the app finds."""
    from tests.app_driver import use
    from tests.tiny_models import save_tiny

    save_tiny(tmp_path, "shakespeare", context_length=80)
    use(monkeypatch, tmp_path)
    return "".join(chr(97 + i % 26) for i in range(100))


@pytest.fixture
def training_page(folder: Path) -> Iterator[None]:
    """The page Train, whose trainings end with the test."""
    import streamlit as st

    from pages.ui.session import visitor_training

    yield
    visitor_training.queue().close()
    st.cache_resource.clear()
