"""Triple patterns over a table of quads: constants are filtered, variables become columns, duplicates go.

SPARQL 1.1 Query, sections 18.3.1 (a basic graph pattern of one triple pattern) and 13 (datasets: FROM, FROM NAMED and
GRAPH). Patterns are not joined here. RDF graphs are sets and a DataFrame is a bag: a quad that is in the table twice,
or a triple in two graphs that FROM merges, is returned once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from construct_messages.query.algebra.nodes import (
    Dataset,
    Scan,
    Star,
    Triple,
    Var,
    VarOrTerm,
    mentions,
)
from construct_messages.rdf.terms import Term
from construct_messages.spark.quads.table import COLUMNS, QuadTable
from construct_messages.spark.sql import expressions
from construct_messages.spark.sql.values import any_of, case, column, literal, may_fail


def scan(pattern: Triple, table: QuadTable, dataset: Dataset) -> DataFrame:
    """Returns the solutions of a triple pattern: a column for each of its variables, none of them NULL."""
    condition, columns = matching(pattern, dataset)
    found = table.frame.filter(condition).selectExpr(*columns)
    if not columns:
        return found.limit(1)  # a pattern without variables has one solution or none
    return found if is_distinct(pattern.graph, table, dataset) else found.distinct()


def matching(
    pattern: Triple, dataset: Dataset, needed_for: Iterable[Scan] = ()
) -> tuple[str, list[str]]:
    """Returns SQL over a table's columns: the condition and the columns of the quads that match a pattern (a bag).

    Only quads that one of the patterns `needed_for` needs match, if there are any.

    >>> matching(Triple(Var("s"), Term("<urn:p>"), Var("o")), Dataset())
    ("graph IS NULL AND predicate = '<urn:p>'", ['subject AS v_s', 'object AS v_o'])
    """
    conditions = [_condition(pattern, dataset)]
    if needed := _needed(needed_for, dataset):
        conditions.append(f"({needed})")
    columns = [f"{place} AS {column(variable)}" for variable, place in _places(pattern).items()]
    return " AND ".join(conditions), columns


def needed_quads(scans: Iterable[Scan], table: QuadTable, dataset: Dataset) -> QuadTable:
    """Returns the quads of a table that some of the patterns need.

    Filters only reduce the quads that are read: a quad that fails the filters of one pattern may be needed for another.
    Filters whose SQL may end the job are not used.
    """
    return replace(table, frame=table.frame.filter(_needed(scans, dataset)))


def _needed(scans: Iterable[Scan], dataset: Dataset) -> str:
    return " OR ".join(dict.fromkeys(f"({_scan_condition(scan, dataset)})" for scan in scans))


def _scan_condition(scan: Scan, dataset: Dataset) -> str:
    conditions = [_condition(scan.pattern, dataset)]
    read = _places(scan.pattern)
    for one in scan.filters:
        (variable,) = mentions(one)
        sql = expressions.condition(one)
        # A lambda, as Spark does not compile it to code: that of some comparisons is so large that Java would never
        # compile the method in which lines are read.
        if not may_fail(sql):
            conditions.append(f"exists(array({read[variable]}), {column(variable)} -> {sql})")
    return " AND ".join(conditions)


def _places(pattern: Triple) -> dict[Var, str]:
    """Returns the column that each variable of a pattern is read from: the first, if it is in several."""
    places: dict[Var, str] = {}
    for name, position in zip(COLUMNS, pattern.positions, strict=True):
        if isinstance(position, Var):
            places.setdefault(position, name)
    return places


def _condition(pattern: Triple, dataset: Dataset) -> str:
    """Returns SQL over a table's columns that tests whether a quad matches a pattern."""
    read = _places(pattern)
    conditions = [in_graph(pattern.graph, dataset)]
    for name, position in zip(COLUMNS, pattern.positions, strict=True):
        if isinstance(position, Var):
            if read[position] != name:
                conditions.append(f"{name} = {read[position]}")
        elif position is not None and name != "graph":
            conditions.append(f"{name} = {literal(position)}")
    return " AND ".join(conditions)


def in_graph(graph: VarOrTerm | None, dataset: Dataset) -> str:
    """Returns SQL over the column `graph` that selects the quads that a pattern sees; `graph` as in `Triple`."""
    match graph:
        case None:
            return "graph IS NULL" if dataset.default is None else _one_of(dataset.default)
        case Var():
            return "graph IS NOT NULL" if dataset.named is None else _one_of(dataset.named)
    return (
        f"graph = {literal(graph)}" if dataset.named is None or graph in dataset.named else "FALSE"
    )


def is_distinct(graph: VarOrTerm | None, table: QuadTable, dataset: Dataset) -> bool:
    """Returns whether `in_graph` selects no triple twice: the table may hold it twice, and so may graphs that FROM
    merges.
    """
    merges = graph is None and dataset.default is not None and len(set(dataset.default)) > 1
    return table.statistics.distinct and not merges


def named_graphs(table: QuadTable, dataset: Dataset) -> DataFrame:
    """Returns the names of the dataset's named graphs, each once, in a column `graph`.

    FROM NAMED lists them, with or without quads; otherwise they are those that hold quads.
    """
    if dataset.named is None:
        return table.frame.select("graph").filter(F.col("graph").isNotNull()).distinct()
    listed = F.array(*map(F.lit, dict.fromkeys(dataset.named))).cast("array<string>")
    return table.frame.sparkSession.range(1).select(F.explode(listed).alias("graph"))


def _one_of(names: tuple[Term, ...]) -> str:
    return any_of("graph", names) if names else "FALSE"


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


_TABLE: Final = "\0"  # where SQL names the table: in no literal


def star(node: Star, table: QuadTable, dataset: Dataset) -> DataFrame:
    """Returns the solutions of a star, each once: a column for each variable, NULL where an optional object is unbound.

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
    condition, columns = matching(any_of_them, dataset, needed_for=map(Scan, patterns))
    quads = f"SELECT {', '.join(columns)} FROM {_TABLE}"
    quads = _in_parts(quads, keys, [*rays.values()], tests)
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
    # One statement, because Spark analyses each DataFrame again with all of its parts. Spark sorts the keys of groups,
    # and compares IRIs by their first eight bytes, which are mostly the same, before it reads the rest of them from
    # memory: hence the hash.
    sql = f"""\
SELECT {", ".join((*keys, *rays))} FROM (
  SELECT {", ".join((subject, _PART, *collected))} FROM ({quads}) GROUP BY xxhash64({subject}), {subject}, {_PART})
{" ".join(views)} WHERE {" AND ".join(conditions)}"""
    named = sql.replace("{", "{{").replace("}", "}}").replace(_TABLE, "{quads}")
    # not the table itself: Spark would uncache it when it drops the view that it makes of its argument
    return table.frame.sparkSession.sql(named, quads=table.frame.filter(condition))


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
