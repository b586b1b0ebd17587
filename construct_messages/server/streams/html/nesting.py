"""Messages in a readable form: subjects with their properties, and nodes nested at their only mention.

Templates show this form. Everything is limited, and omissions are counted. No HTML here; `shown.py` has the terms.

The page for queries creates the same form itself (`pages/static/nesting.js`), because it reads logs in the browser,
also those of other servers. The HTML of streams needs no script; without a button for more, its limits are larger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import (
    RDF,
    Term,
    is_blank,
    is_literal,
    is_triple,
    literal_parts,
    triple_parts,
)
from construct_messages.server.streams.html.shown import Href, NodeNames, Shown, show

_TYPE: Final = f"<{RDF}type>"
_FIRST, _REST, _NIL = f"<{RDF}first>", f"<{RDF}rest>", f"<{RDF}nil>"
_LABELS: Final = tuple(
    Term(f"<{property}>")
    for property in (
        "http://www.w3.org/2000/01/rdf-schema#label",
        "http://www.w3.org/2004/02/skos/core#prefLabel",
        "http://xmlns.com/foaf/0.1/name",
        "http://schema.org/name",
        "https://schema.org/name",
        "http://purl.org/dc/terms/title",
        "http://purl.org/dc/elements/1.1/title",
    )
)

_MOST_QUADS: Final = 1000
_DEEPEST: Final = 12

_Properties = dict[Term, list[Term]]


@dataclass
class Node:
    """A subject or an object.

    Args:
        term: the term.
        properties: its properties, for a subject or a nested object.
        items: the items of a list; None: it is not a list.
        nested: whether it is nested at its only mention: a blank node instead of its name, an IRI below it.
        label: a label in addition to its name; None: it has none here.
    """

    term: Shown
    properties: list[tuple[Shown, list[Node]]] = field(default_factory=list)
    items: list[Node] | None = None
    nested: bool = False
    label: Shown | None = None


class GraphShown(NamedTuple):
    """A graph of a message.

    Args:
        name: the name of the graph; None: the default graph.
        subjects: the subjects, in the order of the message.
    """

    name: Shown | None
    subjects: list[Node]


class Card(NamedTuple):
    """A message.

    Args:
        graphs: the graphs, in the order of the message.
        quads: the number of quads.
        omitted: the number of omitted quads.
    """

    graphs: list[GraphShown]
    quads: int
    omitted: int


def card(message: Message, href: Href) -> Card:
    """Returns a message in the form that is shown.

    Args:
        message: the message; the first 1000 quads are shown.
        href: returns the link target of an IRI.

    >>> from construct_messages.rdf.terms import iri, literal
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
    mentions, labels = _mentions(quads), NodeNames()
    shown = [
        GraphShown(
            None if name is None else show(name, href, labels),
            _Nesting(of, mentions, href, labels).subjects(),
        )
        for name, of in graphs.items()
    ]
    return Card(shown, len(message), len(message) - len(quads))


def _mentions(quads: Iterable[Quad]) -> Mapping[Term, int]:
    """Returns the number of mentions of each node; a mention that rules out nesting counts as 2."""
    found: Counter[Term] = Counter()
    subjects: dict[Term, set[Term | None]] = {}
    for quad in quads:
        subjects.setdefault(quad.subject, set()).add(quad.graph)
        if is_triple(quad.object):
            found.update(dict.fromkeys(_blanks(quad.object), 2))
        elif not is_literal(quad.object):
            found[quad.object] += 1
        if quad.graph is not None and is_blank(quad.graph):
            found[quad.graph] += 2
    for node, graphs in subjects.items():
        found[node] += 2 * (len(graphs) - 1)  # several graphs have statements about the node
    return found


def _blanks(term: Term) -> Iterable[Term]:
    for part in triple_parts(term):
        if is_blank(part):
            yield part
        elif is_triple(part):
            yield from _blanks(part)


class _Nesting:
    """The subjects of one graph."""

    def __init__(
        self, quads: Iterable[Quad], mentions: Mapping[Term, int], href: Href, labels: NodeNames
    ) -> None:
        self._mentions, self._href, self._labels = mentions, href, labels
        self._properties: dict[Term, _Properties] = {}
        self._objects: set[Term] = set()
        for subject, predicate, object, _ in quads:
            self._properties.setdefault(subject, {}).setdefault(predicate, []).append(object)
            self._objects.add(object)
        self._left = dict.fromkeys(self._properties)

    def subjects(self) -> list[Node]:
        found = [self._described(term, 0) for term in self._properties if not self._is_nested(term)]
        while self._left:  # part of a cycle, or nested too deeply
            found.append(self._described(next(iter(self._left)), 0))
        return found

    def _is_nested(self, term: Term) -> bool:
        return self._mentions[term] == 1 and term in self._objects

    def _described(self, term: Term, depth: int) -> Node:
        del self._left[term]
        # the name of a nested blank node is not shown, so it gets no number
        named = depth == 0 or not is_blank(term)
        shown = self._show(term) if named else Shown("blank", "")
        properties = [
            (self._show(predicate), [self._object(object, depth + 1) for object in objects])
            for predicate, objects in sorted(
                self._properties[term].items(), key=lambda item: item[0] != _TYPE
            )
        ]
        return Node(shown, properties, nested=depth > 0, label=self._label(term))

    def _show(self, term: Term) -> Shown:
        return show(term, self._href, self._labels)

    def _label(self, term: Term) -> Shown | None:
        """Returns the label of a node: in English, else without a language, else the first one."""
        for property in _LABELS:
            literals = [
                each
                for each in self._properties[term].get(property, ())
                if is_literal(each) and literal_parts(each)[0].strip()
            ]
            if literals:
                return self._show(min(literals, key=_language_rank))
        return None

    def _object(self, term: Term, depth: int) -> Node:
        if term not in self._left or not self._is_nested(term) or depth > _DEEPEST:
            return Node(self._show(term), items=[] if term == _NIL else None)
        if not is_blank(term) or (cells := self._cells(term)) is None:
            return self._described(term, depth)
        for cell in cells:
            del self._left[cell]
        items = [self._object(self._properties[cell][Term(_FIRST)][0], depth + 1) for cell in cells]
        return Node(Shown("blank", ""), items=items, nested=True)

    def _cells(self, term: Term) -> list[Term] | None:
        """Returns the nodes of a list; None: it is incomplete, or one of its nodes has other properties as well."""
        cells: dict[Term, None] = {}
        while term != _NIL:
            properties = self._properties.get(term)
            if (
                term not in self._left
                or term in cells
                or not self._is_nested(term)
                or properties is None
            ):
                return None
            if properties.keys() != {_FIRST, _REST} or any(
                len(objects) != 1 for objects in properties.values()
            ):
                return None
            cells[term] = None
            term = properties[Term(_REST)][0]
        return list(cells)


def _language_rank(label: Term) -> int:
    _, _, language, _ = literal_parts(label)
    if language is None:
        return 1
    return 0 if language.lower().split("-")[0] == "en" else 2
