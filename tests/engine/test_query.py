"""`engine/query.py`: all solutions of a query at once are those that the engine yields one by one."""

from __future__ import annotations

import pyoxigraph as ox
import pytest

from construct_messages.engine.query import StoreQuery
from construct_messages.errors import ConstructMessagesError, QueryError, SourceError, UsageError
from construct_messages.options import UNION
from construct_messages.query.refusals import REWRITTEN
from construct_messages.terms import from_pyoxigraph

DATA = b"""
<urn:s> <urn:p> "a\\tb\\n", 1.50, "x"@en, _:b .
<urn:s> <urn:knows> << <urn:s> <urn:p> 1 >> .
<urn:g> { <urn:t> <urn:p> 2 }
"""


@pytest.fixture(scope="module")
def store() -> ox.Store:
    store = ox.Store()
    store.load(DATA, ox.RdfFormat.TRIG)
    return store


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { ?s ?p ?o }",
        "SELECT ?o ?unbound ?s { ?s ?p ?o } ORDER BY ?o",
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
        "SELECT ?s { ?s <urn:none> ?o }",
        "SELECT * { <urn:s> <urn:p> 1.5 }",
        "SELECT * { <urn:s> <urn:p> 7 }",
        "SELECT (BNODE() AS ?b) { ?s ?p ?o }",
        "PREFIX u: <urn:> SELECT ?o { u:t u:p ?o }",
    ],
)
@pytest.mark.parametrize("graphs", [(), (UNION,), ("urn:g",)], ids=["", "union", "named"])
def test_all_at_once_and_one_by_one(text: str, graphs: tuple[str, ...], store: ox.Store) -> None:
    query = StoreQuery(text)
    rows = query.begin(store, graphs)
    assert isinstance(rows, ox.QuerySolutions)
    variables = tuple(variable.value for variable in rows.variables)
    one_by_one = [
        tuple("" if row[v] is None else from_pyoxigraph(row[v]) for v in variables)  # type: ignore[arg-type] # bound
        for row in rows
    ]
    solved = query.solve(store, graphs)
    assert (solved.variables, solved.total) == (variables, len(one_by_one))
    assert query.check() == variables
    found = [()] * solved.total if solved.solutions is None else list(solved.solutions)
    has_blanks = any("_:" in term for row in one_by_one for term in row)
    assert solved.has_blanks or not has_blanks
    if "BNODE" in text:  # other nodes each time
        return
    assert found == one_by_one


@pytest.mark.parametrize(
    ("text", "graphs", "kind", "words"),
    [
        ("SELECT * {", (), QueryError, "line 1, column .*refuses the query"),
        ("SELECT * { ?s foo:p ?o }", (), QueryError, "prefix foo: is not declared"),
        ("SELECT * { ?s ?p ?o }", (UNION, "urn:g"), UsageError, "union is all graphs already"),
        ("SELECT * { ?s ?p ?o }", ("g",), UsageError, "must be absolute IRIs"),
        ("SELECT * { BIND(<urn:f>(1) AS ?x) }", (), QueryError, "use the functions of SPARQL"),
        ("SELECT * { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }", (), SourceError, "failed"),
        ("SELECT * " + "{" * 5000 + "}" * 5000, (), QueryError, "deep"),
    ],
    ids=["syntax", "prefix", "union", "relative", "function", "service", "depth"],
)
def test_errors(
    text: str,
    graphs: tuple[str, ...],
    kind: type[ConstructMessagesError],
    words: str,
    store: ox.Store,
) -> None:
    with pytest.raises(kind, match=words):
        StoreQuery(text, REWRITTEN).solve(store, graphs)
