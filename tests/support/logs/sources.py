"""One log by every way that bytes can come: paths, files, pipes, iterables, streams."""

from __future__ import annotations

import asyncio
import gzip
import io
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from construct_messages import Message

LOG = "".join(
    f'# @message\n<http://example.org/s> <http://example.org/p> "{number}" .\n'
    for number in range(1000)
).encode()
NUMBERS = list(range(1000))


def numbers(messages: Iterable[Message]) -> list[int]:
    return [number(message) for message in messages]


def number(message: Message) -> int:
    (quad,) = message
    return int(quad.object.strip('"'))


async def anumbers(messages: Any) -> list[int]:
    return [number(message) async for message in messages]


def chunks(data: bytes = LOG, size: int = 1000) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def achunks(data: bytes = LOG, size: int = 1000) -> AsyncIterator[bytes]:
    for chunk in chunks(data, size):
        await asyncio.sleep(0)
        yield chunk


def raw(path: Path) -> Any:
    return path.open("rb", buffering=0)


def pipe(_: Path) -> Any:
    read, write = os.pipe()
    threading.Thread(target=_fill, args=(write,)).start()
    return os.fdopen(read, "rb")


def _fill(descriptor: int) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(LOG)


async def stream_reader() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    reader.feed_data(LOG)
    reader.feed_eof()
    return reader


SOURCES: dict[str, Callable[[Path], Any]] = {
    "a path": lambda path: path,
    "a name": str,
    "bytes": lambda _: LOG,
    "a bytearray": lambda _: bytearray(LOG),
    "a memoryview": lambda _: memoryview(LOG),
    "a file": lambda path: path.open("rb"),
    "a raw file": raw,
    "a pipe": pipe,
    "a file in memory": lambda _: io.BytesIO(LOG),
    "an unpacked file": lambda _: gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(LOG))),
    "a list": lambda _: list(chunks()),
    "a generator": lambda _: chunks(),
    "views": lambda _: map(memoryview, chunks()),
}
