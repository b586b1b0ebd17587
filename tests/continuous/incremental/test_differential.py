"""Maintained solutions are those of the query asked as a whole, after every element: random queries and streams."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from construct_messages.continuous import Firing, WindowedQuery
from construct_messages.errors import ConstructMessagesError
from tests.support.windows.histories import happen, options_of
from tests.support.windows.oracle import Case, Event
from tests.support.windows.queries import differential_cases
from tests.continuous.test_saving import restored

MANY = int(os.environ.get("CONSTRUCT_MESSAGES_DIFFERENTIAL", "300"))


@given(differential_cases(), st.lists(st.integers(0, 12), max_size=2))
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_solutions_are_those_of_the_whole_query(
    history: tuple[Case, list[Event]], stops: list[int]
) -> None:
    check_history(*history, stops)


@pytest.mark.slow
@given(differential_cases(), st.lists(st.integers(0, 12), max_size=2))
@settings(max_examples=MANY, deadline=None, suppress_health_check=list(HealthCheck))
def test_solutions_are_those_of_the_whole_query_at_length(
    history: tuple[Case, list[Event]], stops: list[int]
) -> None:
    check_history(*history, stops)


def check_history(case: Case, events: list[Event], stops: list[int]) -> None:
    """Compares both after each event, the maintained one with restarts before some of them."""
    options = options_of(case)
    try:
        whole = WindowedQuery(
            case.query, options, static=case.static, label_prefix="x", maintain=False
        )
    except ConstructMessagesError:
        event("refused")
        return
    maintained = WindowedQuery(case.query, options, static=case.static, label_prefix="x")
    event(maintained.plan.partition(":")[0])
    for place, each in enumerate(events):
        if place in stops:
            maintained = restored(maintained, case, events)
        expected = happen(whole, case, each)
        found = happen(maintained, case, each)
        assert list(map(compared, found)) == list(map(compared, expected)), maintained.plan
    event(f"{maintained.plan.partition(':')[0]} at the end")


def compared(firing: Firing) -> object:
    """A firing without order."""
    return (
        firing.time,
        firing.variables,
        Counter(firing.solutions),
        Counter(map(str, firing.messages)),
    )
