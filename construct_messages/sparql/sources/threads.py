"""Runs a blocking generator in a thread, for asyncio and for readers with deadlines.

The thread is a daemon, and runs at most a few items ahead. It ends after its next item when its reader stops, and never
delays the end of the program.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import closing, suppress
from queue import Empty, SimpleQueue
from typing import Final, Generic, NamedTuple, TypeVar

from construct_messages.errors import SourceTimeout

T = TypeVar("T")

_AHEAD: Final = 16


def in_thread(blocking: Generator[T], deadline: float) -> Generator[T]:
    """The items of a blocking generator until a deadline.

    Args:
        blocking: runs in the thread, and is closed there.
        deadline: by `time.monotonic()`.

    Raises:
        SourceTimeout: the deadline passed.

    >>> list(in_thread((n * n for n in range(4)), time.monotonic() + 60))
    [0, 1, 4, 9]
    """
    with closing(_Thread(blocking, lambda: None)) as thread:
        while not isinstance(found := thread.get(_remaining(deadline)), _End):
            yield found
        found.raise_error()


async def ain_thread(blocking: Generator[T], deadline: float | None) -> AsyncGenerator[T]:
    """`in_thread` for asyncio; `deadline` may be None for none.

    >>> async def squares():
    ...     return [item async for item in ain_thread((n * n for n in range(4)), None)]
    >>> asyncio.run(squares())
    [0, 1, 4, 9]
    """
    loop, there = asyncio.get_running_loop(), asyncio.Semaphore(0)

    def notify() -> None:
        with suppress(RuntimeError):  # the loop is closed, so there is no reader any more
            loop.call_soon_threadsafe(there.release)

    async def get() -> T | _End:
        try:
            async with asyncio.timeout(_remaining(deadline)):
                await there.acquire()
        except TimeoutError:
            raise _late() from None
        return thread.get(0)

    with closing(_Thread(blocking, notify)) as thread:
        while not isinstance(found := await get(), _End):
            yield found
        found.raise_error()


class _End(NamedTuple):
    """The end of the items, with the error that ended the generator, if any."""

    error: BaseException | None

    def raise_error(self) -> None:
        if self.error is not None:
            raise self.error


class _Thread(Generic[T]):
    """The thread and its items; it calls `notify` for each item and at the end."""

    def __init__(self, blocking: Generator[T], notify: Callable[[], None]) -> None:
        self._queue: SimpleQueue[T | _End] = SimpleQueue()
        self._blocking, self._notify = blocking, notify
        self._room = threading.Semaphore(_AHEAD)
        self._closed = False
        threading.Thread(
            target=self._run, name="construct-messages evaluation", daemon=True
        ).start()

    def get(self, seconds: float | None) -> T | _End:
        """Takes the next item, so that the thread can compute another."""
        try:
            found = self._queue.get(timeout=seconds)
        except Empty:
            raise _late() from None
        self._room.release()
        return found

    def close(self) -> None:
        """Makes the thread end, without waiting for it."""
        self._closed = True
        self._room.release()

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            with closing(self._blocking) as items:
                for item in items:
                    self._room.acquire()
                    if self._closed:
                        return
                    self._queue.put(item)
                    self._notify()
        except BaseException as raised:  # noqa: BLE001 - passed to the reader, which raises it
            error = raised
        finally:
            self._queue.put(_End(error))
            self._notify()


def _remaining(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise _late()
    return remaining


def _late() -> SourceTimeout:
    return SourceTimeout(
        "the evaluation did not end within the time allowed", hint="raise timeout, or add a LIMIT"
    )
