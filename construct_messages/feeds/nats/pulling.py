"""Pulls the messages of a consumer of a stream in batches, one of which is always in flight.

https://docs.nats.io/nats-concepts/jetstream/consumers: requests for messages, and the statuses that answer them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

import msgspec
from nats.aio.msg import Msg

from construct_messages.feeds.nats.connection import IN_FLIGHT, NatsConnection
from construct_messages.rdf.errors import SourceError, shown

_BYTES: Final = 32 << 20  # the maximal size of a batch
_NANOSECONDS: Final = 1_000_000_000
_HEARTBEATS: Final = 4  # while the server may be silent
_HEARTBEAT, _EXPIRED = "100", "408"


async def pulled(
    connection: NatsConnection, stream: str, consumer: str, idle_seconds: float
) -> AsyncGenerator[list[Msg]]:
    """Yields the messages of a consumer endlessly: all received ones together, at least one.

    Args:
        connection: the connection to the server.
        stream: the name of the stream.
        consumer: the name of the consumer, which needs no acknowledgements.
        idle_seconds: the maximal time without data from the server.

    Raises:
        SourceError: the consumer or the connection has ended (`transient`).
        SourceTimeout: the server is silent.
    """
    client, inbox = connection.client, await connection.inbox()
    request = msgspec.json.encode(
        {
            "batch": IN_FLIGHT,
            "max_bytes": max(_BYTES, 2 * client.max_payload),
            "expires": int(idle_seconds * _NANOSECONDS),
            "idle_heartbeat": int(idle_seconds / _HEARTBEATS * _NANOSECONDS),
        }
    )
    wanted = 0
    while True:
        if wanted <= IN_FLIGHT // 2:
            wanted += IN_FLIGHT
            with connection.errors():
                await client.publish(
                    f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}", request, reply=inbox.subject
                )
        message: Msg | None = await inbox.next()
        messages: list[Msg] = []
        while message is not None and message.subject != inbox.subject:
            messages.append(message)
            message = inbox.waiting()
        if messages:
            wanted -= len(messages)
            yield messages
        if message is None:
            continue
        headers = message.headers or {}
        status = headers.get("Status")
        if status == _EXPIRED:  # the header has the number of missing messages
            wanted -= int(headers.get("Nats-Pending-Messages", wanted))
        elif status != _HEARTBEAT:
            raise SourceError(
                f"the consumer of {stream} has ended: {shown(headers.get('Description', status or ''))}",
                transient=True,
            )
