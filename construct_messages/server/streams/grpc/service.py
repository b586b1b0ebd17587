"""The gRPC service: authorization, dispatch to methods, logging and metrics. It has its own port.

Jelly 1.1, gRPC streaming protocol; grpc.health.v1 (the method Check).
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from typing import Final

from construct_messages.logs.jelly.service import PUBLISH, SUBSCRIBE
from construct_messages.rdf.errors import ConstructMessagesError, SourceError
from construct_messages.rdf.wire import CallMetadata
from construct_messages.server.config import StreamsSettings
from construct_messages.server.http.access import Permit
from construct_messages.server.http.endpoint import Observe
from construct_messages.server.http.record import reason_of, request_id
from construct_messages.server.http.sending import ClientLeft
from construct_messages.server.streams.addresses import ROOT
from construct_messages.server.streams.bounds import CLOSE_SECONDS, StreamLimits
from construct_messages.server.streams.grpc.calls import CallServer, ServerCall
from construct_messages.server.streams.grpc.publishing import Publishing
from construct_messages.server.streams.grpc.subscribing import Subscribing
from construct_messages.server.streams.push import Live
from construct_messages.server.streams.record import StreamRecord
from construct_messages.server.streams.requests import InThread
from construct_messages.server.streams.shapes import StreamShapes
from construct_messages.sparql.client.grpc.framing import framed
from construct_messages.sparql.client.grpc.status import GrpcStatus, status_of
from construct_messages.sparql.client.tls import server_tls_context
from construct_messages.streams.store import StreamStore

_HEALTH: Final = "/grpc.health.v1.Health/Check"
_SERVING: Final = b"\x08\x01"  # HealthCheckResponse

_LOGGER: Final = logging.getLogger(__name__)


class RdfStreamService:
    """The streams of a store by gRPC.

    Args:
        settings: the limits, and the address.
        store: the store of the streams.
        bounds: the limits of concurrency and memory.
        in_thread: calls a function in a thread, so that it does not block the event loop.
        admit_reader: rejects calls that may not read.
        admit_publisher: rejects calls that may not publish to a stream; None: to any.
        shapes: the shapes of the streams.

    Attributes:
        address: the host and the port, once the service accepts calls.
    """

    address = ""

    def __init__(
        self,
        settings: StreamsSettings,
        store: StreamStore,
        *,
        bounds: StreamLimits,
        in_thread: InThread,
        admit_reader: Callable[[ServerCall], Awaitable[Permit]],
        admit_publisher: Callable[[ServerCall, str | None], Awaitable[Permit]],
        shapes: StreamShapes,
    ) -> None:
        self._settings, self._admit_reader = settings, admit_reader
        self._live = Live(store, settings.heartbeat_seconds)
        self._subscribing = Subscribing(
            settings, store, bounds=bounds, live=self._live, in_thread=in_thread
        )
        self._publishing = Publishing(
            settings,
            store,
            bounds=bounds,
            in_thread=in_thread,
            admit=admit_publisher,
            shapes=shapes,
        )
        self._calls = CallServer(
            self._answer,
            ping_seconds=settings.heartbeat_seconds,
            silent_seconds=settings.idle_seconds,
        )

    async def start(self, observe: Observe) -> None:
        """Starts to accept calls.

        Args:
            observe: logs and counts the answers.

        Raises:
            OSError: the server cannot listen at the address.
            UsageError: the certificate or its key cannot be read.
        """
        self._observe = observe
        settings, tls = self._settings, None
        if settings.grpc_certificate is not None and settings.grpc_key is not None:
            tls = server_tls_context(settings.grpc_certificate, settings.grpc_key)
            tls.set_alpn_protocols(["h2"])
        found, self._port = await self._calls.listen(*settings.grpc_address, tls)
        self.address = f"[{found}]:{self._port}" if ":" in found else f"{found}:{self._port}"
        _LOGGER.info("listening for gRPC on %s", self.address)

    def url(self, host: str | None) -> str | None:
        """Returns the URL of the service, without a topic.

        Args:
            host: the host name by which a client reaches this server over HTTP without a proxy; None: through a proxy.

        Returns:
            The URL, or None if it is unknown.
        """
        if self._settings.grpc_url is not None or host is None:
            return self._settings.grpc_url
        name = f"[{host}]" if ":" in host else host
        return f"grpc{'' if self._settings.grpc_key is None else 's'}://{name}:{self._port}"

    def stop(self) -> None:
        """Ends all endless calls; clients resume after their last element."""
        self._calls.stop()
        self._publishing.stop()
        self._live.stop()

    async def aclose(self) -> None:
        """Closes all connections."""
        self.stop()
        await self._calls.aclose(CLOSE_SECONDS)

    async def _answer(self, call: ServerCall) -> None:
        if call.path == _HEALTH:
            await call.begin({})
            await call.send(framed(_SERVING))
            await call.end(GrpcStatus.OK)
            return
        method = call.path if call.path in (SUBSCRIBE, PUBLISH) else ""
        record = StreamRecord(
            id=request_id(call.headers.get("x-request-id")),
            method=method.rpartition("/")[2],
            endpoint=ROOT,
            client=call.client,
        )
        with self._observe(record):
            await self._observed(call, method, record)

    async def _observed(self, call: ServerCall, method: str, record: StreamRecord) -> None:
        try:
            async with nullcontext() if call.seconds is None else asyncio.timeout(call.seconds):
                await self._method(call, method, record)
            await call.end(GrpcStatus.OK, metadata=_stored(record))
        except ClientLeft:
            record.aborted("idle")
            call.abort()
        except TimeoutError:
            record.client_left()
            await call.end(GrpcStatus.DEADLINE_EXCEEDED, "the time that the client set is over")
        except ConstructMessagesError as error:
            if record.status is None:
                record.refused(error.status)
            elif not self._stops(error):
                record.aborted(reason_of(error))
            text = str(error).partition("\n")[0]  # with the number of the message, without the hint
            await call.end(status_of(error.status), text, _refusal(error, record))
        except asyncio.CancelledError as error:
            if error.args:  # of this package
                record.aborted("shutdown")
                await call.end(GrpcStatus.UNAVAILABLE, "the server stops")
            else:
                record.client_left()
            raise
        except Exception:  # an unexpected error, for which the client still needs a status
            _LOGGER.exception("fault")
            record.aborted("internal")
            await call.end(GrpcStatus.INTERNAL, "the server failed")

    async def _method(self, call: ServerCall, method: str, record: StreamRecord) -> None:
        if method == SUBSCRIBE:
            async with (await self._admit_reader(call)).limit():
                await self._subscribing.answer(call, record)
        elif method == PUBLISH:
            await self._publishing.answer(call, record)
        else:
            raise ConstructMessagesError(
                f"there is no method {call.path[:200]}",
                status=501,
                hint=f"call {SUBSCRIBE} or {PUBLISH}",
            )

    @staticmethod
    def _stops(error: ConstructMessagesError) -> bool:
        return isinstance(error, SourceError) and error.status == 503


def _stored(record: StreamRecord) -> Mapping[str, str]:
    """Returns the sequence of the last stored element, if any."""
    return {} if record.last is None else {CallMetadata.LAST: str(record.last)}


def _refusal(error: ConstructMessagesError, record: StreamRecord) -> Mapping[str, str]:
    metadata = dict(_stored(record))
    if error.hint is not None:
        metadata[CallMetadata.HINT] = error.hint
    if isinstance(error, SourceError) and error.retry_after is not None:
        metadata[CallMetadata.RETRY_AFTER] = str(math.ceil(1000 * error.retry_after))
    return metadata
