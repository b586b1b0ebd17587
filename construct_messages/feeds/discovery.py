"""Finds what a stream offers: by its description, or because the URL is that of an endpoint itself.

LDN for RDF streams (discovery); Linked Data Notifications, section 3.1; Linked Data Event Streams. What a
description names is used at the same origin only, as the
token is sent there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urldefrag

import aiohttp

from construct_messages.documents import DocumentReader
from construct_messages.documents.contexts import KnownContexts
from construct_messages.errors import LogError, SourceError
from construct_messages.feeds.client import (
    Client,
    as_http,
    check_stream_url,
    link,
    target_of,
)
from construct_messages.feeds.collections.hypermedia import Page
from construct_messages.feeds.pages import ACCEPT_PAGES, FETCHED, document_in, quads_in
from construct_messages.formats import NDJSON_LD
from construct_messages.formats.media_types import (
    EVENT_STREAM,
    JSON,
    read_media_type,
)
from construct_messages.net.urls import without_query
from construct_messages.streams.vocabulary import LDP
from construct_messages.streams.wire import Property
from construct_messages.terms import iri

_INBOX, _CONTAINS = f"{LDP}{Property.INBOX}", iri(f"{LDP}contains")
_DESCRIPTIONS: Final = (NDJSON_LD.document_type, JSON)
_ACCEPT: Final = {
    "Accept": f"{NDJSON_LD.document_type}, {JSON};q=0.9, {EVENT_STREAM};q=0.5, "
    + ", ".join(f"{format.document_type};q=0.4" for format in FETCHED if format != NDJSON_LD),
    "Prefer": 'return=representation; max-member-count="1"',  # a long list need not be read to know what it is
}
_DESCRIPTION_BYTES: Final = 1 << 20  # at least
_RDF: Final = {"Accept": ACCEPT_PAGES}
_MEDIA_TYPES: Final = frozenset(name for format in FETCHED for name in format.document_types)


class Endpoints(NamedTuple):
    """The URLs of what a stream offers; None: it does not, as far as is known.

    Args:
        stream: the IRI of the stream, or what stands for it.
        input: takes messages.
        output: gives a sequence of elements as a log.
        events: pushes them as server-sent events.
        socket: pushes them over WebSocket.
        ldes: gives them as members of a Linked Data Event Stream; also its IRI.
        inbox: lists notifications.
    """

    stream: str
    input: str | None = None
    output: str | None = None
    events: str | None = None
    socket: str | None = None
    ldes: str | None = None
    inbox: str | None = None


async def discover(
    client: Client, url: str, contexts: KnownContexts, most: int, *, is_stream: bool = False
) -> Endpoints:
    """What there is at a URL. The list of elements, at an output or inbox, leads to the stream that it is of.

    Args:
        client: sends the requests.
        url: of a stream, or of one of its endpoints; the IRI of an event stream may have a fragment.
        contexts: JSON-LD contexts by their IRI.
        most: how many bytes a document may have.
        is_stream: whether it is known to be that of a stream.

    Raises:
        UsageError: no URL that requests can be sent to.
        SourceError: nothing that is known here.
    """
    asked, (url, _) = url, urldefrag(url)
    most = max(most, _DESCRIPTION_BYTES)
    check_stream_url(url)
    stream = without_query(url)
    if as_http(url) != url:
        return Endpoints(stream, socket=url)
    try:
        response = await client.open("GET", url, _ACCEPT)
    except SourceError as error:
        if error.response_status == 426:
            return Endpoints(stream, socket=url)
        if error.response_status == 405:
            return Endpoints(stream, input=url)
        raise
    if (media_type := _media_type(response)) == EVENT_STREAM:
        response.close()
        return Endpoints(stream, events=url)
    body = await client.body(response, url, most)
    if media_type in _DESCRIPTIONS:
        said = _members(body)
        owner = _target(url, said, Property.STREAM)
        if owner is not None and not is_stream:
            return await discover(client, owner, contexts, most, is_stream=True)
        endpoints = Endpoints(
            _member(said, "@id") or stream,
            input=_target(url, said, Property.INPUT) or _target(url, said, Property.INBOX),
            output=_target(url, said, Property.OUTPUT),
            events=_target(url, said, Property.EVENTS),
            socket=_target(url, said, Property.SOCKET),
            ldes=_target(url, said, Property.LDES),
            inbox=_target(url, said, Property.INBOX),
        )
        if any(endpoints[1:]):
            return endpoints
        # other formats need no contexts, and contexts are not fetched
        response = await client.open("GET", url, _RDF)
        media_type, body = _media_type(response), await client.body(response, url, most)
    if (inbox := link(response, _INBOX)) is not None:
        found = target_of(url, inbox)
        return Endpoints(stream, input=found, inbox=found)
    if media_type in _MEDIA_TYPES:
        reader = document_in(response, contexts.for_descriptions(), most)
        if (described := _described(reader, str(response.url), body, asked)) is not None:
            return described
    raise SourceError(
        f"{without_query(url)} describes no stream",
        hint="give the URL of a stream, such as https://example.org/streams/a",
    )


def _described(reader: DocumentReader, url: str, body: bytes, asked: str) -> Endpoints | None:
    """Returns what RDF describes: an event stream, a list of notifications, or the location of one."""
    try:
        page = Page(quads_in(reader, body, in_order=False))
    except LogError as error:
        raise SourceError(
            f"{without_query(url)} describes no stream: {error.message}", hint=error.hint
        ) from error
    if (view := page.view(asked, (url, urldefrag(asked).url))) is not None:
        return Endpoints(view[0][1:-1], ldes=asked)
    if page.pairs(_CONTAINS):
        return Endpoints(url, input=url, inbox=url)
    if inboxes := {target for _, target in page.pairs(iri(_INBOX))}:
        found = target_of(url, min(inboxes)[1:-1])
        return Endpoints(url, input=found, inbox=found) if len(inboxes) == 1 else None
    return None


def _media_type(response: aiohttp.ClientResponse) -> str:
    return (read_media_type(response.headers.get("Content-Type", "")) or ("", {}))[0]


def _members(body: bytes) -> Mapping[str, Any]:
    try:
        said = json.loads(body)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _member(said: Mapping[str, Any], name: str) -> str | None:
    value = said.get(name)
    if isinstance(value, dict):
        value = value.get("@id")
    return value if isinstance(value, str) else None


def _target(url: str, said: Mapping[str, Any], name: str) -> str | None:
    value = _member(said, name)
    return None if value is None else target_of(url, value)
