"""Verifies a folder of logs: whether all logs of its runs are present and undamaged, and which other files it has.

Logs are read to their end, several at once, by processes of this machine; no Spark is needed. The files of a run are in
its record (`records`). A folder without records, which an earlier version or another program wrote, can only be read.
"""

from __future__ import annotations

import multiprocessing
import os
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO, Final, NamedTuple

from pyarrow import fs

from construct_messages.errors import ConstructMessagesError, UsageError
from construct_messages.logs.reading import read_log
from construct_messages.rdf.formats.lookup import format_of_file
from construct_messages.spark.logs.files import Place, is_there, kind_of, place_of, read_from
from construct_messages.spark.logs.runs import (
    SUCCESS,
    LogFile,
    RunFolder,
    RunRecord,
    counts_of,
    damage,
    last_run,
    left_over,
)

_MESSAGE_BYTES: Final = 1 << 40  # no limit: every log that was written can be read
_PARALLEL_BYTES: Final = 64 << 20  # for fewer bytes, starting processes takes longer than reading
_TEMPORARY: Final = "_temporary"
_CHECKSUMS: Final = b"crc\x00"


class Verification(NamedTuple):
    """The result of verifying a folder of logs.

    Args:
        folder: its URI.
        runs: the runs that the folder has records of, in order.
        logs, messages, quads: the numbers that have been read.
        problems: descriptions of missing and damaged files; empty if the folder is complete.
        notes: runs that are running or were stopped, and parts that could not be checked.
    """

    folder: str
    runs: Sequence[str]
    logs: int
    messages: int
    quads: int
    problems: Sequence[str]
    notes: Sequence[str]


class _Task(NamedTuple):
    place: str  # the URI of a log
    format: str | None  # None: that of the name
    written: LogFile  # its entry in the record of its run, or all that is known without a record
    lenient: bool


def verify_folder(
    path: str | os.PathLike[str], *, lenient: bool = False, processes: int | None = None
) -> Verification:
    """Reads all logs in a folder, and compares them with the records of their runs.

    Args:
        path: a folder, on any filesystem that pyarrow supports.
        lenient: pass malformed IRIs and language tags.
        processes: the number of processes that read; None: one for each core.

    Raises:
        UsageError: no folder, or one that cannot be reached.
        IncompleteResult: a record of a run that cannot be read.
    """
    folder = place_of(os.fspath(path))
    try:
        if kind_of(folder) != fs.FileType.Directory:
            raise UsageError(
                f"{path} is not a folder",
                hint="name a folder that spark run or convert has written",
            )
        contents, last = RunFolder.of(folder), last_run(folder)
        notes = list(_notes(folder, contents, last))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    runs = contents.runs
    old = {log.name for record in contents.known if record not in runs for log in record.files}
    contents = contents._replace(
        sizes={name: size for name, size in contents.sizes.items() if name not in old}
    )
    problems = list(_problems(contents, last))
    read = dict[str, LogFile]()
    for log, problem in _read_all(list(_tasks(folder, contents, lenient)), processes):
        read[log.name] = log
        problems += [] if problem is None else [f"{log.name}: {problem}"]
    if not problems:
        problems += _wrong_sums(runs, read)
    counts = (len(read), *counts_of(read.values()))
    return Verification(folder.uri, [record.run for record in runs], *counts, problems, notes)


def _problems(contents: RunFolder, last: str | None) -> Iterator[str]:
    known = {record.run for record in contents.known}
    if last is None and not known:
        yield f"there is no {SUCCESS}: its writer is still running, or was stopped"
    elif last and last not in known:
        yield f"the record of run {last} is missing"
    for record in contents.runs:
        yield from (f"{each} (run {record.run})" for each in damage(record, contents.sizes))
    if known:
        foreign = sorted(contents.sizes.keys() - contents.recorded)
        yield from (f"{name} is of no run" for name in foreign)


def _notes(folder: Place, contents: RunFolder, last: str | None) -> Iterator[str]:
    if not contents.runs and last is not None:
        yield "no run has left a record: it is not known how many messages were written"
    for run in left_over(folder):
        name, owner = run.hidden.path.rpartition("/")[2], run.owner
        where = f"(process {owner.process} on {owner.host})"
        if owner.has_ended():
            yield f"{name}: a run that was stopped {where}; the next one removes it"
        else:
            yield f"{name}: a run that still runs, or was stopped elsewhere {where}"
    if is_there(folder / _TEMPORARY):
        yield f"{_TEMPORARY}: a job that Spark itself commits still runs, or was stopped"
    for record in contents.known:
        if record not in contents.runs:
            yield f"{record.run}: a run that was overwritten; the next one removes it"


def _tasks(folder: Place, contents: RunFolder, lenient: bool) -> Iterator[_Task]:
    written = {log.name: (record.format, log) for record in contents.runs for log in record.files}
    for name, size in sorted(contents.sizes.items()):
        format, log = written.get(name) or (_format_of(name), LogFile(name, size))
        yield _Task((folder / name).uri, format, log, lenient)


def _format_of(name: str) -> str | None:
    """Returns the format of a log that no record names; None if it must be detected from its beginning."""
    if (format := format_of_file(name)) is not None:
        return format.extension
    # Spark's text writer: each N-Triples log is an N-Quads log, too
    return "nq" if ".txt" in name else None


def _read_all(
    tasks: Sequence[_Task], processes: int | None
) -> Iterator[tuple[LogFile, str | None]]:
    size = sum(task.written.bytes for task in tasks)
    if processes == 1 or len(tasks) < 2 or (processes is None and size < _PARALLEL_BYTES):
        yield from map(_read, tasks)
        return
    workers = min(processes or os.cpu_count() or 1, len(tasks))
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(_read, tasks)


def _read(task: _Task) -> tuple[LogFile, str | None]:
    """Returns the figures of a log, as far as it can be read, and how it differs from its record, if it does."""
    messages = quads = size = crc32 = 0

    def summed() -> Iterator[bytes]:
        nonlocal size, crc32
        for chunk in read_from(task.place):
            size, crc32 = size + len(chunk), zlib.crc32(chunk, crc32)
            yield chunk

    problem = None
    try:
        for message in read_log(
            summed(), task.format, lenient=task.lenient, message_bytes=_MESSAGE_BYTES
        ):
            messages += 1
            quads += len(message)
    except (ConstructMessagesError, OSError) as error:
        problem = " ".join(str(error).partition("\n  hint: ")[0].split())
    read = LogFile(task.written.name, size, messages, quads, crc32)
    return read, problem or _difference(task, read)


def _difference(task: _Task, read: LogFile) -> str | None:
    """Describes how a log that was read to its end differs from its record; None if it does not."""
    written, place = task.written, place_of(task.place)
    if written.crc32 not in (None, read.crc32):
        return "its bytes are not those that were written (CRC-32)"
    if written.messages not in (None, read.messages):
        return f"{read.messages:,} messages, and {written.messages:,} were written"
    log = Path(place.path)
    if place.is_local and (kept := log.with_name(f".{log.name}.crc")).is_file():
        with log.open("rb") as file:
            return _hadoop_difference(kept.read_bytes(), file)
    return None


def _hadoop_difference(kept: bytes, file: IO[bytes]) -> str | None:
    """Compares a file with the checksums that Hadoop's local file system stores in the same folder.

    >>> from io import BytesIO
    >>> kept = b"crc\\0" + (2).to_bytes(4, "big") + b"".join(zlib.crc32(c).to_bytes(4, "big") for c in (b"ab", b"c"))
    >>> _hadoop_difference(kept, BytesIO(b"abc")), _hadoop_difference(kept, BytesIO(b"abx"))
    (None, 'damaged after byte 2 (by its checksums)')
    """
    size = int.from_bytes(kept[4:8], "big")
    pieces = iter(partial(file.read, size), b"")
    sums = b"".join(zlib.crc32(piece).to_bytes(4, "big") for piece in pieces)
    if kept.startswith(_CHECKSUMS) and sums != (expected := kept[8:]):
        starts = range(0, len(sums) + 4, 4)
        wrong = next(at for at in starts if sums[at : at + 4] != expected[at : at + 4])
        return f"damaged after byte {wrong // 4 * size:,} (by its checksums)"
    return None


def _wrong_sums(runs: Sequence[RunRecord], read: dict[str, LogFile]) -> Iterator[str]:
    """Yields descriptions of the runs whose logs have other numbers of messages or quads than were written."""
    for record in runs:
        messages, quads = counts_of(read[log.name] for log in record.files)
        if (messages, quads) != (record.messages, record.quads):
            yield (
                f"run {record.run} wrote {record.messages:,} messages of {record.quads:,} quads, "
                f"and its logs have {messages:,} of {quads:,}"
            )
