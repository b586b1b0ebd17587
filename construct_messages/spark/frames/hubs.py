"""Hubs: subjects that have more objects than should be held at once, cut into parts of a bounded size.

The solutions of a star are the combinations of its objects (`stars`). Those of a hub are found part by part: a part has
some of the objects of one variable, of which the hub has the most, and all other objects. No object of that variable is
in two parts, so no solution is. Hubs are found while the query runs; Spark leaves the join with them
out if there are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from construct_messages.rdf.terms import Term
from construct_messages.spark.sql.values import any_of, case

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
