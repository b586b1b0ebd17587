"""The responses to the pages of one result, in a file: after a kill, the result continues after the last of them.

A resumed result begins with the kept responses, which are read as they were when they came, and goes on at the
endpoint. `paging.py` compares each page with the one before it, and so detects data that changed in between. The file
is a database of SQLite.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from email.message import Message
from itertools import chain, count
from typing import Any, Final

from construct_messages.errors import CannotWrite, SourceError, UsageError
from construct_messages.query.select import Select
from construct_messages.rdf.solutions import Solutions
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.http.paging import ResultPage

_SCHEMA: Final = """
    CREATE TABLE result (description TEXT NOT NULL);
    CREATE TABLE response (
        number INTEGER PRIMARY KEY, query TEXT NOT NULL, status INTEGER NOT NULL, headers TEXT NOT NULL,
        is_whole INTEGER NOT NULL, seconds REAL NOT NULL
    );
    CREATE TABLE piece (response INTEGER NOT NULL, number INTEGER NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (response, number)) WITHOUT ROWID;
"""
_APPLICATION: Final = 0x636D7273  # application_id, by which the file is known


class Responses:
    """The file at `path` with the responses to a request; created if there is none.

    Raises:
        UsageError: the file has another result, or is no such file, or another process uses it.
        CannotWrite: the file cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], request: Request, **asked: Any) -> None:
        self._path = os.fspath(path)
        if request.lenience is not None and not request.lenience.is_strict:
            asked["lenient"] = True
        described = {
            "select": str(request.select),
            "graphs": [request.default_graphs, request.named_graphs],
            "pages": [request.page_size, request.page_key],
            **asked,
        }
        with self._errors():
            # the solutions of a result may be read in several threads, one after the other
            self._database = sqlite3.connect(
                self._path, timeout=0, isolation_level=None, check_same_thread=False
            )
        try:
            with self._errors():
                self._open(json.dumps(described, sort_keys=True))
        except BaseException:
            self._database.close()
            raise
        self._next = 0

    def _open(self, description: str) -> None:
        execute = self._database.execute
        execute("PRAGMA locking_mode = EXCLUSIVE")
        execute("BEGIN EXCLUSIVE")
        (application,) = execute("PRAGMA application_id").fetchone()
        if application != _APPLICATION:
            if execute("SELECT 1 FROM sqlite_master").fetchone():
                raise self._foreign()
            for statement in _SCHEMA.split(";"):
                execute(statement)
            execute("INSERT INTO result VALUES (?)", (description,))
            execute(f"PRAGMA application_id = {_APPLICATION}")
        elif execute("SELECT description FROM result").fetchone() != (description,):
            raise UsageError(
                f"{self._path} has the responses to another query, or to other options",
                hint="resume with those that it was begun with, or remove it",
            )
        execute("COMMIT")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise UsageError(
                    f"another process resumes from {self._path}", hint="wait for its end"
                ) from error
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                raise self._foreign() from error
            raise CannotWrite(f"{self._path} cannot be written: {error}") from error

    def _foreign(self) -> UsageError:
        return UsageError(
            f"{self._path} is no file to resume a result from", hint="name another, or remove it"
        )

    def close(self) -> None:
        """Closes the file, without responses that are not whole."""
        self._database.close()

    # --- reading ---

    def replay(self, page: ResultPage) -> Generator[Solutions]:
        """Yields the solutions of a page that the kept responses have. If these are all, the page has the time it took.

        Raises:
            SourceError: the responses are those to other queries, which is so if the page failed without a response.
        """
        while select := page.select:
            with self._errors():
                row = self._database.execute(
                    "SELECT query, status, headers, is_whole, seconds FROM response WHERE number = ?",
                    (self._next,),
                ).fetchone()
            if row is None:
                return
            query, status, headers, is_whole, seconds = row
            if query != str(select):
                raise SourceError(
                    f"{self._path} continues with another query than its result does",
                    hint="remove it, and begin anew",
                )
            reader = page.open(status, _headers(headers).get)
            for piece in chain.from_iterable(map(reader.pieces, self._pieces(self._next))):
                yield from reader.feed(piece)
            self._next += 1
            if is_whole:
                yield from reader.rest()
                reader.close()
                page.took = seconds
                return

    def _pieces(self, number: int) -> Iterator[bytes]:
        pieces = self._database.execute(
            "SELECT body FROM piece WHERE response = ? ORDER BY number", (number,)
        )
        return (body for (body,) in pieces)

    # --- writing ---

    @contextmanager
    def keeping(
        self, select: Select, page: ResultPage, status: int, headers: Iterable[tuple[str, str]]
    ) -> Iterator[Callable[[bytes], None]]:
        """Keeps a response, whose bytes the function takes that this gives.

        A whole response is on disk at the end of the block. One that ended early is so with the next whole one: it is
        the continuation.
        """
        number, places, is_whole = self._next, count(), False
        self._next += 1
        if not self._database.in_transaction:
            self._write("BEGIN")
        try:
            yield lambda body: self._write(
                "INSERT INTO piece VALUES (?, ?, ?)", number, next(places), body
            )
            is_whole = True
        finally:
            self._write(
                "INSERT INTO response VALUES (?, ?, ?, ?, ?, ?)",
                *(number, str(select), status, json.dumps(list(headers)), is_whole, page.seconds),
            )
            if is_whole:
                self._write("COMMIT")

    def _write(self, statement: str, *values: Any) -> None:
        with self._errors():
            self._database.execute(statement, values)


def _headers(text: str) -> Message:
    headers = Message()
    for name, value in json.loads(text):
        headers[name] = value
    return headers
