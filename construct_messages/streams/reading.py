"""Reads states of streams and elements over a connection, without writing or waiting."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from construct_messages.errors import Gone, NotFound, StoreDamaged, UsageError
from construct_messages.streams.database import damaged, row_id
from construct_messages.streams.element import Description, Element, State

# --- saved state ----------------------------------------------------------------------------------
# The saved state of programs in a store: values by key, and recorded digests. Over a connection.
#
# Each state has an owner, such as one continuous query, and is written in the transaction of the corresponding
# elements. Owners are numbers in the tables: a digest is a row of some 25 bytes.
# docs/decisions/049-state-of-continuous-queries.md


@dataclass(frozen=True, slots=True)
class Seen:
    """A recorded digest.

    Args:
        digest: distinguishes it from other records of the owner.
        count: its count; 0 removes it.
        content: the content of the digest, needed after its removal; None: no content.

    >>> Seen(b"digest", 2)
    Seen(digest=b'digest', count=2, content=None)
    """

    digest: bytes
    count: int
    content: bytes | None = None


def put_state(connection: sqlite3.Connection, owner: str, key: str, value: bytes | None) -> None:
    """Replaces a value; None removes it."""
    number = _number(connection, owner)
    if value is None:
        connection.execute("DELETE FROM state WHERE owner = ? AND key = ?", (number, key))
    else:
        connection.execute(
            "INSERT OR REPLACE INTO state (owner, key, value) VALUES (?, ?, ?)",
            (number, key, value),
        )


def put_seen(connection: sqlite3.Connection, owner: str, seen: Iterable[Seen]) -> None:
    """Replaces the records of digests."""
    number = _number(connection, owner)
    kept, gone = [], []
    for each in seen:
        if each.count:
            kept.append((number, each.digest, each.count, each.content))
        else:
            gone.append((number, each.digest))
    connection.executemany("DELETE FROM seen WHERE owner = ? AND digest = ?", gone)
    # in the order of the rows, so that pages are filled
    kept.sort(key=lambda row: row[1])
    connection.executemany(
        "INSERT OR REPLACE INTO seen (owner, digest, count, content) VALUES (?, ?, ?, ?)", kept
    )


def forget(connection: sqlite3.Connection, owner: str) -> None:
    """Removes all state of an owner."""
    number = _number(connection, owner)
    for table in ("state", "seen"):
        connection.execute(f"DELETE FROM {table} WHERE owner = ?", (number,))
    connection.execute("DELETE FROM owner WHERE id = ?", (number,))


def owners(connection: sqlite3.Connection) -> list[str]:
    """Returns the names of all owners."""
    return [name for (name,) in connection.execute("SELECT name FROM owner ORDER BY name")]


def saved_state(connection: sqlite3.Connection, owner: str) -> dict[str, bytes]:
    """Returns the values of an owner by key."""
    return dict(
        connection.execute(
            "SELECT key, value FROM state WHERE owner = (SELECT id FROM owner WHERE name = ?) ORDER BY key",
            (owner,),
        )
    )


def seen(connection: sqlite3.Connection, owner: str) -> dict[bytes, int]:
    """Returns the digests of an owner, with their counts."""
    return dict(
        connection.execute(
            "SELECT digest, count FROM seen WHERE owner = (SELECT id FROM owner WHERE name = ?)",
            (owner,),
        )
    )


def contents(
    connection: sqlite3.Connection, owner: str, digests: Iterable[bytes]
) -> list[bytes | None]:
    """Returns the contents that were stored with digests; None without content."""
    select = "SELECT content FROM seen WHERE owner = (SELECT id FROM owner WHERE name = ?) AND digest = ?"
    found = (connection.execute(select, (owner, digest)).fetchone() for digest in digests)
    return [row and row[0] for row in found]


def _number(connection: sqlite3.Connection, owner: str) -> int:
    connection.execute("INSERT OR IGNORE INTO owner (name) VALUES (?)", (owner,))
    return int(connection.execute("SELECT id FROM owner WHERE name = ?", (owner,)).fetchone()[0])


# --- reading --------------------------------------------------------------------------------------

PAGE_ELEMENTS: Final = 1000
_PAGE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class ElementLines:
    """The messages of consecutive elements, as one block of N-Quads. The requested text is between the lines of two
    elements.

    >>> len(ElementLines(5, 7, b""))
    3
    """

    first: int
    last: int
    nquads: bytes

    def __len__(self) -> int:
        """The number of elements."""
        return self.last - self.first + 1


class StoredStream(NamedTuple):
    """The row of a stream."""

    time: int
    state: State

    @property
    def id(self) -> int:
        """Its number in the store, see `State`."""
        return self.state.id


def load(connection: sqlite3.Connection, name: str | None = None) -> dict[str, StoredStream]:
    """Returns the streams of a store by name: all, or the one with a given name if it exists."""
    rows = connection.execute(
        "SELECT id, time, name, description, first, next, bytes FROM stream WHERE ?1 IS NULL OR name = ?1",
        (name,),
    ).fetchall()
    return {
        name: StoredStream(
            time,
            State(name, _described(name, description), first, next, bytes, id),
        )
        for id, time, name, description, first, next, bytes in rows
    }


def _described(name: str, description: str) -> Description:
    try:
        return Description.from_json(json.loads(description))
    except (TypeError, ValueError, KeyError, UsageError) as error:
        raise damaged(
            None, f"the description of the stream {name} is {description!r:.80}"
        ) from error


def stored(connection: sqlite3.Connection, stream: str) -> StoredStream:
    """Returns a stream."""
    found = load(connection, stream).get(stream)
    if found is None:
        raise no_stream(stream)
    return found


def page(connection: sqlite3.Connection, stream: str, position: int) -> list[Element]:
    """Returns a page of the elements after a sequence; empty at the end."""
    found = _stored_after(connection, stream, position)
    elements, size = [], 0
    last = min(position + PAGE_ELEMENTS, found.state.last)
    for element in _elements(connection, found, position + 1, last):
        elements.append(element)
        size += len(element.nquads)
        if size > _PAGE_BYTES:
            break
    if position < last and (not elements or elements[-1].sequence != position + len(elements)):
        raise missing(stream, position + 1, last)
    return elements


def lines(
    connection: sqlite3.Connection, stream: str, position: int, last: int, between: str
) -> ElementLines:
    """Returns a page of the elements after a sequence, up to `last`, as lines with a text between two messages.

    SQLite concatenates them, in a quarter of the time of Python, and other threads of Python can run meanwhile.
    """
    found = _stored_after(connection, stream, position)
    if last > found.state.last:
        raise _never(found.state, last)
    count = min(last - position, PAGE_ELEMENTS)
    rows = (row_id(found.id, position + 1), row_id(found.id, position + count))
    while count > 1 and connection.execute(_SIZE, rows).fetchone()[0] > _PAGE_BYTES:
        count //= 2
        rows = (rows[0], row_id(found.id, position + count))
    present, nquads = connection.execute(_LINES, (between, *rows)).fetchone()
    if present != count:
        raise missing(stream, position + 1, position + count)
    return ElementLines(position + 1, position + count, nquads)


_SIZE: Final = "SELECT total(length(nquads)) FROM element WHERE id BETWEEN ? AND ?"
# SQLite only drops the order of an inner query if no outer aggregate depends on it, as group_concat does
_LINES: Final = """
SELECT count(*), CAST(group_concat(CASE length(nquads) WHEN 0 THEN '' ELSE nquads || x'0A' END, ?) AS BLOB)
FROM (SELECT nquads FROM element WHERE id BETWEEN ? AND ? ORDER BY id)
"""


def element(connection: sqlite3.Connection, stream: str, sequence: int) -> Element:
    """Returns one element; see `StreamStore.get`."""
    found = stored(connection, stream)
    _check_kept(found.state, sequence)
    for each in _elements(connection, found, sequence, sequence):
        return each
    raise missing(stream, sequence, sequence)


def times(connection: sqlite3.Connection, stream: str, sequences: Iterable[int]) -> list[int]:
    """Returns the times when elements were committed; see `StreamStore.times`."""
    found = stored(connection, stream)
    times = []
    for sequence in sequences:
        _check_kept(found.state, sequence)
        times.append(_time(connection, found.id, sequence))
    return times


def latest(connection: sqlite3.Connection, stream: str, count: int) -> list[Element]:
    """Returns the newest elements; see `StreamStore.latest`."""
    found = stored(connection, stream)
    first = max(found.state.first, found.state.next - max(0, count))
    elements = list(_elements(connection, found, first, found.state.last))
    if len(elements) != found.state.next - first:
        raise missing(stream, first, found.state.last)
    return elements


def first_at(connection: sqlite3.Connection, stream: int, first: int, next: int, time: int) -> int:
    """Returns the sequence of the first element that is not older than a time, in microseconds since 1970; `next` if
    all are older.

    The times of a stream never decrease, so a binary search reads only a few rows.
    """
    low, high = first, next
    while low < high:
        # the result is usually near the beginning, where retention searches each second
        middle = low if low == first else (low + high) // 2
        if _time(connection, stream, middle) < time:
            low = middle + 1
        else:
            high = middle
    return low


def counts(
    connection: sqlite3.Connection, stream: str, start: int, period: int, periods: int
) -> list[int]:
    """How many kept elements were committed in each of consecutive periods; see `StreamStore.counts`."""
    found = stored(connection, stream)
    bounds = []
    sequence, next = found.state.first, found.state.next
    for place in range(periods + 1):
        time = start + place * period
        is_over = time > found.time  # all elements are older
        sequence = next if is_over else first_at(connection, found.id, sequence, next, time)
        bounds.append(sequence)
    return [after - before for before, after in pairwise(bounds)]


def _time(connection: sqlite3.Connection, stream: int, sequence: int) -> int:
    found = connection.execute(
        "SELECT time FROM element WHERE id = ?", (row_id(stream, sequence),)
    ).fetchone()
    if found is None:
        name = connection.execute("SELECT name FROM stream WHERE id = ?", (stream,)).fetchone()
        raise missing(name[0] if name else str(stream), sequence, sequence)
    return int(found[0])


def missing(stream: str, first: int, last: int) -> StoreDamaged:
    """The error for elements of a stream that are missing in its store."""
    which = f"element {first}" if first == last else f"some of the elements {first} to {last}"
    return damaged(None, f"{which} of {stream} cannot be found")


def check_position(state: State, after: int) -> None:
    """Checks that reading can begin after a sequence; see `StreamStore.check_position`."""
    if after + 1 < state.first:
        raise _gone(state, after + 1)
    if not 0 <= after < state.next:
        raise _never(state, after)


def _stored_after(connection: sqlite3.Connection, stream: str, position: int) -> StoredStream:
    """Returns a stream if it still has all elements after a sequence."""
    found = stored(connection, stream)
    if position + 1 < found.state.first:
        raise _gone(found.state, position + 1)
    if position > found.state.last:
        raise _never(found.state, position)
    return found


def no_stream(stream: str) -> NotFound:
    """The error for an unknown stream."""
    return NotFound(f"there is no stream {stream}", hint="create it first")


def _check_kept(state: State, sequence: int) -> None:
    if not 0 < sequence < state.next:
        raise _never(state, sequence)
    if sequence < state.first:
        raise _gone(state, sequence)


def _never(state: State, sequence: int) -> NotFound:
    return NotFound(f"{state.name} has no element {sequence}", hint=f"its last is {state.last}")


def _gone(state: State, sequence: int) -> Gone:
    return Gone(
        f"element {sequence} of {state.name} was removed by retention",
        first=state.first,
        hint=f"read from {state.first} on" if state.first < state.next else "wait for the next one",
    )


def _elements(
    connection: sqlite3.Connection, stream: StoredStream, first: int, last: int
) -> Iterator[Element]:
    start = row_id(stream.id, 0)
    rows = connection.execute(
        "SELECT ?, id - ?, time, nquads, generated FROM element WHERE id BETWEEN ? AND ? ORDER BY id",
        (stream.state.name, start, start + first, start + last),
    )
    return map(Element._make, rows)
