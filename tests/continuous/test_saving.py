"""A query that is saved and restored, at any element, goes on as one that never stopped.

The examples are the same in each run, so that a run tells of the change that it tests.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from construct_messages.continuous import Firing, WindowedQuery, WindowOptions
from construct_messages.continuous.windowed import _digest
from construct_messages.errors import UsageError
from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.query.continuous.values import Operator
from construct_messages.streams.element import Element
from tests.support.windows.histories import (
    happen,
    histories,
    options_of,
    restored,
    unordered,
)
from tests.support.windows.oracle import Case, Event

QUERY = parse_continuous("""CONSTRUCT { ?s <urn:is> [] } FROM NAMED WINDOW <urn:w> ON <urn:in> [ROWS 2]
    WHERE { WINDOW <urn:w> { ?s <urn:p> ?o } }""")


def check_history(case: Case, events: list[Event], stops: list[int]) -> None:
    without = WindowedQuery(case.query, options_of(case), static=case.static, label_prefix="x")
    stopped = WindowedQuery(case.query, options_of(case), static=case.static, label_prefix="x")
    for place, event in enumerate(events):
        if place in stops:
            stopped = restored(stopped, case, events)
        assert unordered(happen(stopped, case, event)) == unordered(happen(without, case, event))
        assert stopped.dropped == without.dropped


@given(histories(), st.lists(st.integers(0, 9)))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_restored(history: tuple[Case, list[Event]], stops: list[int]) -> None:
    check_history(*history, stops)


@pytest.mark.slow
@given(histories())
def test_restored_at_each_element(history: tuple[Case, list[Event]]) -> None:
    check_history(*history, list(range(20)))


def check_slices(case: Case, events: list[Event], stops: list[int], *, at_once: bool) -> None:
    """Evaluations that are made one at a time, with a restart after some of them, before or after further events."""
    whole = WindowedQuery(case.query, options_of(case), static=case.static, label_prefix="x")
    sliced = WindowedQuery(case.query, options_of(case), static=case.static, label_prefix="x")
    expected, found = list[Firing](), list[Firing]()
    for place, event in enumerate(events):
        expected += happen(whole, case, event)
        found += happen(sliced, case, event, most=1)
        while sliced.due and (at_once or place + 1 == len(events)):
            if sliced.evaluations in stops:
                sliced = restored(sliced, case, events[: place + 1])
            found += sliced.proceed(1)
        if place in stops:
            sliced = restored(sliced, case, events[: place + 1])
    assert unordered(found) == unordered(expected)
    assert sliced.dropped == whole.dropped
    assert not sliced.due


@pytest.mark.slow
@given(st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_a_silent_stream_is_one_whose_time_passes_with_the_others(data: st.DataObject) -> None:
    """Windows over two streams, of which one falls silent and maybe comes back; with restarts."""
    case, events = data.draw(
        histories().filter(
            lambda drawn: len(drawn[0].streams) == 2 and all(each.element for each in drawn[1])
        )
    )
    silent = data.draw(st.integers(0, 1))
    begins = data.draw(st.integers(0, len(events)))
    returns = data.draw(st.integers(begins, len(events)))
    stops = data.draw(st.lists(st.integers(0, 9)))
    iri, other = case.streams[silent], case.streams[1 - silent]
    told, idle = (
        WindowedQuery(case.query, options_of(case), static=case.static, label_prefix="x")
        for _ in range(2)
    )
    for place, event in enumerate(events):
        if begins <= place < returns and event.stream == silent:
            continue
        if place in stops:
            idle = restored(idle, case, events)
        found, expected = happen(idle, case, event), happen(told, case, event)
        if begins <= place < returns:
            found += idle.idle(iri)
            expected += told.advance(told.watermark(other), iri)
        assert unordered(found) == unordered(expected)
        assert idle.dropped == told.dropped


@pytest.mark.slow
@given(histories(), st.lists(st.integers(0, 9)), st.booleans())
def test_one_evaluation_at_a_time(
    history: tuple[Case, list[Event]], stops: list[int], at_once: bool
) -> None:
    check_slices(*history, stops, at_once=at_once)


def test_state_of_the_version_before_is_read() -> None:
    """Version 1 had no evaluations that are due."""
    engine = WindowedQuery(QUERY)
    engine.take("urn:in", Element("in", 1, 1, b'<urn:s> <urn:p> "o" .'))
    state = json.loads(engine.save())
    del state["due"], state["timeline"]["due"]
    saved = json.dumps({**state, "version": 1}).encode()
    again = WindowedQuery.restore(
        saved, lambda *_: [Element("in", 1, 1, b'<urn:s> <urn:p> "o" .')], QUERY
    )
    assert again.save() == engine.save()


def test_state_is_small() -> None:
    engine = WindowedQuery(replace(QUERY, operator=Operator.DSTREAM))
    for number in range(1, 500):
        engine.take("urn:in", Element("in", number, number, b'<urn:s> <urn:p> "%d" .' % number))
    assert len(engine.save()) < 500


def test_blank_nodes_of_templates_are_new_behind_a_restart() -> None:
    elements = [
        Element("in", number, number, b'<urn:s%d> <urn:p> "o" .' % number) for number in (1, 2)
    ]
    query = replace(QUERY, operator=Operator.ISTREAM)
    engine = WindowedQuery(query)
    before = engine.take("urn:in", elements[0])
    engine = WindowedQuery.restore(
        engine.save(), lambda _, first, last: elements[first - 1 : last], query
    )
    behind = engine.take("urn:in", elements[1])
    assert not _nodes(before) & _nodes(behind)
    assert {node.partition("_t")[0] for node in _nodes(before)} == {
        node.partition("_t")[0] for node in _nodes(behind)
    }


def _nodes(firings: list[Firing]) -> set[str]:
    return {quad.object for firing in firings for message in firing.messages for quad in message}


def test_state_of_another_query_is_refused() -> None:
    saved = WindowedQuery(QUERY).save()
    with pytest.raises(UsageError, match="another query"):
        WindowedQuery.restore(saved, lambda *_: (), QUERY, WindowOptions(lateness=1))


def test_white_space_and_comments_make_no_other_query() -> None:
    text = QUERY.query.replace("{", "{ # and\n  ")
    assert text.split() != QUERY.query.split()
    for before, after in ((QUERY, replace(QUERY, query=text)), (replace(QUERY, query=text), QUERY)):
        engine = WindowedQuery(before)
        saved = json.loads(engine.save())
        assert WindowedQuery.restore(engine.save(), lambda *_: (), after).save() == engine.save()
        assert WindowedQuery(after).save() != engine.save()  # its labels are others
        # earlier releases took the text as it is
        of_text = json.dumps({**saved, "of": _digest(after, WindowOptions())}).encode()
        assert WindowedQuery.restore(of_text, lambda *_: (), after).save() == engine.save()


def test_elements_that_are_gone_are_an_error() -> None:
    engine = WindowedQuery(QUERY)
    engine.take("urn:in", Element("in", 1, 1, b""))
    with pytest.raises(UsageError, match="no longer has its elements 1 to 1"):
        WindowedQuery.restore(engine.save(), lambda *_: (), QUERY)
