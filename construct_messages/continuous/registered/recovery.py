"""Decides how to continue a registered query after its process ended or its evaluation failed. Starts nothing.

The reason why a process has ended is unknown: a user may have killed it, or the system, for lack of memory. It is
restarted, after longer and longer pauses, until it has failed repeatedly at one position. An error that the query
itself returns pauses it at once. A query may be registered to leave out an element with which it keeps failing.
docs/decisions/071-restarts-of-queries.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from construct_messages.continuous.registered.orders import TakeElements
from construct_messages.continuous.transform import BATCH
from construct_messages.rdf.errors import (
    ConstructMessagesError,
    IncompleteResult,
    LimitExceeded,
    SourceError,
    SourceTimeout,
)

TRIES: Final = 5
"""The number of times that a process may end at one position before the query is paused."""

MOST_SKIPPED: Final = 10
"""The number of successive elements that may be left out before the query is paused."""

_LONGEST_PAUSE: Final = 60.0  # seconds
# errors of the other process have the status of their kind; errors of a stream or the query are not caused by an
# element
_OF_ELEMENTS: Final = frozenset(
    kind.default_status for kind in (SourceError, SourceTimeout, LimitExceeded)
)


@dataclass(frozen=True)
class Again:
    """The query is to be restarted.

    Args:
        seconds: the pause before.
    """

    seconds: float


class Recovery:
    """The failures of a query since its last progress.

    Args:
        seconds: the first pause; each further one is twice as long, up to a minute.
        skip_after: the number of failures with a single element after which it is left out; None: never.

    >>> recovery = Recovery(1.0, None)
    >>> [recovery.after(IncompleteResult("killed")) for _ in range(TRIES)][::2]
    [Again(seconds=1.0), Again(seconds=4.0), None]
    >>> recovery.after(SourceTimeout("the evaluation took more than 30 seconds")) is None
    True
    """

    def __init__(self, seconds: float, skip_after: int | None) -> None:
        self._seconds, self._skip_after = seconds, skip_after
        self._tries = 0
        self._skipped = 0  # elements in a row
        self._skip = False
        self._singly = 0  # the number of elements to take one by one, to find the one that fails

    def after(
        self, error: ConstructMessagesError, *, due: bool = False, idle: bool = False
    ) -> Again | None:
        """Returns how to continue after a failure; None: pause the query with this error.

        Args:
            error: the failure.
            due: whether evaluations are due, for which no element can be left out.
            idle: whether the process waited for elements, so that the query is not the reason.
        """
        ended = isinstance(error, IncompleteResult) or (
            isinstance(error, SourceError) and error.transient
        )
        skips = (
            self._skip_after is not None and not due and not idle and error.status in _OF_ELEMENTS
        )
        if not ended and not skips:
            return None
        self._tries += 1
        if skips:
            alone, self._singly = self._singly > 0, BATCH
            assert self._skip_after is not None
            if alone and self._tries >= self._skip_after:
                if self._skipped == MOST_SKIPPED:
                    return None
                self._skip, self._tries = True, 0
                self._skipped += 1
        elif self._tries >= TRIES and not idle:
            return None
        return Again(min(self._seconds * 2 ** max(self._tries - 1, 0), _LONGEST_PAUSE))

    def order(self, last: dict[str, int], now: int | None) -> TakeElements:
        """The next order; see `TakeElements`."""
        return TakeElements(last, now, 1 if self._singly else BATCH, self._skip)

    def advanced(self, taken: int, *, evaluated: bool) -> None:
        """Records a completed order.

        Args:
            taken: the number of elements read.
            evaluated: whether an evaluation was made.
        """
        if self._skip:
            self._skip = False
        elif taken or evaluated:
            self._tries = 0
            if taken:
                self._skipped = 0
        self._singly = max(0, self._singly - taken)
