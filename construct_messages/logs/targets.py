"""The targets of logs: a path or a binary file object, and the format of its name.

`rdf/files/output.py` writes files. Nothing is known of messages here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TypeAlias

from construct_messages.errors import UsageError
from construct_messages.rdf.files.output import atomic_file
from construct_messages.rdf.formats import N_QUADS, Format
from construct_messages.rdf.formats.lookup import (
    default_format,
    format_of_file,
    is_archive_name,
)

LogTarget: TypeAlias = str | os.PathLike[str] | IO[bytes]


def format_of_target(
    target: LogTarget, format: str | None = None, otherwise: Format = N_QUADS
) -> str:
    """The format of a log that goes to a target. `format`: the argument of the caller; None: that of the target's name.

    >>> format_of_target("log.trig.gz"), format_of_target("log.rdf", "rdfxml")
    ('trig', 'rdfxml')
    """
    if not isinstance(target, (str, os.PathLike)):
        # an open file may have any name, and its name may be a descriptor
        name = getattr(target, "name", None)
        found = format_of_file(name) if isinstance(name, str) else None
        return format or (found or otherwise).extension
    name = os.fspath(target)
    if is_archive_name(name):
        raise UsageError(
            f"{name}: archives are read, not written", hint="name it .nq.gz, .trig.zst or the like"
        )
    return default_format(name, otherwise) if format is None else format


@contextmanager
def log_file(target: LogTarget) -> Iterator[Callable[[bytes], object]]:
    """Yields a function that writes bytes to a path, which appears when the block ends, or to a binary file."""
    if isinstance(target, (str, os.PathLike)):
        with atomic_file(target) as file:
            yield file.write
    elif hasattr(target, "encoding"):  # as text files have
        raise UsageError(
            "a log is bytes, and the file is open for text", hint='open it with mode "wb"'
        )
    else:
        yield lambda data: _write_all(target, data)


def _write_all(file: IO[bytes], data: bytes) -> None:
    written = file.write(data)
    if isinstance(written, int) and written < len(data):  # a raw file may take less
        rest = memoryview(data)[written:]
        while rest:
            rest = rest[file.write(rest) :]


async def write_in_thread(write: Callable[[bytes], object], data: bytes) -> None:
    """Writes in a thread, and ends no earlier than it, also where the task is cancelled."""
    import asyncio

    writing = asyncio.ensure_future(asyncio.to_thread(write, data))
    try:
        await asyncio.shield(writing)
    finally:
        # a thread cannot be cancelled, and the file must not be closed under it
        await asyncio.wait([writing])
