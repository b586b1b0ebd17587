"""Streams of Jelly's gRPC service: frames are elements, and a batch is a call that publishes.

Jelly 1.1, gRPC streaming protocol; RDF Messages, section 3. Servers of this package send sequences with frames
(`rdf/wire.py`); frames of other servers are counted.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple, Self, TypeVar
from urllib.parse import unquote, urlsplit

from grpclib.config import Configuration
from grpclib.const import Status
from grpclib.exceptions import StreamTerminatedError
from grpclib.metadata import USER_AGENT, decode_grpc_message
from grpclib.protocol import AbstractHandler, Stream
from grpclib.utils import Wrapper
from h2.config import H2Configuration
from h2.exceptions import H2Error
from multidict import CIMultiDict

from construct_messages.errors import (
    LimitExceeded,
    SourceError,
    SourceTimeout,
    UsageError,
    shown,
)
from construct_messages.feeds.connections import (
    StreamPosition,
    attempts_of,
    check_port,
    over_connections,
)
from construct_messages.feeds.state import (
    Checkpoint,
    check_next,
    is_sequence,
)
from construct_messages.feeds.table import address_of
from construct_messages.feeds.transport import Settings, Start, Transport, option_values
from construct_messages.logs import DecoderOptions
from construct_messages.logs.jelly.encoder import FrameWriter
from construct_messages.logs.jelly.service import (
    PREFERRED_OPTIONS,
    PUBLISH,
    SUBSCRIBE,
    FrameReader,
    RdfStreamSubscribe,
    find_metadata,
    read_metadata,
)
from construct_messages.rdf.formats.media_types import GRPC
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.wire import CallMetadata, FrameMetadata
from construct_messages.sparql.client.grpc import (
    CODINGS,
    FRAME_BYTES,
    GZIP,
    IDENTITY,
    PASSING,
    PIECE_BYTES,
    GrpcProtocol,
    MessageReader,
    ReceiveBuffer,
    configuration,
    framed,
    http_status_of,
)
from construct_messages.sparql.client.oauth import BearerToken, ClientCredentials, tokens_for
from construct_messages.sparql.client.responses import unreachable
from construct_messages.sparql.client.retries import CONNECT_SECONDS
from construct_messages.sparql.client.tls import TLS_OPTIONS, tls_context
from construct_messages.streams import Element
from construct_messages.streams.publication import received

# --- calls ----------------------------------------------------------------------------------------
# The client side of gRPC calls: metadata, messages, and the errors for statuses. No service here.
#
# grpclib implements HTTP/2, and this package implements messages, as in the server: docs/decisions/087-grpc.md. gRPC
# over HTTP/2, https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md.

_PING_SECONDS: Final = 20.0  # the maximal time for the answer to a ping
_SMALLEST_FRAME: Final = 1 << 14  # the minimum of RFC 9113, section 6.5.2
_GONE: Final = 410
_LONGEST_PAUSE: Final = 60.0


class Address(NamedTuple):
    """The address of a server."""

    host: str  # its name, or an IP address without brackets
    port: int
    tls: ssl.SSLContext | None  # the encryption of the connection; None: it is not encrypted
    shown: str  # the name of the topic in errors

    @property
    def authority(self) -> str:
        """The host and the port, in the form of requests."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class GrpcConnection:
    """A connection to a server, which is opened for the first call, and again after it is lost.

    Pings are sent every `idle_seconds`; the connection is lost if the server does not answer.
    """

    def __init__(self, address: Address, idle_seconds: float) -> None:
        self._address = address
        self._kept = configuration(idle_seconds, _PING_SECONDS).__for_client__()
        self._frame_bytes = PIECE_BYTES
        self._protocol: _Protocol | None = None

    async def call(
        self, path: str, metadata: Mapping[str, str], coding: str, most: int
    ) -> ClientCall:
        """Begins a call of a method, as `/package.Service/Method`, whose answer has messages of at most `most`
        bytes.
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
            await check_port(shown, is_secure=False)
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
                await check_port(shown, is_secure=True)
            raise unreachable(shown, error) from error
        tunnel = transport.get_extra_info("ssl_object")
        if tunnel is not None and tunnel.selected_alpn_protocol() not in ("h2", None):
            protocol.processor.close("no HTTP/2")
            raise SourceError(f"{shown} does not speak HTTP/2", hint="check the port")
        self._protocol = protocol
        return protocol


class ClientCall:
    """A running call, as an async context manager, which resets it if it has not ended.

    `unread` is called if the call is aborted before more than the headers of the answer could be read.
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
        """Returns the headers of the answer; raises `SourceError` if the server rejects the call, or the connection is
        lost.
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
        """Returns the next message of the answer; None: it has ended, and the status is OK."""
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

    async def __aexit__(self, *_: object) -> None:
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
            status = Status(int(given))
        except ValueError:
            status = Status.UNKNOWN
        if status is Status.OK:
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
    """Wakes the waiters of an aborted call, and ends its messages after those that have arrived."""

    inbox: ReceiveBuffer | None = None  # the received data of the call, once it has begun

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


# --- authorization --------------------------------------------------------------------------------
# The token of calls, from the caller or fetched: OAuth 2 client credentials are exchanged when the token is rejected.

UNAUTHENTICATED: Final = 401  # the status of HTTP for calls without a valid token


class CallAuthorization:
    """The token of calls to one server."""

    def __init__(self, token: BearerToken | None) -> None:
        self._token = token
        self._sent: str | None = None
        self._refused: str | None = None

    async def metadata(self) -> dict[str, str]:
        token = self._token
        if token is None:
            return {}
        if isinstance(token, ClientCredentials):
            token = self._sent = await asyncio.to_thread(tokens_for(token).get, self._refused)
        return {CallMetadata.AUTHORIZATION: f"Bearer {token}"}

    def renews(self, error: SourceError) -> bool:
        """Returns whether a failed call should be repeated with a new token: once, until a call succeeds."""
        if (
            error.response_status != UNAUTHENTICATED
            or self._sent is None
            or self._refused is not None
        ):
            return False
        self._refused = self._sent
        return True

    def accepted(self) -> None:
        """Records that a call was not rejected."""
        self._refused = None


# --- transport ------------------------------------------------------------------------------------

T = TypeVar("T")

_OPTIONS: Final = frozenset((*TLS_OPTIONS, "compression", "frame_bytes", "replays"))
_INVALID: Final = 400
_DIGITS: Final = 20  # more digits than sequences and times have

_ALL: Final = "9" * 18  # the number of newest elements that means all of them


def _position(start: Start) -> StreamPosition:
    found = StreamPosition.at(start, last=CallMetadata.LAST, since=CallMetadata.SINCE)
    if found.sequence is None and not found.wish:
        found.wish = {CallMetadata.LAST: _ALL}
    return found


class GrpcTransport(Transport):
    """A topic of Jelly's gRPC service: `grpc://host:port/topic`, or `grpcs:`.

    Its options are those of `tls_context` for `grpcs:`, `compression` (`gzip` or `none`), `frame_bytes` (the maximal
    size of a written frame), and `replays` (`true`: a server without sequences begins each answer with the first
    element of the stream).
    """

    def __init__(self, url: str, settings: Settings) -> None:
        self._url, self._settings = url, settings
        options = option_values(settings, _OPTIONS)
        address, self._topic = _parsed(url, options)
        self._connection = GrpcConnection(address, settings.idle_seconds)
        self._coding = _choice(options, "compression", {"none": IDENTITY, "gzip": GZIP}, IDENTITY)
        self._replays = _choice(options, "replays", {"true": True, "false": False}, False)
        self._frame_bytes = _size(options, "frame_bytes", FRAME_BYTES)
        self._authorization = CallAuthorization(settings.token)
        self._requests_options = True
        self._state: StreamPosition | None = None

    @property
    def position(self) -> Checkpoint | None:
        return None if self._state is None else self._state.checkpoint

    async def aclose(self) -> None:
        self._connection.close()

    # --- reading ---

    async def read(self, start: Start, *, follow: bool) -> AsyncGenerator[Element | None]:
        state = _position(start)
        has_begun = False
        calls = over_connections(
            partial(self._elements, state, start, follow=follow), self._settings, follow=follow
        )
        async with aclosing(calls) as elements:
            async for element in elements:
                if element is None:
                    self._state = state
                    if has_begun:
                        continue
                    has_begun = True
                yield element

    async def _elements(
        self, state: StreamPosition, start: Start, *, follow: bool
    ) -> AsyncGenerator[Element | None]:
        """Yields the elements of one call, after None; the state advances with each, before it is yielded."""
        began = came = False
        try:
            async with await self._subscribed(state, follow=follow) as call:
                is_numbered, skipped = self._begun(state, start, await call.headers())
                self._authorization.accepted()
                began = True
                yield None
                reader = FrameReader(
                    DecoderOptions(message_bytes=self._settings.message_bytes, labels=Labels())
                )
                while (frame := await call.read()) is not None:
                    came = True
                    metadata, rows = read_metadata(frame)
                    message = reader.read(rows)
                    if message is None:
                        continue
                    if skipped:
                        skipped -= 1
                        continue
                    version = 0 if reader.options is None else reader.options.version or 0
                    if not metadata and version > 1:  # earlier ones have no metadata
                        metadata = find_metadata(frame)
                    element = self._element(state, message, metadata, is_numbered=is_numbered)
                    if element is not None:
                        yield element
        except SourceError as error:
            if began and error.response_status == UNAUTHENTICATED:
                error.transient = True  # the token has expired; the next call may have another one
                raise
            if came or not (self._authorization.renews(error) or self._requests_less(error)):
                raise
            async with aclosing(self._elements(state, start, follow=follow)) as elements:
                async for each in elements:
                    yield each

    def _requests_less(self, error: SourceError) -> bool:
        """Returns whether to request no options instead: a server that cannot write quads answers with this error."""
        if error.response_status != _INVALID or not self._requests_options:
            return False
        self._requests_options = False
        return True

    async def _subscribed(self, state: StreamPosition, *, follow: bool) -> ClientCall:
        metadata = await self._authorization.metadata() | dict(state.asked(CallMetadata.AFTER))
        metadata[CallMetadata.FRAME_BYTES] = str(self._settings.message_bytes)
        if not follow:
            metadata[CallMetadata.FOLLOW] = "false"
        call = await self._connection.call(
            SUBSCRIBE, metadata, self._coding, self._settings.message_bytes
        )
        requested = PREFERRED_OPTIONS.encode() if self._requests_options else b""
        await call.send(framed(RdfStreamSubscribe(self._topic, requested).encode()), end=True)
        return call

    def _begun(
        self, state: StreamPosition, start: Start, headers: Mapping[str, str]
    ) -> tuple[bool, int]:
        """Processes the position at which an answer begins.

        Returns whether the server numbers its elements, and the number of elements to skip otherwise. Raises
        `SourceError` for another stream or position, and `UsageError` for a position that a server without sequences
        does not know.
        """
        identity, after = (
            headers.get(name, "") for name in (CallMetadata.IDENTITY, CallMetadata.AFTER)
        )
        if state.begin(self._url, identity, after):
            return True, 0
        if not self._replays and (start.last or start.since is not None or start.after):
            raise UsageError(
                f"{self._url} does not number its elements, and cannot begin at an earlier one",
                hint="begin without after, last and since; or give the option replays=true, if the server begins each "
                "answer with the first element",
            )
        if state.sequence is None:
            state.sequence = 0
        return False, state.sequence if self._replays else 0

    def _element(
        self,
        state: StreamPosition,
        message: Message,
        metadata: Mapping[str, bytes],
        *,
        is_numbered: bool,
    ) -> Element | None:
        """Returns the next element; None: it was already read."""
        assert state.sequence is not None  # the call has begun
        text = metadata.get(FrameMetadata.SEQUENCE, b"")
        sequence = state.sequence + 1
        if text.isdigit() and len(text) < _DIGITS:
            sequence = int(text)
            if sequence <= state.sequence:
                return None
            if is_numbered:
                check_next(self._url, state.sequence, sequence)
        time = metadata.get(FrameMetadata.TIME, b"")
        microseconds = int(time) if time.isdigit() and len(time) < _DIGITS else None
        element = received(self._url, sequence, message, microseconds)
        state.sequence = sequence
        return element

    # --- writing ---

    async def write(self, batch: Sequence[Message], key: str) -> None:
        """Sends a batch, which a server appends once by its key; see `Transport.write`.

        Raises `LimitExceeded` for a frame that is too large, and `UnsupportedByFormat` for a message that Jelly cannot
        represent.
        """
        async for attempt in attempts_of(self._settings):
            with attempt:
                try:
                    async with asyncio.timeout(None) as silence:
                        try:
                            await self._publish(batch, key, silence)
                        except SourceError as error:
                            if not self._authorization.renews(error):
                                raise
                            await self._publish(batch, key, silence)
                        self._authorization.accepted()
                except SourceError:  # some of these are timeouts
                    raise
                except TimeoutError:
                    raise SourceTimeout(
                        f"{self._url} did not answer within {self._settings.idle_seconds:g} seconds",
                        transient=True,
                    ) from None

    async def _publish(self, batch: Sequence[Message], key: str, silence: asyncio.Timeout) -> None:
        clock = asyncio.get_running_loop().time

        def extend() -> None:
            silence.reschedule(clock() + self._settings.idle_seconds)

        extend()
        metadata = await self._authorization.metadata() | {CallMetadata.KEY: key}
        call = await self._connection.call(PUBLISH, metadata, self._coding, FRAME_BYTES)
        async with call:
            for piece in self._pieces(batch):  # the server reads one while the next is created
                extend()
                await call.send(piece, end=False)
            extend()
            await call.send(b"", end=True)
            if await call.read() is None:
                raise SourceError(f"{self._url} acknowledged nothing", transient=True)
            await call.read()  # raises the error of the status

    def _pieces(self, batch: Sequence[Message]) -> Iterator[bytes]:
        has_triple_terms = any(
            quad[2].startswith("<<(") for message in batch for quad in message.statements
        )
        options = replace(
            PREFERRED_OPTIONS, rdf_star=has_triple_terms, version=1, stream_name=self._topic
        )
        writer = FrameWriter(options, {})
        held: list[bytes] = []
        size = 0
        for number, message in enumerate(batch, 1):
            frame = writer.write(message)
            if len(frame) > self._frame_bytes:
                raise LimitExceeded(
                    f"message {number} of the batch is a frame of {len(frame)} bytes, where {self._frame_bytes} are "
                    "allowed",
                    hint="give the option frame_bytes, if the server takes larger frames",
                )
            held.append(framed(frame, self._coding))
            size += len(held[-1])
            if size > PIECE_BYTES:
                yield b"".join(held)
                held, size = [], 0
        if held:
            yield b"".join(held)


def _parsed(url: str, options: Mapping[str, str]) -> tuple[Address, str]:
    """Returns the address of the server, and the topic, of a URL."""
    parts = urlsplit(url)
    try:
        host, port = address_of(url)
    except ValueError:
        host, port = "", 0
    if not host or parts.query or parts.fragment:
        raise UsageError(
            f"{url!r} is no URL of a topic", hint="write it as grpc://localhost:50051/topic"
        )
    if "@" in parts.netloc:
        raise UsageError("the URL holds credentials", hint="give a token")
    tls = None
    if parts.scheme == "grpcs":
        tls = tls_context(options)
        tls.set_alpn_protocols(["h2"])
    address = Address(host, port, tls, url)
    return address, unquote(parts.path[1:])


def _choice(options: Mapping[str, str], name: str, values: Mapping[str, T], default: T) -> T:
    if name not in options:
        return default
    if options[name] not in values:
        raise UsageError(
            f"{name}={shown(options[name])} is no value", hint=f"choose {' or '.join(values)}"
        )
    return values[options[name]]


def _size(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not (is_sequence(text) and int(text)):
        raise UsageError(f"{name}={shown(text)} is no number of bytes")
    return int(text)
