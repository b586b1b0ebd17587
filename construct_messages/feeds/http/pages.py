"""Reads responses with a document: pages of event streams, lists and notifications. No requests here.

Linked Data Event Streams and the TREE profile for pages; JSON-LD 1.1, section 6.1, for the header Link.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import aiohttp
import pyoxigraph as ox

from construct_messages.feeds.documents import reader_of
from construct_messages.feeds.http.client import link
from construct_messages.feeds.transport import Settings
from construct_messages.logs.documents import DocumentReader, implied_context
from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.rdf.formats import N_QUADS, N_TRIPLES, NDJSON_LD, RDF_XML, TRIG, TURTLE
from construct_messages.rdf.formats.media_types import JSON, read_media_type
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Quad
from construct_messages.rdf.vocabulary import PROFILE
from construct_messages.rdf.wire import CONTEXT_RELATION

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
