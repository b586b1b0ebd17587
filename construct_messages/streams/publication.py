"""Publications: messages as rows of a store, and the digest that identifies a publication.

No database here.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from itertools import repeat
from threading import Condition
from typing import Final, NamedTuple

from construct_messages.logs.checking import Checker
from construct_messages.rdf.labels import may_have_labels
from construct_messages.rdf.message import Message, of_lines
from construct_messages.rdf.terms import Term
from construct_messages.streams.element import GENERATED_AT, Element, generated_at, make_elements

# --- broadcast ------------------------------------------------------------------------------------
# The newest elements, for followers in the same process, and notifications for waiting ones.
#
# The only state of a follower is its position. It gets recent elements from here, and older ones from the store, so
# that a slow follower costs no memory, and each gets all elements once. No database here.

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
        """Adds committed elements, in order. `wake` notifies waiting followers. `gone` are deleted streams."""
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
        """The elements after a sequence, oldest first; None: they are not in memory, but in the store only."""
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


# --- publication ----------------------------------------------------------------------------------

_GENERATED: Final = f"<{GENERATED_AT}>".encode()


class Publication(NamedTuple):
    """A message to append.

    Args:
        nquads, generated: see `Element`.

    >>> Publication.of(Message())
    Publication(nquads=b'', generated=None)
    """

    nquads: bytes
    generated: str | None = None

    @classmethod
    def of(cls, message: Message) -> Publication:
        """Returns a message in its stored form."""
        nquads = message.lines[:-1]
        return cls(nquads, generated_at(message) if _GENERATED in nquads else None)


def received(
    stream: str, sequence: int, message: Message, microseconds: int | None = None
) -> Element:
    """Returns a received message as an element. The default of the time is now.

    >>> received("https://example.org/streams/a", 7, Message()).sequence
    7
    """
    nquads, generated = Publication.of(message)
    if microseconds is None:
        microseconds = time.time_ns() // 1000
    return Element(stream, sequence, microseconds, nquads, generated)


def received_lines(
    stream: str,
    sequences: Sequence[int],
    lines: Sequence[bytes],
    microseconds: Sequence[int | None],
) -> list[Element]:
    r"""Returns received messages, in canonical N-Quads lines, as elements; see `received`. Each has at least one line.

    >>> received_lines("https://example.org/streams/a", [7], [b'<urn:s> <urn:p> "o" .\n'], [None])[0].nquads
    b'<urn:s> <urn:p> "o" .'
    """
    # searching all of them at once takes a fifth of the time
    if None in microseconds or _GENERATED in b"".join(lines):
        return [
            received(stream, sequence, of_lines(each), time)
            for sequence, each, time in zip(sequences, lines, microseconds, strict=True)
        ]
    nquads = [each[:-1] for each in lines]
    return list(make_elements(zip(repeat(stream), sequences, microseconds, nquads, repeat(None))))


def received_message(element: Element) -> Message:
    r"""Returns the message of an element that a transport yielded, whose lines are canonical: they are kept, and not
    read.

    >>> received_message(Element("a", 7, 0, b'<urn:s> <urn:p> "o" .')).lines
    b'<urn:s> <urn:p> "o" .\n'
    """
    return of_lines(element.nquads + b"\n" if element.nquads else b"")


class Publications(NamedTuple):
    """Messages to append together.

    `idempotency` is the publisher's key and the digest of the content. `own` is the placeholder in each message for its
    sequence.
    """

    messages: list[Publication]
    size: int
    idempotency: tuple[str, bytes] | None = None
    own: bytes | None = None

    @classmethod
    def of(
        cls,
        messages: Iterable[Message | Publication],
        key: str | None = None,
        own: str | None = None,
    ) -> Publications:
        """Returns messages in their stored form. Those that are publications already are unchanged, and have no key."""
        checker = Checker()
        publications = []
        placeholder = None if own is None else own.encode()
        digest = None if key is None else _Digest(placeholder)
        for message in messages:
            if isinstance(message, Publication):
                publications.append(message)
                continue
            checker.check(message)
            publication = Publication.of(message)
            publications.append(publication)
            if digest is not None:
                digest.add(message, publication.nquads)
        size = sum(len(publication.nquads) for publication in publications)
        return cls(
            publications,
            size,
            None if key is None or digest is None else (key, digest.value),
            placeholder,
        )

    def numbered(self, first: int) -> list[Publication]:
        """Returns the messages, each with its sequence in place of `own`.

        >>> own = Publications([Publication(b"<urn:x> <urn:p> <urn:1> .\\n<urn:1> <urn:p> <urn:x> .")], 51, own=b"x")
        >>> own.numbered(1)[0].nquads
        b'<urn:1> <urn:p> <urn:1> .'
        """
        if self.own is None:
            return self.messages
        return [
            publication._replace(nquads=_replaced(publication.nquads, self.own, b"%d" % sequence))
            if self.own in publication.nquads
            else publication
            for sequence, publication in enumerate(self.messages, first)
        ]


class LogPart(NamedTuple):
    """The position of some messages in a log whose messages are numbered from 1.

    `after` and `last` are the numbers of the messages before the part and at its end. `numbers` are those of the
    messages to append, ascending; the others were rejected.
    """

    key: str
    after: int
    last: int
    numbers: Sequence[int]


def _replaced(nquads: bytes, own: bytes, sequence: bytes) -> bytes:
    # if a message also contains the final IRI, a quad may now be repeated, but a message is a set of quads
    return b"\n".join(dict.fromkeys(nquads.replace(own, sequence).split(b"\n")))


class _Digest:
    """Identifies the messages of a publication, regardless of the labels of their blank nodes. `own` is the placeholder
    for sequences, which differs each time.

    A publisher that resends a log sends the same labels, but a decoder creates new labels each time.
    """

    def __init__(self, own: bytes | None) -> None:
        self._hash = blake2b(digest_size=16)
        self._own = own
        self._names: dict[Term, Term] = {}

    def add(self, message: Message, nquads: bytes) -> None:
        """Adds the next message, together with its stored form."""
        if may_have_labels(nquads):
            nquads = message.map_blanks(self._name).lines[:-1]
        if self._own is not None:
            nquads = nquads.replace(self._own, b" ")  # no IRI contains it
        self._hash.update(b"%d " % len(nquads))
        self._hash.update(nquads)

    def _name(self, node: Term) -> Term:
        return self._names.setdefault(node, Term(f"_:b{len(self._names)}"))

    @property
    def value(self) -> bytes:
        """Returns the digest of all messages so far."""
        return self._hash.digest()
