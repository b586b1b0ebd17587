"""The RDF/XML decoder: one XML document a line, so that a line end is the delimiter.

RDF Messages, section 3 for the lines; RDF 1.1 XML Syntax (https://www.w3.org/TR/rdf-syntax-grammar/) for a message.
Statements are read by pyoxigraph, which takes a document that ends early for whole: so expat looks first whether it is
well-formed, and refuses a DOCTYPE, and with it every entity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from xml.parsers import expat

import pyoxigraph as ox

from construct_messages.errors import LimitExceeded, LogError, Position, TermError
from construct_messages.formats import RDF_XML, Format, Syntax
from construct_messages.labels import Labels
from construct_messages.logs import DecoderOptions
from construct_messages.logs.from_pyoxigraph import most_characters, to_message
from construct_messages.logs.line_buffer import WholeLines
from construct_messages.logs.turtle.declarations import MOST_BASE
from construct_messages.message import Message
from construct_messages.terms import RDF

_BASE: Final = "http://www.w3.org/XML/1998/namespace base"  # `xml:base`, as expat names the attribute
_MOST: Final = 1024
"""Attributes of one element; elements open and prefixes in scope at one place: parsers take time quadratic in each."""

_EARLY_ENDS: Final = {
    expat.errors.codes[message]
    for message in (
        expat.errors.XML_ERROR_NO_ELEMENTS,
        expat.errors.XML_ERROR_UNCLOSED_TOKEN,
        expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
    )
}
_ONE_A_LINE: Final = "write each message as one RDF/XML document on one line, line ends in its literals as &#10;"


class RdfXmlDecoder:
    """Reads an RDF/XML log; see `Decoder`.

    RDF 1.2 XML is read as pyoxigraph reads it, triple terms and base directions included, where a document holds some.

    Args:
        syntax: RDF/XML's own.
        options: see `DecoderOptions`; a document's `xml:base` goes before their base.

    >>> from construct_messages.formats import RDF_XML
    >>> decoder = RdfXmlDecoder(RDF_XML, RDF_XML.own, DecoderOptions())
    >>> line = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>'
    >>> list(decoder.feed(line.encode())), list(decoder.feed(b"\\n"))
    ([], [<Message, empty>])
    """

    options: Final = None

    def __init__(self, _format: Format, syntax: Syntax | None, options: DecoderOptions) -> None:
        self.syntax, self._base, self._message_bytes = syntax, options.base, options.message_bytes
        self._labels, self._lenience = options.labels or Labels(), options.lenience
        self._lines = WholeLines(options.message_bytes)  # a line is a message
        self._prefixes: dict[str, str] = {}

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes of the documents so far."""
        return self._prefixes

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages whose lines are whole now; see `Decoder.feed`."""
        yield from map(self._message, self._lines.feed(data))

    def close(self) -> Iterator[Message]:
        """The message of a last line that has no end; see `Decoder.close`."""
        yield from map(self._message, self._lines.close())

    def _message(self, line: bytes) -> Message:
        number = self._lines.number
        if not line.strip():
            hint = f'leave out blank lines, and write an empty message as <rdf:RDF xmlns:rdf="{RDF}"/>'
            raise _error("the line is blank", number, hint=hint)
        _Examination(line, number, self._prefixes).run()
        try:
            lenient = self._lenience is not None
            quads = ox.parse(line, format=ox.RdfFormat.RDF_XML, base_iri=self._base, lenient=lenient)
            rename = self._labels.in_message(number).__getitem__
            most = most_characters(len(line), self._message_bytes)
            message = to_message(quads, rename, self._lenience, number=number, most=most)
        except SyntaxError as error:
            # where in the document, the parser does not say
            raise _error(error.msg, number) from error
        except TermError as error:
            raise _error(error.message, number, hint=error.hint) from error
        self._lines.number += 1
        return message


def read_document(document: bytes, *, base: str | None = None, message_bytes: int) -> Message:
    """The message that an RDF/XML document is, over as many lines as it likes.

    Args:
        document: in UTF-8.
        base: the IRI that relative IRIs resolve against.
        message_bytes: how long it may be.

    Raises:
        LogError: it is malformed.
        LimitExceeded: it is too long.
    """
    if len(document) > message_bytes:
        raise LimitExceeded(f"the document has more than {message_bytes} bytes", hint="say less in one message")
    return RdfXmlDecoder(RDF_XML, None, DecoderOptions(base=base, message_bytes=message_bytes))._message(document)


class _Examination:
    """Looks through a document before it is parsed: is it well-formed, has it what no message has?

    Args:
        line: the document.
        number: of the message, and so of the line.
        prefixes: what it declares goes here.
    """

    def __init__(self, line: bytes, number: int, prefixes: dict[str, str]) -> None:
        self._line, self._number, self._prefixes = line, number, prefixes
        self._scope = 0  # elements open and prefixes declared
        self._bases: list[tuple[int, int]] = []  # of each base in scope, where it is declared and its length
        parser = expat.ParserCreate("utf-8", namespace_separator=" ")
        parser.XmlDeclHandler = self._declaration
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end_element
        parser.StartNamespaceDeclHandler = self._start_prefix
        parser.EndNamespaceDeclHandler = self._end
        self._parser = parser

    def run(self) -> None:
        """Does it.

        Raises:
            LogError: no well-formed XML document in UTF-8, or one with a DOCTYPE.
            LimitExceeded: what would take the parser long.
        """
        try:
            self._line.decode()
        except UnicodeDecodeError as error:
            raise self._error("the line is not UTF-8", error.start) from error
        try:
            self._parser.Parse(self._line, True)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            if error.code in _EARLY_ENDS:
                raise self._error(
                    f"the line ends within its document: {reason}", len(self._line), _ONE_A_LINE
                ) from error
            raise self._error(f"not well-formed XML: {reason}", self._parser.ErrorByteIndex) from error

    def _error(self, message: str, offset: int, hint: str | None = None) -> LogError:
        return _error(message, self._number, len(self._line[:offset].decode()) + 1, hint)

    def _declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding is not None and encoding.lower() != "utf-8":
            raise self._error(f"the encoding is {encoding}", 0, "write UTF-8, and say so or nothing")

    def _doctype(self, *_: object) -> None:
        place = self._line.rfind(b"<!DOCTYPE", 0, self._parser.CurrentByteIndex)
        raise self._error("a DOCTYPE has no place in a message", place, "write what its entities stand for")

    def _start(self, _: str, attributes: Mapping[str, str]) -> None:
        if len(attributes) > _MOST:
            raise LimitExceeded(f"message {self._number}: an element has more than {_MOST} attributes")
        self._open()
        if (base := attributes.get(_BASE)) is not None:
            self._bases.append((self._scope, len(base)))
            # a relative one is resolved against those around it, and each attribute against all of them
            if sum(length for _, length in self._bases) > MOST_BASE:
                raise LimitExceeded(
                    f"the base of message {self._number} is longer than {MOST_BASE} characters",
                    hint="write the IRIs of xml:base in full, and shorter",
                )

    def _end_element(self, _: str) -> None:
        if self._bases and self._bases[-1][0] == self._scope:
            del self._bases[-1]
        self._end(None)

    def _start_prefix(self, prefix: str | None, namespace: str | None) -> None:
        if namespace:
            self._prefixes[prefix or ""] = namespace
        self._open()

    def _open(self) -> None:
        self._scope += 1
        if self._scope > _MOST:
            raise LimitExceeded(
                f"message {self._number}: at one place, more than {_MOST} elements are open or prefixes in scope",
                hint="nest less deeply: give nodes an rdf:nodeID, and write them side by side",
            )

    def _end(self, _: str | None) -> None:
        self._scope -= 1


def _error(message: str, number: int, column: int = 1, hint: str | None = None) -> LogError:
    # one message a line, and no line without one: the number of the message is that of the line
    return LogError(message, number=number, position=Position(number, column), hint=hint)
