"""The shapes of streams: validates published messages before they are stored.

A message that does not conform is rejected with its report, or goes to a stream of dead letters. The settings are those
of `[streams.NAME]`. If the messages of a request are stored together, one such message rejects all of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, ParamSpec, Protocol, TypeVar

from construct_messages.construct.shapes import Shapes, dead_letter, without_report
from construct_messages.construct.shapes.report import REPORT_GRAPH
from construct_messages.construct.shapes.validation import does_not_conform
from construct_messages.rdf.message import Message
from construct_messages.server.config import StreamsSettings
from construct_messages.streams.element import Element, messages_of
from construct_messages.streams.store import StreamStore

T = TypeVar("T")
P = ParamSpec("P")

_REPORT: Final = REPORT_GRAPH.encode()
_MANY: Final = 8  # validating this many quads takes as long as starting a thread


class InThread(Protocol):
    """Calls a function in a thread."""

    def __call__(
        self, call: Callable[P, T], /, *args: P.args, **options: P.kwargs
    ) -> Awaitable[T]: ...


class StreamShapes:
    """The shapes of the streams of a store.

    Args:
        settings: the settings of all streams.
        store: the store for dead letters.
        in_thread: calls a function in a thread, so that it does not block the event loop.

    Raises:
        ShapesError: shapes are not valid.
    """

    def __init__(self, settings: StreamsSettings, store: StreamStore, in_thread: InThread) -> None:
        self._store, self._in_thread = store, in_thread
        self._shapes: Mapping[str, Shapes] = {
            name: Shapes(
                stream.shapes, data=stream.shapes_data, allow_warnings=stream.allow_warnings
            )
            for name, stream in settings.bridges.items()
            if stream.shapes
        }
        self._invalid_to = {name: each.invalid_to for name, each in settings.bridges.items()}

    def has(self, stream: str) -> bool:
        """Returns whether a stream has shapes."""
        return stream in self._shapes

    async def conforming(
        self,
        stream: str,
        messages: Sequence[Message],
        *,
        key: str | None = None,
        own: str | None = None,
    ) -> Sequence[Message]:
        """Returns the messages that a stream accepts, after storing dead letters.

        Args:
            stream: the name of the stream.
            messages: the published messages.
            key, own: see `StreamStore.aappend_all`.

        Raises:
            DoesNotConform: a message does not conform, and the stream has no stream of dead letters.
        """
        if stream not in self._shapes:
            return messages
        kept, letters = await self.sorted(stream, messages)
        await self._store_letters(stream, letters, key, own)
        return kept

    async def sorted(
        self, stream: str, messages: Sequence[Message]
    ) -> tuple[Sequence[Message], Sequence[Message]]:
        """Returns the messages that a stream accepts, and the dead letters of the others; stores nothing.

        Raises:
            DoesNotConform: see `conforming`.
        """
        shapes = self._shapes.get(stream)
        if shapes is None:
            return messages, ()
        sort = partial(_sorted, shapes, messages, collects=self._invalid_to[stream] is not None)
        kept, letters = sort() if sum(map(len, messages)) <= _MANY else await self._in_thread(sort)
        return kept, [letter for _, letter in letters]

    async def conforming_elements(
        self, stream: str, elements: Sequence[Element]
    ) -> Sequence[Element]:
        """Returns the elements that a stream accepts from its bridge; see `conforming`."""
        shapes = self._shapes.get(stream)
        if shapes is None:
            return elements
        sort = partial(
            _sorted, shapes, messages_of(elements), collects=self._invalid_to[stream] is not None
        )
        kept, letters = await self._in_thread(sort)
        await self._store_letters(stream, [letter for _, letter in letters], None, None)
        left_out = {place for place, _ in letters}
        rest = (each for place, each in enumerate(elements) if place not in left_out)
        return [
            each._replace(nquads=message.lines.removesuffix(b"\n"))
            if _REPORT in each.nquads
            else each
            for each, message in zip(rest, kept, strict=True)
        ]

    async def _store_letters(
        self, stream: str, letters: Sequence[Message], key: str | None, own: str | None
    ) -> None:
        place = self._invalid_to[stream] if letters else None
        if place is not None:
            await self._store.acreate(place, exist_ok=True)
            # several streams may share a dead letter stream, and their publishers may choose the same keys
            place_key = None if key is None else f"{stream}/{key}"
            await self._store.aappend_all(place, letters, key=place_key, own=own)


def _sorted(
    shapes: Shapes, messages: Sequence[Message], *, collects: bool
) -> tuple[list[Message], list[tuple[int, Message]]]:
    """Returns the messages that conform, and the dead letters of the others with their places.

    Raises:
        DoesNotConform: a message does not conform, and dead letters are not collected.
    """
    kept: list[Message] = []
    letters: list[tuple[int, Message]] = []
    for place, message in enumerate(map(without_report, messages)):
        report = shapes.validate(message, number=place + 1)
        if report.conforms:
            kept.append(message)
        elif collects:
            letters.append((place, dead_letter(message, report)))
        else:
            raise does_not_conform(report)
    return kept, letters
