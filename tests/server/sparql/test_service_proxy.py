"""`server/sparql/backend.py`: SERVICE of the embedded engine reaches what it may, and nothing else."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pyoxigraph as ox
import pytest
import pytest_asyncio
from aiohttp import web

from construct_messages.construct.messages import construct_messages
from construct_messages.errors import ConstructMessagesError, Forbidden, SourceError
from construct_messages.rdf.terms import Term
from construct_messages.server.sparql.backend import Policy, ServiceProxy
from construct_messages.sparql.sources import Operation
from construct_messages.sparql.sources.evaluators.pool import EvaluatorPool
from tests.support.queries.requests import request as select
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

EX = "http://example.org/"


@dataclass
class Remote:
    """An endpoint elsewhere: `/ok` answers, the other paths misbehave."""

    url: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)
    left: int = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        self.asked.append((name, (await request.post())["query"]))  # type: ignore[arg-type] # no file is sent
        if name == "redirect":
            raise web.HTTPFound("http://127.0.0.2:9/")
        if name == "refuse":
            return web.Response(status=403, text="what is written here is nobody's business")
        if name == "page":
            return web.Response(text="<html>", content_type="text/html")
        if name == "stall":
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                self.left += 1
                raise
        value = "x" * 100_000 if name == "big" else "b"
        document = {
            "head": {"vars": ["o"]},
            "results": {"bindings": [{"o": {"type": "literal", "value": value}}]},
        }
        body = json.dumps(document).encode()
        if name == "cut":
            response = web.StreamResponse(
                headers={"Content-Type": "application/sparql-results+json"}
            )
            await response.prepare(request)
            await response.write(body[:-5])
            assert request.transport is not None
            request.transport.abort()
            return response
        return web.Response(body=body, content_type="application/sparql-results+json")


@pytest_asyncio.fixture
async def remote() -> AsyncIterator[Remote]:
    served = Remote()
    app = web.Application()
    app.router.add_post("/{name}", served.answer)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    served.url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    yield served
    await runner.cleanup()


Open = Callable[..., Awaitable[ServiceProxy]]


@pytest_asyncio.fixture
async def proxy(tmp_path: Path) -> AsyncIterator[Open]:
    """Opens proxies, with `open(policy, **options)`."""
    store = ox.Store(str(tmp_path / "store"))
    store.add(ox.Quad(ox.NamedNode(f"{EX}s"), ox.NamedNode(f"{EX}p"), ox.Literal("a")))
    del store
    opened: list[ServiceProxy] = []

    async def open(policy: Policy, **options: float) -> ServiceProxy:
        opened.append(ServiceProxy(EvaluatorPool(tmp_path / "store", size=1), policy, **options))  # type: ignore[arg-type] # by name
        await opened[-1].start()
        return opened[-1]

    yield open
    for each in opened:
        await each.aclose()


async def collect(
    source: ServiceProxy, group: str, variables: str = "o", **options: object
) -> list[tuple[Term, ...]]:
    async with aclosing(source.asolutions(select(variables, group, **options))) as batches:
        return [solution async for batch in batches for solution in batch]


async def test_solutions_and_answers_come_through(proxy: Open, remote: Remote) -> None:
    opened = await proxy({f"{remote.url}ok"})
    group = f"{{ {{ ?s ?p ?o }} UNION {{ SERVICE <{remote.url}ok> {{ ?s ?p ?o }} }} }}"
    assert sorted(await collect(opened, group)) == [('"a"',), ('"b"',)]
    answer = await opened.answer(Operation(f"SELECT ?o {group}", headers={"Accept": "text/csv"}))
    async with aclosing(answer.body) as chunks:
        assert sorted(b"".join([chunk async for chunk in chunks]).split()) == [b"a", b"b", b"o"]
    assert [name for name, _ in remote.asked] == ["ok", "ok"]


async def test_messages_come_through(proxy: Open, remote: Remote) -> None:
    opened = await proxy({f"{remote.url}ok"})
    query = (
        f"PREFIX r: <{remote.url}>\nCONSTRUCT {{ <urn:x> <urn:y> ?o }} WHERE {{ "
        f"SERVICE SILENT r:ok {{ ?s ?p ?o }} }}"
    )
    async with construct_messages(query, opened) as stream:
        assert [str(quad) async for message in stream for quad in message] == [
            '<urn:x> <urn:y> "b" .'
        ]


@pytest.mark.parametrize(
    "clause",
    [
        "?s",
        "<URL/other>",
        "SILENT <URL/other>",
        "<URL/ok/>",
        "undeclared:ok",
        "<http://127.0.0.1:1/>",
        "<relative>",
    ],
)
async def test_what_may_not_be_reached(clause: str, proxy: Open, remote: Remote) -> None:
    opened = await proxy({f"{remote.url}ok"})
    clause = clause.replace("URL/", remote.url)
    for group in (
        f"{{ SERVICE {clause} {{ ?s ?p ?o }} }}",
        f"{{ {{ SELECT * {{ SERVICE {clause} {{ ?s ?p ?o }} }} }} }}",
    ):
        with pytest.raises(Forbidden, match="SERVICE"):
            await collect(opened, group)
        with pytest.raises(Forbidden, match="SERVICE"):
            await opened.answer(Operation(f"ASK {group}"))
    assert remote.asked == []


@pytest.mark.parametrize(
    "iri",
    [
        "http://127.0.0.1:PORT/ok",
        "http://localhost:PORT/ok",
        "http://[::ffff:127.0.0.1]:PORT/",
        "http://2130706433/",
    ],
)
async def test_where_clients_choose_they_choose_public_addresses(
    iri: str, proxy: Open, remote: Remote
) -> None:
    opened = await proxy("allow")
    iri = iri.replace("PORT", remote.url.rpartition(":")[2].strip("/"))
    with pytest.raises(SourceError, match=r"not at a public address|could not be reached"):
        await collect(opened, f"{{ SERVICE <{iri}> {{ ?s ?p ?o }} }}")
    with pytest.raises(Forbidden, match="is not in the text"):
        await collect(opened, "{ ?s ?p ?o SERVICE ?s {} }")
    assert remote.asked == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("redirect", "redirect|status 302"),
        ("refuse", "status 403"),
        ("page", "page for browsers"),
        ("cut", "evaluation failed"),
        ("big", "evaluation failed"),
        ("stall", "in time"),
    ],
)
async def test_a_service_that_fails_fails_the_query(
    name: str, words: str, proxy: Open, remote: Remote
) -> None:
    opened = await proxy(
        {f"{remote.url}{name}"}, response_bytes=10_000, seconds=0.5 if name == "stall" else 60
    )
    group = f"{{ {{ ?s ?p ?o }} UNION {{ SERVICE <{remote.url}{name}> {{ ?s ?p ?o }} }} }}"
    with pytest.raises(SourceError, match=words) as caught:
        await collect(opened, group)
    assert opened._secret not in str(caught.value)
    assert "nobody's business" not in str(caught.value)


async def test_silent_is_the_engines_business(proxy: Open, remote: Remote) -> None:
    """A failure before anything came is no solution more; one in the middle fails the query all the same."""
    opened = await proxy({f"{remote.url}refuse", f"{remote.url}cut"})
    group = "{ { ?s ?p ?o } UNION { SERVICE SILENT <URL> { ?s ?p ?o } } }"
    assert '"a"' in [
        o for (o,) in await collect(opened, group.replace("URL", f"{remote.url}refuse"))
    ]
    with pytest.raises(SourceError, match="evaluation failed"):
        await collect(opened, group.replace("URL", f"{remote.url}cut"))


async def test_a_service_within_a_service_keeps_its_name(proxy: Open, remote: Remote) -> None:
    opened = await proxy({f"{remote.url}ok", f"{EX}sparql"})
    await collect(
        opened, f"{{ SERVICE <{remote.url}ok> {{ ?s ?p ?o SERVICE <{EX}sparql> {{ ?o ?q ?r }} }} }}"
    )
    ((_, query),) = remote.asked
    assert f"<{EX}sparql>" in query
    assert "127.0.0.1" not in query


async def test_the_gate_opens_for_its_own_engine_only(proxy: Open, remote: Remote) -> None:
    opened = await proxy({f"{remote.url}ok"})
    inside = re.findall(r"<(.*?)>", opened._redirected(f"ASK {{ SERVICE <{remote.url}ok> {{}} }}"))[
        0
    ]
    prefix, _, target = inside.rpartition("/")
    other = opened._redirected(f"ASK {{ SERVICE <{remote.url}ok> {{}} }}").replace(
        opened._secret, "x" * 32
    )
    async with aiohttp.ClientSession() as session:
        for url, status in (
            (inside, 200),
            (re.findall(r"<(.*?)>", other)[0], 404),
            (prefix.rpartition("/")[0] + "/", 404),
            (f"{prefix}/", 404),
            (f"{prefix}/{target[:-4]}", 403),
            (f"{prefix}/%FF", 403),
        ):
            async with session.post(url, data="ASK {}") as response:
                assert response.status == status, url
        async with session.get(inside) as response:
            assert response.status == 405
    assert len(remote.asked) == 1


async def test_an_evaluation_that_is_given_up_gives_up_its_service(
    proxy: Open, remote: Remote
) -> None:
    opened = await proxy({f"{remote.url}stall"})
    group = f"{{ SERVICE <{remote.url}stall> {{ ?s ?p ?o }} }}"
    evaluating = asyncio.create_task(collect(opened, group))
    await eventually(lambda: remote.asked)
    evaluating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await evaluating
    await eventually(lambda: remote.left)


async def test_errors_of_the_engine_stay_what_they_are(proxy: Open, remote: Remote) -> None:
    opened = await proxy({f"{remote.url}ok"})
    with pytest.raises(ConstructMessagesError, match="expected a variable or an RDF term"):
        await collect(opened, f"{{ SERVICE <{remote.url}ok> {{ ?s ?p }} }}")
    assert opened.stable_blank_nodes
    assert opened.predefined == {}
    await opened.check()
