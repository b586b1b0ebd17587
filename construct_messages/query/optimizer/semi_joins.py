"""Semi-joins under DISTINCT: patterns that only decide whether there is a solution become EXISTS.

SPARQL 1.1 Query, sections 18.5 (Distinct, Project) and 18.6 (EXISTS). Under DISTINCT the multiplicity of solutions does
not matter. If no node above reads the other variables of some patterns, one match of them is enough, and they need not
be joined once for each match. The nodes on both sides are joined by the same variables and equalities. The bodies of
EXISTS are not rewritten, because bindings from outside may reach them. No engine here.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from construct_messages.query.algebra.correlation import mentions
from construct_messages.query.algebra.expressions import (
    conjunction,
    conjuncts,
    exists_in,
    is_volatile,
)
from construct_messages.query.algebra.join_order import connected_patterns, join_operands
from construct_messages.query.algebra.nodes import (
    NOTHING,
    Bgp,
    Distinct,
    Exists,
    Expression,
    Filter,
    Join,
    Node,
    Project,
    Slice,
    Triple,
    Union,
    Vars,
)
from construct_messages.query.optimizer.push_down import apply_filters


def add_semi_joins(node: Node) -> Node:
    """Turns triple patterns into EXISTS, under DISTINCT and LIMIT 1, where it only matters whether they match.

    Args:
        node: the node, with filters pushed down.

    >>> from construct_messages.query.algebra.nodes import Var
    >>> from construct_messages.rdf.terms import iri
    >>> x, y, z, p, q = Var("x"), Var("y"), Var("z"), iri("urn:p"), iri("urn:q")
    >>> name, paper = Triple(x, p, y), Triple(z, q, x)
    >>> asked = Distinct(Project(Bgp((name, paper)), (x, y)))
    >>> add_semi_joins(asked) == Distinct(Project(Filter(Bgp((name,)), Exists(Bgp((paper,)))), (x, y)))
    True
    """
    match node:
        case Distinct(Project() as projected) | Slice(Project() as projected, 0, 1, ()):
            node = node.with_children((_as_set(projected, projected.possible),))
    return node.with_children(tuple(map(add_semi_joins, node.children)))


def _as_set(node: Node, needed: Vars) -> Node:
    """A node with the same solutions up to the variables in `needed` and up to repetition."""
    match node:
        case Project(pattern, kept):
            return Project(_as_set(pattern, needed & frozenset(kept)), kept)
        case Union(left, right):
            return Union(_as_set(left, needed), _as_set(right, needed))
        case Filter(pattern, condition):
            return _semi_joined(pattern, conjuncts(condition), needed)
        case Join() | Bgp():
            return _semi_joined(node, (), needed)
    return node


def _semi_joined(node: Node, conditions: tuple[Expression, ...], needed: Vars) -> Node:
    """A join under conditions, with the groups of patterns that can be tested by EXISTS turned into EXISTS."""
    operands = list(join_operands(node))
    patterns = [one for operand in operands if isinstance(operand, Bgp) for one in operand.patterns]
    others = [operand for operand in operands if not isinstance(operand, Bgp)]
    # variables of other operands, and variables that cannot be read within EXISTS, stay joined
    needed = needed.union(*(operand.possible for operand in others))
    needed = needed.union(
        *(mentions(one) for one in conditions if is_volatile(one) or exists_in(one))
    )
    kept, bodies = patterns, list[Expression]()
    for group in sorted(
        connected_patterns(patterns, map(mentions, conditions), needed), key=len, reverse=True
    ):
        rest = [one for one in kept if one not in group]
        own = _variables(group) - needed
        about = tuple(one for one in conditions if mentions(one) & own)
        left = tuple(one for one in conditions if one not in about)
        outer = (_variables(group) & needed).union(*(mentions(one) - own for one in about))
        # the patterns that the group connects must be connected without it
        connected = any(
            outer <= _variables(one) for one in connected_patterns(rest, map(mentions, left))
        )
        if own and outer and connected and not _is_of_star(group, needed):
            kept, conditions = rest, left
            bodies.append(Exists(apply_filters(Bgp(tuple(group)), about)))
    if not bodies:
        return _filtered(node, conditions)
    # before any NOT EXISTS of the query, which has less to do then
    return _filtered(reduce(Join, [Bgp(tuple(kept)), *others]), (*bodies, *conditions))


def _filtered(node: Node, conditions: Iterable[Expression]) -> Node:
    condition = conjunction(conditions)
    return node if condition is None else Filter(node, condition)


def _variables(patterns: Iterable[Triple]) -> Vars:
    return NOTHING.union(*(pattern.variables for pattern in patterns))


def _is_of_star(group: list[Triple], needed: Vars) -> bool:
    """Whether all patterns have a needed subject: these are read with it, and few subjects have many objects."""
    return all(pattern.subject in needed for pattern in group)
