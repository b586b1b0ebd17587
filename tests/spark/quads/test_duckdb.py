"""One table of quads, two engines: DuckDB reads a table that Spark has written, and Spark one that DuckDB has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("duckdb")

from construct_messages import construct_messages
from construct_messages.sparql.relational.quads import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

LINES = '<urn:a> <urn:p> "x"@en .\n<urn:a> <urn:q> _:b .\n<urn:b> <urn:p> "1.50" .\n'


def test_tables_are_exchanged(quick: SparkSession, tmp_path: Path) -> None:
    from construct_messages.spark.quads.loading import load_quads, read_quads, write_quads

    source = tmp_path / "a.nt"
    source.write_text(LINES)
    load([source], tmp_path / "ours")
    table = read_quads(quick, tmp_path / "ours")
    written = write_quads(load_quads(quick, source), tmp_path / "theirs")
    assert (table.statistics.rows, table.statistics.distinct) == (written.rows, True) == (3, True)
    assert set(table.frame.collect()) == set(load_quads(quick, source).collect())
    query = "CONSTRUCT WHERE { ?s <urn:p> ?o }"
    messages = {message.lines for message in construct_messages(query, tmp_path / "theirs")}
    assert messages == {b'<urn:a> <urn:p> "x"@en .\n', b'<urn:b> <urn:p> "1.50" .\n'}
