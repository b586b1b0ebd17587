"""Reads Jelly logs: finds the frames in chunks of bytes of any size, and adds positions to errors.

Jelly 1.1, "Delimited variant of Jelly" and its difference from a single frame; RDF Messages section 3: a frame is a
message with separate blank nodes, except in a flat stream. `rows.py` reads the content of frames.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from construct_messages.logs import DecoderOptions
from construct_messages.logs.jelly.options import JellyOptions
from construct_messages.logs.jelly.rows import Rows
from construct_messages.logs.jelly.wire import Malformed, read_varint
from construct_messages.rdf.errors import LimitExceeded, LogError
from construct_messages.rdf.formats import Format, Syntax
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message

# --- sniffer --------------------------------------------------------------------------------------
# Detects Jelly logs: a frame whose first row is stream options.
#
# Jelly 1.1, "Delimited variant of Jelly" and "Stream options" (rdf.proto). Nothing is decoded beyond the options'
# length.


def begins_stream(head: bytes) -> bool | None:
    """Returns whether `head` begins with a frame, delimited or not, whose first row is stream options; None: more bytes
    are needed.

    >>> begins_stream(bytes.fromhex("0a060a04100170010000")), begins_stream(b"<urn:s>"), begins_stream(b"\\n")
    (True, False, None)
    """
    empty = len(head) - len(head.lstrip(b"\0"))  # delimited frames without a row
    length = _varint(head, empty)
    delimited = (
        _is_options(head, length[1]) if length else None if len(head) < empty + 10 else False
    )
    answers = (_is_options(head, 0), delimited)
    return True if True in answers else None if None in answers else False


def _is_options(head: bytes, place: int) -> bool | None:
    if head[place : place + 1] not in (b"\n", b""):  # field 1 of a frame: a row
        return False
    row = _varint(head, place + 1)
    if row is None:
        return None if len(head) < place + 10 else False
    length, place = row
    if head[place : place + 1] not in (b"\n", b""):  # field 1 of a row: options
        return False
    options = _varint(head, place + 1)
    if options is None:
        return None if len(head) < place + 10 else False
    size, start = options
    if start + size != place + length:
        return False
    if (
        b"\x10" in head[start : start + size]
    ):  # field 2 of options: the physical type, which is required
        return True
    return None if len(head) < start + size else False


def _varint(head: bytes, place: int) -> tuple[int, int] | None:
    """Returns the number at a place, and the place after it; None: it is truncated."""
    value = 0
    for index, byte in enumerate(head[place : place + 10]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, place + index + 1
    return None


# --- decoder --------------------------------------------------------------------------------------

_ROW = 0x0A
"""The first byte of an undelimited frame: the tag of a row. As a length, it is ten bytes."""
_LONGEST_LENGTH = 10
_LEAST_MADE = 1 << 26
"""The maximal number of characters of a frame's distinct IRIs, even if the limit of its bytes is lower."""


class JellyDecoder:
    """Reads a Jelly log, delimited or of one frame.

    >>> from construct_messages.rdf.formats import JELLY
    >>> from construct_messages.logs import encoder_for
    >>> log = encoder_for(JELLY, JELLY.own).encode(Message())
    >>> decoder = JellyDecoder(JELLY, JELLY.own, DecoderOptions())
    >>> [*decoder.feed(log), *decoder.close()], decoder.options.logical_type.name
    ([<Message, empty>], 'DATASETS')
    """

    def __init__(self, _format: Format, syntax: Syntax | None, options: DecoderOptions) -> None:
        self.syntax, self._limit = syntax, options.message_bytes
        self._rows = Rows(
            generalized=options.generalized,
            shared_labels=options.shared_labels,
            most_made=max(options.message_bytes, _LEAST_MADE),
            labels=options.labels or Labels(),
            lenience=options.lenience,
        )
        self._buffer = bytearray()
        self._offset = 0  # the position of the buffer in the log
        self._messages = 0
        self._delimited: bool | None = None

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The namespaces that the log has declared so far."""
        return self._rows.prefixes

    @property
    def options(self) -> JellyOptions | None:
        """The options of the stream; None: not read yet."""
        options = self._rows.options
        return options and replace(
            options,
            delimited=bool(self._delimited),
            namespace_declarations=bool(self._rows.prefixes),
        )

    def feed(self, data: bytes) -> Iterator[Message]:
        """Returns the messages that are complete now."""
        buffer = self._buffer
        buffer += data
        if self._delimited is None:
            self._delimited = _is_delimited(buffer)
        if not self._delimited:
            if len(buffer) > self._limit:
                raise self._too_large("a frame that is not delimited")
            return
        while buffer:
            size, start = buffer[0], 1
            if size > 0x7F:
                if len(buffer) < _LONGEST_LENGTH and min(buffer) > 0x7F:
                    return  # within the length
                size, start = self._length()
            if size > self._limit:
                raise self._too_large(f"a frame of {size} bytes")
            if len(buffer) < start + size:
                return
            frame = bytes(buffer[start : start + size])
            del buffer[: start + size]
            self._offset += start
            message = self._message(frame)
            self._offset += size
            if message is not None:
                yield message

    def close(self) -> Iterator[Message]:
        """Returns the message that the end of an undelimited log completes."""
        buffer = self._buffer
        if not buffer:
            return
        if self._delimited is False:
            frame = bytes(buffer)
            buffer.clear()
            message = self._message(frame)
            self._offset += len(frame)
            if message is not None:
                yield message
            return
        raise self._error("the log ends within a frame", self._offset, hint="the file is not whole")

    def _length(self) -> tuple[int, int]:
        try:
            return read_varint(self._buffer, 0)
        except Malformed as error:
            raise self._error(f"the length of a frame is {error.message}", self._offset) from None

    def _too_large(self, what: str) -> LimitExceeded:
        return LimitExceeded(
            f"message {self._messages + 1}: {what} at byte {self._offset}, where {self._limit} bytes are allowed",
            hint="raise the limit for messages",
        )

    def _message(self, frame: bytes) -> Message | None:
        try:
            message = self._rows.message(frame)
        except Malformed as error:
            raise self._error(error.message, self._offset + self._rows.place, error.hint) from None
        except LimitExceeded as error:
            raise LimitExceeded(
                f"message {self._messages + 1}: {error.message}", hint=error.hint
            ) from None
        if message is not None:
            self._messages += 1
        return message

    def _error(self, what: str, offset: int, hint: str | None = None) -> LogError:
        return LogError(f"byte {offset}: {what}", number=self._messages + 1, hint=hint)


def _is_delimited(head: bytes | bytearray) -> bool | None:
    """Returns whether a log with this beginning is delimited; None: more bytes are needed.

    A single frame begins with a row whose first field contains options: 0A, the length of the row, 0A. A length of ten
    is also 0A, followed by the row.

    >>> [_is_delimited(bytes.fromhex(head)) for head in ("22", "0a22", "0a0a08", "0a0a0a", "0a")]
    [True, False, True, False, None]
    """
    if not head:
        return None
    if head[0] != _ROW:
        return True
    if len(head) < 2:
        return None
    if head[1] != _ROW:
        return False
    return None if len(head) < 3 else head[2] != _ROW
