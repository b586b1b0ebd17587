"""`query/scope.py`: which variables have a value, against what `SELECT *` of an engine projects."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages import QueryError, UsageError, construct_messages
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.query.scope import group_keys, in_scope
from construct_messages.query.tokens import tokenize
from construct_messages.sources.profiles import PROFILES
from tests.conftest import shared_path

V = st.sampled_from([f"?{name}" for name in "abcdefgh"])


@st.composite
def groups(draw: st.DrawFn, depth: int = 3) -> str:
    """A legal group, of everything that makes a variable visible or hides it."""
    parts: list[str] = []
    for number in range(draw(st.integers(0, 4))):
        kinds = ["triple", "filter", "call", "bind", "values"] + ["group", "select", "star", "exists", "named"] * (
            depth > 0
        )
        inner = draw(groups(depth - 1)) if depth > 0 else "{}"
        a, b, c = draw(V), draw(V), draw(V)
        own = f"?own{depth}{number}"  # BIND and AS take no variable that is there
        match draw(st.sampled_from(kinds)):
            case "triple":
                parts.append(f"{a} <urn:p>/<urn:q>* {b} ; <urn:r> [ <urn:s> {c} ] .")
            case "filter":
                parts.append(f"FILTER ({a} > 1 && NOT EXISTS {inner} || ({b} IN ({c}, 1)))")
            case "call":
                parts.append(
                    f"FILTER {draw(st.sampled_from(['BOUND', 'isIRI', '<http://www.w3.org/2001/XMLSchema#boolean>']))}({a})"
                )
            case "exists":
                parts.append(f"FILTER {draw(st.sampled_from(['', 'NOT ']))}EXISTS {inner}")
            case "bind":
                parts.append(f"BIND(CONCAT(STR({a}), ')') AS {own})")
            case "values":
                parts.append(draw(st.sampled_from([f"VALUES {a} {{ 1 }}", f"VALUES ({a} {own}) {{ (1 UNDEF) }}"])))
            case "group":
                word = draw(st.sampled_from(["", "OPTIONAL", "MINUS", "GRAPH <urn:g>", f"GRAPH {a}", f"{inner} UNION"]))
                parts.append(f"{word} {inner}")
            case "select":
                projected = f"{a} (COUNT({b}) AS {own})"
                parts.append(f"{{ SELECT DISTINCT {projected} WHERE {inner} GROUP BY {a} HAVING (MAX({c}) > 1) }}")
            case "star":
                parts.append(f"{{ SELECT * {inner} LIMIT 1 }}")
            case "named":
                parts.append(f"SERVICE SILENT <urn:nowhere> {inner}")
    return "{ " + " ".join(parts) + " }"


def projected_by_the_engine(text: str) -> set[str]:
    solutions = ox.Store().query(text)
    assert isinstance(solutions, ox.QuerySolutions)
    return {variable.value for variable in solutions.variables}


@given(groups())
def test_what_select_star_projects(group: str) -> None:
    assert in_scope(tokenize(group), 0) == projected_by_the_engine(f"SELECT * {group}")


def test_queries_found_in_the_wild() -> None:
    """Never fewer than the engine projects, of any query that it reads; and the same of those without a dialect."""
    compared = 0
    for path in sorted(shared_path("queries").rglob("*.rq")):
        text = path.read_text(encoding="utf-8", errors="replace")
        try:
            query = ConstructQuery.parse(text, base="http://example.org/", prefixes=PROFILES["virtuoso"].prefixes)
        except (QueryError, UsageError):
            continue
        select = query.rewritten
        if select.aggregation or "SERVICE" in select.group:  # nothing is to be sent
            continue
        try:
            expected = projected_by_the_engine(f"{select.prologue}SELECT * {select.dataset}{select.group}")
        except (SyntaxError, OSError, RuntimeError, ValueError):
            continue
        assert in_scope(tokenize(select.group), 0) == expected, path
        compared += 1
    assert compared > 200


HIDDEN = {
    "a sub-select": "{ { SELECT ?s { ?s ?p ?hidden } } }",
    "a sub-select's aggregate": "{ { SELECT ?s (COUNT(?hidden) AS ?n) { ?s ?p ?hidden } GROUP BY ?s } }",
    "a sub-select in a sub-select": "{ { SELECT * { { SELECT ?s { ?s ?p ?hidden } } } } }",
    "the only sub-select": "{ SELECT ?s { ?s ?p ?hidden } }",
    "MINUS": "{ ?s ?p ?o MINUS { ?s <urn:q> ?hidden } }",
    "FILTER": "{ ?s ?p ?o FILTER (?o != ?hidden) }",
    "NOT EXISTS": "{ ?s ?p ?o FILTER NOT EXISTS { ?s <urn:q> ?hidden } }",
    "the expression of a BIND": "{ ?s ?p ?o BIND(COALESCE(?hidden, 1) AS ?n) }",
    "ORDER BY": "{ ?s ?p ?o } ORDER BY ?hidden",
    "the template": "{ ?s ?p ?o }",
}


@pytest.mark.parametrize("group_order", ["appearance", "sorted"])
@pytest.mark.parametrize("where", HIDDEN.values(), ids=HIDDEN)
def test_grouping_by_what_no_solution_binds(where: str, group_order: str) -> None:
    """Issue 13, 5: everything became one message, in silence."""
    query = f"CONSTRUCT {{ ?s <urn:x> ?hidden }} WHERE {where}"
    with pytest.raises(QueryError, match=r"no solution of the query binds \?hidden"):
        construct_messages(query, ox.Store(), group_by=["?hidden"], group_order=group_order)


@pytest.mark.parametrize(
    ("modifiers", "keys"),
    [
        ("", None),
        ("ORDER BY ?a", None),
        ("GROUP BY ?a ?b", ("a", "b")),
        ("GROUP BY (?a) STR(?b) (STR(?b) AS ?c) <urn:f>(?d)", ("a", "c")),
        ("GROUP BY ?a HAVING (MAX(?b) > 1)", ("a",)),
        ("HAVING (MAX(?b) > 1)", ()),
        ("ORDER BY COUNT(?a)", ()),
        ("ORDER BY DESC(COUNT(?a) + 1)", ()),
        ("ORDER BY EXISTS { { SELECT (COUNT(?a) AS ?n) {} } }", None),
    ],
)
def test_keys(modifiers: str, keys: tuple[str, ...] | None) -> None:
    tokens = tokenize(modifiers)
    order = next((index for index, token in enumerate(tokens) if token.keyword == "ORDER"), len(tokens))
    assert group_keys(tokens[:order], tokens[order:]) == keys
