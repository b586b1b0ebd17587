"""Relays: write the messages of a stream or a log to another one. `relay` is the public function.

Each side is opened by its URL, and used as a `Transport` or a `Target`, independently of the broker.
`delivery.py` has the guarantees for each pair.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any, cast

from construct_messages.feeds.delivery import (
    BATCH,
    STANDARD,
    Delivery,
    OutputTarget,
    ReadableLog,
    batches,
    check_batch,
    labelled,
    refuse_stream_options,
    size_of,
    target_of,
)
from construct_messages.feeds.state import Sent, read_state
from construct_messages.feeds.subscription import checked_start, reading, trusted
from construct_messages.feeds.transport import IDLE_SECONDS, RETRIES, Settings, Start, Transport
from construct_messages.logs import MESSAGE_BYTES
from construct_messages.logs.documents import KnownContexts
from construct_messages.logs.reading import LogReader, read_log
from construct_messages.rdf.arguments import checked
from construct_messages.rdf.files.output import refuse_input
from construct_messages.rdf.message import Message
from construct_messages.sparql.client.oauth import BearerToken
from construct_messages.streams import Element


@checked
async def relay(
    source: str | os.PathLike[str] | LogReader,
    target: str | os.PathLike[str] | IO[bytes],
    *,
    after: int | None = None,
    last: int | None = None,
    since: datetime | None = None,
    follow: bool = False,
    via: str | None = None,
    state: str | os.PathLike[str] | None = None,
    batch: int = BATCH,
    create: bool = False,
    contexts: Mapping[str, Any] | None = None,
    origins: Sequence[str] = (),
    dead_letters: str | os.PathLike[str] | None = None,
    source_token: BearerToken | None = None,
    source_media_type: str | None = None,
    source_options: Mapping[str, str] | None = None,
    target_token: BearerToken | None = None,
    target_media_type: str | None = None,
    target_options: Mapping[str, str] | None = None,
    message_bytes: int = MESSAGE_BYTES,
    retries: int = RETRIES,
    idle_seconds: float = IDLE_SECONDS,
    poll_seconds: float = 1.0,
    transform: Callable[[list[Message]], Iterable[Message]] | None = None,
    on_batch: Callable[[int], object] | None = None,
) -> int:
    """Writes the messages of a stream or a log to another one, in order; returns the number of messages that the target
    acknowledged.

    Waiting messages are written together, and acknowledged to the source when the target has acknowledged them. No
    message is lost. With `state`, each is written once if the source can be read again from a position, and the target
    recognises a batch that is written again; see docs/reference/streams/relay.md for each pair. A label of a blank node
    means the same node in all messages.

    Args:
        source: the URL of a stream, see `subscribe`; a log file; or a log that is being read.
        target: the URL of a stream, see `publish`; a log file in a text format, which grows; or a binary file.
        after: start after this sequence, or after this number of messages of a log; see `subscribe`.
        last: start with this number of newest elements.
        since: start with elements stored at this time or later.
        follow: wait for more elements; otherwise end after the newest.
        via: the transport of the source, see `subscribe`.
        state: a file for the progress. It has the position in the source and the batch in flight, so that after a kill
            the same batch is written again under the same key, and reading continues after it.
        batch: the maximal number of messages that are written together.
        create: create the stream of the target if it does not exist.
        contexts, origins, dead_letters, message_bytes, poll_seconds: options of the source, see `subscribe`.
        source_token, target_token: a token for each side, or the credentials for fetching tokens.
        source_media_type: the media type of a source's messages without one; the format of a log.
        target_media_type: the media type of messages for a broker; the format of a log.
        source_options, target_options: the options of each transport, see `subscribe`.
        retries, idle_seconds: for both sides, see `subscribe`.
        transform: returns the messages to write for those of a batch, such as `construct_messages.transform` with a
            query; None: the same.
        on_batch: called after each batch with the number of messages so far.

    Raises:
        UsageError: contradicting arguments, the state file of another relay, or a state for a source that cannot be
            continued (MQTT without the option `identifier`).
        SourceError: a side rejects a request, or cannot be reached.
        LogError, LimitExceeded: the source sends something that is not a message, or is too large.
        CannotWrite: the target or the state cannot be written.

    >>> import asyncio, tempfile
    >>> from construct_messages.feeds import publish
    >>> async def main(stream, folder):
    ...     await publish([Message(), Message()], stream, create=True)
    ...     first = await relay(stream, f"{folder}/log.nq", state=f"{folder}/state")
    ...     await publish([Message()], stream)
    ...     return first, await relay(stream, f"{folder}/log.nq", state=f"{folder}/state")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     asyncio.run(main(f"{server}/streams/rooms", folder))
    (2, 3)
    """
    check_batch(batch)
    reads = Settings(
        contexts=KnownContexts(contexts),
        token=source_token,
        origins=trusted(origins),
        message_bytes=message_bytes,
        retries=retries,
        idle_seconds=idle_seconds,
        poll_seconds=poll_seconds,
        media_type=source_media_type,
        options=source_options or {},
    )
    start = checked_start(Start(after=after, last=last, since=since), follow=follow)
    name, opening = _source(source, reads, via=via, follow=follow, dead_letters=dead_letters)
    writes = replace(
        reads,
        token=target_token,
        media_type=target_media_type,
        options=target_options or {},
        create=create,
        repeatable=state is not None,
    )
    to = target_of(target, writes)
    if to.name != STANDARD:
        read = source.name if isinstance(source, LogReader) else source
        refuse_input(to.name, [place for place in (read, state) if place])
    known = None if state is None else read_state(state, Sent, to.name, source=name)
    if known is not None and known.position is not None:
        start = Start(checkpoint=known.position)
    delivery = Delivery(to, known or Sent.begin(to.name, source=name), state, on_batch)

    def messages(elements: list[Element]) -> list[Message]:
        read = labelled(elements, delivery.labels)
        return read if transform is None else list(transform(read))

    async with aclosing(to):
        await to.open()
        await delivery.finish()
        async with opening as transport, aclosing(transport.read(start, follow=follow)) as elements:
            if state is not None:
                transport.check_resumable()
            await _deliver(delivery, transport, elements, messages, start, batch)
        if isinstance(to, OutputTarget):
            to.finish()
    return delivery.sent.acknowledged


async def _deliver(
    delivery: Delivery,
    transport: Transport,
    elements: AsyncGenerator[Element | None],
    messages: Callable[[list[Element]], list[Message]],
    start: Start,
    batch: int,
) -> None:
    """Delivers the elements of a source in batches, and acknowledges them to it."""
    await anext(elements)  # None: the start position is known
    await delivery.begin(transport.position)
    # the target acknowledged it, but it may not be acknowledged to the source
    if start.checkpoint is not None:
        await transport.acknowledge(start.checkpoint)
    rest = cast(AsyncGenerator[Element], elements)  # None only comes first
    gathered = batches(rest, lambda: transport.position, size_of, batch)
    async with aclosing(gathered) as waiting:
        await delivery.deliver(waiting, messages, transport.acknowledge)


def _source(
    source: str | os.PathLike[str] | LogReader,
    settings: Settings,
    *,
    via: str | None,
    follow: bool,
    dead_letters: str | os.PathLike[str] | None,
) -> tuple[str, AbstractAsyncContextManager[Transport]]:
    """Returns the name of a source, and a function that opens it."""
    if isinstance(source, str) and "://" in source:
        return source, reading(source, settings, via=via, follow=follow, dead_letters=dead_letters)
    name = STANDARD if isinstance(source, LogReader) else str(Path(source).absolute())
    refuse_stream_options(
        name,
        via=via,
        dead_letters=dead_letters,
        token=settings.token,
        options=settings.options,
    )
    if isinstance(source, LogReader):
        return name, aclosing(ReadableLog(source, name))
    log = read_log(
        source,
        settings.media_type,
        contexts=settings.contexts,
        message_bytes=settings.message_bytes,
        keep_labels=True,
    )
    return name, aclosing(ReadableLog(log, name))
