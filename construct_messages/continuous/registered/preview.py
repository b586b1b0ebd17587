"""What a query over streams would give out: it is evaluated over their newest elements, in a process of its own, and
nothing is stored.

The evaluation is that of a registered query (`process.py`), which begins a few elements back. asyncio only; no HTTP.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from construct_messages.continuous.registered.orders import TakeElements
from construct_messages.continuous.registered.process import QueryLimits, QueryProcess
from construct_messages.continuous.registered.registration import Registration
from construct_messages.streams import Publication
from construct_messages.streams.store import StreamStore


class Preview(NamedTuple):
    """What a query would give out.

    Args:
        messages: in order.
        taken: how many elements it has read.
    """

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

    Windows of arrival time that have closed by now are evaluated, too, as they are where the query is registered.

    Args:
        store: of the streams.
        registration: the query; where it begins to read is not used.
        limits: of its process.
        static: the store directory of the static data.
        elements: how many of each stream are read at most.
        messages: how many messages are enough.
        seconds: after how long no further evaluation begins.

    Raises:
        ConstructMessagesError: see `QueryProcess`.
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
