"""Conditional requests (RFC 9110, section 13): entity tags and preconditions."""

from __future__ import annotations

from collections.abc import Collection
from hashlib import blake2b

from aiohttp import web

from construct_messages.rdf.errors import ProtocolError


def entity_tag(*parts: object) -> str:
    """Returns the entity tag of a representation, from the values that distinguish it from all others of its URL.

    >>> entity_tag("a", 1) == entity_tag("a", 1), entity_tag("a", 1) == entity_tag("a", 2)
    (True, False)
    """
    return f'"{blake2b(repr(parts).encode(), digest_size=12).hexdigest()}"'


def check_conditions(request: web.Request, tags: Collection[str], what: str) -> None:
    """Evaluates the preconditions of an unsafe request (RFC 9110, section 13).

    Args:
        request: the request, with or without If-Match and If-None-Match.
        tags: the entity tags of the current representations; empty if the resource does not exist.
        what: the name of the resource, for errors.

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
    """Returns whether the client already has the representation with an entity tag (RFC 9110, section 13.1.2).

    Raises:
        ProtocolError: If-Match names another representation (412; section 13.1.1).
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
