"""The kept session of a user: `spark serve` records where its server listens, and commands on that machine find it.

The record is a file in a folder that no other user can write to. The server's process holds a lock on the file, so a
record whose server has ended is never used. Nothing here starts Spark or imports pyspark.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from stat import S_ISDIR
from typing import Final, NamedTuple

from construct_messages._version import __version__

RUNTIME: Final = "XDG_RUNTIME_DIR"
"""The environment variable with the user's runtime folder (XDG Base Directory Specification)."""

_NAME: Final = "spark-session.json"
_TRIES: Final = 25
_TRY_SECONDS: Final = 0.02


class KeptSession(NamedTuple):
    """A Spark Connect server that `spark serve` started, and the versions that its clients must have.

    Args:
        url: its address, `sc://HOST:PORT`.
        spark: the version of Spark.
        package: the version of this package, whose jar the server has loaded.
        python: the minor version of Python, which Spark's workers share with their clients.
    """

    url: str
    spark: str
    package: str
    python: str

    @classmethod
    def here(cls, url: str) -> KeptSession:
        """Returns a session with the versions that are installed here.

        >>> KeptSession.here("sc://127.0.0.1:15002").mismatch()
        """
        return cls(url, _spark_version(), __version__, "{}.{}".format(*sys.version_info))

    def mismatch(self) -> str | None:
        """Returns how the server differs from the versions installed here, in words; None: it does not.

        >>> KeptSession("sc://127.0.0.1:15002", "1.0", __version__, "3.0").mismatch() != None
        True
        """
        own = KeptSession.here(self.url)
        differing = [
            f"{label} {theirs}, not {ours}"
            for label, theirs, ours in (
                ("Spark", self.spark, own.spark),
                ("construct-messages", self.package, own.package),
                ("Python", self.python, own.python),
            )
            if theirs != ours
        ]
        return ", ".join(differing) or None


def record(session: KeptSession) -> bool:
    """Records the session for as long as this process lives, also where it replaces itself by another program.

    Returns:
        Whether it is recorded: only the first session of a user is.
    """
    folder = _folder(create=True)
    if folder is None:
        return False
    # kept open and passed on to the program that replaces this one: the lock ends with the last of its descriptors
    lock = os.open(folder / _NAME, os.O_RDWR | os.O_CREAT, 0o600)
    if not _locked(lock):
        os.close(lock)
        return False
    os.ftruncate(lock, 0)
    os.write(lock, json.dumps(session._asdict()).encode())
    os.set_inheritable(lock, True)
    return True


def _locked(file: int) -> bool:
    """Locks the record unless another server holds it; a client that looks at it does so for a moment only."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_TRY_SECONDS)
        else:
            return True
    return False


def find() -> KeptSession | None:
    """Returns the session that this user keeps on this machine, or None if there is none or its server has ended."""
    folder = _folder(create=False)
    if folder is None:
        return None
    try:
        file = (folder / _NAME).open("rb")
    except FileNotFoundError:
        return None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            try:
                return KeptSession(**json.load(file))
            except (ValueError, TypeError):  # of another version, or just being written
                return None
    return None


def _folder(*, create: bool) -> Path | None:
    """Returns the folder of the record; None: it is not there, or other users can write to it."""
    runtime = os.environ.get(RUNTIME)
    folder = (
        Path(runtime, "construct-messages")
        if runtime
        else Path(tempfile.gettempdir(), f"construct-messages-{os.getuid()}")
    )
    try:
        if create:
            folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:  # no folder, or none in which this user can create one
        return None
    private = S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
    return folder if private else None


def _spark_version() -> str:
    for name in ("pyspark", "pyspark-client"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return ""
