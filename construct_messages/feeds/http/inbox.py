"""Reads an LDN inbox: its notifications as elements, each once.

Linked Data Notifications, sections 3.3.2 and 3.4 (consumers): the inbox lists notifications by `ldp:contains`, without
order, and each is a separate document. Linked Data Platform Paging, section 6.2: a list may have pages, which are all
read, independently of the page that the inbox answers with.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from typing import Final, NamedTuple
from urllib.parse import urljoin

from construct_messages.errors import LogError, SourceError, UsageError
from construct_messages.feeds.http.client import link, target_of
from construct_messages.feeds.http.collections import Hypermedia, Known
from construct_messages.feeds.http.connections import HttpStream
from construct_messages.feeds.http.discovery import (
    ACCEPT_PAGES,
    description_in,
    document_in,
    is_immutable,
    quads_in,
)
from construct_messages.feeds.state import Checkpoint, check_next, is_sequence
from construct_messages.feeds.transport import Start, Transport
from construct_messages.rdf.formats import NDJSON_LD
from construct_messages.rdf.terms import iri, is_literal, literal_parts
from construct_messages.rdf.vocabulary import CM, LDP
from construct_messages.rdf.wire import Property
from construct_messages.sparql.client.urls import without_query
from construct_messages.streams import Element
from construct_messages.streams.publication import received

_CONTAINS: Final = iri(f"{LDP}contains")
_FIRST, _LAST = (iri(f"{CM}{name}") for name in (Property.FIRST_SEQUENCE, Property.LAST_SEQUENCE))
_NEXT: Final = tuple(
    map(
        iri,
        (
            "https://www.w3.org/ns/activitystreams#next",
            "http://www.w3.org/ns/hydra/core#next",
            "http://www.w3.org/1999/xhtml/vocab#next",
            f"{CM}{Property.NEXT}",
        ),
    )
)
"""The properties that name the next page within a page, if no header does."""
_PREFER: Final = {"Prefer": 'return=representation; max-member-count="1000"'}
_NOT_MODIFIED: Final = 304
_GONE: Final = (404, 410)
_PAGES: Final = 10_000
_ACCEPT_NOTIFICATION: Final = f"{NDJSON_LD.document_type}, {ACCEPT_PAGES}"  # every receiver has it


class _Listed(NamedTuple):
    """A notification in a list."""

    iri: str
    sequence: int | None  # its number; None: the inbox does not number them


class _ListPage(NamedTuple):
    """A page of the list."""

    listed: Sequence[_Listed]
    next: str | None = None  # the URLs of the pages after and before
    prev: str | None = None
    # its own URL, if the inbox itself answered with it; None: the requested URL
    place: str | None = None
    etag: str | None = None
    immutable: bool = False  # whether it need not be requested again


def _place(url: str, location: str | None) -> str | None:
    """Returns the answer's own URL; it is only compared with others, not requested."""
    try:
        return None if location is None else urljoin(url, location)
    except ValueError:
        return None


class InboxTransport(Transport):
    """Reads one inbox; see `Transport`."""

    def __init__(self, stream: HttpStream) -> None:
        self._client, self._settings = stream.client, stream.settings
        self._url = stream.endpoints.urls[Property.INBOX]
        self._known = Known(None)
        self._pages: dict[str, _ListPage] = {}

    @property
    def position(self) -> Checkpoint | None:
        return self._known.checkpoint

    async def read(self, start: Start, *, follow: bool) -> AsyncGenerator[Element | None]:
        """Yields the notifications; see `Transport.read`.

        Raises `UsageError` for a start time or sequence, which notifications do not have, and `SourceError` for
        resources at another origin or a gap in sequences.
        """
        if start.since is not None or start.after:
            raise UsageError(
                "notifications of an inbox have no times or sequences to begin with",
                hint="begin with last=, or continue from a state; after=0 is the beginning",
            )
        self._known = Known.at(start)
        if start.last is not None:
            listed = [each for each in await self._listed() if not self._known.has(each.iri, ())]
            for each in listed[: len(listed) - start.last]:
                self._known.add(each.iri, (), each.sequence or self._known.sequence + 1)
        yield None
        while True:
            for each in await self._listed():
                if self._known.has(each.iri, ()):
                    continue
                # where the inbox numbers them, one that was removed before it was read is missing
                if each.sequence is not None and self._known.sequence:
                    check_next(self._url, self._known.sequence, each.sequence)
                if (element := await self._notification(each)) is not None:
                    self._known.add(each.iri, (), element.sequence)
                    yield element
            if not follow:
                return
            await asyncio.sleep(self._settings.poll_seconds)

    async def _listed(self) -> list[_Listed]:
        """Returns all notifications, page by page; the pages before the first answer precede it."""
        pages: deque[_ListPage] = deque()
        visited: set[str] = set()
        begin = await self._page(self._url, visited)
        pages.append(begin)
        for relation, add in (("next", pages.append), ("prev", pages.appendleft)):
            page = begin
            while (url := getattr(page, relation)) is not None and url not in visited:
                page = await self._page(url, visited)
                add(page)
        return list({each.iri: each for page in pages for each in page.listed}.values())

    async def _page(self, url: str, visited: set[str]) -> _ListPage:
        visited.add(url)
        if len(visited) > _PAGES:
            raise SourceError(f"{without_query(self._url)} has more than {_PAGES} pages")
        known = self._pages.get(url, _ListPage([]))
        if not known.immutable:
            known = self._pages[url] = await self._fetched(url, known)
        if known.place is not None:
            visited.add(known.place)
        return known

    async def _fetched(self, url: str, known: _ListPage) -> _ListPage:
        headers = {"Accept": ACCEPT_PAGES, **_PREFER} | (
            {} if known.etag is None else {"If-None-Match": known.etag}
        )
        most = self._settings.message_bytes
        response, body = await self._client.fetch(url, headers, most, (_NOT_MODIFIED,))
        if response.status == _NOT_MODIFIED:
            return known
        fields = response.headers
        reader = description_in(response, self._settings)
        page = Hypermedia(quads_in(reader, body, in_order=False))
        names = [
            self._target(url, object[1:-1])
            for _, object in page.pairs(_CONTAINS)
            if object.startswith("<")
        ]
        following = link(response, "next") or next(
            (
                object[1:-1]
                for name in _NEXT
                for _, object in page.pairs(name)
                if object.startswith("<")
            ),
            None,
        )
        before = link(response, "prev") or link(response, "previous")
        return _ListPage(
            [
                _Listed(name, sequence)
                for name, sequence in zip(names, self._sequences(url, page, names), strict=True)
            ],
            None if following is None else self._target(url, following),
            None if before is None else self._target(url, before),
            _place(url, fields.get("Content-Location")),
            fields.get("ETag"),
            url != self._url and is_immutable(response),
        )

    def _sequences(self, url: str, page: Hypermedia, names: Sequence[str]) -> Sequence[int | None]:
        """Returns the sequences of the notifications on a page, if it names them: in order, without gaps."""
        first, last = (
            [literal_parts(object)[0] for _, object in page.pairs(name) if is_literal(object)]
            for name in (_FIRST, _LAST)
        )
        if (
            len(first) != 1
            or len(last) != 1
            or not (is_sequence(first[0]) and is_sequence(last[0]))
        ):
            return [None] * len(names)
        sequences = range(int(first[0]), int(last[0]) + 1)
        if len(sequences) != len(names):
            raise SourceError(
                f"{without_query(url)} lists {len(names)} of its elements {first[0]} to {last[0]}",
                hint="read the stream itself, and report it to the operator of the server",
            )
        return sequences

    def _target(self, url: str, reference: str) -> str:
        return target_of(url, reference, self._settings.origins)

    async def _notification(self, listed: _Listed) -> Element | None:
        """Returns a notification; None: it was removed after it was listed."""
        url, most = listed.iri, self._settings.message_bytes
        response, body = await self._client.fetch(
            url, {"Accept": _ACCEPT_NOTIFICATION}, most, _GONE
        )
        if response.status in _GONE:
            return None
        reader = document_in(response, self._settings)
        sequence = listed.sequence or self._known.sequence + 1
        try:
            return received(self._url, sequence, reader.read(body, sequence))
        except LogError as error:
            error.add_note(without_query(url))
            raise
