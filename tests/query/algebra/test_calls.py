"""Expressions as calls of the algebra."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from construct_messages.errors import Position, QueryError, UnsupportedQuery
from construct_messages.query.algebra.nodes import Bgp, Call, Constant, Filter
from construct_messages.rdf.terms import literal, number
from tests.support.queries.algebra_text import NOW, text, translate_query

EXPRESSIONS = [
    ("variable", "?x", "?x"),
    (
        "numbers",
        "(1 + -02 - +3.0)",
        '(- (+ "1"^^xsd:integer "-02"^^xsd:integer) "+3.0"^^xsd:decimal)',
    ),
    (
        "signs",
        "(-1 + - 1 + +1 - -?x + !?y)",
        '(+ (- (+ (+ "-1"^^xsd:integer (u- "1"^^xsd:integer)) "+1"^^xsd:integer) (u- ?x)) (! ?y))',
    ),
    ("sign of an operand", "?x -1", '(- ?x "1"^^xsd:integer)'),
    ("sign before a product", "?x-2*3", '(- ?x (* "2"^^xsd:integer "3"^^xsd:integer))'),
    ("chain", "1 - 2 - 3", '(- (- "1"^^xsd:integer "2"^^xsd:integer) "3"^^xsd:integer)'),
    ("precedence", "?a || ?b && ?c = ?d + ?e * ?f", "(|| ?a (&& ?b (= ?c (+ ?d (* ?e ?f)))))"),
    ("long chains are shallow", "?a || ?b || ?c || ?d", "(|| (|| ?a ?b) (|| ?c ?d))"),
    ("comparison", "(?a < ?b) = (?c >= ?d)", "(= (< ?a ?b) (>= ?c ?d))"),
    ("not equal", "?a != ?b", "(!= ?a ?b)"),
    ("in", "?a IN (1, ?b)", '(IN ?a "1"^^xsd:integer ?b)'),
    ("in nothing", "?a IN ()", "(IN ?a)"),
    ("not in", "?a NOT IN (?b)", "(! (IN ?a ?b))"),
    ("not", "!(?a && ?b)", "(! (&& ?a ?b))"),
    ("iri", "<u:a> = ex:b", "(= <u:a> <u:b>)"),
    ("literals", "\"a\" = 'b'@en", '(= "a" "b"@en)'),
    ("boolean", "TRUE", '"true"^^xsd:boolean'),
    ("bound", "BOUND(?x)", "(BOUND ?x)"),
    ("case does not count", "sTrLeN(?x)", "(STRLEN ?x)"),
    (
        "optional arguments",
        'REGEX(SUBSTR(?x, 1), "a", "i")',
        '(REGEX (SUBSTR ?x "1"^^xsd:integer) "a" "i")',
    ),
    ("replace", 'REPLACE(?x, "a", "b", "i")', '(REPLACE ?x "a" "b" "i")'),
    ("lists", 'CONCAT(?x, COALESCE(?y, "z"), CONCAT())', '(CONCAT ?x (COALESCE ?y "z") (CONCAT))'),
    ("conditional", "IF(?x, ?y, ?z)", "(IF ?x ?y ?z)"),
    ("same functions", "URI(?x) = ISURI(IRI(?y))", "(= (IRI ?x) (ISIRI (IRI ?y)))"),
    ("same term", "sameTerm(?x, ?y)", "(SAMETERM ?x ?y)"),
    ("now", "NOW()", '"2026-01-01T00:00:00Z"^^xsd:dateTime'),
    (
        "nothing given",
        "RAND() + STRLEN(UUID()) + STRLEN(STRUUID())",
        "(+ (+ (RAND) (STRLEN (UUID))) (STRLEN (STRUUID)))",
    ),
    ("cast", "xsd:integer(?x)", "(<http://www.w3.org/2001/XMLSchema#integer> ?x)"),
    ("exists", "EXISTS { ?s ?p ?o FILTER(?x) }", "(exists (filter (bgp [[?s ?p ?o]]) ?x))"),
    ("not exists", "NOT EXISTS { ?s ?p ?o }", "(! (exists (bgp [[?s ?p ?o]])))"),
    (
        "exists in an operator",
        "?x && !EXISTS { ?s ?p ?o }",
        "(&& ?x (! (exists (bgp [[?s ?p ?o]]))))",
    ),
]


PREFIXES = "PREFIX ex: <u:> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>"


@pytest.mark.parametrize(
    ("expression", "wanted"), [pytest.param(*case, id=name) for name, *case in EXPRESSIONS]
)
def test_expressions(expression: str, wanted: str) -> None:
    pattern = translate_query(f"{PREFIXES} ASK {{ FILTER({expression}) }}", now=NOW).pattern
    assert isinstance(pattern, Filter)
    assert text(pattern.condition) == wanted


def test_iris_are_resolved_against_the_base_where_there_is_one() -> None:
    pattern = translate_query(
        "BASE <http://example.org/a/> ASK { FILTER(IRI(?x)) }", now=NOW
    ).pattern
    assert text(pattern) == '(filter (unit) (IRI ?x "http://example.org/a/"))'


REFUSED = [
    ("unknown function", "ex:f(?x)", "<u:f>"),
    ("unknown cast", "xsd:gYear(?x)", "<http://www.w3.org/2001/XMLSchema#gYear>"),
]


@pytest.mark.parametrize(
    ("expression", "fragment"), [pytest.param(*case, id=name) for name, *case in REFUSED]
)
def test_functions_that_are_not_known_are_refused_by_name(expression: str, fragment: str) -> None:
    with pytest.raises(UnsupportedQuery) as refused:
        translate_query(f"{PREFIXES}\nASK {{ FILTER({expression}) }}", now=NOW)
    assert refused.value.fragment == fragment
    assert refused.value.position == Position(2, 14)


ILLEGAL = [
    ("cast of nothing", "xsd:integer()", "takes one argument"),
    ("cast of two", "xsd:integer(1, 2)", "takes one argument"),
    ("aggregate in a filter", "COUNT(?x) > 1", "COUNT is not allowed here, in FILTER"),
    ("undeclared prefix", "?x = nope:a", "prefix nope: is not declared"),
    ("relative IRI", "?x = <a>", "IRI <a> is relative"),
]


@pytest.mark.parametrize(
    ("expression", "message"), [pytest.param(*case, id=name) for name, *case in ILLEGAL]
)
def test_illegal_expressions(expression: str, message: str) -> None:
    with pytest.raises(QueryError, match=re.escape(message)) as refused:
        translate_query(f"{PREFIXES}\nASK {{ FILTER({expression}) }}", now=NOW)
    assert refused.value.position is not None
    assert refused.value.position.line == 2


@settings(max_examples=40)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
def test_strings_keep_their_characters(value: str) -> None:
    pattern = translate_query(f"ASK {{ FILTER({literal(value)}) }}", now=NOW).pattern
    assert isinstance(pattern, Filter)
    assert pattern.condition == Constant(literal(value))


NUMERALS = st.from_regex(
    r"[+-]?(?:[0-9]{1,4}|[0-9]{0,3}\.[0-9]{1,3}|[0-9]{1,3}(?:\.[0-9]{0,2})?[eE][+-]?[0-9]{1,2})",
    fullmatch=True,
)


@pytest.mark.slow
@settings(max_examples=40)
@given(NUMERALS, NUMERALS)
def test_numbers_keep_their_lexical_forms(one: str, other: str) -> None:
    pattern = translate_query(
        f"ASK {{ ?s ?p {one} , {other} FILTER({one} = {other}) }}", now=NOW
    ).pattern
    assert isinstance(pattern, Filter)
    assert pattern.condition == Call("=", (Constant(number(one)), Constant(number(other))))
    assert isinstance(pattern.pattern, Bgp)
    assert [triple.object for triple in pattern.pattern.patterns] == [number(one), number(other)]
