"""The saved state of programs in a store: values by key, and recorded digests. Over a connection.

Each state has an owner, such as one continuous query, and is written in the transaction of the corresponding elements.
Owners are numbers in the tables: a digest is a row of some 25 bytes. docs/decisions/049-state-of-continuous-queries.md
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass


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
