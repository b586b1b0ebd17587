"""Renames variables in patterns of the algebra, and removes projections that only hide names.

SPARQL 1.1 Query, section 12: variables that a sub-select does not project are not visible outside, so they may be
renamed to any unused name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from construct_messages.query.algebra.expressions import map_bodies
from construct_messages.query.algebra.nodes import (
    Bgp,
    Call,
    Constant,
    Exists,
    Expression,
    Extend,
    Group,
    Minus,
    Node,
    Project,
    Triple,
    Values,
    Var,
    VarOrTerm,
)


def renamed(node: Node, names: Mapping[Var, Var]) -> Node:
    """Returns a pattern with renamed variables.

    Args:
        node: without paths, stars, sub-selects that are sliced, and names of graphs.
        names: the new names by the old ones.

    >>> renamed(Bgp((Triple(Var("s"), Var("p"), Var("o")),)), {Var("s"): Var("x")}).patterns[0].subject
    Var(name='x')
    """

    def name(variable: Var) -> Var:
        return names.get(variable, variable)

    def place(position: VarOrTerm) -> VarOrTerm:
        return name(position) if isinstance(position, Var) else position

    if node.children:
        node = node.with_children(tuple(renamed(child, names) for child in node.children))
    node = node.map_expressions(lambda expression: _renamed_in(expression, names))
    match node:
        case Bgp(patterns):
            return Bgp(
                tuple(
                    Triple(
                        place(one.subject),
                        place(one.predicate),
                        place(one.object),
                        None if one.graph is None else place(one.graph),
                    )
                    for one in patterns
                )
            )
        case Values(variables):
            return replace(node, variables=tuple(map(name, variables)))
        case Extend(variable=variable):
            return replace(node, variable=name(variable))
        case Group(keys=keys, aggregates=aggregates):
            return replace(
                node,
                keys=tuple(map(name, keys)),
                aggregates=tuple((name(variable), one) for variable, one in aggregates),
            )
        case Project(variables=variables):
            return replace(node, variables=tuple(map(name, variables)))
        case Minus(within=within):
            return replace(node, within=frozenset(map(name, within)))
    return node


def _renamed_in(expression: Expression, names: Mapping[Var, Var]) -> Expression:
    match expression:
        case Var():
            return names.get(expression, expression)
        case Constant():
            return expression
        case Call(name, arguments):
            return Call(name, tuple(_renamed_in(argument, names) for argument in arguments))
        case Exists():
            return map_bodies(expression, lambda body: renamed(body, names))


class Unprojected:
    """Removes projections, and renames hidden variables to unused names."""

    def __init__(self) -> None:
        self._number = count()

    def __call__(self, node: Node) -> Node:
        """Returns the pattern without projections; its solutions also bind hidden variables."""
        if node.children:
            node = node.with_children(tuple(map(self, node.children)))
        node = node.map_expressions(lambda expression: map_bodies(expression, self))
        match node:
            case Project(pattern, variables):
                hidden = pattern.possible.difference(variables)
                return renamed(pattern, {variable: self._fresh() for variable in hidden})
            case Extend(pattern, variable, Var() as same) if (
                same.hidden and same in pattern.certain and variable not in pattern.possible
            ):  # the graph of a group
                return renamed(pattern, {same: variable})
        return node

    def _fresh(self) -> Var:
        return Var(f".u{next(self._number)}")
