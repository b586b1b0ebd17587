"""Which variables have a value where: in the solutions of a group, behind GROUP BY, behind a VALUES clause.

SPARQL 1.2 Query, section 18.2.1 (variable scope) and section 11 (aggregates), told from tokens, without a parser: of a
dialect's own clauses every variable counts. Nothing here changes a query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from construct_messages.query.tokens import Token, decoded, outer

_AGGREGATES: Final = ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT")


def in_scope(tokens: Sequence[Token], opening: int) -> frozenset[str]:
    """The variables that solutions of a group may bind, as names.

    Not those that stand only in FILTER, MINUS, the expression of a BIND, or in a sub-select that does not project them.

    Args:
        tokens: of the query, with balanced braces.
        opening: the index of the group's `{`.

    >>> from construct_messages.query.tokens import tokenize
    >>> text = "{ ?a ?b 1 BIND(?c AS ?d) FILTER(?e) { SELECT ?f (MAX(?g) AS ?h) { ?f ?g ?i } GROUP BY ?f } }"
    >>> sorted(in_scope(tokenize(text), 0))
    ['a', 'b', 'd', 'f', 'h']
    """
    return _variables(tokens, opening, binding=True)


def reached(tokens: Sequence[Token], opening: int) -> frozenset[str]:
    """The variables of a group that a value given to it reaches: all but those that sub-selects keep to themselves.

    >>> from construct_messages.query.tokens import tokenize
    >>> sorted(reached(tokenize("{ ?a ?b 1 FILTER(?c) { SELECT ?d { ?d ?e 1 } } { SELECT * { ?f ?g 1 } } }"), 0))
    ['a', 'b', 'c', 'd', 'f', 'g']
    """
    return _variables(tokens, opening, binding=False)


def assigned(tokens: Sequence[Token], opening: int) -> frozenset[str]:
    """The variables to which a group itself assigns by BIND, not the groups in it.

    >>> from construct_messages.query.tokens import tokenize
    >>> sorted(assigned(tokenize("{ BIND(1 AS ?a) { BIND(2 AS ?b) } }"), 0))
    ['a']
    """
    ends = closings(tokens, opening)
    names: set[str] = set()
    index = opening + 1
    while index < ends.get(opening, len(tokens)):
        if tokens[index].keyword == "BIND" and index + 1 in ends:
            names.update(_alias(tokens, ends[index + 1]))
        index = ends.get(index, index) + 1
    return frozenset(names)


def group_keys(aggregation: Sequence[Token], order: Sequence[Token]) -> tuple[str, ...] | None:
    """The variables that have one value in each group, in order; None where the query does not group.

    HAVING, or an aggregate in ORDER BY, groups all solutions into one, without keys.

    Args:
        aggregation: GROUP BY and HAVING.
        order: ORDER BY.
    """
    places = list(outer(aggregation, 0, len(aggregation)))
    grouping = next((index for index in places if aggregation[index].keyword == "GROUP"), None)
    having = next((index for index in places if aggregation[index].keyword == "HAVING"), None)
    if grouping is None:
        return None if having is None and not any(aggregates(order)) else ()
    conditions = aggregation[grouping + 2 : having]
    keys: dict[str, None] = {}
    depth = 0
    for index, token in enumerate(conditions):
        depth += token.is_mark("(", "{") - token.is_mark(")", "}")
        if token.kind != "variable":
            continue
        before = [
            part.kind if part.kind != "mark" else part.text
            for part in conditions[max(0, index - 2) : index]
        ]
        is_alias = depth == 1 and conditions[index - 1].keyword == "AS"
        # engines take `GROUP BY (?v)` as `GROUP BY ?v`; in `GROUP BY STR(?v)` a name stands before the bracket
        is_bracketed = (
            depth == 1 and before[-1:] == ["("] and before[0] not in ("word", "pname", "iri")
        )
        if (
            depth == 0
            or is_alias
            or (
                is_bracketed
                and conditions[index + 1 : index + 2]
                and conditions[index + 1].is_mark(")")
            )
        ):
            keys[_name(token)] = None
    return tuple(keys)


def group_aliases(aggregation: Sequence[Token]) -> frozenset[str]:
    """The variables to which GROUP BY itself assigns.

    >>> from construct_messages.query.tokens import tokenize
    >>> sorted(group_aliases(tokenize("GROUP BY ?a (STR(?a) AS ?b)")))
    ['b']
    """
    return frozenset(
        _name(token)
        for before, token in pairwise(aggregation)
        if before.keyword == "AS" and token.kind == "variable"
    )


def values_variables(values: Sequence[Token]) -> tuple[str, ...]:
    """The variables of a VALUES clause, which is what the tokens begin with, if it is one.

    >>> from construct_messages.query.tokens import tokenize
    >>> values_variables(tokenize("VALUES (?a ?b) { (1 2) }"))
    ('a', 'b')
    """
    if not values or values[0].keyword != "VALUES":
        return ()
    end = next((index for index, token in enumerate(values) if token.is_mark("{")), 0)
    return tuple(dict.fromkeys(_name(token) for token in values[:end] if token.kind == "variable"))


def aggregates(order: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yields the aggregates of an ORDER BY: the indexes of the first token of each and of its `)`.

    >>> from construct_messages.query.tokens import tokenize
    >>> list(aggregates(tokenize("ORDER BY ?a DESC(COUNT(?b))")))
    [(5, 8)]
    """
    ends = closings(order, 0)
    index = 0
    while index < len(order) - 1:
        if order[index].keyword in _AGGREGATES and index + 1 in ends:
            yield index, ends[index + 1]
            index = ends[index + 1]
        elif order[index].is_mark("{"):
            index = ends.get(index, index)
        index += 1


def _variables(tokens: Sequence[Token], opening: int, *, binding: bool) -> frozenset[str]:
    """The variables of a group that no sub-select hides; with `binding` only those that its solutions may bind."""
    ends = closings(tokens, opening)
    names: set[str] = set()
    index, last = opening, ends.get(opening, len(tokens))
    while index < last:
        token = tokens[index]
        following = tokens[index + 1] if index + 1 < last else token
        if token.kind == "variable":
            names.add(_name(token))
        elif binding and token.keyword == "FILTER":
            index = _behind_constraint(tokens, index + 1, last, ends)
            continue
        elif binding and token.keyword == "MINUS" and following.is_mark("{"):
            index = ends[index + 1]
        elif binding and token.keyword == "BIND" and following.is_mark("("):
            index = ends.get(index + 1, last)
            names.update(_alias(tokens, index))
        elif token.is_mark("{") and following.keyword == "SELECT":
            projected = _projected(tokens, index + 2, ends[index], ends)
            if projected is not None:
                names |= projected
                index = ends[index]
        index += 1
    return frozenset(names)


def closings(tokens: Sequence[Token], start: int) -> dict[int, int]:
    """Returns, by the index of each `{` and `(` that is closed, the index of the bracket that closes it.

    Args:
        tokens: of the query.
        start: the index to begin at.

    >>> from construct_messages.query.tokens import tokenize
    >>> closings(tokenize("{ (?a) }"), 0)
    {1: 3, 0: 4}
    """
    ends: dict[int, int] = {}
    begun: list[int] = []
    for index in range(start, len(tokens)):
        token = tokens[index]
        if token.is_mark("{", "("):
            begun.append(index)
        elif token.is_mark("}", ")"):
            opening = "{" if token.text == "}" else "("
            # a bracket that is never closed ends with the braces around it
            while begun and opening == "{" and tokens[begun[-1]].text != "{":
                begun.pop()
            if begun and tokens[begun[-1]].text == opening:
                ends[begun.pop()] = index
    return ends


def _behind_constraint(tokens: Sequence[Token], index: int, last: int, ends: dict[int, int]) -> int:
    """Behind a FILTER's constraint: in brackets, a function's call, or EXISTS and its group."""
    while index < last and tokens[index].keyword in ("NOT", "EXISTS"):
        index += 1
    if index < last and index not in ends and index + 1 in ends:
        index += 1  # the function's name
    return ends.get(index, index - 1) + 1


def _projected(
    tokens: Sequence[Token], index: int, last: int, ends: dict[int, int]
) -> set[str] | None:
    """Returns the variables that a sub-select projects, from the tokens after SELECT; None for all."""
    names: set[str] = set()
    while index < last and not tokens[index].is_mark("{"):
        if tokens[index].text == "*":
            return None
        if tokens[index].kind == "variable":
            names.add(_name(tokens[index]))
        if index in ends:
            index = ends[index]
            names.update(_alias(tokens, index))
        index += 1
    return names


def _alias(tokens: Sequence[Token], end: int) -> Iterator[str]:
    """The variable of `… AS ?v)`, by the index of the bracket."""
    if tokens[end - 1].kind == "variable" and tokens[end - 2].keyword == "AS":
        yield _name(tokens[end - 1])


def _name(token: Token) -> str:
    return decoded("", token)[1:]
