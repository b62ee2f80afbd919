"""Runs of many visitors are let in one by one, in their order, and nobody waits for ever."""

import threading
import time

import pytest

from pages.ui.models.run_queue import RunQueue

SOON = 20.0
"""Seconds that nothing here takes, on the slowest machine."""


class Visitor:
    """Enters a queue on a thread of its own."""

    def __init__(self, queue, who):
        self.who, self.is_in = who, threading.Event()
        self.thread = threading.Thread(target=self._enter, args=[queue], daemon=True)
        before = len(queue._waiting)
        self.thread.start()
        until = time.monotonic() + SOON
        while not self.is_in.is_set() and len(queue._waiting) == before and time.monotonic() < until:
            time.sleep(0.001)

    def _enter(self, queue):
        queue.enter(self.who)
        self.is_in.set()


@pytest.fixture
def patient():
    return RunQueue(lease=2 * SOON)


def test_one_after_the_other_in_their_order(patient):
    visitors = [Visitor(patient, str(number)) for number in range(5)]
    for number, visitor in enumerate(visitors):
        assert visitor.is_in.wait(SOON)
        assert [other.is_in.is_set() for other in visitors] == [at <= number for at in range(5)]
        patient.leave(visitor.who)
    assert patient._inside is None and not patient._waiting


def test_whoever_leaves_without_having_been_in_lets_nobody_in(patient):
    first, second = Visitor(patient, "first"), Visitor(patient, "second")
    patient.leave("second")
    patient.leave("stranger")
    assert first.is_in.is_set() and not second.is_in.wait(0.05)


def test_a_run_begun_anew_stays_in(patient):
    Visitor(patient, "first")
    again = Visitor(patient, "first")
    assert again.is_in.wait(SOON)
    patient.leave("first")
    assert Visitor(patient, "second").is_in.wait(SOON)


def test_a_run_begun_anew_while_it_waits_keeps_its_place(patient):
    Visitor(patient, "first")
    old, third = Visitor(patient, "second"), Visitor(patient, "third")
    new = threading.Thread(target=patient.enter, args=["second"], daemon=True)
    new.start()
    assert old.is_in.wait(SOON)  # which breaks off at its next call
    assert [waiting.who for waiting in patient._waiting] == ["second", "third"]
    patient.leave("first")
    new.join(SOON)
    assert not new.is_alive() and not third.is_in.is_set()


def test_a_long_run_keeps_the_next_one_out_for_the_time_of_its_lease():
    queue = RunQueue(lease=0.05)
    began = time.monotonic()
    Visitor(queue, "long")
    assert Visitor(queue, "next").is_in.wait(SOON)
    assert time.monotonic() - began >= 0.05
    queue.leave("long")  # it is not the one inside any more
    assert queue._inside == "next"


def test_of_many_at_once_each_comes_in(patient):
    inside, most = [], []

    def run(who):
        patient.enter(who)
        inside.append(who)
        most.append(len(inside))
        time.sleep(0.001)
        inside.remove(who)
        patient.leave(who)

    threads = [threading.Thread(target=run, args=[str(number)], daemon=True) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert len(most) == 40 and max(most) == 1


def step_back(queue, who):
    """On a thread of its own, which is returned."""
    thread = threading.Thread(target=queue.step_back, args=[who], daemon=True)
    thread.start()
    until = time.monotonic() + SOON
    while queue._inside == who and time.monotonic() < until:
        time.sleep(0.001)
    return thread


def test_all_have_begun_before_anybody_goes_on(patient):
    visitors = [Visitor(patient, str(number)) for number in range(4)]
    waiting = []
    for number, visitor in enumerate(visitors):
        assert visitor.is_in.wait(SOON) and not any(other.is_in.is_set() for other in visitors[number + 1 :])
        assert all(thread.is_alive() for thread in waiting)
        if number < 3:
            waiting.append(step_back(patient, visitor.who))
    patient.leave("3")
    for number, thread in enumerate(waiting):
        thread.join(SOON)
        assert not thread.is_alive() and all(other.is_alive() for other in waiting[number + 1 :])
        patient.leave(str(number))
    assert patient._inside is None and not patient._waiting


def test_alone_a_run_that_steps_back_goes_on_at_once(patient):
    Visitor(patient, "alone")
    patient.step_back("alone")
    assert patient._inside == "alone"


def test_whoever_is_not_in_steps_back_for_nobody(patient):
    first, second = Visitor(patient, "first"), Visitor(patient, "second")
    patient.step_back("second")
    patient.step_back("stranger")
    assert patient._inside == "first" and first.is_in.is_set() and not second.is_in.is_set()


def test_a_run_begun_anew_while_it_waits_to_go_on_has_to_begin(patient):
    visitors = [Visitor(patient, who) for who in ("first", "second")]
    broken_off = step_back(patient, "first")
    assert visitors[1].is_in.wait(SOON)
    third = Visitor(patient, "third")
    threading.Thread(target=patient.enter, args=["first"], daemon=True).start()
    broken_off.join(SOON)
    assert not broken_off.is_alive()
    goes_on = step_back(patient, "second")
    assert patient._inside == "first" and not third.is_in.is_set()
    patient.leave("first")
    assert third.is_in.wait(SOON) and goes_on.is_alive()
