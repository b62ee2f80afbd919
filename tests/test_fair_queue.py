"""Tests that whoever queues much keeps nobody else waiting, in every queue there is."""

import contextlib
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui.views.learn import lesson_upload
from tests.helpers import tiny_model
from tests.training_plans import text_plan, until
from transformer.api.computations import Computations
from transformer.api.errors import ApiError
from transformer.fair_queue import FairQueue
from transformer.inference import scheduler as scheduling
from transformer.inference.generation import DecodeState
from transformer.inference.scheduler import Scheduler
from transformer.jobs import FairThreads
from transformer.training.training_queue import TrainingQueue

PATIENCE = 60
OWNERS = st.sampled_from("abcd")


@given(st.lists(OWNERS | st.just(None), max_size=60))
def test_owners_are_served_in_turn_and_each_one_s_items_as_they_came(orders):
    """An order is an owner who queues an item, or None for one that is taken."""
    queue, waiting, came = FairQueue(), {}, 0
    passed = {}
    """Of each owner who waits, how often each other owner was served since."""
    for owner in [*orders, *[None] * len(orders)]:
        if owner is not None:
            came += 1
            queue.put(owner, (owner, came))
            waiting.setdefault(owner, []).append((owner, came))
            passed.setdefault(owner, [])
        elif taken := queue.take():
            served, item = taken
            assert item == waiting[served].pop(0)
            del passed[served]
            for others in passed.values():
                assert served not in others, "twice, while another waits"
                others.append(served)
            if waiting[served]:
                passed[served] = []
            else:
                del waiting[served]
        assert len(queue) == sum(map(len, waiting.values()))
        assert list(queue) == expected_order(queue)
    assert not waiting and not len(queue)


def expected_order(queue):
    """Those that would be taken, one after another."""
    copy = FairQueue()
    copy._waiting = {owner: [*items] for owner, items in queue._waiting.items()}
    return [taken[1] for taken in iter(copy.take, None)]


@given(st.lists(st.tuples(OWNERS, st.integers(0, 3))), OWNERS)
def test_where_there_is_no_room_whoever_has_most_makes_some(puts, newcomer):
    queue = FairQueue()
    for number, (owner, _) in enumerate(puts):
        queue.put(owner, (owner, number))
    counts = {owner: len(items) for owner, items in queue._waiting.items()}
    last = queue.last_of_longest(newcomer)
    most = max(counts.values(), default=0)
    assert (last is None) == (most <= counts.get(newcomer, 0) + 1)
    assert last is None or (counts[last[0]] == most and last == queue._waiting[last[0]][-1])


class Call:
    """Something that is computed until it may end. order: who has begun, one after another."""

    def __init__(self, owner, order):
        self.owner, self.order = owner, order
        self.begun, self.may_end = threading.Event(), threading.Event()

    def __call__(self, *_, **__):
        self.order.append(self.owner)
        self.begun.set()
        assert self.may_end.wait(PATIENCE)
        return []


def in_threads():
    pool = FairThreads(2, "test")
    return lambda call: pool.submit(call.owner, call), pool


def in_computations():
    computations = Computations(2, 100)

    def ask(call):
        def wait():
            with computations.join(call, call, call.owner) as job:
                job.result(PATIENCE)

        before = len(computations)
        threading.Thread(target=wait, daemon=True).start()
        until(lambda: len(computations) > before)

    return ask, computations._threads


def in_lesson_checks():
    def ask(call):
        check = [b"+++", call.owner]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lesson_upload, "answer_of", call)
            checking = threading.Thread(target=lesson_upload.checked, args=check, daemon=True)
            before = len(pool._waiting) + len(pool._running)
            checking.start()
            until(lambda: len(pool._waiting) + len(pool._running) > before)

    pool = lesson_upload._one_at_a_time
    return ask, pool


@pytest.mark.parametrize("queue", [in_threads, in_computations, in_lesson_checks])
def test_sixteen_long_computations_of_one_keep_nobody_else_waiting_for_more_than_one(queue):
    order = []
    ask, pool = queue()
    mine, theirs = [Call("one", order) for _ in range(16)], [Call(f"other {number}", order) for number in range(3)]
    for call in [*mine, *theirs]:
        ask(call)
    if pool.limit > 1:
        assert theirs[0].begun.wait(PATIENCE), "though nothing of the first has ended"
    for call in [*mine, *theirs]:
        call.may_end.set()
    assert all(call.begun.wait(PATIENCE) for call in [*mine, *theirs])
    assert max(order.index(call.owner) for call in theirs) <= pool.limit + len(theirs) + 1, order


def test_what_waits_for_two_begins_in_the_turn_of_either_and_whoever_has_most_makes_room():
    order, computations = [], Computations(1, 5)
    ask = Call("first", order)
    with contextlib.ExitStack() as stack:
        stack.enter_context(computations.join("first", ask, "one"))
        mine = [stack.enter_context(computations.join(n, Call(n, order), "one")) for n in range(4)]
        stack.enter_context(computations.join(2, order.clear, "two"))
        theirs = stack.enter_context(computations.join("new", Call("new", order), "two"))
        with pytest.raises(ApiError, match="too much to compute") as told:
            mine[3].result(0)
        assert told.value.status_code == 503
        for who in ("one", "two"):  # who has as many, or would
            with pytest.raises(ApiError, match="too much"), computations.join("more", order.clear, who):
                pass
        assert [*computations._threads._waiting] == [mine[0], mine[2], mine[1], theirs]
        computations.close()
        ask.may_end.set()


def test_a_text_is_written_in_its_owner_s_turn(monkeypatch):
    """Of 300 texts of one, others wait for none: prompts are read, and tokens written, in turn."""
    monkeypatch.setattr(Scheduler, "_run", lambda scheduler: None)
    monkeypatch.setattr(scheduling, "PREFILL_TOKENS", 8)
    model = tiny_model()
    for prompt in ([1], [1] * 7):
        scheduler = Scheduler(model)
        for _ in range(300):
            scheduler.submit(DecodeState(model, prompt), owner="one")
        assert len(owners_in_batch(scheduler)) == (scheduling.MOST_TEXTS if len(prompt) == 1 else 1)
        scheduler.submit(DecodeState(model, prompt), owner="two")
        batches = [owners_in_batch(scheduler) for _ in range(8)]
        if len(prompt) == 1:
            assert all(each.count("two") == 1 and len(each) == scheduling.MOST_TEXTS for each in batches)
        else:
            assert batches == [["one"], ["two"]] * 4
        new = {f"new {number}" for number in range(scheduling.MOST_TEXTS)}
        for owner in new:
            scheduler.submit(DecodeState(model, [1]), owner=owner)
        assert new <= {*owners_in_batch(scheduler)}, "each always has one"


def owners_in_batch(scheduler):
    return [request.owner for request in scheduler._next_batch(scheduler._active())]


@pytest.mark.parametrize(("limit", "positions"), [(1, [2, 4]), (3, [None, 2])])
def test_trainings_of_one_leave_others_their_turn_and_a_slot(monkeypatch, limit, positions):
    monkeypatch.setattr(TrainingQueue, "_run", lambda queue, job: None)
    queue, plan = TrainingQueue(limit), text_plan(1)
    mine, theirs = ([queue.train(plan, owner) for _ in range(count)] for owner, count in (("one", 50), ("two", 2)))
    assert [queue.position(job) for job in theirs] == positions
    assert queue.owners.count("one") == 50 and queue.counts == (limit, 52 - limit)
    for job in mine[:2]:
        queue.leave(job)
    assert theirs[0].state == "running" and queue.counts == (limit, 50 - limit)
