"""Messages that wait until it is certain that they are to be given out: on disk, where they are many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import Final, Self

from construct_messages.logs.lines.texts import to_messages, to_text
from construct_messages.message import Message

PAGE_MESSAGES: Final = 1000
"""How many messages are committed together at most."""

_PAGE_CHARACTERS: Final = 1 << 20
_IN_MEMORY: Final = 4 << 20  # bytes
_LENGTH: Final = 4  # bytes of the number before each message


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
        """Adds a message behind the others."""
        text = to_text(message).encode()
        self._file.write(len(text).to_bytes(_LENGTH, "big") + text)
        self._count += 1

    def _texts(self) -> Iterator[str]:
        self._file.seek(0)
        for _ in range(self._count):
            length = int.from_bytes(self._file.read(_LENGTH), "big")
            yield self._file.read(length).decode()

    def pages(self) -> Iterator[Sequence[Message]]:
        """All of them, as many at a time as are committed together."""
        page, size = [], 0
        for text in self._texts():
            page.append(text)
            size += len(text)
            if len(page) == PAGE_MESSAGES or size > _PAGE_CHARACTERS:
                yield to_messages(page)
                page, size = [], 0
        if page:
            yield to_messages(page)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()
