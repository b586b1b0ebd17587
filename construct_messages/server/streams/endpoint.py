"""The endpoint of live streams: creates, describes and deletes streams, and routes requests to their resources.

Linked Data Notifications (sections 3.2 and 3.3) and LDN for RDF streams; RDF Messages, section 3. `documents.py` and
`push.py` serialize elements, `resources.py` describes streams. `publishing/`, `following/`, `output_view.py` and
`ldes/` contain publishing, following, pulling and Linked Data Event Streams.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, ParamSpec, TypeVar

from aiohttp import web

from construct_messages.rdf.errors import Forbidden, LimitExceeded, ProtocolError, UsageError
from construct_messages.rdf.formats import NDJSON_LD
from construct_messages.rdf.formats.media_types import JSON, SPARQL_QUERY
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import is_literal, literal_parts
from construct_messages.rdf.vocabulary import CM, CONTEXT, RDFS, RSP
from construct_messages.rdf.wire import Header
from construct_messages.server.config import StreamsSettings
from construct_messages.server.http.access import Access, Permit, Requesting, Right
from construct_messages.server.http.endpoint import Handler, Observe, Route
from construct_messages.server.http.forms import decoded
from construct_messages.server.http.sending import check_conditions, entity_tag
from construct_messages.server.streams.addresses import ROOT, StreamIris
from construct_messages.server.streams.bounds import StreamLimits
from construct_messages.server.streams.following import FollowingView
from construct_messages.server.streams.html_view import SHOWN, Activity, HtmlView, activity_of
from construct_messages.server.streams.ldes.view import LdesView
from construct_messages.server.streams.output_view import OutputView
from construct_messages.server.streams.publishing.messages import read_messages
from construct_messages.server.streams.publishing.view import PublishingView
from construct_messages.server.streams.queries import (
    PREVIEW,
    QueriesView,
    WatchedEndpoint,
    check_query,
    is_query,
)
from construct_messages.server.streams.record import StreamRecord
from construct_messages.server.streams.requests import (
    ACCEPT_POST,
    described,
    record_of,
    with_hints,
)
from construct_messages.server.streams.resources import OFFERED as DESCRIPTIONS
from construct_messages.server.streams.resources import (
    Document,
    links,
    serialize,
    stream_document,
    streams_document,
)
from construct_messages.server.streams.shapes import StreamShapes
from construct_messages.streams.element import Description, Retention, State
from construct_messages.streams.store import StreamStore

if TYPE_CHECKING:
    from construct_messages.server.streams.grpc.service import RdfStreamService


# --- description ----------------------------------------------------------------------------------
# A client's description of a new stream, in JSON or RDF, and the query that fills it.

N = TypeVar("N", int, float)

_MOST_BYTES: Final = 1 << 20


class NewStream(NamedTuple):
    """The description of a stream in the body of a request.

    Args:
        description: the description of the stream.
        query: the text of the query whose results become its elements; None: publishers send them.
    """

    description: Description
    query: str | None = None


def read_description(content_type: str | None, body: bytes, iri: str) -> NewStream:
    """Parses the description of a stream in the body of a request.

    Args:
        content_type: the header. JSON needs no context: its members are those of stream descriptions.
        body: the request body; empty: no description.
        iri: the IRI of the stream, the base of relative IRIs.

    Raises:
        ProtocolError: another media type (415), a malformed body (422), or an invalid value (422).

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
    """Returns the JSON, with the context of this package if it has none.

    Raises:
        ProtocolError: a member that is not in the context.
    """
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

T = TypeVar("T")
P = ParamSpec("P")


class StreamsEndpoint:
    """The streams of one store; see `server.http.endpoint.Endpoint`.

    Args:
        settings: the limits.
        store: the store; closed with the endpoint.
        executor: threads for reading large bodies and rows, which would block the event loop.
        access: the authorizers for reading, publishing and registering queries.
        watched: the SPARQL endpoints that queries may watch, by path.
        public_url: the public URL of the server; None: the URL of each request.
        page: whether browsers get HTML.

    Attributes:
        bounds: the limits of concurrency and memory.
        grpc: the gRPC service; None: it is not started.
        shapes: the shapes of published messages.
    """

    record = StreamRecord
    has_source = True
    reported: Mapping[str, object] = MappingProxyType({})
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
    path = ROOT

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
        self._settings, self._store, self._executor = settings, store, executor
        self._access, self._public_url = access, public_url
        self.bounds = StreamLimits(settings)
        self._html = HtmlView(
            enabled=page,
            base=self._base,
            in_thread=self._in_thread,
            activity=self._activity,
            has_queries=bool(watched),
        )
        self._watched = watched
        self._queries = QueriesView(
            settings,
            store,
            access=access,
            watched=watched,
            in_thread=self._in_thread,
            iris_of=self._iris,
        )
        self.gauges = {name: (each,) for name, each in self._queries.gauges.items()}
        self._ldes = LdesView(
            settings, store, in_thread=self._in_thread, iris_of=self._iris, html=self._html
        )
        self._output = OutputView(
            settings, store, in_thread=self._in_thread, iris_of=self._iris, html=self._html
        )
        self._following = FollowingView(
            settings,
            store,
            bounds=self.bounds,
            output=self._output,
            in_thread=self._in_thread,
            admit=self._admit_reader,
        )
        self.shapes = StreamShapes(settings, store, self._in_thread)
        self._publishing = PublishingView(
            settings,
            store,
            bounds=self.bounds,
            in_thread=self._in_thread,
            iris_of=self._iris,
            admit=self._admit_publisher,
            shapes=self.shapes,
        )
        self.grpc = None if settings.grpc is None else self._grpc_service()

    def routes(self) -> Iterable[Route]:
        """Returns the routes; see `Endpoint.routes`."""
        one = f"{ROOT}/{{stream}}"
        reading, publishing = ("GET", "HEAD"), ("POST",)
        answering = self.bounds.answering
        return (
            # first, because routes are tried in order, and this one is the most frequent
            Route(
                f"{one}/input",
                publishing,
                with_hints(self._publishing.post),
                ACCEPT_POST,
                with_hints(self._publishing.socket),
            ),
            Route(
                ROOT,
                (*reading, "POST"),
                answering(self._reading(with_hints(self._streams))),
                ACCEPT_POST,
            ),
            Route(
                one,
                (*reading, "PUT", "PATCH", "DELETE"),
                answering(self._reading(with_hints(self._stream))),
            ),
            Route(
                f"{one}/inbox",
                (*reading, *publishing),
                answering(self._reading(with_hints(self._inbox))),
                ACCEPT_POST,
            ),
            Route(f"{one}/output", reading, answering(self._reading(self._output.output))),
            Route(
                f"{one}/output/{{sequence}}",
                reading,
                answering(self._reading(self._output.element)),
            ),
            Route(f"{one}/events", reading, self._reading(self._following.events)),
            Route(f"{one}/socket", ("GET",), with_hints(self._following.socket)),
            Route(
                f"{one}/query", publishing, with_hints(self._query), {"Accept-Post": SPARQL_QUERY}
            ),
            Route(f"{one}/ldes", reading, answering(self._reading(self._ldes.root))),
            Route(f"{one}/ldes/{{page}}", reading, answering(self._reading(self._ldes.page))),
        )

    async def start(self, observe: Observe) -> None:
        """Starts the endpoint and resumes registered queries; see `Endpoint.start`."""
        await self._queries.registry.start()
        if self.grpc is not None:
            await self.grpc.start(observe)

    async def check(self) -> None:
        """Checks the store; see `Endpoint.check`."""
        await self._in_thread(self._store.check)

    async def stop(self) -> None:
        """Ends followers properly, so that they can resume; queries continue at the next start. See `Endpoint.stop`."""
        self._publishing.stop()
        self._following.stop()
        if self.grpc is not None:
            self.grpc.stop()
        await asyncio.gather(self.bounds.end_followers(), self._queries.registry.stop())

    async def aclose(self) -> None:
        """Closes the endpoint; see `Endpoint.aclose`."""
        if self.grpc is not None:
            await self.grpc.aclose()
        await self._in_thread(self._store.close)

    # --- streams ---

    async def _streams(self, request: web.Request) -> web.StreamResponse:
        """Lists the streams, or creates one with a generated name."""
        iri = f"{self._base(request)}{ROOT}"
        if request.method != "POST":
            record_of(request).action = "describe"
            states = await self._in_thread(self._store.streams)
            if self._html.wanted(request):
                get = self._queries.registry.get
                return await self._html.streams(
                    request,
                    [state for state in states if get(state.name) is None],
                    [state for state in states if get(state.name) is not None],
                    partial(self._document, request),
                    may={
                        "publish": self._access.of("publish").asks,
                        "register": self._access.of("register").asks,
                    },
                    sources=list(self._watched),
                )
            return described(
                request, streams_document(iri, [f"{iri}/{state.name}" for state in states])
            )
        return await self._make(request, request.headers.get("Slug") or os.urandom(8).hex())

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["stream"]
        record = record_of(request)
        record.stream = name
        if request.method == "PUT":
            return await self._make(request, name)
        if request.method == "PATCH":
            permit = await self._queries.admit(request)
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
        for relation, iri in links(self._iris(request, name)).items():
            response.headers.add("Link", f'<{iri}>; rel="{relation}"')
        return response

    async def _view(self, request: web.Request, state: State, document: Document) -> web.Response:
        """Returns a stream as a page."""
        is_output = self._queries.registry.get(state.name) is not None
        may = {
            "publish": "deny"
            if is_output
            else self._access.of("publish", state.description.publish).asks,
            "manage": self._access.of("register" if is_output else "publish").asks,
            "register": self._access.of("register").asks,
        }
        elements = await self._in_thread(self._store.latest, state.name, SHOWN)
        return await self._html.stream(
            request, document, self._iris(request, state.name), state, elements, may=may
        )

    async def _delete(self, request: web.Request, name: str) -> web.Response:
        """Deletes a stream; if it is the output of a query, also the query."""
        record_of(request).action = "delete"
        registered = self._queries.registry.get(name) is not None
        right: Right = "register" if registered else "publish"
        permit = await self._access.of(right).admit(request, right)
        async with self.bounds.publishing(request, permit):
            await (self._queries.registry.remove(name) if registered else self._store.adelete(name))
        return web.Response(status=204)

    async def _make(self, request: web.Request, name: str) -> web.StreamResponse:
        """Creates a stream. PUT replaces the description of an existing one; a POST may contain a query."""
        record = record_of(request)
        record.action, record.stream = "create", name
        content_type, posted = request.headers.get("Content-Type"), request.method == "POST"
        if posted and is_query(content_type):
            return await self._query(request)
        try:
            permit = await self._admit(request)
        except Forbidden:
            if not posted:
                raise
            # the body of a client without either right is not read
            permit = await self._queries.admit(request)
        async with self.bounds.publishing(request, permit) as body:
            described = read_description(content_type, body, self._iris(request, name).stream)
            if posted and described.query is not None:
                await self._queries.admit(request)
                return await self._queries.register(
                    request, described.query, description=described.description
                )
            await self._admit(request)
            self._check_policy(described.description.publish)
            known = {state.name: state for state in self._store.streams()}
            if request.method == "PUT":
                tags = self._tags(request, known[name]) if name in known else ()
                check_conditions(request, tags, f"the stream {name}")
                if name in known:
                    self._queries.registry.check_retention(name, described.description.retention)
                    await self._store.adescribe(name, described.description)
                    return web.Response(status=204)
            if len(known) >= self._settings.streams:
                raise LimitExceeded(
                    f"there are {len(known)} streams, and no more are allowed", status=507
                )
            await self._store.acreate(name, described.description)
            return web.Response(status=201, headers={"Location": self._iris(request, name).stream})

    async def _query(self, request: web.Request) -> web.StreamResponse:
        """Registers a query; at a stream's own endpoint, over that stream."""
        check_query(request.headers.get("Content-Type"))
        permit = await self._queries.admit(request)
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
        return stream_document(self._iris(request, state.name), state) | self._queries.description(
            request, state.name
        )

    def _tags(self, request: web.Request, state: State) -> set[str]:
        """Returns the entity tags of all representations of a description."""
        document = self._document(request, state)
        return {entity_tag(*serialize(document, media_type)) for media_type in DESCRIPTIONS}

    # --- publishing ---

    async def _inbox(self, request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            return await self._publishing.post(request)
        return await self._output.inbox(request)

    async def _admit_publisher(self, request: Requesting, name: str | None) -> Permit:
        """Rejects clients that may not publish to a stream; None: to any.

        Raises:
            NotFound: the stream does not exist.
            Forbidden: the client may not publish.
        """
        if name is None:
            return await self._admit_some_publisher(request)
        state = self._store.state(name)
        # its description may allow it, but only the query publishes to its output
        policy = "deny" if self._queries.registry.get(name) else state.description.publish
        return await self._admit(request, policy)

    async def _admit_some_publisher(self, request: Requesting) -> Permit:
        """Rejects clients that may publish to no stream."""
        refusals: list[Forbidden] = []
        for policy in {None, *(state.description.publish for state in self._store.streams())}:
            try:
                return await self._admit(request, policy)
            except Forbidden as refused:
                refusals.append(refused)
        # with other credentials it may be allowed
        raise next((each for each in refusals if each.status == 401), refusals[0])

    async def _admit(self, request: Requesting, policy: str | None = None) -> Permit:
        """Rejects clients that may not publish."""
        return await self._access.of("publish", policy).admit(request, "publish")

    async def _admit_reader(self, request: Requesting) -> Permit:
        """Rejects clients that may not read."""
        return await self._access.of("read").admit(request, "read")

    def _check_policy(self, policy: str | None) -> None:
        """Rejects a description with a policy that is not in the settings, such as another environment variable."""
        if policy is not None and policy not in self._access.names:
            raise ProtocolError(
                f"the description makes no sense: there is no policy {policy!r:.80} for publishers",
                status=422,
                hint=f"choose {', '.join(self._access.names)}",
            )

    def _reading(self, handler: Handler) -> Handler:
        """Returns the handler for clients that may read."""

        async def handle(request: web.Request) -> web.StreamResponse:
            if request.method not in ("GET", "HEAD"):
                return await handler(request)
            async with (await self._admit_reader(request)).limit():
                return await handler(request)

        return handle

    # --- within ---

    def _grpc_service(self) -> RdfStreamService:
        # needs an extra
        from construct_messages.server.streams.grpc.service import RdfStreamService

        return RdfStreamService(
            self._settings,
            self._store,
            bounds=self.bounds,
            in_thread=self._in_thread,
            admit_reader=self._admit_reader,
            admit_publisher=self._admit_publisher,
            shapes=self.shapes,
        )

    def _activity(self, state: State) -> Activity:
        followers = self.bounds.followers_of(state.name)
        return activity_of(self._store, state, datetime.now(UTC), followers)

    def _base(self, request: web.Request) -> str:
        return self._public_url or f"{request.scheme}://{request.host}"

    def _iris(self, request: web.Request, name: str) -> StreamIris:
        service = None
        if self.grpc is not None:
            service = self.grpc.url(None if self._public_url else request.url.host)
        return StreamIris(f"{self._base(request)}{ROOT}/{name}", service)

    async def _in_thread(self, call: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(
            self._executor, partial(call, *args, **options)
        )
