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
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import msgspec
from pyarrow import fs

from construct_messages.rdf.errors import IncompleteResult, UsageError
from construct_messages.rdf.files.output import refuse_foreign
from construct_messages.spark.logs.files import Place, read_bytes, remove_folder
from construct_messages.spark.logs.records import (
    SUCCESS,
    RunRecord,
    damage,
    last_run,
    records,
    remove_record,
    run_id,
    sizes,
    write,
)

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
    """A process.

    Args:
        machine: its machine: the name of the host, and on Linux its boot and the namespace of the process number,
            since containers may have equal names.
        process: its number.
        started: its start time, as the system stores it.
    """

    machine: str
    process: int
    started: str

    @classmethod
    def this(cls) -> Owner:
        """Returns this process."""
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
        """Returns whether the process is known to have ended; False if this cannot be known.

        >>> Owner.this().has_ended()
        False
        """
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
            "ps",
            "-o",
            "stat=",
            "-o",
            "ppid=",
            "-o",
            "lstart=",
            "-o",
            "comm=",
            "-p",
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
    """A run that writes into a folder.

    Args:
        folder: the folder.
        id: the name of its hidden folder, after a dot, and part of the names of its logs; the logs of later runs sort
            after those of earlier ones.
    """

    folder: Place
    id: str

    @classmethod
    def begin(cls, folder: Place, owner: Owner) -> Run:
        """Starts a run: makes its hidden folder, which `end` removes, and removes the hidden folders of ended runs.

        Args:
            folder: the folder, which need not exist.
            owner: the process of the run; when it has ended, so has the run.

        Raises:
            OSError: the folder cannot be written.
        """
        run = cls(folder, run_id())
        folder.files.create_dir(run.hidden, recursive=True)
        write(folder.at(run.hidden), _OWNER, msgspec.json.encode(owner))
        for other in left_over(folder):
            if other.owner is not None and other.owner.has_ended():
                remove_folder(folder.at(other.path))
        return run

    @property
    def hidden(self) -> str:
        """The path of its hidden folder."""
        return f"{self.folder.path}/.{self.id}"

    def end(self, *, new: bool = False) -> None:
        """Removes the hidden folder.

        Args:
            new: also remove the folder of the logs, if it is empty.

        Raises:
            OSError: something cannot be removed.
        """
        remove_folder(self.folder.at(self.hidden))
        files, path = self.folder.files, self.folder.path
        if new and not files.get_file_info(fs.FileSelector(path, allow_not_found=True)):
            with suppress(FileNotFoundError):
                files.delete_dir(path)

    def commit(
        self, written: Sequence[str], record: RunRecord, *, overwrite: bool, alone: bool = False
    ) -> None:
        """Renames the logs, removes files to overwrite, and writes `_SUCCESS` when all logs are there.

        Args:
            written: the paths of the logs.
            record: has their names, in the same order.
            overwrite: whether logs of other runs are removed.
            alone: whether logs of other runs are an error.

        Raises:
            UsageError: there are logs of other runs, or files to overwrite that no run has written.
            IncompleteResult: another run has written here meanwhile, or an earlier one was stopped.
            OSError: a file cannot be moved or removed; existing logs are then kept.
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
                hint="run one after the other, or give each a folder of its own",
            )

    def _differences(self, record: RunRecord, *, others: bool) -> list[str]:
        """Describes the changes of another run to the files that this one has just written.

        Args:
            record: of this run.
            others: whether there may be logs of other runs.
        """
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
        """Removes `_SUCCESS`; returns its contents."""
        try:
            before = read_bytes(self.folder, f"{self.folder.path}/{SUCCESS}")
        except FileNotFoundError:
            return None
        _remove_file(self.folder, SUCCESS)
        return before

    def _move(self, source: str, name: str) -> None:
        """Moves a log, and its checksums."""
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
    """Checks that all logs of earlier runs are there: otherwise logs added to a broken folder would look complete.

    Raises:
        IncompleteResult: one is missing, or has another size.
        OSError: the folder cannot be read.
    """
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
    """Checks that all visible files in a folder are logs of earlier runs: only these are overwritten.

    Raises:
        UsageError: there are others.
        IncompleteResult: a record cannot be read.
        OSError: the folder cannot be read.
    """
    # another run may replace both between two looks
    known, found, now = records(folder), sizes(folder), records(folder)
    refuse_foreign(folder.uri, found, {log.name for run in (*known, *now) for log in run.files})


@dataclass(frozen=True)
class LeftOver:
    """The hidden folder of a run that is still running, or was stopped.

    Args:
        path: its path.
        run: the run.
        owner: its process; None: unknown.
    """

    path: str
    run: str
    owner: Owner | None


def left_over(folder: Place) -> list[LeftOver]:
    """Returns the hidden folders of runs in a folder, in the order of the runs.

    Raises:
        OSError: it cannot be listed.
    """
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


def checksums(path: str) -> str:
    """Returns the path of the checksums that Hadoop stores for a file on a local file system.

    >>> checksums("/logs/part-0.txt")
    '/logs/.part-0.txt.crc'
    """
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
