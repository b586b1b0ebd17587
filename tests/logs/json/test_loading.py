"""Programs that load JSON documents read what was written: jq, DuckDB, Polars."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest

from construct_messages import GrowingLog, construct_messages, to_json
from construct_messages.errors import UsageError
from construct_messages.options import JsonOptions
from tests.support.places import ROOT, absent

QUERIES = ROOT / "queries"
FRAME = json.loads((QUERIES / "country-documents.json").read_text())


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    return [to_json(message, FRAME) for message in messages()]


def messages() -> Any:
    query = (QUERIES / "country-documents.rq").read_text(encoding="utf-8")
    return construct_messages(query, QUERIES / "data" / "companies.ttl", group_by="?country")


@pytest.fixture(scope="module", params=["lines", "array"])
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("documents") / "countries.json"
    options = JsonOptions(frame=FRAME, array=request.param == "array")
    assert messages().write(path, options=options) == 3
    return path


def test_jq(file: Path, documents: list[dict[str, Any]]) -> None:
    if shutil.which("jq") is None:
        absent("jq is not installed")
    slurped = subprocess.run(
        ["jq", "--slurp", "--compact-output", "flatten", file], capture_output=True, check=True
    )
    assert json.loads(slurped.stdout) == documents


def test_duckdb(file: Path, documents: list[dict[str, Any]]) -> None:
    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.sql(f"SELECT * FROM read_json('{file}') ORDER BY uri")
    assert [dict(zip(rows.columns, row, strict=True)) for row in rows.fetchall()] == documents


def test_polars(file: Path, documents: list[dict[str, Any]]) -> None:
    polars = pytest.importorskip("polars")
    read = polars.read_json if file.read_text().startswith("[") else polars.read_ndjson
    assert read(file).to_dicts() == documents


def test_numbers_are_numbers_to_loaders(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    store = ox.Store()
    data = "<urn:a> :i 1; :d 2.50; :b true . <urn:b> :i -2; :d 3.0; :b false ."
    store.load(f"PREFIX : <urn:x:> {data}", format=ox.RdfFormat.TURTLE)
    triples = "?s :i ?i ; :d ?d ; :b ?b"
    query = f"PREFIX : <urn:x:> CONSTRUCT {{ {triples} }} WHERE {{ {triples} }}"
    construct_messages(query, store).write(tmp_path / "n.json")
    schema = polars.read_ndjson(tmp_path / "n.json").schema
    assert schema == {
        "id": polars.String,
        "i": polars.Int64,
        "d": polars.Float64,
        "b": polars.Boolean,
    }


def test_documents_are_appended_a_line_each(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "log.json")
    for _ in range(2):
        log.append(messages())
    assert len((tmp_path / "log.json").read_text().splitlines()) == 6
    with pytest.raises(UsageError, match="an array has an end"):
        GrowingLog(tmp_path / "array.json", options=JsonOptions(array=True))
