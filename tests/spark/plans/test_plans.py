"""What Spark plans for queries: nothing in Python, no products that were not asked for, nothing fetched on the way.

Asked are the queries of the benchmarks, of `queries/`, of the shared cases, and a sample of the W3C's suites. A query
asks for a product where groups of patterns that it joins share no variable, or where BIND gives a variable one term
for the group; that is told from its plan. Only paths fetch: counts, and small closures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from benchmarks.micro.spark_data import QUERY
from benchmarks.micro.spark_papers import QUERIES
from construct_messages.query.algebra.calls import conjuncts
from construct_messages.query.algebra.nodes import (
    Bgp,
    Constant,
    Exists,
    Expression,
    Extend,
    Filter,
    Join,
    LeftJoin,
    Node,
    Path,
    Plan,
    Unit,
    Vars,
    linked,
)
from construct_messages.query.optimizer.optimize import optimize
from construct_messages.query.optimizer.push_down import Links, links
from construct_messages.query.rewrite import ConstructQuery, query_form
from construct_messages.rdf.terms import iri, literal
from tests.support.engines.construct_cases import CASES, DECLARED, ON_SPARK
from tests.support.places import ROOT, shared_path
from tests.support.queries.algebra_text import translate_query
from tests.support.queries.w3c import Case, cases
from tests.support.spark.sessions import (
    LARGEST,
    QUICK,
    UNBROADCAST,
    executed,
    new_session,
    optimized,
    size,
)
from tests.support.spark.w3c import NOW, REFUSED

pytest.importorskip("pyspark")

from pyspark.sql import functions as F

from construct_messages.spark import engine
from construct_messages.spark.construct import construct_messages
from construct_messages.spark.evaluation import EvaluationOptions, evaluate
from construct_messages.spark.quads.table import QuadTable
from tests.support.queries.options import arguments

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

PRODUCTS = {"BroadcastNestedLoopJoin", "CartesianProduct"}
P, Q = iri("http://example.org/p"), iri("http://example.org/q")


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    return new_session(spark, {**QUICK, **UNBROADCAST})


@pytest.fixture(scope="module")
def table(session: SparkSession) -> QuadTable:
    """A chain of links, here and in a graph."""
    links = [
        (iri(f"urn:{number}"), predicate, iri(f"urn:{number + 1}"))
        for number in range(8)
        for predicate in (P, Q)
    ]
    quads = [(*link, graph) for link in links for graph in (None, iri("urn:g"))] + [
        (P, P, literal("1"), None)
    ]
    schema = "subject STRING, predicate STRING, object STRING, graph STRING"
    return QuadTable.of(session.createDataFrame(quads, schema).coalesce(1), assume_terms=True)


# --- what a query asks for ------------------------------------------------------------------------------------------


def asks_for_product(node: Node, known: Links = ()) -> bool:
    """Whether a part of a query joins groups of patterns that share no variable, and no equality links.

    Args:
        known: what conditions on the node link.
    """
    match node:
        case Bgp() | Join():
            operands = list(_joined(node))
            together = (part.possible for part in operands)
            if len(_connected([*together, *(one | other for one, other in known)])) > 1:
                return True
            others = (part for part in operands if not isinstance(part, Bgp))
            return any(map(_is_constant, operands)) or any(map(asks_for_product, others))
        case LeftJoin(left, right, condition) if not linked(
            left.possible, right.possible, _links(condition)
        ):
            return True
    scope = frozenset().union(*(part.possible for part in node.children))
    below = _links(node.condition) if isinstance(node, Filter) else ()
    return any(_asks_for_product(body, scope) for body in _bodies(node.expressions)) or any(
        asks_for_product(part, below) for part in node.children
    )


def _asks_for_product(body: Node, scope: Vars) -> bool:
    """The same of the body of an EXISTS that is asked for solutions of a scope."""
    links = _links(body.condition) if isinstance(body, Filter) else ()
    if isinstance(body, Filter) and linked(body.pattern.possible, scope, links):
        return asks_for_product(body)
    return not body.possible & scope or asks_for_product(body)


def _links(condition: Expression | None) -> Links:
    return () if condition is None else links(conjuncts(condition))


def _joined(node: Node) -> Iterator[Node]:
    match node:
        case Join(left, right):
            yield from _joined(left)
            yield from _joined(right)
        case Bgp(patterns):
            yield from (Bgp((pattern,)) for pattern in patterns)
        case Unit():
            return
        case _:
            yield node


def _is_constant(node: Node) -> bool:
    """Whether it is one solution that the query itself tells: Spark filters by it, which leaves a product with one."""
    return (
        isinstance(node, Extend)
        and isinstance(node.expression, Constant)
        and isinstance(node.pattern, Unit)
    )


def _connected(groups: Iterable[Vars]) -> list[Vars]:
    """The variables of some patterns, those of patterns that share one together."""
    found: list[Vars] = []
    for group in groups:
        apart = [other for other in found if not other & group]
        found = [*apart, group.union(*(other for other in found if other & group))]
    return found


def _bodies(value: object) -> Iterator[Node]:
    """The bodies of EXISTS in expressions."""
    if isinstance(value, Exists):
        yield value.pattern
    elif isinstance(value, tuple):
        for member in value:
            yield from _bodies(member)
    elif is_dataclass(value):
        for part in fields(value):
            yield from _bodies(getattr(value, part.name))


def has_path(value: object) -> bool:
    """Whether there is a property path anywhere, also in EXISTS."""
    if isinstance(value, Path):
        return True
    if isinstance(value, tuple):
        return any(map(has_path, value))
    return is_dataclass(value) and any(
        has_path(getattr(value, part.name)) for part in fields(value)
    )


@pytest.mark.parametrize(
    ("text", "product"),
    [
        ("{ ?x <urn:p> ?y . ?y <urn:q> ?z }", False),
        ("{ ?x <urn:p> ?y . ?z <urn:p> ?w }", True),
        ("{ ?x <urn:p> ?y . ?z <urn:p> ?w . ?y <urn:p> ?w }", False),
        ("{ ?x <urn:p> ?y . <urn:a> <urn:p> <urn:b> }", True),
        ("{ ?x <urn:p> ?y OPTIONAL { ?z <urn:p> ?w } }", True),
        ("{ ?x <urn:p> ?y OPTIONAL { ?y <urn:p> ?w } }", False),
        ("{ ?x <urn:p> ?y MINUS { ?z <urn:p> ?w } }", False),
        ("{ { ?x <urn:p> ?y } UNION { ?x <urn:p> ?y . ?z <urn:p> ?w } }", True),
        ("{ ?x <urn:p> ?y FILTER EXISTS { ?x <urn:p> ?z } }", False),
        ("{ ?x <urn:p> ?y FILTER(?x = ?y || EXISTS { ?w <urn:p> ?z }) }", True),
        ("{ ?x <urn:p> ?y VALUES ?y { 1 } }", False),
        ("{ ?x <urn:p> ?y VALUES ?z { 1 } }", True),
        ("{ BIND(<urn:a> AS ?x) ?x <urn:p> ?y }", True),
        ("{ BIND(IRI('urn:a') AS ?x) ?x <urn:p> ?y }", False),
    ],
)
def test_what_asks_for_a_product(text: str, product: bool) -> None:
    assert asks_for_product(translate_query(f"SELECT * {text}", now=NOW).pattern) is product


# --- what Spark does ------------------------------------------------------------------------------------------------


def operators(executed: str) -> set[str]:
    """The names of the operators in the text of a plan."""
    return set(re.findall(r"^[\s:+|*()\d-]*([A-Z]\w+)", executed, re.MULTILINE))


class Action(NamedTuple):
    """An execution.

    Args:
        method: the method of Spark's that was called.
        caller: where it was called, as Spark tells it: `collect at FILE:LINE`.
        plan: the text of the plan that was executed.
    """

    method: str
    caller: str
    plan: str

    @property
    def is_kept(self) -> bool:
        """Whether nothing is fetched: a checkpoint stays on the executors, and a view is a name for a frame."""
        return self.method in ("localCheckpoint", "createOrReplaceTempView")

    @property
    def is_count(self) -> bool:
        """Whether it fetches one row of counts."""
        return self.method in ("count", "collectToPython") and bool(
            re.search(r"^Keys: \[\]$", self.plan, re.MULTILINE)
        )

    @property
    def is_small_closure(self) -> bool:
        """Whether `small_closure`, or one that Spark does not name, fetches pairs, and no more than it may."""
        called = not self.caller or bool(re.search(r"/spark/engine\.py:\d+$", self.caller))
        return self.method == "collectToPython" and called and _is_limited(self.plan)


def _is_limited(plan: str) -> bool:
    """Whether a plan ends with the limit of small closures, or gives the one row of a path from a term to itself."""
    tree = plan.removeprefix("== Physical Plan ==\n")
    if limit := re.match(
        r"CollectLimit (\(\d+\))\n(?s:.*)\n\1 CollectLimit\n.*\nArguments: (\d+)\n", tree
    ):
        return int(limit[2]) <= engine.MOST_STEPS + 1
    # Spark leaves a limit out where it knows that there are no more rows
    return bool(re.match(r"Project \(2\)\n\+- Scan OneRowRelation \(1\)\n\n", tree))


class Actions:
    """What a session executes from now on.

    Executions are told apart by their numbers: Spark forgets old ones meanwhile, so their count says nothing.
    """

    def __init__(self, session: SparkSession) -> None:
        self._store: Any = session._jsparkSession.sharedState().statusStore()
        self._events: Any = (
            session.sparkContext._jsc.sc().listenerBus()
        )  # the store learns of executions by events
        self._last = next((execution.executionId() for execution in self._newest_first()), -1)

    def __iter__(self) -> Iterator[Action]:
        for execution in takewhile(
            lambda each: each.executionId() > self._last, self._newest_first()
        ):
            method = re.search(r"\.Dataset\.(\w+)\(", execution.details())
            name = method[1] if method else execution.details()
            yield Action(name, execution.description(), execution.physicalPlanDescription())

    def _newest_first(self) -> Iterator[Any]:
        self._events.waitUntilEmpty(600_000)
        found = self._store.executionsList()
        return map(found.apply, reversed(range(found.size())))


def check(session: SparkSession, asked: Plan, make: Callable[[], DataFrame]) -> None:
    """That what is executed to make a frame, and what the frame would execute, is as it should be."""
    actions = Actions(session)
    frame = make()
    assert size(frame) <= LARGEST
    product, path = asks_for_product(asked.pattern), has_path(asked.pattern)
    taken = list(actions)
    for plan in [*(action.plan for action in taken), executed(frame)]:
        found = operators(plan)
        assert found, plan
        # Python evaluates batches of terms in Arrow, and no rows
        python = {name for name in found if re.search("Python|InPandas|InArrow", name)}
        assert python <= {"ArrowEvalPython"}, plan
        assert product or not found & PRODUCTS, plan
    for action in taken:
        assert action.is_kept or (path and (action.is_count or action.is_small_closure)), action


def check_messages(session: SparkSession, table: QuadTable, text: str, **options: Any) -> None:
    found = construct_messages(text, table, allow_full_closure=True, **arguments(options))
    check(session, found.plan, lambda: found.frame)


def test_plans_of_own_queries(session: SparkSession, table: QuadTable) -> None:
    queries = sorted((ROOT / "queries").glob("*.rq"))
    assert queries
    for text in (QUERY, *(query.read_text(encoding="utf-8") for query in queries)):
        check_messages(session, table, text)


def test_plans_of_shared_cases(session: SparkSession, table: QuadTable) -> None:
    """A third of those that have an answer here, one for each WHERE."""
    asked = {
        case.query.partition("WHERE")[2]: case
        for case in CASES
        if not case.fails and "spark" not in case.differs and case.options.keys() <= ON_SPARK
    }
    assert len(asked) > 30
    for case in list(asked.values())[::3]:
        check_messages(session, table, DECLARED + case.query, **case.options)


LINKED = {
    **QUERIES,
    "terms": "SELECT * { ?a :p ?x . ?b :q ?y FILTER(sameTerm(?x, ?y)) }",
    "one is no literal": "SELECT * { ?a :p ?x . ?b :q ?y FILTER(?x = ?b) }",
    "three in a row": "SELECT * { ?a :p ?x . ?b :q ?y . ?c :p ?z FILTER(?x = ?z && ?z = ?y) }",
    "what is computed": "SELECT * { ?a :p ?x . ?b :q ?y FILTER(LCASE(STR(?x)) = STR(?y)) }",
    "what BIND gives": "SELECT * { ?a :p ?x . ?b :q ?y BIND(LCASE(?x) AS ?k) BIND(STR(?y) AS ?l) FILTER(?k = ?l) }",
    "what gives a term": "SELECT * { ?a :p ?x . ?b :q ?y FILTER(IRI(CONCAT(STR(?x), '#')) = ?b) }",
    "a condition": "SELECT * { ?a :p ?x OPTIONAL { ?b :q ?y FILTER(?x = ?y && ?a != ?b) } }",
    "a condition on what may be unbound": "SELECT * { ?a :p ?x OPTIONAL { ?x :q ?z } "
    "OPTIONAL { ?b :q ?y FILTER(?z = ?y) } }",
    "what is asked for": "SELECT * { ?a :p ?x OPTIONAL { ?b :q ?y } FILTER(?x = ?y) }",
    "what may be unbound": "SELECT * { { ?a :p ?x OPTIONAL { ?x :q ?z } } { ?b :q ?y } FILTER(?z = ?y) }",
    "what must be unbound": "SELECT * { ?a :p ?x OPTIONAL { ?b :q ?y FILTER(?x = ?y) } FILTER(!BOUND(?b)) }",
    "exists": "SELECT * { ?a :p ?x FILTER EXISTS { ?b :q ?y FILTER(?x = ?y) } }",
    "not exists": "SELECT * { ?a :p ?x FILTER NOT EXISTS { ?b :q ?y OPTIONAL { ?y :p ?z } FILTER(?x = ?y) } }",
    "exists in exists": "SELECT * { ?a :p ?x FILTER EXISTS { ?b :q ?y FILTER(?x = ?y) "
    "FILTER EXISTS { ?c :p ?z FILTER(?z = ?y) } } }",
    "a union": "SELECT * { ?a :p ?x { ?b :q ?y } UNION { ?y :p ?c } FILTER(?x = ?y) }",
    "a path": "SELECT * { ?a :p ?x . ?b :q ?y . ?y :p+ ?z FILTER(?x = ?y) }",
    "a sub-select": "SELECT * { ?a :p ?x { SELECT ?y (COUNT(*) AS ?n) { ?b :q ?y } GROUP BY ?y } FILTER(?x = ?y) }",
    "minus": "SELECT * { ?a :p ?x . ?b :q ?y FILTER(?x = ?y) MINUS { ?x :p ?z OPTIONAL { ?z :q ?b } } }",
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("text", LINKED.values(), ids=LINKED)
def test_equalities_join(session: SparkSession, table: QuadTable, text: str) -> None:
    """Issue 13, 27: what only an equality links is joined by it."""
    text = f"PREFIX : <http://example.org/> {text}"
    select = ConstructQuery.parse(text).select if query_form(text) == "CONSTRUCT" else text
    asked = optimize(translate_query(select, now=NOW), table.statistics)
    assert not asks_for_product(asked.pattern)
    check(session, asked, lambda: evaluate(asked, table))


BOUND_BY = {
    # negation over optional parts, in each way that SPARQL has
    "minus": "SELECT * { ?a :p ?b; :q ?c MINUS { ?d a :S OPTIONAL { ?d :p ?b } OPTIONAL { ?d :q ?c } } }",
    "minus of both": "SELECT * { ?a a :M OPTIONAL { ?a :p ?b } OPTIONAL { ?a :q ?c } "
    "MINUS { ?d a :S OPTIONAL { ?d :p ?b } OPTIONAL { ?d :q ?c } } }",
    "not exists": "SELECT * { ?a :p ?b; :q ?c FILTER NOT EXISTS "
    "{ ?d a :S OPTIONAL { ?d :p ?b } OPTIONAL { ?d :q ?c } } }",
    "not exists, asked for": "SELECT * { ?a :p ?b; :q ?c FILTER NOT EXISTS "
    "{ ?d a :S OPTIONAL { ?d :p ?b } OPTIONAL { ?d :q ?c } FILTER(COALESCE(?c, ?b) = ?d) } }",
    "optional": "SELECT * { ?a a :M OPTIONAL { ?a :p ?b } OPTIONAL { ?b :q ?c } OPTIONAL { ?c :p ?d } "
    "OPTIONAL { ?x a :S OPTIONAL { ?x :p ?d } OPTIONAL { ?x :q ?b } } }",
}


@pytest.mark.parametrize("text", BOUND_BY.values(), ids=BOUND_BY)
def test_plans_stay_small(table: QuadTable, text: str) -> None:
    """Issue 13, 27: no side of a join is planned again for each optional part above it."""
    asked = optimize(
        translate_query(f"PREFIX : <http://example.org/> {text}", now=NOW), table.statistics
    )
    frame = evaluate(asked, table)
    assert size(frame) <= LARGEST
    assert len(optimized(frame)) <= 250_000


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        try:
            found = cases(shared_path("suites/w3c/sparql"))
        except (pytest.skip.Exception, pytest.fail.Exception):
            found = []
        found = [case for case in found if case.name not in REFUSED]
        every = 1 if metafunc.config.getoption("--w3c") == "all" else 24
        metafunc.parametrize("case", found[::every], ids=lambda case: case.name)


def test_plans_of_the_evaluation_tests(session: SparkSession, table: QuadTable, case: Case) -> None:
    construct = query_form(case.text) == "CONSTRUCT"
    select = ConstructQuery.parse(case.text, base=case.base).select if construct else case.text
    asked = optimize(translate_query(select, base=case.base, now=NOW), table.statistics)
    check(
        session, asked, lambda: evaluate(asked, table, EvaluationOptions(allow_full_closure=True))
    )


# --- the checks themselves ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "operator"),
    [
        ("?x <urn:p> ?y . ?z <urn:p> ?w", "CartesianProduct"),
        ("?x <urn:p> ?y OPTIONAL { ?z <urn:p> ?w }", "BroadcastNestedLoopJoin"),
        ("?x <urn:p> ?y . ?y <urn:p> ?z", "SortMergeJoin"),
    ],
)
def test_operators_are_found(table: QuadTable, where: str, operator: str) -> None:
    asked = translate_query(f"SELECT * {{ {where} }}", now=NOW)
    assert operator in operators(executed(evaluate(asked, table)))


def test_python_is_found(table: QuadTable) -> None:
    udf = F.udf(lambda term: term, "string")
    assert operators(executed(table.frame.select(udf("subject")))) & {
        "ArrowEvalPython",
        "BatchEvalPython",
    }


def test_what_is_fetched_is_found(
    session: SparkSession, table: QuadTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path of many links counts, also links before it doubles them; what is collected is told apart."""
    monkeypatch.setattr(engine, "MOST_STEPS", 0)
    asked = translate_query(f"SELECT * {{ <urn:0> {P}+ ?x }}", now=NOW)
    actions = Actions(session)
    frame = evaluate(asked, table)
    (tried,) = (action for action in actions if action.is_small_closure)
    others = [action for action in actions if action != tried]
    assert all(action.is_kept or action.is_count for action in others)
    assert {action.method for action in others} == {
        *("createOrReplaceTempView", "localCheckpoint", "count", "collectToPython")
    }
    actions = Actions(session)
    frame.collect()
    (action,) = actions
    assert (action.method, action.is_count, action.is_small_closure) == (
        "collectToPython",
        False,
        False,
    )
    with pytest.raises(AssertionError):
        check(session, asked, lambda: [frame.collect(), frame][1])


def test_small_closures_are_found(session: SparkSession, table: QuadTable) -> None:
    """They fetch steps and the pairs to begin with; that is allowed to paths, to them alone, and by their limit."""
    asked = translate_query(f"SELECT * {{ <urn:0> {P}+ ?x }}", now=NOW)
    actions = Actions(session)
    evaluate(asked, table)
    taken = [action for action in actions if not action.is_kept]
    assert [action.is_small_closure for action in taken] == [True, True]
    check(session, asked, lambda: evaluate(asked, table))
    without = translate_query(f"SELECT * {{ <urn:0> {P} ?x }}", now=NOW)
    with pytest.raises(AssertionError):
        check(session, without, lambda: evaluate(asked, table))
    first, limit, most = taken[0], "\nArguments: {}\n", engine.MOST_STEPS
    for changed in (
        first._replace(caller="collect at /construct_messages/spark/other.py:1"),
        first._replace(plan=first.plan.replace(limit.format(most + 1), limit.format(most + 2))),
        first._replace(plan=executed(table.frame)),
    ):
        assert changed != first
        assert not changed.is_small_closure


def test_a_small_closure_without_a_limit_is_found(
    session: SparkSession, table: QuadTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = translate_query(f"SELECT * {{ <urn:0> {P}+ ?x }}", now=NOW)
    monkeypatch.setattr("pyspark.sql.classic.dataframe.DataFrame.limit", lambda frame, _: frame)
    with pytest.raises(AssertionError, match="collectToPython"):
        check(session, asked, lambda: evaluate(asked, table))


def test_no_job_runs_before_an_action(spark: SparkSession, table: QuadTable) -> None:
    spark.sparkContext.setJobGroup("before an action", "")
    found = construct_messages(QUERY, table)
    assert found.frame.columns == ["message"]
    assert found.solutions().columns
    assert not spark.sparkContext.statusTracker().getJobIdsForGroup("before an action")
