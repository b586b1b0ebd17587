"""A store that is built anew holds what one holds that never is, and stays small, whatever passes through it.

The examples are the same in each run, so that a run tells of the change that it tests.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from construct_messages.continuous import WindowedQuery, dataset
from construct_messages.continuous.dataset import CompactedStore
from construct_messages.rdf.message import Quad
from construct_messages.rdf.terms import Term, iri, literal
from tests.support.windows.histories import STATIC, happen, histories, options_of, unordered
from tests.support.windows.oracle import Case, Event

BESIDE = (
    *STATIC,
    Quad(Term("_:a"), iri("urn:p"), Term("_:b"), iri("urn:g")),
    Quad(iri("urn:a"), iri("urn:p"), literal("chat", language="fr"), Term("_:a")),
    Quad(
        iri("urn:b"),
        iri("urn:q"),
        Term('<<( <urn:s> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> )>>'),
    ),
)
FIXED = tuple(
    ox.parse(
        "<urn:0> <urn:p> _:x . _:x <urn:p> '1'^^<http://www.w3.org/2001/XMLSchema#integer> . <urn:1> <urn:p> 'a'@en .",
        format=ox.RdfFormat.TURTLE,
    )
)
QUADS = st.integers(0, 9).map(
    lambda number: ox.Quad(
        ox.BlankNode(f"b{number % 3}"), ox.NamedNode("urn:p"), ox.Literal(number)
    )
)


@contextmanager
def at_each_removal() -> Iterator[None]:
    """Has stores built anew whenever something is removed."""
    with pytest.MonkeyPatch.context() as patch:
        for limit in ("_SPARE_BYTES", "_OF_CHANGING", "_OF_FIXED"):
            patch.setattr(dataset, limit, 0)
        yield


@given(st.lists(st.frozensets(QUADS, max_size=4), max_size=12))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_holds_what_a_store_holds_that_is_never_built_anew(
    contents: list[frozenset[ox.Quad]],
) -> None:
    fixed = [ox.Quad(triple.subject, triple.predicate, triple.object) for triple in FIXED]
    plain = ox.Store()
    plain.extend(fixed)
    before: frozenset[ox.Quad] = frozenset()
    removals = 0
    with at_each_removal():
        compacted = CompactedStore(fixed)
        for now in contents:
            compacted.change(before - now, now - before, now)
            removals += bool(before - now)
            for quad in before - now:
                plain.remove(quad)
            plain.extend(now)
            assert set(compacted.store) == set(plain)
            before = now
    assert compacted.compactions == removals


def check_history(case: Case, events: list[Event]) -> None:
    case = replace(case, static=BESIDE if case.static else ())
    plain = WindowedQuery(
        case.query, options_of(case), static=case.static, label_prefix="x", maintain=False
    )
    expected = [unordered(happen(plain, case, event)) for event in events]
    with at_each_removal():
        compacted = WindowedQuery(
            case.query, options_of(case), static=case.static, label_prefix="x", maintain=False
        )
        assert [unordered(happen(compacted, case, event)) for event in events] == expected


@given(histories())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_queries_find_the_same(history: tuple[Case, list[Event]]) -> None:
    check_history(*history)


@pytest.mark.slow
@given(histories())
@settings(max_examples=2 * settings.default.max_examples)
def test_queries_find_the_same_at_length(history: tuple[Case, list[Event]]) -> None:
    check_history(*history)


@pytest.mark.parametrize("fixed", [0, 1000])
def test_is_built_anew_in_proportion_to_what_passes(fixed: int) -> None:
    def quad(number: int) -> ox.Quad:
        return ox.Quad(ox.NamedNode("urn:s"), ox.NamedNode("urn:p"), ox.Literal(number))

    store = CompactedStore([quad(-number) for number in range(1, fixed + 1)])
    there: list[ox.Quad] = []
    for first in range(0, 20_000, 100):
        added = [quad(number) for number in range(first, first + 100)]
        store.change(there, added, added)
        there = added
    assert len(store.store) == fixed + 100
    # of 19,900 removed, each time four times the hundred that change and half of those that stay
    assert (
        19_900 // (4 * 100 + fixed // 2 + 200)
        <= store.compactions
        <= 19_900 // (4 * 100 + fixed // 2) + 1
    )


PROGRAM = """
import resource
from construct_messages.continuous import WindowedQuery
from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.streams.element import Element

query = parse_continuous('''CONSTRUCT { ?s <urn:is> ?o }
    FROM NAMED WINDOW <urn:w> ON <urn:in> [ROWS 10 STEP 10] WHERE { WINDOW <urn:w> { ?s <urn:p> ?o ; <urn:q> ?t } }''')
engine = WindowedQuery(query, maintain=False)
resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
given = 0
for number in range(1, 8001):
    text = f"{number} " + "text " * 4000
    literal = f'"{number:05}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    lines = f'<urn:{number}> <urn:p> {literal} .\\n<urn:{number}> <urn:q> "{text}" .'
    firings = engine.take("urn:in", Element("in", number, number, lines.encode()))
    given += sum(len(firing.messages) for firing in firings)
print(given)
"""


@pytest.mark.slow
def test_memory_stays_within_a_limit() -> None:
    """160 MB of texts pass through a window of ten messages."""
    data = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("MEMORY", str(120 << 20))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (data.stdout, data.stderr, data.returncode) == ("8000\n", "", 0)


@pytest.mark.slow
def test_the_limit_of_memory_is_one() -> None:
    """Without compaction, the same program ends."""
    never = (
        "from construct_messages.continuous.dataset import "
        "compacted_store\ncompacted_store._SPARE_BYTES = 1 << 60\n"
    )
    program = never + PROGRAM.replace("MEMORY", str(120 << 20))
    data = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert data.returncode != 0
