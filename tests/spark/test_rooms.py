"""A handful of cases that touch every room of Spark in one session: what `pytest` asks Spark without `--slow`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from construct_messages import construct_messages, read_log
from construct_messages.options import Grouping
from construct_messages.spark import construct_messages as construct_on_spark
from construct_messages.spark import load_quads, read_quads, write_quads
from construct_messages.spark.logs import register
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATA = ROOT / "queries" / "data" / "companies.ttl"


@pytest.fixture(scope="module")
def table(quick: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The sample data as a table of quads."""
    place = str(tmp_path_factory.mktemp("quads") / "companies.quads")
    write_quads(load_quads(quick, [str(DATA)]), place)
    return place


@pytest.mark.parametrize("name", ["companies", "companies-by-country"])
def test_messages_are_those_of_the_embedded_path(
    quick: SparkSession, table: str, tmp_path: Path, name: str
) -> None:
    query = (ROOT / "queries" / f"{name}.rq").read_text(encoding="utf-8")
    group_by = Grouping("?country", order="sorted") if "by-country" in name else ()
    log = tmp_path / "log.nq"
    construct_on_spark(query, read_quads(quick, table), group_by=group_by).write_file(log)
    expected = list(construct_messages(query, str(DATA), group_by=group_by))
    found = list(read_log(log))
    assert len(found) == len(expected) > 1
    assert all(one.isomorphic(other) for one, other in zip(found, expected, strict=True))


@pytest.mark.slow
def test_a_log_is_a_table(quick: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "log.nt"
    log.write_text(
        '# @message\n<urn:a> <urn:p> <urn:b> .\n# @message\n# @message\n<urn:c> <urn:p> "x" .\n'
    )
    register(quick)
    assert quick.read.format("rdfm").load(str(log)).count() == 3
