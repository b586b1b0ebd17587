"""What is computed without the engine is what the engine computes."""

from __future__ import annotations

from itertools import product

import pytest

from construct_messages.continuous.dataset import QuadReader
from construct_messages.continuous.expressions import (
    Step,
    Steps,
    Undecided,
    _RowQuery,
    native,
    term_of,
)
from construct_messages.query.algebra.nodes import Call, Constant, Expression, Var
from construct_messages.rdf.terms import XSD, Term, iri, literal
from tests.support.windows.queries import VALUES

X, Y = Var("x"), Var("y")
STORED = [
    QuadReader(None).stored(term)
    for term in (*VALUES, iri("urn:a"), iri("urn:b"), literal("a"), literal("c"))
] + [Term(""), Term("_:b")]
EXPRESSIONS: dict[str, Expression] = {
    **{name: Call(name, (X, Y)) for name in ("=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "&&", "||")},
    "bound": Call("BOUND", (X,)),
    "not": Call("!", (Call("=", (X, Y)),)),
    "in": Call("IN", (X, Y, Constant(Term(f'"1"^^<{XSD}integer>')))),
    "limit": Call(">=", (X, Constant(Term(f'"2"^^<{XSD}integer>')))),
    "unequal limit": Call("!=", (X, Constant(Term(f'"2"^^<{XSD}integer>')))),
    "or": Call("||", (Call("<", (X, Y)), Call("BOUND", (Y,)))),
    "and": Call("&&", (Call("<", (X, Y)), Call("BOUND", (Y,)))),
    "more": Call(">", (Call("+", (X, Y)), Constant(Term(f'"2"^^<{XSD}integer>')))),
}  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_values_are_those_of_the_engine(expression: Expression) -> None:
    rows = list(product(STORED, STORED))
    steps: list[Step] = [(Var("z"), expression)]
    answered = dict(_RowQuery(steps, ("x", "y")).answers(rows))
    passed = {number for number, _ in _RowQuery([(None, expression)], ("x", "y")).answers(rows)}
    function = native(expression, {"x": 0, "y": 1})
    assert function is not None
    decided = 0
    for number, row in enumerate(rows):
        try:
            value = function(row)
            term = term_of(value)
        except Undecided:
            continue
        decided += 1
        assert term == answered[number][0], (row, expression)
        if value is None or type(value) is bool:
            assert (value is True) == (number in passed), (row, expression)
    assert decided > 3


def test_rows_of_both_kinds_are_counted() -> None:
    steps = Steps([(None, Call("<", (X, Y)))], ("x", "y"))
    one, two = (Term(f'"{number}"^^<{XSD}integer>') for number in (1, 2))
    early, late = (Term(f'"{year}-01-01T00:00:00Z"^^<{XSD}dateTime>') for year in (2025, 2026))
    rows = [((one, two), 1), ((two, one), 1), ((early, late), -2), ((late, early), 1)]
    assert sorted(steps.made(rows)) == sorted([rows[0], rows[2]])
