"""Refusal of plans that cannot be evaluated, before any job runs.

Evaluation raises `UnsupportedQuery` for a function that is not supported and a path that would start at every node, but
may have run jobs by then. So all expressions are compiled and all paths checked in advance.
"""

from __future__ import annotations

from typing import assert_never

from construct_messages.query.algebra.expressions import exists_in, replace_exists
from construct_messages.query.algebra.join_order import join_order
from construct_messages.query.algebra.nodes import (
    NOTHING,
    Group,
    Join,
    Leaf,
    LeftJoin,
    Minus,
    Node,
    OrderBy,
    Path,
    Project,
    Slice,
    Unary,
    Union,
    Var,
    Vars,
)
from construct_messages.query.algebra.plan import Plan
from construct_messages.spark.frames.paths import require_ends
from construct_messages.spark.sql import expressions


def check(plan: Plan, *, allow_full_closure: bool = False) -> None:
    """Makes sure that a plan can be evaluated.

    Args:
        plan: before or after `optimize`.
        allow_full_closure: whether `*` and `+` may start at every node.

    Raises:
        UnsupportedQuery: a function that is not supported, or a path neither end of which is bound.
    """
    _check_expressions(plan.pattern)
    if not allow_full_closure:
        _check_paths(plan.pattern, NOTHING, NOTHING)


def _check_expressions(node: Node) -> None:
    for expression in node.expressions:
        expressions.term(replace_exists(expression, lambda _: Var(".e")))
        for exists in exists_in(expression):
            _check_expressions(exists.pattern)
    if isinstance(node, Group):
        for _, aggregation in node.aggregates:
            if aggregation.argument is None or not exists_in(aggregation.argument):
                expressions.aggregate(aggregation)
    for child in node.children:
        _check_expressions(child)


def _check_paths(node: Node, known: Vars, outer: Vars) -> None:
    """Makes sure that each path has a bound end to begin from, in the order of evaluation.

    Args:
        node: the node.
        known: variables that the other operands of a join bind.
        outer: in a body of EXISTS, variables that are bound from outside, also where `known` is not handed down.
    """
    inside = (known | outer).union(*(child.certain for child in node.children))
    for expression in node.expressions:
        for exists in exists_in(expression):
            _check_paths(exists.pattern, NOTHING, inside)
    match node:
        case Path():
            require_ends(node, known | outer)
        case Leaf():
            pass
        case Join():
            for operand in join_order(node, known | outer):
                _check_paths(operand, known, outer)
                known |= operand.certain
        case Union(left, right):
            _check_paths(left, known, outer)
            _check_paths(right, known, outer)
        case LeftJoin(left, right) | Minus(left, right):
            _check_paths(left, known, outer)
            _check_paths(right, left.certain, outer)
        case Project(pattern, kept):
            _check_paths(pattern, known & frozenset(kept), outer & frozenset(kept))
        case Group(pattern) | OrderBy(pattern) | Slice(pattern):
            _check_paths(pattern, NOTHING, outer)
        case Unary(pattern):
            _check_paths(pattern, known, outer)
        case other:
            assert_never(other)
