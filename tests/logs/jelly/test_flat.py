"""Flat Jelly streams, whose frames have no meaning: a blank node label is one node in the whole stream."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from itertools import chain, product

import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st
from pyjelly import jelly
from pyjelly.integrations.generic import generic_sink
from pyjelly.integrations.generic.serialize import flat_stream_to_file
from pyjelly.options import StreamParameters
from pyjelly.serialize.streams import SerializerOptions

from construct_messages import Message, Quad, construct_messages, read_log, write_log
from construct_messages.options import JellyOptions, LogicalType, PhysicalType
from construct_messages.rdf.terms import Term, iri, literal
from tests.support.logs.cases.jelly import log_of, options_row, row
from tests.support.logs.kinds import blanks
from tests.support.strategies import messages

P = iri("urn:p")
FLAT = [LogicalType.FLAT_TRIPLES, LogicalType.FLAT_QUADS]
GROUPED = [each for each in LogicalType if each not in FLAT]


def nodes(log: Sequence[Message]) -> list[set[Term]]:
    return [blanks(message) for message in log]


def written(
    log: Sequence[Message], logical: LogicalType, physical: PhysicalType | None = None
) -> bytes:
    out = io.BytesIO()
    options = JellyOptions(physical_type=physical, logical_type=logical, rdf_star=True)
    write_log(log, out, "jelly", options=options)
    return out.getvalue()


def test_one_node_of_rdflib_stays_one() -> None:
    """Issue 13, 6: rdflib's plugin begins a frame each 250 rows, and the node was another one in each."""
    node, graph = rdflib.BNode(), rdflib.Graph()
    for number in range(600):
        graph.add((node, rdflib.URIRef("urn:p"), rdflib.Literal(number)))
    log = list(read_log(graph.serialize(format="jelly", encoding="utf-8"), "jelly"))
    assert len(log) > 1
    assert sum(map(len, log)) == 600
    assert len(set().union(*nodes(log))) == 1
    whole = rdflib.Graph()
    for message in log:
        for quad in message:
            whole.add(
                (
                    rdflib.BNode(quad.subject[2:]),
                    rdflib.URIRef("urn:p"),
                    rdflib.Literal(quad.object),
                )
            )
    assert len(set(whole.subjects())) == 1


def test_nodes_of_a_dataset_stay_what_they_are() -> None:
    """Issue 13, 6: graphs that are named by nodes, and nodes that graphs share, in FLAT_QUADS."""
    dataset = rdflib.Dataset(default_union=True)
    shared = [rdflib.BNode() for _ in range(72)]
    for number, node in enumerate(shared):
        for step in range(10):
            graph = dataset.graph(shared[(number + step) % 72])
            graph.add((node, rdflib.URIRef("urn:p"), shared[(number * step) % 72]))
    reader = read_log(dataset.serialize(format="jelly", encoding="utf-8"), "jelly")
    log = list(reader)
    assert len(log) > 1
    assert len(set().union(*nodes(log))) == 72
    assert reader.options is not None
    assert reader.options.is_flat


@pytest.mark.parametrize(("logical", "size"), list(product(LogicalType, [1, 7, 1 << 20])), ids=str)
def test_the_logical_type_says_what_a_label_means(logical: LogicalType, size: int) -> None:
    """Issue 13, 6: of all types, unspecified and subtypes among them, only the flat ones share nodes."""
    log = [Message([Quad(Term("_:a"), P, Term(f"_:{label}"))]) for label in "abc"]
    data = written(log, logical)
    first, second, third = nodes(
        list(read_log([data[at : at + size] for at in range(0, len(data), size)], "jelly"))
    )
    assert [len(first), len(second), len(third)] == [1, 2, 2]
    assert len(first | second | third) == (3 if logical in FLAT else 5)


@pytest.mark.parametrize("logical", LogicalType)
@pytest.mark.parametrize("shared", [True, False])
def test_labels_mean_what_the_reader_is_told(logical: LogicalType, shared: bool) -> None:
    log = [Message([Quad(Term("_:a"), P, literal("x"))])] * 2
    first, second = nodes(list(read_log(written(log, logical), "jelly", shared_labels=shared)))
    assert (first == second) == shared


@given(
    log=messages(directions=False),
    physical=st.sampled_from([PhysicalType.QUADS, PhysicalType.GRAPHS]),
)
def test_a_flat_stream_keeps_which_nodes_are_one(
    log: list[Message], physical: PhysicalType
) -> None:
    """Issue 13, 6: no two messages share a node unless they did before, and those that did still do."""
    again = list(read_log(written(log, LogicalType.FLAT_QUADS, physical), "jelly"))
    one, other = (Message(chain.from_iterable(each)) for each in (log, again))
    assert one.isomorphic(other)
    mapping = {
        a: b
        for p, q in zip(log, again, strict=True)
        for a, b in zip(labels(p), labels(q), strict=True)
    }
    assert len(set(mapping.values())) == len(mapping)
    # and once more, without labels that grow
    twice = list(read_log(written(again, LogicalType.FLAT_QUADS, physical), "jelly"))
    assert twice == again


def labels(message: Message) -> list[Term]:
    """The blank nodes of a message outside triple terms, in order."""
    return [term for quad in message for term in quad if term is not None and term.startswith("_:")]


def test_two_flat_logs_share_no_node() -> None:
    """Issue 13, 6 and 7: each stream is a document of its own."""
    data = written([Message([Quad(Term("_:a"), P, literal("x"))])], LogicalType.FLAT_QUADS)
    first, second = nodes([*read_log(data, "jelly"), *read_log(data, "jelly")])
    assert not first & second


def test_flat_logs_of_two_streams_joined_share_no_node() -> None:
    """Issue 13, 6 and 7: bytes behind bytes are one stream, in which labels of two queries cannot meet."""
    query = "CONSTRUCT { ?s <urn:p> [] } WHERE { VALUES ?n { 1 2 } BIND(BNODE() AS ?s) }"
    flat = JellyOptions(logical_type=LogicalType.FLAT_TRIPLES)
    one, other = (
        b"".join(construct_messages(query, ox.Store()).serialize("jelly", options=flat))
        for _ in range(2)
    )
    joined = nodes(list(read_log(one + other, "jelly")))
    assert [len(each) for each in joined] == [2] * 4
    assert len(set().union(*joined)) == 8


def test_labels_that_no_other_format_can_write_stay_apart() -> None:
    odd = ["", "a b", "é!", "X", "-", ".", "a"]
    options = options_row(JellyOptions(PhysicalType.TRIPLES, LogicalType.FLAT_TRIPLES, version=1))
    name = row(name=jelly.RdfNameEntry(value="urn:p"))
    iri_1 = jelly.RdfIri(name_id=1)
    frames = [
        [row(triple=jelly.RdfTriple(s_bnode=label, p_iri=iri_1, o_bnode=label)) for label in odd]
        for _ in range(2)
    ]
    first, second = read_log(log_of([options, name, *frames[0]], frames[1]), "jelly")
    assert first == second
    assert len(blanks(first)) == len(odd)
    assert [str(message) for message in read_log(first_as_nt(first), "nt")]


def first_as_nt(message: Message) -> bytes:
    return "".join(f"{quad}\n" for quad in message).encode()


def test_what_a_frame_repeats_or_goes_on_with_is_the_same_node() -> None:
    """A term that is repeated from the frame before, and a graph that no frame's end has ended."""
    options = options_row(JellyOptions(PhysicalType.GRAPHS, LogicalType.FLAT_QUADS, version=1))
    name = row(name=jelly.RdfNameEntry(value="urn:p"))
    start = row(graph_start=jelly.RdfGraphStart(g_bnode="g"))
    full = row(triple=jelly.RdfTriple(s_bnode="s", p_iri=jelly.RdfIri(name_id=1), o_bnode="g"))
    frames = ([options, name, start, full], [row(triple=jelly.RdfTriple(o_bnode="s"))])
    (one,), (other,) = read_log(log_of(*frames), "jelly")
    assert (one.subject, one.object, one.graph) == (other.subject, other.graph, other.graph)
    assert other.object == one.subject


def test_pyjelly_writes_flat_and_we_read_what_it_means() -> None:
    """Issue 13, 6: its frames are cut at rows, in the midst of what is said about a node."""
    quads = [
        generic_sink.Quad(
            generic_sink.BlankNode(f"n{number % 5}"),
            generic_sink.IRI("urn:p"),
            generic_sink.Literal(str(number)),
            generic_sink.BlankNode(f"g{number % 3}"),
        )
        for number in range(700)
    ]
    out = io.BytesIO()
    options = SerializerOptions(
        logical_type=jelly.LOGICAL_STREAM_TYPE_FLAT_QUADS, params=StreamParameters()
    )
    flat_stream_to_file(iter(quads), out, options=options)
    log = list(read_log(out.getvalue(), "jelly"))
    assert len(log) > 1
    assert len(set().union(*nodes(log))) == 8


def test_a_flat_file_of_an_archive_is_one_message() -> None:
    """A file of an archive is a message, and the frames of a flat stream are parts of one document."""
    node, graph = rdflib.BNode(), rdflib.Graph()
    for number in range(600):
        graph.add((node, rdflib.URIRef("urn:p"), rdflib.Literal(number)))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in ("0.jelly", "1.jelly"):
            data = graph.serialize(format="jelly", encoding="utf-8")
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    log = list(read_log(out.getvalue()))
    assert [len(message) for message in log] == [600, 600]
    first, second = nodes(log)
    assert (len(first), len(second)) == (1, 1)
    assert not first & second


@pytest.mark.parametrize("logical", FLAT)
def test_flat_logs_stay_flat(logical: LogicalType) -> None:
    """Issue 13, 6: also where they are written anew, so that nodes are not parted then."""
    log = [Message([Quad(Term("_:a"), P, Term(f"_:{label}"))]) for label in "ab"]
    out = io.BytesIO()
    write_log(read_log(written(log, logical), "jelly"), out, "jelly")
    assert len(set().union(*nodes(list(read_log(out.getvalue(), "jelly"))))) == 2
