"""The RDF/XML decoder: reads one XML document per line, with line ends as delimiters.

RDF Messages, section 3 for the lines. pyoxigraph reads messages, within the limits that are set here; a DOCTYPE, and
therefore every entity, is rejected.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Final

import pyoxigraph as ox

from construct_messages.errors import LimitExceeded, LogError, Position, TermError
from construct_messages.logs import DecoderOptions
from construct_messages.logs.from_pyoxigraph import (
    Rename,
    WholeLines,
    decode_utf8,
    log_error,
    most_characters,
    to_message,
)
from construct_messages.logs.lines.decoder import LineParser
from construct_messages.logs.rdfxml import DocumentLimits, NTriplesFile, RdfXmlError
from construct_messages.logs.turtle.scanner import MOST_BASE
from construct_messages.rdf.formats import N_TRIPLES, Format, Syntax
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import RDF, Lenience, map_blanks

_MOST: Final = 1024
"""The maximal numbers of attributes of an element, and of open elements and prefixes in scope."""
_LONG: Final = 1 << 21
"""The number of bytes that are read together: pyoxigraph's buffer is 16 MiB, and a byte may become `\\u007F`."""
_ONE_A_LINE: Final = (
    "write each message as one RDF/XML document on one line, line ends in its literals as &#10;"
)


class RdfXmlDecoder:
    """Reads an RDF/XML log; see `Decoder`.

    RDF 1.2 XML is read, including triple terms and base directions, if a document has `rdf:version="1.2"`.

    >>> from construct_messages.rdf.formats import RDF_XML
    >>> decoder = RdfXmlDecoder(RDF_XML, RDF_XML.own, DecoderOptions())
    >>> line = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>'
    >>> list(decoder.feed(line.encode())), list(decoder.feed(b"\\n"))
    ([], [<Message, empty>])
    """

    options: Final = None

    def __init__(self, _format: Format, syntax: Syntax | None, options: DecoderOptions) -> None:
        self.syntax, self._options, self._labels = syntax, options, options.labels or Labels()
        self._lines = WholeLines(options.message_bytes)  # a line is a message
        self._prefixes: dict[str, str] = {}

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes of the documents so far."""
        return self._prefixes

    def feed(self, data: bytes) -> Iterator[Message]:
        for line in self._lines.feed(data):
            yield from self._read(line)

    def close(self) -> Iterator[Message]:
        for line in self._lines.close():
            yield from self._read(line)

    def _read(self, line: bytes) -> Iterator[Message]:
        number = self._lines.number
        joins = self._options.documents and number == 1 and not self._lines.joined
        if not line.strip():
            if joins:
                self._lines.join(line)
                return
            hint = (
                f'leave out blank lines, and write an empty message as <rdf:RDF xmlns:rdf="{RDF}"/>'
            )
            raise _error("the line is blank", number, hint)
        try:
            message, prefixes = _read(line, number, self._options, self._labels, _ONE_A_LINE)
        except LogError as error:
            if joins and _ends_early(error.__cause__):
                self._lines.join(line)
                return
            raise
        self._prefixes |= prefixes
        self._lines.number += 1
        yield message


def read_document(_format: Format, document: bytes, options: DecoderOptions) -> Iterator[Message]:
    """Returns the message of an RDF/XML document, which may have any number of lines."""
    if len(document) > options.message_bytes:
        raise LimitExceeded(
            f"the document has more than {options.message_bytes} bytes",
            hint="say less in one message",
        )
    yield _read(document, 1, options, options.labels or Labels())[0]


def _read(
    document: bytes, number: int, options: DecoderOptions, labels: Labels, hint: str | None = None
) -> tuple[Message, dict[str, str]]:
    """Returns the message of a line and the prefixes that it declares; the line number is that of the message.
    `hint`: the fix for a truncated document.
    """
    decode_utf8(document, number, number)
    lenience = options.lenience
    lenient, most = (
        lenience is not None and not lenience.is_strict,
        most_characters(len(document), options.message_bytes),
    )
    limits = DocumentLimits(f"message {number}", most, open=_MOST, base=MOST_BASE, doctype=False)
    statements = NTriplesFile(io.BytesIO(document), options.base, limits, lenient=lenient)
    try:
        rename = labels.in_message(number).__getitem__
        untagged = lenience is not None and b"angString" in document
        if len(document) > _LONG or lenient or untagged:
            return _message_of_lines(statements.read(), rename, lenience), statements.prefixes
        # pyoxigraph only calls `read` of a file
        quads = ox.parse(statements, format=ox.RdfFormat.N_TRIPLES)  # type: ignore[arg-type]
        return to_message(quads, rename, number=number, most=most), statements.prefixes
    except SyntaxError as error:
        raise log_error(
            statements.located(error), number, number, hint if _ends_early(error) else None
        ) from error
    except (
        MemoryError
    ) as error:  # half of that buffer; namespaces that an XML literal repeats may need the rest
        raise LimitExceeded(
            f"message {number}: a term is too long for the parser: {error}"
        ) from error
    except TermError as error:
        raise _error(error.message, number, error.hint) from error


def _message_of_lines(text: bytes, rename: Rename, lenience: Lenience | None) -> Message:
    """Returns the message of statements that may exceed pyoxigraph's buffer together, or that may be skipped, by
    parsing each one separately.
    """
    reader = LineParser(N_TRIPLES, lenience)

    def read() -> Iterator[Quad]:
        for number, line in enumerate(io.BytesIO(text), 1):
            try:
                statement = reader.parse(line[:-1].decode())
            except SyntaxError as error:
                error.lineno = number
                raise
            for quad in statement:
                subject, object = (map_blanks(term, rename) for term in (quad.subject, quad.object))
                yield Quad(subject, quad.predicate, object)

    return Message(read())


def _ends_early(error: BaseException | None) -> bool:
    return isinstance(error, RdfXmlError) and error.ends_early


def _error(message: str, number: int, hint: str | None) -> LogError:
    # each line has one message, so the number of the message is that of the line
    return LogError(message, number=number, position=Position(number, 1), hint=hint)
