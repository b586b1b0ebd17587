"""A relay between clients and a server: connections can be cut anywhere, and the server can go and come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class Relay:
    """Passes bytes on, both ways.

    Args:
        cuts: after how many bytes of the server's the connections are reset, one after the other; those behind the last
            are not.
    """

    def __init__(self, cuts: Iterable[int] = ()) -> None:
        self.url = ""
        self.target: str | None = None
        self.connections = self.open = 0  # since it listens, and now
        self._cuts = iter(cuts)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection."""
        self.connections += 1
        self.open += 1
        try:
            if self.target is None:
                return
            there = urlsplit(self.target)
            from_server, to_server = await asyncio.open_connection(there.hostname, there.port)
            up = asyncio.create_task(self._pass_on(reader, to_server, None))
            down = asyncio.create_task(self._pass_on(from_server, writer, next(self._cuts, None)))
            await asyncio.wait((up, down), return_when=asyncio.FIRST_COMPLETED)
            for task in (up, down):
                task.cancel()
            await asyncio.gather(up, down, return_exceptions=True)
            to_server.transport.abort()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self.open -= 1
            writer.transport.abort() if writer.transport.get_write_buffer_size() == 0 else writer.close()

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, most: int | None
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data if most is None else data[:most])
                await writer.drain()
                if most is not None:
                    most -= len(data)
                    if most <= 0:
                        return


@asynccontextmanager
async def relay(cuts: Iterable[int] = ()) -> AsyncIterator[Relay]:
    """A relay that listens."""
    made = Relay(cuts)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    made.url = f"http://{host}:{port}"
    try:
        yield made
    finally:
        server.close()
