"""The recent activity of a stream: the number of elements per minute, as a chart, and the time of the newest one.

The page updates the same chart while it follows the stream (`pages/static/rate.js`). No HTML here.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from construct_messages.rdf.errors import Gone
from construct_messages.streams.element import State
from construct_messages.streams.store import StreamStore

PERIOD: Final = timedelta(minutes=1)
PERIODS: Final = 60
_HEIGHT: Final = 24


class Rate(NamedTuple):
    """The rate of a stream.

    Args:
        counts: the number of elements per minute, the oldest first; the last minute is not over.
    """

    counts: Sequence[int]

    @property
    def total(self) -> int:
        """The number of elements in all periods."""
        return sum(self.counts)

    @property
    def peak(self) -> int:
        """The maximal number of elements in one period."""
        return max(self.counts)

    @property
    def path(self) -> str:
        """The `d` of an SVG path in a box of two units a period and 24 units of height: a stroke for each period.

        >>> Rate([0, 1, 2]).path
        'M3 24V12M5 24V0'
        """
        return "".join(
            f"M{2 * place + 1} {_HEIGHT}V{_HEIGHT - -(-count * _HEIGHT // self.peak)}"
            for place, count in enumerate(self.counts)
            if count
        )


class Activity(NamedTuple):
    """The activity of a stream.

    Args:
        rate: the rate in the last hour, without elements that retention has removed.
        newest: the time of the newest element; None: the stream is empty.
        followers: the number of followers.
    """

    rate: Rate
    newest: str | None
    followers: int


def activity_of(store: StreamStore, state: State, now: datetime, followers: int) -> Activity:
    """Returns the activity of a stream.

    Args:
        store: the store of the stream.
        state: the state of the stream.
        now: the time, with a zone.
        followers: see `Activity`.

    Raises:
        NotFound: the stream does not exist any more.
    """
    end = now.replace(second=0, microsecond=0) + PERIOD
    rate = Rate(store.counts(state.name, end - PERIODS * PERIOD, PERIOD, PERIODS))
    newest = None
    with suppress(Gone):
        if state.last >= state.first:
            (time,) = store.times(state.name, [state.last])
            newest = datetime.fromtimestamp(time / 1_000_000, UTC).isoformat()
    return Activity(rate, newest, followers)
