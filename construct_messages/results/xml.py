"""SPARQL Query Results XML (https://www.w3.org/TR/sparql12-results-xml/), incrementally through expat.

Every element must stand where the format has it, and text only inside terms; a DOCTYPE is refused, so there are no
entities to expand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

from construct_messages.errors import IncompleteResult, TermError
from construct_messages.solutions import Solutions
from construct_messages.terms import UNBOUND, Term, blank, iri, literal, triple

_NAMESPACE: Final = "http://www.w3.org/2005/sparql-results# "
_LANGUAGE: Final = "http://www.w3.org/XML/1998/namespace lang"
_DIRECTION: Final = "http://www.w3.org/2005/11/its dir"

_TERMS: Final = frozenset({"uri", "bnode", "literal", "triple"})
_PARTS: Final = ("subject", "predicate", "object")
_CHILDREN: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset({"sparql"}),
    "sparql": frozenset({"head", "results"}),
    "head": frozenset({"variable", "link"}),
    "results": frozenset({"result"}),
    "result": frozenset({"binding"}),
    "binding": _TERMS,
    "triple": frozenset(_PARTS),
    **dict.fromkeys(_PARTS, _TERMS),
}
_TEXT: Final = frozenset({"uri", "bnode", "literal"})


class XmlDecoder:
    """See `Decoder`. Columns come as terms; IRIs are percent-encoded where the endpoint left that out.

    >>> decoder = XmlDecoder(("x",))
    >>> [list(batch) for batch in decoder.feed(
    ...     b'<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head><variable name="x"/></head>'
    ...     b'<results><result><binding name="x"><bnode>b</bnode></binding></result>'
    ... )]
    [[('_:db',)]]
    >>> decoder.close()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    construct_messages.errors.IncompleteResult: the XML result is damaged behind solution 1: no element found: line 1...
    """

    def __init__(self, variables: tuple[str, ...], *, response: int = 0, scope: str = "d") -> None:
        self._indexes = {name: index for index, name in enumerate(variables)}
        self._response = response
        self._scope = scope
        self._count = 0  # whole solutions so far
        self._solutions: list[list[Term]] = []  # those that no batch has yet
        self._solution: list[Term] = []  # the one being read
        self._open: list[_Element] = [_Element("", {})]
        self._has_results = False
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._doctype
        # newer expat holds back tokens that came in two pieces; a stream that stalls there would keep its last solution
        if hasattr(parser, "SetReparseDeferralEnabled"):
            parser.SetReparseDeferralEnabled(False)
        self._parser = parser

    def feed(self, data: bytes) -> list[Solutions]:
        """See `Decoder.feed`."""
        self._parse(data, False)
        if not self._solutions:
            return []
        batch = Solutions.of(self._solutions, response=self._response)
        self._solutions = []
        return [batch]

    def close(self) -> None:
        """See `Decoder.close`."""
        self._parse(b"", True)
        if not self._has_results:
            raise IncompleteResult("the XML result has no results element")

    def _parse(self, data: bytes, last: bool) -> None:
        try:
            self._parser.Parse(data, last)
        except expat.ExpatError as error:
            raise self._damaged(str(error)) from error

    def _damaged(self, reason: str) -> IncompleteResult:
        return IncompleteResult(f"the XML result is damaged behind solution {self._count}: {reason}")

    # --- what expat calls ---

    def _doctype(self, *_: object) -> None:
        raise self._damaged("it has a DOCTYPE, which no results document has")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.removeprefix(_NAMESPACE)
        parent = self._open[-1].name
        if local == name or local not in _CHILDREN.get(parent, ()):
            if local == "boolean" and parent == "sparql":
                raise IncompleteResult("expected the solutions of a SELECT, got the result of an ASK")
            raise self._damaged(f"unexpected element {local!r} in {parent or 'the document'!r}")
        if local == "results":
            self._has_results = True
        elif local == "result":
            self._solution = [UNBOUND] * len(self._indexes)
        if parent == "triple":
            self._open[-1].children.append(local)
        self._open.append(_Element(local, attributes))

    def _characters(self, text: str) -> None:
        element = self._open[-1]
        if element.name in _TEXT:
            element.text.append(text)
        elif text.strip():
            raise self._damaged(f"unexpected text {text.strip()[:80]!r} in {element.name!r}")

    def _end(self, _: str) -> None:
        element = self._open.pop()
        try:
            terms = self._value(element)
        except TermError as error:
            raise IncompleteResult(f"solution {self._count + 1} of the XML result: {error.message}") from error
        if element.name == "result":
            self._solutions.append(self._solution)
            self._count += 1
        elif element.name == "binding":
            index = self._indexes.get(element.attributes.get("name", ""))
            if index is not None:
                self._solution[index] = terms[0]
        else:
            self._open[-1].terms += terms

    def _value(self, element: _Element) -> list[Term]:
        """The terms that an element stands for: one, or none where it holds none by its nature."""
        text, attributes = "".join(element.text), element.attributes
        match element.name:
            case "uri":
                return [iri(text, encode=True)]
            case "bnode":
                return [blank(text, self._scope)]
            case "literal":
                return [
                    literal(
                        text,
                        datatype=attributes.get("datatype"),
                        language=attributes.get(_LANGUAGE),
                        direction=attributes.get(_DIRECTION),
                    )
                ]
            case "triple":
                if element.children != list(_PARTS):
                    raise self._damaged(f"a triple term of {', '.join(element.children) or 'nothing'}")
                return [triple(*element.terms)]
            case "binding" | "subject" | "predicate" | "object":
                if len(element.terms) != 1:
                    raise self._damaged(f"a {element.name} of {len(element.terms)} terms")
                return element.terms
        return []


@dataclass(slots=True)
class _Element:
    """An element that is open: its local name and what it has held so far."""

    name: str
    attributes: Mapping[str, str]
    text: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    terms: list[Term] = field(default_factory=list)
