"""Spark where this package is not installed: on a cluster's executors and behind Spark Connect, by the page's commands.

The workers' environment has every library but this package, which they can have only by its wheel; the client's has the
package from that wheel, and no Java. Whatever is started ends with the test that started it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from construct_messages import construct_messages, read_log
from tests.support.commands import Done
from tests.support.docs import BLOCKS
from tests.support.places import ROOT
from tests.support.processes import end_group
from tests.support.spark.clusters import SECONDS, SETTINGS, run, spark_home
from tests.support.spark.sessions import QUICK

pytestmark = [pytest.mark.process, pytest.mark.slow]

QUERIES = ROOT / "queries"
DATA = QUERIES / "data" / "companies.ttl"
COMPANIES, COUNTRIES = QUERIES / "companies.rq", QUERIES / "countries-by-graph.rq"
PAGE = "docs/reference/spark.md"
BASH = shutil.which("bash") or "bash"
OWN = [
    part for name, value in {**SETTINGS, **QUICK}.items() for part in ("--conf", f"{name}={value}")
]
CONF = [*OWN, "--conf", "spark.log.level=WARN"]


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
        """A program in a process of its own; what it has started ends with it."""
        return run(command, self.place, self.environment(java), SECONDS)

    def environment(self, java: bool = True) -> dict[str, str]:
        """Variables of a process: the client's programs and Spark's before others; without Java, none but those."""
        paths = [
            self.client,
            *([self.home / "bin", *os.environ["PATH"].split(os.pathsep)] if java else []),
        ]
        spark = {"SPARK_HOME": self.home, "PYSPARK_PYTHON": self.workers} if java else {}
        kept = {
            name: os.environ[name]
            for name in ("HOME", "JAVA_HOME", "TMPDIR")
            if name in os.environ and java
        }
        own = {
            "PATH": os.pathsep.join(map(str, paths)),
            "SPARK_LOG_DIR": str(self.place / "log"),
            "GRPC_VERBOSITY": "NONE",  # which tells of slow ends on standard error
        }
        return kept | own | {name: str(value) for name, value in spark.items()}


def page(word: str) -> str:
    """The one block of commands on the page that has a word."""
    (text,) = (
        block.text
        for block in BLOCKS
        if (block.page, block.language) == (PAGE, "sh") and word in block.text
    )
    return text


def environment(place: Path) -> Path:
    """A virtual environment that has the libraries of this one, but not this package; its site-packages."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", place], check=True, timeout=SECONDS
    )
    (site,) = place.glob("lib/python*/site-packages")
    for folder in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for library in Path(folder).iterdir():
            # a .pth may name the checkout, where the package is installed editable
            if library.suffix != ".pth" and not re.match("_?construct_messages", library.name):
                (site / library.name).symlink_to(library)
    return site


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    place = tmp_path_factory.mktemp("cluster")
    (place / "dump.ttl").write_bytes(DATA.read_bytes())
    spark_home(place)

    # the wheel of the checkout, without the network
    build = page("pip wheel").replace("pip", f"{shlex.quote(sys.executable)} -m pip --no-input", 1)
    build = build.replace(
        "--no-deps .", f"--no-deps --no-index --no-build-isolation {shlex.quote(str(ROOT))}", 1
    )
    made = Cluster(place, place / "client" / "bin", place / "workers" / "bin" / "python")
    done = made.run(BASH, "-euc", build)
    assert done.status == 0, done.errors

    environment(place / "workers")
    site = environment(place / "client")
    with zipfile.ZipFile(place / "construct_messages.zip") as wheel:
        wheel.extractall(site)
    return made


@pytest.fixture(scope="module")
def connect(cluster: Cluster) -> Iterator[str]:
    """The URL of a Connect server, started by Spark's own script."""
    start = [cluster.home / "sbin" / "start-connect-server.sh", "--wait", "--master", "local[1]"]
    address = ["spark.connect.grpc.binding.address=127.0.0.1", "spark.connect.grpc.binding.port=0"]
    settings = [
        *CONF,
        *(part for one in [*address, "spark.log.level=INFO"] for part in ("--conf", one)),
    ]
    with (cluster.place / "server.txt").open("wb") as log:
        process = subprocess.Popen(
            [*start, *settings],
            cwd=cluster.place,
            env=cluster.environment(),
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield "sc://" + _told(
            process, Path(log.name), r"Spark Connect server started at: (127.0.0.1:[0-9]+)\s"
        )
    finally:
        end_group(process)


def _told(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
    """What a process tells in its log of itself."""
    deadline = time.monotonic() + SECONDS
    while not (told := re.search(pattern, text := log.read_text(errors="replace"))):
        assert process.poll() is None, text
        assert time.monotonic() < deadline, text
        time.sleep(0.1)
    return told[1]


def test_workers_have_no_package(cluster: Cluster) -> None:
    done = cluster.run(
        cluster.workers, "-c", "import pyarrow, pyoxigraph, pyspark; import construct_messages"
    )
    assert done.errors.endswith("ModuleNotFoundError: No module named 'construct_messages'\n")


def local(command: str, cluster: Cluster, query: Path, output: str) -> str:
    """A command of the page, with the test's files."""
    for name, path in {
        "query.rq": query,
        "s3a://bucket/messages": cluster.place / output,
        "s3a://bucket": cluster.place,
    }.items():
        assert name in command
        command = command.replace(name, str(path))
    return re.sub(r"^construct-messages ", "python -m construct_messages ", command)


def check(folder: Path, query: Path, here: Callable[..., Done]) -> str:
    """The logs in a folder are valid, and their messages the embedded path's; what the summary should say."""
    parts = sorted(folder.glob("[!._]*/[!._]*"))
    assert here("validate", *map(str, parts)).status == 0
    expected = [
        sorted(map(str, message)) for message in construct_messages(query.read_text(), DATA)
    ]
    found = [sorted(map(str, message)) for part in parts for message in read_log(part)]
    if "ORDER BY" not in query.read_text():
        found, expected = sorted(found), sorted(expected)
    assert found == expected
    return f"{len(expected)} messages, {sum(map(len, expected))} quads (session "


# In front of the page's program: where a worker has the package from, told by a job of the same session, and the
# solutions of a checked table.
PLACES = """\
import os

import pyarrow
from pyspark.sql import SparkSession

from construct_messages.spark import QuadTable, select

def places(batches):
    import construct_messages
    for _ in batches:
        yield pyarrow.RecordBatch.from_pydict({"place": [os.path.abspath(construct_messages.__file__)]})

spark = SparkSession.builder.getOrCreate()
print(*(place for (place,) in spark.range(0, 1, 1, 1).mapInArrow(places, "place string").collect()))
one = "<urn:s> <urn:p> '1'^^<http://www.w3.org/2001/XMLSchema#integer>".replace("'", '"').split(" ")
table = QuadTable.of(spark.createDataFrame([one], ["subject", "predicate", "object"]), check=True)
print(select(spark, "SELECT ?o WHERE { ?s <urn:p> ?o }", table).collect())
"""


def test_submitted_to_executors(cluster: Cluster, here: Callable[..., Done]) -> None:
    program, submit = page("spark-submit").split("\n", 1)
    assert cluster.run(BASH, "-euc", program) == Done(0, "", "")
    (cluster.place / "messages.py").write_text(PLACES + (cluster.place / "messages.py").read_text())

    submit = submit.replace("yarn", shlex.join(["local-cluster[1,1,1024]", *CONF]))
    done = cluster.run(BASH, "-euc", local(submit, cluster, COMPANIES, "submitted"))
    assert done.status == 0, done.errors
    place, rows, summary = done.log.splitlines()  # to a program Spark gives one output for both
    assert rows == "[Row(o=1)]"
    assert summary.startswith(check(cluster.place / "submitted", COMPANIES, here))
    folder, file = place.split("/construct_messages.zip/")
    assert re.fullmatch(rf"{re.escape(str(cluster.home))}/work/app-[^/]+/0", folder)
    assert file == "construct_messages/__init__.py"


def test_a_session_with_shipped_files(cluster: Cluster, here: Callable[..., Done]) -> None:
    """Issue 13, 29: the summary is all that is said, and nothing of what Java says as it starts."""
    command = local(page("--master spark://"), cluster, COUNTRIES, "own")
    done = cluster.run(
        BASH, "-euc", command.replace("spark://host:7077", shlex.join(["local[1]", *OWN]))
    )
    assert (done.status, done.log) == (0, ""), done.errors
    summary = re.escape(check(cluster.place / "own", COUNTRIES, here))
    times = r"[0-9.]+ s, plan [0-9.]+ s, log [0-9.]+ s\)\n"
    assert re.fullmatch(summary + times, done.errors), done.errors


def test_connect(cluster: Cluster, connect: str, here: Callable[..., Done]) -> None:
    command = local(page("sc://"), cluster, COUNTRIES, "connected").replace(
        "sc://host:15002", connect
    )
    done = cluster.run(BASH, "-euc", command, java=False)
    assert (done.status, done.log) == (0, ""), done.errors
    assert done.errors.startswith(check(cluster.place / "connected", COUNTRIES, here))

    # only what a run has recorded is overwritten, as without a server
    foreign = cluster.place / "connected" / "foreign.nt"
    foreign.touch()
    command = f"{command.strip().replace('trig', 'nq')} --mode overwrite"
    done = cluster.run(BASH, "-euc", command, java=False)
    assert (done.status, foreign.exists()) == (2, True)
    assert "has files that no earlier run has recorded: foreign.nt" in done.errors
    foreign.unlink()
    done = cluster.run(BASH, "-euc", command, java=False)
    assert (done.status, done.log) == (0, ""), done.errors
    assert done.errors.startswith(check(cluster.place / "connected", COUNTRIES, here))


def test_a_server_reads_lines_for_its_client(cluster: Cluster, connect: str) -> None:
    (cluster.place / "lines.nt").write_text('<urn:s> <urn:p> "a" .\n<urn:s>  <urn:p> "\\u0062" .\n')
    code = (
        "import sys\n"
        "from construct_messages.spark.quads.loading import load_quads\n"
        "from construct_messages.spark.session import remote_session\n"
        "spark = remote_session(sys.argv[1])\n"
        "spark.addArtifacts('construct_messages.zip', pyfile=True)\n"
        "print(sorted(row.object for row in load_quads(spark, sys.argv[2]).collect()))\n"
        "from construct_messages.spark import QuadTable, select\n"
        "table = QuadTable.of(load_quads(spark, sys.argv[2]), check=True)\n"
        "print(select(spark, 'SELECT ?o WHERE { ?s <urn:p> ?o } ORDER BY ?o', table).collect())\n"
        "spark.stop()\n"
    )
    done = cluster.run(
        cluster.client / "python", "-c", code, connect, cluster.place / "lines.nt", java=False
    )
    said = "['\"a\"', '\"b\"']\n[Row(o='a'), Row(o='b')]\n"
    assert (done.status, done.log) == (0, said), done.errors


def test_connect_without_shipped_files(cluster: Cluster, connect: str) -> None:
    command = local(page("sc://"), cluster, COMPANIES, "unshipped").replace(
        "sc://host:15002", connect
    )
    command = re.sub(r"--py-files \S+", "", command)
    done = cluster.run(BASH, "-euc", command, java=False)
    assert done == (
        2,
        "",
        "error: Spark's Python workers have no module construct_messages\n"
        "hint: ship this package to them by --py-files, as a .zip, and install its requirements where they run\n",
    )
    assert not (cluster.place / "unshipped").exists()
