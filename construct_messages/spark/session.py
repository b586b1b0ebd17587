"""Spark itself: whether it can run here, a session for the command line, and its exceptions as errors of this package.

The only room that starts Spark or reads the environment; it never changes a session that exists. Nothing about RDF
or queries, and pyspark is imported when it is needed, so that its absence can be told.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from construct_messages.errors import SparkUnavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OLDEST_JAVA: Final = 17
_INSTALL: Final = "pip install 'construct-messages[spark]'"
_INSTALL_JAVA: Final = (
    f"install Java {_OLDEST_JAVA} or later (Debian: apt-get install openjdk-17-jre-headless) and set JAVA_HOME, "
    "or use a Spark Connect server (--remote), which needs no Java here"
)


def require(*, java: bool = True) -> None:
    """Makes sure that Spark can run here.

    Args:
        java: whether a driver is to run on this machine; a client of Spark Connect needs no Java.

    Raises:
        SparkUnavailable: pyspark or Java is missing or too old; the hint says how to install it.
    """
    if missing := [name for name in ("pyspark", "pyarrow", "pandas") if find_spec(name) is None]:
        raise SparkUnavailable(f"{' and '.join(missing)} not installed, and needed for Spark", hint=_INSTALL)
    if java:
        _require_java()


def _require_java() -> None:
    # as Spark's own launcher looks for it
    home = os.environ.get("JAVA_HOME")
    command = os.path.join(home, "bin", "java") if home else "java"
    found = shutil.which(command)
    if found is None:
        where = f"in JAVA_HOME ({home})" if home else "on PATH"
        raise SparkUnavailable(f"Spark needs Java, and there is none {where}", hint=_INSTALL_JAVA)
    done = subprocess.run([found, "-version"], capture_output=True, text=True)
    version = _java_version(done.stderr + done.stdout)
    if done.returncode or version is None:
        raise SparkUnavailable(f"{found} does not run: {(done.stderr or done.stdout).strip()}", hint=_INSTALL_JAVA)
    if version < _OLDEST_JAVA:
        raise SparkUnavailable(
            f"Spark needs Java {_OLDEST_JAVA} or later, and {found} is Java {version}", hint=_INSTALL_JAVA
        )


def _java_version(text: str) -> int | None:
    """The feature release that `java -version` tells; before Java 9 it was the second number.

    >>> _java_version('openjdk version "17.0.15" 2025-04-15'), _java_version('java version "1.8.0_402"')
    (17, 8)
    """
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match[1]) if match else None


def local_session(master: str = "local[*]", settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session for a process that has none; one that exists is given as it is.

    Args:
        master: Spark's master URL.
        settings: of the new session, by Spark's names; they go before the ones made here.

    Raises:
        SparkUnavailable: see `require`.
    """
    require()
    from pyspark.sql import SparkSession

    if (active := SparkSession.getActiveSession()) is not None:
        return active
    # workers would otherwise be whatever python3 is first on PATH, without this package's libraries
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("construct-messages")
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    for name, value in {**quiet, **(settings or {})}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
