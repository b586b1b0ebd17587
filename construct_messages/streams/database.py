"""The SQLite file of a store: its tables, and connections to it. No rules about elements here.

An element's key is its stream's number and its sequence in one integer, so that the elements of a stream are adjacent
and ordered, and a range of them is read or deleted without an index. Rows are canonical N-Quads.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, LifoQueue
from threading import Event, Thread
from typing import IO, Final

from construct_messages.errors import NotFound, StoreDamaged, StoreError, StoreFull, StoreLocked

# --- damage ---------------------------------------------------------------------------------------
# Damage to the file of a store: its record, and the check that runs when a store is opened.
#
# SQLite detects a damaged page when it reads it. `store.py` also checks elements. Nothing is repaired here.

_FOUND: Final = 3  # the number of findings in an error


def damaged(path: Path | str | None, found: str) -> StoreDamaged:
    """The error for a store whose file is damaged. The path is None if it is unknown here."""
    return StoreDamaged(
        f"{path or 'the store'} is damaged: {found}",
        hint=f"stop the server, and run construct-messages streams check {path or 'FILE'};"
        " see docs/reference/streams/store.md",
    )


class Damage:
    """Records the first damage that is found in a store."""

    def __init__(self) -> None:
        self.error: StoreDamaged | None = None

    def report(self, error: StoreDamaged) -> None:
        """Records damage."""
        self.error = self.error or error


class OpeningCheck:
    """Reads all pages of a store once, in a thread, by SQLite's `quick_check`."""

    def __init__(self, path: Path, damage: Damage) -> None:
        self._path, self._damage = path, damage
        self._connection = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, timeout=5
        )
        self._thread = Thread(target=self._run, name="streams-check", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Waits for the end of the check up to a limit; the check continues afterwards."""
        self._thread.join(seconds)
        if self._damage.error is not None:
            raise self._damage.error

    def close(self) -> None:
        """Ends the check."""
        with suppress(sqlite3.Error):  # it has ended already
            self._connection.interrupt()
        self._thread.join()

    def _run(self) -> None:
        try:
            found = [
                text
                for (text,) in self._connection.execute(f"PRAGMA quick_check({_FOUND})")
                if text != "ok"
            ]
        except sqlite3.DatabaseError as error:
            # other errors are not about the pages: the check was interrupted, or the disk cannot be read
            found = [str(error)] if is_damage(error) else []
        finally:
            self._connection.close()
        if found:
            self._damage.report(
                damaged(self._path, "; ".join(" ".join(each.split()) for each in found))
            )


def is_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite's error is about a damaged page; extended codes have the primary one in their lowest byte."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT


# --- database -------------------------------------------------------------------------------------

VERSION: Final = 2
"""The version of the tables. A writer migrates a file of an older version; other versions are errors."""

_APPLICATION: Final = int.from_bytes(b"RMSG", "big")  # the application id in SQLite's header
_SEQUENCE_BITS: Final = 40

_PAGE_BYTES: Final = 1 << 14
"""The page size of new stores: SQLite's default of 4096 bytes has room for one element of 3 kB, and writes it with as
much work as a page of this size, which has room for five.
"""
_LOG_BYTES: Final = 1 << 22
"""The size of SQLite's log from which a commit writes it to the database."""

_TABLES: Final = f"""
CREATE TABLE stream (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    description TEXT NOT NULL,
    first INTEGER NOT NULL,
    next INTEGER NOT NULL,
    time INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) STRICT;
CREATE TABLE element (
    id INTEGER PRIMARY KEY,
    time INTEGER NOT NULL,
    generated TEXT,
    nquads BLOB NOT NULL
) STRICT;
CREATE TABLE idempotency (
    stream INTEGER NOT NULL,
    key TEXT NOT NULL,
    digest BLOB NOT NULL,
    first INTEGER NOT NULL,
    count INTEGER NOT NULL,
    time INTEGER NOT NULL,
    PRIMARY KEY (stream, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_time ON idempotency (time);
PRAGMA application_id = {_APPLICATION};
"""

_STATE_TABLES: Final = """
CREATE TABLE owner (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE state (
    owner INTEGER NOT NULL,
    key TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (owner, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE seen (
    owner INTEGER NOT NULL,
    digest BLOB NOT NULL,
    count INTEGER NOT NULL,
    content BLOB,
    PRIMARY KEY (owner, digest)
) STRICT, WITHOUT ROWID;
"""

_STEPS: Final = (_TABLES, _STATE_TABLES)
"""The statements that migrate from one version of the tables to the next."""


def row_id(stream: int, sequence: int) -> int:
    """The key of an element.

    >>> row_id(1, 5) - row_id(1, 4), row_id(2, 0) > row_id(1, (1 << 40) - 1)
    (1, True)
    """
    return (stream << _SEQUENCE_BITS) + sequence


def stream_of(row: int) -> int:
    """The number of the stream in an element's key.

    >>> stream_of(row_id(3, 77))
    3
    """
    return row >> _SEQUENCE_BITS


def sequence_of(row: int) -> int:
    """The sequence in an element's key.

    >>> sequence_of(row_id(3, 77))
    77
    """
    return row & ((1 << _SEQUENCE_BITS) - 1)


class WriterLock:
    """Locks a store against other writing processes."""

    def __init__(self, path: Path) -> None:
        try:
            self._file: IO[bytes] = open(f"{path}-writer", "ab")  # noqa: SIM115 # open until it is released
        except OSError as error:
            raise StoreError(
                f"cannot open {path}: {error.strerror}",
                hint="name a file in a folder that can be written",
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.close()
            raise StoreLocked(
                f"{path} is written by another process",
                hint="open it read-only, or publish through that process",
            ) from error

    def release(self) -> None:
        """Releases the lock."""
        self._file.close()


def open_to_write(path: Path) -> sqlite3.Connection:
    """Opens the connection of the writer; creates the tables in a new file."""
    with translated(path):
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5)
        try:
            new = not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
            version = 0 if new else _version(connection, path)
            if version > VERSION:
                raise _other_version(path, version)
            if new:
                connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            page_bytes = connection.execute("PRAGMA page_size").fetchone()[0]
            connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_BYTES // page_bytes}")
            if version < VERSION:
                steps = "".join(_STEPS[version:])
                connection.executescript(
                    f"BEGIN IMMEDIATE; {steps} PRAGMA user_version = {VERSION}; COMMIT;"
                )
        except BaseException:
            connection.close()
            raise
        return connection


def open_to_read(path: Path) -> sqlite3.Connection:
    """Opens a read-only connection, while the writer may write."""
    if not path.exists():
        raise NotFound(f"there is no store {path}", hint="open it to write once, which creates it")
    with translated(path):
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=5,
        )
        try:
            version = _version(connection, path)
            if version != VERSION:
                raise _other_version(path, version)
        except BaseException:
            connection.close()
            raise
        return connection


def _version(connection: sqlite3.Connection, path: Path) -> int:
    """Returns the version of the tables of a store."""
    application, version = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version")
    )
    if application != _APPLICATION:
        raise StoreError(
            f"{path} is a database, but not a store of streams", hint="name another file"
        )
    return int(version)


def _other_version(path: Path, version: int) -> StoreError:
    return StoreError(
        f"{path} is a store of version {version}, and this program has version {VERSION}",
        hint="open it to write once, which migrates it to this version"
        if version < VERSION
        else "use the release of construct-messages that created it",
    )


def full_disk(path: str | os.PathLike[str]) -> StoreFull:
    """Returns the error for a store whose disk is full."""
    return StoreFull(
        f"cannot write {os.fspath(path)}: the disk is full",
        hint="free space, or reduce the retention of a stream, and publish again",
    )


@contextmanager
def translated(path: str | os.PathLike[str]) -> Iterator[None]:
    """Converts SQLite's exceptions to errors of this package."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            raise full_disk(path) from error
        if is_damage(error):
            raise damaged(os.fspath(path), str(error)) from error
        raise StoreError(
            f"{path}: {error}", hint="check whether it is a store of streams, and can be read"
        ) from error


class Readers:
    """Connections for reading, shared by threads."""

    def __init__(self, path: Path, damage: Damage) -> None:
        self._path, self._damage = path, damage
        self._free: LifoQueue[sqlite3.Connection] = LifoQueue()
        self._closed = Event()

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Yields a connection, in a transaction that reads a consistent state of the store."""
        if self._closed.is_set():
            raise StoreError(f"the store {self._path} is closed", hint="open it again")
        try:
            connection = self._free.get_nowait()
        except Empty:
            connection = open_to_read(self._path)
        try:
            with translated(self._path):
                connection.execute("BEGIN")
                try:
                    yield connection
                finally:
                    connection.execute("COMMIT")
        except BaseException as error:
            connection.close()
            if isinstance(error, StoreDamaged):
                self._damage.report(error)
            raise
        if self._closed.is_set():
            connection.close()
        else:
            self._free.put(connection)

    def close(self) -> None:
        """Closes the unused connections; the others are closed when they are returned."""
        self._closed.set()
        while True:
            try:
                self._free.get_nowait().close()
            except Empty:
                return
