"""Streams of Jelly's gRPC service: frames are elements, and a batch is a call that publishes.

Jelly 1.1, gRPC streaming protocol; RDF Messages, section 3. Servers of this package send sequences with frames
(`rdf/wire.py`); frames of other servers are counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar
from urllib.parse import unquote, urlsplit

from construct_messages.feeds.connections import attempts_of, over_connections
from construct_messages.feeds.grpc.calls import Address, ClientCall, GrpcConnection
from construct_messages.feeds.sequences import (
    begin_after,
    check_next,
    is_sequence,
    same_stream,
)
from construct_messages.feeds.state import Checkpoint
from construct_messages.feeds.transport import Settings, Start, Transport, option_values
from construct_messages.logs import DecoderOptions
from construct_messages.logs.jelly.frame_stream import FrameReader, find_metadata, read_metadata
from construct_messages.logs.jelly.frames import FrameWriter
from construct_messages.logs.jelly.service import (
    PREFERRED_OPTIONS,
    PUBLISH,
    SUBSCRIBE,
    RdfStreamSubscribe,
)
from construct_messages.rdf.errors import (
    LimitExceeded,
    SourceError,
    SourceTimeout,
    UsageError,
    shown,
)
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.wire import CallMetadata, FrameMetadata
from construct_messages.sparql.client.grpc import (
    FRAME_BYTES,
    GZIP,
    IDENTITY,
    PIECE_BYTES,
    framed,
)
from construct_messages.sparql.client.oauth import BearerToken, ClientCredentials, tokens_for
from construct_messages.sparql.client.tls import TLS_OPTIONS, tls_context
from construct_messages.streams import Element
from construct_messages.streams.publication import received

# --- authorization --------------------------------------------------------------------------------
# The token of calls, from the caller or fetched: OAuth 2 client credentials are exchanged when the token is rejected.

UNAUTHENTICATED: Final = 401
"""The status of HTTP for calls without a valid token."""


class CallAuthorization:
    """The token of calls to one server.

    Args:
        token: the token, or the credentials for fetching tokens; None: calls have no token.
    """

    def __init__(self, token: BearerToken | None) -> None:
        self._token = token
        self._sent: str | None = None
        self._refused: str | None = None

    async def metadata(self) -> dict[str, str]:
        """Returns the metadata of a call.

        Raises:
            SourceError: the token endpoint returns no token.
        """
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

_PORTS: Final = {"grpc": 50051, "grpcs": 443}
_OPTIONS: Final = frozenset((*TLS_OPTIONS, "compression", "frame_bytes", "replays"))
_INVALID: Final = 400
_DIGITS: Final = 20  # more digits than sequences and times have

_ALL: Final = "9" * 18
"""The number of newest elements that means all of them."""


@dataclass
class _State:
    """The position of the calls.

    Args:
        sequence: the sequence of the last known element; None: the server has not sent it yet.
        metadata: the metadata of the request, while `sequence` is unknown.
        identity: the identity of the stream; empty: unknown.
    """

    sequence: int | None
    metadata: dict[str, str]
    identity: str = ""

    @classmethod
    def at(cls, start: Start) -> _State:
        if start.checkpoint is not None:
            start.checkpoint.check()
            return cls(start.checkpoint.sequence, {}, start.checkpoint.identity)
        if start.since is not None:
            return cls(None, {CallMetadata.SINCE: start.since.isoformat()})
        if start.after is not None:
            return cls(start.after, {})
        return cls(None, {CallMetadata.LAST: _ALL if start.last is None else str(start.last)})

    def asked(self) -> dict[str, str]:
        """Returns the metadata that request the elements after the last one."""
        return (
            dict(self.metadata)
            if self.sequence is None
            else {CallMetadata.AFTER: str(self.sequence)}
        )


class GrpcTransport(Transport):
    """A topic of Jelly's gRPC service; see `Transport`.

    Its options are those of `tls_context` for `grpcs:`, `compression` (`gzip` or `none`), `frame_bytes` (the maximal
    size of a written frame), and `replays` (`true`: a server without sequences begins each answer with the first
    element of the stream).

    Args:
        url: a URL such as `grpc://host:port/topic`.
        settings: see `Settings`.

    Raises:
        UsageError: not such a URL, or an invalid option.
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
        self._state: _State | None = None

    @property
    def position(self) -> Checkpoint | None:
        """See `Transport.position`."""
        state = self._state
        if state is None or state.sequence is None:
            return None
        return Checkpoint(state.sequence, identity=state.identity)

    async def aclose(self) -> None:
        """Closes the connection; see `Transport.aclose`."""
        self._connection.close()

    # --- reading ---

    async def read(self, start: Start, *, follow: bool) -> AsyncGenerator[Element | None]:
        """Yields the elements; see `Transport.read`."""
        state = _State.at(start)
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
        self, state: _State, start: Start, *, follow: bool
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
                    if not metadata and _may_have_metadata(reader):
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

    async def _subscribed(self, state: _State, *, follow: bool) -> ClientCall:
        metadata = await self._authorization.metadata() | state.asked()
        metadata[CallMetadata.FRAME_BYTES] = str(self._settings.message_bytes)
        if not follow:
            metadata[CallMetadata.FOLLOW] = "false"
        call = await self._connection.call(
            SUBSCRIBE, metadata, self._coding, self._settings.message_bytes
        )
        requested = PREFERRED_OPTIONS.encode() if self._requests_options else b""
        await call.send(framed(RdfStreamSubscribe(self._topic, requested).encode()), end=True)
        return call

    def _begun(self, state: _State, start: Start, headers: Mapping[str, str]) -> tuple[bool, int]:
        """Processes the position at which an answer begins.

        Returns:
            Whether the server numbers its elements, and the number of elements to skip otherwise.

        Raises:
            SourceError: the answer is of another stream, or begins at another position than requested.
            UsageError: a server without sequences cannot begin at the requested position.
        """
        state.identity = same_stream(
            self._url, state.identity, headers.get(CallMetadata.IDENTITY, "")
        )
        after = headers.get(CallMetadata.AFTER, "")
        if is_sequence(after):
            state.sequence = begin_after(self._url, state.sequence, int(after))
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
        self, state: _State, message: Message, metadata: Mapping[str, bytes], *, is_numbered: bool
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

        Raises:
            LimitExceeded: the frame of a message is too large.
            UnsupportedByFormat: Jelly cannot represent a message.
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


def _may_have_metadata(reader: FrameReader) -> bool:
    return reader.options is not None and (reader.options.version or 0) > 1


def _parsed(url: str, options: Mapping[str, str]) -> tuple[Address, str]:
    """Returns the address of the server, and the topic, of a URL."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
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
    address = Address(host, port or _PORTS[parts.scheme], tls, url)
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
