"""What the spliced patterns find in the dataset of a firing, by an engine: docs/decisions/046."""

import pyoxigraph as ox
import pytest

from construct_messages.query.continuous.parse import parse_continuous

# Two windows over one stream: <urn:w> has the messages 1 and 2, <urn:v> has 2. Static data has a graph <urn:g>.
DATASET = """
<urn:static> <urn:p> "static" .
<urn:static> <urn:p> "in a graph" <urn:g> .
<urn:a> <urn:p> "1" <urn:s/1> .
<urn:a> <urn:p> "2" <urn:s/2> .
<urn:a> <urn:p> "1" <urn:w> .
<urn:a> <urn:p> "2" <urn:w> .
<urn:a> <urn:p> "2" <urn:v> .
<urn:w> <https://w3id.org/construct-messages#member> <urn:s/1> <urn:construct-messages:windows> .
<urn:w> <https://w3id.org/construct-messages#member> <urn:s/2> <urn:construct-messages:windows> .
<urn:v> <https://w3id.org/construct-messages#member> <urn:s/2> <urn:construct-messages:windows> .
<urn:construct-messages:static> <https://w3id.org/construct-messages#member> <urn:g> <urn:construct-messages:windows> .
"""
HEAD = """SELECT (GROUP_CONCAT(?found; SEPARATOR=" ") AS ?all)
FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE 2s STEP 2s] FROM NAMED WINDOW <urn:v> ON <urn:s> [NOW]
WHERE { { SELECT ?found WHERE {"""
TAIL = "} ORDER BY ?found } }"

FOUND = {
    "a window": ("WINDOW <urn:w> { ?s <urn:p> ?found }", "1 2"),
    "the other window": ("WINDOW <urn:v> { ?s <urn:p> ?found }", "2"),
    "the same window twice": (
        "WINDOW <urn:w> { ?s <urn:p> '1' } WINDOW <urn:w> { ?s <urn:p> ?found }",
        "1 2",
    ),
    "two windows": ("WINDOW <urn:w> { ?s <urn:p> '1' } WINDOW <urn:v> { ?s <urn:p> ?found }", "2"),
    "any window": ("WINDOW ?w { ?s <urn:p> ?found } FILTER(?w != <urn:v>)", "1 2"),
    "static data": ("?s <urn:p> ?found", "static"),
    "messages of a window": (
        "WINDOW <urn:w> { GRAPH ?m { ?s <urn:p> ?o } } BIND(STRAFTER(STR(?m), '/') AS ?found)",
        "1 2",
    ),
    "messages of another window": ("WINDOW <urn:v> { GRAPH ?m { ?s <urn:p> ?found } }", "2"),
    "a message by its name": ("WINDOW <urn:w> { GRAPH <urn:s/1> { ?s <urn:p> ?found } }", "1"),
    "a message of another window by its name": (
        "WINDOW <urn:v> { GRAPH <urn:s/1> { ?s <urn:p> ?found } }",
        "",
    ),
    "a message in two windows": (
        "WINDOW <urn:w> { GRAPH ?m { ?s <urn:p> ?found } } WINDOW <urn:v> { GRAPH ?m { ?s <urn:p> ?o } }",
        "2",
    ),
    "a message in one window only": (
        "WINDOW <urn:w> { GRAPH ?m { ?s <urn:p> ?found } } MINUS { WINDOW <urn:v> { GRAPH ?m { ?s <urn:p> ?o } } }",
        "1",
    ),
    "messages of any window": ("WINDOW ?w { GRAPH ?m { ?s <urn:p> ?found } }", "1 2 2"),
    "messages that are wanted": (
        "WINDOW <urn:w> { ?s <urn:p> ?found OPTIONAL { GRAPH ?m { ?s ?p ?found } } }",
        "1 2",
    ),
    "a sub-select": (
        "WINDOW <urn:w> { SELECT (STR(COUNT(*)) AS ?found) WHERE { GRAPH ?m { ?s <urn:p> ?o } } }",
        "2",
    ),
    "a sub-select within a message": (
        "WINDOW <urn:w> { GRAPH ?m { SELECT ?m (MAX(?o) AS ?found) WHERE { ?s <urn:p> ?o } GROUP BY ?m } }",
        "1 2",
    ),
    "a sub-select within a message that is named": (
        "WINDOW <urn:w> { GRAPH <urn:s/1> { SELECT * WHERE { ?s <urn:p> ?found } } }",
        "1",
    ),
    "a window within any graph": (
        "OPTIONAL { GRAPH ?g { WINDOW <urn:v> { SELECT * WHERE { ?s <urn:p> ?found } } } }",
        "2",
    ),
    "a sub-select behind a message": (
        "WINDOW <urn:w> { GRAPH ?m { ?s <urn:p> ?found } { SELECT ?m WHERE { GRAPH ?m { ?s <urn:p> '1' } } } }",
        "1",
    ),
    "graphs that are no windows": ("GRAPH ?g { ?s ?p ?found }", "in a graph"),
    "a graph by its name": ("GRAPH <urn:g> { ?s ?p ?found }", "in a graph"),
    "a static graph within a window": ("WINDOW <urn:w> { GRAPH <urn:g> { ?s ?p ?found } }", ""),
    "a window as a graph": ("GRAPH <urn:v> { ?s ?p ?found }", "2"),
    "EXISTS": (
        "WINDOW <urn:w> { ?s ?p ?found FILTER EXISTS { GRAPH <urn:s/1> { ?s ?p ?found } } }",
        "1",
    ),
}


@pytest.mark.parametrize(("pattern", "found"), FOUND.values(), ids=FOUND)
def test_pattern_finds(pattern: str, found: str) -> None:
    store = ox.Store()
    store.load(DATASET, format=ox.RdfFormat.N_QUADS)
    answer = store.query(parse_continuous(f"{HEAD} {pattern} {TAIL}").query)
    assert isinstance(answer, ox.QuerySolutions)
    assert [solution["all"].value for solution in answer] == [found]
