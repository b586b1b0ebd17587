"""Equalities that join: `=` as one term where no literal can be, and beside it a key to join by where one can.

SPARQL 1.1 Query, sections 17.3 and 17.4.1.7 (RDFterm-equal). What stands as a subject, predicate or graph is no
literal, and equals the same term only. Any other `=` that links two parts of a query gets `SAMEKEY` beside it, which is
true wherever it is: Spark joins by that, and asks `=` of what has met. Pure algebra: what a key is, is `value_keys`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, TypeAlias, assert_never

from construct_messages.query.algebra.correlation import (
    NOTHING,
    conjunction,
    conjuncts,
    exists_in,
    mentions,
    parts,
    volatile,
    with_expressions,
    with_parts,
)
from construct_messages.query.algebra.nodes import (
    Bgp,
    Call,
    Constant,
    Distinct,
    Exists,
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
    Position,
    Project,
    Slice,
    Star,
    Union,
    Unit,
    Values,
    Var,
    Vars,
    variables,
)
from construct_messages.terms import is_literal

Links: TypeAlias = tuple[tuple[Vars, Vars], ...]
"""The variables that the two sides of each equality read that parts of a query can be joined by."""

_JOINING: Final = ("SAMEKEY", "SAMETERM")


def keyed(node: Node, outside: Vars = NOTHING) -> Node:
    """The node with its equalities as Spark can join by them, also in the bodies of EXISTS.

    Args:
        outside: in such a body, what each solution that it is asked for binds, and never to a literal.

    >>> from construct_messages.query.algebra.nodes import Triple
    >>> from construct_messages.terms import iri
    >>> s, n, p = Var("s"), Var("n"), iri("urn:p")
    >>> keyed(Filter(Bgp((Triple(s, p, n),)), Call("=", (s, n)))).condition
    Call(name='SAMETERM', arguments=(Var(name='s'), Var(name='n')))
    """
    inside = outside & frozenset(node.variables) if isinstance(node, Project) else outside
    node = with_parts(node, tuple(keyed(part, inside) for part in parts(node)))
    sure = outside.union(*map(resources, parts(node)))
    node = with_expressions(node, lambda one: _by_term(one, sure))
    match node:
        case Filter(pattern, condition):
            condition = _with_keys(condition, node)
            return Filter(_linked_below(pattern, conjuncts(condition), sure), condition)
        case LeftJoin(left, right, condition) if condition is not None:
            return LeftJoin(left, right, _with_keys(condition, node))
    return node


def _by_term(expression: Expression, sure: Vars) -> Expression:
    """The expression with each `=` and `!=` that no literal is part of told by terms."""
    match expression:
        case Var() | Constant():
            return expression
        case Exists(pattern):
            return Exists(keyed(pattern, sure))
        case Call(("=" | "!=") as name, (Var() as left, Var() as right)) if {left, right} & sure:
            same = Call("SAMETERM", (left, right))
            return same if name == "=" else Call("!", (same,))
        case Call(name, arguments):
            return Call(name, tuple(_by_term(argument, sure) for argument in arguments))
        case _:
            assert_never(expression)


def _with_keys(condition: Expression, node: Node) -> Expression:
    """A condition of a node with a key beside each `=` that links parts of the node."""
    keyed: list[Expression] = []
    for one in conjuncts(condition):
        match one:
            case Call("=", (left, right)) if not (volatile(one) or exists_in(one)) and _link(
                (left, right), parts(node)
            ):
                keyed.append(Call("SAMEKEY", (left, right)))
        keyed.append(one)
    return conjunction(tuple(keyed)) or condition


def _linked_below(node: Node, conditions: tuple[Expression, ...], sure: Vars) -> Node:
    """The node with the keys of equalities with what BIND gives below the BIND, where they can join.

    Args:
        conditions: on the solutions of the node.
        sure: what is never bound to a literal.
    """
    match node:
        case Extend(pattern, variable, expression) if not (volatile(expression) or exists_in(expression)):
            keys = tuple(
                Call("SAMEKEY", sides)
                for one in conditions
                if isinstance(one, Call) and variable in one.arguments
                # one NaN is the same term as another, and has no key
                if one.name == "SAMEKEY" or (one.name == "SAMETERM" and sure.intersection(one.arguments))
                for sides in [tuple(expression if side == variable else side for side in one.arguments)]
                if _link(sides, (pattern,))
            )
            if (condition := conjunction(keys)) is not None:
                return Extend(Filter(_linked_below(pattern, keys, sure), condition), variable, expression)
    return node


def _link(expressions: tuple[Expression, ...], nodes: tuple[Node, ...]) -> bool:
    """Whether two expressions read what no one part of some nodes binds together."""
    left, right = map(mentions, expressions)
    together = (group for node in nodes for group in _together(node))
    return bool(left and right) and not left & right and not any(left | right <= group for group in together)


def _together(node: Node) -> Iterator[Vars]:
    """Groups of variables that are bound without a join, or joined by their subject."""
    if isinstance(node, Bgp):
        subjects = defaultdict[Position, Vars](frozenset)
        for pattern in node.patterns:
            subjects[pattern.subject] |= variables(pattern.positions)
        yield from subjects.values()
    elif below := parts(node):
        for part in below:
            yield from _together(part)
    else:
        yield node.possible


def links(conditions: tuple[Expression, ...]) -> Links:
    """Those of the conditions of a filter.

    >>> links((Call("SAMEKEY", (Var("x"), Var("y"))), Call("<", (Var("x"), Var("y")))))
    ((frozenset({Var(name='x')}), frozenset({Var(name='y')})),)
    """
    return tuple(
        (mentions(one.arguments[0]), mentions(one.arguments[1]))
        for one in conditions
        if isinstance(one, Call) and one.name in _JOINING and all(map(mentions, one.arguments))
    )


def resources(node: Node) -> Vars:
    """Variables that every solution binds, and none of them to a literal."""
    match node:
        case Bgp(patterns) | Star(_, patterns):
            return variables(place for one in patterns for place in (one.subject, one.predicate, one.graph))
        case Path(graph=graph) | Graphs(graph):
            return variables((graph,))
        case Unit():
            return NOTHING
        case Values(names, solutions):
            return frozenset(
                name
                for index, name in enumerate(names)
                if all((term := one[index]) is not None and not is_literal(term) for one in solutions)
            )
        case Join(left, right):
            return resources(left) | resources(right)
        case LeftJoin(left) | Minus(left):
            return resources(left)
        case Union(left, right):
            return resources(left) & resources(right)
        case Extend(pattern, variable, expression):
            found = resources(pattern)
            return found | {variable} if expression in found else found
        case Group(pattern, keys):
            return resources(pattern) & frozenset(keys)
        case Project(pattern, kept):
            return resources(pattern) & frozenset(kept)
        case Filter(pattern) | Number(pattern) | Distinct(pattern) | OrderBy(pattern) | Slice(pattern):
            return resources(pattern)
        case _:
            assert_never(node)
