"""Writes new elements from one task to all followers of a stream that have every earlier element.

Waking a task for each follower costs more than sending an element. A follower whose connection does not accept an
element immediately continues in its own task, from its own position, and so does one at another position. The only part
of HTTP here is the chunked coding (RFC 9112, section 7.1).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

from aiohttp import HttpVersion11, web

from construct_messages.rdf.errors import ConstructMessagesError
from construct_messages.server.streams.push import Pushed, Pushing
from construct_messages.server.streams.record import StreamRecord
from construct_messages.streams.store import StreamStore

_IN_A_ROW: Final = 200  # followers that are written to before other tasks run
_COUNTING_SECONDS: Final = 1.0  # interval of updates of the metrics
_BYTES: Final = 1 << 16  # of elements that are written to all; larger pages are old elements

_Key: TypeAlias = tuple[str, int, Pushing]


class _Page(NamedTuple):
    """Elements that are written to all followers.

    Args:
        plain, chunk: their bytes, alone and as a chunk of a body.
        elements: the number of elements.
        last: the sequence of the last one.
        now: the time of the event loop.
    """

    plain: bytes
    chunk: bytes
    elements: int
    last: int
    now: float

    @classmethod
    def of(cls, pushed: Pushed, last: int) -> _Page:
        """Returns the elements of a page."""
        plain = b"".join(pushed.pieces)
        chunk = b"%x\r\n%s\r\n" % (len(plain), plain)
        return cls(plain, chunk, pushed.elements, last, asyncio.get_running_loop().time())


class SharedPlace:
    """The place of one follower; see `SharedWriting`.

    Args:
        fanout: the fanout of the store.
        pushing: serializes the elements.
        request: the request, whose connection is written to.
        record: counts sent elements and bytes.
        socket: the WebSocket of the request; None: it is answered with a body.
    """

    def __init__(
        self,
        fanout: Fanout,
        pushing: Pushing,
        request: web.Request,
        record: StreamRecord,
        socket: web.WebSocketResponse | None = None,
    ) -> None:
        self._fanout, self._pushing, self._request = fanout, pushing, request
        self.record, self._socket = record, socket
        self._chunked = socket is None and request.version >= HttpVersion11
        self._position = 0
        self._left: asyncio.Future[int] | None = None
        self._wrote: Callable[[float], None] = lambda _: None

    async def wait(
        self, stream: str, identity: int, position: int, wrote: Callable[[float], None]
    ) -> int | None:
        """Waits in a group of followers; see `SharedWriting.wait`."""
        if self._fanout.is_stopped:
            return None
        group = self._fanout.group((stream, identity, self._pushing), position)
        if group.position != position:
            return None
        self._position = position
        self._left, self._wrote = asyncio.get_running_loop().create_future(), wrote
        group.places[self] = None
        try:
            return await self._left
        finally:
            self._left = None
            group.places.pop(self, None)

    def leave(self) -> None:
        """Leaves the group; see `SharedWriting.leave`."""
        if self._left is not None and not self._left.done():
            self._left.set_result(self._position)

    def write(self, page: _Page) -> bool:
        """Writes elements if the connection accepts them immediately; returns whether it did."""
        request, socket = self._request, self._socket
        transport = request.transport
        if (
            self._left is None
            or self._left.done()
            or (socket is not None and socket.closed)
            or transport is None
            or transport.is_closing()
            or request.protocol.writing_paused
            or transport.get_write_buffer_size()
        ):
            return False
        transport.write(page.chunk if self._chunked else page.plain)
        self.record.bytes += len(page.plain)
        self.record.delivered += page.elements
        self._position = page.last
        self._wrote(page.now)
        return True


class _Group:
    """The followers of one stream at one position, with one format and transport."""

    def __init__(self, store: StreamStore, key: _Key, position: int) -> None:
        self._store, self._key = store, key
        self.position = position
        self.places: dict[SharedPlace, None] = {}
        self._counted = 0.0

    async def run(self) -> None:
        """Writes to all followers until none is left."""
        stream, identity, pushing = self._key
        # each follower gets the error of the store itself
        with suppress(ConstructMessagesError), self._store.changes() as changed:
            while self.places:
                changed.clear()
                page = await self._store.apage(stream, self.position)
                if self._store.state(stream).id != identity:
                    return
                if not page:
                    await changed.wait()
                    continue
                pushed = pushing.push(page)
                if pushed.refused is not None or sum(map(len, pushed.pieces)) > _BYTES:
                    return
                self.position = page[-1].sequence
                await self._write(_Page.of(pushed, self.position))

    async def _write(self, page: _Page) -> None:
        counting = page.now - self._counted >= _COUNTING_SECONDS
        for number, place in enumerate(list(self.places), 1):
            if place not in self.places:
                continue
            if not place.write(page):
                del self.places[place]
                place.leave()
            elif counting:
                place.record.observer(place.record)
            if number % _IN_A_ROW == 0:
                await asyncio.sleep(0)
        if counting:
            self._counted = page.now


class Fanout:
    """The groups of followers of a store.

    Args:
        store: the store of the streams.
    """

    def __init__(self, store: StreamStore) -> None:
        self._store = store
        self._groups: dict[_Key, tuple[_Group, asyncio.Task[None]]] = {}
        self.is_stopped = False

    def group(self, key: _Key, position: int) -> _Group:
        """Returns the group of followers, creating it if necessary."""
        if (known := self._groups.get(key)) is not None:
            return known[0]
        group = _Group(self._store, key, position)
        task = asyncio.create_task(group.run())
        self._groups[key] = group, task

        def ended(_: asyncio.Task[None]) -> None:  # also if the task was cancelled before it began
            del self._groups[key]
            for place in group.places:
                place.leave()

        task.add_done_callback(ended)
        return group

    def stop(self) -> None:
        """Ends all groups and creates no others; each follower continues in its own task."""
        self.is_stopped = True
        for _, task in self._groups.values():
            task.cancel()
