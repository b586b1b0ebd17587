"""A decoder that detects the properties of a log: its compression, whether it is an archive, and its format.

Properties in `KnownProperties` are not detected; the others are detected from the first bytes (`sniff.py`). No files
here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from construct_messages.logs import Decoder, DecoderOptions, FormatOptions, decoder_for
from construct_messages.logs.archive import ArchiveDecoder
from construct_messages.logs.sniff import SNIFF_BYTES, is_archive, sniff
from construct_messages.rdf.errors import LogError, UsageError
from construct_messages.rdf.files.unpacking import Unpacker, packing_of, unpack_errors
from construct_messages.rdf.formats import Format, Syntax
from construct_messages.rdf.formats.lookup import find_log
from construct_messages.rdf.message import Message


@dataclass(frozen=True)
class KnownProperties:
    """The properties of a log that are known before its first byte is read.

    Args:
        packing: the extension of files with its compression; empty: it is not compressed; None: detected from its
            bytes.
        archive: whether it is a tar archive; None: detected from its bytes.
        format: the format of the log, or of an archive's files; None: detected from its bytes.
        syntax: the syntax that is declared for the format.
        label: the version label of a declared syntax, if the format is unknown.
    """

    packing: str | None = None
    archive: bool = False
    format: Format | None = None
    syntax: Syntax | None = None
    label: str | None = None


class DetectingDecoder:
    """Reads a log, compressed or not, or an archive: a `Decoder`.

    Args:
        known: the properties that need not be detected.
        decoding: see `DecoderOptions`.

    Attributes:
        format: the format of the log, or of the archive's last file; None: not detected yet.
        packing: the extension of files with its compression; empty: it is not compressed; None: not detected yet.
        archive: whether it is an archive; None: not detected yet.
        bytes_read: the number of bytes so far, before decompression.
        messages: the number of messages so far.

    >>> import gzip
    >>> decoder = DetectingDecoder()
    >>> list(decoder.feed(gzip.compress(b"<urn:s> <urn:p> <urn:o> <urn:g> ."))), decoder.format
    ([], None)
    >>> list(decoder.close()), decoder.format.name, decoder.packing
    ([<Message of 1 quad: <urn:s> <urn:p> <urn:o> <urn:g> .>], 'N-Quads', '.gz')
    """

    def __init__(
        self, known: KnownProperties | None = None, decoding: DecoderOptions | None = None
    ) -> None:
        self._known = known = known or KnownProperties()
        self.decoding = decoding or DecoderOptions()
        self.format, self.packing, self.archive = known.format, known.packing, known.archive
        self.bytes_read = self.message_count = 0
        self._unpacker = Unpacker(self.packing) if self.packing else None
        self._decoder: Decoder | ArchiveDecoder | None = None
        self._head = b""  # bytes that were not sufficient for detection
        self._tried = 0  # the size of the examined part
        self._sniffed = False

    @property
    def syntax(self) -> Syntax | None:
        """The syntax of the log, as detected so far; None: no delimiter yet."""
        return self._decoder.syntax if self._decoder else self._known.syntax

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes that the log has declared so far, the last declaration of each."""
        return self._decoder.prefixes if self._decoder else {}

    @property
    def options(self) -> FormatOptions | None:
        """The format's own options; None: not read yet, or the format has none."""
        return self._decoder.options if self._decoder else None

    def feed(self, data: bytes) -> Iterator[Message]:
        """Returns the messages that are complete now; see `Decoder.feed`.

        Raises:
            LogError: malformed bytes, also of the compression; a chunk with damaged compression yields no messages.
            LimitExceeded: a message is too large.
            UsageError: the declared properties contradict the log.
        """
        self.bytes_read += len(data)
        if self.packing is None:
            data = self._head + data
            self._head = b""
            self.packing = packing_of(data)
            if self.packing is None:
                self._head = data
                return
            self._unpacker = Unpacker(self.packing) if self.packing else None
        pieces = self._unpacker.feed(data) if self._unpacker else iter((data,))
        while True:
            try:
                piece = next(pieces, None)
            except unpack_errors() as error:
                yield from self._decode(b"", whole=True)  # the part before the damage
                raise self._cannot_unpack(f"are damaged: {error}") from error
            if piece is None:
                return
            yield from self._decode(piece)

    def close(self) -> Iterator[Message]:
        """Returns the messages that the end of the log completes; see `Decoder.close`.

        Raises:
            LogError: the log ends early.
        """
        if self._unpacker is not None:
            try:
                self._unpacker.close()
            except EOFError as error:
                yield from self._decode(b"", whole=True)
                raise self._cannot_unpack("end early") from error
        yield from self._decode(b"", whole=True)
        assert self._decoder is not None  # at the end, all bytes are available
        yield from self._count(self._decoder.close())

    def _cannot_unpack(self, what: str) -> LogError:
        return LogError(
            f"byte {self.bytes_read}: the {self.packing} data {what}",
            number=self.message_count + 1,
            hint="get the file again, or use a name with its own extension",
        )

    def _decode(self, data: bytes, *, whole: bool = False) -> Iterator[Message]:
        if self._decoder is None:
            data = self._head + data
            self._decoder = self._open(data, whole)
            self._head = b"" if self._decoder else data
        if self._decoder is not None:
            yield from self._count(self._decoder.feed(data))

    def _count(self, messages: Iterator[Message]) -> Iterator[Message]:
        try:
            for message in messages:
                self.message_count += 1
                yield message
        except LogError as error:
            if self._sniffed and self.format is not None and error.hint is None:
                error.hint = f"it was taken for {self.format.name} by its first bytes: name the format if it is another"
            raise
        finally:
            if isinstance(self._decoder, ArchiveDecoder):
                self.format = self._decoder.format

    def _open(self, head: bytes, whole: bool) -> Decoder | ArchiveDecoder | None:
        """Returns the decoder for a log that begins with `head`; None: more bytes are needed."""
        if not self.archive and not self._detect(head, whole):
            return None
        if self.archive:
            if self._known.label is not None:
                raise UsageError(
                    f"syntax={self._known.label} has no meaning for an archive: each of its files is a message",
                    hint="leave it out",
                )
            return ArchiveDecoder(self.format, self.decoding)
        assert self.format is not None  # otherwise it would not have been detected
        return decoder_for(self.format, self._syntax(self.format), self.decoding)

    def _detect(self, head: bytes, whole: bool) -> bool:
        """Returns whether `head` determines the kind of log."""
        archive = is_archive(head)
        if archive is None and not whole:
            return False
        if archive:
            self.archive = True
        if self.archive or self.format is not None:
            return True
        # examining a long beginning again for each byte would take quadratic time
        if not whole and SNIFF_BYTES < len(head) < 2 * self._tried:
            return False
        self._tried = len(head)
        self.format = sniff(head, whole=whole)
        self._sniffed = self.format is not None
        return self._sniffed

    def _syntax(self, format: Format) -> Syntax | None:
        if self._known.syntax is None and self._known.label is not None:
            return find_log(format.extension, self._known.label)[1]
        return self._known.syntax or format.own
