"""Holds messages until it is certain that they will be returned: on disk, if there are many."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import Final, Self

from construct_messages.rdf.message import Message
from construct_messages.streams import Publication

PAGE_MESSAGES: Final = 1000
"""The number of messages that are committed together if few digests are known."""

_SHARE: Final = 8
_PAGE_BYTES: Final = 4 << 20
_IN_MEMORY: Final = 4 << 20  # bytes
_HEAD: Final = struct.Struct(">II")  # before each: the lengths of its text and of its time


def page_messages(known: int) -> int:
    """Returns the maximal number of messages that are committed together.

    Digests have a random order, so each commit rewrites nearly all pages of their table, up to one for each digest.
    With this size, the total amount written is linear in the number of digests, not quadratic.

    Args:
        known: the number of digests so far.

    >>> page_messages(0), page_messages(1_000_000)
    (1000, 125000)
    """
    return max(PAGE_MESSAGES, known // _SHARE)


class Spool:
    """Holds messages in order; a context manager, which removes them at the end.

    >>> with Spool() as spool:
    ...     spool.add(Message())
    ...     [len(page) for page in spool.pages()]
    [1]
    """

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed at the end of the context
        self._count = 0

    def add(self, message: Message) -> None:
        """Appends a checked message."""
        nquads, generated = Publication.of(message)
        time = (generated or "").encode()
        self._file.write(_HEAD.pack(len(nquads), len(time)) + nquads + time)
        self._count += 1

    def pages(self, known: int = 0) -> Iterator[list[Publication]]:
        """Yields all messages, in the groups that are committed together.

        Args:
            known: the number of digests before the first page is committed.
        """
        page, size = [], 0
        self._file.seek(0)
        for number in range(self._count):
            length, rest = _HEAD.unpack(self._file.read(_HEAD.size))
            page.append(
                Publication(self._file.read(length), self._file.read(rest).decode() or None)
            )
            size += length
            if len(page) >= page_messages(known + number + 1 - len(page)) or size > _PAGE_BYTES:
                yield page
                page, size = [], 0
        if page:
            yield page

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()
