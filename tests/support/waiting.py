"""Waiting for what is under way, and not for a time: until it holds, or has not held for too long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

SECONDS: Final = 300.0
"""After which what a test waits for has failed, also on a slow machine that has much else to do."""

ENOUGH: Final = (0.3, 3, 30)
"""Time limits to try in turn where one is tested, for what takes milliseconds: more where the machine had no time."""


async def eventually(holds: Callable[[], object], seconds: float = SECONDS) -> None:
    """Waits until something holds that is under way in the event loop, a thread or another process."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.01)


def wait_until(holds: Callable[[], object], seconds: float = SECONDS) -> None:
    """As `eventually`, where there is no event loop."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


async def settled(figure: Callable[[], float], seconds: float = SECONDS) -> float:
    """Waits until a figure that grows has been the same for a fifth of a second; gives it."""
    deadline, last, since = time.monotonic() + seconds, figure(), time.monotonic()
    while time.monotonic() - since < 0.2:
        assert time.monotonic() < deadline, "it goes on"
        await asyncio.sleep(0.01)
        if (now := figure()) != last:
            last, since = now, time.monotonic()
    return last
