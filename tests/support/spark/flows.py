"""What tests of Structured Streaming share: logs that appear whole, queries over what there is, a server."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from construct_messages import Message, read_log
from construct_messages.logs.lines.decoder import to_text
from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.places import ROOT
from tests.support.waiting import SECONDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from construct_messages.spark.logs.sinks import FolderWriter, Written


ATTEMPTS = 4
"""At a query: Spark waits 10 seconds for a Python worker to start, and on a busy machine that is not always enough."""


def quad(subject: str, object: str = "urn:o") -> str:
    return f"<urn:{subject}> <urn:p> <{object}> ."


def appear(path: Path, *texts: str) -> None:
    """Writes a log of messages under a hidden name, and renames it."""
    hidden = path.with_name(f".{path.name}")
    hidden.write_text(
        "".join(f"# @message\n{text}\n" if text else "# @message\n" for text in texts)
    )
    hidden.rename(path)


def stream(spark: SparkSession, path: str | Path, **options: Any) -> DataFrame:
    return spark.readStream.format("rdfm").options(**options).load(str(path))


def write(
    frame: DataFrame, to: str | Path, checkpoint: Path, **options: Any
) -> list[tuple[int, int]]:
    """Writes what there is by the sink `rdfm`; returns the number and the messages of each batch that had any."""
    writer = frame.writeStream.format("rdfm").options(**options).queryName("flow")
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    return ended(lambda: writer.start(str(to)))


def ended(start: Callable[[], StreamingQuery]) -> list[tuple[int, int]]:
    """Starts a query, and waits for its end; returns the number and the messages of each batch that had any."""
    from pyspark.errors import StreamingQueryException

    from construct_messages.spark import translated

    for attempt in range(ATTEMPTS):
        query = start()
        try:
            with translated():
                assert query.awaitTermination(int(SECONDS * 5))
            break
        except StreamingQueryException as error:
            if "failed to connect back" not in str(error) or attempt == ATTEMPTS - 1:
                raise
    batches = [(each["batchId"], each["numInputRows"]) for each in query.recentProgress]
    return [batch for batch in batches if batch[1]]


def texts(folder: Path) -> list[str]:
    """The messages in the logs of a folder, sorted."""
    logs = [path for path in folder.iterdir() if path.name[0] not in "._"]
    return sorted(to_text(message) for log in logs for message in read_log(log))


def shapes(messages: Iterable[str]) -> Counter[str]:
    """Messages without the labels of their blank nodes, each with how often it is there."""
    return Counter(
        "\n".join(sorted(re.sub(r"_:\S+", "_:b", each).split("\n"))) for each in messages
    )


@contextmanager
def server(file: Path) -> Iterator[StreamsServer]:
    """A server of streams in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    context = serving_streams(file)
    try:
        yield asyncio.run_coroutine_threadsafe(context.__aenter__(), loop).result(SECONDS)
    finally:
        leaving = asyncio.run_coroutine_threadsafe(context.__aexit__(None, None, None), loop)
        leaving.result(SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def publish(url: str, messages: Sequence[Message]) -> None:
    from construct_messages.feeds import publish

    asyncio.run(publish(messages, url, create=True))


def elements(url: str) -> list[str]:
    """The messages of all elements of a stream, in their order."""
    from construct_messages.feeds import subscribe

    async def read() -> list[str]:
        return [each.nquads.decode() async for each in subscribe(url, follow=False, after=0)]

    return asyncio.run(read())


def kill(pid: int) -> None:
    os.kill(pid, 9)


def started(module: str, folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Starts a program of streaming queries in a group of its own; `errors` in the folder gets what it reports."""
    with (folder / "errors").open("ab") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", module, str(folder), *arguments],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )


def appeared(folder: Path, pattern: str, running: subprocess.Popen[bytes], seconds: float) -> bool:
    """Waits until a path with this pattern appears; False: the program has ended before."""
    before = {*folder.glob(pattern)}
    deadline = time.monotonic() + seconds
    while running.poll() is None:
        if {*folder.glob(pattern)} - before:
            return True
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return False


def as_task(writer: FolderWriter, partition: int, rows: Sequence[str]) -> Written:
    """Calls `write` as the task of a partition would."""
    import pyarrow as pa
    from pyspark import TaskContext

    context = TaskContext._getOrCreate()
    context._partitionId = partition
    try:
        batch = pa.record_batch([pa.array(rows, pa.string())], names=["message"])
        return writer.write(iter([batch]))
    finally:
        TaskContext._setTaskContext(None)
