"""Publishing: sends messages to a stream in batches, each with an idempotency key until it is acknowledged.

A server that supports keys appends a batch once, even if it arrives repeatedly. Messages are therefore neither lost nor
duplicated when an answer is lost, or, with a state file, when the publisher is killed and restarted. Idempotency-Key:
draft-ietf-httpapi-idempotency-key-header.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping
from contextlib import aclosing

from construct_messages.errors import UsageError
from construct_messages.feeds.delivery import BATCH, Delivery, StreamTarget, batches, check_batch
from construct_messages.feeds.state import Sent, read_state
from construct_messages.feeds.transport import IDLE_SECONDS, RETRIES, Settings
from construct_messages.logs.checking import Checker
from construct_messages.logs.lines.decoder import lines_read_back
from construct_messages.rdf.arguments import checked
from construct_messages.rdf.message import Message, of_lines
from construct_messages.rdf.single_use import each_of
from construct_messages.sparql.client.oauth import BearerToken


@checked
async def publish(
    messages: Iterable[Message] | AsyncIterable[Message],
    url: str,
    *,
    key: str | None = None,
    state: str | os.PathLike[str] | None = None,
    batch: int = BATCH,
    create: bool = False,
    token: BearerToken | None = None,
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
            rejected, or appends nothing.
        state: a file for the progress. If it exists, its batch in flight is sent again with the same key, and its
            acknowledged messages are skipped. Pass the same messages then.
        batch: the maximal number of messages per request.
        create: create the stream if it does not exist.
        token: a token, sent as `Authorization: Bearer`; or the credentials for fetching tokens.
        retries: the number of times that a request is repeated after temporary failures.
        idle_seconds: the maximal time without data from the server.
        media_type: the media type of records for a broker; None: N-Quads.
        options: see `subscribe`.

    Raises:
        UsageError: a state file of another stream, or of more messages than passed, or an object that is not a message.
        TermError: a term that is not RDF, or is not allowed in its position; the messages before it were sent.
        SourceError: the server rejects the request (see `response_status`), or cannot be reached.

    >>> import asyncio
    >>> asyncio.run(publish([Message(), Message()], f"{server}/streams/rooms", create=True))
    2
    """
    check_batch(batch)
    settings = Settings(
        token=token,
        retries=retries,
        idle_seconds=idle_seconds,
        create=create,
        repeatable=not (key is None and state is None),
        media_type=media_type,
        options=options or {},
    )
    target = StreamTarget(url, settings)
    known = None if state is None else read_state(state, Sent, url)
    delivery = Delivery(target, known or Sent.begin(url, key), state)

    def labelled(items: list[Message]) -> list[Message]:
        return [message.map_blanks(delivery.labels) for message in items]

    async with aclosing(target):
        await target.open()
        await delivery.finish()
        rest = _after(messages, delivery.sent.acknowledged, as_lines=target.writes_lines)
        async with aclosing(batches(rest, lambda: None, _size, batch)) as waiting:
            await delivery.deliver(waiting, labelled)
    return delivery.sent.acknowledged


async def _after(
    messages: Iterable[Message] | AsyncIterable[Message], skipped: int, *, as_lines: bool
) -> AsyncGenerator[Message]:
    """Yields the messages after those that were sent before; each is checked.

    With `as_lines`, they are created from their lines, which are then written once, while the previous batch is being
    sent.
    """
    checker = Checker(None)
    count = 0
    async with aclosing(each_of(messages)) as each:
        async for message in each:
            lines = None
            if as_lines and isinstance(message, Message):
                lines = lines_read_back(message)
            checker.check(message)  # also counts those that are
            count += 1
            if count > skipped:
                yield of_lines(lines or message.lines) if as_lines else message
    if count < skipped:
        raise UsageError(
            f"{skipped} messages were sent before, and there are {count}",
            hint="give the messages that were given first, or another state file",
        )


def _size(message: Message) -> int:
    return len(message.lines)
