"""Waits until a descriptor can be read, for asyncio."""

from __future__ import annotations


async def readable(descriptor: int, seconds: float | None) -> None:
    """Waits for bytes, or the end; whoever is cancelled while waiting has taken nothing.

    Args:
        descriptor: of a pipe or socket.
        seconds: how long to wait; None: any time.

    Raises:
        TimeoutError: nothing came in time.
    """
    import asyncio  # which takes longer to import than a query over a small file

    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        async with asyncio.timeout(seconds):
            await ready.wait()
    finally:
        loop.remove_reader(descriptor)
