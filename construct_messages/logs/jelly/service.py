"""The messages of Jelly's gRPC service, and the negotiation of a stream's options. No gRPC here.

Jelly 1.1, gRPC streaming protocol (grpc.proto; https://w3id.org/jelly/1.1.x/specification/streaming).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, Self

from construct_messages.errors import LimitExceeded, LogError, UsageError
from construct_messages.logs import DecoderOptions
from construct_messages.logs.jelly.decoder import Rows
from construct_messages.logs.jelly.options import (
    SMALLEST_NAME_TABLE,
    SMALLEST_PREFIX_TABLE,
    VERSION,
    JellyOptions,
    LogicalType,
    PhysicalType,
)
from construct_messages.logs.jelly.wire import (
    Malformed,
    delimited,
    fields,
    integer,
    read_field,
    text,
)
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message

# --- frame stream ---------------------------------------------------------------------------------
# Reads and writes the frames of one stream one by one, as over gRPC, with their metadata.
#
# `decoder.py` reads the content of frames, and `encoder.py` writes it. The lookup tables belong to the whole stream, so
# its frames must be written and read in order. Jelly 1.1, gRPC streaming protocol; RdfStreamFrame of rdf.proto.

_METADATA = 15
_METADATA_TAG = 0x7A
_LEAST_MADE = 1 << 26  # see `decoder.py`


class FrameReader:
    """Reads the frames of one stream. `options`: `message_bytes`, `labels`, `generalized`, `shared_labels` and
    `lenience` are used.

    >>> from construct_messages.logs.jelly.encoder import FrameWriter
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
        return self._rows.options

    def read(self, frame: bytes) -> Message | None:
        """Returns the message of the next frame; None: the frame means that a stream has no messages."""
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


# --- service --------------------------------------------------------------------------------------

SERVICE: Final = "eu.ostrzyciel.jelly.core.proto.v1.RdfStreamService"
SUBSCRIBE: Final = f"/{SERVICE}/SubscribeRdf"
PUBLISH: Final = f"/{SERVICE}/PublishRdf"

RECEIVED: Final = b""
"""The RdfStreamReceived message, which has no fields."""

_NUMBERS: Final = {
    2: "physical_type",
    3: "generalized_statements",
    4: "rdf_star",
    9: "max_name_table_size",
    10: "max_prefix_table_size",
    11: "max_datatype_table_size",
    14: "logical_type",
    15: "version",
}


class RdfStreamSubscribe(NamedTuple):
    """The request of a subscriber.

    >>> RdfStreamSubscribe.decode(RdfStreamSubscribe("rooms").encode())
    RdfStreamSubscribe(topic='rooms', requested_options=b'')
    """

    # the topic to subscribe to
    topic: str = ""
    # the bytes of an RdfStreamOptions message; empty: none are requested
    requested_options: bytes = b""

    def encode(self) -> bytes:
        return b"".join(
            tag + delimited(value)
            for tag, value in ((b"\x0a", self.topic.encode()), (b"\x12", self.requested_options))
            if value
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        topic, options = "", b""
        try:
            for number, value in fields(data):
                if number == 1:
                    topic = text(value, "the topic")
                elif number == 2 and isinstance(value, bytes):
                    options += value  # the parts of one message
        except Malformed as error:
            raise UsageError(f"the request is no RdfStreamSubscribe: {error.message}") from None
        return cls(topic, options)


DEFAULT_OPTIONS: Final = JellyOptions(
    physical_type=PhysicalType.QUADS, logical_type=LogicalType.DATASETS, rdf_star=True, version=1
)
"""The options of a stream for a subscriber that requests none: every message can be written with them."""

PREFERRED_OPTIONS: Final = JellyOptions(
    physical_type=PhysicalType.QUADS,
    logical_type=LogicalType.DATASETS,
    rdf_star=True,
    version=VERSION,
)
"""The options that a subscriber of this package requests: frames may have metadata."""


def negotiated(requested: bytes) -> JellyOptions:
    """Returns the options of the stream that answers a request, by the table of the specification.

    In a request with any option, a missing option is 0 or false, because Protocol Buffers do not distinguish
    the two. Tables have the smaller one of the requested size and that of `DEFAULT_OPTIONS`; prefix tables of 1 to 3
    are too small for writing, so none is used. The logical type is that of the messages: the requested one is ignored,
    unless it contradicts the requested physical type.

    >>> negotiated(b"") == DEFAULT_OPTIONS
    True
    >>> requested = JellyOptions(PhysicalType.TRIPLES, max_prefix_table_size=2, max_name_table_size=16, version=2)
    >>> options = negotiated(requested.encode())
    >>> options.max_name_table_size, options.max_prefix_table_size, options.logical_type.name, options.version
    (16, 0, 'GRAPHS', 2)
    >>> negotiated(JellyOptions(PhysicalType.TRIPLES).encode())
    Traceback (most recent call last):
    construct_messages.errors.UsageError: version is 0, where versions 1 to 2 can be written
      hint: request version 2
    """
    if not requested:
        return DEFAULT_OPTIONS
    wanted, name = _read(requested)
    if wanted["physical_type"] not in set(PhysicalType):
        raise UsageError(
            f"physical_type is {wanted['physical_type']}, which is no type",
            hint="request PHYSICAL_STREAM_TYPE_QUADS, TRIPLES or GRAPHS",
        )
    if wanted["version"] < 1:
        raise UsageError(
            f"version is {wanted['version']}, where versions 1 to {VERSION} can be written",
            hint=f"request version {VERSION}",
        )
    if wanted["max_name_table_size"] < SMALLEST_NAME_TABLE:
        raise UsageError(
            f"max_name_table_size is {wanted['max_name_table_size']}, where Jelly has {SMALLEST_NAME_TABLE} and more",
            hint="request a larger table",
        )
    physical = PhysicalType(wanted["physical_type"])
    logical = LogicalType.GRAPHS if physical is PhysicalType.TRIPLES else LogicalType.DATASETS
    _check_logical(wanted["logical_type"], physical, logical)
    names, prefixes, datatypes = (
        min(wanted[option], getattr(DEFAULT_OPTIONS, option))
        for option in ("max_name_table_size", "max_prefix_table_size", "max_datatype_table_size")
    )
    return JellyOptions(
        physical_type=physical,
        logical_type=logical,
        rdf_star=bool(wanted["rdf_star"]),
        max_name_table_size=names,
        max_prefix_table_size=prefixes if prefixes >= SMALLEST_PREFIX_TABLE else 0,
        max_datatype_table_size=datatypes,
        stream_name=name,
        version=min(wanted["version"], VERSION),
    )


def _read(requested: bytes) -> tuple[Mapping[str, int], str]:
    wanted, name = dict.fromkeys(_NUMBERS.values(), 0), ""
    try:
        for number, value in fields(requested):
            if number == 1:
                name = text(value, "stream_name")
            elif number in _NUMBERS:
                wanted[_NUMBERS[number]] = integer(value, _NUMBERS[number])
    except Malformed as error:
        raise UsageError(f"the requested options are malformed: {error.message}") from None
    return wanted, name


def _check_logical(wanted: int, physical: PhysicalType, logical: LogicalType) -> None:
    """Rejects an invalid logical type, or one that contradicts the physical type."""
    base = wanted % 10  # subtypes end with the digit of their type
    flat = logical - 2
    if wanted and base not in (logical, flat):
        raise UsageError(
            f"logical_type is {wanted}, which no stream of the physical type {physical.name} has",
            hint=f"request LOGICAL_STREAM_TYPE_{logical.name}, or leave it out",
        )


def refused_options(text: str, options: JellyOptions) -> UsageError:
    """Returns the error for a message that cannot be written with the options of a stream."""
    wanted = [
        f"{name} {value}"
        for name, value, is_so in (
            ("physical_type", "QUADS", options.physical_type is PhysicalType.TRIPLES),
            ("rdf_star", "true", not options.rdf_star),
            ("max_name_table_size", "128", options.max_name_table_size < 128),
            ("max_datatype_table_size", "32", options.max_datatype_table_size < 32),
        )
        if is_so
    ]
    return UsageError(text, hint=f"request {', '.join(wanted)}" if wanted else None)
