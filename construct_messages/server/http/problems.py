"""Errors as problem documents (RFC 9457), for responses that have not begun.

Maps `rdf/errors.py` to HTTP. `sending.py` handles errors after the first byte.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from http import HTTPStatus

from aiohttp import web

from construct_messages.rdf.errors import (
    ConstructMessagesError,
    DoesNotConform,
    Forbidden,
    NotAcceptable,
    SourceError,
)
from construct_messages.rdf.formats.media_types import PROBLEM


def problem_document(
    error: ConstructMessagesError, request_id: str | None = None
) -> dict[str, object]:
    """Returns the members of the problem document of an error; see `problem`."""
    document: dict[str, object] = {
        "title": HTTPStatus(error.status).phrase,
        "status": error.status,
        "detail": error.message,
    }
    if error.hint is not None:
        document["hint"] = error.hint
    if error.position is not None:
        document |= {"line": error.position.line, "column": error.position.column}
    if isinstance(error, NotAcceptable) and error.offered:
        document["offered"] = error.offered
    if isinstance(error, DoesNotConform):
        document["report"] = error.report
    if request_id is not None:
        document["request_id"] = request_id
    return document


def problem(error: ConstructMessagesError, request_id: str | None = None) -> web.Response:
    """Returns the problem document of an error.

    Members in addition to those of RFC 9457: `hint`, the fix; `line` and `column` in the query, counted from 1;
    `offered`, the available media types; `report`, why a message does not conform to shapes; `request_id`, the
    identifier in the server's log.

    >>> from construct_messages.rdf.errors import Position, QueryError
    >>> response = problem(QueryError("prefix ex: is not declared", position=Position(2, 5)))
    >>> response.status, response.text
    (400, '{"title": "Bad Request", "status": 400, "detail": "prefix ex: is not declared", "line": 2, "column": 5}')
    """
    document = problem_document(error, request_id)
    # a message may quote a client's header, which may contain bytes that are not characters
    body = json.dumps(document, ensure_ascii=False).encode(errors="replace")
    response = web.Response(status=error.status, body=body, content_type=PROBLEM, charset="utf-8")
    if isinstance(error, SourceError) and error.retry_after is not None:
        response.headers["Retry-After"] = str(math.ceil(error.retry_after))
    if isinstance(error, Forbidden) and error.challenge is not None:
        response.headers["WWW-Authenticate"] = error.challenge
    if error.status == HTTPStatus.UPGRADE_REQUIRED:
        response.headers.update({"Connection": "Upgrade", "Upgrade": "websocket"})
    return response


def router_problem(
    error: web.HTTPException, request_id: str | None = None, *, paths: Sequence[str] = ()
) -> web.Response:
    """Returns the problem document for an unknown path or method; `paths` are the existing paths.

    >>> response = router_problem(web.HTTPMethodNotAllowed("PUT", ["GET", "HEAD"]))
    >>> response.status, response.headers["Allow"]
    (405, 'GET, HEAD')
    """
    if isinstance(error, web.HTTPMethodNotAllowed):
        allow = ", ".join(sorted(error.allowed_methods))
        refused = ConstructMessagesError(
            f"{error.method} is no method of this path", status=405, hint=f"use {allow}"
        )
        response = problem(refused, request_id)
        response.headers["Allow"] = allow
        return response
    hint = f"there is {', '.join(paths)}" if error.status == HTTPStatus.NOT_FOUND else None
    return problem(ConstructMessagesError(error.reason, status=error.status, hint=hint), request_id)
