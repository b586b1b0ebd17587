"""`for_embedded`: the embedded engine evaluates the text by the specification, and everything else stays."""

from collections import Counter
from random import Random

import pyoxigraph as ox
import pytest

from construct_messages import construct_messages
from construct_messages.engine.query import StoreQuery
from construct_messages.errors import QueryError
from construct_messages.query.embedded import for_embedded, names_in_full
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
)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", PATTERNS)
def test_solutions_are_those_of_jena(pattern: str, jena: Arq) -> None:
    random = Random(pattern)
    names = [ox.NamedNode(f"urn:{name}") for name in "abc"]
    graphs = [ox.DefaultGraph(), *names[:2]]
    select = f"PREFIX : <urn:> SELECT ?s ?o ?x ?g {{ {pattern} }}"
    total = 0
    for _ in range(30):
        store = ox.Store()
        for _ in range(random.randint(4, 24)):
            predicate = ox.NamedNode(f"urn:{random.choice('pqr')}")
            subject, object = random.choice(names), random.choice(names)
            store.add(ox.Quad(subject, predicate, object, random.choice(graphs)))
        found = StoreQuery(select).solve(store)
        data = store.dump(format=ox.RdfFormat.N_QUADS)
        assert data is not None
        expected = jena.solutions(data, select)
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
    ],
)
def test_other_text_stays(pattern: str) -> None:
    text = f"PREFIX : <urn:> SELECT * {{\n{pattern} }}"
    assert for_embedded(text) == text


def test_lines_stay() -> None:
    text = "SELECT * {\n?s <urn:p>|<urn:q>\n?o ;\n a ?c .\n?x ?y ?z }"
    assert for_embedded(text).count("\n") == text.count("\n")
    assert for_embedded(text).endswith("}")
