"""What a query demands of the quads that its triple patterns match, before any two patterns are joined.

Which patterns may be read together, and which conditions on one variable of theirs a quad must meet to be of any use:
SPARQL 1.1 Query, sections 18.5 (Filter, LeftJoin) and 18.2.2.2 (a FILTER of an OPTIONAL is a condition of the join).
Where the quads are read is `gathering`. Pure algebra: no SQL and no pyspark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from construct_messages.query.algebra.correlation import conjuncts, exists_in, mentions, volatile
from construct_messages.query.algebra.nodes import (
    Bgp,
    Demand,
    Expression,
    Filter,
    LeftJoin,
    Node,
    Triple,
    Var,
    variables,
)


def demands(node: Node) -> tuple[Demand, ...]:
    """What is demanded of each pattern with a constant predicate, wherever in the node, also in bodies of EXISTS.

    A pattern that stands in several places has the conditions that all of them share. The conditions stay where they
    are in the node, too: what they say of quads, they say of solutions.

    >>> from construct_messages.query.algebra.nodes import Call, Constant
    >>> from construct_messages.terms import Term
    >>> pattern, positive = Triple(Var("x"), Term("<urn:p>"), Var("y")), Call(">", (Var("y"), Constant(Term("0"))))
    >>> demands(Filter(Bgp((pattern,)), positive)) == (Demand(pattern, (positive,)),)
    True
    """
    found: dict[Triple, tuple[Expression, ...]] = {}
    for pattern, conditions in _placed(node, ()):
        known = found.get(pattern, conditions)
        found[pattern] = tuple(condition for condition in known if condition in conditions)
    return tuple(
        Demand(pattern, conditions) for pattern, conditions in found.items() if not isinstance(pattern.predicate, Var)
    )


def _placed(value: object, conditions: tuple[Expression, ...]) -> Iterator[tuple[Triple, tuple[Expression, ...]]]:
    """The patterns of a part of a query, each time with the conditions that it is under there.

    Args:
        conditions: what each solution of the part must meet.
    """
    match value:
        case Bgp(patterns):
            for pattern in patterns:
                yield pattern, tuple(condition for condition in conditions if _is_about(pattern, condition))
        case Filter(pattern, condition):
            yield from _placed(pattern, (*conditions, *conjuncts(condition)))
            yield from _placed(condition, ())
        case LeftJoin(left, right, condition):
            yield from _placed(left, ())
            yield from _placed(right, () if condition is None else conjuncts(condition))
            yield from _placed(condition, ())
        case tuple():
            for part in value:
                yield from _placed(part, ())
        case _ if is_dataclass(value):
            for part in fields(value):
                yield from _placed(getattr(value, part.name), ())


def _is_about(pattern: Triple, condition: Expression) -> bool:
    """Whether one quad alone decides a condition, by the one variable that it reads."""
    read = mentions(condition)
    alone = len(read) == 1 and read <= variables(pattern.positions)
    return alone and not volatile(condition) and not exists_in(condition)
