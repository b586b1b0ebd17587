"""Serves a stream as a Linked Data Event Stream over HTTP: its root and its pages, in negotiated formats.

`pages.py` has their content. Full pages do not change; clients poll the root and the last page.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from functools import partial
from hashlib import blake2b
from threading import Lock
from typing import Final, Protocol

from aiohttp import web

from construct_messages.logs import EncoderOptions, encoder_for
from construct_messages.rdf.errors import Gone, NotFound
from construct_messages.rdf.formats import N_QUADS, N_TRIPLES, NDJSON_LD, RDFM, TRIG, TURTLE
from construct_messages.rdf.formats.media_types import JSON
from construct_messages.rdf.formats.negotiation import prefer
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import iri
from construct_messages.rdf.vocabulary import PROFILE
from construct_messages.rdf.wire import Parameter
from construct_messages.server.http.sending import negotiate_coding
from construct_messages.server.streams.addresses import StreamIris
from construct_messages.server.streams.documents import JsonLdDocument
from construct_messages.server.streams.html_view import HtmlView
from construct_messages.server.streams.ldes.pages import (
    LDES_PREFIXES,
    LdesPage,
    PageTimes,
    members,
    page_head,
    pages_of,
    root,
)
from construct_messages.server.streams.requests import (
    FOR_GOOD,
    accept_of,
    answered,
    counted,
    record_of,
)
from construct_messages.server.streams.selection import Selection, selected, sequence_parameter
from construct_messages.server.streams.served import ServedStreams
from construct_messages.streams.element import Element, State
from construct_messages.streams.store import StreamStore

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
        return await self._html.ldes_page(request, iris, page, state, head, elements, as_members)

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
        coding = negotiate_coding(request.headers.get("Accept-Encoding"))
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
    """The storage times of the first and last elements of pages; those of full pages are read once.

    Args:
        store: the store of the streams.
    """

    def __init__(self, store: StreamStore) -> None:
        self._store = store
        self._known: OrderedDict[str, dict[int, int]] = OrderedDict()
        self._lock = Lock()

    def bounds(self, name: str, size: int) -> tuple[State, list[PageTimes]]:
        """Returns the state of a stream, and the bounds of its pages.

        Args:
            name: the name of the stream.
            size: the size of its pages.

        Raises:
            NotFound: the stream does not exist.
        """
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
