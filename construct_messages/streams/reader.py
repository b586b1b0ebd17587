"""Reads a store: the states of streams, their elements, and the saved states of programs. Nothing is written here.

Methods are blocking, or for asyncio with an `a` before the name. A follower waits for the writer of its own process,
and polls if another process writes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, aclosing
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

from construct_messages.errors import StoreError
from construct_messages.rdf.arguments import checked
from construct_messages.streams import reading
from construct_messages.streams.database import Damage, Readers
from construct_messages.streams.element import Element, State, microseconds_of
from construct_messages.streams.publication import Broadcast
from construct_messages.streams.writer import Writer

T = TypeVar("T")
P = ParamSpec("P")

_POLL_SECONDS: Final = 0.05  # the interval at which a store with another writing process is polled
_THREADS: Final = 4  # threads that read for asyncio


class StoreReader:
    """Reads a store; without a writer, another process writes, or none."""

    def __init__(
        self, path: Path, broadcast: Broadcast, writer: Writer | None, damage: Damage
    ) -> None:
        self._path, self._broadcast, self._writer, self._damage = path, broadcast, writer, damage
        self._readers = Readers(path, damage)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="streams-reader")
        if writer is None:
            with self._readers.connection():  # for its errors
                pass

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._path

    def changes(self) -> AbstractContextManager[asyncio.Event]:
        """An event of the running loop that is set when this process has appended elements or deleted streams."""
        return self._broadcast.subscribed()

    # --- streams ---

    def streams(self) -> list[State]:
        """Returns the states of all streams, by name."""
        if self._writer is not None:
            return self._writer.states()
        with self._readers.connection() as connection:
            return sorted(
                (stream.state for stream in reading.load(connection).values()),
                key=lambda state: state.name,
            )

    def state(self, stream: str) -> State:
        """Returns the state of a stream.

        Raises:
            NotFound: there is no such stream.
        """
        if self._writer is not None:
            state = self._writer.state(stream)
            if state is None:
                raise reading.no_stream(stream)
            return state
        with self._readers.connection() as connection:
            return reading.stored(connection, stream).state

    # --- reading ---

    @checked
    def read(
        self, stream: str, after: int | None = None, *, follow: bool = False
    ) -> Iterator[Element]:
        """Yields the elements of a stream in their order.

        Args:
            stream: the name of the stream.
            after: the sequence of the last known element; None: start with the oldest kept one.
            follow: wait for more elements at the end.

        Raises:
            NotFound: the stream does not exist, or was deleted.
            Gone: retention removed elements after `after` before they were read.
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

    async def aread(
        self, stream: str, after: int | None = None, *, follow: bool = False
    ) -> AsyncGenerator[Element]:
        """`read` for asyncio."""
        async with aclosing(self.apages(stream, after, follow=follow)) as pages:
            async for page in pages:
                for element in page:
                    yield element

    async def apages(
        self, stream: str, after: int | None = None, *, follow: bool = False
    ) -> AsyncGenerator[list[Element]]:
        """`aread`, with all available elements at a time."""
        position = await self._in_thread(self._start, stream, after)
        with self._broadcast.subscribed() as changed:
            while True:
                changed.clear()
                elements = await self.apage(stream, position)
                if elements:
                    yield elements
                    position = elements[-1].sequence
                elif not follow:
                    return
                elif self._writer is None:
                    await asyncio.sleep(_POLL_SECONDS)
                else:
                    await changed.wait()

    async def apage(self, stream: str, after: int) -> list[Element]:
        """Returns a page of the existing elements after a sequence; empty at the end."""
        elements = self._recent(stream, after)
        return await self._in_thread(self._page, stream, after) if elements is None else elements

    async def alines(
        self, stream: str, after: int, last: int, between: str
    ) -> AsyncGenerator[reading.ElementLines]:
        """Yields elements as blocks of N-Quads lines; the next block is read ahead.

        The element `last` must exist, and the text stands between the lines of two elements.
        """
        if after >= last:
            return
        ahead = asyncio.ensure_future(self._in_thread(self._lines, stream, after, last, between))
        try:
            while True:
                lines = await ahead
                if lines.last == last:
                    yield lines
                    return
                ahead = asyncio.ensure_future(
                    self._in_thread(self._lines, stream, lines.last, last, between)
                )
                yield lines
        finally:
            ahead.cancel()
            await asyncio.gather(ahead, return_exceptions=True)  # its result is not needed

    def check(self) -> None:
        """Checks that the store can be read, and that no damage has been found."""
        if self._damage.error is not None:
            raise self._damage.error
        with self._readers.connection() as connection:
            connection.execute("SELECT count(*) FROM stream").fetchone()

    def check_position(self, stream: str, after: int) -> None:
        """Checks that reading can begin after a sequence."""
        reading.check_position(self.state(stream), after)

    def get(self, stream: str, sequence: int) -> Element:
        """Returns one element.

        Raises:
            NotFound: there is no such stream, or no such element yet.
            Gone: retention removed it.
        """
        with self._readers.connection() as connection:
            return reading.element(connection, stream, sequence)

    def times(self, stream: str, sequences: Iterable[int]) -> list[int]:
        """Returns the commit times of elements, in microseconds since 1970 in UTC; their messages are not read.

        Raises:
            NotFound: there is no such stream, or no such element yet.
            Gone: retention removed one of them.
        """
        with self._readers.connection() as connection:
            return reading.times(connection, stream, sequences)

    def latest(self, stream: str, count: int) -> list[Element]:
        """Returns the newest elements, the oldest of them first; fewer if there are fewer.

        Raises:
            NotFound: there is no such stream.
        """
        with self._readers.connection() as connection:
            return reading.latest(connection, stream, count)

    def sequence_at(self, stream: str, time: datetime) -> int:
        """Returns the sequence of the first kept element at or after a time; that of the next element if all are older.

        Raises:
            NotFound: there is no such stream.
            UsageError: a time without time zone.
        """
        wanted = microseconds_of(time)
        with self._readers.connection() as connection:
            state = reading.stored(connection, stream).state
            return reading.first_at(connection, state.id, state.first, state.next, wanted)

    def counts(self, stream: str, since: datetime, period: timedelta, periods: int) -> list[int]:
        """Returns how many of the kept elements were committed in each of consecutive periods.

        Args:
            stream: its name.
            since: the beginning of the first period, with a time zone.
            period: how long each is.
            periods: how many there are.

        Raises:
            NotFound: there is no such stream.
            UsageError: a time without time zone.
        """
        start = microseconds_of(since)
        microseconds = period // timedelta(microseconds=1)
        with self._readers.connection() as connection:
            return reading.counts(connection, stream, start, microseconds, periods)

    # --- state of programs ---

    def owners(self) -> list[str]:
        """Returns the names of programs with a saved state."""
        with self._readers.connection() as connection:
            return reading.owners(connection)

    def saved_state(self, owner: str) -> dict[str, bytes]:
        """Returns the values that `commit` has stored, by key."""
        with self._readers.connection() as connection:
            return reading.saved_state(connection, owner)

    async def asaved_state(self, owner: str) -> dict[str, bytes]:
        """`saved_state` for asyncio."""
        return await self._in_thread(self.saved_state, owner)

    def seen(self, owner: str) -> dict[bytes, int]:
        """Returns the digests that a program has recorded, with their counts."""
        with self._readers.connection() as connection:
            return reading.seen(connection, owner)

    async def aseen(self, owner: str) -> dict[bytes, int]:
        """`seen` for asyncio."""
        return await self._in_thread(self.seen, owner)

    def seen_contents(self, owner: str, digests: Iterable[bytes]) -> list[bytes | None]:
        """Returns the contents that were stored with digests, in the same order; None without content."""
        with self._readers.connection() as connection:
            return reading.contents(connection, owner, digests)

    async def aseen_contents(self, owner: str, digests: Iterable[bytes]) -> list[bytes | None]:
        """`seen_contents` for asyncio."""
        return await self._in_thread(self.seen_contents, owner, digests)

    # --- internal ---

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
            raise StoreError(
                f"the store {self._path} was closed",
                hint="open it, and continue after the last element",
            )
        return self._broadcast.after(stream, position, reading.PAGE_ELEMENTS)

    def _page(self, stream: str, position: int) -> list[Element]:
        with self._readers.connection() as connection:
            return reading.page(connection, stream, position)

    def _lines(self, stream: str, position: int, last: int, between: str) -> reading.ElementLines:
        with self._readers.connection() as connection:
            return reading.lines(connection, stream, position, last, between)

    async def _in_thread(self, call: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(
            self._threads, partial(call, *args, **options)
        )
