"""Operators give the changes of what the definitions of SPARQL 1.1, section 18.5, give for all rows at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from construct_messages.continuous.expressions import Counted, Row
from construct_messages.continuous.operators import (
    CountedRows,
    Dependence,
    DependentRows,
    DistinctRows,
    GroupedRows,
    IndexedRelation,
    JoinedRows,
    Names,
    UnitedRows,
)
from construct_messages.query.algebra.nodes import Aggregation, Var
from construct_messages.rdf.terms import XSD

Rows = Counter[Row]


class Changing(CountedRows):
    """Rows that a test changes at random, also back and forth between two calls."""

    def __init__(self, random: Random, names: Names, certain: frozenset[str]) -> None:
        super().__init__(names, certain)
        self._random, self.rows = random, Rows()

    def changes(self) -> list[Counted]:
        made = []
        for _ in range(self._random.randint(0, 6)):
            there = [row for row, count in self.rows.items() if count]
            if there and self._random.random() < 0.5:
                row, count = self._random.choice(there), -1
            else:
                row = tuple(
                    self._random.choice("ab" if name in self.certain else ["a", "b", ""])
                    for name in self.names
                )
                count = self._random.randint(1, 2)
            self.rows[row] += count
            made.append((row, count))
        return made


def merged(one: dict[str, str], other: dict[str, str]) -> dict[str, str] | None:
    """Both solutions as one, if they are compatible."""
    if any(other.get(name, value) != value for name, value in one.items()):
        return None
    return one | other


def bound(names: Names, row: Row) -> dict[str, str]:
    return {name: value for name, value in zip(names, row, strict=True) if value}


def row_of(names: Names, solution: dict[str, str]) -> Row:
    return tuple(solution.get(name, "") for name in names)


def dependent(kind: Dependence, made: DependentRows, left: Changing, right: Changing) -> Rows:
    """The rows by definition; a match of OPTIONAL or EXISTS must not bind `x` to `a` and `y` to `b`."""
    found = Rows()
    for row, count in left.rows.items():
        one = bound(left.names, row)
        matches = Rows()
        for other_row, times in right.rows.items():
            other = bound(right.names, other_row)
            both = merged(one, other)
            if both is None or not times:
                continue
            if kind is Dependence.MINUS:
                if not one.keys() & other.keys():
                    continue
            elif (both.get("x"), both.get("y")) == ("a", "b"):
                continue
            matches[row_of(made.names, both)] += times
        if kind is Dependence.OPTIONAL:
            for match, times in (matches or {row_of(made.names, one): 1}).items():
                found[match] += count * times
        elif bool(matches) is (kind is Dependence.EXISTS):
            found[row] += count
    return found


def check(operator: CountedRows, expected: Callable[[], Rows]) -> None:
    found = Rows()
    for _ in range(12):
        for row, count in operator.changes():
            found[row] += count
        assert +found == +expected()
        assert -found == Rows()


def operands(random: Random) -> tuple[Changing, Changing]:
    """Two operands that share x and y, each of which may be unbound in one of them or in both."""
    left, right = (
        Changing(random, names, frozenset(random.sample(names, random.randint(0, len(names)))))
        for names in (("x", "y", "l"), random.choice([("y", "x"), ("x", "r"), ("r", "y", "x")]))
    )
    return left, right


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", Dependence)
def test_optional_minus_and_exists(kind: Dependence, seed: int) -> None:
    left, right = operands(Random(seed))

    def condition(names: Names) -> Callable[[Row], bool]:
        return lambda row: not {("x", "a"), ("y", "b")} <= bound(names, row).items()

    shared = frozenset(left.names).intersection(right.names)
    sharing = shared if kind is Dependence.MINUS else None
    made = DependentRows(kind, left, right, None if sharing else condition, sharing)
    check(made, lambda: dependent(kind, made, left, right))


@pytest.mark.parametrize("seed", range(40))
def test_join(seed: int) -> None:
    random = Random(seed)
    left, right = operands(random)
    third = Changing(random, ("x", "z"), frozenset(random.sample(("x", "z"), 1)))
    made = JoinedRows([left, right, third], lambda _: None, needed={"x", "z", "r"})

    def expected() -> Rows:
        found = Rows()
        for one, count in left.rows.items():
            for two, times in right.rows.items():
                for three, last in third.rows.items():
                    both = merged(bound(left.names, one), bound(right.names, two))
                    all_three = None if both is None else merged(both, bound(third.names, three))
                    if all_three is not None:
                        found[row_of(made.names, all_three)] += count * times * last
        return found

    check(made, expected)


def test_distinct_union_and_projection() -> None:
    random = Random(1)
    one, two = (Changing(random, names, frozenset()) for names in (("x", "y"), ("y", "z")))
    made = UnitedRows([one, two], ("y", "z"), frozenset())

    def expected() -> Rows:
        found = Rows()
        for each in (one, two):
            for row, count in each.rows.items():
                found[row_of(("y", "z"), bound(each.names, row))] += count
        return found

    check(DistinctRows(made), lambda: Rows((+expected()).keys()))


@pytest.mark.parametrize("keys", [["x"], ["y", "z"], []])
def test_groups(keys: list[str]) -> None:
    rows = Changing(Random(2), ("x", "y"), frozenset(["x"]))
    aggregates = [
        (Var("all"), Aggregation("COUNT", None)),
        (Var("ys"), Aggregation("COUNT", Var("y"))),
        (Var("different"), Aggregation("COUNT", Var("y"), distinct=True)),
    ]
    made = GroupedRows(rows, [Var(key) for key in keys], aggregates, frozenset())

    def expected() -> Rows:
        groups: dict[Row, Rows] = {} if keys else {(): Rows()}
        for row, count in (+rows.rows).items():
            solution = bound(rows.names, row)
            ys = groups.setdefault(row_of(tuple(keys), solution), Rows())
            ys[(solution.get("y", ""),)] += count
        found = Rows()
        for key, ys in groups.items():
            there = Rows({row: count for row, count in ys.items() if row[0]})
            found[(*key, *map(integer, (ys.total(), there.total(), len(there))))] += 1
        return found

    check(made, expected)


def integer(value: int) -> str:
    return f'"{value}"^^<{XSD}integer>'


def test_counts_of_a_relation_may_be_negative_for_a_while() -> None:
    relation = IndexedRelation(("x",))
    find = relation.finder(("x",))
    relation.add([(("a",), -1), (("b",), 1), (("a",), 3)])
    assert (list(find("a")), relation.count(("a",)), relation.count(("c",))) == (
        [(("a",), 2)],
        2,
        0,
    )
