"""Expressions where engines differ, each with the value that the specifications give it."""

from __future__ import annotations

from typing import Final

from construct_messages.query.algebra.nodes import Expression, Extend, Var
from construct_messages.rdf.terms import iri, literal
from tests.support.queries.algebra_text import translate_query
from tests.support.queries.relational import NOW
from tests.support.spark.terms import typed

XSD_PREFIX: Final = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "


def read(text: str) -> Expression:
    """An expression of SPARQL."""
    query = f"{XSD_PREFIX}SELECT ({text} AS ?r) {{ BIND(1 AS ?one) }}"
    node = translate_query(query, now=NOW).pattern
    while not (isinstance(node, Extend) and node.variable == Var("r")):
        node = node.pattern  # type: ignore[union-attr]  # a projection and BIND have one
    return node.expression


TRUE, FALSE = typed("true", "boolean"), typed("false", "boolean")
# where pyoxigraph is not exact: XPath and XQuery Functions 3.1; SPARQL 1.1 Query; XML Schema 1.1 Part 2
EXACT: Final = {
    'STR("01"^^xsd:integer)': literal("01"),
    'DATATYPE("1"^^xsd:byte)': iri("http://www.w3.org/2001/XMLSchema#byte"),
    'SAMETERM("1.50"^^xsd:decimal, 1.5)': FALSE,
    'COALESCE("+1"^^xsd:integer)': typed("+1", "integer"),
    "9223372036854775807 + 1": typed("9223372036854775808", "integer"),
    "1.0000000000000000001 + 0.0000000000000000001": typed("1.0000000000000000002", "decimal"),
    "1 / 3": typed("0.333333333333333333", "decimal"),
    "-1 / 3": typed("-0.333333333333333333", "decimal"),
    "9007199254740993 = 9007199254740992": FALSE,
    "1 / 0": None,
    "1e0 / 0": typed("INF", "double"),
    "true > false": TRUE,
    '"NaN"^^xsd:double = "NaN"^^xsd:double': FALSE,
    'ISNUMERIC("300"^^xsd:byte)': FALSE,
    'ISNUMERIC("inf"^^xsd:double)': FALSE,
    'ISNUMERIC(" 1 "^^xsd:integer)': FALSE,
    '"2000-01-01T00:00:00"^^xsd:dateTime = "2000-01-01T00:00:00Z"^^xsd:dateTime': None,
    '"2000-01-01T00:00:00"^^xsd:dateTime < "2000-01-02T00:00:00Z"^^xsd:dateTime': TRUE,
    '"2000-01-01T24:00:00Z"^^xsd:dateTime = "2000-01-02T00:00:00Z"^^xsd:dateTime': TRUE,
    '"24:00:00"^^xsd:time = "00:00:00"^^xsd:time': TRUE,
    'DAY("2011-12-31T24:00:00"^^xsd:dateTime)': typed("1", "integer"),
    'TZ("2011-01-10T00:00:00+00:00"^^xsd:dateTime)': literal("+00:00"),
    '"-500000-01-01"^^xsd:date < "2000-01-01"^^xsd:date': TRUE,
    'xsd:dateTime("2011-02-29T00:00:00")': None,
    "xsd:string(1e6)": literal("1.0E6"),
    "xsd:string(1e-7)": literal("1.0E-7"),
    "xsd:integer(1.9e0)": typed("1", "integer"),
    'xsd:integer("INF"^^xsd:double)': None,
    'xsd:boolean("yes")': None,
    'REGEX("a\\n", "^a$")': FALSE,
    'REGEX("É", "é", "i")': TRUE,
    'REGEX("_", "\\\\w")': FALSE,
    'REGEX("e", "[a-z-[aeiou]]")': FALSE,
    'REGEX("aa", "(a)\\\\1")': TRUE,
    'REGEX("a", "a&&b")': FALSE,
    'REGEX("a", "*")': None,
    'REPLACE("abc", "(b)", "$1x")': literal("abxc"),
    'REPLACE("abc", "(b)", "$12")': literal("ab2c"),
    'REPLACE("a.c", ".", "$1", "q")': literal("a$1c"),
    'REPLACE("abc", "x*", "y")': None,
    'SUBSTR("12345", 0, 3)': literal("12"),
    'ENCODE_FOR_URI("a b~é*")': literal("a%20b~%C3%A9%2A"),
    "ROUND(-2.5)": typed("-2", "decimal"),
    "ROUND(2.5e0)": typed("3", "double"),
    "CEIL(-0.5e0)": typed("-0", "double"),
}
