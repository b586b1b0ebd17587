"""Queries as plans: solution modifiers, numbers for BNODE, datasets, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from construct_messages.errors import QueryError, TermError, UnsupportedQuery
from construct_messages.query.algebra.calls import substituted
from construct_messages.query.algebra.nodes import (
    Call,
    Dataset,
    Expression,
    Filter,
    Group,
    Node,
    Var,
)
from tests.support.queries.algebra_text import NOW, cases, text, translate_query


@pytest.mark.parametrize(("query", "wanted"), [*cases("modifiers"), *cases("numbers")])
def test_solution_modifiers(query: str, wanted: str) -> None:
    assert text(translate_query(query, now=NOW).pattern) == wanted


def test_what_is_told_of_a_query() -> None:
    planned = translate_query("SELECT ?o (1 AS ?x) ?o { ?s ?p ?o } ORDER BY ?s", now=NOW)
    assert (planned.form, planned.variables, planned.ordered) == ("SELECT", ("o", "x"), True)
    planned = translate_query("ASK { { SELECT ?s { ?s ?p ?o } ORDER BY ?s } }", now=NOW)
    assert (planned.form, planned.variables, planned.ordered) == ("ASK", (), False)


DATASETS = [
    ("none", "", (), (), (None, None)),
    ("from", "FROM <u:a> FROM <u:b>", (), (), (("<u:a>", "<u:b>"), ())),
    ("from named", "FROM NAMED <u:a>", (), (), ((), ("<u:a>",))),
    ("both", "FROM <u:a> FROM NAMED <u:a>", (), (), (("<u:a>",), ("<u:a>",))),
    ("from outside", "FROM <u:a> FROM NAMED <u:b>", ["u:c"], (), (("<u:c>",), ())),
    ("named from outside", "FROM <u:a>", (), ["u:c", "u:d"], ((), ("<u:c>", "<u:d>"))),
]


@pytest.mark.parametrize(
    ("clauses", "default", "named", "wanted"),
    [pytest.param(*case, id=name) for name, *case in DATASETS],
)
def test_datasets(
    clauses: str,
    default: Sequence[str],
    named: Sequence[str],
    wanted: tuple[tuple[str, ...] | None, ...],
) -> None:
    planned = translate_query(
        f"SELECT * {clauses} {{}}", now=NOW, default_graphs=default, named_graphs=named
    )
    assert planned.dataset == Dataset(*wanted)  # type: ignore[arg-type]  # terms by their text


def test_a_graph_from_outside_is_absolute() -> None:
    with pytest.raises(TermError, match="relative"):
        translate_query("ASK {}", now=NOW, default_graphs=["a"])


ILLEGAL = [
    (
        "all under GROUP BY",
        "SELECT * { ?s ?p ?o } GROUP BY ?s",
        "SELECT * has no meaning with GROUP BY",
    ),
    (
        "all under HAVING",
        "SELECT * { ?s ?p ?o } HAVING(COUNT(*) > 1)",
        "SELECT * has no meaning with GROUP BY",
    ),
    (
        "no key",
        "SELECT ?o { ?s ?p ?o } GROUP BY ?s",
        "?o is neither a key of GROUP BY nor an aggregate",
    ),
    (
        "no key beside an aggregate",
        "SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o }",
        "?s is neither a key",
    ),
    (
        "no key in an expression",
        "SELECT (?o + 1 AS ?x) { ?s ?p ?o } GROUP BY ?s",
        "?o is neither a key",
    ),
    ("key that is not there", "SELECT ?x { ?s ?p ?o } GROUP BY ?s", "?x is neither a key"),
    (
        "expression of a key",
        "SELECT (STR(?o) AS ?x) { ?s ?p ?o } GROUP BY STR(?o)",
        "?o is neither a key",
    ),
    ("alias twice", "SELECT (1 AS ?x) (2 AS ?x) {}", "?x is bound already"),
    ("alias of what is projected", "SELECT ?x (2 AS ?x) {}", "?x is bound already"),
    ("alias in the pattern", "SELECT (1 AS ?s) { ?s ?p ?o }", "?s is bound already"),
    ("alias in VALUES", "SELECT (1 AS ?x) {} VALUES ?x { 2 }", "?x is bound already"),
    ("key in the pattern", "SELECT ?o { ?s ?p ?o } GROUP BY (?s AS ?o)", "?o is bound already"),
    (
        "aggregate in an aggregate",
        "SELECT (SUM(COUNT(?s)) AS ?n) { ?s ?p ?o }",
        "COUNT is not allowed here, in another aggregate",
    ),
    (
        "aggregate as key",
        "SELECT ?k { ?s ?p ?o } GROUP BY (COUNT(?o) AS ?k)",
        "COUNT is not allowed here, in GROUP BY",
    ),
    (
        "separator with a language",
        "SELECT (GROUP_CONCAT(?s; SEPARATOR='x'@en) AS ?x) {}",
        "a plain string is needed",
    ),
    (
        "limit that is no integer",
        "SELECT * {} LIMIT 1.0",
        "expected a number after LIMIT, found 1.0",
    ),
    ("negative offset", "SELECT * {} OFFSET -1", "expected a number after OFFSET, found -1"),
]


@pytest.mark.parametrize(
    ("query", "message"), [pytest.param(*case, id=name) for name, *case in ILLEGAL]
)
def test_what_the_notes_of_the_grammar_forbid(query: str, message: str) -> None:
    with pytest.raises(QueryError, match=re.escape(message)) as refused:
        translate_query(query, now=NOW)
    assert not isinstance(refused.value, UnsupportedQuery)


UNSUPPORTED = [
    ("new alias in HAVING", "SELECT (RAND() AS ?n) { ?s ?p ?o } GROUP BY ?s HAVING(?n > 1)", "?n"),
    (
        "new alias without groups",
        "SELECT (CONCAT(STRUUID()) AS ?n) { ?s ?p ?o } HAVING(STRLEN(?n) > 1)",
        "?n",
    ),
    ("no key in HAVING", "SELECT ?s { ?s ?p ?o } GROUP BY ?s HAVING(?o > 1)", "?o"),
    ("no key in ORDER BY", "SELECT ?s { ?s ?p ?o } GROUP BY ?s ORDER BY ?o", "?o"),
]


@pytest.mark.parametrize(
    ("query", "fragment"), [pytest.param(*case, id=name) for name, *case in UNSUPPORTED]
)
def test_what_engines_do_not_agree_on(query: str, fragment: str) -> None:
    with pytest.raises(UnsupportedQuery) as refused:
        translate_query(query, now=NOW)
    assert refused.value.fragment == fragment
    assert refused.value.position is not None


# HAVING that names an alias, and the same in SPARQL 1.1
ALIASES = [
    ("(COUNT(?o) AS ?n)", "?n > 1", "COUNT(?o) > 1"),
    ("(COUNT(?o) AS ?o)", "?o > 1", "COUNT(?o) > 1"),
    ("(COUNT(?o) AS ?n) (?n + 1 AS ?m)", "?m * 2 > ?n", "(COUNT(?o) + 1) * 2 > COUNT(?o)"),
    ("(STR(?s) AS ?t)", "?t IN ('a', 'b')", "STR(?s) IN ('a', 'b')"),
    (
        "(SUM(?o) AS ?n)",
        "BOUND(?n) && BOUND(?s)",
        "COALESCE(SAMETERM(SUM(?o), SUM(?o)), false) && BOUND(?s)",
    ),
]


@pytest.mark.parametrize(("projection", "alias", "written_out"), ALIASES)
def test_having_sees_what_select_computes(projection: str, alias: str, written_out: str) -> None:
    """Issue 26, 40: an extension, as in Jena and Virtuoso."""
    query = f"SELECT ?s {projection} {{ ?s ?p ?o }} GROUP BY ?s HAVING"
    plans = [
        translate_query(f"{query}({condition})", now=NOW) for condition in (alias, written_out)
    ]
    conditions = [filters(plan.pattern) for plan in plans]
    assert conditions[0] == conditions[1]
    assert len(conditions[0]) == 1


def filters(node: Node) -> list[str]:
    """The conditions of a plan, with aggregates in the place of their variables."""
    conditions: list[Expression] = []
    aggregates: dict[Var, Expression] = {}
    left = [node]
    while left:
        each = left.pop()
        left.extend(each.children)
        if isinstance(each, Filter):
            conditions.append(each.condition)
        elif isinstance(each, Group):
            aggregates = {
                variable: Call(one.name, (one.argument or variable,))
                for variable, one in each.aggregates
            }
    return [str(substituted(condition, aggregates)) for condition in conditions]


def test_a_grouped_query_may_order_by_its_alias() -> None:
    planned = translate_query("SELECT (COUNT(?o) AS ?o) { ?s ?p ?o } ORDER BY ?o", now=NOW)
    assert planned.ordered
