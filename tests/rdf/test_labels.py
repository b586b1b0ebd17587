"""Labels of blank nodes: nodes neither meet nor part, by whichever way logs come together (issue 13, 7 and 8)."""

from __future__ import annotations

import io
import pickle
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import example, given, settings
from hypothesis import strategies as st

from construct_messages import Message, Quad, construct_messages, read_log, write_log
from construct_messages.cli import main
from construct_messages.errors import UsageError
from construct_messages.logs.spaces import fold
from construct_messages.rdf.formats import N_QUADS, NDJSON_LD, RDFM
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.terms import Term, blank, iri, to_pyoxigraph, to_rdflib
from tests.support.logs.kinds import KINDS, Kind, blanks, write

P, Q, S = iri("urn:p"), iri("urn:q"), iri("urn:s")
GENID = "https://example.org/.well-known/genid/"
RDFM_LINES = Kind(N_QUADS, RDFM)

# --- labels as such ---------------------------------------------------------------------------------------------------


def test_kinds_never_meet() -> None:
    labels = Labels("x")
    made = [
        *(labels.of_template(number, index) for number in (0, 1, 10) for index in (0, 1)),
        *(labels.in_message(number)[Term("_:a")] for number in (1, 10)),
        *(Term(f"_:{labels.of_fold(number)}0") for number in (1, 10)),
        *(blank(label, labels.of_data) for label in ("b0", "t0b0", "m1b0", "a label")),
        *(blank(label, labels.of_response(3)) for label in ("b0", "t0b0", "a label")),
    ]
    assert len(set(made)) == len(made)


@pytest.mark.parametrize("label", ["t0b0", "b0", "a label", "nodeID://b1", "é"])
def test_what_is_unique_stays(label: str) -> None:
    labels = Labels()
    for unique in (
        labels.of_template(7, 0),
        labels.in_message(1)[Term("_:a")],
        blank(label, labels.of_data),
    ):
        assert Labels().in_log(unique) == unique


@pytest.mark.parametrize(
    "label",
    [
        *(
            "b0",
            "t0b0",
            "x_t0b0",
            "m1b0",
            "genid-1",
            "node1hu3m2k5ax1",
            "B4f2c1d",
            "N4c0a6b5f9d8e4a7ab1c2d3e4f5a6b7c8",
        ),
        *(
            "documentation_1",
            "t202611221601_1",
            "123456789012_t0b0",
            "9a1ee4b1a2c3_d0",
            "x_dq3k9f2m4v7cb_t0b0",
        ),
    ],
)
def test_what_others_made_is_not_taken_for_unique(label: str) -> None:
    assert Labels("x").in_log(Term(f"_:{label}")) == f"_:x_d{label}"


@pytest.mark.parametrize("prefix", ["", "X", "1x", "x_", "x-y", "é", "x" * 33, "x\n"])
def test_prefixes_that_are_refused(prefix: str) -> None:
    with pytest.raises(UsageError, match="prefix"):
        Labels(prefix)


# --- logs that come together ------------------------------------------------------------------------------------------


class Log(NamedTuple):
    """Some messages, and how they are written down."""

    kind: Kind
    messages: list[Message]

    @property
    def document(self) -> bytes:
        return write(self.messages, self.kind)

    def read(self) -> Iterable[Message]:
        return read_log(
            self.document, self.kind.format.media_types[0], syntax=self.kind.syntax.label or None
        )

    def tagged(self, name: str) -> list[Message]:
        """The messages with labels that differ where the nodes do."""
        if self.kind.keeps_labels:
            return [
                m.map_blanks(lambda b: b if b == UNIQUE else Term(f"_:{name}{b[2:]}"))
                for m in self.messages
            ]
        return [
            each_its_own(message, f"{name}{number}x")
            for number, message in enumerate(self.messages)
        ]


UNIQUE = Term("_:q3k9f2m4v7cb_t0b0")
NAMES = [
    *(
        Term(f"_:{label}")
        for label in ("b", "t0b0", "t1b0", "m1b0", "m2b0", "f1b0", "db", "x_t0b0")
    ),
    UNIQUE,
]
TERMS = st.sampled_from([*NAMES, S])
MESSAGES = st.lists(
    st.lists(st.tuples(TERMS, TERMS), max_size=3).map(
        # each predicate once, so that a quad is found again whatever its order and its labels
        lambda ends: Message(
            Quad(s, iri(f"urn:p{number}"), o) for number, (s, o) in enumerate(ends)
        )
    ),
    min_size=1,
    max_size=4,
)
LOGS = st.builds(Log, st.sampled_from(KINDS), MESSAGES)


def each_its_own(message: Message, name: str) -> Message:
    return message.map_blanks(lambda node: Term(f"_:{name}{node[2:]}"))


def same_nodes(found: Sequence[Message], wanted: Sequence[Message]) -> bool:
    """Whether the messages are the same, and share the same nodes with each other, whatever these are called."""
    if [len(message) for message in found] != [len(message) for message in wanted]:
        return False
    pairs = set()
    for one, other in zip(found, wanted, strict=True):
        quads = {quad.predicate: quad for quad in other}
        for quad in one:
            pairs |= set(zip(quad, quads[quad.predicate], strict=True))
    nodes = {pair for pair in pairs if any(str(term).startswith("_:") for term in pair)}
    one_to_one = all(len(set(side)) == len(nodes) for side in zip(*nodes, strict=True))
    return one_to_one and all(a == b for a, b in pairs - nodes)


def plain(document: bytes) -> list[Message]:
    """The messages of a log with the labels that stand there."""
    return list(read_log(document, "nq", syntax="rdfm", keep_labels=True))


def lines(messages: Iterable[Message]) -> bytes:
    log = io.BytesIO()
    write_log(messages, log, "nq")
    return log.getvalue()


def chained(one: Log, other: Log) -> bytes:
    return lines(chain(one.read(), other.read()))


def concatenated(one: Log, other: Log) -> bytes:
    return lines(one.read()) + lines(other.read())


def concatenated_twice_written(one: Log, other: Log) -> bytes:
    def rewritten(log: Log) -> bytes:
        return lines(read_log(lines(log.read()), "nq", syntax="rdfm"))

    return rewritten(one) + rewritten(other)


WAYS = {way.__name__: way for way in (chained, concatenated, concatenated_twice_written)}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@given(LOGS, LOGS)
@example(*[Log(Kind(NDJSON_LD, NDJSON_LD.own), [Message([Quad(NAMES[0], P, S)])])] * 2)  # type: ignore[arg-type]
@example(*[Log(RDFM_LINES, [Message([Quad(NAMES[0], P, S)])] * 2)] * 2)
def test_nodes_neither_meet_nor_part(
    way: Callable[[Log, Log], bytes], one: Log, other: Log
) -> None:
    """Issue 13, 7: two logs joined share no node but those that they shared, and each its own as before."""
    wanted = [*one.tagged("one"), *other.tagged("other")]
    assert same_nodes(plain(way(one, other)), wanted)


def by_cat(one: Log, other: Log) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        joined = Path(folder, "joined.nq")
        names = []
        for name, log in (("one", one), ("other", other)):
            # the name says the format, and the log its syntax
            path = Path(folder, name).with_suffix(f".{log.kind.format.extension}")
            path.write_bytes(log.document)
            names.append(str(path))
        assert main(["cat", *names, "--output", str(joined), "--syntax", "rdfm", "--quiet"]) == 0
        return joined.read_bytes()


def by_cat_of_converted(one: Log, other: Log) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for name, log in (("one", one), ("other", other)):
            path = Path(folder, name).with_suffix(f".{log.kind.format.extension}")
            path.write_bytes(log.document)
            names.append(str(path.with_suffix(".trig.gz")))
            assert main(["convert", str(path), names[-1], "--quiet"]) == 0
        joined = Path(folder, "joined.nq")
        assert main(["cat", *names, "--output", str(joined), "--syntax", "rdfm", "--quiet"]) == 0
        return joined.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("way", [by_cat, by_cat_of_converted])
@settings(max_examples=25)  # for each there are files
@given(LOGS, LOGS)
def test_nodes_neither_meet_nor_part_on_the_command_line(
    way: Callable[[Log, Log], bytes], one: Log, other: Log
) -> None:
    """Issue 13, 7: what `cat` writes is read back with the nodes of each log, and no others in common."""
    wanted = [*one.tagged("one"), *other.tagged("other")]
    assert same_nodes(plain(way(one, other)), wanted)


@given(MESSAGES, MESSAGES)
def test_nodes_of_archives(some: list[Message], others: list[Message]) -> None:
    """Issue 13, 7: two archives, whose files are messages of their own."""

    def archive(messages: list[Message]) -> bytes:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for number, message in enumerate(messages):
                document = "".join(f"{quad}\n" for quad in message).encode()
                member = tarfile.TarInfo(f"{number}.nt")
                member.size = len(document)
                tar.addfile(member, io.BytesIO(document))
        return packed.getvalue()

    found = plain(lines(chain(*(read_log(archive(messages)) for messages in (some, others)))))
    wanted = [
        each_its_own(message, f"n{number}x") for number, message in enumerate([*some, *others])
    ]
    assert same_nodes(found, wanted)


@given(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
def test_nodes_of_queries(names: list[Term]) -> None:
    """Issue 13, 7: streams over stores and graphs that hold the same labels, one log behind another."""
    query = "CONSTRUCT { ?s <urn:p0> ?s . [] <urn:p1> ?s } WHERE { ?s <urn:p> ?o }"
    store, graph = ox.Store(), rdflib.Graph()
    for name in names:
        store.add(ox.Quad(to_pyoxigraph(name), ox.NamedNode("urn:p"), ox.Literal("o")))  # type: ignore[arg-type]
        graph.add((to_rdflib(name), rdflib.URIRef("urn:p"), rdflib.Literal("o")))
    logs = [
        construct_messages(query, source).serialize() for source in (store, store, graph, graph)
    ]
    found = plain(b"".join(chain(*logs)))
    assert len(found) == 4 * len(names)
    assert len(set().union(*map(blanks, found))) == 2 * len(
        found
    )  # a node of the data in each, and one of the template


FOLDED = st.lists(st.sampled_from([*NAMES, iri("urn:g")]), min_size=1, max_size=3, unique=True)


@given(FOLDED, FOLDED)
def test_nodes_of_folds(some: list[Term], others: list[Term]) -> None:
    """Issue 13, 7: the nodes of a fold meet neither those of another nor labels of any message."""
    messages = [
        Message(Quad(S, P, S, graph) for graph in graphs) for graphs in (some, others, some)
    ]
    found = [fold(message) for message in messages]
    labels = Labels()
    found += [
        fold(message, number=number, labels=labels) for number, message in enumerate(messages, 1)
    ]
    nodes = [blanks(message) - set(NAMES) for message in found]
    assert [len(one) for one in nodes] == [len(message) for message in messages] * 2
    assert len(set().union(*nodes)) == sum(map(len, nodes))


# --- labels that stay -------------------------------------------------------------------------------------------------


@given(LOGS)
def test_labels_do_not_grow(log: Log) -> None:
    once = lines(log.read())
    assert lines(read_log(once, "nq", syntax="rdfm")) == once
    scoped = io.BytesIO()
    write_log(read_log(once, "nq", syntax="rdfm"), scoped, "nq", syntax="1.2-messages")
    again = lines(read_log(scoped.getvalue()))
    assert len(again) <= len(once) + 3 * once.count(
        b"_:"
    )  # of another kind, and with another number


@given(LOGS)
def test_a_prefix_of_ones_own_gives_the_same_log(log: Log) -> None:
    media_type, syntax = log.kind.format.media_types[0], log.kind.syntax.label or None

    def written() -> bytes:
        return lines(read_log(log.document, media_type, syntax=syntax, label_prefix="x"))

    assert written() == written()


@pytest.mark.parametrize("keep_labels", [True, False])
@pytest.mark.parametrize("label", ["b", "a0123456789abcdef0123456789abcdef"])
def test_nodes_without_a_label(keep_labels: bool, label: str) -> None:
    """They are the same each time, and none that a label stands for."""
    first, second = (
        f"_:{label} <urn:p> [] .",
        f"[] <urn:p> (_:{label}) . _:{label} <urn:q> [ <urn:r> _:{label} ] .",
    )
    log = f"{first} # @message\n{second}".encode()
    one, other = (
        list(read_log(log, "ttl", label_prefix="x", keep_labels=keep_labels)) for _ in range(2)
    )
    assert one == other
    named = Term(f"_:{label}" if keep_labels else f"_:x_d{label}")
    assert [blanks(message) - {named} for message in one] == [
        {Term("_:x_m1b0")},
        {Term("_:x_m2b0"), Term("_:x_m2b1"), Term("_:x_m2b2")},
    ]
    assert all(named in blanks(message) for message in one)


def test_two_logs_of_one_prefix_stay_apart_where_they_are_read() -> None:
    one = lines(read_log(b"_:b <urn:p> 1 .", "ttl", label_prefix="x"))
    first, second = chain(read_log(one, "nq"), read_log(one, "nq"))
    assert not blanks(first) & blanks(second)


# --- skolemize --------------------------------------------------------------------------------------------------------


def test_labels_of_logs_are_skolemized_whatever_they_begin_with() -> None:
    """Issue 13, 8: `_:t1` was taken for a node of a template."""
    (message,) = read_log(b"_:t1 <urn:p> _:t0b0 . _:d1 <urn:p> _:m1b0 .", "ttl")
    assert not blanks(message.skolemize(GENID))
    assert (
        len({term for quad in message.skolemize(GENID) for term in quad if term and GENID in term})
        == 4
    )


@given(LOGS, LOGS)
def test_labels_of_two_logs_are_never_the_same_iri(one: Log, other: Log) -> None:
    """Issue 13, 8: IRIs meet where nodes do, and only there."""
    found = [message.skolemize(GENID) for message in chain(one.read(), other.read())]
    wanted = [*one.tagged("one"), *other.tagged("other")]
    assert not set().union(*map(blanks, found))
    back = [
        Message(
            Quad(
                *(
                    Term(f"_:{term[len(GENID) + 1 : -1]}") if term and GENID in term else term
                    for term in quad
                )
            )  # type: ignore[arg-type]
            for quad in message
        )
        for message in found
    ]
    assert same_nodes(back, wanted)


def test_a_query_skolemizes_the_data_and_not_the_template() -> None:
    store = ox.Store()
    store.add(ox.Quad(ox.BlankNode("t0b0"), ox.NamedNode("urn:p"), ox.BlankNode("b")))
    query = "CONSTRUCT { ?s <urn:p> [] } WHERE { ?s <urn:p> ?o }"
    (message,) = construct_messages(query, store, skolemize=GENID, label_prefix="x")
    assert str(next(iter(message))) == f"<{GENID}x_dt0b0> <urn:p> _:x_t0b0 ."


@pytest.mark.parametrize("copy", [copy, lambda labels: pickle.loads(pickle.dumps(labels))])
def test_a_random_prefix_is_one(copy: Callable[[Labels], Labels]) -> None:
    """It is made when it is first needed: in all threads, and in copies, it is the same."""
    labels = Labels()
    assert copy(labels).of_data == labels.of_data == f"{labels.prefix}_d"
    for _ in range(100):
        labels, start = Labels(), threading.Barrier(4)

        def of_data(labels: Labels = labels, start: threading.Barrier = start) -> str:
            start.wait()
            return labels.of_data

        with ThreadPoolExecutor(4) as threads:
            assert len({each.result() for each in [threads.submit(of_data) for _ in range(4)]}) == 1
