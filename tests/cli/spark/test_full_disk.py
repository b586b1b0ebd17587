"""A disk that is full before the output of Spark is written."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.support.commands import Done

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.process, pytest.mark.slow]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """One MiB; in no namespace of its own, as Spark is to see it."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("load", "{place}/big.nt", "--output", "{disk}/table"),
        ("run", "{place}/all.rq", "--quads", "{place}/big.nt", "--output", "{disk}/log.nq"),
        ("run", "{place}/all.rq", "--quads", "{place}/big.nt", "--output", "{disk}/logs"),
        (
            "run",
            "{place}/all.rq",
            "--quads",
            "{place}/big.nt",
            "--output",
            "{disk}/logs",
            "--format",
            "trig",
        ),
    ],
    ids=["table", "log", "folder", "TriG"],
)
def test_a_full_disk_is_named(
    spark: SparkSession, here: Callable[..., Done], small_disk: Path, arguments: tuple[str, ...]
) -> None:
    assert spark.getActiveSession() is not None
    place = small_disk.parent
    noise = Random(1)
    lines = (f'<urn:s{n}> <urn:p> "{noise.getrandbits(320):x}" .\n' for n in range(20_000))
    (place / "big.nt").write_text("".join(lines))
    (place / "all.rq").write_text("CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }")
    done = here("spark", *(each.format(disk=small_disk, place=place) for each in arguments))
    assert done.status == 1, done.errors
    assert re.match(
        rf"error: cannot write to (file://)?{small_disk}[^\n]*: .*No space left on device\n"
        "hint: .*choose another place\n",
        done.errors,
    ), done.errors
    assert [file for file in small_disk.rglob("*") if file.is_file()] == []
