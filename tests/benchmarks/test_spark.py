"""The benchmark of Spark: its data, and what it measures by."""

from __future__ import annotations

from pathlib import Path

import pyoxigraph as ox
import pytest

pytest.importorskip("pyspark")

from benchmarks.micro.spark import _contents
from benchmarks.micro.spark_data import QUERY, write_dump
from benchmarks.micro.spark_papers import QUERIES, write_papers
from construct_messages import construct_messages


def test_the_dump_is_rdf_of_the_size_asked_for_and_the_query_finds_some(tmp_path: Path) -> None:
    dump, again = tmp_path / "dump.nt", tmp_path / "again.nt"
    write_dump(dump, 20_000)
    write_dump(again, 20_000)
    assert dump.read_bytes() == again.read_bytes()
    store = ox.Store()
    store.load(path=str(dump))
    assert 20_000 <= len(store) <= 24_000
    sizes = [len(message) for message in construct_messages(QUERY, store)]
    assert len(sizes) > 400
    assert set(sizes) == {4, 5}


def test_papers_are_the_same_each_time_and_queries_find_some(tmp_path: Path) -> None:
    dump, again = tmp_path / "dump.nt", tmp_path / "again.nt"
    write_papers(dump, 10_000)
    write_papers(again, 10_000)
    assert dump.read_bytes() == again.read_bytes()
    store = ox.Store()
    store.load(path=str(dump))
    assert 8000 <= len(store) <= 12_000
    # those that compare all pairs take Oxigraph seconds
    quick = QUERIES.keys() - {"q5a", "q6"}
    assert {name for name in quick if not list(construct_messages(QUERIES[name], store))} == {
        "q3c",
        "q12c",
    }


def test_logs_are_counted_in_files_and_folders(tmp_path: Path) -> None:
    log = "# @message\n<urn:s> <urn:p> <urn:o> .\n# @message\n"
    (tmp_path / "log.nq").write_text(log)
    (tmp_path / "folder").mkdir()
    for part in ("part-00000.txt", "part-00001.txt", "_SUCCESS"):
        (tmp_path / "folder" / part).write_text(log)
    assert _contents(tmp_path / "log.nq") == (2, 1)
    assert _contents(tmp_path / "folder") == (4, 2)
