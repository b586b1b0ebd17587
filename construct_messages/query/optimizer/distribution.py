"""Distributes joins over UNION if its operands can then begin from few solutions.

SPARQL 1.1 Query, section 18.5: Join(P, Union(A, B)) has the solutions of Union(Join(P, A), Join(P, B)), as often. As
written, an operand without a selective pattern is evaluated in full before it is joined with the patterns outside of
the UNION. The decision uses the estimates of `cardinality`; `push_down` pushes filters down again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Final

from construct_messages.query.algebra.correlation import mentions
from construct_messages.query.algebra.expressions import conjuncts, is_volatile, map_bodies
from construct_messages.query.algebra.join_order import join_operands
from construct_messages.query.algebra.nodes import (
    NOTHING,
    Bgp,
    Expression,
    Filter,
    Join,
    Node,
    Project,
    Triple,
    Union,
    Vars,
)
from construct_messages.query.optimizer.cardinality import Estimates
from construct_messages.query.optimizer.push_down import apply_filters, merge_bgps

_GAIN: Final = 10
"""The least factor by which it must be cheaper: estimates are rough, and each operand reads the patterns again."""


def distribute_joins(node: Node, estimates: Estimates, outside: Vars = NOTHING) -> Node:
    """Distributes joins of patterns with a UNION over its operands, if this is worthwhile by the estimates.

    Args:
        node: the node, with filters pushed down.
        estimates: of the table that the query is evaluated on.
        outside: in the body of an EXISTS, variables that may be bound from outside.
    """
    inside = outside & frozenset(node.variables) if isinstance(node, Project) else outside
    node = node.with_children(
        tuple(distribute_joins(part, estimates, inside) for part in node.children)
    )
    around = outside.union(*(part.possible for part in node.children))
    node = node.map_expressions(
        lambda one: map_bodies(one, lambda body: distribute_joins(body, estimates, around))
    )
    if not isinstance(node, Join):
        return node
    joined = list(join_operands(node))
    for patterns in (one for one in joined if isinstance(one, Bgp)):
        for union in (one for one in joined if isinstance(one, Union)):
            if (distributed := _distributed(patterns, union, estimates, outside)) is not None:
                return reduce(
                    Join,
                    [
                        distributed,
                        *(one for one in joined if one is not patterns and one is not union),
                    ],
                )
    return node


def _distributed(patterns: Bgp, union: Union, estimates: Estimates, outside: Vars) -> Node | None:
    """Returns the UNION with the patterns joined to each operand, or None if that is not cheaper."""
    operands = [_Operand.of(operand, patterns) for operand in _union_operands(union)]
    known = [operand for operand in operands if operand is not None]
    if len(known) < len(operands):
        return None
    apart = _cost(patterns.patterns, estimates) + sum(
        _cost(one.patterns, estimates) for one in known
    )
    together = sum(_cost((*patterns.patterns, *one.patterns), estimates) for one in known)
    if together * _GAIN > apart:
        return None
    return reduce(Union, (one.joined_with(patterns, outside) for one in known))


def _union_operands(node: Node) -> Iterator[Node]:
    if isinstance(node, Union):
        yield from _union_operands(node.left)
        yield from _union_operands(node.right)
    else:
        yield node


@dataclass(frozen=True)
class _Operand:
    """An operand of UNION: triple patterns, the nodes that they are joined with, and the conditions on both."""

    patterns: tuple[Triple, ...]
    others: tuple[Node, ...]
    conditions: tuple[Expression, ...]

    @classmethod
    def of(cls, node: Node, beside: Bgp) -> _Operand | None:
        """The parts of an operand; None without patterns, or if a condition needs variables of `beside`."""
        conditions: tuple[Expression, ...] = ()
        while isinstance(node, Filter):
            conditions += conjuncts(node.condition)
            node = node.pattern
        if any(
            is_volatile(one) or not mentions(one) & beside.possible <= node.certain
            for one in conditions
        ):
            return None
        joined = list(join_operands(node))
        patterns = tuple(one for part in joined if isinstance(part, Bgp) for one in part.patterns)
        others = tuple(part for part in joined if not isinstance(part, Bgp))
        return cls(patterns, others, conditions) if patterns else None

    def joined_with(self, beside: Bgp, outside: Vars) -> Node:
        joined = merge_bgps(reduce(Join, [Bgp((*beside.patterns, *self.patterns)), *self.others]))
        return apply_filters(joined, self.conditions, outside)


def _cost(patterns: tuple[Triple, ...], estimates: Estimates) -> float:
    """The estimated number of solutions of all steps of a join of patterns."""
    return sum(step.solutions for step in estimates.ordered(patterns))
