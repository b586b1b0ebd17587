"""Jelly logs: exact bytes both ways, what is refused, what is malformed, and what pyjelly writes and reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest
from google.protobuf.proto import serialize_length_prefixed
from hypothesis import given
from hypothesis import strategies as st
from pyjelly import jelly
from pyjelly.integrations.generic import generic_sink as peer
from pyjelly.integrations.generic.parse import parse_jelly_grouped
from pyjelly.integrations.generic.serialize import grouped_stream_to_file
from pyjelly.options import LookupPreset, StreamParameters
from pyjelly.serialize.streams import SerializerOptions

from construct_messages.errors import LimitExceeded, LogError, TermError, UnsupportedByFormat, UsageError
from construct_messages.labels import Labels
from construct_messages.logs.jelly.decoder import JellyDecoder
from construct_messages.logs.jelly.encoder import JellyEncoder
from construct_messages.logs.jelly.options import JellyOptions, LogicalType, PhysicalType
from construct_messages.logs.jelly.wire import DEEPEST, delimited, fields, varint
from construct_messages.message import Message, Quad
from construct_messages.terms import (
    XSD,
    Term,
    iri,
    is_blank,
    is_literal,
    is_triple,
    literal,
    literal_parts,
    triple,
    triple_parts,
)
from tests.support.strategies import messages

S, P, Q, O, G = (iri(f"http://example.org/{name}") for name in "spqog")  # noqa: E741 - the usual letter for an object
A, B = Term("_:a"), Term("_:b")
INTEGER = f"{XSD}integer"
TRIPLES = JellyOptions(PhysicalType.TRIPLES, LogicalType.GRAPHS, rdf_star=True, version=1)
QUADS = JellyOptions(PhysicalType.QUADS, LogicalType.DATASETS, rdf_star=True, version=1)
GRAPHS = JellyOptions(PhysicalType.GRAPHS, LogicalType.DATASETS, rdf_star=True, version=1)
KEPT: dict[str, Any] = {"shared_labels": True, "labels": Labels("x", keep=True)}
SIZES = pytest.mark.parametrize("size", [1, 7, 1 << 30], ids=["byte by byte", "in sevens", "whole"])


def message(*quads: tuple[Term | None, ...]) -> Message:
    return Message(Quad(*quad) for quad in quads)


def write(log: Sequence[Message], **options: Any) -> bytes:
    encoder = JellyEncoder(**{"options": JellyOptions(rdf_star=True), **options})
    return b"".join([encoder.start(), *map(encoder.encode, log), encoder.finish()])


def read(data: bytes, size: int = 1 << 30, limit: int = 1 << 28, **options: Any) -> Iterator[Message]:
    decoder = JellyDecoder(message_bytes=limit, **{"labels": Labels("x"), **options})
    for start in range(0, len(data), size):
        yield from decoder.feed(data[start : start + size])
    yield from decoder.close()


def read_on(data: bytes, size: int = 1 << 30, **options: Any) -> tuple[list[Message], LogError | LimitExceeded | None]:
    """The messages, and the error that ended them."""
    decoded = []
    try:
        for each in read(data, size, **options):
            decoded.append(each)
    except (LogError, LimitExceeded) as error:
        return decoded, error
    return decoded, None


def isomorphic(one: Sequence[Message], other: Sequence[Message]) -> bool:
    return len(one) == len(other) and all(a.isomorphic(b) for a, b in zip(one, other, strict=True))


# --- one table for both ways ----------------------------------------------------------------------------------------

SOME = [
    ("empty", [Message()]),
    ("all kinds", [message((S, P, O), (S, P, literal("x")), (A, Q, literal("x", language="en")), (A, Q, B))]),
    ("typed", [message((S, P, literal("1", datatype=INTEGER)), (S, P, literal("1", datatype="urn:d")))]),
    ("repeated over frames", [message((S, P, O)), message((S, P, O)), Message(), message((S, P, Q))]),
    ("no prefix", [message((iri("urn:s"), iri("urn:p"), iri("urn:o")))]),
    ("no name", [message((iri("http://example.org/"), iri("http://example.org/#"), iri("http://example.org/a#")))]),
    ("escapes", [message((S, P, literal('\x00\t"\\\n\r\x7f\u2028é\U0001f600')))]),
    ("long", [message((S, P, literal("x" * 20_000)), (S, P, literal("é" * 64)), (S, P, literal("y" * 126)))]),
    ("no text", [message((S, P, literal("")), (S, P, literal("", language="en")))]),
    ("triple terms", [message((S, P, triple(S, P, triple(A, P, literal("x")))), (S, P, triple(S, P, B)))]),
    ("many", [message(*((iri(f"urn:{n}/{m}#x"), P, literal(str(m))) for m in range(9))) for n in range(30)]),
]


@SIZES
@pytest.mark.parametrize("options", [TRIPLES, QUADS, GRAPHS], ids=lambda options: options.physical_type.name)
@pytest.mark.parametrize(("name", "log"), SOME, ids=[name for name, _ in SOME])
def test_what_is_written_is_read_again(name: str, log: list[Message], options: JellyOptions, size: int) -> None:
    assert list(read(write(log, options=options), size, **KEPT)) == log, name


@SIZES
@pytest.mark.parametrize("options", [QUADS, GRAPHS], ids=["quads", "graphs"])
def test_named_graphs(options: JellyOptions, size: int) -> None:
    log = [message((S, P, O, G), (S, P, O, None), (S, P, O, A), (S, P, O, G), (S, Q, O, G)), message((S, P, O, G))]
    assert list(read(write(log, options=options), size, **KEPT)) == log


@SIZES
def test_the_very_bytes(size: int) -> None:
    """A log of three messages, spelled out: options, entries, terms in full, then what need not be said again."""
    log = [message((S, P, O), (S, P, literal("1", datatype=INTEGER))), Message(), message((S, P, O), (S, Q, O))]
    options = JellyOptions(
        PhysicalType.TRIPLES,
        LogicalType.GRAPHS,
        max_name_table_size=8,
        max_prefix_table_size=4,
        max_datatype_table_size=2,
    )
    frames = [
        [
            *("0a0e0a0c", "1001", "4808", "5004", "5802", "7003", "7801"),
            *("0a195217", "0801", "1213", b"http://example.org/".hex(), "0a074a05", "0801", "120173"),
            *("0a054a03", "120170", "0a054a03", "12016f"),
            *("0a0c120a", "0a04", "08011001", "2a00", "4a00"),
            *(entry(INTEGER), "0a091207", "5a05", "0a0131", "1801"),
        ],
        [],
        [
            *("0a061204", "4a021003"),
            *("0a054a03", "120171", "0a041202", "2a00"),
        ],
    ]
    spelled = b"".join(delimited(bytes.fromhex("".join(frame))) for frame in frames)
    assert write(log, options=options).hex(" ") == spelled.hex(" ")
    assert list(read(spelled, size)) == log


def entry(datatype: str) -> str:
    value = b"\x08\x01\x12" + delimited(datatype.encode())
    return (b"\x0a" + delimited(b"\x5a" + delimited(value))).hex()


# --- blank nodes ----------------------------------------------------------------------------------------------------


@SIZES
def test_a_label_is_of_its_frame(size: int) -> None:
    log = [message((A, P, B), (A, Q, A)), message((A, Q, triple(A, P, B))), message((A, Q, triple(A, P, B)), (S, P, B))]
    first, second, third = read(write(log), size)
    assert str(first) == str(message(("_:x_m1b0", P, "_:x_m1b1"), ("_:x_m1b0", Q, "_:x_m1b0")))
    assert second == message(("_:x_m2b0", Q, triple(Term("_:x_m2b0"), P, Term("_:x_m2b1"))))
    # the third frame repeats the whole statement, whose nodes are now its own
    assert third.isomorphic(log[2])
    assert all("_:x_m3b" in str(quad) and "_:x_m2" not in str(quad) for quad in third)


def test_a_graph_that_goes_on_in_the_next_frame_is_a_node_of_that_frame() -> None:
    start = row(graph_start=jelly.RdfGraphStart(g_bnode="g"))
    log = log_of([options_row(GRAPHS), *ENTRIES, start, FIRST], [row(triple=jelly.RdfTriple(s_bnode="g"))])
    first, second = read(log)
    assert first == message((S, S, S, "_:x_m1b0"))
    assert second == message(("_:x_m2b0", S, S, "_:x_m2b0"))


def test_labels_are_kept_where_asked_for() -> None:
    assert list(read(write([message((A, P, B))]), **KEPT)) == [message((A, P, B))]
    log = log_of([options_row(TRIPLES), *ENTRIES, row(triple=jelly.RdfTriple(s_bnode="a b", p_iri=IRI, o_iri=IRI))])
    assert [str(one) for one in read(log)] == [
        "<Message of 1 quad: _:x_m1b0 <http://example.org/s> <http://example.org/s> .>"
    ]
    # what N-Triples cannot write has no label to keep
    assert [str(one) for one in read(log, **KEPT)] == [
        "<Message of 1 quad: _:X_D612062 <http://example.org/s> <http://example.org/s> .>"
    ]


# --- what is refused ------------------------------------------------------------------------------------------------


def nested(depth: int) -> Term:
    term = triple(S, P, O)
    for _ in range(depth - 1):
        term = triple(S, P, term)
    return term


WIDE = triple(S, P, triple(Q, O, triple(G, iri("urn:a"), triple(iri("urn:b"), iri("urn:c"), iri("urn:d")))))
REFUSED = [
    ((S, P, literal("x", language="en", direction="ltr")), QUADS, "Jelly has no base directions"),
    ((S, P, triple(S, P, literal("x", language="en", direction="rtl"))), QUADS, "Jelly has no base directions"),
    ((S, P, O, G), TRIPLES, "a stream of triples has no named graphs"),
    ((S, P, nested(1)), replace(TRIPLES, rdf_star=False), "allow no triple terms"),
    ((S, P, nested(DEEPEST + 1)), TRIPLES, "more than 97 in each other"),
    ((S, P, nested(5000)), TRIPLES, "more than 97 in each other"),
    (
        (S, P, literal("1", datatype=INTEGER)),
        replace(TRIPLES, max_datatype_table_size=0),
        "no datatypes",
    ),
    ((S, P, WIDE), replace(TRIPLES, max_name_table_size=8), "more names than the 8"),
    ((literal("x"), P, O), QUADS, "no place for a literal"),
    ((S, A, O), QUADS, "no place for a blank node as predicate"),
    ((S, nested(1), O), QUADS, "no place for a triple term"),
    ((S, P, O, literal("x")), QUADS, "no place for a literal"),
    ((S, P, O, nested(1)), replace(QUADS, generalized_statements=True), "no place for a triple"),
]


@pytest.mark.parametrize(("quad", "options", "why"), REFUSED, ids=[f"{n}: {case[2]}" for n, case in enumerate(REFUSED)])
def test_what_jelly_cannot_carry(quad: tuple[Term, ...], options: JellyOptions, why: str) -> None:
    encoder = JellyEncoder(options=options)
    good = [message((S, P, O)), message((S, Q, O), (O, Q, literal("y")))]
    log = encoder.encode(good[0])
    with pytest.raises(UnsupportedByFormat, match=f"^message 2: .*{why}"):
        encoder.encode(message((S, P, literal("fine")), quad))
    # what comes next does not depend on what was refused
    log += encoder.encode(good[1])
    assert list(read(log)) == good


def test_a_refused_first_message_leaves_the_options_to_the_next() -> None:
    encoder = JellyEncoder(JellyOptions(namespace_declarations=True), prefixes={"ex": "http://example.org/"})
    with pytest.raises(UnsupportedByFormat, match=r"^message 1: "):
        encoder.encode(message((S, P, literal("x", language="en", direction="ltr"))))
    assert list(read(encoder.encode(message((S, P, O))))) == [message((S, P, O))]


def test_the_deepest_there_is_is_read_by_both() -> None:
    log = write([message((S, P, nested(DEEPEST)))], graphs=False)
    assert list(read(log)) == [message((S, P, nested(DEEPEST)))]
    assert [len(sink) for sink in parse_jelly_grouped(BytesIO(log))] == [1]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"max_name_table_size": 7}, "max_name_table_size=7, where Jelly has 8 and more"),
        ({"max_name_table_size": 4097}, "max_name_table_size=4097, where a table has 0 to 4096"),
        ({"max_prefix_table_size": 4097}, "max_prefix_table_size=4097"),
        ({"max_prefix_table_size": -1}, "max_prefix_table_size=-1"),
        ({"max_datatype_table_size": 1 << 32}, "max_datatype_table_size=4294967296"),
        ({"version": 0}, "version 0"),
        ({"version": 3}, "version 3"),
        ({"logical_type": LogicalType.GRAPHS}, "logical type GRAPHS cannot have the physical type QUADS"),
        ({"logical_type": LogicalType.SUBJECT_GRAPHS}, "type SUBJECT_GRAPHS cannot have the physical type QUADS"),
        ({"physical_type": PhysicalType.TRIPLES}, "type DATASETS cannot have the physical type TRIPLES"),
    ],
    ids=str,
)
def test_options_that_cannot_be(options: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        JellyOptions(**{"physical_type": PhysicalType.QUADS, "logical_type": LogicalType.DATASETS, **options})


# --- what is malformed ----------------------------------------------------------------------------------------------

IRI = jelly.RdfIri(prefix_id=1, name_id=1)


def row(**field: Any) -> jelly.RdfStreamRow:
    return jelly.RdfStreamRow(**field)


def options_row(options: JellyOptions, **others: Any) -> jelly.RdfStreamRow:
    message = jelly.RdfStreamOptions.FromString(options.encode())
    for name, value in others.items():
        setattr(message, name, value)
    return row(options=message)


ENTRIES = [
    row(prefix=jelly.RdfPrefixEntry(value="http://example.org/")),
    row(name=jelly.RdfNameEntry(value="s")),
]
FIRST = row(triple=jelly.RdfTriple(s_iri=IRI, p_iri=jelly.RdfIri(name_id=1), o_iri=jelly.RdfIri(name_id=1)))


def log_of(*frames: Sequence[jelly.RdfStreamRow], metadata: dict[str, bytes] | None = None) -> bytes:
    out = BytesIO()
    for rows in frames:
        serialize_length_prefixed(jelly.RdfStreamFrame(rows=rows, metadata=metadata), out)
    return out.getvalue()


def triples(*rows: jelly.RdfStreamRow) -> bytes:
    """A log of a good message, an empty one, and one with these rows."""
    return log_of([options_row(TRIPLES), *ENTRIES, FIRST], [], rows)


def raw(*rows: str) -> bytes:
    """The same, with rows spelled in hexadecimal."""
    frame = b"".join(b"\x0a" + delimited(bytes.fromhex(each)) for each in rows)
    return triples()[:-1] + delimited(frame)


NAMED = row(namespace=jelly.RdfNamespaceDeclaration(name="ex"))
TRIPLE = jelly.RdfTriple
MALFORMED = {
    "a name out of the table's size": (
        triples(row(name=jelly.RdfNameEntry(id=4001, value="x"))),
        "entry 4001 in a table",
    ),
    "a name that is not there": (
        triples(row(triple=TRIPLE(o_iri=jelly.RdfIri(name_id=9)))),
        "9 is not in the table of n",
    ),
    "the name after the last one": (
        triples(row(triple=TRIPLE(o_iri=jelly.RdfIri()))),
        "2 is not in the table of names",
    ),
    "a prefix that is not there": (
        triples(row(triple=TRIPLE(o_iri=jelly.RdfIri(prefix_id=7)))),
        "7 is not in the table",
    ),
    "datatype 0": (
        triples(row(triple=TRIPLE(o_literal=jelly.RdfLiteral(lex="x", datatype=0)))),
        "0 is not in the table",
    ),
    "no datatype": (
        triples(row(triple=TRIPLE(o_literal=jelly.RdfLiteral(lex="x", datatype=1)))),
        "1 is not in the table",
    ),
    "a language": (
        triples(row(triple=TRIPLE(o_literal=jelly.RdfLiteral(langtag="1 2")))),
        "'1 2' is not a language tag",
    ),
    "a relative IRI": (
        triples(
            row(name=jelly.RdfNameEntry(value="s")),
            row(prefix=jelly.RdfPrefixEntry(value="x/")),
            row(triple=TRIPLE(o_iri=jelly.RdfIri(prefix_id=2))),
        ),
        "<x/s> is relative",
    ),
    "a space in an IRI": (
        triples(row(name=jelly.RdfNameEntry(value="a b")), row(triple=TRIPLE(o_iri=jelly.RdfIri()))),
        "IRI <http://example.org/a b> holds ' '",
    ),
    "a quad": (triples(row(quad=jelly.RdfQuad(s_bnode="a"))), "a quad in a stream of TRIPLES"),
    "a graph": (triples(row(graph_end=jelly.RdfGraphEnd())), "the end of a graph in a stream of TRIPLES"),
    "other options": (triples(options_row(TRIPLES, rdf_star=False)), "options that differ"),
    "a literal as subject": (
        triples(row(triple=TRIPLE(s_literal=jelly.RdfLiteral(lex="x")))),
        "a literal as subject or predicate, where RDF",
    ),
    "a quoted subject": (triples(row(triple=TRIPLE(s_triple_term=FIRST.triple))), "a quoted triple as subject or pred"),
    "a blank predicate": (
        triples(row(triple=TRIPLE(p_bnode="b"))),
        "a blank node as predicate, where RDF has no place",
    ),
    "less than a quoted triple": (
        triples(row(triple=TRIPLE(o_triple_term=TRIPLE(s_iri=IRI, o_iri=IRI)))),
        "its predicate",
    ),
    "a namespace of nothing": (triples(NAMED), "namespace 'ex' without an IRI"),
    "no row": (raw(""), "a row of no kind that is known"),
    "a row of the future": (raw("a2060161"), "a row of no kind that is known"),
    "a triple that is a number": (raw("1007"), "a triple is a number, where bytes are due"),
    "a subject that is a number": (raw("120208 07".replace(" ", "")), "the subject is a number, where bytes are due"),
    "a name that is a number": (raw("4a021007"), "an entry of names is a number, where text is due"),
    "an id that is bytes": (raw("4a030a0161"), "the id of an entry is bytes, where a number is due"),
    "a triple that ends too late": (raw("12052a00"), "field 2 of 5 bytes, where 2 are left"),
    "an IRI that ends too late": (raw("12022a09"), "field 5 of 9 bytes, where 0 are left"),
    "a literal that ends too late": (raw("12055a030a0961"), "field 1 of 9 bytes, where 1 are left"),
    "a group": (raw("13"), "field 2 of wire type 3"),
    "field 0": (raw("020161"), "a field with the number 0"),
    "an endless number": (raw("12" + "ff" * 10), "a varint of more than 64 bits"),
    "half a number": (raw("12ff"), "the end within a varint"),
    "a label that is not UTF-8": (raw("12031201ff"), "the label of a blank node is not UTF-8: byte 0 is 0xFF"),
    "a literal that is not UTF-8": (raw("12055a030a01ff"), "a literal is not UTF-8: byte 0 is 0xFF"),
    "a name that is not UTF-8": (raw("4a031201ff"), "an entry of names is not UTF-8"),
}
NO_START = {
    "no options": (log_of([FIRST]), "a triple, where the options of the stream are due"),
    "a name before the options": (log_of([], [ENTRIES[1]]), "a name, where the options"),
    "a type that is not there": (log_of([options_row(TRIPLES, physical_type=9)]), r"stream types 9 \(physical\) and 3"),
    "no type": (log_of([options_row(TRIPLES, physical_type=0)]), r"stream types 0"),
    "version 3": (log_of([options_row(TRIPLES, version=3)]), "version 3 of Jelly"),
    "a huge table": (log_of([options_row(TRIPLES, max_name_table_size=1 << 31)]), "max_name_table_size=2147483648"),
    "types that do not go together": (
        log_of([options_row(TRIPLES, logical_type=4)]),
        "type DATASETS cannot have the physical type TRIPLES",
    ),
    "a term to repeat": (
        log_of([options_row(TRIPLES), *ENTRIES, row(triple=TRIPLE(s_iri=IRI))]),
        "without its predicate",
    ),
    "a triple outside of graphs": (log_of([options_row(GRAPHS), *ENTRIES, FIRST]), "a statement without its graph"),
    "a graph without a name": (
        log_of([options_row(GRAPHS), row(graph_start=jelly.RdfGraphStart())]),
        "the start of a graph without its name",
    ),
    "a single frame": (log_of([options_row(TRIPLES), FIRST])[1:], "byte 20: .* is not in the table"),
}


@SIZES
@pytest.mark.parametrize(("log", "why"), MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_frames(log: bytes, why: str, size: int) -> None:
    decoded, error = read_on(log, size)
    assert decoded == [message((S, S, S)), Message()]
    assert isinstance(error, LogError)
    match = re.match(rf"message 3: byte (\d+): .*{why}", str(error))
    assert match, error
    assert error.number == 3
    assert len(triples()) <= int(match[1]) < len(log)


@SIZES
@pytest.mark.parametrize(("log", "why"), NO_START.values(), ids=NO_START.keys())
def test_malformed_starts(log: bytes, why: str, size: int) -> None:
    with pytest.raises(LogError, match=why):
        list(read(log, size))


def test_a_log_ends_behind_a_frame_or_is_not_whole() -> None:
    log = triples()
    ends = {len(log) - 2, len(log) - 1, len(log)}
    for cut in range(1, len(log) + 1):
        decoded, error = read_on(log[:cut])
        assert (error is None) is (cut in ends)
        assert error is None or "the log ends within a frame" in str(error)
        assert len(decoded) == sum(end <= cut for end in ends)


@SIZES
@pytest.mark.parametrize("is_delimited", [True, False], ids=["delimited", "single"])
def test_how_large_a_message_may_be(is_delimited: bool, size: int) -> None:
    log = write([message((S, P, literal("x" * 500)))])
    log = log if is_delimited else log[2:]
    frame = len(log) - 2 if is_delimited else len(log)
    assert len(list(read(log, size, limit=frame))) == 1
    with pytest.raises(LimitExceeded, match=r"^message 1: a frame (of \d+ bytes|that is not delimited) at byte 0"):
        list(read(log, size, limit=frame - 1))


def test_a_length_is_refused_before_what_it_announces() -> None:
    decoder = JellyDecoder(message_bytes=1000)
    with pytest.raises(LimitExceeded, match="message 1: a frame of 1099511627776 bytes"):
        list(decoder.feed(varint(1 << 40)))
    with pytest.raises(LogError, match="the length of a frame is a varint of more than 64 bits"):
        list(JellyDecoder(message_bytes=1000).feed(b"\xff" * 10))


def test_a_frame_cannot_make_much_of_little() -> None:
    """Three bytes of a name's id stand for as many characters as its entry has, before another prefix each time."""
    rows = [options_row(TRIPLES), *ENTRIES, row(name=jelly.RdfNameEntry(value="x" * 100_000)), FIRST]
    for number in range(1000):
        rows.append(row(prefix=jelly.RdfPrefixEntry(id=2, value=f"urn:{number}:")))
        rows.append(row(triple=TRIPLE(o_iri=jelly.RdfIri(prefix_id=2, name_id=2))))
    assert len(log_of(rows[:200])) < 110_000
    assert [len(one) for one in read(log_of(rows[:200]))] == [1 + 97]
    with pytest.raises(LimitExceeded, match="message 1: more than 67108864 characters of IRIs that differ"):
        list(read(log_of(rows), limit=1 << 20))


# --- what producers may do ------------------------------------------------------------------------------------------


def test_a_single_frame() -> None:
    log = log_of([options_row(QUADS), *ENTRIES, row(quad=jelly.RdfQuad(s_iri=IRI, p_iri=IRI, o_bnode="x", g_iri=IRI))])
    assert list(read(log)) == list(read(log[1:])) == list(read(log[1:], 1)) == [message((S, S, "_:x_m1b0", S))]


def test_namespaces_become_prefixes() -> None:
    """pyjelly's compiled wheels cannot read them."""
    declaring = JellyOptions(namespace_declarations=True)
    log = write(
        [message((S, P, O)), Message()], options=declaring, prefixes={"ex": "http://example.org/", "": "urn:x:"}
    )
    decoder = JellyDecoder(message_bytes=1 << 20)
    assert [*decoder.feed(log), *decoder.close()] == [message((S, P, O)), Message()]
    assert decoder.prefixes == {"ex": "http://example.org/", "": "urn:x:"}
    assert decoder.options is not None
    assert decoder.options.version == 2
    with pytest.raises(TermError, match="relative"):
        JellyEncoder(JellyOptions(namespace_declarations=True), prefixes={"ex": "relative"})


@pytest.mark.parametrize("version", [1, 2])
def test_metadata_are_passed_over(version: int) -> None:
    """pyjelly writes version 1 whatever stands in a frame."""
    rows = [options_row(TRIPLES, version=version), *ENTRIES, FIRST]
    log = log_of(rows, [], metadata={"key": b"\x00\xff", "": b""})
    assert list(read(log)) == [message((S, S, S)), Message()]


@pytest.mark.parametrize("prefixes", [0, 4])
@pytest.mark.parametrize("options", [TRIPLES, QUADS], ids=["triples", "quads"])
def test_small_prefix_tables(options: JellyOptions, prefixes: int) -> None:
    small = replace(options, max_prefix_table_size=prefixes)
    graph = G if options is QUADS else None
    log = [message((iri(f"urn:a/{n}"), iri(f"urn:b/{n}"), iri(f"urn:c/{n % 2}"), graph)) for n in range(9)]
    data = write(log, options=small)
    assert list(read(data)) == log
    assert read_by_peer(data) == log
    decoder = JellyDecoder(message_bytes=1 << 20)
    list(decoder.feed(data))
    assert decoder.options == small


@pytest.mark.parametrize("prefixes", [1, 2, 3])
def test_smaller_prefix_tables_are_refused(prefixes: int) -> None:
    """With less than four prefixes, pyjelly's writer loses some of a statement that needs more."""
    with pytest.raises(UsageError, match=f"max_prefix_table_size={prefixes}: a quad may need 4 .* pyjelly"):
        JellyEncoder(JellyOptions(max_prefix_table_size=prefixes))


def test_logs_can_be_joined_end_to_end() -> None:
    logs = [[message((S, P, O, None)), message((S, Q, A, G))], [message((O, P, literal("1", datatype=INTEGER)))]]
    joined = b"".join(map(write, logs))
    both = [*logs[0], *logs[1]]
    assert isomorphic(list(read(joined)), both)
    assert isomorphic(read_by_peer(joined), both)
    urns = [message((iri("urn:a"), iri("urn:b"), iri("urn:c")))]
    assert list(read(write(logs[1]) + write(urns) + write(logs[1]))) == logs[1] + urns + logs[1]


@SIZES
@pytest.mark.parametrize("kind", ["prefix", "name", "datatype"])
def test_joined_streams_of_others_are_no_guess(kind: str, size: int) -> None:
    """Others number their entries from nothing: joined, the second stream's would be entered behind the first's.

    pyjelly and rdflib do so, and read other IRIs from such files without an error; ours have ids where they begin.
    """
    entries = {
        "prefix": row(prefix=jelly.RdfPrefixEntry(value="http://example.org/other/")),
        "name": row(name=jelly.RdfNameEntry(value="t")),
        "datatype": row(datatype=jelly.RdfDatatypeEntry(value="urn:d")),
    }
    first = [options_row(TRIPLES), *ENTRIES, FIRST]
    decoded, error = read_on(log_of(first, [options_row(TRIPLES), entries[kind], FIRST]), size)
    assert decoded == [message((S, S, S))]
    assert re.match(r"message 2: byte \d+: the first entry of .* behind options that come again has no id", str(error))
    # with an id it can be told, and so can an entry behind it, or options within a frame
    getattr(entries[kind], kind).id = 1
    told = row(name=jelly.RdfNameEntry(id=1, value="s")), row(name=jelly.RdfNameEntry(value="u"))
    again = [options_row(TRIPLES), entries[kind], *told, row(triple=TRIPLE(o_iri=jelly.RdfIri(name_id=2)))]
    assert len(list(read(log_of(first, again), size))) == 2
    assert len(list(read(log_of([*first, options_row(TRIPLES), entries["name"], FIRST]), size))) == 1


def test_terms_out_of_place_are_read_where_asked_for() -> None:
    wide = replace(QUADS, generalized_statements=True)
    quoted = triple(S, A, O, generalized=True)
    wider = triple(A, A, A, generalized=True)
    log = [message((literal("x"), A, O, literal("g")), (triple(S, P, A), quoted, O), (A, wider, O))]
    data = write([*log, *log], options=wide)
    assert list(read(data, generalized=True, **KEPT)) == [*log, *log]
    _, second = read(data, generalized=True)
    assert "_:x_m1" not in str(list(second))


def scrambled(data: bytes, kind: type[Any]) -> bytes:
    """The same message in a form that no producer writes: fields in reverse, numbers longer than need be."""
    descriptor = kind.DESCRIPTOR
    out = []
    for number, value in fields(data):
        field = descriptor.fields_by_number[number]
        if isinstance(value, int):
            out.append(longer(number << 3) + longer(value))
            continue
        if field.message_type is not None:
            value = scrambled(value, field.message_type._concrete_class)
        out.append(longer(number << 3 | 2) + longer(len(value)) + value)
    # repeated fields keep their order; an unknown field is to be passed over
    return b"".join(out if descriptor.name == "RdfStreamFrame" else out[::-1]) + varint(99 << 3) + b"\x07"


def longer(number: int) -> bytes:
    short = varint(number)
    return short[:-1] + bytes([short[-1] | 0x80, 0x00])


@given(log=messages(directions=False), options=st.sampled_from([QUADS, GRAPHS]), seed=st.booleans())
def test_any_form_of_protocol_buffers_is_read(log: list[Message], options: JellyOptions, seed: bool) -> None:
    encoder = JellyEncoder(options=options)
    out = []
    for one in log:
        data = encoder.encode(one)
        out.append(data if seed and len(out) % 2 else delimited(scrambled(frame_of(data), jelly.RdfStreamFrame)))
    assert list(read(b"".join(out), **KEPT)) == log


def frame_of(data: bytes) -> bytes:
    frame = jelly.RdfStreamFrame()
    start = next(place for place, byte in enumerate(data) if byte < 0x80) + 1
    frame.ParseFromString(data[start:])  # and so it is one
    return data[start:]


# --- pyjelly --------------------------------------------------------------------------------------------------------


def from_peer(term: Any) -> Term | None:
    if isinstance(term, peer.IRI):
        return iri(term._iri)
    if isinstance(term, peer.Literal):
        return literal(term._lex, language=term._langtag, datatype=term._datatype)
    if isinstance(term, peer.BlankNode):
        return Term(f"_:{term._identifier}")
    if isinstance(term, peer.Triple):
        return triple(*map(from_peer, term), generalized=True)
    return None


def to_peer(term: Term | None) -> Any:
    if term is None:
        return peer.DefaultGraph
    if is_literal(term):
        value, datatype, language, _ = literal_parts(term)
        return peer.Literal(value, language, datatype)
    if is_blank(term):
        return peer.BlankNode(term[2:])
    if is_triple(term):
        return peer.Triple(*map(to_peer, triple_parts(term)))
    return peer.IRI(term[1:-1])


def read_by_peer(data: bytes) -> list[Message]:
    return [
        Message(Quad(*map(from_peer, statement)) for statement in sink) for sink in parse_jelly_grouped(BytesIO(data))
    ]


def write_by_peer(log: Sequence[Message], graphs: bool, preset: LookupPreset) -> bytes:
    def sinks() -> Iterator[peer.GenericStatementSink]:
        for one in log:
            sink = peer.GenericStatementSink()
            for quad in one:
                terms = map(to_peer, quad if graphs else quad[:3])
                sink.add(peer.Quad(*terms) if graphs else peer.Triple(*terms))
            yield sink

    out = BytesIO()
    kind = jelly.LOGICAL_STREAM_TYPE_DATASETS if graphs else jelly.LOGICAL_STREAM_TYPE_GRAPHS
    params = StreamParameters(rdf_star=True)
    options = SerializerOptions(logical_type=kind, params=params, lookup_preset=preset)
    grouped_stream_to_file(sinks(), out, options=options)
    return out.getvalue()


# a quad has four prefixes; names and datatypes for triple terms in it, of which pyjelly loses some in smaller tables
PRESETS = st.builds(LookupPreset, st.sampled_from([32, 4000]), st.sampled_from([0, 32, 150]), st.sampled_from([16, 32]))


@given(data=st.data(), graphs=st.booleans())
def test_pyjelly_reads_what_we_write(data: st.DataObject, graphs: bool) -> None:
    log = data.draw(messages(graphs=graphs, directions=False))
    if log:
        assert read_by_peer(write(log, graphs=graphs)) == log


@given(data=st.data(), graphs=st.booleans(), preset=PRESETS)
def test_we_read_what_pyjelly_writes(data: st.DataObject, graphs: bool, preset: LookupPreset) -> None:
    log = data.draw(messages(graphs=graphs, directions=False))
    # its grouped writer drops what is empty
    log = [one for one in log if len(one)]
    assert list(read(write_by_peer(log, graphs, preset), **KEPT)) == log


def test_pyjelly_drops_empty_messages_and_we_do_not() -> None:
    log = [Message(), message((S, P, O)), Message(), message((S, P, O)), Message()]
    # all but a first one, whose frame carries the options
    assert len(read_by_peer(write_by_peer(log, True, LookupPreset()))) == 3
    assert list(read(write(log))) == read_by_peer(write(log)) == log


# --- any bytes ------------------------------------------------------------------------------------------------------


@given(
    log=messages(directions=False), changes=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), max_size=3)
)
def test_changed_bytes_give_messages_or_our_errors(log: list[Message], changes: list[tuple[int, int]]) -> None:
    data = bytearray(write([message((S, P, O)), *log]))
    for place, byte in changes:
        data[place % len(data)] = byte
    (slowly, error), (whole, same) = (read_on(bytes(data), size, limit=1 << 20) for size in (1, 1 << 30))
    assert slowly == whole
    assert str(error) == str(same)
