"""Serializes elements as consecutive Jelly frames, in the messages of a call. No connection here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from construct_messages.logs.jelly.frame_stream import metadata_fields
from construct_messages.logs.jelly.frames import FrameWriter
from construct_messages.logs.jelly.options import JellyOptions
from construct_messages.logs.jelly.service import refused_options
from construct_messages.rdf.errors import LimitExceeded, UnsupportedByFormat, UsageError
from construct_messages.rdf.wire import FrameMetadata
from construct_messages.sparql.client.grpc.framing import PIECE_BYTES, framed
from construct_messages.streams.element import Element, messages_of

_METADATA_VERSION: Final = 2
_SEQUENCE, _TIME = (
    tuple(metadata_fields({name: bytes(size)})[: -size or None] for size in range(20))
    for name in FrameMetadata
)
"""The bytes before the digits of a number, by the number of digits."""


class ElementFrames:
    """Writes the elements of a stream for one subscriber, and keeps its lookup tables.

    Args:
        options: the options of the Jelly stream.
        coding: the coding of the messages.
        most: the maximal size of a frame, in bytes.
    """

    def __init__(self, options: JellyOptions, coding: str, most: int) -> None:
        self._options, self._coding, self._most = options, coding, most
        self._writer = FrameWriter(options, {})
        self._has_metadata = (options.version or 0) >= _METADATA_VERSION

    def pieces(self, page: Sequence[Element]) -> Iterator[tuple[bytes, int]]:
        """Yields groups of frames of elements, with the number of elements.

        Raises:
            UsageError: the options of the stream cannot carry the next element; earlier ones were yielded.
            LimitExceeded: its frame would be too large.
        """
        held: list[bytes] = []
        size = 0
        try:
            for element, message in zip(page, messages_of(page), strict=True):
                frame = self._writer.write(message)
                if self._has_metadata:
                    frame = _metadata(element) + frame
                if len(frame) > self._most:
                    raise LimitExceeded(
                        f"element {element.sequence} is a frame of {len(frame)} bytes, where {self._most} are allowed",
                        hint="allow larger frames by rdf-stream-frame-bytes, if your client takes them; or read on "
                        f"after {element.sequence}",
                    )
                held.append(framed(frame, self._coding))
                size += len(held[-1])
                if size > PIECE_BYTES:
                    yield b"".join(held), len(held)
                    held, size = [], 0
        except (UnsupportedByFormat, LimitExceeded) as error:
            if held:
                yield b"".join(held), len(held)
            raise self._refused(element, error) from error
        if held:
            yield b"".join(held), len(held)

    def _refused(
        self, element: Element, error: UnsupportedByFormat | LimitExceeded
    ) -> UsageError | LimitExceeded:
        if isinstance(error, LimitExceeded):
            return error
        # without the prefix with the number of the message in this answer
        reason = error.message.partition(": ")[2]
        return refused_options(f"element {element.sequence}: {reason}", self._options)


def _metadata(element: Element) -> bytes:
    sequence, time = b"%d" % element.sequence, b"%d" % element.microseconds
    return _SEQUENCE[len(sequence)] + sequence + _TIME[len(time)] + time
