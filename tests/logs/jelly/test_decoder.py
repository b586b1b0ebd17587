"""Jelly logs of other writers: what is malformed, what producers may do, and any bytes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyjelly import jelly

from construct_messages.errors import LimitExceeded, LogError, TermError, UsageError
from construct_messages.logs import DecoderOptions, EncoderOptions, decoder_for, encoder_for
from construct_messages.logs.jelly.options import JellyOptions
from construct_messages.logs.jelly.wire import delimited, fields, varint
from construct_messages.rdf import compiled
from construct_messages.rdf.formats import JELLY
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import (
    iri,
    literal,
    triple,
)
from tests.support.logs.cases.jelly import (
    ENTRIES,
    FIRST,
    GRAPHS,
    INTEGER,
    IRI,
    KEPT,
    QUADS,
    SIZES,
    TRIPLE,
    TRIPLES,
    A,
    G,
    O,
    P,
    Q,
    S,
    isomorphic,
    log_of,
    message,
    options_row,
    read,
    read_on,
    row,
    write,
)
from tests.support.logs.pyjelly import read_by_peer
from tests.support.strategies import messages


def triples(*rows: jelly.RdfStreamRow) -> bytes:
    """A log of a good message, an empty one, and one with these rows."""
    return log_of([options_row(TRIPLES), *ENTRIES, FIRST], [], rows)


def raw(*rows: str) -> bytes:
    """The same, with rows spelled in hexadecimal."""
    frame = b"".join(b"\x0a" + delimited(bytes.fromhex(each)) for each in rows)
    return triples()[:-1] + delimited(frame)


NAMED = row(namespace=jelly.RdfNamespaceDeclaration(name="ex"))
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
        triples(
            row(name=jelly.RdfNameEntry(value="a b")), row(triple=TRIPLE(o_iri=jelly.RdfIri()))
        ),
        "IRI <http://example.org/a b> holds ' '",
    ),
    "a quad": (triples(row(quad=jelly.RdfQuad(s_bnode="a"))), "a quad in a stream of TRIPLES"),
    "a graph": (
        triples(row(graph_end=jelly.RdfGraphEnd())),
        "the end of a graph in a stream of TRIPLES",
    ),
    "other options": (triples(options_row(TRIPLES, rdf_star=False)), "options that differ"),
    "a literal as subject": (
        triples(row(triple=TRIPLE(s_literal=jelly.RdfLiteral(lex="x")))),
        "a literal as subject or predicate, where RDF",
    ),
    "a quoted subject": (
        triples(row(triple=TRIPLE(s_triple_term=FIRST.triple))),
        "a quoted triple as subject or pred",
    ),
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
    "a subject that is a number": (
        raw("120208 07".replace(" ", "")),
        "the subject is a number, where bytes are due",
    ),
    "a name that is a number": (
        raw("4a021007"),
        "an entry of names is a number, where text is due",
    ),
    "an id that is bytes": (
        raw("4a030a0161"),
        "the id of an entry is bytes, where a number is due",
    ),
    "a triple that ends too late": (raw("12052a00"), "field 2 of 5 bytes, where 2 are left"),
    "an IRI that ends too late": (raw("12022a09"), "field 5 of 9 bytes, where 0 are left"),
    "a literal that ends too late": (raw("12055a030a0961"), "field 1 of 9 bytes, where 1 are left"),
    "a group": (raw("13"), "field 2 of wire type 3"),
    "field 0": (raw("020161"), "a field with the number 0"),
    "an endless number": (raw("12" + "ff" * 10), "a varint of more than 64 bits"),
    "half a number": (raw("12ff"), "the end within a varint"),
    "a label that is not UTF-8": (
        raw("12031201ff"),
        "the label of a blank node is not UTF-8: byte 0 is 0xFF",
    ),
    "a literal that is not UTF-8": (
        raw("12055a030a01ff"),
        "a literal is not UTF-8: byte 0 is 0xFF",
    ),
    "a name that is not UTF-8": (raw("4a031201ff"), "an entry of names is not UTF-8"),
}
NO_START = {
    "no options": (log_of([FIRST]), "a triple, where the options of the stream are due"),
    "a name before the options": (log_of([], [ENTRIES[1]]), "a name, where the options"),
    "a type that is not there": (
        log_of([options_row(TRIPLES, physical_type=9)]),
        r"stream types 9 \(physical\) and 3",
    ),
    "no type": (log_of([options_row(TRIPLES, physical_type=0)]), r"stream types 0"),
    "version 3": (log_of([options_row(TRIPLES, version=3)]), "version 3 of Jelly"),
    "a huge table": (
        log_of([options_row(TRIPLES, max_name_table_size=1 << 31)]),
        "max_name_table_size=2147483648",
    ),
    "types that do not go together": (
        log_of([options_row(TRIPLES, logical_type=4)]),
        "type DATASETS cannot have the physical type TRIPLES",
    ),
    "a term to repeat": (
        log_of([options_row(TRIPLES), *ENTRIES, row(triple=TRIPLE(s_iri=IRI))]),
        "without its predicate",
    ),
    "a triple outside of graphs": (
        log_of([options_row(GRAPHS), *ENTRIES, FIRST]),
        "a statement without its graph",
    ),
    "a graph without a name": (
        log_of([options_row(GRAPHS), row(graph_start=jelly.RdfGraphStart())]),
        "the start of a graph without its name",
    ),
    "a single frame": (
        log_of([options_row(TRIPLES), FIRST])[1:],
        "byte 20: .* is not in the table",
    ),
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
    with pytest.raises(
        LimitExceeded, match=r"^message 1: a frame (of \d+ bytes|that is not delimited) at byte 0"
    ):
        list(read(log, size, limit=frame - 1))


def test_a_length_is_refused_before_what_it_announces() -> None:
    decoder = decoder_for(JELLY, options=DecoderOptions(message_bytes=1000))
    with pytest.raises(LimitExceeded, match="message 1: a frame of 1099511627776 bytes"):
        list(decoder.feed(varint(1 << 40)))
    with pytest.raises(LogError, match="the length of a frame is a varint of more than 64 bits"):
        list(decoder_for(JELLY, options=DecoderOptions(message_bytes=1000)).feed(b"\xff" * 10))


def test_a_frame_cannot_make_much_of_little() -> None:
    """Three bytes of a name's id stand for as many characters as its entry has, before another prefix each time."""
    rows = [
        options_row(TRIPLES),
        *ENTRIES,
        row(name=jelly.RdfNameEntry(value="x" * 100_000)),
        FIRST,
    ]
    for number in range(1000):
        rows.append(row(prefix=jelly.RdfPrefixEntry(id=2, value=f"urn:{number}:")))
        rows.append(row(triple=TRIPLE(o_iri=jelly.RdfIri(prefix_id=2, name_id=2))))
    assert len(log_of(rows[:200])) < 110_000
    assert [len(one) for one in read(log_of(rows[:200]))] == [1 + 97]
    with pytest.raises(
        LimitExceeded, match="message 1: more than 67108864 characters of IRIs that differ"
    ):
        list(read(log_of(rows), limit=1 << 20))


# --- what producers may do ------------------------------------------------------------------------------------------


def test_a_single_frame() -> None:
    log = log_of(
        [
            options_row(QUADS),
            *ENTRIES,
            row(quad=jelly.RdfQuad(s_iri=IRI, p_iri=IRI, o_bnode="x", g_iri=IRI)),
        ]
    )
    assert (
        list(read(log))
        == list(read(log[1:]))
        == list(read(log[1:], 1))
        == [message((S, S, "_:x_m1b0", S))]
    )


def test_namespaces_become_prefixes() -> None:
    """pyjelly's compiled wheels cannot read them."""
    declaring = JellyOptions(namespace_declarations=True)
    log = write(
        [message((S, P, O)), Message()],
        options=declaring,
        prefixes={"ex": "http://example.org/", "": "urn:x:"},
    )
    decoder = decoder_for(JELLY)
    assert [*decoder.feed(log), *decoder.close()] == [message((S, P, O)), Message()]
    assert decoder.prefixes == {"ex": "http://example.org/", "": "urn:x:"}
    assert decoder.options is not None
    assert decoder.options.version == 2
    with pytest.raises(TermError, match="relative"):
        encoder_for(
            JELLY,
            JELLY.own,
            EncoderOptions({"ex": "relative"}, own=JellyOptions(namespace_declarations=True)),
        )


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
    log = [
        message((iri(f"urn:a/{n}"), iri(f"urn:b/{n}"), iri(f"urn:c/{n % 2}"), graph))
        for n in range(9)
    ]
    data = write(log, options=small)
    assert list(read(data)) == log
    assert read_by_peer(data) == log
    decoder = decoder_for(JELLY)
    list(decoder.feed(data))
    assert decoder.options == small


@pytest.mark.parametrize("prefixes", [1, 2, 3])
def test_smaller_prefix_tables_are_refused(prefixes: int) -> None:
    """With less than four prefixes, pyjelly's writer loses some of a statement that needs more."""
    with pytest.raises(
        UsageError, match=f"max_prefix_table_size={prefixes}: a quad may need 4 .* pyjelly"
    ):
        encoder_for(
            JELLY, JELLY.own, EncoderOptions(own=JellyOptions(max_prefix_table_size=prefixes))
        )


def test_logs_can_be_joined_end_to_end() -> None:
    logs = [
        [message((S, P, O, None)), message((S, Q, A, G))],
        [message((O, P, literal("1", datatype=INTEGER)))],
    ]
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
    assert re.match(
        r"message 2: byte \d+: the first entry of .* after repeated options has no id",
        str(error),
    )
    # with an id it can be told, and so can an entry behind it, or options within a frame
    getattr(entries[kind], kind).id = 1
    told = row(name=jelly.RdfNameEntry(id=1, value="s")), row(name=jelly.RdfNameEntry(value="u"))
    again = [
        options_row(TRIPLES),
        entries[kind],
        *told,
        row(triple=TRIPLE(o_iri=jelly.RdfIri(name_id=2))),
    ]
    assert len(list(read(log_of(first, again), size))) == 2
    assert (
        len(list(read(log_of([*first, options_row(TRIPLES), entries["name"], FIRST]), size))) == 1
    )


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
    return (
        b"".join(out if descriptor.name == "RdfStreamFrame" else out[::-1])
        + varint(99 << 3)
        + b"\x07"
    )


def longer(number: int) -> bytes:
    short = varint(number)
    return short[:-1] + bytes([short[-1] | 0x80, 0x00])


@given(
    log=messages(directions=False),
    options=st.sampled_from([QUADS, GRAPHS]),
    names=st.sampled_from([32, 128]),
)
def test_rows_in_the_usual_form_are_read_as_any_rows(
    log: list[Message], options: JellyOptions, names: int
) -> None:
    """Tables that are full after a few messages, so that entries change their meaning."""
    options = replace(options, max_name_table_size=names)
    encoder = encoder_for(JELLY, JELLY.own, EncoderOptions(own=options))
    data = b"".join(map(encoder.encode, log)) + encoder.finish()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "wire", None)
        expected = decoded(data)
    assert decoded(data) == expected


def decoded(log: bytes) -> list[Message]:
    labels = Labels("x")
    decoder = decoder_for(JELLY, JELLY.own, DecoderOptions(labels=labels))
    return [*decoder.feed(log), *decoder.close()]


@given(log=messages(directions=False), options=st.sampled_from([QUADS, GRAPHS]), seed=st.booleans())
def test_any_form_of_protocol_buffers_is_read(
    log: list[Message], options: JellyOptions, seed: bool
) -> None:
    encoder = encoder_for(JELLY, JELLY.own, EncoderOptions(own=options))
    out = []
    for one in log:
        data = encoder.encode(one)
        out.append(
            data
            if seed and len(out) % 2
            else delimited(scrambled(frame_of(data), jelly.RdfStreamFrame))
        )
    assert list(read(b"".join(out), **KEPT)) == log


def frame_of(data: bytes) -> bytes:
    frame = jelly.RdfStreamFrame()
    start = next(place for place, byte in enumerate(data) if byte < 0x80) + 1
    frame.ParseFromString(data[start:])  # and so it is one
    return data[start:]


# --- any bytes ------------------------------------------------------------------------------------------------------


@given(
    log=messages(directions=False),
    changes=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), max_size=3),
)
def test_changed_bytes_give_messages_or_our_errors(
    log: list[Message], changes: list[tuple[int, int]]
) -> None:
    data = bytearray(write([message((S, P, O)), *log]))
    for place, byte in changes:
        data[place % len(data)] = byte
    (slowly, error), (whole, same) = (
        read_on(bytes(data), size, limit=1 << 20) for size in (1, 1 << 30)
    )
    assert slowly == whole
    assert str(error) == str(same)
