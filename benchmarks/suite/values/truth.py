"""What the documents and rows must be, and how those that came differ.

Documents are PyLD's, framed for each entity alone: from the statements of all solutions with that entity, as a
reference evaluator finds them. Rows are the solutions, with Python's value for each datatype. Arrays are sets, as in
JSON-LD.
"""

from __future__ import annotations

import datetime
import json
import math
import pickle
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyoxigraph as ox
from pyld import jsonld  # type: ignore[import-untyped] # it has no type information

from benchmarks.suite.truth import Reference, Solution, instantiate
from benchmarks.suite.values.rows import CONVERTERS

Leaves = frozenset[tuple[str, ...]]
"""A document: the path to each value, and the value as JSON."""


@dataclass(frozen=True)
class Documents:
    """How documents compare with the truth.

    Args:
        expected: one for each entity.
        right: those that equal the truth.
        mixed: those that have all of it, and values of other results.
        wrong: all others that came, also a second one of an entity.
        missing: entities without a document.
    """

    expected: int
    right: int
    mixed: int
    wrong: int
    missing: int


@dataclass(frozen=True)
class Rows:
    """How rows compare with the truth.

    Args:
        expected: rows.
        right: rows with the right values; 5.0 is the value 5, and a date may be text.
        columns: columns in which all values also have the right type, or None where nothing came.
    """

    expected: int
    right: int
    columns: int
    all_columns: int


def expected_documents(
    reference: Reference, query: str, root: str, frame: Mapping[str, Any]
) -> dict[str, Leaves]:
    """The documents of a query by their `@id`."""
    statements: dict[str, dict[str, None]] = defaultdict(dict)
    solutions = list(reference.solutions(query))
    # no group is empty: the root is bound in each
    for solution, group in zip(solutions, instantiate(query, solutions), strict=True):
        statements[solution[root]] |= dict.fromkeys(f"{s} {p} {o} ." for s, p, o in group)
    options = {"format": "application/n-quads", "useNativeTypes": True}
    documents = [
        jsonld.frame(jsonld.from_rdf("\n".join(lines), options), frame)
        for lines in statements.values()
    ]
    return {document["@id"]: leaves(document) for document in documents}


def leaves(value: Any, path: tuple[str, ...] = ()) -> Leaves:
    """The values in a document with the paths to them; nodes in arrays are told apart by their `@id`.

    >>> sorted(leaves({"@context": {}, "@id": "a", "b": [1, {"@id": "c", "d": 2}]}))
    [('@id', '"a"'), ('b', '1'), ('b', 'c', '@id', '"c"'), ('b', 'c', 'd', '2')]
    """
    if isinstance(value, list):
        return frozenset(leaf for each in value for leaf in leaves(each, path))
    if isinstance(value, dict):
        here = (*path, str(value.get("@id", ""))) if path else path
        return frozenset(
            leaf
            for key, each in value.items()
            if key != "@context"
            for leaf in leaves(each, (*here, key))
        )
    return frozenset([(*path, json.dumps(value))])


def compare_documents(expected: Mapping[str, Leaves], lines: Iterable[bytes | str]) -> Documents:
    """Compares documents, a line each, with those of `expected_documents`."""
    found: dict[str, Leaves] = {}
    right = mixed = wrong = 0
    for line in lines:
        document = json.loads(line)
        name = document.get("@id", "")
        got, wanted = leaves(document), expected.get(name)
        if wanted is None or name in found:
            wrong += 1
        elif got == wanted:
            right += 1
        elif got > wanted:
            mixed += 1
        else:
            wrong += 1
        found[name] = got
    return Documents(len(expected), right, mixed, wrong, len(expected.keys() - found.keys()))


# --- rows ---

_TYPES: Final = (int, float, datetime.date, str)


def expected_rows(solutions: Iterable[Solution], names: Sequence[str]) -> list[tuple[Any, ...]]:
    """The values of the variables in each solution; None where unbound."""
    return [
        tuple(None if name not in each else _value(each[name]) for name in names)
        for each in solutions
    ]


def _value(text: str) -> object:
    (quad,) = ox.parse(f"<urn:s> <urn:p> {text} .", ox.RdfFormat.N_TRIPLES)
    term = quad.object
    if isinstance(term, ox.Literal):
        return CONVERTERS.get(term.datatype.value, str)(term.value)
    assert isinstance(term, ox.NamedNode | ox.BlankNode)
    return term.value


def compare_rows(expected: Sequence[tuple[Any, ...]], names: Sequence[str], path: Path) -> Rows:
    """Compares a pickled frame with the rows of `expected_rows`, in any order."""
    frame = pickle.loads(path.read_bytes())
    columns = [_plain(frame[name]) for name in names]
    wanted = Counter(tuple(map(_comparable, row)) for row in expected)
    found = Counter(tuple(map(_comparable, row)) for row in zip(*columns, strict=True))
    typed = 0
    for place, column in enumerate(columns):
        kinds = {_kind(row[place]) for row in expected} - {None}
        typed += {_kind(value) for value in column} - {None} == kinds
    return Rows(len(expected), (wanted & found).total(), typed, len(names))


def _plain(column: Any) -> list[object]:
    """The values of a column of pandas; None where one is missing."""
    missing = column.isna().tolist()
    return [None if gone else value for gone, value in zip(missing, column.tolist(), strict=True)]


def _kind(value: object) -> type | None:
    return next((kind for kind in _TYPES if isinstance(value, kind)), None)


def _comparable(value: object) -> object:
    if isinstance(value, datetime.date):
        return value.isoformat()[:10]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else str(value)
    return str(value) if isinstance(value, str) else value
