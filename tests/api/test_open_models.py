"""Tests that models are opened once, and closed when unused."""

import gc
import threading
import weakref

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from pages.ui.models import background_jobs
from tests.helpers import tiny_model
from transformer import Card, Checkpoint, Tokenizer
from transformer.api.memory_limit import DEFAULT, memory_limit
from transformer.api.open_models import OpenModel, OpenModels, size_of


def opened(name="a") -> OpenModel:
    return OpenModel(name, name, Checkpoint(tiny_model(), Tokenizer.of_characters("abc"), Card(title=name)))


SIZE = size_of(opened())


@pytest.mark.parametrize(
    ("told", "bytes_"), [("1500 MB", 1_500_000_000), ("2GB", 2_000_000_000), (" 0.5 gb ", 500_000_000), ("", DEFAULT)]
)
def test_the_limit_is_what_the_variable_says(told, bytes_, monkeypatch):
    monkeypatch.setenv("HEADSUP_MODEL_MEMORY", told)
    assert memory_limit() == bytes_


@pytest.mark.parametrize("told", ["much", "0 MB", "-1 GB", "1500", "1e9 MB", "1 TB", "1 MB 2"])
def test_anything_else_is_refused_in_a_sentence(told, monkeypatch):
    monkeypatch.setenv("HEADSUP_MODEL_MEMORY", told)
    with pytest.raises(ValueError, match=r"HEADSUP_MODEL_MEMORY is .* such as '1500 MB'"):
        memory_limit()


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


def test_many_who_ask_at_once_open_it_once():
    models, began, loads, found = OpenModels(10 * SIZE), threading.Event(), [], []

    def load():
        loads.append(1)
        began.wait(10)
        return opened()

    threads = [threading.Thread(target=lambda: found.append(models.get("a", lambda: SIZE, load))) for _ in range(4)]
    for thread in threads:
        thread.start()
    began.set()
    for thread in threads:
        thread.join(10)
    assert len(loads) == 1 and len(found) == 4 and len(set(map(id, found))) == 1


def test_one_that_can_t_be_opened_is_tried_again():
    models = OpenModels(SIZE)
    with pytest.raises(OSError, match="gone"):
        models.get("a", lambda: SIZE, lambda: (_ for _ in ()).throw(OSError("gone")))
    assert models.get("a", lambda: SIZE, opened).name == "a"


# Jobs


def test_a_job_says_how_far_it_is_and_stops_at_its_next_step():
    seen, go = threading.Event(), threading.Event()

    def compute():
        for at in range(1000):
            background_jobs.progress(at / 1000)
            if at == 500:
                seen.set()
                go.wait(10)
        raise AssertionError("it wasn't stopped")

    job = background_jobs.Job("key", compute)
    assert seen.wait(10) and job.share == 0.5 and not job.is_over
    job.stop()
    go.set()
    assert job.wait(10) and job.was_stopped and job.error is None


def test_a_job_that_fails_says_why():
    failed = background_jobs.Job("key", lambda: 1 / 0)
    assert failed.wait(10) and isinstance(failed.error, ZeroDivisionError) and not failed.was_stopped


def of_a_visitor():
    """A page that begins what never ends by itself."""
    import time

    import streamlit as st

    from pages.ui.models import background_jobs

    def compute():
        while True:
            background_jobs.progress(0.5)
            time.sleep(0.01)

    if "jobs" not in st.session_state:
        st.session_state["jobs"] = [background_jobs.start(key, compute) for key in "ab"]


def test_a_job_ends_when_another_begins_or_its_visitor_s_session_does():
    at = AppTest.from_function(of_a_visitor, default_timeout=60).run()
    assert not at.exception
    first, second = at.session_state["jobs"]
    assert first.wait(10) and first.was_stopped
    assert not second.wait(0.2)
    at.run()
    assert not second.is_over
    st.cache_resource.clear()  # as Streamlit clears a session's own when its connection ends
    assert second.wait(10) and second.was_stopped


def test_outside_of_a_job_progress_is_nobody_s_business():
    background_jobs.progress(0.5)
