"""Which queries are maintained, and the reasons for the others."""

from __future__ import annotations

import pytest

from construct_messages.continuous.incremental.planner import plan_of

MAINTAINED = {
    "a pattern": ("?s :p ?o", "join of 1 triple pattern"),
    "a filter": ("?s :p ?o FILTER(?o > 1)", "join of 1 triple pattern, FILTER"),
    "a path": ("?s :p/:q ?o", "join of 2 triple patterns"),
    "optional": ("?s :p ?o OPTIONAL { ?s :q ?x }", "join of 1 triple pattern, OPTIONAL"),
    "minus": ("?s :p ?o MINUS { ?s :q 1 }", "join of 1 triple pattern, MINUS"),
    "minus of other variables": ("?s :p ?o MINUS { ?x :q 1 }", "join of 1 triple pattern"),
    "a filter in minus": (
        "?s :p ?o MINUS { ?s :q ?x FILTER(?x > 1) }",
        "join of 1 triple pattern, MINUS",
    ),
    "a filter in exists": (
        "?s :p ?o FILTER NOT EXISTS { ?s :q ?x FILTER(?x = ?o) }",
        "join of 1 triple pattern, MINUS",
    ),
    "exists": ("?s :p ?o FILTER EXISTS { ?s :q 1 }", "join of 1 triple pattern, EXISTS"),
    "values": ("VALUES ?s { :a } ?s :p ?o", "join of 1 triple pattern, VALUES"),
    "a sub-select": ("{ SELECT ?s { ?s :p ?o } }", "join of 1 triple pattern"),
    "messages": ("GRAPH ?m { ?s :p ?o }", "join of 1 triple pattern"),
}
ASKED = {
    "?s :p* ?o": "a property path of any length",
    "?s :p ?o FILTER(?o < NOW())": "NOW()",
    "?s :p ?o BIND(RAND() AS ?x)": "RAND()",
    "?s :p ?o BIND(BNODE() AS ?x)": "BNODE",
    "?s :p ?o OPTIONAL { ?s :q ?x } OPTIONAL { ?x :p ?y }": "OPTIONAL with a variable that may be unbound",
    "?s :p ?o OPTIONAL { { ?s :q ?x } UNION { ?s :p ?x } }": "OPTIONAL of more than triple patterns with FILTER",
    # a FILTER does not see what is outside of its group: the example of SPARQL 1.1, section 8.3.3
    "?x :p ?n MINUS { ?x :q ?m FILTER(?n = ?m) }": "MINUS whose FILTER reads more than it binds",
    "?s :p ?o OPTIONAL { ?s :q ?x FILTER(STR(?x) > STR(?o)) }": (
        "OPTIONAL whose FILTER only the engine can evaluate"
    ),
    "{ SELECT DISTINCT ?s { ?s :p ?o } } ?s :q ?x": "DISTINCT in a sub-select",
    "{ SELECT ?s { ?s :p ?o } LIMIT 1 } ?s :q ?x": "LIMIT or OFFSET in a sub-select",
    "{ SELECT ?s (COUNT(*) AS ?n) { ?s :p ?o } GROUP BY ?s } ?s :q ?x": "GROUP BY in a part of the pattern",
    "VALUES ?s { UNDEF } ?s :p ?o": "UNDEF",
    "VALUES ?o { 1 01 } ?s :p ?o": "equal rows of VALUES",
    "GRAPH ?m { }": "GRAPH without a pattern in it",
}


@pytest.mark.parametrize(("pattern", "plan"), MAINTAINED.values(), ids=MAINTAINED)
def test_maintained(pattern: str, plan: str) -> None:
    found = plan_of(f"PREFIX : <urn:> SELECT * {{ GRAPH :w {{ {pattern} }} }}", ["urn:w"])
    assert str(found) == plan
    assert not isinstance(found, str)


@pytest.mark.parametrize(("pattern", "reason"), ASKED.items(), ids=ASKED)
def test_asked_as_a_whole(pattern: str, reason: str) -> None:
    assert plan_of(f"PREFIX : <urn:> SELECT * {{ GRAPH :w {{ {pattern} }} }}", ["urn:w"]) == reason


@pytest.mark.parametrize(
    ("query", "plan"),
    [
        ("SELECT DISTINCT ?s { %s }", "join of 1 triple pattern; distinct solutions"),
        ("SELECT REDUCED ?s { %s }", "REDUCED"),
        ("SELECT ?s { %s } ORDER BY ?s", "ORDER BY"),
        ("SELECT ?s { %s } LIMIT 1", "LIMIT or OFFSET"),
        (
            "SELECT ?s (AVG(?o) AS ?a) { %s } GROUP BY ?s",
            "join of 1 triple pattern; 1 key of GROUP BY with AVG",
        ),
        ("SELECT (SAMPLE(?o) AS ?a) { %s }", "the aggregate SAMPLE"),
    ],
)
def test_forms(query: str, plan: str) -> None:
    assert str(plan_of(query % "GRAPH <urn:w> { ?s <urn:p> ?o }", ["urn:w"])) == plan
