"""`logs/inspection/`: figures by hand, and against the standard library's."""

from __future__ import annotations

import statistics
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from construct_messages.logs.inspection import Inspection
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import Term, iri, number, parse_term

S, P = iri("urn:s"), iri("urn:p")


def sized(size: int) -> Message:
    return Message(Quad(S, P, number(str(n))) for n in range(size))


def inspect(*messages: Message, **options: int) -> Inspection:
    inspection = Inspection(**options)
    for message in messages:
        inspection.add(message)
    return inspection


def test_all_figures() -> None:
    inspection = inspect(
        sized(3),
        Message(),
        Message(
            [Quad(S, P, S, iri("urn:g")), Quad(S, P, S, iri("urn:h")), Quad(S, P, S, Term("_:g"))]
        ),
        Message([Quad(S, P, parse_term("<<( _:b <urn:p> 1 )>>"), iri("urn:g"))]),
    )
    assert inspection.as_dict() == {
        "messages": 4,
        "quads": 7,
        "empty": 1,
        "with_named_graphs": 2,
        "with_blank_nodes": 2,
        "with_triple_terms": 1,
        "graphs": 2,
        "more_graphs": False,
        "sizes": {"smallest": 0, "median": 2, "mean": 1.75, "largest": 3, "largest_message": 1},
        "histogram": [
            {"from": 0, "to": 0, "messages": 1},
            {"from": 1, "to": 1, "messages": 1},
            {"from": 2, "to": 3, "messages": 2},
        ],
    }


def test_no_message() -> None:
    assert inspect().as_dict() == {
        **dict.fromkeys(("messages", "quads", "empty", "with_named_graphs", "with_blank_nodes"), 0),
        **{"with_triple_terms": 0, "graphs": 0, "more_graphs": False, "histogram": []},
        "sizes": dict.fromkeys(("smallest", "median", "mean", "largest", "largest_message")),
    }


def test_only_empty_messages() -> None:
    inspection = inspect(Message(), Message())
    assert (inspection.empty, inspection.largest, inspection.median()) == (2, (1, 0), 0)
    assert inspection.histogram() == [(0, 0, 2)]


def test_the_first_of_the_largest() -> None:
    assert inspect(sized(1), sized(2), sized(2)).largest == (2, 2)


def test_gaps_in_the_histogram_are_there() -> None:
    assert inspect(sized(1), sized(9)).histogram() == [(1, 1, 1), (2, 3, 0), (4, 7, 0), (8, 15, 1)]


def test_graph_names_are_bounded() -> None:
    message = Message(Quad(S, P, S, iri(f"urn:g{n}")) for n in range(3))
    assert (
        inspect(message, message, most_graphs=3).graphs,
        inspect(message, most_graphs=3).more_graphs,
    ) == (3, False)
    assert (
        inspect(message, most_graphs=2).graphs,
        inspect(message, most_graphs=2).more_graphs,
    ) == (2, True)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=30))
def test_sizes_are_those_of_the_standard_library(sizes: list[int]) -> None:
    inspection = inspect(*map(sized, sizes))
    assert inspection.median() == statistics.median(sizes)
    assert inspection.mean() == sum(sizes) / len(sizes)
    assert inspection.smallest() == min(sizes)
    assert inspection.largest == (sizes.index(max(sizes)) + 1, max(sizes))
    for low, high, count in inspection.histogram():
        assert count == sum(low <= size <= high for size in sizes)
    assert sum(count for *_, count in inspection.histogram()) == len(sizes)


def test_memory_does_not_grow_with_the_messages() -> None:
    inspection = Inspection(most_graphs=100)
    peaks = []
    tracemalloc.start()
    for first in (0, 2_000):
        for n in range(first, first + 2_000):
            inspection.add(Message([Quad(S, P, number(str(n)), iri(f"urn:g{n}"))]))
        # of its own: other threads of the tests keep what they may
        own = tracemalloc.take_snapshot().filter_traces(
            [tracemalloc.Filter(True, "*/construct_messages/*")]
        )
        peaks.append(sum(each.size for each in own.statistics("filename")))
    tracemalloc.stop()
    assert inspection.more_graphs
    assert peaks[1] - peaks[0] < 10_000
