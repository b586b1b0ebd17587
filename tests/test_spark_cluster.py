"""Spark where this package is not installed: on a cluster's executors and behind Spark Connect, by the page's commands.

The workers' environment has every library but this package, which they can have only by its wheel; the client's has the
package from that wheel, and no Java. Whatever is started ends with the test that started it.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyoxigraph as ox
import pytest

from construct_messages import construct_messages, read_log
from construct_messages.errors import SparkUnavailable
from construct_messages.spark import session
from tests.commands import Done
from tests.conftest import absent
from tests.test_docs import BLOCKS, ROOT, SPARK

QUERY = ROOT / "queries" / "companies.rq"
DATA = ROOT / "queries" / "data" / "companies.ttl"
SECONDS = 300
# small and soon ready: what is tested is what comes to where, and not how fast
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": QUICK,
    "spark.executor.extraJavaOptions": QUICK,
    "spark.log.level": "WARN",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
}
CONF = [part for name, value in SETTINGS.items() for part in ("--conf", f"{name}={value}")]


class Cluster(NamedTuple):
    """What the tests run in; nothing of it sees the checkout."""

    place: Path
    """Where they run: the page's files, Spark's folder, and what is written."""
    client: Path
    """The folder of programs of an environment that has the package."""
    workers: Path
    """The Python of one that has not."""

    @property
    def home(self) -> Path:
        return self.place / "spark"

    def run(self, *command: str | Path, java: bool = True) -> Done:
        """A program in a process of its own."""
        done = subprocess.run(
            command, cwd=self.place, env=self.environment(java), capture_output=True, text=True, timeout=SECONDS
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def environment(self, java: bool = True) -> dict[str, str]:
        """Variables of a process: the client's programs and Spark's before others; without Java, none but those."""
        paths = [self.client, *([self.home / "bin", *os.environ["PATH"].split(os.pathsep)] if java else [])]
        spark = {"SPARK_HOME": self.home, "PYSPARK_PYTHON": self.workers} if java else {}
        kept = {name: os.environ[name] for name in ("HOME", "JAVA_HOME", "TMPDIR") if name in os.environ and java}
        own = {"PATH": os.pathsep.join(map(str, paths)), "SPARK_LOG_DIR": str(self.place / "log")}
        return kept | own | {name: str(value) for name, value in spark.items()}


def page(word: str) -> str:
    """The one block of commands on the page that has a word."""
    (text,) = (block.text for block in BLOCKS if (block.page, block.language) == (SPARK, "sh") and word in block.text)
    return text


def environment(place: Path) -> Path:
    """A virtual environment that has the libraries of this one, but not this package; its site-packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True, timeout=SECONDS)
    (site,) = place.glob("lib/python*/site-packages")
    for folder in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for library in Path(folder).iterdir():
            # a .pth may name the checkout, where the package is installed editable
            if library.suffix != ".pth" and not re.match("_?construct_messages", library.name):
                (site / library.name).symlink_to(library)
    return site


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    try:
        session.require()
    except SparkUnavailable as unavailable:
        absent(str(unavailable))
    import pyspark  # what is missing has been told

    place = tmp_path_factory.mktemp("cluster")
    (place / "query.rq").write_bytes(QUERY.read_bytes())
    (place / "dump.ttl").write_bytes(DATA.read_bytes())
    # Spark keeps its cluster's files in its own folder, which is the installed one's but for that
    (place / "spark").mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        (place / "spark" / part.name).symlink_to(part)

    # the wheel of the checkout, without the network
    build = page("pip wheel").replace("pip", f"{shlex.quote(sys.executable)} -m pip --no-input", 1)
    build = build.replace("construct-messages", f"--no-index --no-build-isolation {shlex.quote(str(ROOT))}", 1)
    subprocess.run(["bash", "-euc", build], cwd=place, check=True, capture_output=True, timeout=SECONDS)

    environment(place / "workers")
    site = environment(place / "client")
    with zipfile.ZipFile(place / "construct_messages.zip") as wheel:
        wheel.extractall(site)
    return Cluster(place, place / "client" / "bin", place / "workers" / "bin" / "python")


@pytest.fixture(scope="module")
def connect(cluster: Cluster) -> Iterator[str]:
    """The URL of a Connect server."""
    port = ("spark.connect.grpc.binding.address=127.0.0.1", "spark.connect.grpc.binding.port=0")
    start = cluster.home / "sbin" / "start-connect-server.sh"
    settings = [*CONF, *(part for setting in port for part in ("--conf", setting)), "--conf", "spark.log.level=INFO"]
    with (cluster.place / "server.txt").open("wb") as log:
        process = subprocess.Popen(
            [start, "--wait", "--master", "local[1]", *settings],
            cwd=cluster.place,
            env=cluster.environment(),
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield f"sc://{_told(process, Path(log.name), r'Spark Connect server started at: (127.0.0.1:[0-9]+)')}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # the script, Java, and Java's Python workers
        process.wait(SECONDS)


def _told(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
    """What a process tells in its log of itself."""
    deadline = time.monotonic() + SECONDS
    while not (told := re.search(pattern, text := log.read_text(errors="replace"))):
        assert process.poll() is None, text
        assert time.monotonic() < deadline, text
        time.sleep(0.1)
    return told[1]


def test_workers_have_no_package(cluster: Cluster) -> None:
    done = cluster.run(cluster.workers, "-c", "import pyarrow, pyoxigraph, pyspark; import construct_messages")
    assert done.errors.endswith("ModuleNotFoundError: No module named 'construct_messages'\n")


def embedded() -> list[list[str]]:
    return [sorted(map(str, message)) for message in construct_messages(QUERY.read_text(), DATA)]


def written(folder: Path, here: Callable[..., Done]) -> list[list[str]]:
    """The messages of the logs in a folder, which are valid."""
    parts = sorted(folder.glob("[!._]*"))
    assert here("validate", *map(str, parts)).status == 0
    return [sorted(map(str, message)) for part in parts for message in read_log(part)]


def local(command: str, cluster: Cluster, output: str) -> str:
    """A command of the page, with the test's files."""
    command = command.replace("s3a://bucket/messages", str(cluster.place / output))
    command = command.replace("s3a://bucket", str(cluster.place))
    return re.sub(r"^construct-messages ", "python -m construct_messages ", command)


# In front of the page's program: where a worker has the package from, told by a job of the same session.
PLACES = """\
import os

import pyarrow
from pyspark.sql import SparkSession

def places(batches):
    import construct_messages
    for _ in batches:
        yield pyarrow.RecordBatch.from_pydict({"place": [os.path.abspath(construct_messages.__file__)]})

spark = SparkSession.builder.getOrCreate()
print(*(place for (place,) in spark.range(0, 1, 1, 1).mapInArrow(places, "place string").collect()))
"""


def test_submitted_to_executors(cluster: Cluster, here: Callable[..., Done]) -> None:
    program, submit = page("spark-submit").split("\n", 1)
    assert cluster.run("bash", "-euc", program) == Done(0, "", "")
    (cluster.place / "messages.py").write_text(PLACES + (cluster.place / "messages.py").read_text())

    submit = submit.replace("yarn", shlex.join(["local-cluster[1,1,1024]", *CONF]))
    done = cluster.run("bash", "-euc", local(submit, cluster, "submitted"))
    assert done.status == 0, done.errors
    # Spark gives a program one output for both
    place, summary = done.log.splitlines()
    assert summary.startswith("5 messages, 25 quads (session ")
    folder, file = place.split("/construct_messages.zip/")
    assert re.fullmatch(rf"{re.escape(str(cluster.home))}/work/app-[^/]+/0", folder)
    assert file == "construct_messages/__init__.py"
    assert written(cluster.place / "submitted", here) == embedded()


def test_a_session_with_shipped_files(cluster: Cluster, here: Callable[..., Done]) -> None:
    command = local(page("--master spark://"), cluster, "own")
    command = command.replace("spark://host:7077", shlex.join(["local[1]", *CONF]))
    done = cluster.run("bash", "-euc", command)
    assert (done.status, done.log) == (0, ""), done.errors
    assert "\n5 messages, 25 quads (session " in f"\n{done.errors}"
    assert written(cluster.place / "own", here) == embedded()


def test_connect(cluster: Cluster, connect: str, here: Callable[..., Done]) -> None:
    command = local(page("sc://"), cluster, "connected").replace("sc://host:15002", connect)
    done = cluster.run("/bin/bash", "-euc", command, java=False)
    assert (done.status, done.log) == (0, ""), done.errors
    assert re.match(r"5 messages, 25 quads \(session ", done.errors)
    assert written(cluster.place / "connected", here) == embedded()

    # what a query of lines makes into lines needs no workers
    (cluster.place / "dump.nt").write_text("".join(f"{quad.triple} .\n" for quad in ox.parse(path=DATA)))
    command = command.replace("dump.ttl", "dump.nt").replace("connected", "lines").replace("trig", "nq")
    done = cluster.run("/bin/bash", "-euc", re.sub(r"--py-files \S+", "", command), java=False)
    assert (done.status, done.log) == (0, ""), done.errors
    assert written(cluster.place / "lines", here) == embedded()


def test_connect_without_shipped_files(cluster: Cluster, connect: str) -> None:
    command = local(page("sc://"), cluster, "never").replace("sc://host:15002", connect)
    done = cluster.run("/bin/bash", "-euc", re.sub(r"--py-files \S+", "", command), java=False)
    assert (done.status, done.log) == (2, "")
    assert done.errors == (
        "error: Spark's Python workers have no module construct_messages\n"
        "hint: ship this package to them by --py-files, as a .zip, and install what it needs where they run\n"
    )
    assert not (cluster.place / "never").exists()
