"""The quads of a plan on Spark: patterns that share one scan, and stars.

See `sparql/relational/scans` for single patterns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from construct_messages.query.algebra.nodes import (
    Plan,
    Scan,
    Star,
    Triple,
    Var,
    VarOrTerm,
    mentions,
)
from construct_messages.rdf.terms import Term
from construct_messages.spark.dialect import any_of, case, literal
from construct_messages.spark.engine import SparkEngine
from construct_messages.spark.quads.table import QuadTable
from construct_messages.sparql.relational import native
from construct_messages.sparql.relational.relation import SolutionBag, column
from construct_messages.sparql.relational.scans import COLUMNS, Quads


@dataclass(frozen=True)
class SparkQuads(Quads):
    """See `Quads`."""

    shared: Mapping[Triple, str] = field(default_factory=dict)
    # the tables of some named graphs, and whether each has its quads once
    apart: Mapping[VarOrTerm | None, tuple[str, bool]] = field(default_factory=dict)

    def table_of(self, pattern: Triple) -> str:
        if pattern.graph in self.apart:
            return self.apart[pattern.graph][0]
        return self.shared.get(pattern, self.table)

    def is_distinct(self, pattern: Triple) -> bool:
        if pattern.graph in self.apart:
            return self.apart[pattern.graph][1]
        return super().is_distinct(pattern)

    def star(self, node: Star) -> SolutionBag:
        return SolutionBag(_star(node, self), node.possible, node.certain)


def quads_of(plan: Plan, table: QuadTable, engine: SparkEngine) -> SparkQuads:
    """Returns the quads of a plan, for whose evaluation the engine names them."""
    apart: dict[VarOrTerm | None, tuple[str, bool]] = {
        name: (engine.named(each.frame), each.statistics.distinct)
        for name, each in table.graphs.items()
    }
    quads = SparkQuads(
        engine.named(table.frame),
        table.statistics.distinct,
        plan.dataset,
        engine.dialect,
        table.repeated,
        asks=table.repeated is not None,  # text would be parsed again
        apart=apart,
    )
    scans = [scan for scan in plan.shared_scan if scan.pattern.graph not in apart]
    if len(scans) < 2:
        return quads
    scanned = engine.named(shared_scan(scans, table.frame, quads))
    return replace(quads, shared=dict.fromkeys((scan.pattern for scan in scans), scanned))


def as_graph(name: Term, table: QuadTable) -> DataFrame:
    """Returns the default graph of a table as the graph of a name."""
    return table.frame.filter("graph IS NULL").select(*COLUMNS[:3], F.lit(name).alias("graph"))


# --- shared scan ----------------------------------------------------------------------------------
# Text is parsed and checked each time that it is read, which takes longer than the rest of the evaluation. So patterns
# that the optimizer chooses share one scan, shuffled by subject, and select their quads from its result.


def shared_scan(scans: Iterable[Scan], frame: DataFrame, quads: Quads) -> DataFrame:
    """Returns the quads that any of the patterns needs, with all quads of a subject in one partition."""
    needed = " OR ".join(dict.fromkeys(f"({_scan_condition(scan, quads)})" for scan in scans))
    found = frame.filter(needed).repartition("subject")
    # Spark would push the filters and columns of each pattern below the shuffle, and so read and shuffle the quads once
    # for each pattern, if that did not change an observed figure: this is the only purpose of the figure.
    # It is of all columns, as each pattern may need others; and two figures of a query must have different names.
    # Spark would count without reading columns that are never NULL.
    *others, last = COLUMNS
    count = F.expr(f"count({', '.join(others)}, nullif({last}, ''))")
    return found.observe(f"shared scan {uuid4()}", count.alias("quads"))


def _scan_condition(scan: Scan, quads: Quads) -> str:
    """Returns SQL that tests whether a pattern with filters may need a quad.

    Filters only reduce the quads that are read: a quad that fails the filters of one pattern may be needed for another.
    """
    conditions = [_condition(scan.pattern, quads)]
    read = _places(scan.pattern)
    for one in scan.filters:
        (variable,) = mentions(one)
        found = native.condition(one, quads.dialect)
        if found is not None and not native.comparands([one]):
            sql = found.sql
            if found.decided != native.ALWAYS:
                sql = f"(NOT coalesce({found.decided}, FALSE) OR {sql})"
            # A lambda, as Spark does not compile it to code: that of some comparisons is so large that Java would
            # never compile the method in which lines are read.
            solution = f"named_struct('{column(variable)}', {read[variable]})"
            conditions.append(f"exists(array({solution}), t -> {sql})")
    return " AND ".join(conditions)


def _places(pattern: Triple) -> dict[Var, str]:
    """Returns the column that each variable of a pattern is read from: the first, if it is in several."""
    places: dict[Var, str] = {}
    for name, position in zip(COLUMNS, pattern.positions, strict=True):
        if isinstance(position, Var):
            places.setdefault(position, name)
    return places


def _condition(pattern: Triple, quads: Quads) -> str:
    """Returns SQL over a table's columns that tests whether a quad matches a pattern."""
    read = _places(pattern)
    conditions = [quads.in_graph(pattern.graph)]
    for name, position in zip(COLUMNS, pattern.positions, strict=True):
        if isinstance(position, Var):
            if read[position] != name:
                conditions.append(f"{name} = {read[position]}")
        elif position is not None and name != "graph":
            conditions.append(f"{name} = {literal(position)}")
    return " AND ".join(conditions)


# --- stars ----------------------------------------------------------------------------------------
# Star joins: triple patterns with one subject, evaluated in one pass over its quads. The objects of a subject are
# collected by predicate, and their combinations are its solutions. Whether a star is worth it, the optimizer decides.
#
# A hub is a subject with more objects than should be held at once. Its solutions are found part by part: a part has
# some of the objects of one variable, of which the hub has the most, and all other objects. No object of that variable
# is in two parts, so no solution is. Hubs are found while the query runs; Spark leaves the join with them out if there
# are none.

_PREDICATE: Final = Var(".predicate")
_OBJECT: Final = Var(".object")
_P: Final = column(_PREDICATE)
_O: Final = column(_OBJECT)

HUB_BYTES: Final = 1 << 20
"""The most bytes of a variable's objects that are collected for a subject; a task may hold some hundred such sets."""

_PART: Final = "part"
"""The column of parts: NULL for quads whose subject is not a hub."""

_PART_BYTES: Final = 1 << 18  # of objects; a task may hold some hundred parts of a hub
_RAYS_BITS: Final = 32  # after them, the number of the part


class _Ray(NamedTuple):
    """A variable of a star, with the predicates of its patterns."""

    predicates: tuple[Term, ...]
    needed: bool  # a subject without such objects has no solutions
    divides: bool  # no other variable has one of the predicates, so that hubs can be cut into parts by it


def _in_parts(quads: str, keys: Sequence[str], rays: Sequence[_Ray], tests: Iterable[str]) -> str:
    """Returns SQL of the quads of a star with the column `_PART`: those of a hub once for each part that has them.

    Quads of hubs without solutions are dropped; a subject has solutions if each of the tests is true of some quad.
    """
    if not any(ray.divides for ray in rays):
        return f"SELECT *, CAST(NULL AS BIGINT) AS {_PART} FROM ({quads})"
    sizes = [
        f"sum(CASE WHEN {any_of(_P, ray.predicates)} THEN octet_length({_O}) END)" for ray in rays
    ]
    largest = f"array({', '.join(size if ray.divides else 'NULL' for size, ray in zip(sizes, rays, strict=True))})"
    present = [f"{size} IS NOT NULL" for size, ray in zip(sizes, rays, strict=True) if ray.needed]
    alive = " AND ".join([*(f"bool_or({test})" for test in tests), *present]) or "TRUE"
    subject = ", ".join(keys)
    hubs = f"""\
SELECT {subject}, array_position(sizes, array_max(sizes)) - 1 AS ray,
  if(alive, CAST(ceil(array_max(sizes) / {_PART_BYTES}) AS BIGINT), 0) AS parts
FROM (SELECT {subject}, {largest} AS sizes, {alive} AS alive FROM ({quads}) GROUP BY {subject})
WHERE array_max(sizes) > {HUB_BYTES}"""
    divided = " OR ".join(
        f"ray = {number} AND {any_of(_P, ray.predicates)}"
        for number, ray in enumerate(rays)
        if ray.divides
    )
    first = f"shiftleft(ray, {_RAYS_BITS})"
    parts = case(
        ("parts IS NULL", "array(CAST(NULL AS BIGINT))"),
        ("parts = 0", "CAST(array() AS ARRAY<BIGINT>)"),
        (divided, f"array({first} + pmod(xxhash64({_O}), parts))"),
        otherwise=f"sequence({first}, {first} + parts - 1)",
    )
    return f"""\
SELECT /*+ BROADCAST(hubs) */ {subject}, {_P}, {_O}, explode({parts}) AS {_PART}
FROM ({quads}) LEFT JOIN ({hubs}) AS hubs USING ({subject})"""


def _has_objects(number: int, ray: _Ray, objects: str) -> str:
    """Returns SQL that tests whether a part, or a subject that is no hub, has the objects that a ray requires."""
    found = f"size({objects}) > 0"
    # otherwise, a part without objects of the divided variable would leave that variable unbound
    return (
        found
        if ray.needed
        else f"({_PART} IS NULL OR shiftright({_PART}, {_RAYS_BITS}) <> {number} OR {found})"
    )


def _star(node: Star, quads: Quads) -> str:
    """Returns the SELECT of the solutions of a star, each once: NULL where an optional object is unbound.

    It is fastest if the quads of a subject are in one partition already.
    """
    graph = node.patterns[0].graph
    keys = [column(node.subject)]
    if isinstance(graph, Var) and graph != node.subject:
        keys.append(column(graph))
    patterns = (*node.patterns, *node.optional)
    variables: dict[str, list[Triple]] = {}
    for pattern in patterns:
        if name := _free(pattern, keys):
            variables.setdefault(name, []).append(pattern)
    rays = {name: _ray(name, node, variables) for name in variables}
    tests = [_matched(pattern) for pattern in node.patterns if not _free(pattern, keys)]
    any_of_them = Triple(node.subject, _PREDICATE, _OBJECT, graph)
    needed = " OR ".join(dict.fromkeys(f"({_condition(one, quads)})" for one in patterns))
    columns = [f"{place} AS {column(variable)}" for variable, place in _places(any_of_them).items()]
    table = quads.table_of(node.patterns[0])
    given = f"SELECT {', '.join(columns)} FROM {table} WHERE {_condition(any_of_them, quads)} AND ({needed})"
    given = _in_parts(given, keys, [*rays.values()], tests)
    predicates = dict.fromkeys(predicate for ray in rays.values() for predicate in ray.predicates)
    objects = {predicate: f"objects{n}" for n, predicate in enumerate(predicates)}
    subject = ", ".join(keys)
    collected = [f"bool_or({test}) AS test{n}" for n, test in enumerate(tests)]
    collected += [
        f"collect_set(CASE WHEN {_P} = {literal(predicate)} THEN {_O} END) AS {name}"
        for predicate, name in objects.items()
    ]
    found = {
        name: _intersection([objects[predicate] for predicate in ray.predicates])
        for name, ray in rays.items()
    }
    conditions = [f"({_PART} IS NOT NULL OR test{n})" for n in range(len(tests))]
    conditions += [_has_objects(n, ray, found[name]) for n, (name, ray) in enumerate(rays.items())]
    views = [
        f"LATERAL VIEW {'' if ray.needed else 'OUTER '}explode({found[name]}) AS {name}"
        for name, ray in rays.items()
    ]
    # Spark sorts the keys of groups, and compares IRIs by their first eight bytes, which are mostly the same, before it
    # reads the rest of them from memory: hence the hash.
    return f"""\
SELECT {", ".join((*keys, *rays))} FROM (
  SELECT {", ".join((subject, _PART, *collected))} FROM ({given}) GROUP BY xxhash64({subject}), {subject}, {_PART})
{" ".join(views)} WHERE {" AND ".join(conditions)}"""


def _free(pattern: Triple, keys: list[str]) -> str | None:
    """Returns the column of a pattern's object, if that is a variable other than the keys."""
    name = column(pattern.object) if isinstance(pattern.object, Var) else None
    return None if name in keys else name


def _matched(pattern: Triple) -> str:
    """SQL: whether a quad matches a pattern of its subject whose object is known."""
    known = (
        column(pattern.object)
        if isinstance(pattern.object, Var)
        else literal(_term(pattern.object))
    )
    return f"({_P} = {literal(_term(pattern.predicate))} AND {_O} = {known})"


def _ray(name: str, node: Star, variables: dict[str, list[Triple]]) -> _Ray:
    patterns = variables[name]
    predicates = tuple(dict.fromkeys(_term(pattern.predicate) for pattern in patterns))
    others = {
        pattern.predicate for other, them in variables.items() if other != name for pattern in them
    }
    return _Ray(
        predicates,
        any(pattern in node.patterns for pattern in patterns),
        others.isdisjoint(predicates),
    )


def _intersection(arrays: list[str]) -> str:
    first, *others = arrays
    for other in others:
        first = f"array_intersect({first}, {other})"
    return first


def _term(position: VarOrTerm) -> Term:
    assert position is not None
    assert not isinstance(position, Var)
    return position
