"""Compressions by file extension, and incremental decompression. No file is opened here.

Concatenated members, streams or frames are one content; zeros may follow (RFC 1952, section 2.2; the .xz format,
section 2.2; RFC 8878, section 3.1). The output at once is bounded at any rate of compression, and truncated data are an
error, never a shorter content.
"""

from __future__ import annotations

import io
import sys
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pkgutil import resolve_name
from typing import IO, Any, Final, Protocol

from construct_messages.errors import ConstructMessagesError, LimitExceeded, UsageError

# --- compression ----------------------------------------------------------------------------------
# The table of compressions by extension, for reading, writing and names.

ZSTD: Final = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
"""The module for Zstandard, of Python or of its backport."""

COMPRESSIONS: Final[Mapping[str, str]] = {
    ".gz": "gzip:open",
    ".bz2": "bz2:open",
    ".xz": "lzma:open",
    ".zst": f"{__name__}:_open_zstd",
}
"""The function that opens a file for writing, by its extension in lower case: `module:name`, imported on use."""


def opener(extension: str) -> Callable[..., Any]:
    """The function that opens a file of one of these extensions: a path or a binary file object, then the mode."""
    found: Callable[..., Any] = resolve_name(COMPRESSIONS[extension])
    return found


def _open_zstd(file: Any, mode: str) -> IO[bytes]:
    """Opens a Zstandard file with the optional checksum (RFC 8878, section 3.1.1), as other compressions have."""
    checksum = resolve_name(f"{ZSTD}:CompressionParameter").checksum_flag
    opened: IO[bytes] = resolve_name(f"{ZSTD}:open")(file, mode, options={checksum: 1})
    return opened


# --- unpacking ------------------------------------------------------------------------------------

PIECE_BYTES: Final = 1 << 16
"""The approximate number of bytes of output at once."""

# like the openers above, the libraries are imported on use; `deflate` is a content coding of HTTP
_MEMBERS: Final[Mapping[str, str]] = {
    ".gz": f"{__name__}:_GzipMember",
    "deflate": f"{__name__}:_DeflateMember",
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
"""The first bytes of compressed data, and the extension of such files; no log begins with them."""


def unpack_errors(*others: type[Exception]) -> tuple[type[Exception], ...]:
    """The exceptions that the libraries raise for damaged or truncated data, and others."""
    import lzma

    damaged: type[Exception] = resolve_name(f"{ZSTD}:ZstdError")
    return zlib.error, OSError, lzma.LZMAError, damaged, EOFError, *others


@contextmanager
def reading_errors(name: object, error: type[ConstructMessagesError], hint: str) -> Iterator[None]:
    """Turns errors of reading an RDF file, and of its parser, into one that names the file.

    Raises:
        UsageError: the file must not be read.
        ConstructMessagesError: of the type `error`, with the hint, for all others.

    >>> from construct_messages.errors import QuadsError
    >>> with reading_errors("a.nt", QuadsError, "fix it"):
    ...     raise EOFError("the data end early")
    Traceback (most recent call last):
    construct_messages.errors.QuadsError: a.nt: the data end early
      hint: fix it
    """
    try:
        yield
    except error:
        raise
    except LimitExceeded as problem:
        raise error(f"{name}: {problem.message}", hint=problem.hint) from problem
    except MemoryError as problem:  # of the parser's buffer, not of the machine
        raise error(
            f"{name}: a term is too long for the parser: {problem}", hint="shorten the literal"
        ) from problem
    except PermissionError as problem:
        raise UsageError(
            f"cannot read {name}: {problem.strerror}", hint="let this user read it"
        ) from problem
    except unpack_errors(SyntaxError, ValueError) as problem:
        raise error(f"{name}: {problem}", hint=hint) from problem


def packing_of(head: bytes) -> str | None:
    """The extension of files that begin with `head`: `""` if they are not compressed, None if `head` is too short.

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
    """zlib's decompressor with the interface of the others."""

    def __init__(self, wbits: int = 31) -> None:
        self._zlib = zlib.decompressobj(wbits=wbits)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        piece = self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)
        # after a full piece, the buffer may have output although all input was read
        self.needs_input = len(piece) < max_length
        return piece


class _DeflateMember(_GzipMember):
    """The format of zlib (RFC 9110, section 8.4.1.2), or deflated data without it, which some servers send."""

    def __init__(self) -> None:
        super().__init__(zlib.MAX_WBITS)
        self._head: bytes | None = b""  # the first byte, until the second shows the format

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        if self._head is not None:
            data = self._head + data
            if len(data) < 2:
                self._head = data
                return b""
            self._head = None
            if data[0] & 0x0F != zlib.DEFLATED or int.from_bytes(data[:2]) % 31:  # RFC 1950, 2.2
                self._zlib = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
        return super().decompress(data, max_length)


class Unpacker:
    """Decompresses one content: `feed(data)` for each chunk, then `close()`. `window_log`: the binary logarithm of the
    largest window of zstd, which is kept in memory; None: 27.

    >>> import gzip
    >>> unpacker = Unpacker(".gz")
    >>> b"".join(unpacker.feed(gzip.compress(b"a") + gzip.compress(b"b"))), unpacker.close()
    (b'ab', None)
    """

    def __init__(self, extension: str, window_log: int | None = None) -> None:
        self._new: Callable[[], _Member] = resolve_name(_MEMBERS[extension])
        if extension == ".zst" and window_log is not None:
            most = resolve_name(f"{ZSTD}:DecompressionParameter").window_log_max
            self._new = partial(self._new, options={most: window_log})
        self._has_several = extension != "deflate"
        self._member = self._new()
        self._between = False

    def feed(self, data: bytes, size: int = PIECE_BYTES) -> Iterator[bytes]:
        """Yields the data that can be decompressed now, in pieces of at most `size` bytes; exhaust it before the next
        call.
        """
        while True:
            if self._between:
                data = data.lstrip(b"\0")
                if not data:
                    return
                if not self._has_several:
                    raise EOFError("there is data after its end")
                self._member, self._between = self._new(), False
            if piece := self._member.decompress(data, size):
                yield piece
            data = b""
            if self._member.eof:
                self._between, data = True, self._member.unused_data
            elif self._member.needs_input:
                return

    def close(self) -> None:
        """Checks that the data are complete."""
        if not self._between:
            raise EOFError("the data end early")


class UnpackedFile(io.RawIOBase):
    """A compressed file as a file of its content; a pull interface to `Unpacker`.

    >>> import gzip
    >>> UnpackedFile(io.BytesIO(gzip.compress(b"content")), ".gz").read()
    b'content'
    """

    def __init__(self, file: IO[bytes], extension: str) -> None:
        self._pieces = _pieces(file, Unpacker(extension))
        self._piece = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._piece = self._piece or next(self._pieces, b"")
        part, self._piece = self._piece[: len(buffer)], self._piece[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


def unmarked(file: Any) -> Any:
    """Returns a binary file without the byte order mark of UTF-8, for parsers that treat it as text. `file`: stays
    open; it is returned itself if its first bytes can be seen to have no mark.

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
            None  # bytes that were read to detect the mark, and are not returned yet
        )

    def read(self, size: int = -1) -> bytes:
        """See `io.RawIOBase.read`; the first call may return fewer bytes than available."""
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
