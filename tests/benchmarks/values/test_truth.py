"""`benchmarks/suite/values/truth.py`: documents and rows are compared by their values, whatever their order."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest

from benchmarks.suite.truth import Reference
from benchmarks.suite.values.truth import (
    Documents,
    Rows,
    compare_documents,
    compare_rows,
    expected_documents,
    expected_rows,
    leaves,
)

pd = pytest.importorskip("pandas")

WANTED: dict[str, Any] = {"@id": "a", "name": "A", "of": {"@id": "c", "n": [1, 2]}}
SECOND: dict[str, Any] = {"@id": "b", "name": "B"}


@pytest.mark.parametrize(
    ("found", "right", "mixed", "wrong", "missing"),
    [
        ([WANTED, SECOND], 2, 0, 0, 0),
        ([SECOND, {**WANTED, "@context": {}, "of": [{"n": [2, 1], "@id": "c"}]}], 2, 0, 0, 0),
        ([{**WANTED, "of": {"@id": "c", "n": [1, 2, 3]}}, SECOND], 1, 1, 0, 0),
        ([{**WANTED, "of": {"@id": "c", "n": 1}}, SECOND], 1, 0, 1, 0),
        ([{**WANTED, "of": {"@id": "c", "n": [1, 3]}}, SECOND], 1, 0, 1, 0),
        ([{**WANTED, "of": {"@id": "c", "n": ["1", 2]}}, SECOND], 1, 0, 1, 0),
        ([WANTED, WANTED], 1, 0, 1, 1),
        ([{"@id": "x"}], 0, 0, 1, 2),
        ([], 0, 0, 0, 2),
    ],
    ids=["right", "order", "mixed", "less", "other", "type", "twice", "unasked", "nothing"],
)
def test_documents(
    found: list[dict[str, Any]], right: int, mixed: int, wrong: int, missing: int
) -> None:
    expected = {each["@id"]: leaves(each) for each in (WANTED, SECOND)}
    compared = compare_documents(expected, map(json.dumps, found))
    assert compared == Documents(2, right, mixed, wrong, missing)


@pytest.fixture
def reference(tmp_path: Path) -> Reference:
    data = """<urn:a> <urn:n> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
<urn:a> <urn:n> "2"^^<http://www.w3.org/2001/XMLSchema#integer> .
<urn:a> <urn:day> "2024-01-02"^^<http://www.w3.org/2001/XMLSchema#date> .
<urn:b> <urn:name> "007" .
"""
    assert len(list(ox.parse(data, ox.RdfFormat.N_TRIPLES))) == 4
    (tmp_path / "data.nt").write_text(data)
    return Reference(tmp_path / "data.nt")


QUERY = """CONSTRUCT { ?s <urn:n> ?n ; <urn:day> ?day ; <urn:name> ?name }
WHERE { { ?s <urn:n> ?n OPTIONAL { ?s <urn:day> ?day } } UNION { ?s <urn:name> ?name } }"""
NAMES = ("s", "n", "day", "name")


def test_a_document_has_all_solutions_of_its_entity(reference: Reference) -> None:
    frame = {"@context": {"@vocab": "urn:"}}
    found = expected_documents(reference, QUERY, "s", frame)
    day = {"@value": "2024-01-02", "@type": "http://www.w3.org/2001/XMLSchema#date"}
    assert found == {
        "urn:a": leaves({"@id": "urn:a", "n": [1, 2], "day": day}),
        "urn:b": leaves({"@id": "urn:b", "name": "007"}),
    }


DAY = datetime.date(2024, 1, 2)


@pytest.mark.parametrize(
    ("columns", "right", "typed"),
    [
        ({"n": pd.array([1, 2, None], "Int64"), "day": [DAY, DAY, None]}, 3, 4),
        ({"n": pd.array([1, 2, None], "Int64"), "day": pd.to_datetime([DAY, DAY, None])}, 3, 4),
        ({"n": [1.0, 2.0, None], "day": [DAY, DAY, None]}, 3, 3),
        ({"n": [1.0, 2.0, None], "day": ["2024-01-02", "2024-01-02", None]}, 3, 2),
        ({"n": [1, 3, 0], "day": [DAY, DAY, None]}, 1, 4),
        ({"n": [1.0, 2.0, None], "day": [DAY, DAY, None], "name": [None, None, 7]}, 2, 2),
    ],
    ids=["typed", "moments", "floats", "text", "values", "guessed"],
)
def test_rows(
    reference: Reference, tmp_path: Path, columns: dict[str, Any], right: int, typed: int
) -> None:
    expected = expected_rows(reference.solutions(QUERY), NAMES)
    frame = pd.DataFrame({"s": ["urn:a", "urn:a", "urn:b"], "name": [None, None, "007"]} | columns)
    frame.sample(frac=1, random_state=1).to_pickle(tmp_path / "frame")
    assert compare_rows(expected, NAMES, tmp_path / "frame") == Rows(3, right, typed, 4)
