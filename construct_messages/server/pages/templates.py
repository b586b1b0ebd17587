"""Renders pages from templates, in which every value is escaped, and sends them like the files of the page.

Why Jinja: docs/decisions/056-views-by-jinja.md. The content of pages comes from the modules that serve them.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from typing import Final

from aiohttp import web
from jinja2 import Environment, PackageLoader, StrictUndefined

from construct_messages.rdf.formats.media_types import HTML
from construct_messages.rdf.formats.negotiation import prefers_html
from construct_messages.server.http.app import accept_header
from construct_messages.server.pages.files import POLICY, STATIC, file_of, root_from, send_file

_TYPE: Final = f"{HTML}; charset=utf-8"


def moment(iso: str) -> str:
    """Returns a time in a readable form, in UTC.

    >>> moment("2026-11-28T05:04:14.995026+00:00")
    '28 Nov 2026, 05:04:14 UTC'
    """
    return f"{datetime.fromisoformat(iso).astimezone(UTC):%-d %b %Y, %H:%M:%S} UTC"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("construct_messages.server.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters["moment"] = moment
    return environment


def wants_html(request: web.Request) -> bool:
    """Returns whether a request is answered with a page: its client prefers HTML, and its URL has no format."""
    if (
        request.method not in ("GET", "HEAD")
        or "format" in request.query
        or "messages" in request.query
    ):
        return False
    return prefers_html(accept_header(request))


def render(template: str, path: str, values: dict[str, object]) -> bytes:
    """Returns a page.

    Args:
        template: the name of a template, without its extension.
        path: the requested path.
        values: the values of the template.

    >>> page = render("problem", "/streams/a", {"title": "Not Found", "problem": {"detail": "<b>"}, "status": 404})
    >>> b"<b>" in page, b"&lt;b&gt;" in page
    (False, True)
    """
    root = root_from(path)
    text = (
        _environment()
        .get_template(f"{template}.html")
        .render(root=root, static=root + STATIC[1:], **values)
    )
    # data from a client may contain bytes that are not characters
    return text.encode(errors="replace")


def problem_page(request: web.Request, problem: web.Response) -> web.Response:
    """Answers with a problem document (RFC 9457), as a page for browsers."""
    if not wants_html(request):
        return problem
    members = json.loads(problem.text or "{}")
    shown: dict[str, object] = {
        "problem": members,
        "status": problem.status,
        "title": members["title"],
    }
    headers = problem.headers.copy()
    headers.popall("Content-Length", None)
    headers["Content-Type"], headers["Content-Security-Policy"] = _TYPE, POLICY
    return web.Response(
        status=problem.status, body=render("problem", request.path, shown), headers=headers
    )


def send_rendered(request: web.Request, body: bytes) -> web.Response:
    """Answers with a page, or with 304 if the client already has it."""
    return send_file(request, file_of(_TYPE, body))
