"""How many elements came to a stream in each of the last minutes, as a chart: the data, and the path that draws it.

The page goes on with the same chart where it follows the stream (`pages/static/rate.js`). No HTML here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from construct_messages.streams.store import StreamStore

PERIOD: Final = timedelta(minutes=1)
PERIODS: Final = 60
_HEIGHT: Final = 24


class Rate(NamedTuple):
    """The rate of a stream.

    Args:
        counts: elements in each minute, the oldest first; the last one goes on.
    """

    counts: Sequence[int]

    @property
    def total(self) -> int:
        """How many there were in all periods."""
        return sum(self.counts)

    @property
    def peak(self) -> int:
        """How many there were in the period that has most of them."""
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


def rate_of(store: StreamStore, stream: str, now: datetime) -> Rate:
    """The rate of a stream in the hour before the end of a minute; elements that retention has removed are not in it.

    Raises:
        NotFound: there is no such stream.
    """
    end = now.replace(second=0, microsecond=0) + PERIOD
    return Rate(store.counts(stream, end - PERIODS * PERIOD, PERIOD, PERIODS))
