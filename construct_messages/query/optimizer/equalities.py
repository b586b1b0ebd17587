"""Equalities as join keys: `=` as sameTerm where neither side can be a literal, and with SAMEKEY if one can.

SPARQL 1.1 Query, sections 17.3 and 17.4.1.7 (RDFterm-equal). A subject, predicate or graph is no literal, and equals
the same term only. `SAMEKEY` is added to any other `=` that links two operands of a join. It is true if `=` is: an
engine can join by keys, and evaluate `=` for the joined pairs only. The engine defines the keys.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, TypeAlias, assert_never

from construct_messages.query.algebra.calls import (
    conjunction,
    conjuncts,
    exists_in,
    is_volatile,
)
from construct_messages.query.algebra.correlation import mentions
from construct_messages.query.algebra.nodes import (
    NOTHING,
    Bgp,
    Call,
    Constant,
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
    Path,
    Project,
    Star,
    Unary,
    Union,
    Unit,
    Values,
    Var,
    VarOrTerm,
    Vars,
    variables,
)
from construct_messages.rdf.terms import is_literal

Links: TypeAlias = tuple[tuple[Vars, Vars], ...]
"""The variables of the two sides of each equality that operands can be joined by."""

_JOINING: Final = ("SAMEKEY", "SAMETERM")


def add_join_keys(node: Node, outside: Vars = NOTHING) -> Node:
    """Turns equalities into join keys, also in the bodies of EXISTS.

    `outside` are variables that are always bound from outside, and never to a literal, in the body of an EXISTS.

    >>> from construct_messages.query.algebra.nodes import Triple
    >>> from construct_messages.rdf.terms import iri
    >>> s, n, p = Var("s"), Var("n"), iri("urn:p")
    >>> add_join_keys(Filter(Bgp((Triple(s, p, n),)), Call("=", (s, n)))).condition
    Call(name='SAMETERM', arguments=(Var(name='s'), Var(name='n')))
    """
    inside = outside & frozenset(node.variables) if isinstance(node, Project) else outside
    node = node.with_children(tuple(add_join_keys(part, inside) for part in node.children))
    sure = outside.union(*map(resources, node.children))
    node = node.map_expressions(lambda one: _compared_by_term(one, sure))
    match node:
        case Filter(pattern, condition):
            condition = _with_keys(condition, node)
            return Filter(_with_keys_below(pattern, conjuncts(condition), sure), condition)
        case LeftJoin(left, right, condition) if condition is not None:
            return LeftJoin(left, right, _with_keys(condition, node))
    return node


def _compared_by_term(expression: Expression, sure: Vars) -> Expression:
    """The expression with sameTerm for each `=` and `!=` of a variable that is never bound to a literal."""
    match expression:
        case Var() | Constant():
            return expression
        case Exists(pattern):
            return Exists(add_join_keys(pattern, sure))
        case Call(("=" | "!=") as name, (Var() as left, Var() as right)) if {left, right} & sure:
            same = Call("SAMETERM", (left, right))
            return same if name == "=" else Call("!", (same,))
        case Call(name, arguments):
            return Call(name, tuple(_compared_by_term(argument, sure) for argument in arguments))
        case _:
            assert_never(expression)


def _with_keys(condition: Expression, node: Node) -> Expression:
    """A condition of a node with SAMEKEY added to each `=` that links operands of the node."""
    conditions: list[Expression] = []
    for one in conjuncts(condition):
        match one:
            case Call("=", (left, right)) if not (
                is_volatile(one) or exists_in(one)
            ) and _links_operands((left, right), node.children):
                conditions.append(Call("SAMEKEY", (left, right)))
        conditions.append(one)
    return conjunction(conditions) or condition


def _with_keys_below(node: Node, conditions: tuple[Expression, ...], sure: Vars) -> Node:
    """Moves the keys of equalities with the variable of a BIND below the BIND, where they can join."""
    match node:
        case Extend(pattern, variable, expression) if not (
            is_volatile(expression) or exists_in(expression)
        ):
            keys = tuple(
                Call("SAMEKEY", sides)
                for one in conditions
                if isinstance(one, Call) and variable in one.arguments
                # one NaN is the same term as another, and has no key
                if one.name == "SAMEKEY"
                or (one.name == "SAMETERM" and sure.intersection(one.arguments))
                for sides in [
                    tuple(expression if side == variable else side for side in one.arguments)
                ]
                if _links_operands(sides, (pattern,))
            )
            if (condition := conjunction(keys)) is not None:
                return Extend(
                    Filter(_with_keys_below(pattern, keys, sure), condition), variable, expression
                )
    return node


def _links_operands(expressions: tuple[Expression, ...], nodes: tuple[Node, ...]) -> bool:
    """Whether no single operand of some nodes binds all variables of two expressions."""
    left, right = map(mentions, expressions)
    together = (group for node in nodes for group in _bound_together(node))
    return (
        bool(left and right)
        and not left & right
        and not any(left | right <= group for group in together)
    )


def _bound_together(node: Node) -> Iterator[Vars]:
    """Sets of variables that are bound without a join, or joined by their subject."""
    if isinstance(node, Bgp):
        subjects = defaultdict[VarOrTerm, Vars](frozenset)
        for pattern in node.patterns:
            subjects[pattern.subject] |= pattern.variables
        yield from subjects.values()
    elif below := node.children:
        for part in below:
            yield from _bound_together(part)
    else:
        yield node.possible


def links(conditions: tuple[Expression, ...]) -> Links:
    """The links among the conditions of a filter.

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
            return variables(
                place for one in patterns for place in (one.subject, one.predicate, one.graph)
            )
        case Path(graph=graph) | Graphs(graph):
            return variables((graph,))
        case Unit():
            return NOTHING
        case Values(names, solutions):
            return frozenset(
                name
                for index, name in enumerate(names)
                if all(
                    (term := one[index]) is not None and not is_literal(term) for one in solutions
                )
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
        case Unary(pattern):
            return resources(pattern)
        case _:
            assert_never(node)
