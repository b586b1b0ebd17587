"""The records of the runs that wrote logs into a folder: which logs, how many messages, and whether they are there.

Each run has a record, `_run-ID.json`, written before its logs get their names. `_SUCCESS` names the last run, and is
written when all its logs have their names. Spark ignores names that begin with `_`. The contents of the logs are read
by `verification`.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from pyarrow import fs
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from construct_messages.rdf.errors import IncompleteResult
from construct_messages.spark.logs.files import Place, read_bytes, remove_folder, visible_below

# --- sequence -------------------------------------------------------------------------------------
# A number for each message of a table, in the order of (file, block, ordinal). Native expressions of Spark only.


def with_sequence(messages: DataFrame) -> DataFrame:
    """Adds a column `sequence` to messages: 0, 1, 2, … in the order of (file, block, ordinal), without gaps.

    Blocks are counted first, so the logs are read twice, and no message moves between partitions.

    Args:
        messages: a DataFrame with the columns `file`, `block` and `ordinal`, with all rows of its logs.

    >>> messages = spark.createDataFrame([("a.nq", 0, 0), ("a.nq", 0, 1), ("b.nq", 0, 0)], ["file", "block", "ordinal"])
    >>> sorted(row["sequence"] for row in with_sequence(messages).collect())
    [0, 1, 2]
    """
    counted = messages.groupBy("file", "block").agg(F.count("*").alias("messages"))
    # the blocks alone are few enough for one task
    before = Window.orderBy("file", "block").rowsBetween(Window.unboundedPreceding, -1)
    first = counted.select(
        "file", "block", F.coalesce(F.sum("messages").over(before), F.lit(0)).alias("first")
    )
    return (
        messages.join(F.broadcast(first), ["file", "block"])
        .withColumn("sequence", F.col("first") + F.col("ordinal"))
        .drop("first")
    )


# --- records --------------------------------------------------------------------------------------

SUCCESS: Final = "_SUCCESS"
"""The file by which Spark's own writers mark a folder as complete; theirs is empty."""

RECORDS: Final = "_run-*.json"
"""The names of the files of records."""

_PREFIX, _, _SUFFIX = RECORDS.partition("*")


def run_id() -> str:
    """Returns the identifier of a new run, which sorts after those of earlier runs: the time in UTC and
    random digits.
    """
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}-{secrets.token_hex(2)}"


class LogFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A log of a run.

    Args:
        name: its name in the folder.
        bytes: its size.
        messages: the number of its messages; None: not known for each log.
        crc32: the CRC-32 of its bytes (as of zlib); None: not known.
    """

    name: str
    bytes: int
    messages: int | None = None
    crc32: int | None = None


class RunRecord(msgspec.Struct, frozen=True):
    """The record of a run.

    Args:
        run: the identifier of the run, which begins with its time in UTC and is part of the names of its logs.
        format: the media type of the logs, without their compression.
        messages, quads: their numbers in all logs.
        files: the logs, in order.
    """

    run: str
    format: str
    messages: int
    quads: int
    files: Sequence[LogFile]

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{_PREFIX}{self.run}{_SUFFIX}"

    def encoded(self) -> bytes:
        """Returns the contents of its file."""
        return msgspec.json.format(msgspec.json.encode(self)) + b"\n"

    def success(self) -> bytes:
        """Returns the contents of `_SUCCESS`.

        >>> RunRecord("20260101T000000000000Z-12ab", "application/n-quads", 2, 4, [LogFile("a.nq", 9)]).success()
        b'{"run":"20260101T000000000000Z-12ab","messages":2,"quads":4,"files":1}\\n'
        """
        figures = {
            "run": self.run,
            "messages": self.messages,
            "quads": self.quads,
            "files": len(self.files),
        }
        return msgspec.json.encode(figures) + b"\n"


def write(folder: Place, name: str, contents: bytes) -> None:
    """Writes a small file into a folder.

    Raises:
        OSError: it cannot be written.
    """
    with folder.files.open_output_stream(f"{folder.path}/{name}", compression=None) as file:
        file.write(contents)


def records(folder: Place) -> list[RunRecord]:
    """Returns the records of a folder, in the order of the runs.

    Raises:
        IncompleteResult: a file is not a record.
        OSError: one cannot be read.
    """
    infos = [
        info
        for info in folder.files.get_file_info(fs.FileSelector(folder.path, allow_not_found=True))
        if info.base_name.startswith(_PREFIX) and info.base_name.endswith(_SUFFIX)
    ]
    # what Spark alone has written, over Spark Connect, is a folder with one file
    whole = [info for info in infos if info.type == fs.FileType.Directory]
    infos += [file for info in whole for file in visible_below(folder, info.path)]
    found = list[RunRecord]()
    for path in sorted(info.path for info in infos if info.type == fs.FileType.File):
        try:
            contents = read_bytes(folder, path)
        except FileNotFoundError:  # another run has overwritten it meanwhile
            continue
        found.append(record_of(folder.at(path).uri, contents))
    return found


def record_of(name: str, contents: bytes) -> RunRecord:
    """Returns the record in a file.

    Raises:
        IncompleteResult: it is none.
    """
    try:
        return msgspec.json.decode(contents, type=RunRecord)
    except msgspec.DecodeError as error:
        raise IncompleteResult(
            f"{name} is no record of a run: {error}", hint="remove it, or write to another folder"
        ) from error


def remove_record(folder: Place, record: RunRecord) -> None:
    """Removes a record, if it is there.

    Raises:
        OSError: it cannot be removed.
    """
    place = folder.at(f"{folder.path}/{record.name}")
    if place.files.get_file_info(place.path).type == fs.FileType.Directory:
        remove_folder(place)
    else:
        with suppress(FileNotFoundError):
            place.files.delete_file(place.path)


def last_run(folder: Place) -> str | None:
    """Returns the run that `_SUCCESS` names; an empty string if it names none, None if there is no `_SUCCESS`.

    Raises:
        OSError: it cannot be read.
    """
    try:
        contents = read_bytes(folder, f"{folder.path}/{SUCCESS}")
    except FileNotFoundError:
        return None
    try:
        success: Any = msgspec.json.decode(contents)
    except msgspec.DecodeError:
        return ""
    return str(success.get("run", "")) if isinstance(success, dict) else ""


def sizes(folder: Place) -> dict[str, int]:
    """Returns the size of each log in a folder, by its path in it.

    Raises:
        OSError: the folder cannot be listed.
    """
    return {
        info.path.removeprefix(f"{folder.path}/"): info.size
        for info in visible_below(folder, folder.path)
    }


def damage(record: RunRecord, found: dict[str, int]) -> list[str]:
    """Returns descriptions of the logs of a run that are missing or have another size.

    >>> record = RunRecord("x", "application/n-quads", 2, 4, [LogFile("a.nq", 9), LogFile("b.nq", 9)])
    >>> damage(record, {"a.nq": 8})
    ['a.nq has 8 bytes, and 9 were written', 'b.nq is missing']
    """
    problems = list[str]()
    for file in record.files:
        size = found.get(file.name)
        if size is None:
            problems.append(f"{file.name} is missing")
        elif size != file.bytes:
            problems.append(f"{file.name} has {size:,} bytes, and {file.bytes:,} were written")
    return problems
