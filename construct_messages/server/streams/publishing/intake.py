"""Receives messages over a WebSocket: each frame is one, and is answered when it is stored durably.

RDF Messages, section 3 (WebSocket); RFC 6455. `push.py` writes the frames for followers. No store here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from aiohttp import WSCloseCode, WSMsgType, web

from construct_messages.rdf.errors import ConstructMessagesError, Forbidden
from construct_messages.server.streams.bounds import Holding
from construct_messages.server.streams.publishing.groups import Groups
from construct_messages.server.streams.push import close, drop_unread, frame, refuse, write_frames


class Answers(NamedTuple):
    """The result of publishing frames.

    Args:
        texts: the answers to the published ones, in order.
        refused: why the next one and later ones were not published; None: all were.
    """

    texts: Sequence[str]
    refused: ConstructMessagesError | None = None


Publish: TypeAlias = Callable[[Sequence[bytes]], Awaitable[Answers]]
"""Publishes the content of frames."""

_WAITING: Final = 1000  # frames that are read before earlier ones are stored


async def take_frames(
    request: web.Request,
    socket: web.WebSocketResponse,
    publish: Publish,
    end: Coroutine[Any, Any, ConstructMessagesError],
    hold: Holding,
    idle_seconds: float,
) -> None:
    """Publishes each frame, and answers in the order of the frames, until the client disconnects or must end.

    A rejected frame closes the WebSocket, and later frames are not accepted.

    Args:
        request: the request of the WebSocket.
        socket: the prepared WebSocket.
        publish: called with the frames that arrived while earlier ones were being published.
        end: returns why the publisher must end, once it must: frames that were accepted until then are answered.
        hold: counts the bytes of waiting frames.
        idle_seconds: the maximal time for which a client does not read its answers.
    """
    frames = Groups[bytes](_WAITING)
    reading = asyncio.create_task(_read(socket, frames, hold))
    stop = asyncio.create_task(_stop(end, frames, reading))
    try:
        while group := await frames.take():
            answers = await publish(group)
            hold.release(sum(map(len, group)))
            if answers.texts and not socket.closed:
                sent = b"".join([frame(text.encode(), text=True) for text in answers.texts])
                await write_frames(request, socket, sent, idle_seconds)
            if answers.refused is not None:
                await refuse(request, socket, answers.refused)
                return
    except ConstructMessagesError as error:
        await refuse(request, socket, error)
        return
    finally:
        for task in (stop, reading):
            task.cancel()
        await asyncio.gather(stop, reading, return_exceptions=True)
    if socket.closed:
        drop_unread(request)
    else:
        await close(request, socket, WSCloseCode.GOING_AWAY, "the server stops")


async def _read(socket: web.WebSocketResponse, frames: Groups[bytes], hold: Holding) -> None:
    try:
        async for each in socket:
            if each.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                data = each.data.encode() if each.type is WSMsgType.TEXT else bytes(each.data)
                hold(len(data))
                await frames.put(data, len(data))
    except ConstructMessagesError as error:
        frames.end(error)
    finally:
        frames.end()


async def _stop(
    end: Coroutine[Any, Any, ConstructMessagesError],
    frames: Groups[bytes],
    reading: asyncio.Task[None],
) -> None:
    reason = await end
    if isinstance(reason, Forbidden):
        frames.end(reason)
    reading.cancel()
