"""Stops endless work cleanly at Ctrl-C, SIGTERM and SIGHUP."""

from __future__ import annotations

import signal
from collections.abc import Callable, Coroutine
from typing import Any, Final

END_SIGNALS: Final = [
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
]
"""The signals of a service manager and of a closed terminal."""

STOP_SIGNALS: Final = [signal.SIGINT, *END_SIGNALS]
"""`END_SIGNALS`, and the signal of Ctrl-C."""


async def until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Does some work until it is done, or a signal ends it."""
    import asyncio  # imported here because most commands do not need it

    task = asyncio.ensure_future(work)
    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True
        task.cancel()

    when_stopped(stop)
    try:
        await task
    except asyncio.CancelledError:
        if not stopped:
            raise


def when_stopped(stop: Callable[[], object]) -> None:
    """Makes the running event loop call a function at each signal, instead of ending the program."""
    import asyncio

    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
            asyncio.get_running_loop().add_signal_handler(number, stop)
