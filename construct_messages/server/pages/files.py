"""The files of the page; sends HTML and files with a strict content security policy, and validators for caches.

Content Security Policy Level 3: scripts and styles come only from files of this server, without inline ones, and there
are no requests to other hosts. RFC 9110, section 13.1.2 (If-None-Match). The content comes from `endpoint.py` and from
other endpoints with views for browsers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final, NamedTuple

from aiohttp import web

from construct_messages.rdf.formats.media_types import CSS, HTML, JAVASCRIPT, SVG
from construct_messages.server.http.sending import coder_for, is_known, negotiate_coding

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
    """A file to send.

    Args:
        content_type: its media type.
        body: its bytes.
        tag: its entity tag, without quotes.
    """

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
    """Returns the page for a path from which the root is `root`.

    Args:
        root: a relative URL.
        endpoint: the path of the SPARQL endpoint that its form uses without JavaScript.
    """
    page = static_files()["index.html"]
    body = page.body.replace(_ENDPOINT, endpoint[1:].encode()).replace(_ROOT, root.encode())
    return file_of(page.content_type, body)


def send_page(request: web.Request, endpoint: str) -> web.Response:
    """Answers with the page at any path; see `page_at`."""
    return send_file(request, page_at(root_from(request.path), endpoint))


def send_static(request: web.Request, name: str) -> web.Response:
    """Answers with a file of the page, compressed if the client accepts it.

    Raises:
        web.HTTPNotFound: the file does not exist.
    """
    file = static_files().get(name)
    if file is None:
        raise web.HTTPNotFound
    coding = negotiate_coding(request.headers.get("Accept-Encoding"))
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
