"""Forwards what waits in a store: to a stream elsewhere, to a log file, or to an output; each element once.

Before elements are sent, the store records which are sent to which target. So it can be found out after a kill whether
they arrived, and they are sent again if not. What has arrived is removed from the store.
docs/decisions/049-state-of-continuous-queries.md
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Final
from uuid import uuid4

import msgspec

from construct_messages.feeds.delivery.targets import Target
from construct_messages.streams import Element, StreamStore
from construct_messages.streams.element import messages_of

_KEY: Final = "sending"


class Sending(msgspec.Struct, frozen=True):
    """Elements on their way.

    Args:
        to: where.
        last: the sequence of the last of them.
        key: of the publication.
        size: bytes of the log before them; None: it is no file.
    """

    to: str
    last: int
    key: str
    size: int | None = None


async def forward(store: StreamStore, stream: str, owner: str, target: Target) -> int:
    """Sends the elements that wait in a stream, and removes them.

    Args:
        store: opened to write.
        stream: the name of the stream.
        owner: of the state in the store that records the messages on their way.
        target: where to.

    Returns:
        How many were sent.

    Raises:
        SourceError: the target refuses, or cannot be reached for too long; what was not sent waits.
        CannotWrite: the target cannot be written.
        UsageError: a log is not as it was left.
    """
    count = await _finish(store, stream, owner, target)
    async with aclosing(store.apages(stream)) as pages:
        async for page in pages:
            sending = Sending(target.name, page[-1].sequence, uuid4().hex, target.size)
            await store.acommit(owner, {_KEY: msgspec.json.encode(sending)})
            await target.send(messages_of(page), sending.key, sending.size)
            await store.atrim(stream, sending.last)
            count += len(page)
    return count


async def _finish(store: StreamStore, stream: str, owner: str, target: Target) -> int:
    """Sees to what was on its way when an earlier run ended."""
    kept = (await store.asaved_state(owner)).get(_KEY)
    sending = None if kept is None else msgspec.json.decode(kept, type=Sending)
    if sending is None or sending.last < store.state(stream).first:
        return 0
    elements: list[Element] = []
    async with aclosing(store.aread(stream)) as waiting:
        async for element in waiting:
            if element.sequence <= sending.last:
                elements.append(element)
    # another target than that of the earlier run has none of them
    await target.send(
        messages_of(elements),
        sending.key,
        sending.size if sending.to == target.name else target.size,
    )
    await store.atrim(stream, sending.last)
    return len(elements)
