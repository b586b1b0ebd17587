"""The predicates that a query reads, so that quads with others need not be stored in windows. No store here.

A quad takes part in a solution only where a triple pattern matches it. So where each pattern names its predicate, quads
with other predicates change nothing. Whatever could see more than such patterns (paths, names of graphs, EXISTS,
`timestamp`), or is not known to this package's algebra, has all quads stored.
"""

from __future__ import annotations

from typing import Final

import pyoxigraph as ox

from construct_messages.errors import ConstructMessagesError
from construct_messages.query.algebra.nodes import Bgp, Node, Unit, Values, Var
from construct_messages.query.algebra.translation import translate_query
from construct_messages.query.continuous.values import TIMESTAMP
from construct_messages.terms import parse_term

_NOW: Final = parse_term('"1970-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>')


def predicates_of(select: str) -> frozenset[ox.NamedNode] | None:
    """The predicates of all triple patterns of a query; None where quads with other ones may make a difference.

    Args:
        select: a SELECT query, without prefixed names.

    >>> predicates_of("SELECT * { ?s <urn:p> ?o OPTIONAL { ?s <urn:q> 1 } }") == {
    ...     ox.NamedNode("urn:p"), ox.NamedNode("urn:q")}
    True
    >>> predicates_of("SELECT * { ?s ?p ?o }"), predicates_of("SELECT * { ?s <urn:p>* ?o }")
    (None, None)
    """
    if "EXISTS" in select.upper() or TIMESTAMP in select:
        return None
    try:
        pattern = translate_query(select, now=_NOW).pattern
    except ConstructMessagesError:
        return None
    found: set[ox.NamedNode] = set()
    return frozenset(found) if _collect(pattern, found) else None


def _collect(node: Node, found: set[ox.NamedNode]) -> bool:
    """Adds the predicates below a node; returns whether it reads nothing else."""
    if node.children:
        return all(_collect(child, found) for child in node.children)
    if not isinstance(node, Bgp):
        return isinstance(node, (Unit, Values))
    for pattern in node.patterns:
        if isinstance(pattern.predicate, Var):
            return False
        found.add(ox.NamedNode(pattern.predicate[1:-1]))
    return True
