"""What becomes of a registered query that fails, by tables."""

from __future__ import annotations

import pytest

from construct_messages.continuous.registered.query import MOST_SKIPPED, TRIES, Again, Recovery
from construct_messages.continuous.transform import BATCH
from construct_messages.errors import (
    ConstructMessagesError,
    Gone,
    IncompleteResult,
    LimitExceeded,
    QueryError,
    SourceError,
    SourceTimeout,
    StoreError,
)

ENDED, SLOW = IncompleteResult("ended by SIGKILL"), SourceTimeout("too slow")


def test_pauses_get_longer_up_to_a_minute_and_then_it_is_paused() -> None:
    recovery = Recovery(9.0, None)
    pauses = [recovery.after(ENDED) for _ in range(TRIES)]
    assert pauses == [Again(9), Again(18), Again(36), Again(60), None]


def test_a_process_that_waits_is_always_started_again() -> None:
    recovery = Recovery(1.0, 1)
    pauses = [recovery.after(ENDED, idle=True) for _ in range(20)]
    assert pauses == [*(Again(2**number) for number in range(6)), *[Again(60)] * 14]
    assert not recovery.order({}, None).skip


def test_progress_begins_anew() -> None:
    recovery = Recovery(1.0, None)
    for taken, evaluated in ((1, False), (0, True)) * 5:
        assert recovery.after(ENDED) == Again(1)
        recovery.advanced(taken, evaluated=evaluated)
    assert recovery.after(ENDED) == Again(1)
    recovery.advanced(0, evaluated=False)
    assert recovery.after(ENDED) == Again(2)


@pytest.mark.parametrize(
    ("error", "alone", "with_skip"),
    [
        (ENDED, True, True),
        (SLOW, False, True),
        (SourceError("no process could be started", status=503, transient=True), True, True),
        (SourceError("the embedded evaluation failed"), False, True),
        (LimitExceeded("more than 64 MB"), False, True),
        # as the other process tells it
        (SourceError("more than 64 MB", status=LimitExceeded.default_status), False, True),
        (SourceError("removed by retention", status=Gone.default_status), False, False),
        (StoreError("cannot read"), False, False),
        (QueryError("refused"), False, False),
    ],
)
def test_which_errors_are_tried_again(
    error: ConstructMessagesError, alone: bool, with_skip: bool
) -> None:
    assert (Recovery(1.0, None).after(error) is not None) == alone
    assert (Recovery(1.0, 3).after(error) is not None) == with_skip


def test_an_element_is_left_out_when_it_has_failed_alone() -> None:
    recovery = Recovery(0.0, 2)
    last = {"a": 9000}
    assert recovery.order(last, 7).most == BATCH
    assert recovery.after(SLOW)
    step = recovery.order(last, 7)
    assert (step.last, step.now, step.most, step.skip) == (
        last,
        7,
        1,
        False,
    )  # so that it shows which one it is
    recovery.advanced(1, evaluated=True)
    for _ in range(2):
        assert not recovery.order(last, 7).skip
        assert recovery.after(SLOW)
    assert recovery.order(last, 7).skip
    recovery.advanced(1, evaluated=False)
    assert not recovery.order(last, 7).skip
    recovery.advanced(BATCH, evaluated=True)
    assert recovery.order(last, 7).most == BATCH


def test_what_is_due_is_no_elements_fault() -> None:
    assert Recovery(0.0, 2).after(SLOW, due=True) is None


def test_not_all_elements_are_left_out() -> None:
    """A window that is too large fails with each of them."""
    recovery = Recovery(0.0, 2)
    skipped = 0
    while recovery.after(SLOW) is not None:
        if recovery.order({}, None).skip:
            skipped += 1
            recovery.advanced(1, evaluated=False)
    assert skipped == MOST_SKIPPED
