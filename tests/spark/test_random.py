"""Random queries over random data: solutions as pyoxigraph's, messages as those of the embedded path.

Each test draws as many queries as its share of the profile's examples: some in a usual run, thousands by
`make fuzz-spark`. What they were made of is printed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import TYPE_CHECKING

import pyoxigraph as ox
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from construct_messages import Message, construct_messages, read_log
from construct_messages.errors import UnsupportedQuery, ValueOutOfRange
from construct_messages.rdf.terms import UNBOUND, Term, from_pyoxigraph
from tests.support.queries.w3c import Answer, agree, canonical
from tests.support.spark.random_queries import PREFIXES, Query, dataset, query_over, template_over
from tests.support.spark.w3c import NOW

pytest.importorskip("pyspark")

from construct_messages.query.optimizer.optimize import optimize
from construct_messages.spark.construct import construct_messages as on_spark
from construct_messages.spark.evaluation import evaluate
from construct_messages.spark.quads.table import QuadTable
from construct_messages.spark.session import translated
from tests.support.queries.algebra_text import translate_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

SCHEMA = "subject string, predicate string, object string, graph string"
_SEEDED = st.randoms(use_true_random=True)  # told by their seeds: what is drawn does not shrink
_PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


class Coverage:
    """What a run has asked."""

    def __init__(self) -> None:
        self.queries = self.fruitful = self.out_of_range = 0
        self.operators: Counter[str] = Counter()
        self.pairs: Counter[tuple[str, str]] = Counter()

    def count(self, query: Query, found: bool) -> None:
        self.queries += 1
        self.fruitful += found
        self.operators.update(query.operators)
        self.pairs.update(query.pairs)

    def check(self) -> None:
        """That the run was worth its time."""
        assert self.fruitful >= 0.6 * self.queries - 1, self
        assert self.out_of_range <= 1 + 0.02 * self.queries, self
        assert len(self.operators) >= min(self.queries // 2, 55), self
        assert len(self.pairs) >= min(self.queries // 4, 120), self

    def __str__(self) -> str:
        rarest = [" in ".join(reversed(pair)) for pair, _ in self.pairs.most_common()[:-11:-1]]
        return (
            f"{self.queries} queries, {self.fruitful / self.queries:.0%} with solutions, {self.out_of_range} out of "
            f"range; {len(self.operators)} operators, {len(self.pairs)} pairs of them; rarest: {', '.join(rarest)}"
        )


def ask(share: int, question: Callable[[Random, list[ox.Quad], Query, Coverage], None]) -> None:
    """Asks a share of the profile's examples, a query and a dataset each."""
    coverage = Coverage()

    @given(random=_SEEDED)
    @settings(
        max_examples=max(1, settings.default.max_examples // share),
        phases=_PHASES,
        suppress_health_check=[HealthCheck.too_slow],
    )
    def example(random: Random) -> None:
        quads = dataset(random)
        query = query_over(random, quads)
        try:
            question(random, quads, query, coverage)
        except ValueOutOfRange:  # said aloud, where more digits are needed than are held
            coverage.out_of_range += 1
        except UnsupportedQuery as refused:
            if "durations have no" not in refused.message:
                raise

    example()
    print(f"\nrandom queries on Spark: {coverage}")
    coverage.check()


def term(
    value: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple | ox.DefaultGraph | None,
) -> Term | None:
    return None if value is None or isinstance(value, ox.DefaultGraph) else from_pyoxigraph(value)


def store_of(quads: Iterable[ox.Quad]) -> ox.Store:
    store = ox.Store()
    store.extend(quads)
    return store


def table_of(quick: SparkSession, quads: Sequence[ox.Quad]) -> QuadTable:
    """A table that holds each quad twice: a graph is a set."""
    rows = [
        (term(q.subject), term(q.predicate), term(q.object), term(q.graph_name)) for q in quads
    ] * 2
    return QuadTable.of(quick.createDataFrame(rows, SCHEMA).coalesce(1))


def test_solutions_are_those_of_pyoxigraph(quick: SparkSession) -> None:
    def question(_: Random, quads: list[ox.Quad], query: Query, coverage: Coverage) -> None:
        solutions = store_of(quads).query(query.text)
        assert isinstance(solutions, ox.QuerySolutions)
        names = query.variables
        wanted = Answer(
            names, tuple(tuple(term(one[name]) or UNBOUND for name in names) for one in solutions)
        )
        coverage.count(query, bool(wanted.solutions))
        table = table_of(quick, quads)
        planned = optimize(translate_query(query.text, now=NOW), table.statistics)
        with translated():
            found = evaluate(planned, table).collect()
        answer = Answer(
            planned.variables, tuple(tuple(Term(value or "") for value in one) for one in found)
        )
        assert agree(answer, wanted), (query.text, [str(quad) for quad in quads], answer, wanted)

    ask(16, question)


def test_messages_are_those_of_the_embedded_path(quick: SparkSession) -> None:
    def question(random: Random, quads: list[ox.Quad], query: Query, coverage: Coverage) -> None:
        text = f"{PREFIXES}CONSTRUCT {template_over(random, query)} WHERE {{ {query.select} }}"
        options = {
            "group_by": random.choice(((), (), query.variables[:1])),
            "distinct": random.random() < 0.3,
            "skip_empty": random.random() < 0.3,
            "label_prefix": "x",
        }
        with construct_messages(text, store_of(quads), **options) as stream:
            wanted = list(stream)
        coverage.count(query, bool(wanted))
        with translated():
            lines = on_spark(text, table_of(quick, quads), **options).frame.collect()
        log = "".join(
            f"# @message\n{message}\n" if message else "# @message\n" for (message,) in lines
        )
        found = read_log(log.encode(), "nq", syntax="rdfm", keep_labels=True)
        assert comparable(found) == comparable(wanted), (
            text,
            options,
            [str(quad) for quad in quads],
        )

    ask(32, question)


def comparable(messages: Iterable[Message]) -> Counter[frozenset[tuple[str, ...]]]:
    """The messages in any order, with numbers in one form, and template's blank nodes without a message's number."""
    return Counter(
        frozenset(
            tuple(re.sub(r"_:x_t\d+b", "_:x_tb", canonical(part)) if part else "" for part in quad)
            for quad in message
        )
        for message in messages
    )
