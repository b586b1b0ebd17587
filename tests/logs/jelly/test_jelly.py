"""Jelly logs: exact bytes both ways, what is refused, and what pyjelly writes and reads."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyjelly import jelly
from pyjelly.integrations.generic.parse import parse_jelly_grouped
from pyjelly.options import LookupPreset

from construct_messages.errors import UnsupportedByFormat, UsageError
from construct_messages.logs import EncoderOptions, encoder_for
from construct_messages.logs.jelly.options import JellyOptions, LogicalType, PhysicalType
from construct_messages.logs.jelly.wire import DEEPEST, delimited
from construct_messages.rdf.formats import JELLY
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import (
    Term,
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
    TRIPLES,
    A,
    B,
    G,
    O,
    P,
    Q,
    S,
    entry,
    log_of,
    message,
    options_row,
    read,
    row,
    write,
)
from tests.support.logs.pyjelly import read_by_peer, write_by_peer
from tests.support.strategies import messages

# --- one table for both ways ----------------------------------------------------------------------------------------

SOME = [
    ("empty", [Message()]),
    (
        "all kinds",
        [message((S, P, O), (S, P, literal("x")), (A, Q, literal("x", language="en")), (A, Q, B))],
    ),
    (
        "typed",
        [message((S, P, literal("1", datatype=INTEGER)), (S, P, literal("1", datatype="urn:d")))],
    ),
    (
        "repeated over frames",
        [message((S, P, O)), message((S, P, O)), Message(), message((S, P, Q))],
    ),
    ("no prefix", [message((iri("urn:s"), iri("urn:p"), iri("urn:o")))]),
    (
        "no name",
        [
            message(
                (
                    iri("http://example.org/"),
                    iri("http://example.org/#"),
                    iri("http://example.org/a#"),
                )
            )
        ],
    ),
    ("escapes", [message((S, P, literal('\x00\t"\\\n\r\x7f\u2028é\U0001f600')))]),
    (
        "long",
        [
            message(
                (S, P, literal("x" * 20_000)), (S, P, literal("é" * 64)), (S, P, literal("y" * 126))
            )
        ],
    ),
    ("no text", [message((S, P, literal("")), (S, P, literal("", language="en")))]),
    (
        "triple terms",
        [message((S, P, triple(S, P, triple(A, P, literal("x")))), (S, P, triple(S, P, B)))],
    ),
    (
        "many",
        [
            message(*((iri(f"urn:{n}/{m}#x"), P, literal(str(m))) for m in range(9)))
            for n in range(30)
        ],
    ),
]


@SIZES
@pytest.mark.parametrize(
    "options", [TRIPLES, QUADS, GRAPHS], ids=lambda options: options.physical_type.name
)
@pytest.mark.parametrize(("name", "log"), SOME, ids=[name for name, _ in SOME])
def test_what_is_written_is_read_again(
    name: str, log: list[Message], options: JellyOptions, size: int
) -> None:
    assert list(read(write(log, options=options), size, **KEPT)) == log, name


@SIZES
@pytest.mark.parametrize("options", [QUADS, GRAPHS], ids=["quads", "graphs"])
def test_named_graphs(options: JellyOptions, size: int) -> None:
    log = [
        message((S, P, O, G), (S, P, O, None), (S, P, O, A), (S, P, O, G), (S, Q, O, G)),
        message((S, P, O, G)),
    ]
    assert list(read(write(log, options=options), size, **KEPT)) == log


@SIZES
def test_the_very_bytes(size: int) -> None:
    """A log of three messages, spelled out: options, entries, terms in full, then what need not be said again."""
    log = [
        message((S, P, O), (S, P, literal("1", datatype=INTEGER))),
        Message(),
        message((S, P, O), (S, Q, O)),
    ]
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
            *(
                "0a195217",
                "0801",
                "1213",
                b"http://example.org/".hex(),
                "0a074a05",
                "0801",
                "120173",
            ),
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


# --- blank nodes ----------------------------------------------------------------------------------------------------


@SIZES
def test_a_label_is_of_its_frame(size: int) -> None:
    log = [
        message((A, P, B), (A, Q, A)),
        message((A, Q, triple(A, P, B))),
        message((A, Q, triple(A, P, B)), (S, P, B)),
    ]
    first, second, third = read(write(log), size)
    assert str(first) == str(message(("_:x_m1b0", P, "_:x_m1b1"), ("_:x_m1b0", Q, "_:x_m1b0")))
    assert second == message(("_:x_m2b0", Q, triple(Term("_:x_m2b0"), P, Term("_:x_m2b1"))))
    # the third frame repeats the whole statement, whose nodes are now its own
    assert third.isomorphic(log[2])
    assert all("_:x_m3b" in str(quad) and "_:x_m2" not in str(quad) for quad in third)


def test_a_graph_that_goes_on_in_the_next_frame_is_a_node_of_that_frame() -> None:
    start = row(graph_start=jelly.RdfGraphStart(g_bnode="g"))
    log = log_of(
        [options_row(GRAPHS), *ENTRIES, start, FIRST], [row(triple=jelly.RdfTriple(s_bnode="g"))]
    )
    first, second = read(log)
    assert first == message((S, S, S, "_:x_m1b0"))
    assert second == message(("_:x_m2b0", S, S, "_:x_m2b0"))


def test_labels_are_kept_where_asked_for() -> None:
    assert list(read(write([message((A, P, B))]), **KEPT)) == [message((A, P, B))]
    log = log_of(
        [
            options_row(TRIPLES),
            *ENTRIES,
            row(triple=jelly.RdfTriple(s_bnode="a b", p_iri=IRI, o_iri=IRI)),
        ]
    )
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


WIDE = triple(
    S, P, triple(Q, O, triple(G, iri("urn:a"), triple(iri("urn:b"), iri("urn:c"), iri("urn:d"))))
)
REFUSED = [
    ((S, P, literal("x", language="en", direction="ltr")), QUADS, "Jelly has no base directions"),
    (
        (S, P, triple(S, P, literal("x", language="en", direction="rtl"))),
        QUADS,
        "Jelly has no base directions",
    ),
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


@pytest.mark.parametrize(
    ("quad", "options", "why"), REFUSED, ids=[f"{n}: {case[2]}" for n, case in enumerate(REFUSED)]
)
def test_what_jelly_cannot_carry(quad: tuple[Term, ...], options: JellyOptions, why: str) -> None:
    encoder = encoder_for(JELLY, JELLY.own, EncoderOptions(own=options))
    good = [message((S, P, O)), message((S, Q, O), (O, Q, literal("y")))]
    log = encoder.encode(good[0])
    with pytest.raises(UnsupportedByFormat, match=f"^message 2: .*{why}"):
        encoder.encode(message((S, P, literal("fine")), quad))
    # what comes next does not depend on what was refused
    log += encoder.encode(good[1])
    assert list(read(log)) == good


def test_a_refused_first_message_leaves_the_options_to_the_next() -> None:
    options = EncoderOptions(
        {"ex": "http://example.org/"}, own=JellyOptions(namespace_declarations=True)
    )
    encoder = encoder_for(JELLY, JELLY.own, options)
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
        (
            {"logical_type": LogicalType.GRAPHS},
            "logical type GRAPHS cannot have the physical type QUADS",
        ),
        (
            {"logical_type": LogicalType.SUBJECT_GRAPHS},
            "type SUBJECT_GRAPHS cannot have the physical type QUADS",
        ),
        (
            {"physical_type": PhysicalType.TRIPLES},
            "type DATASETS cannot have the physical type TRIPLES",
        ),
    ],
    ids=str,
)
def test_options_that_cannot_be(options: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        JellyOptions(
            **{"physical_type": PhysicalType.QUADS, "logical_type": LogicalType.DATASETS, **options}
        )


# a quad has four prefixes; names and datatypes for triple terms in it, of which pyjelly loses some in smaller tables
PRESETS = st.builds(
    LookupPreset,
    st.sampled_from([32, 4000]),
    st.sampled_from([0, 32, 150]),
    st.sampled_from([16, 32]),
)


@given(data=st.data(), graphs=st.booleans())
def test_pyjelly_reads_what_we_write(data: st.DataObject, graphs: bool) -> None:
    log = data.draw(messages(graphs=graphs, directions=False))
    if log:
        assert read_by_peer(write(log, graphs=graphs)) == log


@given(data=st.data(), graphs=st.booleans(), preset=PRESETS)
def test_we_read_what_pyjelly_writes(
    data: st.DataObject, graphs: bool, preset: LookupPreset
) -> None:
    log = data.draw(messages(graphs=graphs, directions=False))
    # its grouped writer drops what is empty
    log = [one for one in log if len(one)]
    assert list(read(write_by_peer(log, graphs, preset), **KEPT)) == log


def test_pyjelly_drops_empty_messages_and_we_do_not() -> None:
    log = [Message(), message((S, P, O)), Message(), message((S, P, O)), Message()]
    # all but a first one, whose frame carries the options
    assert len(read_by_peer(write_by_peer(log, True, LookupPreset()))) == 3
    assert list(read(write(log))) == read_by_peer(write(log)) == log
