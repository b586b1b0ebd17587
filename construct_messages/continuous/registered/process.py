"""A process that evaluates one registered query, as seen by the process that started it; `evaluator.py` runs in it.

asyncio only. `registry.py` commits its answers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple, Self, TypeAlias

import msgspec
from msgspec.structs import replace

from construct_messages.continuous.registered.registration import Registration
from construct_messages.continuous.transform import BATCH
from construct_messages.errors import SourceTimeout
from construct_messages.sparql.children import Child, Failure
from construct_messages.streams import Publication
from construct_messages.streams.store import StreamStore

# --- orders ---------------------------------------------------------------------------------------
# The orders to a process that evaluates a query, and its answers, as data; `process.py` and `evaluator.py` are the
# two ends.
#
# `sparql/children.py` sends them. No I/O here.

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
    """Returns the positions in the input streams of a query, by their names, from its saved state."""
    kept = saved.get(POSITIONS)
    return registration.after if kept is None else msgspec.json.decode(kept, type=dict[str, int])


# --- preview --------------------------------------------------------------------------------------
# The result of a query over streams: it is evaluated over their newest elements, in a process of its own, and
# nothing is stored.
#
# The evaluation is that of a registered query (`process.py`), which begins a few elements back. asyncio only; no
# HTTP.


class Preview(NamedTuple):
    """The result of a query, and the number of elements that it has read for that."""

    messages: Sequence[Publication]
    taken: int


async def preview(
    store: StreamStore,
    registration: Registration,
    limits: QueryLimits,
    *,
    static: str | None = None,
    elements: int,
    messages: int,
    seconds: float,
) -> Preview:
    """Evaluates a query over the newest elements of its streams, up to some messages or seconds.

    `elements` are read of each stream at most. Windows of arrival time that have closed by now are evaluated, too, as
    they are where the query is registered.
    """
    states = [store.state(name) for name in registration.after]
    last = {state.name: state.last for state in states}
    after = {state.name: max(state.first - 1, state.last - elements) for state in states}
    deadline = time.monotonic() + seconds
    given: list[Publication] = []
    taken = 0
    process, started = await QueryProcess.start(
        str(store.path), replace(registration, after=after), {}, limits, static
    )
    try:
        more = started.more or after != last
        while more and len(given) < messages and time.monotonic() < deadline:
            now = await store.anow() if started.timed else None
            stepped = await process.step(TakeElements(last, now))
            given += stepped.messages
            taken += stepped.taken
            more = stepped.more
    finally:
        await process.kill()
    return Preview(given[:messages], taken)


# --- process --------------------------------------------------------------------------------------

_HINT: Final = (
    "make windows or messages smaller, or give registered queries more memory (query_bytes)"
)
_START_SECONDS: Final = 60.0


@dataclass(frozen=True)
class QueryLimits:
    """The limits of a registered query.

    Args:
        seconds: the maximal time of one evaluation.
        memory_bytes: the memory of the process that evaluates it.
        output_bytes: the size of the messages of one evaluation.
        restart_seconds: the first pause before a process that ended is restarted.
    """

    seconds: float = 30.0
    memory_bytes: int = 1 << 29
    output_bytes: int = 1 << 26
    restart_seconds: float = 1.0


class QueryProcess:
    """A process, created by `start`."""

    def __init__(self, child: Child[Answer], limits: QueryLimits) -> None:
        self._child, self._limits = child, limits

    @classmethod
    async def start(
        cls,
        store: str,
        registration: Registration,
        saved: dict[str, bytes],
        limits: QueryLimits,
        static: str | None = None,
    ) -> tuple[Self, Stepped]:
        """Starts a process for a query; returns the process, and the position of the query."""
        child = Child[Answer](
            "construct_messages.continuous.registered.evaluator",
            reports=Answer,
            task="evaluated the query",
            hint=_HINT,
            last_line=True,
        )
        process = cls(child, limits)
        begin = Begin(
            store, registration.encode(), saved, limits.memory_bytes, limits.output_bytes, static
        )
        try:
            return process, await process._ask(begin, _START_SECONDS + limits.seconds)
        except BaseException:
            await process.kill()
            raise

    async def step(self, step: TakeElements) -> Stepped:
        """Makes the query take elements, see `TakeElements`."""
        return await self._ask(step, self._limits.seconds, SLICE_SECONDS)

    async def _ask(self, order: Order, seconds: float, before: float = 0.0) -> Stepped:
        """Sends an order, and waits for the answer: some seconds, and the time limit of an evaluation."""
        deadline = time.monotonic() + before + seconds
        try:
            await self._child.send(order, deadline)
            answer = await self._child.receive(deadline)
        except TimeoutError as error:
            raise SourceTimeout(
                f"the evaluation took more than {seconds:g} seconds",
                hint="make windows smaller, or raise the limit",
            ) from error
        if isinstance(answer, Failure):
            raise answer.error()
        return answer

    @contextmanager
    def tell_end(self, event: asyncio.Event) -> Iterator[None]:
        """Sets an event when the process ends; it must not be used meanwhile."""
        self._child.watch(event.set)
        try:
            yield
        finally:
            self._child.watch(None)

    async def check(self) -> None:
        """Checks that the idle process is running."""
        if not self._child.is_alive():
            raise await self._child.death()

    async def kill(self) -> None:
        """Kills the process."""
        await self._child.akill()
