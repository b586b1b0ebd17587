"""Property paths on DuckDB and, where closures are followed, on Spark: as the plain evaluator has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from collections.abc import Sequence as Several
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("duckdb")

from construct_messages.query.algebra.nodes import (
    Alternative,
    Closure,
    Dataset,
    Inverse,
    Negated,
    Path,
    PathExpression,
    Plan,
    Sequence,
    VarOrTerm,
)
from construct_messages.rdf.message import Quad
from construct_messages.rdf.terms import Term, iri
from tests.support.queries.algebra_reference import solutions
from tests.support.queries.relational import evaluated as by_duckdb
from tests.support.spark.paths import (
    LITERAL,
    SMALL,
    G,
    P,
    Q,
    R,
    X,
    Y,
    node_of,
    random_graphs,
    table_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Solution = tuple[Term | None, ...]
Solve = Callable[[Plan, Several[Quad]], list[Solution]]
"""The solutions of a plan over quads, each of which is there twice."""


def by_spark(session: SparkSession, plan: Plan, quads: Several[Quad]) -> list[Solution]:
    from construct_messages.spark.evaluation import evaluate

    return [tuple(row) for row in evaluate(plan, table_of(session, [*quads] * 2)).collect()]


@pytest.fixture
def solve(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Solve:
    """By DuckDB, or by Spark, which follows small closures on the driver, or all of them on executors."""
    if request.param == "duckdb":
        return lambda plan, quads: [
            tuple(term or None for term in row[: len(plan.variables)])
            for row in by_duckdb(plan, [tuple(quad) for quad in quads] * 2)
        ]
    if request.param == "executors":
        monkeypatch.setattr("construct_messages.spark.engine.MOST_STEPS", -1)
    session = request.getfixturevalue("quick")
    return lambda plan, quads: by_spark(session, plan, quads)


def runs(cases: Several[tuple[str, Any, PathExpression, *tuple[Any, ...]]]) -> list[object]:
    """All cases for DuckDB, and a part of those with closures for each way of Spark."""
    found: list[object] = []
    for number, (name, *case) in enumerate(cases):
        found.append(pytest.param("duckdb", *case, id=f"duckdb-{name}"))
        way = ("executors", "driver", None)[number % 3]
        if way and "Closure" in repr(case):
            marks = (pytest.mark.slow, pytest.mark.spark)
            found.append(pytest.param(way, *case, id=f"{way}-{name}", marks=marks))
    return found


def check(solve: Solve, node: Path, quads: Several[Quad], dataset: Dataset) -> None:
    variables = sorted(node.possible)
    plan = Plan("SELECT", node, tuple(variable.name for variable in variables), dataset)
    wanted = solutions(Plan("SELECT", node, (), dataset), quads)
    assert Counter(solve(plan, quads)) == Counter(
        tuple(one.get(variable) for variable in variables) for one in wanted
    )


PATHS: list[tuple[str, VarOrTerm, PathExpression, VarOrTerm]] = [
    ("inverse", X, Inverse(P), Y),
    ("sequence of three", X, Sequence((P, Inverse(P), P)), Y),
    ("a sequence keeps duplicates", node_of(1), Sequence((P, P)), Y),
    ("an alternative keeps duplicates", X, Alternative((P, Alternative((P, Q)))), Y),
    ("an inverse of all", X, Inverse(Sequence((P, Alternative((P, Inverse(Q)))))), Y),
    ("negated forwards", X, Negated((P.predicate,), None), Y),
    ("negated backwards", X, Negated(None, (P.predicate, Q.predicate)), Y),
    ("negated both ways", X, Negated((P.predicate,), (Q.predicate,)), Y),
    ("negated nothing", X, Negated((), None), Y),
    ("an inverse of negated", X, Inverse(Negated((P.predicate,), (Q.predicate,))), Y),
    ("perhaps", X, Closure(P, "?"), Y),
    ("perhaps, from an absent node", node_of("absent"), Closure(P, "?"), Y),
    ("perhaps, to itself", X, Closure(Alternative((P, Q)), "?"), X),
    ("any number from a node", node_of(1), Closure(P, "*"), Y),
    ("any number to a node", X, Closure(P, "*"), node_of(4)),
    ("any number to a literal", X, Closure(Negated((), None), "*"), LITERAL),
    ("any number from an absent node", node_of("absent"), Closure(P, "*"), Y),
    ("any number between absent nodes", node_of("absent"), Closure(P, "*"), node_of("other")),
    (
        "any number from an absent node to itself",
        node_of("absent"),
        Closure(P, "*"),
        node_of("absent"),
    ),
    ("any number from a literal", LITERAL, Closure(P, "*"), Y),
    ("any number, to itself", X, Closure(P, "*"), X),
    ("once or more from a node", node_of(1), Closure(P, "+"), Y),
    ("once or more from an absent node", node_of("absent"), Closure(P, "+"), Y),
    ("once or more between two", node_of(1), Closure(P, "+"), node_of(5)),
    ("once or more between two that do not meet", node_of(5), Closure(P, "+"), node_of(1)),
    ("once or more in a cycle", node_of(7), Closure(Sequence((P, Closure(Q, "?"))), "+"), Y),
    ("once or more of perhaps, absent", node_of("absent"), Closure(Closure(P, "?"), "+"), Y),
    ("closures within", node_of(1), Closure(Closure(Closure(P, "+"), "*"), "+"), Y),
    ("closures in an alternative", node_of(1), Closure(Alternative((Closure(P, "*"), Q)), "+"), Y),
    (
        "closures in a sequence",
        node_of(1),
        Closure(Sequence((P, Closure(P, "*"), Closure(Q, "?"))), "+"),
        Y,
    ),
    ("a closure between", X, Sequence((P, Closure(P, "*"), Q)), Y),
    ("a closure at the end", X, Sequence((Q, Closure(Inverse(P), "+"))), Y),
    ("a closure at the beginning", X, Sequence((Closure(P, "*"), R)), Y),
]


@pytest.mark.parametrize(("solve", "subject", "path", "object"), runs(PATHS), indirect=["solve"])
def test_paths(solve: Solve, subject: VarOrTerm, path: PathExpression, object: VarOrTerm) -> None:
    check(solve, Path(subject, path, object), SMALL, Dataset())


_G1, _G2 = iri("urn:g1"), iri("urn:g2")
IN_GRAPHS: list[tuple[str, VarOrTerm, PathExpression, VarOrTerm, VarOrTerm | None, Dataset]] = [
    ("each graph apart", node_of(1), Closure(P, "*"), Y, G, Dataset()),
    (
        "each graph apart, backwards",
        X,
        Closure(Alternative((P, Inverse(Q))), "+"),
        node_of(2),
        G,
        Dataset(),
    ),
    ("each graph, an absent node", node_of("absent"), Closure(P, "?"), Y, G, Dataset()),
    ("each graph, between", X, Sequence((Q, Closure(P, "*"))), Y, G, Dataset()),
    ("one graph", node_of(1), Closure(P, "*"), Y, _G1, Dataset()),
    ("one graph that is not there", node_of(1), Closure(P, "*"), Y, iri("urn:none"), Dataset()),
    ("the graph as an end", G, Closure(P, "?"), Y, G, Dataset()),
    ("graphs merged", node_of(1), Closure(P, "+"), Y, None, Dataset((_G1, _G2, iri("urn:g3")), ())),
    ("graphs named", node_of(1), Closure(P, "?"), Y, G, Dataset((), (_G1, iri("urn:g4")))),
]


@pytest.mark.parametrize(
    ("solve", "subject", "path", "object", "graph", "dataset"), runs(IN_GRAPHS), indirect=["solve"]
)
def test_paths_in_graphs(
    solve: Solve,
    subject: VarOrTerm,
    path: PathExpression,
    object: VarOrTerm,
    graph: VarOrTerm | None,
    dataset: Dataset,
) -> None:
    check(solve, Path(subject, path, object, graph), random_graphs(), dataset)
