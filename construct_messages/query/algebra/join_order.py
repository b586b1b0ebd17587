"""The order in which the operands of joins are evaluated: property paths wait until an end of theirs is bound.

A path of any length between two unbound variables would start at every node of the data. SPARQL 1.1 Query, sections
18.4 and 18.5: the order of joins changes no solution. Estimates of cost are for the optimizer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from construct_messages.query.algebra.nodes import (
    NOTHING,
    Group,
    Join,
    Leaf,
    LeftJoin,
    Minus,
    Node,
    OrderBy,
    Path,
    Project,
    Slice,
    Triple,
    Unary,
    Union,
    Unit,
    Var,
    Vars,
)


def contains_path(node: Node) -> bool:
    """Whether a node has a property path in it, which can begin from the solutions that the node is joined with."""
    return isinstance(node, Path) or any(map(contains_path, node.children))


def needs_bound_end(node: Node, bound: Vars) -> bool:
    """Whether neither end of a path in a node is bound, where the other operands of a join bind some variables.

    >>> from construct_messages.query.algebra.property_paths import Closure, Link
    >>> from construct_messages.rdf.terms import iri
    >>> node = Path(Var("x"), Closure(Link(iri("urn:p")), "+"), Var("y"))
    >>> needs_bound_end(node, frozenset()), needs_bound_end(node, frozenset({Var("y")}))
    (True, False)
    """
    match node:
        case Path(subject, _, object):
            return (
                isinstance(subject, Var)
                and isinstance(object, Var)
                and not {subject, object} & bound
            )
        case Leaf():
            return False
        case Join(left, right):
            return needs_bound_end(left, bound | right.certain) or needs_bound_end(
                right, bound | left.certain
            )
        case Union(left, right):
            return needs_bound_end(left, bound) or needs_bound_end(right, bound)
        case LeftJoin(left) | Minus(left):
            return needs_bound_end(left, bound)
        case Project(pattern, kept):
            return needs_bound_end(pattern, bound & frozenset(kept))
        case Group(pattern) | OrderBy(pattern) | Slice(pattern):
            return needs_bound_end(pattern, NOTHING)
        case Unary(pattern):
            return needs_bound_end(pattern, bound)
        case other:
            assert_never(other)


def join_order(
    join: Join, bound: Vars = NOTHING, links: Iterable[tuple[Vars, Vars]] = ()
) -> list[Node]:
    """The operands of a tree of joins in the order to join them, without units.

    `links` are pairs of variables that an equality links, in addition to shared variables; see `equalities.links`.

    Paths wait until an end of theirs is bound, and operands that would make a cross product wait, too.

    >>> from construct_messages.query.algebra.nodes import Bgp, Triple
    >>> from construct_messages.query.algebra.property_paths import Closure, Link
    >>> from construct_messages.rdf.terms import iri
    >>> path = Path(Var("x"), Closure(Link(iri("urn:p")), "+"), Var("y"))
    >>> begin = Bgp((Triple(Var("y"), iri("urn:p"), Var("z")),))
    >>> join_order(Join(path, begin)) == [begin, path]
    True
    """
    waiting = [operand for operand in join_operands(join) if not isinstance(operand, Unit)]
    if not waiting:
        return [Unit()]
    order: list[Node] = []
    there = NOTHING
    while waiting:
        certain = bound.union(*(operand.certain for operand in order))

        def rank(one: Node, certain: Vars = certain, there: Vars = there) -> tuple[bool, bool]:
            return needs_bound_end(one, certain), bool(there) and not linked(
                there, one.possible, links
            )

        first = min(waiting, key=rank)
        waiting.remove(first)
        order.append(first)
        there |= first.possible
    return order


def linked(left: Vars, right: Vars, links: Iterable[tuple[Vars, Vars]]) -> bool:
    """Whether two nodes share a variable, or bind the two sides of a link."""
    return bool(left & right) or any(
        (one <= left and other <= right) or (one <= right and other <= left) for one, other in links
    )


def connected_patterns(patterns: Iterable[Triple]) -> Iterator[list[Triple]]:
    """The patterns that are connected by variables.

    >>> from construct_messages.rdf.terms import iri
    >>> about_x, of_x, about_y = (Triple(Var(one), iri("urn:p"), Var(other)) for one, other in ("xa", "bx", "yc"))
    >>> list(connected_patterns([about_x, about_y, of_x])) == [[about_y], [about_x, of_x]]
    True
    """
    groups: list[tuple[list[Triple], Vars]] = []
    for pattern in patterns:
        group, own = [pattern], pattern.variables
        for other in [other for other in groups if other[1] & own]:
            groups.remove(other)
            group, own = [*other[0], *group], own | other[1]
        groups.append((group, own))
    return (group for group, _ in groups)


def join_operands(node: Node) -> Iterator[Node]:
    """The operands of a tree of joins, from left to right."""
    if isinstance(node, Join):
        yield from join_operands(node.left)
        yield from join_operands(node.right)
    else:
        yield node
