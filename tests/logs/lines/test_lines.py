"""N-Triples and N-Quads logs: exact bytes, the messages and errors of a table read in any pieces, W3C's documents."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from construct_messages.errors import LimitExceeded, LogError, UnsupportedByFormat
from construct_messages.logs import DecoderOptions
from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.logs.lines.decoder import LinesDecoder, StatementLines, read_lines
from construct_messages.rdf.formats import N_QUADS, N_TRIPLES, RDFM, VARIANTS, Format, Syntax
from construct_messages.rdf.formats.lookup import find_syntax
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import RDF
from tests.support.logs.cases.lines import (
    BLANKS,
    DELIMITERS,
    DIRECTION,
    EMPTY,
    GRAPH,
    LIMITS,
    ONE,
    READ,
    TRIPLE,
    TWO,
    A,
    B,
    M,
    S,
    V,
)
from tests.support.logs.kinds import Kind, Reading, cut, isomorphic, read, write
from tests.support.places import shared_path
from tests.support.strategies import messages

FORMATS = (N_TRIPLES, N_QUADS)


def decode(
    data: bytes,
    label: str | None = None,
    format: Format = N_QUADS,
    *,
    pieces: int | None = None,
    **options: int,
) -> Reading:
    """Reads a log: whole, or in pieces of so many bytes."""
    kind = Kind(format, RDFM if label is None else find_syntax(label))
    size = pieces or max(len(data), 1)
    return read(
        (data[start : start + size] for start in range(0, len(data), size)),
        kind,
        announced=label is not None,
        **options,
    )


LOGS = {
    "no message": ([], N_TRIPLES, "rdfm", ""),
    "no message, announced": ([], N_TRIPLES, "1.2-messages", 'VERSION "1.2-messages"\n'),
    "one": ([ONE], N_TRIPLES, "rdfm", f"# @message\n{A} .\n"),
    "one, announced": (
        [ONE],
        N_TRIPLES,
        "1.1-messages",
        f'VERSION "1.1-messages"\n{A} .\nMESSAGE\n',
    ),
    "an empty one": ([EMPTY], N_QUADS, "rdfm", "# @message\n"),
    "an empty one, announced": (
        [EMPTY],
        N_QUADS,
        "1.2-messages",
        'VERSION "1.2-messages"\nMESSAGE\n',
    ),
    "empty ones": (
        [EMPTY, ONE, EMPTY, TWO, EMPTY],
        N_QUADS,
        "rdfm",
        f"# @message\n# @message\n{A} .\n# @message\n# @message\n{A} .\n{B} .\n# @message\n",
    ),
    "empty ones, announced": (
        [EMPTY, ONE, EMPTY, TWO, EMPTY],
        N_QUADS,
        "1.2-basic-messages",
        f'VERSION "1.2-basic-messages"\nMESSAGE\n{A} .\nMESSAGE\nMESSAGE\n{A} .\n{B} .\nMESSAGE\nMESSAGE\n',
    ),
    "graphs": (
        [GRAPH, ONE],
        N_QUADS,
        "rdfm",
        f"# @message\n{A} <urn:g> .\n{A} .\n{A} _:g .\n# @message\n{A} .\n",
    ),
    "blank nodes": (
        [BLANKS, BLANKS],
        N_TRIPLES,
        "rdfm",
        "# @message\n_:x <urn:p> _:y .\n_:y <urn:p> _:x .\n" * 2,
    ),
    "blank nodes, announced": (
        [BLANKS, BLANKS],
        N_TRIPLES,
        "1.2-messages",
        'VERSION "1.2-messages"\n' + "_:x <urn:p> _:y .\n_:y <urn:p> _:x .\nMESSAGE\n" * 2,
    ),
    "triple terms": (
        [TRIPLE],
        N_QUADS,
        "1.2-messages",
        'VERSION "1.2-messages"\n<urn:a> <urn:p> <<( _:x <urn:p> <<( <urn:a> <urn:p> "b c" )>> )>> .\nMESSAGE\n',
    ),
    "base direction": (
        [DIRECTION],
        N_TRIPLES,
        "rdfm",
        '# @message\n<urn:a> <urn:p> "x"@ar--rtl .\n',
    ),
    "a literal that reads as delimiters": (
        [DELIMITERS, ONE],
        N_TRIPLES,
        "1.1-messages",
        'VERSION "1.1-messages"\n<urn:a> <urn:p> "\\nMESSAGE\\n#@message\\nVERSION\\"1.2\\"\\n" .\nMESSAGE\n'
        f"{A} .\nMESSAGE\n",
    ),
    "a literal that reads as delimiters, old": (
        [DELIMITERS, ONE],
        N_TRIPLES,
        "rdfm",
        f'# @message\n<urn:a> <urn:p> "\\nMESSAGE\\n#@message\\nVERSION\\"1.2\\"\\n" .\n# @message\n{A} .\n',
    ),
}


@pytest.mark.parametrize("case", LOGS)
def test_bytes(case: str) -> None:
    sent, format, label, expected = LOGS[case]
    assert write(sent, Kind(format, find_syntax(label))).decode() == expected


@pytest.mark.parametrize("pieces", [None, 1], ids=["whole", "bytes"])
@pytest.mark.parametrize("announced", [True, False], ids=["media type", "log"])
@pytest.mark.parametrize("case", LOGS)
def test_messages(case: str, announced: bool, pieces: int | None) -> None:
    sent, format, label, text = LOGS[case]
    got = decode(text.encode(), label if announced else None, format, pieces=pieces)
    assert got.error is None
    assert isomorphic(got.messages, sent)
    if label == "rdfm":
        assert got.messages == sent, "labels are kept"


@pytest.mark.parametrize("pieces", [None, 1, 7], ids=["whole", "bytes", "sevens"])
@pytest.mark.parametrize("case", READ)
def test_reading(case: str, pieces: int | None) -> None:
    data, label, expected, wrong = READ[case]
    got = decode(data if isinstance(data, bytes) else data.encode(), label, pieces=pieces)
    assert got.messages == expected, str(got)
    if wrong is None:
        assert got.error is None, str(got)
        return
    assert got.error is not None
    assert (got.error.number, got.error.position) == (wrong.number, (wrong.line, wrong.column)), (
        str(got)
    )
    assert wrong.word in got.error.message, got.error.message
    assert wrong.hint in (got.error.hint or "")


@pytest.mark.parametrize("pieces", [None, 1, 7], ids=["whole", "bytes", "sevens"])
@pytest.mark.parametrize("case", LIMITS)
def test_limits(case: str, pieces: int | None) -> None:
    text, limit, expected, wrong = LIMITS[case]
    got = decode(
        text.encode("latin-1" if "é" in text else "utf-8"), pieces=pieces, message_bytes=limit
    )
    assert got.messages == expected, str(got)
    if wrong is None:
        assert got.error is None, str(got)
        return
    number, line = wrong
    assert got.error is not None
    assert (
        str(got.error).splitlines()[0]
        == f"line {line}, column 1: message {number} is longer than {limit} bytes"
    )
    assert got.error.hint


# --- hostile sizes: work and memory are counted, not timed ----------------------------------------------------------


class Work:
    """Counts the characters that expressions run over, and the bytes that are held and taken out again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done = 0
        work = self

        def counted(lines: bytes, **options: bool) -> StatementLines:
            work.done += len(lines)
            return read_lines(lines, **options)

        class Held(bytearray):
            def __iadd__(self, data: bytes) -> Held:  # type: ignore[override] # of what it is used with
                work.done += len(data)
                return super().__iadd__(data)

            def __bytes__(self) -> bytes:
                work.done += len(self)
                return bytes(memoryview(self))

        monkeypatch.setattr("construct_messages.logs.lines.decoder.read_lines", counted)
        monkeypatch.setattr("construct_messages.logs.lines.decoder.bytearray", Held, raising=False)


def stream(pieces: Iterable[bytes], **options: Any) -> Iterator[Message]:
    decoder = LinesDecoder(N_QUADS, None, DecoderOptions(**options))
    for piece in pieces:
        yield from decoder.feed(piece)
    yield from decoder.close()


def in_pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


HOSTILE = {
    "a large literal": (f'<urn:a> <urn:p> "{"x" * 4_000_000}" .\n', 4096, 1),
    "a large literal that is not canonical": (
        f'<urn:a> <urn:p> "{"x" * 4_000_000}"@EN .\n',
        4096,
        1,
    ),
    "byte by byte": (f'<urn:a> <urn:p> "{"x" * 50_000}" .\n', 1, 1),
    "a large message": (f"{A} .\n" * 20_000, 999, 1),
    "a large message that is not canonical": (f" {A}.\n" * 5_000, 999, 1),
    "blank lines": ("\r\n" * 10_000 + S, 1, 1),
    "empty messages": (V + M * 100_000, 65536, 100_000),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_each_byte_is_looked_at_a_few_times(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, pieces, expected = HOSTILE[case]
    work = Work(monkeypatch)
    assert sum(1 for _ in stream(in_pieces(text.encode(), pieces))) == expected
    # held, taken out, run over by the block, and once more line by line where something in it is not canonical
    assert len(text) / 2 < work.done <= 4 * len(text) + 100


def peak(run: Callable[[], object]) -> int:
    """The most memory in bytes that is held at once within a call."""
    gc.collect()
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_memory_is_that_of_a_message() -> None:

    def count(messages: int) -> None:
        log = chain(
            [V.encode()], (f"<urn:{n}> <urn:p> _:b .\nMESSAGE\n".encode() for n in range(messages))
        )
        assert sum(1 for _ in stream(log)) == messages

    few, many = peak(lambda: count(500)), peak(lambda: count(5000))
    assert many < few + 500_000, "what is kept of each message would be four times as much"


@pytest.mark.slow
def test_memory_is_bounded_where_no_line_ends() -> None:
    taken = 0

    def endless() -> Iterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b"x" * 65536

    def read_on() -> None:
        with pytest.raises(LimitExceeded, match="message 1 is longer than 1000000 bytes"):
            list(stream(endless(), message_bytes=1_000_000))

    assert peak(read_on) < 4_000_000
    assert taken == 16


# --- W3C's documents ------------------------------------------------------------------------------------------------


def documents(suite: str) -> Iterator[tuple[str, bool, bytes]]:
    """The documents of a suite: the name, whether it is one of the format, and its bytes."""
    test = "http://www.w3.org/ns/rdftest#Test"
    for manifest in sorted(shared_path(f"suites/w3c/rdf/{suite}").rglob("manifest.ttl")):
        quads = list(
            ox.parse(manifest.read_bytes(), format=ox.RdfFormat.TURTLE, base_iri="file:///")
        )
        kinds = {
            quad.subject: quad.object.value
            for quad in quads
            if quad.predicate.value == f"{RDF}type"
        }
        for quad in quads:
            kind = kinds.get(quad.subject, "")
            if kind.startswith(test) and quad.predicate.value.endswith(("#action", "#result")):
                path = manifest.parent / quad.object.value.removeprefix("file:///")
                yield path.name, "Negative" not in kind, path.read_bytes()


SUITES = {
    "rdf11/rdf-n-triples": (41, 29),
    "rdf11/rdf-n-quads": (53, 34),
    "rdf12/rdf-n-triples": (89, 22),
    "rdf12/rdf-n-quads": (89, 20),
}


@pytest.mark.suite
@pytest.mark.parametrize("suite", SUITES)
def test_documents_are_logs_of_one_message(suite: str) -> None:
    format = N_QUADS if suite.endswith("quads") else N_TRIPLES
    positive = negative = 0
    for name, is_positive, data in documents(suite):
        whole, bytewise = decode(data, None, format), decode(data, None, format, pieces=1)
        assert (whole.messages, str(whole.error)) == (bytewise.messages, str(bytewise.error)), name
        if is_positive:
            expected = to_message(
                ox.parse(data, format=ox.RdfFormat.from_extension(format.extension))
            )
            assert whole.messages == ([expected] if expected else []), name
            assert whole.error is None, name
        else:
            assert whole.messages == [], name
            assert isinstance(whole.error, LogError), name
            assert whole.error.position is not None, name
        positive, negative = positive + is_positive, negative + (not is_positive)
    assert (positive, negative) == SUITES[suite]


# --- round trips ----------------------------------------------------------------------------------------------------


# test_logs_round_trip.py draws from all formats; here are the line ends, and each syntax by itself
some = settings(max_examples=settings().max_examples // 4)


@pytest.mark.parametrize("syntax", VARIANTS, ids=lambda syntax: f"{syntax.label}-{syntax.version}")
@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.extension)
@some
@given(data=st.data())
def test_round_trip(format: Format, syntax: Syntax, data: st.DataObject) -> None:
    kind = Kind(format, syntax)
    sent = data.draw(
        messages(
            graphs=format.graphs, triple_terms=syntax.triple_terms, directions=syntax.directions
        ),
        label="messages",
    )
    log = write(sent, kind)
    ends = data.draw(st.sampled_from(["\n", "\r", "\r\n"]), label="line ends")
    log = log.replace(b"\n", ends.encode())
    places = data.draw(st.lists(st.integers(0, len(log)), max_size=6), label="places")
    got = read(cut(log, places), kind, announced=data.draw(st.booleans(), label="announced"))
    event(f"messages: {len(sent)}")
    assert got.error is None
    assert got.messages == sent if kind.keeps_labels else isomorphic(got.messages, sent)


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.extension)
@some
@given(data=st.data())
def test_plain_parsers_read_the_union(format: Format, data: st.DataObject) -> None:
    sent = data.draw(messages(graphs=format.graphs))
    union = to_message(
        ox.parse(
            write(sent, Kind(format, RDFM)), format=ox.RdfFormat.from_extension(format.extension)
        )
    )
    assert union == Message(quad for message in sent for quad in message)


REFUSED = {
    "graph in N-Triples": (
        N_TRIPLES,
        "rdfm",
        [EMPTY, ONE, GRAPH],
        ["message 3", "N-Triples", "<urn:g> ."],
    ),
    "triple term below 1.2": (
        N_QUADS,
        "1.1-messages",
        [TRIPLE],
        ["message 1", "1.1-messages", "<<( "],
    ),
    "triple term in basic": (
        N_QUADS,
        "1.2-basic-messages",
        [ONE, TRIPLE],
        ["message 2", "1.2-basic-messages", "<<( "],
    ),
    "direction below 1.2": (
        N_TRIPLES,
        "1.1-messages",
        [DIRECTION],
        ["message 1", "1.1-messages", '"x"@ar--rtl'],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses_what_it_cannot_carry(case: str) -> None:
    format, label, sent, words = REFUSED[case]
    with pytest.raises(UnsupportedByFormat) as error:
        write(sent, Kind(format, find_syntax(label)))
    assert all(word in error.value.message for word in words), error.value.message
    assert error.value.hint
