"""The optimizer: a plan with the same solutions, whose patterns are in a better order and whose filters are lower.

Each rule keeps the bag of solutions of the node that it rewrites (SPARQL 1.1 Query, section 18.5); a node is left
unchanged if the certain variables of its operands do not prove that. Costs are estimated from
the statistics of the table. No engine here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import reduce
from typing import Final, Literal, assert_never

from construct_messages.errors import UsageError
from construct_messages.query.algebra.calls import conjuncts, exists_in, is_volatile, map_bodies
from construct_messages.query.algebra.nodes import (
    NOTHING,
    Bgp,
    Dataset,
    Distinct,
    Expression,
    Extend,
    Filter,
    Graphs,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    Number,
    OrderBy,
    Path,
    Plan,
    Project,
    Scan,
    Slice,
    Star,
    Triple,
    Union,
    Unit,
    Values,
    Var,
    VarOrTerm,
    Vars,
    correlated_variables,
    join_operands,
    linked,
    mentions,
)
from construct_messages.query.optimizer.push_down import (
    Links,
    add_join_keys,
    apply_filters,
    links,
    merge_bgps,
    push_down_filters,
    rewritten_below,
)
from construct_messages.rdf.terms import RDF, Term, iri

# --- cardinality ----------------------------------------------------------------------------------
# Cardinality estimation: the numbers of solutions of patterns by the statistics of a table, and a join order.
#
# A wrong estimate costs time, but the result is the same. Without statistics, guesses rank patterns: constants are
# selective, `rdf:type` hardly is. `optimize` chooses the nodes of the plan.


@dataclass(frozen=True)
class PredicateStatistics:
    """The figures of one predicate."""

    rows: int  # its quads
    subjects: int  # its distinct subjects, about
    objects: int  # its distinct objects, about


@dataclass(frozen=True)
class Statistics:
    """The figures of a table."""

    rows: int | None = None  # all quads
    distinct: bool = False  # whether each quad is in the table once
    # the figures of each predicate; empty if they are not known
    predicates: Mapping[Term, PredicateStatistics] = field(default_factory=dict)


_TYPE: Final = iri(f"{RDF}type")
_ROWS: Final = 1_000_000
"""The quads of a table of unknown size."""


@dataclass(frozen=True)
class JoinStep:
    """A pattern in the order of joins."""

    pattern: Triple
    solutions: float  # the estimated number after it has been joined
    # whether it shares a variable with a pattern before it; the first one counts as connected
    connected: bool = True


@dataclass(frozen=True)
class Estimates:
    """Numbers of solutions, from the figures of a table."""

    statistics: Statistics

    @property
    def known(self) -> bool:
        """Whether there are figures of each predicate."""
        return bool(self.statistics.predicates)

    def figures(self, predicate: VarOrTerm) -> PredicateStatistics:
        """The quads of a predicate, or of all if it is a variable: exact, or guessed.

        >>> Estimates(Statistics()).figures(iri("urn:p"))
        PredicateStatistics(rows=50000, subjects=25000, objects=12500)
        """
        if not isinstance(predicate, Var) and self.known:
            return self.statistics.predicates.get(predicate, PredicateStatistics(0, 0, 0))
        rows = self.statistics.rows if self.statistics.rows is not None else _ROWS
        if isinstance(predicate, Var):
            return _guessed(rows, subjects=5, objects=4)
        # as in DBpedia or Wikidata: a handful of types for most subjects, and other predicates a twentieth of the rows
        return (
            _guessed(rows // 5, subjects=1, objects=1000)
            if predicate == _TYPE
            else _guessed(rows // 20, 2, 4)
        )

    def matches(self, pattern: Triple, bound: Vars = frozenset()) -> float:
        """The matches of a pattern for one solution that binds `bound`.

        >>> x, y, p = Var("x"), Var("y"), iri("urn:p")
        >>> known = Estimates(Statistics(60, True, {p: PredicateStatistics(60, 30, 20)}))
        >>> known.matches(Triple(x, p, y)), known.matches(Triple(x, p, y), frozenset({x}))
        (60.0, 2.0)
        """
        figures = self.figures(pattern.predicate)
        matches = float(figures.rows)
        if _is_bound(pattern.subject, bound):
            matches /= max(figures.subjects, 1)
        if _is_bound(pattern.object, bound):
            matches /= max(figures.objects, 1)
        elif pattern.object == pattern.subject:
            matches /= max(figures.subjects, figures.objects, 1)
        return matches

    def ordered(self, patterns: Iterable[Triple]) -> list[JoinStep]:
        """The patterns in the order to join them: the fewest solutions first, and no cross product that can wait."""
        left, order, bound = list(patterns), list[Triple](), frozenset[Var]()
        while left:

            def rank(pattern: Triple, bound: Vars = bound) -> tuple[bool, float]:
                return not _connected(pattern, bound), self.matches(pattern, bound)

            order.append(min(left, key=rank))
            left.remove(order[-1])
            bound |= order[-1].variables
        return self.as_written(order)

    def as_written(self, patterns: Iterable[Triple]) -> list[JoinStep]:
        """The patterns in the order that they have, with the same figures."""
        steps, bound, solutions = list[JoinStep](), frozenset[Var](), 1.0
        for pattern in patterns:
            solutions *= self.matches(pattern, bound)
            steps.append(JoinStep(pattern, solutions, not steps or _connected(pattern, bound)))
            bound |= pattern.variables
        return steps


def _guessed(rows: int, subjects: int, objects: int) -> PredicateStatistics:
    """Figures if only the rows are known, or not even the rows, by the number of quads that a subject and an object
    have."""
    return PredicateStatistics(rows, max(rows // subjects, 1), max(rows // objects, 1))


def _is_bound(position: VarOrTerm, bound: Vars) -> bool:
    return not isinstance(position, Var) or position in bound


def _connected(pattern: Triple, bound: Vars) -> bool:
    """Whether the pattern shares one of the bound variables, or has no variable."""
    mentioned = pattern.variables
    return not mentioned or bool(mentioned & bound)


# --- shared scan ----------------------------------------------------------------------------------
# One scan for all triple patterns of a query: finds the patterns that it can read, and the filters of each.
#
# SPARQL 1.1 Query, sections 18.5 (Filter, LeftJoin) and 18.2.2.2 (a FILTER of an OPTIONAL is a condition of the
# join). `optimize` decides whether to share a scan. No engine here.

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

    The conditions are true for each solution of the node.
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


# --- distribution ---------------------------------------------------------------------------------
# Distributes joins over UNION if its operands can then begin from few solutions.
#
# SPARQL 1.1 Query, section 18.5: Join(P, Union(A, B)) has the solutions of Union(Join(P, A), Join(P, B)), as often.
# As written, an operand without a selective pattern is evaluated in full before it is joined with the patterns
# outside of the UNION. The decision uses estimates; `push_down` pushes filters down again.

_GAIN: Final = 10
"""The least factor by which it must be cheaper: estimates are rough, and each operand reads the patterns again."""


def distribute_joins(node: Node, estimates: Estimates, outside: Vars = NOTHING) -> Node:
    """Distributes joins of patterns with a UNION over its operands, if this is worthwhile by the estimates.

    `outside` are variables that may be bound from outside, in the body of an EXISTS.
    """
    node = rewritten_below(
        node, lambda part, around: distribute_joins(part, estimates, around), outside
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


# --- optimize -------------------------------------------------------------------------------------


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
    construct_messages.errors.UsageError: join='stars' is no hint
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
    """Rewrites a plan into one with the same solutions that is cheaper to evaluate."""
    hints = hints or Hints()
    estimates = Estimates(statistics)
    stars = hints.join == "star" or (hints.join == "auto" and not estimates.known)
    joins = _JoinOrder(estimates, stars, hints.order == "as-written")
    pattern = push_down_filters(plan.pattern)
    if not joins.as_written:
        pattern = distribute_joins(pattern, estimates)
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
    """Puts the patterns of a plan in the order to join them, and into stars."""

    estimates: Estimates  # the estimates that patterns are ordered by
    stars: bool  # whether patterns of one subject become stars
    as_written: bool  # whether patterns stay in the order of the query's text

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
                and nodes[-1].possible & pattern.variables
            ):
                nodes[-1] = Bgp((*nodes[-1].patterns, pattern))
            else:
                nodes.append(Bgp((pattern,)))
        return nodes


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


# --- explanation ----------------------------------------------------------------------------------
# EXPLAIN: a plan as text, its nodes from the outside in, with join orders and estimates.
#
# The text depends on the plan and the statistics only. `optimize` chooses the plan.


def explanation(plan: Plan, statistics: Statistics) -> str:
    """Returns a plan as indented text: a line for each node, and below lists of patterns their order and estimates.

    >>> from construct_messages.rdf.terms import iri
    >>> x, y, p = Var("x"), Var("y"), iri("urn:p")
    >>> print(explanation(Plan("SELECT", Project(Bgp((Triple(x, p, y),)), (x, y)), ("x", "y")), Statistics()))
    estimates: guesses (the table has no statistics)
    duplicates: removed pattern by pattern
    project ?x ?y
      patterns, joined in this order
        1. ?x <urn:p> ?y (50000 matches): about 50000 solutions
    """
    estimates = Estimates(statistics)
    rows = "unknown" if statistics.rows is None else statistics.rows
    known = f"statistics of {rows} quads and {len(statistics.predicates)} predicates"
    lines = [
        f"estimates: {known if estimates.known else 'guesses (the table has no statistics)'}",
        f"duplicates: {'none in the table' if statistics.distinct else 'removed pattern by pattern'}",
    ]
    if plan.dataset != Dataset():
        lines.append(f"dataset: {_dataset(plan.dataset)}")
    if plan.shared_scan:
        lines.append(
            f"quads: read once for {len(plan.shared_scan)} patterns, and shuffled by subject"
        )
    return "\n".join([*lines, *_lines(plan.pattern, estimates)])


def _dataset(dataset: Dataset) -> str:
    default, named = (
        " ".join(names or ()) or "nothing" for names in (dataset.default, dataset.named)
    )
    return f"default graph of {default}; named graphs {named}"


def _lines(node: Node, estimates: Estimates, known: Links = ()) -> Iterator[str]:
    """The lines of a node, and below it, indented, those of its parts.

    `known` are the variables that the condition on a join links.
    """
    yield _head(node, known)
    match node:
        case Bgp(patterns):
            yield from _indented(_steps(patterns, estimates))
        case Star(_, patterns, optional):
            yield from _indented(_steps(patterns, estimates))
            yield from _indented(
                f"-. {_written(pattern)}: where there is one" for pattern in optional
            )
        case Filter(pattern, condition):
            yield from _indented(_lines(pattern, estimates, links(conjuncts(condition))))
            for exists in exists_in(condition):
                yield from _indented(
                    ["the body of EXISTS", *_indented(_lines(exists.pattern, estimates))]
                )
        case Join(left, right):
            for part in (left, right):
                yield from _indented(_lines(part, estimates, known))
        case _:
            for part in node.children:
                yield from _indented(_lines(part, estimates))


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _head(node: Node, known: Links) -> str:
    """Describes a node in a few words; `known` as in `_lines`."""
    match node:
        case Unit():
            return "one empty solution"
        case Bgp():
            return "patterns, joined in this order"
        case Star(subject, patterns, _):
            where = _within(patterns[0].graph)
            return f"star of {_position(subject)}{where}: objects collected subject by subject"
        case Path(subject, _, object, graph):
            return f"path from {_position(subject)} to {_position(object)}{_within(graph)}"
        case Graphs(graph):
            return f"named graphs {_position(graph)}"
        case Values(names, solutions):
            return f"inline data of {_positions(names)}: {len(solutions)} solutions"
        case Join(left, right):
            shared = left.possible & right.possible
            for link in known:
                if linked(left.possible, right.possible, [link]):
                    shared |= link[0] | link[1]
            return (
                f"join on {_positions(sorted(shared))}"
                if shared
                else "cross product (no shared variable)"
            )
        case LeftJoin(left, right, condition):
            read = (
                f", with a condition on {_positions(sorted(mentions(condition)))}"
                if condition
                else ""
            )
            return f"optional on {_positions(sorted(left.possible & right.possible))}{read}"
        case Union():
            return "union"
        case Minus(left, right):
            return f"minus on {_positions(sorted(left.possible & right.possible))}"
        case Filter(_, condition):
            return f"filter on {_positions(sorted(mentions(condition)))}"
        case Extend(_, variable, expression):
            return f"bind {_position(variable)} from {_positions(sorted(mentions(expression)))}"
        case Number():
            return "number the solutions"
        case Group(_, keys, aggregates):
            made = _positions(variable for variable, _ in aggregates)
            return f"group by {_positions(keys)} for {made}"
        case Project(_, names):
            return f"project {_positions(names)}"
        case Distinct():
            return "distinct"
        case OrderBy():
            return "order"
        case Slice(_, offset, limit):
            return f"slice: offset {offset}, limit {'none' if limit is None else limit}"
        case _:
            assert_never(node)


def _steps(patterns: tuple[Triple, ...], estimates: Estimates) -> Iterator[str]:
    for number, step in enumerate(estimates.as_written(patterns), start=1):
        matches = estimates.matches(step.pattern)
        crossing = "" if step.connected else "; a cross product (no shared variable)"
        about = f"about {step.solutions:.6g} solutions"
        yield f"{number}. {_written(step.pattern)} ({matches:.6g} matches): {about}{crossing}"


def _written(pattern: Triple) -> str:
    return f"{_positions((pattern.subject, pattern.predicate, pattern.object))}{_within(pattern.graph)}"


def _within(graph: VarOrTerm | None) -> str:
    return "" if graph is None else f" in graph {_position(graph)}"


def _positions(positions: Iterable[VarOrTerm]) -> str:
    return " ".join(map(_position, positions)) or "nothing"


def _position(position: VarOrTerm) -> str:
    return f"?{position.name}" if isinstance(position, Var) else position
