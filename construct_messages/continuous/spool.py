"""Messages that wait until it is certain that they are to be given out: on disk, where they are many."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import Final, Self

from construct_messages.message import Message
from construct_messages.streams import Publication

PAGE_MESSAGES: Final = 1000
"""How many messages are committed together at most."""

_PAGE_BYTES: Final = 1 << 20
_IN_MEMORY: Final = 4 << 20  # bytes
_HEAD: Final = struct.Struct(">II")  # before each: the lengths of its text and of its time


class Spool:
    """Holds messages in order; a context manager, which forgets them at the end.

    >>> with Spool() as spool:
    ...     spool.add(Message())
    ...     [len(page) for page in spool.pages()]
    [1]
    """

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed at the end of the context
        self._count = 0

    def add(self, message: Message) -> None:
        """Adds a message, which was checked, behind the others."""
        nquads, generated = Publication.of(message)
        time = (generated or "").encode()
        self._file.write(_HEAD.pack(len(nquads), len(time)) + nquads + time)
        self._count += 1

    def pages(self) -> Iterator[list[Publication]]:
        """All of them, as many at a time as are committed together."""
        page, size = [], 0
        self._file.seek(0)
        for _ in range(self._count):
            length, rest = _HEAD.unpack(self._file.read(_HEAD.size))
            page.append(Publication(self._file.read(length), self._file.read(rest).decode() or None))
            size += length
            if len(page) == PAGE_MESSAGES or size > _PAGE_BYTES:
                yield page
                page, size = [], 0
        if page:
            yield page

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()
