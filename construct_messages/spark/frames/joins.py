"""Joins of compatible solutions: a variable that is unbound on one side is compatible with any term on the other.

SPARQL 1.1 Query, sections 18.3 and 18.5 (Join, LeftJoin, Minus). A condition `a = b OR a IS NULL OR b IS NULL` has no
key to join by, so Spark would compare all pairs. Variables that every solution of both sides binds are join keys as
they are. For each of the others a key column is added: a solution has one key for partners that bind the variable and
another for those that do not, so that compatible solutions share exactly one key, and each side is read once. No
algebra nodes here, and no expressions but as SQL.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_, or_
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from construct_messages.query.algebra.nodes import Var, Vars
from construct_messages.spark.frames.solutions import Solutions, names
from construct_messages.spark.sql.values import column

_SPLIT: Final = 4
"""The most variables with a key column, each of which doubles a side; the others are compared after the join."""

_NEITHER: Final = ""  # keys that are not terms
_LEFT_ONLY: Final = "l"
_RIGHT_ONLY: Final = "r"
_ALONE: Final = "alone"
_PAIRS: Final = "pairs"


def union(left: Solutions, right: Solutions) -> Solutions:
    possible = left.possible | right.possible
    frame = left.with_columns_of(possible).frame.unionByName(right.with_columns_of(possible).frame)
    return Solutions(
        frame, possible, left.certain & right.certain, left.deterministic and right.deterministic
    )


def join(left: Solutions, right: Solutions, overlapping: Vars | None = None) -> Solutions:
    """Join: the compatible pairs, merged; a cross product only where no variable is shared.

    With `overlapping`, only pairs that both bind one of these variables.
    """
    shared = left.possible & right.possible
    equal = shared & left.certain & right.certain
    unsure = sorted(shared - equal)
    if not shared:
        frame = left.frame.crossJoin(right.frame)
    elif not unsure:
        frame = left.frame.join(right.frame, names(equal))
    else:
        split = unsure[:_SPLIT]
        left_frame, right_frame = left.frame, right.frame
        for variable in split:
            mine, yours = variable in left.certain, variable in right.certain
            left_frame = _with_join_key(left_frame, variable, mine, yours, _LEFT_ONLY, _RIGHT_ONLY)
            right_frame = _with_join_key(
                right_frame, variable, yours, mine, _RIGHT_ONLY, _LEFT_ONLY
            )
        right_frame = _renamed(right_frame, unsure)
        frame = left_frame.join(right_frame, [*names(equal), *map(_key, split)])
        conditions = [_compatible(variable) for variable in unsure[_SPLIT:]]
        if overlapping is not None and not overlapping & equal:
            conditions.append(_overlap(variable for variable in unsure if variable in overlapping))
        if conditions:
            frame = frame.filter(reduce(and_, conditions))
        frame = _merged(frame, left.possible | right.possible, unsure)
    return Solutions(
        frame,
        left.possible | right.possible,
        left.certain | right.certain,
        left.deterministic and right.deterministic,
    )


def binds_shared(left: Solutions, right: Solutions) -> bool:
    """Returns whether the right side binds all shared variables, as `left_join` and `semi_join` require."""
    return left.possible & right.possible <= right.certain


def left_join(left: Solutions, right: Solutions, condition: str | None = None) -> Solutions:
    """LeftJoin: each left solution merged with the compatible right ones that meet `condition`, or alone.

    The right side binds all shared variables. The condition is SQL over the columns of both; of the shared variables,
    it names those only that the left side binds too.
    """
    shared = left.possible & right.possible
    unsure = sorted(shared - left.certain)
    if shared and not unsure and condition is None:
        frame = left.frame.join(right.frame, names(shared), "left")
    else:
        partner, conditions = _partner(left, right)
        if condition is not None:
            conditions.append(F.expr(condition))
        frame = left.frame.join(partner, reduce(and_, conditions, F.lit(True)), "left")
        frame = _merged(frame, left.possible | right.possible, unsure)
    return Solutions(
        frame,
        left.possible | right.possible,
        left.certain,
        left.deterministic and right.deterministic,
    )


def semi_join(
    left: Solutions, right: Solutions, keep: bool, condition: str | None = None
) -> Solutions:
    """Semi-join or (not `keep`) anti-join: the left solutions with a compatible right one, or without one."""
    how = "left_semi" if keep else "left_anti"
    shared = left.possible & right.possible
    if shared and shared <= left.certain and condition is None:
        frame = left.frame.join(right.frame, names(shared), how)
    else:
        partner, conditions = _partner(left, right if condition is not None else right.only(shared))
        if condition is not None:
            conditions.append(F.expr(condition))
        frame = left.frame.join(partner, reduce(and_, conditions, F.lit(True)), how)
    return replace(left, frame=frame, deterministic=left.deterministic and right.deterministic)


def mark_join(left: Solutions, right: Solutions, marked: Var, true: str, false: str) -> Solutions:
    """Mark join: each left solution once, with another variable for whether there is a compatible right one.

    The sides share at least one variable, and both bind all that they share.
    """
    shared = names(left.possible & right.possible)
    found = right.frame.select(*shared).distinct().withColumn("found", F.lit(True))
    value = F.when(F.col("found"), F.lit(true)).otherwise(F.lit(false))
    frame = left.frame.join(found, shared, "left").withColumn(column(marked), value).drop("found")
    deterministic = left.deterministic and right.deterministic
    return replace(
        left,
        frame=frame,
        possible=left.possible | {marked},
        certain=left.certain | {marked},
        deterministic=deterministic,
    )


def minus(left: Solutions, right: Solutions, within: Vars, key: Var) -> Solutions:
    """Minus: the left solutions without those that share a bound variable with a compatible right one.

    Variables `within` must agree, but do not count as shared.
    """
    shared = left.possible & right.possible
    counting = shared - within
    if not counting:
        return left
    right = right.only(shared)
    if binds_shared(left, right):
        if counting & left.certain:
            return semi_join(left, right, keep=False)
        bound = " OR ".join(f"{name} IS NOT NULL" for name in names(counting))
        return semi_join(left, right, keep=False, condition=f"({bound})")
    return compatible_pairs(left, right.distinct(), key, counting).anti_join()


@dataclass(frozen=True)
class Pairs:
    """Each left solution once alone, and merged with each compatible right one, from which any join can be selected.

    Each side is read once; a join united with an anti-join would read the left side three times.
    """

    solutions: Solutions  # with `key` and `mark`
    left: tuple[
        Vars, Vars
    ]  # the variables of the left side, and those that all of its solutions bind
    key: Var  # the same for all pairs of left solutions with the same bindings
    mark: Var  # bound in pairs, unbound where a left solution is alone

    def where(self, condition: str) -> Pairs:
        """Drops pairs that do not meet a condition, SQL over the columns of `solutions`."""
        frame = self.solutions.frame.filter(F.col(column(self.mark)).isNull() | F.expr(condition))
        return replace(self, solutions=replace(self.solutions, frame=frame))

    def left_join(self) -> Solutions:
        """LeftJoin: the pairs, and the left solutions that are in none."""
        found = self._counted(F.col(column(self.mark)).isNotNull() | (F.col(_PAIRS) == 0))
        return replace(found, certain=self.left[1]).without(frozenset({self.key, self.mark}))

    def anti_join(self) -> Solutions:
        """Anti-join: the left solutions that are in no pair."""
        return self._left(self._counted(F.col(column(self.mark)).isNull() & (F.col(_PAIRS) == 0)))

    def semi_join(self) -> Solutions:
        """Semi-join: the left solutions that are in some pair."""
        return self._left(self._counted(F.col(column(self.mark)).isNull() & (F.col(_PAIRS) > 0)))

    def _left(self, solutions: Solutions) -> Solutions:
        possible, certain = self.left
        return replace(solutions.only(possible), certain=certain)

    def _counted(self, kept: Column) -> Solutions:
        pairs = F.count(column(self.mark)).over(Window.partitionBy(column(self.key))).alias(_PAIRS)
        return replace(
            self.solutions, frame=self.solutions.frame.select("*", pairs).filter(kept).drop(_PAIRS)
        )


def compatible_pairs(
    left: Solutions, right: Solutions, key: Var, overlapping: Vars | None = None
) -> Pairs:
    """The pairs, overlapping as in `join`. Neither side has the variable `key`, or that with an `m` at its end."""
    shared = left.possible & right.possible
    equal = shared & left.certain & right.certain
    unsure = sorted(shared - equal)
    mark = Var(f"{key.name}m")
    keyed = left.with_key(left.possible, key)
    alone = F.explode(F.array(F.lit(False), F.lit(True))).alias(_ALONE)
    left_frame, right_frame = keyed.frame.select("*", alone), right.frame
    conditions = [F.col(_ALONE) == F.lit(False)]
    for variable in unsure[:_SPLIT]:
        mine, yours = variable in left.certain, variable in right.certain
        # a solution that is to stay alone has a key that no partner has
        nowhere = F.concat(F.lit("\n"), F.col(column(key)))
        left_frame = _with_join_key(
            left_frame, variable, mine, yours, _LEFT_ONLY, _RIGHT_ONLY, nowhere
        )
        right_frame = _with_join_key(right_frame, variable, yours, mine, _RIGHT_ONLY, _LEFT_ONLY)
        right_frame = right_frame.withColumnRenamed(_key(variable), f"r{_key(variable)}")
        conditions.append(F.col(_key(variable)) == F.col(f"r{_key(variable)}"))
    conditions += [
        F.col(column(variable)) == F.col(_right_column(variable)) for variable in sorted(equal)
    ]
    conditions += [_compatible(variable) for variable in unsure[_SPLIT:]]
    if overlapping is not None and not overlapping & equal:
        conditions.append(_overlap(variable for variable in unsure if variable in overlapping))
    right_frame = _renamed(right_frame, shared).select("*", F.lit("").alias(column(mark)))
    possible = left.possible | right.possible | {key, mark}
    joined = left_frame.join(right_frame, reduce(and_, conditions), "left")
    frame = _merged(
        joined.filter(F.col(_ALONE) | F.col(column(mark)).isNotNull()), possible, unsure
    )
    certain = left.certain | {key}
    solutions = Solutions(frame, possible, certain, left.deterministic and right.deterministic)
    return Pairs(solutions, (left.possible, left.certain), key, mark)


def _with_join_key(
    frame: DataFrame,
    variable: Var,
    certain: bool,
    partner_certain: bool,
    alone: str,
    partner_alone: str,
    nowhere: Column | None = None,
) -> DataFrame:
    """Returns the solutions with a key for `variable`, once for each key that they share with compatible partners.

    A solution that binds the variable shares the term with partners that bind it, and `alone` with those that do not;
    one that does not bind it shares `partner_alone` with partners that do, and another key with the others. Solutions
    that are marked as alone have the key `nowhere`, if there is one.
    """
    value = F.col(column(variable))
    if_bound = [value] if partner_certain else [value, F.lit(alone)]
    if_unbound = (
        [F.lit(partner_alone)] if partner_certain else [F.lit(partner_alone), F.lit(_NEITHER)]
    )
    if partner_certain:
        key = value if certain else F.coalesce(value, if_unbound[0])
        if nowhere is not None:
            key = F.when(F.col(_ALONE), nowhere).otherwise(key)
    else:
        keys = F.array(*if_bound)
        keys = keys if certain else F.when(value.isNull(), F.array(*if_unbound)).otherwise(keys)
        if nowhere is not None:
            keys = F.when(F.col(_ALONE), F.array(nowhere)).otherwise(keys)
        key = F.explode(keys)
    return frame.select("*", key.alias(_key(variable)))


def _partner(left: Solutions, right: Solutions) -> tuple[DataFrame, list[Column]]:
    """Returns the right side of a join in which each left solution has one key, and the conditions to join on.

    For a variable that only the right side is sure to bind, a right solution has two keys: its term, and that of left
    solutions which leave the variable unbound.
    """
    frame = right.frame
    conditions = []
    unsure = sorted((left.possible & right.possible) - left.certain)
    for variable in unsure[:_SPLIT]:
        keys = F.array(F.col(column(variable)), F.lit(_NEITHER))
        frame = frame.select("*", F.explode(keys).alias(_key(variable)))
        conditions.append(
            F.coalesce(F.col(column(variable)), F.lit(_NEITHER)) == F.col(_key(variable))
        )
    conditions += [_compatible(variable) for variable in unsure[_SPLIT:]]
    shared = sorted(left.possible & right.possible)
    conditions += [
        F.col(column(one)) == F.col(_right_column(one)) for one in shared if one in left.certain
    ]
    return _renamed(frame, shared), conditions


def _renamed(frame: DataFrame, shared: Iterable[Var]) -> DataFrame:
    return frame.withColumnsRenamed(
        {column(variable): _right_column(variable) for variable in shared}
    )


def _merged(frame: DataFrame, possible: Vars, unsure: Iterable[Var]) -> DataFrame:
    """Returns the columns of the variables, each from a side that binds it."""
    both = set(unsure)
    return frame.select(
        *(
            F.coalesce(F.col(column(variable)), F.col(_right_column(variable))).alias(
                column(variable)
            )
            if variable in both
            else F.col(column(variable))
            for variable in sorted(possible)
        )
    )


def _compatible(variable: Var) -> Column:
    mine, yours = F.col(column(variable)), F.col(_right_column(variable))
    return mine.isNull() | yours.isNull() | (mine == yours)


def _overlap(variables: Iterable[Var]) -> Column:
    both = (
        F.col(column(variable)).isNotNull() & F.col(_right_column(variable)).isNotNull()
        for variable in variables
    )
    return reduce(or_, both, F.lit(False))


def _right_column(variable: Var) -> str:
    """The column of a variable that the other side has, too."""
    return "r" + column(variable)


def _key(variable: Var) -> str:
    return "k" + column(variable)
