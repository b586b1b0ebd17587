"""Checks that the cells of a table are terms in canonical form, in one pass over it.

A pattern of Java accepts nearly all terms; the others are read by the parser of single terms, in Python workers, which
names the fault. RDF 1.2 N-Triples, sections 4 (canonical form) and 7 (grammar).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F

from construct_messages.errors import QuadsError, TermError, shown
from construct_messages.rdf.terms import FORBIDDEN, TERM_HINT, XSD, parse_term
from construct_messages.rdf.terms.grammar import BLANK_LABEL, NEVER_PLAIN, NO_XML, NOT_A_DATATYPE
from construct_messages.spark.quads.malformed import IRI, LANGUAGE, USUAL_IRI

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_FAULT: Final = "fault STRING, hint STRING"
_IRI: Final = f"<(?:{IRI})>"
_NODE: Final = f"_:{BLANK_LABEL}"
_PLAIN: Final = f"[^{NEVER_PLAIN}{NO_XML}]*+"
_ESCAPE: Final = r'\\(?:[tbnrf"\\]|u(?:00(?:0[0-7BEF]|1[0-9A-F]|7F)|FFF[EF]))'
_SUFFIX: Final = (
    rf'@(?![^ "]*[A-Z]){LANGUAGE}(?:--(?:ltr|rtl))?|\^\^(?!{"|".join(NOT_A_DATATYPE)}){_IRI}'
)
_LITERAL: Final = f'"{_PLAIN}(?:{_ESCAPE}{_PLAIN})*+"(?:{_SUFFIX})?'
_OBJECT: Final = f"{_IRI}|{_NODE}|{_LITERAL}"
_TRIPLE: Final = rf"<<\( (?:{_IRI}|{_NODE}) {_IRI} (?:{_OBJECT}) \)>>"
_PATTERNS: Final = {
    "subject": f"{_IRI}|{_NODE}",
    "predicate": _IRI,
    "object": f"{_OBJECT}|{_TRIPLE}",
    "graph": f"{_IRI}|{_NODE}",
}
# most terms, faster
_USUAL: Final = f"<{USUAL_IRI}>"
_USUAL_OBJECT: Final = (
    rf'{_USUAL}|"[ !#-\[\]-~]*+"(?:@[a-z]{{2,3}}|\^\^<{XSD}(?!string>)[A-Za-z]++>)?+'
)


def check_terms(frame: DataFrame, names: Mapping[str, str]) -> None:
    """Reads all cells of a frame with the columns of quads.

    Args:
        frame: the frame.
        names: the caller's names of its columns, for errors.

    Raises:
        QuadsError: a cell is not a term that may stand in its position, or is not in canonical form.
    """
    sound = reduce(and_, (_is_sound(place) for place in _PATTERNS))
    suspects = frame.filter(~sound)
    if suspects.agg(F.count(F.lit(1))).collect()[0][0] == 0:
        return
    # a nested triple term, for example, which the patterns do not have
    for fault, hint in suspects.mapInArrow(_judge, _FAULT).limit(1).collect():
        place, _, text = fault.partition(" ")
        raise QuadsError(f"column {names.get(place, place)!r} holds {text}", hint=hint)


def _is_sound(place: str) -> Column:
    cell = F.col(place)
    usual = _USUAL_OBJECT if place == "object" else _USUAL
    matches = cell.rlike(rf"^(?:{usual})\z") | cell.rlike(rf"^(?:{_PATTERNS[place]})\z")
    return F.coalesce(matches, F.lit(place == "graph"))


def _judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields the first fault of a partition: its column, the description, and the fix."""
    for batch in batches:
        for row in batch.to_pylist():
            for place in _PATTERNS:
                if (found := fault_of(row[place], place)) is not None:
                    quad = ", ".join(shown(str(row[each] or "NULL")) for each in _PATTERNS)
                    text, hint = found
                    yield pa.RecordBatch.from_pydict(
                        {"fault": [f"{place} {text}, in the row ({quad})"], "hint": [hint]}
                    )
                    return


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
