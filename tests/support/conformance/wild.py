"""CONSTRUCT queries found in the wild, with their plans, and quads that their patterns match."""

from __future__ import annotations

import csv
from functools import cache
from typing import NamedTuple

from construct_messages.errors import QueryError
from construct_messages.query.algebra.nodes import Plan, Var
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.rdf.message import Quad
from construct_messages.rdf.terms import Term
from tests.support.places import shared_path
from tests.support.queries.algebra_reference import leaves
from tests.support.queries.algebra_text import NOW, translate_query


class Wild(NamedTuple):
    """One query: its file, its class, and its plan or why there is none."""

    name: str
    kind: str
    select: str
    outcome: Plan | QueryError


BASE = "http://example.org/base/"


@cache
def wild() -> list[Wild]:
    """All CONSTRUCT queries that this package reads."""
    root = shared_path("queries")
    found = []
    with (root / "INDEX.tsv").open(encoding="utf-8", newline="") as index:
        rows = list(csv.DictReader(index, delimiter="\t"))
    for row in rows:
        name = row["filled"] or row["file"]
        try:
            query = ConstructQuery.parse(
                (root / name).read_text(encoding="utf-8", errors="replace"), base=BASE
            )
        except QueryError:
            continue
        outcome: Plan | QueryError
        try:
            outcome = translate_query(query.select, now=NOW, base=BASE)
        except QueryError as refused:
            outcome = refused
        found.append(Wild(name, row["class"], query.select, outcome))
    return found


VOLATILE = ("RAND", "UUID", "NOW", "BNODE", "LIMIT", "OFFSET", "SAMPLE", "GROUP_CONCAT")


def invented(planned: Plan) -> list[Quad]:
    """Quads that a plan's patterns match, each in two ways: in each of them a variable stands for one term."""
    quads = set()
    for pattern in leaves(planned.pattern):
        for way in (0, 1):
            subject, predicate, object, graph = (
                (
                    TERMS[(sum(map(ord, place.name)) + way) % len(TERMS)]
                    if isinstance(place, Var)
                    else place
                )
                for place in pattern.positions
            )
            assert subject is not None
            assert predicate is not None
            assert object is not None
            quads.add(Quad(subject, predicate, object, graph))
    return sorted(quads, key=str)


TERMS = [Term(f"<urn:{name}>") for name in "abc"]
