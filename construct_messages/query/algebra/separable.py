"""Whether a pattern returns for many messages at once, each a named graph, what it returns for each of them alone.

For `GRAPH ?message { … }`: no part of the pattern may depend on several solutions or on the graphs of other messages.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from construct_messages.errors import UnsupportedQuery
from construct_messages.query.algebra.calls import exists_in
from construct_messages.query.algebra.nodes import (
    Bgp,
    Extend,
    Filter,
    Join,
    LeftJoin,
    Node,
    Number,
    Union,
    Unit,
    Values,
)
from construct_messages.rdf.terms import Term


def reach(node: Node, static: Collection[Term] = ()) -> Literal["matches", "constant"]:
    """Returns whether all solutions of a node match a triple of the message's graph, or none does.

    Patterns in graphs that are `static` match the same for each message.

    Raises:
        UnsupportedQuery: a part is not known to be separable, or (fragment `WHERE`) some solutions match and others do
            not.
    """
    if any(exists_in(expression) for expression in node.expressions):
        raise _apart("EXISTS")
    match node:
        case Unit() | Values():
            return "constant"
        case Bgp(patterns):
            others = {pattern.graph for pattern in patterns if pattern.graph not in static}
            if not others:
                return "constant"
            if others == {None}:
                return "matches"
            raise _apart("GRAPH other than those of static tables")
        case Filter(pattern) | Extend(pattern) | Number(pattern):
            return reach(pattern, static)
        case Join(left, right) | LeftJoin(left, right) | Union(left, right):
            sides = reach(left, static), reach(right, static)
            if isinstance(node, Join) and "matches" in sides:
                return "matches"
            if isinstance(node, LeftJoin) and sides[0] == "matches":
                return "matches"
            if sides[0] == sides[1]:
                return sides[0]
            raise UnsupportedQuery(
                "a UNION or OPTIONAL has solutions that match no triple of a message",
                fragment="WHERE",
            )
    raise _apart(type(node).__name__.upper())


def _apart(what: str) -> UnsupportedQuery:
    return UnsupportedQuery(f"{what} is not supported for each message alone", fragment=what)
