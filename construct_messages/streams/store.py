"""The store of streams: adds writing to `reader.py`. Methods are blocking, or for asyncio with an `a` before the name.

One process opens a store to write; it and any number of others read and follow it. When `append` returns, the message
is on disk. See docs/decisions/042-streams-in-sqlite.md.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sized
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self, TypeVar

import pyoxigraph as ox

from construct_messages.errors import NotFound, StoreDamaged, UsageError
from construct_messages.rdf.arguments import checked, wrong_type
from construct_messages.rdf.message import Message
from construct_messages.streams.database import Damage, is_damage, open_to_read, row_id, translated
from construct_messages.streams.element import Description, State
from construct_messages.streams.publication import Broadcast, LogPart, Publication, Publications
from construct_messages.streams.reader import StoreReader
from construct_messages.streams.reading import Seen, StoredStream, load
from construct_messages.streams.writer import Change, Clock, Transaction, Writer

# --- check ----------------------------------------------------------------------------------------
# Checks the file of a store: its pages, and each element of each stream. Reads only, also while a server writes.
#
# Errors that SQLite does not detect, such as changed bytes within an element, are found by reading elements as
# N-Quads.

_FINDINGS: Final = 100  # as many as SQLite reports
_BLOCK: Final = 1000  # elements that are read at a time


class Finding(NamedTuple):
    """A fault in a store.

    `stream` is None if the fault is in the file; `first` and `last` are the sequences of the affected elements.
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
    """The result of checking a store."""

    streams: list[State]
    findings: list[Finding]


def check_store(path: Path) -> StoreCheck:
    """Checks a store.

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


# --- store ----------------------------------------------------------------------------------------

T = TypeVar("T")

_MANY: Final = 50  # more messages take longer to check and serialize than an event loop should wait

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._~-]{0,126}[A-Za-z0-9])?")


@checked
def open_store(
    path: str | os.PathLike[str], *, read_only: bool = False, reserve_bytes: int = 0
) -> StreamStore:
    """Opens a store of streams, and checks its file: for at most five seconds, and then in the background.

    Args:
        path: the path of the file, which is created if it does not exist, unless `read_only`. SQLite keeps two more
            files in the same folder while it is open.
        read_only: only read, while another process may write.
        reserve_bytes: the size of a file next to the store that is removed when the disk is full, so that a smaller
            retention, or deleting a stream, has the space to work; 0: no such file.

    Raises:
        StoreLocked: another process is writing.
        StoreDamaged: the file is damaged.
        NotFound: the file does not exist, with `read_only`.
        StoreError: the file is not a store, or one of another version.

    >>> from tempfile import TemporaryDirectory
    >>> from construct_messages import Message
    >>> with TemporaryDirectory() as folder, open_store(f"{folder}/streams.db") as store:
    ...     _ = store.create("measured")
    ...     store.append("measured", Message()), [element.sequence for element in store.read("measured")]
    (1, [1])
    """
    return StreamStore(Path(path), read_only=read_only, reserve_bytes=reserve_bytes)


class StreamStore(StoreReader):
    """A store of streams; see `open_store`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, open_store(f"{folder}/streams.db") as store:
    ...     _ = store.create("measured")
    ...     store.append_all("measured", [Message(), Message()], key="1"), store.append("measured", Message())
    (range(1, 3), 3)
    """

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        reserve_bytes: int = 0,
        clock: Clock | None = None,
    ) -> None:
        broadcast, damage = Broadcast(), Damage()
        writer = (
            None if read_only else Writer(path, broadcast, clock or _now, damage, reserve_bytes)
        )
        super().__init__(path, broadcast, writer, damage)

    # The arguments of all writing methods are checked: a wrong type would otherwise stop the thread that writes for
    # everybody. Methods that only read are not checked, because the server calls them several times in each request.

    # --- streams ---

    @checked
    def create(
        self, stream: str, description: Description | None = None, *, exist_ok: bool = False
    ) -> State:
        """Creates a stream.

        Args:
            stream: its name: up to 128 letters, digits and `-._~`, with a letter or digit at both ends.
            description: its description.
            exist_ok: do nothing if the stream exists.

        Raises:
            UsageError: an invalid name.
            Conflict: the stream exists.
        """
        return self._write(_creation(stream, description, exist_ok))

    @checked
    async def acreate(
        self, stream: str, description: Description | None = None, *, exist_ok: bool = False
    ) -> State:
        """`create` for asyncio."""
        return await self._awrite(_creation(stream, description, exist_ok))

    @checked
    def describe(self, stream: str, description: Description) -> State:
        """Replaces the description of a stream. A shorter retention takes effect immediately.

        Raises:
            NotFound: there is no such stream.
        """
        return self._write(_describing(stream, description))

    @checked
    async def adescribe(self, stream: str, description: Description) -> State:
        """`describe` for asyncio."""
        return await self._awrite(_describing(stream, description))

    @checked
    def delete(self, stream: str) -> None:
        """Deletes a stream with its elements. Its followers get `NotFound`.

        Raises:
            NotFound: there is no such stream.
        """
        self._write(_deletion(stream))

    @checked
    async def adelete(self, stream: str) -> None:
        """`delete` for asyncio."""
        await self._awrite(_deletion(stream))

    # --- publishing ---

    @checked
    def append(
        self, stream: str, message: Message, *, key: str | None = None, own: str | None = None
    ) -> int:
        """Appends a message, durably.

        Args:
            stream: the name of the stream.
            message: the message. A blank node label means the same node in the whole stream.
            key: the publisher's key of this message: for a day, a message with a known key is not appended again.
            own: a text in IRIs of the message that is replaced by its sequence, such as a random part of the base IRI
                of the message, or None.

        Returns:
            Its sequence; for a known key, the sequence that it got the first time.

        Raises:
            NotFound: there is no such stream.
            Conflict: another message was appended with this key.
            TermError: the message is not valid RDF.
            StoreFull: the disk is full.
        """
        return self._write(_appending(stream, [message], key, own))[0]

    @checked
    async def aappend(
        self, stream: str, message: Message, *, key: str | None = None, own: str | None = None
    ) -> int:
        """`append` for asyncio."""
        return (await self._awrite(_appending(stream, [message], key, own)))[0]

    @checked
    def append_all(
        self,
        stream: str,
        messages: Iterable[Message],
        *,
        key: str | None = None,
        own: str | None = None,
    ) -> range:
        """Appends messages, such as those of a log, all or none; see `append`.

        Returns:
            Their sequences.
        """
        return self._write(_appending(stream, messages, key, own))

    @checked
    async def aappend_all(
        self,
        stream: str,
        messages: Iterable[Message],
        *,
        key: str | None = None,
        own: str | None = None,
    ) -> range:
        """`append_all` for asyncio; many messages are serialized in a thread."""
        if isinstance(messages, Sized) and len(messages) > _MANY:
            return await self._awrite(await self._in_thread(_appending, stream, messages, key, own))
        return await self._awrite(_appending(stream, messages, key, own))

    @checked
    async def aappend_part(
        self, stream: str, messages: Iterable[Message], part: LogPart, *, own: str | None = None
    ) -> range:
        """Appends a part of a log, all or none, except for the messages that were already appended under its key.

        Args:
            stream: the name of the stream.
            messages: the messages of the part.
            part: their position in the log. A key is forgotten a day after the last part.
            own: see `append`.

        Returns:
            The sequences of the messages that this call appended, which are the last ones of the part.

        Raises:
            Conflict: messages of the log before the part are missing, or the key was not used for a log.
            NotFound, TermError, StoreFull: see `append`.
        """
        publications = Publications.of(messages, None, own)
        return await self._awrite(
            Change(
                lambda transaction: transaction.append_part(stream, publications, part),
                publications.size,
            )
        )

    @checked
    def trim(self, stream: str, last: int) -> None:
        """Removes the oldest elements of a stream up to a sequence, like its retention.

        Raises:
            NotFound: there is no such stream.
        """
        self._write(_trimming(stream, last))

    @checked
    async def atrim(self, stream: str, last: int) -> None:
        """`trim` for asyncio."""
        await self._awrite(_trimming(stream, last))

    # --- state of programs ---

    @checked
    def commit(
        self,
        owner: str,
        state: Mapping[str, bytes | None] | None = None,
        *,
        seen: Iterable[Seen] = (),
        stream: str | None = None,
        messages: Iterable[Message | Publication] = (),
    ) -> range:
        """Saves the state of a program and appends its messages, in one transaction.

        Args:
            owner: the owner of the state, such as one continuous query.
            state: values by key, which replace existing ones; None removes a value.
            seen: records of digests, which replace existing ones.
            stream: the name of the stream to append to; None: nothing is appended.
            messages: the messages to append; they may be passed in their stored form.

        Returns:
            The sequences of the messages.

        Raises:
            NotFound: there is no such stream; the state is unchanged.
            TermError: a message is not RDF.
            StoreFull: the disk is full.
        """
        return self._write(_committing(owner, state, seen, stream, messages))

    @checked
    async def acommit(
        self,
        owner: str,
        state: Mapping[str, bytes | None] | None = None,
        *,
        seen: Iterable[Seen] = (),
        stream: str | None = None,
        messages: Iterable[Message | Publication] = (),
    ) -> range:
        """`commit` for asyncio."""
        return await self._awrite(_committing(owner, state, seen, stream, messages))

    @checked
    def forget(self, owner: str) -> None:
        """Removes all state of a program."""
        self._write(Change(lambda transaction: transaction.forget(owner)))

    @checked
    async def aforget(self, owner: str) -> None:
        """`forget` for asyncio."""
        await self._awrite(Change(lambda transaction: transaction.forget(owner)))

    async def anow(self) -> int:
        """Returns a time, in microseconds since 1970 in UTC; all earlier elements can be read."""
        return await self._awrite(Change(lambda transaction: transaction.now))

    # --- the end ---

    def close(self) -> None:
        """Commits waiting changes, raises an error in followers, and closes the file."""
        if self._writer is not None:
            self._writer.close()
        self._readers.close()
        self._broadcast.close()
        self._threads.shutdown(wait=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # --- internal ---

    def _write(self, change: Change[T]) -> T:
        return self._open_writer().write(change)

    def _awrite(self, change: Change[T]) -> Awaitable[T]:
        return self._open_writer().awrite(change)

    def _open_writer(self) -> Writer:
        if self._writer is None:
            raise UsageError(f"{self._path} was opened read-only", hint="open it to write")
        return self._writer


def _creation(stream: str, description: Description | None, exist_ok: bool) -> Change[State]:
    if not is_name(stream):
        raise UsageError(
            f"{stream!r} is not the name of a stream",
            hint="use up to 128 letters, digits and -._~, with a letter or digit at both ends",
        )
    described = description or Description()
    return Change(lambda transaction: transaction.create(stream, described, exist_ok=exist_ok))


def _describing(stream: str, description: Description) -> Change[State]:
    return Change(lambda transaction: transaction.describe(stream, description), relieves=True)


def _deletion(stream: str) -> Change[None]:
    return Change(lambda transaction: transaction.delete(stream), relieves=True)


def _trimming(stream: str, last: int) -> Change[None]:
    return Change(lambda transaction: transaction.trim(stream, last), relieves=True)


def _appending(
    stream: str, messages: Iterable[Message], key: str | None, own: str | None
) -> Change[range]:
    publications = Publications.of(messages, key, own)
    return Change(lambda transaction: transaction.append(stream, publications), publications.size)


def _committing(
    owner: str,
    state: Mapping[str, bytes | None] | None,
    seen: Iterable[Seen],
    stream: str | None,
    messages: Iterable[Message | Publication],
) -> Change[range]:
    publications = Publications.of(messages)
    values, digests = dict(state or {}), list(seen)
    for each in digests:
        if not isinstance(each, Seen):
            raise wrong_type("commit", "seen", each, "an iterable of Seen", "write Seen(…)")
    if stream is None and publications.messages:
        raise UsageError("there are messages but no stream to append them to", hint="name one")

    def change(transaction: Transaction) -> range:
        # changes that may fail come first
        appended = range(0) if stream is None else transaction.append(stream, publications)
        for key, value in values.items():
            transaction.put_state(owner, key, value)
        if digests:
            transaction.put_seen(owner, digests)
        return appended

    return Change(change, publications.size + 32 * len(digests))


def is_name(text: str) -> bool:
    """Whether a name is valid for a stream: up to 128 letters, digits and `-._~`, with a letter or digit at both ends.

    >>> is_name("room-1"), is_name("room/1")
    (True, False)
    """
    return _NAME.fullmatch(text) is not None


def _now() -> int:
    return time.time_ns() // 1000
