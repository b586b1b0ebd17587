"""`query/syntax/nodes.py`: which variables have a value, against what `SELECT *` of an engine projects."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages import construct_messages
from construct_messages.errors import QueryError, UsageError
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.query.syntax.nodes import group_keys, in_scope
from construct_messages.query.syntax.parser import parse
from construct_messages.rdf.options import Grouping
from construct_messages.sparql.sources.http.profiles import PROFILES
from tests.support.places import shared_path

V = st.sampled_from([f"?{name}" for name in "abcdefgh"])


@st.composite
def groups(draw: st.DrawFn, depth: int = 3) -> str:
    """A legal group, of everything that makes a variable visible or hides it."""
    parts: list[str] = []
    for number in range(draw(st.integers(0, 4))):
        kinds = ["triple", "filter", "call", "bind", "values"] + [
            "group",
            "select",
            "star",
            "exists",
            "named",
        ] * (depth > 0)
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
                parts.append(
                    draw(
                        st.sampled_from(
                            [f"VALUES {a} {{ 1 }}", f"VALUES ({a} {own}) {{ (1 UNDEF) }}"]
                        )
                    )
                )
            case "group":
                word = draw(
                    st.sampled_from(
                        ["", "OPTIONAL", "MINUS", "GRAPH <urn:g>", f"GRAPH {a}", f"{inner} UNION"]
                    )
                )
                parts.append(f"{word} {inner}")
            case "select":
                projected = f"{a} (COUNT({b}) AS {own})"
                parts.append(
                    f"{{ SELECT DISTINCT {projected} WHERE {inner} GROUP BY {a} HAVING (MAX({c}) > 1) }}"
                )
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
    text = f"SELECT * {group}"
    assert in_scope(parse(text).form.where).keys() == projected_by_the_engine(text)


@pytest.mark.suite
def test_queries_found_in_the_wild() -> None:
    """Never fewer than the engine projects, of any query that it reads; and the same of those without a dialect."""
    compared = 0
    for path in sorted(shared_path("queries").rglob("*.rq")):
        text = path.read_text(encoding="utf-8", errors="replace")
        try:
            query = ConstructQuery.parse(
                text, base="http://example.org/", prefixes=PROFILES["virtuoso"].prefixes
            )
        except (QueryError, UsageError):
            continue
        select = query.rewritten
        if select.aggregation or "SERVICE" in select.group:  # nothing is to be sent
            continue
        try:
            expected = projected_by_the_engine(
                f"{select.prologue}SELECT * {select.dataset}{select.group}"
            )
        except (SyntaxError, OSError, RuntimeError, ValueError):
            continue
        assert in_scope(select.tree.form.where).keys() == expected, path
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
        construct_messages(query, ox.Store(), group_by=Grouping(["?hidden"], order=group_order))


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
    assert group_keys(parse(f"SELECT ?a {{}} {modifiers}").form.clauses) == keys


DATA = "\n".join(f"<urn:{s}> <urn:g> {o} ." for s, o in ("a1", "a2", "a3", "b1", "b2", "c9"))
GROUPED = [
    "GROUP BY ?s",
    "GROUP BY ?s HAVING (COUNT(?g) > 1)",
    "GROUP BY ?s ORDER BY ?u ?s",
    "GROUP BY ?s ORDER BY DESC(COUNT(?g)) ?u ?s",
    "GROUP BY ?s ORDER BY (SUM(?g) + COUNT(*)) DESC(STR(?u)) LIMIT 3",
    "GROUP BY ?s (STR(?g) AS ?n) ORDER BY ?s ?u ?n LIMIT 2 OFFSET 1",
    "GROUP BY ?s (STR(?s) AS ?t) HAVING (MAX(?g) < 9) ORDER BY ?t ?u",
    "HAVING (COUNT(?g) > 1)",
    "ORDER BY COUNT(?g) ?u",
]


@pytest.mark.parametrize(
    "values", ['VALUES (?s ?u) { (<urn:a> "x") (<urn:b> 2) (UNDEF 3) }', "VALUES ?u { 2 1 }"]
)
@pytest.mark.parametrize("modifiers", GROUPED)
def test_what_values_binds_behind_groups(modifiers: str, values: str) -> None:
    """Issue 13, 3. Oxigraph projects it beside the groups, too; section 11.4 lets other engines refuse that."""
    store = ox.Store()
    store.load(DATA.encode(), format=ox.RdfFormat.TURTLE)
    text = f"CONSTRUCT {{ ?s <urn:x> ?u . <urn:y> <urn:z> ?u }} WHERE {{ ?s <urn:g> ?g }} {modifiers} {values}"
    query = ConstructQuery.parse(text)
    assert "u" in query.rewritten.variables
    beside = store.query(query.select.partition("WHERE")[0] + text[text.index("WHERE") :])
    apart = store.query(query.select)
    assert isinstance(beside, ox.QuerySolutions)
    assert isinstance(apart, ox.QuerySolutions)
    expected, found = ([str(solution) for solution in solutions] for solutions in (beside, apart))
    assert expected
    assert found == expected if "ORDER" in modifiers else sorted(found) == sorted(expected)
