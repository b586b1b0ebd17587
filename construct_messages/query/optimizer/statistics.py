"""Statistics of a table of quads, by which the optimizer orders joins. No I/O, and no engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from construct_messages.rdf.terms import Term


@dataclass(frozen=True)
class PredicateStatistics:
    """The figures of one predicate.

    Args:
        rows: its quads.
        subjects: its distinct subjects, about.
        objects: its distinct objects, about.
    """

    rows: int
    subjects: int
    objects: int


@dataclass(frozen=True)
class Statistics:
    """The figures of a table.

    Args:
        rows: all quads.
        distinct: whether each quad is in the table once.
        predicates: the figures of each predicate; empty if they are not known.
    """

    rows: int | None = None
    distinct: bool = False
    predicates: Mapping[Term, PredicateStatistics] = field(default_factory=dict)
