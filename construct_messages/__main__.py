"""The program: the command line as a process, which ends without freeing what it holds."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from typing import Final, NoReturn

_COLLECT_AFTER: Final = (50_000, 2, 2)
"""The thresholds of the garbage collector; by Python's, it runs a hundred times while modules are imported."""


def program() -> NoReturn:
    """Runs the command line and ends the process with its exit status.

    The system takes the memory back at once, where freeing a store of a million triples takes half a second. All that
    waits for the process to end, such as threads and `atexit`, is done before.
    """
    gc.set_threshold(*_COLLECT_AFTER)
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


if __name__ == "__main__":
    program()
