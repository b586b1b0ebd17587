"""The class archive: a file from which Java loads Spark's classes in half the time (JEP 350, Dynamic AppCDS).

The archive is in the user's cache, one for each version of Spark, Java and this package. A session uses it if it exists
and was made from the installed jars; `begin` starts a process (`archiving`) that makes it for later sessions. If it
cannot be used, Java starts without it. No session is started here.
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
"""The setting of Spark that contains Java's option for the archive."""

_OWN: Final = (
    "-XX:SharedArchiveFile",
    "-XX:ArchiveClassesAtExit",
    "-XX:+AutoCreateSharedArchive",
    "-Xshare",
)
_QUIET: Final = "-Xshare:auto -Xlog:cds*=off"
_CHUNK: Final = 1 << 20


def archive_path(java: str) -> Path | None:
    """Returns the path of the archive, which need not exist; None if archives are disabled or impossible.

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
    """Returns the settings of a new session that uses an archive, if it exists and the user has not named another.

    Args:
        given: the user's settings of the session; their options of Java are kept.
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
    """Returns whether an archive exists, is complete, and was made from the installed jars.

    Java ignores an archive of other jars, but crashes if the file is truncated or changed.
    """
    try:
        return summary_of(archive).read_text(encoding="ascii") == summary(archive)
    except (OSError, UnicodeDecodeError):
        return False


def summary(archive: Path) -> str:
    """Returns the size and the CRC-32 of an archive, and a checksum of Spark's jars.

    Raises:
        OSError: it cannot be read.
    """
    state = archive.stat()
    return (
        f"{state.st_size} {_crc32(archive, state.st_size, state.st_mtime_ns):08x} {_jars():08x}\n"
    )


@cache
def _crc32(file: Path, _size: int, _modified: int) -> int:
    """Returns the CRC-32 of a file, cached by its size and time: reading 190 MB takes a tenth of a second."""
    crc = 0
    with file.open("rb") as opened:
        while chunk := opened.read(_CHUNK):
            crc = crc32(chunk, crc)
    return crc


def _jars() -> int:
    """Returns a checksum of the names, sizes and times of Spark's jars, which change when Spark is reinstalled."""
    home, package = os.environ.get("SPARK_HOME"), find_spec("pyspark")
    folders = [home] if home else (package and package.submodule_search_locations) or []
    jars = sorted(jar for folder in folders for jar in Path(folder, "jars").glob("*.jar"))
    states = [
        (jar.name, state.st_size, state.st_mtime_ns) for jar in jars for state in [jar.stat()]
    ]
    return crc32(repr(states).encode())


def summary_of(archive: Path) -> Path:
    """Returns the file next to an archive that contains its `summary`."""
    return archive.with_suffix(".crc32")


def failure(archive: Path) -> Path:
    """Returns the file that marks a failed attempt to make an archive, so that it is not tried again."""
    return archive.with_suffix(".failed")


def begin(archive: Path | None) -> bool:
    """Starts a background process that makes an archive, unless a usable one exists; the process may fail.

    Returns:
        Whether a process was started, as after the first run of a version.
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
    except OSError:  # the cache is not writable, or no process can start: the next run starts as slowly as this one
        return False
    return True
