"""Clusters of Spark on this machine: where they keep their files, and the programs that use them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from construct_messages.errors import SparkUnavailable
from construct_messages.spark import session
from tests.support.commands import Done
from tests.support.places import absent
from tests.support.processes import end_group

SECONDS = 1200

_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": _QUICK,
    "spark.executor.extraJavaOptions": _QUICK,
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
}
"""Small and soon ready: what is tested is what comes to where, and not how fast."""


def spark_home(place: Path) -> Path:
    """A folder for `SPARK_HOME`, in which a cluster keeps its files: that of the installed Spark but for those.

    Skips the test where Spark is missing.
    """
    try:
        session.require()
    except SparkUnavailable as unavailable:
        absent(str(unavailable))
    import pyspark  # what is missing has been told

    home = place / "spark"
    home.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        (home / part.name).symlink_to(part)
    return home


def run(
    command: tuple[str | Path, ...], place: Path, environment: Mapping[str, str], seconds: float
) -> Done:
    """A program in a process of its own; what it has started ends with it."""
    process = subprocess.Popen(
        command,
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        log, errors = process.communicate(timeout=seconds)
    finally:
        end_group(process)
    return Done(process.returncode, log, errors)
