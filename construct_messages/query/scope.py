"""Variable scope: finds the variables that the solutions of a group, GROUP BY, and VALUES clauses can bind.

SPARQL 1.2 Query, section 18.2.1 (variable scope) and section 11 (aggregates). In unknown text, every variable counts.
Queries are not changed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from construct_messages.query.syntax.nodes import (
    AggregateNode,
    AliasNode,
    BindPattern,
    ClauseNode,
    FilterPattern,
    GroupClause,
    GroupPattern,
    HavingClause,
    MinusPattern,
    OrderClause,
    SelectForm,
    ValuesPattern,
    VariableNode,
    walk,
)


def in_scope(*nodes: Any) -> dict[str, None]:
    """Returns the names of the variables that solutions of patterns may bind, in the order of the text.

    Variables only in FILTER, MINUS, the expression of a BIND, or a sub-select that does not project them are left out.

    >>> from construct_messages.query.syntax.parser import parse
    >>> text = "ASK { ?a ?b 1 BIND(?c AS ?d) FILTER(?e) { SELECT ?f (MAX(?g) AS ?h) { ?f ?g ?i } GROUP BY ?f } }"
    >>> list(in_scope(parse(text).form.where))
    ['a', 'b', 'd', 'f', 'h']
    """
    return _variables(nodes, binding=True)


def reached(*nodes: Any) -> dict[str, None]:
    """Returns the variables that bindings at the start of a group apply to: all except those local to sub-selects.

    >>> from construct_messages.query.syntax.parser import parse
    >>> text = "ASK { ?a ?b 1 FILTER(?c) { SELECT ?d { ?d ?e 1 } } { SELECT * { ?f ?g 1 } } }"
    >>> list(reached(parse(text).form.where))
    ['a', 'b', 'c', 'd', 'f', 'g']
    """
    return _variables(nodes, binding=False)


def assigned(group: GroupPattern) -> frozenset[str]:
    """Returns the variables that a group itself assigns by BIND; nested groups do not count.

    >>> from construct_messages.query.syntax.parser import parse
    >>> sorted(assigned(parse("ASK { BIND(1 AS ?a) { BIND(2 AS ?b) } }").form.where))
    ['a']
    """
    return frozenset(
        element.alias.variable.name
        for element in group.elements
        if isinstance(element, BindPattern)
    )


def group_keys(clauses: Sequence[ClauseNode]) -> tuple[str, ...] | None:
    """Returns the variables with one value in each group, in order; None if the query does not group.

    HAVING, or an aggregate in ORDER BY, makes one group of all solutions, without keys.
    """
    for clause in clauses:
        if isinstance(clause, GroupClause):
            keys = (
                each.variable if isinstance(each, AliasNode) else each for each in clause.conditions
            )
            return tuple(dict.fromkeys(key.name for key in keys if isinstance(key, VariableNode)))
    grouping = any(
        isinstance(clause, HavingClause)
        or (isinstance(clause, OrderClause) and next(aggregates(clause), None) is not None)
        for clause in clauses
    )
    return () if grouping else None


def values_variables(clauses: Sequence[ClauseNode]) -> tuple[str, ...]:
    """The variables of the VALUES clause after a query."""
    return tuple(
        dict.fromkeys(
            variable.name
            for clause in clauses
            if isinstance(clause, ValuesPattern)
            for variable in clause.variables
        )
    )


def aggregates(*nodes: Any) -> Iterator[AggregateNode]:
    """Yields the aggregates of expressions, except those in other aggregates or in groups.

    >>> from construct_messages.query.syntax.parser import parse
    >>> [found.name for found in aggregates(parse("ASK {} ORDER BY ?a DESC(COUNT(?b))").form.clauses)]
    ['COUNT']
    """
    inside = walk(*nodes, closed=(AggregateNode, GroupPattern))
    return (node for node in inside if isinstance(node, AggregateNode))


def _variables(nodes: tuple[Any, ...], *, binding: bool) -> dict[str, None]:
    names: dict[str, None] = {}
    left: list[Any] = [nodes]
    while left:
        node = left.pop()
        if isinstance(node, VariableNode):
            names[node.name] = None
        elif isinstance(node, SelectForm) and node.projection is not None:
            left += [
                item.variable if isinstance(item, AliasNode) else item
                for item in reversed(node.projection)
            ]
        elif binding and isinstance(node, SelectForm):
            left += [
                *(each for each in node.clauses if isinstance(each, ValuesPattern)),
                node.where,
            ]
        elif binding and isinstance(node, FilterPattern | MinusPattern):
            continue
        elif binding and isinstance(node, AliasNode):
            left.append(node.variable)
        else:
            left.extend([part for part in reversed(node) if isinstance(part, tuple)])
    return names
