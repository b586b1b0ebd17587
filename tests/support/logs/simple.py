"""Turtle and TriG logs read by the parser alone, one message after the other: what the compiled module must equal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from construct_messages.errors import LimitExceeded, LogError
from construct_messages.logs import DecoderOptions
from construct_messages.logs.turtle.decoder import TurtleDecoder
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from tests.support.logs.kinds import Kind, Reading


class SimpleTurtleDecoder(TurtleDecoder):
    """Leaves all messages to the parser."""

    def _known(self, text: bytes, *, is_whole: bool) -> tuple[list[Message], int, int]:  # noqa: ARG002
        return [], 0, 0


def read_simply(
    chunks: Iterable[bytes], kind: Kind, *, announced: bool = True, **options: Any
) -> Reading:
    """Reads a log as `kinds.read` does, by the parser alone."""
    messages: list[Message] = []
    decoding = DecoderOptions(**{"labels": Labels("x", keep=True), **options})

    def reading() -> Iterator[Message]:
        decoder = SimpleTurtleDecoder(kind.format, kind.syntax if announced else None, decoding)
        for chunk in chunks:
            yield from decoder.feed(chunk)
        yield from decoder.close()

    try:
        for message in reading():
            messages.append(message)
    except (LogError, LimitExceeded) as error:
        return Reading(messages, error)
    return Reading(messages, None)
