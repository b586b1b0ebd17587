"""Messages by Spark's plans equal those of `Template.instantiate` and of `Assembly`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from construct_messages.assembly import Assembly, Options
from construct_messages.message import Message
from construct_messages.solutions import Solutions
from construct_messages.spark.algebra import Var, column
from construct_messages.template import Blank, Constant, Pattern, Template, Variable
from construct_messages.terms import Term
from tests.strategies import SOLUTIONS, VARIABLES, templates

room = pytest.importorskip("construct_messages.spark.messages")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Solution = tuple[Term, ...]

# a job costs much more than what it computes: few examples, of many templates each
FEW = settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
SEVERAL = st.lists(templates(), min_size=12, max_size=12)
MANY = st.lists(SOLUTIONS, min_size=6, max_size=6).map(lambda parts: [one for part in parts for one in part])

X, Y = Variable(0), Variable(1)
P, Q = (Constant(Term(f"<urn:{name}>")) for name in "pq")
GENID = "https://example.org/$a/genid/"


def frame_of(spark: SparkSession, solutions: Sequence[Solution], names: Sequence[str] = VARIABLES) -> DataFrame:
    """Solutions in their order, in one partition."""
    rows = [tuple(term or None for term in solution) for solution in solutions]
    schema = ", ".join(f"{column(Var(name))} STRING" for name in names)
    return spark.createDataFrame(rows, schema).coalesce(1)


def text_of(message: Message) -> str:
    return "\n".join(map(str, message))


def by_spark(frame: DataFrame, template: Template, shape: object = None, *, ordered: bool = True) -> list[str]:
    shape = shape or room.Shape()
    return [message for (message,) in room.messages(frame, template, shape, ordered=ordered).collect()]


@FEW
@given(several=SEVERAL, solutions=MANY)
def test_equals_instantiate(spark: SparkSession, several: list[Template], solutions: list[Solution]) -> None:
    numbered = frame_of(spark, solutions).selectExpr("*", "monotonically_increasing_id() AS n")
    expressions = [room.message_sql(template, "CAST(n AS STRING)") for template in several]
    found = numbered.selectExpr(*(f"{sql} AS m{index}" for index, sql in enumerate(expressions))).collect()
    for (number, solution), (index, template) in product(enumerate(solutions), enumerate(several)):
        assert found[number][index] == text_of(Message(template.instantiate(solution, number)))


SHAPES = {
    "each solution": {},
    "no empty ones": {"skip_empty": True},
    "the first two": {"max_messages": 2},
    "skolemized": {"skolemize": GENID},
    "distinct": {"distinct": True},
    "the first three of the distinct": {"distinct": True, "skip_empty": True, "max_messages": 3},
    "groups": {"keys": ("a",)},
    "groups by two variables": {"keys": ("b", "a"), "skip_empty": True},
    "distinct groups": {"keys": ("b",), "distinct": True, "skolemize": GENID},
}


@pytest.mark.parametrize("options", SHAPES.values(), ids=SHAPES)
def test_equals_assembly(spark: SparkSession, options: dict[str, Any]) -> None:
    @settings(FEW, max_examples=3)
    @given(template=templates(), solutions=MANY)
    def check(template: Template, solutions: list[Solution]) -> None:
        assembly = Assembly(template, Options(**options), stable_blank_nodes=True)
        expected = [*assembly.feed(Solutions.of(solutions)), *assembly.finish()]
        found = by_spark(frame_of(spark, solutions), template, room.Shape(**options))
        assert found == list(map(text_of, expected))

    check()
