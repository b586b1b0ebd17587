"""Messages by Spark's plans equal those of `Template.instantiate` and of `Assembly`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from construct_messages.construct.assembly import Assembly, Options
from construct_messages.query.algebra.nodes import Var
from construct_messages.rdf.message import Message
from construct_messages.rdf.options import Grouping
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Blank, Constant, Pattern, Template, Variable
from construct_messages.rdf.terms import Term
from construct_messages.sparql.relational.relation import column
from tests.support.spark.sessions import executed, new_session
from tests.support.strategies import SOLUTIONS, VARIABLES, templates

room = pytest.importorskip("construct_messages.spark.messages")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

Solution = tuple[Term, ...]

# a job costs much more than what it computes: few examples, of many templates each
FEW = settings(
    max_examples=6, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
SEVERAL = st.lists(templates(), min_size=12, max_size=12)
MANY = st.lists(SOLUTIONS, min_size=6, max_size=6).map(
    lambda parts: [one for part in parts for one in part]
)

X, Y = Variable(0), Variable(1)
P = Constant(Term("<urn:p>"))
GENID = "https://example.org/$a/genid/"


def frame_of(
    spark: SparkSession, solutions: Sequence[Solution], names: Sequence[str] = VARIABLES
) -> DataFrame:
    """Solutions in their order, in one partition."""
    rows = [tuple(term or None for term in solution) for solution in solutions]
    schema = ", ".join(f"{column(Var(name))} STRING" for name in names)
    return spark.createDataFrame(rows, schema).coalesce(1)


def text_of(message: Message) -> str:
    return "\n".join(map(str, message))


def by_spark(
    frame: DataFrame, template: Template, options: object = None, *, ordered: bool = True
) -> list[str]:
    options = options or Options()
    return [
        message for (message,) in room.messages(frame, template, options, ordered=ordered).collect()
    ]


@FEW
@given(several=SEVERAL, solutions=MANY)
def test_equals_instantiate(
    spark: SparkSession, several: list[Template], solutions: list[Solution]
) -> None:
    numbered = frame_of(spark, solutions).selectExpr("*", "monotonically_increasing_id() AS n")
    expressions = [room.message_sql(template, "CAST(n AS STRING)") for template in several]
    found = numbered.selectExpr(
        *(f"{sql} AS m{index}" for index, sql in enumerate(expressions))
    ).collect()
    for (number, solution), (index, template) in product(enumerate(solutions), enumerate(several)):
        assert found[number][index] == text_of(Message(template.instantiate(solution, number)))


SHAPES = {
    "each solution": {},
    "no empty ones": {"skip_empty": True},
    "the first two": {"max_messages": 2},
    "skolemized": {"skolemize": GENID},
    "distinct": {"distinct": True},
    "the first three of the distinct": {"distinct": True, "skip_empty": True, "max_messages": 3},
    "groups": {"grouping": Grouping(("a",))},
    "groups by two variables": {"grouping": Grouping(("b", "a")), "skip_empty": True},
    "distinct groups": {"grouping": Grouping(("b",)), "distinct": True, "skolemize": GENID},
}


@pytest.mark.parametrize("options", SHAPES.values(), ids=SHAPES)
def test_equals_assembly(spark: SparkSession, options: dict[str, Any]) -> None:
    @settings(FEW, max_examples=3)
    @given(template=templates(), solutions=MANY)
    def check(template: Template, solutions: list[Solution]) -> None:
        assembly = Assembly(template, Options(**options), stable_blank_nodes=True)
        expected = [*assembly.feed(Solutions.of(solutions)), *assembly.finish()]
        found = by_spark(frame_of(spark, solutions), template, Options(**options))
        assert found == list(map(text_of, expected))

    check()


HOSTILE = [
    r'"a\\b"',
    r'"a\nb"',
    '"it\'s"',
    '"${system:user.name}"',
    r'"\\"',
    r'"\\u0041"',
    '"--x /* */"',
    "<urn:$1'>",
]


@pytest.mark.parametrize(
    "setting", ["spark.sql.parser.escapedStringLiterals", "spark.sql.ansi.enabled"]
)
@pytest.mark.parametrize("value", ["true", "false"])
def test_means_the_same_in_every_session(spark: SparkSession, setting: str, value: str) -> None:
    session = new_session(spark, {setting: value, "spark.sql.ansi.doubleQuotedIdentifiers": value})
    template = Template(
        ("x",), (Pattern(X, P, Blank(0)), *(Pattern(X, P, Constant(Term(t))) for t in HOSTILE))
    )
    solutions = [(Term("<urn:x>"),)]
    assert by_spark(frame_of(session, solutions, "x"), template) == [
        text_of(Message(template.instantiate(solutions[0], 0)))
    ]


TRIPLE = Term(r'<<( _:a <urn:p _:> <<( _:b <urn:_:c> "\" _:d \\" )>> )>>'.replace("p _:", "p_:"))


def test_skolemizes_triple_terms_but_not_their_literals(spark: SparkSession) -> None:
    template = Template(("x",), (Pattern(P, P, X),))
    options = Options(skolemize=GENID)
    assert by_spark(frame_of(spark, [(TRIPLE,)], "x"), template, options) == [
        rf'<urn:p> <urn:p> <<( <{GENID}a> <urn:p_:> <<( <{GENID}b> <urn:_:c> "\" _:d \\" )>> )>> .'
    ]


def over_partitions(spark: SparkSession, count: int) -> DataFrame:
    """Solutions `?x` = 0, 1, 2, …, and `?y` that half of them share, in four partitions."""
    return spark.range(0, count, numPartitions=4).selectExpr(
        """concat('"', id, '"') AS v_x""", "concat('<urn:', id % 2, '>') AS v_y"
    )


OF_X = Template(("x", "y"), (Pattern(Y, P, X),))
OVER_PARTITIONS = {
    "the first": ({"max_messages": 7}, [[number] for number in range(7)]),
    "none": ({"max_messages": 0}, []),
    "distinct": ({"distinct": True}, [[number] for number in range(12)]),
    "groups": ({"grouping": Grouping(("y",))}, [list(range(0, 12, 2)), list(range(1, 12, 2))]),
    "the first group": ({"grouping": Grouping(("y",)), "max_messages": 1}, [list(range(0, 12, 2))]),
}


@pytest.mark.parametrize(("options", "expected"), OVER_PARTITIONS.values(), ids=OVER_PARTITIONS)
def test_keeps_the_order_of_solutions(
    spark: SparkSession, options: dict[str, Any], expected: list[list[int]]
) -> None:
    found = by_spark(over_partitions(spark, 12), OF_X, Options(**options))
    assert found == [
        "\n".join(f'<urn:{n % 2}> <urn:p> "{n}" .' for n in numbers) for numbers in expected
    ]


def test_blank_nodes_are_fresh_in_every_partition(spark: SparkSession) -> None:
    template = Template(("x", "y"), (Pattern(Blank(0), P, X), Pattern(Blank(0), P, Blank(1))))
    found = by_spark(over_partitions(spark, 12), template)
    labels = [label for message in found for label in set(re.findall("_:[^ ]+", message))]
    assert len(found) == 12
    assert len(labels) == len(set(labels)) == 24
    assert all(label.startswith(f"_:{template.labels.prefix}_t") for label in labels)


def test_a_template_that_needs_no_number_counts_nothing(spark: SparkSession) -> None:
    frame = room.messages(over_partitions(spark, 12), OF_X, Options(), ordered=True)
    assert "monotonically_increasing_id" not in executed(frame)
