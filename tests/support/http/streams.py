"""A server with a store of streams, in this process, and requests to it in few words."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import aiohttp
from multidict import CIMultiDict

from construct_messages import Message
from construct_messages.logs import DecoderOptions, decoder_for
from construct_messages.rdf.formats import Format, content_type
from construct_messages.rdf.vocabulary import TREE
from construct_messages.server.config import StreamsSettings
from construct_messages.server.streams.endpoint import StreamsEndpoint
from tests.support.http.serving import Served, serving
from tests.support.logs.kinds import KINDS, Kind, write
from tests.support.waiting import SECONDS

UNHURRIED = {"queue_seconds": SECONDS, "idle_seconds": SECONDS, "query_seconds": SECONDS}
"""Time limits of streams that no test reaches, however slow the machine is."""

LINES = next(kind for kind in KINDS if str(kind) == "nq-1.2-rdfm")


@dataclass(frozen=True)
class Answer:
    """A response, read."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass
class StreamsServer:
    """A server that runs, and a client of it."""

    served: Served
    client: aiohttp.ClientSession

    @property
    def url(self) -> str:
        """Of the server, without a path."""
        return self.served.url

    @property
    def streams(self) -> StreamsEndpoint:
        """The endpoint of streams; the page for browsers is another one."""
        (endpoint,) = (each for each in self.served.endpoints if isinstance(each, StreamsEndpoint))
        return endpoint

    def followers(self) -> int:
        """How many follow now."""
        return self.streams.bounds.followers

    async def ask(
        self, method: str, path: str, body: bytes = b"", type: str = "", **headers: str
    ) -> Answer:
        """Sends a request; underscores in the names of headers stand for hyphens."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if type:
            sent["Content-Type"] = type
        url = path if path.startswith("http") else self.url + path
        async with self.client.request(method, url, data=body or None, headers=sent) as response:
            joined = {name: ", ".join(response.headers.getall(name)) for name in response.headers}
            return Answer(response.status, CIMultiDict(joined), await response.read())

    async def publish(
        self, messages: Iterable[Message], kind: Kind = LINES, stream: str = "a"
    ) -> Answer:
        """Publishes messages as one log."""
        body = write(messages, kind)
        return await self.ask("POST", f"/streams/{stream}/input", body, content_type(*kind))


@asynccontextmanager
async def serving_streams(
    file: Path,
    *,
    server: Mapping[str, Any] = MappingProxyType({}),
    shutdown_seconds: float = 0.2,
    **settings: Any,
) -> AsyncIterator[StreamsServer]:
    """A server over a store; `settings` are those of its streams, `server` its others."""
    streams = StreamsSettings(file=str(file), **UNHURRIED | {"reserve_bytes": 0} | settings)
    async with (
        serving(
            endpoints={}, settings={**server, "streams": streams}, shutdown_seconds=shutdown_seconds
        ) as served,
        aiohttp.ClientSession() as client,
    ):
        yield StreamsServer(served, client)


class Event(NamedTuple):
    """What a client of server-sent events makes of some lines (WHATWG HTML, section 9.2.6)."""

    type: str
    id: str
    data: str


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[Event]:
    """The events of a response, as they come."""
    type, id, data = "message", "", []
    async for raw in response.content:
        line = raw.decode().removesuffix("\n")
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                type = value
            case "id":
                id = value
            case "data":
                data.append(value)
            case "" if not line and data:
                yield Event(type, id, "\n".join(data))
                type, data = "message", []


async def take(served: StreamsServer, path: str, count: int, **headers: str) -> list[Event]:
    """The first events of a path, fewer where it ends."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    taken: list[Event] = []
    async with served.client.get(served.url + path, headers=sent) as response:
        assert response.status == 200, await response.text()
        async for event in events(response):
            taken.append(event)
            if len(taken) == count:
                break
    return taken


def read(document: str | bytes, format: Format) -> Message:
    """A document as a message; one without a statement may be no bytes."""
    data = document.encode() if isinstance(document, str) else document
    decoder = decoder_for(format, options=DecoderOptions())
    messages = [*decoder.feed(data), *decoder.close()]
    assert len(messages) <= 1
    return messages[0] if messages else Message()


def of_member(said: Message) -> Message:
    """The message of a member, from what stands between its `tree:member` and the next one."""
    quads = list(said)
    (member,) = {
        quad.object for quad in quads if quad.predicate == f"<{TREE}member>" and quad.graph is None
    }
    payload = [quad for quad in quads if quad.graph is not None]
    return Message(quad._replace(graph=None) if quad.graph == member else quad for quad in payload)
