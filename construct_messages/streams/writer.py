"""The thread that writes to a store: commits all waiting changes together, and acknowledges those on disk.

A commit takes as long as the disk needs to confirm it, for one element as for thousands. So publishers submit changes
and wait, and the thread puts all waiting changes into one transaction. Followers read elsewhere.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, Generic, NamedTuple, TypeVar

from construct_messages.rdf.errors import (
    ConstructMessagesError,
    StoreDamaged,
    StoreError,
    StoreFull,
)
from construct_messages.rdf.files.reserve import Reserve
from construct_messages.streams.database import (
    Damage,
    OpeningCheck,
    WriterLock,
    full_disk,
    open_to_write,
    translated,
)
from construct_messages.streams.element import State
from construct_messages.streams.publication import Broadcast
from construct_messages.streams.reading import load
from construct_messages.streams.transaction import Transaction, find_garbage

T = TypeVar("T")

_COMMIT_BYTES: Final = 1 << 24  # the maximal bytes of changes in a transaction
_CHECK_SECONDS: Final = 5.0  # that opening waits for the check of the file, which then continues
_MOST_PAGES: Final = (1 << 30) - 1  # SQLite's own bound before version 3.45
_PRUNE_SECONDS: Final = 1.0  # the interval at which elements are removed by age

Clock = Callable[[], int]
"""Microseconds since 1970 in UTC."""


class Change(NamedTuple, Generic[T]):
    """A change of a store.

    Args:
        apply: applies it, all or nothing: it raises errors of this package before it changes anything.
        bytes: the number of bytes that it writes.
        relieves: whether it frees space, so that it may use the reserve of a full disk.
    """

    apply: Callable[[Transaction], T]
    bytes: int = 0
    relieves: bool = False


class _Waiting(NamedTuple):
    """A change, and the thread or coroutine that waits for its result."""

    change: Change[Any]
    future: Future[Any] | asyncio.Future[Any]

    def begin(self) -> bool:
        """Whether the change is still needed."""
        if isinstance(self.future, Future):
            return self.future.set_running_or_notify_cancel()
        return not self.future.cancelled()


class _Outcome(NamedTuple):
    """The result of a change."""

    future: Future[Any] | asyncio.Future[Any]
    result: Any
    error: ConstructMessagesError | None

    def resolve(self) -> None:
        """Ends the wait; for a coroutine in its event loop, unless it has ended meanwhile."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


def _resolve(outcomes: Iterable[_Outcome]) -> None:
    """Ends the waits for changes, with one call for all coroutines of an event loop."""
    waiting: defaultdict[asyncio.AbstractEventLoop, list[_Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if isinstance(outcome.future, Future):
            outcome.resolve()
        else:
            waiting[outcome.future.get_loop()].append(outcome)
    for loop, those in waiting.items():
        with suppress(RuntimeError):  # the loop was closed while coroutines waited in it
            loop.call_soon_threadsafe(_resolve_all, those)


def _refuse(waiting: Iterable[_Waiting], error: ConstructMessagesError) -> None:
    _resolve([_Outcome(each.future, None, error) for each in waiting])


def _resolve_all(outcomes: Iterable[_Outcome]) -> None:
    for outcome in outcomes:
        outcome.resolve()


class Writer:
    """Writes to a store until it is closed.

    Args:
        path: the path of the store, which is created if it does not exist.
        broadcast: notified of each commit.
        clock: returns the time of elements.
        damage: the damage of the store; if there is any, nothing is written.
        reserve_bytes: the size of the reserve on the disk for changes that free space.

    Raises:
        StoreLocked: another process writes to it.
        StoreDamaged: its file is damaged.
        StoreError: it cannot be opened.
    """

    def __init__(
        self, path: Path, broadcast: Broadcast, clock: Clock, damage: Damage, reserve_bytes: int
    ) -> None:
        self._path, self._broadcast, self._clock, self._damage = path, broadcast, clock, damage
        self._reserve = Reserve(path, reserve_bytes)
        with ExitStack() as opened:
            self._lock = WriterLock(path)
            opened.callback(self._lock.release)
            self._connection = open_to_write(path)
            opened.callback(self._connection.close)
            self._check = OpeningCheck(path, damage)
            opened.callback(self._check.close)
            self._check.wait(_CHECK_SECONDS)
            with translated(path):
                self._streams = load(self._connection)
                self._garbage = find_garbage(self._connection, self._streams)
            opened.pop_all()
        self._reserve.keep()
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._closing = Lock()
        self._closed = False
        self._committed = True  # the last transaction
        self._bounded = False  # the database does not grow
        self._thread = Thread(target=self._run, name="streams-writer", daemon=True)
        self._thread.start()

    def state(self, name: str) -> State | None:
        """Returns the state of a stream at the last commit, or None."""
        stream = self._streams.get(name)
        return stream and stream.state

    def states(self) -> list[State]:
        """Returns the states of all streams at the last commit, by name."""
        return sorted(
            (stream.state for stream in self._streams.values()), key=lambda state: state.name
        )

    def write(self, change: Change[T]) -> T:
        """Makes a change, and returns its result when it is on disk.

        Raises:
            StoreError: the store is closed.
        """
        future: Future[T] = Future()
        self._hand_in(change, future)
        return future.result()

    def awrite(self, change: Change[T]) -> asyncio.Future[T]:
        """`write` for asyncio."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._hand_in(change, future)
        return future

    def _hand_in(self, change: Change[T], future: Future[T] | asyncio.Future[T]) -> None:
        with self._closing:
            if self._closed:
                raise StoreError(f"the store {self._path} is closed", hint="open it again")
            self._queue.put(_Waiting(change, future))

    def close(self) -> None:
        """Commits waiting changes and closes the file."""
        self._end()
        self._thread.join()
        self._check.close()
        self._connection.close()
        self._lock.release()

    def _end(self) -> None:
        """Rejects further changes."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._queue.put(None)

    def _run(self) -> None:
        more = True
        pruned = time.monotonic()
        try:
            while more:
                waiting, more = self._waiting()
                due = time.monotonic() - pruned >= _PRUNE_SECONDS
                if waiting or due or self._purges:
                    self._commit(waiting, every_stream=due)
                if due:
                    pruned = time.monotonic()
                    self._reserve.keep()
        finally:
            # if a defect ends the thread, no caller waits forever
            self._end()
            while more and (left := self._queue.get()) is not None:
                _resolve([_Outcome(left.future, None, self._stopped())])

    def _waiting(self) -> tuple[list[_Waiting], bool]:
        """Returns the waiting changes, and whether there may be more."""
        found: list[_Waiting] = []
        try:
            waiting = (
                self._queue.get_nowait()
                if self._purges
                else self._queue.get(timeout=_PRUNE_SECONDS)
            )
            size = 0
            while waiting is not None:
                if waiting.begin():
                    found.append(waiting)
                    size += waiting.change.bytes
                if size > _COMMIT_BYTES:
                    return found, True
                waiting = self._queue.get_nowait()
        except Empty:
            return found, True
        return found, False

    @property
    def _purges(self) -> bool:
        """Whether to delete rows now, rather than in the next second, as after a failure."""
        return bool(self._garbage) and self._committed

    def _commit(self, waiting: Sequence[_Waiting], *, every_stream: bool) -> None:
        """Commits changes. On a full disk, those that free space are committed alone, with the reserve if need be.

        Once the reserve is released, other changes use only free pages of the database: what they wrote to the disk
        would be missing for the next change that frees space.
        """
        if self._damage.error is not None:
            _refuse(waiting, self._damage.error)
            self._committed = False
            return
        relieving = [each for each in waiting if each.change.relieves]
        others = [each for each in waiting if not each.change.relieves]
        if self._reserve.released and not self._has_its_pages():
            self._fold_log()  # which may have to extend the file
            if not self._has_its_pages():
                _refuse(others, full_disk(self._path))
                waiting, others = relieving, []
        if not self._transact(waiting, every_stream=every_stream, retried=True):
            return
        # the database may have free pages, and only needs space for its log
        if self._fold_log() and not self._transact(
            waiting, every_stream=every_stream, retried=True
        ):
            return
        _refuse(others, full_disk(self._path))
        if relieving or self._garbage or (every_stream and self._is_due()):
            retried = self._reserve.is_there
            if self._transact(relieving, every_stream=every_stream, retried=retried) and retried:
                self._reserve.release()
                self._transact(relieving, every_stream=every_stream)
            self._fold_log(truncate=True)

    def _is_due(self) -> bool:
        """Whether elements are to be removed by age; yes if that cannot be read, as a transaction reports why."""
        try:
            return Transaction(self._connection, self._streams, self._clock(), []).is_due()
        except sqlite3.Error:
            return True

    def _has_its_pages(self) -> bool:
        """Whether the file has the size of the database, so that writing its log to it needs none; see `_is_due`."""
        try:
            pages, size = (
                int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])
                for name in ("page_count", "page_size")
            )
            return self._path.stat().st_size >= pages * size
        except (sqlite3.Error, OSError):
            return True

    def _bound(self, *, bounded: bool) -> None:
        """Keeps the database from growing, or lets it grow again."""
        if bounded != self._bounded:
            # SQLite takes its present size for a smaller number
            self._connection.execute(f"PRAGMA max_page_count = {1 if bounded else _MOST_PAGES}")
            self._bounded = bounded

    def _fold_log(self, *, truncate: bool = False) -> bool:
        """Writes the log of the database into it, so that the log restarts; returns whether that freed space."""
        mode = "TRUNCATE" if truncate else "PASSIVE"
        try:
            self._connection.execute("PRAGMA busy_timeout = 0")  # does not wait for readers
            _, pages, folded = self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
            self._connection.execute("PRAGMA busy_timeout = 5000")
        except sqlite3.Error:  # the disk has no space for that, either
            return False
        return bool(pages) and pages == folded

    def _transact(
        self, waiting: Sequence[_Waiting], *, every_stream: bool, retried: bool = False
    ) -> bool:
        """Commits several changes in one transaction; a failing change does not affect the others.

        Args:
            waiting: the changes.
            every_stream: whether to prune all streams.
            retried: whether they get no result if the disk is full, because they are retried.

        Returns:
            Whether the disk is full.
        """
        outcomes: list[_Outcome] = []
        failed: ConstructMessagesError | None = self._stopped()
        try:
            with translated(self._path):
                relieves = all(each.change.relieves for each in waiting)
                self._bound(bounded=self._reserve.released and not relieves)
                self._connection.execute("BEGIN IMMEDIATE")
                transaction = Transaction(
                    self._connection, dict(self._streams), self._clock(), list(self._garbage)
                )
                for change, future in waiting:
                    try:
                        outcomes.append(_Outcome(future, change.apply(transaction), None))
                    except StoreDamaged:
                        raise  # it concerns not only this change
                    except ConstructMessagesError as error:
                        outcomes.append(_Outcome(future, None, error))
                transaction.prune(every_stream=every_stream)
                transaction.purge()
                self._connection.execute("COMMIT")
                failed = None
        except ConstructMessagesError as error:
            failed = error
            if isinstance(error, StoreDamaged):
                self._damage.report(error)
        finally:
            self._committed = failed is None
            if failed is not None:
                with suppress(sqlite3.Error):  # the next change fails again, with an error
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                if not (retried and isinstance(failed, StoreFull)):
                    _refuse(waiting, failed)
        if failed is not None:
            return isinstance(failed, StoreFull)
        self._streams, self._garbage = transaction.streams, transaction.garbage
        self._broadcast.publish(transaction.elements, transaction.gone)
        # publishers first, so that they do not wait for the followers
        _resolve(outcomes)
        if transaction.elements or transaction.gone:
            # a follower may commit a change because of the elements, so its wake-up comes last
            self._broadcast.wake()
        return False

    def _stopped(self) -> StoreError:
        return StoreError(f"{self._path}: writing has stopped", hint="open the store again")
