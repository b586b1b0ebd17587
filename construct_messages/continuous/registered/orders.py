"""The orders to a process that evaluates a query, and its answers, as data; `process.py` and `evaluator.py` are the two
ends.

`sparql/children.py` sends them. No I/O here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

from construct_messages.continuous.registered.registration import Registration
from construct_messages.continuous.transform import BATCH
from construct_messages.sparql.children import Failure
from construct_messages.streams import Publication

SLICE_SECONDS: Final = 1.0
"""The seconds after which an answer ends, with the current evaluation."""

SKIPPED: Final = "skipped"
"""The reason for dropping an element with which the evaluation fails."""

POSITIONS: Final = "positions"
"""The key in the saved state of the positions in the input streams."""

DROPPED: Final = "dropped"
"""The key in the saved state of the numbers of elements that a query without windows has left out, by reason."""


class Begin(msgspec.Struct, tag=True, frozen=True):
    """Start a query.

    Args:
        store: the path of the store.
        registration: the query, as `Registration.encode` returns it.
        saved: its saved state.
        memory_bytes: the limit of this process's own memory.
        output_bytes: the maximal size of all messages of one evaluation.
        static: the store directory of the static data, or None.
    """

    store: str
    registration: bytes
    saved: dict[str, bytes]
    memory_bytes: int
    output_bytes: int
    static: str | None = None


class TakeElements(msgspec.Struct, tag=True, frozen=True):
    """Evaluate over new elements.

    Args:
        last: the sequence up to which elements are read, by the names of the input streams.
        now: the time, in microseconds, before which no further element will arrive; None: unknown.
        most: the maximal number of elements to take.
        skip: only leave out the next element.
    """

    last: dict[str, int]
    now: int | None = None
    most: int = BATCH
    skip: bool = False


class Stepped(msgspec.Struct, tag=True, frozen=True):
    """The result of an order.

    Args:
        messages: the output, in stored form.
        state: the state to save in the same transaction.
        positions: the sequences up to which the input streams have been read, by their names.
        taken: the number of elements read.
        dropped: the number of all elements so far that entered no window or were left out, by reason; see `OnDrop`.
        more: whether there is more work: elements to read, or due evaluations.
        due: whether evaluations are due before further elements are taken.
        timed: whether the query needs the current time, as windows of arrival time do.
        evaluations: the number of evaluations.
        seconds: their time, including reading elements.
        slowest: the time of the slowest one, in seconds.
        memory_bytes: the memory of the process.
        plan: see `WindowedQuery.plan`; empty without windows.
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
    """Returns the positions in the input streams of a query, by their names.

    Args:
        registration: the query.
        saved: its saved state.
    """
    kept = saved.get(POSITIONS)
    return registration.after if kept is None else msgspec.json.decode(kept, type=dict[str, int])
