"""The views of streams for browsers: computes the values of their templates from descriptions and messages.

A page shows the same document or messages that other clients get in RDF. Templates are in `server/pages/templates`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from urllib.parse import urlencode

from aiohttp import web

from construct_messages.errors import Gone, NotFound
from construct_messages.rdf.formats import FORMATS, RDFM, content_type
from construct_messages.rdf.formats.media_types import HTML
from construct_messages.rdf.message import Message
from construct_messages.rdf.vocabulary import TREE
from construct_messages.rdf.wire import Parameter
from construct_messages.server.pages.endpoint import render, root_from, send_rendered, wants_html
from construct_messages.server.streams.requests import record_of
from construct_messages.server.streams.resources import ROOT, Document, StreamIris
from construct_messages.server.streams.served import ServedStreams
from construct_messages.streams.element import Element, State
from construct_messages.streams.store import StreamStore

# --- rate -----------------------------------------------------------------------------------------
# The recent activity of a stream: the number of elements per minute, as a chart, and the time of the newest one.
#
# The page updates the same chart while it follows the stream (`pages/static/rate.js`). No HTML here.

PERIOD: Final = timedelta(minutes=1)
PERIODS: Final = 60
_HEIGHT: Final = 24


class Rate(NamedTuple):
    """The rate of a stream. The oldest is first, and the last minute is not over."""

    counts: Sequence[int]

    @property
    def total(self) -> int:
        """The number of elements in all periods."""
        return sum(self.counts)

    @property
    def peak(self) -> int:
        """The maximal number of elements in one period."""
        return max(self.counts)

    @property
    def path(self) -> str:
        """The `d` of an SVG path in a box of two units a period and 24 units of height: a stroke for each period.

        >>> Rate([0, 1, 2]).path
        'M3 24V12M5 24V0'
        """
        return "".join(
            f"M{2 * place + 1} {_HEIGHT}V{_HEIGHT - -(-count * _HEIGHT // self.peak)}"
            for place, count in enumerate(self.counts)
            if count
        )


class Activity(NamedTuple):
    """The activity of a stream; the rate is without elements that retention has removed."""

    rate: Rate
    newest: str | None
    followers: int


def activity_of(store: StreamStore, state: State, now: datetime, followers: int) -> Activity:
    """Returns the activity of a stream."""
    end = now.replace(second=0, microsecond=0) + PERIOD
    rate = Rate(store.counts(state.name, end - PERIODS * PERIOD, PERIOD, PERIODS))
    newest = None
    with suppress(Gone):
        if state.last >= state.first:
            (time,) = store.times(state.name, [state.last])
            newest = datetime.fromtimestamp(time / 1_000_000, UTC).isoformat()
    return Activity(rate, newest, followers)


# --- view -----------------------------------------------------------------------------------------

SHOWN: Final = 20
"""The number of elements on a page."""

_STREAMS_SHOWN: Final = 200
_PAGES_LISTED: Final = 200
_SHOWN_BYTES: Final = 1 << 20
_DRAWN_BYTES: Final = 1 << 14

_TYPED: Final = [format for format in FORMATS if not format.binary]
_PUBLISHED: Final = {
    "one message": {format.document_type: format.name for format in _TYPED},
    "a log: each of its messages becomes an element": {
        content_type(format, format.own or RDFM): f"{format.name}, a log" for format in _TYPED
    },
}
"""The formats of the form for publishing: their names by media type."""

_DESCRIPTIONS: Final = {"jsonld": "JSON-LD", "ttl": "Turtle", "nt": "N-Triples", "rdf": "RDF/XML"}
_ELEMENTS: Final = {
    "nq": "N-Quads",
    "trig": "TriG",
    "ttl": "Turtle",
    "jsonld": "JSON-LD",
    "yamlld": "YAML-LD",
}
_PAGES: Final = {"trig": "TriG", "nq": "N-Quads", "jsonld": "JSON-LD"}
_LOGS: Final = {
    "nq": "N-Quads",
    "trig": "TriG",
    "ttl": "Turtle",
    "ndjsonld": "NDJSON-LD",
    "yamlld": "YAML-LD",
    "jelly": "Jelly",
}


class ElementShown(NamedTuple):
    """An element in the form that is shown.

    `lines` are the N-Quads of a short message, from which the page draws its card; None: the page reads them by a link.
    """

    iri: str
    href: str
    sequence: int
    time: str
    generated: str | None
    statements: int
    lines: str | None


class HtmlView:
    """The views of the streams of a server; `has_queries`: it has a page for queries, too."""

    def __init__(self, served: ServedStreams, *, enabled: bool, has_queries: bool) -> None:
        self._served, self._enabled, self._has_queries = served, enabled, has_queries
        self._in_thread = served.in_thread

    def wanted(self, request: web.Request) -> bool:
        """Returns whether a view answers a request."""
        return self._enabled and wants_html(request)

    async def streams(
        self,
        request: web.Request,
        states: Sequence[State],
        queries: Sequence[State],
        document: Callable[[State], Document],
        **values: object,
    ) -> web.Response:
        """Returns the list of registered queries with their output streams, and of the other streams. Those after the
        name in the parameter `after` are listed.
        """
        after = request.query.get(Parameter.AFTER, "")
        names = sorted(states, key=lambda state: state.name)
        listed = [state for state in names if state.name > after]
        shown = listed[:_STREAMS_SHOWN]
        activities = await self._in_thread(self._activities, [*shown, *queries])

        def described(states: Sequence[State]) -> list[tuple[Document, Activity]]:
            return [
                (document(state), activities[state.name])
                for state in states
                if state.name in activities
            ]

        following = (
            f"?after={listed[_STREAMS_SHOWN - 1].name}" if len(listed) > _STREAMS_SHOWN else None
        )
        return await self._send(
            request,
            "streams",
            streams=described(shown),
            queries=described(queries),
            count=len(states) + len(queries),
            following=following,
            previous="?" if after else None,
            formats=_DESCRIPTIONS,
            **values,
        )

    async def stream(
        self,
        request: web.Request,
        document: Document,
        state: State,
        **values: object,
    ) -> web.Response:
        """Returns the view of a stream: its description, and its newest elements."""
        newest = await self._in_thread(self._served.store.latest, state.name, SHOWN)
        iris = self._served.iris(request, state.name)
        return await self._send(
            request,
            "stream",
            document=document,
            activity=await self._in_thread(self._activity, state),
            elements=await self._in_thread(self._elements, request, iris, _within(newest[::-1])),
            formats=_DESCRIPTIONS,
            logs=_LOGS,
            published=_PUBLISHED,
            **values,
        )

    async def listing(self, request: web.Request, document: Document, name: str) -> web.Response:
        """Returns one page of the list of a stream's elements."""
        return await self._send(
            request, "listing", document=document, name=name, formats=_DESCRIPTIONS, logs=_LOGS
        )

    async def elements(
        self,
        request: web.Request,
        iris: StreamIris,
        name: str,
        pages: AsyncGenerator[list[Element]],
        last: int,
    ) -> web.Response:
        """Returns the view of elements that a browser selects by parameters. Closes the pages; `last` is the sequence
        of the last element.
        """
        elements = await _first(pages)
        parameters = {key: value for key, value in request.query.items() if key != Parameter.AFTER}
        return await self._send(
            request,
            "elements",
            name=name,
            elements=await self._in_thread(self._elements, request, iris, elements),
            following=_following(parameters, elements, last),
            asked=request.query_string,
            logs=_LOGS,
        )

    async def element(
        self, request: web.Request, iris: StreamIris, element: Element, state: State
    ) -> web.Response:
        """Returns the view of one element."""
        (shown,) = await self._in_thread(self._elements, request, iris, [element])
        return await self._send(
            request,
            "element",
            name=element.stream,
            element=shown,
            previous=element.sequence - 1 if element.sequence > state.first else None,
            following=element.sequence + 1 if element.sequence < state.last else None,
            formats=_ELEMENTS,
        )

    async def ldes_root(
        self, request: web.Request, iris: StreamIris, name: str, root: Message
    ) -> web.Response:
        """Returns the view of a Linked Data Event Stream's root: its description, and its pages, the newest first."""
        nodes = dict.fromkeys(
            quad.object[1:-1] for quad in root if quad.predicate == f"<{TREE}node>"
        )
        pages = list(reversed(nodes))
        return await self._send(
            request,
            "ldes_root",
            name=name,
            iri=iris.event_stream,
            pages=[(node.rpartition("/")[2], node) for node in pages[:_PAGES_LISTED]],
            omitted=max(0, len(pages) - _PAGES_LISTED),
            description=_drawn(root.lines[:-1]),
            formats=_PAGES,
        )

    async def ldes_page(
        self,
        request: web.Request,
        iris: StreamIris,
        head: Message,
        pages: AsyncGenerator[list[Element]],
        members: Callable[[Sequence[Element]], Iterable[Message]],
        *,
        last: int,
        **values: object,
    ) -> web.Response:
        """Returns the view of a page of a Linked Data Event Stream.

        `head` is the page's hypermedia, `pages` are the elements to show, which are closed, and `last` is the sequence
        of the last one; `values` name the stream, the page and its neighbours.
        """
        elements = await _first(pages)

        def cards() -> list[ElementShown]:
            shown = self._elements(request, iris, elements)
            return [
                each._replace(statements=len(member), lines=_drawn(member.lines[:-1]))
                for each, member in zip(shown, members(elements), strict=True)
            ]

        return await self._send(
            request,
            "ldes_page",
            head=_drawn(head.lines[:-1]),
            members=await self._in_thread(cards),
            more=_following({}, elements, last),
            formats=_PAGES,
            **values,
        )

    # --- within ---

    def _activity(self, state: State) -> Activity:
        followers = self._served.limits.followers_of(state.name)
        return activity_of(self._served.store, state, datetime.now(UTC), followers)

    def _activities(self, states: Iterable[State]) -> dict[str, Activity]:
        """Returns the activity of streams, by their names; without those that were deleted meanwhile."""
        activities = {}
        for state in states:
            with suppress(NotFound):
                activities[state.name] = self._activity(state)
        return activities

    def _elements(
        self, request: web.Request, iris: StreamIris, elements: Iterable[Element]
    ) -> list[ElementShown]:
        href = self._href(request)
        return [
            ElementShown(
                iris.element(each.sequence),
                href(iris.element(each.sequence)) or "",
                each.sequence,
                each.time.isoformat(),
                each.generated,
                each.nquads.count(b"\n") + 1 if each.nquads else 0,
                _drawn(each.nquads),
            )
            for each in elements
        ]

    def _href(self, request: web.Request) -> Callable[[str], str | None]:
        """Returns the link targets of pages: resources of this server by relative paths, also with a proxy's prefix."""
        base, root = f"{self._served.base(request)}/", root_from(request.path)

        def href(iri: str) -> str | None:
            if iri.startswith(base):
                return root + iri.removeprefix(base)
            return iri if iri.lower().startswith(("http://", "https://")) else None

        return href

    async def _send(self, request: web.Request, template: str, **values: object) -> web.Response:
        record_of(request).format = HTML
        shown = {
            **values,
            "href": self._href(request),
            "list": ROOT[1:],
            "has_queries": self._has_queries,
        }
        return send_rendered(request, await self._in_thread(render, template, request.path, shown))


def _drawn(nquads: bytes) -> str | None:
    """Returns the lines from which the page draws a card; None: they are too long for a page."""
    return nquads.decode() if len(nquads) <= _DRAWN_BYTES else None


def _within(elements: Sequence[Element]) -> list[Element]:
    """Returns the first elements that fit on a page; at least one, unless there are none."""
    shown, size = list[Element](), 0
    for element in elements[:SHOWN]:
        size += len(element.nquads)
        if shown and size > _SHOWN_BYTES:
            break
        shown.append(element)
    return shown


async def _first(pages: AsyncGenerator[list[Element]]) -> list[Element]:
    found: list[Element] = []
    async with aclosing(pages):
        async for page in pages:
            found += page
            if len(shown := _within(found)) < len(found):
                return shown
    return found


def _following(parameters: dict[str, str], elements: Sequence[Element], last: int) -> str | None:
    """Returns the URL of the elements after those shown; None: all are shown."""
    if not elements or elements[-1].sequence >= last:
        return None
    return "?" + urlencode({**parameters, Parameter.AFTER: elements[-1].sequence})
