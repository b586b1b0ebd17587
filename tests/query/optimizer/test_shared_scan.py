"""Which triple patterns share a scan, and the filters that are pushed down to them."""

from __future__ import annotations

import pytest

from construct_messages.query.algebra.nodes import mentions
from construct_messages.query.optimizer.optimize import shared_scans
from construct_messages.rdf.terms import iri
from tests.support.queries.algebra_text import NOW, translate_query

# a query, and for each of its patterns the predicate and the variables that conditions on its quads read
CASES = [
    ("no condition", "?a <urn:p> ?b", [("p", "")]),
    ("any predicate", "?a ?p ?b FILTER (?b > 1)", []),
    ("a filter", "?a <urn:p> ?b FILTER (?b > 1)", [("p", "b")]),
    ("on the subject", "?a <urn:p> ?b FILTER (isIRI(?a))", [("p", "a")]),
    ("on the graph", "GRAPH ?g { ?a <urn:p> ?b } FILTER (isIRI(?g))", [("p", "g")]),
    ("inside a graph", "GRAPH ?g { ?a <urn:p> ?b FILTER (isIRI(?g)) }", [("p", "")]),
    ("two", "?a <urn:p> ?b FILTER (?b > 1 && isIRI(?a)) FILTER (?b < 3)", [("p", "abb")]),
    ("of each pattern", "?a <urn:p> ?b . ?b <urn:q> ?c FILTER (isIRI(?b) && ?c > 1)", [("p", "b"), ("q", "bc")]),
    ("two variables", "?a <urn:p> ?b FILTER (?a != ?b)", [("p", "")]),
    ("either", "?a <urn:p> ?b FILTER (?b > 1 || ?b < 0)", [("p", "b")]),
    ("no variable", "?a <urn:p> ?b FILTER (1 = 2)", [("p", "")]),
    ("other values each time", "?a <urn:p> ?b FILTER (?b > RAND())", [("p", "")]),
    ("EXISTS", "?a <urn:p> ?b FILTER EXISTS { ?b <urn:q> ?c FILTER (?c > 1) }", [("p", ""), ("q", "c")]),
    ("EXISTS in an expression", "?a <urn:p> ?b FILTER (?b > 1 || EXISTS { ?b <urn:q> ?c })", [("p", ""), ("q", "")]),
    ("of the outside in EXISTS", "?a <urn:p> ?b FILTER NOT EXISTS { ?b <urn:q> ?c FILTER (?a > 1) }",
     [("p", ""), ("q", "")]),
    ("OPTIONAL", "?a <urn:p> ?b OPTIONAL { ?b <urn:q> ?c FILTER (?c > 1 && ?a > 1) }", [("p", ""), ("q", "c")]),
    ("shared with OPTIONAL", "?a <urn:p> ?b OPTIONAL { ?b <urn:q> ?c FILTER (?b > 1) }", [("p", ""), ("q", "b")]),
    ("after OPTIONAL", "?a <urn:p> ?b OPTIONAL { ?b <urn:q> ?c } FILTER (?b > 1)", [("p", ""), ("q", "")]),
    ("in both of UNION", "{ ?a <urn:p> ?b FILTER (?b > 1) } UNION { ?a <urn:p> ?b FILTER (?b > 1) }", [("p", "b")]),
    ("in one of UNION", "{ ?a <urn:p> ?b FILTER (?b > 1) } UNION { ?a <urn:p> ?b }", [("p", "")]),
    ("others in UNION", "{ ?a <urn:p> ?b FILTER (?b > 1 && ?b < 9) } UNION { ?a <urn:p> ?b FILTER (?b < 9) }",
     [("p", "b")]),
    ("MINUS", "{ ?a <urn:p> ?b MINUS { ?a <urn:q> ?b } } FILTER (?b > 1)", [("p", ""), ("q", "")]),
    ("a sub-select", "{ SELECT ?a { ?a <urn:p> ?b } } ?a <urn:q> ?b FILTER (?b > 1)", [("p", ""), ("q", "")]),
    ("a group", "{ SELECT ?b (COUNT(*) AS ?n) { ?a <urn:p> ?b } GROUP BY ?b } FILTER (?b > 1)", [("p", "")]),
    ("a slice", "{ SELECT * { ?a <urn:p> ?b } LIMIT 1 } FILTER (?b > 1)", [("p", "")]),
    ("a computed value", "?a <urn:p> ?b BIND (?b + 1 AS ?c) FILTER (?c > 1)", [("p", "")]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "expected"), [pytest.param(*case, id=name) for name, *case in CASES]
)
def test_what_is_demanded(pattern: str, expected: list[tuple[str, str]]) -> None:
    found = shared_scans(translate_query(f"SELECT * {{ {pattern} }}", now=NOW).pattern)
    read = [
        (
            scan.pattern.predicate,
            sorted(variable.name for one in scan.filters for variable in mentions(one)),
        )
        for scan in found
    ]
    assert read == [(iri(f"urn:{predicate}"), sorted(names)) for predicate, names in expected]
