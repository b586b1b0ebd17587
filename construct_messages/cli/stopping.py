"""Work without an end of its own: Ctrl-C, SIGTERM and SIGHUP stop it cleanly."""

from __future__ import annotations

import signal
from collections.abc import Callable, Coroutine
from typing import Any, Final

END_SIGNALS: Final = [
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
]
"""What a service manager sends, and a terminal that is closed."""

STOP_SIGNALS: Final = [signal.SIGINT, *END_SIGNALS]
"""These, and Ctrl-C."""


async def until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Does some work until it is done, or a signal ends it."""
    import asyncio  # which most commands do without

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
    """Has the running event loop call something at each signal, instead of ending the program."""
    import asyncio

    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
            asyncio.get_running_loop().add_signal_handler(number, stop)
