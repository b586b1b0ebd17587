"""Quads and nodes for tests of property paths on the engines of the relational plan."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import TYPE_CHECKING, Final

from construct_messages.query.algebra.nodes import Link, Var
from construct_messages.query.optimizer.optimize import Statistics
from construct_messages.rdf.message import Quad
from construct_messages.rdf.terms import Term, iri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from construct_messages.spark.quads.table import QuadTable

P, Q, R = (Link(iri(f"urn:{name}")) for name in "pqr")
X, Y, G = map(Var, "xyg")
LITERAL: Final = Term('"text"')


def node_of(name: object) -> Term:
    return iri(f"urn:n{name}")


def edge(start: object, link: Link, end: object, graph: Term | None = None) -> Quad:
    return Quad(node_of(start), link.predicate, node_of(end), graph)


def random_graphs() -> list[Quad]:
    """Some graphs in one dataset: paths over all of them at once are one evaluation."""
    random = Random(1)
    return [
        edge(
            random.randrange(5),
            random.choice((P, P, Q, R)),
            random.randrange(5),
            iri(f"urn:g{number}"),
        )
        for number in range(12)
        for _ in range(random.randrange(1, 7))
    ]


# a diamond with a tail, a cycle, a node that leads to itself, and a literal
SMALL: Final = [
    *(edge(*ends) for ends in ((1, P, 2), (1, P, 3), (2, P, 4), (3, P, 4), (4, P, 5), (5, Q, 6))),
    *(edge(*ends) for ends in ((7, P, 8), (8, Q, 9), (9, P, 7), (10, P, 10))),
    Quad(node_of(5), R.predicate, LITERAL, None),
]


def table_of(spark: SparkSession, quads: Iterable[Quad], *, distinct: bool = False) -> QuadTable:
    """Quads as a table on Spark; `distinct` if each is there once."""
    from construct_messages.spark.quads.table import QuadTable

    schema = "subject string, predicate string, object string, graph string"
    frame = spark.createDataFrame([tuple(quad) for quad in quads], schema)
    return QuadTable(frame.localCheckpoint(), Statistics(distinct=distinct))
