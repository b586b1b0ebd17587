"""Operators: the rows that a dependent operator passes on never repeat a row that its target still has."""

from __future__ import annotations

import pytest

from construct_messages.continuous.incremental.maintained import DependentOperator
from construct_messages.continuous.incremental.plan import Dependence, Row

ROW = ("<urn:a>", "<urn:b>")
VARIABLES = ("s", "o")


@pytest.mark.parametrize(
    ("others", "other", "extended"),
    [
        (("s", "o"), ROW, ROW),
        (("s", "x"), ("<urn:a>", "<urn:x>"), (*ROW, "<urn:x>")),
    ],
    ids=["without another variable", "with another variable"],
)
def test_a_match_of_optional_comes_and_goes(
    others: tuple[str, ...], other: Row, extended: Row
) -> None:
    operator = DependentOperator(Dependence.OPTIONAL, VARIABLES, others)
    rows: set[Row] = set()

    def change(row: Row, sign: int) -> None:
        if sign > 0:
            assert row not in rows, "the targets are sets"
            rows.add(row)
        else:
            rows.remove(row)

    operator.target = change
    alone = ROW + ("",) * (len(operator.variables) - len(ROW))
    for _ in range(2):
        operator.change(ROW, 1)
        assert rows == {alone}
        operator.change_other(other, 1)
        assert rows == {extended}
        operator.change_other(other, -1)
        assert rows == {alone}
        operator.change_other(other, 1)
        operator.change(ROW, -1)
        assert rows == set()
        operator.change_other(other, -1)
        assert rows == set()
