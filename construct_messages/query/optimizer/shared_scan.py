"""One scan for all triple patterns of a query: finds the patterns that it can read, and the filters of each.

SPARQL 1.1 Query, sections 18.5 (Filter, LeftJoin) and 18.2.2.2 (a FILTER of an OPTIONAL is a condition of the join).
`optimize` decides whether to share a scan. No engine here.
"""

from __future__ import annotations

from collections.abc import Iterator

from construct_messages.query.algebra.correlation import mentions
from construct_messages.query.algebra.expressions import conjuncts, exists_in, is_volatile
from construct_messages.query.algebra.nodes import (
    Bgp,
    Expression,
    Filter,
    LeftJoin,
    Node,
    Triple,
    Var,
)
from construct_messages.query.algebra.plan import Scan

_Conditions = tuple[Expression, ...]


def shared_scans(node: Node) -> tuple[Scan, ...]:
    """The triple patterns with a constant predicate in a node, also in bodies of EXISTS, with filters pushed down.

    A pattern in several places has the filters that all of them share. The filters stay where they are in the node,
    too.

    >>> from construct_messages.query.algebra.nodes import Call, Constant
    >>> from construct_messages.rdf.terms import Term
    >>> pattern, positive = Triple(Var("x"), Term("<urn:p>"), Var("y")), Call(">", (Var("y"), Constant(Term("0"))))
    >>> shared_scans(Filter(Bgp((pattern,)), positive)) == (Scan(pattern, (positive,)),)
    True
    """
    found: dict[Triple, _Conditions] = {}
    for pattern, filters in _filtered_patterns(node, ()):
        known = found.get(pattern, filters)
        found[pattern] = tuple(one for one in known if one in filters)
    return tuple(
        Scan(pattern, filters)
        for pattern, filters in found.items()
        if not isinstance(pattern.predicate, Var)
    )


def _filtered_patterns(node: Node, conditions: _Conditions) -> Iterator[tuple[Triple, _Conditions]]:
    """The triple patterns of a node, each time that they occur with the filters that one quad alone decides.

    Args:
        conditions: true for each solution of the node.
    """
    operands: list[tuple[Node, _Conditions]] = [(child, ()) for child in node.children]
    match node:
        case Bgp(patterns):
            for pattern in patterns:
                yield pattern, tuple(one for one in conditions if _is_about(pattern, one))
        case Filter(pattern, condition):
            operands = [(pattern, (*conditions, *conjuncts(condition)))]
        case LeftJoin(left, right, condition) if condition is not None:
            operands = [(left, ()), (right, conjuncts(condition))]
    operands += (
        (exists.pattern, ()) for expression in node.expressions for exists in exists_in(expression)
    )
    for operand, below in operands:
        yield from _filtered_patterns(operand, below)


def _is_about(pattern: Triple, condition: Expression) -> bool:
    """Whether one quad alone decides a condition, which then reads one variable."""
    read = mentions(condition)
    alone = len(read) == 1 and read <= pattern.variables
    return alone and not is_volatile(condition) and not exists_in(condition)
