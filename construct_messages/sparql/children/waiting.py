"""Waits until a descriptor can be read, for asyncio."""

from __future__ import annotations


async def readable(descriptor: int, seconds: float | None) -> None:
    """Waits for bytes at a pipe or socket, or its end; cancelling the wait loses nothing. Raises `TimeoutError`."""
    import asyncio  # imported here because it takes longer than a query over a small file

    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        async with asyncio.timeout(seconds):
            await ready.wait()
    finally:
        loop.remove_reader(descriptor)
