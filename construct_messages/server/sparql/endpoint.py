"""A SPARQL endpoint: answers operations of the SPARQL Protocol with a message log or with the source's own answer.

SPARQL 1.1 Protocol, section 2. Decides whether an operation may run, and chooses between the two answers. `protocol.py`
reads requests, `rdf/formats/negotiation.py` chooses the format, `http/sending.py` sends bytes.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from asyncio import get_running_loop
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import aclosing
from functools import partial
from itertools import islice
from typing import Final

import pyoxigraph as ox
from aiohttp import web

from construct_messages.errors import (
    Forbidden,
    IncompleteResult,
    ProtocolError,
    SourceError,
    UsageError,
    shown,
)
from construct_messages.query.rewrite import ConstructQuery, query_form
from construct_messages.query.service import (
    check_fetches,
    check_functions,
    check_loads,
    check_services,
)
from construct_messages.query.tokens import QueryText
from construct_messages.rdf.formats import LOGS, SYNTAXES, content_type
from construct_messages.rdf.formats.media_types import (
    EVENT_STREAM,
    FORM,
    HTML,
    JSON,
    JSON_LD,
    MULTIPART_FORM,
    N_TRIPLES,
    NDJSON,
    RDF_XML,
    SPARQL_QUERY,
    SPARQL_UPDATE,
    TRIPLES,
    TURTLE,
    DocumentFormat,
    find_document_format,
)
from construct_messages.rdf.formats.negotiation import Plain
from construct_messages.rdf.formats.results import SOLUTIONS
from construct_messages.rdf.options import (
    UNION,
    Grouping,
    MessageOptions,
    Requests,
    options_of,
)
from construct_messages.rdf.terms import Lenience
from construct_messages.rdf.wire import Header
from construct_messages.server.config import EndpointSettings
from construct_messages.server.http.app import accept_header
from construct_messages.server.http.body import read_body
from construct_messages.server.http.endpoint import (
    Admission,
    Endpoint,
    Method,
    Observe,
    RequestParameter,
    Route,
    foreign_origin,
)
from construct_messages.server.http.openapi import MANY, parameter_of
from construct_messages.server.http.request_log import RECORD, RequestLog
from construct_messages.server.http.sending import negotiate_coding, send
from construct_messages.server.pages.endpoint import send_page, wants_html
from construct_messages.server.sparql.description import describe
from construct_messages.server.sparql.messages import (
    KnownFrames,
    MessagesAnswer,
    MessagesSender,
    SparqlRecord,
    choose_answer,
)
from construct_messages.server.sparql.protocol import (
    MessageParameters,
    ProtocolRequest,
    forwarded,
    read_request,
)
from construct_messages.sparql.client.responses import OK
from construct_messages.sparql.sources import Answer, Backend, Operation, Request
from construct_messages.sparql.sources.http.profiles import Profile
from construct_messages.sparql.sources.http.response import partial_reason

# --- self description -----------------------------------------------------------------------------
# Fetches a remote source's documents about itself: its page for browsers, and its RDF description.
#
# SPARQL 1.1 Service Description, section 2: a GET without a query. `description.py` writes the description of this
# server, which repeats that of the source.

# headers that are forwarded to a remote endpoint, in addition to those of the endpoint's settings
_SENT_ON: Final = (
    "Accept-Language",
    "Cache-Control",
    "If-Match",
    "If-Modified-Since",
    "If-None-Match",
    "Pragma",
)
_RDF: Final = (
    f"{TURTLE.media_type}, {RDF_XML.media_type};q=0.9, "
    f"{N_TRIPLES.media_type};q=0.9, {JSON_LD.media_type};q=0.5"
)
# forms may be submitted to this server; scripts and other resources are blocked
_FORM_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "frame-ancestors 'none'; sandbox allow-forms"
)
_DESCRIPTION_SECONDS: Final = 10.0
_DESCRIPTION_BYTES: Final = 1 << 20
_KNOWN_SECONDS: Final = 3600.0


def forwarded_headers(request: web.Request, settings: EndpointSettings) -> dict[str, str]:
    """Returns the headers of a request that the endpoint forwards to the source."""
    names = (*_SENT_ON, *settings.forward_headers)
    return {name: request.headers[name] for name in names if name in request.headers}


class SelfDescription:
    """The page and the description of a remote source."""

    def __init__(
        self, settings: EndpointSettings, backend: Backend, request_log: RequestLog
    ) -> None:
        self._settings, self._backend, self._request_log = settings, backend, request_log
        self._known: tuple[float, tuple[str, bytes] | None] | None = None

    async def page(self, request: web.Request, record: SparqlRecord) -> web.StreamResponse | None:
        """Sends the source's own page with a form for queries; None: it has none."""
        accept = accept_header(request) or ""
        headers = forwarded_headers(request, self._settings) | {"Accept": accept}
        operation = Operation(None, headers=headers, timeout=_DESCRIPTION_SECONDS)
        try:
            answer = await self._backend.answer(operation)
        except SourceError as error:
            self._request_log.log("warning", "no page", reason=error.message)
            return None
        headers = dict(answer.headers)
        async with aclosing(answer.body):
            if answer.status != 200 or "html" not in headers.get("Content-Type", "").lower():
                return None
            headers["Content-Security-Policy"] = _FORM_POLICY
            record.format = headers["Content-Type"]
            if request.method == "HEAD":
                return web.StreamResponse(status=answer.status, headers=headers)
            idle_seconds = self._settings.limits.idle_seconds
            return await send(
                request, answer.body, headers, idle_seconds=idle_seconds, sent=record.sent
            )

    async def description(self) -> tuple[str, bytes] | None:
        """Returns the media type and bytes of its RDF description; None: it has none. Fetched once an hour."""
        if self._known is None or time.monotonic() - self._known[0] > _KNOWN_SECONDS:
            self._known = time.monotonic(), await self._fetch_description()
        return self._known[1]

    async def _fetch_description(self) -> tuple[str, bytes] | None:
        asked = Operation(None, headers={"Accept": _RDF}, timeout=_DESCRIPTION_SECONDS)
        try:
            answer = await self._backend.answer(asked)
            body = bytearray()
            async with aclosing(answer.body):
                async for chunk in answer.body:
                    body += chunk
                    if len(body) > _DESCRIPTION_BYTES:
                        return None
        except SourceError as error:
            self._request_log.log("warning", "no description", reason=error.message)
            return None
        return (
            (dict(answer.headers).get("Content-Type", ""), bytes(body))
            if answer.status == 200
            else None
        )


# --- cap ------------------------------------------------------------------------------------------
# Detects answers to CONSTRUCT or DESCRIBE that have the maximal number of triples that the source sends.
#
# Virtuoso truncates such an answer at its `ResultSetMaxRows` plus one, with status 200 and no header. Only the number
# of triples indicates truncation; a complete result of this size looks the same. Bytes pass unchanged, and the copy
# for counting is limited.

COUNTED_BYTES: Final = 8 << 20
"""The maximal size of an answer that is parsed in order to count its triples; larger ones are not counted. Formats
of lines are counted by lines.
"""

CODINGS: Final = ("gzip", "x-gzip", "deflate", "identity")
"""The content codings of answers that are counted."""

_PIECE: Final = 1 << 16  # bytes that are decompressed together
# an arbitrary base, because only the number of triples matters
_BASE: Final = "http://example.org/"


def counted_codings(accept_encoding: str) -> str:
    """Returns the value of Accept-Encoding (RFC 9110, section 12.5.3) with only the codings that can be counted.

    >>> counted_codings("zstd, br;q=0.9, gzip;q=0.8, *;q=0.1"), counted_codings("br")
    ('gzip;q=0.8', 'identity')
    """
    parts = (part.strip() for part in accept_encoding.split(","))
    return (
        ", ".join(part for part in parts if part.partition(";")[0].strip().lower() in CODINGS)
        or "identity"
    )


async def watched(
    chunks: AsyncGenerator[bytes],
    cap: int,
    content_type: str,
    coding: str | None,
    *,
    met: Callable[[int], None],
    refuses: bool,
    executor: Executor,
) -> AsyncGenerator[bytes]:
    """Yields the body of an answer, and counts its triples if it is RDF in a known coding; closes it at the end.

    An answer of `cap` triples, or one more, may be truncated: `met` is called with the number, and may raise an error.
    If it does (`refuses`), each piece is held back until the next one arrives, so that no client considers the answer
    complete.
    """
    format = find_document_format(content_type)
    is_counted = format is not None and (coding or "identity").strip().lower() in CODINGS
    counter = _Counter(format, cap + 2, coding) if format is not None and is_counted else None
    held = b""
    async with aclosing(chunks):
        async for chunk in chunks:
            if counter is not None:
                counter.feed(chunk)
            ready, held = (held, chunk) if refuses else (chunk, b"")
            if ready:
                yield ready
        if counter is not None:
            count = await get_running_loop().run_in_executor(executor, counter.count)
            if count in (cap, cap + 1):
                met(count)
        if held:
            yield held


class _Counter:
    """Counts the triples of one document, up to a number of them."""

    def __init__(self, format: DocumentFormat, most: int, coding: str | None) -> None:
        self._format, self._most = format, most
        is_packed = (coding or "identity").strip().lower() != "identity"
        self._inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32) if is_packed else None
        self._kept = bytearray()
        self._lines = 0  # lines of pieces that were not kept
        self._is_known = True

    def feed(self, data: bytes) -> None:
        """Adds the next bytes."""
        try:
            while data and self._is_known:
                piece = data if self._inflater is None else self._inflater.decompress(data, _PIECE)
                data = b"" if self._inflater is None else self._inflater.unconsumed_tail
                self._add(piece)
                if self._inflater is not None and self._inflater.unused_data:
                    self._is_known = False  # data after the end, which the client must judge
        except zlib.error:
            self._is_known = False

    def _add(self, piece: bytes) -> None:
        self._kept += piece
        if len(self._kept) > COUNTED_BYTES or (self._format.line_based and self._lines):
            end = self._kept.rfind(b"\n") + 1
            self._lines += self._kept.count(b"\n")
            del self._kept[:end]
            self._is_known = self._format.line_based and len(self._kept) <= COUNTED_BYTES
        if not self._is_known:
            self._kept.clear()

    def count(self) -> int | None:
        """Returns the number of triples; None: it is unknown, because the document is too large or damaged."""
        if not self._is_known:
            return None
        quads = ox.parse(
            bytes(self._kept), format=self._format.parsed_as, base_iri=_BASE, lenient=True
        )
        try:
            return self._lines + sum(1 for _ in islice(quads, self._most))
        except SyntaxError:
            return None


# --- endpoint -------------------------------------------------------------------------------------

_LONG_CHARACTERS: Final = 4000  # about 20 ms

_LABELS: Final = {"enum": [syntax.label for syntax in SYNTAXES]}
_QUERYING: Final = (
    RequestParameter("query", "the query"),
    RequestParameter("default-graph-uri", "a graph of the default graph", MANY),
    RequestParameter("named-graph-uri", "a named graph", MANY),
    RequestParameter(
        "format", "a format of logs, or one of the source, instead of the header Accept"
    ),
    RequestParameter("messages", "ask for messages, in the syntax of this label", _LABELS),
    RequestParameter("frame", "a JSON-LD frame, or the name of one: ask for JSON documents"),
    parameter_of(options_of(Grouping)["by"], "group-by")._replace(schema=MANY),
    *(
        parameter_of(options_of(kind)[name], name.replace("_", "-"))
        for kind, name in (
            (MessageOptions, "distinct"),
            (MessageOptions, "max_messages"),
            (Requests, "page_size"),
        )
    ),
    RequestParameter(
        "lenient", "accept terms that are not RDF", {"enum": ["true", "false", "skip"]}
    ),
)
_POSTED: Final = (
    *_QUERYING,
    RequestParameter("update", "the update, instead of a query"),
    RequestParameter("using-graph-uri", "a graph of the default graph of an update", MANY),
    RequestParameter("using-named-graph-uri", "a named graph of an update", MANY),
)
_BODIES: Final = (FORM, MULTIPART_FORM, SPARQL_QUERY, SPARQL_UPDATE)
_ANSWERS: Final = tuple(
    dict.fromkeys(
        (
            *(content_type(*log) for log in LOGS),
            *(NDJSON, JSON, EVENT_STREAM, HTML),
            *(format.media_type for format in (*SOLUTIONS, *TRIPLES)),
        )
    )
)


def path_of(name: str) -> str:
    """Returns the path of a SPARQL endpoint.

    >>> path_of("dbpedia"), path_of("")
    ('/dbpedia/sparql', '/sparql')
    """
    return f"/{name}/sparql" if name else "/sparql"


class SparqlEndpoint(Endpoint):
    """A SPARQL endpoint; see `server.http.endpoint.Endpoint`.

    The backend is closed with the endpoint. The executor has threads for parsing long texts. `public_url` is that of
    the endpoint; None: that of the request. Without `page`, browsers get the source's page, if it has one. Pages of the
    origins in `cors` may send updates.
    """

    record = SparqlRecord
    exposed_headers = ("X-SPARQL-MaxRows", "X-SQL-Message", "X-SQL-State", Header.CONTENT_TYPE)

    def __init__(
        self,
        path: str,
        settings: EndpointSettings,
        backend: Backend,
        *,
        request_log: RequestLog,
        executor: Executor,
        public_url: str | None = None,
        page: bool = False,
        cors: tuple[str, ...] = (),
    ) -> None:
        self.path = path
        self._settings, self._backend, self._request_log, self._url = (
            settings,
            backend,
            request_log,
            public_url,
        )
        self._executor, self._has_page, self._cors = executor, page, cors
        self._admission = admission_of(settings)
        self._frames = KnownFrames(settings.frames)
        self._self_description = SelfDescription(settings, backend, request_log)

    def routes(self) -> Iterable[Route]:
        answers = {200: ("*/*",) if self._settings.is_remote else _ANSWERS, 204: ()}
        described = {
            "GET": Method("Answer a query, or describe the endpoint", answers, _QUERYING),
            "POST": Method("Answer a query, or update the source", answers, _POSTED, _BODIES),
        }
        return (Route(self.path, ("GET", "HEAD", "POST"), self.handle, described=described),)

    async def start(self, observe: Observe) -> None:  # noqa: ARG002 - the protocol's
        await self._backend.start()

    async def check(self) -> None:
        await self._backend.check()

    async def aclose(self) -> None:
        await self._backend.aclose()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answers a request."""
        record = _record(request)
        asked = await self._read(request)
        async with self._admission.enter():
            if asked.kind == "description":
                record.form = "description"
                if not asked.parameters and wants_html(request):
                    page: web.StreamResponse | None = None
                    if self._has_page:
                        page = send_page(request, self.path)
                    elif self._settings.is_remote:
                        page = await self._self_description.page(request, record)
                    if page is not None:
                        return page
                return await self._describe(request)
            # a browser sends a form of any site to any server, and an update takes effect even if its answer is not
            # read
            if (
                asked.kind == "update"
                and (origin := foreign_origin(request, self._cors)) is not None
            ):
                raise Forbidden(
                    f"pages of {origin} may not send updates", hint="allow their origin: cors"
                )
            record.query = asked.text
            # the page itself requests the answer
            if self._has_page and asked.kind == "query" and wants_html(request):
                return send_page(request, self.path)
            links = request.headers.getall("Link", ())
            decide = partial(self._decide, asked, accept_header(request), links, record)
            if len(asked.text or "") > _LONG_CHARACTERS:
                decided = await asyncio.get_running_loop().run_in_executor(self._executor, decide)
            else:
                decided = decide()
            if isinstance(decided, Plain):
                return await self._plain(request, asked, decided)
            return await self._messages(request, asked, *decided)

    async def _read(self, request: web.Request) -> ProtocolRequest:
        limits = self._settings.limits
        body = await read_body(request, limits.request_bytes, limits.idle_seconds)
        return read_request(
            request.method,
            request.rel_url.raw_query_string,
            request.headers.get("Content-Type"),
            body,
            limits,
        )

    def _decide(
        self, asked: ProtocolRequest, accept: str | None, links: Sequence[str], record: SparqlRecord
    ) -> Plain | tuple[MessagesAnswer, ConstructQuery, MessageParameters]:
        """Parses the text of an operation, checks that it may run, and chooses the kind of answer."""
        assert asked.text is not None
        text = QueryText(asked.text)
        record.form = form = "UPDATE" if asked.kind == "update" else query_form(text)
        check_operation(self._settings, asked.kind, form, text)
        given = {name: asked.value(name) for name in ("format", "messages", "frame")}
        construct = form == "CONSTRUCT"
        choice = choose_answer(links, accept, given, self._frames, construct=construct)
        if isinstance(choice, Plain):
            return choice
        record.format = choice.content_type
        options = asked.message_options
        prefixes, predefined = self._settings.prefixes, self._backend.predefined
        query = ConstructQuery.parse(
            text, prefixes=prefixes, predefined=predefined, group_by=options.grouping.by
        )
        return choice, query, options

    # --- a message log ---

    async def _messages(
        self,
        request: web.Request,
        asked: ProtocolRequest,
        answer: MessagesAnswer,
        query: ConstructQuery,
        options: MessageParameters,
    ) -> web.StreamResponse:
        settings = self._settings
        sizes = [size for size in (options.page_size, settings.page_size) if isinstance(size, int)]
        lenient = settings.lenient if options.lenient is None else options.lenient
        sent_on = Request(
            query.rewritten,
            self._default_graphs(asked),
            asked.named_graphs,
            min(sizes, default=settings.page_size),
            settings.limits.seconds,
            forwarded(asked.parameters, rewritten=True, sponge=settings.sponge),
            tuple(forwarded_headers(request, settings).items()),
            lenience=Lenience.of(lenient, base=query.base),
        )
        sender = MessagesSender(settings, self._backend, _record(request))
        send_it = sender.send_events if answer.events else sender.send_log
        return await send_it(request, answer, query, sent_on, options)

    # --- the source's own answer ---

    async def _plain(
        self, request: web.Request, asked: ProtocolRequest, choice: Plain
    ) -> web.StreamResponse:
        settings, record = self._settings, _record(request)
        record.source_asked()
        headers = forwarded_headers(request, settings)
        if choice.accept is not None:
            headers["Accept"] = choice.accept
        if settings.is_remote and (codings := request.headers.get("Accept-Encoding")):
            headers["Accept-Encoding"] = (
                counted_codings(codings) if self._counts(record) else codings
            )
        answer = await self._backend.answer(
            Operation(
                asked.text,
                asked.kind == "update",
                self._default_graphs(asked),
                asked.named_graphs,
                forwarded(asked.parameters, rewritten=False, sponge=settings.sponge),
                headers,
                request.method == "HEAD",
                settings.limits.seconds,
            )
        )
        own = dict(answer.headers)
        record.format = own.get("Content-Type")
        if settings.is_remote and (reason := partial_reason(answer.status, own.get)) is not None:
            await self._report_partial(answer, record, reason)
        if request.method == "HEAD":
            async with aclosing(answer.body):
                return web.StreamResponse(status=answer.status, headers=own)
        coding = None if settings.is_remote else negotiate_coding(request)
        body = answer.body
        if self._counts(record) and settings.row_cap is not None and answer.status in OK:
            content_type, packed = own.get("Content-Type", ""), own.get("Content-Encoding")
            met, refuses = partial(self._report_row_cap, record), settings.refuse_capped
            body = watched(
                body,
                settings.row_cap,
                content_type,
                packed,
                met=met,
                refuses=refuses,
                executor=self._executor,
            )
        return await send(
            request,
            body,
            own,
            status=answer.status,
            idle_seconds=settings.limits.idle_seconds,
            coding=coding,
            sent=record.sent,
        )

    def _counts(self, record: SparqlRecord) -> bool:
        """Returns whether the triples of an answer are counted; SELECT answers have a header with the cap."""
        settings = self._settings
        return (
            settings.is_remote
            and settings.row_cap is not None
            and record.form in ("CONSTRUCT", "DESCRIBE")
        )

    async def _report_partial(self, answer: Answer, record: SparqlRecord, reason: str) -> None:
        """Logs or rejects an answer that the source declares truncated."""
        if self._settings.refuse_capped:
            await answer.body.aclose()
            detail = f": {shown(reason)}" if reason else ""
            raise IncompleteResult(
                f"the source sent a part of the answer only{detail}",
                hint="ask for less, or give the source more time",
            )
        self._request_log.log(
            "warning", "partial answer", form=record.form, reason=shown(reason), endpoint=self.path
        )

    def _report_row_cap(self, record: SparqlRecord, count: int) -> None:
        """Logs or rejects an answer with the maximal number of triples that the source sends."""
        settings = self._settings
        if settings.refuse_capped:
            raise IncompleteResult(
                f"the source answered with {count} triples, and sends no more than {settings.row_cap}",
                hint="ask for messages, which are read in pages, or for less",
            )
        self._request_log.log(
            "warning",
            "possibly partial answer",
            form=record.form,
            triples=count,
            row_cap=settings.row_cap,
            endpoint=self.path,
        )

    # --- the page for people, and the service description ---

    async def _describe(self, request: web.Request) -> web.Response:
        settings = self._settings
        refused = [] if settings.update else ["SPARQL11Update"]
        refused += [] if settings.service_policy != "deny" else ["BasicFederatedQuery"]
        description = describe(
            self._url or _url_of(request),
            accept_header(request),
            languages=("SPARQL11Query", "SPARQL11Update")
            if settings.update
            else ("SPARQL11Query",),
            results=()
            if settings.is_remote
            else [format.media_type for format in (*SOLUTIONS, *TRIPLES)],
            refused=refused,
            extended=await self._self_description.description() if settings.is_remote else None,
        )
        _record(request).format = description.content_type
        if description.left_out is not None:
            self._request_log.log("warning", "description left out", reason=description.left_out)
        return web.Response(
            body=description.body, headers={"Content-Type": description.content_type}
        )

    def _default_graphs(self, asked: ProtocolRequest) -> tuple[str, ...]:
        if self._settings.union_default_graph and not (asked.default_graphs or asked.named_graphs):
            return (UNION,)
        return asked.default_graphs


def admission_of(settings: EndpointSettings) -> Admission:
    """Returns the limit of an endpoint's concurrent requests."""
    return Admission(
        settings.concurrency,
        queue_seconds=settings.queue_seconds,
        queue_length=settings.queue_length,
    )


def check_operation(settings: EndpointSettings, kind: str, form: str, text: QueryText) -> None:
    """Checks that an operation, and the requests that it causes the source to send, are allowed."""
    policy = settings.service_policy
    if form == "UPDATE":
        if not settings.update:
            raise Forbidden(
                "updates are switched off here",
                hint="send them to the source endpoint",
            )
        if kind == "query":
            raise UsageError("an update came as a query", hint="send it as update=…")
    check_services(text, policy)
    if form == "UPDATE":
        check_loads(text, policy)
    if settings.is_remote and policy != "allow":
        profile = Profile.named(settings.profile)
        check_functions(text, profile.unsafe_functions, profile.safe_functions)
    if not settings.sponge:
        check_fetches(text)


def _record(request: web.Request) -> SparqlRecord:
    record = request[RECORD]
    assert isinstance(record, SparqlRecord)
    return record


def _url_of(request: web.Request) -> str:
    try:
        return str(request.url.with_query(None))
    except ValueError as error:
        raise ProtocolError(
            f"Host: {request.host} is not a host", hint="send the name and port of this server"
        ) from error
