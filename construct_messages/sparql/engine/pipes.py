"""Reads the documents that evaluations write into pipes: opens the pipes, reads them, and decodes the solutions.

The writer is a thread of this process or another process; `writing.py` is its end. Starts no evaluation.
"""

import os
import select as polling
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from construct_messages.rdf.errors import SourceTimeout
from construct_messages.rdf.solutions import Solutions
from construct_messages.sparql.children.waiting import readable
from construct_messages.sparql.results.tsv import TsvDecoder

_CHUNK: Final = 1 << 16
_WIDE: Final = 1 << 20  # bytes in flight; the maximum for ordinary users in Linux
_FILL_SECONDS: Final = 0.001  # to wait for a full chunk: larger batches cost less per solution


class Document(NamedTuple):
    """The read end of a pipe, and how to read it.

    Args:
        read_end: its descriptor.
        chunk: bytes to read at once.
        wait_seconds: seconds to wait for more after the first bytes.
    """

    read_end: int
    chunk: int
    wait_seconds: float


def small_document() -> tuple[Document, int]:
    """Opens a pipe for output in small pieces, each of which is read at once; returns it with its write end."""
    read_end, write_end = os.pipe()
    return Document(read_end, _CHUNK, 0.0), write_end


def bulk_document() -> tuple[Document, int]:
    """Opens a pipe for output in bulk; returns it with its write end."""
    read_end, write_end = os.pipe()
    # a reader that gathers more than a part of the pipe's capacity makes the writer wait
    return Document(read_end, _widen(write_end) // 4, _FILL_SECONDS), write_end


def decoded(
    new_decoder: Callable[[], TsvDecoder],
    documents: Sequence[Document],
    deadline: float | None,
    end: Callable[[Document], None],
) -> Generator[Solutions]:
    """Yields the solutions of an evaluation's TSV documents, one document after the other.

    Args:
        new_decoder: creates the decoder of a document.
        documents: see `writing.write_solutions`; their read ends block.
        deadline: by `time.monotonic()`, None for none.
        end: called at the end of each document; raises the error of the evaluation, if any.

    Raises:
        SourceTimeout: the deadline passed.
        IncompleteResult: a document is truncated.
    """
    for document in documents:
        decoder = new_decoder()
        received = False
        while chunk := read(document, deadline):
            received = True
            yield from decoder.feed(chunk)
        end(document)
        if received:
            yield from decoder.close()


async def adecoded(
    new_decoder: Callable[[], TsvDecoder],
    documents: Sequence[Document],
    deadline: float | None,
    end: Callable[[Document], Awaitable[None]],
) -> AsyncGenerator[Solutions]:
    """`decoded` for asyncio; makes the read ends non-blocking."""
    for document in documents:
        os.set_blocking(document.read_end, False)
        decoder = new_decoder()
        received = False
        while chunk := await aread(document, deadline):
            received = True
            for batch in decoder.feed(chunk):
                yield batch
        await end(document)
        if received:
            for batch in decoder.close():
                yield batch


def read(document: Document, deadline: float | None) -> bytes:
    """Returns the next bytes; empty at the end.

    Args:
        document: its read end blocks.
        deadline: by `time.monotonic()`; None: no deadline.

    Raises:
        SourceTimeout: there were no bytes before the deadline.
    """
    descriptor, chunk, wait_seconds = document
    poll = polling.poll()
    poll.register(descriptor, polling.POLLIN)
    if deadline is not None:
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            raise timed_out()
    pieces = [os.read(descriptor, chunk)]
    missing = chunk - len(pieces[0])
    while wait_seconds and pieces[-1] and missing:
        # sleeps instead of waiting for the pipe, so that the writer need not wake this thread for each write
        time.sleep(wait_seconds)
        if not poll.poll(0):
            break
        pieces.append(os.read(descriptor, missing))  # empty at the end, as in the next call
        missing -= len(pieces[-1])
    return b"".join(pieces)


async def aread(document: Document, deadline: float | None) -> bytes:
    """`read` for asyncio; the read end does not block."""
    import asyncio

    descriptor, chunk, wait_seconds = document
    try:
        await readable(descriptor, None if deadline is None else deadline - time.monotonic())
    except TimeoutError as error:
        raise timed_out() from error
    pieces = [os.read(descriptor, chunk)]
    missing = chunk - len(pieces[0])
    while wait_seconds and pieces[-1] and missing:
        await asyncio.sleep(wait_seconds)
        try:
            pieces.append(os.read(descriptor, missing))
        except BlockingIOError:
            break
        missing -= len(pieces[-1])
    return b"".join(pieces)


def timed_out() -> SourceTimeout:
    """Returns the error for an evaluation past its deadline."""
    return SourceTimeout(
        "the embedded evaluation did not end within the time allowed",
        hint="raise timeout, or add a LIMIT",
    )


def _widen(pipe: int) -> int:
    """Enlarges the buffer of a pipe, if the system allows it, so that its ends wait less; returns the size in bytes."""
    import fcntl  # Windows does not have this module, but runs the rest of the package

    if not hasattr(fcntl, "F_SETPIPE_SZ"):
        return 4 * _CHUNK
    with suppress(PermissionError):  # the user already has many pipes
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _WIDE)
    return max(fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ), 4 * _CHUNK)
