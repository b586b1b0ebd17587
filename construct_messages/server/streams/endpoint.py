"""The endpoint of live streams: creates, describes and deletes streams, and routes requests to their resources.

Linked Data Notifications (sections 3.2 and 3.3) and LDN for RDF streams; RDF Messages, section 3. `documents.py` and
`following.py` serialize elements, `resources.py` describes streams. `publishing/`, `following/`, `output_view.py` and
`ldes/` contain publishing, following, pulling and Linked Data Event Streams.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from aiohttp import web

from construct_messages.errors import Forbidden, LimitExceeded, ProtocolError, UsageError
from construct_messages.rdf.formats import LOGS, NDJSON_LD, content_type
from construct_messages.rdf.formats.media_types import (
    EVENT_STREAM,
    HTML,
    JSON,
    NDJSON,
    SPARQL_QUERY,
)
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import is_literal, literal_parts
from construct_messages.rdf.vocabulary import CM, CONTEXT, RDFS, RSP
from construct_messages.rdf.wire import Header, Parameter
from construct_messages.server.config import StreamsSettings
from construct_messages.server.http.access import Access
from construct_messages.server.http.body import decoded
from construct_messages.server.http.endpoint import (
    Endpoint,
    Handler,
    Method,
    Observe,
    RequestParameter,
    Route,
)
from construct_messages.server.http.openapi import WHOLE
from construct_messages.server.http.sending import check_conditions, entity_tag
from construct_messages.server.streams.following import FollowingView
from construct_messages.server.streams.html_view import HtmlView
from construct_messages.server.streams.ldes import OFFERED as LDES_TYPES
from construct_messages.server.streams.ldes import LdesView
from construct_messages.server.streams.output_view import DOCUMENTS, SEVERAL, OutputView
from construct_messages.server.streams.publishing import (
    ACCEPT_POST,
    ACCEPTED,
    CHECK,
    PublishingView,
    read_messages,
)
from construct_messages.server.streams.queries import PARAMETERS as QUERY_PARAMETERS
from construct_messages.server.streams.queries import (
    PATCHES,
    PREVIEW,
    QueriesView,
    WatchedEndpoint,
    check_query,
    is_query,
)
from construct_messages.server.streams.requests import (
    StreamRecord,
    described,
    record_of,
)
from construct_messages.server.streams.resources import OFFERED as DESCRIPTIONS
from construct_messages.server.streams.resources import (
    ROOT,
    Document,
    links,
    serialize,
    stream_document,
    streams_document,
)
from construct_messages.server.streams.served import ServedStreams
from construct_messages.streams.element import Description, Retention, State
from construct_messages.streams.store import StreamStore

if TYPE_CHECKING:
    from construct_messages.server.streams.grpc import RdfStreamService


# --- description ----------------------------------------------------------------------------------
# A client's description of a new stream, in JSON or RDF, and the query that fills it.

N = TypeVar("N", int, float)

_MOST_BYTES: Final = 1 << 20


class NewStream(NamedTuple):
    """The description of a stream in the body of a request; without a query, publishers send its elements."""

    description: Description
    query: str | None = None


def read_description(content_type: str | None, body: bytes, iri: str) -> NewStream:
    """Parses the description of a stream in the body of a request.

    JSON needs no context: its members are those of stream descriptions. 415: another media type; 422: a malformed body,
    or an invalid value.

    >>> read_description("application/json", b'{"label": "A", "retainedElements": 10}', "urn:a").description.label
    'A'
    """
    if not body:
        return NewStream(Description())
    if content_type is not None and content_type.partition(";")[0].strip().lower() in _JSON:
        body = _with_context(body)
    messages = read_messages(content_type, body, base=iri, message_bytes=_MOST_BYTES, most=1)
    message = messages[0] if messages else Message()
    try:
        description = Description(
            label=_value(message, f"{RDFS}label") or "",
            retention=Retention(
                count=_number(message, "retainedElements", int),
                seconds=_number(message, "retainedSeconds", float),
                bytes=_number(message, "retainedBytes", int),
            ),
            publish=_value(message, f"{CM}publish"),
        )
        return NewStream(description, _value(message, f"{RSP}query"))
    except UsageError as error:
        raise ProtocolError(
            f"the description makes no sense: {error.message}", status=422, hint=error.hint
        ) from error


_JSON: Final = (JSON, NDJSON_LD.document_type)
_MEMBERS: Final = (
    "label",
    "publish",
    "queryText",
    "retainedBytes",
    "retainedElements",
    "retainedSeconds",
)


def _with_context(body: bytes) -> bytes:
    """Returns the JSON, with the context of this package if it has none."""
    try:
        value = json.loads(body)
    except ValueError:
        return body  # the reader raises the error with its position
    if isinstance(value, dict) and "@context" not in value:
        for name in sorted(value.keys() - CONTEXT.keys()):
            # JSON-LD interprets keywords and IRIs, including prefixed ones
            if not name.startswith("@") and ":" not in name:
                raise ProtocolError(
                    f"a description has no member {name!r:.80}",
                    status=422,
                    hint=f"there are {', '.join(_MEMBERS)}",
                )
        return json.dumps({"@context": CONTEXT, **value}).encode()
    return body


def _number(message: Message, name: str, kind: Callable[[str], N]) -> N | None:
    value = _value(message, f"{CM}{name}")
    try:
        return None if value is None else kind(value)
    except ValueError:
        raise UsageError(
            f"{name} is {value!r:.80}", hint="give a number above 0, or leave it out"
        ) from None


def _value(message: Message, predicate: str) -> str | None:
    """Returns the literal of a property."""
    for quad in message:
        if quad.predicate == f"<{predicate}>" and is_literal(quad.object):
            return literal_parts(quad.object)[0]
    return None


# --- endpoint -------------------------------------------------------------------------------------


_ONE: Final = f"{ROOT}/{{stream}}"
_LOG_TYPES: Final = tuple(content_type(*log) for log in LOGS)
_AS_DESCRIBED: Final = {200: (*DESCRIPTIONS, HTML), 304: ()}
_AS_LDES: Final = {200: (*LDES_TYPES, HTML), 304: ()}
_FORMAT: Final = RequestParameter("format", "a format, instead of the header Accept")
_LIST: Final = (
    _FORMAT,
    RequestParameter("list", "the page of the list that has this element", WHOLE),
)
_BEGINNING: Final = (
    RequestParameter(Parameter.LAST, "this many of the newest elements", WHOLE),
    RequestParameter(Parameter.AFTER, "those after the one with this sequence", WHOLE),
    RequestParameter(Parameter.SINCE, "those since this time, with a zone"),
)
_SELECTING: Final = (
    *_BEGINNING,
    RequestParameter(Parameter.BEFORE, "those before the one with this sequence", WHOLE),
    RequestParameter(Parameter.UNTIL, "those until this time, with a zone"),
)
_PUBLISH: Final = Method(
    "Publish a message, or each message of a log",
    {200: (*_LOG_TYPES, NDJSON), 201: (JSON,), 202: (JSON,)},
    (
        RequestParameter(CHECK, "only validate the messages, and return them"),
        RequestParameter(Header.KEY, "publish messages with this key once", place="header"),
        RequestParameter(Header.LOG_AFTER, "so many messages are left out", WHOLE, "header"),
    ),
    ACCEPTED,
)
_REGISTERING: Final = (
    *(RequestParameter(name, "of a query: see the reference") for name in QUERY_PARAMETERS),
    RequestParameter(PREVIEW, "only try the query, over this many elements", WHOLE),
    RequestParameter("Slug", "the name of the stream", place="header"),
)
_REGISTERED: Final = {200: _LOG_TYPES, 201: ()}
_DESCRIBING: Final = (*_JSON, *DESCRIPTIONS)

_DESCRIBED: Final[Mapping[str, Mapping[str, Method]]] = {
    ROOT: {
        "GET": Method("List the streams", _AS_DESCRIBED, (_FORMAT,)),
        "POST": Method(
            "Create a stream, or register a query",
            _REGISTERED,
            _REGISTERING,
            tuple(dict.fromkeys((*_DESCRIBING, SPARQL_QUERY))),
        ),
    },
    _ONE: {
        "GET": Method("Describe a stream", _AS_DESCRIBED, (_FORMAT,)),
        "PUT": Method(
            "Create a stream, or change its description",
            {201: (), 204: ()},
            bodies=tuple(dict.fromkeys(_DESCRIBING)),
        ),
        "PATCH": Method("Pause or resume the query of a stream", {204: ()}, bodies=PATCHES),
        "DELETE": Method("Delete a stream, and its query", {204: ()}),
    },
    f"{_ONE}/input": {"POST": _PUBLISH},
    f"{_ONE}/inbox": {
        "GET": Method("List the elements", _AS_DESCRIBED, _LIST),
        "POST": _PUBLISH,
    },
    f"{_ONE}/output": {
        "GET": Method(
            "List the elements, or get several",
            {200: tuple(dict.fromkeys((*DESCRIPTIONS, *SEVERAL, *_LOG_TYPES, HTML))), 304: ()},
            (
                *_SELECTING,
                *_LIST,
                RequestParameter("messages", "a log in the syntax of this label"),
            ),
        )
    },
    f"{_ONE}/output/{{sequence}}": {
        "GET": Method("Get an element", {200: (*DOCUMENTS, HTML), 304: ()}, (_FORMAT,))
    },
    f"{_ONE}/events": {
        "GET": Method(
            "Follow the stream as server-sent events",
            {200: (EVENT_STREAM,)},
            (
                *_BEGINNING,
                _FORMAT,
                RequestParameter(Header.LAST_EVENT_ID, "go on after this event", WHOLE, "header"),
            ),
        )
    },
    f"{_ONE}/socket": {"GET": Method("Follow the stream over a WebSocket", {101: ()}, _BEGINNING)},
    f"{_ONE}/query": {
        "POST": Method(
            "Register a query over the stream", _REGISTERED, _REGISTERING, (SPARQL_QUERY,)
        )
    },
    f"{_ONE}/ldes": {"GET": Method("Get the Linked Data Event Stream", _AS_LDES, (_FORMAT,))},
    f"{_ONE}/ldes/{{page}}": {
        "GET": Method("Get a page of the Linked Data Event Stream", _AS_LDES, (_FORMAT,))
    },
}


class StreamsEndpoint(Endpoint):
    """The streams of one store; see `server.http.endpoint.Endpoint`.

    The store is closed with the endpoint. `watched` are the SPARQL endpoints that queries may watch, by path; for the
    rest see `ServedStreams`.
    """

    path = ROOT
    record = StreamRecord
    exposed_headers = (
        "Accept-Post",
        "ETag",
        "Link",
        "Location",
        Header.CONTENT_TYPE,
        Header.AFTER,
        Header.LAST,
        Header.IDENTITY,
        Header.TAKEN,
        Header.INVALID,
    )

    def __init__(
        self,
        settings: StreamsSettings,
        store: StreamStore,
        *,
        executor: Executor,
        access: Access,
        watched: Mapping[str, WatchedEndpoint] = MappingProxyType({}),
        public_url: str | None = None,
        page: bool = False,
    ) -> None:
        self._served = served = ServedStreams(
            settings,
            store,
            executor=executor,
            access=access,
            watched=watched,
            public_url=public_url,
        )
        self._store, self._access, self._watched = store, access, watched
        self.bounds, self.shapes = served.limits, served.shapes
        self._html = HtmlView(served, enabled=page, has_queries=bool(watched))
        self._queries = QueriesView(served, watched)
        self.gauges = {name: (each,) for name, each in self._queries.gauges.items()}
        self._ldes = LdesView(served, self._html)
        self._output = OutputView(served, self._html)
        self._following = FollowingView(served, self._output)
        self._publishing = PublishingView(served)
        self.grpc: RdfStreamService | None = None
        if settings.grpc is not None:
            # needs an extra
            from construct_messages.server.streams.grpc import RdfStreamService

            self.grpc = RdfStreamService(served)
            served.grpc_url = self.grpc.url

    def routes(self) -> Iterable[Route]:
        one, reading, socket = f"{ROOT}/{{stream}}", ("GET", "HEAD"), self._publishing.socket
        answering, sends_query = self._answering, {"Accept-Post": SPARQL_QUERY}
        routes = (
            # first, because routes are tried in order, and this one is the most frequent
            Route(f"{one}/input", ("POST",), self._publishing.post, ACCEPT_POST, socket),
            Route(ROOT, (*reading, "POST"), answering(self._streams), ACCEPT_POST),
            Route(one, (*reading, "PUT", "PATCH", "DELETE"), answering(self._stream)),
            Route(f"{one}/inbox", (*reading, "POST"), answering(self._inbox), ACCEPT_POST),
            Route(f"{one}/output", reading, answering(self._output.output)),
            Route(f"{one}/output/{{sequence}}", reading, answering(self._output.element)),
            Route(f"{one}/events", reading, self._following.events),
            Route(f"{one}/socket", ("GET",), self._following.socket),
            Route(f"{one}/query", ("POST",), self._query, sends_query),
            Route(f"{one}/ldes", reading, answering(self._ldes.root)),
            Route(f"{one}/ldes/{{page}}", reading, answering(self._ldes.page)),
        )
        return [route._replace(described=_DESCRIBED[route.path]) for route in routes]

    async def start(self, observe: Observe) -> None:
        """Starts the endpoint and resumes registered queries; see `Endpoint.start`."""
        await self._served.registry.start()
        if self.grpc is not None:
            await self.grpc.start(observe)

    async def check(self) -> None:
        await self._served.in_thread(self._store.check)

    async def stop(self) -> None:
        """Ends followers properly, so that they can resume; queries continue at the next start. See `Endpoint.stop`."""
        self._publishing.stop()
        self._following.stop()
        if self.grpc is not None:
            self.grpc.stop()
        await asyncio.gather(self.bounds.end_followers(), self._served.registry.stop())

    async def aclose(self) -> None:
        if self.grpc is not None:
            await self.grpc.aclose()
        await self._served.in_thread(self._store.close)

    def _answering(self, handler: Handler) -> Handler:
        """Returns the handler, whose reading requests wait for their turn and need the right to read."""

        async def handle(request: web.Request) -> web.StreamResponse:
            if request.method not in ("GET", "HEAD"):
                return await handler(request)
            async with (
                self.bounds.reading.enter(),
                (await self._served.admit_reader(request)).limit(),
            ):
                return await handler(request)

        return handle

    # --- streams ---

    async def _streams(self, request: web.Request) -> web.StreamResponse:
        """Lists the streams, or creates one with a generated name."""
        if request.method == "POST":
            return await self._make(request, request.headers.get("Slug") or os.urandom(8).hex())
        iri = f"{self._served.base(request)}{ROOT}"
        record_of(request).action = "describe"
        states = await self._served.in_thread(self._store.streams)
        if self._html.wanted(request):
            is_output = self._served.is_output
            return await self._html.streams(
                request,
                [state for state in states if not is_output(state.name)],
                [state for state in states if is_output(state.name)],
                partial(self._document, request),
                may={right: self._access.of(right).asks for right in ("publish", "register")},
                sources=list(self._watched),
            )
        return described(
            request, streams_document(iri, [f"{iri}/{state.name}" for state in states])
        )

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["stream"]
        record = record_of(request)
        record.stream = name
        if request.method == "PUT":
            return await self._make(request, name)
        if request.method == "PATCH":
            permit = await self._served.admit(request, "register")
            async with self.bounds.publishing(request, permit) as body:
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
        for relation, iri in links(self._served.iris(request, name)).items():
            response.headers.add("Link", f'<{iri}>; rel="{relation}"')
        return response

    async def _view(self, request: web.Request, state: State, document: Document) -> web.Response:
        """Returns a stream as a page."""
        is_output, access = self._served.is_output(state.name), self._access
        policy = "deny" if is_output else state.description.publish
        may = {
            "publish": access.of("publish", policy).asks,
            "manage": access.of("register" if is_output else "publish").asks,
            "register": access.of("register").asks,
        }
        return await self._html.stream(request, document, state, may=may)

    async def _delete(self, request: web.Request, name: str) -> web.Response:
        """Deletes a stream; if it is the output of a query, also the query."""
        record_of(request).action = "delete"
        registered = self._served.is_output(name)
        permit = await self._served.admit(request, "register" if registered else "publish")
        async with self.bounds.publishing(request, permit):
            remove = self._served.registry.remove if registered else self._store.adelete
            await remove(name)
        return web.Response(status=204)

    async def _make(self, request: web.Request, name: str) -> web.StreamResponse:
        """Creates a stream. PUT replaces the description of an existing one; a POST may contain a query."""
        record = record_of(request)
        record.action, record.stream = "create", name
        content_type, posted = request.headers.get("Content-Type"), request.method == "POST"
        if posted and is_query(content_type):
            return await self._query(request)
        admit = self._served.admit
        try:
            permit = await admit(request, "publish")
        except Forbidden:
            if not posted:
                raise
            # the body of a client without either right is not read
            permit = await admit(request, "register")
        iri = self._served.iris(request, name).stream
        async with self.bounds.publishing(request, permit) as body:
            described = read_description(content_type, body, iri)
            if posted and described.query is not None:
                await admit(request, "register")
                return await self._queries.register(
                    request, described.query, description=described.description
                )
            await admit(request, "publish")
            return await self._create(request, name, described.description)

    async def _create(
        self, request: web.Request, name: str, description: Description
    ) -> web.Response:
        self._check_policy(description.publish)
        known = {state.name: state for state in self._store.streams()}
        if request.method == "PUT":
            tags = self._tags(request, known[name]) if name in known else ()
            check_conditions(request, tags, f"the stream {name}")
            if name in known:
                self._served.registry.check_retention(name, description.retention)
                await self._store.adescribe(name, description)
                return web.Response(status=204)
        if len(known) >= self._served.settings.streams:
            raise LimitExceeded(
                f"there are {len(known)} streams, and no more are allowed", status=507
            )
        await self._store.acreate(name, description)
        location = self._served.iris(request, name).stream
        return web.Response(status=201, headers={"Location": location})

    async def _query(self, request: web.Request) -> web.StreamResponse:
        """Registers a query; at a stream's own endpoint, over that stream."""
        check_query(request.headers.get("Content-Type"))
        permit = await self._served.admit(request, "register")
        bound = request.match_info.get("stream")
        if bound is not None:
            self._store.state(bound)  # checks that the stream exists
        async with self.bounds.publishing(request, permit) as body:
            text = decoded(body, "the body")
            if PREVIEW not in request.query:
                return await self._queries.register(request, text, bound=bound)
        # a preview changes nothing, and publishers should not wait for it
        return await self._queries.preview(request, text, request.query[PREVIEW], bound=bound)

    def _document(self, request: web.Request, state: State) -> Document:
        document = stream_document(self._served.iris(request, state.name), state)
        return document | self._queries.description(request, state.name)

    def _tags(self, request: web.Request, state: State) -> set[str]:
        """Returns the entity tags of all representations of a description."""
        document = self._document(request, state)
        return {entity_tag(*serialize(document, media_type)) for media_type in DESCRIPTIONS}

    async def _inbox(self, request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            return await self._publishing.post(request)
        return await self._output.inbox(request)

    def _check_policy(self, policy: str | None) -> None:
        """Rejects a description with a policy that is not in the settings, such as another environment variable."""
        if policy is not None and policy not in self._access.names:
            raise ProtocolError(
                f"the description makes no sense: there is no policy {policy!r:.80} for publishers",
                status=422,
                hint=f"choose {', '.join(self._access.names)}",
            )
