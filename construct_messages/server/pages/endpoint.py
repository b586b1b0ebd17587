"""The endpoint of the page for browsers: the page at `/` and `/NAME/`, its files, and the description of the server.

SPARQL endpoints answer browsers with the same page.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final, NamedTuple

from aiohttp import web
from jinja2 import Environment, PackageLoader, StrictUndefined

from construct_messages._version import __version__
from construct_messages.rdf.formats import LOGS, content_type
from construct_messages.rdf.formats.media_types import CSS, HTML, JAVASCRIPT, JSON, SVG, TRIPLES
from construct_messages.rdf.formats.negotiation import prefers_html
from construct_messages.rdf.formats.results import SOLUTIONS
from construct_messages.server.config import ExampleSettings
from construct_messages.server.http.app import accept_header
from construct_messages.server.http.endpoint import Endpoint, Method, Observe, Route
from construct_messages.server.http.sending import coder_for, is_known, negotiate_coding

# --- files ----------------------------------------------------------------------------------------
# The files of the page; sends HTML and files with a strict content security policy, and validators for caches.
#
# Content Security Policy Level 3: scripts and styles come only from files of this server, without inline ones, and
# there are no requests to other hosts. RFC 9110, section 13.1.2 (If-None-Match). The content is made here, and
# by other endpoints with views for browsers.

STATIC: Final = "/-/static"
"""The path of the files; names of endpoints do not begin with a hyphen."""

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types worker",
    )
)
"""The Content-Security-Policy of this server's HTML."""

_TYPES: Final[Mapping[str, str]] = {
    ".css": f"{CSS}; charset=utf-8",
    ".html": f"{HTML}; charset=utf-8",
    ".js": f"{JAVASCRIPT}; charset=utf-8",
    ".svg": SVG,
}
_ROOT: Final = b"ROOT/"
_ENDPOINT: Final = b"ENDPOINT"


class SentFile(NamedTuple):
    """A file to send."""

    content_type: str
    body: bytes
    tag: str


def file_of(content_type: str, body: bytes) -> SentFile:
    """Returns a file to send, with its entity tag.

    >>> file_of(CSS, b"").tag
    'e3b0c44298fc1c14'
    """
    return SentFile(content_type, body, hashlib.sha256(body).hexdigest()[:16])


@cache
def static_files() -> Mapping[str, SentFile]:
    """Returns the files of the page by name, read once.

    >>> sorted(static_files())[-1].endswith(".js")
    True
    """
    folder = files("construct_messages.server.pages") / "static"
    return {
        file.name: file_of(_TYPES[suffix], file.read_bytes())
        for file in folder.iterdir()
        if (suffix := file.name[file.name.rfind(".") :]) in _TYPES
    }


def root_from(path: str) -> str:
    """Returns the relative URL from a path of this server to its root; it works with any prefix of a proxy.

    >>> root_from("/"), root_from("/sparql"), root_from("/dbpedia/sparql"), root_from("/streams/a/output/7")
    ('./', './', '../', '../../../')
    """
    return "../" * (path.count("/") - 1) or "./"


@cache
def page_at(root: str, endpoint: str) -> SentFile:
    """Returns the page for a path from which the root is `root`; without JavaScript, its form asks `endpoint`."""
    page = static_files()["index.html"]
    body = page.body.replace(_ENDPOINT, endpoint[1:].encode()).replace(_ROOT, root.encode())
    return file_of(page.content_type, body)


def send_page(request: web.Request, endpoint: str) -> web.Response:
    """Answers with the page at any path; see `page_at`."""
    return send_file(request, page_at(root_from(request.path), endpoint))


def send_static(request: web.Request, name: str) -> web.Response:
    """Answers with a file of the page, compressed if the client accepts it."""
    file = static_files().get(name)
    if file is None:
        raise web.HTTPNotFound
    coding = negotiate_coding(request)
    if coding is None:
        return send_file(request, file)
    return send_file(request, _coded(name, coding), {"Content-Encoding": coding})


@cache
def _coded(name: str, coding: str) -> SentFile:
    """Returns a file of the page in a content coding. This is another representation, with a different entity tag."""
    file, coder = static_files()[name], coder_for(coding)
    return SentFile(
        file.content_type, coder.code(file.body) + coder.finish(), f"{file.tag}-{coding}"
    )


def send_file(
    request: web.Request, file: SentFile, further: Mapping[str, str] = MappingProxyType({})
) -> web.Response:
    """Answers with a file, or with 304 if the client already has it; `further` are headers of the file."""
    headers = {
        "Cache-Control": "no-cache",
        "Content-Security-Policy": POLICY,
        "ETag": f'"{file.tag}"',
    }
    if is_known(request, headers["ETag"]):
        return web.Response(status=304, headers=headers)
    return web.Response(
        body=file.body, headers={**headers, **further, "Content-Type": file.content_type}
    )


# --- templates ------------------------------------------------------------------------------------
# Renders pages from templates, in which every value is escaped, and sends them like the files of the page.
#
# Jinja escapes every value by default (Chameleon and Mako do not). The content of pages comes from the modules that
# serve them.

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


# --- endpoint -------------------------------------------------------------------------------------

SERVER: Final = "/-/server.json"
"""The path of the server's description, for the page."""


class Listed(NamedTuple):
    """A SPARQL endpoint that the page offers; the name of the one at `/sparql` is empty."""

    name: str
    path: str
    prefixes: Mapping[str, str]
    examples: Sequence[ExampleSettings] = ()


class PagesEndpoint(Endpoint):
    """The page; see `server.http.endpoint.Endpoint`."""

    path = "/"
    has_source = False

    def __init__(self, endpoints: Sequence[Listed], *, streams: str | None = None) -> None:
        # the initial endpoint of a page, by the page's path
        self._pages = {"/": endpoints[0].path if endpoints else "/"}
        self._pages |= {f"/{each.name}/": each.path for each in endpoints if each.name}
        self._server = file_of(
            JSON, json.dumps(_described(endpoints, streams), ensure_ascii=False).encode()
        )

    def routes(self) -> Iterable[Route]:
        reading = ("GET", "HEAD")
        page = {"GET": Method("The page for browsers", {200: (HTML,), 304: ()})}
        file = {"GET": Method("A file of the page", {200: ("*/*",), 304: ()})}
        server = {
            "GET": Method("What the page needs to know of the server", {200: (JSON,), 304: ()})
        }
        return (
            *(Route(path, reading, self._page, described=page) for path in self._pages),
            Route(f"{STATIC}/{{file}}", reading, self._file, described=file),
            Route(SERVER, reading, self._describe, described=server),
        )

    async def start(self, observe: Observe) -> None:  # noqa: ARG002 - the protocol's
        static_files()

    async def _page(self, request: web.Request) -> web.StreamResponse:
        return send_page(request, self._pages[request.path])

    async def _file(self, request: web.Request) -> web.StreamResponse:
        return send_static(request, request.match_info["file"])

    async def _describe(self, request: web.Request) -> web.StreamResponse:
        return send_file(request, self._server)


def _described(endpoints: Sequence[Listed], streams: str | None) -> Mapping[str, object]:
    """Returns the description of the server for the page; paths are relative to its root."""
    return {
        "version": __version__,
        "endpoints": [
            {
                "name": endpoint.name,
                "path": endpoint.path[1:],
                "prefixes": dict(endpoint.prefixes),
                "examples": [asdict(example) for example in endpoint.examples],
            }
            for endpoint in endpoints
        ],
        "streams": streams and streams[1:],
        "logs": [
            {
                "name": type.format.name,
                "syntax": type.syntax.label,
                "type": content_type(*type),
                "extension": type.format.extension,
            }
            for type in LOGS
        ],
        "graphs": [
            {"name": each.name, "type": each.media_type, "extension": each.names[0]}
            for each in TRIPLES
        ],
        "solutions": [
            {"name": each.name, "type": each.media_type, "extension": each.names[0]}
            for each in SOLUTIONS
        ],
    }
