"""Requests to streams: their records, their bodies, and what a refusal says of what would be accepted."""

from __future__ import annotations

import hmac
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from aiohttp import web

from construct_messages.errors import ConstructMessagesError, Forbidden, ProtocolError
from construct_messages.server.http.endpoint import Handler
from construct_messages.server.http.problems import problem
from construct_messages.server.http.record import RECORD
from construct_messages.server.streams.input import ACCEPTED
from construct_messages.server.streams.record import StreamRecord
from construct_messages.streams.element import Element

ACCEPT_POST: Final = {"Accept-Post": ", ".join(ACCEPTED)}
FOR_GOOD: Final = "public, max-age=31536000, immutable"
"""The Cache-Control of what never changes."""

_KEY_CHARACTERS: Final = 255


def with_hints(handler: Handler) -> Handler:
    """The handler, whose refusals say what would be accepted."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except ConstructMessagesError as error:
            if error.status not in (401, 415):
                raise
            record = request[RECORD]
            record.refused(error.status)
            response = problem(error, record.id)
            response.headers.update({"WWW-Authenticate": "Bearer"} if error.status == 401 else ACCEPT_POST)
            return response

    return handle


def record_of(request: web.Request) -> StreamRecord:
    """The record of a request."""
    record = request[RECORD]
    assert isinstance(record, StreamRecord)  # the endpoint's class of records
    return record


async def counted(record: StreamRecord, pages: AsyncGenerator[list[Element]]) -> AsyncGenerator[list[Element]]:
    """The pages, each counted as delivered."""
    async with aclosing(pages):
        async for page in pages:
            record.deliver(len(page))
            yield page


def accept_of(request: web.Request) -> str | None:
    """The Accept header; None: there is none."""
    return ", ".join(request.headers.getall("Accept", [])) or None


def is_known(request: web.Request, etag: str) -> bool:
    """Whether the client has the representation of an entity tag already (RFC 9110, section 13.1.2)."""
    known = (tag.strip().removeprefix("W/") for tag in request.headers.get("If-None-Match", "").split(","))
    return any(tag in (etag, "*") for tag in known)


def idempotency_key(request: web.Request) -> str | None:
    """The key of a publication; a string in double quotes, as the draft of Idempotency-Key has it, or as it is."""
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    key = key.strip().removeprefix('"').removesuffix('"')
    if not 0 < len(key) <= _KEY_CHARACTERS:
        raise ProtocolError(f"Idempotency-Key has {len(key)} characters", hint=f"send 1 to {_KEY_CHARACTERS}")
    return key


def admit(request: web.Request, policy: str, what: str, setting: str) -> None:
    """Refuses who may not do something.

    Args:
        request: of somebody.
        policy: `"allow"`, `"deny"`, or the name of an environment variable that holds a token.
        what: it is, for the error.
        setting: that allows it.

    Raises:
        Forbidden: also with 401, where a token is needed.
    """
    if policy == "allow":
        return
    if policy == "deny":
        raise Forbidden(f"{what} is switched off here", hint=f"allow it in the settings: {setting}")
    token = os.environ.get(policy, "")
    scheme, _, sent = request.headers.get("Authorization", "").partition(" ")
    if not token or scheme.lower() != "bearer" or not hmac.compare_digest(sent.strip().encode(), token.encode()):
        raise Forbidden(f"{what} needs a token", status=401, hint="send it as Authorization: Bearer TOKEN")
