"""What Spark evaluates once, and what is refused before it evaluates anything.

The solutions of nodes and of whole queries: tests/sparql/relational/test_evaluation.py.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from construct_messages.errors import UnsupportedQuery
from construct_messages.query.algebra.nodes import (
    Aggregation,
    Bgp,
    Call,
    Constant,
    Exists,
    Extend,
    Filter,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    Number,
    Plan,
    Project,
    Slice,
    Star,
    Triple,
    Union,
    Values,
    Var,
)
from construct_messages.rdf.terms import XSD, Term, iri, literal
from tests.support.queries import algebra_reference
from tests.support.queries.algebra_text import translate_query
from tests.support.queries.algebra_trees import QUADS, TERMS, VARIABLES, P, Q
from tests.support.spark.sessions import UNCOMPILED, new_session, optimized

pytest.importorskip("pyspark")

from construct_messages.spark.evaluation import check, evaluate
from construct_messages.spark.quads.table import QuadTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

X, Y, Z = VARIABLES
SCHEMA = "subject string, predicate string, object string, graph string"
Bag = Counter[tuple[Term | None, ...]]


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> QuadTable:
    session = new_session(spark, {**UNCOMPILED, "spark.sql.shuffle.partitions": "1"})
    # each quad twice: a graph is a set
    return QuadTable.of(session.createDataFrame([tuple(quad) for quad in QUADS * 2], SCHEMA))


def test_the_answer_of_ask_has_no_columns(table: QuadTable) -> None:
    assert evaluate(translate_query("ASK { ?s <urn:p> ?o }", now=NOW), table).columns == []


def test_a_star_may_stand_in_a_query_twice(table: QuadTable) -> None:
    star = Star(X, (Triple(X, P, Y), Triple(X, Q, Z)))
    twice = Union(Minus(star, Values((Y,), ((TERMS[1],),))), star)
    names = tuple(variable.name for variable in VARIABLES)
    plan = Plan("SELECT", Project(twice, VARIABLES), names)
    wanted = Counter(
        tuple(map(solution.get, VARIABLES)) for solution in algebra_reference.solutions(plan, QUADS)
    )
    assert Counter(map(tuple, evaluate(plan, table).collect())) == wanted


NOW = literal("2026-01-01T00:00:00Z", datatype=XSD + "dateTime")

# --- once a solution ------------------------------------------------------------------------------------------------

N, R = Var(".n0"), Var("r")
MANY = Values((X,), tuple((literal(str(n)),) for n in range(64)))
ODD = Values(
    (X, Y), tuple((literal(str(n)) if n % 4 == 1 else None, literal("y")) for n in range(1, 64, 2))
)
LOW = Call("<", (R, Constant(literal("0.5", datatype=XSD + "double"))))


def numbers(frame: DataFrame) -> list[tuple[str | None, ...]]:
    return [tuple(solution) for solution in frame.collect()]


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        # some right solutions leave ?x unbound, so that the left ones are read for matches and for what has none
        pytest.param(
            LeftJoin(Extend(MANY, R, Call("RAND", ())), Values((X, Y), ((None, TERMS[0]),)), LOW),
            64,
            id="OPTIONAL",
        ),
        pytest.param(
            LeftJoin(
                Extend(MANY, R, Call("RAND", ())),
                Values((X, Y), ((None, TERMS[0]), (literal("0"), TERMS[1]))),
                Call("&&", (LOW, Exists(Bgp((Triple(TERMS[0], P, TERMS[1]),))))),
            ),
            64,
            id="OPTIONAL with EXISTS",
        ),
    ],
)
def test_a_random_number_is_one_number(table: QuadTable, pattern: Node, count: int) -> None:
    frame = evaluate(Plan("SELECT", pattern, ("x", "r", "y")), table)
    assert optimized(frame).count("rand(") <= 1
    solutions = numbers(frame)
    assert len({x for x, *_ in solutions}) == count
    # a solution whose number was drawn twice would meet the condition once and not the other time
    for _, number, bound in solutions:
        low = float(str(number).split('"')[1]) < 0.5
        assert low or bound is None
    alone = {x for x, _, bound in solutions if bound is None}
    assert not alone & {x for x, _, bound in solutions if bound is not None}


def test_a_slice_is_one_slice(table: QuadTable) -> None:
    few = Slice(MANY, 0, 5)
    pattern = Join(
        Project(few, (X,)),
        LeftJoin(Values((Y,), ((TERMS[0],),)), Values((Y, Z), ((None, TERMS[1]),))),
    )
    assert len(numbers(evaluate(Plan("SELECT", pattern, ("x",)), table))) == 5
    optional = evaluate(
        Plan("SELECT", LeftJoin(few, Values((X, Y), ((None, TERMS[0]),))), ("x", "y")), table
    )
    assert len(numbers(optional)) == 5
    assert optimized(optional).count("GlobalLimit") <= 1


def test_numbers_tell_solutions_apart_and_stay(table: QuadTable) -> None:
    numbered = Number(Join(MANY, Values((Y,), ((TERMS[0],), (TERMS[1],)))), N)
    pattern = LeftJoin(
        numbered, Values((Y, Z), ((TERMS[0], TERMS[2]), (None, TERMS[2]), (None, TERMS[2])))
    )
    counts = Counter(
        (x, y, number)
        for x, y, number in numbers(evaluate(Plan("SELECT", pattern, ("x", "y", ".n0")), table))
    )
    assert len(counts) == 128
    assert len({number for *_, number in counts}) == 128
    assert set(counts.values()) == {2, 3}


def test_random_numbers_in_groups_and_orders(table: QuadTable) -> None:
    total = Group(
        MANY, (), ((Y, Aggregation("SUM", Call("RAND", ()))), (Z, Aggregation("COUNT", None)))
    )
    ((sum_of, count),) = numbers(evaluate(Plan("SELECT", total, ("y", "z")), table))
    assert 0 < float(str(sum_of).split('"')[1]) < 64
    assert count == literal("64", datatype=XSD + "integer")


# --- what is refused, and how large plans may be ----------------------------------------------------------------------


def test_refusals_come_before_any_job(table: QuadTable) -> None:
    unknown = Filter(Slice(MANY, 0, 1), Call(iri("urn:f"), (X,)))
    hidden = Filter(MANY, Exists(Filter(MANY, Call("||", (LOW, Exists(unknown))))))
    with pytest.raises(UnsupportedQuery) as refused:
        evaluate(Plan("SELECT", LeftJoin(Slice(MANY, 0, 1), hidden), ("x",)), table)
    assert "urn:f" in refused.value.fragment


@pytest.mark.parametrize(
    ("query", "refused"),
    [
        ("SELECT * { ?x <urn:p>+ ?y }", True),
        ("SELECT * { <urn:a> <urn:p>+ ?y . ?v <urn:p>+ ?w }", True),
        ("SELECT * { <urn:a> <urn:p>+ ?y . ?x <urn:p>+ ?y . ?x <urn:p>+ ?z }", False),
        ("SELECT * { ?x <urn:q> ?v OPTIONAL { ?y <urn:p>+ ?z } }", True),
        ("SELECT * { ?x <urn:q> ?v OPTIONAL { ?y <urn:p>+ ?x } }", False),
        ("SELECT * { ?x <urn:q> ?v MINUS { ?x <urn:p>+ ?y } }", False),
        ("SELECT * { ?x <urn:q> ?v { ?x <urn:p>+ ?y } UNION { ?y <urn:p>+ ?x } }", False),
        ("SELECT * { ?x <urn:q> ?v { SELECT ?x { ?x <urn:p>+ ?y } } }", False),
        ("SELECT * { ?x <urn:q> ?v { SELECT ?y { ?x <urn:p>+ ?y } } }", True),
        ("SELECT * { ?x <urn:q> ?v { SELECT ?x { ?x <urn:p>+ ?y } LIMIT 1 } }", True),
        ("SELECT * { ?x <urn:q> ?v FILTER(!EXISTS { ?x <urn:p>+ ?y } || ?v = 1) }", False),
        ("SELECT * { ?x <urn:q> ?v FILTER(!EXISTS { ?z <urn:p>+ ?y } || ?v = 1) }", True),
    ],
)
def test_paths_that_begin_nowhere(query: str, refused: bool) -> None:
    planned = translate_query(query, now=NOW)
    check(planned, allow_full_closure=True)
    if refused:
        with pytest.raises(UnsupportedQuery, match="would start at every node"):
            check(planned)
    else:
        check(planned)


def test_what_is_not_refused_is_evaluated(table: QuadTable) -> None:
    text = (
        "SELECT * { ?x <urn:q> ?v OPTIONAL { ?y <urn:p>+ ?x } MINUS { ?x <urn:p>+ ?v }"
        " { ?x <urn:q>* ?w } UNION { ?w <urn:p>? ?x } { SELECT ?x { ?x <urn:p>* ?u } }"
        " FILTER(EXISTS { ?x <urn:q>+ ?t } || ?v = 1) }"
    )
    assert evaluate(translate_query(text, now=NOW), table).columns


def test_a_chain_of_patterns(table: QuadTable) -> None:
    links = [Var(f"v{number}") for number in range(21)]
    chain = Bgp(tuple(Triple(here, P, there) for here, there in pairwise(links)))
    frame = evaluate(Plan("SELECT", chain, ("v0", "v20")), table)
    assert optimized(frame).count("Join Inner") == 19
    assert "Join Cross" not in optimized(frame)
