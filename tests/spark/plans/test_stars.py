"""Stars on Spark: the same solutions as of their patterns joined one by one, from one pass over the quads."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from construct_messages.query.algebra.nodes import Dataset, Plan, Scan, Star, Triple, Var, VarOrTerm
from construct_messages.query.optimizer.optimize import Statistics
from construct_messages.rdf.message import Quad
from construct_messages.rdf.terms import Term, iri
from construct_messages.sparql.relational.relation import column
from tests.support.queries.algebra_reference import solutions
from tests.support.spark.sessions import executed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from construct_messages.spark.quads.table import QuadTable

pytestmark = pytest.mark.slow

_NAMES = re.compile(r"\S+")


def _term(text: str) -> Term:
    return Term(text) if text.startswith('"') else iri(f"urn:{text}")


def _quads(text: str) -> list[Quad]:
    """Quads, one a line: subject, predicate, object and perhaps graph."""
    return [
        Quad(*map(_term, _NAMES.findall(line)), *([] if len(line.split()) > 3 else [None]))
        for line in text.splitlines()
    ]


_DATA = _quads("""\
a p 1
a p 2
a q 1
a q 3
a r a
b p 1
b q b
b q 2
b r "text"
c p 4
d q 4
d r 5
p p p
p q p
a p 7 g
a q 8 g
a r 9 h
b p 7 g
b p 7 h
b q 7 h
g p g g
g q g g""")
S, X, Y, Z, G = map(Var, ("s", "x", "y", "z", "g"))


def _star(
    *patterns: tuple[str, VarOrTerm],
    optional: tuple[tuple[str, VarOrTerm], ...] = (),
    graph: VarOrTerm | None = None,
) -> Star:
    def rays(of: tuple[tuple[str, VarOrTerm], ...]) -> tuple[Triple, ...]:
        return tuple(Triple(S, iri(f"urn:{predicate}"), object, graph) for predicate, object in of)

    return Star(S, rays(patterns), rays(optional))


STARS = [
    ("variables", _star(("p", X), ("q", Y))),
    ("a constant object", _star(("p", iri("urn:1")), ("q", Y))),
    ("constant objects only", _star(("p", iri("urn:1")), ("q", iri("urn:b")))),
    ("one predicate twice", _star(("p", X), ("p", Y))),
    ("one predicate with a constant", _star(("q", X), ("q", iri("urn:1")))),
    ("one pattern twice", _star(("p", X), ("p", X))),
    ("a variable shared", _star(("p", X), ("q", X))),
    ("the subject as object", _star(("q", S), ("p", X))),
    ("the subject as object only", _star(("p", S), ("q", S))),
    ("optional", _star(("p", X), optional=(("q", Y), ("r", Z)))),
    ("optional beside two", _star(("p", X), ("q", Y), optional=(("r", Z),))),
    ("optional that nothing has", _star(("p", X), ("q", Y), optional=(("none", Z),))),
    ("nothing", _star(("p", X), ("none", Y))),
    ("a named graph", _star(("p", X), ("q", Y), graph=iri("urn:g"))),
    ("an absent graph", _star(("p", X), ("q", Y), graph=iri("urn:none"))),
    ("any graph", _star(("p", X), ("q", Y), graph=G)),
    ("any graph, optional", _star(("p", X), optional=(("q", Y),), graph=G)),
    ("the graph as object", _star(("p", G), ("q", X), graph=G)),
    ("the graph as subject", _star(("p", X), ("q", Y), graph=S)),
]


def _found(frame: DataFrame, node: Star) -> Counter[frozenset[tuple[Var, str]]]:
    by_column = {column(variable): variable for variable in node.possible}
    assert set(frame.columns) == set(by_column)
    return Counter(
        frozenset(
            (by_column[name], term) for name, term in row.asDict().items() if term is not None
        )
        for row in frame.collect()
    )


def _table(spark: SparkSession, quads: list[Quad], *, distinct: bool) -> QuadTable:
    from construct_messages.spark.quads.table import QuadTable

    rows = [(quad.subject, quad.predicate, quad.object, quad.graph) for quad in quads]
    names = "subject string, predicate string, object string, graph string"
    return QuadTable(
        spark.createDataFrame(rows, names).localCheckpoint(), Statistics(distinct=distinct)
    )


def star(
    node: Star, table: QuadTable, dataset: Dataset, shared: tuple[Scan, ...] = ()
) -> DataFrame:
    from construct_messages.spark.evaluation import evaluate

    names = tuple(variable.name for variable in sorted(node.possible))
    return evaluate(Plan("SELECT", node, names, dataset, shared_scan=shared), table)


_MERGED = Dataset((iri("urn:g"), iri("urn:h")), (iri("urn:h"), iri("urn:g")))


@pytest.mark.parametrize(
    ("dataset", "times", "hub"),
    [
        pytest.param(Dataset(), 2, 45, id="doubled"),
        pytest.param(_MERGED, 1, 15, id="merged"),
    ],
)
def test_stars(
    monkeypatch: pytest.MonkeyPatch, quick: SparkSession, dataset: Dataset, times: int, hub: int
) -> None:
    from construct_messages.spark import scans

    monkeypatch.setattr(scans, "HUB_BYTES", hub)  # some subjects are hubs then, others are not
    monkeypatch.setattr(scans, "_PART_BYTES", 3)
    table = _table(quick, _DATA * times, distinct=times == 1)
    for name, node in STARS:
        wanted = solutions(Plan("SELECT", node, (), dataset), _DATA)
        assert _found(star(node, table, dataset), node) == Counter(
            frozenset(one.items()) for one in wanted
        ), name


@pytest.mark.parametrize(("hub", "joins"), [(1 << 20, 0), (10, 1)], ids=["no hub", "hubs"])
def test_subjects_are_joined_with_hubs_if_there_are_any(
    monkeypatch: pytest.MonkeyPatch, spark: SparkSession, hub: int, joins: int
) -> None:
    from construct_messages.spark import scans

    monkeypatch.setattr(scans, "HUB_BYTES", hub)
    node = _star(("p", X), ("q", Y), optional=(("r", Z),))
    scans_of = tuple(map(Scan, (*node.patterns, *node.optional)))
    frame = star(node, _table(spark, _DATA, distinct=False), Dataset(), scans_of)
    frame.collect()
    plan = executed(frame).partition("Initial Plan")[0]
    assert plan.count("Join") == joins
    assert plan.count("Scan ExistingRDD") == 1, "the quads are read and shuffled once"


def test_a_cached_table_stays_cached(quick: SparkSession) -> None:

    table = _table(quick, _DATA, distinct=True)
    cached = replace(table, frame=table.frame.filter("subject <> ''").cache())
    before = quick.catalog.listTables()
    star(_star(("p", X), ("q", Y)), cached, Dataset()).collect()
    assert cached.frame.storageLevel.useMemory
    assert quick.catalog.listTables() == before, "no view is left"
    cached.frame.unpersist()


def _many(subject: str, predicate: str, count: int) -> list[Quad]:
    return [
        Quad(iri(f"urn:{subject}"), iri(f"urn:{predicate}"), iri(f"urn:{n}"), None)
        for n in range(count)
    ]


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(_star(("p", X), ("q", Y)), id="variables"),
        pytest.param(_star(("q", Y), optional=(("p", X),)), id="optional"),
        pytest.param(_star(("p", X), ("q", X)), id="a variable shared"),
        pytest.param(_star(("p", X), ("p", iri("urn:5"))), id="one predicate with a constant"),
        pytest.param(_star(("p", X), ("q", iri("urn:5"))), id="a constant that one has not"),
        pytest.param(_star(("p", X), ("q", Y), ("r", Z)), id="a predicate that one has not"),
    ],
)
def test_hubs_in_parts(monkeypatch: pytest.MonkeyPatch, quick: SparkSession, node: Star) -> None:
    from construct_messages.spark import scans

    monkeypatch.setattr(scans, "HUB_BYTES", 50)
    monkeypatch.setattr(scans, "_PART_BYTES", 20)
    data = [
        *_many("a", "p", 40),
        *_many("a", "q", 9),
        *_many("a", "r", 2),
        *_many("b", "p", 30),
        *_many("b", "q", 3),
    ]
    data += [*_many("c", "q", 12), *_many("c", "r", 12), *_many("d", "p", 1), *_many("d", "q", 1)]
    wanted = solutions(Plan("SELECT", node, (), Dataset()), data)
    found = _found(star(node, _table(quick, data, distinct=True), Dataset()), node)
    assert found == Counter(frozenset(one.items()) for one in wanted)


_HUB = """
from pyspark.sql import functions as F
from construct_messages.query.algebra.nodes import Plan, Star, Triple, Var
from construct_messages.spark.session import local_session
from construct_messages.spark.evaluation import evaluate
from construct_messages.spark.quads.table import QuadTable
from construct_messages.rdf.terms import iri

settings = {"spark.driver.memory": "512m", "spark.sql.shuffle.partitions": "4"}
quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
spark = local_session("local[2]", settings | quick)
numbers = spark.range(1_500_100, numPartitions=4)
hub = "id < 1500000"
quads = numbers.select(
    "id",
    F.expr(f"if({hub}, '<http://example.org/hub>', concat('<http://example.org/', id, '>'))").alias("subject"),
    F.lit("<urn:p>").alias("predicate"),
    F.concat(F.lit("<http://example.org/object/number/"), "id", F.lit(">")).alias("object"),
    F.lit(None).cast("string").alias("graph"),
)
named = quads.filter("id >= 1499999").select("subject", F.lit("<urn:q>"), F.lit('"name"'), "graph")
s, x, y, z = map(Var, "sxyz")
node = Star(s, (Triple(s, iri("urn:q"), y), Triple(s, iri("urn:p"), x)), (Triple(s, iri("urn:r"), z),))
solutions = evaluate(Plan("SELECT", node, ("s", "x", "y", "z")), QuadTable.of(quads.drop("id").union(named)))
print(*solutions.agg(F.count("*"), F.count("v_z"), F.sum(F.length("v_x"))).first())
"""


def test_a_hub_of_1_500_000_objects_within_512_megabytes(spark: SparkSession) -> None:
    del spark  # another process than the tests' own, with a heap of its own: only whether Spark can run at all counts
    done = subprocess.run(
        [sys.executable, "-c", _HUB], capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == [
        "1500100",
        "0",
        str(
            sum(len(f"<http://example.org/object/number/{number}>") for number in range(1_500_100))
        ),
    ]
