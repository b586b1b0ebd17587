"""Packed bytes in, unpacked bytes out, as they come: the reading side of `compression.py`. No file is opened here.

Several members, streams or frames one after the other are one content; zeros may follow (RFC 1952, section 2.2; the
.xz format, section 2.2; RFC 8878, section 3.1). What comes out at once is bounded, however well it was packed, and data
that end early are an error, never a shorter content.
"""

from __future__ import annotations

import io
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping
from pkgutil import resolve_name
from typing import IO, Any, Final, Protocol

from construct_messages.files.compression import ZSTD

PIECE_BYTES: Final = 1 << 16
"""About how many bytes come out at once."""

# like the openers of `compression.py`, the libraries are imported when data are packed by them
_MEMBERS: Final[Mapping[str, str]] = {
    ".gz": f"{__name__}:_GzipMember",
    ".bz2": "bz2:BZ2Decompressor",
    ".xz": "lzma:LZMADecompressor",
    ".zst": f"{ZSTD}:ZstdDecompressor",
}

MAGIC: Final[Mapping[bytes, str]] = {
    b"\x1f\x8b": ".gz",
    b"BZh": ".bz2",
    b"\xfd7zXZ\x00": ".xz",
    b"\x28\xb5\x2f\xfd": ".zst",
}
"""What packed data begin with, and the extension of such files; no log begins so."""


def unpack_errors(*others: type[Exception]) -> tuple[type[Exception], ...]:
    """The exceptions that the libraries raise for data that are damaged or end early, and others."""
    import lzma

    damaged: type[Exception] = resolve_name(f"{ZSTD}:ZstdError")
    return zlib.error, OSError, lzma.LZMAError, damaged, EOFError, *others


def packing_of(head: bytes) -> str | None:
    """The extension of files that begin like `head`: `""` where they are not packed, None where `head` is too short.

    >>> packing_of(b"\\x1f\\x8b\\x08"), packing_of(b"BASE <urn:x>"), packing_of(b"B")
    ('.gz', '', None)
    """
    for magic, extension in MAGIC.items():
        if head.startswith(magic):
            return extension
    return None if any(magic.startswith(head) for magic in MAGIC) else ""


class _Member(Protocol):
    """The protocol of the decompressors of bz2, lzma and zstd, for one member."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _GzipMember:
    """zlib's decompressor with the face of the others."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        piece = self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)
        # a full piece may leave output in the buffer although all input is taken
        self.needs_input = len(piece) < max_length
        return piece


class Unpacker:
    """Unpacks one content: `feed(data)` for each chunk, then `close()`.

    Args:
        extension: one of `COMPRESSIONS`.

    >>> import gzip
    >>> unpacker = Unpacker(".gz")
    >>> b"".join(unpacker.feed(gzip.compress(b"a") + gzip.compress(b"b"))), unpacker.close()
    (b'ab', None)
    """

    def __init__(self, extension: str) -> None:
        self._new: Callable[[], _Member] = resolve_name(_MEMBERS[extension])
        self._member = self._new()
        self._between = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yields the data that can be decompressed now, in pieces; exhaust it before the next call.

        Raises:
            one of `unpack_errors()`: damaged data.
        """
        while True:
            if self._between:
                data = data.lstrip(b"\0")
                if not data:
                    return
                self._member, self._between = self._new(), False
            if piece := self._member.decompress(data, PIECE_BYTES):
                yield piece
            data = b""
            if self._member.eof:
                self._between, data = True, self._member.unused_data
            elif self._member.needs_input:
                return

    def close(self) -> None:
        """Ends the data.

        Raises:
            EOFError: the data end within a member, or there are none.
        """
        if not self._between:
            raise EOFError("the data end early")


class UnpackedFile(io.RawIOBase):
    """A packed file as the file that it holds, for who pulls where `Unpacker` is pushed.

    Args:
        file: stays open.
        extension: one of `COMPRESSIONS`.

    >>> import gzip
    >>> UnpackedFile(io.BytesIO(gzip.compress(b"content")), ".gz").read()
    b'content'
    """

    def __init__(self, file: IO[bytes], extension: str) -> None:
        self._pieces = _pieces(file, Unpacker(extension))
        self._piece = b""

    def readable(self) -> bool:
        """Returns True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """See `io.RawIOBase.readinto`.

        Raises:
            one of `unpack_errors()`: damaged data, or such as end early.
        """
        self._piece = self._piece or next(self._pieces, b"")
        part, self._piece = self._piece[: len(buffer)], self._piece[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


def unmarked(file: Any) -> Any:
    """A binary file without the byte order mark that UTF-8 may begin with, for parsers that take it for text.

    Args:
        file: stays open; it is returned itself where a look at its first bytes shows that there is no mark.

    >>> unmarked(io.BytesIO(BOM_UTF8 + b"content")).read()
    b'content'
    """
    begins = file.peek(len(BOM_UTF8)) if isinstance(file, io.BufferedReader) else b""
    return _UnmarkedFile(file) if BOM_UTF8.startswith(begins[: len(BOM_UTF8)]) else file


class _UnmarkedFile:
    """See `unmarked`."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._head: bytes | None = (
            None  # bytes that were read to look for the mark, and are not returned yet
        )

    def read(self, size: int = -1) -> bytes:
        """See `io.RawIOBase.read`; the first time it may return fewer bytes than there are."""
        if self._head is None:
            self._head = self._begin()
        if self._head and size >= 0:
            data, self._head = self._head[:size], self._head[size:]
            return data
        head, self._head = self._head, b""
        return head + bytes(self._file.read(size))

    def _begin(self) -> bytes:
        head: bytes = b""
        while head != BOM_UTF8 and BOM_UTF8.startswith(head):
            if not (piece := self._file.read(len(BOM_UTF8) - len(head))):
                break
            head += piece
        return head.removeprefix(BOM_UTF8)


def _pieces(file: IO[bytes], unpacker: Unpacker) -> Iterator[bytes]:
    while data := file.read(PIECE_BYTES):
        yield from unpacker.feed(data)
    unpacker.close()
