"""The output of a stream: the list of its elements, one of them, or several as a message log.

Linked Data Notifications, section 3.3.2; LDN for RDF streams (pull). `documents.py` serializes elements.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Iterator
from typing import Final, NamedTuple
from xml.sax.saxutils import quoteattr

from aiohttp import web

from construct_messages.errors import Gone, NotFound, UnsupportedByFormat
from construct_messages.rdf.formats import FORMATS, NDJSON_LD, RDFM, Format, LogType, content_type
from construct_messages.rdf.formats.media_types import JSON, JSON_LD, RDF_XML, TRIG, TURTLE
from construct_messages.rdf.formats.negotiation import Plain, negotiate, prefer
from construct_messages.rdf.vocabulary import CONTEXT, LDP
from construct_messages.rdf.wire import Header, Property
from construct_messages.server.http.sending import answer_whole, entity_tag, negotiate_coding
from construct_messages.server.streams.documents import (
    ElementDocuments,
    is_log_as_stored,
    json_ld,
    log,
    negotiate_document,
    not_carried,
    stored_log,
)
from construct_messages.server.streams.html_view import HtmlView
from construct_messages.server.streams.requests import (
    FOR_GOOD,
    accept_of,
    answered,
    counted,
    described,
    record_of,
    select,
    selected,
    selecting,
    sequence_parameter,
)
from construct_messages.server.streams.resources import OFFERED as DESCRIPTIONS
from construct_messages.server.streams.resources import Document, StreamIris, serialize
from construct_messages.server.streams.served import ServedStreams
from construct_messages.streams.element import State

# --- listing --------------------------------------------------------------------------------------
# The list of a stream's elements, as a whole or by pages, in the negotiated serialization.
#
# Linked Data Notifications, section 3.3.2: a GET of an inbox lists its notifications. Many clients read a single
# document, so the answer is the whole list unless the request selects a page: by its URL, or by `Prefer:
# max-member-count` (Linked Data Platform Paging, section 6.2). Pages begin at fixed sequences. The whole list is
# written while it is sent. No store here.

LISTED: Final = 1000
"""The number of elements on a page."""

_MAX_MEMBERS: Final = re.compile(
    r"""(?:^|[;,\s])max-member-count\s*=\s*"?(\d{1,9})\b""", re.IGNORECASE
)


class ListPage(NamedTuple):
    """One page of the list, with sequences of elements on other pages; None: there is no such page."""

    sequences: range
    previous: int | None
    following: int | None
    first: int
    last: int

    @classmethod
    def of(cls, state: State, sequence: int) -> ListPage:
        """Returns the page with an element. `Gone`: retention removed all of its elements. `NotFound`: none of them
        exists yet.

        >>> from construct_messages.streams.element import Description
        >>> ListPage.of(State("a", Description(), first=700, next=2501, bytes=0), 999)
        ListPage(sequences=range(700, 1001), previous=None, following=1001, first=700, last=2500)
        """
        start = max(0, sequence - 1) // LISTED * LISTED + 1
        first, last = state.first, max(state.last, state.first)
        if start > last:
            raise NotFound(
                f"{state.name} has no element {sequence}", hint=f"its last is {state.last}"
            )
        if start + LISTED <= first:
            raise Gone(
                f"element {sequence} of {state.name} was removed by retention",
                first=first,
                hint=f"list from {first} on",
            )
        sequences = range(max(start, first), min(start + LISTED, state.next))
        return cls(
            sequences,
            start - 1 if start > first else None,
            start + LISTED if start + LISTED < state.next else None,
            first,
            last,
        )

    @property
    def final(self) -> bool:
        """Whether the page does not change until retention: it is full, and retention has removed none of its
        elements.
        """
        return self.following is not None and len(self.sequences) == LISTED

    def links(self, iri: str) -> Iterator[tuple[str, str]]:
        """Returns the targets of its Link headers, each with its relation type."""
        yield f"{LDP}Page", "type"
        yield iri, "canonical"
        for sequence, relation in (
            (self.first, "first"),
            (self.previous, "prev"),
            (self.following, "next"),
            (self.last, "last"),
        ):
            if sequence is not None:
                yield page_iri(iri, sequence), relation


def page_iri(iri: str, sequence: int) -> str:
    """Returns the IRI of the page of a list with an element."""
    return f"{iri}?list={max(0, sequence - 1) // LISTED * LISTED + 1}"


def wants_pages(prefer: str, count: int) -> bool:
    """Returns whether a client prefers a page to a list of this many elements.

    >>> wants_pages('return=representation; max-member-count="1000"', 1001), wants_pages("", 1001)
    (True, False)
    """
    most = _MAX_MEMBERS.search(prefer)
    return most is not None and count > int(most[1])


def page_document(iris: StreamIris, iri: str, page: ListPage) -> Document:
    """Returns the content of one page."""
    here = {
        "@id": page_iri(iri, page.sequences.start),
        "@type": "ldp:Page",
        **_bounds(page.sequences),
    }
    document: Document = {**_head(iris, iri), "@included": [here]}
    document["contains"] = [iris.element(sequence) for sequence in page.sequences]
    for name, sequence in ((Property.NEXT, page.following), (Property.PREVIOUS, page.previous)):
        if sequence is not None:
            document[name] = page_iri(iri, sequence)
    return document


async def whole_list(
    iris: StreamIris, iri: str, state: State, media_type: str
) -> AsyncGenerator[bytes]:
    """Yields the list of all retained elements, written while it is sent."""
    sequences = range(state.first, state.next)
    head = {**_head(iris, iri), **_bounds(sequences)}
    parts = (
        [iris.element(sequence) for sequence in sequences[start : start + LISTED]]
        for start in range(0, len(sequences), LISTED)
    )
    _, before = serialize(head, media_type)
    if media_type == RDF_XML.media_type:
        start, end = before.rpartition(b"</rdf:RDF>")[::2]
        yield start + f'<rdf:Description rdf:about={quoteattr(iri)} xmlns:ldp="{LDP}">\n'.encode()
        for part in parts:
            yield "".join(
                f"<ldp:contains rdf:resource={quoteattr(each)}/>\n" for each in part
            ).encode()
        yield b"</rdf:Description>\n</rdf:RDF>" + end
    elif media_type in (JSON_LD.media_type, JSON):
        yield before.rstrip().removesuffix(b"}").rstrip() + b',\n "contains": ['
        between = "\n  "
        for part in parts:
            yield (between + ",\n  ".join(map(json.dumps, part))).encode()
            between = ",\n  "
        yield b"\n ]\n}"
    else:
        # a line is a statement in N-Triples, N-Quads, and Turtle and TriG, which declare the prefix
        contains = (
            "ldp:contains"
            if media_type in (TURTLE.media_type, TRIG.media_type)
            else f"<{LDP}contains>"
        )
        yield before
        for part in parts:
            yield "".join(f"<{iri}> {contains} <{each}> .\n" for each in part).encode()


def _head(iris: StreamIris, iri: str) -> Document:
    return {"@context": CONTEXT, "@id": iri, "@type": "ldp:Container", Property.STREAM: iris.stream}


def _bounds(sequences: range) -> Document:
    if not sequences:
        return {}
    return {Property.FIRST_SEQUENCE: sequences[0], Property.LAST_SEQUENCE: sequences[-1]}


# --- output view ----------------------------------------------------------------------------------

DOCUMENTS: Final = {format.document_type: format for format in (NDJSON_LD, *FORMATS)} | {
    JSON: NDJSON_LD
}
"""The formats of an element, best first."""

SEVERAL: Final = {
    format.document_type: format
    for format in (NDJSON_LD, *FORMATS)
    if format.own is None or format == NDJSON_LD
} | {JSON: NDJSON_LD}
"""The formats of several elements without messages: with comments as delimiters, a log is a document as well."""

_WHOLE_BYTES: Final = 1 << 16  # lists up to this size are sent with their length


class OutputView:
    """The outputs of the streams of a store."""

    def __init__(self, served: ServedStreams, html: HtmlView) -> None:
        self._served, self._html = served, html
        self._settings, self._store = served.settings, served.store
        self._in_thread, self._iris_of = served.in_thread, served.iris
        self._documents: dict[str, ElementDocuments] = {}

    def documents(self, format: Format) -> ElementDocuments:
        """Returns the serializer of elements as documents of a format, which all requests share."""
        return self._documents.setdefault(format.name, ElementDocuments(format))

    async def check_next(self, name: str, after: int, format: Format) -> None:
        """Rejects followers that cannot receive even the next element: they would request it again and again."""
        if after == self._store.state(name).last:
            return
        element = await self._in_thread(self._store.get, name, after + 1)
        try:
            list(self.documents(format).encode([element]))
        except UnsupportedByFormat as error:
            raise not_carried(error) from error

    async def inbox(self, request: web.Request) -> web.StreamResponse:
        """Answers with the list of elements, as that of an inbox."""
        return await self._list(request, self._iris_of(request, request.match_info["stream"]).inbox)

    async def output(self, request: web.Request) -> web.StreamResponse:
        """Answers with the list of elements, or several of them."""
        name = request.match_info["stream"]
        iris = self._iris_of(request, name)
        query = request.query
        choice = negotiate(
            accept_of(request), format=query.get("format"), messages=query.get("messages")
        )
        if isinstance(choice, Plain) and "format" in query:
            choice = negotiate(
                accept_of(request)
            )  # a format in the URL may exist for logs only, such as Jelly
        wanted = selecting(query)
        as_html = self._html.wanted(request)
        if not wanted and (as_html or isinstance(choice, Plain)):
            return await self._list(request, iris.output)
        record = record_of(request)
        record.action, record.stream = "pull", name
        state = self._store.state(name)
        selection = await self._in_thread(select, self._store, state, wanted)
        pages = counted(record, selected(self._store, name, selection))
        if as_html:
            return await self._html.elements(request, iris, name, pages, selection.last)
        as_json_ld = False
        if isinstance(choice, Plain):
            media_type = prefer(accept_of(request), tuple(SEVERAL))
            format = SEVERAL[media_type]
            as_json_ld = format == NDJSON_LD
            choice = LogType(format, format.own or RDFM)
        if as_json_ld:
            record.format = media_type
            body = json_ld(pages, lambda each: iris.element(each.sequence))
        else:
            record.format = content_type(*choice)
            body = log(pages, *choice)
            if is_log_as_stored(*choice):
                lines = self._store.alines(name, *selection, choice.syntax.delimiter)
                body = stored_log(counted(record, lines), choice.syntax)
        coding = negotiate_coding(request)
        # a stream that was deleted and created again has other times
        times = await self._in_thread(
            self._store.times, name, [selection.last] if selection.last > selection.after else []
        )
        headers = {
            "Content-Type": record.format,
            "ETag": entity_tag(selection, times, record.format, coding),
            "Cache-Control": "no-cache",
            Header.IDENTITY: str(state.id),
            Header.AFTER: str(selection.after),
            Header.LAST: str(max(selection.after, selection.last)),
            "X-Accel-Buffering": "no",
        }
        return await answered(
            request, body, headers, idle_seconds=self._settings.idle_seconds, coding=coding
        )

    async def _list(self, request: web.Request, iri: str) -> web.StreamResponse:
        """Answers with the list of elements, or with the requested page of it."""
        name = request.match_info["stream"]
        record = record_of(request)
        record.action, record.stream = "list", name
        state, iris = self._store.state(name), self._iris_of(request, name)
        asked = request.query.get("list")
        count = state.next - state.first
        if asked is not None:
            page = ListPage.of(state, sequence_parameter("list", asked))
        elif self._html.wanted(request):
            page = ListPage.of(state, max(state.first, state.last))
        elif wants_pages(",".join(request.headers.getall("Prefer", [])), count):
            page = ListPage.of(state, state.first)
        else:
            return await self._whole_list(request, iris, iri, state)
        document = page_document(iris, iri, page)
        if self._html.wanted(request):
            return await self._html.listing(request, document, name)
        response = described(request, document)
        for target, relation in page.links(iri):
            response.headers.add("Link", f'<{target}>; rel="{relation}"')
        if asked is None:
            response.headers["Content-Location"] = page_iri(iri, page.first)
            response.headers["Preference-Applied"] = (
                f'return=representation; max-member-count="{LISTED}"'
            )
            response.headers["Vary"] = "Prefer"
        elif page.final:
            response.headers["Cache-Control"] = FOR_GOOD
        return response

    async def _whole_list(
        self, request: web.Request, iris: StreamIris, iri: str, state: State
    ) -> web.StreamResponse:
        media_type = prefer(accept_of(request), DESCRIPTIONS)
        record = record_of(request)
        record.format = media_type
        coding = negotiate_coding(request)
        headers = {
            "Content-Type": media_type,
            "ETag": entity_tag(iri, state.id, state.first, state.next, media_type, coding),
            "Cache-Control": "no-cache",
            "Vary": "Prefer",
        }
        return await answered(
            request,
            whole_list(iris, iri, state, media_type),
            headers,
            idle_seconds=self._settings.idle_seconds,
            buffer_bytes=_WHOLE_BYTES,
            coding=coding,
        )

    async def element(self, request: web.Request) -> web.StreamResponse:
        """Answers with one element."""
        name = request.match_info["stream"]
        record = record_of(request)
        record.action, record.stream = "element", name
        sequence = request.match_info["sequence"]
        number = sequence_parameter("the element", sequence)
        if sequence != str(number):
            raise NotFound(f"{name} has no element {sequence}", hint=f"it may be {number}")
        element = await self._in_thread(self._store.get, name, number)
        if self._html.wanted(request):
            return await self._html.element(
                request, self._iris_of(request, name), element, self._store.state(name)
            )
        media_type, body = negotiate_document(
            element, accept_of(request), DOCUMENTS, self.documents
        )
        record.format = media_type
        headers = {
            "Content-Type": media_type,
            "ETag": f'"{element.sequence}-{element.microseconds:x}-{media_type.partition("/")[2]}"',
            "Cache-Control": FOR_GOOD,
            "Last-Modified": element.time.strftime("%a, %d %b %Y %H:%M:%S GMT"),
            "Link": f'<{self._iris_of(request, name).stream}>; rel="collection"',
        }
        response = answer_whole(request, body, headers)
        record.delivered = int(response.status == 200)
        return response
