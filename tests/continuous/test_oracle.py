"""The engine of windows against the oracle of `tests/support/windows/oracle.py`, over random streams and parameters.

The examples are the same in each run, so that a run tells of the change that it tests.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

from construct_messages.continuous import WindowedQuery
from tests.support.windows.histories import happen, histories, options_of
from tests.support.windows.oracle import (
    Case,
    Evaluated,
    Event,
    as_evaluated,
    evaluations,
    messages_of,
)


@given(histories())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_agrees_with_the_oracle(history: tuple[Case, list[Event]]) -> None:
    check_history(*history)


@pytest.mark.slow
@given(histories())
@settings(max_examples=2 * settings.default.max_examples)
def test_agrees_with_the_oracle_at_length(history: tuple[Case, list[Event]]) -> None:
    check_history(*history)


def check_history(case: Case, events: list[Event]) -> None:
    engines = [
        WindowedQuery(case.query, options_of(case), static=case.static, maintain=maintain)
        for maintain in (True, False)
    ]
    expected: list[Evaluated] = []
    for place, event in enumerate(events, 1):
        before, expected = expected, evaluations(case, events[:place])
        assert expected[: len(before)] == before  # nothing is taken back
        for engine in engines:
            firings = happen(engine, case, event)
            assert [as_evaluated(firing) for firing in firings] == expected[len(before) :]
            for firing in firings:
                assert Counter(firing.messages) == Counter(messages_of(case, firing.solutions))
