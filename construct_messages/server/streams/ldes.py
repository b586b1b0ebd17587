"""Serves a stream as a Linked Data Event Stream over HTTP: its root and its pages, in negotiated formats.

`view.py` has their content. Full pages do not change; clients poll the root and the last page.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import blake2b
from threading import Lock
from typing import Final, NamedTuple, Protocol

from aiohttp import web

from construct_messages.errors import Gone, NotFound
from construct_messages.logs import EncoderOptions, encoder_for
from construct_messages.rdf.formats import N_QUADS, N_TRIPLES, NDJSON_LD, RDFM, TRIG, TURTLE
from construct_messages.rdf.formats.media_types import JSON
from construct_messages.rdf.formats.negotiation import prefer
from construct_messages.rdf.labels import Labels, may_have_labels
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import RDF, XSD, Term, iri, literal
from construct_messages.rdf.vocabulary import CM, DCTERMS, LDES, PROFILE, PROV, RDFS, TREE
from construct_messages.rdf.wire import Parameter, Property
from construct_messages.server.http.sending import negotiate_coding
from construct_messages.server.streams.documents import JsonLdDocument
from construct_messages.server.streams.html_view import HtmlView
from construct_messages.server.streams.requests import (
    FOR_GOOD,
    Selection,
    accept_of,
    answered,
    counted,
    record_of,
    selected,
    sequence_parameter,
)
from construct_messages.server.streams.resources import StreamIris
from construct_messages.server.streams.served import ServedStreams
from construct_messages.streams.element import Element, Retention, State, messages_of
from construct_messages.streams.store import StreamStore

# --- pages ----------------------------------------------------------------------------------------
# A Linked Data Event Stream as messages: its root, its pages and its members. No I/O.
#
# LDES 1.0.0-alpha with its server primer (https://w3id.org/ldes/server-primer), and the TREE profile: hypermedia come
# before the members, and the quads of a member are together. A member is the IRI of an element: the default graph
# contains the time when it was stored, and the graph of that name is the default graph of the message.

LDES_PREFIXES: Final = {
    "cm": CM,
    "dcterms": DCTERMS,
    "ldes": LDES,
    "prov": PROV,
    "rdfs": RDFS,
    "tree": TREE,
    "xsd": XSD,
}

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TYPE: Final = iri(f"{RDF}type")
_LABEL: Final = iri(f"{RDFS}label")
_EVENT_STREAM: Final = iri(f"{LDES}EventStream")
_VIEW, _MEMBER, _NODE = iri(f"{TREE}view"), iri(f"{TREE}member"), iri(f"{TREE}Node")
_ISSUED, _SEQUENCE, _GENERATED = (
    iri(f"{DCTERMS}issued"),
    iri(f"{CM}{Property.SEQUENCE}"),
    iri(f"{PROV}generatedAtTime"),
)
_RELATION, _RELATION_NODE = iri(f"{TREE}relation"), iri(f"{TREE}node")
_PATH, _VALUE = iri(f"{TREE}path"), iri(f"{TREE}value")
_AT_LEAST, _AT_MOST = (
    iri(f"{TREE}{name}OrEqualToRelation") for name in ("GreaterThan", "LessThan")
)
_TRUE: Final = literal("true", datatype=f"{XSD}boolean")


class LdesPage(NamedTuple):
    """A page of a stream: the elements of a range of sequences that begins after a multiple of its size. Both sequences
    are inclusive.

    >>> LdesPage.of(2001, 1000), LdesPage.of(3000, 1000).name, LdesPage.named("2001-3000"), LdesPage.named("2002-3001")
    (LdesPage(first=2001, last=3000), '2001-3000', LdesPage(first=2001, last=3000), None)
    """

    first: int
    last: int

    @classmethod
    def of(cls, sequence: int, size: int) -> LdesPage:
        """Returns the page of an element."""
        before = (sequence - 1) // size * size
        return cls(before + 1, before + size)

    @classmethod
    def named(cls, name: str) -> LdesPage | None:
        """Returns the page with a name; None: there is none. The names of pages depend on their size."""
        first, _, last = name.partition("-")
        if not (_is_sequence(first) and _is_sequence(last)):
            return None
        page = cls(int(first), int(last))
        return (
            page
            if page.first <= page.last and page == cls.of(page.last, page.last - page.first + 1)
            else None
        )

    @property
    def name(self) -> str:
        """The last part of its IRI."""
        return f"{self.first}-{self.last}"


def _is_sequence(text: str) -> bool:
    return text.isascii() and text.isdigit() and text[0] != "0" and len(text) < 16


def pages_of(state: State, size: int) -> list[LdesPage]:
    """Returns the pages with retained elements, the oldest first.

    >>> from construct_messages.streams.element import Description
    >>> pages_of(State("a", Description(), first=15, next=31, bytes=0), 10)
    [LdesPage(first=11, last=20), LdesPage(first=21, last=30)]
    """
    if state.first == state.next:
        return []
    first, last = LdesPage.of(state.first, size), LdesPage.of(state.last, size)
    return [LdesPage(start, start + size - 1) for start in range(first.first, last.first + 1, size)]


class PageTimes(NamedTuple):
    """The storage times of a page's first and last elements, in microseconds since 1970. If retention removed the
    first, it is that of the first one kept; the last is None if the page is not full.
    """

    page: LdesPage
    earliest: int
    latest: int | None


def root(
    iris: StreamIris,
    bounds: Sequence[PageTimes],
    state: State,
    *,
    version_of_path: str | None = None,
) -> Message:
    """Returns the root: the description of the stream, its retention, and its pages with their time bounds.

    `version_of_path` is the property whose object is the versioned resource of a member.

    Consecutive pages may share a time, so the bounds are inclusive.
    """
    stream, view = Term(f"<{iris.event_stream}>"), Term(f"<{iris.ldes}>")
    quads = [
        Quad(stream, _TYPE, _EVENT_STREAM),
        Quad(stream, _LABEL, literal(state.description.label or state.name)),
        Quad(stream, iri(f"{LDES}timestampPath"), _ISSUED),
        Quad(stream, iri(f"{LDES}sequencePath"), _SEQUENCE),
        Quad(stream, _VIEW, view),
        Quad(view, _TYPE, _NODE),
        *_retention(iris, bounds, state),
    ]
    if version_of_path is not None:
        quads.append(Quad(stream, iri(f"{LDES}versionOfPath"), iri(version_of_path)))
    labels = Labels.at(iris.ldes).in_message(0)
    for page, *times in bounds:
        node = Term(f"<{iris.ldes_page(page.name)}>")
        for kind, microseconds in zip((_AT_LEAST, _AT_MOST), times, strict=True):
            if microseconds is not None:
                relation = labels[Term(f"_:{len(labels)}")]
                quads += (
                    Quad(view, _RELATION, relation),
                    Quad(relation, _TYPE, kind),
                    Quad(relation, _RELATION_NODE, node),
                    Quad(relation, _PATH, _ISSUED),
                    Quad(relation, _VALUE, _date_time(microseconds)),
                )
    return Message(quads)


def _retention(iris: StreamIris, bounds: Sequence[PageTimes], state: State) -> Iterator[Quad]:
    """Returns the retention policy: the maximal age of elements, if any, and the time of the oldest one.

    LDES has no terms for limits on the number of elements or bytes; the time expresses their effect.
    """
    retention = state.description.retention
    if state.first == 1 and (retention == Retention() or not bounds):
        return  # without a policy, all elements are retained
    policy = Term(f"<{iris.ldes}#retention>")
    yield Quad(Term(f"<{iris.ldes}>"), iri(f"{LDES}retentionPolicy"), policy)
    yield Quad(policy, _TYPE, iri(f"{LDES}RetentionPolicy"))
    if retention.seconds is not None:
        seconds = f"{retention.seconds:f}".rstrip("0").rstrip(".")
        yield Quad(
            policy,
            iri(f"{LDES}fullLogDuration"),
            literal(f"PT{seconds}S", datatype=f"{XSD}duration"),
        )
    if bounds:
        yield Quad(policy, iri(f"{LDES}startingFrom"), _date_time(bounds[0].earliest))


def page_head(iris: StreamIris, page: LdesPage, *, full: bool) -> Message:
    """Returns the statements of a page before its members."""
    stream, node = Term(f"<{iris.event_stream}>"), Term(f"<{iris.ldes_page(page.name)}>")
    quads = [
        Quad(stream, _TYPE, _EVENT_STREAM),
        Quad(stream, _VIEW, Term(f"<{iris.ldes}>")),
        Quad(node, _TYPE, _NODE),
    ]
    return Message([*quads, Quad(node, iri(f"{LDES}immutable"), _TRUE)] if full else quads)


def members(
    iris: StreamIris,
    elements: Sequence[Element],
    version_of_path: str | None = None,
    *,
    graphs: bool = True,
) -> Iterator[Message]:
    """Returns elements as members with separate blank nodes, whose labels are the same each time.

    `version_of_path` counts if it has one object in a message's default graph, which is an IRI.

    Named graphs of messages keep their names. Without named graphs, the default graph of a message follows the
    statements about its member, and only the TREE profile shows where it belongs.
    """
    stream, labels = Term(f"<{iris.event_stream}>"), Labels.at(iris.ldes)
    for element, message in zip(elements, messages_of(elements), strict=True):
        if may_have_labels(element.nquads):
            message = message.map_blanks(labels.in_message(element.sequence).__getitem__)
        member = Term(f"<{iris.element(element.sequence)}>")
        quads = [
            Quad(stream, _MEMBER, member),
            Quad(member, _ISSUED, _date_time(element.microseconds)),
            Quad(member, _SEQUENCE, Term(f'"{element.sequence}"^^<{XSD}integer>')),
        ]
        if element.generated is not None:
            quads.append(
                Quad(member, _GENERATED, literal(element.generated, datatype=f"{XSD}dateTime"))
            )
        if version_of_path is not None and (entity := _only_object(message, iri(version_of_path))):
            quads.append(Quad(member, iri(version_of_path), entity))
        default = member if graphs else None
        quads += [
            Quad(subject, predicate, object, graph or default)
            for subject, predicate, object, graph in message
        ]
        yield Message(quads)


def _only_object(message: Message, predicate: Term) -> Term | None:
    """Returns the only object of a property in the default graph, if that is an IRI."""
    objects = {
        quad.object for quad in message if quad.predicate == predicate and quad.graph is None
    }
    return objects.pop() if len(objects) == 1 and next(iter(objects)).startswith("<") else None


def _date_time(microseconds: int) -> Term:
    time = (_EPOCH + timedelta(microseconds=microseconds)).isoformat().removesuffix("+00:00")
    return Term(f'"{time}Z"^^<{XSD}dateTime>')  # canonical, ten times as fast as `literal`


# --- view -----------------------------------------------------------------------------------------

_LOGS: Final = {format.document_type: format for format in (N_QUADS, TRIG, TURTLE, N_TRIPLES)}
OFFERED: Final = (
    *(media_type for media_type, format in _LOGS.items() if format.graphs),
    NDJSON_LD.document_type,
    *(media_type for media_type, format in _LOGS.items() if not format.graphs),
    JSON,
)
"""The media types of roots and pages, best first: formats with named graphs, then the others."""

_REMEMBERED_TIMES: Final = 1 << 18  # of all streams together


class LdesView:
    """The Linked Data Event Streams of a store."""

    def __init__(self, served: ServedStreams, html: HtmlView) -> None:
        self._served, self._html = served, html
        self._settings, self._store = served.settings, served.store
        self._in_thread, self._times = served.in_thread, _Times(served.store)

    async def root(self, request: web.Request) -> web.StreamResponse:
        """Answers with the description of the event stream and the IRIs of its pages."""
        name, iris = self._begin(request)
        description, digest = await self._in_thread(self._root, name, iris)
        if self._html.wanted(request):
            return await self._html.ldes_root(request, iris, name, description)
        no_members = selected(self._store, name, Selection(0, 0))
        return await self._answer(
            request, description, no_members, iris, etag=digest, cache_control="no-cache"
        )

    def _root(self, name: str, iris: StreamIris) -> tuple[Message, str]:
        """Returns the root and its digest."""
        state, bounds = self._times.bounds(name, self._settings.ldes_page)
        description = root(iris, bounds, state, version_of_path=self._settings.ldes_version_of_path)
        return description, blake2b(description.lines, digest_size=12).hexdigest()

    async def page(self, request: web.Request) -> web.StreamResponse:
        """Answers with the retained members of a page."""
        name, iris = self._begin(request)
        page = LdesPage.named(request.match_info["page"])
        while True:
            state = self._store.state(name)
            if page is None or page.first > state.last:
                raise NotFound(
                    f"{name} has no such page", hint=f"follow the relations of {iris.ldes}"
                )
            if page.last < state.first:
                hint = f"follow the relations of {iris.ldes}"
                raise Gone(
                    f"the elements of page {page.name} were removed by retention",
                    first=state.first,
                    hint=hint,
                )
            try:
                return await self._kept(request, iris, page, state)
            except Gone:
                continue  # retention removed more of the page meanwhile

    async def _kept(
        self, request: web.Request, iris: StreamIris, page: LdesPage, state: State
    ) -> web.StreamResponse:
        first, last = max(page.first, state.first), min(page.last, state.last)
        times = await self._in_thread(
            self._store.times, state.name, [last] if first <= last else []
        )
        full = page.last <= state.last
        head = page_head(iris, page, full=full)
        if self._html.wanted(request):
            return await self._html_page(request, iris, page, state, head)
        elements = selected(self._store, state.name, Selection(first - 1, last))
        return await self._answer(
            request,
            head,
            counted(record_of(request), elements),
            iris,
            # a stream that was deleted and created again has other times
            etag=f"{first}-{last}-{sum(times):x}-{self._version}",
            # clients must revalidate a page that retention is removing until it is gone
            cache_control=FOR_GOOD if full and first == page.first else "no-cache",
        )

    async def _html_page(
        self, request: web.Request, iris: StreamIris, page: LdesPage, state: State, head: Message
    ) -> web.StreamResponse:
        """Returns the page for a browser, with its members after `after`."""
        after = sequence_parameter(Parameter.AFTER, request.query.get(Parameter.AFTER, "0"))
        shown = Selection(max(page.first, state.first, after + 1) - 1, min(page.last, state.last))
        elements = counted(record_of(request), selected(self._store, state.name, shown))
        as_members = partial(members, iris, version_of_path=self._settings.ldes_version_of_path)
        size = page.last - page.first + 1
        before, after_it = (
            LdesPage(page.first + way * size, page.last + way * size).name for way in (-1, 1)
        )
        return await self._html.ldes_page(
            request,
            iris,
            head,
            elements,
            as_members,
            last=min(page.last, state.last),
            name=state.name,
            page=page.name,
            previous=before if page.first > state.first else None,
            following=after_it if state.last > page.last else None,
        )

    @property
    def _version(self) -> str:
        """Returns a value that differs between pages under different settings."""
        return blake2b(
            repr(self._settings.ldes_version_of_path).encode(), digest_size=3
        ).hexdigest()

    # --- within ---

    def _begin(self, request: web.Request) -> tuple[str, StreamIris]:
        name = request.match_info["stream"]
        record = record_of(request)
        record.action, record.stream = "ldes", name
        self._store.state(name)  # raises NotFound if the stream does not exist
        iris = self._served.iris(request, name)
        iri(iris.stream)  # checks that the Host header of the client forms valid IRIs
        return name, iris

    async def _answer(
        self,
        request: web.Request,
        head: Message,
        pages: AsyncGenerator[list[Element]],
        iris: StreamIris,
        *,
        etag: str,
        cache_control: str,
    ) -> web.StreamResponse:
        accept = accept_of(request)
        media_type = prefer(accept, OFFERED)
        coding = negotiate_coding(request)
        record = record_of(request)
        record.format = media_type
        # without named graphs, only the profile shows the content of a member
        in_profile = media_type in _LOGS and (
            PROFILE in (accept or "") or not _LOGS[media_type].graphs
        )
        headers = {
            "Content-Type": f'{media_type}; profile="{PROFILE}"' if in_profile else media_type,
            "ETag": f'"{"-".join(filter(None, (etag, media_type.partition("/")[2], coding)))}"',
            "Cache-Control": cache_control,
            "Link": f'<{iris.stream}>; rel="collection"',
        }
        return await answered(
            request,
            self._encoded(media_type, head, pages, iris),
            headers,
            idle_seconds=self._settings.idle_seconds,
            coding=coding,
        )

    async def _encoded(
        self, media_type: str, head: Message, pages: AsyncGenerator[list[Element]], iris: StreamIris
    ) -> AsyncGenerator[bytes]:
        """Yields the hypermedia and then the members, each after the comment `# @message` in formats with comments."""
        format = _LOGS.get(media_type)
        options = EncoderOptions(LDES_PREFIXES, triple_terms=True)
        encoder: _Encoder = (
            JsonLdDocument() if format is None else encoder_for(format, RDFM, options)
        )

        def encode(messages: Iterable[Message]) -> bytes:
            return b"".join(map(encoder.encode, messages))

        as_members = partial(
            members,
            iris,
            version_of_path=self._settings.ldes_version_of_path,
            graphs=format is None or format.graphs,
        )
        held = encoder.start() + await self._in_thread(encode, [head])
        async with aclosing(pages):
            async for page in pages:
                yield held + await self._in_thread(encode, as_members(page))
                held = b""
        yield held + encoder.finish()


class _Encoder(Protocol):
    """The encoder of a page."""

    def start(self) -> bytes: ...

    def encode(self, message: Message) -> bytes: ...

    def finish(self) -> bytes: ...


class _Times:
    """The storage times of the first and last elements of pages; those of full pages are read once."""

    def __init__(self, store: StreamStore) -> None:
        self._store = store
        self._known: OrderedDict[str, dict[int, int]] = OrderedDict()
        self._lock = Lock()

    def bounds(self, name: str, size: int) -> tuple[State, list[PageTimes]]:
        """Returns the state of a stream, and the bounds of its pages."""
        while True:
            state = self._store.state(name)
            borders = [
                (page, max(page.first, state.first), page.last if page.last <= state.last else None)
                for page in pages_of(state, size)
            ]
            wanted = {sequence for _, *both in borders for sequence in both if sequence is not None}
            try:
                times = self._read(name, wanted)
            except Gone:
                continue  # retention removed elements meanwhile
            return state, [
                PageTimes(page, times[first], None if last is None else times[last])
                for page, first, last in borders
            ]

    def _read(self, name: str, wanted: set[int]) -> dict[int, int]:
        known = self._known.get(name, {})
        # one of them is read again: the stream may have been deleted, and created again with other times
        new = sorted(wanted - known.keys())
        old = max(wanted & known.keys(), default=None)
        read = dict(zip(new, self._store.times(name, new), strict=True))
        if old is not None and self._store.times(name, [old]) != [known[old]]:
            known, read = {}, dict(zip(wanted, self._store.times(name, wanted), strict=True))
        times = {sequence: time for sequence, time in (known | read).items() if sequence in wanted}
        with self._lock:
            self._known[name] = times
            self._known.move_to_end(name)
            while len(self._known) > 1 and sum(map(len, self._known.values())) > _REMEMBERED_TIMES:
                self._known.popitem(last=False)
        return times
