"""Debian's Chromium reads answers by `EventSource`, through connections that break, and stops at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyoxigraph as ox
import pytest

from tests.support.http.fault_server import FaultServer, response
from tests.support.http.relay import relay
from tests.support.http.serving import serving
from tests.support.pages.reporting import reporting
from tests.support.waiting import eventually

pytestmark = [pytest.mark.engine, pytest.mark.slow]

QUERY = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } ORDER BY ?o"
# it never closes the connection by itself
PAGE = """<!DOCTYPE html>
<title>Answer</title>
<script type="module">
const source = new EventSource("URL");
for (const type of ["rdf-message", "end", "error"])
  source.addEventListener(type, (event) =>
    report({ type, id: event.lastEventId, data: event.data, closed: source.readyState === EventSource.CLOSED }));
</script>
"""


def page(url: str) -> str:
    return PAGE.replace("URL", f"{url}/sparql?query={quote(QUERY)}")


def of_server(said: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The events of the server, without those of the browser about the connection, which have no data."""
    return [(each["type"], each["data"]) for each in said if each.get("data") is not None]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("construct_messages.server.http.sending._RETRY_MILLISECONDS", 20)


async def test_each_message_once(tmp_path: Path) -> None:
    count = 500
    store = ox.Store(str(tmp_path / "store"))
    lines = [f'<urn:{i}> <urn:p> "{i:05}" .' for i in range(count)]
    store.load("\n".join(lines), format=ox.RdfFormat.N_TRIPLES)
    store.flush()
    del store
    async with (
        serving(str(tmp_path / "store"), settings={"cors": ("*",)}) as server,
        relay(
            cuts=(700, 1500, 2500)  # of compressed bytes
        ) as between,
    ):
        between.target = server.url
        async with reporting(page(between.url)) as said:
            await eventually(lambda: any(each.get("closed") for each in said))
        assert of_server(said) == [*(("rdf-message", line) for line in lines), ("end", str(count))]
        assert between.connections >= 4  # three were cut


@pytest.fixture
def upstream() -> Iterator[FaultServer]:
    with closing(FaultServer()) as server:
        yield server


async def test_a_query_that_fails_is_asked_once(upstream: FaultServer) -> None:
    term = b'{"type":"uri","value":"urn:a"}'
    result = b'{"head":{"vars":["s","p","o"]},"results":{"bindings":[{"s":%s,"p":%s,"o":%s},' % (
        term,
        term,
        term,
    )
    upstream.play(response(result))
    async with (
        serving(upstream.url, retries=0, settings={"cors": ("*",)}) as server,
        reporting(page(server.url)) as said,
    ):
        await eventually(lambda: any(each.get("closed") for each in said))
        assert len(upstream.asked) == 1
    messages = of_server(said)
    assert [type for type, _ in messages] == ["rdf-message", "error"]
    assert "ends before its end" in messages[1][1]
