"""The store of streams: create, append, read, follow. Blocking, and for asyncio with an `a` before the name.

One process opens a store to write; it and any number of others read and follow it. What `append` returned for is on
disk. See docs/decisions/042-streams-in-sqlite.md.
"""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, ParamSpec, Self, TypeVar

from construct_messages.checking import Checker
from construct_messages.errors import Gone, NotFound, StoreError, UsageError
from construct_messages.logs.lines.texts import to_text
from construct_messages.message import Message
from construct_messages.streams.broadcast import Broadcast
from construct_messages.streams.database import Readers, row_id, sequence_of
from construct_messages.streams.element import GENERATED_AT, Description, Element, State, generated_at, microseconds_of
from construct_messages.streams.transaction import Digest, Publication, StoredStream, Transaction, first_at, load
from construct_messages.streams.writer import Clock, Writer

T = TypeVar("T")
P = ParamSpec("P")

_PAGE_ELEMENTS: Final = 1000
_PAGE_BYTES: Final = 1 << 20
_POLL_SECONDS: Final = 0.05  # how often a store that another process writes to is looked at
_THREADS: Final = 4  # that read for asyncio

_GENERATED: Final = f"<{GENERATED_AT}>".encode()

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._~-]{0,126}[A-Za-z0-9])?")


def open_store(path: str | os.PathLike[str], *, read_only: bool = False) -> StreamStore:
    """Opens a store of streams.

    Args:
        path: of the file; made where there is none, unless read-only. SQLite keeps two more beside it while it is open.
        read_only: whether it is only read, while another process may write to it.

    Raises:
        StoreLocked: another process writes to it.
        NotFound: there is no such file, read-only.
        StoreError: it is no store, or one of another version.

    >>> from tempfile import TemporaryDirectory
    >>> from construct_messages import Message
    >>> with TemporaryDirectory() as folder, open_store(f"{folder}/streams.db") as store:
    ...     _ = store.create("measured")
    ...     store.append("measured", Message()), [element.sequence for element in store.read("measured")]
    (1, [1])
    """
    return StreamStore(Path(path), read_only=read_only)


class StreamStore:
    """A store of streams; see `open_store`.

    Args:
        path: of the file.
        read_only: see `open_store`.
        clock: tells the time of elements.
    """

    def __init__(self, path: Path, *, read_only: bool = False, clock: Clock | None = None) -> None:
        self._path = path
        self._broadcast = Broadcast()
        self._writer = None if read_only else Writer(path, self._broadcast, clock or _now)
        self._readers = Readers(path)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="streams-reader")
        if read_only:
            with self._readers.connection():  # for its errors
                pass

    # --- streams ---

    def streams(self) -> list[State]:
        """Where all streams stand, by name."""
        if self._writer is not None:
            return self._writer.states()
        with self._readers.connection() as connection:
            return sorted((stream.state for stream in load(connection).values()), key=lambda state: state.name)

    def state(self, stream: str) -> State:
        """Where a stream stands.

        Raises:
            NotFound: there is no such stream.
        """
        if self._writer is not None:
            state = self._writer.state(stream)
            if state is None:
                raise _no_stream(stream)
            return state
        with self._readers.connection() as connection:
            return _stored(connection, stream).state

    def create(self, stream: str, description: Description | None = None, *, exist_ok: bool = False) -> State:
        """Creates a stream.

        Args:
            stream: its name: up to 128 letters, digits and `-._~`, with a letter or digit at both ends.
            description: what is known of it.
            exist_ok: whether it may be there already; then it stays as it is.

        Raises:
            UsageError: another name.
            Conflict: there is one.
        """
        return self._create(stream, description, exist_ok).result()

    async def acreate(self, stream: str, description: Description | None = None, *, exist_ok: bool = False) -> State:
        """`create` for asyncio."""
        return await asyncio.wrap_future(self._create(stream, description, exist_ok))

    def describe(self, stream: str, description: Description) -> State:
        """Replaces what is known of a stream; a shorter retention takes effect at once.

        Raises:
            NotFound: there is no such stream.
        """
        return self._write(lambda transaction: transaction.describe(stream, description)).result()

    async def adescribe(self, stream: str, description: Description) -> State:
        """`describe` for asyncio."""
        return await asyncio.wrap_future(self._write(lambda transaction: transaction.describe(stream, description)))

    def delete(self, stream: str) -> None:
        """Deletes a stream with its elements; who follows it is told that it is not there.

        Raises:
            NotFound: there is no such stream.
        """
        self._write(lambda transaction: transaction.delete(stream)).result()

    async def adelete(self, stream: str) -> None:
        """`delete` for asyncio."""
        await asyncio.wrap_future(self._write(lambda transaction: transaction.delete(stream)))

    # --- publishing ---

    def append(self, stream: str, message: Message, *, key: str | None = None) -> int:
        """Appends a message, durably.

        Args:
            stream: its name.
            message: what is appended. A blank node label means the same node in the whole stream.
            key: the publisher's own for this message: what was appended under it is not appended again for a day.

        Returns:
            Its sequence; under a key that is known, the one that it was given the first time.

        Raises:
            NotFound: there is no such stream.
            Conflict: another message was appended under the key.
            TermError: the message is no RDF.
            StoreFull: there is no room on the disk.
        """
        return self.append_all(stream, [message], key=key)[0]

    async def aappend(self, stream: str, message: Message, *, key: str | None = None) -> int:
        """`append` for asyncio."""
        return (await self.aappend_all(stream, [message], key=key))[0]

    def append_all(self, stream: str, messages: Iterable[Message], *, key: str | None = None) -> range:
        """Appends messages, such as those of a log, all or none; see `append`.

        Returns:
            Their sequences.
        """
        return self._append(stream, messages, key).result()

    async def aappend_all(self, stream: str, messages: Iterable[Message], *, key: str | None = None) -> range:
        """`append_all` for asyncio."""
        return await asyncio.wrap_future(self._append(stream, messages, key))

    # --- reading ---

    def read(self, stream: str, after: int | None = None, *, follow: bool = False) -> Iterator[Element]:
        """The elements of a stream in their order.

        Args:
            stream: its name.
            after: the sequence of the last element that is known; None: from the oldest that is kept.
            follow: whether to wait for more at the end, without one.

        Raises:
            NotFound: there is no such stream, or no longer.
            Gone: retention took elements behind `after`, before or while they were read.
            StoreError: the store was closed.
        """
        position = self._start(stream, after)
        while True:
            version = self._broadcast.version
            elements = self._next(stream, position)
            yield from elements
            if elements:
                position = elements[-1].sequence
            elif not follow:
                return
            elif self._writer is None:
                time.sleep(_POLL_SECONDS)
            else:
                self._broadcast.wait(version)

    async def aread(self, stream: str, after: int | None = None, *, follow: bool = False) -> AsyncGenerator[Element]:
        """`read` for asyncio."""
        async with aclosing(self.apages(stream, after, follow=follow)) as pages:
            async for page in pages:
                for element in page:
                    yield element

    async def apages(
        self, stream: str, after: int | None = None, *, follow: bool = False
    ) -> AsyncGenerator[list[Element]]:
        """`aread`, with as many elements at a time as are at hand."""
        position = await self._in_thread(self._start, stream, after)
        with self._broadcast.subscribed() as changed:
            while True:
                changed.clear()
                elements = self._recent(stream, position)
                if elements is None:
                    elements = await self._in_thread(self._page, stream, position)
                if elements:
                    yield elements
                    position = elements[-1].sequence
                elif not follow:
                    return
                elif self._writer is None:
                    await asyncio.sleep(_POLL_SECONDS)
                else:
                    await changed.wait()

    def check(self) -> None:
        """Checks that the store can be read.

        Raises:
            StoreError: it cannot.
        """
        with self._readers.connection() as connection:
            connection.execute("SELECT count(*) FROM stream").fetchone()

    def check_position(self, stream: str, after: int) -> None:
        """Checks that reading can begin behind a sequence.

        Raises:
            NotFound: there is no such stream, or there was no such element yet.
            Gone: retention took the element behind it.
        """
        state = self.state(stream)
        if after + 1 < state.first:
            raise _gone(state, after + 1)
        if not 0 <= after < state.next:
            raise _never(state, after)

    def get(self, stream: str, sequence: int) -> Element:
        """One element.

        Raises:
            NotFound: there is no such stream, or there was no such element yet.
            Gone: retention took it.
        """
        with self._readers.connection() as connection:
            stored = _stored(connection, stream)
            _check_kept(stored.state, sequence)
            return next(_elements(connection, stored, sequence, sequence))

    def times(self, stream: str, sequences: Iterable[int]) -> list[int]:
        """When elements were committed, in microseconds since 1970 in UTC; their messages are not read.

        Raises:
            NotFound: there is no such stream, or there was no such element yet.
            Gone: retention took one of them.
        """
        with self._readers.connection() as connection:
            stored = _stored(connection, stream)
            times = []
            for sequence in sequences:
                _check_kept(stored.state, sequence)
                key = (row_id(stored.id, sequence),)
                times.append(int(connection.execute("SELECT time FROM element WHERE id = ?", key).fetchone()[0]))
            return times

    def latest(self, stream: str, count: int) -> list[Element]:
        """The newest elements, the oldest of them first; fewer where there are fewer.

        Raises:
            NotFound: there is no such stream.
        """
        with self._readers.connection() as connection:
            stored = _stored(connection, stream)
            first = max(stored.state.first, stored.state.next - count)
            return list(_elements(connection, stored, first, stored.state.last))

    def sequence_at(self, stream: str, time: datetime) -> int:
        """The sequence of the first element that is kept and not older than a time; of the next one where all are.

        Raises:
            NotFound: there is no such stream.
            UsageError: a time without a zone.
        """
        wanted = microseconds_of(time)
        with self._readers.connection() as connection:
            id, _, state = _stored(connection, stream)
            return first_at(connection, id, state.first, state.next, wanted)

    # --- the end ---

    def close(self) -> None:
        """Commits what waits, wakes followers with an error, and lets go of the file."""
        if self._writer is not None:
            self._writer.close()
        self._readers.close()
        self._broadcast.close()
        self._threads.shutdown(wait=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # --- within ---

    def _write(self, change: Callable[[Transaction], T], bytes: int = 0) -> Future[T]:
        if self._writer is None:
            raise UsageError(f"{self._path} was opened read-only", hint="open it to write")
        return self._writer.submit(change, bytes)

    def _create(self, stream: str, description: Description | None, exist_ok: bool) -> Future[State]:
        if not _NAME.fullmatch(stream):
            raise UsageError(
                f"{stream!r} is no name of a stream",
                hint="take up to 128 letters, digits and -._~, with a letter or digit at both ends",
            )
        described = description or Description()
        return self._write(lambda transaction: transaction.create(stream, described, exist_ok=exist_ok))

    def _append(self, stream: str, messages: Iterable[Message], key: str | None) -> Future[range]:
        checker = Checker()
        publications, size = [], 0
        digest = None if key is None else Digest()
        for message in messages:
            checker.check(message)
            nquads = to_text(message).encode()
            publications.append(Publication(nquads, generated_at(message) if _GENERATED in nquads else None))
            size += len(nquads)
            if digest is not None:
                digest.add(message)
        idempotency = None if key is None or digest is None else (key, digest.value)
        return self._write(lambda transaction: transaction.append(stream, publications, idempotency), size)

    def _start(self, stream: str, after: int | None) -> int:
        if after is None:
            return self.state(stream).first - 1
        self.check_position(stream, after)
        return after

    def _next(self, stream: str, position: int) -> list[Element]:
        elements = self._recent(stream, position)
        return self._page(stream, position) if elements is None else elements

    def _recent(self, stream: str, position: int) -> list[Element] | None:
        if self._broadcast.closed:
            raise StoreError(f"the store {self._path} was closed", hint="open it, and read on behind the last element")
        return self._broadcast.after(stream, position, _PAGE_ELEMENTS)

    def _page(self, stream: str, position: int) -> list[Element]:
        with self._readers.connection() as connection:
            stored = _stored(connection, stream)
            if position + 1 < stored.state.first:
                raise _gone(stored.state, position + 1)
            if position > stored.state.last:
                raise _never(stored.state, position)
            page, size = [], 0
            last = min(position + _PAGE_ELEMENTS, stored.state.last)
            for element in _elements(connection, stored, position + 1, last):
                page.append(element)
                size += len(element.nquads)
                if size > _PAGE_BYTES:
                    break
            return page

    async def _in_thread(self, call: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(call, *args, **options))


def _stored(connection: sqlite3.Connection, stream: str) -> StoredStream:
    found = load(connection, stream).get(stream)
    if found is None:
        raise _no_stream(stream)
    return found


def _no_stream(stream: str) -> NotFound:
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
        f"element {sequence} of {state.name} is kept no longer",
        first=state.first,
        hint=f"read from {state.first} on" if state.first < state.next else "wait for the next one",
    )


def _elements(connection: sqlite3.Connection, stream: StoredStream, first: int, last: int) -> Iterator[Element]:
    rows = connection.execute(
        "SELECT id, time, nquads, generated FROM element WHERE id BETWEEN ? AND ? ORDER BY id",
        (row_id(stream.id, first), row_id(stream.id, last)),
    )
    for row, *rest in rows:
        yield Element(stream.state.name, sequence_of(row), *rest)


def _now() -> int:
    return time.time_ns() // 1000
