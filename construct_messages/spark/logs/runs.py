"""Runs that write logs into a folder: each writes into its own hidden folder, and a commit renames its logs.

Runs may write into one folder at once; the last commit wins. On a local file system commits wait for one another.
Elsewhere there are no locks: a commit checks the folder again after it has renamed its logs, and raises if they are not
all there. Hidden folders of runs whose process has ended are removed. No Spark here; the contents of logs are not
read.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import secrets
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
from pyarrow import fs

from construct_messages.errors import CannotWrite, IncompleteResult, UsageError
from construct_messages.rdf.files.output import refuse_foreign
from construct_messages.spark.logs.files import Place, read_bytes, remove_folder, visible_below

# --- records --------------------------------------------------------------------------------------
# Each run has a record, `_run-ID.json`, written before its logs get their names. `_SUCCESS` names the last run, and is
# written when all its logs have their names. Spark ignores names that begin with `_`.

SUCCESS: Final = "_SUCCESS"
"""The file by which Spark's own writers mark a folder as complete; theirs is empty."""

RECORDS: Final = "_run-*.json"
"""The names of the files of records."""

_PREFIX, _, _SUFFIX = RECORDS.partition("*")


def run_id() -> str:
    """Returns the identifier of a new run, which sorts after those of earlier runs."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}-{secrets.token_hex(2)}"


class LogFile(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    bytes: int
    messages: int | None = None  # None: not known for each log
    crc32: int | None = None  # of its bytes, as of zlib


class RunRecord(msgspec.Struct, frozen=True):
    run: str  # its identifier, which is part of the names of its logs
    format: str  # the media type of the logs, without their compression
    messages: int
    quads: int
    files: Sequence[LogFile]

    @property
    def name(self) -> str:
        return f"{_PREFIX}{self.run}{_SUFFIX}"

    def encoded(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self)) + b"\n"

    def success(self) -> bytes:
        """Returns the contents of `_SUCCESS`."""
        figures = {
            "run": self.run,
            "messages": self.messages,
            "quads": self.quads,
            "files": len(self.files),
        }
        return msgspec.json.encode(figures) + b"\n"


def write(folder: Place, name: str, contents: bytes) -> None:
    with folder.files.open_output_stream(f"{folder.path}/{name}", compression=None) as file:
        file.write(contents)


def records(folder: Place) -> list[RunRecord]:
    """Returns the records of a folder, in the order of the runs."""
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
    try:
        return msgspec.json.decode(contents, type=RunRecord)
    except msgspec.DecodeError as error:
        raise IncompleteResult(
            f"{name} is not the record of a run: {error}",
            hint="remove it, or write to another folder",
        ) from error


def remove_record(folder: Place, record: RunRecord) -> None:
    place = folder.at(f"{folder.path}/{record.name}")
    if place.files.get_file_info(place.path).type == fs.FileType.Directory:
        remove_folder(place)
    else:
        with suppress(FileNotFoundError):
            place.files.delete_file(place.path)


def last_run(folder: Place) -> str | None:
    """Returns the run that `_SUCCESS` names; an empty string if it names none, None if there is no `_SUCCESS`."""
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
    """Returns the size of each log in a folder, by its path in it."""
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


# --- owners ---------------------------------------------------------------------------------------
# The process of a run that writes logs, and whether it has ended: the files of such a run may then be removed.
#
# Only processes of this machine can be looked up. Process numbers are reused, so a process is identified by its
# number and its start time; if the start cannot be read, the process counts as running. No logs and no Spark here.

_PROC: Final = Path("/proc")
_BOOT: Final = _PROC / "sys/kernel/random/boot_id"
_PID_NAMESPACE: Final = _PROC / "self/ns/pid"
_JAVA: Final = "java"


class Owner(msgspec.Struct, frozen=True):
    """A process: its number and its start, as the system stores it."""

    # the host, and on Linux its boot and the namespace of the process number, as containers may have equal names
    machine: str
    process: int
    started: str

    @classmethod
    def this(cls) -> Owner:
        return cls._of(os.getpid())

    @classmethod
    def java(cls) -> Owner:
        """Returns Spark's Java process, if it has started this process; otherwise this process."""
        number: int | None = os.getppid()
        while number and (found := _look_up(number)):
            if found.name == _JAVA:
                return cls._of(number)
            number = found.parent
        return cls.this()

    @classmethod
    def _of(cls, number: int) -> Owner:
        found = _look_up(number)
        return cls(_machine(), number, found.started if found else "")

    def has_ended(self) -> bool:
        """Returns whether the process is known to have ended; False if this cannot be known."""
        if self.machine != _machine():
            return False
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except (
            PermissionError
        ):  # a process of another user, which may have the number of an ended one
            return False
        found = _look_up(self.process)
        return (
            found is not None
            and self.started != ""
            and (found.started != self.started or found.is_zombie)
        )


class _Process(msgspec.Struct, frozen=True):
    name: str
    parent: int
    started: str
    is_zombie: bool


def _look_up(number: int) -> _Process | None:
    """Returns the system's entry of a process; None if there is none, or it is not visible."""
    try:
        if _BOOT.exists():
            # proc_pid_stat(5): number (name) state parent …; the 22nd field is the start, in ticks since the boot
            before, _, after = (_PROC / str(number) / "stat").read_text().rpartition(")")
            fields = after.split()
            return _Process(before.partition("(")[2], int(fields[1]), fields[19], fields[0] == "Z")
        columns = [
            *["ps", "-o", "stat=", "-o", "ppid=", "-o", "lstart=", "-o", "comm=", "-p"],
            str(number),
        ]
        fields = subprocess.run(columns, capture_output=True, text=True, check=False).stdout.split()
        state, parent, *start = fields[:7]
        return _Process(
            Path(" ".join(fields[7:])).name, int(parent), " ".join(start), state.startswith("Z")
        )
    except (OSError, ValueError, IndexError):
        return None


@cache
def _machine() -> str:
    names = [platform.node()]
    if _BOOT.exists():
        names += [_BOOT.read_text().strip(), os.readlink(_PID_NAMESPACE)]
    return " ".join(names)


# --- runs -----------------------------------------------------------------------------------------

_HIDDEN: Final = re.compile(r"\.(\d{8}T\d{12}Z-[0-9a-f]{4})")
_OWNER: Final = "owner.json"
_NAMED: Final = 3  # names that a message lists


@dataclass(frozen=True)
class Run:
    """A run that writes into a folder. Its id names its hidden folder, after a dot, and is part of the names of its
    logs.
    """

    folder: Place
    id: str

    @classmethod
    def begin(cls, folder: Place, owner: Owner) -> Run:
        """Starts a run: makes its hidden folder, which `end` removes, and removes the hidden folders of ended runs."""
        run = cls(folder, run_id())
        folder.files.create_dir(run.hidden, recursive=True)
        write(folder.at(run.hidden), _OWNER, msgspec.json.encode(owner))
        for other in left_over(folder):
            if other.owner is not None and other.owner.has_ended():
                remove_folder(folder.at(other.path))
        return run

    @property
    def hidden(self) -> str:
        return f"{self.folder.path}/.{self.id}"

    def end(self, *, new: bool = False) -> None:
        """Removes the hidden folder; if `new`, also the folder of the logs, if it is empty."""
        remove_folder(self.folder.at(self.hidden))
        files, path = self.folder.files, self.folder.path
        if new and not files.get_file_info(fs.FileSelector(path, allow_not_found=True)):
            with suppress(FileNotFoundError):
                files.delete_dir(path)

    def commit(
        self, written: Sequence[str], record: RunRecord, *, overwrite: bool, alone: bool = False
    ) -> None:
        """Renames the logs, removes files to overwrite, and writes `_SUCCESS` when all logs are there.

        The record has the names of the logs in `written`. If `alone`, logs of other runs are an error. If a file cannot
        be moved or removed, existing logs are kept.
        """
        with _locked(self.folder):
            self._commit(written, record, overwrite, alone)

    def _commit(
        self, written: Sequence[str], record: RunRecord, overwrite: bool, alone: bool
    ) -> None:
        if alone and sizes(self.folder):
            raise UsageError(
                f"{self.folder.uri} exists already: another run has written there meanwhile",
                hint="choose another path, or ask for it to be overwritten",
            )
        if overwrite:
            check_overwriting(self.folder)
        else:
            check_runs(self.folder)
        before = self._take_success() if overwrite else None
        write(self.folder, record.name, record.encoded())
        try:
            for source, log in zip(written, record.files, strict=True):
                self._move(source, log.name)
        except OSError:
            self._withdraw(record)
            if before is not None:
                write(self.folder, SUCCESS, before)
            raise
        if overwrite:
            self._remove_others(record)
        _remove_checksums(self.folder, SUCCESS)
        write(self.folder, SUCCESS, record.success())
        if wrong := self._differences(record, others=not (overwrite or alone)):
            self._withdraw(record)
            raise IncompleteResult(
                f"another run wrote to {self.folder.uri} at the same time: {_listed(wrong)}",
                hint="run one after the other, or give each a separate folder",
            )

    def _differences(self, record: RunRecord, *, others: bool) -> list[str]:
        """Describes the changes of another run to the files that this one has just written."""
        wrong = damage(record, found := sizes(self.folder))
        if record not in records(self.folder):
            wrong.append(f"{record.name} is missing")
        if not others:
            own = {log.name for log in record.files}
            wrong += [f"{name} is of another run" for name in found if name not in own]
            if last_run(self.folder) != self.id:
                wrong.append(f"{SUCCESS} is of another run")
        return wrong

    def _take_success(self) -> bytes | None:
        try:
            before = read_bytes(self.folder, f"{self.folder.path}/{SUCCESS}")
        except FileNotFoundError:
            return None
        _remove_file(self.folder, SUCCESS)
        return before

    def _move(self, source: str, name: str) -> None:
        files, path = self.folder.files, self.folder.path
        files.move(source, f"{path}/{name}")
        if self.folder.is_local:
            with suppress(FileNotFoundError):
                files.move(checksums(source), checksums(f"{path}/{name}"))

    def _remove_others(self, record: RunRecord) -> None:
        found, own = sizes(self.folder), {log.name for log in record.files}
        for other in records(self.folder):
            if other.run != self.id:
                for log in other.files:
                    if log.name in found and log.name not in own:  # no record names other folders
                        _remove_log(self.folder, log.name)
                remove_record(self.folder, other)

    def _withdraw(self, record: RunRecord) -> None:
        """Removes the files of a commit that cannot be completed."""
        if last_run(self.folder) == self.id:
            _remove_file(self.folder, SUCCESS)
        for log in record.files:
            _remove_log(self.folder, log.name)
        _remove_file(self.folder, record.name)


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


def check_runs(folder: Place) -> None:
    """Checks that all logs of earlier runs are there: otherwise logs added to a broken folder would look complete."""
    known = records(folder)
    committing = {
        run.run for run in left_over(folder) if run.owner is None or not run.owner.has_ended()
    }
    found = sizes(
        folder
    )  # last: when the hidden folder of a run is gone, the logs of its record have their names
    for record in known:
        if record.run not in committing and (wrong := damage(record, found)):
            raise IncompleteResult(
                f"{folder.uri} is incomplete: of run {record.run}, {_listed(wrong)}",
                hint="overwrite it, or write to another folder",
            )


def check_overwriting(folder: Place) -> None:
    """Checks that all visible files in a folder are logs of earlier runs: only these are overwritten."""
    # another run may replace both between two looks
    known, found, now = records(folder), sizes(folder), records(folder)
    refuse_foreign(folder.uri, found, {log.name for run in (*known, *now) for log in run.files})


@dataclass(frozen=True)
class LeftOver:
    """The hidden folder of a run that is still running, or was stopped; its owner is None if it is unknown."""

    path: str
    run: str
    owner: Owner | None


def left_over(folder: Place) -> list[LeftOver]:
    found = list[LeftOver]()
    for info in folder.files.get_file_info(fs.FileSelector(folder.path, allow_not_found=True)):
        if (match := _HIDDEN.fullmatch(info.base_name)) and info.type == fs.FileType.Directory:
            found.append(LeftOver(info.path, match[1], _owner_of(folder, info.path)))
    return sorted(found, key=lambda each: each.run)


def _owner_of(folder: Place, path: str) -> Owner | None:
    try:
        return msgspec.json.decode(read_bytes(folder, f"{path}/{_OWNER}"), type=Owner)
    except (FileNotFoundError, msgspec.DecodeError):  # the run begins or ends at this moment
        return None


def unwritable(path: str, error: OSError) -> CannotWrite:
    return CannotWrite(f"cannot write to {path}: {error}", hint="choose another place")


def checksums(path: str) -> str:
    """Returns the path of the checksums that Hadoop stores for a file on a local file system."""
    above, _, name = path.rpartition("/")
    return f"{above}/.{name}.crc"


def _remove_log(folder: Place, name: str) -> None:
    _remove_file(folder, name)
    _remove_checksums(folder, name)


def _remove_checksums(folder: Place, name: str) -> None:
    if folder.is_local:
        with suppress(FileNotFoundError):
            folder.files.delete_file(checksums(f"{folder.path}/{name}"))


def _remove_file(folder: Place, name: str) -> None:
    with suppress(FileNotFoundError):
        folder.files.delete_file(f"{folder.path}/{name}")


def _listed(wrong: Sequence[str]) -> str:
    more = len(wrong) - _NAMED
    return ", ".join([*wrong[:_NAMED], *([f"and {more} more"] if more > 0 else [])])
