"""`logs/reading.py`: tar archives of one document a message, whole and byte by byte."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterable
from typing import Any

import pytest

from construct_messages.errors import ConstructMessagesError, LimitExceeded, LogError
from construct_messages.logs import DecoderOptions, encoder_for
from construct_messages.logs.reading import ArchiveDecoder
from construct_messages.rdf.formats import JELLY, N_TRIPLES, Format
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import Term, iri
from tests.support.logs.archives import archive

SUBJECT, PREDICATE, OBJECT, GRAPH = (iri(f"http://example.org/{name}") for name in "spog")
TRIPLE = b"<http://example.org/s> <http://example.org/p> <http://example.org/o> .\n"
PREFIXED = b"PREFIX ex: <http://example.org/> ex:s ex:p ex:o ."
ONE = Message([Quad(SUBJECT, PREDICATE, OBJECT)])
IN_GRAPH = Message([Quad(SUBJECT, PREDICATE, OBJECT, GRAPH)])


def of_type(type: bytes, name: str = "0000000000.ttl") -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type = type
    return header


def jelly(*messages: Message) -> bytes:
    assert JELLY.own is not None
    encoder = encoder_for(JELLY, JELLY.own)
    return b"".join([encoder.start(), *map(encoder.encode, messages), encoder.finish()])


def read(
    data: bytes, size: int = 1 << 30, format: Format | None = None, **options: Any
) -> list[Message]:
    """The messages before the end or an error, which is raised behind them."""
    return list(
        reading(ArchiveDecoder(format, DecoderOptions(labels=Labels("x"), **options)), data, size)
    )


def reading(decoder: ArchiveDecoder, data: bytes, size: int) -> Iterable[Message]:
    for start in range(0, len(data), size):
        yield from decoder.feed(data[start : start + size])
    yield from decoder.close()


def until_error(messages: Iterable[Message]) -> tuple[list[Message], ConstructMessagesError]:
    """The messages before an error, and the error."""
    found = []
    try:
        for message in messages:
            found.append(message)
    except ConstructMessagesError as error:
        return found, error
    pytest.fail("no error")


by_size = pytest.mark.parametrize("size", [1 << 30, 512, 1], ids=lambda size: f"by {size}")

ARCHIVES: dict[str, tuple[bytes, list[Message]]] = {
    "nothing": (archive(), []),
    "each format": (
        archive(
            ("0000000000.nt", TRIPLE),
            ("0000000001.nq", TRIPLE.replace(b" .", b" <http://example.org/g> .")),
            ("0000000002.ttl", PREFIXED),
            ("0000000003.trig", b"PREFIX ex: <http://example.org/> ex:g { ex:s ex:p ex:o }"),
            ("0000000004.jelly", jelly(IN_GRAPH)),
            (
                "0000000005.ndjsonld",
                b'{"@id": "http://example.org/s", "http://example.org/p": {"@id": "http://example.org/o"}}\n',
            ),
        ),
        [ONE, IN_GRAPH, ONE, IN_GRAPH, IN_GRAPH, ONE],
    ),
    "empty messages": (
        archive(
            ("0.ttl", b""),
            ("1.ttl", b"# nothing\n"),
            ("2.nt", TRIPLE),
            ("3.jelly", jelly()),
            ("4.jelly", jelly(Message())),
        ),
        [Message(), Message(), ONE, Message(), Message()],
    ),
    "the order of the archive": (archive(("1.nt", TRIPLE), ("0.nt", b"")), [ONE, Message()]),
    "folders": (archive(of_type(tarfile.DIRTYPE, "stream/"), ("stream/0.nt", TRIPLE)), [ONE]),
    "a mark": (archive(("0.ttl", b"\xef\xbb\xbf" + PREFIXED)), [ONE]),
    "comments that are no delimiters": (
        archive(("0.ttl", b"# @message\n" + TRIPLE + b"# @message\n" + TRIPLE)),
        [ONE],
    ),
    "long names of GNU": (
        archive(("a" * 300 + "/0.nt", TRIPLE), ("1.nt", b""), format=tarfile.GNU_FORMAT),
        [ONE, Message()],
    ),
    "long names of pax": (
        archive(("é" * 300 + "/0.nt", TRIPLE), ("1.nt", b""), format=tarfile.PAX_FORMAT),
        [ONE, Message()],
    ),
}


@pytest.mark.parametrize("case", ARCHIVES)
@by_size
def test_archives(case: str, size: int) -> None:
    data, expected = ARCHIVES[case]
    assert read(data, size) == expected


def test_a_format_for_all() -> None:
    assert read(archive(("0", TRIPLE), ("1.txt", b"")), format=N_TRIPLES) == [ONE, Message()]


def test_what_is_known_of_it() -> None:
    decoder = ArchiveDecoder()
    assert (decoder.format, decoder.syntax, dict(decoder.prefixes)) == (None, None, {})
    list(decoder.feed(archive(("0.ttl", PREFIXED), ("1.nt", TRIPLE))))
    assert (decoder.format, decoder.syntax, dict(decoder.prefixes)) == (
        N_TRIPLES,
        None,
        {"ex": "http://example.org/"},
    )


def test_a_base_and_contexts() -> None:
    document = b'{"@context": "http://example.org/context", "@id": "s", "p": {"@id": "o"}}\n'
    context = {"@context": {"p": "http://example.org/p"}}
    data = archive(("0.ttl", b"<s> <p> <o> ."), ("1.ndjsonld", document))
    assert read(
        data, base="http://example.org/", contexts={"http://example.org/context": context}
    ) == [ONE, ONE]


def test_blank_nodes_are_those_of_their_file() -> None:
    node = b"_:x <http://example.org/p> <http://example.org/o> ."
    message = Message([Quad(Term("_:x"), PREDICATE, OBJECT)])
    messages = read(
        archive(
            ("0.ttl", node),
            ("1.ttl", node),
            ("2.jelly", jelly(message)),
            ("3.jelly", jelly(message)),
        )
    )
    assert [str(next(iter(message))).split()[0] for message in messages] == [
        f"_:x_m{number}b0" for number in (1, 2, 3, 4)
    ]


# the bytes, how many messages come before the error, and what it says
ERRORS: dict[str, tuple[bytes, int, str]] = {
    "nothing at all": (b"", 0, "byte 0: the archive ends early"),
    "no archive": (TRIPLE * 20, 0, "byte 0: no header of a tar archive"),
    "a damaged header": (
        archive(("0.nt", TRIPLE))[:1024] + b"x" * 512,
        1,
        "byte 1024: no header of a tar archive",
    ),
    "no end": (archive(("0.nt", TRIPLE))[:1024], 1, "byte 1024: the archive ends early"),
    "something after the end": (
        archive(("0.nt", TRIPLE)) + archive(("1.nt", TRIPLE)),
        1,
        "after the end",
    ),
    "a link": (
        archive(("0.nt", TRIPLE), of_type(tarfile.SYMTYPE)),
        1,
        "'0000000000.ttl' is a symbolic link",
    ),
    "a hard link": (archive(of_type(tarfile.LNKTYPE)), 0, "is a link"),
    "a device": (archive(of_type(tarfile.CHRTYPE)), 0, "is a device"),
    "a block device": (archive(of_type(tarfile.BLKTYPE)), 0, "is a device"),
    "a pipe": (archive(of_type(tarfile.FIFOTYPE)), 0, "is a pipe"),
    "an unknown type": (archive(of_type(b"Z")), 0, "is no ordinary file"),
    "a sparse file": (archive(of_type(tarfile.GNUTYPE_SPARSE)), 0, "is no ordinary file"),
    "an unknown extension": (
        archive(("0.nt", TRIPLE), ("README.md", b"")),
        1,
        "the extension of 'README.md'",
    ),
    "a syntax error": (
        archive(("0.nt", TRIPLE), ("1.ttl", PREFIXED + b"\nex:s ex:p .")),
        1,
        r"line 2, column 11: message 2: in '1\.ttl'",
    ),
    "not UTF-8": (archive(("0.nt", b"\xff")), 0, "UTF-8"),
    "a relative IRI": (archive(("0.ttl", b"<s> <p> <o> .")), 0, "line 1, column"),
    "a delimiter": (
        archive(("0.nt", TRIPLE + b"MESSAGE\n" + TRIPLE)),
        0,
        r"line 2, column 1: message 1: in '0\.nt'",
    ),
    "a damaged Jelly file": (archive(("0.jelly", jelly(ONE)[:-3])), 0, r"in '0\.jelly'"),
    "two frames in a file": (
        archive(("0.jelly", jelly(ONE, ONE))),
        0,
        r"'0\.jelly' holds 2 messages",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
@by_size
def test_errors(case: str, size: int) -> None:
    data, before, text = ERRORS[case]
    messages, error = until_error(reading(ArchiveDecoder(), data, size))
    assert isinstance(error, LogError)
    assert re.search(text, str(error))
    assert (len(messages), error.number) == (before, before + 1)


@pytest.mark.parametrize("case", ARCHIVES)
def test_cut_at_every_block_and_around(case: str) -> None:
    """What is cut never passes for whole: at the least, the end marker is missing."""
    data, expected = ARCHIVES[case]
    end = len(data.rstrip(b"\0")) + 511 & -512 if expected else 0
    for cut in {
        place
        for block in range(0, end + 1, 512)
        for place in (block - 1, block, block + 1)
        if 0 <= place <= end
    }:
        messages, error = until_error(reading(ArchiveDecoder(), data[:cut], 1 << 30))
        assert isinstance(error, LogError)
        assert messages == expected[: len(messages)]


@by_size
def test_a_file_that_is_too_large_is_not_read(size: int) -> None:
    data = archive(("0.nt", TRIPLE), ("1.nt", TRIPLE * 10))[
        : 512 * 3
    ]  # its header, and nothing of its content
    messages, error = until_error(
        reading(ArchiveDecoder(decoding=DecoderOptions(message_bytes=100)), data, size)
    )
    assert messages == [ONE]
    assert isinstance(error, LimitExceeded)
    assert error.message == "message 2: '1.nt' has 710 bytes, where 100 are allowed"


def pax(records: bytes) -> bytes:
    header = of_type(tarfile.XHDTYPE)
    header.size = len(records)
    return header.tobuf() + records.ljust(-(-len(records) // 512) * 512, b"\0")


HEADERS = {
    "a size": (pax(b"11 size=71\n") + archive(("0.nt", TRIPLE)), [ONE]),
    "no number": (pax(b"size=72\n"), "malformed pax header"),
    "a number that is too large": (pax(b"99 size=72\n"), "malformed pax header"),
    "a number that is too small": (pax(b"3 size=72\n"), "malformed pax header"),
    "no size": (pax(b"12 size=x72\n") + archive(("0.nt", TRIPLE)), "no header of a tar archive"),
    "less than nothing": (pax(b"11 size=-1\n") + archive(("0.nt", TRIPLE)), "'0.nt' has -1 bytes"),
    "a sparse file": (
        pax(b"22 GNU.sparse.major=1\n") + archive(("0.nt", TRIPLE)),
        "no ordinary file",
    ),
    "too large": (pax(b"x" * (1 << 16) + b"x"), "a header of 65537 bytes"),
}


@pytest.mark.parametrize("case", HEADERS)
@by_size
def test_pax_headers(case: str, size: int) -> None:
    data, expected = HEADERS[case]
    if isinstance(expected, str):
        with pytest.raises(LogError, match=expected):
            read(data, size)
    else:
        assert read(data, size) == expected


def test_global_headers_say_nothing_about_messages() -> None:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", pax_headers={"comment": "a stream"}) as tar:
        header = tarfile.TarInfo("0.nt")
        header.size = len(TRIPLE)
        tar.addfile(header, io.BytesIO(TRIPLE))
    assert read(written.getvalue()) == [ONE]
