"""Event streams in Turtle and N-Triples, which name no graphs: the TREE profile tells what a member says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pyoxigraph as ox
import pytest
from aiohttp import web

from construct_messages import Message, read_log
from construct_messages.errors import SourceError
from construct_messages.feeds import subscribe
from construct_messages.rdf.vocabulary import PROFILE, TREE
from tests.support.http.feeds import handling
from tests.support.http.streams import Answer, StreamsServer, serving_streams
from tests.support.streams import numbered

TRIPLES = {"text/turtle": ox.RdfFormat.TURTLE, "application/n-triples": ox.RdfFormat.N_TRIPLES}
"""Formats that name no graphs."""


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[StreamsServer]:
    """A server whose pages have three members, with one stream, `a`."""
    async with serving_streams(tmp_path / "streams.db", ldes_page=3) as server:
        assert (await server.ask("PUT", "/streams/a")).status == 201
        yield server


async def ask(served: StreamsServer, page: str = "", accept: str = "text/turtle") -> Answer:
    """The root, or a page."""
    return await served.ask("GET", f"/streams/a/ldes{page}", Accept=accept)


@pytest.mark.parametrize("accept", TRIPLES)
async def test_formats_without_names_of_graphs(served: StreamsServer, accept: str) -> None:
    """The TREE profile alone tells what a member says: a parser that keeps the order finds each message again."""
    sent = [*map(numbered, range(1, 5)), Message(), numbered(1)]
    await served.publish(sent)
    about = await served.ask(
        "POST", "/streams/a/input", b"<> <urn:p> [ <urn:q> 1 ] .", "text/turtle"
    )
    root = await ask(served, accept=accept)
    assert root.status == 200
    statements = list(ox.parse(root.body, format=TRIPLES[accept]))
    view = f"{served.url}/streams/a/ldes"
    assert {quad.object.value for quad in statements if quad.predicate.value == f"{TREE}node"} == {
        f"{view}/{page}" for page in ("1-3", "4-6", "7-9")
    }
    found: list[list[ox.Quad]] = []
    for page in ("1-3", "4-6", "7-9"):
        answer = await ask(served, f"/{page}", accept)
        assert answer.headers["Content-Type"] == f'{accept}; profile="{PROFILE}"'
        said: list[ox.Quad] | None = None
        for quad in ox.parse(answer.body, format=TRIPLES[accept]):
            if quad.predicate.value == f"{TREE}member":
                found.append(said := [])
            elif said is not None:
                said.append(quad)
    of_messages = [quads[2:] for quads in found]  # behind time and sequence
    assert [Message.from_pyoxigraph(each) for each in of_messages[:-1]] == sent
    assert (f"<{about.headers['Location']}>", "urn:p") in [
        (str(quad.subject), quad.predicate.value) for quad in of_messages[-1]
    ]
    messages = list(read_log(answer.body, f"{accept}; messages=rdfm"))
    assert len(messages) == 2, "hypermedia, and a member"


async def test_pages_of_our_streams_without_graphs_are_refused_by_our_reader(
    served: StreamsServer,
) -> None:
    """Behind a proxy that answers with Turtle, whatever is asked for."""
    await served.publish([numbered(1)])

    async def answer(request: web.BaseRequest) -> web.Response:
        found = await served.ask("GET", request.path_qs, Accept="text/turtle", Host=request.host)
        headers = {"Content-Type": found.headers["Content-Type"]}
        return web.Response(status=found.status, body=found.body, headers=headers)

    async with handling(answer) as url:
        with pytest.raises(
            SourceError, match="is in Turtle, a format without named graphs for its members"
        ):
            [
                _
                async for _ in subscribe(
                    f"{url}/streams/a/ldes", via="ldes", follow=False, retries=0
                )
            ]
