"""What of a plan is not evaluated here, told before any job runs.

A function that no room knows and a path that would start at every node are refused where they are met; evaluation,
though, may have run jobs by then. So all expressions are compiled once, and all paths looked at, in advance.
"""

from __future__ import annotations

from typing import assert_never

from construct_messages.query.algebra.correlation import NOTHING, arranged, exists_in, expressions_of, parts, replaced
from construct_messages.query.algebra.nodes import (
    Bgp,
    Distinct,
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
    Slice,
    Star,
    Union,
    Unit,
    Values,
    Var,
    Vars,
)
from construct_messages.spark.frames.paths import require_ends
from construct_messages.spark.sql import expressions


def check(plan: Plan, *, allow_full_closure: bool = False) -> None:
    """Makes sure that a plan can be evaluated.

    Args:
        plan: before or after `optimize.optimize`.
        allow_full_closure: whether `*` and `+` may start at every node.

    Raises:
        UnsupportedQuery: a function, or a path that neither end of is bound.
    """
    _compile(plan.pattern)
    if not allow_full_closure:
        _begin(plan.pattern, NOTHING, NOTHING)


def _compile(node: Node) -> None:
    for expression in expressions_of(node):
        expressions.term(replaced(expression, lambda _: Var(".e")))
        for exists in exists_in(expression):
            _compile(exists.pattern)
    if isinstance(node, Group):
        for _, aggregation in node.aggregates:
            if aggregation.argument is None or not exists_in(aggregation.argument):
                expressions.aggregate(aggregation)
    for part in parts(node):
        _compile(part)


def _begin(node: Node, known: Vars, seeds: Vars) -> None:
    """Looks for where each path begins, in the order of evaluation.

    Args:
        known: variables that what the node is joined with binds.
        seeds: in an EXISTS body, those that the solutions it is asked for bind; they are known also where what the
            node is joined with is not.
    """
    inside = (known | seeds).union(*(part.certain for part in parts(node)))
    for expression in expressions_of(node):
        for exists in exists_in(expression):
            _begin(exists.pattern, NOTHING, inside)
    match node:
        case Path():
            require_ends(node, known | seeds)
        case Unit() | Bgp() | Star() | Graphs() | Values():
            pass
        case Join():
            for operand in arranged(node, known | seeds):
                _begin(operand, known, seeds)
                known |= operand.certain
        case Union(left, right):
            _begin(left, known, seeds)
            _begin(right, known, seeds)
        case LeftJoin(left, right) | Minus(left, right):
            _begin(left, known, seeds)
            _begin(right, left.certain, seeds)
        case Filter(pattern) | Extend(pattern) | Number(pattern) | Distinct(pattern):
            _begin(pattern, known, seeds)
        case Project(pattern, kept):
            _begin(pattern, known & frozenset(kept), seeds & frozenset(kept))
        case Group(pattern) | OrderBy(pattern) | Slice(pattern):
            _begin(pattern, NOTHING, seeds)
        case other:
            assert_never(other)
