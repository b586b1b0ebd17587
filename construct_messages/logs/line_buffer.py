"""Splits bytes into lines, for formats in which a line is a document; decodes documents and limits their length.

A line ends with LF; a byte order mark before the first one is dropped. The decoder of a syntax interprets the lines.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator

from construct_messages.rdf.errors import LimitExceeded, LogError, Position


def too_long(number: int, message_bytes: int, position: Position | None = None) -> LimitExceeded:
    """Returns the error for a message that is too long.

    >>> print(too_long(3, 100))
    message 3 is longer than 100 bytes
      hint: allow larger messages
    """
    return LimitExceeded(
        f"message {number} is longer than {message_bytes} bytes",
        position=position,
        hint="allow larger messages",
    )


def decode_utf8(document: bytes | bytearray, number: int, line: int) -> str:
    try:
        return document.decode()
    except UnicodeDecodeError as error:
        *lines, last = document[: error.start].decode().split("\n")
        raise LogError(
            f"the byte 0x{document[error.start]:02X} is not UTF-8",
            number=number,
            position=Position(line + len(lines), len(last) + 1),
            hint="logs are UTF-8: recode it",
        ) from error


class WholeLines:
    """The lines of one log.

    >>> lines = WholeLines(100)
    >>> list(lines.feed(b"a\\nb\\nc")), list(lines.close())
    ([b'a', b'b'], [b'c'])
    """

    def __init__(self, message_bytes: int) -> None:
        self._message_bytes = message_bytes
        self._pending = bytearray()
        # number: the number of its message, from 1; the decoder increments it
        # line: the number of the current or incomplete line, from 1
        self.line = self.number = 1
        # whether all lines are one document, which `close` returns
        self.joined = False

    def join(self, line: bytes) -> None:
        """Takes back the first line, which is the beginning of a document over several lines."""
        self.joined = True
        self._pending += line + b"\n"

    def feed(self, data: bytes) -> Iterator[bytes]:
        start = 0
        while not self.joined and (end := data.find(b"\n", start)) >= 0:
            self._hold(data[start:end])
            yield from self._take()
            start = end + 1
        self._hold(data[start:])

    def close(self) -> Iterator[bytes]:
        """Returns the last line, if it has no end, or the document; a line that is taken back comes again."""
        while self._pending and not (self.line == 1 and self._pending == BOM_UTF8):
            yield from self._take()

    def _hold(self, piece: bytes) -> None:
        if len(self._pending) + len(piece) > self._message_bytes:
            raise too_long(self.number, self._message_bytes)
        self._pending += piece

    def _take(self) -> Iterator[bytes]:
        line = bytes(self._pending)
        self._pending.clear()
        yield line.removeprefix(BOM_UTF8) if self.line == 1 else line
        if not self.joined:
            self.line += 1
