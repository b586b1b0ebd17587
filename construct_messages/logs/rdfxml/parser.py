"""Parses RDF/XML with expat, piece by piece, to N-Triples, and limits the cost of a document.

No entity is ever fetched. An entity that the document itself declares is expanded if `DocumentLimits.doctype` allows a
DOCTYPE, within expat's limits (at most a hundredfold, beyond 8 MiB); an undeclared entity is an error. RDF 1.2 XML
Syntax; Namespaces in XML 1.0; XML 1.0, sections 4 and 5. `productions.py` defines the meaning of elements and
attributes.
"""

from __future__ import annotations

import logging
import re
from array import array
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn
from xml.parsers import expat

from construct_messages.errors import LimitExceeded
from construct_messages.logs.rdfxml.productions import SEPARATOR, Productions

# --- files ----------------------------------------------------------------------------------------
# An RDF/XML document as a file of N-Triples, for pyoxigraph to read. No file is opened here.

_PIECE_BYTES: Final = 1 << 16


class NTriplesFile:
    """A file of N-Triples: the statements of a document, a line each, as they are read.

    >>> import io
    >>> document = b'<C xmlns="urn:" xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" r:about="urn:s"/>'
    >>> NTriplesFile(io.BytesIO(document)).read()
    b'<urn:s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:C> .\\n'
    """

    def __init__(
        self,
        # the document, a binary file; it stays open
        file: Any,
        # the IRI that relative ones resolve against
        base: str | None = None,
        limits: DocumentLimits | None = None,
        *,
        lenient: bool = False,
    ) -> None:
        self._file, self._parser = file, RdfXmlParser(base, limits, lenient=lenient)
        self._text, self._place, self._ended = (
            b"",
            0,
            False,
        )  # unread data begins at the position

    @property
    def prefixes(self) -> dict[str, str]:
        return self._parser.prefixes

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            return b"".join(iter(lambda: self.read(_PIECE_BYTES), b""))
        while self._place == len(self._text) and not self._ended:
            data = self._file.read(_PIECE_BYTES)
            self._ended = not data
            self._text, self._place = self._parser.feed(data) if data else self._parser.close(), 0
        start, self._place = self._place, min(self._place + size, len(self._text))
        return self._text[start : self._place]

    def located(self, error: SyntaxError) -> SyntaxError:
        """Translates a reader's error in the lines to the position in the document; see `RdfXmlParser.located`."""
        return self._parser.located(error)


# --- parser ---------------------------------------------------------------------------------------

_LEAST: Final = 1 << 20
_TIMES: Final = 1 << 8
_KEPT: Final = 8
"""The number of pieces for which the positions of statements are kept; a parser of N-Triples lags by fewer."""

_STANDALONE: Final = b'<?xml version="1.0" standalone="yes"?>'
_DECLARATION: Final = re.compile(
    rb"""<\?xml\s+version\s*=\s*["']1\.[0-9]["']"""
    rb"""(?:\s+encoding\s*=\s*["'](?P<encoding>[A-Za-z][A-Za-z0-9._-]*)["'])?"""
    rb"""(?:\s+standalone\s*=\s*["'](?:yes|no)["'])?\s*\?>"""
)
_LONGEST_DECLARATION: Final = 1 << 10
_WIDE: Final = (b"\xff\xfe", b"\xfe\xff", b"\0", b"<\0")
"""The first bytes of documents in UTF-16."""

_CONTINUATION: Final = bytes(range(0x80, 0xC0))
"""The bytes of UTF-8 that do not begin a character."""

_EARLY_ENDS: Final = {
    expat.errors.codes[message]
    for message in (
        expat.errors.XML_ERROR_NO_ELEMENTS,
        expat.errors.XML_ERROR_UNCLOSED_TOKEN,
        expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
    )
}


class RdfXmlError(SyntaxError):
    """An error in RDF/XML, with its position, and whether the document is truncated.

    The message begins with the position, like those of pyoxigraph.
    """

    def __init__(self, reason: str, line: int, column: int, *, ends_early: bool = False) -> None:
        super().__init__(
            f"Parser error at line {line} column {column}: {reason}", (None, line, column, None)
        )
        self.ends_early = ends_early


@dataclass(frozen=True)
class DocumentLimits:
    """The limits of a document."""

    # the name of the document, for errors
    name: str = "the document"
    # the maximal number of characters in the terms of its statements; None: 256 times the number of bytes of the
    # document, plus 1 Mi
    characters: int | None = None
    # the maximal number of attributes of one element, and of open elements and prefixes in scope at one position;
    # None: no limit
    open: int | None = None
    # the maximal number of characters of an IRI of xml:base; None: no limit
    base: int | None = None
    # whether it may have a DOCTYPE, with entities that it declares, and an encoding other than UTF-8
    doctype: bool = True


class RdfXmlParser:
    """Parses one document: `feed(data)` for each piece, then `close()`; both return N-Triples.

    >>> parser = RdfXmlParser("http://example.org/")
    >>> document = b'<a:C xmlns:a="urn:a:" xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" r:about="s" a:p="o"/>'
    >>> print((parser.feed(document) + parser.close()).decode(), end="")
    <http://example.org/s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:a:C> .
    <http://example.org/s> <urn:a:p> "o" .
    """

    def __init__(
        self,
        # the IRI that relative ones resolve against
        base: str | None = None,
        limits: DocumentLimits | None = None,
        *,
        # whether to resolve malformed IRIs, too; the parser of N-Triples detects them
        lenient: bool = False,
    ) -> None:
        # the prefixes that the document has declared so far
        self.prefixes: dict[str, str] = {}
        self._limits = limits = limits or DocumentLimits()
        self._most = _LEAST if limits.characters is None else limits.characters
        self._characters = self._scope = 0  # of `open`: open elements and prefixes in scope
        self._lines: list[str] = []  # of N-Triples, not returned yet
        self._places = array("Q")  # of their statements
        self._pieces: deque[tuple[int, array[int]]] = deque([(0, self._places)], maxlen=_KEPT)
        self._productions = Productions(
            base,
            self._state,
            self._spend,
            self._enter_base,
            self._fail,
            self._warn,
            lenient=lenient,
        )
        # data that may contain the XML declaration; the lines and columns by which its replacement is shorter
        self._head: bytes | None = b"" if limits.doctype else None
        self._shift = 0, 0
        self._ended_at = 1, 1  # the line and column after the parsed data
        self._piece, self._fed = (
            (0, b""),
            0,
        )  # the data being parsed, and its offset in expat's input
        self._warned = False
        self._failure: RdfXmlError | None = (
            None  # of an element; an error in the XML after it takes precedence
        )
        self._expat = self._new_expat(None if limits.doctype else "utf-8")

    def feed(self, data: bytes) -> bytes:
        """Parses the next piece of the document; returns the statements that it completes, as lines of N-Triples."""
        if self._head is not None:
            data, self._head = self._head + data, None
            if len(data) < _LONGEST_DECLARATION and b"?>" not in data:
                self._head = data
                return b""
            data = self._declare_standalone(data)
        return self._parse(data, False)

    def close(self) -> bytes:
        """Ends the document, and returns its last statements."""
        data, self._head = self._declare_standalone(self._head) if self._head else b"", None
        return self._parse(data, True)

    def located(self, error: SyntaxError) -> SyntaxError:
        """Translates an error in the N-Triples to the position of the statement in the document."""
        if isinstance(error, RdfXmlError) or error.lineno is None:
            return error
        reason = error.msg.removeprefix("Parser error at ").partition(": ")[2] or error.msg
        for before, places in self._pieces:
            if before < error.lineno <= before + len(places):
                return RdfXmlError(reason, *divmod(places[error.lineno - before - 1], 1 << 32))
        return SyntaxError(reason)

    # --- called by the productions ----------------------------------------------------------------------------------

    def _state(self, subject: str, predicate: str, object: str) -> None:
        self._spend(len(subject) + len(predicate) + len(object))
        self._lines.append(f"{subject} {predicate} {object} .\n")
        line, column = self._place()
        self._places.append(line << 32 | column)

    def _spend(self, characters: int) -> None:
        self._characters += characters
        if self._characters > self._most:
            raise LimitExceeded(
                f"{self._limits.name} has more than {self._most} characters as N-Quads",
                hint="allow larger messages, or split the message"
                if self._limits.characters is not None
                else "use shorter namespaces and bases",
            )

    def _enter_base(self, base: str) -> None:
        self._spend(len(base))
        if self._limits.base is not None and len(base) > self._limits.base:
            raise LimitExceeded(
                f"{self._limits.name}: an xml:base is longer than {self._limits.base} characters",
                hint="write the IRIs of xml:base in full, and shorter",
            )

    def _fail(self, reason: str) -> NoReturn:
        raise RdfXmlError(reason, *self._place())

    def _warn(self, reason: str) -> None:
        if not self._warned:  # once for each document
            logging.getLogger(__name__).warning("line %d: %s", self._place()[0], reason)
        self._warned = True

    def _place(self) -> tuple[int, int]:
        return self._shifted(self._expat.CurrentLineNumber, self._expat.CurrentColumnNumber + 1)

    def _shifted(self, line: int, column: int) -> tuple[int, int]:
        lines, columns = self._shift
        return line + lines, column + (columns if line == 1 else 0)

    # --- expat ------------------------------------------------------------------------------------------------------

    def _new_expat(self, encoding: str | None) -> expat.XMLParserType:
        parser = expat.ParserCreate(encoding, namespace_separator=SEPARATOR)
        parser.namespace_prefixes = True
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._productions.text
        parser.CommentHandler = self._productions.comment
        parser.ProcessingInstructionHandler = self._productions.instruction
        parser.StartNamespaceDeclHandler = self._start_prefix
        parser.EndNamespaceDeclHandler = self._end_prefix
        if self._limits.doctype:
            parser.NotStandaloneHandler = self._external_dtd
            # without a handler, expat skips external entities
            parser.ExternalEntityRefHandler = self._external_entity
            parser.SkippedEntityHandler = self._skipped_entity
        else:
            parser.XmlDeclHandler = self._declaration
            parser.StartDoctypeDeclHandler = self._doctype
        return parser

    def _declare_standalone(self, head: bytes) -> bytes:
        """Replaces the XML declaration by one with `standalone`, and returns the rest.

        With an external DTD, which is never read here, XML allows to skip an entity that the document itself does not
        declare, and so its text. In a standalone document such an entity is an error.
        """
        head = head.removeprefix(b"\xef\xbb\xbf")
        declaration = _DECLARATION.match(head)
        if head.startswith(_WIDE) or (declaration is None and head.startswith(b"<?xml ")):
            return head
        encoding, replaced = "utf-8", b""
        if declaration is not None:
            replaced = declaration.group()
            encoding = (declaration["encoding"] or b"utf-8").decode()
        self._expat = self._new_expat(encoding)
        # without a line end, so that only columns of the first line change
        self._expat.Parse(_STANDALONE, False)
        self._fed = len(_STANDALONE)
        *lines, last = replaced.split(b"\n")
        self._shift = len(lines), len(last) - len(_STANDALONE)
        self._ended_at = len(lines) + 1, len(last) + 1
        return head[len(replaced) :]

    def _parse(self, data: bytes, final: bool) -> bytes:
        if self._limits.characters is None:
            self._most += _TIMES * len(data)
        self._piece = self._fed, data
        self._fed += len(data)
        try:
            self._expat.Parse(data, final)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            place = self._shifted(error.lineno, error.offset + 1)
            if error.code in _EARLY_ENDS:
                place = self._after(data)
                raise RdfXmlError(
                    f"the document ends early: {reason}", *place, ends_early=True
                ) from error
            raise RdfXmlError(f"not well-formed XML: {reason}", *place) from error
        if self._failure is not None:
            raise self._failure
        self._ended_at = self._after(data)
        statements, self._lines = "".join(self._lines), []
        if self._places:
            before, places = self._pieces[-1]
            self._places = array("Q")
            self._pieces.append((before + len(places), self._places))
        return statements.encode()

    def _after(self, data: bytes) -> tuple[int, int]:
        """The position after the next data."""
        line, column = self._ended_at
        *lines, last = data.rsplit(b"\n", 1)
        return line + data.count(b"\n"), (1 if lines else column) + len(
            last.translate(None, _CONTINUATION)
        )

    def _external_dtd(self) -> int:
        self._fail("the DOCTYPE needs an external DTD, and none is ever fetched: leave it out")

    def _external_entity(
        self, _context: str, _base: str | None, system: str | None, _public: str | None
    ) -> int:
        self._fail(
            f"an entity refers to {system or 'an external resource'}, and nothing is ever fetched: write its text"
        )

    def _skipped_entity(self, name: str, is_parameter_entity: bool) -> None:
        # declarations of a parameter entity are then undefined
        if not is_parameter_entity:
            self._fail(f"undefined entity &{name};")

    def _declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding is not None and encoding.lower() != "utf-8":
            raise RdfXmlError(
                f"the encoding is {encoding}; write UTF-8, and declare it or no encoding", 1, 1
            )

    def _doctype(self, *_: object) -> None:
        before, data = self._piece
        head = data[: data.rfind(b"<!DOCTYPE", 0, self._expat.CurrentByteIndex - before) + 1]
        line, column = self._after(head) if head else self._place()
        reason = "a DOCTYPE is not allowed in a message; write the text of its entities"
        raise RdfXmlError(reason, line, column - bool(head))

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._limits.open is not None and len(attributes) > self._limits.open:
            raise LimitExceeded(
                f"{self._limits.name}: an element has more than {self._limits.open} attributes"
            )
        self._open()
        if self._failure is None:
            try:
                self._productions.start(name, attributes)
            except RdfXmlError as error:
                self._failure = error
                self._expat.CharacterDataHandler = None
                self._expat.CommentHandler = self._expat.ProcessingInstructionHandler = None

    def _end(self, _: str) -> None:
        if self._failure is None:
            self._productions.end()
        self._scope -= 1

    def _start_prefix(self, prefix: str | None, namespace: str | None) -> None:
        if namespace:
            self.prefixes[prefix or ""] = namespace
        self._open()

    def _end_prefix(self, _: str | None) -> None:
        self._scope -= 1

    def _open(self) -> None:
        self._scope += 1
        if self._limits.open is not None and self._scope > self._limits.open:
            raise LimitExceeded(
                f"{self._limits.name}: at one place, more than {self._limits.open} elements are open or prefixes "
                "in scope",
                hint="nest less: refer to nodes by rdf:nodeID, and write them one after the other",
            )
