"""Messages on Spark as arrays of structs, and as JSON documents: the same as elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from construct_messages import construct_messages as construct_anywhere
from construct_messages import to_json
from construct_messages.errors import UsageError
from construct_messages.logs.json.options import JsonOptions
from construct_messages.spark import Messages, construct_messages, load_quads
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

DATA = ROOT / "queries" / "data" / "companies.ttl"
QUERY = (ROOT / "queries" / "country-documents.rq").read_text(encoding="utf-8")
FRAME = json.loads((ROOT / "queries" / "country-documents.json").read_bytes())


@pytest.fixture
def messages(quick: SparkSession) -> Messages:
    return construct_messages(QUERY, load_quads(quick, str(DATA)), group_by="?country")


def test_structs_are_those_of_the_nested_layout(messages: Messages) -> None:
    for raw in (False, True):
        found = [row["quads"] for row in messages.quads(raw=raw).toArrow().to_pylist()]
        expected = construct_anywhere(QUERY, DATA, group_by="?country").to_arrow(
            layout="nested", raw=raw
        )
        rows = [row["quads"] for row in expected.read_all().to_pylist()]
        assert sorted(sorted(map(str, quads)) for quads in found) == sorted(
            sorted(map(str, quads)) for quads in rows
        )


def test_an_empty_message_is_an_empty_array(quick: SparkSession) -> None:
    quads = quick.createDataFrame(
        [("<urn:a>", "<urn:p>", '"o"')], ["subject", "predicate", "object"]
    )
    empty = construct_messages("CONSTRUCT { ?o <urn:p> ?s } WHERE { ?s ?p ?o }", quads)
    assert empty.quads().collect()[0].quads == []
    assert empty.documents().collect()[0].document == "{}"


def test_documents_are_those_of_other_sources(messages: Messages) -> None:
    found = [json.loads(row.document) for row in messages.documents(FRAME).collect()]
    expected = [
        to_json(message, FRAME) for message in construct_anywhere(QUERY, DATA, group_by="?country")
    ]
    assert sorted(map(str, found)) == sorted(map(str, expected))
    schema = "uri STRING, name STRING, companies ARRAY<STRUCT<uri: STRING, name: STRING>>"
    structs = messages.documents(FRAME).select(F.from_json("document", schema).alias("country"))
    companies = structs.selectExpr("country.name", "size(country.companies) AS n").collect()
    assert {row.name: row.n for row in companies} == {"Belgium": 2, "Japan": 2, "Portugal": 0}


def test_documents_without_a_frame_have_one_form(messages: Messages, tmp_path: Path) -> None:
    """What may have several values is an array in each, as in a log of documents."""
    found = [row.document for row in messages.documents().collect()]
    log = tmp_path / "countries.json"
    options = JsonOptions(array=False)
    construct_anywhere(QUERY, DATA, group_by="?country").write(log, "json", options=options)
    assert sorted(found) == sorted(log.read_text(encoding="utf-8").splitlines())


def test_a_frame_without_a_meaning_is_refused_at_once(messages: Messages) -> None:
    with pytest.raises(UsageError, match="the frame has a context"):
        messages.documents({"@context": {}}, context={})
