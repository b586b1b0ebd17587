"""SPARQL Query Results XML (https://www.w3.org/TR/sparql12-results-xml/), incrementally through expat.

Elements and text are only accepted where the format allows them; a DOCTYPE is an error, so there are no entities to
expand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

from construct_messages.errors import IncompleteResult, TermError, shown
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import (
    UNBOUND,
    UNREADABLE,
    Lenience,
    Term,
    blank,
    iri,
    literal,
    triple,
)
from construct_messages.sparql.results import (
    DEEPEST,
    MOST_COLUMNS,
    check_head,
    check_members,
    checked_iri,
)

_NAMESPACE: Final = "http://www.w3.org/2005/sparql-results# "
_LANGUAGE: Final = "http://www.w3.org/XML/1998/namespace lang"
_ITS: Final = "http://www.w3.org/2005/11/its "
_DIRECTION: Final = f"{_ITS}dir"

_TRIPLES: Final = frozenset({"triple", "statement"})  # Stardog writes the second
_TERMS: Final = frozenset({"uri", "bnode", "literal"}) | _TRIPLES
_PARTS: Final = ("subject", "predicate", "object")
_SHORT_PARTS: Final = ("s", "p", "o")
_GRAPH: Final = "g"  # that has the triple, which is no part of the term
_POSITIONS: Final = frozenset({*_PARTS, *_SHORT_PARTS, _GRAPH})
# an attribute with another name, such as `lang`, is an error: without it, this would be another term
_ATTRIBUTES: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(_TERMS, frozenset()),
    "literal": frozenset({"datatype", _LANGUAGE, _DIRECTION, f"{_ITS}version"}),
}
_CHILDREN: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset({"sparql"}),
    "sparql": frozenset({"head", "results"}),
    "head": frozenset({"variable", "link"}),
    "results": frozenset({"result"}),
    "result": frozenset({"binding"}),
    "binding": _TERMS,
    "triple": _POSITIONS - {_GRAPH},
    "statement": _POSITIONS,
    **dict.fromkeys(_POSITIONS, _TERMS),
}
_TEXT: Final = frozenset({"uri", "bnode", "literal"})
_CLOSE: Final = " )>>"
_TOKEN: Final = 1 << 10  # bytes of a tag, comment or reference; few are longer


class XmlDecoder:
    """See `Decoder`. Columns have terms; IRIs are percent-encoded if the endpoint omitted that.

    >>> decoder = XmlDecoder(("x",))
    >>> [list(batch) for batch in decoder.feed(
    ...     b'<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head><variable name="x"/></head>'
    ...     b'<results><result><binding name="x"><bnode>b</bnode></binding></result>'
    ... )]
    [[('_:db',)]]
    >>> decoder.close()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    construct_messages.errors.IncompleteResult: the XML result is damaged after solution 1: no element found: ...
    """

    def __init__(
        self,
        variables: tuple[str, ...],
        *,
        response: int = 0,
        scope: str = "d",
        lenience: Lenience | None = None,
    ) -> None:
        self._variables = variables
        self._indexes = {name: index for index, name in enumerate(variables)}
        self._declared: dict[str, None] | None = None  # by the head, in order
        self._response = response
        self._scope, self._lenience = scope, lenience
        self._count = 0  # whole solutions so far
        self._solutions: list[list[Term]] = []  # solutions for the next batch
        self._solution: list[Term] = []  # the one being read
        self._bound: set[str] = set()  # the names bound in it
        self._open: list[_Element] = [_Element("", {})]
        self._sections: set[str] = set()  # of the document, so far
        self._depth = 0  # of triple terms
        self._fed = 0  # bytes
        self._held = bytearray()  # data that the parser has not been fed yet
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._doctype
        # newer expat defers tokens that arrive in two pieces, which would delay the last solution of a stalled stream
        if hasattr(parser, "SetReparseDeferralEnabled"):
            parser.SetReparseDeferralEnabled(False)
        self._parser = parser

    def feed(self, data: bytes) -> list[Solutions]:
        self._held += data
        # expat rescans an incomplete token from its start, so a long token is fed in pieces of doubling size; the data
        # after it is held back as well, possibly until `close`
        pending = self._fed - self._parser.CurrentByteIndex
        if pending <= _TOKEN or len(self._held) >= pending:
            self._parse(False)
        return self._taken()

    def close(self) -> list[Solutions]:
        self._parse(True)
        if "results" not in self._sections:
            raise IncompleteResult("the XML result has no results element")
        if self._declared is not None:  # it may be the last element
            check_head("XML", self._declared, self._variables)
        return self._taken()

    def _taken(self) -> list[Solutions]:
        if not self._solutions:
            return []
        batch = Solutions.of(self._solutions, response=self._response)
        self._solutions = []
        return [batch]

    def _parse(self, last: bool) -> None:
        data = bytes(self._held)
        self._held.clear()
        self._fed += len(data)
        try:
            self._parser.Parse(data, last)
        except expat.ExpatError as error:
            raise self._damaged(str(error)) from error
        except (
            LookupError,
            ValueError,
        ) as error:  # for an encoding that Python does not have, or with several bytes per character
            if len(self._open) > 1:
                raise
            raise self._damaged(f"it cannot be read in its declared encoding: {error}") from error

    def _damaged(self, reason: str) -> IncompleteResult:
        return IncompleteResult(
            f"the XML result is damaged after solution {self._count}: {shown(reason)}"
        )

    # --- called by expat ----

    def _doctype(self, *_: object) -> None:
        raise self._damaged("it has a DOCTYPE, which no results document has")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.removeprefix(_NAMESPACE)
        parent = self._open[-1].name
        if local == name or local not in _CHILDREN.get(parent, ()):
            if local == "boolean" and parent == "sparql":
                raise IncompleteResult(
                    "expected the solutions of a SELECT, got the result of an ASK"
                )
            raise self._damaged(f"unexpected element {local!r} in {parent or 'the document'!r}")
        if parent in ("", "sparql"):
            check_members(
                "XML", {name.rpartition(" ")[2]: value for name, value in attributes.items()}
            )
        if parent == "sparql":
            if local in self._sections:
                raise self._damaged(f"a second {local}")
            self._sections.add(local)
        if local == "results":
            if self._declared is not None:
                check_head("XML", self._declared, self._variables)
        elif local == "result":
            self._solution = [UNBOUND] * len(self._indexes)
            self._bound.clear()
        elif local == "head":
            self._declared = {}
        elif local == "variable":
            self._declare(attributes.get("name"))
        elif local in _ATTRIBUTES and not attributes.keys() <= _ATTRIBUTES[local]:
            unknown = min(attributes.keys() - _ATTRIBUTES[local])
            raise self._damaged(f"unexpected attribute {unknown!r} of {local!r}")
        elif local in _TRIPLES:
            self._depth += 1
            if self._depth > DEEPEST:
                raise self._damaged(f"more than {DEEPEST} triple terms are nested")
        if parent in _TRIPLES:
            self._open[-1].children.append(local)
        self._open.append(_Element(local, attributes))

    def _declare(self, name: str | None) -> None:
        if name is None:
            raise self._damaged("a variable without a name")
        assert self._declared is not None
        self._declared[name] = None
        if len(self._declared) > len(self._variables) + MOST_COLUMNS:
            check_head("XML", self._declared, self._variables)

    def _bind(self, name: str | None, term: Term) -> None:
        if name is None:
            raise self._damaged("a binding without a name")
        if name in self._bound:
            raise self._damaged(f"two bindings for {name!r} in a solution")
        self._bound.add(name)
        if (index := self._indexes.get(name)) is not None:
            self._solution[index] = term
        elif self._declared is None or name not in self._declared:
            raise self._damaged(f"a binding for {name!r}, which was not requested")

    def _characters(self, text: str) -> None:
        element = self._open[-1]
        if element.name in _TEXT:
            element.text.append(text)
        elif text.strip():
            raise self._damaged(f"unexpected text {text.strip()[:80]!r} in {element.name!r}")

    def _end(self, _: str) -> None:
        element = self._open.pop()
        try:
            parts = self._value(element)
        except TermError as error:
            if self._lenience is None or not self._lenience.leaves_out(error):
                raise IncompleteResult(
                    f"solution {self._count + 1} of the XML result: {shown(error.message)}",
                    hint=error.hint,
                ) from error
            parts = [UNREADABLE]
        if element.name == "result":
            self._solutions.append(self._solution)
            self._count += 1
        elif element.name == "binding":
            self._bind(element.attributes.get("name"), Term("".join(parts)))
        elif parts:
            self._open[-1].terms.append(parts)

    def _value(self, element: _Element) -> list[str]:
        """The parts of an element's term, so that it is not copied for each enclosing term."""
        text, attributes = "".join(element.text), element.attributes
        match element.name:
            case "uri":
                return [checked_iri(iri(text, encode=True, lenience=self._lenience))]
            case "bnode":
                return [blank(text, self._scope)]
            case "literal":
                return [
                    literal(
                        text,
                        datatype=attributes.get("datatype"),
                        language=attributes.get(_LANGUAGE),
                        direction=attributes.get(_DIRECTION),
                        lenience=self._lenience,
                    )
                ]
            case "triple" | "statement":
                self._depth -= 1
                names = tuple(name for name in element.children if name != _GRAPH)
                if names not in (_PARTS, _SHORT_PARTS):
                    raise self._damaged(
                        f"a triple term of {', '.join(element.children) or 'nothing'}"
                    )
                named = zip(element.children, element.terms, strict=True)
                first, second, last = (parts for name, parts in named if name != _GRAPH)
                subject, predicate = Term("".join(first)), Term("".join(second))
                # only the object can be a triple term, too (RDF 1.2 Concepts, section 3.1)
                return [
                    triple(subject, predicate, UNBOUND).removesuffix(_CLOSE),
                    *last,
                    _CLOSE,
                ]
            case name if name == "binding" or name in _POSITIONS:
                if len(element.terms) != 1:
                    raise self._damaged(f"a {element.name} of {len(element.terms)} terms")
                return element.terms[0]
        return []


@dataclass(slots=True)
class _Element:
    """An open element: its local name and its content so far."""

    name: str
    attributes: Mapping[str, str]
    text: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    terms: list[list[str]] = field(default_factory=list)
