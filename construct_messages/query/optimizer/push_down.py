"""Filters at the lowest node of a plan that binds what they read, and what they tell of the optional parts they meet.

SPARQL 1.1 Query, section 18.5: each rule keeps the bag of solutions. An OPTIONAL whose variable a filter cannot do
without is a join; one whose variable a filter wants unbound (negation before SPARQL 1.1) is NOT EXISTS. Within the body
of an EXISTS a variable may be bound from outside, and such an OPTIONAL stays. Patterns that are joined become one
`Bgp`. Orders and estimates are not for here: see `optimize`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import assert_never

from construct_messages.query.algebra.correlation import (
    NOTHING,
    conjunction,
    conjuncts,
    dependent,
    exists_in,
    mentions,
    operands,
    parts,
    volatile,
    with_bodies,
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
    Project,
    Slice,
    Star,
    Union,
    Unit,
    Values,
    Var,
    Vars,
)

_LENIENT = {"BOUND", "COALESCE", "IF", "IN", "&&", "||"}
"""What may have a value although an argument has none."""


def push_down_filters(node: Node, outside: Vars = NOTHING) -> Node:
    """The node with each filter as low as can be, also in the bodies of EXISTS.

    Args:
        outside: variables that what an EXISTS is asked for may bind, in its body.
    """
    inside = outside & frozenset(node.variables) if isinstance(node, Project) else outside
    node = with_parts(node, tuple(push_down_filters(part, inside) for part in parts(node)))
    around = outside.union(*(part.possible for part in parts(node)))
    node = with_expressions(
        node, lambda one: with_bodies(one, lambda body: _witness(push_down_filters(body, around), NOTHING))
    )
    match node:
        case Filter(pattern, condition):
            return filtered(pattern, conjuncts(condition), outside)
        case LeftJoin(left, right, condition) if condition is not None:
            # what reads nothing that only the left side is sure of narrows the right side
            conditions = conjuncts(condition)
            own = tuple(one for one in conditions if mentions(one) & left.possible <= right.certain and not _stays(one))
            rest = conjunction(tuple(one for one in conditions if one not in own))
            return LeftJoin(left, filtered(right, own, outside), rest)
        case Join():
            return met(node)
    return node


def filtered(node: Node, conditions: Iterable[Expression], outside: Vars = NOTHING) -> Node:
    """The node under conditions, each of them as low as can be; the others on top, as one."""
    stay = []
    for one in conditions:
        lower = None if _stays(one) else _lowered(node, one, outside)
        if lower is None:
            stay.append(one)
        else:
            node = lower
    if stay and isinstance(node, Filter):
        stay = [*conjuncts(node.condition), *stay]
        node = node.pattern
    rest = conjunction(tuple(stay))
    return node if rest is None else Filter(node, rest)


def met(join: Node) -> Node:
    """A join, with the patterns among its operands in one `Bgp`."""
    joined = list(operands(join))
    patterns = tuple(one for operand in joined if isinstance(operand, Bgp) for one in operand.patterns)
    nodes: list[Node] = [Bgp(patterns)] if patterns else []
    # a filter over one of the operands need not come before the join
    nodes += (operand for operand in joined if not isinstance(operand, Bgp | Unit))
    return reduce(Join, nodes) if nodes else Unit()


def _stays(condition: Expression) -> bool:
    return volatile(condition) or bool(exists_in(condition))


def _lowered(node: Node, condition: Expression, outside: Vars) -> Node | None:
    """The node with a condition somewhere below it, or None where the condition has to stay on top."""
    read = mentions(condition)

    def under(below: Node) -> Node:
        lower = _lowered(below, condition, outside)
        return Filter(below, condition) if lower is None else lower

    match node:
        case Join(left, right):
            # where a side binds all that is read, for certain, its solutions and their merge agree on it
            if read <= left.certain:
                return Join(under(left), right)
            return Join(left, under(right)) if read <= right.certain else None
        case LeftJoin(left, right, own):
            if read <= left.certain:
                return LeftJoin(under(left), right, own)
            new = right.possible - left.possible - outside
            if _needed(condition) & new:
                return filtered(met(Join(left, right)), (*(() if own is None else conjuncts(own)), condition), outside)
            if _absent(condition) & new & right.certain and _is_apart(left, right, own):
                body = right if own is None else Filter(right, own)
                return Filter(left, Call("!", (Exists(body),)))
            return None
        case Minus(left, right, within):
            return Minus(under(left), right, within)
        case Union(left, right):
            return Union(under(left), under(right))
        case Extend(pattern, variable, expression):
            return Extend(under(pattern), variable, expression) if variable not in read else None
        case Number(pattern, variable):
            return Number(under(pattern), variable) if variable not in read else None
        case Project(pattern, variables):
            # a variable that is not projected is another one inside
            kept = frozenset(variables)
            return Project(filtered(pattern, (condition,), outside & kept), variables) if read <= kept else None
        case Distinct(pattern):
            return Distinct(under(pattern))
        case OrderBy(pattern, conditions):
            return OrderBy(under(pattern), conditions)
        case Filter(pattern, other):
            lower = _lowered(pattern, condition, outside)
            return None if lower is None else filtered(lower, conjuncts(other), outside)
        case Unit() | Bgp() | Star() | Path() | Graphs() | Values() | Group() | Slice():
            return None
        case _:
            assert_never(node)


def _witness(node: Node, read: Vars) -> Node:
    """A node that has a solution wherever a body of EXISTS has one, without the optional parts that change nothing.

    Args:
        read: variables whose values decide whether the solutions of the node count.

    >>> from construct_messages.query.algebra.nodes import Triple
    >>> from construct_messages.terms import iri
    >>> left, right = (Bgp((Triple(Var("x"), iri("urn:p"), Var(name)),)) for name in "yz")
    >>> _witness(LeftJoin(left, right), NOTHING) == left, _witness(LeftJoin(left, right), frozenset({Var("z")})) == left
    (True, False)
    """
    match node:
        case LeftJoin(left, right) if not (right.possible - left.certain) & read:
            return _witness(left, read)
        case LeftJoin(left, right, condition):
            return LeftJoin(_witness(left, read | right.possible | mentions(condition)), right, condition)
        case Join(left, right):
            return met(Join(_witness(left, read | right.possible), _witness(right, read | left.possible)))
        case Union(left, right):
            return Union(_witness(left, read), _witness(right, read))
        case Minus(left, right, within):
            return Minus(_witness(left, read | right.possible), right, within)
        case Filter(pattern, condition):
            return Filter(_witness(pattern, read | mentions(condition)), condition)
        case Extend(pattern, variable, expression):
            return Extend(_witness(pattern, read | mentions(expression) | {variable}), variable, expression)
        case Distinct(pattern) | OrderBy(pattern):
            return _witness(pattern, read)
    return node


def _needed(condition: Expression) -> Vars:
    """Variables without which a condition is not true.

    >>> x, y = Var("x"), Var("y")
    >>> _needed(Call("=", (x, Call("STR", (y,))))) == {x, y}, _needed(Call("COALESCE", (x, y)))
    (True, frozenset())
    """
    match condition:
        case Call("BOUND", (Var() as variable,)):
            return frozenset({variable})
        case Var():
            return frozenset({condition})
        case Call(name, arguments) if name not in _LENIENT:
            return NOTHING.union(*(_strict(argument) for argument in arguments))
    return NOTHING


def _strict(expression: Expression) -> Vars:
    """Variables without which an expression is an error."""
    match expression:
        case Var():
            return frozenset({expression})
        case Call(name, arguments) if name not in _LENIENT:
            return NOTHING.union(*map(_strict, arguments))
        case Constant() | Exists() | Call():
            return NOTHING
        case _:
            assert_never(expression)


def _absent(condition: Expression) -> Vars:
    """The variable that a condition wants unbound."""
    match condition:
        case Call("!", (Call("BOUND", (Var() as variable,)),)):
            return frozenset({variable})
    return NOTHING


def _is_apart(left: Node, right: Node, condition: Expression | None) -> bool:
    """Whether the optional part, as the body of an EXISTS, can be evaluated once and joined on what it binds."""
    shared = left.possible & right.possible
    conditions = () if condition is None else conjuncts(condition)
    return (
        not dependent(right) & left.possible
        and shared <= right.certain
        and all(not _stays(one) and mentions(one) & shared <= left.certain for one in conditions)
    )
