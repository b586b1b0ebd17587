"""Finds what a stream offers: by its description, or because the URL is that of an endpoint itself.

LDN for RDF streams (discovery); Linked Data Notifications, section 3.1. The members of the description are those that
`server/streams/resources.py` writes. What it names is used at the same origin only, as the token is sent there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from construct_messages.errors import SourceError
from construct_messages.feeds.client import Client, as_http, check_stream_url, link
from construct_messages.formats import NDJSON_LD
from construct_messages.formats.media_types import EVENT_STREAM, JSON, read_media_type
from construct_messages.sources.http.response import without_query

_INBOX: Final = "http://www.w3.org/ns/ldp#inbox"
_DESCRIPTIONS: Final = (NDJSON_LD.document_type, JSON)
_ACCEPT: Final = {"Accept": f"{NDJSON_LD.document_type}, {JSON};q=0.9, {EVENT_STREAM};q=0.5"}


class Endpoints(NamedTuple):
    """The URLs of what a stream offers; None: it does not, as far as is known.

    Args:
        stream: the IRI of the stream, or what stands for it.
        input: takes messages.
        output: gives a sequence of elements as a log.
        events: pushes them as server-sent events.
        socket: pushes them over WebSocket.
    """

    stream: str
    input: str | None = None
    output: str | None = None
    events: str | None = None
    socket: str | None = None


async def discover(client: Client, url: str, *, is_stream: bool = False) -> Endpoints:
    """What there is at a URL. The list of elements, at an output or inbox, leads to the stream that it is of.

    Args:
        client: sends the requests.
        url: of a stream, or of one of its endpoints.
        is_stream: whether it is known to be that of a stream.

    Raises:
        UsageError: no URL that requests can be sent to.
        SourceError: nothing that is known here.
    """
    check_stream_url(url)
    stream = without_query(url)
    if as_http(url) != url:
        return Endpoints(stream, socket=url)
    try:
        response = await client.open("GET", url, _ACCEPT)
    except SourceError as error:
        if error.status == 426:
            return Endpoints(stream, socket=url)
        if error.status == 405:
            return Endpoints(stream, input=url)
        raise
    media_type, _ = read_media_type(response.headers.get("Content-Type", "")) or ("", {})
    if media_type == EVENT_STREAM:
        response.close()
        return Endpoints(stream, events=url)
    inbox = link(response, _INBOX)
    body = await client.body(response, url)
    if media_type in _DESCRIPTIONS:
        said = _members(body)
        owner = _target(url, said, "stream")
        if owner is not None and not is_stream:
            return await discover(client, owner, is_stream=True)
        endpoints = Endpoints(
            _member(said, "@id") or stream,
            input=_target(url, said, "input") or _target(url, said, "inbox"),
            output=_target(url, said, "output"),
            events=_target(url, said, "push"),
            socket=_target(url, said, "websocket"),
        )
        if any(endpoints[1:]):
            return endpoints
    if inbox is not None:
        return Endpoints(stream, input=_same_origin(url, inbox))
    raise SourceError(
        f"{without_query(url)} describes no stream",
        hint="give the URL of a stream, such as https://example.org/streams/a",
    )


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
    return None if value is None else _same_origin(url, value)


def _same_origin(url: str, target: str) -> str:
    """The absolute URL of what a description names.

    Raises:
        SourceError: it is at another origin.

    >>> _same_origin("http://example.org/streams/a", "a/events")
    'http://example.org/streams/a/events'
    """
    found = urljoin(url, target)
    check_stream_url(found)
    here, there = urlsplit(url), urlsplit(as_http(found))
    if (here.scheme, here.netloc.lower()) != (there.scheme, there.netloc.lower()):
        raise SourceError(
            f"{without_query(url)} names {without_query(found)}, which is at another origin",
            hint="give that URL itself, if you trust it; a server behind a proxy needs public_url",
        )
    return found
