"""Endpoints that misbehave, seen by the clients of a server in front of them.

A client that heeds its framing and reads to the end without an error has every message; any other sees an error. And
the server's log and metrics name the reason.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Final
from urllib.parse import urlencode

import pytest
import pytest_asyncio

from construct_messages.server.config import Endpoint
from tests.conftest import absent
from tests.fault_server import FaultServer
from tests.faults_table import CASES, ENDPOINTS, QUERY, READ, Case, Outcome
from tests.http_clients import SPARQL_CLIENTS, Broken, Client, is_installed
from tests.serving import Served, eventually, serving

# starting the server takes longer than what is tested here
pytestmark = pytest.mark.asyncio(loop_scope="module")

HELD: Final = "-held"
CLIENTS: Final = {name: client for name, client in SPARQL_CLIENTS.items() if is_installed(name)}


async def test_curl_is_among_the_clients() -> None:
    if not is_installed("curl"):
        absent("curl is not installed")


@pytest.fixture(scope="module")
def upstream() -> Iterator[FaultServer]:
    with closing(FaultServer()) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(upstream: FaultServer) -> AsyncIterator[Served]:
    """One server; each endpoint of the table, and the same with logs held back until they are whole."""
    endpoints = {
        f"{name}{suffix}": Endpoint(
            source=(upstream.url,), **{"retries": 0, "allow_private": True, "buffer_bytes": buffer_bytes, **options}
        )
        for name, options in ENDPOINTS.items()
        for suffix, buffer_bytes in (("", 0), (HELD, 1 << 20))
    }
    async with serving(endpoints=endpoints) as server:
        yield server


def url_of(served: Served, endpoint: str, **parameters: str) -> str:
    return f"{served.url}/{endpoint}/sparql?{urlencode({'query': QUERY, 'messages': 'rdfm', **parameters})}"


async def seen(client: Client, url: str, log: bytes, outcome: Outcome) -> str:
    """What a client sees, in a word or with a status; and what else came than must, if any did."""
    try:
        received = await client(url, {})
    except Broken as broken:
        return "broken" if log.startswith(broken.body) else f"broken behind {broken.body!r}"
    if received.status == 200:
        return "complete" if received.body == log else f"complete with {received.body!r}"
    saw = f"refused with {received.status}"
    document = json.loads(received.body)
    is_right = (
        received.headers["content-type"].startswith("application/problem+json")
        and received.headers.get("retry-after") == outcome.retry_after
        and document["status"] == received.status
        and outcome.words in document["detail"]
        and "secret" not in document["detail"]
    )
    return saw if is_right else f"{saw}: {received}"


class Ledger:
    """What the server says of its requests, from now on."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._place = len(served.journal.getvalue())
        self._before = self._counts()

    def _counts(self) -> Counter[tuple[str, ...]]:
        counts: Counter[tuple[str, ...]] = Counter()
        exposition, _ = self._served.metrics.exposition(None)
        for name, label, value in re.findall(
            r"^construct_messages_(\w+)_total{([^}]*)} (\S+)$", exposition.decode(), re.M
        ):
            counts[name, *re.findall('reason="(.*)"', label)] += int(float(value))
        return counts

    def counted(self, name: str) -> dict[str, int]:
        """A metric, by reason."""
        return {key[-1]: count for key, count in (self._counts() - self._before).items() if key[0] == name}

    def lines(self) -> list[str]:
        """The outcomes of the requests that have ended."""
        return re.findall(r"event=request .* outcome=(\S+)", self._served.journal.getvalue()[self._place :])

    async def ended(self, requests: int) -> set[str]:
        """The outcomes of so many requests, when all have ended."""
        await eventually(lambda: len(self.lines()) >= requests)
        assert len(self.lines()) == requests
        return set(self.lines())

    async def sent(self, messages: int) -> None:
        """When so many messages have been sent."""
        await eventually(lambda: self.counted("messages").get("messages", 0) >= messages)


async def go_on(upstream: FaultServer, ledger: Ledger, messages: int) -> None:
    """Lets the endpoint go on when so many messages have been sent."""
    await ledger.sent(messages)
    upstream.go_on.set()


@pytest.mark.parametrize("held", [False, True], ids=["streamed", "held back"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_every_client_has_the_whole_log_or_an_error(
    served: Served, upstream: FaultServer, case: Case, held: bool
) -> None:
    upstream.play(case.script)
    ledger = Ledger(served)
    url = url_of(served, case.endpoint + (HELD if held else ""))
    outcome = case.outcome
    if held:
        upstream.go_on.set()
    watching = asyncio.create_task(go_on(upstream, ledger, READ * len(CLIENTS)))
    results = await asyncio.gather(*(seen(client, url, case.log, outcome) for client in CLIENTS.values()))
    watching.cancel()
    match outcome.kind:
        case "complete":
            client_sees, server_says = "complete", "complete"
        case "breaks" if not held:
            client_sees, server_says = "broken", f"aborted:{outcome.reason}"
        case _:
            client_sees, server_says = f"refused with {outcome.status}", "refused"
    assert dict(zip(CLIENTS, results, strict=True)) == dict.fromkeys(CLIENTS, client_sees)
    assert await ledger.ended(len(CLIENTS)) == {server_says}
    assert ledger.counted("aborts") == ({outcome.reason: len(CLIENTS)} if client_sees == "broken" else {})
