"""Standard input, output and error: their name in arguments, reading input, and replacing those that are closed.

A process may be started without any of them (`<&-`, `>&-`; a service manager does so). Python then has None for it, the
next file that is opened gets its number, and `print(file=None)` writes to standard output: into the log.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from typing import BinaryIO, Final

from construct_messages.errors import IncompleteResult, UsageError

STANDARD: Final = "-"
"""What names standard input, and standard output."""

_CHUNK_BYTES: Final = 1 << 16


def occupy_closed() -> None:
    """Puts something in the place of what is closed: reading and writing fail as they would, reports get lost."""
    # of three descriptors, each open takes the lowest that is free
    for name, flags in (("stdin", os.O_WRONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, flags)
            setattr(
                sys,
                name,
                open(  # noqa: SIM115 - as long as the process
                    descriptor, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False
                ),
            )


def target(name: str) -> str | BinaryIO:
    """Returns the target for a name on the command line."""
    return sys.stdout.buffer if name == STANDARD else name


def standard_input() -> Iterator[bytes]:
    """The bytes of standard input as they come; what is written goes out before this waits for more.

    Raises:
        UsageError: nothing can be read there.
        IncompleteResult: reading breaks off.
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
        except OSError:  # a file or a closed place: neither makes a reader wait
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
            raise IncompleteResult(f"cannot read on in standard input: {error.strerror}") from error
        raise UsageError(
            f"cannot read standard input: {error.strerror}",
            hint="name a file, or give the log to standard input",
        ) from error
