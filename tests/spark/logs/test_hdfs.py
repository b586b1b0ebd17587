"""Runs of logs on HDFS: the same code as on a local disk, by pyarrow and libhdfs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.places import ROOT
from tests.support.processes import end_group

FOLDER = os.environ.get("CONSTRUCT_MESSAGES_HDFS", "")
"""The folder of the jars of tests/support/engines/hdfs.xml, and of `libhdfs.so`, which Hadoop's downloads have."""

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER, reason="libhdfs is in no registry: see `make hdfs`"),
]

PROGRAM = """
import sys
import pyarrow as pa
from pyarrow import fs
from construct_messages.spark.logs.sinks import LogJob
from construct_messages.spark.logs.files import place_of
from construct_messages.spark.logs.options import WriteOptions
from construct_messages.spark.logs.runs import logs_at
from construct_messages.spark.logs.verification import verify_folder

url = sys.argv[1]
folder = place_of(url)

def begin(path=url, overwrite=False, **options):
    return LogJob.begin(WriteOptions.of({"path": path, **options}), overwrite=overwrite)

def log(job, number):
    text = f"<urn:s{number}> <urn:p> <urn:o> ."
    return job.write_part([pa.record_batch({"message": [text]})], number, number)

def check(messages, *jobs):
    found = verify_folder(url)
    assert (found.messages, found.problems, found.notes) == (messages, [], []), found
    assert {*found.runs} == {job.run.id for job in jobs} and len(logs_at(url)) == messages, found

first = begin()
first.commit([log(first, 0), log(first, 1)])
check(2, first)
one, other = begin(), begin(format="trig")
logs = log(one, 2), log(other, 3)
other.commit([logs[1]])
one.commit([logs[0]])
check(4, first, one, other)
failed = begin()
log(failed, 4)
failed.abort()
check(4, first, one, other)
last = begin(overwrite=True)
last.commit([log(last, 5)])
check(1, last)
for overwrite in (False, True):
    single = begin(f"{url}/single.nq", overwrite, single="true")
    single.commit([log(single, 6)])
names = {info.path.removeprefix(folder.path) for info in folder.files.get_file_info(fs.FileSelector(folder.path))}
assert names == {"/_SUCCESS", f"/{last.run.id}", "/single.nq"}, names
print("whole")
"""


@pytest.fixture
def hdfs(tmp_path: Path) -> Iterator[str]:
    """The URL of a folder."""
    java = [
        "java",
        "-Xmx400m",
        "-XX:+UseSerialGC",
        "--add-opens",
        "java.base/java.lang=ALL-UNNAMED",
    ]
    program = ROOT / "tests" / "support" / "engines" / "Hdfs.java"
    with subprocess.Popen(
        [*java, "-cp", f"{FOLDER}/*", program, tmp_path],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            yield f"hdfs://127.0.0.1:{port}/logs"
        finally:
            end_group(process)


def test_runs(hdfs: str) -> None:
    """One after another, at once, one that fails, and one that overwrites."""
    jars = map(str, Path(FOLDER).glob("*.jar"))
    own = {"CLASSPATH": ":".join(jars), "ARROW_LIBHDFS_DIR": FOLDER, "LIBHDFS_OPTS": "-Xmx200m"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, hdfs],
        cwd=ROOT,
        env=os.environ | own,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "whole\n", done.stderr[-2000:]
