"""The process of a run that writes logs, and whether it has ended: the files of such a run may then be removed.

Only processes of this machine can be looked up. Process numbers are reused, so a process is identified by its number
and its start time; if the start cannot be read, the process counts as running. No logs and no Spark here.
"""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

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
