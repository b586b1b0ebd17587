"""Messages as people read them: subjects with their properties, blank nodes nested where they are named once.

What templates show, and what they link to. Everything has a bound, and what was left out is counted. No HTML here.

The page for queries renders messages by itself (`pages/static/message-view.js`): it reads logs in the browser, also
those of another server. HTML of streams needs no script, so it has no button for more, and its bounds are larger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from construct_messages.message import Message, Quad
from construct_messages.streams.vocabulary import DCTERMS, LDES, PREFIXES, TREE
from construct_messages.terms import (
    RDF,
    XSD,
    Term,
    is_blank,
    is_literal,
    is_triple,
    literal_parts,
    triple_parts,
)

Href = Callable[[str], str | None]
"""What a page links to for an IRI; None: nothing."""

_SHORT: Final = {**PREFIXES, "dcterms": DCTERMS, "ldes": LDES, "rdf": RDF, "tree": TREE}
_TYPE: Final = f"<{RDF}type>"
_FIRST, _REST, _NIL = f"<{RDF}first>", f"<{RDF}rest>", f"<{RDF}nil>"
_STRING: Final = f"{XSD}string"

_MOST_QUADS: Final = 1000
_MOST_CHARACTERS: Final = 2000
_DEEPEST: Final = 12

_Properties = dict[Term, list[Term]]


class Shown(NamedTuple):
    """A term, as it is shown.

    Args:
        kind: `iri`, `blank`, `literal` or `triple`.
        text: an IRI shortened, where there is a prefix; the characters of a literal.
        title: the whole IRI.
        href: what it links to; None: nothing.
        language, direction: of a literal.
        datatype: of a literal, unless it is implied.
        omitted: how many characters of a literal or of an IRI were left out.
        parts: of a triple term.
    """

    kind: str
    text: str
    title: str = ""
    href: str | None = None
    language: str | None = None
    direction: str | None = None
    datatype: Shown | None = None
    omitted: int = 0
    parts: Sequence[Shown] = ()


@dataclass
class Node:
    """A subject or an object.

    Args:
        term: what it is.
        properties: its properties here; for an object that is nested, or a subject.
        items: of a list; None: it is none.
        nested: whether it replaces its only mention.
    """

    term: Shown
    properties: list[tuple[Shown, list[Node]]] = field(default_factory=list)
    items: list[Node] | None = None
    nested: bool = False


class GraphShown(NamedTuple):
    """A graph of a message.

    Args:
        name: None: the default graph.
        subjects: in the order of the message.
    """

    name: Shown | None
    subjects: list[Node]


class Card(NamedTuple):
    """A message.

    Args:
        graphs: in the order of the message.
        quads: how many it has.
        omitted: how many of them were left out.
    """

    graphs: list[GraphShown]
    quads: int
    omitted: int


def card(message: Message, href: Href) -> Card:
    """A message as it is shown.

    Args:
        message: of which the first 1000 quads are shown.
        href: what IRIs link to.

    >>> from construct_messages.terms import iri, literal
    >>> blank = Term("_:b")
    >>> message = Message([Quad(iri("urn:s"), iri("urn:p"), blank), Quad(blank, iri("urn:q"), literal("o"))])
    >>> (subject,) = card(message, lambda iri: None).graphs[0].subjects
    >>> subject.term.text, subject.properties[0][1][0].properties[0][1][0].term.text
    ('urn:s', 'o')
    """
    quads = [quad for quad, _ in zip(message, range(_MOST_QUADS), strict=False)]
    graphs: dict[Term | None, list[Quad]] = {}
    for quad in quads:
        graphs.setdefault(quad.graph, []).append(quad)
    mentions = _mentions(quads)
    shown = [
        GraphShown(
            None if name is None else show(name, href), _Nesting(of, mentions, href).subjects()
        )
        for name, of in graphs.items()
    ]
    return Card(shown, len(message), len(message) - len(quads))


def _mentions(quads: Iterable[Quad]) -> Mapping[Term, int]:
    """How often each blank node is in a position where it needs its label, or would be nested."""
    found: Counter[Term] = Counter()
    subjects: dict[Term, set[Term | None]] = {}
    for quad in quads:
        if is_blank(quad.subject):
            subjects.setdefault(quad.subject, set()).add(quad.graph)
        if is_blank(quad.object):
            found[quad.object] += 1
        elif is_triple(quad.object):
            found.update(dict.fromkeys(_blanks(quad.object), 2))
        if quad.graph is not None and is_blank(quad.graph):
            found[quad.graph] += 2
    for node, graphs in subjects.items():
        found[node] += 2 * (len(graphs) - 1)  # several graphs have statements about it
    return found


def _blanks(term: Term) -> Iterable[Term]:
    for part in triple_parts(term):
        if is_blank(part):
            yield part
        elif is_triple(part):
            yield from _blanks(part)


class _Nesting:
    """The subjects of one graph."""

    def __init__(self, quads: Iterable[Quad], mentions: Mapping[Term, int], href: Href) -> None:
        self._mentions, self._href = mentions, href
        self._properties: dict[Term, _Properties] = {}
        self._objects: set[Term] = set()
        for subject, predicate, object, _ in quads:
            self._properties.setdefault(subject, {}).setdefault(predicate, []).append(object)
            self._objects.add(object)
        self._left = dict.fromkeys(self._properties)

    def subjects(self) -> list[Node]:
        found = [self._described(term, 0) for term in self._properties if not self._is_nested(term)]
        while self._left:  # of a circle of blank nodes, or nested too deep
            found.append(self._described(next(iter(self._left)), 0))
        return found

    def _is_nested(self, term: Term) -> bool:
        return is_blank(term) and self._mentions[term] == 1 and term in self._objects

    def _described(self, term: Term, depth: int) -> Node:
        del self._left[term]
        properties = [
            (show(predicate, self._href), [self._object(object, depth + 1) for object in objects])
            for predicate, objects in sorted(
                self._properties[term].items(), key=lambda item: item[0] != _TYPE
            )
        ]
        return Node(show(term, self._href), properties, nested=depth > 0)

    def _object(self, term: Term, depth: int) -> Node:
        if term not in self._left or not self._is_nested(term) or depth > _DEEPEST:
            return Node(show(term, self._href), items=[] if term == _NIL else None)
        if (cells := self._cells(term)) is None:
            return self._described(term, depth)
        for cell in cells:
            del self._left[cell]
        items = [self._object(self._properties[cell][Term(_FIRST)][0], depth + 1) for cell in cells]
        return Node(show(term, self._href), items=items, nested=True)

    def _cells(self, term: Term) -> list[Term] | None:
        """The nodes of a list; None: it is not whole, or one of its nodes is something else as well."""
        cells: dict[Term, None] = {}
        while term != _NIL:
            said = self._properties.get(term)
            if term not in self._left or term in cells or not self._is_nested(term) or said is None:
                return None
            if said.keys() != {_FIRST, _REST} or any(
                len(objects) != 1 for objects in said.values()
            ):
                return None
            cells[term] = None
            term = said[Term(_REST)][0]
        return list(cells)


def show(term: Term, href: Href, depth: int = 0) -> Shown:
    """A term, as it is shown.

    Args:
        term: to show.
        href: what IRIs link to.
        depth: the number of triple terms around it.

    >>> from construct_messages.terms import iri
    >>> show(iri(f"{XSD}integer"), lambda iri: None).text
    'xsd:integer'
    """
    if is_literal(term):
        text, datatype, language, direction = literal_parts(term)
        of_type = None if datatype in (None, _STRING) else show(Term(f"<{datatype}>"), href)
        kept = text[:_MOST_CHARACTERS]
        return Shown("literal", kept, "", None, language, direction, of_type, len(text) - len(kept))
    if is_blank(term):
        return Shown("blank", term)
    if is_triple(term):
        if depth == _DEEPEST:
            return Shown("blank", "<<( … )>>", omitted=len(term))
        return Shown(
            "triple", "", parts=[show(part, href, depth + 1) for part in triple_parts(term)]
        )
    value = term[1:-1]
    if len(value) > _MOST_CHARACTERS:
        kept = value[:_MOST_CHARACTERS]
        return Shown("iri", kept, kept, omitted=len(value) - len(kept))
    return Shown("iri", _shortened(value), value, href(value))


def _shortened(value: str) -> str:
    if value == _TYPE[1:-1]:
        return "a"
    for prefix, namespace in _SHORT.items():
        if value.startswith(namespace) and value[len(namespace) :].replace("_", "").isalnum():
            return f"{prefix}:{value[len(namespace) :]}"
    return value
