"""RDF/XML logs: one XML document a line, so that a line end is the delimiter.

RDF Messages, section 3 for the lines; RDF 1.1 XML Syntax (https://www.w3.org/TR/rdf-syntax-grammar/) for a message.
Statements are read by pyoxigraph, which takes a document that ends early for whole: so expat looks first whether it is
well-formed, and refuses a DOCTYPE, and with it every entity. What no RDF of this version has is `carry.py`'s to refuse;
what XML cannot write, this room's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final
from xml.parsers import expat
from xml.sax.saxutils import escape

import pyoxigraph as ox

from construct_messages.errors import LimitExceeded, LogError, Position, TermError, UnsupportedByFormat
from construct_messages.formats import RDF_XML, Syntax
from construct_messages.labels import Labels
from construct_messages.logs.capabilities import Carrier
from construct_messages.logs.from_pyoxigraph import most_characters, to_message
from construct_messages.logs.line_buffer import WholeLines
from construct_messages.logs.plain_encoder import ByMessage
from construct_messages.logs.turtle.declarations import MOST_BASE
from construct_messages.message import Message
from construct_messages.template import Template
from construct_messages.terms import RDF, Lenience, Term, is_blank, is_literal, literal_parts

assert RDF_XML.own is not None
_SYNTAX: Final[Syntax] = RDF_XML.own

# --- writing --------------------------------------------------------------------------------------------------------

_NO_CHARACTER: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, not even as a character reference (section 2.2)."""

# RDF 1.1 XML Syntax, section 6.1.4, and rdf:li, which every reader replaces by rdf:_1, rdf:_2 …
_NO_PROPERTIES: Final = frozenset(
    f"{RDF}{name}"
    for name in (
        *("RDF", "ID", "about", "parseType", "resource", "nodeID", "datatype", "Description"),
        *("aboutEach", "aboutEachPrefix", "bagID", "li"),
    )
)
# Namespaces in XML 1.0, section 3: these two have one prefix each, which no element name may have
_RESERVED: Final = {"xml": "http://www.w3.org/XML/1998/namespace", "xmlns": "http://www.w3.org/2000/xmlns/"}
_HINT: Final = "write N-Triples or Turtle, or Jelly"
# predicates and characters to remember
_MOST_NAMES: Final = 1 << 12


class RdfXmlEncoder:
    """Writes messages as RDF/XML, one a line: an `rdf:Description` a subject, in order of first appearance.

    Args:
        prefixes: namespace IRIs by prefix; a message declares those it uses. One that XML has no name for is left out.

    >>> from construct_messages.message import Quad
    >>> from construct_messages.terms import iri, literal
    >>> encoder = RdfXmlEncoder({"ex": "http://example.org/"})
    >>> message = Message([Quad(Term("_:d1"), iri("http://example.org/p"), literal("a\\nb", language="en"))])
    >>> print((encoder.start() + encoder.encode(message) + encoder.finish()).decode(), end="")
    <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:ex="http://example.org/">\
<rdf:Description rdf:nodeID="b0"><ex:p xml:lang="en">a&#10;b</ex:p></rdf:Description></rdf:RDF>
    """

    def __init__(self, prefixes: Mapping[str, str] | None = None) -> None:
        self._carrier = Carrier(RDF_XML, _SYNTAX)
        self._messages = 0
        self._names = _Names(prefixes or {})

    def start(self) -> bytes:
        """What stands before the first message: nothing."""
        return b""

    def encode(self, message: Message) -> bytes:
        """One message and the end of its line.

        Raises:
            UnsupportedByFormat: a named graph, a triple term, a base direction, a predicate that is the name of no
                element, or a character that XML cannot hold.
        """
        self._messages += 1
        self._carrier.check(message)
        try:
            return self._document(message).encode()
        except UnsupportedByFormat as error:
            raise UnsupportedByFormat(f"message {self._messages}: {error.message}", hint=error.hint) from None

    def finish(self) -> bytes:
        """What stands after the last message: nothing."""
        return b""

    def for_template(self, template: Template) -> ByMessage:
        """The encoder for batches of a template's solutions."""
        return ByMessage(self.encode, template)

    def _document(self, message: Message) -> str:
        subjects: dict[Term, list[tuple[Term, Term]]] = {}
        for subject, predicate, object, _ in message:
            subjects.setdefault(subject, []).append((predicate, object))
        labels: dict[Term, str] = {}
        declared = {RDF: "rdf"}
        nodes = []
        for subject, statements in subjects.items():
            nodes.append(f"<rdf:Description {_node('about', subject, labels)}>")
            nodes += [
                _property(self._names.element(predicate, declared), object, labels) for predicate, object in statements
            ]
            nodes.append("</rdf:Description>")
        namespaces = "".join(
            f' xmlns{":" if prefix else ""}{prefix}="{_escape(namespace)}"' for namespace, prefix in declared.items()
        )
        return f"<rdf:RDF{namespaces}>{''.join(nodes)}</rdf:RDF>\n" if nodes else f"<rdf:RDF{namespaces}/>\n"


class _Names:
    """The names of the elements that stand for predicates."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self._prefixes = {RDF: "rdf"}
        for prefix, namespace in prefixes.items():
            if prefix not in ("rdf", *_RESERVED) and namespace not in _RESERVED.values() and _is_name(prefix or "_"):
                self._prefixes.setdefault(namespace, prefix)
        # of two namespaces that both begin an IRI, the longer one shortens it more
        self._namespaces = sorted(self._prefixes, key=len, reverse=True)
        self._made_up = "ns"
        while any(prefix.startswith(self._made_up) for prefix in prefixes):
            self._made_up += "_"
        self._split = lru_cache(_MOST_NAMES)(self._split_anew)

    def element(self, predicate: Term, declared: dict[str, str]) -> str:
        """The qualified name; its prefix is added to the message's, which are by namespace."""
        namespace, local = self._split(predicate)
        prefix = declared.get(namespace)
        if prefix is None:
            prefix = declared[namespace] = self._prefixes.get(namespace, f"{self._made_up}{len(declared)}")
        return f"{prefix}:{local}" if prefix else local

    def _split_anew(self, predicate: Term) -> tuple[str, str]:
        value = predicate[1:-1]
        if value in _NO_PROPERTIES:
            raise UnsupportedByFormat(f"RDF/XML takes no {predicate} for a predicate", hint=_HINT)
        for namespace in self._namespaces:
            if value.startswith(namespace) and _is_name(value[len(namespace) :]):
                return namespace, value[len(namespace) :]
        start = end = len(value)
        while start and _in_name(value[start - 1]):
            start -= 1
        # an IRI has a colon, which no local name has: some of it always remains for the namespace
        while start < end and not (_begins_name(value[start]) and value[:start] not in _RESERVED.values()):
            start += 1
        if start == end:
            raise UnsupportedByFormat(f"no name of an XML element can stand for the predicate {predicate}", hint=_HINT)
        return value[:start], value[start:]


def _is_name(text: str) -> bool:
    return text != "" and _begins_name(text[0]) and all(map(_in_name, text))


def _begins_name(char: str) -> bool:
    return char.isalpha() or char == "_" if char.isascii() else _is_well_formed(f"<{char}/>")


def _in_name(char: str) -> bool:
    return char.isalnum() or char in "_-." if char.isascii() else _is_well_formed(f"<_{char}/>")


@lru_cache(_MOST_NAMES)
def _is_well_formed(document: str) -> bool:
    # expat knows the names of XML's fourth edition only, and what it refuses, many cannot read
    try:
        expat.ParserCreate("utf-8").Parse(document.encode(), True)
    except expat.ExpatError:
        return False
    return True


def _property(name: str, object: Term, labels: dict[Term, str]) -> str:
    if not is_literal(object):
        return f"<{name} {_node('resource', object, labels)}/>"
    value, datatype, language, _ = literal_parts(object)
    attribute = ""
    if language:
        attribute = f' xml:lang="{language}"'
    elif datatype:
        attribute = f' rdf:datatype="{_escape(datatype)}"'
    return f"<{name}{attribute}>{_escape(value)}</{name}>"


def _node(attribute: str, term: Term, labels: dict[Term, str]) -> str:
    if is_blank(term):
        # a label need not be a name in XML; it is of this document alone, so any other does as well
        return f'rdf:nodeID="{labels.setdefault(term, f"b{len(labels)}")}"'
    return f'rdf:{attribute}="{_escape(term[1:-1])}"'


def _escape(text: str) -> str:
    if bad := _NO_CHARACTER.search(text):
        raise UnsupportedByFormat(
            f"XML cannot hold the character U+{ord(bad.group()):04X} in {text[:80]!r}", hint=_HINT
        )
    # a line end would end the message, and parsers would take a carriage return for one
    return escape(text, {'"': "&quot;", "\n": "&#10;", "\r": "&#13;"})


# --- reading --------------------------------------------------------------------------------------------------------

_MOST: Final = 1024
"""Attributes of one element; elements open and prefixes in scope at one place: parsers take time quadratic in each."""

_BASE: Final = f"{_RESERVED['xml']} base"  # as expat names the attribute

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
        base: the IRI that relative IRIs resolve against, where a document has no `xml:base`.
        message_bytes: how long a line may be.
        labels: of the log; None: with a prefix that no other has.
        lenience: see `decoder_for`.

    >>> decoder = RdfXmlDecoder(message_bytes=1 << 20)
    >>> line = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>'
    >>> list(decoder.feed(line.encode())), list(decoder.feed(b"\\n"))
    ([], [<Message, empty>])
    """

    syntax: Final[Syntax] = _SYNTAX

    def __init__(
        self,
        *,
        base: str | None = None,
        message_bytes: int,
        labels: Labels | None = None,
        lenience: Lenience | None = None,
    ) -> None:
        self._base, self._message_bytes = base, message_bytes
        self._labels, self._lenience = labels or Labels(), lenience
        self._lines = WholeLines(message_bytes)  # a line is a message
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
