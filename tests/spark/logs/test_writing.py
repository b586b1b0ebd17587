"""Logs that Spark writes are, byte for byte, those of `write_log`; nothing has its name before it is whole."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from construct_messages.errors import (
    IncompleteResult,
    UnsupportedByFormat,
    UsageError,
    ValueOutOfRange,
)
from construct_messages.logs.reading import read_log
from construct_messages.logs.writing import write_log
from construct_messages.rdf.formats import (
    JELLY,
    LABELLED,
    N_QUADS,
    N_TRIPLES,
    RDFM,
    TRIG,
    Format,
    Syntax,
    content_type,
)
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import Term
from construct_messages.spark.dialect import literal
from construct_messages.spark.logs import register
from construct_messages.spark.logs.verification import verify_folder
from tests.support.spark.sessions import new_session

room = pytest.importorskip("construct_messages.spark.logs.writer")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

S, P, G = (Term(f"<urn:{name}>") for name in "spg")
TEXTS = ['"plain"', r'"# @message\n# @message"', '"é 国 😀"', r'"\\n\t"', "_:db", '"x"@ar']
TRIPLES = [
    Message(),
    *(Message([Quad(S, P, Term(text)), Quad(S, P, Term("_:t1b0"))]) for text in TEXTS),
    Message(),
    Message([Quad(S, P, Term("<urn:last>"))]),
]
QUADS = [*TRIPLES, Message([Quad(S, P, Term('"named"'), G)])]


def frame_of(spark: SparkSession, messages: Sequence[Message], partitions: int) -> DataFrame:
    """Messages in their order, over some partitions, the first and the last of which may be empty."""
    texts = ", ".join(literal("\n".join(map(str, message))) for message in messages)
    numbers = spark.range(-2, len(messages) + 2, numPartitions=partitions).filter(
        f"id >= 0 AND id < {len(messages)}"
    )
    return numbers.selectExpr(f"CAST(array({texts}) AS ARRAY<STRING>)[CAST(id AS INT)] AS message")


NATIVE = [(N_QUADS, RDFM), (N_QUADS, LABELLED[0]), (N_TRIPLES, RDFM), (N_TRIPLES, LABELLED[0])]
# a few of those that Python workers write: the tests of the data source have them all
KINDS = [*NATIVE, (N_QUADS, LABELLED[2]), (TRIG, RDFM), (JELLY, JELLY.own)]


def name_of(kind: tuple[Format, Syntax]) -> str:
    return f"{kind[0].name}-{kind[1].label}"


def messages_for(format: Format) -> list[Message]:
    return QUADS if format.graphs else TRIPLES


each_kind = pytest.mark.parametrize("kind", KINDS, ids=name_of)
each_native = pytest.mark.parametrize("kind", NATIVE, ids=name_of)


@each_kind
def test_one_file(spark: SparkSession, tmp_path: Path, kind: tuple[Format, Syntax]) -> None:
    target, messages = tmp_path / "a folder" / "log", messages_for(kind[0])
    target.parent.mkdir()
    written = room.write_file(
        frame_of(spark, messages, 3), target, room.LogFormat(*kind, graphs=kind[0].graphs)
    )
    assert written == (len(messages), sum(map(len, messages)))
    assert list(target.parent.iterdir()) == [target]
    assert read_back(target, *kind) == texts(messages)


@each_kind
def test_a_folder(spark: SparkSession, tmp_path: Path, kind: tuple[Format, Syntax]) -> None:
    target, messages = tmp_path / "logs", messages_for(kind[0])
    written = room.write_folder(
        frame_of(spark, messages, 3), target, room.LogFormat(*kind, graphs=kind[0].graphs)
    )
    assert written == (len(messages), sum(map(len, messages)))
    found = [text for part in visible(target) for text in read_back(part, *kind)]
    assert found == texts(messages)
    success = json.loads((target / "_SUCCESS").read_bytes())  # issue 13, 29: of every format
    assert (success["messages"], success["quads"], success["files"]) == (
        *written,
        len(visible(target)),
    )
    assert verify_folder(target)[1:] == ([success["run"]], len(visible(target)), *written, [], [])


@each_native
@pytest.mark.parametrize("partitions", [1, 3])
def test_bytes_are_those_of_write_log(
    spark: SparkSession, tmp_path: Path, kind: tuple[Format, Syntax], partitions: int
) -> None:
    messages = messages_for(kind[0])
    frame = frame_of(spark, messages, partitions)
    graphs = kind[0].graphs
    room.write_file(frame, tmp_path / "log.gz", room.LogFormat(*kind, graphs=graphs))
    assert gzip.decompress((tmp_path / "log.gz").read_bytes()) == log_of(messages, *kind)
    room.write_folder(frame, tmp_path / "logs", room.LogFormat(*kind, graphs=graphs))
    parts = [part.read_bytes() for part in visible(tmp_path / "logs")]
    announcement = kind[1].announcement.encode()
    assert all(part.startswith(announcement) for part in parts if part)
    assert announcement + b"".join(part.removeprefix(announcement) for part in parts) == log_of(
        messages, *kind
    )


@each_native
def test_no_messages(spark: SparkSession, tmp_path: Path, kind: tuple[Format, Syntax]) -> None:
    frame = frame_of(spark, [], 2)
    assert room.write_file(
        frame, tmp_path / "log", room.LogFormat(*kind, graphs=kind[0].graphs)
    ) == (0, 0)
    assert (tmp_path / "log").read_bytes() == log_of([], *kind)
    assert room.write_folder(
        frame, tmp_path / "logs", room.LogFormat(*kind, graphs=kind[0].graphs)
    ) == (0, 0)
    assert b"".join(part.read_bytes() for part in visible(tmp_path / "logs")) == b""


def test_every_part_is_announced_whatever_the_session_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    session = new_session(spark, {"spark.sql.files.maxRecordsPerFile": "2"})
    room.write_folder(
        frame_of(session, TRIPLES, 1), tmp_path / "logs", room.LogFormat(N_QUADS, LABELLED[0])
    )
    (part,) = visible(tmp_path / "logs")
    assert part.read_bytes() == log_of(TRIPLES, N_QUADS, LABELLED[0])


@pytest.mark.parametrize("compression", ["gzip", "bzip2", "zstd"])
def test_packed_parts(spark: SparkSession, tmp_path: Path, compression: str) -> None:
    room.write_folder(
        frame_of(spark, QUADS, 2),
        tmp_path / "logs",
        room.LogFormat(N_QUADS, RDFM),
        compression=compression,
    )
    parts = visible(tmp_path / "logs")
    assert all(part.suffix in (".gz", ".bz2", ".zst") for part in parts)
    assert [text for part in parts for text in read_back(part, N_QUADS, RDFM)] == texts(QUADS)


@pytest.mark.parametrize("has_format", [False, True], ids=["without the format", "with it"])
def test_after_another_session_was_used(
    spark: SparkSession, tmp_path: Path, has_format: bool
) -> None:
    """Spark looks for a format in the session that was active last."""
    frame = frame_of(spark.newSession(), TRIPLES, 1)  # which has no format yet
    used_last = spark.newSession()
    try:
        used_last.createDataFrame([(1,)], "a INT")
        if has_format:
            register(used_last)
        assert room.write_file(
            frame, tmp_path / "log", room.LogFormat(TRIG, RDFM)
        ).message_count == len(TRIPLES)
        register(used_last)
        assert used_last.read.format("rdfm").load(str(tmp_path / "log")).count() == len(TRIPLES)
    finally:
        spark.createDataFrame([(1,)], "a INT")


def test_a_folder_that_is_there(spark: SparkSession, tmp_path: Path) -> None:
    frame, target = frame_of(spark, TRIPLES, 1), tmp_path / "logs"
    room.write_folder(frame, target, room.LogFormat(N_QUADS, RDFM))
    with pytest.raises(UsageError, match="exists"):
        room.write_folder(frame, target, room.LogFormat(N_QUADS, RDFM))
    room.write_folder(frame, target, room.LogFormat(N_QUADS, RDFM), mode="append")
    assert len(visible(target)) == 2
    room.write_folder(frame, target, room.LogFormat(N_QUADS, RDFM), mode="overwrite")
    assert len(visible(target)) == 1
    with pytest.raises(UsageError, match="'ignore' is unknown"):
        room.write_folder(frame, target, room.LogFormat(N_QUADS, RDFM), mode="ignore")


FAILS = "if(id = 7, raise_error('ValueOutOfRange: too large'), concat('<urn:s> <urn:p> \"', id, '\" .')) AS message"


@each_kind
def test_a_job_that_fails_leaves_nothing(
    spark: SparkSession, tmp_path: Path, kind: tuple[Format, Syntax]
) -> None:
    frame = spark.range(0, 10, numPartitions=3).selectExpr(FAILS)
    before = log_of(TRIPLES, N_QUADS, RDFM)
    (tmp_path / "log").write_bytes(before)
    with pytest.raises(ValueOutOfRange, match="too large"):
        room.write_file(frame, tmp_path / "log", room.LogFormat(*kind, graphs=kind[0].graphs))
    assert (tmp_path / "log").read_bytes() == before
    assert list(tmp_path.iterdir()) == [tmp_path / "log"]
    with pytest.raises(ValueOutOfRange, match="too large"):
        room.write_folder(frame, tmp_path / "logs", room.LogFormat(*kind, graphs=kind[0].graphs))
    assert not (tmp_path / "logs" / "_SUCCESS").exists()
    assert visible(tmp_path / "logs") == []
    # before a task of writing has begun
    with pytest.raises(ValueOutOfRange, match="too large"):
        room.write_file(
            frame.repartition(2), tmp_path / "log", room.LogFormat(*kind, graphs=kind[0].graphs)
        )
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("kind", [(N_TRIPLES, RDFM), (N_QUADS, LABELLED[1])], ids=name_of)
def test_what_a_format_cannot_carry(
    spark: SparkSession, tmp_path: Path, kind: tuple[Format, Syntax]
) -> None:
    messages = [*TRIPLES, Message([Quad(S, P, Term("<<( <urn:s> <urn:p> _:dx )>>"), G)])]
    with pytest.raises(UnsupportedByFormat, match=r"has no (named graphs|triple terms)"):
        room.write_file(frame_of(spark, messages, 2), tmp_path / "log", room.LogFormat(*kind))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", ["s3a://bucket/log.nq", "hdfs:///log.nq"])
def test_a_file_of_another_filesystem(spark: SparkSession, target: str) -> None:
    with pytest.raises(UsageError, match="is not a file of this machine"):
        room.write_file(frame_of(spark, [], 1), target, room.LogFormat(N_QUADS, RDFM))


def test_a_place_that_cannot_be_written(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        room.write_file(
            frame_of(spark, [], 1), tmp_path / "none" / "log.nq", room.LogFormat(N_QUADS, RDFM)
        )


def test_parts_that_do_not_come_to_the_driver(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as where executors write to disks of their own: the driver finds less than was written
    found = room.parts_in
    monkeypatch.setattr(room, "parts_in", lambda place: found(place)[1:])
    with pytest.raises(IncompleteResult, match="the executors write to another filesystem"):
        room.write_file(
            frame_of(spark, TRIPLES, 2), tmp_path / "log.nq", room.LogFormat(N_QUADS, RDFM)
        )
    assert list(tmp_path.iterdir()) == []


def visible(folder: Path) -> list[Path]:
    """The logs of a folder in the order of their names."""
    return sorted(part for part in folder.glob("[!._]*/*") if part.name[0] not in "._")


def log_of(messages: Sequence[Message], format: Format, syntax: Syntax) -> bytes:
    log = BytesIO()
    write_log(messages, log, content_type(format, syntax))
    return log.getvalue()


def read_back(log: Path, format: Format, syntax: Syntax) -> list[frozenset[str]]:
    return texts(read_log(log, format.extension, syntax=syntax.label or None))


def texts(messages: Iterable[Message]) -> list[frozenset[str]]:
    """The messages without their labels, which a reader gives anew."""
    return [
        frozenset(re.sub(r"_:\w+", "_:", str(quad)) for quad in message) for message in messages
    ]
