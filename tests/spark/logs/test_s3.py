"""Logs on S3, by the settings that a session has for Hadoop: pyarrow, which writes them, has no credentials of its own.

The server is moto's, which is asked over HTTP as Amazon's is, and by its own client.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

import boto3
import pyarrow as pa
import pytest
from moto.server import ThreadedMotoServer

from construct_messages import read_log
from construct_messages.spark.construct import construct_messages
from construct_messages.spark.logs import register
from construct_messages.spark.logs.files import place_of, s3_settings, s3_settings_of
from construct_messages.spark.logs.options import WriteOptions
from construct_messages.spark.logs.runs import RunFolder, logs_at
from construct_messages.spark.logs.sinks import FolderWriter, LogJob, Written
from tests.support.spark.flows import as_task
from tests.support.spark.sessions import activate, new_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

QUERY = "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o } ORDER BY ?s"
KEYS = {"aws_access_key_id": "the-key", "aws_secret_access_key": "the-secret"}


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def settings_of(endpoint: str) -> dict[str, str]:
    return {
        "access.key": "the-key",
        "secret.key": "the-secret",
        "endpoint": endpoint,
        "endpoint.region": "us-east-1",
        "path.style.access": "true",
    }


@pytest.fixture
def session(spark: SparkSession, endpoint: str) -> Iterator[SparkSession]:
    """A session with settings for S3."""
    settings = settings_of(endpoint)
    made = new_session(spark, {f"spark.hadoop.fs.s3a.{name}": settings[name] for name in settings})
    activate(made)
    yield made
    activate(spark)


@pytest.mark.parametrize("format", ["trig", "jelly"])
def test_logs_of_other_formats(session: SparkSession, endpoint: str, format: str) -> None:
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **KEYS)
    client.create_bucket(Bucket="bucket")
    rows = [(f"<urn:s{number}>", "<urn:p>", f'"{number}"') for number in range(9)]
    quads = session.createDataFrame(rows, ["subject", "predicate", "object"])
    messages = construct_messages(QUERY, quads)
    assert messages.write(f"s3a://bucket/{format}", format).message_count == 9

    keys = [
        each["Key"] for each in client.list_objects_v2(Bucket="bucket", Prefix=format)["Contents"]
    ]
    logs = sorted(key for key in keys if key.endswith((".trig", ".jelly")))
    bodies = [client.get_object(Bucket="bucket", Key=key)["Body"].read() for key in logs]
    found = [
        str(quad.object)
        for body in bodies
        for message in read_log(body, format)
        for quad in message
    ]
    assert found == [f'"{number}"' for number in range(9)]

    register(session)
    read = (
        session.read.format("rdfm")
        .load(f"s3a://bucket/{format}")
        .orderBy("file", "ordinal")
        .collect()
    )
    assert [row.message for row in read] == [f'<urn:s{n}> <urn:q> "{n}" .' for n in range(9)]
    asked = session.read.format("rdfm").option("fs.s3a.endpoint", "http://127.0.0.1:9")
    with pytest.raises(Exception, match=r"127\.0\.0\.1:9|onnect"):
        asked.load(f"s3a://bucket/{format}").collect()


def test_settings_of_a_bucket(session: SparkSession, endpoint: str) -> None:
    own = {"fs.s3a.bucket.mine.access.key": "another", "fs.s3a.bucket.mine.endpoint": "localhost:9"}
    settings = s3_settings_of(dict(s3_settings(session)), own)
    files = {name: place_of(f"s3a://{name}/a", settings).files for name in ("mine", "yours")}
    for name, expected in (("mine", ("another", "localhost:9")), ("yours", ("the-key", endpoint))):
        state = files[name].__reduce__()[1][0]
        assert (state["access_key"], state["endpoint_override"]) == (
            expected[0],
            expected[1].removeprefix("http://"),
        )


def test_runs(endpoint: str) -> None:
    """The same as on a local disk, without Spark: one job after another, at once, and one that is left over."""
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **KEYS)
    client.create_bucket(Bucket="runs")
    given = {f"fs.s3a.{name}": value for name, value in settings_of(endpoint).items()}
    s3 = s3_settings_of({}, given)
    folder = place_of("s3a://runs/logs", s3)

    def begin(**options: str) -> LogJob:
        written = WriteOptions.of({"path": "s3a://runs/logs", **given, **options})
        return LogJob.begin(written, overwrite=False)

    def part(job: LogJob, number: int) -> Written:
        text = f"<urn:s{number}> <urn:p> <urn:o> ."
        return job.write_part([pa.record_batch({"message": [text]})], number, number)

    def keys() -> set[str]:
        listed = client.list_objects_v2(Bucket="runs").get("Contents", ())
        return {each["Key"] for each in listed if not each["Key"].endswith("/")}

    def runs() -> list[str]:
        found = [record.run for record in RunFolder.of(folder).runs]
        assert {PurePath(file.uri).parent.name for file in logs_at(folder.uri, s3)} == {*found}
        return found

    first = begin()
    written = part(first, 0).log
    assert written is not None
    assert written.name == "part-00000-0.nq"
    first.commit([part(first, 1)])
    assert runs() == [first.run.id]
    assert len(keys()) == 3, "the log, the record, and _SUCCESS"
    one, other = begin(), begin(format="trig")
    parts = part(one, 2), part(other, 3)
    assert runs() == [first.run.id], "what has no record is no part of the folder"
    other.commit([parts[1]])
    one.commit([parts[0]])
    assert sorted(runs()) == sorted([first.run.id, one.run.id, other.run.id])
    failed, stopped = begin(), begin()
    part(failed, 4)
    part(stopped, 5)
    failed.abort()
    assert len(runs()) == 3
    last = LogJob.begin(WriteOptions.of({"path": "s3a://runs/logs", **given}), overwrite=True)
    last.commit([part(last, 6)])
    assert runs() == [last.run.id]
    assert {key for key in keys() if stopped.run.id not in key} == {
        "logs/_SUCCESS",
        f"logs/{last.run.id}/_run.json",
        f"logs/{last.run.id}/part-00006-6.nq",
    }


def test_micro_batches(endpoint: str) -> None:
    """One that runs again after its commit is there once."""
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **KEYS)
    client.create_bucket(Bucket="flows")
    given = {f"fs.s3a.{name}": value for name, value in settings_of(endpoint).items()}
    identity = {"path": "s3a://flows/logs", "queryid": "q", "batchid": "3"}
    writer = FolderWriter.of(WriteOptions.of({**identity, **given}))
    text = "<urn:s> <urn:p> <urn:o> ."
    for rows in ([[text], [], [text, text]], [[text] * 3]):
        tasks = [as_task(writer, number, own) for number, own in enumerate(rows)]
        as_task(writer, 0, [text])  # of a task that was lost
        writer.commit(tasks)
        writer.commit(tasks)
        listed = client.list_objects_v2(Bucket="flows")["Contents"]
        assert {each["Key"] for each in listed if not each["Key"].endswith("/")} == {
            "logs/000000003-00000-q.nq",
            "logs/000000003-00002-q.nq",
            "logs/_batches/q/000000003.json",
        }
    assert [file.size for file in logs_at("s3a://flows/logs", writer.options.s3)] == [37, 74]
    writer.remove(writer.logs("q", 3))
    assert writer.logs("q", 3) == []
