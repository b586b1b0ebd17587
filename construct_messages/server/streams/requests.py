"""Requests to streams: their records and bodies, and the headers of rejections that list the accepted formats."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence, Sized
from contextlib import aclosing, suppress
from typing import Final, TypeVar

from aiohttp import web

from construct_messages.rdf.errors import (
    ConstructMessagesError,
    Forbidden,
    ProtocolError,
    SourceError,
    UnsupportedByFormat,
    UsageError,
)
from construct_messages.rdf.formats import N_QUADS, RDFM, LogType, content_type
from construct_messages.rdf.formats.documents import DOCUMENTS
from construct_messages.rdf.formats.lookup import find_format
from construct_messages.rdf.formats.negotiation import Plain, choose, negotiate
from construct_messages.rdf.wire import Header
from construct_messages.server.http.access import Permit, Requesting
from construct_messages.server.http.app import accept_header
from construct_messages.server.http.request_log import RECORD
from construct_messages.server.http.sending import entity_tag, is_known, send
from construct_messages.server.streams.documents import log, not_carried
from construct_messages.server.streams.publishing.messages import ACCEPTED
from construct_messages.server.streams.record import StreamRecord
from construct_messages.server.streams.resources import Document, serialize
from construct_messages.streams import Publication
from construct_messages.streams.element import Element

ACCEPT_POST: Final = {"Accept-Post": ", ".join(ACCEPTED)}

FOR_GOOD: Final = "public, max-age=31536000, immutable"
"""The Cache-Control of immutable resources."""

S = TypeVar("S", bound=Sized)

_KEY_CHARACTERS: Final = 255


def record_of(request: web.Request) -> StreamRecord:
    """Returns the record of a request."""
    record = request[RECORD]
    assert isinstance(record, StreamRecord)  # the endpoint defines the class of its records
    return record


async def end_of_publishing(stopping: asyncio.Event, permit: Permit) -> ConstructMessagesError:
    """Waits until a publisher must end, and returns the reason.

    Args:
        stopping: set when the server stops.
        permit: the permission to publish.
    """
    try:
        async with permit.limit():
            await stopping.wait()
    except Forbidden as expired:
        return expired
    return SourceError("the server stops", status=503, hint="publish again what is missing")


async def counted(record: StreamRecord, pages: AsyncGenerator[S]) -> AsyncGenerator[S]:
    """Yields the pages of elements, and counts their elements as delivered."""
    async with aclosing(pages):
        async for page in pages:
            record.deliver(len(page))
            yield page


def accept_of(request: web.Request) -> str | None:
    """Returns the accepted media types: the format in the URL, or else the Accept header; None: any.

    SPARQL clients name their own formats in the URL; these agree with their header.
    """
    named = request.query.get("format", "")
    with suppress(UsageError):
        return find_format(named)[0].document_type
    if named and (document := choose(DOCUMENTS, None, named)) is not None:
        return document.media_type
    return accept_header(request)


def described(request: web.Request, document: Document) -> web.Response:
    """Answers with a document, in the serialization that the client prefers.

    Raises:
        NotAcceptable: the client accepts none of the available ones.
    """
    content_type, body = serialize(document, accept_of(request))
    record_of(request).format = content_type
    headers = {
        "Content-Type": content_type,
        "ETag": entity_tag(content_type, body),
        "Cache-Control": "no-cache",
    }
    if is_known(request, headers["ETag"]):
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, headers=headers)


async def unstored(
    request: web.Request, messages: Sequence[Publication], headers: Mapping[str, str]
) -> web.Response:
    """Answers with messages that are not stored: a log in the format that the client prefers, N-Quads by default.

    Raises:
        NotAcceptable: the format is not available, or cannot carry a message.
    """
    choice = negotiate(accept_of(request), messages=request.query.get("messages"))
    if isinstance(choice, Plain):
        choice = LogType(N_QUADS, RDFM)
    media_type = content_type(*choice)
    record_of(request).format = media_type
    try:
        body = b"".join([part async for part in log(_as_page(messages), *choice)])
    except UnsupportedByFormat as error:
        raise not_carried(error) from error
    return web.Response(
        body=body, headers={"Content-Type": media_type, "Cache-Control": "no-store", **headers}
    )


async def _as_page(messages: Sequence[Publication]) -> AsyncGenerator[list[Element]]:
    yield [Element("", number, 0, *each) for number, each in enumerate(messages, 1)]


async def answered(
    request: web.Request,
    body: AsyncGenerator[bytes],
    headers: Mapping[str, str],
    *,
    idle_seconds: float,
    coding: str | None,
    buffer_bytes: int = 0,
) -> web.StreamResponse:
    """Answers with a body while it is created; without the body for HEAD, and if the client already has it.

    Args:
        request: the request.
        body: the elements, or data about them.
        headers: the response headers, including `ETag`.
        idle_seconds, coding, buffer_bytes: see `send`.

    Raises:
        NotAcceptable: the format cannot carry the first message.
    """
    if is_known(request, headers["ETag"]):
        return web.Response(status=304, headers=headers)
    if request.method == "HEAD":
        return web.Response(headers=headers)
    try:
        return await send(
            request,
            body,
            headers,
            idle_seconds=idle_seconds,
            buffer_bytes=buffer_bytes,
            coding=coding,
            sent=record_of(request).sent,
        )
    except UnsupportedByFormat as error:
        raise not_carried(error) from error


def idempotency_key(request: Requesting) -> str | None:
    """Returns the idempotency key of a publication, with or without double quotes; the draft requires them."""
    key = request.headers.get(Header.KEY)
    if key is None:
        return None
    key = key.strip().removeprefix('"').removesuffix('"')
    if not 0 < len(key) <= _KEY_CHARACTERS:
        raise ProtocolError(
            f"{Header.KEY} has {len(key)} characters", hint=f"send 1 to {_KEY_CHARACTERS}"
        )
    return key
