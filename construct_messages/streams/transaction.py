"""One transaction of a store: changes streams, appends elements, removes the oldest ones, and saves state.

Each method checks everything before it changes anything, so that its error does not affect the other changes of the
transaction. `writer.py` commits, keeps `streams`, and then announces `elements`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from construct_messages.rdf.errors import Conflict
from construct_messages.streams import saved_state
from construct_messages.streams.database import row_id, sequence_of, stream_of
from construct_messages.streams.element import Description, Element, State
from construct_messages.streams.publication import LogPart, Publications
from construct_messages.streams.reading import StoredStream, first_at, no_stream
from construct_messages.streams.saved_state import Seen

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

    Args:
        connection: a connection in a transaction.
        streams: the streams before it; changed in place.
        now: microseconds since 1970 in UTC.
        garbage: rows of removed elements, see `find_garbage`; changed in place.

    Attributes:
        streams: the streams with its changes.
        elements: the appended elements.
        gone: the names of deleted streams.
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
        """Creates a stream.

        Raises:
            Conflict: the stream exists, unless `exist_ok`.
        """
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
        """Replaces the description of a stream.

        Raises:
            NotFound: there is no such stream.
        """
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
        """Deletes a stream and its elements.

        Raises:
            NotFound: there is no such stream.
        """
        stream = self._stream(name)
        self.garbage.append((row_id(stream.id, 0), row_id(stream.id + 1, 0) - 1))
        self._connection.execute("DELETE FROM idempotency WHERE stream = ?", (stream.id,))
        self._connection.execute("DELETE FROM stream WHERE id = ?", (stream.id,))
        del self.streams[name]
        self._changed.discard(name)
        self.elements = [element for element in self.elements if element.stream != name]
        self.gone.append(name)

    def append(self, name: str, publications: Publications) -> range:
        """Appends messages to a stream, all or none.

        Args:
            name: the name of the stream.
            publications: the messages. For a day, messages with a known key are not appended again.

        Returns:
            Their sequences; for a known key, the sequences that they got the first time.

        Raises:
            NotFound: there is no such stream.
            Conflict: other messages were appended under the key.
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

        Args:
            name: the name of the stream.
            publications: the messages of the part.
            part: their position in the log.

        Returns:
            The sequences of the messages that this call appended, which are the last ones of the part.

        Raises:
            NotFound: there is no such stream.
            Conflict: messages of the log before the part are missing, or the key was not used for a log (422).
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
        """Returns the first sequence and the number of the messages of a key, or None.

        Raises:
            Conflict: the key was used for messages with a different digest.
        """
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
        """Removes the oldest elements of a stream, up to a sequence.

        Raises:
            NotFound: there is no such stream.
        """
        stream = self._stream(name)
        first = min(last + 1, stream.state.next)
        if first > stream.state.first:
            self.streams[name] = self._remove(stream, first)
            self._changed.add(name)

    def put_state(self, owner: str, key: str, value: bytes | None) -> None:
        """Saves a value of a program; None removes it."""
        saved_state.put_state(self._connection, owner, key, value)

    def put_seen(self, owner: str, seen: Iterable[Seen]) -> None:
        """Saves digests of a program; those with a count of 0 are removed."""
        saved_state.put_seen(self._connection, owner, seen)

    def forget(self, owner: str) -> None:
        """Removes all state of a program."""
        saved_state.forget(self._connection, owner)

    def prune(self, *, every_stream: bool) -> None:
        """Removes elements by retention, and writes the states of the streams.

        Args:
            every_stream: whether to remove elements by age in all streams, and to forget old keys.
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
