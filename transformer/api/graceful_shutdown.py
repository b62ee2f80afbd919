"""Ends a server in order on SIGTERM: it takes no new work, finishes what runs while connections stay, and exits.

Servers such as uvicorn close their connections at once on SIGTERM, and then wait for streams for as long as these last.
"""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

PATIENCE, LOOK_EVERY = 5.0, 0.1
"""Seconds that what runs has to end by itself, and between two looks whether it has."""
FORCED_AFTER = 3.0
"""Seconds after which the server no longer waits for connections that don't close."""


@contextlib.contextmanager
def ending_in_order(
    begin: Callable[[], None], is_done: Callable[[], bool], end: Callable[[], None], patience: float = PATIENCE
) -> Iterator[None]:
    """Within, on the event loop of the server, SIGTERM goes to the server's own handler only after all this.

    begin: lets nothing new begin. is_done: whether all that ran has ended. end: cancels what has not.
    """
    usual = signal.getsignal(signal.SIGTERM)
    if not callable(usual) or threading.current_thread() is not threading.main_thread():
        yield  # the server doesn't end by signals
        return
    loop, tasks = asyncio.get_running_loop(), list[asyncio.Task]()

    async def drain() -> None:
        try:
            begin()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    while not is_done():
                        await asyncio.sleep(LOOK_EVERY)
            await asyncio.to_thread(end)
        finally:
            usual(signal.SIGTERM, None)
            loop.call_later(FORCED_AFTER, usual, signal.SIGINT, None)  # as Ctrl+C does, pressed once more

    def drain_once(number: int, frame: object) -> None:
        if not tasks:
            loop.call_soon_threadsafe(lambda: tasks or tasks.append(loop.create_task(drain())))

    signal.signal(signal.SIGTERM, drain_once)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, usual)
