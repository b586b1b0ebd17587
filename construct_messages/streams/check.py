"""Checks the file of a store: its pages, and each element of each stream. Reads only, also while a server writes.

Errors that SQLite does not detect, such as changed bytes within an element, are found by reading elements as N-Quads.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import pyoxigraph as ox

from construct_messages.rdf.errors import NotFound, StoreDamaged
from construct_messages.streams.damage import is_damage
from construct_messages.streams.database import open_to_read, row_id, translated
from construct_messages.streams.element import State
from construct_messages.streams.reading import StoredStream, load

_FINDINGS: Final = 100  # as many as SQLite reports
_BLOCK: Final = 1000  # elements that are read at a time


class Finding(NamedTuple):
    """A fault in a store.

    Args:
        what: the description.
        stream: the name of the affected stream; None: the fault is in the file.
        first, last: the sequences of the affected elements, or None.
    """

    what: str
    stream: str | None = None
    first: int | None = None
    last: int | None = None

    def __str__(self) -> str:
        if self.stream is None:
            return self.what
        if self.first is None:
            return f"{self.stream}: {self.what}"
        which = (
            f"element {self.first}"
            if self.first == self.last
            else f"elements {self.first} to {self.last}"
        )
        return f"{self.stream}, {which}: {self.what}"


class StoreCheck(NamedTuple):
    """The result of checking a store.

    Args:
        streams: the states of its streams, by name.
        findings: the faults; empty if there are none.
    """

    streams: list[State]
    findings: list[Finding]


def check_store(path: Path) -> StoreCheck:
    """Checks a store.

    Args:
        path: the path of the file.

    Raises:
        NotFound: there is no such file.
        StoreError: the file is not a store, or has another version.

    >>> from tempfile import TemporaryDirectory
    >>> from construct_messages import Message
    >>> from construct_messages.streams import open_store
    >>> with TemporaryDirectory() as folder:
    ...     with open_store(f"{folder}/streams.db") as store:
    ...         _ = store.create("measured"), store.append("measured", Message())
    ...     streams, findings = check_store(Path(folder, "streams.db"))
    >>> [(state.name, state.last) for state in streams], findings
    ([('measured', 1)], [])
    """
    if not path.exists():
        raise NotFound(f"there is no store {path}", hint="check the path")
    with closing(open_to_read(path)) as connection, translated(path):
        connection.execute("BEGIN")  # a consistent state of the store while a server writes
        findings = list(_pages(connection))
        try:
            streams = sorted(load(connection).values(), key=lambda stream: stream.state.name)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            return StoreCheck([], [*findings, Finding(f"the streams cannot be read: {error}")])
        except StoreDamaged as error:
            return StoreCheck([], [*findings, Finding(error.message)])
        for stream in streams:
            findings += _elements(connection, stream)
        return StoreCheck([stream.state for stream in streams], findings)


def _pages(connection: sqlite3.Connection) -> Iterator[Finding]:
    try:
        for (text,) in connection.execute(f"PRAGMA integrity_check({_FINDINGS})"):
            if text != "ok":
                yield Finding(" ".join(text.split()))
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        yield Finding(str(error))


def _elements(connection: sqlite3.Connection, stream: StoredStream) -> Iterator[Finding]:
    """The faults in the elements of a stream; adjacent elements with the same fault are reported together."""
    state, size, time, held = stream.state, 0, 0, list[Finding]()
    for first in range(state.first, state.next, _BLOCK):
        last = min(first + _BLOCK, state.next) - 1
        for sequence, row in _rows(connection, stream.id, first, last):
            if isinstance(row, str):
                what: str | None = row
            else:
                stored, nquads = row
                what = _unreadable(nquads) or (
                    "it is earlier than the previous one" if stored < time else None
                )
                size, time = size + len(nquads), max(time, stored)
            if what is None:
                continue
            if held and (held[-1].what, held[-1].last) == (what, sequence - 1):
                held[-1] = held[-1]._replace(last=sequence)
            else:
                held.append(Finding(what, state.name, sequence, sequence))
    yield from held
    if not held and size != state.bytes:
        yield Finding(f"its elements have {size} bytes, and {state.bytes} were counted", state.name)


def _rows(
    connection: sqlite3.Connection, stream: int, first: int, last: int
) -> Iterator[tuple[int, tuple[int, bytes] | str]]:
    """Yields each sequence with its row, or with the reason if it is unreadable; near errors, elements are read
    singly."""
    start = row_id(stream, 0)
    select = "SELECT id - ?, time, nquads FROM element WHERE id BETWEEN ? AND ? ORDER BY id"
    try:
        found = {
            row[0]: (row[1], row[2])
            for row in connection.execute(select, (start, start + first, start + last))
        }
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        if first == last:
            yield first, "it cannot be read"
            return
        middle = (first + last) // 2
        yield from _rows(connection, stream, first, middle)
        yield from _rows(connection, stream, middle + 1, last)
        return
    for sequence in range(first, last + 1):
        yield sequence, found.get(sequence, "it is missing")


def _unreadable(nquads: object) -> str | None:
    """Returns the reason why the row of an element is not a message, or None."""
    if not isinstance(nquads, bytes):
        return "it is not N-Quads"
    try:
        count = sum(1 for _ in ox.parse(nquads, format=ox.RdfFormat.N_QUADS))
    except (SyntaxError, ValueError):
        return "it is not N-Quads"
    return None if count == (nquads.count(b"\n") + 1 if nquads else 0) else "it is not N-Quads"
