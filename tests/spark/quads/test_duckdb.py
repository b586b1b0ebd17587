"""One table of quads, two engines: each reads the tables of the other, adds files to them and replaces files."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import pyoxigraph as ox
import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyspark")

from construct_messages import construct_messages
from construct_messages.errors import QuadsError, UsageError
from construct_messages.rdf.terms import from_pyoxigraph
from construct_messages.spark import construct_messages as on_spark
from construct_messages.spark.quads.loading import (
    append_quads,
    load_quads,
    read_quads,
    write_quads,
)
from construct_messages.sparql.relational import quads
from construct_messages.sparql.relational.quads import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

LINES = '<urn:a> <urn:p> "x"@en .\n<urn:a> <urn:q> _:b .\n<urn:b> <urn:p> "1.50" .\n'
ALL = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"


def test_tables_are_exchanged(quick: SparkSession, tmp_path: Path) -> None:
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


def triples_in(*sources: Path) -> list[str]:
    """The different triples of files, as pyoxigraph reads them."""
    found = set()
    for source in sources:
        data = source.read_bytes()
        data = gzip.decompress(data) if source.suffix == ".gz" else data
        name = source.name.removesuffix(".gz")
        for quad in ox.parse(data, ox.RdfFormat.from_extension(name.rpartition(".")[2])):
            terms = (quad.subject, quad.predicate, quad.object)
            found.add(f"{' '.join(map(from_pyoxigraph, terms))} .\n")
    return sorted(found)


def check(spark: SparkSession, table: Path, *sources: Path) -> None:
    """Each engine finds each triple once, and the folder has no Parquet that is not of the table."""
    by_duckdb = [message.lines.decode() for message in construct_messages(ALL, table)]
    messages = on_spark(ALL, read_quads(spark, table))
    by_spark = [f"{row.message}\n" for row in messages.frame.collect()]
    assert sorted(by_duckdb) == sorted(by_spark) == triples_in(*sources)
    assert set(table.rglob("*.parquet")) == set(quads.read_quads(table).files)


def test_each_engine_replaces_files_of_the_other(quick: SparkSession, tmp_path: Path) -> None:
    one, two, three, four = (
        tmp_path / name for name in ("é (1)%20.nt", "b.nt", "c.ttl", "d.nq.gz")
    )
    table = tmp_path / "a table [1]"
    one.write_text("<urn:a> <urn:p> <urn:both> .\n<urn:a> <urn:p> <urn:1> .\n" * 2)
    two.write_text("<urn:a> <urn:p> <urn:both> .\n<urn:b> <urn:q> <urn:2> .\n")
    load([one, two], table)
    check(quick, table, one, two)
    first = set(table.rglob("*.parquet"))

    one.write_text("<urn:a> <urn:p> <urn:both> .\n<urn:a> <urn:p> <urn:changed> .\n")
    three.write_text("PREFIX : <urn:> :c :p :both, 'x'@EN ; :r 01 .")
    four.write_bytes(gzip.compress(b"<urn:d> <urn:s> <urn:4> .\n"))
    written = append_quads(quick, [one, three, four], table)
    check(quick, table, one, two, three, four)
    assert (written.rows, written.distinct) == (8, False)
    assert read_quads(quick, table).statistics == written == quads.read_quads(table).statistics
    assert quads.read_quads(table).repeated == {"<urn:p>"} == read_quads(quick, table).repeated
    kept = first & set(table.rglob("*.parquet"))
    assert len(kept) == 1, "the other file stays as it is"

    three.write_text("PREFIX : <urn:> :c :p :again .")
    four.write_bytes(gzip.compress(b""))
    load([two, three, four], table)
    check(quick, table, one, two, three, four)
    assert len(list(table.glob("_construct_messages.json/part-*"))) == 2
    append_quads(quick, [one, two, three, four], table)
    check(quick, table, one, two, three, four)
    assert len(list(table.glob("_construct_messages.json/part-*"))) == 1


def test_files_are_added_to_a_table_that_was_written_as_a_whole(
    quick: SparkSession, tmp_path: Path
) -> None:
    one, two, three = (tmp_path / f"{name}.nt" for name in "abc")
    for number, source in enumerate((one, two, three)):
        source.write_text(f"<urn:a> <urn:p> <urn:{number}> .\n")
    table = tmp_path / "table"
    write_quads(load_quads(quick, one), table)
    append_quads(quick, two, table)
    load([three], table)
    check(quick, table, one, two, three)
    write_quads(load_quads(quick, three), table, overwrite=True)
    check(quick, table, three)


def test_what_failed_or_was_killed_changes_nothing(quick: SparkSession, tmp_path: Path) -> None:
    source, table = tmp_path / "a.nt", tmp_path / "table"
    source.write_text("<urn:a> <urn:p> .\n")
    with pytest.raises(QuadsError, match="malformed line"):
        append_quads(quick, source, table)
    with pytest.raises(QuadsError, match="not a complete table"):
        read_quads(quick, table)
    source.write_text(LINES.replace("_:b", "<urn:b>"))
    append_quads(quick, source, table)
    left = table / "20260101T000000000000Z-12ab" / "source=7"
    left.mkdir(parents=True)
    (left / "part-0.parquet").write_bytes(next(table.rglob("*.parquet")).read_bytes())
    assert read_quads(quick, table).frame.count() == 3
    (tmp_path / "b.nt").write_text("<urn:a> <urn:p> .\n")
    with pytest.raises(QuadsError):
        append_quads(quick, [source, tmp_path / "b.nt"], table)
    assert read_quads(quick, table).frame.count() == 3
    write_quads(load_quads(quick, source), table, overwrite=True)
    check(quick, table, source)
    (table / "mine.parquet").write_bytes(b"")
    with pytest.raises(QuadsError, match="other files"):
        read_quads(quick, table)
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "mine.txt").touch()
    with pytest.raises(UsageError, match=r"no earlier run has recorded: mine\.txt"):
        append_quads(quick, source, tmp_path / "others")
