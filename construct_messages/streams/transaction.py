"""One transaction of a store: streams made, described and deleted, elements appended, the oldest removed, state kept.

Each method checks before it changes anything, so that what it refuses leaves the others of the transaction whole.
Nothing here commits: `writer.py` does, keeps `streams`, and then announces `elements`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from construct_messages.errors import Conflict
from construct_messages.streams import saved_state
from construct_messages.streams.database import row_id, sequence_of, stream_of
from construct_messages.streams.element import Description, Element, State
from construct_messages.streams.publication import LogPart, Publications
from construct_messages.streams.reading import StoredStream, first_at, no_stream
from construct_messages.streams.saved_state import Seen

KEY_SECONDS: Final = 24 * 3600
"""How long the key of a publication is known."""

Rows: TypeAlias = tuple[int, int]
"""The keys of the first and the last of some elements."""

_PARTS: Final = b"parts"
"""In the place of a digest: the messages under the key are appended part by part."""
_SECOND: Final = 1_000_000  # microseconds
_PURGED_BYTES: Final = 1 << 22  # in one transaction
_ROW_BYTES: Final = 30  # the space of an element in addition to its N-Quads


class Transaction:
    """A transaction of a store.

    Args:
        connection: in a transaction.
        streams: as they are before it; changed in place.
        now: microseconds since 1970 in UTC.
        garbage: rows of elements that are kept no longer, see `find_garbage`; changed in place.

    Attributes:
        streams: as they are in it.
        elements: those that were appended.
        gone: the names of streams that were deleted.
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
        self.gone: list[str] = []

    def create(self, name: str, description: Description, *, exist_ok: bool) -> State:
        """A new stream.

        Raises:
            Conflict: there is one of that name, unless that is fine.
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
        assert cursor.lastrowid is not None  # it is what was inserted
        state = State(name, description, first=1, next=1, bytes=0, id=cursor.lastrowid)
        self.streams[name] = StoredStream(0, state)
        return state

    def describe(self, name: str, description: Description) -> State:
        """Replaces what is known of a stream.

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
        self._changed.add(name)  # its retention may be another
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
            name: of the stream.
            publications: the messages. What was appended under a key is not appended again for a day.

        Returns:
            Their sequences; for a known key, those of the first time.

        Raises:
            NotFound: there is no such stream.
            Conflict: other messages were appended under the key.
        """
        stream = self._stream(name)
        idempotency = publications.idempotency
        if idempotency is not None:
            key, digest = idempotency
            known = self._connection.execute(
                "SELECT digest, first, count FROM idempotency WHERE stream = ? AND key = ?",
                (stream.id, key),
            ).fetchone()
            if known is not None:
                if known[0] != digest:
                    raise _other_messages(key, name)
                return range(known[1], known[1] + known[2])
        sequences = self._append(name, stream, publications)
        if idempotency is not None:
            self._connection.execute(
                "INSERT INTO idempotency (stream, key, digest, first, count, time) VALUES (?, ?, ?, ?, ?, ?)",
                (stream.id, *idempotency, sequences.start, len(sequences), self.streams[name].time),
            )
        return sequences

    def append_part(self, name: str, publications: Publications, part: LogPart) -> range:
        """Appends a part of a log whose messages are numbered, except those that were appended under its key before.

        Args:
            name: of the stream.
            publications: messages of the part.
            part: where they are in the log.

        Returns:
            The sequences of those that were appended now, which are the last ones of the part.

        Raises:
            NotFound: there is no such stream.
            Conflict: messages of the log before the part are missing, or the key is not that of a log (422).
        """
        stream = self._stream(name)
        known = self._connection.execute(
            "SELECT digest, count FROM idempotency WHERE stream = ? AND key = ?",
            (stream.id, part.key),
        ).fetchone()
        if known is not None and known[0] != _PARTS:
            raise _other_messages(part.key, name)
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
        self._connection.execute(
            "INSERT INTO idempotency (stream, key, digest, first, count, time) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (stream, key) DO UPDATE SET count = excluded.count, time = excluded.time",
            (
                stream.id,
                part.key,
                _PARTS,
                sequences.start,
                max(count, part.last),
                self.streams[name].time,
            ),
        )
        return sequences

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
        self._connection.executemany(
            "INSERT INTO element (id, time, nquads, generated) VALUES (? + ?, ?, ?, ?)",
            [(start, *element[1:]) for element in elements],
        )
        size = sum(len(element.nquads) for element in elements)
        after = state._replace(next=state.next + len(elements), bytes=state.bytes + size)
        self.streams[name] = StoredStream(time, after)
        self._changed.add(name)
        self.elements += elements
        return range(state.next, after.next)

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
        """Keeps a value for a program; None removes it."""
        saved_state.put_state(self._connection, owner, key, value)

    def put_seen(self, owner: str, seen: Iterable[Seen]) -> None:
        """Keeps digests of what a program saw; those with a count of 0 are removed."""
        saved_state.put_seen(self._connection, owner, seen)

    def forget(self, owner: str) -> None:
        """Removes all that is kept for a program."""
        saved_state.forget(self._connection, owner)

    def prune(self, *, every_stream: bool) -> None:
        """Removes elements by retention, and writes the states of the streams.

        Args:
            every_stream: whether elements that became too old are looked for in all streams, and old keys forgotten.
        """
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

    def purge(self) -> None:
        """Deletes rows of elements that are kept no longer, some at a time.

        SQLite writes each page that it frees to its log: all at once, they would need as much room again as they have.
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
        """The sequence of the oldest element that retention keeps."""
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


def _other_messages(key: str, name: str) -> Conflict:
    return Conflict(
        f"the key {key!r} was used for other messages in {name}",
        status=422,
        hint="use a new key for new messages",
    )


_NEXT: Final = "SELECT id FROM element WHERE id >= ? ORDER BY id LIMIT 1"


def find_garbage(connection: sqlite3.Connection, streams: Mapping[str, StoredStream]) -> list[Rows]:
    """Finds the rows that an earlier process did not come to delete: of elements that are kept no longer.

    No stream ever gets the number of another, so that rows without a stream are those of one that was deleted.
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
