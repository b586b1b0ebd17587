"""Reads an LDN inbox: its notifications as elements, each once.

Linked Data Notifications, sections 3.3.2 and 3.4 (consumers): the inbox lists notifications by `ldp:contains`, in no
order, and each is a document of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from construct_messages.errors import LogError, SourceError, UsageError
from construct_messages.feeds.client import CONTEXT, Client, link, target_of
from construct_messages.feeds.collections.collection import Collection
from construct_messages.feeds.collections.hypermedia import Page
from construct_messages.feeds.collections.known import Known
from construct_messages.feeds.documents import ACCEPT_PAGES, document_of, element_of
from construct_messages.formats import NDJSON_LD
from construct_messages.sources.http.response import without_query
from construct_messages.streams.element import Element
from construct_messages.streams.vocabulary import LDP
from construct_messages.terms import iri

_CONTAINS: Final = iri(f"{LDP}contains")
_NOT_MODIFIED: Final = 304
_GONE: Final = (404, 410)
_PAGES: Final = 10_000
_ACCEPT_NOTIFICATION: Final = f"{NDJSON_LD.document_type}, {ACCEPT_PAGES}"  # which every receiver has


class InboxReader:
    """Reads one inbox.

    Args:
        client: sends the requests.
        url: of the inbox.
        collection: where to begin, and what is allowed.

    Attributes:
        known: how far it is.

    Raises:
        UsageError: a time, or a sequence, to begin with: notifications have none.
    """

    def __init__(self, client: Client, url: str, collection: Collection) -> None:
        if collection.since is not None or collection.after:
            raise UsageError(
                "notifications of an inbox have no times or sequences to begin with",
                hint="begin with the last so many, or go on from a state; after=0 is the beginning",
            )
        self._client, self._url, self._collection = client, url, collection
        self.known = Known(collection.start)
        self._etags: dict[str, tuple[str | None, list[str], str | None]] = {}

    async def elements(self, *, follow: bool) -> AsyncGenerator[Element | None]:
        """The notifications: None once it is known where to begin, then those that are there, and then what comes.

        Args:
            follow: whether to wait for more.

        Raises:
            SourceError: no such inbox, what it lists is at another origin, or it cannot be reached.
            LogError, LimitExceeded: a notification is no message, or too large.
        """
        collection = self._collection
        if collection.last is not None and collection.checkpoint is None:
            listed = [name for name in await self._listed() if not self.known.has(name, ())]
            for name in listed[: len(listed) - collection.last]:
                self.known.give(name, (), self.known.sequence + 1)
        yield None
        while True:
            for name in await self._listed():
                if not self.known.has(name, ()) and (element := await self._notification(name)) is not None:
                    self.known.give(name, (), element.sequence)
                    yield element
            if not follow:
                return
            await asyncio.sleep(collection.poll_seconds)

    async def _listed(self) -> list[str]:
        """The URLs of all notifications, from page to page."""
        found: dict[str, None] = {}
        page: str | None = self._url
        pages = set()
        while page is not None and page not in pages:
            pages.add(page)
            if len(pages) > _PAGES:
                raise SourceError(f"{without_query(self._url)} has more than {_PAGES} pages")
            names, page = await self._page(page)
            found.update(dict.fromkeys(names))
        return list(found)

    async def _page(self, url: str) -> tuple[list[str], str | None]:
        """The notifications of a page, and the next page."""
        etag, names, following = self._etags.get(url, (None, [], None))
        headers = {"Accept": ACCEPT_PAGES} | ({} if etag is None else {"If-None-Match": etag})
        most, contexts = self._collection.message_bytes, self._collection.contexts.for_descriptions()
        response, body = await self._client.fetch(url, headers, most, (_NOT_MODIFIED,))
        if response.status != _NOT_MODIFIED:
            documents = document_of(response.headers, link(response, CONTEXT), str(response.url), contexts, most)
            listed = Page(documents.quads(body, in_order=False)).pairs(_CONTAINS)
            names = [self._target(url, object[1:-1]) for _, object in listed if object.startswith("<")]
            following = link(response, "next")
            following = None if following is None else self._target(url, following)
            self._etags[url] = response.headers.get("ETag"), names, following
        return names, following

    def _target(self, url: str, said: str) -> str:
        return target_of(url, said, self._collection.origins)

    async def _notification(self, url: str) -> Element | None:
        """A notification; None: it was removed since it was listed."""
        most = self._collection.message_bytes
        response, body = await self._client.fetch(url, {"Accept": _ACCEPT_NOTIFICATION}, most, _GONE)
        if response.status in _GONE:
            return None
        context = link(response, CONTEXT)
        documents = document_of(response.headers, context, str(response.url), self._collection.contexts, most)
        sequence = self.known.sequence + 1
        try:
            return element_of(self._url, sequence, documents.read(body, sequence))
        except LogError as error:
            error.add_note(without_query(url))
            raise
