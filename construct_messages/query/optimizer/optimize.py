"""The same solutions, sooner: a plan with its patterns in a better order, filters lower, and stars where they pay.

Each rule keeps the bag of solutions of the node it rewrites (SPARQL 1.1 Query, section 18.5, for the algebra's
equivalences); what a rule cannot prove from the certain variables of its operands it leaves alone. How many solutions
patterns have is `cardinality`. No SQL and no pyspark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import reduce
from typing import Literal

from construct_messages.errors import UsageError
from construct_messages.query.algebra.correlation import (
    dependent,
    operands,
    parts,
    volatile,
    with_bodies,
    with_expressions,
    with_parts,
)
from construct_messages.query.algebra.nodes import (
    Bgp,
    Extend,
    Filter,
    Join,
    LeftJoin,
    Minus,
    Node,
    Plan,
    Position,
    Star,
    Triple,
    Values,
    Var,
    Vars,
)
from construct_messages.query.optimizer.cardinality import Estimates
from construct_messages.query.optimizer.demand import demands
from construct_messages.query.optimizer.distribution import distributed
from construct_messages.query.optimizer.equalities import keyed
from construct_messages.query.optimizer.push_down import push_down_filters
from construct_messages.query.optimizer.statistics import Statistics


@dataclass(frozen=True)
class Hints:
    """What the user knows better than the estimates.

    Args:
        join: `"star"` reads the patterns of one subject in one pass, `"joins"` joins each with the others; `"auto"`
            takes stars unless the figures of the table's predicates are known, which a table has that `write_quads`
            wrote: there each predicate is read alone.
        order: `"estimated"`, or `"as-written"` for joins in the order of the query's text.

    Raises:
        UsageError: another word.

    >>> Hints(join="stars")
    Traceback (most recent call last):
    construct_messages.errors.UsageError: no hint is join='stars'
      hint: join is "auto", "star" or "joins"
    """

    join: Literal["auto", "star", "joins"] = "auto"
    order: Literal["estimated", "as-written"] = "estimated"

    def __post_init__(self) -> None:
        if self.join not in ("auto", "star", "joins"):
            raise UsageError(f"no hint is join={self.join!r}", hint='join is "auto", "star" or "joins"')
        if self.order not in ("estimated", "as-written"):
            raise UsageError(f"no hint is order={self.order!r}", hint='order is "estimated" or "as-written"')


def optimize(plan: Plan, statistics: Statistics, *, hints: Hints | None = None) -> Plan:
    """A plan with the same solutions.

    Args:
        plan: what `plan.plan` made.
        statistics: what is known of the table that it is to be evaluated over.
        hints: what to do otherwise than the estimates say.
    """
    hints = hints or Hints()
    estimates = Estimates(statistics)
    stars = hints.join == "star" or (hints.join == "auto" and not estimates.known)
    arranging = _Arranging(estimates, stars, hints.order == "as-written")
    pattern = push_down_filters(plan.pattern)
    if not arranging.as_written:
        pattern = distributed(pattern, estimates)
    pattern = keyed(pattern)
    # where figures are known, each predicate can be read alone
    gathered = demands(pattern) if stars or not estimates.known else ()
    return replace(plan, pattern=arranging.node(pattern), gathered=gathered if len(gathered) > 1 else ())


def _written(value: object) -> Iterator[Var]:
    """All variables that are written anywhere in a node, in whichever scope."""
    if isinstance(value, Var):
        yield value
    elif isinstance(value, tuple | frozenset):
        for part in value:
            yield from _written(part)
    elif is_dataclass(value):
        for part in fields(value):
            yield from _written(getattr(value, part.name))


# --- order, and stars -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Arranging:
    """Patterns in an order, and as stars.

    Args:
        stars: whether patterns of one subject become stars.
        as_written: whether their order stays.
    """

    estimates: Estimates
    stars: bool
    as_written: bool

    def node(self, node: Node) -> Node:
        match node:
            case Bgp(patterns):
                return reduce(Join, self.arranged(patterns))
            case Join():
                return reduce(Join, self.join(tuple(operands(node))))
            case LeftJoin(left, Bgp((pattern,)), None) if self.stars:
                left = self.node(left)
                folded = None
                if isinstance(pattern.object, Var) and pattern.object not in _written(left):
                    folded = _folded(left, pattern)
                return LeftJoin(left, Bgp((pattern,))) if folded is None else folded
        node = with_parts(node, tuple(map(self.node, parts(node))))
        return with_expressions(node, lambda one: with_bodies(one, self.body))

    def body(self, node: Node) -> Node:
        """The body of an EXISTS.

        Where more than its outermost conditions sees variables from outside, it is without stars: their optional
        patterns would have to know of these, and such a body is asked about each solution by itself.
        """
        alone = not dependent(node.pattern if isinstance(node, Filter) else node)
        return (self if alone else replace(self, stars=False)).node(node)

    def join(self, joined: tuple[Node, ...]) -> list[Node]:
        arranged = [
            part
            for operand in joined
            for part in (self.arranged(operand.patterns) if isinstance(operand, Bgp) else [self.node(operand)])
        ]
        # inline data first: it is small, and it selects
        return arranged if self.as_written else sorted(arranged, key=lambda part: not isinstance(part, Values))

    def arranged(self, patterns: tuple[Triple, ...]) -> list[Node]:
        """The patterns as nodes to be joined in this order: stars, and patterns in a row that share variables."""
        steps = self.estimates.as_written(patterns) if self.as_written else self.estimates.ordered(patterns)
        points = _points(patterns) if self.stars else {}
        nodes: list[Node] = []
        for step in steps:
            pattern = step.pattern
            center = (pattern.subject, pattern.graph)
            if pattern in points.get(center, ()):
                star = points.pop(center)
                ordered = tuple(other.pattern for other in steps if other.pattern in star)
                assert isinstance(pattern.subject, Var), "a star has a variable in its middle"
                nodes.append(Star(pattern.subject, ordered))
            elif any(isinstance(node, Star) and pattern in node.patterns for node in nodes):
                continue
            elif nodes and isinstance(nodes[-1], Bgp) and step.connected and nodes[-1].possible & _variables(pattern):
                nodes[-1] = Bgp((*nodes[-1].patterns, pattern))
            else:
                nodes.append(Bgp((pattern,)))
        return nodes


def _variables(pattern: Triple) -> Vars:
    return Bgp((pattern,)).possible


_Center = tuple[Position, Position | None]


def _is_ray(pattern: Triple) -> bool:
    """Whether a pattern can be part of a star."""
    return isinstance(pattern.subject, Var) and not isinstance(pattern.predicate, Var)


def _points(patterns: tuple[Triple, ...]) -> dict[_Center, set[Triple]]:
    """The patterns that make stars, by what they share; each star has two or more."""
    points: dict[_Center, set[Triple]] = {}
    for pattern in filter(_is_ray, patterns):
        points.setdefault((pattern.subject, pattern.graph), set()).add(pattern)
    return {center: star for center, star in points.items() if len(star) > 1}


def _folded(node: Node, pattern: Triple) -> Node | None:
    """The node with an optional pattern inside a star of its subject, or None where there is none to take it.

    The object of the pattern is mentioned nowhere in the node, so all that stands above the star is blind to it.
    """
    match node:
        case Star(subject, (first, *_), optional) if (subject, first.graph) == (pattern.subject, pattern.graph):
            return replace(node, optional=(*optional, pattern)) if _is_ray(pattern) else None
        case Bgp(patterns) if _is_ray(pattern):
            rays = [one for one in patterns if _is_ray(one) and (one.subject, one.graph) == _center(pattern)]
            if not rays:
                return None
            assert isinstance(pattern.subject, Var), "a ray begins at a variable"
            star = Star(pattern.subject, tuple(rays), (pattern,))
            rest = tuple(one for one in patterns if one not in rays)
            return Join(star, Bgp(rest)) if rest else star
        case Join(left, right):
            if (folded := _folded(left, pattern)) is not None:
                return Join(folded, right)
            return None if (folded := _folded(right, pattern)) is None else Join(left, folded)
        case LeftJoin(left, right, condition) if condition is None or not volatile(condition):
            return None if (folded := _folded(left, pattern)) is None else LeftJoin(folded, right, condition)
        case Minus(left, right, within):
            return None if (folded := _folded(left, pattern)) is None else Minus(folded, right, within)
        case Filter(below, condition) if not volatile(condition):
            return None if (folded := _folded(below, pattern)) is None else Filter(folded, condition)
        case Extend(below, variable, expression) if not volatile(expression):
            return None if (folded := _folded(below, pattern)) is None else Extend(folded, variable, expression)
    return None


def _center(pattern: Triple) -> _Center:
    return pattern.subject, pattern.graph
