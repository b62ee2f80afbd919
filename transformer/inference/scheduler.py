"""The scheduler: one thread per model that generates the next token of every submitted text, batch by batch.

    request = schedulers.of(model).submit(DecodeState(model, tokens), max_new_tokens=200, stop_tokens=(end,))
    for step in request: …            # or, in a coroutine, and without a thread of its own: async for step in request

Each batch generates one token for every request in it (Yu et al. 2022, Orca, §3.1: iteration-level scheduling).
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
import time
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Sequence
from itertools import islice

from ..fair_queue import FairQueue
from ..model.models import Model
from .batched_decoding import PREFILL_TOKENS, BatchedDecoding
from .generation import DecodeState, GenerationStep

IDLE_SECONDS = 10.0
"""Seconds without a text after which a scheduler's thread ends; the next text starts another."""
MOST_TEXTS = 32
"""The most texts in a batch, unless there are more owners: each has at least one, and they share the rest in turn."""

OnStep = Callable[[GenerationStep], bool]
"""Called with each token on the scheduler's thread; returns whether to continue."""


class Request:
    """A text that a scheduler writes: its steps can be iterated, once, with `for` or `async for`.

    Both raise the errors of the text's passes, and cancel the request when they are left early. With `buffer` untaken
    steps a request pauses until half of them are taken, without delaying others.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        state: DecodeState,
        max_new_tokens: int | None,
        stop_tokens: Sequence[int],
        buffer: int,
        on_step: OnStep | None,
        owner: Hashable,
    ) -> None:
        """Made by `Scheduler.submit`."""
        self.state, self.owner = state, owner
        self._scheduler, self._left, self._stop_tokens = scheduler, max_new_tokens, frozenset(stop_tokens)
        self._buffer, self._on_step = buffer, on_step
        self._steps: deque[GenerationStep] = deque()
        self._changed = threading.Condition()
        self._notify: Callable[[], object] = lambda: None
        """Notifies a coroutine of changes."""
        self._is_resting = self._is_cancelled = self._is_over = False
        self._error: Exception | None = None

    def cancel(self) -> None:
        """Stop after the token in progress, without waiting for it."""
        self._is_cancelled = True
        self._scheduler._wake()

    def wait(self) -> None:
        """Wait until it is over and the state is the caller's again. Raises the errors of the text's passes."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over)
        if self._error is not None:
            raise self._error

    def __iter__(self) -> Iterator[GenerationStep]:
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._steps or self._is_over)
                if (step := self._take()) is None:
                    return
                yield step
        finally:
            self.cancel()

    async def __aiter__(self) -> AsyncIterator[GenerationStep]:
        loop, has_changed = asyncio.get_running_loop(), asyncio.Event()

        def notify() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits
                loop.call_soon_threadsafe(has_changed.set)

        self._notify = notify
        try:
            while True:
                has_changed.clear()
                if not self._steps and not self._is_over:
                    await has_changed.wait()
                elif (step := self._take()) is None:
                    return
                else:
                    yield step
        finally:
            self.cancel()

    def _take(self) -> GenerationStep | None:
        """The next step; None at the end. Raises the errors of the text's passes."""
        with self._changed:
            if self._steps:
                step = self._steps.popleft()
            elif self._error is not None:
                raise self._error
            else:
                return None
            was_resting = self._is_resting
            self._is_resting &= len(self._steps) > self._buffer // 2
        if was_resting and not self._is_resting:
            self._scheduler._wake()
        return step

    def _put(self, step: GenerationStep) -> bool:
        """Deliver a step; returns whether to continue."""
        if self._left is not None:
            self._left -= 1
        goes_on = self._left != 0 and step.token_id not in self._stop_tokens
        if self._on_step is not None:
            return self._on_step(step) and goes_on
        with self._changed:
            self._steps.append(step)
            self._is_resting = len(self._steps) >= self._buffer
            self._changed.notify_all()
        self._notify()
        return goes_on

    def _end(self, error: Exception | None = None) -> None:
        with self._changed:
            self._is_over, self._error = True, error
            self._changed.notify_all()
        self._notify()


class Scheduler:
    """Writes all submitted texts of one model, on one thread, which runs while there are any.

    In a batch, passes over prompts and moved windows compute at most PREFILL_TOKENS tokens in total, or one prompt:
    nobody waits longer than that between two tokens.
    """

    def __init__(self, model: Model) -> None:
        self._model = weakref.ref(model)  # weak: an idle scheduler must not keep the model alive
        self._changed = threading.Condition()
        self._requests: FairQueue[Request] = FairQueue()  # those waiting longest for a pass over a prompt come first
        self._came = dict[Request, None]()
        """The same, in order of arrival."""
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._stepped_at: float | None = None
        """The start of the present step."""

    @property
    def seconds_in_step(self) -> float:
        """Seconds that the present step has taken so far; 0 between steps."""
        begun = self._stepped_at
        return 0.0 if begun is None else time.monotonic() - begun

    @property
    def texts(self) -> int:
        """How many texts are being written."""
        return len(self._came)

    @property
    def texts_due(self) -> int:
        """How many of them somebody waits for, because their buffer isn't full."""
        with self._changed:
            return sum(not request._is_resting for request in self._came)

    def submit(
        self,
        state: DecodeState,
        *,
        max_new_tokens: int | None = None,
        stop_tokens: Sequence[int] = (),
        buffer: int = 64,
        on_step: OnStep | None = None,
        owner: Hashable = None,
    ) -> Request:
        """Continue a text. The state belongs to the scheduler until the request is over.

        max_new_tokens: None for no limit. stop_tokens: ids that end it; the stop token is still reported. buffer: how
        many steps to compute ahead of the reader. on_step: called with each step instead, on the scheduler's thread;
        returning False ends the text, and an exception fails this request only. owner: in whose turn to write it if
        there are more texts than a batch takes.
        Raises: ValueError for a text that is being written already, or by another model.
        """
        if state.model is not self._model():
            raise ValueError("This text is written by another model; texts that are written together share one.")
        request = Request(self, state, max_new_tokens, stop_tokens, buffer, on_step, owner)
        if max_new_tokens is not None and max_new_tokens <= 0:
            request._end()
            return request
        with self._changed:
            if any(other.state is state for other in self._came):
                raise ValueError("This text is being written already; wait until its request is over.")
            self._requests.put(owner, request)
            self._came[request] = None
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="scheduler", daemon=True)
                self._thread.start()
        return request

    def close(self) -> None:
        """Cancel all requests, and wait until the thread has ended. Later requests start another."""
        with self._changed:
            for request in self._came:
                request._is_cancelled = True
            thread = self._thread
            self._is_closing = thread is not None
            self._changed.notify()
        if thread is not None:
            thread.join()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify()

    def _run(self) -> None:
        while self._has_requests():
            try:
                self._write(self._decoding())
            except Exception as error:  # not one text's error: fail all, so that nobody waits in vain
                with self._changed:
                    left, self._requests, self._came = self._came, FairQueue(), {}
                for request in left:
                    request._end(error)

    def _has_requests(self) -> bool:
        """Wait for a request without holding the model; returns whether one came before the thread has to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._came or self._is_closing, IDLE_SECONDS)
            if not self._came:
                self._thread, self._is_closing = None, False
            return bool(self._came)

    def _decoding(self) -> BatchedDecoding:
        with self._changed:
            return BatchedDecoding(next(iter(self._came)).state.model)

    def _write(self, decoding: BatchedDecoding) -> None:
        """Compute steps until every request is over."""
        while active := self._active():
            requests = self._next_batch(active)
            self._stepped_at = time.monotonic()
            try:
                steps = decoding.step([request.state for request in requests])
            finally:
                self._stepped_at = None
            for request in requests:
                step = steps[request.state]
                try:
                    if isinstance(step, Exception):
                        raise step
                    if request._put(step):
                        continue
                    error = None
                except Exception as raised:
                    error = raised
                self._finish(request, decoding, error)
            for request in active:
                if request._is_cancelled and not request._is_over:
                    self._finish(request, decoding)

    def _active(self) -> list[Request]:
        """Wait for requests that can continue or are cancelled; empty if none are left."""

        def ready() -> list[Request]:
            return [request for request in self._requests if request._is_cancelled or not request._is_resting]

        with self._changed:
            self._changed.wait_for(lambda: ready() or not self._came)
            return ready()

    def _next_batch(self, active: list[Request]) -> list[Request]:
        """The requests whose token is computed now: as many as a batch takes, except prompts that have to wait for
        others."""
        batch, read, taken = [], 0, self._taken(active)
        for request in active:
            pending = request.state.pending
            is_later = request not in taken or (read and pending > 1 and read + pending > PREFILL_TOKENS)
            if request._is_cancelled or is_later:
                continue
            batch.append(request)
            if pending > 1:
                read += pending
                with self._changed:  # next time it needs such a pass, others come first
                    self._requests.serve(request)
        return batch

    def _taken(self, active: list[Request]) -> set[Request]:
        """The requests that fit into a batch, chosen regardless of prompts, so that the batch changes little."""
        if len(active) <= MOST_TEXTS:
            return set(active)
        ready, queue = set(active), FairQueue[Request]()
        with self._changed:
            for request in self._came:
                if request in ready:
                    queue.put(request.owner, request)
        return set(islice(queue, max(MOST_TEXTS, len({request.owner for request in active}))))

    def _finish(self, request: Request, decoding: BatchedDecoding, error: Exception | None = None) -> None:
        decoding.release(request.state)
        with self._changed:
            self._requests.remove(request)
            del self._came[request]
        request._end(error)


class Schedulers:
    """The schedulers of all models; each is freed with its model."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: weakref.WeakKeyDictionary[Model, Scheduler] = weakref.WeakKeyDictionary()
        atexit.register(self.close)  # a thread inside PyTorch at the interpreter's exit would abort the process

    def of(self, model: Model) -> Scheduler:
        """The scheduler of this model."""
        with self._lock:
            return self._known.setdefault(model, Scheduler(model))

    @property
    def texts(self) -> int:
        """How many texts are being written, of all models."""
        with self._lock:
            return sum(decoding.texts for decoding in self._known.values())

    @property
    def texts_due(self) -> int:
        """How many of them have somebody waiting for the next token."""
        with self._lock:
            known = list(self._known.values())
        return sum(decoding.texts_due for decoding in known)

    @property
    def seconds_in_step(self) -> float:
        """The longest time that any model's present step has taken so far."""
        with self._lock:
            return max((decoding.seconds_in_step for decoding in self._known.values()), default=0.0)

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            known = list(self._known.values())
        for decoding in known:
            decoding.close()


schedulers = Schedulers()
"""The process's schedulers."""
