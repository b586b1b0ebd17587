"""Star joins: triple patterns with one subject, evaluated in one pass over its quads.

SPARQL 1.1 Query, section 18.3 (basic graph patterns) and OPTIONAL of single triples. The objects of a subject are
collected by predicate, and their combinations are its solutions; those of a hub in parts (`hubs`). Single patterns are
matched in `scans`; whether a star is worth it is decided by the optimizer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from pyspark.sql import DataFrame

from construct_messages.query.algebra.nodes import Dataset, Scan, Star, Triple, Var, VarOrTerm
from construct_messages.rdf.terms import Term
from construct_messages.spark.frames.scans import matching
from construct_messages.spark.quads.table import QuadTable
from construct_messages.spark.sql.values import any_of, case, column, literal

# --- hubs -----------------------------------------------------------------------------------------
# Hubs: subjects that have more objects than should be held at once, cut into parts of a bounded size.
#
# The solutions of a star are the combinations of its objects (`stars`). Those of a hub are found part by part: a part
# has some of the objects of one variable, of which the hub has the most, and all other objects. No object of that
# variable is in two parts, so no solution is. Hubs are found while the query runs; Spark leaves the join with them
# out if there are none.

HUB_BYTES: Final = 1 << 20
"""The most bytes of a variable's objects that are collected for a subject; a task may hold some hundred such sets."""

PART: Final = "part"
"""The column of parts: NULL for quads whose subject is not a hub."""

_PART_BYTES: Final = 1 << 18  # of objects; a task may hold some hundred parts of a hub
_RAYS_BITS: Final = 32  # after them, the number of the part


class Ray(NamedTuple):
    """A variable of a star.

    Args:
        predicates: of its patterns.
        needed: whether a subject without such objects has no solutions.
        divides: whether it is cut into parts: no other variable has one of the predicates.
    """

    predicates: tuple[Term, ...]
    needed: bool
    divides: bool


def in_parts(
    quads: str,
    keys: Sequence[str],
    predicate: str,
    object: str,
    rays: Sequence[Ray],
    tests: Iterable[str],
) -> str:
    """Returns SQL of the quads of a star with the column `PART`: those of a hub once for each part that they are in.

    Quads of hubs without solutions are left out; thus all tests are true of a part.

    Args:
        quads: SQL of a SELECT, with columns for the keys, the predicate and the object.
        keys: the columns that identify a subject.
        predicate, object: the names of their columns.
        rays: the variables.
        tests: SQL of quads; a subject has solutions if each is true of some quad.
    """
    if not any(ray.divides for ray in rays):
        return f"SELECT *, CAST(NULL AS BIGINT) AS {PART} FROM ({quads})"
    sizes = [
        f"sum(CASE WHEN {any_of(predicate, ray.predicates)} THEN octet_length({object}) END)"
        for ray in rays
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
        f"ray = {number} AND {any_of(predicate, ray.predicates)}"
        for number, ray in enumerate(rays)
        if ray.divides
    )
    first = f"shiftleft(ray, {_RAYS_BITS})"
    parts = case(
        ("parts IS NULL", "array(CAST(NULL AS BIGINT))"),
        ("parts = 0", "CAST(array() AS ARRAY<BIGINT>)"),
        (divided, f"array({first} + pmod(xxhash64({object}), parts))"),
        otherwise=f"sequence({first}, {first} + parts - 1)",
    )
    return f"""\
SELECT /*+ BROADCAST(hubs) */ {subject}, {predicate}, {object}, explode({parts}) AS {PART}
FROM ({quads}) LEFT JOIN ({hubs}) AS hubs USING ({subject})"""


def has_objects(number: int, ray: Ray, objects: str) -> str:
    """Returns SQL that tests whether a part, or a subject that is not a hub, has the objects that a ray requires.

    Args:
        number: of the ray.
        ray: the variable.
        objects: SQL of an array, the objects found.
    """
    found = f"size({objects}) > 0"
    # otherwise, a part without objects of the divided variable would leave that variable unbound
    return (
        found
        if ray.needed
        else f"({PART} IS NULL OR shiftright({PART}, {_RAYS_BITS}) <> {number} OR {found})"
    )


# --- stars ----------------------------------------------------------------------------------------

_PREDICATE: Final = Var(".predicate")
_OBJECT: Final = Var(".object")
_P: Final = column(_PREDICATE)
_O: Final = column(_OBJECT)
_TABLE: Final = "\0"  # where SQL names the table: in no literal


def star(node: Star, table: QuadTable, dataset: Dataset) -> DataFrame:
    """Returns the solutions of a star: a column for each of its variables, those of its optional objects NULL where
    unbound.

    They are a set, whether the quads are distinct or not.

    Args:
        node: the patterns.
        table: the quads, those of one subject best in one partition already.
        dataset: the graphs of FROM and FROM NAMED.
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
    quads = in_parts(quads, keys, _P, _O, [*rays.values()], tests)
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
    conditions = [f"({PART} IS NOT NULL OR test{n})" for n in range(len(tests))]
    conditions += [has_objects(n, ray, found[name]) for n, (name, ray) in enumerate(rays.items())]
    views = [
        f"LATERAL VIEW {'' if ray.needed else 'OUTER '}explode({found[name]}) AS {name}"
        for name, ray in rays.items()
    ]
    # One statement, because Spark analyses each DataFrame again with all of its parts. Spark sorts the keys of groups,
    # and compares IRIs by their first eight bytes, which are mostly the same, before it reads the rest of them from
    # memory: hence the hash.
    sql = f"""\
SELECT {", ".join((*keys, *rays))} FROM (
  SELECT {", ".join((subject, PART, *collected))} FROM ({quads}) GROUP BY xxhash64({subject}), {subject}, {PART})
{" ".join(views)} WHERE {" AND ".join(conditions)}"""
    named = sql.replace("{", "{{").replace("}", "}}").replace(_TABLE, "{quads}")
    # not the table itself: Spark would uncache it when it drops the view that it makes of its argument
    return table.frame.sparkSession.sql(named, quads=table.frame.filter(condition))


def _free(pattern: Triple, keys: list[str]) -> str | None:
    """Returns the column of a pattern's object, if it is another variable than the subject."""
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


def _ray(name: str, node: Star, variables: dict[str, list[Triple]]) -> Ray:
    patterns = variables[name]
    predicates = tuple(dict.fromkeys(_term(pattern.predicate) for pattern in patterns))
    others = {
        pattern.predicate for other, them in variables.items() if other != name for pattern in them
    }
    return Ray(
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
