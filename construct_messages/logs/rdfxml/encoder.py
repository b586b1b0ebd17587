"""The RDF/XML encoder: writes one XML document per line, with line ends as delimiters.

RDF Messages, section 3 for the lines; RDF 1.1 XML Syntax (https://www.w3.org/TR/rdf-syntax-grammar/) for a message.
Readers resolve all IRIs except those of predicates, and thereby remove dot segments: such IRIs are rejected.
`logs/checking.py` rejects features that this version of RDF does not have; this module rejects terms that XML cannot
represent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Final
from xml.parsers import expat
from xml.sax.saxutils import escape

from construct_messages.errors import UnsupportedByFormat
from construct_messages.logs import EncoderOptions
from construct_messages.logs.text_encoder import LayoutEncoder, Place, Texts, plain
from construct_messages.rdf.formats import Format, Syntax
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import RDF, Term, is_blank, is_literal, literal_parts

_NO_CHARACTER: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow, even as character references (section 2.2)."""

# RDF 1.1 XML Syntax, section 6.1.4, and rdf:li, which every reader replaces by rdf:_1, rdf:_2 …
_NO_PROPERTIES: Final = frozenset(
    f"{RDF}{name}"
    for name in (
        *("RDF", "ID", "about", "parseType", "resource", "nodeID", "datatype", "Description"),
        *("aboutEach", "aboutEachPrefix", "bagID", "li"),
    )
)
# Namespaces in XML 1.0, section 3: these two have fixed prefixes, which element names must not have
_RESERVED: Final = {
    "xml": "http://www.w3.org/XML/1998/namespace",
    "xmlns": "http://www.w3.org/2000/xmlns/",
}
# RFC 3986, sections 3 and 5.2.4: the text before a dot segment of the path, and the segment
_DOT_SEGMENT: Final = re.compile(r"[^:/?#]++:(?://[^/?#]*+)?+(?:[^?#]*/)?\.{1,2}(?![^/?#])")
_HINT: Final = "write N-Triples or Turtle, or Jelly"
# labels that are XML names, except those that replace others
_LABEL: Final = re.compile(r"(?!x-)[A-Za-z_][A-Za-z0-9_.-]*")
# the numbers of cached predicates and characters
_MOST_NAMES: Final = 1 << 12


class RdfXmlEncoder(LayoutEncoder):
    """Writes messages as RDF/XML, one per line: an `rdf:Description` per subject, in order of first appearance.
    `options`: a message declares those of their prefixes that it uses; a prefix that is not an XML name is omitted.

    >>> from construct_messages.rdf.formats import RDF_XML
    >>> from construct_messages.rdf.message import Quad
    >>> from construct_messages.rdf.terms import iri, literal
    >>> encoder = RdfXmlEncoder(RDF_XML, RDF_XML.own, EncoderOptions({"ex": "http://example.org/"}))
    >>> message = Message([Quad(Term("_:d1"), iri("http://example.org/p"), literal("a\\nb", language="en"))])
    >>> print((encoder.start() + encoder.encode(message) + encoder.finish()).decode(), end="")
    <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:ex="http://example.org/">\
<rdf:Description rdf:nodeID="d1"><ex:p xml:lang="en">a&#10;b</ex:p></rdf:Description></rdf:RDF>
    """

    literals = True
    predicates = (
        None  # each is the name of an element, and the namespaces of all are declared before
    )

    def __init__(self, format: Format, syntax: Syntax, options: EncoderOptions) -> None:
        super().__init__(
            format,
            syntax,
            {
                "subject": Texts(partial(_node, "about")),
                "resource": Texts(partial(_node, "resource")),
                "literal": Texts(_literal),
            },
        )
        self._names = _Names(options.prefixes or {})

    def write_by(self, message: Message, place: Place) -> str:
        return f"{self._document(message, place)}\n"

    def write_document(self, message: Message) -> str:
        return self._document(message, plain(self.texts))

    def _document(self, message: Message, place: Place) -> str:
        subjects: dict[Term, list[tuple[Term, Term]]] = {}
        for subject, predicate, object, _ in message:
            subjects.setdefault(subject, []).append((predicate, object))
        declared = {RDF: "rdf"}
        nodes = []
        for subject, statements in subjects.items():
            nodes.append(f"<rdf:Description {place('subject')(subject)}>")
            for predicate, object in statements:
                name = self._names.element(predicate, declared)
                if is_literal(object):
                    nodes.append(f"<{name}{place('literal')(object)}</{name}>")
                else:
                    nodes.append(f"<{name} {place('resource')(object)}/>")
            nodes.append("</rdf:Description>")
        namespaces = "".join(
            f' xmlns{":" if prefix else ""}{prefix}="{_escape(namespace)}"'
            for namespace, prefix in declared.items()
        )
        return (
            f"<rdf:RDF{namespaces}>{''.join(nodes)}</rdf:RDF>"
            if nodes
            else f"<rdf:RDF{namespaces}/>"
        )


class _Names:
    """The names of the elements for predicates."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self._prefixes = {RDF: "rdf"}
        for prefix, namespace in prefixes.items():
            if (
                prefix not in ("rdf", *_RESERVED)
                and namespace not in _RESERVED.values()
                and _is_name(prefix or "_")
            ):
                self._prefixes.setdefault(namespace, prefix)
        # if several namespaces match an IRI, the longest one shortens it most
        self._namespaces = sorted(self._prefixes, key=len, reverse=True)
        self._made_up = "ns"
        while any(prefix.startswith(self._made_up) for prefix in prefixes):
            self._made_up += "_"
        self._split = lru_cache(_MOST_NAMES)(self._split_anew)

    def element(self, predicate: Term, declared: dict[str, str]) -> str:
        """Returns the qualified name, and adds its prefix to those of the message, by namespace."""
        namespace, local = self._split(predicate)
        prefix = declared.get(namespace)
        if prefix is None:
            prefix = declared[namespace] = self._prefixes.get(
                namespace, f"{self._made_up}{len(declared)}"
            )
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
        # an IRI has a colon, which local names cannot contain, so the namespace is never empty
        while start < end and not (
            _begins_name(value[start]) and value[:start] not in _RESERVED.values()
        ):
            start += 1
        if start == end:
            raise UnsupportedByFormat(
                f"no name of an XML element can represent the predicate {predicate}", hint=_HINT
            )
        return value[:start], value[start:]


def _is_name(text: str) -> bool:
    return text != "" and _begins_name(text[0]) and all(map(_in_name, text))


def _begins_name(char: str) -> bool:
    return char.isalpha() or char == "_" if char.isascii() else _is_well_formed(f"<{char}/>")


def _in_name(char: str) -> bool:
    return char.isalnum() or char in "_-." if char.isascii() else _is_well_formed(f"<_{char}/>")


@lru_cache(_MOST_NAMES)
def _is_well_formed(document: str) -> bool:
    # expat only supports the names of XML's fourth edition, and many readers use it
    try:
        expat.ParserCreate("utf-8").Parse(document.encode(), True)
    except expat.ExpatError:
        return False
    return True


def _node(attribute: str, term: Term) -> str:
    if is_blank(term):
        label = term[2:]
        return f'rdf:nodeID="{label if _LABEL.fullmatch(label) else "x-" + label.encode().hex()}"'
    return f'rdf:{attribute}="{_reference(term[1:-1])}"'


def _literal(term: Term) -> str:
    """Returns the rest of a start tag, and the text after it."""
    value, datatype, language, _ = literal_parts(term)
    attribute = ""
    if language:
        attribute = f' xml:lang="{language}"'
    elif datatype:
        attribute = f' rdf:datatype="{_reference(datatype)}"'
    return f"{attribute}>{_escape(value)}"


def _reference(iri: str) -> str:
    """Returns the value of an attribute with an IRI, which readers resolve (RDF 1.1 XML Syntax, section 5.3)."""
    if _DOT_SEGMENT.match(iri):
        raise UnsupportedByFormat(
            f"readers of RDF/XML resolve the dot segments of <{iri}>, so that it becomes another IRI",
            hint=_HINT,
        )
    return _escape(iri)


def _escape(text: str) -> str:
    if bad := _NO_CHARACTER.search(text):
        raise UnsupportedByFormat(
            f"XML cannot hold the character U+{ord(bad.group()):04X} in {text[:80]!r}", hint=_HINT
        )
    # a line end would end the message, and parsers convert a carriage return to one
    return escape(text, {'"': "&quot;", "\n": "&#10;", "\r": "&#13;"})
