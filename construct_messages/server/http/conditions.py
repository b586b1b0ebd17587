"""Conditional requests (RFC 9110, section 13): entity tags, and what a client asks of the state before it acts."""

from __future__ import annotations

from collections.abc import Collection
from hashlib import blake2b

from aiohttp import web

from construct_messages.errors import ProtocolError


def entity_tag(*parts: object) -> str:
    """The entity tag of a representation, made of the values that distinguish it from all others of its URL.

    >>> entity_tag("a", 1) == entity_tag("a", 1), entity_tag("a", 1) == entity_tag("a", 2)
    (True, False)
    """
    return f'"{blake2b(repr(parts).encode(), digest_size=12).hexdigest()}"'


def check_conditions(request: web.Request, tags: Collection[str], what: str) -> None:
    """Checks what a request that changes something asks of the state before it (RFC 9110, section 13).

    Args:
        request: with If-Match or If-None-Match, if it has any.
        tags: of the representations that there are; none where there is nothing yet.
        what: the resource, in an error.

    Raises:
        ProtocolError: a condition does not hold (412).
    """
    for header, wanted in (("If-Match", True), ("If-None-Match", False)):
        if header not in request.headers:
            continue
        named = {tag.strip() for tag in request.headers[header].split(",")}
        if (("*" in named and bool(tags)) or not named.isdisjoint(tags)) != wanted:
            if not tags:
                raise ProtocolError(
                    f"{what} does not exist", status=412, hint="leave out If-Match to create it"
                )
            if not wanted:
                raise ProtocolError(
                    f"{what} exists already",
                    status=412,
                    hint="choose another name, or leave out If-None-Match to change the one that is there",
                )
            raise ProtocolError(
                f"{what} is not the one that If-Match names",
                status=412,
                hint="get it again, and send its ETag",
            )


def is_known(request: web.Request, etag: str) -> bool:
    """Whether the client has the representation of an entity tag already (RFC 9110, section 13.1.2).

    Raises:
        ProtocolError: the client wants another representation, by If-Match (412; section 13.1.1).
    """
    wanted = request.headers.get("If-Match")
    if wanted is not None and not {"*", etag} & {tag.strip() for tag in wanted.split(",")}:
        raise ProtocolError(
            f"If-Match does not hold: the entity tag is {etag}",
            status=412,
            hint="ask again without If-Match",
        )
    known = (
        tag.strip().removeprefix("W/")
        for tag in request.headers.get("If-None-Match", "").split(",")
    )
    return any(tag in (etag, "*") for tag in known)
