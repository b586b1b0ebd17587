"""Records of brokers as columns: bytes and headers to messages, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from construct_messages.errors import LogError, UnsupportedByFormat, UsageError
from construct_messages.logs import encoder_for
from construct_messages.logs.lines.decoder import to_messages, to_text
from construct_messages.rdf.formats import FORMATS, RDFM, content_type
from tests.support.logs.kinds import isomorphic
from tests.support.logs.seeds import PLAIN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

TRIPLE = "<urn:a> <urn:p> <urn:o> ."
NODES = "_:a <urn:p> _:b .\n_:b <urn:q> _:a ."


def row(value: bytes | None, media_type: str | None, name: str = "content-type") -> tuple[Any, ...]:
    headers = [("other", b"x")]
    if media_type is not None:
        headers.append((name, media_type.encode()))
    return value, headers


def test_each_format_there_and_back(spark: SparkSession) -> None:
    """One job for all formats: each message as a record of its own, and all of them as a log."""
    from construct_messages.spark import from_rdfm, to_rdfm

    texts = [*map(to_text, PLAIN), NODES, ""]
    messages = spark.createDataFrame(
        [(text, number) for number, text in enumerate(texts)], ["message", "number"]
    )
    formats = list(FORMATS)
    records = messages.select(
        "number",
        *(to_rdfm("message", format.document_type).alias(format.extension) for format in formats),
    )
    logs = []
    for format in formats:
        encoder = encoder_for(format, format.own or RDFM)
        body = b"".join(
            [encoder.start(), *map(encoder.encode, to_messages(texts)), encoder.finish()]
        )
        logs.append(row(body, content_type(format, format.own or RDFM), "RDF-Message-Content-Type"))
    read = records.select(
        "number",
        *(
            from_rdfm(f"{name}.value", f"{name}.headers", identity="number").alias(name)
            for name in (format.extension for format in formats)
        ),
    ).collect()
    whole = spark.createDataFrame(
        logs, "value BINARY, headers ARRAY<STRUCT<key STRING, value BINARY>>"
    )
    of_logs = whole.select(from_rdfm("value", "headers").alias("messages")).collect()
    for place, format in enumerate(formats):
        singles = [single for each in sorted(read) for single in each[format.extension]]
        for found in (singles, of_logs[place]["messages"]):
            assert len(found) == len(texts)
            assert isomorphic(to_messages(found), to_messages(texts)), format.name


def test_which_media_type_and_what_is_no_message(spark: SparkSession) -> None:
    from construct_messages.spark import from_rdfm

    rows = [
        row(TRIPLE.encode() + b"\n", "application/n-quads"),
        row(b"<urn:a> <urn:p> <urn:o> .", "text/turtle", "RDF-MESSAGE-content-type"),
        (
            TRIPLE.encode(),
            [("content-type", b"image/png"), ("RDF-Message-Content-Type", b"text/turtle")],
        ),
        row(b"", "application/n-quads"),
        row(None, "application/n-quads"),
        row(TRIPLE.encode(), None),
        row(b"<urn:a> <urn:p", "application/n-quads"),
        row(b"x", "image/png"),
        row(b"# @message\n", "application/n-quads; messages=rdfm"),
        (b"", None),
    ]
    records = spark.createDataFrame(
        rows, "value BINARY, headers ARRAY<STRUCT<key STRING, value BINARY>>"
    )
    column = from_rdfm("value", "headers", malformed="null")
    assert [each[0] for each in records.select(column).collect()] == [
        [TRIPLE], [TRIPLE], [TRIPLE], [""], None, None, None, None, [""], None,
    ]  # fmt: skip
    typed = from_rdfm("value", media_type="text/turtle", malformed="null")
    assert [each[0] for each in records.select(typed).collect()][5] == [TRIPLE]


def test_labels_of_records() -> None:
    """A label is a node of its record: the same each time that it is read, and another one in other records."""
    from construct_messages.spark.logs.records import _read

    def labels(value: str, identity: str) -> set[str]:
        ((text,),) = _read(
            [value.encode()], ["application/n-quads"], [identity], None, 1 << 20, True
        )  # type: ignore[misc]
        return {word for word in text.split() if word.startswith("_:")}

    assert labels(NODES, "t 0 1") == labels(NODES, "t 0 1")
    assert not labels(NODES, "t 0 1") & labels(NODES, "t 0 2")
    assert labels(NODES, "") == labels(NODES, "")
    assert not labels(NODES, "") & labels(f"{NODES}\n{TRIPLE}", "")


def test_errors_name_the_record(spark: SparkSession) -> None:
    from construct_messages.spark import from_rdfm, to_rdfm, translated

    rows = [("t", 0, 7, b"<urn:a> <urn:p")]
    records = spark.createDataFrame(rows, ["topic", "partition", "offset", "value"])
    column = from_rdfm(
        "value", media_type="application/n-quads", identity=["topic", "partition", "offset"]
    )
    with translated(), pytest.raises(Exception, match="in the record t 0 7: "):
        records.select(column).collect()
    messages = spark.createDataFrame([("<urn:s> <urn:p> <urn:o> <urn:g> .",)], ["message"])
    with pytest.raises(UnsupportedByFormat), translated():
        messages.select(to_rdfm("message", "text/turtle")).collect()
    with pytest.raises(LogError), translated():
        records.selectExpr("'no message' AS message").select(to_rdfm("message")).collect()


def test_arguments(spark: SparkSession) -> None:
    from construct_messages.spark import from_rdfm, to_rdfm

    assert spark
    with pytest.raises(UsageError, match="nothing names the media type"):
        from_rdfm("value")
    with pytest.raises(UsageError, match="image/png"):
        from_rdfm("value", media_type="image/png")
    with pytest.raises(UsageError, match="malformed='skip'"):
        from_rdfm("value", "headers", malformed="skip")
    with pytest.raises(UsageError, match="image/png"):
        to_rdfm("message", "image/png")
