"""`names_in_full`: names with several full stops reach the embedded engine, and everything else stays."""

import pyoxigraph as ox
import pytest

from construct_messages import construct_messages
from construct_messages.query.full_names import names_in_full

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
    """Once it does not, the module can go."""
    with pytest.raises(SyntaxError):
        ox.Store().query(f"{PREFIX} ASK {{ ?s ?p d:a.b.c }}")


def test_query_over_data_is_answered() -> None:
    store = ox.Store()
    store.load("<urn:s> <urn:p> <urn:a.b.c> , <urn:other> .", format=ox.RdfFormat.TURTLE)
    query = "PREFIX d: <urn:> CONSTRUCT { ?s d:is.a.c d:a.b.c } WHERE { ?s ?p d:a.b.c }"
    assert [str(quad) for message in construct_messages(query, store) for quad in message] == [
        "<urn:s> <urn:is.a.c> <urn:a.b.c> ."
    ]
