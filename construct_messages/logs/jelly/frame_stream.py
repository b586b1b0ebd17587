"""Reads and writes the frames of one stream one by one, as over gRPC, with their metadata.

`rows.py` reads the content of frames, and `frames.py` writes it. The lookup tables belong to the whole stream, so its
frames must be written and read in order. Jelly 1.1, gRPC streaming protocol; RdfStreamFrame of rdf.proto.
"""

from __future__ import annotations

from collections.abc import Mapping

from construct_messages.logs import DecoderOptions
from construct_messages.logs.jelly.options import JellyOptions
from construct_messages.logs.jelly.rows import Rows
from construct_messages.logs.jelly.wire import Malformed, delimited, fields, read_field
from construct_messages.rdf.errors import LimitExceeded, LogError
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message

_METADATA = 15
_METADATA_TAG = 0x7A
_LEAST_MADE = 1 << 26  # see `decoder.py`


class FrameReader:
    """Reads the frames of one stream.

    Args:
        options: `message_bytes`, `labels`, `generalized`, `shared_labels` and `lenience` are used.

    >>> from construct_messages.logs.jelly.frames import FrameWriter
    >>> from construct_messages.logs.jelly.service import DEFAULT_OPTIONS
    >>> writer, reader = FrameWriter(DEFAULT_OPTIONS, {}), FrameReader(DecoderOptions())
    >>> reader.read(writer.write(Message())), reader.options.physical_type.name
    (<Message, empty>, 'QUADS')
    """

    def __init__(self, options: DecoderOptions) -> None:
        self._limit, self._count = options.message_bytes, 0
        self._rows = Rows(
            generalized=options.generalized,
            shared_labels=options.shared_labels,
            most_made=max(options.message_bytes, _LEAST_MADE),
            labels=options.labels or Labels(),
            lenience=options.lenience,
        )

    @property
    def options(self) -> JellyOptions | None:
        """The options of the stream; None: not read yet."""
        return self._rows.options

    def read(self, frame: bytes) -> Message | None:
        """Returns the message of the next frame; None: the frame means that a stream has no messages.

        Raises:
            LogError: it is not a frame of the stream; the error has the position in it.
            LimitExceeded: the frame is too large.
        """
        self._count += 1
        if len(frame) > self._limit:
            raise LimitExceeded(
                f"frame {self._count} has {len(frame)} bytes, where {self._limit} are allowed",
                hint="raise the limit for messages",
            )
        try:
            message = self._rows.message(frame)
            if self._rows.options is None:
                raise Malformed(
                    "the first frame has no options",
                    hint="begin the stream with a row of options",
                )
        except Malformed as error:
            raise LogError(
                f"byte {self._rows.place} of the frame: {error.message}",
                number=self._count,
                hint=error.hint,
            ) from None
        except LimitExceeded as error:
            raise LimitExceeded(f"frame {self._count}: {error.message}", hint=error.hint) from None
        return message


def metadata_fields(metadata: Mapping[str, bytes]) -> bytes:
    """Encodes the metadata of a frame. They precede the rows, so that readers need not search them.

    >>> read_metadata(metadata_fields({"a": b"1"}) + b"\\x0a\\x00")
    ({'a': b'1'}, b'\\n\\x00')
    """
    return b"".join(
        b"\x7a" + delimited(b"\x0a" + delimited(name.encode()) + b"\x12" + delimited(value))
        for name, value in metadata.items()
    )


def read_metadata(frame: bytes) -> tuple[dict[str, bytes], bytes]:
    """Splits a frame into its metadata and the rest, if the metadata are before its rows.

    >>> read_metadata(b"\\x0a\\x00")
    ({}, b'\\n\\x00')
    """
    found: dict[str, bytes] = {}
    place = 0
    try:
        while place < len(frame) and frame[place] == _METADATA_TAG:
            short = _short_entry(frame, place)
            if short is not None:
                place, name, data = short
                found[name] = data
                continue
            _, value, place = read_field(frame, place)
            name, data = _entry(value)
            found[name] = data
    except Malformed:
        return {}, frame  # the reader of its rows reports the error
    return found, frame[place:] if place else frame


def _short_entry(frame: bytes, place: int) -> tuple[int, str, bytes] | None:
    """Returns an entry in the usual form, with lengths of one byte, and its end; None: another form, or malformed."""
    try:
        end = place + 2 + frame[place + 1]
        named = place + 4 + frame[place + 3]
        if (
            end - place > 0x81
            or frame[place + 2] != 0x0A
            or frame[named] != 0x12
            or named + 2 + frame[named + 1] != end
            or end > len(frame)
        ):
            return None
        return end, frame[place + 4 : named].decode(), frame[named + 2 : end]
    except (IndexError, UnicodeDecodeError):
        return None


def find_metadata(frame: bytes) -> dict[str, bytes]:
    """Returns the metadata of a frame, at any position in it: most programs write them after the rows.

    >>> find_metadata(b"\\x0a\\x00" + metadata_fields({"a": b"1"}))
    {'a': b'1'}
    """
    try:
        return dict(_entry(value) for number, value in fields(frame) if number == _METADATA)
    except Malformed:
        return {}


def _entry(data: int | bytes) -> tuple[str, bytes]:
    name, value = "", b""
    if isinstance(data, bytes):
        for number, part in fields(data):
            if number == 1 and isinstance(part, bytes):
                name = part.decode(errors="replace")
            elif number == 2 and isinstance(part, bytes):
                value = part
    return name, value
