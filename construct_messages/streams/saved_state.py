"""The state of programs in a store, next to its streams: values by key, and digests of what they have seen. Over a
connection.

Each has an owner, such as one continuous query, and is written in the transaction of the elements that it belongs to.
Owners are numbers in the tables: a digest is a row of some 25 bytes. docs/decisions/049-state-of-continuous-queries.md
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seen:
    """Something that was seen.

    Args:
        digest: distinguishes it from others of the owner.
        count: how often it is there; 0 removes it.
        content: kept for the time when it is gone; None: nothing.

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
    """Replaces what is known of digests."""
    number = _number(connection, owner)
    kept, gone = [], []
    for each in seen:
        if each.count:
            kept.append((number, each.digest, each.count, each.content))
        else:
            gone.append((number, each.digest))
    connection.executemany("DELETE FROM seen WHERE owner = ? AND digest = ?", gone)
    # in the order of the rows, which fills the pages
    kept.sort(key=lambda row: row[1])
    connection.executemany(
        "INSERT OR REPLACE INTO seen (owner, digest, count, content) VALUES (?, ?, ?, ?)", kept
    )


def forget(connection: sqlite3.Connection, owner: str) -> None:
    """Removes all of an owner."""
    number = _number(connection, owner)
    for table in ("state", "seen"):
        connection.execute(f"DELETE FROM {table} WHERE owner = ?", (number,))
    connection.execute("DELETE FROM owner WHERE id = ?", (number,))


def owners(connection: sqlite3.Connection) -> list[str]:
    """Returns the names of all owners."""
    return [name for (name,) in connection.execute("SELECT name FROM owner ORDER BY name")]


def saved_state(connection: sqlite3.Connection, owner: str) -> dict[str, bytes]:
    """The values of an owner by key."""
    return dict(
        connection.execute(
            "SELECT key, value FROM state WHERE owner = (SELECT id FROM owner WHERE name = ?) ORDER BY key",
            (owner,),
        )
    )


def seen(connection: sqlite3.Connection, owner: str) -> dict[bytes, int]:
    """The digests of what an owner saw, and how often each is there."""
    return dict(
        connection.execute(
            "SELECT digest, count FROM seen WHERE owner = (SELECT id FROM owner WHERE name = ?)",
            (owner,),
        )
    )


def contents(
    connection: sqlite3.Connection, owner: str, digests: Iterable[bytes]
) -> list[bytes | None]:
    """Returns the contents that were stored with digests; None: nothing."""
    select = "SELECT content FROM seen WHERE owner = (SELECT id FROM owner WHERE name = ?) AND digest = ?"
    found = (connection.execute(select, (owner, digest)).fetchone() for digest in digests)
    return [row and row[0] for row in found]


def _number(connection: sqlite3.Connection, owner: str) -> int:
    connection.execute("INSERT OR IGNORE INTO owner (name) VALUES (?)", (owner,))
    return int(connection.execute("SELECT id FROM owner WHERE name = ?", (owner,)).fetchone()[0])
