"""Standard input, output and error, and the names of files in arguments: no command writes what it reads.

A process may be started without any of them (`<&-`, `>&-`, or by a service manager). Its object in Python is then None,
the next file that is opened gets its number, and `print(file=None)` writes to standard output: into the log.
"""

from __future__ import annotations

import argparse
import glob
import os
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any, BinaryIO, Final

from construct_messages.rdf.errors import IncompleteResult, UsageError
from construct_messages.rdf.files.output import refuse_input

STANDARD: Final = "-"
"""The name of standard input and standard output."""

# options of all commands, by the names of their values
_INPUTS: Final = (
    *("file", "source", "log", "logs", "paths", "quads", "shapes", "shapes_data", "frame"),
    *("transform", "state"),
)
_OUTPUTS: Final = ("output", "to", "report", "invalid_to", "quarantine", "dead_letters")

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


def refuse_inputs(options: argparse.Namespace) -> None:
    """Checks that no option names an output that another one reads; see `refuse_input`.

    Raises:
        UsageError: one does.
    """
    from construct_messages.sparql.sources.open import VARIABLE

    given = vars(options)
    inputs = [name for option in _INPUTS for name in _names(given.get(option), 0)]
    if "source" in given and not given["source"]:
        inputs += _names(os.environ.get(VARIABLE), 0)
    for option in _OUTPUTS:
        for output in _names(given.get(option), 1):
            refuse_input(output, inputs)


def _names(value: Any, standard: int) -> list[str | int]:
    """The names in the value of an option, and those that patterns stand for; descriptors for standard files."""
    values = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    names: list[str | int] = [standard if name == STANDARD else name for name in values]
    patterns = [name for name in values if set("*?[") & set(name)]
    return names + [found for pattern in patterns for found in glob.iglob(pattern)]


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
