"""`construct-messages spark`: what the commands write, report and refuse, and the page that shows them.

Under spark-submit, on a cluster and over Spark Connect: tests/test_spark_cluster.py.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from construct_messages import read_log
from tests.commands import Done
from tests.test_docs import BLOCKS, ROOT, SPARK, Block

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Here = Callable[..., Done]

DUMP = """\
<http://example.org/a> <http://example.org/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
<http://example.org/a> <http://example.org/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
<http://example.org/b> <http://example.org/p> "é" .
<http://example.org/a> <http://example.org/q> <http://example.org/b> .
"""
QUERY = "CONSTRUCT { ?s <urn:p> ?o ; <urn:b> [] } WHERE { ?s <http://example.org/p> ?o } ORDER BY ?s"
LOG = """\
# @message
<http://example.org/a> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
# @message
<http://example.org/b> <urn:p> "é" .
"""
PLAIN = QUERY.replace(" ; <urn:b> []", "")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a dump in it, where the tests run."""
    monkeypatch.chdir(tmp_path)
    Path("dump.nt").write_text(DUMP, encoding="utf-8")
    return tmp_path


@pytest.fixture
def spark_here(spark: SparkSession, here: Here, place: Path) -> Here:
    """The commands in the session of the tests; `@` in an argument is the folder, which Spark does not run in."""
    assert spark.getActiveSession() is not None
    return lambda *arguments: here("spark", *(argument.replace("@", f"{place}/") for argument in arguments))


SUMMARY = r"{} \(session [0-9.]+ s, {}\)\n"


def test_load_run_and_convert(spark_here: Here) -> None:
    done = spark_here("load", "@dump.nt", "--output", "@table")
    assert (done.status, done.log) == (0, "")
    assert re.fullmatch(SUMMARY.format("3 quads", "load [0-9.]+ s"), done.errors)

    done = spark_here("run", "--query", PLAIN, "--quads", "@table", "--output", "@log.nq.gz")
    assert (done.status, done.log) == (0, "")
    assert re.fullmatch(SUMMARY.format("2 messages, 2 quads", "plan [0-9.]+ s, log [0-9.]+ s"), done.errors)
    assert "".join(f"# @message\n{quad}\n" for (quad,) in read_log("log.nq.gz")) == LOG

    done = spark_here("convert", "@log.nq.gz", "--output", "@converted", "--format", "nt", "--messages", "1.2-messages")
    assert (done.status, done.log) == (0, "")
    assert re.fullmatch(SUMMARY.format("2 messages, 2 quads", "log [0-9.]+ s"), done.errors)
    converted = [quad for part in sorted(Path("converted").glob("[!._]*")) for (quad,) in read_log(part, "nt")]
    assert converted == [quad for (quad,) in read_log("log.nq.gz")]


def test_a_query_of_dumps_into_a_folder(spark_here: Here) -> None:
    arguments = ("run", "--query", QUERY, "--quads", "@dump.nt", "--output", "@logs", "--quiet")
    assert spark_here(*arguments, "--compression", "gzip") == Done(0, "", "")
    assert Path("logs/_SUCCESS").exists()
    parts = sorted(Path("logs").glob("part-*"))
    assert {part.suffix for part in parts} == {".gz"}
    assert [len(message) for part in parts for message in read_log(part)] == [2, 2]

    done = spark_here(*arguments)
    assert done.status == 2
    assert done.errors == (
        f"error: file:{Path.cwd()}/logs exists already\nhint: choose another path, or ask for it to be overwritten\n"
    )
    assert spark_here(*arguments, "--mode", "append").status == 0
    assert [len(message) for part in sorted(Path("logs").glob("part-*")) for message in read_log(part)] == [2] * 4


def test_explain(spark_here: Here) -> None:
    arguments = ("run", "--query", QUERY, "--quads", "@dump.nt", "--output", "@log.nq", "--explain")
    done = spark_here(*arguments, "--order", "as-written", "--join", "joins")
    assert (done.status, done.errors) == (0, "")
    assert done.log.startswith("estimates: ")
    assert not Path("log.nq").exists()


def test_quarantine(spark_here: Here) -> None:
    Path("dump.nt").write_text(DUMP + "<urn:s> <urn:p> .\n", encoding="utf-8")
    done = spark_here("load", "@dump.nt", "--output", "@table")
    assert done.status == 3
    assert done.errors.startswith("error: file:")
    assert "dump.nt: " in done.errors
    assert "<urn:s> <urn:p> ." in done.errors
    assert not Path("table/_construct_messages.json").exists()

    quarantined = ("--on-error", "quarantine", "--quarantine", "@bad")
    done = spark_here("load", "@dump.nt", "--output", "@other", *quarantined)
    assert done.status == 0
    assert done.errors.startswith("3 quads, 1 lines in quarantine (")


# arguments, status, what is reported
REFUSED = {
    "no query": (("run", "--quads", "@dump.nt", "--output", "@log.nq"), 2, "give one query"),
    "SELECT": (("run", "--query", "SELECT * { }", "--quads", "@dump.nt", "--output", "@log.nq"), 2, "got SELECT"),
    "a part that is not evaluated": (
        ("run", "--query", "CONSTRUCT { } { SERVICE <urn:s> { } }", "--quads", "@dump.nt", "--output", "@log.nq"),
        2,
        "SERVICE",
    ),
    "no such dump": (("run", "--query", QUERY, "--quads", "@none.nt", "--output", "@log.nq"), 2, "does not exist"),
    "no such table": (("run", "--query", QUERY, "--quads", "@none", "--output", "@log.nq"), 3, "no whole table"),
    "an unknown format": (
        ("run", "--query", QUERY, "--quads", "@dump.nt", "--output", "@logs", "--format", "docx"),
        2,
        "unknown format",
    ),
    "a mode for a file": (
        ("run", "--query", QUERY, "--quads", "@dump.nt", "--output", "@log.nq", "--mode", "append"),
        2,
        "are for folders",
    ),
    "a number out of range": (
        (
            "run",
            *("--query", f"CONSTRUCT {{ ?s <urn:p> ?x }} {{ ?s ?p ?o BIND({'9' * 38} + {'9' * 38} AS ?x) }}"),
            *("--quads", "@dump.nt", "--output", "@log.nq"),
        ),
        4,
        "",
    ),
    "no such log": (("convert", "@none.nq", "--output", "@log.nt"), 2, "there are no files"),
    "what N-Triples cannot carry": (("convert", "@graphs.nq", "--output", "@log.nt"), 2, "no named graphs"),
}


@pytest.mark.parametrize(("arguments", "status", "words"), REFUSED.values(), ids=REFUSED)
def test_refused(spark_here: Here, arguments: tuple[str, ...], status: int, words: str) -> None:
    Path("graphs.nq").write_text("# @message\n<urn:s> <urn:p> <urn:o> <urn:g> .\n", encoding="utf-8")
    before = set(Path.cwd().iterdir())
    done = spark_here(*arguments)
    assert (done.status, done.log) == (status, "")
    assert re.match(f"error: .*{words}", done.errors)
    assert "Traceback" not in done.errors
    assert set(Path.cwd().iterdir()) == before


def test_settings_belong_to_a_session_of_its_own(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("spark", "load", "@dump.nt", "--output", "@table")
    done = here(*arguments, "--remote", "sc://127.0.0.1:1", "--master", "local[1]")
    assert (done.status, "--master and --conf" in done.errors) == (2, True)
    done = here(*arguments, "--py-files", "construct_messages.whl")
    assert (done.status, "hint: copy a wheel to a name that ends in .zip" in done.errors) == (2, True)
    done = here(*arguments, "--py-files", "construct_messages.zip")
    assert (done.status, "construct_messages.zip: there is no such file" in done.errors) == (2, True)
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    done = here(*arguments, "--py-files", "construct_messages.zip")
    assert (done.status, "give it to spark-submit" in done.errors) == (2, True)
    done = here(*arguments, "--conf", "spark.sql.shuffle.partitions=2")
    assert (done.status, "give them to spark-submit" in done.errors) == (2, True)


# --- other processes --------------------------------------------------------------------------------------------------


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in environment}
    return subprocess.run(command, env=kept | environment, capture_output=True, text=True, check=False, timeout=240)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("command", ["load", "run", "convert"])
def test_without_java(command: str) -> None:
    given = {
        "load": ("dump.nt",),
        "run": ("--query", QUERY, "--quads", "dump.nt"),
        "convert": ("dump.nt",),
    }[command]
    program = (sys.executable, "-m", "construct_messages", "spark", command, *given, "--output", "out.nq")
    done = run(*program, PATH="", JAVA_HOME="", PYTHONPATH=str(ROOT))
    assert (done.returncode, done.stdout) == (2, "")
    error, hint = done.stderr.splitlines()
    assert error == "error: Spark needs Java, and there is none on PATH"
    assert "openjdk-17-jre-headless" in hint


SETTINGS = (
    *("spark.driver.memory=1g", "spark.sql.shuffle.partitions=2"),
    "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # for jobs that soon end
)
LOCAL = ("--master", "local[2]", *(part for setting in SETTINGS for part in ("--conf", setting)))


@pytest.mark.usefixtures("place", "spark")  # the session of the tests, so that Java is here
def test_a_session_of_its_own() -> None:
    arguments = ("spark", "run", "--query", PLAIN, "--quads", "dump.nt", "--output", "log.nq")
    done = run(sys.executable, "-m", "construct_messages", *arguments, *LOCAL, PYTHONPATH=str(ROOT))
    assert (done.returncode, done.stdout) == (0, "")
    assert re.search(r"^2 messages, 2 quads \(session", done.stderr, re.MULTILINE)
    assert Path("log.nq").read_text(encoding="utf-8") == LOG


# --- the page ---------------------------------------------------------------------------------------------------------

PAGE = [block for block in BLOCKS if block.page == SPARK and block.language == "console"]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("block", PAGE, ids=lambda block: f"{block.page}:{block.line}")
def test_the_page(here: Here, place: Path, block: Block) -> None:
    (place / "queries").symlink_to(ROOT / "queries")
    prompt, *sessions = re.split(r"^\$ construct-messages ", block.text, flags=re.MULTILINE)
    assert prompt == ""
    for session in sessions:
        command, _, output = session.partition("\n")
        # Spark runs where its session was made
        done = here(*re.sub(r"\bcompanies\.(?=nt|quads|nq)", f"{place}/companies.", command).split())
        assert (done.status, done.errors, done.log.replace(f"{place}/", "")) == (0, "", output)
