"""Messages that come over a WebSocket: each frame is one, and is answered when it is on disk.

RDF Messages, section 3 (WebSocket); RFC 6455. What frames are pushed to followers is in `push.py`. No store here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from aiohttp import WSCloseCode, WSMsgType, web

from construct_messages.errors import ConstructMessagesError
from construct_messages.server.streams.push import close

Publish: TypeAlias = Callable[[bytes], Awaitable[Awaitable[str]]]
"""Takes the content of a frame, and returns an awaitable for its answer; the next frame is read meanwhile."""

_UNDER_WAY: Final = (
    100  # frames: they are committed together, so that a publisher need not wait for each
)


async def take_frames(
    socket: web.WebSocketResponse, publish: Publish, stopping: asyncio.Event
) -> None:
    """Publishes each frame, and answers in the order of the frames, until the client leaves or the server stops.

    A frame that is refused closes the socket, and no later frame is taken.

    Args:
        socket: prepared.
        publish: is called with one frame after the other.
        stopping: set when the server stops: what was taken until then is answered.
    """
    answers: asyncio.Queue[Awaitable[str] | None] = asyncio.Queue()
    places = asyncio.Semaphore(_UNDER_WAY)
    reading = asyncio.create_task(_read(socket, publish, answers, places))
    stop = asyncio.create_task(_stop_reading(stopping, reading))
    try:
        await _answer(socket, answers, places)
    finally:
        for task in (stop, reading):
            task.cancel()
        await asyncio.gather(stop, reading, return_exceptions=True)
        # they are submitted: their results are not used, but all of them are awaited
        left = [answer for answer in _rest(answers) if answer is not None]
        await asyncio.gather(*left, return_exceptions=True)
    if not socket.closed:
        await socket.close(code=WSCloseCode.GOING_AWAY, message=b"the server stops")


async def _read(
    socket: web.WebSocketResponse,
    publish: Publish,
    answers: asyncio.Queue[Awaitable[str] | None],
    places: asyncio.Semaphore,
) -> None:
    try:
        async for frame in socket:
            if frame.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                await places.acquire()
                data = frame.data.encode() if frame.type is WSMsgType.TEXT else bytes(frame.data)
                answers.put_nowait(await publish(data))
    except ConstructMessagesError as error:
        refused: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        refused.set_exception(error)
        answers.put_nowait(refused)
    finally:
        answers.put_nowait(None)


async def _stop_reading(stopping: asyncio.Event, reading: asyncio.Task[None]) -> None:
    await stopping.wait()
    reading.cancel()


async def _answer(
    socket: web.WebSocketResponse,
    answers: asyncio.Queue[Awaitable[str] | None],
    places: asyncio.Semaphore,
) -> None:
    while (answer := await answers.get()) is not None:
        try:
            text = await answer
        except ConstructMessagesError as error:
            await close(socket, error)
            return
        finally:
            places.release()
        if not socket.closed:
            await socket.send_str(text)


def _rest(answers: asyncio.Queue[Awaitable[str] | None]) -> list[Awaitable[str] | None]:
    return [answers.get_nowait() for _ in range(answers.qsize())]
