"""A server with a store of streams, in this process, and requests to it in few words."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from multidict import CIMultiDict

from construct_messages import Message
from construct_messages.formats import content_type
from construct_messages.server.config import StreamsSettings
from tests.support.http.serving import Served, serving
from tests.support.logs.kinds import KINDS, Kind, write

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

    async def ask(self, method: str, path: str, body: bytes = b"", type: str = "", **headers: str) -> Answer:
        """Sends a request; underscores in the names of headers stand for hyphens."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if type:
            sent["Content-Type"] = type
        url = path if path.startswith("http") else self.url + path
        async with self.client.request(method, url, data=body or None, headers=sent) as response:
            joined = {name: ", ".join(response.headers.getall(name)) for name in response.headers}
            return Answer(response.status, CIMultiDict(joined), await response.read())

    async def publish(self, messages: Iterable[Message], kind: Kind = LINES, stream: str = "a") -> Answer:
        """Publishes messages as one log."""
        body = write(messages, kind)
        return await self.ask("POST", f"/streams/{stream}/input", body, content_type(*kind))


@asynccontextmanager
async def serving_streams(file: Path, **settings: Any) -> AsyncIterator[StreamsServer]:
    """A server over a store; `settings` are those of its streams."""
    streams = StreamsSettings(file=str(file), **settings)
    async with (
        serving(endpoints={}, settings={"streams": streams}) as served,
        aiohttp.ClientSession() as client,
    ):
        yield StreamsServer(served, client)
