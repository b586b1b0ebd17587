"""Finds the endpoints of a stream: by its description, or because the URL itself is that of an endpoint.

LDN for RDF streams (discovery); Linked Data Notifications, section 3.1; Linked Data Event Streams. Endpoints in a
description are only used at the same origin, because the token is sent there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urldefrag

import aiohttp
import pyoxigraph as ox

from construct_messages.errors import LogError, SourceError
from construct_messages.feeds.connections import reader_of
from construct_messages.feeds.http.client import Client, as_http, check_stream_url, link, target_of
from construct_messages.feeds.http.collections import Hypermedia
from construct_messages.feeds.http.connections import Endpoints
from construct_messages.feeds.transport import Settings
from construct_messages.logs.documents import DocumentReader, implied_context
from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.rdf.formats import N_QUADS, N_TRIPLES, NDJSON_LD, RDF_XML, TRIG, TURTLE
from construct_messages.rdf.formats.media_types import EVENT_STREAM, JSON, read_media_type
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Quad
from construct_messages.rdf.terms import iri
from construct_messages.rdf.vocabulary import LDP, PROFILE
from construct_messages.rdf.wire import CONTEXT_RELATION, ENDPOINTS, Property
from construct_messages.sparql.client.urls import without_query

# --- pages ----------------------------------------------------------------------------------------
# Reads responses with a document: pages of event streams, lists and notifications. No requests here.
#
# Linked Data Event Streams and the TREE profile for pages; JSON-LD 1.1, section 6.1, for the header Link.

_STATEMENTS: Final = (N_QUADS, TRIG, TURTLE, N_TRIPLES)
"""The formats whose documents are ordered statements, as the TREE profile requires."""

FETCHED: Final = (*_STATEMENTS, NDJSON_LD, RDF_XML)
"""The formats of pages and notifications, best first."""

_PROFILE: Final = f'; profile="{PROFILE}"'
ACCEPT_PAGES: Final = ", ".join(
    f"{format.document_type}{_PROFILE if format in _STATEMENTS else ''};q={1 - place / 10:.1f}"
    for place, format in enumerate(FETCHED)
)
"""Requests pages of Linked Data Event Streams, in the TREE profile if a server supports it."""


def document_in(response: aiohttp.ClientResponse, settings: Settings) -> DocumentReader:
    """Returns the reader for the document of a response; see `reader_of`."""
    content_type = response.headers.get("Content-Type", "")
    media_type, parameters = read_media_type(content_type) or ("", {})
    # JSON-LD 1.1, section 6.1: JSON-LD documents have their own context
    context = (
        link(response, CONTEXT_RELATION)
        if media_type == JSON
        else implied_context(media_type, parameters)
    )
    return reader_of(content_type, settings, base=str(response.url), context=context)


def is_immutable(response: aiohttp.ClientResponse) -> bool:
    """Whether the document of a response will not change (RFC 8246)."""
    directives = response.headers.get("Cache-Control", "").lower().split(",")
    return "immutable" in map(str.strip, directives)


def description_in(response: aiohttp.ClientResponse, settings: Settings) -> DocumentReader:
    """Returns the reader for the description or the list in a response, whose other content is ignored."""
    return document_in(response, replace(settings, contexts=settings.contexts.for_descriptions()))


def quads_in(reader: DocumentReader, document: bytes, *, in_order: bool) -> list[Quad]:
    """Returns the quads of a document with any number of messages.

    `in_order`: a statement that occurs twice is returned twice, if the document has no messages.
    """
    messages = list(reader.messages(document))
    if not (in_order and len(messages) == 1 and reader.format in _STATEMENTS):
        return [quad for message in messages for quad in message]
    labels = Labels()  # it was read before, so it is well-formed
    parsed = ox.parse(
        document,
        format=ox.RdfFormat.from_media_type(reader.format.document_type),
        base_iri=reader.options.base,
    )
    return [read for quad in parsed for read in to_message([quad], labels.in_log)]


# --- discovery ------------------------------------------------------------------------------------

_INBOX, _CONTAINS = f"{LDP}{Property.INBOX}", iri(f"{LDP}contains")
_DESCRIPTIONS: Final = (NDJSON_LD.document_type, JSON)
_ACCEPT: Final = {
    "Accept": f"{NDJSON_LD.document_type}, {JSON};q=0.9, {EVENT_STREAM};q=0.5, "
    + ", ".join(f"{format.document_type};q=0.4" for format in FETCHED if format != NDJSON_LD),
    # a long list need not be read completely to identify it
    "Prefer": 'return=representation; max-member-count="1"',
}
# a gRPC topic has a separate URL, which is not an HTTP URL
_OTHERS: Final = {Property.QUERY, Property.GRPC}
_READ_OR_WRITTEN: Final = [name for name in Property if name in ENDPOINTS.keys() - _OTHERS]
_DESCRIPTION_BYTES: Final = 1 << 20  # the minimal size
_RDF: Final = {"Accept": ACCEPT_PAGES}
_MEDIA_TYPES: Final = frozenset(name for format in FETCHED for name in format.document_types)


async def discover(
    client: Client, url: str, settings: Settings, *, is_stream: bool = False
) -> Endpoints:
    """Returns the endpoints at a URL, which may be that of an endpoint, and that of an event stream with a fragment.

    The list of elements, at an output or inbox, leads to its stream. Raises `SourceError` for other content.
    """
    asked, (url, _) = url, urldefrag(url)
    most = max(settings.message_bytes, _DESCRIPTION_BYTES)
    check_stream_url(url)
    stream = without_query(url)
    if as_http(url) != url:
        return Endpoints(stream, {Property.SOCKET: url})
    try:
        response = await client.open("GET", url, _ACCEPT)
    except SourceError as error:
        if error.response_status == 426:
            return Endpoints(stream, {Property.SOCKET: url})
        if error.response_status == 405:
            return Endpoints(stream, {Property.INPUT: url})
        raise
    if (media_type := _media_type(response)) == EVENT_STREAM:
        response.close()
        return Endpoints(stream, {Property.EVENTS: url})
    body = await client.body(response, url, most)
    if media_type in _DESCRIPTIONS:
        members = _members(body)
        owner = _target(url, members, Property.STREAM)
        if owner is not None and not is_stream:
            return await discover(client, owner, settings, is_stream=True)
        urls = {
            name: target
            for name in _READ_OR_WRITTEN
            if (target := _target(url, members, name)) is not None
        }
        if Property.INBOX in urls:
            urls.setdefault(Property.INPUT, urls[Property.INBOX])
        if urls:
            return Endpoints(_member(members, "@id") or stream, urls)
        # other formats need no contexts, and contexts are not fetched
        response = await client.open("GET", url, _RDF)
        media_type, body = _media_type(response), await client.body(response, url, most)
    if (inbox := link(response, _INBOX)) is not None:
        return _inbox(stream, target_of(url, inbox))
    if media_type in _MEDIA_TYPES:
        reader = description_in(response, replace(settings, message_bytes=most))
        if (described := _described(reader, str(response.url), body, asked)) is not None:
            return described
    raise SourceError(
        f"{without_query(url)} describes no stream",
        hint="give the URL of a stream, such as https://example.org/streams/a",
    )


def _described(reader: DocumentReader, url: str, body: bytes, asked: str) -> Endpoints | None:
    """Returns the endpoints that RDF describes: an event stream, a list of notifications, or the location of one."""
    try:
        page = Hypermedia(quads_in(reader, body, in_order=False))
    except LogError as error:
        raise SourceError(
            f"{without_query(url)} describes no stream: {error.message}", hint=error.hint
        ) from error
    if (view := page.view(asked, (url, urldefrag(asked).url))) is not None:
        return Endpoints(view[0][1:-1], {Property.LDES: asked})
    if page.pairs(_CONTAINS):
        return _inbox(url, url)
    if inboxes := {target for _, target in page.pairs(iri(_INBOX))}:
        found = target_of(url, min(inboxes)[1:-1])
        return _inbox(url, found) if len(inboxes) == 1 else None
    return None


def _inbox(stream: str, url: str) -> Endpoints:
    return Endpoints(stream, {Property.INPUT: url, Property.INBOX: url})


def _media_type(response: aiohttp.ClientResponse) -> str:
    return (read_media_type(response.headers.get("Content-Type", "")) or ("", {}))[0]


def _members(body: bytes) -> Mapping[str, Any]:
    try:
        members = json.loads(body)
    except ValueError:
        return {}
    return members if isinstance(members, dict) else {}


def _member(members: Mapping[str, Any], name: str) -> str | None:
    value = members.get(name)
    if isinstance(value, dict):
        value = value.get("@id")
    return value if isinstance(value, str) else None


def _target(url: str, members: Mapping[str, Any], name: str) -> str | None:
    value = _member(members, name)
    return None if value is None else target_of(url, value)
