"""Acknowledges a log while it is being sent: each line of the answer is about messages that are stored durably.

The answer begins before the request has ended, which HTTP allows (RFC 9110, section 7.5; RFC 9112, section 9.3). Its
lines are JSON. docs/decisions/099-logs-acknowledged-on-the-way.md
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import aclosing
from functools import partial
from typing import Any, Final, NamedTuple

from aiohttp import web

from construct_messages.logs import Decoder
from construct_messages.rdf.errors import ConstructMessagesError, LogError, ProtocolError
from construct_messages.rdf.files.unpacking import Unpacker
from construct_messages.rdf.message import Message
from construct_messages.server.http.body import body_pieces, damaged
from construct_messages.server.http.problems import problem_document
from construct_messages.server.streams.addresses import StreamIris
from construct_messages.server.streams.bounds import Holding
from construct_messages.server.streams.publishing.appending import Appended, Appender
from construct_messages.server.streams.publishing.groups import Groups
from construct_messages.server.streams.publishing.messages import refused_log
from construct_messages.server.streams.requests import InThread
from construct_messages.server.streams.resources import published_document

_WAITING: Final = 16  # pieces that are read before earlier ones are stored
_LARGE: Final = 1 << 16  # size of a piece that takes long to read, in bytes


class _Piece(NamedTuple):
    messages: list[Message]
    size: int


class LogReader:
    """Reads the messages of a body while it arrives.

    Args:
        request: a request whose body was not read yet.
        unpacker: decompresses the body; None: it is not compressed.
        decoder: the decoder of the log.
        hold: counts the bytes of waiting messages.
        in_thread: calls a function in a thread, so that it does not block the event loop.
    """

    def __init__(
        self,
        request: web.Request,
        unpacker: Unpacker | None,
        decoder: Decoder,
        hold: Holding,
        in_thread: InThread,
    ) -> None:
        self._content, self._decoder, self._hold = body_pieces(request, unpacker), decoder, hold
        self._in_thread = in_thread
        self._pieces = Groups[_Piece](_WAITING)
        self._size = 0

    async def take(self) -> list[Message]:
        """Returns all waiting messages, at least one; empty: the log has ended.

        Raises:
            ConstructMessagesError: no more can be read.
        """
        self._hold.release(self._size)
        self._size = 0
        pieces = await self._pieces.take()
        self._size = sum(piece.size for piece in pieces)
        return [message for piece in pieces for message in piece.messages]

    def end(self, error: ConstructMessagesError) -> None:
        """Stops reading: `take` raises an error after the waiting messages."""
        self._pieces.end(error)

    async def run(self) -> None:
        """Reads the whole body."""
        error: ConstructMessagesError | None = None
        try:
            async with aclosing(self._content) as pieces:
                async for piece in pieces:
                    self._hold(len(piece))
                    await self._put(partial(self._decoder.feed, piece), len(piece))
            await self._put(self._decoder.close, 0)
        except LogError as damage:
            error = refused_log(damage)
        except ConstructMessagesError as refused:
            error = refused
        except ConnectionError:
            error = damaged()
        self._pieces.end(error)

    async def _put(self, read: Callable[[], Iterator[Message]], size: int) -> None:
        messages, error = await self._in_thread(_read, read) if size > _LARGE else _read(read)
        if messages:
            await self._pieces.put(_Piece(messages, size), size)
        else:
            self._hold.release(size)
        if error is not None:
            raise error


def _read(
    read: Callable[[], Iterator[Message]],
) -> tuple[list[Message], ConstructMessagesError | None]:
    """Returns the messages up to the first rejected one, and its error."""
    messages: list[Message] = []
    try:
        for message in read():
            message.checked = True  # decoders only return RDF
            messages.append(message)
    except ConstructMessagesError as error:
        return messages, error
    return messages, None


async def acknowledged(
    reader: LogReader,
    appender: Appender,
    iris: StreamIris,
    *,
    end: Coroutine[Any, Any, ConstructMessagesError],
    pause_seconds: float,
) -> AsyncGenerator[bytes]:
    """Yields the lines of the answer: an empty one at the start and in each pause, one per group, and one for an error.

    Args:
        reader: reads the log.
        appender: appends its messages.
        iris: the IRIs of the stream.
        end: returns why the publisher must end, once it must: messages that were read until then are stored.
        pause_seconds: the length of a pause.
    """
    reading = asyncio.create_task(reader.run())
    stop = asyncio.create_task(_stop(end, reader, reading))
    try:
        yield b"\n"
        while True:
            try:
                async with asyncio.timeout(pause_seconds):
                    messages = await reader.take()
            except TimeoutError:
                yield b"\n"
                continue
            if not messages:
                break
            appended = await appender.append(messages)
            if appended.places:
                yield _line(iris, appended, appender.count)
            if appended.refused is not None:
                raise appended.refused
        if not appender.count:
            raise ProtocolError("the log has no message", status=422, hint="send at least one")
    except ConstructMessagesError as error:
        document = problem_document(error) | {"message": appender.count + 1}
        yield json.dumps(document).encode() + b"\n"
    finally:
        for task in (reading, stop):
            task.cancel()
        await asyncio.gather(reading, stop, return_exceptions=True)


async def _stop(
    end: Coroutine[Any, Any, ConstructMessagesError],
    reader: LogReader,
    reading: asyncio.Task[None],
) -> None:
    reason = await end
    reading.cancel()
    reader.end(reason)


def _line(iris: StreamIris, appended: Appended, count: int) -> bytes:
    document = published_document(iris, appended.sequences) if appended.sequences else {}
    if not all(appended.places):
        document["invalid"] = appended.places.count(False)
    document["messages"] = count
    return json.dumps(document).encode() + b"\n"
