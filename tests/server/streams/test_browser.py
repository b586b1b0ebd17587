"""A page of another origin in a browser, Debian's Chromium, follows a stream by `EventSource` and `WebSocket`."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from construct_messages import Message, Quad, iri, literal
from construct_messages.rdf.formats import N_QUADS, TURTLE
from tests.support.http.relay import relay
from tests.support.http.streams import read, serving_streams
from tests.support.pages.reporting import reporting
from tests.support.streams import numbered
from tests.support.waiting import eventually

pytestmark = [pytest.mark.engine, pytest.mark.slow]

PAGE = """<!DOCTYPE html>
<title>Streams</title>
<script type="module">
const stream = "URL/streams/a";
const source = new EventSource(`${stream}/events?after=0&format=ttl`);
source.addEventListener("rdf-message", (event) => report({ via: "sse", id: event.lastEventId, data: event.data }));
source.onopen = () => report({ via: "sse", open: true });
let last = 0;
function connect() {
  const socket = new WebSocket(`${stream.replace("http", "ws")}/socket?after=${last}`, ["rdfm.none", "rdfm.n-quads"]);
  socket.onopen = () => report({ via: "websocket", open: true, protocol: socket.protocol });
  socket.onmessage = (event) => report({ via: "websocket", id: String(++last), data: event.data });
  socket.onclose = () => setTimeout(connect, 20);
}
connect();
</script>
"""


def came(said: list[dict[str, Any]], via: str) -> list[tuple[str, Message]]:
    format = TURTLE if via == "sse" else N_QUADS
    return [
        (each["id"], read(each["data"], format))
        for each in said
        if each["via"] == via and "id" in each
    ]


async def test_each_message_once_over_restarts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the browser's own `Last-Event-ID`, and by `?after=`."""
    monkeypatch.setattr("construct_messages.server.http.sending._RETRY_MILLISECONDS", 20)
    text = literal("\r\n\u2028é😀 data: x\n\n")
    sent = [
        numbered(1),
        Message(),
        Message([Quad(iri("urn:s"), iri("urn:p"), text)]),
        *map(numbered, range(4, 9)),
    ]
    async with relay() as between, AsyncExitStack() as stack:
        said: list[dict[str, Any]] = []
        for run, behind in enumerate((3, 6, 8)):
            # the page is of another origin
            async with serving_streams(tmp_path / "streams.db", server={"cors": ("*",)}) as server:
                between.target = server.url
                if run == 0:
                    await server.ask("PUT", "/streams/a")
                    await server.publish(sent[:3])
                    said = await stack.enter_async_context(
                        reporting(PAGE.replace("URL", between.url))
                    )
                else:
                    await server.publish(sent[len(came(said, "sse")) : behind])
                await both_have(said, behind)
                between.target = None
    for via in ("sse", "websocket"):
        assert came(said, via) == [(str(number), message) for number, message in enumerate(sent, 1)]
        assert sum("open" in each for each in said if each["via"] == via) >= 3
    assert {each["protocol"] for each in said if "protocol" in each} == {"rdfm.n-quads"}


async def both_have(said: list[dict[str, Any]], count: int) -> None:
    await eventually(
        lambda: all(len(came(said, via)) >= count for via in ("sse", "websocket")) or errors(said)
    )
    assert not errors(said), said


def errors(said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in said if "error" in each]
