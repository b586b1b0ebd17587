"""Continuous queries: registered once, with one message for each new solution as streams and sources go on.

`continuous` takes streams as iterables; `WindowedQuery` is the engine below it, a value without clock, store or HTTP.
`watch` evaluates a query over a source again and again; `Watch` is what it does over a store of streams.
This room is above `construct` and `streams`, and below what serves HTTP and asks servers.
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
