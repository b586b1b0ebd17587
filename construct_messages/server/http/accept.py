"""The header Accept as one value. What it asks for is negotiated in `formats/negotiation.py`."""

from __future__ import annotations

from aiohttp import web


def accept_header(request: web.Request) -> str | None:
    """Returns the values of all Accept headers of a request as one list; None: there is none, and anything will do.

    RFC 9110, section 5.3 (fields that come more than once) and section 12.5.1.
    """
    return ", ".join(request.headers.getall("Accept", [])) or None
