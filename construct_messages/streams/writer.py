"""The one thread that writes to a store: whatever waits is committed together, and what is acknowledged is on disk.

A commit takes as long as the disk needs to confirm it, whether it holds one element or thousands. So publishers hand in
changes and wait, and the thread takes all that wait into one transaction. Nothing here reads for followers.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, Generic, TypeVar

from construct_messages.errors import ConstructMessagesError, StoreError
from construct_messages.streams.broadcast import Broadcast
from construct_messages.streams.database import WriterLock, open_to_write, translated
from construct_messages.streams.element import State
from construct_messages.streams.reading import StoredStream, load
from construct_messages.streams.transaction import Transaction

T = TypeVar("T")

_COMMIT_BYTES: Final = 1 << 24  # after so many no further change joins a transaction
_PRUNE_SECONDS: Final = 1.0  # how often elements that became too old are looked for

Clock = Callable[[], int]
"""Microseconds since 1970 in UTC."""


class Writer:
    """Writes to a store until it is closed.

    Args:
        path: of the store; made where there is none.
        broadcast: hears of what was committed.
        clock: tells the time of elements.

    Raises:
        StoreLocked: another process writes to it.
        StoreError: it cannot be opened.
    """

    def __init__(self, path: Path, broadcast: Broadcast, clock: Clock) -> None:
        self._path, self._broadcast, self._clock = path, broadcast, clock
        self._lock = WriterLock(path)
        try:
            self._connection = open_to_write(path)
            self._streams = self._load()
        except BaseException:
            self._lock.release()
            raise
        self._queue: SimpleQueue[_Change[Any] | None] = SimpleQueue()
        self._closing = Lock()
        self._closed = False
        self._thread = Thread(target=self._run, name="streams-writer", daemon=True)
        self._thread.start()

    def state(self, name: str) -> State | None:
        """Returns the state of a stream at the last commit; None: there is no such stream."""
        stream = self._streams.get(name)
        return stream and stream.state

    def states(self) -> list[State]:
        """Returns the states of all streams at the last commit, by name."""
        return sorted((stream.state for stream in self._streams.values()), key=lambda state: state.name)

    def submit(self, change: Callable[[Transaction], T], bytes: int = 0) -> Future[T]:
        """Hands in a change; its future has the result once that is on disk.

        Args:
            change: makes it, all or nothing: it raises errors of this package before it changes anything.
            bytes: how much it is going to write.

        Raises:
            StoreError: the store is closed.
        """
        waiting = _Change(change, bytes)
        with self._closing:
            if self._closed:
                raise StoreError(f"the store {self._path} is closed", hint="open it again")
            self._queue.put(waiting)
        return waiting.future

    def close(self) -> None:
        """Commits what waits and lets go of the file."""
        self._end()
        self._thread.join()
        self._connection.close()
        self._lock.release()

    def _end(self) -> None:
        """Takes no more changes."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._queue.put(None)

    def _run(self) -> None:
        more = True
        pruned = time.monotonic()
        try:
            while more:
                changes, more = self._waiting()
                due = time.monotonic() - pruned >= _PRUNE_SECONDS
                if changes or due:
                    self._commit(changes, every_stream=due)
                if due:
                    pruned = time.monotonic()
        finally:
            # where a defect ends the thread, nobody waits for it in vain
            self._end()
            while more and (change := self._queue.get()) is not None:
                change.future.set_exception(self._stopped())

    def _waiting(self) -> tuple[list[_Change[Any]], bool]:
        """Returns the jobs that wait, and whether more may come."""
        changes: list[_Change[Any]] = []
        try:
            change = self._queue.get(timeout=_PRUNE_SECONDS)
            size = 0
            while change is not None:
                if change.future.set_running_or_notify_cancel():
                    changes.append(change)
                    size += change.bytes
                if size > _COMMIT_BYTES:
                    return changes, True
                change = self._queue.get_nowait()
        except Empty:
            return changes, True
        return changes, False

    def _commit(self, changes: Sequence[_Change[Any]], *, every_stream: bool) -> None:
        """One transaction of several changes: those that are refused change nothing, and hold up none of the others."""
        results: list[tuple[_Change[Any], Any, ConstructMessagesError | None]] = []
        failed: ConstructMessagesError | None = self._stopped()
        try:
            with translated(self._path):
                self._connection.execute("BEGIN IMMEDIATE")
                transaction = Transaction(self._connection, dict(self._streams), self._clock())
                for change in changes:
                    try:
                        results.append((change, change.apply(transaction), None))
                    except ConstructMessagesError as error:
                        results.append((change, None, error))
                transaction.prune(every_stream=every_stream)
                self._connection.execute("COMMIT")
                failed = None
        except ConstructMessagesError as error:
            failed = error
        finally:
            if failed is not None:
                with suppress(sqlite3.Error):  # then it fails again, and says so, when the next change begins
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                for change in changes:
                    change.future.set_exception(failed)
        if failed is not None:
            return
        self._streams = transaction.streams
        self._broadcast.publish(transaction.elements, transaction.gone)
        for change, result, refused in results:
            if refused is None:
                change.future.set_result(result)
            else:
                change.future.set_exception(refused)

    def _stopped(self) -> StoreError:
        return StoreError(f"{self._path}: nothing is written any more", hint="open the store again")

    def _load(self) -> dict[str, StoredStream]:
        with translated(self._path):
            return load(self._connection)


class _Change(Generic[T]):
    """Something to be written, and who waits for it."""

    def __init__(self, apply: Callable[[Transaction], T], bytes: int) -> None:
        self.apply, self.bytes = apply, bytes
        self.future: Future[T] = Future()
