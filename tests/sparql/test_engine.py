"""`sparql/engine.py`: all solutions of a query at once are those that the engine yields one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import (
    ConstructMessagesError,
    QueryError,
    SourceError,
    UsageError,
)
from construct_messages.query.checks import REWRITTEN
from construct_messages.rdf.options import UNION
from construct_messages.rdf.terms import from_pyoxigraph
from construct_messages.sparql.engine import StoreQuery

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


# --- ORDER BY: the engine's own comparison ends the process for the most of these ---

XSD: Final = "http://www.w3.org/2001/XMLSchema#"


def typed(texts: st.SearchStrategy[str], *names: str) -> st.SearchStrategy[ox.Literal]:
    datatypes = st.sampled_from(names).map(lambda name: ox.NamedNode(XSD + name))
    return st.builds(lambda text, datatype: ox.Literal(text, datatype=datatype), texts, datatypes)


def with_zone(texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    zones = st.sampled_from(("", "", "Z", "+13:00", "-05:30"))
    return st.builds(str.__add__, texts, zones)


WORDS: Final = st.text("159-aZé", max_size=3)
DATES: Final = st.dates().map(str)
LITERALS: Final = st.one_of(
    WORDS.map(ox.Literal),
    st.builds(
        lambda text, tag: ox.Literal(text, language=tag), WORDS, st.sampled_from(("en", "nl"))
    ),
    typed(st.integers(-30, 30).map(str), "integer", "byte", "decimal", "double", "float"),
    typed(st.integers(-(10**30), 10**30).map(str), "integer", "double"),
    typed(st.integers(2**53 - 2, 2**53 + 2).map(str), "integer", "double", "decimal"),
    typed(st.decimals(-2, 2, places=2).map(str), "decimal", "double", "float"),
    typed(st.sampled_from(("INF", "-INF", "NaN")), "double", "float"),
    typed(WORDS, "integer", "dateTime", "anyURI"),
    typed(with_zone(DATES), "date"),
    typed(with_zone(DATES.map(lambda date: f"{date}T23:10:00")), "dateTime"),
    typed(with_zone(st.times().map(lambda time: time.isoformat("seconds"))), "time"),
    typed(with_zone(st.integers(1000, 3000).map(str)), "gYear"),
    typed(st.integers(1, 70).map("P{}D".format), "duration", "dayTimeDuration"),
    typed(st.integers(1, 70).map("P{}M".format), "duration", "yearMonthDuration"),
    typed(st.sampled_from(("true", "false")), "boolean"),
)
IRIS: Final = WORDS.map(lambda word: ox.NamedNode(f"urn:{word}"))
TERMS: Final = st.one_of(
    LITERALS, LITERALS, IRIS, st.builds(ox.Triple, IRIS, IRIS, LITERALS), st.none()
)
RANK: Final[dict[type, int]] = {
    type(None): 0,
    ox.BlankNode: 1,
    ox.NamedNode: 2,
    ox.Literal: 3,
    ox.Triple: 4,
}


def values(terms: list[ox.NamedNode | ox.Literal | ox.Triple | None]) -> str:
    """VALUES with each term and its number."""
    rows = "".join(
        f"({'UNDEF' if term is None else as_value(term)} {number})"
        for number, term in enumerate(terms)
    )
    return f"VALUES (?v ?n) {{ {rows} }}"


def as_value(term: ox.NamedNode | ox.Literal | ox.Triple) -> str:
    return f"<<( {term} )>>" if isinstance(term, ox.Triple) else str(term)


@given(st.lists(TERMS, min_size=30, max_size=50), st.booleans())
def test_any_terms_are_in_the_order_of_sparql(
    terms: list[ox.NamedNode | ox.Literal | ox.Triple | None], descending: bool
) -> None:
    """By the definition of the order (SPARQL 1.1, section 15.1): `<`, as the engine itself evaluates it."""
    key = "DESC(?v)" if descending else "?v"
    rows = StoreQuery(f"SELECT ?n {{ {values(terms)} }} ORDER BY {key}").begin(ox.Store())
    assert isinstance(rows, ox.QuerySolutions)
    order = [int(row["n"].value) for row in rows]  # type: ignore[union-attr] # an integer
    assert sorted(order) == list(range(len(terms)))
    ranks = [RANK[type(terms[number])] for number in order]
    assert ranks == sorted(ranks, reverse=descending)
    less = ox.Store().query(
        f"SELECT ?n ?m {{ {{ {values(terms)} }} {{ SELECT (?v AS ?w) (?n AS ?m) {{ {values(terms)} }} }} "
        "FILTER(?v < ?w) }"
    )
    assert isinstance(less, ox.QuerySolutions)
    place = {number: place for place, number in enumerate(order)}
    for row in less:
        first, second = (place[int(row[name].value)] for name in ("n", "m"))  # type: ignore[union-attr] # integers
        assert (first < second) != descending, (terms[order[first]], terms[order[second]])


ROWS: Final = "VALUES (?s ?n ?g) {{ {} }}".format(
    " ".join(f"(<urn:{n * 7 % 40}> {n * 11 % 40} <urn:g{n % 4}>)" for n in range(40))
)
SORTED: Final = (
    "SELECT ?s {{ {rows} }} ORDER BY ?n",
    "SELECT * {{ {rows} }} ORDER BY DESC(?n) LIMIT 5 OFFSET 2",
    "SELECT DISTINCT ?g {{ {rows} }} ORDER BY ASC (?n)",
    "SELECT (?n + 1 AS ?m) {{ {rows} }} ORDER BY DESC ( ?m )",
    "SELECT ?g (MAX(?n) AS ?m) {{ {rows} }} GROUP BY ?g HAVING (COUNT(*) > 1) ORDER BY ?m",
    "SELECT (COUNT(*) AS ?m) {{ {rows} }} GROUP BY ?g ORDER BY DESC(SUM(?n)) ?g",
    "SELECT (MAX(?n) AS ?m) {{ {rows} }} GROUP BY (STR(?g) AS ?h) ORDER BY (?m * 2) ?h",
    "SELECT (COUNT(*) AS ?m) {{ {rows} }} ORDER BY ?m",
    "SELECT ?s ?n {{ {{ SELECT * {{ {rows} }} ORDER BY ?n LIMIT 9 }} }} ORDER BY DESC(?s)",
    "SELECT ?s {{ {rows} LATERAL {{ SELECT ?s ?v {{ VALUES ?v {{ 2 1 }} }} ORDER BY ?v LIMIT 1 }} }} ORDER BY ?n",
    "SELECT ?s {{ {rows} FILTER EXISTS {{ SELECT ?g {{ BIND(1 AS ?g2) }} ORDER BY ?g }} }} ORDER BY ?n",
    "SELECT ?s {{ {rows} }} ORDER BY (EXISTS {{ FILTER(?n < 9) }}) DESC(?n) # a comment (",
    "SELECT ?order1 {{ {rows} BIND(?n AS ?order1) }} ORDER BY ?order1",
    "SELECT ?s {{ ?s ?p ?n }} ORDER BY ?n VALUES (?s ?n) {{ (<urn:s> 1) }}",
    "SELECT * {{ }} ORDER BY RAND()",
    "CONSTRUCT {{ ?s <urn:p> ?n }} {{ {rows} }} ORDER BY ?n LIMIT 3",
    "DESCRIBE ?s {{ {rows} }} ORDER BY ?n LIMIT 3",
    "ASK {{ {rows} }} ORDER BY ?n",
)


@pytest.mark.parametrize("query", SORTED)
def test_an_order_by_values_of_one_kind_is_that_of_the_engine(query: str) -> None:
    text = query.format(rows=ROWS)
    expected, found = ox.Store().query(text), StoreQuery(text).begin(ox.Store())
    if isinstance(expected, ox.QueryBoolean):
        assert bool(found) == bool(expected)
        return
    of: Callable[[object], object] = str
    if isinstance(expected, ox.QuerySolutions):
        assert isinstance(found, ox.QuerySolutions)
        names = {variable.value for variable in expected.variables}
        assert {variable.value for variable in found.variables} == names
        of = lambda row: [str(row[name]) for name in sorted(names)]  # type: ignore[index] # noqa: E731
    assert list(map(of, found)) == list(map(of, expected))  # type: ignore[arg-type] # solutions or triples


def test_a_variable_that_is_no_key_is_a_sample_of_its_group() -> None:
    """SPARQL 1.1, section 18.2.4.1; the engine takes it as unbound."""
    rows = " ".join(f"({n % 5} {(n % 5 * 3) % 5})" for n in range(20))
    query = f"SELECT ?g {{ VALUES (?g ?v) {{ {rows} }} }} GROUP BY ?g ORDER BY DESC(?v)"
    solutions = StoreQuery(query).solve(ox.Store()).solutions
    assert solutions is not None
    assert [term[1] for (term,) in solutions] == ["3", "1", "4", "2", "0"]


@pytest.mark.parametrize(
    "text", ["SELECT * {} ORDER BY ?a ORDER BY ?b", "SELECT * { ORDER BY ?a }"]
)
def test_an_order_that_is_not_read_is_not_asked(text: str) -> None:
    with pytest.raises(QueryError, match=r"ORDER is not allowed after ORDER|found ORDER"):
        StoreQuery(text)
