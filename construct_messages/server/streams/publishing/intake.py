"""Messages that come over a WebSocket: each frame is one, and is answered when it is on disk.

RDF Messages, section 3 (WebSocket); RFC 6455. What frames are pushed to followers is in `push.py`. No store here.
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
    """What became of frames.

    Args:
        texts: the answers to those that were published, in order.
        refused: why the next one was not, nor any after it; None: all were.
    """

    texts: Sequence[str]
    refused: ConstructMessagesError | None = None


Publish: TypeAlias = Callable[[Sequence[bytes]], Awaitable[Answers]]
"""Publishes the content of frames."""

_WAITING: Final = 1000  # frames that are read before those before them are on disk


async def take_frames(
    request: web.Request,
    socket: web.WebSocketResponse,
    publish: Publish,
    stopping: asyncio.Event,
    hold: Holding,
) -> None:
    """Publishes each frame, and answers in the order of the frames, until the client leaves or the server stops.

    A frame that is refused closes the socket, and no later frame is taken.

    Args:
        request: that became the socket.
        socket: prepared.
        publish: is called with the frames that came while those before them were being published.
        stopping: set when the server stops: what was taken until then is answered.
        hold: counts the bytes of frames that wait.
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
