"""A client of other hands, npm's ldes-client, reads streams as Linked Data Event Streams: each member exactly once."""

from __future__ import annotations

import asyncio
import json
import os
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from construct_messages import Message, Quad, iri
from construct_messages.feeds import subscribe
from construct_messages.rdf.terms import Term
from construct_messages.rdf.vocabulary import DCTERMS
from tests.support.engines.servers import NODE
from tests.support.http.ldes import EX, all_of, pages, site
from tests.support.http.ldes import numbers as by_hand
from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.places import absent
from tests.support.streams import numbered
from tests.support.waiting import SECONDS

pytestmark = [pytest.mark.engine, pytest.mark.slow]

# The package's own command prints numbers in a way that no parser of N-Quads takes.
REPLICATE = """
import { intoConfig, replicateLDES } from "ldes-client";
const { ordered, ...config } = JSON.parse(process.argv[1]);
const reader = replicateLDES(intoConfig(config), ordered).stream().getReader();
for (let read = await reader.read(); !read.done; read = await reader.read()) {
  const { id, quads } = read.value;
  const terms = quads.map((quad) => [quad.subject, quad.predicate, quad.object, quad.graph]);
  console.log(JSON.stringify({ id: id.value, quads: terms.map((quad) => quad.map((term) => term.value)) }));
}
"""


async def replicated(url: str, **config: Any) -> AsyncIterator[dict[str, Any]]:
    """The members that the client emits, as it does."""
    node = Path(os.environ.get(NODE, "nowhere"))
    if not (node / "node_modules" / "ldes-client").exists():
        absent(f"npm's ldes-client is absent: set {NODE} to the folder that holds its node_modules")
    program = (
        "node",
        "--input-type=module",
        "--eval",
        REPLICATE,
        json.dumps({"url": url, **config}),
    )
    process = await asyncio.create_subprocess_exec(*program, cwd=node, stdout=PIPE, limit=1 << 24)
    assert process.stdout is not None
    try:
        async for line in process.stdout:
            yield json.loads(line)
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def numbers(url: str, most: int | None = None, **config: Any) -> list[int]:
    """The sequences of the members that the client emits: all, or until there are as many different ones."""
    found = []
    async with asyncio.timeout(SECONDS), aclosing(replicated(url, **config)) as members:
        async for member in members:
            found.append(int(member["id"].rpartition("/")[2]))
            if len(set(found)) == most:
                break
    return found


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[StreamsServer]:
    """A server whose pages have ten members, with one stream, `a`, of 45 elements: the last 30 of equal times."""
    async with serving_streams(tmp_path / "streams.db", ldes_page=10) as server:
        await server.ask("PUT", "/streams/a")
        for number in range(1, 16):
            await server.publish([numbered(number)])
        await server.publish([numbered(number) for number in range(16, 46)])
        yield server


@pytest.mark.one_in(3)
@pytest.mark.parametrize("path", ["ldes", "ldes#stream", "ldes/1-10"])
@pytest.mark.parametrize("ordered", ["none", "ascending", "descending"])
async def test_each_member_once(served: StreamsServer, path: str, ordered: str) -> None:
    found = await numbers(f"{served.url}/streams/a/{path}", ordered=ordered)
    assert sorted(found) == list(range(1, 46))


async def test_the_same_members_as_our_own_reader(served: StreamsServer) -> None:
    url = f"{served.url}/streams/a/ldes"
    ours = [element.sequence async for element in subscribe(url, follow=False)]
    assert sorted(await numbers(url, ordered="none")) == ours


@pytest.mark.slow
@pytest.mark.parametrize("media_type", ["text/turtle", "application/n-quads"])
async def test_the_same_members_of_pages_by_hand(media_type: str) -> None:
    async with site(media_type) as where:
        pages(where)
        theirs = [member["id"] async for member in replicated(f"{where.url}/", ordered="ascending")]
        ours = [f"{EX}m{number}" for number in by_hand(await all_of(f"{where.url}/"))]
        # of a page in N-Quads it gives the members in no order
        assert (sorted(theirs), sorted(ours)) == (ours, ours)


async def test_in_the_order_of_time(served: StreamsServer) -> None:
    issued = []
    async with aclosing(replicated(f"{served.url}/streams/a/ldes", ordered="ascending")) as members:
        async for member in members:
            (time,) = [
                object
                for _, predicate, object, _ in member["quads"]
                if predicate == f"{DCTERMS}issued"
            ]
            issued.append(time[:23])  # it compares milliseconds
    assert issued == sorted(issued)


@pytest.mark.parametrize("ordered", ["none", "ascending"])
async def test_following(served: StreamsServer, ordered: str) -> None:
    url = f"{served.url}/streams/a/ldes"
    following = asyncio.ensure_future(
        numbers(url, 75, ordered=ordered, polling=True, pollInterval=50)
    )
    await asyncio.sleep(0)
    for number in range(46, 76):
        await served.publish([numbered(number)])
    found = await following
    # without order, the client may fetch a page twice at once, and emit a member before it notes that it did
    assert sorted(set(found) if ordered == "none" else found) == list(range(1, 76))


async def test_resuming(served: StreamsServer, tmp_path: Path) -> None:
    url, state = f"{served.url}/streams/a/ldes", str(tmp_path / "state")
    assert len(await numbers(url, ordered="ascending", statePath=state)) == 45
    for number in range(46, 61):
        await served.publish([numbered(number)])
    assert sorted(await numbers(url, ordered="ascending", statePath=state)) == list(range(46, 61))


async def test_after_retention(served: StreamsServer) -> None:
    await served.ask("PUT", "/streams/a", b'{"retainedElements": 12}', "application/json")
    assert sorted(await numbers(f"{served.url}/streams/a/ldes", ordered="ascending")) == list(
        range(34, 46)
    )


async def test_members_are_whole(served: StreamsServer) -> None:
    """The client finds the message in the graph of the member's name."""
    await served.ask("PUT", "/streams/b")
    nodes = [
        Quad(Term("_:a"), iri("urn:p"), Term("_:b")),
        Quad(iri("urn:s"), iri("urn:p"), Term("_:a")),
    ]
    await served.publish([Message(nodes), Message()], stream="b")
    async with aclosing(replicated(f"{served.url}/streams/b/ldes", ordered="ascending")) as members:
        found = {member["id"]: member["quads"] async for member in members}
    whole, empty = (f"{served.url}/streams/b/output/{number}" for number in (1, 2))
    assert set(found) == {whole, empty}
    assert [len([quad for quad in found[name] if quad[3] == name]) for name in (whole, empty)] == [
        2,
        0,
    ]
