"""EvaluatedPlan of a plan on Spark, by the relational plan that all engines of SQL share (`sparql/relational`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from construct_messages.errors import UnsupportedQuery
from construct_messages.query.algebra.calls import exists_in
from construct_messages.query.algebra.nodes import (
    NOTHING,
    Closure,
    Group,
    Join,
    Leaf,
    LeftJoin,
    Minus,
    Node,
    OrderBy,
    Path,
    Plan,
    Project,
    Slice,
    Unary,
    Union,
    Var,
    Vars,
    is_nullable,
    join_order,
    outward,
    unbound_closure,
    written,
)
from construct_messages.rdf.labels import Labels
from construct_messages.spark.engine import SparkEngine
from construct_messages.spark.quads.table import QuadTable
from construct_messages.spark.scans import quads_of
from construct_messages.sparql.relational import evaluation
from construct_messages.sparql.relational.evaluation import PlanSelect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class EvaluationOptions:
    """Limits of evaluation, see `construct.construct_messages`.

    The prefix of `labels` begins the labels of the blank nodes that BNODE makes: a table holds no such label.
    """

    max_path_rounds: int = 1000
    allow_full_closure: bool = False
    labels: Labels = field(default_factory=Labels)


@dataclass(frozen=True)
class EvaluatedPlan:
    """The solutions of a plan.

    Attributes:
        frame: a string column for each of the plan's variables, named by `relation.column`; NULL is unbound. For ASK:
            no columns, and one row if the answer is true.
        sql: the text of its stages.
        reads: how often an action reads the table. Patterns that share a scan read it once.
    """

    frame: DataFrame
    sql: str
    reads: int


def evaluate(plan: Plan, table: QuadTable, options: EvaluationOptions | None = None) -> DataFrame:
    """Returns the solutions of a plan, see `EvaluatedPlan`."""
    return evaluated(plan, table, options).frame


def evaluated(
    plan: Plan, table: QuadTable, options: EvaluationOptions | None = None
) -> EvaluatedPlan:
    options = options or EvaluationOptions()
    check(plan, allow_full_closure=options.allow_full_closure)
    engine = SparkEngine(table.frame.sparkSession, options.max_path_rounds)
    quads = quads_of(plan, table, engine)
    sql = PlanSelect(engine, quads, options.labels).select(plan)
    frame = engine.frame(sql)
    bound = plan.form == "SELECT" and plan.variables
    reads = engine.reads(sql)
    shared = any(name in reads for name in quads.shared.values())
    return EvaluatedPlan(
        frame if bound else frame.select(), engine.explained(sql), reads[quads.table] + shared
    )


# --- checks ---------------------------------------------------------------------------------------
# EvaluatedPlan would refuse a path that starts at every node after it has run jobs. So all paths are checked before.


def check(plan: Plan, *, allow_full_closure: bool = False) -> None:
    """Raises `UnsupportedQuery` for a function that is not supported, and for a path neither end of which is bound."""
    evaluation.check(plan.pattern)
    if not allow_full_closure:
        _check_paths(plan.pattern, NOTHING, NOTHING)


def _check_paths(node: Node, known: Vars, outer: Vars) -> None:
    """Checks that each path has a bound end to begin from, in the order of evaluation.

    The other operands of a join bind `known`. In a body of EXISTS, `outer` are the variables that are bound outside.
    """
    inside = (known | outer).union(*(child.certain for child in node.children))
    for expression in node.expressions:
        for exists in exists_in(expression):
            _check_paths(exists.pattern, NOTHING, inside)
    match node:
        case Path():
            require_ends(node, known | outer)
        case Leaf():
            pass
        case Join():
            for operand in join_order(node, known | outer):
                _check_paths(operand, known, outer)
                known |= operand.certain
        case Union(left, right):
            _check_paths(left, known, outer)
            _check_paths(right, known, outer)
        case LeftJoin(left, right) | Minus(left, right):
            _check_paths(left, known, outer)
            _check_paths(right, left.certain, outer)
        case Project(pattern, kept):
            _check_paths(pattern, known & frozenset(kept), outer & frozenset(kept))
        case Group(pattern) | OrderBy(pattern) | Slice(pattern):
            _check_paths(pattern, NOTHING, outer)
        case Unary(pattern):
            _check_paths(pattern, known, outer)
        case other:
            assert_never(other)


def require_ends(node: Path, bound: Vars) -> None:
    """Raises `UnsupportedQuery` for a closure that would start at every node, where these variables are bound.

    >>> from construct_messages.query.algebra.nodes import Link
    >>> from construct_messages.rdf.terms import iri
    >>> require_ends(Path(Var("x"), Closure(Link(iri("urn:p")), "+"), Var("y")), frozenset({Var("y")}))
    """
    start, end = (
        not isinstance(place, Var) or place in bound for place in (node.subject, node.object)
    )
    expression = outward(node.path)
    if node.subject == node.object and isinstance(expression, Closure) and is_nullable(expression):
        return  # each node reaches itself, and no step is taken
    closure = unbound_closure(expression, start, end)
    if closure is not None:
        raise UnsupportedQuery(
            f"neither end of the path {written(closure)} is bound, so it would start at every node of the data",
            fragment=written(closure),
            hint="bind its subject or object, or allow it with allow_full_closure=True",
        )
