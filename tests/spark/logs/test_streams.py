"""Structured Streaming from folders and from streams of a server, and into both."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from construct_messages import Message
from construct_messages.errors import CannotWrite, LogError, SourceError, UsageError
from construct_messages.logs.lines.decoder import to_messages
from construct_messages.rdf.wire import Header
from tests.support.http.feeds import handling
from tests.support.http.streams import StreamsServer
from tests.support.spark.flows import (
    appear,
    as_task,
    elements,
    ended,
    publish,
    quad,
    server,
    stream,
    texts,
    write,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rdfm(spark: SparkSession) -> SparkSession:
    """The session, which knows logs."""
    from construct_messages.spark import register

    register(spark)
    return spark


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamsServer]:
    with server(tmp_path_factory.mktemp("streams") / "streams.db") as served:
        yield served


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def in_memory(frame: DataFrame, name: str) -> StreamingQuery:
    """Starts a query whose rows become a table."""
    return frame.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()


# --- folders ----------------------------------------------------------------------------------------------------------


def test_each_file_is_read_once_however_late_it_comes(
    rdfm: SparkSession, folder: Path, tmp_path: Path
) -> None:
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    for name in ("m", "n", "o"):
        appear(folder / f"{name}.nq", quad(f"{name}1"), "", quad(f"{name}2"))
    frame = stream(rdfm, folder, maxFilesPerTrigger=2)
    assert write(frame, out, checkpoint) == [(0, 6), (1, 3)]
    # earlier by name and by time, as if it had been copied
    appear(folder / "a.nq", quad("a"))
    os.utime(folder / "a.nq", ns=(1, 1))
    (folder / "m.nq").unlink()  # was read
    assert write(frame, out, checkpoint) == [(2, 1)]
    assert write(frame, out, checkpoint) == []
    whole = [*(quad(f"{name}{n}") for name in "mno" for n in (1, 2)), "", "", "", quad("a")]
    assert texts(out) == sorted(whole)
    offset = json.loads((checkpoint / "offsets" / "2").read_text().splitlines()[-1])
    assert {uri.rpartition("/")[2] for uri in offset["files"]} == {"a.nq", "n.nq", "o.nq"}


def test_a_stream_of_a_folder_has_the_rows_of_its_table(rdfm: SparkSession, folder: Path) -> None:
    (folder / "a.trig").write_text("# @message\n<urn:g> { _:b <urn:p> 1 }\n# @message\n")
    appear(folder / "b.nq", *(quad(str(number)) for number in range(50)))
    options = {"maxPartitionBytes": 300, "maxBytesPerTrigger": 1}
    assert len(ended(partial(in_memory, stream(rdfm, folder, **options), "rows"))) == 2
    table = rdfm.read.format("rdfm").option("maxPartitionBytes", 300).load(str(folder))
    assert sorted(rdfm.table("rows").collect()) == sorted(table.collect())


def test_a_file_that_changes_ends_the_query(
    rdfm: SparkSession, folder: Path, tmp_path: Path
) -> None:
    (folder / "a.nq").write_text(f"# @message\n{quad('a')}\n")
    frame = stream(rdfm, str(folder))
    write(frame, tmp_path / "out", tmp_path / "checkpoint")
    (folder / "a.nq").write_text(f"# @message\n{quad('a')}\n# @message\n")
    with pytest.raises(
        SourceError, match=r"a\.nq has changed since it was listed: it had 37 bytes"
    ):
        write(frame, tmp_path / "out", tmp_path / "checkpoint")
    assert texts(tmp_path / "out") == [quad("a")]


def test_a_file_is_read_as_it_was_listed(folder: Path) -> None:
    from construct_messages.spark.logs.options import FolderStreamOptions
    from construct_messages.spark.logs.streams import FolderStreamReader

    appear(folder / "a.nq", quad("a"))
    appear(folder / "b.nq", quad("b"))
    reader = FolderStreamReader(FolderStreamOptions.of({"path": str(folder)}))
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    (partition,) = reader.partitions(start, end)
    assert reader.partitions(end, end) == []
    batches = reader.read(partition)
    assert next(batches).column("message").to_pylist() == [quad("a")]
    with (folder / "a.nq").open("a") as file:
        file.write("# @message\n")
    with pytest.raises(SourceError, match=r"a\.nq has changed"):
        next(batches)
    (folder / "b.nq").unlink()
    with pytest.raises(SourceError, match=r"a\.nq has changed"):
        list(reader.read(partition))


def test_files_that_are_not_there_yet(folder: Path) -> None:
    from construct_messages.spark.logs.options import FolderStreamOptions
    from construct_messages.spark.logs.streams import FolderStreamReader

    def found(path: str) -> list[str]:
        reader = FolderStreamReader(FolderStreamOptions.of({"path": path}))
        start = reader.initialOffset()
        return [*reader.latestOffset(start, reader.getDefaultReadLimit())["files"]]

    assert found(str(folder)) == found(f"{folder}/*.nq") == found(f"{folder}/*/*.nq") == []
    (folder / "below").mkdir()
    appear(folder / "below" / "a.nq", quad("a"))
    assert found(str(folder)) == found(f"{folder}/*/*.nq") == [f"file://{folder}/below/a.nq"]
    run = folder / "20261124T063555512825Z-20d3"  # of a job that has not ended
    run.mkdir()
    appear(run / "part-00000.nq", quad("b"))
    assert found(str(folder)) == [f"file://{folder}/below/a.nq"]
    with pytest.raises(UsageError, match="there are no files at"):
        found(f"{folder}/missing")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"maxFilesPerTrigger": "0"}, "max_files_per_trigger=0"),
        ({"maxFilesPerTrigger": "many"}, "maxFilesPerTrigger=many is not a whole number"),
        ({"maxOffsetsPerTrigger": "5"}, "unknown option maxoffsetspertrigger"),
        ({"messages": "unknown"}, "unknown"),
    ],
    ids=str,
)
def test_options_of_folders(options: dict[str, str], words: str, folder: Path) -> None:
    from construct_messages.spark.logs.data_source import LogSource

    lower = {name.lower(): value for name, value in options.items()}
    source = LogSource({"path": str(folder), **lower})
    with pytest.raises(UsageError, match=words):
        source.streamReader(source.schema())


# --- sinks ------------------------------------------------------------------------------------------------------------


def test_a_batch_that_is_committed_again_is_there_once(tmp_path: Path) -> None:
    """As after a kill between the commit of the sink and that of the checkpoint, and within the commit."""
    from construct_messages.spark.logs.options import WriteOptions
    from construct_messages.spark.logs.sinks import FolderWriter, Written

    out = tmp_path / "out"
    writer = FolderWriter.of(WriteOptions.of({"path": str(out), "queryid": "q", "batchid": "3"}))

    def written(partition: int, *rows: str) -> Written:
        return as_task(writer, partition, rows)

    first = [written(0, "", quad("a")), written(1), written(2, quad("b"))]
    records = out / "_batches" / "q"
    assert len([*records.iterdir()]) == 2
    assert not [path for path in out.iterdir() if path.suffix == ".nq"]
    # the process is killed after one of the logs got its name
    move = os.rename
    writer.commit(first, 3)
    assert texts(out) == sorted(["", quad("a"), quad("b")])
    move(out / "000000003-00002-q.nq", records / first[2].log.name)
    # the batch runs again, with other partitions
    again = [written(0, "", quad("a"), quad("b")), written(1)]
    writer.commit(again, 3)
    writer.commit(again, 3)
    assert texts(out) == sorted(["", quad("a"), quad("b")])
    assert [path.name for path in records.iterdir()] == ["000000003.json"]
    # what was read and removed by others does not come back
    (out / "000000003-00000-q.nq").unlink()
    writer.commit([written(0, quad("b"))], 3)
    assert texts(out) == [quad("b")]
    assert json.loads((records / "000000003.json").read_text())["messages"] == 3


def test_old_records_and_unfinished_logs_are_removed(tmp_path: Path) -> None:
    from construct_messages.spark.logs.options import WriteOptions
    from construct_messages.spark.logs.sinks import RECORDED, FolderWriter

    given = {"path": str(tmp_path), "queryid": "q", "format": "jelly", "compression": "gzip"}
    for batch in (0, 1, RECORDED + 1):
        writer = FolderWriter.of(WriteOptions.of({**given, "batchid": str(batch)}))
        as_task(writer, 0, [quad("left")])  # its job was aborted by a kill
        writer.commit([as_task(writer, 0, [quad(str(batch))])], batch)
    names = sorted(path.name for path in (tmp_path / "_batches" / "q").iterdir())
    assert names == [f"{RECORDED + 1:09d}.json"]
    assert texts(tmp_path) == sorted(quad(str(each)) for each in (0, 1, RECORDED + 1))


def test_a_row_that_is_no_message_ends_the_query(
    rdfm: SparkSession, folder: Path, tmp_path: Path
) -> None:
    appear(folder / "a.nq", quad("a"), quad("b"))
    frame = stream(rdfm, folder).selectExpr("replace(message, '<urn:b>', 'b') AS message")
    with pytest.raises(LogError, match=r"in batch 0, partition 0: "):
        write(frame, tmp_path / "out", tmp_path / "checkpoint")
    assert texts(tmp_path / "out") == []


@pytest.mark.parametrize(
    ("path", "options", "words"),
    [
        ("logs", {"single": "true"}, "single is not for a folder that grows"),
        ("logs", {"format": "csv"}, "csv"),
        ("logs", {"unknown": "1"}, "unknown option unknown"),
        ("logs", {"queryid": "../a", "batchid": "1"}, "queryId=../a is not a part"),
        ("http://user@example.org/streams/a", {}, "holds credentials"),
        ("http://example.org/streams/a", {"format": "trig"}, "unknown option format"),
    ],
    ids=str,
)
def test_options_of_sinks(path: str, options: dict[str, str], words: str) -> None:
    from pyspark.sql.types import StringType, StructType

    from construct_messages.spark.logs.data_source import LogSource

    schema = StructType().add("message", StringType())
    with pytest.raises(UsageError, match=words):
        LogSource({"path": path, **options}).streamWriter(schema, overwrite=False)
    with pytest.raises(UsageError, match="no column `message`"):
        LogSource({"path": path}).streamWriter(StructType(), overwrite=False)
    with pytest.raises(UsageError, match="outputMode"):
        LogSource({"path": path}).streamWriter(schema, overwrite=True)


# --- streams of a server ----------------------------------------------------------------------------------------------


def some(count: int, letter: str = "s") -> list[Message]:
    return to_messages(
        [quad(f"{letter}{n}") if n % 7 else "" for n in range(count - 1)]
        + ["_:b <urn:p> _:c ."]  # a label that is not unique
    )


def test_a_stream_is_read_in_ranges_and_written_to_another(
    rdfm: SparkSession, streams: StreamsServer, tmp_path: Path
) -> None:
    source, target = f"{streams.url}/streams/source", f"{streams.url}/streams/target"
    publish(source, some(40))
    frame = stream(rdfm, source, maxOffsetsPerTrigger=25, maxPartitionMessages=10)
    assert frame.columns == ["stream", "sequence", "message"]
    assert write(frame, target, tmp_path / "checkpoint", create="true") == [(0, 25), (1, 15)]
    publish(source, some(3, "t"))
    assert write(frame, target, tmp_path / "checkpoint") == [(2, 3)]
    # ranges of a batch come at the same time, each in its order
    assert sorted(elements(target)) == sorted(elements(source))
    ended(partial(in_memory, stream(rdfm, source, after=41), "late"))
    assert [row["sequence"] for row in rdfm.table("late").collect()] == [42, 43]


def test_a_stream_that_was_created_again_ends_the_query(streams: StreamsServer) -> None:
    import requests

    from construct_messages.spark.logs.options import ServerStreamOptions
    from construct_messages.spark.logs.streams import ServerStreamReader

    url = f"{streams.url}/streams/again"
    publish(url, some(5))
    reader = ServerStreamReader(ServerStreamOptions.of({"path": url, "retries": "0"}))
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    (partition,) = reader.partitions(start, end)
    assert sum(batch.num_rows for batch in reader.read(partition)) == 5
    requests.delete(url, timeout=60).raise_for_status()
    publish(url, some(8))
    with pytest.raises(SourceError, match="deleted and created again"):
        reader.latestOffset(end, reader.getDefaultReadLimit())
    with pytest.raises(SourceError, match="no longer has the elements 1 to 5"):
        list(reader.read(partition))


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
async def test_a_range_that_breaks_off_is_read_on(
    chunked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each element is there once, wherever the connection breaks; an answer that is too short is an error."""
    from construct_messages.spark.logs.options import ServerStreamOptions
    from construct_messages.spark.logs.streams import Range, ServerStreamReader

    monkeypatch.setattr("construct_messages.sparql.client.retries.pause", lambda *_: 0.0)
    # of several lines, as a message must not end with the line that came last
    texts = [
        f"{quad(f's{number}')}\n{quad(f't{number}')}" if number % 3 else ""
        for number in range(1, 9)
    ]
    whole = [f"# @message\n{text}\n" if text else "# @message\n" for text in texts]
    asked: list[tuple[int, int]] = []
    # bytes of the answers that break off: after a line of the first message, within a line, and before the last line
    sent = [11 + 27, 70, -27]

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        after, before = (int(request.query[name]) for name in ("after", "before"))
        asked.append((after, before))
        body = "".join(whole[after : before - 1]).encode()
        names = (Header.AFTER, Header.LAST, Header.IDENTITY)
        headers = dict(zip(names, (str(after), str(before - 1), "i"), strict=True))
        if not chunked:
            headers["Content-Length"] = str(len(body))
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        if not sent:
            await response.write(body)
            return response
        await response.write(body[: sent.pop(0)])
        assert request.transport is not None
        request.transport.close()
        return response

    def read(last: int) -> list[str]:
        reader = ServerStreamReader(ServerStreamOptions.of({"path": url}))
        batches = reader.read(Range(url, f"{url}/output", "i", 1, last))
        return [text for batch in batches for text in batch.column("message").to_pylist()]

    async with handling(answer) as url:
        assert await asyncio.to_thread(read, 8) == texts[1:]
        assert asked[0] == (1, 9)
        assert len(asked) == 4
        assert [after for after, _ in asked] == sorted(after for after, _ in asked)
        assert asked[-1][0] > 1  # what was read is not read again


def test_chunks_do_not_depend_on_batches() -> None:
    import pyarrow as pa

    from construct_messages.spark.logs.sinks import _chunks

    rows = [str(number) for number in range(2500)]

    def cut(size: int) -> list[list[str | None]]:
        parts = (rows[start : start + size] for start in range(0, len(rows), size))
        return [*_chunks(pa.record_batch([part], names=["message"]) for part in parts)]

    assert cut(2500) == cut(7) == cut(1001)
    assert [len(chunk) for chunk in cut(7)] == [1000, 1000, 500]
    large = ["x" * (3 << 20), "y" * (3 << 20), "z"]
    assert [len(c) for c in _chunks([pa.record_batch([large], names=["message"])])] == [1, 2]


def test_messages_that_a_stream_has_under_the_key_of_others(
    streams: StreamsServer,
) -> None:
    """A batch that is computed again with other messages is refused, and neither lost nor there twice."""
    from construct_messages.spark.logs.options import ServerOptions
    from construct_messages.spark.logs.sinks import ServerWriter

    url = f"{streams.url}/streams/keys"
    given = {"path": url, "queryid": "q", "batchid": "1", "create": "true"}
    writer = ServerWriter(ServerOptions.of(given))
    for _ in range(2):
        as_task(writer, 0, [quad("a"), "", quad("b")])
    as_task(writer, 1, [quad("c")])
    assert elements(url) == [quad("a"), "", quad("b"), quad("c")]
    with pytest.raises(SourceError, match="used for other messages"):
        as_task(writer, 1, [quad("d")])


@pytest.mark.parametrize(
    ("method", "path", "options", "words"),
    [
        ("reader", "http://example.org/streams/a", {}, "is a stream, which is read by readStream"),
        ("streamReader", "kafka://example.org/a", {}, "from_rdfm"),
        ("streamReader", "http://example.org/streams/a", {"create": "true"}, "create is for writing"),
        ("streamReader", "http://example.org/streams/a", {"maxfilespertrigger": "1"}, "unknown option"),
        ("streamReader", "http://example.org/streams/a", {"retries": "-1"}, "retries=-1"),
    ],
    ids=str,
)  # fmt: skip
def test_options_of_streams(method: str, path: str, options: dict[str, str], words: str) -> None:
    from construct_messages.spark.logs.data_source import LogSource

    source = LogSource({"path": path, **options})
    with pytest.raises(UsageError, match=words):
        getattr(source, method)(source.schema())


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    from construct_messages.spark.logs.options import WriteOptions
    from construct_messages.spark.logs.sinks import FolderWriter

    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        FolderWriter.of(WriteOptions.of({"path": str(tmp_path / "file")}))
    given = {"path": str(tmp_path / "file" / "below"), "queryid": "q", "batchid": "1"}
    writer = FolderWriter.of(WriteOptions.of(given))
    with pytest.raises(CannotWrite, match="cannot write to"):
        as_task(writer, 0, [quad("a")])
