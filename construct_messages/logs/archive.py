"""Reads tar archives with one RDF document per message, the format of streams from RiverBench.

Each file is one message, in the order of the archive, even without statements. Folders are not messages; links, devices
and other special files are rejected. The end marker is required, so that a truncated archive is not read as a complete
one. POSIX.1-2017, "pax Interchange Format", and GNU's long names. tarfile parses the fields of a header. Its stream
mode is not used: it reads from a file, while a decoder is fed; it does not limit extended headers, and accepts an
archive without an end marker.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from construct_messages.logs import DecoderOptions, decoder_for
from construct_messages.logs.from_pyoxigraph import Rename
from construct_messages.rdf.errors import LimitExceeded, LogError
from construct_messages.rdf.formats import FORMATS, Format, Syntax
from construct_messages.rdf.formats.lookup import format_of_file
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message

_BLOCK: Final = 512
_MOST_EXTENSION: Final = 1 << 16
_RECORD: Final = re.compile(rb"([1-9][0-9]{0,5}) ([^=\n]++)=")
# headers before a header with values that do not fit: of pax for one file and for all, of GNU
_PAX, _PAX_GLOBAL, _GNU_NAME, _GNU_LINK = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_REFUSED: Final = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
}


class ArchiveDecoder:
    """Reads the files of an archive as messages: a `Decoder` whose `syntax` is always None. `format`: the format of all
    files; None: determined by each extension.

    >>> header = tarfile.TarInfo("0000000000.ttl")
    >>> header.size = 23
    >>> archive = header.tobuf() + b"<urn:s> a <urn:Thing> .".ljust(512, bytes(1)) + bytes(1024)
    >>> decoder = ArchiveDecoder()
    >>> list(decoder.feed(archive)), list(decoder.close())
    ([<Message of 1 quad: <urn:s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:Thing> .>], [])
    """

    def __init__(
        self, format: Format | None = None, decoding: DecoderOptions | None = None
    ) -> None:
        # format: the format of the last file, or that of the argument
        self.format = self._format = format
        self._decoding = decoding = decoding or DecoderOptions()
        self._labels = decoding.labels or Labels()
        self._buffer, self._place = bytearray(), 0  # the unused bytes, and their position
        # the header at the buffer's start, while its content is incomplete
        self._header: tarfile.TarInfo | None = None
        self._extended: dict[str, str] = {}  # values that do not fit into the next header
        self._ended = False
        self._messages = 0
        self._prefixes: dict[str, str] = {}

    @property
    def syntax(self) -> Syntax | None:
        """Always None: files have no delimiters."""
        return None

    @property
    def options(self) -> None:
        """Always None: each file has its own."""
        return None

    @property
    def prefixes(self) -> Mapping[str, str]:
        return self._prefixes

    def feed(self, data: bytes) -> Iterator[Message]:
        self._buffer += data
        while len(self._buffer) >= _BLOCK and not self._ended:
            header = self._header = self._header or self._read_header(self._buffer[:_BLOCK])
            if header is None:
                self._ended = True
                break
            end = _BLOCK + -(-header.size // _BLOCK) * _BLOCK
            if len(self._buffer) < end:
                return
            content = bytes(self._buffer[_BLOCK : _BLOCK + header.size])
            self._header = None
            if header.type == _PAX:
                self._extended |= self._read_records(content)
            elif header.type == _GNU_NAME:
                self._extended["path"] = content.rstrip(b"\0").decode(errors="surrogateescape")
            elif header.type not in (_PAX_GLOBAL, _GNU_LINK):
                self._extended = {}
                if header.isreg():
                    yield self._message(header.name, content)
            del self._buffer[:end]
            self._place += end
        if self._ended:
            if any(self._buffer):
                raise self._error(
                    "there is something after the end of the archive", "give one archive at a time"
                )
            self._buffer.clear()

    def close(self) -> Iterator[Message]:
        """Returns nothing: the end does not complete a file."""
        if not self._ended:
            raise self._error("the archive ends early", "get it again")
        return iter(())

    def _error(self, message: str, hint: str | None = None) -> LogError:
        return LogError(f"byte {self._place}: {message}", number=self._messages + 1, hint=hint)

    def _read_header(self, block: bytearray) -> tarfile.TarInfo | None:
        """Parses a header with its preceding extension headers; None: the end marker."""
        if not any(block):
            return None
        try:
            header = tarfile.TarInfo.frombuf(bytes(block), "utf-8", "surrogateescape")
            header.name = self._extended.get("path", header.name)
            header.size = int(self._extended.get("size", header.size))
        except (tarfile.HeaderError, ValueError) as error:
            raise self._error(f"no header of a tar archive: {error}") from error
        if header.isdir():
            header.size = 0
        elif header.type in (_PAX, _PAX_GLOBAL, _GNU_NAME, _GNU_LINK):
            if not 0 <= header.size <= _MOST_EXTENSION:
                raise self._error(
                    f"a header of {header.size} bytes, where {_MOST_EXTENSION} are allowed"
                )
        elif header.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or any(
            "sparse" in name for name in self._extended
        ):
            kind = _REFUSED.get(header.type, "no ordinary file")
            raise self._error(
                f"{header.name!r} is {kind}", "pack ordinary files: each is a message"
            )
        elif header.size < 0:
            raise self._error(f"{header.name!r} has {header.size} bytes")
        elif header.size > self._decoding.message_bytes:
            raise LimitExceeded(
                f"message {self._messages + 1}: {header.name!r} has {header.size} bytes, where "
                f"{self._decoding.message_bytes} "
                "are allowed",
                hint="allow larger messages",
            )
        return header

    def _read_records(self, content: bytes) -> dict[str, str]:
        """Returns the records of a pax header, each `length key=value` with the length of the whole record."""
        records, place = {}, 0
        while place < len(content):
            record = _RECORD.match(content, place)
            end = place + int(record[1]) if record else 0
            if record is None or end <= record.end() or content[end - 1 : end] != b"\n":
                raise self._error("a malformed pax header")
            records[record[2].decode(errors="replace")] = content[record.end() : end - 1].decode(
                errors="surrogateescape"
            )
            place = end
        return records

    def _message(self, name: str, document: bytes) -> Message:
        """Returns a file's document as one message."""
        number = self._messages + 1
        self.format = format = self._format or format_of_file(name)
        if format is None:
            raise self._error(
                f"the extension of {name!r} is that of no format",
                f"name files {', '.join(f'.{format.extension}' for format in FORMATS)}, or say the format",
            )
        labels = self._labels.in_message(number).__getitem__
        message = self._decode(name, document, format, labels)
        self._messages = number
        return message

    def _decode(self, name: str, document: bytes, format: Format, labels: Rename) -> Message:
        # comments delimit nothing, and labels are replaced by those of the message below
        decoder = decoder_for(format, options=replace(self._decoding, labels=None, comments=False))
        try:
            messages = [*decoder.feed(document), *decoder.close()]
        except LogError as error:
            raise self._in_file(name, error) from error
        # messages of a flat log are parts of one dataset
        if len(messages) > 1 and not (decoder.options and decoder.options.is_flat):
            raise self._error(
                f"{name!r} holds {len(messages)} messages, where each file is one",
                "read it by itself",
            )
        self._prefixes |= decoder.prefixes
        return Message(quad for message in messages for quad in message).map_blanks(labels)

    def _in_file(self, name: str, error: LogError) -> LogError:
        message = f"in {name!r}: {error.message}"
        return LogError(
            message, number=self._messages + 1, position=error.position, hint=error.hint
        )
