"""The SPARQL algebra as frozen nodes: SPARQL 1.1 Query, section 18.

Each node knows the variables that it binds: `possible` in some solution, `certain` in every solution. There is no node
for GRAPH: each leaf carries the graph that it matches in, so evaluation has no active graph. Variables whose names
begin with a dot are generated (for blank nodes of the query, graphs, aggregates, marks): no query can name them, and
none is projected. No query text and no engine here; a whole query is a `Plan`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, Self, TypeAlias, assert_never

from construct_messages.rdf.terms import Term

# --- property paths -------------------------------------------------------------------------------
# Property paths as frozen nodes, and equal paths that are simpler to evaluate: SPARQL 1.1 Query, section 18.1.7.
#
# A path between two positions is `nodes.Path`. No evaluation here.


@dataclass(frozen=True, slots=True)
class Link:
    """A predicate."""

    predicate: Term


@dataclass(frozen=True, slots=True)
class Inverse:
    """`^path`."""

    path: PathExpression


@dataclass(frozen=True, slots=True)
class Sequence:
    """`a/b/…`, at least two."""

    paths: tuple[PathExpression, ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    """`a|b|…`, at least two."""

    paths: tuple[PathExpression, ...]


@dataclass(frozen=True, slots=True)
class Closure:
    """`path?`, `path*` and `path+`: a path of length zero (or one) to one (or any number); its ends are a set."""

    path: PathExpression
    kind: Literal["?", "*", "+"]


@dataclass(frozen=True, slots=True)
class Negated:
    """`!(a|^b|…)`: any predicate except these; `forward` or `backward` is None if there are no such members."""

    forward: tuple[Term, ...] | None
    backward: tuple[Term, ...] | None


PathExpression: TypeAlias = Link | Inverse | Sequence | Alternative | Closure | Negated


def outward(path: PathExpression, inverse: bool = False) -> PathExpression:
    """Returns the same path with `^` before single predicates only.

    >>> written(outward(Inverse(Sequence((Link(Term("<urn:p>")), Closure(Link(Term("<urn:q>")), "+"))))))
    '(^<urn:q>+/^<urn:p>)'
    """
    match path:
        case Link():
            return Inverse(path) if inverse else path
        case Inverse(inner):
            return outward(inner, not inverse)
        case Sequence(paths):
            turned = tuple(outward(part, inverse) for part in paths)
            return Sequence(turned[::-1] if inverse else turned)
        case Alternative(paths):
            return Alternative(tuple(outward(part, inverse) for part in paths))
        case Closure(inner, kind):
            return Closure(outward(inner, inverse), kind)
        case Negated(forward, backward):
            return Negated(backward, forward) if inverse else path
        case _:
            assert_never(path)


def is_nullable(path: PathExpression) -> bool:
    """Returns whether the path joins each node with itself.

    >>> p = Link(Term("<urn:p>"))
    >>> is_nullable(Closure(p, "*")), is_nullable(Sequence((p, Closure(p, "*"))))
    (True, False)
    """
    match path:
        case Link() | Inverse() | Negated():
            return False
        case Sequence(paths):
            return all(map(is_nullable, paths))
        case Alternative(paths):
            return any(map(is_nullable, paths))
        case Closure(inner, kind):
            return kind != "+" or is_nullable(inner)
        case _:
            assert_never(path)


def step(path: PathExpression) -> PathExpression:
    """Returns a simpler path which, any number of times, reaches the same nodes: `a|b` for `(a*|b+)`.

    >>> written(step(Alternative((Closure(Link(Term("<urn:a>")), "*"), Closure(Link(Term("<urn:b>")), "+")))))
    '(<urn:a>|<urn:b>)'
    """
    match path:
        case Closure(inner):
            return step(inner)
        case Alternative(paths):
            return Alternative(tuple(map(step, paths)))
        case Sequence(paths) if is_nullable(path):
            return Alternative(tuple(map(step, paths)))
        case _:
            return path


def unbound_closure(path: PathExpression, start: bool, end: bool) -> PathExpression | None:
    """Returns the closure in a path, if any, that would start at every node.

    >>> unbound_closure(Closure(Link(Term("<urn:p>")), "+"), start=False, end=False)
    Closure(path=Link(predicate='<urn:p>'), kind='+')
    >>> unbound_closure(Closure(Link(Term("<urn:p>")), "+"), start=True, end=False)
    """
    match path:
        case Link() | Inverse() | Negated():
            return None
        case Alternative(paths):
            found = (unbound_closure(part, start, end) for part in paths)
        case Sequence(paths):
            first = first_part(paths, start, end)
            found = (
                unbound_closure(
                    part,
                    index > first or (index == 0 and start),
                    index < first or (index == len(paths) - 1 and end),
                )
                for index, part in enumerate(paths)
            )
        case Closure(inner, "?"):
            return unbound_closure(inner, start, end)
        case Closure(inner):
            return unbound_closure(step(inner), start=False, end=False) if start or end else path
        case _:
            assert_never(path)
    return next((closure for closure in found if closure is not None), None)


def first_part(paths: tuple[PathExpression, ...], start: bool, end: bool) -> int:
    """Returns the part of a sequence to begin with: at a bound end, or else one that need not start at every node.

    >>> p = Link(Term("<urn:p>"))
    >>> first_part((Closure(p, "*"), p), start=False, end=False)
    1
    """
    if start or end:
        return 0 if start else len(paths) - 1
    bounded = (
        index
        for index, part in enumerate(paths)
        if unbound_closure(part, start=False, end=False) is None
    )
    return next(bounded, 0)


def written(path: PathExpression) -> str:
    """Returns the path as SPARQL writes it.

    >>> written(Closure(Inverse(Link(Term("<urn:p>"))), "*"))
    '^<urn:p>*'
    """
    match path:
        case Link(predicate):
            return predicate
        case Inverse(inner):
            return f"^{written(inner)}"
        case Sequence(paths):
            return f"({'/'.join(map(written, paths))})"
        case Alternative(paths):
            return f"({'|'.join(map(written, paths))})"
        case Closure(inner, kind):
            return written(inner) + kind
        case Negated(forward, backward):
            return f"!({'|'.join([*(forward or ()), *(f'^{predicate}' for predicate in backward or ())])})"
        case _:
            assert_never(path)


# --- plan -----------------------------------------------------------------------------------------
# A query in the algebra, with its dataset: the result of translation, which the optimizer rewrites and an engine
# evaluates.
#
# SPARQL 1.1 Query, sections 13 (dataset) and 18.2. No query text and no engine here.


@dataclass(frozen=True)
class Dataset:
    """FROM and FROM NAMED: names of the graphs that are merged as the default graph, and of the named graphs.

    Both None: the dataset is that of the quads. If only one was written, the other is empty.
    """

    default: tuple[Term, ...] | None = None
    named: tuple[Term, ...] | None = None


@dataclass(frozen=True)
class Scan:
    """A triple pattern and the filters pushed down to it, each on one variable: quads that fail one need not be
    read."""

    pattern: Triple
    filters: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A query in the algebra."""

    form: Literal["SELECT", "ASK"]
    # returns the solutions; for SELECT a `Project` is on top, below any `Distinct` and `Slice`
    pattern: Node
    variables: tuple[str, ...]  # the projected names, in order
    dataset: Dataset = Dataset()  # the graphs of FROM and FROM NAMED
    ordered: bool = False  # whether the order of the solutions was asked for
    # the patterns whose quads are to be read in one pass over the table, before they are matched
    shared_scan: tuple[Scan, ...] = ()


# --- nodes ----------------------------------------------------------------------------------------

Vars: TypeAlias = "frozenset[Var]"
NOTHING: Final[Vars] = frozenset()


@dataclass(frozen=True, slots=True, order=True)
class Var:
    """A variable, without `?`; `hidden` if it is generated.

    >>> Var("x").hidden, Var(".b0").hidden
    (False, True)
    """

    name: str

    @property
    def hidden(self) -> bool:
        return self.name.startswith(".")


VarOrTerm: TypeAlias = Var | Term
"""A variable or a term (a `str`) in a pattern. The name is from SPARQL's grammar."""


def variables(positions: Iterable[VarOrTerm | None]) -> Vars:
    """The variables among some positions.

    >>> sorted(variables([Var("s"), Term("<urn:p>"), Var("o"), None]))
    [Var(name='o'), Var(name='s')]
    """
    return frozenset(position for position in positions if isinstance(position, Var))


# --- expressions --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constant:
    """A term in an expression."""

    term: Term


@dataclass(frozen=True, slots=True)
class Call:
    """An operator, function or cast."""

    # an operator as SPARQL writes it (`=`, `!=`, `<`, `>`, `<=`, `>=`, `+`, `-`, `*`, `/`, `&&`, `||`, `!`, and `IN`
    # with the needle first; the unary ones are `u+` and `u-`); a function in capitals (`STRLEN`, `IF`, `BOUND`, …); or
    # the IRI of a cast as a term (`<http://www.w3.org/2001/XMLSchema#integer>`). NOT IN is `!` of `IN`, and NOW() is a
    # `Constant`. BNODE() is `FRESH(site, number)` and BNODE(label) is `BNODE(label, number)`, where `site` is an
    # integer that no other call of the query has and `number` the `Var` of a `Number` node below. IRI has the query's
    # base, if there is one, as its second argument. `SAMEKEY`, which the optimizer adds and no query has, is true if
    # `=` is, and a key for joins. `ORDERKEY`, which engines add, is the place of a term in an order, as a string
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Exists:
    """EXISTS; NOT EXISTS is `Call("!", (Exists(…),))`."""

    pattern: Node


Expression: TypeAlias = Var | Constant | Call | Exists


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One aggregate of a group."""

    name: str  # `COUNT`, `SUM`, `MIN`, `MAX`, `AVG`, `SAMPLE` or `GROUP_CONCAT`
    argument: Expression | None  # the aggregated expression; None for `COUNT(*)`
    # whether equal terms (for `COUNT(DISTINCT *)`: equal solutions) count once
    distinct: bool = False
    separator: str = " "  # of `GROUP_CONCAT`


# --- nodes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Triple:
    """A triple pattern; `graph` is None for the default graph, a term or a variable for named graphs."""

    subject: VarOrTerm
    predicate: VarOrTerm
    object: VarOrTerm
    graph: VarOrTerm | None = None

    @property
    def positions(self) -> tuple[VarOrTerm | None, ...]:
        return (self.subject, self.predicate, self.object, self.graph)

    @property
    def variables(self) -> Vars:
        return variables(self.positions)


class _Node:
    """The base of all nodes: the variables that they bind, their children, and their expressions."""

    @cached_property
    def possible(self) -> Vars:
        """The variables that some solution binds: by default those of the operands."""
        return NOTHING.union(*(child.possible for child in self.children))

    @cached_property
    def certain(self) -> Vars:
        """The variables that every solution binds: by default those of the first operand."""
        return self.children[0].certain if self.children else self.possible

    @property
    def children(self) -> tuple[Node, ...]:
        """The operands, without the bodies of EXISTS."""
        return ()

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The node with other operands, in the order of `children`."""
        assert not children
        return self

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions of the node itself."""
        found: list[Expression] = []

        def note(expression: Expression) -> Expression:
            found.append(expression)
            return expression

        self.map_expressions(note)
        return tuple(found)

    def map_expressions(self, change: Callable[[Expression], Expression]) -> Self:  # noqa: ARG002  most have none
        """The node with each of its expressions changed."""
        return self


class Leaf(_Node):
    """A node without operands."""


@dataclass(frozen=True)
class Unary(_Node):
    """An operator with one operand."""

    pattern: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.pattern,)

    def with_children(self, children: tuple[Node, ...]) -> Self:
        return replace(self, pattern=children[0])


@dataclass(frozen=True)
class Binary(_Node):
    """An operator with two operands."""

    left: Node
    right: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def with_children(self, children: tuple[Node, ...]) -> Self:
        return replace(self, left=children[0], right=children[1])


# --- leaves -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unit(Leaf):
    """One solution that binds nothing."""


@dataclass(frozen=True)
class Bgp(Leaf):
    """A basic graph pattern: triple patterns, at least one, in the order in which they are to be joined."""

    patterns: tuple[Triple, ...]

    @cached_property
    def possible(self) -> Vars:
        return NOTHING.union(*(pattern.variables for pattern in self.patterns))


@dataclass(frozen=True)
class Star(Leaf):
    """A star join: triple patterns with one subject (a variable) and constant predicates."""

    subject: Var  # the variable that they share
    # at least two, or one with `optional` ones, each with `subject`, a term as predicate and the same graph
    patterns: tuple[Triple, ...]
    # patterns of the same kind that bind their object where they can (OPTIONAL of one triple each); their objects are
    # variables that occur nowhere else in the star
    optional: tuple[Triple, ...] = ()

    @cached_property
    def certain(self) -> Vars:
        return NOTHING.union(*(pattern.variables for pattern in self.patterns))

    @cached_property
    def possible(self) -> Vars:
        return self.certain | NOTHING.union(*(pattern.variables for pattern in self.optional))


@dataclass(frozen=True)
class Path(Leaf):
    """A property path between two positions that is no plain predicate."""

    subject: VarOrTerm
    path: PathExpression
    object: VarOrTerm
    graph: VarOrTerm | None = None

    @cached_property
    def possible(self) -> Vars:
        return variables((self.subject, self.object, self.graph))


@dataclass(frozen=True)
class Graphs(Leaf):
    """The names of the dataset's named graphs, each once; for a term, one empty solution if the term is such a name."""

    graph: VarOrTerm

    @cached_property
    def possible(self) -> Vars:
        return variables((self.graph,))


@dataclass(frozen=True)
class Values(Leaf):
    """Inline data; None is UNDEF."""

    variables: tuple[Var, ...]
    solutions: tuple[tuple[Term | None, ...], ...]

    @cached_property
    def possible(self) -> Vars:
        return frozenset(self.variables)

    @cached_property
    def certain(self) -> Vars:
        return frozenset(
            variable
            for index, variable in enumerate(self.variables)
            if all(solution[index] is not None for solution in self.solutions)
        )


# --- operators ----------------------------------------------------------------------------------------------------


class Join(Binary):
    """Compatible solutions of both sides, merged."""

    @cached_property
    def certain(self) -> Vars:
        return self.left.certain | self.right.certain


@dataclass(frozen=True)
class LeftJoin(Binary):
    """OPTIONAL; `condition` sees the variables of both sides."""

    condition: Expression | None = None

    def map_expressions(self, change: Callable[[Expression], Expression]) -> Self:
        return self if self.condition is None else replace(self, condition=change(self.condition))


class Union(Binary):
    """The solutions of both sides."""

    @cached_property
    def certain(self) -> Vars:
        return self.left.certain & self.right.certain


@dataclass(frozen=True)
class Minus(Binary):
    """The left solutions without those that share a bound variable with a compatible right one."""

    within: Vars = NOTHING  # variables (graphs) that must agree but do not count as shared

    @cached_property
    def possible(self) -> Vars:
        return self.left.possible


@dataclass(frozen=True)
class Filter(Unary):
    """The solutions whose condition has the effective boolean value true."""

    condition: Expression

    def map_expressions(self, change: Callable[[Expression], Expression]) -> Self:
        return replace(self, condition=change(self.condition))


@dataclass(frozen=True)
class Extend(Unary):
    """BIND: one more variable, unbound where the expression fails."""

    variable: Var
    expression: Expression

    @cached_property
    def possible(self) -> Vars:
        return self.pattern.possible | {self.variable}

    @cached_property
    def certain(self) -> Vars:
        sure = isinstance(self.expression, Constant) or self.expression in self.pattern.certain
        return self.pattern.certain | {self.variable} if sure else self.pattern.certain

    def map_expressions(self, change: Callable[[Expression], Expression]) -> Self:
        return replace(self, expression=change(self.expression))


@dataclass(frozen=True)
class Number(Unary):
    """Adds to each solution a string of letters and digits that is unique in the query: the label of BNODE's nodes."""

    variable: Var

    @cached_property
    def possible(self) -> Vars:
        return self.pattern.possible | {self.variable}

    @cached_property
    def certain(self) -> Vars:
        return self.pattern.certain | {self.variable}


@dataclass(frozen=True)
class Group(Unary):
    """GROUP BY: one solution a group, of its keys and aggregates."""

    # variables (an expression as key is an `Extend` below); unbound is a key too, even if `pattern` never binds the
    # variable. Without keys there is one group, even if there are no solutions
    keys: tuple[Var, ...]
    # variables and the aggregates that they are bound to
    aggregates: tuple[tuple[Var, Aggregation], ...]

    @cached_property
    def possible(self) -> Vars:
        return frozenset(self.keys) | {variable for variable, _ in self.aggregates}

    @cached_property
    def certain(self) -> Vars:
        counts = {variable for variable, one in self.aggregates if one.name == "COUNT"}
        return (frozenset(self.keys) & self.pattern.certain) | counts

    def map_expressions(self, change: Callable[[Expression], Expression]) -> Self:
        def changed(one: Aggregation) -> Aggregation:
            return one if one.argument is None else replace(one, argument=change(one.argument))

        return replace(self, aggregates=tuple((var, changed(one)) for var, one in self.aggregates))


@dataclass(frozen=True)
class Project(Unary):
    """Only these variables, in this order; those that the pattern does not have are unbound."""

    variables: tuple[Var, ...]

    @cached_property
    def possible(self) -> Vars:
        return frozenset(self.variables) & self.pattern.possible

    @cached_property
    def certain(self) -> Vars:
        return frozenset(self.variables) & self.pattern.certain


class Distinct(Unary):
    """Each solution once (REDUCED too, which allows it)."""


@dataclass(frozen=True)
class OrderBy(Unary):
    """The solutions in order; `conditions` are expressions and whether each is descending."""

    conditions: tuple[tuple[Expression, bool], ...]

    def map_expressions(self, change: Callable[[Expression], Expression]) -> Self:
        changed = tuple((change(one), descending) for one, descending in self.conditions)
        return replace(self, conditions=changed)


@dataclass(frozen=True)
class Slice(Unary):
    """OFFSET and LIMIT; `within` are graph variables: each of their values has a slice of its own."""

    offset: int
    limit: int | None
    within: tuple[Var, ...] = ()


_Leaf: TypeAlias = Unit | Bgp | Star | Path | Graphs | Values
_Binary: TypeAlias = Join | LeftJoin | Union | Minus
_Unary: TypeAlias = Filter | Extend | Number | Group | Project | Distinct | OrderBy | Slice
Node: TypeAlias = _Leaf | _Binary | _Unary


# --- correlation ----------------------------------------------------------------------------------
# Correlation, as databases call it: finds the variables of a part of a query that need their values from outside.
#
# SPARQL 1.1 Query, section 18.6, substitutes a solution into the body of the EXISTS that is evaluated for it. Most
# bodies need no substitution: evaluated once and joined on the shared variables, they have the same result. The other
# variables are `correlated_variables`: the evaluation must pass their values down to the leaves. A variable that a
# sub-select does not project is a different variable, even if it has the same name. No engine here.


def mentions(expression: Expression | None) -> Vars:
    """The variables that an expression can read, including all variables in the scope of an EXISTS body.

    >>> sorted(var.name for var in mentions(Call("<", (Var("x"), Call("STRLEN", (Var("y"),))))))
    ['x', 'y']
    """
    match expression:
        case None | Constant():
            return NOTHING
        case Var():
            return frozenset({expression})
        case Call():
            return NOTHING.union(*map(mentions, expression.arguments))
        case Exists(pattern):
            return pattern.possible | correlated_variables(pattern)
        case other:
            assert_never(other)


def correlated_variables(node: Node) -> Vars:
    """The variables whose outer values must be known inside a node; the others can be compared with its results.

    These are variables that an expression reads although the pattern below it may leave them unbound, and variables of
    optional, subtracted or counted parts, which affect the result even if the part has no solution.

    >>> from construct_messages.query.algebra.nodes import Bgp, Filter, Triple
    >>> from construct_messages.rdf.terms import iri
    >>> p, (x, y, z) = iri("urn:p"), map(Var, "xyz")
    >>> correlated_variables(Filter(Bgp((Triple(x, p, y),)), Call("<", (y, z)))) == {z}
    True
    """
    below = NOTHING.union(*map(correlated_variables, node.children))
    read = NOTHING.union(*map(mentions, node.expressions))
    match node:
        case LeftJoin(_, right) | Minus(_, right):
            read |= right.possible
        case Group(_, keys):
            read |= frozenset(keys)
        case Project(_, variables):
            return below & frozenset(variables)
        case Slice(pattern):
            return below | pattern.possible
    return below | read.difference(*(child.certain for child in node.children[:1]))


# --- join order -----------------------------------------------------------------------------------
# The order in which the operands of joins are evaluated: property paths wait until an end of theirs is bound.
#
# A path of any length between two unbound variables would start at every node of the data. SPARQL 1.1 Query, sections
# 18.4 and 18.5: the order of joins changes no solution. Estimates of cost are for the optimizer.


def contains_path(node: Node) -> bool:
    """Whether a node has a property path in it, which can begin from the solutions that the node is joined with."""
    return isinstance(node, Path) or any(map(contains_path, node.children))


def needs_bound_end(node: Node, bound: Vars) -> bool:
    """Whether neither end of a path in a node is bound, where the other operands of a join bind some variables.

    >>> from construct_messages.query.algebra.nodes import Closure, Link
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

    `links` are pairs of variables that an equality links, in addition to shared variables; see `push_down.links`. Paths
    wait until an end of theirs is bound, and operands that would make a cross product wait, too.

    >>> from construct_messages.query.algebra.nodes import Bgp, Triple
    >>> from construct_messages.query.algebra.nodes import Closure, Link
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
