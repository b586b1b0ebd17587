"""The header Accept as one value. `rdf/formats/negotiation.py` negotiates the media type."""

from __future__ import annotations

from aiohttp import web


def accept_header(request: web.Request) -> str | None:
    """Returns the values of all Accept headers of a request as one list; None: the request has none and accepts any
    media type.

    RFC 9110, section 5.3 (repeated fields) and section 12.5.1.
    """
    return ", ".join(request.headers.getall("Accept", [])) or None
