"""A Jelly log of no messages: a frame of the options twice, whoever writes it, and for every reader."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyoxigraph as ox
import pytest
from pyjelly import jelly

from construct_messages import (
    Message,
    Quad,
    awrite_log,
    construct_messages,
    iri,
    read_log,
    write_log,
)
from construct_messages.options import JellyOptions
from construct_messages.spark.logs.options import WriteOptions
from construct_messages.spark.logs.sinks import LogJob
from tests.support.commands import run
from tests.support.http.streams import serving_streams
from tests.support.logs import rdfjs_jelly
from tests.support.logs.cases.jelly import (
    GRAPHS,
    QUADS,
    SIZES,
    TRIPLES,
    options_row,
    read,
    read_on,
    write,
)
from tests.support.logs.pyjelly import read_by_peer

ONE: Final = Message([Quad(iri("urn:s"), iri("urn:p"), iri("urn:o"))])
QUERY: Final = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"


def frames(data: bytes) -> list[list[str]]:
    """The kinds of the rows of each frame, by the classes that protoc makes of rdf.proto."""
    return [[row.WhichOneof("row") for row in frame.rows] for frame in rdfjs_jelly.frames(data)]


@SIZES
@pytest.mark.parametrize(
    "options", [TRIPLES, QUADS, GRAPHS], ids=lambda options: options.physical_type.name
)
@pytest.mark.parametrize("delimited", [True, False])
def test_no_message_is_read(options: JellyOptions, delimited: bool, size: int) -> None:
    options = replace(options, delimited=delimited)
    data = write([], options)
    assert frames(data) == [["options", "options"]]
    assert read_on(data, size) == ([], None)
    reader = read_log(data)
    assert list(reader) == []
    assert reader.options == options


def test_other_readers_take_it() -> None:
    """pyjelly takes no bytes for a corrupted stream; to it and to rdfjs-jelly, each frame is a graph."""
    data = write([], JellyOptions())  # rdfjs-jelly takes no streams that allow triple terms
    assert [len(each) for each in read_by_peer(data)] == [0]
    assert [len(each) for each in rdfjs_jelly.read(data)] == [0]


@SIZES
def test_joined_logs(size: int) -> None:
    """The messages of each, wherever those without stand."""
    some = write([Message(), ONE, Message()])
    for logs in (
        [b"", some],
        [some, b""],
        [some, b"", some],
        [b"", b"", some, b"", b"", some, b""],
    ):
        joined = b"".join(log or write([]) for log in logs)
        assert list(read(joined, size)) == [Message(), ONE, Message()] * sum(map(bool, logs))


@SIZES
def test_frames_that_are_messages(size: int) -> None:
    """Options once are an empty message, as rdfjs-jelly writes a first one, and so is a frame of nothing."""
    once = write([Message()])
    assert frames(once) == [["options"]]
    assert list(read(once, size)) == [Message()]
    assert list(read(b"\0" + write([ONE]), size)) == [Message(), ONE]
    thrice = jelly.RdfStreamFrame(rows=[options_row(QUADS)] * 3)
    assert list(read(bytes([thrice.ByteSize()]) + thrice.SerializeToString(), size)) == [Message()]


def test_numbers_of_errors_do_not_count_it() -> None:
    _, error = read_on(write([]) + write([ONE]) + b"\x03\x0a\x01\x99")
    assert error is not None
    assert getattr(error, "number", None) == 2


# --- who writes logs ---


def by_write_log(folder: Path) -> bytes:
    assert write_log([], folder / "log.jelly") == 0
    return (folder / "log.jelly").read_bytes()


def by_awrite_log(_: Path) -> bytes:
    file = io.BytesIO()
    assert asyncio.run(awrite_log([], file, "jelly")) == 0
    return file.getvalue()


def by_a_query(_: Path) -> bytes:
    return b"".join(construct_messages(QUERY, ox.Store()).serialize("jelly"))


def by_a_query_to_a_file(folder: Path) -> bytes:
    construct_messages(QUERY, ox.Store()).write(folder / "log.jelly")
    return (folder / "log.jelly").read_bytes()


def by_run(folder: Path) -> bytes:
    (folder / "none.ttl").write_bytes(b"")
    (folder / "query.rq").write_text(QUERY)
    done = run("run", "query.rq", "--source", "none.ttl", "--output", "log.jelly", cwd=folder)
    assert (done.status, done.log) == (0, "")
    return (folder / "log.jelly").read_bytes()


def by_convert(folder: Path) -> bytes:
    (folder / "none.nq").write_bytes(b"")
    assert run("convert", "none.nq", "log.jelly", cwd=folder) == (0, "", "")
    assert run("cat", "log.jelly", "log.jelly", "--output", "both.jelly", cwd=folder) == (0, "", "")
    return (folder / "both.jelly").read_bytes()


def by_a_server(folder: Path) -> bytes:
    async def asked() -> bytes:
        async with serving_streams(folder / "streams.db") as server:
            await server.ask("PUT", "/streams/a")
            answer = await server.ask(
                "GET", "/streams/a/output?last=10", Accept="application/x-jelly-rdf"
            )
            assert answer.status == 200
            return answer.body

    return asyncio.run(asked())


def spark_job(folder: Path, *, single: bool) -> LogJob:
    options = {"path": str(folder / ("log.jelly" if single else "logs")), "format": "jelly"}
    return LogJob.begin(
        WriteOptions.of(options | ({"single": "true"} if single else {})), overwrite=False
    )


def by_spark(folder: Path) -> bytes:
    job = spark_job(folder, single=False)
    assert (
        job.write_part([pa.record_batch({"message": pa.array([], pa.string())})], 0, 0).log is None
    )
    job.commit([])
    (log,) = (folder / "logs").glob("*/*.jelly")
    return log.read_bytes()


def by_spark_as_one(folder: Path) -> bytes:
    spark_job(folder, single=True).commit([])
    return (folder / "log.jelly").read_bytes()


@pytest.mark.parametrize(
    "written",
    [
        by_write_log,
        by_awrite_log,
        by_a_query,
        by_a_query_to_a_file,
        by_run,
        by_convert,
        by_a_server,
        by_spark,
        by_spark_as_one,
    ],
)
def test_every_path_writes_it(written: Callable[[Path], bytes], tmp_path: Path) -> None:
    data = written(tmp_path)
    assert frames(data) == [["options", "options"]]
    assert list(read_log(data)) == []


def test_a_single_log_of_spark_begins_with_its_first_message(tmp_path: Path) -> None:
    """No reader finds an empty graph before it."""
    job = spark_job(tmp_path, single=True)
    part = job.write_part(
        [pa.record_batch({"message": pa.array(["<urn:s> <urn:p> <urn:o> ."])})], 0, 0
    )
    job.commit([part])
    assert read_by_peer((tmp_path / "log.jelly").read_bytes()) == [ONE]
