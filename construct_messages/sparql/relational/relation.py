"""Solutions as a SELECT of SQL, and the operations on one or two bags of them.

SPARQL 1.1 Query, sections 18.3 and 18.5. A column of strings for each variable, NULL where it is unbound; hidden
variables that number solutions, and the column of an order, have numbers. The text is the common subset of the engines'
SQL; the differences are in `dialects`. No algebra nodes here, and nothing is evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from construct_messages.query.algebra.nodes import NOTHING, Var, Vars
from construct_messages.sparql.relational.dialects import Dialect

_LEFT_ONLY: Final = "l"  # keys that are not terms
_RIGHT_ONLY: Final = "r"
_NEITHER: Final = ""


def column(variable: Var) -> str:
    """Returns the name of a variable's column: unique even where case is ignored, and an SQL identifier without quotes.

    >>> column(Var("company")), column(Var("aName")), column(Var(".g0"))
    ('v_company', 'v_a_4e_ame', 'v__2e_g0')
    """
    return "v_" + "".join(
        char if char.isascii() and (char.islower() or char.isdigit()) else f"_{ord(char):x}_"
        for char in variable.name
    )


def columns(variables: Iterable[Var]) -> list[str]:
    return sorted(map(column, variables))


@dataclass(frozen=True)
class SolutionBag:
    """A bag of solutions, or a sequence if it has an order."""

    sql: str
    possible: Vars
    certain: Vars  # bound in every solution
    order: tuple[tuple[str, bool], ...] = ()  # columns, each with whether it descends
    table: bool = False  # whether `sql` is the name of a table, or a SELECT
    stable: bool = True  # whether the engine finds the same solutions again
    # whether it costs little to read it twice: it is a table, or a part of the quads
    light: bool = False
    # for some variables a SELECT of `value`, which has all terms that they may be bound to, and is quickly read
    values: Mapping[Var, str] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The name or SELECT for FROM."""
        return self.sql if self.table else f"({self.sql})"

    @property
    def columns(self) -> list[str]:
        return [*columns(self.possible), *self.extra]

    @property
    def extra(self) -> list[str]:
        return [name for name, _ in self.order]

    @property
    def ordering(self) -> str:
        """The text for ORDER BY."""
        return ", ".join(
            f"{name} {'DESC NULLS LAST' if descending else 'ASC NULLS FIRST'}"
            for name, descending in self.order
        )

    def selected(self, values: Iterable[str], where: str = "") -> str:
        condition = f" WHERE {where}" if where else ""
        return f"SELECT {', '.join(values) or '1 AS one'} FROM {self.source} AS t{condition}"

    def made(self, sql: str, **changes: Any) -> SolutionBag:
        """Returns the solutions of another SELECT, with changes of other fields."""
        return replace(self, sql=sql, table=False, light=False, **changes)

    def only(self, variables: Vars) -> SolutionBag:
        """Projects to some variables; keeps duplicates, and drops the order."""
        kept = self.possible & variables
        if kept == self.possible and not self.extra:
            return self
        sql = self.selected(columns(kept))
        values = self.values_of(kept)
        return SolutionBag(sql, kept, self.certain & kept, stable=self.stable, values=values)

    def values_of(self, variables: Vars) -> dict[Var, str]:
        return {one: sql for one, sql in self.values.items() if one in variables}

    def unordered(self) -> SolutionBag:
        return self.only(self.possible)

    def without(self, variables: Vars) -> SolutionBag:
        """Drops some variables; keeps the order."""
        if not self.possible & variables:
            return self
        kept = self.possible - variables
        sql = self.selected([*columns(kept), *self.extra])
        values = self.values_of(kept)
        return self.made(sql, possible=kept, certain=self.certain & kept, values=values)

    def with_columns_of(self, variables: Vars, dialect: Dialect) -> SolutionBag:
        """Adds columns for variables that have none, unbound in every solution."""
        new = variables - self.possible
        if not new:
            return self
        nulls = [f"{dialect.null} AS {name}" for name in columns(new)]
        return self.made(self.selected(["t.*", *nulls]), possible=self.possible | new)

    def where(self, condition: str) -> SolutionBag:
        return replace(self, sql=self.selected(["*"], condition), table=False)

    def bind(self, variable: Var, value: str, *, certain: bool = False) -> SolutionBag:
        """Binds a variable; drops solutions that bind it to another value already. NULL leaves it unbound."""
        name = column(variable)
        rest = [*columns(self.possible - {variable}), *self.extra]
        if variable not in self.possible:
            sql = self.selected([*rest, f"{value} AS {name}"])
        else:
            new = self.selected([*rest, name, f"{value} AS new"])
            sql = (
                f"SELECT {', '.join([*rest, f'coalesce({name}, new) AS {name}'])} FROM ({new}) AS t "
                f"WHERE {name} IS NULL OR new IS NULL OR {name} = new"
            )
        bound = frozenset({variable})
        return self.made(
            sql,
            possible=self.possible | bound,
            certain=self.certain | bound if certain else self.certain,
            values=self.values_of(self.possible - bound),
        )

    def with_key_of(self, by: Vars, key: Var, dialect: Dialect) -> SolutionBag:
        """Binds `key` to a value that solutions share if they have the same bindings of `by`; it is never unbound."""
        texts = [f"coalesce(CAST({name} AS STRING), '')" for name in columns(self.possible & by)]
        # no term holds a line feed
        line_feed = dialect.text("\n")
        value = f"concat_ws({line_feed}, {', '.join(texts)})" if texts else "''"
        return self.bind(key, value, certain=True)

    def distinct(self) -> SolutionBag:
        """Drops duplicates; in an order, all but the first."""
        names = columns(self.possible)
        if not self.possible:
            sql = f"{self.selected([])} LIMIT 1"
            return self.made(sql, order=())
        if not self.order:
            sql = f"SELECT DISTINCT {', '.join(names)} FROM {self.source} AS t"
            return self.made(sql)
        first = self.slice(0, 1, self.possible)
        return replace(first, stable=self.stable)

    def slice(self, offset: int, limit: int | None, within: Vars = NOTHING) -> SolutionBag:
        """Keeps at most `limit` solutions from `offset` on, for each value of the variables `within`."""
        if within:
            window = f"PARTITION BY {', '.join(columns(within))} ORDER BY {self.ordering or '1'}"
            ranked = self.selected(["*", f"row_number() OVER ({window}) AS place"])
            kept = f"place > {offset}" + (
                "" if limit is None else f" AND place <= {offset + limit}"
            )
            names = [*columns(self.possible), *self.extra]
            sql = f"SELECT {', '.join(names) or '1 AS one'} FROM ({ranked}) AS t WHERE {kept}"
        else:
            sql = self.selected(["*"]) + (f" ORDER BY {self.ordering}" if self.order else "")
            sql += "" if limit is None else f" LIMIT {limit}"
            sql += f" OFFSET {offset}" if offset else ""
        return self.made(sql, stable=False)


# --- two bags -------------------------------------------------------------------------------------


def union(left: SolutionBag, right: SolutionBag, dialect: Dialect) -> SolutionBag:
    possible = left.possible | right.possible
    sides = (
        side.with_columns_of(possible, dialect).selected(columns(possible))
        for side in (left, right)
    )
    sql = " UNION ALL ".join(sides)
    return SolutionBag(
        sql, possible, left.certain & right.certain, stable=left.stable and right.stable
    )


def join(left: SolutionBag, right: SolutionBag, dialect: Dialect) -> SolutionBag:
    """Join: the compatible pairs, merged."""
    unsure = _unsure(left, right)
    one, other, conditions = _matched(left, right, dialect)
    kept = merged(left.possible, right.possible, frozenset(unsure))
    on = " AND ".join(conditions)
    joined = f"JOIN {other} AS r ON {on}" if on else f"CROSS JOIN {other} AS r"
    return SolutionBag(
        f"SELECT {', '.join(kept) or '1 AS one'} FROM {one} AS l {joined}",
        left.possible | right.possible,
        left.certain | right.certain,
        stable=left.stable and right.stable,
        values={
            **right.values_of(right.certain | (right.possible - left.possible)),
            **left.values_of(left.certain | (left.possible - right.possible)),
        },
    )


def _unsure(left: SolutionBag, right: SolutionBag) -> list[Var]:
    """Returns the shared variables that one of the sides may leave unbound."""
    return sorted((left.possible & right.possible) - (left.certain & right.certain))


_SPLIT: Final = 4
"""The most variables with a key column, each of which doubles a side; the others are compared after the join."""


def _matched(
    left: SolutionBag,
    right: SolutionBag,
    dialect: Dialect,
    nowhere: str | None = None,
) -> tuple[str, str, list[str]]:
    """Returns the sources of both sides of a join, and its conditions over `l` and `r`.

    A condition `a = b OR a IS NULL OR b IS NULL` has no key to join by. So a key column is added for each variable that
    a side may leave unbound: a solution has one key for partners that bind it and another for those that do not, so
    that compatible solutions share exactly one. Left solutions that are marked as alone have the key `nowhere`.
    """
    shared, unsure = left.possible & right.possible, _unsure(left, right)
    one, other = left.source, right.source
    for variable in unsure[:_SPLIT]:
        mine, yours = variable in left.certain, variable in right.certain
        one = _keyed(one, variable, mine, yours, (_LEFT_ONLY, _RIGHT_ONLY), dialect, nowhere)
        other = _keyed(other, variable, yours, mine, (_RIGHT_ONLY, _LEFT_ONLY), dialect)
    equal = [column(variable) for variable in sorted(shared - set(unsure))]
    equal += [f"k_{column(variable)}" for variable in unsure[:_SPLIT]]
    conditions = [f"l.{name} = r.{name}" for name in equal]
    conditions += [
        f"(l.{name} IS NULL OR r.{name} IS NULL OR l.{name} = r.{name})"
        for name in map(column, unsure[_SPLIT:])
    ]
    return one, other, conditions


def _keyed(
    source: str,
    variable: Var,
    certain: bool,
    partner_certain: bool,
    only: tuple[str, str],
    dialect: Dialect,
    nowhere: str | None = None,
) -> str:
    """Returns the solutions with a key for a variable, once for each key that they share with compatible partners.

    A solution that binds the variable shares the term with partners that bind it, and its side's key (`only`) with
    those that do not; one that does not bind it shares the other side's with partners that do, and another key with
    the others.
    """
    name = column(variable)
    alone, partner_alone = only
    if partner_certain:
        key = name if certain else f"coalesce({name}, '{partner_alone}')"
        if nowhere is not None:
            key = f"CASE WHEN alone <> '' THEN {nowhere} ELSE {key} END"
    else:
        bound = dialect.array(name, f"'{alone}'")
        unbound = dialect.array(f"'{partner_alone}'", f"'{_NEITHER}'")
        keys = bound if certain else f"CASE WHEN {name} IS NULL THEN {unbound} ELSE {bound} END"
        if nowhere is not None:
            keys = f"CASE WHEN alone <> '' THEN {dialect.array(nowhere)} ELSE {keys} END"
        key = dialect.explode(keys)
    return f"(SELECT *, {key} AS k_{name} FROM {source} AS t)"


def merged(left: Vars, right: Vars, unsure: Vars) -> list[str]:
    """Returns the columns of both sides, `l` and `r`, each from a side that binds it."""
    found = []
    for variable in sorted(left | right):
        name = column(variable)
        if variable in unsure:
            found.append(f"coalesce(l.{name}, r.{name}) AS {name}")
        else:
            found.append(f"{'l' if variable in left else 'r'}.{name}")
    return found


def agree(variables: Iterable[Var]) -> str:
    """The condition that two sides, `l` and `r`, have the same terms."""
    return " AND ".join(f"l.{name} = r.{name}" for name in columns(variables)) or "TRUE"


def left_join(left: SolutionBag, right: SolutionBag, conditions: Sequence[str] = ()) -> SolutionBag:
    """LeftJoin, where both sides bind all that they share. Conditions are SQL over the columns of `l` and `r`."""
    on = " AND ".join([agree(left.possible & right.possible), *conditions])
    kept = merged(left.possible, right.possible, NOTHING)
    sql = f"SELECT {', '.join(kept) or '1 AS one'} FROM {left.source} AS l LEFT JOIN {right.source} AS r ON {on}"
    possible, stable = left.possible | right.possible, left.stable and right.stable
    values = {**right.values, **left.values}
    return SolutionBag(sql, possible, left.certain, stable=stable, values=values)


def semi_join(
    left: SolutionBag, right: SolutionBag, *, keep: bool, condition: Sequence[str] = ()
) -> SolutionBag:
    """The left solutions with a partner, or (not `keep`) without; both sides bind all that they share."""
    on = " AND ".join([agree(left.possible & right.possible), *condition])
    how = "SEMI" if keep else "ANTI"
    sql = f"SELECT l.* FROM {left.source} AS l {how} JOIN {right.source} AS r ON {on}"
    stable = left.stable and right.stable
    return left.made(sql, stable=stable)


@dataclass(frozen=True)
class Pairs:
    """Each left solution once alone, and merged with each compatible right one, from which any join can be selected.

    Each side is read once; a join united with an anti-join would read the left side three times.
    """

    solutions: SolutionBag  # with `key` and `mark`
    left: SolutionBag
    key: Var  # the same for all pairs of left solutions with the same bindings
    mark: Var  # bound in pairs, unbound where a left solution is alone

    def left_join(self) -> SolutionBag:
        """LeftJoin: the pairs, and the left solutions that are in none."""
        found = self._counted("{mark} IS NOT NULL OR pairs = 0")
        return replace(found, certain=self.left.certain).without(frozenset({self.key, self.mark}))

    def semi_join(self, *, keep: bool) -> SolutionBag:
        """The left solutions that are in some pair, or (not `keep`) in none."""
        found = self._counted(f"{{mark}} IS NULL AND pairs {'>' if keep else '='} 0")
        return replace(found.only(self.left.possible), certain=self.left.certain)

    def _counted(self, kept: str) -> SolutionBag:
        mark = column(self.mark)
        pairs = f"count({mark}) OVER (PARTITION BY {column(self.key)}) AS pairs"
        names = columns(self.solutions.possible)
        counted = self.solutions.selected([*names, pairs])
        sql = f"SELECT {', '.join(names)} FROM ({counted}) AS t WHERE {kept.format(mark=mark)}"
        return self.solutions.made(sql)


def compatible_pairs(
    left: SolutionBag,
    right: SolutionBag,
    names: tuple[Var, Var],
    dialect: Dialect,
    overlapping: Vars | None,
    condition: Sequence[str],
) -> Pairs:
    """The pairs that meet a condition, SQL over the columns of `l` and `r`.

    With `overlapping`, only pairs that both bind one of these variables. Neither side has the variables that are named,
    for `key` and `mark`.
    """
    key, mark = names
    alone = dialect.explode(dialect.array("''", "'alone'"))
    keyed = left.unordered().with_key_of(left.possible, key, dialect)
    twice = replace(keyed, sql=keyed.selected([*columns(keyed.possible), f"{alone} AS alone"]))
    # a solution that is to stay alone has a key that no partner has
    nowhere = f"concat({dialect.text(chr(10))}, {column(key)})"
    one, other, conditions = _matched(twice, right, dialect, nowhere)
    if overlapping is not None and not overlapping & (left.certain & right.certain):
        both = (
            f"l.{name} IS NOT NULL AND r.{name} IS NOT NULL"
            for name in columns(overlapping & left.possible & right.possible)
        )
        conditions.append(f"({' OR '.join(both)})")
    marked = f"(SELECT *, 'x' AS {column(mark)} FROM {other} AS t)"
    kept = merged(left.possible | {key}, right.possible | {mark}, frozenset(_unsure(left, right)))
    on = " AND ".join(["l.alone = ''", *conditions, *condition])
    sql = (
        f"SELECT {', '.join(kept)} FROM {one} AS l LEFT JOIN {marked} AS r ON {on} "
        f"WHERE l.alone <> '' OR r.{column(mark)} IS NOT NULL"
    )
    solutions = SolutionBag(
        sql,
        left.possible | right.possible | {key, mark},
        left.certain | {key},
        stable=left.stable and right.stable,
    )
    return Pairs(solutions, left, key, mark)
