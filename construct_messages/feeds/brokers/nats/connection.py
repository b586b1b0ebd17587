"""A connection to a NATS server; its end raises an error in all waiters. No messages of RDF here.

The library could reconnect itself, but consumers do not survive the server: `transport.py` starts again instead.
https://docs.nats.io/reference/reference-protocols/nats-protocol
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager, suppress
from math import ceil
from typing import Final, TypeVar
from urllib.parse import ParseResult, urlsplit

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.transport import TcpTransport
from nats.errors import ConnectionClosedError, Error, NoRespondersError
from nats.js.client import JetStreamContext
from nats.js.errors import APIError, ServiceUnavailableError

from construct_messages.errors import SourceError, SourceTimeout, UsageError, shown
from construct_messages.feeds.transport import Settings
from construct_messages.sparql.client.retries import CONNECT_SECONDS
from construct_messages.sparql.client.tls import TLS_OPTIONS, tls_context

OPTIONS: Final = (
    "user",
    "password",
    "token",
    "user_credentials",
    "nkeys_seed",
    "tls_hostname",
    *TLS_OPTIONS,
)
"""Options of `nats.connect` that callers may set: credentials and TLS."""

IN_FLIGHT: Final = 500  # the maximal number of messages in flight

_REFUSED: Final = ("authorization", "authentication", "permissions violation", "nkeys", "expired")
"""Words in permanent errors of the server about credentials."""

_FILES: Final = {"user_credentials", "nkeys_seed"}
"""Options with paths of files, for which libraries raise other errors."""

_CLOSE_SECONDS: Final = 1.0

_NO_JETSTREAM: Final = (10039, 10076)  # not enabled for the account, not enabled for the server

T = TypeVar("T")


class _Transport(TcpTransport):
    """The library's connection, with two corrections: of a warning, and of credentials that were sent unencrypted.

    `is_secure`: nothing may be sent without TLS, which the library only uses if the server offers it.
    """

    def __init__(self, server: str, *, is_secure: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # the library's
        self._server, self._is_secure = server, is_secure

    def __bool__(self) -> bool:
        """Always true, as the library replaces transports that are not."""
        return True

    @property
    def _writer(self) -> asyncio.StreamWriter:
        assert self._io_writer is not None  # it is connected
        return self._io_writer

    async def connect_tls(
        self,
        uri: str | ParseResult,
        ssl_context: ssl.SSLContext,
        buffer_size: int,  # noqa: ARG002 the library's
        connect_timeout: int,
    ) -> None:
        """Begins TLS over the open connection, by asyncio's own method: the library's makes asyncio warn at its end."""
        host = uri if isinstance(uri, str) else uri.hostname
        async with asyncio.timeout(connect_timeout):
            await self._writer.start_tls(ssl_context, server_hostname=host)

    def write(self, payload: bytes) -> None:
        """Sends bytes; raises `SourceError` if the server offers no TLS."""
        if self._is_secure and self._writer.get_extra_info("sslcontext") is None:
            raise SourceError(
                f"{self._server} offers no TLS",
                hint="let the server require TLS; or write nats:, without options of TLS",
            )
        self._writer.write(payload)


class NatsConnection:
    """A connection to a server."""

    def __init__(self, client: Client, server: str, settings: Settings) -> None:
        self.client, self._server = client, server
        self._seconds = settings.idle_seconds
        self.streams: JetStreamContext = client.jetstream(timeout=settings.idle_seconds)
        self._failure: SourceError | None = None
        self._ended = asyncio.Event()
        self._listeners: list[Callable[[], object]] = []

    def end(self, failure: SourceError) -> None:
        """Records the end of the connection, and wakes its waiters. Only the first failure is stored."""
        if self._failure is None:
            self._failure = failure
            self._ended.set()
            for listener in self._listeners:
                listener()

    def at_end(self, listener: Callable[[], object]) -> None:
        """Calls a function when the connection ends, or at once if it has ended."""
        self._listeners.append(listener)
        if self._failure is not None:
            listener()

    def failure(self) -> SourceError:
        """Returns the error that ended it."""
        return self._failure or SourceError(
            f"the connection to {self._server} was closed", transient=True
        )

    async def run(self, asking: Awaitable[T]) -> T:
        """Waits for the answer of the server, or for the end of the connection, which raises its error."""
        answer = asyncio.ensure_future(asking)
        ended = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait((answer, ended), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise self.failure()
            with self.errors():
                return answer.result()
        finally:
            for task in (answer, ended):
                task.cancel()
            await asyncio.gather(answer, ended, return_exceptions=True)

    async def publish(
        self, subject: str, reply: str, messages: Iterable[tuple[bytes, bytes]]
    ) -> None:
        """Sends messages, each with its headers, to a subject, as the command HPUB of the protocol.

        The library's own `publish` checks and writes the headers of each message, which takes as long as all else that
        a relay does. So this writes to its buffer by two methods that the library does not document. The headers of
        each have their version and end; the subjects have no white space.
        """
        client, names = self.client, f"{subject} {reply}".encode()
        with self.errors():
            if client.is_closed:
                raise ConnectionClosedError
            for headers, value in messages:
                size = len(headers)
                await client._send_command(
                    b"HPUB %b %d %d\r\n%b%b\r\n" % (names, size, size + len(value), headers, value)
                )
            await client._flush_pending()

    async def inbox(self) -> Inbox:
        """Subscribes to the server's answers to a unique subject, and to those below it."""
        inbox = Inbox(self, self.client.new_inbox(), self._seconds)
        with self.errors():
            for subject in (inbox.subject, f"{inbox.subject}.*"):
                await self.client.subscribe(
                    subject,
                    cb=inbox.arrive,
                    pending_msgs_limit=0,  # no limit: requested messages are kept
                    pending_bytes_limit=0,
                )
        return inbox

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Converts the library's errors to those of this package."""
        try:
            yield
        except NoRespondersError as error:
            raise self._without_jetstream() from error
        except ServiceUnavailableError as error:
            if error.err_code is None or error.err_code in _NO_JETSTREAM:
                raise self._without_jetstream() from error
            raise SourceError(
                f"{self._server} is not ready: {shown(str(error.description))}", transient=True
            ) from error
        except APIError as error:
            if error.code == 404:
                raise  # the caller handles missing resources
            raise SourceError(f"{self._server} refuses: {shown(str(error.description))}") from error
        except TimeoutError as error:
            raise self.failure() if self._failure else self.silent() from error
        except (Error, OSError) as error:
            raise self.failure() if self._failure else failed(self._server, error) from error

    def silent(self) -> SourceTimeout:
        """Returns the error for a server that sends nothing."""
        return SourceTimeout(
            f"{self._server} was silent for {self._seconds:g} seconds", transient=True
        )

    def no_stream(self, stream: str) -> SourceError:
        """Returns the error for a stream that does not exist."""
        return SourceError(
            f"{self._server} has no stream {shown(stream)}",
            response_status=404,
            hint="check its name, or create it when it is written to: create=True, or --create",
        )

    def _without_jetstream(self) -> SourceError:
        return SourceError(
            f"{self._server} has no JetStream for this account",
            hint="start it as nats-server --jetstream, or enable JetStream for the account",
        )


class Inbox:
    """The messages from the server to a subject, in order."""

    def __init__(self, connection: NatsConnection, subject: str, seconds: float) -> None:
        self.subject = subject
        self._connection, self._seconds = connection, seconds
        self._arrived: asyncio.Queue[Msg | None] = asyncio.Queue()
        connection.at_end(lambda: self._arrived.put_nowait(None))

    async def arrive(self, message: Msg) -> None:
        """Receives each message; called by the library."""
        self._arrived.put_nowait(message)

    def waiting(self) -> Msg | None:
        """Returns the next message if it has arrived; None: there is none, or the connection has ended."""
        if self._arrived.empty():
            return None
        message = self._arrived.get_nowait()
        if message is None:
            self._arrived.put_nowait(None)  # for `next`
        return message

    async def next(self) -> Msg:
        """Returns the next message; raises the error of a connection that has ended, or of a server that is silent."""
        if self._arrived.empty():
            try:
                async with asyncio.timeout(self._seconds):
                    message = await self._arrived.get()
            except TimeoutError as error:
                raise self._connection.silent() from error
        else:
            message = self._arrived.get_nowait()
        if message is None:
            raise self._connection.failure()
        return message


def _unconnected(server: str, causes: Sequence[Exception]) -> SourceError:
    """Returns the error for a failed connection attempt: the last failure with a text, or a rejection before it."""
    failures = [failed(server, each) for each in causes if str(each)] or [
        failed(server, causes[-1])
    ]
    return next((each for each in failures if not each.transient), failures[-1])


def _check_files(options: Mapping[str, str]) -> None:
    for name in _FILES & options.keys():
        try:
            with open(options[name], "rb"):
                pass
        except OSError as error:
            raise _unreadable(error) from error


def _unreadable(error: BaseException) -> UsageError:
    return UsageError(
        f"the credentials cannot be read: {shown(str(error)) or type(error).__name__}",
        hint="user_credentials is a file that nsc wrote, nkeys_seed a file with a seed",
    )


def failed(server: str, error: BaseException) -> SourceError:
    """Returns the error for a connection that failed, or was not established.

    >>> failed("nats://localhost:4222", OSError("Connect call failed")).transient
    True
    """
    text = shown(str(error)).removeprefix("nats: ")
    if isinstance(error, ssl.SSLError):
        return SourceError(
            f"{server} could not be reached by TLS: {text}",
            hint="name the authority of its certificate: the option ca_certs",
        )
    if any(word in text.lower() for word in _REFUSED):
        return SourceError(
            f"{server} refuses: {text}",
            hint="pass the options user and password, token, user_credentials or nkeys_seed",
        )
    return SourceError(
        f"{server} could not be reached: {text or type(error).__name__}",
        hint="check the URL, and that the server runs",
        transient=True,
    )


@asynccontextmanager
async def connected(
    url: str, options: Mapping[str, str], settings: Settings
) -> AsyncGenerator[NatsConnection]:
    """Connects to the server of a URL, whose path is not used, and closes the connection at the end of the block."""
    seconds = min(CONNECT_SECONDS, settings.idle_seconds)
    server = urlsplit(url)._replace(path="", query="", fragment="").geturl()
    client = Client()
    causes: list[Exception] = []
    made: list[NatsConnection] = []

    async def fail(error: Exception) -> None:
        causes.append(error)
        if made:
            made[0].end(failed(server, error))

    async def close() -> None:
        if made:
            made[0].end(made[0].failure())

    _check_files(options)
    given: dict[str, object] = {
        name: value for name, value in options.items() if name not in TLS_OPTIONS
    }
    if server.startswith("tls:") or any(name in TLS_OPTIONS for name in options):
        given["tls"] = tls_context(options)
    client._transport = _Transport(server, is_secure="tls" in given)
    try:
        async with asyncio.timeout(seconds):
            await client.connect(
                server,
                name="construct-messages",
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=ceil(seconds),
                # a silent server is noticed after the second ping
                ping_interval=max(1, int(settings.idle_seconds / 2)),
                max_outstanding_pings=1,
                error_cb=fail,
                closed_cb=close,
                **given,  # type: ignore[arg-type] # each by its name
            )
    except (Error, OSError) as error:  # a timeout is one
        await _close(client)
        raise _unconnected(server, [*causes, error]) from error
    except SourceError:
        await _close(client)
        raise
    except Exception as error:
        if not options.keys() & _FILES:
            raise
        raise _unreadable(error) from error
    made.append(NatsConnection(client, server, settings))
    try:
        yield made[0]
    finally:
        await _close(client)


async def _close(client: Client) -> None:
    with suppress(Error, OSError):  # it has ended, or accepts no more data
        async with asyncio.timeout(_CLOSE_SECONDS):
            await client.close()
