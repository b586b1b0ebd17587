"""The server side of gRPC calls: metadata, messages, and one status at the end. No service here.

grpclib implements HTTP/2: connections, flow control, pings. `sparql/client/grpc.py` implements messages:
grpclib neither decompresses them nor limits their size, and sends each one separately. docs/decisions/087-grpc.md

gRPC over HTTP/2, https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias

from grpclib.config import Configuration
from grpclib.metadata import Deadline, encode_grpc_message
from grpclib.protocol import AbstractHandler, H2Protocol, Stream
from h2.config import H2Configuration
from h2.exceptions import H2Error
from multidict import CIMultiDict

from construct_messages.rdf.formats.media_types import GRPC
from construct_messages.sparql.client.grpc import (
    CODINGS,
    GZIP,
    IDENTITY,
    PIECE_BYTES,
    GrpcProtocol,
    GrpcStatus,
    MessageReader,
    ReceiveBuffer,
    configuration,
)

_WINDOW: Final = 1 << 20
"""The maximal number of received bytes that wait in memory, per connection."""

Answer: TypeAlias = "Callable[[ServerCall], Awaitable[None]]"


class ServerCall:
    """A call that is being answered.

    Args:
        stream: the stream of HTTP/2.
        inbox: the received data.
        headers: the request headers.

    Attributes:
        path: the path of the method, as `/package.Service/Method`.
        headers: the request headers, including metadata.
        client: the address of the client; None: unknown.
    """

    def __init__(
        self, stream: Stream, inbox: ReceiveBuffer, headers: list[tuple[str, str]]
    ) -> None:
        self._stream, self._inbox = stream, inbox
        self.headers = CIMultiDict(headers)
        self.path = self.headers.get(":path", "")
        address = stream.connection.get_peer().addr()
        self.client: str | None = address[0] if address else None
        self._deadline = Deadline.from_headers(headers)
        self._began = self._ended = False

    @property
    def seconds(self) -> float | None:
        """The remaining time until the client's deadline, in seconds; None: no deadline."""
        return None if self._deadline is None else self._deadline.time_remaining()

    @property
    def compresses(self) -> bool:
        """Whether the client compresses its own messages with gzip, and accepts compressed ones."""
        return self.headers.get("grpc-encoding") == GZIP and GZIP in self.headers.get(
            "grpc-accept-encoding", ""
        )

    def messages(self, most: int) -> MessageReader:
        """Returns a reader of the messages of the request, of up to `most` bytes each."""
        coding = self.headers.get("grpc-encoding", IDENTITY)
        return MessageReader(self._inbox.take, coding, most, "the client")

    async def begin(self, metadata: Mapping[str, str], coding: str = IDENTITY) -> None:
        """Sends the headers of the answer.

        Args:
            metadata: the metadata of the answer.
            coding: the coding of its compressed messages.
        """
        self._began = True
        headers = [(":status", "200"), ("content-type", f"{GRPC}+proto")]
        headers += [("grpc-encoding", coding), ("grpc-accept-encoding", CODINGS)]
        await self._stream.send_headers([*headers, *metadata.items()])

    async def send(self, data: bytes) -> None:
        """Sends messages with their prefixes, see `framed`. Waits until the client accepts them."""
        await self._stream.send_data(data)

    async def end(
        self, status: GrpcStatus, text: str = "", metadata: Mapping[str, str] | None = None
    ) -> None:
        """Ends the call with a status; only the first status is sent."""
        if self._ended:
            return
        self._ended = True
        headers = [("grpc-status", str(status.value))]
        if not self._began:
            headers = [
                (":status", "200"),
                ("content-type", f"{GRPC}+proto"),
                ("grpc-accept-encoding", CODINGS),
                *headers,
            ]
        if text:
            headers.append(("grpc-message", encode_grpc_message(text)))
        headers += ((name, encode_grpc_message(value)) for name, value in (metadata or {}).items())
        with suppress(H2Error):  # the client has left
            await self._stream.send_headers(headers, end_stream=True)
            if self._stream.closable:
                self._stream.reset_nowait()  # data that it still sends is not read

    def abort(self) -> None:
        """Resets the stream, without a status."""
        self._ended = True
        with suppress(H2Error):
            if self._stream.closable:
                self._stream.reset_nowait()


class CallServer:
    """Accepts HTTP/2 connections, and answers each call in its own task.

    Args:
        answer: answers a call; it is cancelled when the client leaves.
        ping_seconds: the interval between pings to each client.
        silent_seconds: the maximal time for the answer to a ping; then the connection is closed.
    """

    def __init__(self, answer: Answer, *, ping_seconds: float, silent_seconds: float) -> None:
        self._answer = answer
        self._configuration = configuration(
            ping_seconds,
            silent_seconds,
            http2_connection_window_size=_WINDOW,
            http2_stream_window_size=_WINDOW,
        ).__for_server__()
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None) -> tuple[str, int]:
        """Starts to accept connections; returns the host and the port.

        Args:
            host, port: the address to listen at.
            tls: the encryption of connections; None: they are not encrypted.

        Raises:
            OSError: the server cannot listen at the address.
        """
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), host, port, ssl=tls)
        address = self._server.sockets[0].getsockname()
        return address[0], address[1]

    def stop(self) -> None:
        """Accepts no further connections and calls."""
        if self._server is not None:
            self._server.close()

    async def aclose(self, seconds: float) -> None:
        """Waits for calls up to a time, cancels the remaining ones, and closes the connections."""
        self.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in (rest := set(self._tasks)):
            task.cancel("the server stops")
        if rest:
            await asyncio.wait(rest)
        for connection in list(self._connections):
            connection.processor.close("the server stops")
        if self._server is not None:
            await self._server.wait_closed()

    # --- called by connections ---

    def accept(
        self, stream: Stream, headers: list[tuple[str, str]], release: Callable[[], None]
    ) -> asyncio.Task[None]:
        """Answers a call in a task."""
        assert stream.id is not None  # the call has begun
        inbox = ReceiveBuffer(partial(stream.connection.ack, stream.id))
        stream.buffer = inbox  # type: ignore[assignment] # it has the methods that are used
        task = asyncio.create_task(self._run(stream, inbox, headers, release))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def opened(self, connection: _Connection) -> H2Protocol:
        """Adds a connection."""
        self._connections.add(connection)
        return connection

    def lost(self, connection: _Connection) -> None:
        """Removes a connection."""
        self._connections.discard(connection)

    @property
    def configuration(self) -> Configuration:
        """The configuration of connections."""
        return self._configuration

    async def _run(
        self,
        stream: Stream,
        inbox: ReceiveBuffer,
        headers: list[tuple[str, str]],
        release: Callable[[], None],
    ) -> None:
        try:
            fields = dict(headers)
            if fields.get(":method") != "POST" or not fields.get("content-type", "").startswith(
                GRPC
            ):
                await stream.send_headers([(":status", "415")], end_stream=True)
                return
            if self._server is None or not self._server.is_serving():
                await _refuse(stream, GrpcStatus.UNAVAILABLE, "the server stops")
                return
            try:
                call = ServerCall(stream, inbox, headers)
            except ValueError:
                await _refuse(stream, GrpcStatus.INVALID_ARGUMENT, "grpc-timeout is no time")
                return
            await self._answer(call)
        except H2Error:
            pass  # the client has left
        finally:
            release()


async def _refuse(stream: Stream, status: GrpcStatus, text: str) -> None:
    headers = [(":status", "200"), ("content-type", f"{GRPC}+proto")]
    headers += [("grpc-status", str(status.value)), ("grpc-message", text)]
    await stream.send_headers(headers, end_stream=True)


class _Connection(GrpcProtocol):
    """A connection of a client.

    Args:
        server: the server that it belongs to.
    """

    def __init__(self, server: CallServer) -> None:
        self._server = server
        super().__init__(
            _Calls(server),
            server.configuration,
            H2Configuration(client_side=False, header_encoding="ascii"),
            PIECE_BYTES,
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._server.opened(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._server.lost(self)
        super().connection_lost(exc)


class _Calls(AbstractHandler):
    """The calls of a connection."""

    def __init__(self, server: CallServer) -> None:
        self._server = server
        self._tasks: dict[Stream, asyncio.Task[None]] = {}

    def accept(self, stream: Stream, headers: Any, release_stream: Callable[[], None]) -> None:
        """Starts to answer a call."""
        task = self._tasks[stream] = self._server.accept(stream, headers, release_stream)
        task.add_done_callback(lambda _: self._tasks.pop(stream, None))

    def cancel(self, stream: Stream) -> None:
        """Cancels a call that the client has reset."""
        if (task := self._tasks.get(stream)) is not None:
            task.cancel()

    def close(self) -> None:
        """Cancels all calls after the connection is lost."""
        for task in list(self._tasks.values()):
            task.cancel()
