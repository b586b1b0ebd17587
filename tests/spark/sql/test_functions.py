"""SPARQL's functions on Spark, against the embedded store's."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyoxigraph as ox
import pytest

from construct_messages.errors import UnsupportedQuery, ValueOutOfRange
from construct_messages.query.algebra import calls
from construct_messages.query.algebra.nodes import Call, Constant, Expression, Extend, Var
from construct_messages.query.algebra.translation import translate_query
from construct_messages.rdf.terms import (
    RDF,
    UNBOUND,
    XSD,
    Term,
    from_pyoxigraph,
    iri,
    is_literal,
    literal,
)
from construct_messages.spark.session import translated
from construct_messages.spark.sql import expressions, functions
from construct_messages.spark.sql.values import Scalar, Type, as_term
from tests.support.spark.sessions import OTHER, UNCOMPILED, new_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
from tests.support.spark.function_cases import EXPRESSIONS

pytestmark = pytest.mark.slow


def typed(lexical: str, name: str) -> Term:
    return literal(lexical, datatype=XSD + name)


NOW = typed("2026-11-21T20:00:00Z", "dateTime")
STRINGS = [
    *map(
        literal,
        (
            "",
            "abc",
            'ab"c\\d\n\té',
            "\\n",
            "\\\\u0041",
            "a😀b😀",
            "e\u0301",
            "straße ŉ ﬁ",
            "İSTANBUL ΣΑΣ",
        ),
    ),
    *map(
        literal,
        (
            "a b~é*'()!-_./+%",
            "\x00\x01\x7f\u0085\u2028",
            "http://ex.org/x",
            "rel/a",
            "en",
            "EN-gb",
            "*",
        ),
    ),
    *map(
        literal,
        ('q"^^<http://www.w3.org/2001/XMLSchema#integer>', "<<( x", "_:x", "${x}", "it's", "b"),
    ),
    *(literal(text, language="en") for text in ("abc", "b", "", 'a"b')),
    literal("ABC", language="en-gb"),
    literal("été", language="fr"),
    literal("x", language="ar", direction="rtl"),
]
NUMBERS = [
    *(
        typed(lexical, "integer")
        for lexical in ("1", "-7", "0", "9007199254740993", "9223372036854775807")
    ),
    *(
        typed(lexical, "decimal")
        for lexical in ("2.5", "-2.5", "-0.4", "123456789012345678.5", "1.000000000000000001")
    ),
    *(
        typed(lexical, "double")
        for lexical in ("2.5", "-2.5", "-0.4", "-0", "0.49999999999999994", "4503599627370497")
    ),
    *(
        typed(lexical, "double")
        for lexical in ("NaN", "INF", "-INF", "150000000000000000000", "16777217.5")
    ),
    *(typed(lexical, "float") for lexical in ("2.5", "-0.5", "NaN")),
]
ILL_TYPED = [
    typed("x", "integer"),
    *(typed(lexical, "double") for lexical in ("1d", " 1 ", "0x1p3", "")),
    typed("yes", "boolean"),
    typed("x", "dateTime"),
    typed("2011-02-29T00:00:00", "dateTime"),
    typed("2011-01-10T14:45:60", "dateTime"),
    typed("2011-01-10T14:45:13+14:01", "dateTime"),
    typed("2100-02-29", "date"),
]
DATES = [
    typed("2011-01-10T14:45:13.815-05:00", "dateTime"),
    typed("2011-01-10T14:45:13.815Z", "dateTime"),
    typed("2011-01-10T14:45:03", "dateTime"),
    typed("-0044-03-15T00:00:00", "dateTime"),
    typed("0000-03-15T00:00:00", "dateTime"),
    typed("12011-01-10T01:02:03.1+05:30", "dateTime"),
    typed("2011-01-10T14:45:13.123456789012345678-00:30", "dateTime"),
    typed("2011-01-10", "date"),
    typed("2011-01-10Z", "date"),
    typed("14:45:13.5", "time"),
    typed("2011", "gYear"),
    typed("2011-05Z", "gYearMonth"),
    typed("--05", "gMonth"),
    typed("--02-28", "gMonthDay"),
    typed("---05", "gDay"),
]
TERMS = [
    *(iri(text) for text in ("urn:a", "http://ex.org/é?x#y", XSD + "string", XSD + "integer")),
    *(*STRINGS, *NUMBERS, *ILL_TYPED, *DATES),
    *(
        typed("true", "boolean"),
        typed("PT1H", "dayTimeDuration"),
        literal("x", datatype="urn:t"),
        UNBOUND,
    ),
]
UNARY = [
    *(
        "STR",
        "LANG",
        "DATATYPE",
        "IRI",
        "ISIRI",
        "ISBLANK",
        "ISLITERAL",
        "ISNUMERIC",
        "STRLEN",
        "UCASE",
        "LCASE",
    ),
    *(
        "ENCODE_FOR_URI",
        "CONCAT",
        "ABS",
        "ROUND",
        "CEIL",
        "FLOOR",
        "YEAR",
        "MONTH",
        "DAY",
        "HOURS",
        "MINUTES",
    ),
    *("SECONDS", "TIMEZONE", "TZ", "MD5", "SHA1", "SHA256", "SHA384", "SHA512"),
]
BINARY = [
    "STRSTARTS",
    "STRENDS",
    "CONTAINS",
    "STRBEFORE",
    "STRAFTER",
    "CONCAT",
    "LANGMATCHES",
    "SAMETERM",
    "STRLANG",
]

# What the embedded store answers otherwise, of terms that it does not keep as they are written.
DIFFERENCES = {
    # it knows one type of integers
    ("DATATYPE", typed("1", "byte")): iri(XSD + "byte"),
    # it lets derived integers leave their ranges
    ("ISNUMERIC", typed("300", "byte")): typed("false", "boolean"),
    ("ABS", typed("-1", "nonNegativeInteger")): None,
    # it takes names of numbers that XML Schema has not
    ("ISNUMERIC", typed("Infinity", "double")): typed("false", "boolean"),
    ("STR", typed("Infinity", "double")): literal("Infinity"),
    # it stores what equals a value as that value
    ("STR", typed("01", "integer")): literal("01"),
    ("STR", typed("2011-12-31T24:00:00", "dateTime")): literal("2011-12-31T24:00:00"),
    ("YEAR", typed("2011-12-31T24:00:00", "dateTime")): typed("2012", "integer"),
    ("DAY", typed("2011-12-31T24:00:00", "dateTime")): typed("1", "integer"),
    ("HOURS", typed("24:00:00", "time")): typed("0", "integer"),
    ("TZ", typed("2011-01-10T00:00:00+00:00", "dateTime")): literal("+00:00"),
    ("TIMEZONE", typed("2011-01-10T00:00:00-00:00", "dateTime")): typed("PT0S", "dayTimeDuration"),
    ("DATATYPE", typed("2011-01-10T00:00:00Z", "dateTimeStamp")): iri(XSD + "dateTimeStamp"),
    # it has no decimals and years of that length
    ("SECONDS", typed("2011-01-10T00:00:01.1234567890123456789012", "dateTime")): typed(
        "1.1234567890123456789012", "decimal"
    ),
    ("ABS", typed("-12345678901234567890123456789012345678", "integer")): typed(
        "12345678901234567890123456789012345678", "integer"
    ),
}


def of_variables(name: str, count: int = 1) -> str:
    """The SQL of a function of variables, as a term."""
    variables = [Var(variable) for variable in "xyz"[:count]]
    return expressions.term(Call(name, tuple(variables)))


def on_spark(
    spark: SparkSession, solutions: list[tuple[Term, ...]], sql: list[str]
) -> list[tuple[Term | None, ...]]:
    """Values of expressions for each solution of `?x`, `?y` …"""
    columns = ", ".join(f"v_{variable} STRING" for variable in "xyz"[: len(solutions[0])])
    numbered = [
        (index, *(term or None for term in solution)) for index, solution in enumerate(solutions)
    ]
    frame = spark.createDataFrame(numbered, f"index INT, {columns}")
    found = frame.selectExpr(
        "index", *(f"{value} AS r{place}" for place, value in enumerate(sql))
    ).collect()
    return [tuple(values[1:]) for values in sorted(found, key=lambda values: values[0])]


def on_oxigraph(
    solutions: list[tuple[Term, ...]], expressions: list[str]
) -> list[tuple[Term | None, ...]]:
    data = "".join(
        f"({index} {' '.join(term or 'UNDEF' for term in terms)})"
        for index, terms in enumerate(solutions)
    )
    variables = " ".join("?" + variable for variable in "xyz"[: len(solutions[0])])
    select = " ".join(
        f"({expression} AS ?r{place})" for place, expression in enumerate(expressions)
    )
    query = f"SELECT ?index {select} {{ VALUES (?index {variables}) {{ {data} }} }} ORDER BY ?index"
    answers = ox.Store().query(query)
    assert isinstance(answers, ox.QuerySolutions)
    return [
        tuple(None if value is None else from_pyoxigraph(value) for value in answer)[1:]
        for answer in answers
    ]


@pytest.fixture(scope="module", params=["defaults", "other settings"])
def session(request: pytest.FixtureRequest, spark: SparkSession) -> SparkSession:
    # one projection of all functions is too large to be compiled
    defaults = {**UNCOMPILED, "spark.sql.ansi.enforceReservedKeywords": "true"}
    return new_session(spark, OTHER if request.param == "other settings" else defaults)


def test_functions_of_one_term(session: SparkSession) -> None:
    solutions = [(term,) for term in TERMS]
    found = on_spark(session, solutions, [of_variables(name) for name in UNARY])
    expected = on_oxigraph(solutions, [f"{name}(?x)" for name in UNARY])
    assert [
        (name, term, value, right)
        for (term,), values, rights in zip(solutions, found, expected, strict=True)
        for name, value, right in zip(UNARY, values, rights, strict=True)
        if value != right
    ] == []


def test_functions_of_two_strings(session: SparkSession) -> None:
    arguments = [*STRINGS, typed("1", "integer"), iri("urn:a"), UNBOUND]
    solutions = list(itertools.product(arguments, repeat=2))
    found = on_spark(session, solutions, [of_variables(name, 2) for name in BINARY])
    expected = on_oxigraph(solutions, [f"{name}(?x, ?y)" for name in BINARY])
    assert [
        (name, terms, value, right)
        for terms, values, rights in zip(solutions, found, expected, strict=True)
        for name, value, right in zip(BINARY, values, rights, strict=True)
        if value != right
    ] == []


def test_functions_of_a_string_and_another_term(session: SparkSession) -> None:
    strings = [
        literal("a😀b"),
        literal("1"),
        literal('"', language="en"),
        literal(""),
        typed("1", "integer"),
    ]
    solutions = list(itertools.product(strings, TERMS))
    found = on_spark(session, solutions, [of_variables("STRDT", 2), of_variables("SUBSTR", 2)])
    expected = on_oxigraph(solutions, ["STRDT(?x, ?y)", "SUBSTR(?x, ?y)"])
    assert [
        pair for pair in zip(solutions, found, expected, strict=True) if pair[1] != pair[2]
    ] == []


def test_sub_strings(session: SparkSession) -> None:
    places = [
        typed(str(place), "integer")
        for place in (-(10**20), -2, 0, 1, 2, 5, 6, 2**31, 2**63, 10**30)
    ]
    places += [UNBOUND, typed("1", "decimal"), typed("2", "byte")]
    solutions = list(
        itertools.product([literal("1😀345"), literal("1\n345", language="en")], places, places)
    )
    found = on_spark(session, solutions, [of_variables("SUBSTR", 3)])

    def value(term: Term) -> int | None:
        return int(term.split('"')[1]) if term and not term.endswith("decimal>") else None

    for (text, *bounds), (substring,) in zip(solutions, found, strict=True):
        start, count = map(value, bounds)
        if start is None or count is None:
            assert substring is None
        else:
            chars, end = ("1😀345", '"') if "😀" in text else ("1\n345", '"@en')
            kept = "".join(
                char for place, char in enumerate(chars, 1) if start <= place < start + count
            )
            assert substring == '"' + kept.replace("\n", "\\n") + end


def test_where_the_embedded_store_differs(session: SparkSession) -> None:
    names = sorted({name for name, _ in DIFFERENCES})
    solutions = [(term,) for _, term in DIFFERENCES]
    found = on_spark(session, solutions, [of_variables(name) for name in names])
    for (name, term), values in zip(DIFFERENCES, found, strict=True):
        assert values[names.index(name)] == DIFFERENCES[name, term], (name, term)
    assert on_spark(
        session, [(literal("x"), iri(RDF + "langString"))], [of_variables("STRDT", 2)]
    ) == [(None,)]


def read(text: str, base: str | None = None) -> Expression:
    """An expression of SPARQL."""
    node = translate_query(
        f"SELECT ({text} AS ?r) {{ BIND(1 AS ?one) }}", now=NOW, base=base
    ).pattern
    while not (isinstance(node, Extend) and node.variable == Var("r")):
        node = node.pattern  # type: ignore[union-attr]  # a projection and BIND have one
    return node.expression


def test_expressions(session: SparkSession) -> None:
    texts = [text.strip() for text in EXPRESSIONS]
    solutions = [(term,) for term in (*STRINGS, iri("urn:a"), typed("12", "integer"), UNBOUND)]
    found = on_spark(session, solutions, [expressions.term(read(text)) for text in texts])
    expected = on_oxigraph(solutions, texts)
    assert [
        (text, term, value, right)
        for (term,), values, rights in zip(solutions, found, expected, strict=True)
        for text, value, right in zip(texts, values, rights, strict=True)
        if value != right
    ] == []


# Where XPath's rules are not those of the embedded store's regular expressions.
REPLACED = {
    'REPLACE("abc", "b", "$0x")': literal("abxc"),
    'REPLACE("abc", "(b)", "$1x")': literal("abxc"),
    'REPLACE("abc", "(b)", "$12")': literal("ab2c"),
    'REPLACE("abc", "(b)", "[\\\\$1]")': literal("a[$1]c"),
    'REPLACE("abc"@en, "b", "\\\\\\\\")': literal("a\\c", language="en"),
    'REPLACE("abc", "b", "$")': None,
    'REPLACE("abc", "b", "\\\\n")': None,
    'REPLACE("abc", "x*", "y")': None,
    'REPLACE("abc", "", "y")': None,
    'REPLACE("abc", "$", "y")': None,
    'REPLACE("a.c", ".", "$1", "q")': literal("a$1c"),
    'REPLACE("aaa", "^a", "b")': literal("baa"),
    'REPLACE("abab", "(ab)+?", "x")': literal("xx"),
    'REGEX("a\\rb", "a.b")': typed("false", "boolean"),
    'REGEX("aa", "(a)\\\\1")': typed("true", "boolean"),
    'REGEX("é_", "\\\\w_")': typed("true", "boolean"),
    'REGEX("_", "\\\\w")': typed("false", "boolean"),
}


def test_regular_expressions_by_xpath(session: SparkSession) -> None:
    found = on_spark(session, [(UNBOUND,)], [expressions.term(read(text)) for text in REPLACED])
    assert dict(zip(REPLACED, found[0], strict=True)) == REPLACED


COMPUTED = {
    'REGEX("a", ?x)': "pattern of REGEX",
    'REGEX("a", STR("a"))': "pattern of REGEX",
    'REGEX("a", "a", ?x)': "flags of REGEX",
    'REPLACE("a", ?x, "b")': "pattern of REPLACE",
    'REPLACE("a", "b", ?x)': "replacement of REPLACE",
    'REPLACE("a", "b", "c", ?x)': "flags of REPLACE",
    'REGEX("a", "\\\\ba")': r"holds \\b",
}


@pytest.mark.parametrize("text", COMPUTED)
def test_what_is_not_known_before_the_job_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedQuery, match=COMPUTED[text]):
        expressions.term(read(text))


def test_a_text_too_long_for_a_regular_expression(spark: SparkSession) -> None:
    sql = [
        expressions.term(read('REGEX(?x, "^(a|bc)*$")')),
        expressions.term(read('REPLACE(?x, "(a|bc)+", "x")')),
    ]
    assert on_spark(spark, [(literal("a" * 100),)], sql) == [
        (typed("true", "boolean"), literal("x"))
    ]
    for value in sql:
        with (
            pytest.raises(ValueOutOfRange, match="is too long for a regular expression"),
            translated(),
        ):
            on_spark(spark, [(literal("a" * 5000),)], [value])


REFERENCES = [
    "",
    "x",
    "?q",
    "#f",
    "//h/x",
    "//h",
    "/x/./y/../z",
    "../../../g",
    "g;x=1/../y",
    "./",
    ".",
    "..",
    "../",
]
REFERENCES += [
    "g?y/../x",
    "g#y/../x",
    "a b",
    "x%zz",
    "x%20",
    "http:g",
    "mailto:a@b",
    "urn:a/../b",
    "1:a",
    "é",
    "//[x",
]
REFERENCES += [
    "http://a:b",
    "http://u:p@h:80/x",
    "http://[::1]/x",
    "http://a/b/../c",
    "a//b/../c",
    "x\ny",
    "a<b",
    "😀",
]
BASES = [
    None,
    "http://ex.org/a/b/c?q#f",
    "http://ex.org",
    "http://ex.org/a/",
    "urn:a:b",
    "file:///a/b",
]


def test_iris(session: SparkSession) -> None:
    """Text is resolved against the query's base: by the embedded store as here."""
    solutions = [(literal(reference),) for reference in REFERENCES]
    found = on_spark(
        session, solutions, [expressions.term(read("IRI(?x)", base)) for base in BASES]
    )
    wrong = []
    for place, base in enumerate(BASES):
        prologue = f"BASE <{base}> " if base else ""
        for reference, values in zip(REFERENCES, found, strict=True):
            quoted = reference.replace("\n", "\\n")
            answers = ox.Store().query(f'{prologue}SELECT (IRI("{quoted}") AS ?r) {{}}')
            assert isinstance(answers, ox.QuerySolutions)
            value = next(answers)[0]
            right = None if value is None else from_pyoxigraph(value)
            if values[place] != right:
                wrong.append((base, reference, values[place], right))
    assert wrong == []


def test_iri_of_other_terms(session: SparkSession) -> None:
    terms = [iri("urn:a"), Term("_:b"), literal("a", language="en"), typed("1", "integer"), UNBOUND]
    found = on_spark(
        session, [(term,) for term in terms], [expressions.term(read("IRI(?x)", "http://ex.org/"))]
    )
    assert found == [(iri("urn:a"),), (None,), (None,), (None,), (None,)]


def test_blank_nodes(session: SparkSession) -> None:
    """One for each label and solution; without label, one for each call and solution."""
    with_label = expressions.term(Call("BNODE", (Var("x"), Var("y"))))
    sites = [Call("FRESH", (Constant(typed(str(site), "integer")), Var("y"))) for site in (1, 12)]
    labels = [literal(text) for text in ("a", "é\n", "", "61")]
    solutions = [(label, Term(number)) for label in labels for number in ("1", "2", "12")]
    found = on_spark(session, solutions, [with_label, with_label, *map(expressions.term, sites)])
    assert all(first == second for first, second, *_ in found)
    nodes = {
        (labelled, solution) for (labelled, *_), solution in zip(found, solutions, strict=True)
    }
    assert len({node for node, _ in nodes}) == len(solutions)
    fresh = {node for _, _, *nodes in found for node in nodes}
    assert len(fresh) == 6  # of two calls for three numbers
    assert all(
        re.fullmatch("_:s[A-Za-z0-9]*", node or "") for node in fresh | {node for node, _ in nodes}
    )
    others = [literal("a", language="en"), iri("urn:a"), typed("1", "integer"), UNBOUND]
    assert on_spark(session, [(term, Term("1")) for term in others], [with_label]) == [(None,)] * 4


def test_drawn_values(session: SparkSession) -> None:
    drawn = [
        expressions.term(read(text))
        for text in ("RAND()", "UUID()", "STRUUID()", "RAND()", "UUID()")
    ]
    found = on_spark(session, [(literal("x"),)] * 20, drawn)
    for rand, uuid, text, *_ in found:
        assert re.fullmatch(r'"0\.\d+"\^\^<http://www.w3.org/2001/XMLSchema#double>', rand or "")
        assert re.fullmatch(r"<urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}>", uuid or "")
        assert re.fullmatch(r'"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"', text or "")
    assert len({value for values in found for value in values}) == 100


def test_compiled_functions(spark: SparkSession) -> None:
    """As Spark runs them by default: compiled, under ANSI mode."""
    sql = [
        expressions.term(read(f'{name}(?x, "b")')) for name in ("STRBEFORE", "CONTAINS", "CONCAT")
    ]
    sql += [
        expressions.term(read(text))
        for text in ("ROUND(STRLEN(?x) / 2)", 'REGEX(?x, "B", "i")', "SHA1(?x)")
    ]
    (values,) = on_spark(spark, [(literal('a"b'),)], sql)
    sha1 = hashlib.sha1(b'a"b', usedforsecurity=False).hexdigest()
    assert values == (
        literal('a"'),
        typed("true", "boolean"),
        literal('a"bb'),
        typed("2", "decimal"),
        typed("true", "boolean"),
        literal(sha1),
    )


def test_all_digits_are_kept(session: SparkSession) -> None:
    """Also by what Spark would round to 34 digits."""
    numbers = [typed("-" + "1234567890" * 3 + "12345678", "integer")]
    numbers.append(typed("-1234567890123456789.123456789012345678", "decimal"))
    sql = [expressions.term(read(text)) for text in ("ABS(?x)", "-?x", "-(-?x)")]
    for number, values in zip(
        numbers, on_spark(session, [(number,) for number in numbers], sql), strict=True
    ):
        positive = number.replace("-", "")
        assert values == (positive, positive, number)


# --- without Spark --------------------------------------------------------------------------------------------------


def test_every_function_of_sparql_is_known() -> None:
    by_the_compiler = {"BOUND", "IF", "COALESCE"}
    by_the_plan = {"NOW"}
    assert calls.FUNCTIONS - by_the_compiler - by_the_plan | {"FRESH"} == functions.FUNCTIONS.keys()


def kinds() -> Iterator[Scalar]:
    yield Scalar("v_x")
    for type in Type:
        yield Scalar(f"CAST(NULL AS {type.value.split()[0]})" if type is Type.TERM else "n", type)


@pytest.mark.parametrize(
    "name", sorted(functions.FUNCTIONS.keys() - {"REGEX", "REPLACE", "FRESH", "BNODE", "IRI"})
)
def test_every_function_takes_every_kind_of_value(name: str) -> None:
    """A value of the wrong kind is an error of the query, not of its compilation."""
    counts = {"CONCAT": 2, "SUBSTR": 3} | dict.fromkeys(("RAND", "UUID", "STRUUID"), 0)
    pairs = {*BINARY, "STRDT"} - {"CONCAT"}
    count = counts.get(name, 2 if name in pairs else 1)
    for values in itertools.product(kinds(), repeat=count):
        node = Call(name, tuple(Var(str(place)) for place in range(count)))
        assert as_term(functions.FUNCTIONS[node.name](*values))


def test_text_of_nested_calls_grows_with_their_number() -> None:
    def nested(depth: int) -> Expression:
        expression: Expression = Var("x")
        for _ in range(depth):
            expression = Call("UCASE", (Call("STRAFTER", (expression, Constant(literal("a")))),))
        return expression

    lengths = [len(expressions.term(nested(depth))) for depth in (2, 4, 8)]
    assert lengths[2] - lengths[1] < 3 * (lengths[1] - lengths[0])


def test_strings_are_literals(session: SparkSession) -> None:
    assert all(is_literal(term) for term in STRINGS)
    assert on_spark(session, [(term,) for term in STRINGS], [of_variables("ISLITERAL")]) == [
        (typed("true", "boolean"),)
    ] * len(STRINGS)
