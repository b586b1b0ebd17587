"""Reads a Linked Data Event Stream page by page: its members as elements, in order, each once.

LDES 1.0.0-alpha, and TREE. A traversal begins at the root and follows relations, those with the lowest bound first. A
member is returned as soon as no unread page can have an earlier one. Pages that may change are requested again, others
are not. `feeds/http/collections.py` reads the content of pages.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import urldefrag

from construct_messages.errors import LimitExceeded, LogError, SourceError, UsageError
from construct_messages.feeds.http.client import target_of
from construct_messages.feeds.http.collections import (
    EventStream,
    Hypermedia,
    Known,
    Member,
    Path,
    Relation,
    Value,
    check_member,
    value_of,
)
from construct_messages.feeds.http.connections import HttpStream
from construct_messages.feeds.http.discovery import (
    ACCEPT_PAGES,
    document_in,
    is_immutable,
    quads_in,
)
from construct_messages.feeds.state import Checkpoint, check_next, is_sequence
from construct_messages.feeds.transport import Start, Transport
from construct_messages.rdf.formats.media_types import read_media_type
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import Term, is_literal, literal_parts
from construct_messages.rdf.vocabulary import PROFILE
from construct_messages.rdf.wire import Property
from construct_messages.sparql.client.urls import without_query
from construct_messages.streams import Element
from construct_messages.streams.publication import received

_GONE, _NOT_MODIFIED = 410, 304
_PAGES: Final = 1_000_000
_HELD_BYTES: Final = 1 << 30  # the maximal size of members that cannot be returned yet, as N-Quads


class _PendingMember(NamedTuple):
    """A member that was not returned yet, ordered by its values, and then by its position."""

    values: tuple[Value, ...]
    place: int
    iri: str
    terms: tuple[Term, ...]
    element: Element


@dataclass
class _Visited:
    """The state of a page that was read, for skipping it or requesting it again."""

    etag: str | None = None
    immutable: bool = False
    relations: list[Relation] = field(default_factory=list)


class _Answer(NamedTuple):
    """A page that was fetched."""

    page: Hypermedia | None  # its content; None: it has not changed
    places: tuple[str, ...]  # its URLs, before and after redirects
    etag: str | None  # its version; None: it has none
    immutable: bool  # whether it does not change


class EventStreamTransport(Transport):
    """Reads one event stream, by its URL, that of its root, or that of one of its pages; see `Transport`."""

    def __init__(self, stream: HttpStream) -> None:
        self._client, self._settings = stream.client, stream.settings
        self._url = url = stream.endpoints.urls[Property.LDES]
        self._known = Known(None)
        self._root = urldefrag(url).url  # until the root is known
        self._stream = EventStream(Term(f"<{url}>"))
        self._visited: dict[str, _Visited] = {}
        self._fetched: dict[str, _Answer] = {}  # pages that were read to find the root
        self._held: list[_PendingMember] = []  # a heap
        self._waiting: set[str] = set()  # the IRIs of members that were not returned yet
        self._held_bytes = self._met = 0
        self._latest: tuple[Value, ...] = ()
        # the latest value up to which pages that were read cannot have new members; None: any value
        self._horizon: tuple[Value, ...] | None = None

    @property
    def position(self) -> Checkpoint | None:
        return self._known.checkpoint

    async def read(self, start: Start, *, follow: bool) -> AsyncGenerator[Element | None]:
        """Yields the members; see `Transport.read`.

        Raises `UsageError` for a start sequence or time that members do not have, and `SourceError` for a member
        without a value for its order, or a page at another origin.
        """
        self._known = Known.at(start)
        self._root, self._stream = await self._discover()
        self._check(start)
        pause = max(self._stream.polling_seconds or 0, self._settings.poll_seconds)
        if start.last is None:
            yield None
        else:
            newest: deque[_PendingMember] = deque()
            async with aclosing(self._pass()) as members:
                async for held in members:
                    newest.append(held)
                    if len(newest) > start.last:
                        self._emit(newest.popleft())
            yield None
            for held in newest:
                yield self._emit(held)
        while True:
            async with aclosing(self._pass()) as members:
                async for held in members:
                    yield self._emit(held)
            if not follow:
                return
            await asyncio.sleep(pause)

    def _check(self, start: Start) -> None:
        stream = self._stream
        if start.after and not stream.has_elements:
            raise UsageError(
                f"the members of {stream.iri} have no sequences to begin after",
                hint="begin with a time, or go on from a state; 0 is the beginning",
            )
        if start.since is not None and stream.timestamp_path is None:
            raise UsageError(
                f"the members of {stream.iri} have no times",
                hint="leave out the time to begin with",
            )

    # --- start -----------------------------------------------------------------------------------------------

    async def _discover(self) -> tuple[str, EventStream]:
        """Returns the URL of the root, and its description of the stream."""
        url = self._root
        self._fetched[url] = answer = await self._get(url)
        page, places, _, _ = answer
        found = None if page is None else page.view(self._url, places)
        if page is None or found is None:
            raise SourceError(
                f"{without_query(url)} is no event stream: it has no tree:view",
                hint="give the URL of its root",
            )
        stream, view = found
        described = page.event_stream(stream)
        if view in places:
            return url, described
        root = self._target(url, view)
        self._fetched[root] = answer = await self._get(root)
        at_root = described if answer.page is None else answer.page.event_stream(stream)
        return root, at_root if at_root.paths else described

    def _target(self, url: str, reference: str) -> str:
        return target_of(url, reference, self._settings.origins)

    # --- members ------------------------------------------------------------------------------------------------------

    async def _pass(self) -> AsyncGenerator[_PendingMember]:
        """Yields the new members.

        While other pages are read, a page may get members that are earlier than theirs. If several pages can change,
        they are therefore requested again, and only members that were known the first time are returned.
        """
        self._horizon = None
        async with aclosing(self._traverse()) as members:
            async for held in members:
                yield held
        self._horizon = None
        if (
            self._held
            and self._stream.paths
            and sum(not page.immutable for page in self._visited.values()) > 1
        ):
            self._horizon = max(held.values[:1] for held in self._held)
            async with aclosing(self._traverse()) as members:
                async for held in members:
                    yield held
        while self._held and self._may_emit(self._held[0]):
            yield heapq.heappop(self._held)

    def _may_emit(self, held: _PendingMember) -> bool:
        return self._horizon is None or held.values[:1] <= self._horizon

    async def _traverse(self) -> AsyncGenerator[_PendingMember]:
        """Reads all pages that may have new members, and yields those that are next in order."""
        fringe: list[tuple[tuple[Value, ...], int, Relation]] = [
            ((), 0, Relation(self._root, None, None))
        ]
        found = {self._root}
        while fringe:
            bound, _, relation = heapq.heappop(fringe)
            page = await self._visit(relation)
            for each in page.relations:
                if each.page in found or (
                    each.upper is not None and self._known.is_past(each.upper)
                ):
                    continue
                found.add(each.page)
                if len(found) > _PAGES:
                    raise LimitExceeded(
                        f"{without_query(self._root)} leads to more than {_PAGES} pages"
                    )
                lower = () if each.lower is None else (each.lower,)
                heapq.heappush(fringe, (max(bound, lower), len(found), each))
            if not page.immutable and self._horizon is None:
                self._horizon = self._latest
            while self._held and self._is_next(self._held[0], fringe[0][0] if fringe else ()):
                yield heapq.heappop(self._held)

    def _is_next(self, held: _PendingMember, bound: tuple[Value, ...]) -> bool:
        """Returns whether no page can have an earlier member, neither unread pages nor those that were read."""
        if not held.values:
            return True
        return bool(bound) and _precedes(held.values[0], bound[0]) and self._may_emit(held)

    def _emit(self, held: _PendingMember) -> Element:
        self._waiting.remove(held.iri)
        self._held_bytes -= len(held.element.nquads)
        sequence = held.element.sequence or self._known.sequence + 1
        if held.element.sequence and self._known.sequence:
            check_next(self._stream.iri[1:-1], self._known.sequence, sequence)
        self._known.add(held.iri, held.terms, sequence)
        return held.element._replace(sequence=sequence)

    def _hold(self, member: Member, relation: Relation) -> None:
        """Keeps a member until its turn, unless it was returned or is before the start."""
        check_member(member.iri)
        terms = tuple(self._value(member, path) for path in self._stream.paths)
        values = tuple(map(value_of, terms))
        _, lower, upper = relation
        if values and (_precedes(values[0], lower) or _precedes(upper, values[0])):
            # members were returned, or pages skipped, because of the relation
            raise SourceError(
                f"{member.iri} has {terms[0]}, which is not within the bounds of the relation to {relation.page}"
            )
        self._latest = max(self._latest, values[:1])
        if member.iri in self._waiting or self._known.has(member.iri, values):
            return
        sequence = 0
        if self._stream.has_elements:
            sequence = _sequence(terms[-1])
            if sequence <= self._known.sequence:
                return
            message = member.element()
        else:
            message = Message(member.quads)
        element = received(self._stream.iri[1:-1], sequence, message)
        if values and values[0][0] == 0:
            element = element._replace(microseconds=int(values[0][1] * 1_000_000))
        self._held_bytes += len(element.nquads)
        if self._held_bytes > _HELD_BYTES:
            raise LimitExceeded(
                f"{self._stream.iri} has more than {_HELD_BYTES} bytes of members that cannot be brought into order",
                hint="its relations need bounds of its ldes:timestampPath",
            )
        self._waiting.add(member.iri)
        self._met += 1
        heapq.heappush(self._held, _PendingMember(values, self._met, member.iri, terms, element))

    def _value(self, member: Member, path: Path) -> Term:
        values = member.values(path)
        if len(values) != 1:
            raise SourceError(
                f"{member.iri} has {len(values)} values of {'/'.join(path)}, which members are in the order of"
            )
        return values.pop()

    # --- pages --------------------------------------------------------------------------------------------------------

    async def _visit(self, relation: Relation) -> _Visited:
        """Returns the state of the page of a relation; its new members are kept."""
        url = relation.page
        visited = self._visited.setdefault(url, _Visited())
        if visited.immutable:
            return visited
        answer = self._fetched.pop(url, None) or await self._get(url, visited.etag)
        page, places, etag, immutable = answer
        if page is None:
            visited.immutable = immutable
            return visited
        paths = self._stream.paths
        relations = page.relations(places, paths[0] if paths else None)
        visited.relations = [each._replace(page=self._target(url, each.page)) for each in relations]
        for _, *bounds in relations:
            self._latest = max(
                self._latest, *((bound,) for bound in bounds if bound is not None), ()
            )
        # a page that was merged with others redirects to a page with the members of all (server primer, rebalancing)
        stated = relation if places == (url,) else Relation(url, None, None)
        for member in page.members():
            self._hold(member, stated)
        # an error before this line leaves the page to be read again
        visited.etag, visited.immutable = etag, immutable
        return visited

    async def _get(self, url: str, etag: str | None = None) -> _Answer:
        """Fetches a page. One that is gone is empty, except for the root."""
        headers = {"Accept": ACCEPT_PAGES} | ({} if etag is None else {"If-None-Match": etag})
        most = self._settings.message_bytes
        gone = () if url == self._root else (_GONE,)
        response, body = await self._client.fetch(url, headers, most, (_NOT_MODIFIED, *gone))
        places = tuple(dict.fromkeys((url, str(response.url))))
        if response.status == _NOT_MODIFIED:
            return _Answer(None, places, etag, immutable=False)
        if response.status == _GONE:
            return _Answer(Hypermedia([]), places, None, immutable=True)
        fields = response.headers
        _, parameters = read_media_type(fields.get("Content-Type", "")) or ("", {})
        in_profile = PROFILE in parameters.get("profile", "").split()
        reader = document_in(response, self._settings)
        try:
            page = Hypermedia(quads_in(reader, body, in_order=in_profile), in_profile=in_profile)
        except LogError as error:
            error.add_note(without_query(url))
            raise
        if self._stream.has_elements and page.has_members and not reader.format.graphs:
            raise SourceError(
                f"{without_query(url)} is in {reader.format.name}, a format without named graphs for its members",
                hint="ask for N-Quads or TriG",
            )
        immutable = is_immutable(response) or page.immutable(places)
        return _Answer(page, places, fields.get("ETag"), immutable)


def _precedes(some: Value | None, other: Value | None) -> bool:
    """Returns whether a value is certainly before another: both exist, and have the same kind."""
    return some is not None and other is not None and some[0] == other[0] and some < other


def _sequence(term: Term) -> int:
    text = literal_parts(term)[0] if is_literal(term) else ""
    if not is_sequence(text):
        raise SourceError(f"{term} is no sequence of an element")
    return int(text)
