"""Continuous queries: registered once, with one message for each new solution as streams go on.

`continuous` takes streams as iterables; `WindowedQuery` is the engine below it, a value without clock, store or HTTP.
This room is above `construct` and `streams`, and below what serves HTTP and asks servers.
"""

from __future__ import annotations

from construct_messages.continuous.streaming import continuous
from construct_messages.continuous.windowed import Firing, WindowedQuery
from construct_messages.continuous.windows import Bounds, WindowOptions

__all__ = ["Bounds", "Firing", "WindowOptions", "WindowedQuery", "continuous"]
