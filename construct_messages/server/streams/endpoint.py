"""The endpoint of live streams: streams are made and described, take messages, list them, and push them.

Linked Data Notifications (sections 3.2 and 3.3) and LDN for RDF streams; RDF Messages, section 3. What elements are as
bytes is in `documents.py` and `push.py`, what comes over sockets in `intake.py`, what is said of streams in
`resources.py`; outputs are in `output_view.py`,
Linked Data Event Streams in `ldes/view.py`.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Executor
from contextlib import ExitStack
from functools import partial
from types import MappingProxyType
from typing import Final, ParamSpec, TypeVar

from aiohttp import WSCloseCode, web

from construct_messages.errors import Forbidden, LimitExceeded, ProtocolError
from construct_messages.formats import N_QUADS, find_format
from construct_messages.formats.media_types import EVENT_STREAM, SPARQL_QUERY
from construct_messages.message import Message
from construct_messages.server.config import StreamsSettings
from construct_messages.server.http.conditions import check_conditions, entity_tag
from construct_messages.server.http.endpoint import Route
from construct_messages.server.http.forms import decoded
from construct_messages.server.http.sending import ClientLeft, send
from construct_messages.server.streams.addresses import ROOT, StreamIris
from construct_messages.server.streams.bounds import Bounds
from construct_messages.server.streams.description import read_description
from construct_messages.server.streams.html.view import SHOWN, HtmlView
from construct_messages.server.streams.input import read_messages
from construct_messages.server.streams.intake import take_frames
from construct_messages.server.streams.ldes.view import LdesView
from construct_messages.server.streams.output_view import AFTER, OutputView
from construct_messages.server.streams.push import (
    SUBPROTOCOLS,
    Live,
    check_text,
    event_stream,
    push_frames,
)
from construct_messages.server.streams.queries.parameters import WatchedEndpoint
from construct_messages.server.streams.queries.view import QueriesView, check_query, is_query
from construct_messages.server.streams.rdf import OFFERED as DESCRIPTIONS
from construct_messages.server.streams.rdf import serialize
from construct_messages.server.streams.record import StreamRecord
from construct_messages.server.streams.requests import (
    ACCEPT_POST,
    access_of,
    admit,
    described,
    idempotency_key,
    record_of,
    with_hints,
)
from construct_messages.server.streams.resources import (
    Document,
    links,
    published_document,
    stream_document,
    streams_document,
)
from construct_messages.server.streams.selection import select, selecting, sequence_parameter
from construct_messages.streams.element import Element, State
from construct_messages.streams.store import StreamStore

T = TypeVar("T")
P = ParamSpec("P")

_FOLLOWERS_BYTES: Final = 1 << 12  # of what one may send over its socket, which is nothing but pings and a close
_LARGE: Final = 1 << 16  # bytes, from which on reading a body takes longer than other requests should wait


class StreamsEndpoint:
    """The streams of one store; see `server.http.endpoint.Endpoint`.

    Args:
        settings: the limits, and who may publish.
        store: where the streams are; closed with the endpoint.
        executor: threads for reading large bodies and rows, which would hold up the event loop.
        publish: who may publish where a stream does not say so, and who may make and delete streams: `"deny"`,
            `"allow"`, or the name of an environment variable that holds a token.
        register: who may register queries; as `publish`.
        watched: the SPARQL endpoints that queries may watch, by path.
        public_url: how clients reach the server; None: as the request says.
        page: whether browsers get HTML.

    Attributes:
        bounds: how much is done at once.
    """

    record = StreamRecord
    has_source = True
    exposed_headers = ("Accept-Post", "ETag", "Link", "Location", "RDF-Message-Content-Type", AFTER)
    path = ROOT

    def __init__(
        self,
        settings: StreamsSettings,
        store: StreamStore,
        *,
        executor: Executor,
        publish: str,
        register: str = "deny",
        watched: Mapping[str, WatchedEndpoint] = MappingProxyType({}),
        public_url: str | None = None,
        page: bool = False,
    ) -> None:
        self._settings, self._store, self._executor = settings, store, executor
        self._publish, self._public_url = publish, public_url
        self.bounds = Bounds(settings)
        self._stopping = asyncio.Event()
        self._html = HtmlView(enabled=page, base=self._base, in_thread=self._in_thread)
        self._watched = watched
        self._live = Live(store, settings.heartbeat_seconds)
        self._queries = QueriesView(
            settings, store, register=register, watched=watched, in_thread=self._in_thread, iris_of=self._iris
        )
        self.gauges = self._queries.gauges
        self._ldes = LdesView(settings, store, in_thread=self._in_thread, iris_of=self._iris, html=self._html)
        self._output = OutputView(settings, store, in_thread=self._in_thread, iris_of=self._iris, html=self._html)

    def routes(self) -> Iterable[Route]:
        """See `Endpoint.routes`."""
        one = f"{ROOT}/{{stream}}"
        reading, publishing = ("GET", "HEAD"), ("POST",)
        answering = self.bounds.answering
        return (
            Route(ROOT, (*reading, "POST"), answering(with_hints(self._streams)), ACCEPT_POST),
            Route(one, (*reading, "PUT", "PATCH", "DELETE"), answering(with_hints(self._stream))),
            Route(f"{one}/input", publishing, with_hints(self._input), ACCEPT_POST, with_hints(self._intake)),
            Route(f"{one}/inbox", (*reading, *publishing), answering(with_hints(self._inbox)), ACCEPT_POST),
            Route(f"{one}/output", reading, answering(self._output.output)),
            Route(f"{one}/output/{{sequence}}", reading, answering(self._output.element)),
            Route(f"{one}/events", reading, self._events),
            Route(f"{one}/socket", ("GET",), with_hints(self._socket)),
            Route(f"{one}/query", publishing, with_hints(self._query), {"Accept-Post": SPARQL_QUERY}),
            Route(f"{one}/ldes", reading, answering(self._ldes.root)),
            Route(f"{one}/ldes/{{page}}", reading, answering(self._ldes.page)),
        )

    async def start(self) -> None:
        """See `Endpoint.start`: queries that were registered go on."""
        await self._queries.registry.start()

    async def check(self) -> None:
        """See `Endpoint.check`."""
        await self._in_thread(self._store.check)

    async def stop(self) -> None:
        """See `Endpoint.stop`: followers get a proper end, and can resume; queries go on at the next start."""
        self._stopping.set()
        self._live.stop()
        await self._queries.registry.stop()

    async def aclose(self) -> None:
        """See `Endpoint.aclose`."""
        await self._in_thread(self._store.close)

    # --- streams ---

    async def _streams(self, request: web.Request) -> web.StreamResponse:
        """Lists the streams, or makes one with a name of its own."""
        iri = f"{self._base(request)}{ROOT}"
        if request.method != "POST":
            record_of(request).action = "describe"
            states = await self._in_thread(self._store.streams)
            if self._html.wanted(request):
                return await self._html.streams(
                    request,
                    states,
                    partial(self._document, request),
                    queries=[self._document(request, each) for each in states if self._queries.registry.get(each.name)],
                    may={"publish": access_of(self._publish), "register": self._queries.access},
                    sources=list(self._watched),
                )
            return described(request, streams_document(iri, [f"{iri}/{state.name}" for state in states]))
        return await self._make(request, request.headers.get("Slug") or os.urandom(8).hex())

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["stream"]
        record = record_of(request)
        record.stream = name
        if request.method == "PUT":
            return await self._make(request, name)
        if request.method == "PATCH":
            self._queries.admit(request)
            async with self.bounds.publishing(request) as body:
                return await self._queries.patch(request, name, body)
        if request.method == "DELETE":
            return await self._delete(request, name)
        record.action = "describe"
        state = self._store.state(name)
        document = self._document(request, state)
        if self._html.wanted(request):
            response = await self._view(request, state, document)
        else:
            response = described(request, document)
        for relation, iri in links(self._iris(request, name)).items():
            response.headers.add("Link", f'<{iri}>; rel="{relation}"')
        return response

    async def _view(self, request: web.Request, state: State, document: Document) -> web.Response:
        """A stream as a page."""
        is_output = self._queries.registry.get(state.name) is not None
        may = {
            "publish": "deny" if is_output else access_of(state.description.publish or self._publish),
            "manage": self._queries.access if is_output else access_of(self._publish),
            "register": self._queries.access,
        }
        elements = await self._in_thread(self._store.latest, state.name, SHOWN)
        return await self._html.stream(request, document, self._iris(request, state.name), elements, may=may)

    async def _delete(self, request: web.Request, name: str) -> web.Response:
        """Deletes a stream; one that a query gives out, with the query."""
        record_of(request).action = "delete"
        registered = self._queries.registry.get(name) is not None
        (self._queries.admit if registered else self._admit)(request)
        async with self.bounds.publishing(request):
            await (self._queries.registry.remove(name) if registered else self._store.adelete(name))
        return web.Response(status=204)

    async def _make(self, request: web.Request, name: str) -> web.StreamResponse:
        """Makes a stream; by PUT, one that is there gets another description; by POST, a query may come with it."""
        record = record_of(request)
        record.action, record.stream = "create", name
        content_type, posted = request.headers.get("Content-Type"), request.method == "POST"
        if posted and is_query(content_type):
            return await self._query(request)
        try:
            self._admit(request)
        except Forbidden:
            if not posted:
                raise
            self._queries.admit(request)  # nothing is read of who may do neither
        async with self.bounds.publishing(request) as body:
            said = read_description(content_type, body, self._iris(request, name).stream)
            if posted and said.query is not None:
                self._queries.admit(request)
                return await self._queries.register(request, said.query, description=said.description)
            self._admit(request)
            known = {state.name: state for state in self._store.streams()}
            if request.method == "PUT":
                check_conditions(request, self._tags(request, known[name]) if name in known else ())
                if name in known:
                    await self._store.adescribe(name, said.description)
                    return web.Response(status=204)
            if len(known) >= self._settings.streams:
                raise LimitExceeded(f"there are {len(known)} streams, and no more are allowed", status=507)
            await self._store.acreate(name, said.description)
            return web.Response(status=201, headers={"Location": self._iris(request, name).stream})

    async def _query(self, request: web.Request) -> web.StreamResponse:
        """Registers a query; at a stream's own endpoint, over that stream."""
        check_query(request.headers.get("Content-Type"))
        self._queries.admit(request)
        bound = request.match_info.get("stream")
        if bound is not None:
            self._store.state(bound)  # that it is there
        async with self.bounds.publishing(request) as body:
            return await self._queries.register(request, decoded(body, "the body"), bound=bound)

    def _document(self, request: web.Request, state: State) -> Document:
        return stream_document(self._iris(request, state.name), state) | self._queries.said(request, state.name)

    def _tags(self, request: web.Request, state: State) -> set[str]:
        """Returns the entity tags of all representations of a description."""
        document = self._document(request, state)
        return {entity_tag(*serialize(document, media_type)) for media_type in DESCRIPTIONS}

    # --- publishing ---

    async def _inbox(self, request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            return await self._input(request)
        return await self._output.inbox(request)

    async def _input(self, request: web.Request) -> web.StreamResponse:
        """Appends what is sent, durably: each message of a log is an element, all or none."""
        name, iris, record = self._published(request)
        settings, key = self._settings, idempotency_key(request)
        async with self.bounds.publishing(request) as body:
            messages = await self._read(request.headers.get("Content-Type"), body, iris.input, settings.batch_messages)
            if not messages:
                raise ProtocolError("the log has no message", status=422, hint="send at least one")
            sequences = await self._store.aappend_all(name, messages, key=key)
        record.published = len(sequences)
        headers = {"Location": iris.element(sequences[0])}
        if len(sequences) > 1:
            headers["Location"] = f"{iris.output}?after={sequences[0] - 1}&last={len(sequences)}"
        return web.json_response(published_document(iris, sequences), status=201, headers=headers)

    async def _intake(self, request: web.Request) -> web.StreamResponse:
        """Appends what comes over a WebSocket: each frame is a message."""
        name, iris, record = self._published(request)
        settings = self._settings
        socket = web.WebSocketResponse(
            protocols=tuple(SUBPROTOCOLS), heartbeat=settings.heartbeat_seconds, max_msg_size=settings.message_bytes
        )

        async def publish(frame: bytes) -> Awaitable[str]:
            messages = await self._read(SUBPROTOCOLS[protocol].document_type, frame, iris.input, 2)
            if len(messages) != 1:
                raise ProtocolError("a frame has one message", status=422, hint="send logs by POST")
            holding = ExitStack()
            holding.enter_context(self.bounds.holding())(len(frame))
            return asyncio.ensure_future(append(messages, holding))

        async def append(messages: list[Message], holding: ExitStack) -> str:
            with holding:
                sequences = await self._store.aappend_all(name, messages)
            record.published += 1
            return json.dumps(published_document(iris, sequences))

        with self.bounds.following():
            try:
                await socket.prepare(request)
                record.format = protocol = socket.ws_protocol or N_QUADS.subprotocol
                await take_frames(socket, publish, self._stopping)
            except ConnectionError as error:
                raise ClientLeft("left") from error
        return socket

    def _published(self, request: web.Request) -> tuple[str, StreamIris, StreamRecord]:
        """The stream that is published to.

        Raises:
            NotFound: there is none.
            Forbidden: the client may not.
        """
        name = request.match_info["stream"]
        record = record_of(request)
        record.action, record.stream = "publish", name
        state = self._store.state(name)
        # its description may say otherwise, but what a query gives out is the query's alone
        self._admit(request, "deny" if self._queries.registry.get(name) else state.description.publish)
        return name, self._iris(request, name), record

    async def _read(self, content_type: str | None, body: bytes, base: str, most: int) -> list[Message]:
        read = partial(
            read_messages, content_type, body, base=base, message_bytes=self._settings.message_bytes, most=most
        )
        return await self._in_thread(read) if len(body) > _LARGE else read()

    def _admit(self, request: web.Request, policy: str | None = None) -> None:
        """Refuses who may not publish."""
        admit(request, policy or self._publish, "publishing", "streams.publish")

    # --- pushing ---

    async def _events(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["stream"]
        record = record_of(request)
        record.action, record.stream = "events", name
        format = find_format(request.query.get("format", "nq"))[0]
        check_text(format)
        media_type = format.document_type
        headers = {
            "Content-Type": EVENT_STREAM,
            "Cache-Control": "no-store",
            "RDF-Message-Content-Type": media_type,
            "X-Accel-Buffering": "no",
        }
        record.format = media_type
        parameters = selecting(request.query)
        if "Last-Event-ID" in request.headers:
            parameters["after"] = request.headers["Last-Event-ID"]
        with self.bounds.following():
            after = await self._after(name, parameters)
            await self._output.check_next(name, after, format)
            headers[AFTER] = str(after)
            if request.method == "HEAD":
                return web.Response(headers=headers)
            body = event_stream(self._live.pages(name, after), self._output.events(format), record.deliver)
            return await send(request, body, headers, idle_seconds=self._settings.idle_seconds, sent=record.sent)

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["stream"]
        record = record_of(request)
        record.action, record.stream = "websocket", name
        socket = web.WebSocketResponse(
            protocols=tuple(SUBPROTOCOLS),
            heartbeat=self._settings.heartbeat_seconds,
            max_msg_size=_FOLLOWERS_BYTES,
            compress=False,  # or else each frame would be compressed for each follower alone
        )
        if not socket.can_prepare(request):
            raise ProtocolError("this is a WebSocket", status=426, hint="connect by ws: or wss:")
        with self.bounds.following():
            live = self._live.pages(name, await self._after(name, selecting(request.query)))
            try:
                await socket.prepare(request)
                await self._push(request, socket, live, record)
            except ConnectionError as error:
                raise ClientLeft("left") from error
        return socket

    async def _push(
        self,
        request: web.Request,
        socket: web.WebSocketResponse,
        live: AsyncGenerator[list[Element]],
        record: StreamRecord,
    ) -> None:
        protocol = socket.ws_protocol or N_QUADS.subprotocol
        record.format = protocol
        pushing = self._output.frames(SUBPROTOCOLS[protocol])
        code, reason = WSCloseCode.INTERNAL_ERROR, b"the server failed"
        try:
            await push_frames(request, socket, live, pushing, record.deliver)
            code, reason = WSCloseCode.GOING_AWAY, b"the server stops"
        finally:
            if not socket.closed:
                await socket.close(code=code, message=reason)

    async def _after(self, name: str, parameters: Mapping[str, str]) -> int:
        """The sequence behind which a follower begins: where it wants to; without a wish behind the newest element."""
        state = self._store.state(name)
        after = state.last
        if "after" in parameters:
            after = sequence_parameter("after", parameters["after"])
            self._store.check_position(name, after)
        elif "until" in parameters:
            raise ProtocolError("who follows has no until", hint="pull the output of the stream")
        elif parameters:
            after = (await self._in_thread(select, self._store, state, parameters)).after
        return after

    # --- within ---

    def _base(self, request: web.Request) -> str:
        return self._public_url or f"{request.scheme}://{request.host}"

    def _iris(self, request: web.Request, name: str) -> StreamIris:
        return StreamIris(f"{self._base(request)}{ROOT}/{name}")

    async def _in_thread(self, call: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, partial(call, *args, **options))
