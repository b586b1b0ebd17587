"""Standard input, output and error: their name in arguments, reading input, and replacing those that are closed.

A process may be started without any of them (`<&-`, `>&-`, or by a service manager). Its object in Python is then None,
the next file that is opened gets its number, and `print(file=None)` writes to standard output: into the log.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from typing import BinaryIO, Final

from construct_messages.errors import IncompleteResult, UsageError

STANDARD: Final = "-"
"""The name of standard input and standard output."""

_CHUNK_BYTES: Final = 1 << 16


def occupy_closed() -> None:
    """Replaces closed standard files: reading and writing them fail as usual, and reports are dropped."""
    # each open uses the lowest free descriptor
    for name, flags in (("stdin", os.O_WRONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, flags)
            setattr(
                sys,
                name,
                open(  # noqa: SIM115 - open as long as the process
                    descriptor, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False
                ),
            )


def target(name: str) -> str | BinaryIO:
    """Returns the target for a name on the command line."""
    return sys.stdout.buffer if name == STANDARD else name


def standard_input() -> Iterator[bytes]:
    """The bytes of standard input as they arrive; output is flushed before waiting for more.

    Raises:
        UsageError: standard input cannot be read.
        IncompleteResult: reading failed later.
    """
    read = 0
    while chunk := _read(read):
        yield chunk
        read += len(chunk)
        sys.stdout.buffer.flush()


async def astandard_input() -> AsyncIterator[bytes]:
    """`standard_input` for asyncio: no thread waits for input when the program ends."""
    import asyncio

    loop, descriptor, read = asyncio.get_running_loop(), sys.stdin.fileno(), 0
    while True:
        readable = asyncio.Event()
        try:
            loop.add_reader(descriptor, readable.set)
        except OSError:  # a file or a closed descriptor, which never block
            pass
        else:
            try:
                await readable.wait()
            finally:
                loop.remove_reader(descriptor)
        if not (chunk := _read(read)):
            return
        yield chunk
        read += len(chunk)


def _read(before: int) -> bytes:
    try:
        return os.read(sys.stdin.fileno(), _CHUNK_BYTES)
    except OSError as error:
        if before:
            raise IncompleteResult(
                f"cannot read the rest of standard input: {error.strerror}"
            ) from error
        raise UsageError(
            f"cannot read standard input: {error.strerror}",
            hint="name a file, or pass the log on standard input",
        ) from error
