"""The endpoint of the page for browsers: the page at `/` and `/NAME/`, its files, and the description of the server.

SPARQL endpoints answer browsers with the same page; see `files.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from aiohttp import web

from construct_messages._version import __version__
from construct_messages.rdf.formats import LOGS, content_type
from construct_messages.rdf.formats.documents import TRIPLES
from construct_messages.rdf.formats.media_types import JSON
from construct_messages.rdf.formats.results import SOLUTIONS
from construct_messages.server.http.endpoint import Measure, Observe, Route
from construct_messages.server.http.record import RequestRecord
from construct_messages.server.pages.files import (
    STATIC,
    file_of,
    send_file,
    send_page,
    send_static,
    static_files,
)

SERVER: Final = "/-/server.json"
"""The path of the server's description, for the page."""


class Example(NamedTuple):
    """A query that the page offers.

    Args:
        name: a few words.
        query: its text.
        sentence: its subject; may be empty.
        group_by: the variables whose values group solutions into messages.
    """

    name: str
    query: str
    sentence: str = ""
    group_by: Sequence[str] = ()


class Listed(NamedTuple):
    """A SPARQL endpoint that the page offers.

    Args:
        name: as in the settings; empty for the one at `/sparql`.
        path: its path.
        prefixes: the prefixes of its settings, with their IRIs.
        examples: the examples of its settings.
    """

    name: str
    path: str
    prefixes: Mapping[str, str]
    examples: Sequence[Example] = ()


class PagesEndpoint:
    """The page; see `server.http.endpoint.Endpoint`.

    Args:
        endpoints: the SPARQL endpoints that it offers.
        streams: the path of the stream list; None: the server has no streams.
    """

    path = "/"
    record = RequestRecord
    gauges: Mapping[str, Sequence[Measure]] = MappingProxyType({})
    reported: Mapping[str, object] = MappingProxyType({})
    exposed_headers = ()
    has_source = False

    def __init__(self, endpoints: Sequence[Listed], *, streams: str | None = None) -> None:
        # the initial endpoint of a page, by the page's path
        self._pages = {"/": endpoints[0].path if endpoints else "/"}
        self._pages |= {f"/{each.name}/": each.path for each in endpoints if each.name}
        self._server = file_of(
            JSON, json.dumps(_described(endpoints, streams), ensure_ascii=False).encode()
        )

    def routes(self) -> Iterable[Route]:
        """Returns the routes; see `Endpoint.routes`."""
        reading = ("GET", "HEAD")
        return (
            *(Route(path, reading, self._page) for path in self._pages),
            Route(f"{STATIC}/{{file}}", reading, self._file),
            Route(SERVER, reading, self._describe),
        )

    async def start(self, observe: Observe) -> None:  # noqa: ARG002 - the protocol's
        """Reads the files; see `Endpoint.start`."""
        static_files()

    async def check(self) -> None:
        """Does nothing; see `Endpoint.check`."""

    async def stop(self) -> None:
        """Does nothing; see `Endpoint.stop`."""

    async def aclose(self) -> None:
        """Does nothing; see `Endpoint.aclose`."""

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
                "examples": [example._asdict() for example in endpoint.examples],
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
