"""`for_embedded`: the embedded engine evaluates the text by the specification, and everything else stays."""

import re
from collections import Counter
from random import Random

import pyoxigraph as ox
import pytest

from construct_messages import construct_messages
from construct_messages.errors import QueryError
from construct_messages.query.embedded import for_embedded, names_in_full
from construct_messages.sparql.engine import StoreQuery
from tests.support.engines.servers import Arq

PREFIX = "PREFIX d: <urn:> "

CASES = {
    "subject": ("ASK { d:a.b.c ?p ?o }", "ASK { <urn:a.b.c> ?p ?o }"),
    "before a full stop": ("ASK { ?s ?p d:1.2.3.}", "ASK { ?s ?p <urn:1.2.3>.}"),
    "function": ("ASK { FILTER(d:a.b-c.d(?x)) }", "ASK { FILTER(<urn:a.b-c.d>(?x)) }"),
    "escapes": ("ASK { ?s d:a\\-b.c.d%20 ?o }", "ASK { ?s <urn:a-b.c.d%20> ?o }"),
    "one full stop": ("ASK { ?s d:a.b d:a..b }", "ASK { ?s d:a.b <urn:a..b> }"),
    "a string": ("ASK { ?s ?p 'd:a.b.c' } # d:a.b.c", "ASK { ?s ?p 'd:a.b.c' } # d:a.b.c"),
    "an IRI": ("ASK { ?s ?p <urn:a.b.c> }", "ASK { ?s ?p <urn:a.b.c> }"),
    "an undeclared prefix": ("ASK { ?s ?p e:a.b.c }", "ASK { ?s ?p e:a.b.c }"),
}


@pytest.mark.parametrize(("query", "expected"), CASES.values(), ids=CASES)
def test_names_are_written_in_full(query: str, expected: str) -> None:
    assert names_in_full(PREFIX + query) == PREFIX + expected


def test_engine_still_refuses_them() -> None:
    """Once it does not, `names_in_full` can go."""
    with pytest.raises(SyntaxError):
        ox.Store().query(f"{PREFIX} ASK {{ ?s ?p d:a.b.c }}")


def test_query_over_data_is_answered() -> None:
    store = ox.Store()
    store.load("<urn:s> <urn:p> <urn:a.b.c> , <urn:other> .", format=ox.RdfFormat.TURTLE)
    query = "PREFIX d: <urn:> CONSTRUCT { ?s d:is.a.c d:a.b.c } WHERE { ?s ?p d:a.b.c }"
    assert [str(quad) for message in construct_messages(query, store) for quad in message] == [
        "<urn:s> <urn:is.a.c> <urn:a.b.c> ."
    ]


# the engine passes ?y to what is nested twice, after three triple patterns
FAR = "?s :p ?o . ?s :p ?y . ?x :p ?o OPTIONAL { ?s :p ?o"
PATTERNS = (
    "?s :p|:q ?o",
    "?s :p|:p ?o",
    "?s :r ?x OPTIONAL { ?s :p|:q ?o }",
    "?s (:p|:q)/(:r|^:p) ?o",
    "?s ^(:p|:q) ?o",  # of ^(:q/:r), Jena 5.6 finds nothing
    "?s (:p|:q)+ ?o",
    "?s !(:p|^:q) ?o",
    "?s :p|:q [ :r|:q ?o ] ; :r ?x",
    "_:n :p|:q ?s , ?o . _:m :r|:p ?x . ?x :q ?s",
    "?s :r ?o FILTER EXISTS { ?s :p|:q ?o } MINUS { ?s :p|:q :a }",
    "GRAPH ?g { ?s :p|:q ?o MINUS { ?x :r|:p ?y } }",
    "GRAPH ?g { ?s :p ?o MINUS { ?s :q|:r ?y } }",
    "GRAPH ?g { ?s :p ?o { ?s :q ?x MINUS { ?y :r ?z } } }",
    "GRAPH ?g { ?s :p ?o FILTER NOT EXISTS { ?s :q ?o MINUS { ?y :r ?z } } }",
    "GRAPH ?g { { ?s :p ?o } UNION { ?s :q ?o } MINUS { ?s :r ?o } }",
    "GRAPH ?g { { SELECT ?s { ?s :p ?o } } }",
    "GRAPH ?g { GRAPH ?h { ?s :p ?o } }",
    "GRAPH ?g { GRAPH ?h { ?s :p ?o } MINUS { ?s :p ?o } }",
    "GRAPH ?g { GRAPH ?h { ?s :p ?o } OPTIONAL { ?s :q ?x } }",
    "GRAPH ?g { { GRAPH ?h { ?s :p ?o } } UNION { ?s :q ?o } }",
    "GRAPH ?g { OPTIONAL { ?s :p ?o } }",
    "GRAPH ?g { VALUES ?x { 1 2 } }",
    "GRAPH ?g { BIND(1 AS ?x) FILTER NOT EXISTS { ?s :p ?o } }",
    "GRAPH ?g { ?s :p ?o { SELECT DISTINCT ?s { ?s :q ?x } } }",
    "GRAPH ?g { ?s :p ?o { SELECT * { ?s :q|:r ?x } } }",
    "GRAPH ?g { ?s :p ?o { SELECT ?s ?g { ?s :q ?x } } }",
    "GRAPH ?g { { SELECT ?s (COUNT(*) AS ?x) { ?s :p|:q ?o } GROUP BY ?s HAVING (COUNT(*) > 1) } }",
    "GRAPH ?g { { SELECT (MAX(?o) AS ?x) { ?s :p ?o } GROUP BY (STR(?s)) } }",
    "GRAPH ?g { ?s :p ?o OPTIONAL { { SELECT ?s ?x { { SELECT * { ?s :q ?x } } ?x :r ?y } } } }",
    "GRAPH ?g { ?s :p ?o FILTER EXISTS { { SELECT ?s { ?s :q|:r ?x } } } }",
    "GRAPH ?g { ?s :p ?o { SELECT ?s { ?s :q ?x MINUS { ?y :r ?z } } } }",
    "?s :p ?x { ?s :q ?o FILTER NOT EXISTS { ?x :p ?o } }",
    "?s :p ?x { ?s :q ?o FILTER EXISTS { ?x :p ?o FILTER(?o != ?s) } }",
    "?s :p ?x { ?s :q ?o { ?s :r ?o FILTER EXISTS { ?o :p ?x } } }",
    "?s :p ?x OPTIONAL { ?s :q ?o FILTER NOT EXISTS { ?x :p ?o } }",
    "?s :p ?x OPTIONAL { ?s :q ?o { ?s :r ?o FILTER NOT EXISTS { ?x :p ?o } } }",
    "?s :p ?x { ?s :q ?o } UNION { ?s :r ?o FILTER NOT EXISTS { ?x :p ?o } }",
    "?s :p ?x MINUS { ?s :q ?o FILTER EXISTS { ?x :p ?o } }",
    "?s :p ?x FILTER EXISTS { ?s :q ?o { ?s :r ?o FILTER NOT EXISTS { ?x :p ?o } } }",
    "?s :p ?x { SELECT ?s ?o { ?s :q ?o FILTER EXISTS { ?x :p ?o } } }",
    "?s :p ?x { ?s :q ?y BIND(EXISTS { ?x :p ?y } AS ?o) }",
    "GRAPH ?g { ?s :p ?o OPTIONAL { ?g :q ?x } }",
    "GRAPH ?g { ?s :p ?o OPTIONAL { ?s :q ?g } OPTIONAL { ?g :r ?x } }",
    "GRAPH ?g { OPTIONAL { ?g :p ?o } ?s :q ?x }",
    "GRAPH ?g { OPTIONAL { ?g :p ?o } ?g :q ?x }",
    "GRAPH ?g { ?g :p ?o OPTIONAL { ?s :q ?x OPTIONAL { ?g :r ?o } } }",
    "GRAPH ?g { ?s :p ?o FILTER(!BOUND(?g)) }",
    "GRAPH ?g { ?s :p ?o OPTIONAL { ?g :q ?x } FILTER(!BOUND(?g) || ?g = ?s) }",
    "GRAPH ?g { ?s :p ?o BIND(BOUND(?g) AS ?x) }",
    "GRAPH ?g { ?s :p ?o FILTER NOT EXISTS { ?g :q ?x } }",
    "GRAPH ?g { ?s :p ?o MINUS { ?g :q ?x } }",
    "GRAPH ?g { ?s :p ?o MINUS { ?g :q ?o } }",
    "GRAPH ?g { ?s :p|:q ?o OPTIONAL { ?g :q|:r ?x } }",
    "GRAPH ?g { { ?s :p ?o } UNION { ?g :q ?x } }",
    "GRAPH ?g { ?s :p ?o OPTIONAL { GRAPH ?g { ?s :q ?x } } }",
    "{ SELECT * { GRAPH ?g { ?s :p ?o OPTIONAL { ?g :q ?x } } } }",
    f"{FAR} OPTIONAL {{ {{ ?s :p ?o BIND(STR(?y) AS ?g) }} }} }}",
    f"{FAR} OPTIONAL {{ ?s :p ?o OPTIONAL {{ ?s :p ?o FILTER(COALESCE(STR(?y), '') = '') BIND(1 AS ?g) }} }} }}",
    f"{FAR} OPTIONAL {{ {{ ?s :p ?o FILTER(COALESCE(STR(?y), '') = '') }} }} }}",
    f"{FAR} OPTIONAL {{ SELECT ?s ?o ?y (STR(?y) AS ?g) {{ ?s :p ?o }} }} }}",
    f"{FAR} OPTIONAL {{ SELECT ?s ?o ?y ?g {{ ?s :p ?o }} GROUP BY ?s ?o ?y (STR(?y) AS ?g) }} }}",
    f"{FAR} OPTIONAL {{ GRAPH :a {{ ?s :p ?o BIND(STR(?y) AS ?g) }} }} }}",
    f"{FAR} OPTIONAL {{ BIND(STR(?y) AS ?g) ?s :p ?o . ?s :p ?y }} }}",
    "?s :p ?x FILTER EXISTS { ?s :p ?o { SELECT ?s { ?s :q ?o FILTER(!BOUND(?x)) } } }",
    "{ SELECT ?s (COUNT(?o / 1) AS ?x) { ?s :p ?o } GROUP BY ?s }",
    "{ SELECT ?s (COUNT(DISTINCT IF(?o = :a, ?o, 1/0)) AS ?x) { ?s :p|:q ?o } GROUP BY ?s }",
    "{ SELECT ?s (COUNT(?y / 1) AS ?x) { SELECT * { ?s :p ?y } } GROUP BY ?s HAVING(COUNT(STR(?y)) > 1) }",
    "GRAPH ?g { { SELECT ?s { ?s :p ?o FILTER(BOUND(?g) || ?s = :a) } } }",
    "GRAPH ?g { { SELECT ?s (COUNT(?y / 1) AS ?x) { ?s :p ?y } GROUP BY ?s } }",
    "?s :p ?o . ?s :p ?y OPTIONAL { SELECT ?s ?y (COUNT(STR(?y)) AS ?x) { ?s :p ?o } GROUP BY ?s ?y }",
)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", PATTERNS)
def test_solutions_are_those_of_jena(pattern: str, jena: Arq) -> None:
    random = Random(pattern)
    names = [ox.NamedNode(f"urn:{name}") for name in "abc"]
    graphs = [ox.DefaultGraph(), *names[:2]]
    select = f"PREFIX : <urn:> SELECT ?s ?o ?x ?g {{ {pattern} }}"
    total = 0
    for count in range(30):
        if total and count >= 12:
            break
        store = ox.Store()
        for _ in range(random.randint(4, 24)):
            predicate = ox.NamedNode(f"urn:{random.choice('pqr')}")
            subject, object = random.choice(names), random.choice(names)
            store.add(ox.Quad(subject, predicate, object, random.choice(graphs)))
        found = StoreQuery(select).solve(store)
        data = store.dump(format=ox.RdfFormat.N_QUADS)
        assert data is not None
        expected = jena.solutions(data, select)
        assert expected is not None
        assert Counter(found.solutions or ()) == Counter(
            tuple(solution.get(name, "") for name in found.variables) for solution in expected
        ), data
        total += len(expected)
    assert total


def test_minus_that_the_engine_evaluates_wrongly_is_refused() -> None:
    query = "SELECT * { GRAPH ?g { ?s ?p ?o OPTIONAL { ?s a ?y } MINUS { ?x ?q ?y } } }"
    with pytest.raises(
        QueryError, match=r"column 53.*\?g in this MINUS, too, where \?y may be"
    ) as e:
        StoreQuery(query)
    assert "NOT EXISTS" in str(e.value.hint)


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("?s { ?s ?p ?o } §LIMIT 1", "LIMIT to all graphs together, not to each ?g"),
        ("?s ?g { ?s ?p ?o } §OFFSET 1", "OFFSET to all graphs together, not to each ?g"),
        ("(COUNT(*) AS ?n) { ?s ?p ?o }", "one group of all graphs, not one of each ?g"),
        ("(1 AS ?n) { ?s ?p ?o } HAVING (COUNT(*) > 1)", "one group of all graphs"),
        ("?s { ?s ?p ?g }", "would take ?g in this sub-select for the graph"),
    ],
)
def test_sub_selects_that_the_engine_evaluates_wrongly_are_refused(
    select: str, message: str
) -> None:
    before, _, after = f"SELECT * {{ GRAPH ?g {{ {{ SELECT {select} }} }} }}".rpartition("§")
    with pytest.raises(QueryError, match=re.escape(message)) as refused:
        StoreQuery(before + after)
    assert refused.value.hint
    if before:
        assert f"column {len(before) + 1}" in str(refused.value)


@pytest.mark.parametrize(
    "pattern",
    [
        '?s ?p "a|b"',
        "?s ?p ?o FILTER(?o || ?p)",
        "?s ?p ?o MINUS { ?x ?y ?z }",
        "GRAPH :g { ?s ?p ?o MINUS { ?x ?y ?z } }",
        "GRAPH ?g { ?s ?p ?o } MINUS { GRAPH ?g { ?x ?y ?z } }",
        "GRAPH ?g { ?s ?p ?o MINUS { ?s ?y ?z } }",
        "?s (:p|:q)* ?o",
        "?s :p|:q",
        "GRAPH ?g { { SELECT ?g ?s { ?s ?p ?o } } }",
        "GRAPH :g { { SELECT ?s { ?s ?p ?o } LIMIT 1 } }",
        "GRAPH ?g { ?s ?p ?o SERVICE :e { SELECT ?s { ?s ?p ?o } LIMIT 1 } }",
        "{ SELECT ?s { GRAPH ?g { ?s ?p ?o } } LIMIT 1 }",
    ],
)
def test_other_text_stays(pattern: str) -> None:
    text = f"PREFIX : <urn:> SELECT ?s {{\n{pattern} }}"
    assert for_embedded(text) == text


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT * { ?s ?p ?o }", "s p o"),
        ("SELECT DISTINCT # *\n * FROM <urn:g> { ?z ?y 1 FILTER(?a) MINUS { ?b ?z 1 } }", "z y"),
        ("SELECT * { ?z ?y 1 OPTIONAL { ?x ?y ?z } BIND(1 AS ?a) } VALUES ?b { 1 }", "z y x a b"),
        ("SELECT * { { SELECT * { ?z ?y ?x } } GRAPH ?g { ?b ?a ?z } } ORDER BY ?a", "z y x g b a"),
        (
            "SELECT * { { ?c ?b [] } UNION { SELECT ?d ?a { ?d ?b ?a } } VALUES ?b { 1 } }",
            "c b d a",
        ),
    ],
)
def test_all_variables_come_in_the_order_of_the_text(query: str, names: str) -> None:
    """As Jena, RDF4J and Virtuoso give them; the specification leaves their order open."""
    assert StoreQuery(query).check() == tuple(names.split())
    result = ox.Store().query(query)
    assert isinstance(result, ox.QuerySolutions)
    assert {each.value for each in result.variables} == set(names.split())


def test_all_variables_of_groups_and_none_stay_an_error_and_none() -> None:
    for query in ("SELECT * { ?s ?p ?o } GROUP BY ?s", "SELECT * { <urn:a> <urn:b> <urn:c> }"):
        assert for_embedded(query) == query


def test_lines_stay() -> None:
    text = "SELECT * {\n?s <urn:p>|<urn:q>\n?o ;\n a ?c .\n?x ?y ?z }"
    assert for_embedded(text).count("\n") == text.count("\n")
    assert for_embedded(text).endswith("}")
