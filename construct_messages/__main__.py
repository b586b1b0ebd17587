"""The program: the command line as a process, which ends without freeing what it holds."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from typing import Final, NoReturn

_STARTED: Final = 100_000
"""The number of new objects until the garbage collector first runs; by Python's default, it runs a hundred times while
modules are imported."""


def program() -> NoReturn:
    """Runs the command line and ends the process with its exit status.

    The system takes the memory back at once, where freeing a store of a million triples takes half a second. All that
    waits for the process to end, such as threads and `atexit`, is done before.
    """
    _collect_later()
    from construct_messages.cli import main  # imported here because this sets the threshold first

    status: int | None = None  # none where an exception ends the process, as a signal does

    def leave() -> None:
        if status is not None:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    atexit.register(leave)  # what is registered first is called last
    status = main()
    sys.exit(status)


def _collect_later() -> None:
    """Delays the first run of the garbage collector, after which it runs by Python's thresholds."""
    usual = gc.get_threshold()

    def restore(phase: str, _: dict[str, int]) -> None:
        if phase == "stop":
            gc.callbacks.remove(restore)
            gc.set_threshold(*usual)

    gc.callbacks.append(restore)
    gc.set_threshold(_STARTED, *usual[1:])


if __name__ == "__main__":
    program()
