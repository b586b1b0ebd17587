"""The streams of a server, and what all views of them share: limits, shapes, access, IRIs and threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from aiohttp import web

from construct_messages.continuous.registered.process import QueryLimits
from construct_messages.continuous.registered.query import Watched
from construct_messages.continuous.registered.registry import Registry
from construct_messages.rdf.errors import Forbidden
from construct_messages.server.config import StreamsSettings
from construct_messages.server.http.access import Access, Permit, Requesting, Right
from construct_messages.server.streams.addresses import ROOT, StreamIris
from construct_messages.server.streams.bounds import StreamLimits
from construct_messages.server.streams.shapes import StreamShapes
from construct_messages.streams.store import StreamStore

if TYPE_CHECKING:
    from construct_messages.server.streams.grpc.service import RdfStreamService

T = TypeVar("T")
P = ParamSpec("P")


class ServedStreams:
    """The streams of one store.

    The executor has threads for reading large bodies and rows, which would block the event loop. `public_url` is the
    base of IRIs; None: the URL of each request.
    """

    def __init__(
        self,
        settings: StreamsSettings,
        store: StreamStore,
        *,
        executor: Executor,
        access: Access,
        watched: Mapping[str, Watched],
        public_url: str | None = None,
    ) -> None:
        self.settings, self.store, self.access = settings, store, access
        self._executor, self._public_url = executor, public_url
        self.limits = StreamLimits(settings)
        self.shapes = StreamShapes(settings, store, self.in_thread)
        self.query_limits = QueryLimits(
            settings.query_seconds, settings.query_bytes, settings.query_output_bytes
        )
        self.registry = Registry(store, self.query_limits, watched)
        self.grpc: RdfStreamService | None = None

    def is_output(self, name: str) -> bool:
        """Whether a stream is the output of a registered query, which alone publishes to it."""
        return self.registry.get(name) is not None

    # --- IRIs ---

    def base(self, request: web.Request) -> str:
        """The URL of this server, without a final slash."""
        return self._public_url or f"{request.scheme}://{request.host}"

    def iris(self, request: web.Request, name: str) -> StreamIris:
        """The IRIs of a stream."""
        service = None
        if self.grpc is not None:
            service = self.grpc.url(None if self._public_url else request.url.host)
        return StreamIris(f"{self.base(request)}{ROOT}/{name}", service)

    # --- access ---

    async def admit(self, request: Requesting, right: Right, policy: str | None = None) -> Permit:
        """Rejects clients without a right; see `Authorizer.admit`."""
        return await self.access.of(right, policy).admit(request, right)

    async def admit_reader(self, request: Requesting) -> Permit:
        """Rejects clients that may not read."""
        return await self.admit(request, "read")

    async def admit_publisher(self, request: Requesting, name: str | None) -> Permit:
        """Rejects clients that may not publish to a stream; None: to any.

        Raises:
            NotFound: the stream does not exist.
            Forbidden: the client may not publish.
        """
        if name is None:
            return await self._admit_some_publisher(request)
        state = self.store.state(name)
        # its description may allow it, but only the query publishes to its output
        policy = "deny" if self.is_output(name) else state.description.publish
        return await self.admit(request, "publish", policy)

    async def _admit_some_publisher(self, request: Requesting) -> Permit:
        """Rejects clients that may publish to no stream."""
        refusals: list[Forbidden] = []
        for policy in {None, *(state.description.publish for state in self.store.streams())}:
            try:
                return await self.admit(request, "publish", policy)
            except Forbidden as refused:
                refusals.append(refused)
        # with other credentials it may be allowed
        raise next((each for each in refusals if each.status == 401), refusals[0])

    # --- threads ---

    async def in_thread(self, call: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
        """Calls a function in a thread, for the event loop to serve others meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(
            self._executor, partial(call, *args, **options)
        )
