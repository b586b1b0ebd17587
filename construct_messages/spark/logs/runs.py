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
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec
from pyarrow import fs

from construct_messages.errors import CannotWrite, IncompleteResult, UsageError
from construct_messages.rdf.files.output import refuse_foreign
from construct_messages.spark.logs.files import (
    File,
    Place,
    S3Settings,
    find,
    place_of,
    read_bytes,
    remove_folder,
    visible_below,
)
from construct_messages.sparql.relational.tables import run_id

# --- records --------------------------------------------------------------------------------------

SUCCESS: Final = "_SUCCESS"
"""The file by which Spark's own writers mark a folder as complete; theirs is empty."""

Mode: TypeAlias = Literal["error", "overwrite", "append"]
MODES: Final[Sequence[Mode]] = ("error", "overwrite", "append")
"""How the logs of earlier runs are treated."""

RECORD: Final = "_run.json"
"""The file of the record in the folder of a run."""

_RUN: Final = re.compile(r"\d{8}T\d{12}Z-[0-9a-f]{4}")
_NAMED: Final = 3  # names that a message lists


class LogFile(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str  # its path in the folder
    bytes: int
    messages: int | None = None  # None: not known for each log
    crc32: int | None = None  # of its bytes, as of zlib


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


def records(folder: Place) -> list[RunRecord]:
    """Returns the records of a folder, in the order of the runs, also of those that were overwritten."""
    runs = [info.path for info in _entries(folder) if _RUN.fullmatch(info.base_name)]
    files = [f"{run}/{RECORD}" for run in runs]
    known = folder.files.get_file_info(files) if files else []
    # what Spark alone has written, over Spark Connect, is a folder with one file
    whole = [info for info in known if info.type == fs.FileType.Directory]
    known += [file for info in whole for file in visible_below(folder, info.path)]
    found = list[RunRecord]()
    for path in (info.path for info in known if info.type == fs.FileType.File):
        try:
            found.append(msgspec.json.decode(read_bytes(folder, path), type=RunRecord))
        except FileNotFoundError:  # another run has overwritten it meanwhile
            continue
        except msgspec.DecodeError as error:
            raise IncompleteResult(
                f"{folder.at(path).uri} is not the record of a run: {error}",
                hint="remove its folder, or write to another one",
            ) from error
    return sorted(found, key=lambda record: (record.number, record.run))


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


def last_run(folder: Place) -> str | None:
    """Returns the run that `_SUCCESS` names; an empty string if it names none, None if there is no `_SUCCESS`."""
    try:
        success: Any = msgspec.json.decode(read_bytes(folder, f"{folder.path}/{SUCCESS}"))
    except FileNotFoundError:
        return None
    except msgspec.DecodeError:
        return ""
    return str(success.get("run", "")) if isinstance(success, dict) else ""


def sizes(folder: Place) -> dict[str, int]:
    """Returns the size of each log in a folder, by its path in it, but not of runs that have no record."""
    runs = {record.run for record in records(folder)}
    names = {
        info.path.removeprefix(f"{folder.path}/"): info.size
        for info in visible_below(folder, folder.path)
    }
    return {name: size for name, size in names.items() if _run_of(name) in (None, *runs)}


def _run_of(name: str) -> str | None:
    """Returns the run that a log is of, by its path in the folder; None: it is in no folder of a run."""
    first, _, rest = name.partition("/")
    return first if rest and _RUN.fullmatch(first) else None


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


def logs_at(path: str, s3: S3Settings = (), *, grows: bool = False) -> list[File]:
    """Returns the files of a path (see `find`), without those of runs that a folder does not have."""
    runs, found = dict[str, set[str]](), list[File]()
    for file in find(path, s3, grows=grows):
        above, run, _ = _split(file.uri)
        if run and run not in path:
            if above not in runs:
                runs[above] = {record.run for record in current(records(place_of(above, s3)))}
            if run not in runs[above]:
                continue
        found.append(file)
    return found


def _split(uri: str) -> tuple[str, str, str]:
    """Splits a URI at the folder of a run, the last one that it names."""
    parts = uri.split("/")
    at = max((place for place, part in enumerate(parts[:-1]) if _RUN.fullmatch(part)), default=None)
    if at is None:
        return uri, "", ""
    return "/".join(parts[:at]), parts[at], "/".join(parts[at + 1 :])


# --- owners ---------------------------------------------------------------------------------------
# The process of a run, by which its hidden folder is removed when it has ended without removing that. Only processes
# of this machine can be looked up, in /proc; others count as running. Numbers of processes are used again, so that the
# start of a process is compared, too.

_PROC: Final = Path("/proc")
_JAVA: Final = "java"


class Owner(msgspec.Struct, frozen=True):
    # the host, and on Linux its boot and the namespace of the process number, as containers may have equal names
    machine: str
    process: int
    started: str  # empty: not known

    @classmethod
    def this(cls) -> Owner:
        return cls(_machine(), os.getpid(), _status(os.getpid())[3])

    @classmethod
    def java(cls) -> Owner:
        """Returns Spark's Java process, if it has started this process; otherwise this process."""
        number = os.getppid()
        while number:
            name, _, parent, started = _status(number)
            if name == _JAVA:
                return cls(_machine(), number, started)
            number = int(parent or 0)
        return cls.this()

    def has_ended(self) -> bool:
        """Returns whether the process is known to have ended; False if this cannot be known."""
        if self.machine != _machine() or not self.started:
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
def _machine() -> str:
    boot = _PROC / "sys/kernel/random/boot_id"
    if not boot.exists():
        return platform.node()
    return f"{platform.node()} {boot.read_text().strip()} {os.readlink(_PROC / 'self/ns/pid')}"


# --- runs -----------------------------------------------------------------------------------------

_OWNER: Final = "owner.json"


@dataclass(frozen=True)
class Run:
    """A run that writes into a folder. Its hidden folder has its name after a dot."""

    folder: Place
    id: str

    @classmethod
    def begin(cls, folder: Place, owner: Owner) -> Run:
        """Starts a run: makes its hidden folder, which `end` removes, and removes those of runs that have ended."""
        run = cls(folder, run_id())
        folder.files.create_dir(run.hidden, recursive=True)
        run.write(f"{run.hidden}/{_OWNER}", msgspec.json.encode(owner))
        for other in left_over(folder):
            if other.owner is not None and other.owner.has_ended():
                Run(folder, other.run).end()
        return run

    @property
    def hidden(self) -> str:
        return f"{self.folder.path}/.{self.id}"

    @property
    def place(self) -> str:
        """The folder of the logs in the end."""
        return f"{self.folder.path}/{self.id}"

    @property
    def logs(self) -> str:
        """The folder to write the logs into."""
        return f"{self.hidden}/logs" if self._renames else self.place

    @property
    def _renames(self) -> bool:
        return self.folder.files.type_name in ("local", "hdfs")

    def write(self, path: str, contents: bytes) -> None:
        """Writes a file, which is complete when it has its name."""
        files, unfinished = self.folder.files, f"{self.hidden}/unfinished"
        with files.open_output_stream(unfinished, compression=None) as file:
            file.write(contents)
        if files.type_name == "hdfs":  # its rename replaces no file
            with suppress(FileNotFoundError):
                files.delete_file(path)
        files.move(unfinished, path)

    def end(self, *, new: bool = False) -> None:
        """Removes the hidden folder, and logs without a record; if `new`, also an empty folder of the runs."""
        folder = self.folder
        record = folder.files.get_file_info(f"{self.place}/{RECORD}")
        if record.type == fs.FileType.NotFound:
            remove_folder(folder.at(self.place))
        remove_folder(folder.at(self.hidden))
        if new and not _entries(folder):
            with suppress(FileNotFoundError):
                folder.files.delete_dir(folder.path)

    def commit(
        self,
        format: str,
        counts: tuple[int, int],
        written: Sequence[LogFile],
        mode: Mode,
    ) -> None:
        """Makes the logs those of the folder, and removes what they overwrite.

        Args:
            format: their media type.
            counts: the numbers of messages and quads.
            written: the files in `logs`, by their names there; other files are removed.
        """
        with _locked(self.folder):
            known = check(self.folder, mode)
            found = self._remove_others(self.logs, written)
            if any(found.get(file.name) != file.bytes for file in written):
                raise incomplete(self.folder.path)
            logs = [
                msgspec.structs.replace(file, name=f"{self.id}/{file.name}") for file in written
            ]
            number = 1 + max((record.number for record in known), default=0)
            record = RunRecord(self.id, format, *counts, logs, number, mode)
            if known and mode == "overwrite":  # other programs will see both runs for a while
                _remove_file(self.folder, f"{self.folder.path}/{SUCCESS}")
            self.write(f"{self.logs}/{RECORD}", record.encoded())
            if self._renames:
                self.folder.files.move(self.logs, self.place)
                self._remove_others(self.place, written)  # of tasks that outlive the job
            self._settle(record)

    def _remove_others(self, logs: str, written: Iterable[LogFile]) -> dict[str, int]:
        """Removes the files of a folder that are not logs of this run, and returns the sizes of those that are."""
        names, found = {file.name for file in written}, dict[str, int]()
        for info in visible_below(self.folder, logs):
            if info.base_name in names:
                found[info.base_name] = info.size
            else:
                _remove_file(self.folder, info.path)
        return found

    def _settle(self, own: RunRecord) -> None:
        """Removes the files of runs that were overwritten, also of this one, and then names the last in `_SUCCESS`."""
        last = None
        while (found := records(self.folder)) and (now := current(found))[-1] != last:
            others = [record for record in found if record.run != own.run]
            if own.mode == "error" and any(other.number <= own.number for other in others):
                _remove(self.folder, own)  # the other may have ended well before
                raise _exists(self.folder)
            for record in found:
                if record not in now:
                    _remove(self.folder, record)
            last = now[-1]
            self.write(f"{self.folder.path}/{SUCCESS}", last.success())


@contextmanager
def _locked(folder: Place) -> Iterator[None]:
    """Holds the lock of a folder on a local file system; the system releases it when the process ends."""
    if not folder.is_local:
        yield
        return
    descriptor = os.open(folder.path, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems cannot lock folders
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def check(folder: Place, mode: Mode) -> list[RunRecord]:
    """Checks that a folder may get the logs of a run, and returns its records.

    Logs that were added to a broken folder would look complete, and only files that runs have recorded are overwritten.
    """
    known = records(folder)
    found = sizes(folder)
    if mode == "error" and (found or current(known)):
        raise _exists(folder)
    if mode == "overwrite":
        # another run may replace both between two looks
        runs = (*known, *records(folder))
        refuse_foreign(folder.uri, found, {log.name for run in runs for log in run.files})
    if mode == "append":
        for record in current(known):
            wrong = damage(record, found)
            if wrong and record in current(
                records(folder)
            ):  # otherwise it has just been overwritten
                more = [f"and {len(wrong) - _NAMED} more"] if len(wrong) > _NAMED else []
                raise IncompleteResult(
                    f"{folder.uri} is incomplete: of run {record.run}, {', '.join([*wrong[:_NAMED], *more])}",
                    hint="overwrite it, or write to another folder",
                )
    return known


def _exists(folder: Place) -> UsageError:
    return UsageError(
        f"{folder.uri} exists already", hint="choose another path, or ask for it to be overwritten"
    )


def _remove(folder: Place, record: RunRecord) -> None:
    """Removes the logs of a run, those that its record names in its folder, and then the rest if there is no other."""
    own = folder.at(f"{folder.path}/{record.run}")
    names = {log.name for log in record.files}
    for info in list(visible_below(folder, own.path)):
        if info.path.removeprefix(f"{folder.path}/") in names:
            _remove_file(folder, info.path)
    if _RUN.fullmatch(record.run) and not any(visible_below(folder, own.path)):
        remove_folder(own)


def _remove_file(folder: Place, path: str) -> None:
    with suppress(FileNotFoundError):
        folder.files.delete_file(path)


@dataclass(frozen=True)
class LeftOver:
    """The hidden folder of a run that is still running, or was stopped; its owner is None if it is unknown."""

    run: str
    owner: Owner | None


def left_over(folder: Place) -> list[LeftOver]:
    found = list[LeftOver]()
    for info in _entries(folder):
        name = info.base_name.removeprefix(".")
        if name != info.base_name and _RUN.fullmatch(name):
            found.append(LeftOver(name, _owner_of(folder, info.path)))
    return sorted(found, key=lambda each: each.run)


def _owner_of(folder: Place, path: str) -> Owner | None:
    try:
        return msgspec.json.decode(read_bytes(folder, f"{path}/{_OWNER}"), type=Owner)
    except (FileNotFoundError, msgspec.DecodeError):  # the run begins or ends at this moment
        return None


def _entries(folder: Place) -> list[Any]:
    selector = fs.FileSelector(folder.path, allow_not_found=True)
    return list(folder.files.get_file_info(selector))


def incomplete(path: str) -> IncompleteResult:
    return IncompleteResult(
        f"not all logs came to {path}: the executors write to another filesystem",
        hint="name a folder on a filesystem that they share",
    )


def unwritable(path: str, error: OSError) -> CannotWrite:
    return CannotWrite(f"cannot write to {path}: {error}", hint="choose another place")


def checksums(path: str) -> str:
    """Returns the path of the checksums that Hadoop stores for a file on a local file system."""
    above, _, name = path.rpartition("/")
    return f"{above}/.{name}.crc"
