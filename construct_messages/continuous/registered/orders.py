"""The orders to a process that evaluates a query, and its answers, as data; `process.py` and `evaluator.py` are the two
ends.

How they are sent is in `processes/`. No I/O here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

from construct_messages.continuous.registered.registration import Registration
from construct_messages.continuous.transform import BATCH
from construct_messages.processes.failure import Failure
from construct_messages.streams import Publication

SLICE_SECONDS: Final = 1.0
"""After how long an answer ends, once the evaluation that is being made is done."""

SKIPPED: Final = "skipped"
"""The reason why an element is dropped that the query could not be evaluated with."""

POSITIONS: Final = "positions"
"""The key, in what is kept, of the sequences up to which the input streams are read."""

DROPPED: Final = "dropped"
"""The key of how many elements a query without windows has left out, by reason."""


class Begin(msgspec.Struct, tag=True, frozen=True):
    """Take up a query.

    Args:
        store: the path of the store.
        registration: the query, as `Registration.encode` returns it.
        saved: what was kept of its state.
        memory_bytes: how much this process may take for itself.
        output_bytes: how large the messages of one evaluation may be together.
        static: the store directory of the data beside the windows; None: there are none.
    """

    store: str
    registration: bytes
    saved: dict[str, bytes]
    memory_bytes: int
    output_bytes: int
    static: str | None = None


class TakeElements(msgspec.Struct, tag=True, frozen=True):
    """Evaluate over what came.

    Args:
        last: by the names of the input streams: the sequence up to which elements are read.
        now: after these, no element is to come that is earlier than this time in microseconds; None: unknown.
        most: how many elements to take at most.
        skip: leave the next element out, and do nothing else.
    """

    last: dict[str, int]
    now: int | None = None
    most: int = BATCH
    skip: bool = False


class Stepped(msgspec.Struct, tag=True, frozen=True):
    """The result of an order.

    Args:
        messages: what is given out, ready to be stored.
        state: what is to be kept in one transaction with it.
        positions: by the names of the input streams: the sequences up to which they are read now.
        taken: how many elements were read.
        dropped: how many of all elements so far entered no window, or were left out, by reason; see `OnDrop`.
        more: whether there is more to do: elements to read, or evaluations that are due.
        due: whether evaluations are due, before further elements are taken.
        timed: whether the query needs the current time, as windows of arrival time do.
        evaluations: how many were made.
        seconds: what they took, with reading elements.
        slowest: what the slowest of them took, in seconds.
        memory_bytes: what the process has in memory.
        plan: how solutions come about, see `WindowedQuery.plan`; empty without windows.
    """

    messages: list[Publication] = []
    state: dict[str, bytes] = {}
    positions: dict[str, int] = {}
    taken: int = 0
    dropped: dict[str, int] = {}
    more: bool = False
    due: bool = False
    timed: bool = False
    evaluations: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    memory_bytes: int = 0
    plan: str = ""


Order: TypeAlias = Begin | TakeElements
Answer: TypeAlias = Stepped | Failure
"""After a failure, the next order fails, too."""


def positions_of(registration: Registration, saved: Mapping[str, bytes]) -> dict[str, int]:
    """Up to where the input streams of a query are read, by their names.

    Args:
        registration: the query.
        saved: what was kept of its state.
    """
    kept = saved.get(POSITIONS)
    return registration.after if kept is None else msgspec.json.decode(kept, type=dict[str, int])
