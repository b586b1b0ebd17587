"""Property paths on Spark: where they begin, how far they are followed, and in few rounds.

Their solutions: tests/sparql/relational/test_paths.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

from construct_messages.errors import LimitExceeded, UnsupportedQuery
from construct_messages.query.algebra.nodes import (
    Closure,
    Dataset,
    Join,
    Path,
    Plan,
    Sequence,
    Values,
    Var,
)
from construct_messages.rdf.message import Quad
from construct_messages.rdf.terms import iri
from construct_messages.sparql.relational.relation import column
from tests.support.queries.algebra_reference import solutions
from tests.support.spark.paths import SMALL, G, P, Q, X, Y, edge, node_of, random_graphs, table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from construct_messages.spark.quads.table import QuadTable

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def small(spark: SparkSession) -> QuadTable:
    return table_of(spark, SMALL * 2)


@pytest.fixture(scope="module")
def graphs(spark: SparkSession) -> QuadTable:
    return table_of(spark, random_graphs(), distinct=True)


@pytest.fixture(params=["driver", "executors"])
def where(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where closures are followed: small ones on the driver, or all of them on executors."""
    if request.param == "executors":
        monkeypatch.setattr("construct_messages.spark.engine.MOST_STEPS", -1)


def evaluated(
    node: Path,
    table: QuadTable,
    dataset: Dataset,
    *,
    seeds: Values | None = None,
    max_rounds: int = 100,
    allow_full_closure: bool = False,
) -> DataFrame:
    """A path alone, or joined with inline data."""
    from construct_messages.spark.evaluation import EvaluationOptions, evaluate

    names = tuple(variable.name for variable in sorted(node.possible))
    pattern = node if seeds is None else Join(seeds, node)
    options = EvaluationOptions(max_rounds, allow_full_closure)
    return evaluate(Plan("SELECT", pattern, names, dataset), table, options)


def _found(frame: DataFrame, node: Path) -> Counter[frozenset[tuple[Var, str]]]:
    assert set(frame.columns) == {column(variable) for variable in node.possible}
    names = {column(variable): variable for variable in node.possible}
    return Counter(
        frozenset((names[name], term) for name, term in row.asDict().items())
        for row in frame.collect()
    )


def _wanted(
    node: Path, quads: Iterable[Quad], dataset: Dataset
) -> Counter[frozenset[tuple[Var, str]]]:
    return Counter(
        frozenset(one.items()) for one in solutions(Plan("SELECT", node, (), dataset), quads)
    )


_G1 = iri("urn:g1")


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("where")
@pytest.mark.parametrize(
    "path", [Closure(P, "*"), Closure(P, "+")], ids=["any number", "once or more"]
)
@pytest.mark.parametrize("end", [X, Y], ids=["from seeds", "to seeds"])
@pytest.mark.parametrize("graph", [None, G], ids=["a node", "a node of a graph"])
def test_seeds_bind_an_end(graphs: QuadTable, path: Closure, end: Var, graph: Var | None) -> None:
    links = [quad for quad in random_graphs() if quad.predicate == P.predicate]
    seeds = [
        *((quad.subject, quad.graph) for quad in links[:2]),
        (links[9].object, links[9].graph),
        (node_of("absent"), _G1),
    ]
    named = sorted({seed for seed, _ in seeds})
    given = (
        Values((end, G), tuple(seeds))
        if graph
        else Values((end,), tuple((seed,) for seed in named))
    )
    node = Path(X, path, Y, G)
    found = _found(evaluated(node, graphs, Dataset(), seeds=given), node)
    of_seeds = Counter(
        {
            solution: times
            for solution, times in _wanted(node, random_graphs(), Dataset()).items()
            if any(
                {(end, seed), *([(G, name)] if graph else [])} <= solution for seed, name in seeds
            )
        }
    )
    assert of_seeds
    assert found == of_seeds


def test_all_pairs_only_if_allowed(small: QuadTable) -> None:
    node = Path(X, Closure(Sequence((P, P)), "+"), Y)
    with pytest.raises(UnsupportedQuery, match="neither end") as refused:
        evaluated(node, small, Dataset())
    assert refused.value.fragment == "(<urn:p>/<urn:p>)+"
    assert refused.value.hint is not None
    assert "allow_full_closure=True" in refused.value.hint
    assert _found(evaluated(node, small, Dataset(), allow_full_closure=True), node) == _wanted(
        node, SMALL, Dataset()
    )


def test_a_closure_within_that_has_no_end(small: QuadTable) -> None:
    node = Path(node_of(1), Closure(Sequence((Closure(P, "+"), Closure(Q, "+"))), "+"), Y)
    with pytest.raises(UnsupportedQuery, match=r"<urn:p>\+"):
        evaluated(node, small, Dataset())


def test_what_joins_an_absent_node_with_itself_does_not_go_on_from_it(small: QuadTable) -> None:
    """The node between is one of the graph: section 18.4 joins the solutions of the parts."""
    node = Path(node_of("absent"), Sequence((Closure(P, "?"), Closure(Q, "*"))), Y)
    assert not evaluated(node, small, Dataset()).collect()


def test_a_chain_of_200(spark: SparkSession) -> None:
    """In rounds that grow with the logarithm of its length, once it has shown to be long."""
    chain = table_of(spark, [edge(number, P, number + 1) for number in range(200)], distinct=True)
    node = Path(node_of(0), Closure(P, "*"), Y)
    found = _found(evaluated(node, chain, Dataset(), max_rounds=12), node)
    assert found == Counter(frozenset({(Y, node_of(number))}) for number in range(201))


def test_too_many_rounds_are_an_error(spark: SparkSession) -> None:
    chain = table_of(spark, [edge(number, P, number + 1) for number in range(4)], distinct=True)
    node = Path(node_of(0), Closure(P, "*"), Y)
    with pytest.raises(
        LimitExceeded, match=r"<urn:p>\* still finds new nodes after 3 rounds"
    ) as exceeded:
        evaluated(node, chain, Dataset(), max_rounds=3)
    assert exceeded.value.hint is not None
    assert "max_path_rounds" in exceeded.value.hint
    assert len(evaluated(node, chain, Dataset(), max_rounds=4).collect()) == 5
