"""Checks the terms of a table in Python workers: that its cells are terms in canonical form, and how many terms are not
RDF where quads were read leniently.

The compiled module reads nearly all cells; the parser of single terms reads the others, and names the fault. RDF 1.2
N-Triples, sections 4 (canonical form) and 7 (grammar).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from construct_messages.errors import QuadsError, TermError, shown
from construct_messages.rdf.terms import FORBIDDEN, TERM_HINT, Lenience, parse_term
from construct_messages.sparql.relational.documents import SCHEMA, suspects

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FAULT: Final = "fault STRING, hint STRING"


def check_terms(frame: DataFrame, names: Mapping[str, str]) -> None:
    """Reads all cells of a frame with the columns of quads.

    Args:
        frame: the frame.
        names: the caller's names of its columns, for errors.

    Raises:
        QuadsError: a cell is not a term that may stand in its position, or is not in canonical form.
    """
    # at most one a partition: `limit` would read few partitions first, then more, one job after the other
    for fault, hint in frame.mapInArrow(_judge, _FAULT).collect():
        place, _, text = fault.partition(" ")
        raise QuadsError(f"column {names.get(place, place)!r} holds {text}", hint=hint)


def malformed_terms(frame: DataFrame) -> int:
    """Counts the malformed IRIs and language tags, and the literals without the tag of their datatype, in quads that
    were read leniently.
    """
    counts = frame.mapInArrow(_count, "count BIGINT").collect()
    return sum(row[0] for row in counts)


def _judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields the first fault of a partition: its column, the description, and the fix."""
    for batch in batches:
        for row in suspects(batch).to_pylist():
            for place in SCHEMA.names:
                if (found := fault_of(row[place], place)) is not None:
                    quad = ", ".join(shown(str(row[each] or "NULL")) for each in SCHEMA.names)
                    text, hint = found
                    yield pa.RecordBatch.from_pydict(
                        {"fault": [f"{place} {text}, in the row ({quad})"], "hint": [hint]}
                    )
                    return


def _count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields their number in a partition, with those that no lenient reader passes."""
    lenience, others = Lenience(mends=False), 0
    for batch in batches:
        for cells in suspects(batch).to_pydict().values():
            for cell in filter(None, cells):
                try:
                    parse_term(cell, lenience=lenience)
                except TermError:
                    others += 1
    yield pa.RecordBatch.from_pydict({"count": [lenience.passed + others]})


def fault_of(cell: str | None, place: str) -> tuple[str, str] | None:
    """Returns the fault of a cell and its fix; None if it is a canonical term that may stand there.

    >>> fault_of("<urn:a>", "predicate"), fault_of(None, "graph")
    (None, None)
    >>> fault_of('"chat"@FR', "object")
    ('"chat"@FR, which is not in canonical form', 'write "chat"@fr')
    >>> fault_of("Berlin", "object")[0]
    "Berlin: 'Berlin' is not an RDF term"
    """
    if cell is None:
        return None if place == "graph" else ("NULL", "leave the row out")
    try:
        term = parse_term(cell)
    except TermError as error:
        return f"{shown(cell)}: {error.message}", error.hint or TERM_HINT
    if term.startswith(FORBIDDEN[place]):
        return f"{shown(cell)}, which cannot be a {place}", "leave the row out"
    if term != cell:
        return f"{shown(cell)}, which is not in canonical form", f"write {term}"
    return None
