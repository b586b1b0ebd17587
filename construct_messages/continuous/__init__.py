"""Continuous queries: registered once, with one message for each new solution as streams and sources change.

`continuous` takes streams as iterables; `WindowedQuery` is the engine below it, a value without clock, store or HTTP.
`watch` evaluates a query over a source repeatedly; `Watch` does this over a store of streams. This package is above
`construct` and `streams`, and below servers and clients of HTTP.
"""

from __future__ import annotations

from construct_messages.continuous.streaming import continuous
from construct_messages.continuous.watching import Evaluation, Watch, watch
from construct_messages.continuous.windowed import Firing, WindowedQuery
from construct_messages.continuous.windows import Bounds, Compared, WindowOptions

__all__ = [
    "Bounds",
    "Compared",
    "Evaluation",
    "Firing",
    "Watch",
    "WindowOptions",
    "WindowedQuery",
    "continuous",
    "watch",
]
