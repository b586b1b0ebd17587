"""Labels of blank nodes: nodes neither meet nor part, by whichever way logs come together (issue 13, 7 and 8)."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from construct_messages import Message, Quad, UsageError, read_log, write_log
from construct_messages.formats import N_QUADS, NDJSON_LD, RDFM
from construct_messages.labels import Labels
from construct_messages.terms import Term, blank, iri
from tests.log_kinds import KINDS, Kind, write

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
    for unique in (labels.of_template(7, 0), labels.in_message(1)[Term("_:a")], blank(label, labels.of_data)):
        assert Labels().in_log(unique) == unique


@pytest.mark.parametrize(
    "label",
    [
        *("b0", "t0b0", "x_t0b0", "m1b0", "genid-1", "node1hu3m2k5ax1", "B4f2c1d", "N4c0a6b5f9d8e4a7ab1c2d3e4f5a6b7c8"),
        *("documentation_1", "t202611221601_1", "123456789012_t0b0", "9a1ee4b1a2c3_d0", "x_dq3k9f2m4v7cb_t0b0"),
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
        return read_log(self.document, self.kind.format.media_types[0], messages=self.kind.syntax.label or None)

    def tagged(self, name: str) -> list[Message]:
        """The messages with labels that differ where the nodes do."""
        if self.kind.keeps_labels:
            return [m.map_blanks(lambda b: b if b == UNIQUE else Term(f"_:{name}{b[2:]}")) for m in self.messages]
        return [each_its_own(message, f"{name}{number}x") for number, message in enumerate(self.messages)]


UNIQUE = Term("_:q3k9f2m4v7cb_t0b0")
NAMES = [*(Term(f"_:{label}") for label in ("b", "t0b0", "t1b0", "m1b0", "m2b0", "f1b0", "db", "x_t0b0")), UNIQUE]
TERMS = st.sampled_from([*NAMES, S])
MESSAGES = st.lists(
    st.lists(st.tuples(TERMS, TERMS), max_size=3).map(
        # each predicate once, so that a quad is found again whatever its order and its labels
        lambda ends: Message(Quad(s, iri(f"urn:p{number}"), o) for number, (s, o) in enumerate(ends))
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
    return list(read_log(document, "nq", messages="rdfm", keep_labels=True))


def lines(messages: Iterable[Message]) -> bytes:
    log = io.BytesIO()
    write_log(messages, log, "nq")
    return log.getvalue()


def in_a_folder(run: Callable[[Path], None]) -> bytes:
    with tempfile.TemporaryDirectory() as name:
        run(Path(name))
        return (Path(name) / "joined.nq").read_bytes()


def files(one: Log, other: Log, folder: Path) -> list[str]:
    paths = [folder / f"{name}.{log.kind.format.extension}" for name, log in (("one", one), ("other", other))]
    for path, log in zip(paths, (one, other), strict=True):
        path.write_bytes(log.document)
    return [str(path) for path in paths]


def chained(one: Log, other: Log) -> bytes:
    return lines(chain(one.read(), other.read()))


def concatenated(one: Log, other: Log) -> bytes:
    return lines(one.read()) + lines(other.read())


def concatenated_twice_written(one: Log, other: Log) -> bytes:
    def rewritten(log: Log) -> bytes:
        return lines(read_log(lines(log.read()), "nq", messages="rdfm"))

    return rewritten(one) + rewritten(other)


WAYS = {way.__name__: way for way in (chained, concatenated, concatenated_twice_written)}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@given(LOGS, LOGS)
@example(*[Log(Kind(NDJSON_LD, NDJSON_LD.own), [Message([Quad(NAMES[0], P, S)])])] * 2)  # type: ignore[arg-type]
@example(*[Log(RDFM_LINES, [Message([Quad(NAMES[0], P, S)])] * 2)] * 2)
def test_nodes_neither_meet_nor_part(way: Callable[[Log, Log], bytes], one: Log, other: Log) -> None:
    """Issue 13, 7: two logs joined share no node but those that they shared, and each its own as before."""
    wanted = [*one.tagged("one"), *other.tagged("other")]
    assert same_nodes(plain(way(one, other)), wanted)
