"""Native SQL beside the exact evaluator, over hostile terms: what it decides must be right, on DuckDB and on Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("duckdb")

import duckdb
import pyarrow as pa
import pyoxigraph as ox
from hypothesis import given, settings
from hypothesis import strategies as st

from construct_messages.query.algebra.nodes import Aggregation, Call, Constant, Expression, Var
from construct_messages.rdf.terms import RDF, XSD, Term, iri, literal
from construct_messages.spark.dialect import SparkSql
from construct_messages.sparql.relational import expressions as evaluator
from construct_messages.sparql.relational import native
from construct_messages.sparql.relational.dialects import Dialect, DuckDb
from construct_messages.sparql.relational.duckdb import DuckDbEngine
from construct_messages.sparql.relational.evaluation import PlanSelect
from construct_messages.sparql.relational.relation import column
from construct_messages.sparql.relational.scans import Quads
from tests.support.queries.relational import connection_of, planned
from tests.support.spark.terms import BLANK, TERMS, typed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

X, Y = Var("x"), Var("y")
MORE = (
    *(typed(form, "decimal") for form in ("123456789012345678.123456789", "0.1234567891", "-0")),
    *(typed(form, "integer") for form in ("999999999999999999", "1000000000000000000", "-0", "+7")),
    *(typed(form, "decimal") for form in ("007.50", "-0.000000001", "-12.25", "+0.5", "0.000")),
    *(typed(form, "int") for form in ("2147483647", "-999999999", "12")),
    *(typed(form, "nonNegativeInteger") for form in ("0", "-0", "123")),
    *(typed(form, "double") for form in ("1e22", "123456789.125", "0.1", "1E-7")),
    *(
        typed(f"2023-06-30T08:00:00{rest}", "dateTime")
        for rest in ("", ".5", ".50", ".5Z", ".25Z", "Z")
    ),
    *(typed(form, "date") for form in ("2023-02-29", "2024-02-29", "2023-04-31", "2023-04-30")),
    *(typed(f"{day}T08:00:00Z", "dateTime") for day in ("2023-02-29", "2024-02-29", "2023-06-30")),
    *(literal("x", language="en-gb"), literal("", language="de"), literal('a"b\\"@en')),
    *(literal(text) for text in ("http://ex.org/x", "a\u0000b", "é", "Z", " !", "a\\b", "@en")),
    *(Term('"a"@en--ltr'), Term('<<( <urn:a> <urn:p> "x" )>>'), iri(XSD + "string"), BLANK),
    *(iri("http://ex.org/x"), literal("x", datatype="urn:t>".rstrip(">"))),
)
EVERY: tuple[Term | None, ...] = (*dict.fromkeys((*TERMS, *MORE)), None)
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
TRUE, FALSE = typed("true", "boolean"), typed("false", "boolean")


def call(name: str, *arguments: Expression) -> Call:
    return Call(name, arguments)


def text(value: str) -> Constant:
    return Constant(literal(value))


OF_ONE = [
    *(call(name, X) for name in ("BOUND", "ISIRI", "ISBLANK", "ISLITERAL", "STR", "LANG")),
    *(call(name, X) for name in ("ISNUMERIC", "DATATYPE", "ORDERKEY", "UCASE", "LCASE")),
    *(call(name, call("STR", X)) for name in ("UCASE", "LCASE")),
    *(call(name, call("UCASE", X), text("A")) for name in ("=", "!=")),
    *(call(name, call("LCASE", call("STR", X)), call("STR", X)) for name in ("=", "!=")),
    call("IF", call("ISIRI", X), call("STR", X), X),
    call("IF", X, text("a"), call("LANG", X)),
    call("COALESCE", call("LANG", X), X, text("")),
    call("&&", X, call("ISLITERAL", X)),
    call("||", call("!", X), call("ISIRI", X)),
    *(
        call(name, operand, text(part))
        for name in ("STRSTARTS", "STRENDS", "CONTAINS")
        for operand in (X, call("STR", X))
        for part in ("", "a", "é", "http://ex.org/", "0", "\\")
    ),
    *(call("REGEX", X, text(pattern)) for pattern in ("a", "^a", "^http", "x y")),
    *(call("LANGMATCHES", call("LANG", X), text(tag)) for tag in ("*", "en", "EN-gb", "")),
    *(
        call(name, call("LANG", X), text(tag))
        for name in ("=", "!=")
        for tag in ("", "en", "en-gb")
    ),
    *(
        call(name, call("DATATYPE", X), Constant(datatype))
        for name in ("=", "!=")
        for datatype in (
            iri(XSD + "string"),
            iri(XSD + "integer"),
            iri(RDF + "langString"),
            iri("urn:t"),
        )
    ),
    *(call(name, call("STR", X), text(value)) for name in ("=", "!=") for value in ("a", "urn:a")),
    call("IN", X, Constant(iri("urn:a")), text("a"), Constant(typed("1", "integer"))),
]


Ask = Callable[[str, Sequence[str], Sequence[Sequence[Any]]], list[Any]]
"""The rows of a SELECT from a table `given`, of which the columns and rows follow."""


def by_duckdb(sql: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[Any]:
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    arrays = [pa.array([row[n] for row in rows]) for n in range(len(names))]
    connection.register("given", pa.table(dict(zip(names, arrays, strict=True))))
    return connection.execute(sql).fetchall()


def by_spark(
    session: SparkSession, sql: str, names: Sequence[str], rows: Sequence[Sequence[Any]]
) -> list[Any]:
    types = ", ".join(f"{name} {'INT' if name == 'n' else 'STRING'}" for name in names)
    session.createDataFrame([tuple(row) for row in rows], types).createOrReplaceTempView("given")
    try:
        return [tuple(row) for row in session.sql(sql).collect()]
    finally:
        session.catalog.dropTempView("given")


_ON_SPARK = [pytest.mark.slow, pytest.mark.spark]


@pytest.fixture(
    params=[
        "duckdb",
        pytest.param("quick", id="spark", marks=_ON_SPARK),
        pytest.param("other", id="spark with other settings", marks=_ON_SPARK),
    ]
)
def engine(request: pytest.FixtureRequest) -> tuple[Dialect, Ask]:
    if request.param == "duckdb":
        return DuckDb(), by_duckdb
    return SparkSql(), partial(by_spark, request.getfixturevalue(request.param))


Answer = tuple[bool, str | None, bool, bool | None]
"""Whether the value of an expression is decided, the value, and the same of its truth."""


def asked(
    engine: tuple[Dialect, Ask],
    expressions: Sequence[Expression],
    rows: Sequence[tuple[Term | None, ...]],
) -> list[list[Answer]]:
    """The answers for each expression and row."""
    dialect, ask = engine
    selected = ["n"]
    for expression in expressions:
        term, truth = (of(expression, dialect) for of in (native.term, native.condition))
        assert term or truth, expression
        for one in (
            term or native.Native("NULL", "FALSE"),
            truth or native.Native("NULL", "FALSE"),
        ):
            selected += [
                f"coalesce({one.decided}, FALSE) AS c{len(selected)}",
                f"CASE WHEN {one.decided} THEN {one.sql} END AS c{len(selected) + 1}",
            ]
    names = ["n", *(f"v_{name}" for name in "xy"[: len(rows[0])])]
    numbered = [(n, *row) for n, row in enumerate(rows)]
    source = "given"
    for variable in sorted(native.comparands(expressions)):
        for made in native.comparand(variable, dialect, {}):
            values = ", ".join(f"{sql} AS {column(one)}" for one, sql in made.items())
            source = f"(SELECT t.*, {values} FROM {source} AS t)"
    found = sorted(ask(f"SELECT {', '.join(selected)} FROM {source} AS t", names, numbered))
    return [
        [tuple(row[place : place + 4]) for row in found]
        for place in range(1, 1 + 4 * len(expressions), 4)
    ]


def check(
    engine: tuple[Dialect, Ask],
    expressions: Sequence[Expression],
    rows: Sequence[tuple[Term | None, ...]],
) -> None:
    names = ["x", "y"][: len(rows[0])]
    wrong = []
    for expression, answers in zip(expressions, asked(engine, expressions, rows), strict=True):
        terms = evaluator.terms(expression, names, rows)
        truths = evaluator.truths(expression, names, rows)
        for row, answer, term, truth in zip(rows, answers, terms, truths, strict=True):
            decides_term, found_term, decides_truth, found_truth = answer
            if decides_term and found_term != term:
                wrong.append((expression, row, found_term, term))
            # of a filter, an error is as good as false
            if decides_truth and bool(found_truth) != bool(truth):
                wrong.append((expression, row, found_truth, truth))
    assert wrong == []


def test_of_one_term(engine: tuple[Dialect, Ask]) -> None:
    check(engine, OF_ONE, [(term,) for term in EVERY])


def test_negated() -> None:
    negated = [call("!", one) for one in OF_ONE if native.condition(one, DuckDb())]
    assert len(negated) > 50
    check((DuckDb(), by_duckdb), negated, [(term,) for term in EVERY])


WITH_CONSTANTS = [
    call(name, X, Constant(term))
    for name in COMPARISONS
    for term in EVERY
    if term is not None and native.condition(call(name, X, Constant(term)), DuckDb())
]


def test_with_a_constant(engine: tuple[Dialect, Ask]) -> None:
    assert len(WITH_CONSTANTS) > 300
    negated = (call("!", one) for one in WITH_CONSTANTS[6::13])
    check(engine, [*WITH_CONSTANTS[::7], *negated], [(term,) for term in EVERY])


def test_of_two_variables(engine: tuple[Dialect, Ask]) -> None:
    pairs = list(product(EVERY[::3], EVERY[1::3]))
    check(engine, [call(name, X, Y) for name in COMPARISONS], pairs)


_FORMS = (
    st.from_regex(r"[+-]?[0-9]{1,20}", fullmatch=True),
    st.from_regex(r"[+-]?[0-9]{0,19}([.][0-9]{0,10})?", fullmatch=True),
    st.from_regex(r"[+-]?[0-9]{1,18}([.][0-9]{1,9})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.from_regex(
        r"(19|20|0|-1)[0-9]{2}-(0[1-9]|1[0-2])-[0-3][0-9]T([01][0-9]|2[0-4]):[0-6][0-9]:00([.][0-9]{1,4})?(Z|[+]02:00)?",
        fullmatch=True,
    ),
    st.from_regex(r"20[0-9]{2}-(0[1-9]|1[0-2])-[0-3][0-9]Z?", fullmatch=True),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
)
_DATATYPES = (
    "integer",
    "decimal",
    "double",
    "dateTime",
    "date",
    "string",
    "int",
    "nonNegativeInteger",
    "float",
)
RANDOM = st.one_of(
    *(
        st.builds(typed, form, st.sampled_from([name, name, *_DATATYPES]))
        for name, form in zip(_DATATYPES, _FORMS, strict=False)
    ),
    st.builds(lambda text: literal(text, language="en"), _FORMS[-1]),
)
COMPARED = [*OF_ONE[::5], *WITH_CONSTANTS[::17], *(call(name, X, Y) for name in COMPARISONS)]


@settings(max_examples=2, deadline=None)
@given(st.lists(RANDOM, min_size=60, max_size=200), st.randoms(use_true_random=False))
def test_random_terms(terms: list[Term], random: Random) -> None:
    near = [term.replace("1", "2", 1) for term in terms]
    pairs = [
        *zip(terms, near, strict=True),
        *zip(terms, random.sample(terms, len(terms)), strict=True),
    ]
    check((DuckDb(), by_duckdb), COMPARED, [(Term(one), Term(other)) for one, other in pairs])


def test_most_usual_filters_are_decided() -> None:
    five, day = typed("5", "integer"), "2023-05-31T08:00:00"
    usual = {
        call(">", X, Constant(five)): (five, typed("7.25", "decimal"), typed("7", "nonNegativeInteger")),
        call("<", X, Constant(typed("0.5", "decimal"))): (typed("1.5E0", "double"), five),
        call("<", X, Constant(typed("0.5", "double"))): (typed("1.5E0", "double"), five),
        call("=", X, Constant(typed(f"{day}Z", "dateTime"))): (typed(f"{day}.5Z", "dateTime"),),
        call("<", X, Constant(typed(day, "dateTime"))): (typed(day, "dateTime"),),
        call("<", X, text("b")): (literal("a"),),
        call("=", X, Constant(TRUE)): (FALSE,),
        call("REGEX", X, text("^http")): (literal("http"),),
        call("ISNUMERIC", X): (five, typed("1E3", "double"), literal("a")),
        call("ORDERKEY", X): (five, typed("-7.50", "decimal"), literal("a", language="en"), iri("urn:a")),
    }  # fmt: skip
    for expression, terms in usual.items():
        [answers] = asked((DuckDb(), by_duckdb), [expression], [(term,) for term in terms])
        assert all(answer[0] or answer[2] for answer in answers), expression


GROUPS: list[list[Term | None]] = [
    *([term] for term in EVERY),
    [],
    [typed(str(n), "integer") for n in range(-5, 4)],
    [typed("1", "integer"), typed("1", "integer"), typed("0.5", "decimal"), typed("0.25", "decimal")],
    [typed("-1.25", "decimal"), typed("1.25", "decimal"), typed("-0.000000001", "decimal")],
    [typed("999999999999999999", "integer")] * 30,
    [typed("-999999999999999999.999999999", "decimal")] * 30,
    [typed("12", "int"), typed("3", "nonNegativeInteger"), typed("4", "integer")],
    [typed("12", "int"), typed("1e0", "double")],
    [typed("1", "integer"), None],
    [typed("1", "integer"), literal("a")],
    [literal("b"), literal("a", language="en"), literal("a"), iri("urn:a")],
    [typed("1", "integer"), typed("1.0", "decimal"), typed("01", "integer")],
]  # fmt: skip


def test_aggregates(engine: tuple[Dialect, Ask]) -> None:
    """SUM, MIN and MAX of groups, which have numbers."""
    dialect, ask = engine
    keys = evaluator.terms(
        call("ORDERKEY", X), ["x"], [(term,) for group in GROUPS for term in group]
    )
    terms = [(n, term) for n, group in enumerate(GROUPS) for term in group]
    rows = [(*row, key) for row, key in zip(terms, keys, strict=True)]
    selected = []
    for name in ("SUM", "MIN", "MAX"):
        sql = native.aggregate(Aggregation(name, X), "x", "key", [], dialect)
        selected += [sql.rest or dialect.null, sql.sql]
    select = ", ".join(f"{one} AS c{n}" for n, one in enumerate(selected))
    found = {
        n: rest
        for n, *rest in ask(f"SELECT n, {select} FROM given GROUP BY n", ["n", "x", "key"], rows)
    }
    decided = 0
    for n, group in enumerate(GROUPS):
        if not group:
            continue
        counted = [f"{group.count(term)} {term or ''}" for term in dict.fromkeys(group)]
        [total] = evaluator.aggregates("SUM", "", [("\n".join(counted),)])
        decided += found[n][0] is None
        if None in group:
            assert found[n][:2] == [None, None], group
        else:
            lines = found[n][0].split("\n") if found[n][0] else []
            lines += [f"1 {found[n][1]}"] if found[n][1] else []
            assert evaluator.aggregates("SUM", "", [("\n".join(lines),)]) == [total], group
        known = sorted(
            (evaluator.terms(call("ORDERKEY", X), ["x"], [(term,)])[0] or "", term)
            for term in group
            if term
        )
        ends = [known[0][1], known[-1][1]] if len(known) == len(group) else [None, None]
        assert found[n][3::2] == ends, group
    assert decided > 30
    (nothing,) = ask(f"SELECT {select} FROM given WHERE n < 0", ["n", "x", "key"], rows)
    assert list(nothing[:2]) == [None, typed("0", "integer")]
    assert nothing[3] is None


def test_equal_values_share_a_join_key(engine: tuple[Dialect, Ask]) -> None:
    """Also those near ties of floats, and all numbers where `=` is not transitive."""
    dialect, ask = engine
    near = (f"{0.1:.30f}", "16777216.5", "16777217", "16777216.5000000001", "1e300", "3.4e38")
    forms = [typed(form, name) for form in near for name in ("decimal", "double", "float")]
    terms = [term for term in (*EVERY, *forms) if term is not None]
    found = native.condition(call("SAMEKEY", X, Y), dialect, {X: "l", Y: "r"})
    assert found is not None
    assert found.decided == native.ALWAYS
    sides = (
        f"(SELECT n AS n_{name}, x AS v_{name} FROM given) AS {side}" for name, side in ("xl", "yr")
    )
    joined = f"SELECT n_x, n_y FROM {' JOIN '.join(sides)} ON {found.sql}"
    rows = ask(joined, ["n", "x"], list(enumerate(terms)))
    together = {(terms[one], terms[other]) for one, other in rows}
    pairs = list(product(terms, repeat=2))
    equal = evaluator.truths(call("=", X, Y), ["x", "y"], pairs)
    assert {pair for pair, same in zip(pairs, equal, strict=True) if same} <= together
    assert len(together) < len(pairs) / 4


class _Explaining(DuckDbEngine):
    """Keeps DuckDB's plans of all stages."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        super().__init__(connection)
        self.plans: list[str] = []

    def explain(self, sql: str) -> None:
        ((_, plan),) = self.connection.execute(f"EXPLAIN {sql}").fetchall()
        self.plans.append(plan)

    def table(self, sql: str) -> str:
        self.explain(sql)
        return super().table(sql)


@pytest.mark.parametrize(
    "condition",
    [
        "?n = ?m",
        "LCASE(?n) = STR(?m)",
        "IRI(CONCAT('urn:', ?n)) = ?b",
        "?n = ?m && UCASE(?n) = UCASE(?m)",
        "xsd:integer(?n) = xsd:integer(?m)",
    ],
)
def test_equality_is_a_key_to_join_by(condition: str) -> None:
    """Also of values that Python computes; the answers are the embedded engine's."""
    names = ("a", "A", "1", "01", "b")
    quads = [(iri(f"urn:{name}"), iri("urn:p"), literal(name), None) for name in names]
    quads += [(iri(f"urn:{name}"), iri("urn:q"), literal(name), None) for name in names]
    query = (
        f"PREFIX xsd: <{XSD}> SELECT ?a ?b {{ ?a <urn:p> ?n . ?b <urn:q> ?m FILTER({condition}) }}"
    )
    plan = planned(query)
    engine = _Explaining(connection_of(quads))
    table = Quads("quads", False, plan.dataset, engine.dialect)
    select = PlanSelect(engine, table).select(plan)
    found = engine.connection.execute(select).fetchall()
    engine.explain(select)
    operators = set(re.findall(r"─ ([A-Z][A-Za-z ]+[a-z]) ─", "".join(engine.plans)))
    assert any("Join" in one for one in operators), operators
    assert not any("Cross" in one or "Nested" in one for one in operators), operators
    store = ox.Store()
    store.extend(
        ox.parse("\n".join(f"{s} {p} {o} ." for s, p, o, _ in quads), ox.RdfFormat.N_TRIPLES)
    )
    wanted = {(str(row["a"]), str(row["b"])) for row in store.query(query)}
    assert wanted
    assert set(found) == wanted
