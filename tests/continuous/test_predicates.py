"""Quads that a query does not read are not stored, and nothing of what it gives out is another for it."""

from __future__ import annotations

import pytest

from construct_messages import Message, Quad, iri
from construct_messages.continuous import WindowedQuery
from construct_messages.continuous.solutions import predicates_of
from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.query.syntax.parser import parse
from construct_messages.streams.element import GENERATED_AT, Element

IN = "http://example.org/in"
PATTERNS = {
    "plain": "?s <urn:p> ?o",
    "optional": "?s <urn:p> ?o OPTIONAL { ?s <urn:q> ?n }",
    "only optional": "OPTIONAL { ?s <urn:q> ?o }",
    "union": "{ ?s <urn:p> ?o } UNION { ?s <urn:q> ?o }",
    "minus": "?s <urn:p> ?o MINUS { ?s <urn:r> ?o }",
    "exists": "?s <urn:p> ?o FILTER NOT EXISTS { ?s <urn:r> ?x }",
    "count": "{ SELECT ?s (COUNT(*) AS ?o) { ?s <urn:p> ?x . ?s <urn:q> ?y } GROUP BY ?s }",
    "values": "VALUES ?o { <urn:s1> <urn:s2> <urn:s3> } ?s <urn:p> ?o",
    "nothing": "BIND(<urn:s> AS ?s) BIND(1 AS ?o)",
    "any predicate": "?s ?o ?x",
    "a sequence": "?s <urn:p>/<urn:q> ?o",
    "a path of any length": "?s <urn:p>* ?o",
    "time": f"GRAPH ?m {{ ?s <urn:p> ?x }} ?m <{GENERATED_AT}> ?o",
    "members": "GRAPH ?s { ?x <urn:q> ?o }",
    "messages with anything": "GRAPH ?s { } BIND(1 AS ?o)",
    "anything within": "GRAPH ?s { OPTIONAL { ?x <urn:none> ?o } }",
}
ALL = {
    "exists",
    "any predicate",
    "a path of any length",
    "messages with anything",
    "anything within",
}


def elements() -> list[Element]:
    """Messages of different predicates and graphs, some of them equal."""
    made = []
    for number in range(40):
        graph = None if number % 6 else iri("urn:g")
        subject, other = iri(f"urn:s{number % 7}"), iri(f"urn:s{number * 3 % 7}")
        said = {"p": number % 2 == 0, "q": number % 3 > 0, "r": number % 7 == 3}
        quads = [
            Quad(subject, iri(f"urn:{name}"), other, graph)
            for name, is_said in said.items()
            if is_said
        ]
        made.append(Element("in", number + 1, number * 250_000, Message(quads).lines[:-1]))
    return made


def given(pattern: str, *, whole: bool) -> list[set[str]]:
    query = parse_continuous(
        f"REGISTER RSTREAM <urn:out> AS CONSTRUCT {{ ?s <urn:gives> ?o }} "
        f"FROM NAMED WINDOW <urn:w> ON <{IN}> [RANGE PT2S STEP PT1S] WHERE {{ WINDOW <urn:w> {{ {pattern} }} }}"
    )
    engine = WindowedQuery(
        query, element_iri=lambda _, sequence: f"urn:element:{sequence}", maintain=False
    )
    if whole:
        engine._evaluation.contents._predicates = None
    firings = [firing for element in elements() for firing in engine.take(IN, element)]
    assert len(firings) > 5
    return [
        {f"{count}: {text}" for count, text in enumerate(sorted(map(str, firing.messages)))}
        for firing in firings
    ]


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_what_is_given_out_is_the_same(pattern: str) -> None:
    assert given(pattern, whole=False) == given(pattern, whole=True)


@pytest.mark.parametrize("name", PATTERNS)
def test_what_may_read_all(name: str) -> None:
    known = predicates_of(parse(f"SELECT * {{ {PATTERNS[name]} }}")) is not None
    assert known == (name not in ALL)
