"""Joins of solutions by SPARQL's compatibility: what is unbound on a side is compatible with any term on the other.

SPARQL 1.1 Query, sections 18.3 and 18.5 (Join, LeftJoin, Minus). Relations of solutions only: no algebra nodes and no
expressions but as SQL. A condition `a = b OR a IS NULL OR b IS NULL` has no key to join by, so the engine would
compare every pair. Variables that every solution of both sides binds are keys as they are. For each of the others,
solutions are split into those that bind it and those that do not, within one join: a solution stands under one key
for partners that bind the variable, and under another for those that do not. Each pair of compatible solutions then
meets under exactly one key, and each side is read once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_, or_
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from construct_messages.query.algebra.nodes import Var, Vars, column
from construct_messages.spark.frames.solutions import Solutions, names

_SPLIT: Final = 4
"""Variables that a join splits by, each of which doubles a side; any further are compared where the keys have met."""

_NEITHER: Final = ""  # keys that no term is
_LEFT_ONLY: Final = "l"
_RIGHT_ONLY: Final = "r"
_ALONE: Final = "alone"
_PAIRS: Final = "pairs"


def union(left: Solutions, right: Solutions) -> Solutions:
    """The solutions of both."""
    possible = left.possible | right.possible
    frame = left.widened(possible).frame.unionByName(right.widened(possible).frame)
    return Solutions(frame, possible, left.certain & right.certain, left.deterministic and right.deterministic)


def join(left: Solutions, right: Solutions, overlapping: Vars | None = None) -> Solutions:
    """The compatible pairs, merged; a cross product only where no variable is shared.

    Args:
        overlapping: keep only pairs that both bind one of these variables.
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
            left_frame = _under_keys(left_frame, variable, mine, yours, _LEFT_ONLY, _RIGHT_ONLY)
            right_frame = _under_keys(right_frame, variable, yours, mine, _RIGHT_ONLY, _LEFT_ONLY)
        right_frame = _renamed(right_frame, unsure)
        frame = left_frame.join(right_frame, [*names(equal), *map(_key, split)])
        conditions = [_compatible(variable) for variable in unsure[_SPLIT:]]
        if overlapping is not None and not overlapping & equal:
            conditions.append(_overlap(variable for variable in unsure if variable in overlapping))
        if conditions:
            frame = frame.filter(reduce(and_, conditions))
        frame = _merged(frame, left.possible | right.possible, unsure)
    return Solutions(
        frame, left.possible | right.possible, left.certain | right.certain, left.deterministic and right.deterministic
    )


def is_direct(left: Solutions, right: Solutions) -> bool:
    """Whether `left_join` and `semi_join` can be had: the right side binds all that is shared."""
    return left.possible & right.possible <= right.certain


def left_join(left: Solutions, right: Solutions, condition: str | None = None) -> Solutions:
    """Each left solution merged with the compatible right ones that meet `condition`, or alone.

    Args:
        right: binds all shared variables, see `is_direct`.
        condition: SQL over the columns of both sides; of the shared variables, only those that the left side binds
            too may occur.
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
    return Solutions(frame, left.possible | right.possible, left.certain, left.deterministic and right.deterministic)


def semi_join(left: Solutions, right: Solutions, keep: bool, condition: str | None = None) -> Solutions:
    """The left solutions that have a compatible right one which meets `condition`, or that have none.

    Args:
        keep: whether those that have one are kept, or the others.
        right, condition: as in `left_join`.
    """
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


def mark(left: Solutions, right: Solutions, marked: Var, true: str, false: str) -> Solutions:
    """Each left solution once, with one more variable: `true` if there is a compatible right one, else `false`.

    Args:
        right: shares at least one variable, and both sides bind all that are shared.
        true, false: terms.
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


def minus(left: Solutions, right: Solutions, within: Vars, tag: Var) -> Solutions:
    """The left solutions without those that share a bound variable with a compatible right one.

    Args:
        within: variables that must agree and do not count as shared.
        tag: a variable that neither side has.
    """
    shared = left.possible & right.possible
    counting = shared - within
    if not counting:
        return left
    right = right.only(shared)
    if is_direct(left, right):
        if counting & left.certain:
            return semi_join(left, right, keep=False)
        bound = " OR ".join(f"{name} IS NOT NULL" for name in names(counting))
        return semi_join(left, right, keep=False, condition=f"({bound})")
    return paired(left, right.distinct(), tag, counting).alone()


@dataclass(frozen=True)
class Pairs:
    """Each left solution once alone, and merged with each compatible right one: what any join can be taken from.

    So each side is read once, where a join and what it left out would read the left one three times.

    Args:
        solutions: of both sides; beside them `tag` and `mark`.
        left: the variables of the left side, and those that all of its solutions bind.
        tag: tells left solutions of different bindings apart.
        mark: bound in pairs, unbound where a left solution is alone.
    """

    solutions: Solutions
    left: tuple[Vars, Vars]
    tag: Var
    mark: Var

    def where(self, condition: str) -> Pairs:
        """Without the pairs that do not meet a condition, SQL over the columns of `solutions`."""
        frame = self.solutions.frame.filter(F.col(column(self.mark)).isNull() | F.expr(condition))
        return replace(self, solutions=replace(self.solutions, frame=frame))

    def or_alone(self) -> Solutions:
        """The pairs, and the left solutions that are in none."""
        found = self._counted(F.col(column(self.mark)).isNotNull() | (F.col(_PAIRS) == 0))
        return replace(found, certain=self.left[1]).without(frozenset({self.tag, self.mark}))

    def alone(self) -> Solutions:
        """The left solutions that are in no pair."""
        return self._left(self._counted(F.col(column(self.mark)).isNull() & (F.col(_PAIRS) == 0)))

    def met(self) -> Solutions:
        """The left solutions that are in some pair."""
        return self._left(self._counted(F.col(column(self.mark)).isNull() & (F.col(_PAIRS) > 0)))

    def _left(self, solutions: Solutions) -> Solutions:
        possible, certain = self.left
        return replace(solutions.only(possible), certain=certain)

    def _counted(self, kept: Column) -> Solutions:
        pairs = F.count(column(self.mark)).over(Window.partitionBy(column(self.tag))).alias(_PAIRS)
        return replace(self.solutions, frame=self.solutions.frame.select("*", pairs).filter(kept).drop(_PAIRS))


def paired(left: Solutions, right: Solutions, tag: Var, overlapping: Vars | None = None) -> Pairs:
    """The compatible pairs, and the left solutions.

    Args:
        tag: a variable that neither side has; nor may they have that of the same name with an `m` behind.
        overlapping: only pairs that both bind one of these variables.
    """
    shared = left.possible & right.possible
    equal = shared & left.certain & right.certain
    unsure = sorted(shared - equal)
    mark = Var(f"{tag.name}m")
    tagged = left.identified(left.possible, tag)
    alone = F.explode(F.array(F.lit(False), F.lit(True))).alias(_ALONE)
    left_frame, right_frame = tagged.frame.select("*", alone), right.frame
    conditions = [F.col(_ALONE) == F.lit(False)]
    for variable in unsure[:_SPLIT]:
        mine, yours = variable in left.certain, variable in right.certain
        # whoever is alone stands under one key, that no partner has
        nowhere = F.concat(F.lit("\n"), F.col(column(tag)))
        left_frame = _under_keys(left_frame, variable, mine, yours, _LEFT_ONLY, _RIGHT_ONLY, nowhere)
        right_frame = _under_keys(right_frame, variable, yours, mine, _RIGHT_ONLY, _LEFT_ONLY)
        right_frame = right_frame.withColumnRenamed(_key(variable), f"r{_key(variable)}")
        conditions.append(F.col(_key(variable)) == F.col(f"r{_key(variable)}"))
    conditions += [F.col(column(variable)) == F.col(_twin(variable)) for variable in sorted(equal)]
    conditions += [_compatible(variable) for variable in unsure[_SPLIT:]]
    if overlapping is not None and not overlapping & equal:
        conditions.append(_overlap(variable for variable in unsure if variable in overlapping))
    right_frame = _renamed(right_frame, shared).select("*", F.lit("").alias(column(mark)))
    possible = left.possible | right.possible | {tag, mark}
    joined = left_frame.join(right_frame, reduce(and_, conditions), "left")
    frame = _merged(joined.filter(F.col(_ALONE) | F.col(column(mark)).isNotNull()), possible, unsure)
    certain = left.certain | {tag}
    solutions = Solutions(frame, possible, certain, left.deterministic and right.deterministic)
    return Pairs(solutions, (left.possible, left.certain), tag, mark)


def _under_keys(
    frame: DataFrame,
    variable: Var,
    certain: bool,
    partner_certain: bool,
    alone: str,
    partner_alone: str,
    nowhere: Column | None = None,
) -> DataFrame:
    """The solutions under each key of `variable` at which they meet compatible partners.

    A solution that binds it meets partners of the same term at that term, and those that leave it unbound at `alone`;
    one that leaves it unbound meets those that bind it at `partner_alone`, and the others at a key of their own. Those
    that are marked as alone stand at the key `nowhere`, if it is given.
    """
    value = F.col(column(variable))
    if_bound = [value] if partner_certain else [value, F.lit(alone)]
    if_unbound = [F.lit(partner_alone)] if partner_certain else [F.lit(partner_alone), F.lit(_NEITHER)]
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
    """The right side of a join in which each left solution stands under one key, and the conditions to join on.

    What only the right side is sure to bind stands there under its term and under the key of unbound left solutions.
    """
    frame = right.frame
    conditions = []
    unsure = sorted((left.possible & right.possible) - left.certain)
    for variable in unsure[:_SPLIT]:
        keys = F.array(F.col(column(variable)), F.lit(_NEITHER))
        frame = frame.select("*", F.explode(keys).alias(_key(variable)))
        conditions.append(F.coalesce(F.col(column(variable)), F.lit(_NEITHER)) == F.col(_key(variable)))
    conditions += [_compatible(variable) for variable in unsure[_SPLIT:]]
    shared = sorted(left.possible & right.possible)
    conditions += [F.col(column(one)) == F.col(_twin(one)) for one in shared if one in left.certain]
    return _renamed(frame, shared), conditions


def _renamed(frame: DataFrame, shared: Iterable[Var]) -> DataFrame:
    return frame.withColumnsRenamed({column(variable): _twin(variable) for variable in shared})


def _merged(frame: DataFrame, possible: Vars, unsure: Iterable[Var]) -> DataFrame:
    """The columns of the variables, each from the side that binds it."""
    twins = set(unsure)
    return frame.select(
        *(
            F.coalesce(F.col(column(variable)), F.col(_twin(variable))).alias(column(variable))
            if variable in twins
            else F.col(column(variable))
            for variable in sorted(possible)
        )
    )


def _compatible(variable: Var) -> Column:
    mine, yours = F.col(column(variable)), F.col(_twin(variable))
    return mine.isNull() | yours.isNull() | (mine == yours)


def _overlap(variables: Iterable[Var]) -> Column:
    both = (F.col(column(variable)).isNotNull() & F.col(_twin(variable)).isNotNull() for variable in variables)
    return reduce(or_, both, F.lit(False))


def _twin(variable: Var) -> str:
    """The column of a variable that the other side has too."""
    return "r" + column(variable)


def _key(variable: Var) -> str:
    return "k" + column(variable)
