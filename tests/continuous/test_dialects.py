"""A query of each dialect, from its text to the messages that it gives."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyoxigraph as ox
import pytest

from construct_messages.continuous import continuous
from construct_messages.rdf.message import Message
from construct_messages.rdf.template import RS
from construct_messages.streams.element import Element

STATIC = ox.Store()
STATIC.load(
    """<urn:t> <urn:in> <urn:kitchen> .
    <urn:g> { <urn:t> <urn:in> <urn:cellar> } <urn:h> { <urn:t> <urn:in> <urn:attic> }""",
    format=ox.RdfFormat.TRIG,
)
READINGS = {
    1: "<urn:t> <urn:reads> 21 .",
    3: "<urn:t> <urn:reads> 22 .",
    8: "<urn:t> <urn:reads> 23 .",
}
PAIRS = [(21, 22), (21, 23), (22, 23)]
LIGHTS = {2: "<urn:t> <urn:light> true .", 9: "<urn:t> <urn:light> false ."}

CASES = {
    "rsp-ql": (
        """BASE <urn:/> REGISTER DSTREAM <out> AS CONSTRUCT { ?t <urn:gone> ?v }
        FROM NAMED WINDOW <w> ON <urn:r> [RANGE PT5S STEP PT5S]
        WHERE { WINDOW <w> { ?t <urn:reads> ?v } } ORDER BY ?v""",
        {"urn:r": READINGS},
        {},
        ["10 urn:/out <urn:t> <urn:gone> 21", "10 urn:/out <urn:t> <urn:gone> 22"],
    ),
    "rsp-ql with names as they are written": (
        """REGISTER RSTREAM <out> AS CONSTRUCT { ?t <urn:v> ?v ; <urn:of> ?s }
        FROM NAMED WINDOW :w ON :r [RANGE 5000 STEP 5000]
        WHERE { WINDOW ?w { GRAPH ?m { ?t <urn:reads> ?v } ?m <https://w3id.org/construct-messages#stream> ?s } }""",
        {":r": {1: READINGS[1]}},
        {},
        ["5 out <urn:t> <urn:v> 21 <urn:t> <urn:of> <urn:construct-messages:stream::r>"],
    ),
    "rsp-ql with a part of the static data": (
        """CONSTRUCT { ?g <urn:says> ?room } FROM NAMED <urn:h> FROM NAMED WINDOW <urn:w> ON <urn:r> [RANGE 5s STEP 5s]
        WHERE { GRAPH ?g { ?t <urn:in> ?room } WINDOW <urn:w> { ?t <urn:reads> 21 } }""",
        {"urn:r": READINGS},
        {"static": STATIC},
        ["5 <urn:h> <urn:says> <urn:attic>"],
    ),
    "c-sparql": (
        """REGISTER STREAM rooms AS CONSTRUCT { ?room <urn:v> ?v } FROM STREAM <urn:r> [RANGE 5s STEP 5s]
        WHERE { ?t <urn:reads> ?v ; <urn:in> ?room } ORDER BY ?v""",
        {"urn:r": READINGS},
        {"static": STATIC},
        [
            f"{second} rooms <urn:kitchen> <urn:v> {value}"
            for second, value in ((5, 21), (5, 22), (10, 23))
        ],
    ),
    "c-sparql over two streams, with a graph of static data": (
        """CONSTRUCT { ?room <urn:v> ?v ; <urn:light> ?light } FROM <urn:g>
        FROM STREAM <urn:r> [RANGE 5s TUMBLING] FROM STREAM <urn:l> [RANGE 5s STEP 5s]
        WHERE { ?t <urn:reads> ?v ; <urn:in> ?room ; <urn:light> ?light } ORDER BY DESC(?v) LIMIT 1""",
        {"urn:r": READINGS, "urn:l": LIGHTS},
        {"static": STATIC},
        [
            "5 <urn:cellar> <urn:v> 22 <urn:cellar> <urn:light> true",
            "10 <urn:cellar> <urn:v> 23 <urn:cellar> <urn:light> false",
        ],
    ),
    "c-sparql with its function for times": (
        """PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#>
        CONSTRUCT { ?t <urn:rose> ?v , ?w }
        FROM STREAM <urn:r> [RANGE 10s STEP 10s] FROM STREAM <urn:l> [RANGE 10s STEP 10s]
        WHERE { ?t <urn:reads> ?v , ?w FILTER(f:timestamp(?t, <urn:reads>, ?v) < f:timestamp(?t, <urn:reads>, ?w))
          FILTER NOT EXISTS { ?t <urn:in> ?room FILTER(f:timestamp(?t, <urn:in>, ?room) > 0) }
        } ORDER BY ?v ?w""",
        {"urn:r": READINGS, "urn:l": LIGHTS},
        {"static": STATIC},
        [f"10 <urn:t> <urn:rose> {earlier} <urn:t> <urn:rose> {later}" for earlier, later in PAIRS],
    ),
    "c-sparql, computed every four seconds": (
        """REGISTER STREAM out COMPUTED EVERY 4s AS CONSTRUCT { ?t <urn:v> ?v }
        FROM STREAM <urn:r> [RANGE 5s STEP 5s] WHERE { ?t <urn:reads> ?v } ORDER BY ?v""",
        {"urn:r": READINGS},
        {},
        [f"{second} out <urn:t> <urn:v> {value}" for second, value in ((4, 21), (4, 22), (8, 23))],
    ),
    "cqels": (
        """CONSTRUCT { ?t <urn:both> ?v , ?light } WHERE {
        STREAM <urn:r> [NOW] { ?t <urn:reads> ?v } STREAM <urn:l> [RANGE 5s] { ?t <urn:light> ?light } }""",
        {"urn:r": READINGS, "urn:l": LIGHTS},
        {"report": "ON_CONTENT_CHANGE"},
        ["3 <urn:t> <urn:both> 22 <urn:t> <urn:both> true"],
    ),
    "cqels by count": (
        """CONSTRUCT { ?t <urn:sum> ?n } WHERE {
        { SELECT ?t (SUM(?v) AS ?n) WHERE { STREAM <urn:r> [TRIPLES 2] { ?t <urn:reads> ?v } } GROUP BY ?t } }""",
        {"urn:r": READINGS},
        {},
        [f"{second} <urn:t> <urn:sum> {value}" for second, value in ((1, 21), (3, 43), (8, 45))],
    ),
    "cqels over all": (
        """CONSTRUCT { ?t <urn:n> ?n } WHERE {
        { SELECT ?t (COUNT(*) AS ?n) WHERE { STREAM <urn:r> [ALL] { ?t <urn:reads> ?v } } GROUP BY ?t } }""",
        {"urn:r": READINGS},
        {},
        [f"{second} <urn:t> <urn:n> {value}" for second, value in ((1, 1), (3, 2), (8, 3))],
    ),
    "sparqlstream": (
        """SELECT DSTREAM ?v FROM NAMED STREAM <urn:r> [NOW - 5 S TO NOW SLIDE 5 S] WHERE { ?t <urn:reads> ?v }
        ORDER BY ?v LIMIT 1""",
        {"urn:r": READINGS},
        {},
        ["10 21"],
    ),
}


def of(element: Element) -> str:
    """The second, the stream if it has a name, and the triples; of a row the values only."""
    terms = [
        term for quad in element.message for term in quad[:3] if not quad.subject.startswith("_:")
    ]
    values = [quad.object for quad in element.message if quad.predicate == f"<{RS}value>"]
    shown = [term.partition("^^")[0].strip('"') for term in values or terms]
    return " ".join(filter(None, [str(element.time.second), element.stream, *shown]))


@pytest.mark.parametrize(("query", "streams", "options", "expected"), CASES.values(), ids=CASES)
def test_query_gives(
    query: str,
    streams: Mapping[str, Mapping[int, str]],
    options: Mapping[str, Any],
    expected: Sequence[str],
) -> None:
    def timed(messages: Mapping[int, str]) -> list[tuple[datetime, Message]]:
        return [
            (
                datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC),
                Message.from_pyoxigraph(ox.parse(turtle, format=ox.RdfFormat.TURTLE)),
            )
            for second, turtle in messages.items()
        ]

    async def given() -> list[str]:
        inputs = {iri: timed(messages) for iri, messages in streams.items()}
        return [of(element) async for element in continuous(query, inputs, **options)]

    assert asyncio.run(given()) == expected
