"""The compiled module reads and writes what the Python code beside it does, or leaves rows to it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from construct_messages.errors import UnsupportedByFormat
from construct_messages.logs import EncoderOptions, encoder_for
from construct_messages.logs.jelly.decoder import Rows
from construct_messages.logs.jelly.encoder import FrameWriter
from construct_messages.logs.jelly.options import JellyOptions, PhysicalType
from construct_messages.logs.jelly.wire import delimited
from construct_messages.rdf import compiled
from construct_messages.rdf.compiled import Wire
from construct_messages.rdf.formats import JELLY
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import Lenience, Term, blank, iri, literal, triple
from tests.support.logs.cases.jelly import (
    GRAPHS,
    INTEGER,
    QUADS,
    TRIPLES,
    A,
    B,
    G,
    O,
    P,
    Q,
    S,
    message,
    read_on,
    write,
)
from tests.support.logs.lines import the_compiled_module
from tests.support.strategies import JELLY_OPTIONS, messages

SLOW = pytest.mark.slow
FR = iri("http://example.fr/é#à")
USUAL = [
    message((S, P, O), (S, Q, FR), (S, P, literal("1", datatype=INTEGER))),
    message((S, P, A), (A, Q, literal("")), (A, Q, literal('é "q"\n\\', language="fr"))),
    message((S, P, O), (O, P, S), (S, Q, literal("2", datatype=INTEGER)), (S, P, literal("", language="fr"))),
    message((iri("urn:a"), P, literal("a" * 300)), (iri("urn:b"), P, iri("urn:a"))),
    message((S, P, literal("1", datatype=INTEGER)), (B, P, A), (S, P, literal("x"))),
]  # fmt: skip
NAMED = [
    Message(quad._replace(graph=graph) for quad in each)
    for each, graph in zip(USUAL, (G, A, None, FR, G), strict=True)
]
STARRED = [
    message(
        (S, P, triple(A, P, literal("1", datatype=INTEGER))),
        (S, P, triple(A, P, literal("1", datatype=INTEGER))),
    ),
    message(
        (S, P, triple(O, Q, triple(S, P, literal('é "q"\n\\', language="fr"))), G),
        (S, P, triple(S, P, O), G),
    ),
    message(
        (A, P, triple(A, P, B), B),
        (A, Q, triple(FR, P, literal("")), A),
        (A, Q, triple(FR, P, FR), None),
    ),
]
IN_GRAPHS = [
    *NAMED[:2],
    message(
        (S, P, O, G), (S, P, A, G), (S, P, A), (S, Q, A), (S, P, O, A), (O, P, O, G), (O, P, O, FR)
    ),
    Message(),
    *NAMED[2:],
]
LOGS = {
    "triples": (USUAL, TRIPLES),
    "quads": (NAMED, QUADS),
    "graphs": (IN_GRAPHS[1:], GRAPHS),
    "triple terms": (STARRED, QUADS),
    "triple terms in graphs": ([STARRED[2], STARRED[1]], GRAPHS),
    "other terms": ([message((S, P, triple(A, P, literal("\x00"))), (S, P, literal("\ufffe")))] * 2, TRIPLES),
}  # fmt: skip


def frames_of(log: Sequence[Message], options: JellyOptions) -> list[bytes]:
    """The frames without their lengths."""
    writer = FrameWriter(options.for_writing(), {})
    return [writer.write(each) for each in log]


# what decides in a row: tags, lengths, parts of numbers, and rows
PIECES = [
    *(bytes([each]) for each in bytes.fromhex("00ff125a 0102080a10181a2a4a52626a727a7f80")),
    *map(bytes.fromhex, ("8000", "ffffffff0f", "ffffffffffffffffff01", "efbfbe", "eda080")),
    *map(
        bytes.fromhex,
        ("22", "0a022a00", "0a0422021a00", "0a0422027200", "0a0422020a00", "6200", "620412024162"),
    ),
    *map(bytes.fromhex, ("0a034a0108", "0a044a021241", "0a055203120161", "0a021200", "0a021a00")),
]
FEW = PIECES[:4]
SHORT = [frame for log, options in LOGS.values() for frame in frames_of(log, options)[1:2]]


@pytest.fixture(autouse=True)
def reader() -> None:
    """These tests run once, with the compiled module."""
    the_compiled_module()


@contextmanager
def by_python() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "wire", None)
        yield


def written(log: Sequence[Message], options: JellyOptions) -> list[bytes | str]:
    """The frames, or why a message is refused."""
    encoder = encoder_for(JELLY, JELLY.own, EncoderOptions(own=options))
    frames: list[bytes | str] = []
    for each in log:
        try:
            frames.append(encoder.encode(each))
        except UnsupportedByFormat as error:
            frames.append(str(error))
    return frames


def outcome(data: bytes, **options: Any) -> tuple[list[list[Any]], str]:
    lenience = Lenience(options.pop("how", "strict"))
    found, error = read_on(data, lenience=lenience, **options)
    return [list(each) for each in found], f"{error!r} {lenience}"


def are_alike(data: bytes, **options: Any) -> int:
    """Asserts that both read the same; returns the number of messages."""
    found = outcome(data, **options)
    with by_python():
        assert outcome(data, **options) == found
    return len(found[0])


@pytest.mark.parametrize(("log", "options"), list(LOGS.values()), ids=LOGS)
@pytest.mark.parametrize(
    ("pieces", "shared"),
    [(FEW[:1], True), pytest.param(FEW, False, marks=SLOW), pytest.param(PIECES, True, marks=SLOW)],
    ids=["zero", "few pieces", "pieces"],
)
def test_cut_and_changed_at_every_byte(
    log: list[Message],
    options: JellyOptions,
    pieces: list[bytes],
    shared: bool,
    pytestconfig: pytest.Config,
) -> None:
    """Each of many pieces at every third byte; at every byte with `make sanitize`."""
    step = 1 if pieces is not PIECES or pytestconfig.getoption("--combinations") else 3
    frames = frames_of(log, options)
    for number, frame in enumerate(frames[:2]):
        before, after = (
            b"".join(map(delimited, each)) for each in (frames[:number], frames[number + 1 :])
        )
        for place in range(len(frame)):
            start, ends = frame[:place], (frame[place:], frame[place + 1 :])
            some = pieces[place % step :: step]
            for changed in (start, *(start + piece + end for piece in some for end in ends)):
                are_alike(before + delimited(changed) + after, shared_labels=shared)


@given(
    pieces=st.lists(st.sampled_from([*PIECES, *SHORT]) | st.binary(max_size=4), max_size=12),
    log=st.sampled_from(sorted(LOGS)),
    generalized=st.booleans(),
    how=st.sampled_from(["strict", "pass", "skip"]),
)
def test_any_bytes(pieces: list[bytes], log: str, generalized: bool, how: str) -> None:
    frames = frames_of(*LOGS[log])
    data = b"".join(map(delimited, (frames[0], b"".join(pieces), *frames[1:])))
    event(f"messages: {are_alike(data, generalized=generalized, how=how)}")


@pytest.mark.parametrize("more", [-1, 0])
def test_what_few_bytes_make(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The characters of new IRIs are counted alike, also beyond ASCII."""
    monkeypatch.setattr("construct_messages.logs.jelly.decoder._LEAST_MADE", 0)
    made = [iri(f"http://example.org/{'é' * 100}/{number}") for number in range(20)]
    log = [message((S, P, O)), message(*((S, P, each) for each in made))]
    data = write(log, TRIPLES)
    most = sum(len(each) - 2 for each in made) + more
    assert are_alike(data, limit=most) == 2 + more
    assert ("characters" in outcome(data, limit=most)[1]) == (more < 0)


@given(log=messages(directions=False), options=JELLY_OPTIONS)
def test_frames_are_the_same(log: list[Message], options: JellyOptions) -> None:
    found = written(log, options)
    with by_python():
        assert written(log, options) == found


@given(
    names=st.lists(st.sampled_from([*"abcdefghijklm/", "a/b", "x/a"]), min_size=1, max_size=60),
    sizes=st.tuples(st.integers(8, 10), st.sampled_from([0, 4, 5])),
    kind=st.sampled_from([PhysicalType.QUADS, PhysicalType.GRAPHS]),
    quoted=st.booleans(),
)
def test_tables_that_are_full(
    names: list[str], sizes: tuple[int, int], kind: PhysicalType, quoted: bool
) -> None:
    """Entries make room for others, some of which the statement at hand needs."""
    terms = [iri(f"urn:{a}/{b}") for a, b in pairwise(names)]
    quads = zip(terms, terms[2:], terms[1:], terms[3:], strict=False)
    log = [message((s, p, triple(g, p, o) if quoted else o, g)) for s, p, o, g in quads]
    options = JellyOptions(
        kind, max_name_table_size=sizes[0], max_prefix_table_size=sizes[1], rdf_star=True
    )
    found = written(log, options)
    with by_python():
        assert written(log, options) == found
    assert read_on(b"".join(each for each in found if isinstance(each, bytes)))[0] == log


@pytest.mark.parametrize("term", ["", "<", "<<", "<urn:a", '"', "_", "_:", "\ud800", "<\ud800>"])
def test_terms_that_are_none(term: str) -> None:
    """Messages of quads that are no RDF: what Python makes of them, it makes with the module, too."""
    log = [(S, P, Term(term), None)]

    def rows() -> bytes | str:
        found: list[bytes] = []
        try:
            FrameWriter(TRIPLES.for_writing(), {}).statements(log, found)
        except (IndexError, ValueError) as error:
            return repr(error)
        return b"".join(found)

    made = rows()
    with by_python():
        assert rows() == made


@pytest.mark.parametrize(
    ("log", "options"),
    [(USUAL, TRIPLES), (NAMED, QUADS), (IN_GRAPHS, GRAPHS), (STARRED, QUADS), (STARRED, GRAPHS)],
    ids=["triples", "quads", "graphs", "triple terms", "triple terms in graphs"],
)
def test_what_is_usual_takes_no_python(
    log: list[Message], options: JellyOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the second time on, when languages and datatypes are known."""
    monkeypatch.setattr(Rows, "_field", left := Counted(Rows._field))
    monkeypatch.setattr(FrameWriter, "_statements", unknown := Counted(FrameWriter._statements))
    data = write(log, options), write(log * 3, options)
    written_once, unknown.count = unknown.count, 0
    write(log * 3, options)
    assert 0 < unknown.count == written_once / 2
    counts = []
    for each in data:
        left.count = 0
        read_on(each, labels=None)
        counts.append(left.count)
    assert 0 < counts[0] == counts[1]


class Counted:
    """A method whose calls are counted."""

    def __init__(self, method: Any) -> None:
        self.method, self.count = method, 0

    def __get__(self, instance: Any, _: type) -> Any:
        def call(*arguments: Any) -> Any:
            self.count += 1
            return self.method(instance, *arguments)

        return call


@pytest.mark.slow
def test_nothing_is_left_in_memory() -> None:
    data = b"".join(
        write([*IN_GRAPHS, *STARRED[:2], *LOGS["other terms"][0]] * 4, each)
        for each in (QUADS, GRAPHS)
    )
    broken = [data, data[:-3], data.replace(b"\x5a", b"\x5b"), data.replace(b"org", b"o\xffg")]
    for each in broken:
        left = []
        while len(left) < 2 or (
            left[-1] >= 50 and len(left) < 12
        ):  # Python keeps some memory for itself
            gc.collect()
            before = sys.getallocatedblocks()
            for _ in range(8):
                read_on(each)
                for options in (QUADS, GRAPHS):
                    write([*NAMED, *STARRED[:2], message((S, P, blank("c"), A))] * 3, options)
            gc.collect()
            left.append(sys.getallocatedblocks() - before)
        assert left[-1] < 50, f"{left} blocks"


def test_wrong_arguments() -> None:
    wire: Wire = the_compiled_module()
    for call in (wire.jelly_rows, wire.jelly_statements):
        for arguments in ((), (b"",), ("text",) * 12, (1,) * 19):
            with pytest.raises(TypeError):
                call(*arguments)  # type: ignore[operator]
