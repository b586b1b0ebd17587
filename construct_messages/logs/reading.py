"""Reading logs: `read_log`, from files, bytes and streams, blocking or not.

This module only reads bytes; `logs/` decodes them. RDF Messages, section 3.
"""

from __future__ import annotations

import asyncio
import os
import re
import tarfile
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import aclosing, closing
from dataclasses import dataclass, replace
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

from construct_messages.errors import (
    ConstructMessagesError,
    IncompleteResult,
    LimitExceeded,
    LogError,
    UsageError,
)
from construct_messages.logs import (
    MESSAGE_BYTES,
    Decoder,
    DecoderOptions,
    FormatOptions,
    decoder_for,
)
from construct_messages.logs.columns.tables import Tabular
from construct_messages.logs.from_pyoxigraph import Rename
from construct_messages.logs.sniff import SNIFF_BYTES, is_archive, sniff
from construct_messages.rdf.arguments import checked
from construct_messages.rdf.files.unpacking import Unpacker, packing_of, unpack_errors
from construct_messages.rdf.formats import FORMATS, READ, Format, Syntax
from construct_messages.rdf.formats.lookup import (
    find_format,
    find_log,
    find_syntax,
    format_of_file,
    is_media_type,
    packing_of_name,
)
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import Lenience, Lenient

if TYPE_CHECKING:
    from construct_messages.logs.columns.options import ColumnOptions


# --- archive --------------------------------------------------------------------------------------
# Reads tar archives with one RDF document per message, the format of streams from RiverBench.
#
# Each file is one message, in the order of the archive, even without statements. Folders are not messages; links,
# devices and other special files are rejected. The end marker is required, so that a truncated archive is not read as
# a complete one. POSIX.1-2017, "pax Interchange Format", and GNU's long names. tarfile parses the fields of a header.
# Its stream mode is not used: it reads from a file, while a decoder is fed; it does not limit extended headers, and
# accepts an archive without an end marker.

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


# --- auto -----------------------------------------------------------------------------------------
# A decoder that detects the properties of a log: its compression, whether it is an archive, and its format.
#
# Properties in `KnownProperties` are not detected; the others are detected from the first bytes (`sniff.py`). No
# files here.


@dataclass(frozen=True)
class KnownProperties:
    """The properties of a log that are known before its first byte is read."""

    # the extension of files with its compression; empty: it is not compressed; None: detected from its bytes
    packing: str | None = None
    # whether it is a tar archive; None: detected from its bytes
    archive: bool = False
    # the format of the log, or of an archive's files; None: detected from its bytes
    format: Format | None = None
    # the syntax that is declared for the format
    syntax: Syntax | None = None
    # the version label of a declared syntax, if the format is unknown
    label: str | None = None


class DetectingDecoder:
    """Reads a log, compressed or not, or an archive: a `Decoder`. `known`: the properties that need not be detected.
    `messages`: the number of messages so far.

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
        # archive: whether it is an archive; None: not detected yet
        # packing: the extension of files with its compression; empty: it is not compressed; None: not detected yet
        # format: the format of the log, or of the archive's last file; None: not detected yet
        self.format, self.packing, self.archive = known.format, known.packing, known.archive
        # bytes_read: the number of bytes so far, before decompression
        self.bytes_read = self.message_count = 0
        self._unpacker = Unpacker(self.packing) if self.packing else None
        self._decoder: Decoder | ArchiveDecoder | None = None
        self._head = b""  # bytes that were not sufficient for detection
        self._tried = 0  # the size of the examined part
        self._sniffed = False

    @property
    def syntax(self) -> Syntax | None:
        return self._decoder.syntax if self._decoder else self._known.syntax

    @property
    def prefixes(self) -> Mapping[str, str]:
        return self._decoder.prefixes if self._decoder else {}

    @property
    def options(self) -> FormatOptions | None:
        return self._decoder.options if self._decoder else None

    def feed(self, data: bytes) -> Iterator[Message]:
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


# --- reading --------------------------------------------------------------------------------------

Chunk: TypeAlias = bytes | bytearray | memoryview
LogSource: TypeAlias = (
    str | os.PathLike[str] | Chunk | IO[bytes] | Iterable[Chunk] | AsyncIterable[Chunk]
)

_CHUNK_BYTES: Final = 1 << 16


@checked
def read_log(
    source: LogSource,
    format: str | None = None,
    *,
    syntax: str | None = None,
    base: str | None = None,
    contexts: Mapping[str, Any] | None = None,
    message_bytes: int = MESSAGE_BYTES,
    label_prefix: str | None = None,
    keep_labels: bool = False,
    generalized: bool = False,
    shared_labels: bool | None = None,
    jelly_conformance: bool = False,
    lenient: Lenient = False,
) -> LogReader:
    """Returns an iterator over the messages of a log, in order, to use once (with `for` or `async for`).

    The source is not opened before the first message is requested. If the log is malformed or ends early, an error
    follows the complete messages before it.

    Args:
        source: a path, bytes, a binary file (which stays open), or an iterable or async iterable of bytes. Compressed
            logs are recognised by the extension (`.gz`, `.bz2`, `.xz`, `.zst`) or the first bytes. A tar archive is a
            log whose messages are its files, in their order.
        format: a name, extension or media type; None: that of the file's extension, else detected from up to the first
            4 KiB. The parameters of a media type determine the syntax. In a document whose media type has none,
            comments do not delimit messages. Without a media type, a JSON-LD or RDF/XML document of several lines is a
            log of one message.
        syntax: the syntax, if it is announced outside of the log, as by a media type: `"rdfm"`, `"1.2-messages"`,
            `"1.2-basic-messages"` or `"1.1-messages"`; None: that of the log.
        base: resolve relative IRIs against this IRI, until the log declares a base.
        contexts: JSON-LD contexts by IRI, as parsed JSON; contexts are never fetched.
        message_bytes: the maximal size of a message, in bytes in the log and in characters as N-Quads.
        label_prefix: the beginning of blank node labels: a lower-case letter, then lower-case letters or digits. None:
            random, so that two logs share no node. Unique labels that this package made earlier are kept.
        keep_labels: keep labels that mean the same node in the whole log, as in `rdfm` and in a flat Jelly stream.
            Labels of two logs may then collide.
        generalized: accept terms of a Jelly log in positions that RDF does not allow. Such messages cannot be converted
            to pyoxigraph, and only Jelly can write them.
        shared_labels: whether a blank node label means the same node in all messages; None: in `rdfm` logs and in flat
            Jelly streams only. False is for `rdfm` logs of other programs that scope labels to their message. True has
            an effect in Jelly logs only.
        jelly_conformance: read a Jelly log as the tests of the Jelly project require: the same as `generalized`,
            `shared_labels` and `keep_labels`, which it excludes.
        lenient: accept terms that are not RDF, such as malformed IRIs, and leave out the statements of those that no
            log can hold; `"skip"`: leave out the statements of all. The numbers of each kind are logged at the end.
            Otherwise they are errors, except literals of rdf:langString without a tag, which are read as strings.

    Raises:
        UsageError: an unknown format or syntax (immediately), or a file that cannot be opened (when it is opened).
        LogError: malformed bytes, with position and number of the message.
        LimitExceeded: a message is too large.

    >>> log = b"<urn:a> <urn:p> <urn:o> .\\n# @message\\n<urn:b> <urn:p> <urn:o> .\\n"
    >>> for message in read_log(log):
    ...     print(message)
    <Message of 1 quad: <urn:a> <urn:p> <urn:o> .>
    <Message of 1 quad: <urn:b> <urn:p> <urn:o> .>
    """
    if message_bytes <= 0:
        raise UsageError(f"message_bytes={message_bytes} must be more than 0")
    if hasattr(source, "encoding"):  # as text files have
        raise _no_bytes("the file is open for text")
    if syntax is not None:
        find_syntax(syntax)
    if isinstance(source, (str, os.PathLike)):
        name = os.fspath(source)
        packing, archive = packing_of_name(name)
    else:
        name = getattr(source, "name", "")
        name = name if isinstance(name, str) else ""  # it may be a descriptor
        packing, archive = None, packing_of_name(name)[1]  # an open file may unpack by itself
    if jelly_conformance:
        if keep_labels or generalized or shared_labels is not None:
            raise UsageError(
                "jelly_conformance includes generalized, shared_labels and keep_labels",
                hint="leave these out",
            )
        keep_labels = generalized = shared_labels = True
    known = KnownProperties(
        packing=packing,
        archive=archive,
        format=format_of_file(name) if format is None else find_format(format, READ)[0],
        syntax=None if format is None else _announced(format, syntax),
        label=syntax,
    )
    by_name = format is None or not is_media_type(format)  # a media type says what is sent
    decoding = DecoderOptions(
        base=base,
        contexts=contexts,
        message_bytes=message_bytes,
        labels=Labels(label_prefix, keep=keep_labels),
        generalized=generalized,
        shared_labels=shared_labels,
        comments=by_name,
        documents=by_name,
        lenience=Lenience.of(lenient, base=base),
    )
    return LogReader(source, name, DetectingDecoder(known, decoding))


def _announced(format: str, label: str | None) -> Syntax | None:
    """Returns the announcement for a log by its format's name or media type, and by a label."""
    syntax = find_format(format, READ)[1]
    if label is None:
        return syntax
    asked = find_log(format, label)[1]
    if asked.label != find_syntax(label).label:
        raise UsageError(f"syntax={label} contradicts {format!r}", hint="leave one of them out")
    return asked


class LogReader(Tabular[Message]):
    """The messages of one log, to iterate once with `for` or `async for`.

    The file is closed when the log is exhausted, closed, left as a context manager, or garbage collected.

    >>> with read_log(b"# @message\\n<urn:s> <urn:p> <urn:o> .\\n", "ttl") as log:
    ...     print(next(iter(log)), log.message_count, log.syntax.label)
    <Message of 1 quad: <urn:s> <urn:p> <urn:o> .> 1 rdfm
    """

    _again = "read_log"

    def __init__(self, source: LogSource, name: str, decoder: DetectingDecoder) -> None:
        super().__init__()
        self._source, self._name, self._decoder = source, name, decoder

    @property
    def format(self) -> Format | None:
        """The format of the log, or of the last file of an archive; None: not known yet."""
        return self._decoder.format

    @property
    def syntax(self) -> Syntax | None:
        """The syntax of the log as far as it has been read; None: no delimiter so far."""
        return self._decoder.syntax

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes that the log has declared so far; the last declaration of each counts."""
        return self._decoder.prefixes

    @property
    def packing(self) -> str | None:
        """The extension of the compression, such as `".gz"`; empty: not compressed; None: not known yet."""
        return self._decoder.packing

    @property
    def archive(self) -> bool:
        """Whether the log is a tar archive, as far as is known."""
        return self._decoder.archive

    @property
    def options(self) -> FormatOptions | None:
        """The options of the format, such as `JellyOptions`, once they have been read; None: not yet, or the format has
        none.
        """
        return self._decoder.options

    @property
    def generalized(self) -> bool:
        """Whether messages may have terms in positions that RDF does not allow."""
        return self._decoder.decoding.generalized

    @property
    def malformed(self) -> int:
        """The number of terms that are not RDF and were accepted so far, with `lenient`."""
        lenience = self._decoder.decoding.lenience
        return lenience.passed if lenience else 0

    @property
    def names_graphs(self) -> bool:
        """Whether messages may have named graphs, according to the format and its options."""
        if self.options is not None:
            return self.options.names_graphs
        return self.archive or self.format is None or self.format.graphs

    @property
    def bytes_read(self) -> int:
        """The number of bytes that were read so far, before decompression."""
        return self._decoder.bytes_read

    @property
    def message_count(self) -> int:
        """The number of messages so far."""
        return self._decoder.message_count

    def keep_lines(self) -> None:
        """Makes messages keep their lines if these are canonical N-Quads: for a caller that writes them unchanged, and
        asks for few terms. Call it before the first message is read.
        """
        self._decoder.decoding = replace(self._decoder.decoding, keep_lines=True)

    @property
    def name(self) -> str:
        """The name of the file; empty if there is none."""
        return self._name

    def _each(self) -> Generator[Message]:
        return _iterate(_chunks(self._source), self._decoder, self._name)

    def _record_batches(self, options: ColumnOptions) -> Generator[Any]:
        if options.layout == "solutions" or options.types or options.languages:
            from construct_messages.logs.columns.solutions import no_solutions

            raise no_solutions()
        return _tabulate(self._each(), options, self._name)

    def _aeach(self) -> AsyncGenerator[Message]:
        return _aiterate(_achunks(self._source), self._decoder, self._name)


# The generators do not refer to their reader, so a reader that is dropped is freed at once, and the `finally` blocks of
# its generators run.


def _iterate(chunks: Generator[bytes], decoder: DetectingDecoder, name: str) -> Generator[Message]:
    try:
        with closing(chunks):
            for chunk in chunks:
                for message in decoder.feed(chunk):
                    message.checked = not decoder.decoding.generalized
                    yield message
            for message in decoder.close():
                message.checked = not decoder.decoding.generalized
                yield message
    except (LogError, LimitExceeded) as error:
        _note(error, name)
        raise
    finally:
        _report(decoder, name)


async def _aiterate(
    chunks: AsyncGenerator[bytes], decoder: DetectingDecoder, name: str
) -> AsyncGenerator[Message]:
    try:
        async with aclosing(chunks):
            async for chunk in chunks:
                for message in decoder.feed(chunk):
                    message.checked = not decoder.decoding.generalized
                    yield message
            for message in decoder.close():
                message.checked = not decoder.decoding.generalized
                yield message
    except (LogError, LimitExceeded) as error:
        _note(error, name)
        raise
    finally:
        _report(decoder, name)


def _tabulate(messages: Generator[Message], options: ColumnOptions, name: str) -> Generator[Any]:
    from construct_messages.logs.columns.quads import MessageRows

    rows = MessageRows(options, {"source": name} if name else {})
    with closing(messages):
        for message in messages:
            yield from rows.add(message)
        yield from rows.finish()


def _report(decoder: DetectingDecoder, name: str) -> None:
    assert decoder.decoding.lenience is not None  # as `read_log` sets it
    decoder.decoding.lenience.report(name)


def _note(error: ConstructMessagesError, name: str) -> None:
    if name:
        error.add_note(f"in {name}")


def _chunks(source: LogSource) -> Generator[bytes]:
    if isinstance(source, (str, os.PathLike)):
        yield from _of_path(source)
    elif isinstance(source, (bytes, bytearray, memoryview)):
        yield from _slices(source)
    elif isinstance(source, AsyncIterable):
        raise UsageError("the log comes asynchronously", hint="read it with `async for`")
    elif (read := getattr(source, "read", None)) is not None:
        # returns available bytes instead of waiting for the full size
        yield from _pull(getattr(source, "read1", read))
    elif isinstance(source, Iterable):
        yield from map(_checked, source)
    else:
        raise UsageError(
            f"{source!r} is not a log",
            hint="pass a path, bytes, a binary file or an iterable of bytes",
        )


async def _achunks(source: LogSource) -> AsyncGenerator[bytes]:
    """`_chunks`, with all blocking calls in a thread."""
    if isinstance(source, AsyncIterable):
        async for part in source:
            yield _checked(part)
        return
    chunks = _chunks(source)
    loop = asyncio.get_running_loop()
    reading: asyncio.Future[bytes | None] | None = None
    try:
        while True:
            reading = loop.run_in_executor(None, next, chunks, None)
            # shielded, as a thread cannot be cancelled: it must be known when it is done
            if (chunk := await asyncio.shield(reading)) is None:
                return
            yield chunk
    finally:
        if reading is None or reading.done():
            chunks.close()
        else:
            reading.add_done_callback(partial(_let_go, chunks))


def _let_go(chunks: Generator[bytes], read: asyncio.Future[bytes | None]) -> None:
    read.exception()  # else asyncio logs that the exception was never retrieved
    chunks.close()


def _of_path(path: str | os.PathLike[str]) -> Generator[bytes]:
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below; only errors of opening are caught here
    except OSError as error:
        raise UsageError(f"cannot read {os.fspath(path)}: {error.strerror}") from error
    with file:
        try:
            yield from _pull(file.read1)
        except OSError as error:
            raise IncompleteResult(
                f"cannot read the rest of {os.fspath(path)}: {error.strerror}"
            ) from error


def _pull(read: Callable[[int], object]) -> Generator[bytes]:
    while chunk := _checked(read(_CHUNK_BYTES)):
        yield chunk


def _slices(data: Chunk) -> Generator[bytes]:
    for start in range(0, len(view := memoryview(data).cast("B")), _CHUNK_BYTES):
        yield bytes(view[start : start + _CHUNK_BYTES])


def _checked(chunk: object) -> bytes:
    if isinstance(chunk, bytes):
        return chunk
    if isinstance(chunk, (bytearray, memoryview)):
        return bytes(chunk)
    raise _no_bytes(f"{type(chunk).__name__} came")


def _no_bytes(what: str) -> UsageError:
    return UsageError(f"a log is bytes, and {what}", hint='open the file with mode "rb"')
