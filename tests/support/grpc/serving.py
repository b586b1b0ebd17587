"""A server of streams with a gRPC service, in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from construct_messages import Message
from construct_messages.feeds.grpc import Address, GrpcConnection
from construct_messages.streams.element import Element
from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.waiting import SECONDS


@dataclass
class GrpcServer:
    """A server that runs.

    Args:
        http: by HTTP.
        address: host and port of the service.
    """

    http: StreamsServer
    address: str

    @property
    def url(self) -> str:
        """The stream `a`, as clients of this package name it."""
        return f"grpc://{self.address}/a"

    @contextmanager
    def connection(self) -> Iterator[GrpcConnection]:
        """A connection to the service, which is closed at the end of the block."""
        host, _, port = self.address.partition(":")
        connection = GrpcConnection(Address(host, int(port), None, "the server"), SECONDS)
        try:
            yield connection
        finally:
            connection.close()

    def elements(self) -> list[Element]:
        """What the stream `a` has."""
        return list(self.http.streams._store.read("a"))

    async def publish(self, *messages: Message) -> None:
        """Appends messages to the stream `a`."""
        await self.http.streams._store.aappend_all("a", messages)


@asynccontextmanager
async def serving_grpc(folder: Path, **settings: Any) -> AsyncIterator[GrpcServer]:
    """A server over a store with one stream, `a`; `settings` are those of `serving_streams`."""
    async with serving_streams(
        folder / "streams.db", **{"grpc": "127.0.0.1:0"} | settings
    ) as server:
        await server.streams._store.acreate("a", exist_ok=True)
        assert server.streams.grpc is not None
        yield GrpcServer(server, server.streams.grpc.address)
