"""Shows progress on a terminal while a log is read or written."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_STEP_SECONDS: Final = 0.1


@contextmanager
def progress(
    counts: Callable[[], tuple[int, int]], *, quiet: bool, in_the_way: bool
) -> Iterator[Callable[[], None]]:
    """Yields a function to call after each step; shows the progress on standard error if that is a terminal.

    Args:
        counts: returns messages and bytes so far.
        quiet: whether to show nothing.
        in_the_way: whether the same terminal shows the log; then only the last line of the progress is shown.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda: None
        return
    # imported here because most runs show no progress, and would take longer to start
    from rich.console import Console
    from rich.filesize import decimal
    from rich.progress import Progress, SpinnerColumn, TextColumn

    started = updated = time.monotonic()

    def state() -> str:
        messages, size = counts()
        rate = messages / max(time.monotonic() - started, 1e-3)
        return f"{messages:,} messages, {rate:,.0f} messages/s, {decimal(size)}"

    def step() -> None:
        nonlocal updated
        if time.monotonic() - updated >= _STEP_SECONDS:
            updated = time.monotonic()
            shown.update(task, description=state())

    console = Console(stderr=True, highlight=False)
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        console=console,
        transient=True,
        disable=in_the_way,
    ) as shown:
        task = shown.add_task(state())
        yield step
    console.print(state())
