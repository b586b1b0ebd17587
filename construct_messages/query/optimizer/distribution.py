"""A join with a UNION as a UNION of joins, where that lets its ways begin from few solutions.

SPARQL 1.1 Query, section 18.5: P joined with (A union B) has the solutions of (P joined with A) union (P joined with
B), as often. Evaluated as it is written, a way that is long and begins from nothing known gives all of its solutions
before the selective patterns beside the UNION are met. Estimates decide, from `cardinality`; filters sink by `sinking`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Final

from construct_messages.query.algebra.correlation import (
    NOTHING,
    conjuncts,
    mentions,
    operands,
    parts,
    volatile,
    with_bodies,
    with_expressions,
    with_parts,
)
from construct_messages.query.algebra.nodes import Bgp, Expression, Filter, Join, Node, Project, Triple, Union, Vars
from construct_messages.query.optimizer.cardinality import Estimates
from construct_messages.query.optimizer.push_down import filtered, met

_GAIN: Final = 10
"""How many times fewer solutions there must be on the way: estimates are rough, and the patterns are read again."""


def distributed(node: Node, estimates: Estimates, outside: Vars = NOTHING) -> Node:
    """The node with the patterns beside a UNION in each way of it, where the estimates say that this pays.

    Args:
        outside: in the body of an EXISTS, variables that may be bound from outside.
    """
    inside = outside & frozenset(node.variables) if isinstance(node, Project) else outside
    node = with_parts(node, tuple(distributed(part, estimates, inside) for part in parts(node)))
    around = outside.union(*(part.possible for part in parts(node)))
    node = with_expressions(node, lambda one: with_bodies(one, lambda body: distributed(body, estimates, around)))
    if not isinstance(node, Join):
        return node
    joined = list(operands(node))
    for patterns in (one for one in joined if isinstance(one, Bgp)):
        for union in (one for one in joined if isinstance(one, Union)):
            if (ways := _ways(patterns, union, estimates, outside)) is not None:
                return reduce(Join, [ways, *(one for one in joined if one is not patterns and one is not union)])
    return node


def _ways(patterns: Bgp, union: Union, estimates: Estimates, outside: Vars) -> Node | None:
    """The UNION with the patterns joined to each way, or None where that does not pay."""
    ways = [_taken_apart(way, patterns) for way in _alternatives(union)]
    if any(own is None for own, _, _ in ways):
        return None
    apart = _cost(patterns.patterns, estimates) + sum(_cost(own or (), estimates) for own, _, _ in ways)
    together = sum(_cost((*patterns.patterns, *(own or ())), estimates) for own, _, _ in ways)
    if together * _GAIN > apart:
        return None
    return reduce(
        Union,
        (
            filtered(met(reduce(Join, [Bgp((*patterns.patterns, *(own or ()))), *others])), conditions, outside)
            for own, others, conditions in ways
        ),
    )


def _alternatives(node: Node) -> Iterable[Node]:
    if isinstance(node, Union):
        yield from _alternatives(node.left)
        yield from _alternatives(node.right)
    else:
        yield node


_Way = tuple[tuple[Triple, ...] | None, list[Node], tuple[Expression, ...]]


def _taken_apart(way: Node, patterns: Bgp) -> _Way:
    """The patterns of a way, what they are joined with, and the conditions on all of that.

    There are no patterns if a condition could see more beside those from outside than it does now.
    """
    conditions: tuple[Expression, ...] = ()
    while isinstance(way, Filter):
        conditions += conjuncts(way.condition)
        way = way.pattern
    if any(volatile(one) or not mentions(one) & patterns.possible <= way.certain for one in conditions):
        return None, [], ()
    joined = list(operands(way))
    own = tuple(one for part in joined if isinstance(part, Bgp) for one in part.patterns)
    return own or None, [part for part in joined if not isinstance(part, Bgp)], conditions


def _cost(patterns: tuple[Triple, ...], estimates: Estimates) -> float:
    """The solutions on the way to those of all patterns."""
    return sum(step.solutions for step in estimates.ordered(patterns))
