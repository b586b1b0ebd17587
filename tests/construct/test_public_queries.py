"""SELECT queries as people ask them, over data as DBpedia and Wikidata have them: each gives a frame."""

from __future__ import annotations

import bz2
from collections.abc import Callable
from functools import cache

import pyoxigraph as ox
import pytest

from construct_messages import select
from construct_messages.errors import QueryError
from construct_messages.query.rewrite import parse_select, query_form
from tests.support.places import shared_path

pytestmark = [pytest.mark.suite, pytest.mark.slow]

PREFIXES = """
PREFIX dbo: <http://dbpedia.org/ontology/> PREFIX dbp: <http://dbpedia.org/property/>
PREFIX foaf: <http://xmlns.com/foaf/0.1/> PREFIX pos: <http://www.w3.org/2003/01/geo/wgs84_pos#>
PREFIX geo: <http://www.opengis.net/ont/geosparql#> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX p: <http://www.wikidata.org/prop/> PREFIX ps: <http://www.wikidata.org/prop/statement/>
PREFIX pq: <http://www.wikidata.org/prop/qualifier/> PREFIX wdt: <http://www.wikidata.org/prop/direct/>
PREFIX wd: <http://www.wikidata.org/entity/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""
# unknown values, years before Christ and before mankind, quantities of all kinds, coordinates on other globes
WIKIDATA = """
wd:Q1 wdt:P569 "-0044-03-15T00:00:00Z"^^xsd:dateTime ; wdt:P1082 "+1000"^^xsd:decimal ; wdt:P2048 1.75 ;
  wdt:P625 "Point(12.5 41.9)"^^geo:wktLiteral ; rdfs:label "Rome"@en , "Roma"@it ; wdt:P856 <http://rome.example/> ;
  wdt:P580 _:unknown ; wdt:P1215 "NaN"^^xsd:double .
wd:Q2 wdt:P569 "1879-03-14T00:00:00Z"^^xsd:dateTime ; wdt:P1082 "2.50"^^xsd:decimal ; wdt:P2048 2 ;
  wdt:P625 <http://www.wikidata.org/.well-known/genid/x> ; rdfs:label "Ulm"@de ; wdt:P856 "none" ;
  wdt:P580 "2000-01-01T00:00:00Z"^^xsd:dateTime ; wdt:P1215 1.5 ;
  p:P39 [ ps:P39 wd:Q3 ; pq:P580 "2001-01-01T00:00:00Z"^^xsd:dateTime ] .
wd:Q3 wdt:P569 "-66000000-01-01T00:00:00Z"^^xsd:dateTime ; wdt:P1082 99999999999999999999999999 ; wdt:P2048 1e3 ;
  wdt:P580 "unknown" ; wdt:P625 "<http://www.wikidata.org/entity/Q405> Point(1 2)"^^geo:wktLiteral .
"""
OF_DBPEDIA = [
    "SELECT ?s ?area ?people (?people / ?area AS ?density) { ?s dbo:populationTotal ?people ; dbo:areaTotal ?area }",
    "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p ORDER BY DESC(?n)",
    "SELECT * { ?s ?p ?o } ORDER BY ?s ?p LIMIT 5000",
    "SELECT DISTINCT ?s ?when { ?s dbp:established|dbp:establishedDate|dbp:date ?when }",
    "SELECT ?s ?lat ?long { ?s pos:lat ?lat ; pos:long ?long }",
    "SELECT ?p (SAMPLE(?o) AS ?value) { ?s ?p ?o } GROUP BY ?p",
    "SELECT ?name ?birth ?death { ?s foaf:name ?name OPTIONAL { ?s dbo:birthDate ?birth }"
    " OPTIONAL { ?s dbo:deathDate ?death } }",
    "SELECT ?type (MIN(?o) AS ?least) (MAX(?o) AS ?most) { ?s ?p ?o FILTER isLiteral(?o)"
    " BIND(DATATYPE(?o) AS ?type) } GROUP BY ?type",
    "SELECT (AVG(?people) AS ?mean) (SUM(?people) AS ?sum) { ?s dbo:populationTotal ?people }",
    "SELECT ?s ?text (STRLEN(?text) AS ?length) { ?s dbo:abstract ?text FILTER langMatches(LANG(?text), 'en') }",
]
OF_WIKIDATA = [
    "SELECT ?item ?birth { ?item wdt:P569 ?birth }",
    "SELECT ?item ?birth { ?item wdt:P569 ?birth FILTER(YEAR(?birth) > -100) }",
    "SELECT ?item ?people { ?item wdt:P1082 ?people }",
    "SELECT ?item ?place { ?item wdt:P625 ?place }",
    "SELECT ?item ?label (LANG(?label) AS ?tag) { ?item rdfs:label ?label }",
    "SELECT ?item ?site ?start { ?item wdt:P856 ?site ; wdt:P580 ?start }",
    "SELECT ?item ?height { ?item wdt:P2048 ?height }",
    "SELECT ?item ?held ?since { ?item p:P39 ?claim . ?claim ps:P39 ?held ; pq:P580 ?since }",
    "SELECT ?item ?light { ?item wdt:P1215 ?light }",
    "SELECT (COUNT(*) AS ?n) (MAX(?people) AS ?most) { ?item wdt:P1082 ?people }",
]


@cache
def dbpedia() -> ox.Store:
    store = ox.Store()
    files = sorted((shared_path("data") / "dbpedia" / "2015-10-sample").glob("*.ttl.bz2"))
    assert files
    for file in files:
        store.bulk_load(bz2.decompress(file.read_bytes()), format=ox.RdfFormat.TURTLE, lenient=True)
    return store


@cache
def wikidata() -> ox.Store:
    store = ox.Store()
    store.load((PREFIXES + WIKIDATA).encode(), format=ox.RdfFormat.TURTLE)
    return store


@pytest.mark.parametrize(
    ("query", "data"),
    [*((query, dbpedia) for query in OF_DBPEDIA), *((query, wikidata) for query in OF_WIKIDATA)],
)
def test_a_query_gives_frames(query: str, data: Callable[[], ox.Store]) -> None:
    query, store = PREFIXES + query, data()
    variables = list(parse_select(query).variables)
    solutions = [*select(query, store)]
    assert solutions
    for make in ("to_pandas", "to_polars", "to_duckdb"):
        frame = getattr(select(query, store), make)(decimals="double")
        assert list(frame.columns) == variables
        assert len(frame) == len(solutions)
        bound = [sum(name in solution for solution in solutions) for name in variables]
        if make == "to_polars":
            assert [frame[name].len() - frame[name].null_count() for name in variables] == bound


def test_the_heads_of_the_queries_of_the_w3c() -> None:
    """Each has the variables that Oxigraph finds in it, and they stay when `*` is written out."""
    known = 0
    for path in sorted(shared_path("suites/w3c/sparql").rglob("*.rq")):
        text = path.read_text(encoding="utf-8")
        try:
            result = ox.Store().query(text) if query_form(text) == "SELECT" else None
        except (SyntaxError, ValueError, RuntimeError, OSError, QueryError):
            continue
        if not isinstance(result, ox.QuerySolutions) or not result.variables:
            continue
        if path.name == "syn-bad-26.rq":  # the grammar reads no IRI in `<?a&&?b>`
            continue
        select = parse_select(text)
        again = ox.Store().query(str(select))
        assert isinstance(again, ox.QuerySolutions)
        assert [each.value for each in again.variables] == list(select.variables)
        assert {each.value for each in result.variables} == {*select.variables}
        known += 1
    assert known > 600
