"""The newest elements, for followers in the same process, and notifications for waiting ones.

The only state of a follower is its position. It gets recent elements from here, and older ones from the store, so that
a slow follower costs no memory, and each gets all elements once. No database here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Condition
from typing import Final

from construct_messages.streams.element import Element

_RECENT_BYTES: Final = 1 << 22
"""The maximal size of each stream in memory, in bytes of N-Quads; its newest element always is."""
_ROW_BYTES: Final = 200  # the memory of an element in addition to its N-Quads


class _Recent:
    """The newest elements of one stream."""

    def __init__(self) -> None:
        self.elements: deque[Element] = deque()
        self._bytes = 0

    def append(self, element: Element) -> None:
        self.elements.append(element)
        self._bytes += len(element.nquads) + _ROW_BYTES
        while self._bytes > _RECENT_BYTES and len(self.elements) > 1:
            self._bytes -= len(self.elements.popleft().nquads) + _ROW_BYTES


class Broadcast:
    """The newest elements of all streams of a store.

    >>> broadcast = Broadcast()
    >>> broadcast.publish([Element("s", 1, 0, b""), Element("s", 2, 0, b"")])
    >>> [element.sequence for element in broadcast.after("s", 1, 10)], broadcast.after("s", 2, 10)
    ([2], [])
    """

    def __init__(self) -> None:
        self._recent: dict[str, _Recent] = {}
        self._changed = Condition()
        self._version = 0
        self._waiting: dict[asyncio.AbstractEventLoop, set[asyncio.Event]] = {}
        self.closed = False

    def publish(self, elements: Sequence[Element], gone: Sequence[str] = ()) -> None:
        """Adds committed elements, in order. `wake` notifies waiting followers.

        Args:
            elements: elements of any streams.
            gone: deleted streams.
        """
        with self._changed:
            for name in gone:
                self._recent.pop(name, None)
            for element in elements:
                recent = self._recent.get(element.stream)
                if recent is None:
                    recent = self._recent[element.stream] = _Recent()
                recent.append(element)

    def close(self) -> None:
        """Notifies all waiting followers for the last time."""
        with self._changed:
            self.closed = True
        self.wake()

    def wake(self) -> None:
        """Notifies all waiting followers."""
        with self._changed:
            self._version += 1
            self._changed.notify_all()
            for loop, events in self._waiting.items():
                with suppress(RuntimeError):  # the loop was closed under its followers
                    # one call for all followers in a loop
                    loop.call_soon_threadsafe(_set_all, events)

    def after(self, stream: str, sequence: int, most: int) -> list[Element] | None:
        """The elements after a sequence, oldest first; None if they are not in memory, and must be read from the store.

        Args:
            stream: its name.
            sequence: the sequence of the last known element.
            most: the maximal number of elements.
        """
        with self._changed:
            recent = self._recent.get(stream)
            if recent is None:
                return None
            start = sequence + 1 - recent.elements[0].sequence
            if not 0 <= start <= len(recent.elements):
                return None
            # a follower is usually near the end, where indexing a deque is fast; iteration starts at the other end
            return [
                recent.elements[at] for at in range(start, min(start + most, len(recent.elements)))
            ]

    @property
    def version(self) -> int:
        """A number that differs after each change."""
        return self._version

    def wait(self, version: int) -> None:
        """Blocks until the version differs from this one."""
        with self._changed:
            self._changed.wait_for(lambda: self._version != version)

    @contextmanager
    def subscribed(self) -> Iterator[asyncio.Event]:
        """An event of the running loop that is set after each change, until the block ends."""
        loop, event = asyncio.get_running_loop(), asyncio.Event()
        with self._changed:
            # a new set for each change: `_set_all` may still iterate over the old one
            self._waiting[loop] = self._waiting.get(loop, set()) | {event}
        try:
            yield event
        finally:
            with self._changed:
                left = self._waiting[loop] - {event}
                if left:
                    self._waiting[loop] = left
                else:
                    del self._waiting[loop]


def _set_all(events: set[asyncio.Event]) -> None:
    for event in events:
        event.set()
