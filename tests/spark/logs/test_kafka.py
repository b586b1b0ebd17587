"""Topics of Kafka by Spark's own connector: records become messages, and messages become records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyoxigraph as ox
import pytest

from construct_messages import Message
from tests.support.docs import BLOCKS
from tests.support.engines.kafka import Kafka
from tests.support.engines.kafka_records import Raw, consume, produce
from tests.support.logs.kinds import isomorphic
from tests.support.places import absent
from tests.support.spark.sessions import NO_CONNECTOR, connectors
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.process, pytest.mark.slow]

TYPE = "RDF-Message-Content-Type"
RECORDS = [
    Raw(b"@prefix : <urn:> . :a :p 1, [ :q 2 ] .", [(TYPE, b"text/turtle")]),
    Raw(None, [(TYPE, b"text/turtle")]),  # a tombstone
    Raw(b"<urn:b> <urn:p> _:b .\n_:b <urn:p> \"\\u00e9\"@FR .\n", [("content-type", b"application/n-quads")]),
    Raw(b"", [(TYPE, b"application/n-triples")]),
    Raw(b'{"@id": "urn:c", "urn:p": [true, {"@id": "_:b"}]}', [("x", b""), ("Content-Type", b"application/ld+json")]),
    Raw(
        b"# @message\n<urn:d> <urn:p> _:b .\n# @message\n<urn:e> <urn:p> _:b .\n",
        [(TYPE, b"application/n-quads; messages=rdfm")],
    ),
]  # fmt: skip
EXPECTED = [
    "<urn:a> <urn:p> 1, _:x . _:x <urn:q> 2 .",
    '<urn:b> <urn:p> _:x . _:x <urn:p> "\u00e9"@fr .',
    "",
    "<urn:c> <urn:p> true, _:x .",
    "<urn:d> <urn:p> _:x .",
    "<urn:e> <urn:p> _:x .",
]


def read(text: str | bytes) -> Message:
    return Message.from_pyoxigraph(ox.parse(text, ox.RdfFormat.TURTLE))


def test_the_guide(
    spark: SparkSession, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records of other programs come out as Turtle, each message as a record."""
    import construct_messages.spark

    if not connectors():
        absent(NO_CONNECTOR)
    (program,) = (
        block.text
        for block in BLOCKS
        if block.page == "docs/guides/spark-streams.md" and "to_rdfm" in block.text
    )
    monkeypatch.setattr(construct_messages.spark, "local_session", lambda _: spark, raising=False)
    source, target = kafka.topic(), kafka.topic()
    checkpoint = tmp_path / "checkpoint"
    for name, own in {
        "localhost:9092": kafka.address,
        "readings": source,
        "turtle": target,
        "turtle-checkpoint": str(checkpoint),
    }.items():
        assert program.count(f'"{name}"') == 1
        program = program.replace(f'"{name}"', repr(own))
    exec(program, {})
    (query,) = spark.streams.active
    try:
        # the query reads what comes after it has begun
        wait_until(lambda: bool([*checkpoint.glob("sources/0/0")]) or not query.isActive)
        produce(kafka, source, RECORDS)
        query.processAllAvailable()
    finally:
        query.stop()
    found = consume(kafka, target)
    assert isomorphic([read(each.value or b"") for each in found], [*map(read, EXPECTED)])
    assert {tuple(each.headers) for each in found} == {
        ((TYPE, b"text/turtle"), ("content-type", b"text/turtle"))
    }
