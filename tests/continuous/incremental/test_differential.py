"""Maintained solutions are those of the query asked as a whole, after every element: random queries and streams."""

from __future__ import annotations

import os
import re
from collections import Counter
from random import Random

import pytest

from construct_messages.continuous import Firing, WindowedQuery
from construct_messages.errors import ConstructMessagesError
from tests.support.windows.histories import happen, options_of, restored
from tests.support.windows.oracle import Case, Event
from tests.support.windows.queries import differential_cases

MANY = int(os.environ.get("WINDOWS", "200"))


def test_solutions_are_those_of_the_whole_query() -> None:
    found = Counter(check_seed(seed) for seed in range(60))
    assert found["maintained, with solutions"] > 5


@pytest.mark.slow
def test_solutions_are_those_of_the_whole_query_at_length() -> None:
    found = Counter(check_seed(seed) for seed in range(1_000, 1_000 + MANY))
    print(found)
    assert found["maintained, with solutions"] > MANY // 10


def check_seed(seed: int) -> str:
    """Compares both in one random case; returns what kind of case it is."""
    random = Random(seed)
    case, events = differential_cases(random)
    stops = [random.randint(0, 12) for _ in range(random.randint(0, 2))]
    try:
        return check_history(case, events, stops)
    except Exception as error:
        raise AssertionError(f"seed {seed}: {case.query.query} {case}") from error


def check_history(case: Case, events: list[Event], stops: list[int]) -> str:
    """Compares both after each event, the maintained one with restarts before some of them."""
    options = options_of(case)
    try:
        whole = WindowedQuery(
            case.query, options, static=case.static, label_prefix="x", maintain=False
        )
    except ConstructMessagesError:
        return "refused"
    maintained = WindowedQuery(case.query, options, static=case.static, label_prefix="x")
    begun, given_out = maintained.plan, 0
    for place, each in enumerate(events):
        if place in stops:
            maintained = restored(maintained, case, events)
        expected = happen(whole, case, each)
        found = happen(maintained, case, each)
        given_out += sum(len(firing.solutions) for firing in expected)
        wanted = list(map(compared, expected))
        assert list(map(compared, found)) == wanted, f"{maintained.plan}: {found}, not {expected}"
    kind = begun.partition(":")[0]
    if not maintained.plan.startswith(kind):
        kind = "maintained at first"
    return f"{kind}, {'with' if given_out else 'without'} solutions"


def compared(firing: Firing) -> object:
    """A firing without order, on which the numbers of a template's blank nodes depend."""
    messages = (re.sub(rb"_t\d+b", b"_tb", message.lines) for message in firing.messages)
    return firing.time, firing.variables, Counter(firing.solutions), Counter(messages)
