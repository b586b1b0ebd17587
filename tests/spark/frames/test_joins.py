"""Joins by compatibility: the same pairs as compared one by one, and never by comparing every pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from construct_messages.query.algebra.nodes import Var, Vars
from construct_messages.spark.sql.values import column, literal
from tests.support.spark.sessions import UNBROADCAST, UNCOMPILED, executed, new_session, optimized

pytest.importorskip("pyspark")
from construct_messages.spark.frames.joins import (
    binds_shared,
    compatible_pairs,
    join,
    left_join,
    mark_join,
    minus,
    semi_join,
    union,
)
from construct_messages.spark.frames.solutions import Solutions, names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

Bound = dict[Var, str]
ALL = tuple(map(Var, "uvwxyz"))
U, V, W, X, Y, Z = ALL
NOTHING: Vars = frozenset()
TAG, MARK = Var(".t0"), Var(".e0")
EVERY_PAIR = ("BroadcastNestedLoopJoin", "CartesianProduct")


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """A session that plans joins as it would for relations too large to broadcast."""
    return new_session(spark, {**UNCOMPILED, **UNBROADCAST, "spark.sql.shuffle.partitions": "1"})


def relation(session: SparkSession, bound: Sequence[Bound], possible: Sequence[Var]) -> Solutions:
    """Solutions as a DataFrame that the optimizer cannot look into."""
    schema = ", ".join(f"{column(variable)} string" for variable in possible)
    data = [tuple(one.get(variable) for variable in possible) for one in bound]
    certain = frozenset(variable for variable in possible if all(variable in one for one in bound))
    return Solutions(session.createDataFrame(data, schema), frozenset(possible), certain)


def found(solutions: Solutions) -> Counter[tuple[tuple[Var, str], ...]]:
    variables = sorted(solutions.possible)
    assert sorted(solutions.frame.columns) == names(variables)
    rows = solutions.frame.select(*map(column, variables)).collect()
    return counted(
        [
            {v: term for v, term in zip(variables, row, strict=True) if term is not None}
            for row in rows
        ]
    )


def counted(bound: Sequence[Bound]) -> Counter[tuple[tuple[Var, str], ...]]:
    return Counter(tuple(sorted(one.items())) for one in bound)


def compatible(left: Bound, right: Bound) -> bool:
    return all(left.get(variable, term) == term for variable, term in right.items())


def joined(left: Sequence[Bound], right: Sequence[Bound]) -> list[Bound]:
    return [one | other for one in left for other in right if compatible(one, other)]


# as many of the first variables as possible, so that more are unsure than a join splits by
_solution = st.fixed_dictionaries(
    {}, optional={variable: st.sampled_from("ab") for variable in ALL}
)
_few = st.lists(_solution, max_size=8)
_settings = settings(
    max_examples=max(3, settings.default.max_examples // 40),  # each is several jobs
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@_settings
@given(_few, _few)
def test_join_and_minus(session: SparkSession, left: list[Bound], right: list[Bound]) -> None:
    one, other = relation(session, left, ALL), relation(session, right, (*ALL[1:], Var("more")))
    pairs = join(one, other)
    assert found(pairs) == counted(
        joined(left, [{v: t for v, t in b.items() if v != U} for b in right])
    )
    within = frozenset({V})
    rest = minus(one, other, within, TAG)
    seen = [{v: t for v, t in b.items() if v != U} for b in right]
    assert found(rest) == counted(
        [
            a
            for a in left
            if not any(compatible(a, b) and (a.keys() & b.keys()) - within for b in seen)
        ]
    )


@_settings
@given(
    _few, st.lists(st.fixed_dictionaries({v: st.sampled_from("ab") for v in (X, Y, Z)}), max_size=8)
)
def test_left_joins_and_half_joins(
    session: SparkSession, left: list[Bound], right: list[Bound]
) -> None:
    one, other = relation(session, left, (V, X, Y)), relation(session, right, (X, Y, Z))
    left = [{v: t for v, t in bound.items() if v in (V, X, Y)} for bound in left]
    other = Solutions(other.frame, other.possible, frozenset({X, Y, Z}))
    assert binds_shared(one, other)
    assert found(left_join(one, other)) == counted(
        [c for a in left for c in joined([a], right) or [a]]
    )
    keep = [a for a in left if joined([a], right)]
    assert found(semi_join(one, other, keep=True)) == counted(keep)
    assert found(semi_join(one, other, keep=False)) == counted([a for a in left if a not in keep])
    # a condition may read what only one side has
    condition = f"{column(V)} = {column(Z)}"
    meets = [[c for c in joined([a], right) if V in c and c[V] == c[Z]] for a in left]
    assert found(left_join(one, other, condition)) == counted(
        [c for a, matches in zip(left, meets, strict=True) for c in matches or [a]]
    )
    assert found(semi_join(one, other, True, condition)) == counted(
        [a for a, matches in zip(left, meets, strict=True) if matches]
    )


@_settings
@given(_few, _few)
def test_pairs(session: SparkSession, left: list[Bound], right: list[Bound]) -> None:
    """Whatever either side leaves unbound, and each left solution as often as it was."""
    left = [*left, *left[:2]]
    pairs = compatible_pairs(relation(session, left, ALL), relation(session, right, ALL), TAG)
    merged = [joined([a], right) for a in left]
    assert found(pairs.left_join()) == counted(
        [c for a, some in zip(left, merged, strict=True) for c in some or [a]]
    )
    assert found(pairs.semi_join()) == counted(
        [a for a, some in zip(left, merged, strict=True) if some]
    )
    assert found(pairs.anti_join()) == counted(
        [a for a, some in zip(left, merged, strict=True) if not some]
    )
    narrowed = pairs.where(f"{column(X)} = {literal('a')}")
    merged = [[c for c in some if c.get(X) == "a"] for some in merged]
    assert found(narrowed.left_join()) == counted(
        [c for a, some in zip(left, merged, strict=True) for c in some or [a]]
    )
    assert found(narrowed.anti_join()) == counted(
        [a for a, some in zip(left, merged, strict=True) if not some]
    )


def test_marks_keep_duplicates(session: SparkSession) -> None:
    left = relation(session, [{X: "a"}, {X: "a"}, {X: "b"}], (X,))
    right = relation(session, [{X: "a"}, {X: "a"}, {X: "c"}], (X,))
    marked = mark_join(left, right, MARK, "yes", "no")
    assert found(marked) == counted([{X: "a", MARK: "yes"}] * 2 + [{X: "b", MARK: "no"}])
    assert MARK in marked.certain


def test_union_fills_what_a_side_does_not_bind(session: SparkSession) -> None:
    both = union(
        relation(session, [{X: "a", Y: "b"}], (X, Y)), relation(session, [{Y: "c", Z: "d"}], (Y, Z))
    )
    assert found(both) == counted([{X: "a", Y: "b"}, {Y: "c", Z: "d"}])
    assert (both.possible, both.certain) == ({X, Y, Z}, {Y})


SURE = [{X: str(n), Y: str(n % 7)} for n in range(50)]
UNSURE = [{X: str(n)} | ({Y: str(n % 5)} if n % 2 else {}) for n in range(50)]
LOOSE = [{Y: str(n)} if n % 2 else {X: str(n)} for n in range(50)]
SIDES = {
    "bound on both sides": (SURE, SURE),
    "unsure on the left": (UNSURE, SURE),
    "unsure on the right": (SURE, UNSURE),
    "unsure on both sides": (UNSURE, UNSURE),
    "no variable that all bind": (LOOSE, LOOSE),
}


@pytest.mark.parametrize(("left", "right"), SIDES.values(), ids=SIDES)
def test_no_join_compares_every_pair(
    session: SparkSession, left: list[Bound], right: list[Bound]
) -> None:
    one, other = relation(session, left, (X, Y)), relation(session, right, (X, Y))
    solutions = {"join": join(one, other), "minus": minus(one, other, NOTHING, TAG)}
    solutions["pairs"] = compatible_pairs(one, other, TAG).left_join()
    if binds_shared(one, other):
        solutions["left"] = left_join(one, other)
        solutions["on"] = left_join(one, other, f"{column(X)} <> {literal('1')}")
        solutions["semi"] = semi_join(one, other, keep=True)
    for name, result in solutions.items():
        assert result.frame.collect() is not None
        plan = executed(result.frame)
        assert "Join" in plan, name
        assert not any(bad in plan for bad in EVERY_PAIR), plan


def test_sides_are_read_once(session: SparkSession) -> None:
    pairs = join(relation(session, UNSURE, (X, Y)), relation(session, UNSURE, (X, Y)))
    pairs.frame.collect()
    assert executed(pairs.frame).count("Scan ExistingRDD") % 2 == 0
    assert optimized(pairs.frame).count("LogicalRDD") == 2


def test_many_unsure_variables(session: SparkSession) -> None:
    """More than a join splits by: the others are compared, where the first have met."""
    left = [{variable: "a" for variable in ALL if variable != gap} for gap in ALL]
    right = [{variable: "b" if variable == odd else "a" for variable in ALL} for odd in ALL] + [
        {U: "a"},
        {},
    ]
    pairs = join(relation(session, left, ALL), relation(session, right, ALL))
    assert found(pairs) == counted(joined(left, right))
    assert not any(bad in executed(pairs.frame) for bad in EVERY_PAIR)


def test_nothing_shared_is_a_cross_product(session: SparkSession) -> None:
    left, right = [{X: "a"}, {X: "b"}], [{Y: "c"}, {Y: "d"}]
    pairs = join(relation(session, left, (X,)), relation(session, right, (Y,)))
    assert found(pairs) == counted(joined(left, right))
    assert any(every in executed(pairs.frame) for every in EVERY_PAIR)


def test_a_relation_joins_with_itself(session: SparkSession) -> None:
    one = relation(session, UNSURE, (X, Y))
    assert found(join(one, one)) == counted(joined(UNSURE, UNSURE))
