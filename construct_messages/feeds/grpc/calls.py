"""The client side of gRPC calls: metadata, messages, and the errors for statuses. No service here.

grpclib implements HTTP/2, and this package implements messages, as in the server: docs/decisions/087-grpc.md. gRPC over
HTTP/2, https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from grpclib.config import Configuration
from grpclib.exceptions import StreamTerminatedError
from grpclib.metadata import USER_AGENT, decode_grpc_message
from grpclib.protocol import AbstractHandler, Stream
from grpclib.utils import Wrapper
from h2.config import H2Configuration
from h2.exceptions import H2Error
from multidict import CIMultiDict

from construct_messages.rdf.errors import SourceError, SourceTimeout, shown
from construct_messages.rdf.formats.media_types import GRPC
from construct_messages.rdf.wire import CallMetadata
from construct_messages.sparql.client.failures import unreachable
from construct_messages.sparql.client.grpc import (
    CODINGS,
    IDENTITY,
    PASSING,
    PIECE_BYTES,
    GrpcProtocol,
    GrpcStatus,
    MessageReader,
    ReceiveBuffer,
    configuration,
    http_status_of,
)
from construct_messages.sparql.client.timeouts import CONNECT_SECONDS
from construct_messages.sparql.client.tls import check_plain, check_tls

_PING_SECONDS: Final = 20.0  # the maximal time for the answer to a ping
_SMALLEST_FRAME: Final = 1 << 14  # the minimum of RFC 9113, section 6.5.2
_GONE: Final = 410
_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
"""The beginning of a connection, with empty SETTINGS (RFC 9113, section 3.4)."""
_LONGEST_PAUSE: Final = 60.0


class Address(NamedTuple):
    """The address of a server.

    Args:
        host: its name, or an IP address without brackets.
        port: its port.
        tls: the encryption of the connection; None: it is not encrypted.
        shown: the name of the topic in errors.
    """

    host: str
    port: int
    tls: ssl.SSLContext | None
    shown: str

    @property
    def authority(self) -> str:
        """The host and the port, in the form of requests."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class GrpcConnection:
    """A connection to a server, which is opened for the first call, and again after it is lost.

    Args:
        address: the address of the server.
        idle_seconds: the interval between pings. The connection is lost if the server does not answer.
    """

    def __init__(self, address: Address, idle_seconds: float) -> None:
        self._address = address
        self._kept = configuration(idle_seconds, _PING_SECONDS).__for_client__()
        self._frame_bytes = PIECE_BYTES
        self._protocol: _Protocol | None = None

    async def call(
        self, path: str, metadata: Mapping[str, str], coding: str, most: int
    ) -> ClientCall:
        """Begins a call.

        Args:
            path: the path of the method, as `/package.Service/Method`.
            metadata: the metadata of the request.
            coding: the coding of its compressed messages.
            most: the maximal size of a message of the answer, in bytes.

        Raises:
            SourceError: the server cannot be reached.
        """
        protocol = await self._connected()
        call = ClientCall(self._address.shown, most, self._shrink)
        headers = [
            (":method", "POST"),
            (":scheme", "http" if self._address.tls is None else "https"),
            (":path", path),
            (":authority", self._address.authority),
            ("te", "trailers"),
            ("content-type", f"{GRPC}+proto"),
            ("user-agent", USER_AGENT),
            ("grpc-accept-encoding", CODINGS),
            ("grpc-encoding", coding),
            *metadata.items(),
        ]
        await call.begin(protocol, headers)
        return call

    def close(self) -> None:
        """Closes the connection."""
        if self._protocol is not None:
            self._protocol.processor.close("closed")
            self._protocol = None

    def _shrink(self) -> None:
        """Requests smaller HTTP/2 frames from the next connection on, because no frame was complete when this one
        was lost.
        """
        self._frame_bytes = _SMALLEST_FRAME

    async def _connected(self) -> _Protocol:
        if self._protocol is not None and not self._protocol.calls.lost:
            return self._protocol
        host, port, tls, shown = self._address
        lost = self._protocol
        if tls is None and lost is not None and lost.connection.last_data_received is None:
            await check_plain(shown, host, port, "write grpcs: instead of grpc:")
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                transport, protocol = await loop.create_connection(
                    lambda: _Protocol(self._kept, self._frame_bytes),
                    host,
                    port,
                    ssl=tls,
                    server_hostname=host if tls else None,
                )
        except TimeoutError:
            raise SourceTimeout(
                f"{shown} took no connection within {CONNECT_SECONDS:g} seconds",
                hint="check the URL, and that the server runs",
                transient=True,
            ) from None
        except OSError as error:
            if tls is not None:
                await check_tls(shown, host, port, _PREFACE, "write grpc: instead of grpcs:")
            raise unreachable(shown, error) from error
        tunnel = transport.get_extra_info("ssl_object")
        if tunnel is not None and tunnel.selected_alpn_protocol() not in ("h2", None):
            protocol.processor.close("no HTTP/2")
            raise SourceError(f"{shown} does not speak HTTP/2", hint="check the port")
        self._protocol = protocol
        return protocol


class ClientCall:
    """A running call, as an async context manager, which resets it if it has not ended.

    Args:
        shown: the name of the topic in errors.
        most: the maximal size of a message of the answer, in bytes.
        unread: called if the call is aborted before more than the headers of the answer could be read.

    Attributes:
        trailers: the trailers, once the call has ended.
    """

    def __init__(self, shown: str, most: int, unread: Callable[[], None]) -> None:
        self._shown, self._most, self._unread = shown, most, unread
        self._waiting = _Waiting()
        self._messages: MessageReader | None = None
        self.trailers: CIMultiDict[str] = CIMultiDict()

    async def begin(self, protocol: _Protocol, headers: list[tuple[str, str]]) -> None:
        """Sends the headers of the request."""
        with self._reported():
            self._stream = protocol.connection.create_stream(wrapper=self._waiting)
            self._release = await self._stream.send_request(headers, _processor=protocol.processor)
            assert self._stream.id is not None  # it has begun
            inbox = ReceiveBuffer(partial(protocol.connection.ack, self._stream.id))
            self._inbox = self._waiting.inbox = inbox
            self._stream.buffer = inbox  # type: ignore[assignment] # it has the methods that are used

    async def send(self, data: bytes, *, end: bool) -> None:
        """Sends messages with their prefixes, see `framed`; `end`: these are the last ones."""
        with self._reported():
            await self._stream.send_data(data, end_stream=end)

    async def headers(self) -> CIMultiDict[str]:
        """Returns the headers of the answer.

        Raises:
            SourceError: the server rejects the call, or the connection is lost.
        """
        if self._stream.headers is None:
            with self._reported():
                await self._stream.recv_headers()
        headers = CIMultiDict(self._stream.headers or ())
        if headers.get(":status") != "200":
            status = headers.get(":status", "")
            raise SourceError(
                f"{self._shown} answered with status {shown(status)} of HTTP, and not as gRPC",
                hint="check that a gRPC server is at the port",
                response_status=int(status) if status.isdigit() else None,
                transient=status in ("429", "502", "503", "504"),
            )
        if "grpc-status" in headers:
            self.trailers = headers
            self._check_status(headers)
        elif not headers.get("content-type", "").startswith(GRPC):
            raise SourceError(
                f"{self._shown} answers with {shown(headers.get('content-type', ''))}"
            )
        coding = headers.get("grpc-encoding", IDENTITY)
        self._messages = MessageReader(self._inbox.take, coding, self._most, self._shown)
        return headers

    async def read(self) -> bytes | None:
        """Returns the next message of the answer; None: it has ended, and the status is OK.

        Raises:
            SourceError: the call failed, or the connection is lost.
            LimitExceeded: a message is too large.
        """
        if self._messages is None:
            await self.headers()
        assert self._messages is not None  # set together with the headers
        if self._messages.ready:
            return self._messages.ready.popleft()
        try:  # unlike other operations: messages that arrived before the end are read first
            message = await self._messages.read()
        except (StreamTerminatedError, H2Error) as error:
            raise self._broken(error) from error
        if message is None and not self.trailers:
            if self._stream.trailers is None:
                with self._reported():
                    await self._stream.recv_trailers()
            self.trailers = CIMultiDict(self._stream.trailers or ())
        if message is None:
            self._check_status(self.trailers)
        return message

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(H2Error):
            if self._stream.closable:
                self._stream.reset_nowait()
        self._release()

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Converts the end of the stream or of the connection to an error, or to the status that arrived before."""
        try:
            with self._waiting:
                yield
        except (StreamTerminatedError, H2Error) as error:
            raise self._broken(error) from error

    def _broken(self, error: Exception) -> SourceError:
        """Returns the error for an aborted call; raises that of its status, if one arrived before."""
        for headers in (self._stream.trailers, self._stream.headers):
            if headers is not None and "grpc-status" in (fields := CIMultiDict(headers)):
                self.trailers = fields
                self._check_status(fields)
        if self._stream.headers is not None and not self._stream.data_received:
            self._unread()
        return SourceError(
            f"{self._shown} broke off: {shown(str(error)) or type(error).__name__}",
            transient=True,
        )

    def _check_status(self, fields: CIMultiDict[str]) -> None:
        given = fields.get("grpc-status", "")
        try:
            status = GrpcStatus(int(given))
        except ValueError:
            status = GrpcStatus.UNKNOWN
        if status is GrpcStatus.OK:
            return
        detail = shown(decode_grpc_message(fields.get("grpc-message", "")))
        hint = fields.get(CallMetadata.HINT)
        pause = fields.get(CallMetadata.RETRY_AFTER, "")
        http_status = http_status_of(status)
        raise SourceError(
            f"{self._shown} answered with {status.name}" + (f": {detail}" if detail else ""),
            status=http_status if http_status == _GONE else None,
            response_status=http_status,
            hint=shown(decode_grpc_message(hint)) if hint is not None else None,
            retry_after=min(int(pause) / 1000, _LONGEST_PAUSE) if pause.isdecimal() else None,
            transient=status in PASSING or pause.isdecimal(),
        )


class _Protocol(GrpcProtocol):
    """A connection of HTTP/2."""

    def __init__(self, kept: Configuration, frame_bytes: int) -> None:
        self.calls = _Calls()
        http = H2Configuration(client_side=True, header_encoding="utf-8")
        super().__init__(self.calls, kept, http, frame_bytes)


class _Waiting(Wrapper):
    """Wakes the waiters of an aborted call, and ends its messages after those that have arrived.

    Attributes:
        inbox: the received data of the call, once it has begun.
    """

    inbox: ReceiveBuffer | None = None

    def cancel(self, error: Exception) -> None:
        """Handles the abort of the call."""
        super().cancel(error)
        if self.inbox is not None:
            self.inbox.fail(error)


class _Calls(AbstractHandler):
    """Handles events of the calls of a connection."""

    lost = False

    def accept(self, stream: Any, headers: Any, release_stream: Callable[[], None]) -> None:
        """Does nothing: servers do not begin calls."""

    def cancel(self, stream: Stream) -> None:
        """Does nothing: waiters of the stream get the error."""

    def close(self) -> None:
        """Records that the connection is lost."""
        self.lost = True
