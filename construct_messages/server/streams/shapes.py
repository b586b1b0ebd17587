"""The shapes of streams: what is published to a stream is validated before it is stored.

A message that does not conform is refused with its report, or goes to a stream of dead letters. The settings are those
of `[streams.NAME]`. Of a request whose messages are stored all or none, one such message refuses all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from construct_messages.message import Message
from construct_messages.server.config import StreamsSettings
from construct_messages.server.streams.requests import InThread
from construct_messages.shapes import Shapes, dead_letter, without_report
from construct_messages.shapes.report import REPORT_GRAPH
from construct_messages.shapes.validation import does_not_conform
from construct_messages.streams.element import Element, messages_of
from construct_messages.streams.store import StreamStore

_REPORT: Final = REPORT_GRAPH.encode()
_MANY: Final = 8  # quads that take as long to validate as a thread takes to begin


class StreamShapes:
    """The shapes of the streams of a store.

    Args:
        settings: of all streams.
        store: where dead letters go.
        in_thread: calls a function where it does not hold up the event loop.

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
        """Whether a stream has shapes."""
        return stream in self._shapes

    async def conforming(
        self,
        stream: str,
        messages: Sequence[Message],
        *,
        key: str | None = None,
        own: str | None = None,
    ) -> Sequence[Message]:
        """Returns the messages that a stream takes; dead letters are stored then.

        Args:
            stream: its name.
            messages: that are published.
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
        """Returns the messages that a stream takes, and the dead letters of the others; nothing is stored.

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
        """Returns the elements that a stream takes which is fed; see `conforming`."""
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
            # several streams may have their dead letters there, whose publishers know nothing of each other
            place_key = None if key is None else f"{stream}/{key}"
            await self._store.aappend_all(place, letters, key=place_key, own=own)


def _sorted(
    shapes: Shapes, messages: Sequence[Message], *, collects: bool
) -> tuple[list[Message], list[tuple[int, Message]]]:
    """The messages that conform, and the dead letters with the places of the others.

    Raises:
        DoesNotConform: the first message that does not, unless dead letters are collected.
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
