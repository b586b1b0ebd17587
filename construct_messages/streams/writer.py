"""The thread that writes to a store: commits all waiting changes together, and acknowledges those on disk.

A commit takes as long as the disk needs to confirm it, for one element as for thousands. So publishers submit changes
and wait, and the thread puts all waiting changes into one transaction. Followers read elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from construct_messages.errors import (
    Conflict,
    ConstructMessagesError,
    StoreDamaged,
    StoreError,
    StoreFull,
)
from construct_messages.rdf.files.reserve import Reserve
from construct_messages.streams import reading
from construct_messages.streams.database import (
    Damage,
    OpeningCheck,
    WriterLock,
    full_disk,
    open_to_write,
    row_id,
    sequence_of,
    stream_of,
    translated,
)
from construct_messages.streams.element import Description, Element, State
from construct_messages.streams.publication import Broadcast, LogPart, Publications
from construct_messages.streams.reading import Seen, StoredStream, first_at, load, no_stream

# --- transaction ----------------------------------------------------------------------------------
# One transaction of a store: changes streams, appends elements, removes the oldest ones, and saves state.
#
# Each method checks everything before it changes anything, so that its error does not affect the other changes of the
# transaction. `writer.py` commits, keeps `streams`, and then announces `elements`.

KEY_SECONDS: Final = 24 * 3600
"""The time for which the key of a publication is kept."""

Rows: TypeAlias = tuple[int, int]
"""The keys of the first and the last element of a range."""

_PARTS: Final = b"parts"
"""The digest of a key whose messages are appended in parts."""
_SECOND: Final = 1_000_000  # microseconds
_PURGED_BYTES: Final = 1 << 22  # in one transaction
_ROW_BYTES: Final = 30  # the size of an element in addition to its N-Quads


class Transaction:
    """A transaction of a store.

    `streams` and `garbage`, the rows of removed elements, are changed in place. `elements` are those appended, and
    `gone` the names of deleted streams.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        streams: dict[str, StoredStream],
        now: int,
        garbage: list[Rows],
    ) -> None:
        self._connection, self.now, self.garbage = connection, now, garbage
        self._changed: set[str] = set()
        self.streams = streams
        self.elements: list[Element] = []
        # of appended elements that are not inserted yet: id, time, N-Quads, and when it was generated
        self._rows: list[tuple[int, int, bytes, str | None]] = []
        self.gone: list[str] = []

    def create(self, name: str, description: Description, *, exist_ok: bool) -> State:
        """Creates a stream."""
        if name in self.streams:
            if exist_ok:
                return self.streams[name].state
            raise Conflict(
                f"the stream {name} exists already", hint="choose another name, or delete it first"
            )
        cursor = self._connection.execute(
            "INSERT INTO stream (name, description, first, next, time, bytes) VALUES (?, ?, 1, 1, 0, 0)",
            (name, json.dumps(description.to_json())),
        )
        assert cursor.lastrowid is not None  # the inserted row
        state = State(name, description, first=1, next=1, bytes=0, id=cursor.lastrowid)
        self.streams[name] = StoredStream(0, state)
        return state

    def describe(self, name: str, description: Description) -> State:
        """Replaces the description of a stream."""
        stream = self._stream(name)
        state = stream.state._replace(description=description)
        self._connection.execute(
            "UPDATE stream SET description = ? WHERE id = ?",
            (json.dumps(description.to_json()), stream.id),
        )
        self.streams[name] = stream._replace(state=state)
        self._changed.add(name)  # its retention may have changed
        return state

    def delete(self, name: str) -> None:
        """Deletes a stream and its elements."""
        stream = self._stream(name)
        self.garbage.append((row_id(stream.id, 0), row_id(stream.id + 1, 0) - 1))
        self._connection.execute("DELETE FROM idempotency WHERE stream = ?", (stream.id,))
        self._connection.execute("DELETE FROM stream WHERE id = ?", (stream.id,))
        del self.streams[name]
        self._changed.discard(name)
        self.elements = [element for element in self.elements if element.stream != name]
        self.gone.append(name)

    def append(self, name: str, publications: Publications) -> range:
        """Appends messages to a stream, all or none. For a day, messages with a known key are not appended again, and
        get the sequences that they got the first time.
        """
        stream = self._stream(name)
        idempotency = publications.idempotency
        if idempotency is not None:
            known = self._known_key(name, *idempotency)
            if known is not None:
                first, count = known
                return range(first, first + count)
        sequences = self._append(name, stream, publications)
        if idempotency is not None:
            self._keep_key(name, *idempotency, sequences.start, len(sequences))
        return sequences

    def append_part(self, name: str, publications: Publications, part: LogPart) -> range:
        """Appends a part of a log with numbered messages, except for messages that were already appended under its key.
        Returns the sequences of those that this call appended, which are the last ones of the part.
        """
        stream = self._stream(name)
        known = self._known_key(name, part.key, _PARTS)
        count = 0 if known is None else known[1]
        if part.after > count:
            raise Conflict(
                f"{count} messages of the log {part.key!r} are stored, and not {part.after}",
                hint=f"send it from message {count + 1} on",
            )
        new = [
            message
            for message, number in zip(publications.messages, part.numbers, strict=True)
            if number > count
        ]
        sequences = self._append(name, stream, publications._replace(messages=new))
        self._keep_key(name, part.key, _PARTS, sequences.start, max(count, part.last))
        return sequences

    def _known_key(self, name: str, key: str, digest: bytes) -> tuple[int, int] | None:
        """Returns the first sequence and the number of the messages of a key, or None."""
        row = self._connection.execute(
            "SELECT digest, first, count FROM idempotency WHERE stream = ? AND key = ?",
            (self._stream(name).id, key),
        ).fetchone()
        if row is not None and row[0] != digest:
            raise Conflict(
                f"the key {key!r} was used for other messages in {name}",
                status=422,
                hint="use a new key for new messages",
            )
        return None if row is None else (row[1], row[2])

    def _keep_key(self, name: str, key: str, digest: bytes, first: int, count: int) -> None:
        time, state = self.streams[name]
        self._connection.execute(
            "INSERT INTO idempotency (stream, key, digest, first, count, time) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (stream, key) DO UPDATE SET count = excluded.count, time = excluded.time",
            (state.id, key, digest, first, count, time),
        )

    def _append(self, name: str, stream: StoredStream, publications: Publications) -> range:
        state = stream.state
        time = max(self.now, stream.time)
        elements = [
            Element(name, sequence, time, nquads, generated)
            for sequence, (nquads, generated) in enumerate(
                publications.numbered(state.next), state.next
            )
        ]
        start = row_id(stream.id, 0)
        self._rows += [
            (start + sequence, time, nquads, generated)
            for _, sequence, time, nquads, generated in elements
        ]
        size = sum(len(element.nquads) for element in elements)
        after = state._replace(next=state.next + len(elements), bytes=state.bytes + size)
        self.streams[name] = StoredStream(time, after)
        self._changed.add(name)
        self.elements += elements
        return range(state.next, after.next)

    def _insert(self) -> None:
        """Inserts the rows of appended elements: those of all changes together."""
        if self._rows:
            self._connection.executemany(
                "INSERT INTO element (id, time, nquads, generated) VALUES (?, ?, ?, ?)", self._rows
            )
            self._rows.clear()

    def trim(self, name: str, last: int) -> None:
        """Removes the oldest elements of a stream, up to a sequence."""
        stream = self._stream(name)
        first = min(last + 1, stream.state.next)
        if first > stream.state.first:
            self.streams[name] = self._remove(stream, first)
            self._changed.add(name)

    def put_state(self, owner: str, key: str, value: bytes | None) -> None:
        """Saves a value of a program; None removes it."""
        reading.put_state(self._connection, owner, key, value)

    def put_seen(self, owner: str, seen: Iterable[Seen]) -> None:
        """Saves digests of a program; those with a count of 0 are removed."""
        reading.put_seen(self._connection, owner, seen)

    def forget(self, owner: str) -> None:
        """Removes all state of a program."""
        reading.forget(self._connection, owner)

    def prune(self, *, every_stream: bool) -> None:
        """Removes elements by retention, and writes the states of the streams. `every_stream`: by age in all streams,
        and old keys are forgotten.
        """
        self._insert()
        if every_stream:
            self._connection.execute(
                "DELETE FROM idempotency WHERE time < ?", (self.now - KEY_SECONDS * _SECOND,)
            )
        for name in list(self.streams if every_stream else self._changed):
            stream = self.streams[name]
            first = self._first_kept(stream)
            if first > stream.state.first:
                stream = self._remove(stream, first)
            elif name not in self._changed:
                continue
            self.streams[name] = stream
            state = stream.state
            self._connection.execute(
                "UPDATE stream SET first = ?, next = ?, time = ?, bytes = ? WHERE id = ?",
                (state.first, state.next, stream.time, state.bytes, stream.id),
            )

    def is_due(self) -> bool:
        """Whether retention removes elements of any stream now."""
        return any(
            self._first_kept(stream) > stream.state.first for stream in self.streams.values()
        )

    def purge(self) -> None:
        """Deletes rows of removed elements, a limited number at a time.

        SQLite writes each freed page to its log, so deleting all rows at once would need as much space as they have.
        """
        left = _PURGED_BYTES
        while self.garbage and left > 0:
            first, last = self.garbage[0]
            row = None
            rows = self._connection.execute(
                "SELECT id, length(nquads) FROM element WHERE id BETWEEN ? AND ? ORDER BY id",
                (first, last),
            )
            for row, size in rows:  # noqa: B007 # the last one counts
                left -= size + _ROW_BYTES
                if left <= 0:
                    break
            rows.close()
            if row is not None:
                self._connection.execute(
                    "DELETE FROM element WHERE id BETWEEN ? AND ?", (first, row)
                )
            if left > 0:
                del self.garbage[0]
            elif row is not None:
                self.garbage[0] = (row + 1, last)

    def _first_kept(self, stream: StoredStream) -> int:
        """Returns the sequence of the oldest element that retention keeps."""
        state = stream.state
        retention, first = state.description.retention, state.first
        if retention.count is not None:
            first = max(first, state.next - retention.count)
        if retention.seconds is not None:
            oldest = self.now - int(retention.seconds * _SECOND)
            first = max(first, first_at(self._connection, stream.id, first, state.next, oldest))
        if retention.bytes is not None and state.bytes > retention.bytes:
            first = max(first, self._first_within(stream, retention.bytes))
        return first

    def _first_within(self, stream: StoredStream, most: int) -> int:
        left = stream.state.bytes
        rows = self._connection.execute(
            "SELECT id, length(nquads) FROM element WHERE id BETWEEN ? AND ? ORDER BY id",
            (row_id(stream.id, stream.state.first), row_id(stream.id, stream.state.last)),
        )
        for row, size in rows:
            if left <= most:
                return sequence_of(row)
            left -= size
        return stream.state.next

    def _remove(self, stream: StoredStream, first: int) -> StoredStream:
        self._insert()
        state = stream.state
        rows = (row_id(stream.id, state.first), row_id(stream.id, first - 1))
        size = self._connection.execute(
            "SELECT total(length(nquads)) FROM element WHERE id BETWEEN ? AND ?", rows
        ).fetchone()[0]
        self.garbage.append(rows)
        return stream._replace(state=state._replace(first=first, bytes=state.bytes - int(size)))

    def _stream(self, name: str) -> StoredStream:
        stream = self.streams.get(name)
        if stream is None:
            raise no_stream(name)
        return stream


_NEXT: Final = "SELECT id FROM element WHERE id >= ? ORDER BY id LIMIT 1"


def find_garbage(connection: sqlite3.Connection, streams: Mapping[str, StoredStream]) -> list[Rows]:
    """Finds the rows of removed elements that an earlier process has not deleted.

    Numbers of streams are never reused, so rows without a stream belong to a deleted one.
    """
    kept = {stream.id: stream.state.first for stream in streams.values()}
    garbage, start = list[Rows](), 0
    while (found := connection.execute(_NEXT, (start,)).fetchone()) is not None:
        row = int(found[0])
        stream, start = stream_of(row), row_id(stream_of(row) + 1, 0)
        last = row_id(stream, kept[stream]) - 1 if stream in kept else start - 1
        if row <= last:
            garbage.append((row, last))
    return garbage


# --- writer ---------------------------------------------------------------------------------------

T = TypeVar("T")

_COMMIT_BYTES: Final = 1 << 24  # the maximal bytes of changes in a transaction
_CHECK_SECONDS: Final = 5.0  # that opening waits for the check of the file, which then continues
_MOST_PAGES: Final = (1 << 30) - 1  # SQLite's own bound before version 3.45
_PRUNE_SECONDS: Final = 1.0  # the interval at which elements are removed by age

Clock = Callable[[], int]
"""Microseconds since 1970 in UTC."""


class Change(NamedTuple, Generic[T]):
    """A change of a store. `apply` raises errors of this package before it changes anything; it writes `bytes` bytes.
    `relieves`: it frees space, so that it may use the reserve of a full disk.
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

    If the store has damage, nothing is written. The reserve of the disk is for changes that free space.
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
        """Makes a change, and returns its result when it is on disk."""
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
        """Commits several changes in one transaction; a failing change does not affect the others. Returns whether the
        disk is full; with `retried`, changes then get no result, because they are retried.
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
