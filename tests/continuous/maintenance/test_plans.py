"""Which queries are maintained, and the reasons for the others."""

from __future__ import annotations

import pytest

from construct_messages.continuous.maintenance import MaintenancePlan, plan_of
from construct_messages.query.syntax.parser import parse

ONE, TWO, THREE = (
    "join of 1 triple pattern",
    "join of 2 triple patterns",
    "join of 3 triple patterns",
)
MAINTAINED = {
    "a pattern": ("?s :p ?o", ONE),
    "a filter": ("?s :p ?o FILTER(?o > 1)", f"{ONE}, FILTER"),
    "a path": ("?s :p/:q ?o", TWO),
    "optional": ("?s :p ?o OPTIONAL { ?s :q ?x }", f"{TWO}, OPTIONAL"),
    "optional of optional": (
        "?s :p ?o OPTIONAL { ?s :q ?x OPTIONAL { ?x :p ?y } }",
        f"{THREE}, OPTIONAL",
    ),
    "optional with a variable that may be unbound": (
        "?s :p ?o OPTIONAL { ?s :q ?x } OPTIONAL { ?x :p ?y }",
        f"{THREE}, OPTIONAL",
    ),
    "optional with a filter by a function": (
        "?s :p ?o OPTIONAL { ?s :q ?x FILTER(STRLEN(?x) > 1 && ?x != ?o) }",
        f"{TWO}, OPTIONAL, FILTER",
    ),
    "optional of a union": (
        "?s :p ?o OPTIONAL { { ?s :q ?x } UNION { ?s :p ?x } }",
        f"{THREE}, OPTIONAL, UNION",
    ),
    "minus": ("?s :p ?o MINUS { ?s :q 1 }", f"{TWO}, MINUS"),
    "minus of other variables": ("?s :p ?o MINUS { ?x :q 1 }", ONE),
    # a FILTER does not see what is outside of its group: the example of SPARQL 1.1, section 8.3.3
    "a filter in minus": ("?x :p ?n MINUS { ?x :q ?m FILTER(?n = ?m) }", f"{TWO}, MINUS, FILTER"),
    "a filter in exists": (
        "?s :p ?o FILTER NOT EXISTS { ?s :q ?x FILTER(?x = ?o) }",
        f"{TWO}, NOT EXISTS",
    ),
    "a function in exists": (
        "?s :p ?o FILTER EXISTS { ?s :q ?x FILTER(STRLEN(?x) > 1) }",
        f"{TWO}, EXISTS, FILTER",
    ),
    "exists": ("?s :p ?o FILTER EXISTS { ?s :q 1 }", f"{TWO}, EXISTS"),
    "values": ("VALUES ?s { :a } ?s :p ?o", f"{ONE}, VALUES"),
    "UNDEF": ("VALUES ?s { UNDEF } ?s :p ?o", f"{ONE}, VALUES"),
    "equal values": ("VALUES ?o { 1 01 } ?s :p ?o", f"{ONE}, VALUES"),
    "a sub-select": ("{ SELECT ?s { ?s :p ?o } }", ONE),
    "distinct in a sub-select": (
        "{ SELECT DISTINCT ?s { ?s :p ?o } } ?s :q ?x",
        f"{TWO}, DISTINCT",
    ),
    "groups in a sub-select": (
        "{ SELECT ?s (COUNT(*) AS ?n) { ?s :p ?o } GROUP BY ?s } ?s :q ?x",
        f"{TWO}, GROUP BY with COUNT",
    ),
    "messages": ("GRAPH ?m { ?s :p ?o }", ONE),
}
ASKED = {
    "?s :p* ?o": "a property path of any length",
    "?s :p ?o FILTER(?o < NOW())": "NOW()",
    "?s :p ?o BIND(RAND() AS ?x)": "RAND()",
    "?s :p ?o BIND(BNODE() AS ?x)": "BNODE()",
    "?s :p ?o OPTIONAL { ?s :q ?x FILTER(STR(?x) > STR(?o)) }": (
        "OPTIONAL with a FILTER between both sides for the engine"
    ),
    "?s :p ?o FILTER EXISTS { ?s :q ?x OPTIONAL { ?x :q ?o } }": (
        "EXISTS of a pattern that depends on values outside of it"
    ),
    "?s :p ?o FILTER(?o = 1 || EXISTS { ?s :q ?x })": "EXISTS within an expression",
    "{ SELECT ?s { ?s :p ?o } LIMIT 1 } ?s :q ?x": "LIMIT or OFFSET",
    "GRAPH ?m { }": "GRAPH without a pattern in it",
}


def planned(select: str) -> MaintenancePlan | str:
    return plan_of(parse(f"PREFIX : <urn:> {select}"), ["urn:w"])


@pytest.mark.parametrize(("pattern", "plan"), MAINTAINED.values(), ids=MAINTAINED)
def test_maintained(pattern: str, plan: str) -> None:
    found = planned(f"SELECT * {{ GRAPH :w {{ {pattern} }} }}")
    assert isinstance(found, MaintenancePlan)
    assert found.description == plan


@pytest.mark.parametrize(("pattern", "reason"), ASKED.items(), ids=ASKED)
def test_asked_as_a_whole(pattern: str, reason: str) -> None:
    assert planned(f"SELECT * {{ GRAPH :w {{ {pattern} }} }}") == reason


@pytest.mark.parametrize(
    ("query", "plan"),
    [
        ("SELECT DISTINCT ?s { %s }", "join of 1 triple pattern, DISTINCT"),
        ("SELECT REDUCED ?s { %s }", "REDUCED"),
        ("SELECT ?s { %s } ORDER BY ?s", "ORDER BY"),
        ("SELECT ?s { %s } LIMIT 1", "LIMIT or OFFSET"),
        (
            "SELECT ?s (AVG(?o) AS ?a) { %s } GROUP BY ?s",
            "join of 1 triple pattern, GROUP BY with AVG",
        ),
        ("SELECT (SAMPLE(?o) AS ?a) { %s }", "the aggregate SAMPLE"),
    ],
)
def test_forms(query: str, plan: str) -> None:
    found = planned(query % "GRAPH :w { ?s :p ?o }")
    assert (found if isinstance(found, str) else found.description) == plan
