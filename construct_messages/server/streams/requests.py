"""Requests to streams: their records and bodies, and the headers of rejections that list the accepted formats."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence, Sized
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Final, NamedTuple, TypeVar

from aiohttp import web
from multidict import MultiMapping

from construct_messages.errors import (
    ConstructMessagesError,
    Forbidden,
    ProtocolError,
    SourceError,
    UnsupportedByFormat,
    UsageError,
)
from construct_messages.rdf.formats import N_QUADS, RDFM, LogType, content_type
from construct_messages.rdf.formats.lookup import find_format
from construct_messages.rdf.formats.media_types import DOCUMENTS
from construct_messages.rdf.formats.negotiation import Plain, choose, negotiate
from construct_messages.rdf.wire import Header, Parameter
from construct_messages.server.http.access import Permit, Requesting
from construct_messages.server.http.app import accept_header
from construct_messages.server.http.request_log import RECORD, RequestRecord
from construct_messages.server.http.sending import answer_whole, entity_tag, is_known, send
from construct_messages.server.streams.documents import log, not_carried
from construct_messages.server.streams.resources import Document, serialize
from construct_messages.streams import Publication
from construct_messages.streams.element import Element, State
from construct_messages.streams.store import StreamStore

# --- record ---------------------------------------------------------------------------------------
# The record of a request to a stream: the stream, the action, and the numbers of elements.

ACTIONS: Final = frozenset(
    (
        "describe",
        "create",
        "delete",
        "publish",
        "list",
        "element",
        "pull",
        "events",
        "websocket",
        "subscribe",
        "ldes",
        "register",
        "pause",
        "resume",
    )
)


@dataclass(kw_only=True)
class StreamRecord(RequestRecord):
    """The record of a request.

    `last` is the sequence of the last element that was appended; None: none was.
    """

    LABELS: ClassVar[Mapping[str, frozenset[str]]] = {"action": ACTIONS}
    COUNTERS: ClassVar[Mapping[str, str]] = {
        **RequestRecord.COUNTERS,
        "published": "Elements appended to streams.",
        "delivered": "Elements sent to clients.",
    }

    stream: str | None = None
    action: str | None = None
    published: int = 0
    delivered: int = 0
    last: int | None = None

    def deliver(self, count: int) -> None:
        """Counts sent elements."""
        self.delivered += count

    def fields(self) -> dict[str, object]:
        return super().fields() | {
            "stream": self.stream,
            "action": self.action,
            "published": self.published or None,
            "delivered": self.delivered or None,
        }

    def counts(self) -> Mapping[str, int]:
        return {**super().counts(), "published": self.published, "delivered": self.delivered}


# --- selection ------------------------------------------------------------------------------------
# Selects elements by the parameters of a URL: `last`, `after`, `before`, `since`, `until`.

UPPER_BOUNDS: Final = (Parameter.BEFORE, Parameter.UNTIL)
_MICROSECOND: Final = timedelta(microseconds=1)


def selecting(query: MultiMapping[str]) -> dict[str, str]:
    """Returns the parameters of a URL that select elements."""
    given = {name: query.getall(name) for name in Parameter if name in query}
    for name, values in given.items():
        if len(values) > 1:
            raise ProtocolError(f"{name} is given {len(values)} times", hint="give it once")
    return {name: values[0] for name, values in given.items()}


class Selection(NamedTuple):
    """A range of elements. The range is empty if `last` is not greater than `after`."""

    after: int
    last: int


def select(store: StreamStore, state: State, parameters: Mapping[str, str]) -> Selection:
    """Returns the selected elements: those that fulfil all conditions; without conditions, all retained elements.

    `after` and `before` are sequences, both exclusive; `since` and `until` are times with a zone, both inclusive.
    """
    first, last = state.first, state.last
    if (after := parameters.get(Parameter.AFTER)) is not None:
        first = sequence_parameter(Parameter.AFTER, after) + 1
        if first > state.next:  # as after a stream was deleted and created again
            store.check_position(state.name, first - 1)
    if (since := parameters.get(Parameter.SINCE)) is not None:
        first = max(first, store.sequence_at(state.name, _time(Parameter.SINCE, since)))
    if (until := parameters.get(Parameter.UNTIL)) is not None:
        last = store.sequence_at(state.name, _time(Parameter.UNTIL, until) + _MICROSECOND) - 1
    if (before := parameters.get(Parameter.BEFORE)) is not None:
        last = min(last, sequence_parameter(Parameter.BEFORE, before) - 1)
    if (newest := parameters.get(Parameter.LAST)) is not None:
        first = max(first, last + 1 - sequence_parameter(Parameter.LAST, newest))
    return Selection(first - 1, last)


async def selected(
    store: StreamStore, stream: str, selection: Selection
) -> AsyncGenerator[list[Element]]:
    """Yields pages of the elements of a selection."""
    if selection.last <= selection.after:
        return
    async with aclosing(store.apages(stream, selection.after)) as pages:
        async for page in pages:
            if page[-1].sequence >= selection.last:
                yield page[: selection.last - page[0].sequence + 1]
                return
            yield page


def sequence_parameter(name: str, value: str) -> int:
    """Returns the whole number in a URL's parameter.

    >>> sequence_parameter("after", "12")
    12
    """
    # parsing more digits than a sequence can have would take long
    if not (value.isascii() and value.isdigit() and len(value) < 20):
        raise ProtocolError(
            f"{name}={value[:40]} is not a whole number", hint=f"write it as {name}=10"
        )
    return int(value)


def _time(name: str, value: str) -> datetime:
    hint = f"write it as {name}=2026-11-22T12:00:00Z"
    try:
        # an unescaped + of the zone was decoded as a space
        time = datetime.fromisoformat(value.replace(" ", "+") if "T" in value else value)
        if time.tzinfo is None:
            raise ProtocolError(f"{name}={value[:40]} has no time zone", hint=hint)
        # some times overflow in UTC, or with the next microsecond
        return (time + _MICROSECOND).astimezone(UTC) - _MICROSECOND
    except (ValueError, OverflowError):
        raise ProtocolError(f"{name}={value[:40]} is no time", hint=hint) from None


# --- requests -------------------------------------------------------------------------------------

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
    """Waits until a publisher must end, and returns the reason."""
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
    """Answers with a document, in the serialization that the client prefers."""
    content_type, body = serialize(document, accept_of(request))
    record_of(request).format = content_type
    headers = {
        "Content-Type": content_type,
        "ETag": entity_tag(content_type, body),
        "Cache-Control": "no-cache",
    }
    return answer_whole(request, body, headers)


async def unstored(
    request: web.Request, messages: Sequence[Publication], headers: Mapping[str, str]
) -> web.Response:
    """Answers with messages that are not stored: a log in the format that the client prefers, N-Quads by default."""
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
    `NotAcceptable`: the format cannot carry the first message.
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
