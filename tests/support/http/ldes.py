"""Linked Data Event Streams of other hands, for tests: a site of pages written by hand, in five formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pyoxigraph as ox
from aiohttp import web

from construct_messages.feeds import subscribe
from construct_messages.streams.element import Element

FAST: dict[str, Any] = {"retries": 2, "poll_seconds": 0.01}
EX = "http://example.org/"

PREFIXES = """
PREFIX dct: <http://purl.org/dc/terms/>
PREFIX ldes: <https://w3id.org/ldes#>
PREFIX tree: <https://w3id.org/tree#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
PREFIX ex: <http://example.org/>
"""

FORMATS: Mapping[str, ox.RdfFormat] = {
    "text/turtle": ox.RdfFormat.TURTLE,
    "application/trig": ox.RdfFormat.TRIG,
    "application/n-triples": ox.RdfFormat.N_TRIPLES,
    "application/n-quads": ox.RdfFormat.N_QUADS,
    "application/ld+json": ox.RdfFormat.JSON_LD,
}


@dataclass
class Site:
    """What a site answers, and what it was asked for.

    Args:
        pages: bodies in TriG by path, or statuses.
        media_type: that all pages are served in.
        headers: by path.
        failures: statuses that come first, by path.
    """

    pages: dict[str, str | int] = field(default_factory=dict)
    media_type: str = "application/trig"
    headers: dict[str, dict[str, str]] = field(default_factory=dict)
    failures: dict[str, list[int]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    answered: list[tuple[str, int]] = field(default_factory=list)
    requests: list[web.BaseRequest] = field(default_factory=list)
    before: Callable[[str], None] = lambda _: None
    url: str = ""

    def page(self, path: str, body: str, **headers: str) -> None:
        """Puts a page in place: TriG, whose relative IRIs are the site's."""
        self.pages[path] = PREFIXES + body
        self.headers[path] = {name.replace("_", "-"): value for name, value in headers.items()}

    async def answer(self, request: web.BaseRequest) -> web.Response:
        path = request.path_qs
        self.before(path)
        self.asked[path] += 1
        self.requests.append(request)
        response = self._answer(request, path)
        self.answered.append((path, response.status))
        return response

    def _answer(self, request: web.BaseRequest, path: str) -> web.Response:
        if self.failures.get(path):
            return web.Response(status=self.failures[path].pop(0), headers={"Retry-After": "0"})
        page = self.pages.get(path, 404)
        headers = self.headers.get(path, {})
        if isinstance(page, int):
            return web.Response(status=page, headers=headers)
        etag = f'"{hash(page)}"'
        if request.headers.get("If-None-Match") == etag:
            return web.Response(status=304)
        body = self.serialized(page, path)
        return web.Response(
            body=body, headers={"Content-Type": self.media_type, "ETag": etag} | headers
        )

    def serialized(self, page: str, path: str) -> bytes:
        if self.media_type.partition(";")[0] in ("text/turtle", "application/trig"):
            return page.encode()
        quads = ox.parse(page, format=ox.RdfFormat.TRIG, base_iri=self.url + path)
        body = ox.serialize(quads, format=FORMATS[self.media_type])
        assert body is not None
        return body


@asynccontextmanager
async def site(media_type: str = "application/trig") -> AsyncIterator[Site]:
    """A site without pages, on a port of its own."""
    made = Site(media_type=media_type)
    runner = web.ServerRunner(web.Server(made.answer))
    await runner.setup()
    place = web.TCPSite(runner, "127.0.0.1", 0)
    await place.start()
    made.url = place.name
    try:
        yield made
    finally:
        await runner.cleanup()


def time_of(number: int) -> str:
    """The time of a member: they are a minute apart."""
    return f'"2026-11-22T{number // 60:02}:{number % 60:02}:00Z"^^xsd:dateTime'


def member(number: int) -> str:
    """A member with a blank node, as Turtle."""
    return f"""
</#stream> tree:member ex:m{number} .
ex:m{number} dct:created {time_of(number)} ; ex:number {number} ; ex:part [ ex:of {number} ] .
"""


def relation(page: str, kind: str = "", value: str = "", path: str = "dct:created") -> str:
    """A relation from the page that it stands on, as Turtle."""
    bound = (
        f"a tree:{kind}Relation ; tree:path {path} ; tree:value {value} ; "
        if kind
        else "a tree:Relation ; "
    )
    return f"<> tree:relation [ {bound}tree:node <{page}> ] .\n"


def pages(where: Site, *, ordered: bool = True) -> None:
    """A root with two pages, the later one first; members of a page are in no order."""
    path = "ldes:timestampPath dct:created ;" if ordered else ""
    where.page(
        "/",
        f"</#stream> a ldes:EventStream ; {path} tree:view <> . "
        + relation("/b", "GreaterThanOrEqualTo", time_of(4))
        + relation("/a", "LessThan", time_of(4)),
    )
    where.page("/b", members(5, 4, 6))
    where.page("/a", members(2, 3, 1), Cache_Control="public, immutable")


def members(*wanted: int) -> str:
    return "".join(map(member, wanted))


async def all_of(url: str, **options: Any) -> list[Element]:
    """The elements that are there."""
    return [element async for element in subscribe(url, follow=False, **FAST | options)]


def numbers(elements: list[Element]) -> list[int]:
    """What hand-written members say that they are."""
    found = []
    for element in elements:
        (number,) = (quad.object for quad in element.message if quad.predicate == f"<{EX}number>")
        found.append(int(number[1:].partition('"')[0]))
    return found
