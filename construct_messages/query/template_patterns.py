"""The triples of a template as patterns that a solution instantiates.

SPARQL 1.2 Query, section 16.2.1 (templates with blank nodes). Everything legal is accepted, also triples that no
message can hold (`Template` drops them). No text is read here.
"""

from __future__ import annotations

from collections.abc import Iterator

from construct_messages.query.syntax.nodes import (
    BlankNode,
    GraphPattern,
    GroupPattern,
    IriNode,
    TermNode,
    TripleNode,
    TriplesBlock,
    TripleTermNode,
    VariableNode,
)
from construct_messages.query.syntax.query import Query
from construct_messages.query.syntax.tree import walk
from construct_messages.rdf.template import Blank, Constant, Nested, Pattern, Slot, Variable, legal
from construct_messages.rdf.terms import triple


def template_patterns(
    query: Query, template: GroupPattern
) -> tuple[tuple[str, ...], tuple[Pattern, ...]]:
    """Returns the variables of a template, by first appearance, and its triples.

    Raises:
        QueryError: an undeclared prefix, a relative IRI without base, an illegal character.

    >>> from construct_messages.query.syntax.parser import parse
    >>> query = parse("CONSTRUCT { ?x a [] } {}")
    >>> template_patterns(query, query.form.template)[0]
    ('x',)
    """
    nodes = sorted(
        (node for node in walk(template) if isinstance(node, VariableNode | BlankNode)),
        key=lambda node: node.start,
    )
    names = dict.fromkeys(node.name for node in nodes if isinstance(node, VariableNode))
    labels = dict.fromkeys(node.label for node in nodes if isinstance(node, BlankNode))
    slots = _Slots(
        query,
        {name: index for index, name in enumerate(names)},
        {label: index for index, label in enumerate(labels)},
    )
    return tuple(names), tuple(slots.patterns(template, None))


class _Slots:
    def __init__(self, query: Query, variables: dict[str, int], blanks: dict[str, int]) -> None:
        self._query, self._variables, self._blanks = query, variables, blanks

    def patterns(self, group: GroupPattern, graph: Slot | None) -> Iterator[Pattern]:
        for element in group.elements:
            match element:
                case TriplesBlock(_, _, triples):
                    yield from (self._pattern(triple, graph) for triple in triples)
                case GraphPattern(_, _, name, inside):
                    yield from self.patterns(inside, self._slot(name))
                case GroupPattern():
                    yield from self.patterns(element, None)

    def _pattern(self, triple: TripleNode, graph: Slot | None) -> Pattern:
        subject, predicate, object = triple.subject, triple.predicate, triple.object
        assert isinstance(predicate, VariableNode | IriNode)  # a template has no paths
        return Pattern(self._slot(subject), self._slot(predicate), self._slot(object), graph)

    def _slot(self, node: TermNode) -> Slot:
        match node:
            case VariableNode():
                return Variable(self._variables[node.name])
            case BlankNode():
                return Blank(self._blanks[node.label])
            case TripleTermNode(_, _, subject, predicate, object):
                nested = Nested(self._slot(subject), self._slot(predicate), self._slot(object))
                match nested:
                    case Nested(Constant(s), Constant(p), Constant(o)) if legal(nested, "object"):
                        return Constant(triple(s, p, o))
                return nested  # also of constants: the parts are checked for triples that are never legal
        return Constant(self._query.term(node))
