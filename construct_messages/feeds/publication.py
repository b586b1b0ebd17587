"""Publishing: sends messages to a stream in batches, each with an idempotency key until it is acknowledged.

A server that knows the key of a batch appends it once, however often it arrives. So no message is lost or duplicated
when an answer is lost, nor, with a state file, when the publisher is killed and started again. Idempotency-Key:
draft-ietf-httpapi-idempotency-key-header.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping
from contextlib import aclosing
from typing import Final, TypeAlias

import msgspec

from construct_messages.arguments import checked
from construct_messages.checking import Checker
from construct_messages.documents.contexts import CONTEXTS
from construct_messages.errors import UsageError
from construct_messages.feeds.opening import check_url, opened
from construct_messages.feeds.state import Sent, read_state, write_state
from construct_messages.feeds.subscription import IDLE_SECONDS, RETRIES
from construct_messages.feeds.transport import Settings
from construct_messages.labels import Labels
from construct_messages.logs import MESSAGE_BYTES
from construct_messages.message import Message
from construct_messages.single_use import each_of

BATCH: Final = 1000
"""How many messages a request has at most, by default."""

_BATCH_BYTES: Final = 4 << 20

_Messages: TypeAlias = Iterable[Message] | AsyncIterable[Message]


@checked
async def publish(
    messages: Iterable[Message] | AsyncIterable[Message],
    url: str,
    *,
    key: str | None = None,
    state: str | os.PathLike[str] | None = None,
    batch: int = BATCH,
    create: bool = False,
    token: str | None = None,
    retries: int = RETRIES,
    idle_seconds: float = IDLE_SECONDS,
    media_type: str | None = None,
    options: Mapping[str, str] | None = None,
) -> int:
    """Sends messages to a stream, in order, each once; returns the number of acknowledged messages.

    Waiting messages are sent immediately, so a slow source is not delayed until a batch is full. A label of a blank
    node means the same node in all messages.

    Args:
        messages: the messages, such as those of `read_log`. A blocking iterable blocks the event loop.
        url: the URL of the stream, of its input or of its inbox; or of a topic of a broker.
        key: the beginning of the keys of batches; None: random. Sending the same messages with the same key again is
            refused, or appends nothing.
        state: a file for the progress. If it exists, the messages that it counts are skipped, and the batch that was in
            flight is sent again with its key. Pass the same messages then.
        batch: the maximal number of messages per request.
        create: create the stream if it does not exist.
        token: a token, sent as `Authorization: Bearer`.
        retries: how often in a row a request is repeated after temporary failures.
        idle_seconds: the maximal time that a server may be silent.
        media_type: of the records that are sent to a broker; None: N-Quads.
        options: see `subscribe`.

    Raises:
        UsageError: a state file of another stream or of more messages than there are, or an object that is not a
            message.
        TermError: a term that is not RDF, or is not allowed in its position; the messages before it were sent.
        SourceError: the server refuses the request (see `response_status`), or cannot be reached.

    >>> asyncio.run(publish([Message(), Message()], f"{server}/streams/rooms", create=True))
    2
    """
    if batch < 1:
        raise UsageError(f"batch={batch} is less than 1")
    check_url(url)
    known = None if state is None else read_state(state, Sent, url)
    sent = known or Sent.begin(url, key)
    # labels that no other publisher has: the server keeps them, so that a node is one over all batches
    labels = Labels.at(sent.key).in_log
    settings = Settings(
        contexts=CONTEXTS,
        message_bytes=MESSAGE_BYTES,
        token=token,
        retries=retries,
        idle_seconds=idle_seconds,
        create=create,
        repeatable=not (key is None and state is None),
        media_type=media_type,
        options=options or {},
    )
    async with (
        opened(url, settings, write=True) as transport,
        aclosing(_batches(messages, sent, batch)) as batches,
    ):
        async for each in batches:
            # one write before each batch: it also records that those before were acknowledged
            sent = msgspec.structs.replace(sent, in_flight=len(each))
            if state is not None:
                write_state(state, sent)
            labelled = [message.map_blanks(labels) for message in each]
            await transport.write(labelled, f"{sent.key}-{sent.acknowledged + 1}")
            sent = msgspec.structs.replace(
                sent, acknowledged=sent.acknowledged + len(each), in_flight=0
            )
        if state is not None:
            write_state(state, sent)
    return sent.acknowledged


async def _batches(messages: _Messages, sent: Sent, most: int) -> AsyncGenerator[list[Message]]:
    """The messages after those that were acknowledged: first those that were under way, then all that are waiting.

    Raises the errors of the iterable of messages, after the messages before them.
    """
    waiting: asyncio.Queue[Message | BaseException | None] = asyncio.Queue(most)
    reading = asyncio.ensure_future(_read(messages, sent.acknowledged, waiting))
    try:
        held: list[Message] = []
        size, wanted = 0, sent.in_flight
        while isinstance(message := await waiting.get(), Message):
            held.append(message)
            size += len(message.lines)
            if len(held) < wanted:
                continue  # the batch that was under way is to be the same as it was
            if wanted or waiting.empty() or len(held) >= most or size >= _BATCH_BYTES:
                yield held
                held, size, wanted = [], 0, 0
        if wanted:
            raise _shorter(sent.acknowledged + wanted, sent.acknowledged + len(held))
        if held:
            yield held
        if message is not None:
            raise message
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def _read(
    messages: _Messages, skipped: int, waiting: asyncio.Queue[Message | BaseException | None]
) -> None:
    """Puts the messages into a queue, and at the end None or the error that ended them."""
    checker = Checker(None)
    count = 0
    try:
        async with aclosing(each_of(messages)) as each:
            async for message in each:
                checker.check(message)
                count += 1
                if count > skipped:
                    await waiting.put(message)
        if count < skipped:
            raise _shorter(skipped, count)
    except Exception as error:  # noqa: BLE001 - it is raised where the messages are taken
        await waiting.put(error)
    else:
        await waiting.put(None)


def _shorter(wanted: int, count: int) -> UsageError:
    return UsageError(
        f"{wanted} messages were sent before, and there are {count}",
        hint="give the messages that were given first, or another state file",
    )
