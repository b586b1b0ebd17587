"""Many clients at once, in small: nothing lost or doubled, a slow one holds back itself, who leaves is forgotten.

The same with more clients: `make load`.
"""

import asyncio
import random
from contextlib import closing
from itertools import count
from pathlib import Path

import aiohttp
import pyoxigraph as ox
import pytest

from construct_messages import construct_messages
from tests.support.http.fault_server import HOLD, FaultServer, response
from tests.support.http.load import RDFM, dripping, leave
from tests.support.http.serving import Served, serving, unlabelled
from tests.support.waiting import SECONDS, eventually

pytestmark = pytest.mark.slow

HEADERS = {"Accept": RDFM, "Accept-Encoding": "identity"}
CONSTRUCT = "CONSTRUCT { ?s <urn:q> ?o, [] } WHERE { ?s <urn:p> ?o }"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("load") / "store"
    written = ox.Store(str(directory))
    # all together more than what connections hold on their way
    lines = (f'<urn:s{number}> <urn:p> "{number} {"x" * 10_000}" .\n' for number in range(1500))
    written.bulk_load("".join(lines), format=ox.RdfFormat.N_TRIPLES)
    written.flush()
    return directory


async def test_many_clients_get_their_own_answers(store: Path, pytestconfig: pytest.Config) -> None:
    clients: int = pytestconfig.getoption("--clients")
    starts = [random.randint(0, 1400) for _ in range(10)]
    subjects = [" ".join(f"<urn:s{start + number}>" for number in range(20)) for start in starts]
    queries = [f"{CONSTRUCT} VALUES ?s {{ {among} }}" for among in subjects]
    expected = {
        query: unlabelled(b"".join(construct_messages(query, str(store)).serialize("nq")))
        for query in queries
    }

    async def client(session: aiohttp.ClientSession, url: str) -> None:
        for query in random.sample(queries, 4):
            async with session.post(url, data={"query": query}, headers=HEADERS) as response:
                assert response.status == 200
                assert unlabelled(await response.read()) == expected[query]

    async with (
        serving(store, queue_seconds=600, queue_length=2 * clients) as server,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
    ):
        await asyncio.gather(*(client(session, server.sparql) for _ in range(clients)))


async def test_a_slow_reader_holds_back_only_itself(store: Path) -> None:
    quick = {"query": f"{CONSTRUCT} LIMIT 1"}
    async with (
        serving(store, evaluators=2) as server,
        aiohttp.ClientSession(read_bufsize=1) as session,
        session.post(server.sparql, data={"query": CONSTRUCT}, headers=HEADERS) as slow,
    ):
        assert await slow.content.read(1) == b"#"
        for _ in range(5):
            async with (
                asyncio.timeout(SECONDS),
                session.post(server.sparql, data=quick, headers=HEADERS) as response,
            ):
                assert (await response.read()).count(b"# @message\n") == 1
        await eventually(lambda: in_flight(server).endswith(" 1.0"))
        rest = await slow.content.read()  # it gets everything in the end
        assert rest.count(b"# @message\n") == 1_499


def in_flight(server: Served) -> str:
    lines = server.metrics.exposition(None)[0].decode().splitlines()
    return next((line for line in lines if line.startswith("construct_messages_in_flight{")), "")


@pytest.mark.parametrize("abrupt", [True, False], ids=["reset", "closed"])
async def test_who_leaves_leaves_nothing_behind(abrupt: bool, pytestconfig: pytest.Config) -> None:
    leavers: int = pytestconfig.getoption("--leavers")
    async with dripping(500) as upstream, serving(upstream.url) as server:
        for number in count(1):
            most = (
                0.3 * number
            )  # seconds; in the first ones a slow machine may not get as far as to the upstream
            leaving = (
                leave(server.sparql, CONSTRUCT, random.random() * most, abrupt=abrupt)
                for _ in range(leavers)
            )
            await asyncio.gather(*leaving)
            if number >= 4 and upstream.asked:
                break
        await eventually(lambda: upstream.running == 0)
        await eventually(lambda: in_flight(server).endswith(" 0.0"))


async def test_past_its_bounds_the_server_says_so() -> None:
    with closing(FaultServer()) as upstream:
        upstream.play([HOLD, response(b'{"head":{"vars":["s","o"]},"results":{"bindings":[]}}')])
        async with (
            serving(upstream.url, concurrency=2, queue_seconds=0.2, queue_length=1) as server,
            aiohttp.ClientSession() as session,
        ):

            async def ask() -> tuple[int, str | None]:
                async with session.post(
                    server.sparql, data={"query": CONSTRUCT}, headers=HEADERS
                ) as response:
                    await response.read()
                    return response.status, response.headers.get("Retry-After")

            asking = [asyncio.create_task(ask()) for _ in range(6)]
            await eventually(lambda: sum(task.done() for task in asking) == 4)
            upstream.go_on.set()
            answers = await asyncio.gather(*asking)
            assert sorted(answers, key=str) == [(200, None)] * 2 + [(503, "1")] * 4
