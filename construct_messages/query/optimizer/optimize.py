"""The optimizer: a plan with the same solutions, whose patterns are in a better order and whose filters are lower.

Each rule keeps the bag of solutions of the node that it rewrites (SPARQL 1.1 Query, section 18.5); a node is left
unchanged if the certain variables of its operands do not prove that. Costs are estimated by `cardinality`. No engine
here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import reduce
from typing import Literal

from construct_messages.query.algebra.correlation import correlated_variables
from construct_messages.query.algebra.expressions import is_volatile, map_bodies
from construct_messages.query.algebra.join_order import join_operands
from construct_messages.query.algebra.nodes import (
    Bgp,
    Extend,
    Filter,
    Join,
    LeftJoin,
    Minus,
    Node,
    Star,
    Triple,
    Values,
    Var,
    VarOrTerm,
    Vars,
)
from construct_messages.query.algebra.plan import Plan
from construct_messages.query.optimizer.cardinality import Estimates
from construct_messages.query.optimizer.distribution import distribute_joins
from construct_messages.query.optimizer.equalities import add_join_keys
from construct_messages.query.optimizer.push_down import push_down_filters
from construct_messages.query.optimizer.semi_joins import add_semi_joins
from construct_messages.query.optimizer.shared_scan import shared_scans
from construct_messages.query.optimizer.statistics import Statistics
from construct_messages.rdf.errors import UsageError


@dataclass(frozen=True)
class Hints:
    """Overrides of the optimizer's choices.

    Args:
        join: `"star"` evaluates the patterns of one subject as a star join, in one pass over its quads; `"joins"` joins
            patterns one by one; `"auto"` uses star joins unless the statistics of predicates are known, because a table
            with statistics can read each predicate separately.
        order: `"estimated"`, or `"as-written"` for joins in the order of the query's text.

    Raises:
        UsageError: another value.

    >>> Hints(join="stars")
    Traceback (most recent call last):
    construct_messages.rdf.errors.UsageError: join='stars' is no hint
      hint: join is "auto", "star" or "joins"
    """

    join: Literal["auto", "star", "joins"] = "auto"
    order: Literal["estimated", "as-written"] = "estimated"

    def __post_init__(self) -> None:
        if self.join not in ("auto", "star", "joins"):
            raise UsageError(
                f"join={self.join!r} is no hint", hint='join is "auto", "star" or "joins"'
            )
        if self.order not in ("estimated", "as-written"):
            raise UsageError(
                f"order={self.order!r} is no hint", hint='order is "estimated" or "as-written"'
            )


def optimize(plan: Plan, statistics: Statistics, *, hints: Hints | None = None) -> Plan:
    """Rewrites a plan into one with the same solutions that is cheaper to evaluate.

    Args:
        plan: a plan of `translate_query`.
        statistics: the statistics of the table.
        hints: overrides of the estimates.
    """
    hints = hints or Hints()
    estimates = Estimates(statistics)
    stars = hints.join == "star" or (hints.join == "auto" and not estimates.known)
    joins = _JoinOrder(estimates, stars, hints.order == "as-written")
    pattern = push_down_filters(plan.pattern)
    if not joins.as_written:
        pattern = add_semi_joins(distribute_joins(pattern, estimates))
    pattern = add_join_keys(pattern)
    # a table with statistics of its predicates can read each of them alone
    scans = shared_scans(pattern) if stars or not estimates.known else ()
    return replace(plan, pattern=joins.node(pattern), shared_scan=scans if len(scans) > 1 else ())


def _occurring(value: object) -> Iterator[Var]:
    """All variables that occur anywhere in a node, in any scope."""
    if isinstance(value, Var):
        yield value
    elif isinstance(value, tuple | frozenset):
        for part in value:
            yield from _occurring(part)
    elif is_dataclass(value):
        for part in fields(value):
            yield from _occurring(getattr(value, part.name))


# --- order, and stars -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _JoinOrder:
    """Puts the patterns of a plan in the order to join them, and into stars.

    Args:
        estimates: the estimates that patterns are ordered by.
        stars: whether patterns of one subject become stars.
        as_written: whether patterns stay in the order of the query's text.
    """

    estimates: Estimates
    stars: bool
    as_written: bool

    def node(self, node: Node) -> Node:
        match node:
            case Bgp(patterns):
                return reduce(Join, self.ordered(patterns))
            case Join():
                return reduce(Join, self.join(join_operands(node)))
            case LeftJoin(left, Bgp((pattern,)), None) if self.stars:
                left = self.node(left)
                star = None
                if isinstance(pattern.object, Var) and pattern.object not in _occurring(left):
                    star = _with_optional(left, pattern)
                return LeftJoin(left, Bgp((pattern,))) if star is None else star
        node = node.with_children(tuple(map(self.node, node.children)))
        return node.map_expressions(lambda one: map_bodies(one, self.body))

    def body(self, node: Node) -> Node:
        """The body of an EXISTS, without stars where more than its outermost filter reads variables from outside.

        Such a body is evaluated for each solution, and the optional patterns of stars do not see its bindings.
        """
        alone = not correlated_variables(node.pattern if isinstance(node, Filter) else node)
        return (self if alone else replace(self, stars=False)).node(node)

    def join(self, operands: Iterable[Node]) -> list[Node]:
        ordered = [
            part
            for operand in operands
            for part in (
                self.ordered(operand.patterns) if isinstance(operand, Bgp) else [self.node(operand)]
            )
        ]
        # inline data first: it is small and selective
        return (
            ordered
            if self.as_written
            else sorted(ordered, key=lambda part: not isinstance(part, Values))
        )

    def ordered(self, patterns: tuple[Triple, ...]) -> list[Node]:
        """The patterns as nodes to join in this order: stars, and basic graph patterns of connected patterns."""
        steps = (
            self.estimates.as_written(patterns)
            if self.as_written
            else self.estimates.ordered(patterns)
        )
        stars = _stars(patterns) if self.stars else {}
        nodes: list[Node] = []
        for step in steps:
            pattern = step.pattern
            if pattern in stars.get(_center(pattern), ()):
                star = stars.pop(_center(pattern))
                ordered = tuple(other.pattern for other in steps if other.pattern in star)
                assert isinstance(pattern.subject, Var), "the subject of a star is a variable"
                nodes.append(Star(pattern.subject, ordered))
            elif any(isinstance(node, Star) and pattern in node.patterns for node in nodes):
                continue
            elif (
                nodes
                and isinstance(nodes[-1], Bgp)
                and step.connected
                and nodes[-1].possible & _variables(pattern)
            ):
                nodes[-1] = Bgp((*nodes[-1].patterns, pattern))
            else:
                nodes.append(Bgp((pattern,)))
        return nodes


def _variables(pattern: Triple) -> Vars:
    return Bgp((pattern,)).possible


_Center = tuple[VarOrTerm, VarOrTerm | None]


def _center(pattern: Triple) -> _Center:
    """Returns the subject and the graph that the patterns of a star share."""
    return pattern.subject, pattern.graph


def _fits_star(pattern: Triple) -> bool:
    return isinstance(pattern.subject, Var) and not isinstance(pattern.predicate, Var)


def _stars(patterns: tuple[Triple, ...]) -> dict[_Center, set[Triple]]:
    """The patterns that make stars of two or more."""
    stars: dict[_Center, set[Triple]] = {}
    for pattern in filter(_fits_star, patterns):
        stars.setdefault(_center(pattern), set()).add(pattern)
    return {center: star for center, star in stars.items() if len(star) > 1}


def _with_optional(node: Node, optional: Triple) -> Node | None:
    """The node with an optional pattern in a star of its subject, or None if there is no such star.

    The object of the pattern occurs nowhere in the node, so nothing above the star reads it.
    """
    if not _fits_star(optional) or any(map(is_volatile, node.expressions)):
        return None
    match node:
        case Star(_, (first, *_)) if _center(first) == _center(optional):
            return replace(node, optional=(*node.optional, optional))
        case Bgp(patterns):
            own = tuple(
                one for one in patterns if _fits_star(one) and _center(one) == _center(optional)
            )
            if not own:
                return None
            assert isinstance(optional.subject, Var), "the subject of a star is a variable"
            star = Star(optional.subject, own, (optional,))
            rest = tuple(one for one in patterns if one not in own)
            return Join(star, Bgp(rest)) if rest else star
        case Join() | LeftJoin() | Minus() | Filter() | Extend():
            for index, child in enumerate(
                node.children if isinstance(node, Join) else node.children[:1]
            ):
                if (changed := _with_optional(child, optional)) is not None:
                    return node.with_children(
                        (*node.children[:index], changed, *node.children[index + 1 :])
                    )
    return None
