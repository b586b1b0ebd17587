"""`logs/reading.py`: what is not known of a log is told by its bytes, whole and byte by byte."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable, Iterator

import pytest
import zstandard
from hypothesis import event, given, settings
from hypothesis import strategies as st

from construct_messages.errors import (
    ConstructMessagesError,
    LimitExceeded,
    LogError,
    UsageError,
)
from construct_messages.logs import DecoderOptions, EncoderOptions, encoder_for
from construct_messages.logs.reading import DetectingDecoder, KnownProperties
from construct_messages.rdf.files.unpacking import packing_of
from construct_messages.rdf.formats import FORMATS, N_QUADS, NDJSON_LD, RDFM, TRIG, TURTLE, Format
from construct_messages.rdf.formats.lookup import find_syntax
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import iri, literal
from tests.support.logs.archives import archive

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: zstandard.ZstdCompressor().compress(data),
}
SUBJECT, PREDICATE = iri("http://example.org/s"), iri("http://example.org/p")
MESSAGES = [Message([Quad(SUBJECT, PREDICATE, literal(str(number)))]) for number in range(3)]
MESSAGES.insert(1, Message())


def log(format: Format, label: str = "rdfm") -> bytes:
    encoder = encoder_for(
        format, format.own or find_syntax(label), EncoderOptions({"ex": "http://example.org/"})
    )
    return b"".join([encoder.start(), *map(encoder.encode, MESSAGES), encoder.finish()])


def read(
    data: bytes, known: KnownProperties | None = None, size: int = 1 << 30, **options: int
) -> list[Message]:
    return list(
        reading(DetectingDecoder(known, DecoderOptions(labels=Labels("x"), **options)), data, size)
    )


def reading(decoder: DetectingDecoder, data: bytes, size: int = 1 << 30) -> Iterator[Message]:
    for start in range(0, len(data), size):
        yield from decoder.feed(data[start : start + size])
    yield from decoder.close()


by_size = pytest.mark.parametrize("size", [1 << 30, 10, 1], ids=lambda size: f"by {size}")
in_each_format = pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
in_each_packing = pytest.mark.parametrize("packing", PACKERS)


@in_each_format
@in_each_packing
@by_size
def test_nothing_is_known(format: Format, packing: str, size: int) -> None:
    decoder = DetectingDecoder()
    packed = PACKERS[packing](log(format))
    assert list(reading(decoder, packed, size)) == MESSAGES
    assert decoder.format in (format, N_QUADS if format.extension == "nt" else TRIG)
    assert (decoder.packing, decoder.archive) == (packing, False)
    assert (decoder.bytes_read, decoder.message_count) == (len(packed), 4)
    assert decoder.syntax == (format.own or RDFM)


@in_each_packing
@by_size
def test_an_archive(packing: str, size: int) -> None:
    packed = PACKERS[packing](
        archive(("0000000000.ttl", b"<urn:s> a <urn:T> ."), ("0000000001.nt", b""))
    )
    decoder = DetectingDecoder()
    assert [len(message) for message in reading(decoder, packed, size)] == [1, 0]
    assert decoder.format is not None
    assert (decoder.format.name, decoder.packing, decoder.archive) == ("N-Triples", packing, True)
    assert [
        len(m)
        for m in read(packed, KnownProperties(packing=packing, archive=True, format=TURTLE), size)
    ] == [1, 0]


@by_size
def test_what_is_known_is_not_looked_for(size: int) -> None:
    assert read(log(TURTLE), KnownProperties(packing="", format=TURTLE), size) == MESSAGES
    assert (
        read(
            log(TURTLE, "1.2-messages"),
            KnownProperties(format=TURTLE, syntax=find_syntax("1.2-messages")),
            size,
        )
        == MESSAGES
    )
    assert (
        read(log(N_QUADS, "1.2-messages"), KnownProperties(label="1.2-messages"), size) == MESSAGES
    )
    announced = log(N_QUADS, "1.2-messages").partition(b"\n")[2]
    assert read(announced, KnownProperties(label="1.2-messages"), size) == MESSAGES
    with pytest.raises(LogError):
        read(announced, size=size)


@by_size
def test_nothing_is_no_message(size: int) -> None:
    assert read(b"", size=size) == read(b"\n", size=size) == read(b"# nothing", size=size) == []
    assert read(gzip.compress(b""), size=size) == []


QUAD = b"<urn:s> <urn:p> <urn:o> <urn:g> .\n"

# the bytes, what is known of them, how many messages come before the error, and what it says
ERRORS: dict[str, tuple[bytes, KnownProperties, int, type[ConstructMessagesError], str]] = {
    "cut": (
        gzip.compress(log(N_QUADS))[:-1],
        KnownProperties(),
        3,
        LogError,
        r"message 4: byte \d+: the \.gz data end early",
    ),
    "empty, and named as packed": (
        b"",
        KnownProperties(packing=".gz"),
        0,
        LogError,
        r"message 1: byte 0: the \.gz data end early",
    ),
    "not packed, and named so": (
        log(N_QUADS),
        KnownProperties(packing=".zst"),
        0,
        LogError,
        r"message 1: byte \d+: the \.zst data are damaged",
    ),
    "malformed": (
        QUAD * 200 + b"nonsense",
        KnownProperties(),
        0,
        LogError,
        "it was taken for N-Quads by its first bytes",
    ),
    "malformed, of a known format": (
        b"nonsense",
        KnownProperties(format=N_QUADS),
        0,
        LogError,
        "line 1, column 1",
    ),
    "a label for an archive": (
        archive(("0.nt", b"")),
        KnownProperties(label="rdfm"),
        0,
        UsageError,
        "archive",
    ),
    "a label for what needs none": (
        b"{}\n",
        KnownProperties(label="rdfm"),
        0,
        UsageError,
        "NDJSON-LD delimits messages by itself",
    ),
    "a label for a known format": (
        b"{}\n",
        KnownProperties(format=NDJSON_LD, label="rdfm"),
        0,
        UsageError,
        "by itself",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
@by_size
def test_errors(case: str, size: int) -> None:
    data, known, before, kind, text = ERRORS[case]
    decoder = DetectingDecoder(known)
    with pytest.raises(kind, match=text):
        list(reading(decoder, data, size))
    assert decoder.message_count == before


@by_size
def test_a_bomb(size: int) -> None:
    bomb = gzip.compress(b'<urn:s> <urn:p> "' + b"x" * 50_000_000)
    with pytest.raises(LimitExceeded, match="message 1"):
        read(bomb, KnownProperties(format=N_QUADS), size, message_bytes=1 << 20)


# --- damage ---------------------------------------------------------------------------------------------------------

WHOLE = [
    *(pack(log(format)) for pack in PACKERS.values() for format in (N_QUADS, TURTLE, NDJSON_LD)),
    *(
        pack(archive(("stream/", b""), ("0.ttl", b"<urn:s> a <urn:T> ."), ("é" * 80, b"")))
        for pack in PACKERS.values()
    ),
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A log, packed or not, or an archive, with some bytes changed, put in or taken out."""
    data = bytearray(draw(st.sampled_from(WHOLE)))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(data)))
        data[place : place + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


@given(
    damaged(),
    st.sampled_from(
        [
            KnownProperties(),
            KnownProperties(archive=True),
            KnownProperties(format=TRIG),
            KnownProperties(packing=".gz"),
        ]
    ),
)
@settings(max_examples=4 * settings.default.max_examples)
def test_damaged_bytes_give_our_errors_only(data: bytes, known: KnownProperties) -> None:
    """And the same, however the bytes come; but of damaged packed data, the chunk with the damage gives nothing."""
    (whole, error), (in_pieces, same_error) = (
        outcome(data, known, 1 << 30),
        outcome(data, known, 100),
    )
    event(error)
    assert error == same_error
    assert whole == in_pieces[: len(whole)]
    assert whole == in_pieces or known.packing or packing_of(data)


def outcome(data: bytes, known: KnownProperties, size: int) -> tuple[list[str], str]:
    """The messages before the end or an error, and the kind of the error. Blank nodes may have random labels."""
    messages = []
    try:
        for message in reading(DetectingDecoder(known), data, size):
            messages.append(" ".join(quad.predicate for quad in message))
    except (LogError, LimitExceeded) as error:
        return messages, type(error).__name__
    return messages, "no error"
