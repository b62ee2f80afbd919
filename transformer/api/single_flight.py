"""Single flight: when several threads request the same value, one computes it and the others wait for it."""

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Values by key that are computed at most once at a time. It keeps none of them: callers say where they are."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        """Held while `find` and `keep` are called."""
        self._awaited: dict[Hashable, Future[T]] = {}

    def get(self, key: Hashable, find: Callable[[], T | None], make: Callable[[], T], keep: Callable[[T], None]) -> T:
        """The result of `find`; if that is None, of the `make` in progress on another thread, or else of `make`.

        Raises: what `make` raises, in the thread that called it. Those who waited for that one try for themselves.
        """
        while True:
            with self.lock:
                value = find()
                if value is not None:
                    return value
                awaited = self._awaited.get(key)
                if awaited is None:
                    mine = self._awaited[key] = Future()
                    break
            if awaited.exception() is None:
                return awaited.result()
        try:
            value = make()
        except BaseException as error:
            with self.lock:
                del self._awaited[key]
            mine.set_exception(error)
            raise
        with self.lock:
            del self._awaited[key]
            keep(value)
        mine.set_result(value)
        return value
