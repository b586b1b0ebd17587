"""Groups as nodes of the algebra: their elements, and the graphs they match in."""

from __future__ import annotations

import pytest

from construct_messages.errors import Position, QueryError, UnsupportedQuery
from tests.support.queries.algebra_text import NOW, cases, text, translate_query


@pytest.mark.parametrize(("query", "wanted"), [*cases("groups"), *cases("graphs")])
def test_groups(query: str, wanted: str) -> None:
    assert text(translate_query(query, now=NOW).pattern) == wanted


ILLEGAL = [
    ("variable bound before BIND", "{ ?s ?p ?o BIND(1 AS ?o) }", "?o is bound already", 31),
    (
        "bound in an OPTIONAL before BIND",
        "{ OPTIONAL { ?s ?p ?o } BIND(1 AS ?o) }",
        "?o is bound already",
        44,
    ),
    ("projected before BIND", "{ { SELECT ?o {} } BIND(1 AS ?o) }", "?o is bound already", 39),
    ("blank node in two groups", "{ _:a ?p ?o { _:a ?p ?q } }", "two basic graph patterns", 24),
    (
        "blank node before and behind",
        "{ _:a ?p ?o OPTIONAL {} _:a ?q ?r }",
        "two basic graph patterns",
        34,
    ),
    (
        "blank node in EXISTS",
        "{ _:a ?p ?o FILTER EXISTS { _:a ?q ?r } }",
        "two basic graph patterns",
        38,
    ),
    ("too few values", "{ VALUES (?a ?b) { (1) } }", "1 values for 2 variables", 30),
    ("too many values", "{ VALUES (?a) { (1 2) } }", "2 values for 1 variables", 27),
    (
        "values of one variable twice",
        "{ VALUES (?a ?a) { (1 2) } }",
        "?a is in VALUES twice",
        23,
    ),
    ("aggregate in BIND", "{ BIND(COUNT(?x) AS ?n) }", "COUNT is not allowed here, in BIND", 17),
]


@pytest.mark.parametrize(
    ("group", "message", "column"), [pytest.param(*case, id=name) for name, *case in ILLEGAL]
)
def test_what_the_notes_of_the_grammar_forbid(group: str, message: str, column: int) -> None:
    with pytest.raises(QueryError) as refused:
        translate_query(f"SELECT * {group}", now=NOW)
    assert not isinstance(refused.value, UnsupportedQuery)
    assert message in refused.value.message
    assert refused.value.position == Position(1, column)


LEGAL = [
    ("in a filter before BIND", "{ FILTER(?x) BIND(1 AS ?x) }"),
    ("in MINUS before BIND", "{ ?s ?p ?o MINUS { ?s ?p ?x } BIND(1 AS ?x) }"),
    ("in a sub-select before BIND", "{ { SELECT ?s { ?s ?p ?x } } BIND(1 AS ?x) }"),
    ("blank node across a filter", "{ _:a ?p ?o FILTER(?o) _:a ?q ?r }"),
]


@pytest.mark.parametrize("group", [pytest.param(group, id=name) for name, group in LEGAL])
def test_what_they_do_not_forbid(group: str) -> None:
    assert translate_query(f"SELECT * {group}", now=NOW).variables


def test_what_a_sub_select_keeps_to_itself_is_not_in_scope() -> None:
    assert translate_query(
        "SELECT * { { SELECT ?s ?nosuch { ?s ?p ?o } } MINUS { ?x ?y ?z } }", now=NOW
    ).variables == (
        "s",
        "nosuch",
    )
