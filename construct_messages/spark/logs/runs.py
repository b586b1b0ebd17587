"""Runs that write logs into a folder: a folder for each run, with its logs and the record by which they count.

    messages/20261124T063555512825Z-20d3/part-…      the logs of a run
    messages/20261124T063555512825Z-20d3/_run.json   its record
    messages/_SUCCESS                                the last run, for other programs

A run writes into a hidden folder, which is renamed when all is there, or in an object store, where a rename is a copy,
writes its record last. The records, which never change, list the runs of a folder (`current`). So a run that was
stopped at any time has no effect, and the order of runs at the same time is that of their records. Files of runs that
were overwritten are removed, and no others. No Spark here; the contents of logs are not read.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from shutil import copyfileobj
from typing import IO, Final, Literal, NamedTuple, TypeAlias, get_args

import msgspec
from pyarrow import fs

from construct_messages.errors import CannotWrite, IncompleteResult, UsageError
from construct_messages.rdf.files.output import refuse_foreign
from construct_messages.spark.logs.files import (
    File,
    Place,
    S3Settings,
    entries,
    find,
    is_there,
    is_visible,
    kind_of,
    listing,
    make_folder,
    move,
    place_of,
    read_bytes,
    remove_file,
    remove_folder,
    visible_below,
    write_bytes,
)
from construct_messages.sparql.relational.tables import run_id

# --- records --------------------------------------------------------------------------------------

SUCCESS: Final = "_SUCCESS"
"""The file by which Spark's own writers mark a folder as complete; theirs is empty."""

Mode: TypeAlias = Literal["error", "overwrite", "append"]
MODES: Final[Sequence[Mode]] = get_args(Mode)
"""How the logs of earlier runs are treated."""

RECORD: Final = "_run.json"
"""The file of the record in the folder of a run."""

_RUN: Final = re.compile(r"\d{8}T\d{12}Z-[0-9a-f]{4}")
# a record that Spark alone has written, over Spark Connect, is a folder with one file
_RECORDS: Final = re.compile(rf"{_RUN.pattern}/{re.escape(RECORD)}(?:/[^._/][^/]*)?")
_IN_RUN: Final = re.compile(rf"(.*)/({_RUN.pattern})/.*", re.DOTALL)
_NAMED: Final = 3  # names that a message lists


class LogFile(msgspec.Struct, frozen=True, omit_defaults=True, order=True):
    name: str  # its path in the folder
    bytes: int
    messages: int | None = None  # None: not known for each log
    quads: int | None = None
    crc32: int | None = None  # of its bytes, as of zlib

    @property
    def partition(self) -> int:
        """The number of the partition, which a task has put into the name.

        >>> LogFile("part-00012-7.nq", 0).partition
        12
        """
        return int(self.name.split("-")[1])


class RunRecord(msgspec.Struct, frozen=True):
    run: str  # its identifier, which is the name of the folder of its logs
    format: str  # the media type of the logs, without their compression
    messages: int
    quads: int
    files: Sequence[LogFile]
    number: int = 0  # one more than those of the records before
    mode: Mode = "append"

    def encoded(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self)) + b"\n"

    def success(self) -> bytes:
        """Returns the contents of `_SUCCESS`."""
        figures = {"run": self.run, "messages": self.messages, "quads": self.quads}
        return msgspec.json.encode({**figures, "files": len(self.files)}) + b"\n"


def counts_of(logs: Iterable[LogFile]) -> tuple[int, int]:
    """Returns the numbers of messages and quads of logs for which they are known."""
    counts = [(log.messages or 0, log.quads or 0) for log in logs]
    return sum(messages for messages, _ in counts), sum(quads for _, quads in counts)


class RunFolder(NamedTuple):
    """The runs and the logs of a folder, by one listing."""

    known: list[RunRecord]  # in the order of the runs, also of those that were overwritten
    sizes: dict[str, int]  # of the logs, by their paths in the folder; not of runs without a record

    @property
    def runs(self) -> list[RunRecord]:
        """The records of the runs that count."""
        return current(self.known)

    @property
    def recorded(self) -> set[str]:
        """The names of the logs in all records."""
        return {log.name for record in self.known for log in record.files}

    @classmethod
    def of(cls, folder: Place) -> RunFolder:
        """Lists a folder, again if a run was overwritten meanwhile: the one after it may not have been listed."""
        known, sizes, folders = list[RunRecord](), dict[str, int](), set[str]()
        for name, info in listing(folder).items():
            if info.type == fs.FileType.Directory and _RUN.fullmatch(name):
                folders.add(name)
            elif info.type == fs.FileType.File and _RECORDS.fullmatch(name):
                try:
                    known.append(read_record(folder / name))
                except FileNotFoundError:
                    return cls.of(folder)
            elif info.type == fs.FileType.File and is_visible(name):
                sizes[name] = info.size
        others = folders.difference(record.run for record in known)
        if not all(is_there(folder / run) for run in others):
            return cls.of(folder)
        sizes = {name: sizes[name] for name in sizes if name.partition("/")[0] not in others}
        return cls(sorted(known, key=lambda record: (record.number, record.run)), sizes)


def read_record(place: Place) -> RunRecord:
    try:
        return msgspec.json.decode(read_bytes(place), type=RunRecord)
    except msgspec.DecodeError as error:
        raise IncompleteResult(
            f"{place.uri} is not the record of a run: {error}",
            hint="remove its folder, or write to another one",
        ) from error


def current(known: Iterable[RunRecord]) -> list[RunRecord]:
    """Returns the records of the runs that a folder has, by all of its records in their order.

    >>> def record(run, mode): return RunRecord(run, "", 0, 0, [], mode=mode)
    >>> known = [record("a", "error"), record("b", "error"), record("c", "append")]
    >>> [each.run for each in current(known)], [each.run for each in current([*known, record("d", "overwrite")])]
    (['a', 'c'], ['d'])
    """
    found = list[RunRecord]()
    for record in known:
        if record.mode == "overwrite":
            found = []
        if record.mode != "error" or not found:
            found.append(record)
    return found


class _Success(msgspec.Struct):
    run: str = ""


def last_run(folder: Place) -> str | None:
    """Returns the run that `_SUCCESS` names; an empty string if it names none, None if there is no `_SUCCESS`."""
    try:
        return msgspec.json.decode(read_bytes(folder / SUCCESS), type=_Success).run
    except FileNotFoundError:
        return None
    except msgspec.DecodeError:  # that of another program
        return ""


def damage(record: RunRecord, found: dict[str, int]) -> list[str]:
    """Returns descriptions of the logs of a run that are missing or have another size.

    >>> record = RunRecord("x", "application/n-quads", 2, 4, [LogFile("a.nq", 9), LogFile("b.nq", 9)])
    >>> damage(record, {"a.nq": 8})
    ['a.nq has 8 bytes, and 9 were written', 'b.nq is missing']
    """
    sizes = [(log, found.get(log.name)) for log in record.files]
    return [
        f"{log.name} is missing"
        if size is None
        else f"{log.name} has {size:,} bytes, and {log.bytes:,} were written"
        for log, size in sizes
        if size != log.bytes
    ]


def logs_at(path: str, s3: S3Settings = (), *, grows: bool = False) -> list[File]:
    """Returns the files of a path (see `find`); of folders of runs, only the logs of the runs that count."""
    logs = dict[str, set[str]]()

    def counts(uri: str) -> bool:
        if (match := _IN_RUN.fullmatch(uri)) is None or match[2] in path:
            return True
        if (folder := match[1]) not in logs:
            runs = RunFolder.of(place_of(folder, s3)).runs
            logs[folder] = {f"{folder}/{log.name}" for record in runs for log in record.files}
        return uri in logs[folder]

    return [file for file in find(path, s3, grows=grows) if counts(file.uri)]


# --- owners ---------------------------------------------------------------------------------------
# The process of a run, by which its hidden folder is removed when it has ended without removing that. Only processes
# of this machine can be looked up, in /proc; others count as running. Numbers of processes are used again, so that the
# start of a process is compared, too.

_PROC: Final = Path("/proc")
_JAVA: Final = "java"
_HIDDEN: Final = re.compile(rf"\.({_RUN.pattern})_(\d+)_(\d*)_([0-9a-f]*)_(.*)")


class Owner(NamedTuple):
    process: int
    started: str  # in ticks since the boot; empty: not known
    machine: str  # of its boot and its namespace of processes, as containers may have equal hosts
    host: str

    @classmethod
    def this(cls) -> Owner:
        """Returns Spark's Java process, if it has started this process; otherwise this process."""
        own = number = os.getpid()
        while number and _status(number)[0] != _JAVA:
            number = int(_status(number)[2] or 0)
        return cls(number or own, _status(number or own)[3], *_machine())

    def has_ended(self) -> bool:
        """Returns whether the process is known to have ended; False if this cannot be known."""
        if (self.machine, self.host) != _machine() or not self.started:
            return False
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except PermissionError:  # of another user, whose processes /proc may hide
            return False
        _, state, _, started = _status(self.process)
        return started != self.started or state == "Z"


def _status(number: int) -> tuple[str, str, str, str]:
    """Returns name, state, parent and start of a process; empty where there is none."""
    try:
        # proc_pid_stat(5): number (name) state parent …; the 22nd field is the start, in ticks since the boot
        before, _, after = (_PROC / str(number) / "stat").read_text().rpartition(")")
    except OSError:
        return "", "", "", ""
    fields = after.split()
    return before.partition("(")[2], fields[0], fields[1], fields[19]


@cache
def _machine() -> tuple[str, str]:
    boot, machine = _PROC / "sys/kernel/random/boot_id", ""
    if boot.exists():
        own = boot.read_text() + os.readlink(_PROC / "self/ns/pid")
        machine = blake2b(own.encode(), digest_size=8).hexdigest()
    return machine, platform.node()


# --- runs -----------------------------------------------------------------------------------------

_RUNNING: Final = "running"
_CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Run:
    """A run that writes into a folder. Its hidden folder has its name after a dot, and the owner."""

    folder: Place
    id: str
    owner: Owner
    mode: Mode | None = None  # None: the run has no logs in the folder in the end
    fresh: bool = False  # whether the folder is new

    @classmethod
    def begin(cls, folder: Place, mode: Mode | None = None) -> Run:
        """Starts a run: makes its hidden folder, which `close` removes, and removes those of runs that have ended."""
        with writing(folder.uri):
            there = kind_of(folder)
            if mode is not None:
                if there == fs.FileType.File:
                    hint = "name a folder, or write a single log"
                    raise UsageError(f"{folder.uri} is a file", hint=hint)
                check(folder, mode)
            run = cls(folder, run_id(), Owner.this(), mode, there == fs.FileType.NotFound)
            make_folder(run.hidden)
            run.write(run.hidden / _RUNNING, b"")
            for other in left_over(folder):
                if other.owner.has_ended():
                    other.close()
        return run

    @property
    def hidden(self) -> Place:
        return self.folder / "_".join([f".{self.id}", *map(str, self.owner)])

    @property
    def place(self) -> Place:
        """The folder of the logs in the end."""
        return self.folder / self.id

    @property
    def logs(self) -> Place:
        """The folder to write the logs into."""
        return self.hidden / "logs" if self._renames else self.place

    @property
    def _renames(self) -> bool:
        return self.folder.files.type_name in ("local", "hdfs")

    @property
    def is_running(self) -> bool:
        """Whether the run has not ended, and is seen from here."""
        return is_there(self.hidden / _RUNNING)

    def write(self, place: Place, contents: bytes) -> None:
        """Writes a file, which is complete when it has its name."""
        write_bytes(place, contents, self.hidden / "unfinished")

    def close(self) -> None:
        """Removes the hidden folder, beginning with the mark of a running job, so that no task goes on writing; logs
        without a record; and the folder of the runs if it is new and empty.
        """
        remove_file(self.hidden / _RUNNING)
        if not is_there(self.place / RECORD):
            remove_folder(self.place)
        remove_folder(self.hidden)
        if self.fresh and not entries(self.folder):
            remove_folder(self.folder)

    def drain(self, logs: Iterable[LogFile], target: IO[bytes]) -> None:
        """Writes the bytes of logs to a file, and removes each, so that the disk never holds all of them twice."""
        for log in logs:
            place = self.logs / log.name
            with place.files.open_input_stream(place.path, compression=None) as file:
                copyfileobj(file, target, _CHUNK_BYTES)
            remove_file(place)

    def commit(self, format: str, counts: tuple[int, int], written: Sequence[LogFile]) -> None:
        """Makes the logs those of the folder, and removes those that they overwrite.

        Args:
            format: their media type.
            counts: the numbers of messages and quads.
            written: the files in `logs`, by their names there; other files are removed.
        """
        assert self.mode is not None
        with writing(self.folder.uri), _locked(self.folder):
            known = check(self.folder, self.mode)
            found = self._remove_others(self.logs, written)
            if any(found.get(file.name) != file.bytes for file in written):
                raise incomplete(self.folder.path)
            logs = [
                msgspec.structs.replace(file, name=f"{self.id}/{file.name}") for file in written
            ]
            number = 1 + max((record.number for record in known), default=0)
            record = RunRecord(self.id, format, *counts, logs, number, self.mode)
            if known and self.mode == "overwrite":  # other programs will see both runs for a while
                remove_file(self.folder / SUCCESS)
            self.write(self.logs / RECORD, record.encoded())
            if self._renames:
                move(self.logs, self.place)
                self._remove_others(self.place, written)  # of tasks that outlive the job
            self._settle(record)

    def _remove_others(self, logs: Place, written: Iterable[LogFile]) -> dict[str, int]:
        """Removes the files of a folder that are not logs of this run, and returns the sizes of those that are."""
        names, found = {file.name for file in written}, visible_below(logs)
        for name in found.keys() - names:
            remove_file(logs / name)
        return {name: found[name].size for name in found.keys() & names}

    def _settle(self, own: RunRecord) -> None:
        """Removes the files of runs that were overwritten, also of this one, and then names the last in `_SUCCESS`."""
        last = None
        while (runs := (found := RunFolder.of(self.folder)).runs) and runs[-1] != last:
            last, others = runs[-1], [each for each in found.known if each.run != own.run]
            if own.mode == "error" and any(other.number <= own.number for other in others):
                _remove(self.folder, own)  # the other may have ended well before
                raise exists(self.folder.uri)
            for record in found.known:
                if record not in runs:
                    _remove(self.folder, record)
            self.write(self.folder / SUCCESS, last.success())


@contextmanager
def _locked(folder: Place) -> Iterator[None]:
    """Holds the lock of a folder on a local file system; the system releases it when the process ends."""
    with ExitStack() as stack:
        if folder.is_local:
            descriptor = os.open(folder.path, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            with suppress(OSError):  # some network file systems cannot lock folders
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def check(folder: Place, mode: Mode) -> list[RunRecord]:
    """Checks that a folder may get the logs of a run, and returns its records.

    Logs that were added to a broken folder would look complete, and only files that runs have recorded are overwritten.
    """
    found = RunFolder.of(folder)
    if mode == "error" and (found.sizes or found.runs):
        raise exists(folder.uri)
    if mode == "overwrite":
        refuse_foreign(folder.uri, found.sizes, found.recorded)
    if mode == "append":
        for record in found.runs:
            wrong = damage(record, found.sizes)
            # otherwise it has just been overwritten
            if wrong and record in RunFolder.of(folder).runs:
                more = [f"and {len(wrong) - _NAMED} more"] if len(wrong) > _NAMED else []
                raise IncompleteResult(
                    f"{folder.uri} is incomplete: of run {record.run}, {', '.join([*wrong[:_NAMED], *more])}",
                    hint="overwrite it, or write to another folder",
                )
    return found.known


def exists(
    path: str, hint: str = "choose another path, or ask for it to be overwritten"
) -> UsageError:
    return UsageError(f"{path} exists already", hint=hint)


def _remove(folder: Place, record: RunRecord) -> None:
    """Removes the logs of a run, those that its record names in its folder, and then the rest if there is no other."""
    own, names = folder / record.run, {log.name for log in record.files}
    for name in visible_below(own):
        if f"{record.run}/{name}" in names:
            remove_file(own / name)
    if _RUN.fullmatch(record.run) and not visible_below(own):
        remove_folder(own)


def left_over(folder: Place) -> list[Run]:
    """Returns the runs with a hidden folder, which are running or were stopped."""
    names = sorted(info.base_name for info in entries(folder))
    found = [match.groups() for name in names if (match := _HIDDEN.fullmatch(name))]
    return [Run(folder, run, Owner(int(process), *own)) for run, process, *own in found]


def incomplete(path: str) -> IncompleteResult:
    return IncompleteResult(
        f"not all logs came to {path}: the executors write to another filesystem",
        hint="name a folder on a filesystem that they share",
    )


@contextmanager
def writing(uri: str) -> Iterator[None]:
    """Raises `CannotWrite` for an error of the file system."""
    try:
        yield
    except OSError as error:
        hint = "let the driver and all executors see the same files, or choose another place"
        raise CannotWrite(f"cannot write to {uri}: {error.strerror or error}", hint=hint) from error
