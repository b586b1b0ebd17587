"""The W3C's query evaluation tests on Spark: running each test, and the list of refusals."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from construct_messages.query.algebra.nodes import Plan
from construct_messages.query.rewrite import ConstructQuery, query_form
from construct_messages.rdf.message import Quad
from construct_messages.rdf.terms import Term
from tests.support.queries.algebra_text import translate_query
from tests.support.queries.w3c import Answer, Case
from tests.support.spark.sessions import executed, size

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOW: Final = Term('"2024-02-29T12:34:56.789Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>')

REFUSED: Final[Mapping[str, str]] = {}
"""The reason of each refused test, by name; reviewed by hand. A refusal counts as not passed."""


class Runner:
    """Asks Spark, each dataset made once.

    Args:
        spark: a session of the caller's own; its settings are as the caller wants them.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._table = lru_cache(8)(self._frame)

    def _frame(self, quads: tuple[Quad, ...]) -> DataFrame:
        schema = "subject string, predicate string, object string, graph string"
        return self._spark.createDataFrame([tuple(quad) for quad in quads], schema)

    def plan(self, case: Case) -> Planned:
        """The query of a test, planned by this package and by Spark, before an action.

        Raises:
            UnsupportedQuery: the query has a part that Spark is not asked.
        """
        # what imports pyspark is loaded only where it is there
        from construct_messages.query.optimizer.optimize import optimize
        from construct_messages.spark.evaluation import EvaluationOptions, evaluate
        from construct_messages.spark.quads.table import QuadTable
        from construct_messages.spark.session import translated

        table = QuadTable.of(self._table(tuple(case.quads())))
        text, started = case.text, time.perf_counter()
        construct = (
            ConstructQuery.parse(text, base=case.base) if query_form(text) == "CONSTRUCT" else None
        )
        planned = translate_query(construct.select if construct else text, base=case.base, now=NOW)
        planned = optimize(planned, table.statistics)
        with translated():
            frame = evaluate(planned, table, EvaluationOptions(allow_full_closure=True))
            executed(frame)
        return Planned(construct, planned, frame, time.perf_counter() - started)


@dataclass(frozen=True)
class Planned:
    """A query of a test, as Spark is going to evaluate it.

    Args:
        construct: the query, if it is a CONSTRUCT.
        plan: of its SELECT or ASK.
        frame: its solutions.
        seconds: what planning has taken, from the text of the query on, with the jobs that paths run meanwhile.
    """

    construct: ConstructQuery | None
    plan: Plan
    frame: DataFrame
    seconds: float

    @property
    def operators(self) -> int:
        """The operators of Spark's logical plan, after its optimizer."""
        return size(self.frame)

    def answer(self) -> Answer:
        """Spark's answer.

        Raises:
            ValueOutOfRange: a value that cannot be held exactly.
        """
        from construct_messages.spark.session import translated

        with translated():
            found = [
                tuple(Term(value or "") for value in record) for record in self.frame.collect()
            ]
        if self.construct is not None:
            return Answer(triples=_triples(self.construct, self.plan.variables, found))
        if self.plan.form == "ASK":
            return Answer(truth=bool(found))
        return Answer(self.plan.variables, tuple(found), ordered=self.plan.ordered)


def _triples(
    construct: ConstructQuery, variables: Sequence[str], solutions: Sequence[tuple[Term, ...]]
) -> frozenset[Quad]:
    order = [variables.index(name) for name in construct.template.variables]
    return frozenset(
        quad
        for number, solution in enumerate(solutions)
        for quad in construct.template.instantiate([solution[index] for index in order], number)
    )
