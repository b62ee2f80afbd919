"""Tests that models are opened once, closed when unused, and replaced or damaged ones said to be so."""

import gc
import shutil
import threading
import weakref

import pytest
import streamlit as st

from pages.ui.models import library
from tests.app_driver import asked, given, go, open_folds, page_state, said, start, step, told_of
from tests.helpers import tiny_model
from tests.tiny_models import ALPHABET, save_pair, save_tiny, truncate
from transformer import Checkpoint, CheckpointError, ModelCard, Tokenizer
from transformer.api import model_library as shelf
from transformer.api.model_library import Library
from transformer.api.model_store import checkpoint_bytes
from transformer.api.open_models import OpenModel, OpenModels
from transformer.checkpoints import memory_limit as memory
from transformer.checkpoints.memory_limit import memory_limit, process_memory
from transformer.jobs import FairThreads, StoppedError, progress


def opened(name="a") -> OpenModel:
    return OpenModel(name, name, Checkpoint(tiny_model(), Tokenizer.of_characters("abc"), ModelCard(title=name)))


SIZE = checkpoint_bytes(opened().checkpoint)


# How much memory there is


def test_the_limit_is_what_the_variable_says_else_it_follows_the_memory_of_the_process(monkeypatch):
    for told, limit in (("1500 MB", 1_500_000_000), ("2GB", 2_000_000_000), (" 0.5 gb ", 500_000_000)):
        monkeypatch.setenv("HEADSUP_MODEL_MEMORY", told)
        assert memory_limit() == limit
    for told in ("much", "0 MB", "-1 GB", "1500", "1e9 MB", "1 TB", "1 MB 2"):
        monkeypatch.setenv("HEADSUP_MODEL_MEMORY", told)
        with pytest.raises(ValueError, match=r"HEADSUP_MODEL_MEMORY is .* such as '1500 MB'"):
            memory_limit()
    monkeypatch.delenv("HEADSUP_MODEL_MEMORY")
    for has, limit in ((4_500_000_000, 3_800_000_000), (690_000_000, 172_500_000), (24 * 10**9, 23_300_000_000)):
        monkeypatch.setattr(memory, "process_memory", lambda has=has: has)
        assert memory_limit() == limit


MACHINE = 8 * 10**9


@pytest.mark.parametrize(
    ("groups", "limits", "bytes_"),
    [
        ("0::/", {"memory.max": "2700000000"}, 2_700_000_000),  # version 2, as a container sees it
        ("0::/", {"memory.max": "max"}, MACHINE),
        ("0::/a/b", {"a/memory.max": "690000000", "a/b/memory.max": "max"}, 690_000_000),  # of a group around it
        ("3:cpu:/x\n2:memory,hugetlb:/x", {"memory/memory.limit_in_bytes": "1000000000"}, 10**9),  # version 1
        ("2:memory:/x", {"memory/x/memory.limit_in_bytes": str(2**63 - 4096)}, MACHINE),  # which is no limit
        ("3:cpu:/x", {"memory.max": "1"}, MACHINE),
        (None, {}, MACHINE),  # not on Linux
    ],
)
def test_the_memory_of_a_process_is_what_its_control_groups_leave_it(groups, limits, bytes_, tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_physical_memory", lambda: MACHINE)
    files = {f"sys/fs/cgroup/{name}": text for name, text in limits.items()}
    for name, text in (files | ({"proc/self/cgroup": groups} if groups else {})).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    assert process_memory(tmp_path) == bytes_


# Models that are open


def test_one_that_can_t_fit_is_refused_and_nothing_is_closed_for_it(tmp_path, monkeypatch):
    small, _ = (save_tiny(tmp_path, name, d_model=width) for name, width in (("small", 16), ("large", 64)))
    monkeypatch.setenv("HEADSUP_MODEL_MEMORY", f"{2 * checkpoint_bytes(small) / 1e6:.6f} MB")
    models = Library(tmp_path)
    first = weakref.ref(models.open("small"))
    with pytest.raises(CheckpointError, match="large: Its weights need"):
        models.open("large")
    gc.collect()
    assert first() is models.open("small")


def test_who_was_asked_for_least_recently_goes_and_comes_back():
    models, loads = OpenModels(int(2.5 * SIZE)), []

    def get(name):
        return models.get(name, lambda: SIZE, lambda: loads.append(name) or opened(name))

    first = weakref.ref(get("a"))
    for name in "bac":  # b is the oldest then
        get(name)
    gc.collect()
    assert first() is get("a") and loads == ["a", "b", "c"]
    assert get("b").name == "b" and loads == ["a", "b", "c", "b"]
    assert models.size <= models.limit


def test_one_that_somebody_holds_stays_the_same_and_counts():
    models = OpenModels(int(1.5 * SIZE))
    held = models.get("a", lambda: SIZE, opened)
    models.get("b", lambda: SIZE, lambda: opened("b"))
    assert models.size == 2 * SIZE  # more than there should be, but nothing is taken from under anybody
    assert models.get("a", lambda: SIZE, opened) is held
    del held
    models.get("c", lambda: SIZE, lambda: opened("c"))
    gc.collect()
    assert models.size == SIZE


def test_many_who_ask_at_once_open_it_once_and_one_that_can_t_be_opened_is_tried_again():
    models, began, loads, found = OpenModels(10 * SIZE), threading.Event(), [], []

    def load():
        loads.append(1)
        began.wait(30)
        return opened()

    with pytest.raises(OSError, match="gone"):
        models.get("a", lambda: SIZE, lambda: (_ for _ in ()).throw(OSError("gone")))
    threads = [threading.Thread(target=lambda: found.append(models.get("a", lambda: SIZE, load))) for _ in range(4)]
    for thread in threads:
        thread.start()
    began.set()
    for thread in threads:
        thread.join(30)
    assert len(loads) == 1 and len(found) == 4 and len(set(map(id, found))) == 1


# Checkpoints that are replaced, damaged or removed while pages are open


@pytest.fixture
def folder(tmp_path, monkeypatch, quick_app_test):
    save_pair(tmp_path)
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    st.cache_resource.clear()
    return tmp_path


def shown(at):
    """The number of layers and of tokens of the model that the page shows."""
    config = at.session_state["session"].text.model.checkpoint.model.config
    return config.n_layers, config.vocab_size


def titles(at):
    """Of the models that the shell offers."""
    return [model["title"] for model in told_of(at)["catalogue"]]


def test_a_model_that_is_replaced_is_shown_at_once_and_what_was_written_stays(folder, monkeypatch):
    at = step(start())
    version = given(at)["request"]["version"]  # which the tab has opened
    text = page_state(open_folds(go(at, "Masks"))).written  # where Python draws it
    save_tiny(folder, "shakespeare", title="Another", seed=5, n_layers=1, alphabet=ALPHABET + "é")
    assert shown(at.run()) == (1, len(ALPHABET) + 1) and text and page_state(at).written == text
    monkeypatch.setattr(shelf, "LISTED_FOR", 0.0)  # ten seconds later
    found = asked(at, "generate", tokens="1,2", max_new_tokens=1, version=version)
    assert found.status_code == 409 and "replaced by another version" in found.json()["error"]
    assert "Another" in titles(at.run())


@pytest.mark.parametrize("page", ["Generate", "Attention"])
@pytest.mark.parametrize("change", [lambda f: shutil.rmtree(f / "shakespeare"), lambda f: truncate(f, "shakespeare")])
def test_one_that_has_gone_or_broken_is_a_sentence(folder, page, change, monkeypatch):
    at = start(page)
    change(folder)
    at.run()  # while the list is still the old one
    assert "can't be opened" in said(at)
    monkeypatch.setattr(shelf, "LISTED_FOR", 0.0)
    assert not at.run().exception
    assert page_state(at).model == "martin-fierro"


# Jobs


def test_a_job_says_how_far_it_is_and_stops_at_its_next_step():
    seen, go_on = threading.Event(), threading.Event()

    def compute():
        for at in range(1000):
            progress(at / 1000)
            if at == 500:
                seen.set()
                go_on.wait(30)
        raise AssertionError("it wasn't stopped")

    threads = FairThreads(1, "test")
    job = threads.submit(None, compute)
    assert seen.wait(30) and job.share == 0.5 and not job.done()
    job.stop()
    go_on.set()
    assert isinstance(job.exception(30), StoppedError) and job.was_stopped
    failed = threads.submit(None, lambda: 1 / 0)
    assert isinstance(failed.exception(30), ZeroDivisionError) and not failed.was_stopped
    progress(0.5)  # outside of a job nobody's business
