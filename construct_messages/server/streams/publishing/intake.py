"""Receives messages over a WebSocket: each frame is one, and is answered when it is stored durably.

RDF Messages, section 3 (WebSocket); RFC 6455. `push.py` writes the frames for followers. No store here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from aiohttp import WSCloseCode, WSMsgType, web

from construct_messages.errors import ConstructMessagesError
from construct_messages.server.streams.bounds import Holding
from construct_messages.server.streams.publishing.groups import Groups
from construct_messages.server.streams.push import close, frame, write_frames


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
    stopping: asyncio.Event,
    hold: Holding,
) -> None:
    """Publishes each frame, and answers in the order of the frames, until the client disconnects or the server stops.

    A rejected frame closes the WebSocket, and later frames are not accepted.

    Args:
        request: the request of the WebSocket.
        socket: the prepared WebSocket.
        publish: called with the frames that arrived while earlier ones were being published.
        stopping: set when the server stops: frames that were accepted until then are answered.
        hold: counts the bytes of waiting frames.
    """
    frames = Groups[bytes](_WAITING)
    reading = asyncio.create_task(_read(socket, frames, hold))
    stop = asyncio.create_task(_stop_reading(stopping, reading))
    try:
        while group := await frames.take():
            answers = await publish(group)
            hold.release(sum(map(len, group)))
            if answers.texts and not socket.closed:
                sent = b"".join([frame(text.encode(), text=True) for text in answers.texts])
                await write_frames(request, socket, sent)
            if answers.refused is not None:
                await close(socket, answers.refused)
                return
    except ConstructMessagesError as error:
        await close(socket, error)
        return
    finally:
        for task in (stop, reading):
            task.cancel()
        await asyncio.gather(stop, reading, return_exceptions=True)
    if not socket.closed:
        await socket.close(code=WSCloseCode.GOING_AWAY, message=b"the server stops")


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


async def _stop_reading(stopping: asyncio.Event, reading: asyncio.Task[None]) -> None:
    await stopping.wait()
    reading.cancel()
