"""The class archive: a file from which Java loads Spark's classes in half the time (JEP 350, Dynamic AppCDS).

It lies in the user's cache, one for each version of Spark, Java and this package. A session uses it if it is there and
was made of the jars that are installed; `begin` has it made by a process of its own (`archiving`), for the next
sessions. If it cannot be used, Java starts without it. Nothing here starts a session.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from zlib import crc32

CACHE: Final = "CONSTRUCT_MESSAGES_CACHE"
"""The environment variable that names the folder of the archives; if it is empty, there are none."""

OPTIONS: Final = "spark.driver.extraJavaOptions"
"""Spark's setting that archives are named in."""

_OWN: Final = (
    "-XX:SharedArchiveFile",
    "-XX:ArchiveClassesAtExit",
    "-XX:+AutoCreateSharedArchive",
    "-Xshare",
)
_QUIET: Final = "-Xshare:auto -Xlog:cds*=off"
_CHUNK: Final = 1 << 20


def archive_path(java: str) -> Path | None:
    """Where the archive is, if there is one; None if there is to be none.

    Args:
        java: the output of `java -version`.
    """
    folder = _folder()
    if folder is None:
        return None
    try:
        versions = [version(name) for name in ("pyspark", "construct-messages")]
    except PackageNotFoundError:  # a checkout that is not installed, or pyspark of a cluster
        return None
    place = os.environ.get("SPARK_HOME", ""), os.environ.get("SPARK_CONF_DIR", ""), sys.prefix
    key = "\n".join([*versions, java, platform.machine(), *place])
    return folder / f"spark-{versions[0]}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.jsa"


def _folder() -> Path | None:
    if (given := os.environ.get(CACHE)) is not None:
        return Path(given) if given else None
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home
        return None
    return cache / "construct-messages"


def settings(given: Mapping[str, str], archive: Path | None) -> dict[str, str]:
    """The settings of a new session that uses an archive, if it is there and the user names none.

    Args:
        given: the user's settings of the session; options of Java are kept.
        archive: see `archive_path`.
    """
    options = given.get(OPTIONS, "")
    if (
        archive is None
        or any(own in options for own in _OWN)
        or not _can_be_named(archive)
        or not is_usable(archive)
    ):
        return {}
    return {OPTIONS: f"{options} -XX:SharedArchiveFile={archive} {_QUIET}".strip()}


def _can_be_named(archive: Path) -> bool:
    return not set(str(archive)) & set(" \"'\\")  # options are separated by spaces


def is_usable(archive: Path) -> bool:
    """Whether an archive is there, whole, and made of the jars that are installed now.

    Java ignores an archive of other jars, and a file that was cut off or changed ends it.
    """
    try:
        return summary_of(archive).read_text(encoding="ascii") == summary(archive)
    except (OSError, UnicodeDecodeError):
        return False


def summary(archive: Path) -> str:
    """The size and the CRC-32 of an archive, and a number for Spark's jars.

    Raises:
        OSError: it cannot be read.
    """
    state = archive.stat()
    return (
        f"{state.st_size} {_crc32(archive, state.st_size, state.st_mtime_ns):08x} {_jars():08x}\n"
    )


@cache
def _crc32(file: Path, _size: int, _modified: int) -> int:
    """The CRC-32 of a file; of one that has not changed meanwhile, as it was: 190 MB take a tenth of a second."""
    crc = 0
    with file.open("rb") as opened:
        while chunk := opened.read(_CHUNK):
            crc = crc32(chunk, crc)
    return crc


def _jars() -> int:
    """A number for the names, sizes and times of Spark's jars, which are others once Spark is installed again."""
    home, package = os.environ.get("SPARK_HOME"), find_spec("pyspark")
    folders = [home] if home else (package and package.submodule_search_locations) or []
    jars = sorted(jar for folder in folders for jar in Path(folder, "jars").glob("*.jar"))
    states = [
        (jar.name, state.st_size, state.st_mtime_ns) for jar in jars for state in [jar.stat()]
    ]
    return crc32(repr(states).encode())


def summary_of(archive: Path) -> Path:
    """The file next to an archive that contains its `summary`."""
    return archive.with_suffix(".crc32")


def failure(archive: Path) -> Path:
    """The file that marks a failed attempt to make an archive, so that it is not tried again."""
    return archive.with_suffix(".failed")


def begin(archive: Path | None) -> bool:
    """Starts a process in the background that makes an archive, unless there is one to use; it may fail.

    Returns:
        Whether a process was started, which is after the first run of a version.
    """
    if (
        archive is None
        or not _can_be_named(archive)
        or failure(archive).exists()
        or is_usable(archive)
    ):
        return False
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        subprocess.Popen(
            [sys.executable, "-m", "construct_messages.spark.archiving", str(archive)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:  # a cache that cannot be written, or no more processes: the next run starts as slowly as this one
        return False
    return True
