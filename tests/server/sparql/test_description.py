"""Descriptions are read again, in every format, and say what is so."""

from __future__ import annotations

import pyoxigraph as ox
import pytest

from construct_messages.errors import NotAcceptable, TermError
from construct_messages.rdf.formats.negotiation import OFFERED
from construct_messages.server.sparql.description import MEDIA_TYPES, ServiceDescription, describe

SD = "http://www.w3.org/ns/sparql-service-description#"
URL = "http://127.0.0.1:8080/dbpedia/sparql"


def read(description: ServiceDescription) -> ox.Store:
    store = ox.Store()
    store.load(description.body, format=ox.RdfFormat.from_media_type(description.content_type))
    return store


def objects(store: ox.Store, pattern: str) -> list[str]:
    query = f"PREFIX sd: <{SD}> PREFIX f: <http://www.w3.org/ns/formats/> SELECT ?o {{ {pattern} }} ORDER BY STR(?o)"
    solutions = store.query(query)
    assert isinstance(solutions, ox.QuerySolutions)
    return [str(solution["o"].value) for solution in solutions]


ACCEPTS = {
    None: "text/turtle",
    "": "text/turtle",
    "*/*": "text/turtle",
    "text/html, */*;q=0.8": "text/turtle",
    "text/html, rubbish": None,
    "application/rdf+xml": "application/rdf+xml",
    "Application/LD+JSON;q=0.5, text/turtle;q=0.4": "application/ld+json",
    "application/*": "application/n-triples",
    "application/*, application/n-triples;q=0, application/rdf+xml;q=0.9": "application/ld+json",
    "application/trig": "application/trig",
    "application/n-quads": "application/n-quads",
    "application/trig; messages=rdfm": None,
    "application/trig; messages=rdfm, application/n-triples;q=0.1": "application/n-triples",
    "*/*;q=0": None,
    "application/json": None,
}


@pytest.mark.parametrize("accept", ACCEPTS, ids=str)
def test_format(accept: str | None) -> None:
    expected = ACCEPTS[accept]
    if expected is None:
        with pytest.raises(NotAcceptable) as refused:
            describe(URL, accept)
        assert refused.value.offered == MEDIA_TYPES
        assert "text/turtle" in (refused.value.hint or "")
        return
    description = describe(URL, accept)
    assert description.content_type == expected
    assert objects(read(description), "?s sd:endpoint ?o") == [URL]


def test_formats_say_the_same() -> None:
    documents = [ox.Dataset(read(describe(URL, accept))) for accept in MEDIA_TYPES]
    for document in documents:
        document.canonicalize(ox.CanonicalizationAlgorithm.RDFC_1_0)
    assert all(document == documents[0] for document in documents)


def test_own() -> None:
    store = read(
        describe(
            URL,
            languages=("SPARQL11Query", "SPARQL11Update"),
            results=("application/sparql-results+json", "text/turtle", "text/x-own"),
        )
    )
    assert objects(store, "?o a sd:Service") == [URL]
    assert objects(store, "?s sd:supportedLanguage ?o") == [
        f"{SD}SPARQL11Query",
        f"{SD}SPARQL11Update",
    ]
    assert objects(store, f"<{URL}> sd:resultFormat ?o FILTER isIRI(?o)") == [
        "http://www.w3.org/ns/formats/SPARQL_Results_JSON",
        "http://www.w3.org/ns/formats/Turtle",
    ]
    assert objects(store, f"<{URL}> sd:resultFormat [ a f:Format ; f:media_type ?o ]") == sorted(
        [*OFFERED, "text/x-own"]
    )


THEIRS = """
@prefix sd: <http://www.w3.org/ns/sparql-service-description#> .
<http://engine/sparql#it> a sd:Service ;
    sd:endpoint <http://engine/sparql> ;
    sd:supportedLanguage sd:SPARQL11Query, sd:SPARQL11Update ;
    sd:feature sd:BasicFederatedQuery, sd:EmptyGraphs ;
    sd:defaultDataset [ sd:namedGraph [ sd:name <urn:g> ], <#g> ] .
<http://engine/about> sd:describes <http://engine/sparql#it> .
"""


def test_taken_over() -> None:
    description = describe(
        URL,
        refused=("SPARQL11Update", "BasicFederatedQuery"),
        extended=("text/turtle; charset=utf-8", THEIRS.encode()),
    )
    assert description.left_out is None
    store = read(description)
    assert objects(store, "?o a sd:Service") == [URL]
    assert objects(store, "?s sd:endpoint ?o") == [URL]
    assert objects(store, "?s sd:supportedLanguage ?o") == [f"{SD}SPARQL11Query"]
    assert objects(store, f"<{URL}> sd:feature ?o") == [f"{SD}EmptyGraphs"]
    assert objects(store, f"<{URL}> sd:defaultDataset/sd:namedGraph/sd:name ?o") == ["urn:g"]
    assert objects(store, f"<{URL}> sd:defaultDataset/sd:namedGraph ?o FILTER isIRI(?o)") == [
        f"{URL}#g"
    ]
    assert objects(store, "<http://engine/about> sd:describes ?o") == [URL]
    assert len(objects(store, f"<{URL}> sd:resultFormat/f:media_type ?o")) == len(OFFERED)


SERVICE = "<http://e/s> a <http://www.w3.org/ns/sparql-service-description#Service>"
LEFT_OUT = {
    "another media type": (("text/html", b"<html>"), "text/html"),
    "no media type": (("", b""), "no media type"),
    "broken": (("text/turtle", b"<a"), "not read"),
    "not UTF-8": (("application/n-triples", b"<urn:a> <urn:b> '\xff' ."), "not read"),
    "context on the web": (
        ("application/ld+json", b'{"@context": "http://127.0.0.1:9/", "a": 1}'),
        "not read",
    ),
    "nothing in it": (("text/turtle", b""), "0 services"),
    "two services": (
        ("text/turtle", f"{SERVICE} . {SERVICE.replace('e/s', 'e/t')} .".encode()),
        "2 services",
    ),
    "named graphs": (
        ("application/trig", f"GRAPH <urn:g> {{ {SERVICE} }}".encode()),
        "named graphs",
    ),
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_left_out(case: str) -> None:
    extended, reason = LEFT_OUT[case]
    description = describe(URL, extended=extended)
    assert reason in (description.left_out or "")
    assert objects(read(description), "?o a sd:Service") == [URL]


def test_url() -> None:
    with pytest.raises(TermError):
        describe("/sparql")
