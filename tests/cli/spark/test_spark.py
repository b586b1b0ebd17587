"""`construct-messages spark`: what the commands write, report and refuse, and the page that shows them.

With a session of their own, under spark-submit, on a cluster and over Spark Connect: tests/spark/test_cluster.py.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from construct_messages import read_log
from tests.support.commands import COMMAND, ENVIRONMENT, Done
from tests.support.docs import BLOCKS, SPARK, Block
from tests.support.places import ROOT
from tests.support.processes import command_line
from tests.support.spark.clusters import SETTINGS
from tests.support.spark.sessions import QUICK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.process, pytest.mark.slow]

Here = Callable[..., Done]

DUMP = """\
<http://example.org/a> <http://example.org/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
<http://example.org/a> <http://example.org/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
<http://example.org/b> <http://example.org/p> "é" .
<http://example.org/a> <http://example.org/q> <http://example.org/b> .
"""
QUERY = (
    "CONSTRUCT { ?s <urn:p> ?o ; <urn:b> [] } WHERE { ?s <http://example.org/p> ?o } ORDER BY ?s"
)
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
    return lambda *arguments: here(
        "spark", *(argument.replace("@", f"{place}/") for argument in arguments)
    )


SUMMARY = r"{} \(session [0-9.]+ s, {}\)\n"


def test_load_run_and_convert(spark_here: Here) -> None:
    done = spark_here("load", "@dump.nt", "--output", "@table")
    assert (done.status, done.log) == (0, "")
    assert re.fullmatch(SUMMARY.format("3 quads", "load [0-9.]+ s"), done.errors)

    done = spark_here("run", "--query", PLAIN, "--quads", "@table", "--output", "@log.nq.gz")
    assert (done.status, done.log) == (0, "")
    assert re.fullmatch(
        SUMMARY.format("2 messages, 2 quads", "plan [0-9.]+ s, log [0-9.]+ s"), done.errors
    )
    assert "".join(f"# @message\n{quad}\n" for (quad,) in read_log("log.nq.gz")) == LOG

    done = spark_here(
        "convert",
        "@log.nq.gz",
        "--output",
        "@converted",
        "--format",
        "nt",
        "--syntax",
        "1.2-messages",
    )
    assert (done.status, done.log) == (0, "")
    assert re.fullmatch(SUMMARY.format("2 messages, 2 quads", "log [0-9.]+ s"), done.errors)
    converted = [
        quad
        for part in sorted(Path("converted").glob("[!._]*/[!._]*"))
        for (quad,) in read_log(part, "nt")
    ]
    assert converted == [quad for (quad,) in read_log("log.nq.gz")]


def test_a_query_of_dumps_into_a_folder(spark_here: Here) -> None:
    arguments = ("run", "--query", QUERY, "--quads", "@dump.nt", "--output", "@logs", "--quiet")
    assert spark_here(*arguments, "--compression", "gzip") == Done(0, "", "")
    assert Path("logs/_SUCCESS").exists()
    parts = sorted(Path("logs").glob("*/part-*"))
    assert {part.suffix for part in parts} == {".gz"}
    assert [len(message) for part in parts for message in read_log(part)] == [2, 2]

    done = spark_here(*arguments)
    assert done.status == 2
    assert done.errors == (
        f"error: {Path.cwd()}/logs exists already\nhint: choose another path, or ask for it to be overwritten\n"
    )
    assert spark_here(*arguments, "--mode", "append").status == 0
    assert [
        len(message) for part in sorted(Path("logs").glob("*/part-*")) for message in read_log(part)
    ] == [2] * 4


def test_a_folder_may_have_an_extension(spark_here: Here) -> None:
    done = spark_here(
        "run", "--query", PLAIN, "--quads", "@dump.nt", "--output", "@out.rdf/", "--quiet"
    )
    assert done == Done(0, "", "")
    assert sum(len(list(read_log(part))) for part in Path("out.rdf").glob("*/part-*")) == 2


def test_a_format_makes_one_log_of_any_extension(spark_here: Here) -> None:
    arguments = (
        "run",
        "--query",
        PLAIN,
        "--quads",
        "@dump.nt",
        "--output",
        "@out.rdf",
        "--format",
        "rdfxml",
    )
    assert spark_here(*arguments, "--quiet") == Done(0, "", "")
    assert len(list(read_log("out.rdf", "rdfxml"))) == 2


@pytest.mark.parametrize("output", ["@log.trig", "@logs"])
def test_no_prefixes(output: str, spark_here: Here) -> None:
    query = f"PREFIX ex: <urn:> {PLAIN}"
    arguments = (
        "run",
        "--query",
        query,
        "--quads",
        "@dump.nt",
        "--format",
        "trig",
        "--output",
        output,
        "--quiet",
    )
    logs = []
    for options in ((), ("--no-prefixes",)):
        assert spark_here(*arguments, *options) == Done(0, "", "")
        place = Path(output[1:])
        parts = [place] if place.is_file() else sorted(place.glob("[!._]*/[!._]*"))
        logs.append("".join(part.read_text(encoding="utf-8") for part in parts))
        place.unlink() if place.is_file() else shutil.rmtree(place)
    assert ["PREFIX ex:" in log for log in logs] == [True, False]


def test_explain(spark_here: Here) -> None:
    arguments = ("run", "--query", QUERY, "--quads", "@dump.nt", "--explain")
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
    "no query": (("run", "--quads", "@dump.nt", "--output", "@log.nq"), 2, "pass one query"),
    "SELECT": (
        ("run", "--query", "SELECT * { }", "--quads", "@dump.nt", "--output", "@log.nq"),
        2,
        "got SELECT",
    ),
    "a part that is not evaluated": (
        (
            "run",
            "--query",
            "CONSTRUCT { } { SERVICE <urn:s> { } }",
            "--quads",
            "@dump.nt",
            "--output",
            "@log.nq",
        ),
        2,
        "SERVICE",
    ),
    "no such dump": (
        ("run", "--query", QUERY, "--quads", "@none.nt", "--output", "@log.nq"),
        2,
        "does not exist",
    ),
    "no such table": (
        ("run", "--query", QUERY, "--quads", "@none", "--output", "@log.nq"),
        2,
        "does not exist",
    ),
    "an unknown format": (
        ("run", "--query", QUERY, "--quads", "@dump.nt", "--output", "@logs", "--format", "docx"),
        2,
        "unknown format",
    ),
    "JSON documents": (
        ("run", "--query", QUERY, "--quads", "@dump.nt", "--output", "@logs", "--format", "json"),
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
            *(
                "--query",
                f"CONSTRUCT {{ ?s <urn:p> ?x }} {{ ?s ?p ?o BIND({'9' * 4000}.0 * {'9' * 4000}.0 AS ?x) }}",
            ),
            *("--quads", "@dump.nt", "--output", "@log.nq"),
        ),
        4,
        "too many digits",
    ),
    "a plan and a log": (
        ("run", "--query", QUERY, "--quads", "@dump.nt", "--explain", "--output", "@log.nq"),
        2,
        "--explain writes no log",
    ),
    "an extension of no log, of a query": (
        ("run", "--query", QUERY, "--quads", "@dump.nt", "--output", "@out.rdf"),
        2,
        ".rdf is not the extension of a log format(.|\n)*a folder with such a name ends in /",
    ),
    "an extension of no log": (
        ("convert", "@log.nq", "--output", "@out.rdf"),
        2,
        ".rdf is not the extension of a log format",
    ),
    "no such log": (("convert", "@none.nq", "--output", "@log.nt"), 2, "there are no files"),
    "what N-Triples cannot carry": (
        ("convert", "@graphs.nq", "--output", "@log.nt"),
        2,
        "no named graphs",
    ),
}


@pytest.mark.parametrize(("arguments", "status", "words"), REFUSED.values(), ids=REFUSED)
def test_refused(spark_here: Here, arguments: tuple[str, ...], status: int, words: str) -> None:
    Path("graphs.nq").write_text(
        "# @message\n<urn:s> <urn:p> <urn:o> <urn:g> .\n", encoding="utf-8"
    )
    before = set(Path.cwd().iterdir())
    done = spark_here(*arguments)
    assert (done.status, done.log) == (status, "")
    assert re.match(f"error: .*{words}", done.errors)
    assert "Traceback" not in done.errors
    assert set(Path.cwd().iterdir()) == before


def test_settings_belong_to_a_session_of_its_own(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("spark", "load", "@dump.nt", "--output", "@table")
    done = here(*arguments, "--remote", "sc://127.0.0.1:1", "--master", "local[1]")
    assert (done.status, "--master and --conf" in done.errors) == (2, True)
    done = here(*arguments, "--py-files", "construct_messages.whl")
    assert (done.status, "hint: copy a wheel to a name that ends in .zip" in done.errors) == (
        2,
        True,
    )
    done = here(*arguments, "--py-files", "construct_messages.zip")
    assert (done.status, "construct_messages.zip: there is no such file" in done.errors) == (
        2,
        True,
    )
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    done = here(*arguments, "--py-files", "construct_messages.zip")
    assert (done.status, "pass it to spark-submit" in done.errors) == (2, True)
    done = here(*arguments, "--conf", "spark.sql.shuffle.partitions=2")
    assert (done.status, "pass them to spark-submit" in done.errors) == (2, True)


# --- verifying --------------------------------------------------------------------------------------------------------


def test_verify(spark_here: Here, here: Here) -> None:
    """Issue 26, 35: what `_SUCCESS` says is what is there, or what is not is named."""
    arguments = ("run", "--query", QUERY, "--quads", "@dump.nt", "--output", "@logs", "--quiet")
    assert spark_here(*arguments) == Done(0, "", "")
    assert spark_here(*arguments, "--mode", "append", "--compression", "gzip") == Done(0, "", "")
    runs = [json.loads(record.read_text()) for record in sorted(Path("logs").glob("*/_run.json"))]
    assert json.loads(Path("logs/_SUCCESS").read_text())["run"] == runs[-1]["run"]
    names = [file["name"] for run in runs for file in run["files"]]
    said = f"logs: ok, 4 messages, 8 quads, {len(names)} logs, run {runs[0]['run']}, run {runs[1]['run']}\n"
    assert here("spark", "verify", "logs") == Done(0, said, "")

    Path("logs", names[0]).unlink()
    damaged = Path("logs", names[-1])
    damaged.write_bytes(damaged.read_bytes()[:-1])
    done = here("spark", "verify", "logs")
    assert (done.status, done.log) == (3, "")
    assert done.errors.startswith(
        f"error: logs: {names[0]} is missing (run {runs[0]['run']})\nerror: logs: {names[-1]} has "
    )
    told = json.loads(here("spark", "verify", "logs", "--json").log)
    assert [problem.split()[0] for problem in told["problems"]][:2] == [names[0], names[-1]]
    assert here("spark", "verify", "none").status == 2


# --- other processes --------------------------------------------------------------------------------------------------


def test_dumps_by_folder_and_pattern(spark_here: Here, place: Path) -> None:
    """Issue 13, 29: `--quads` takes what its help names, and no file that is not RDF."""
    (place / "dump [1]{a}").mkdir()
    dump = Path("dump.nt").rename("dump [1]{a}/a[1].nt")
    arguments = ("run", "--query", PLAIN, "--output", "@log.nq", "--quiet", "--quads")
    for quads in ("@dump [1]{a}", "@dump [1]{a}/", f"@{dump}", "@dump*/*"):
        assert spark_here(*arguments, quads) == Done(0, "", "")
        assert "".join(f"# @message\n{quad}\n" for (quad,) in read_log("log.nq")) == LOG
    (dump.parent / "README.txt").write_text("<urn:s> <urn:p> <urn:o> .", encoding="utf-8")
    done = spark_here(*arguments, "@dump [1]{a}")
    assert (
        done.status,
        "README.txt: the extension '.txt' is not an RDF format" in done.errors,
    ) == (
        2,
        True,
    )


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in environment}
    return subprocess.run(
        command, env=kept | environment, capture_output=True, text=True, check=False, timeout=600
    )


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("command", ["load", "run", "convert"])
def test_without_java(command: str) -> None:
    given = {
        "load": ("dump.nt",),
        "run": ("--query", QUERY, "--quads", "dump.nt"),
        "convert": ("dump.nt",),
    }[command]
    program = (
        sys.executable,
        "-m",
        "construct_messages",
        "spark",
        command,
        *given,
        "--output",
        "out.nq",
    )
    done = run(*program, PATH="", JAVA_HOME="", PYTHONPATH=str(ROOT))
    assert (done.returncode, done.stdout) == (2, "")
    error, hint = done.stderr.splitlines()
    assert error == "error: Spark needs Java, and there is none on PATH"
    assert "openjdk-17-jre-headless" in hint


@pytest.mark.usefixtures("place")
def test_a_typo_costs_no_session() -> None:
    """Issue 13, 29: a query is parsed before Java is asked for."""
    arguments = (
        "--query",
        "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p }",
        "--quads",
        "dump.nt",
        "--output",
        "out.nq",
    )
    done = run(*COMMAND, "spark", "run", *arguments, PATH="", JAVA_HOME="", PYTHONPATH=str(ROOT))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: line 1, column 38: ")


# --- stopping ---------------------------------------------------------------------------------------------------------

LOCAL = (
    *("--master", "local[2]"),
    *(
        part
        for name, value in {**SETTINGS, **QUICK}.items()
        for part in ("--conf", f"{name}={value}")
    ),
)

# a dump of which the query has 1,500³ solutions: no job over it ends while a test waits
ENDLESS = "CONSTRUCT { ?a <urn:p> ?b, ?c } WHERE { ?a <urn:q> ?o . ?b <urn:q> ?o . ?c <urn:q> ?o }"


# the other of each is what a session that starts, and a killed program, are tested with
@pytest.mark.one_in(2)
@pytest.mark.usefixtures("spark")  # so that Java is here
@pytest.mark.parametrize(
    ("by", "status", "output"),
    [
        pytest.param(signal.SIGINT, 130, "log.trig", id="13.25-SIGINT-file"),
        pytest.param(signal.SIGTERM, 143, "logs", id="13.25-SIGTERM-folder"),
    ],
)
def test_a_signal_cancels_the_jobs(
    place: Path, by: signal.Signals, status: int, output: str
) -> None:
    """Issue 13, 25: a stopped job ends at once, says nothing, and leaves nothing of a log."""
    Path("dump.nt").write_text(
        "".join(f"<urn:s{n}> <urn:q> <urn:o> .\n" for n in range(1500)), encoding="utf-8"
    )
    before = {path.name for path in place.iterdir()}
    arguments = (
        "spark",
        "run",
        "--query",
        ENDLESS,
        "--quads",
        "dump.nt",
        "--output",
        output,
        *LOCAL,
    )
    with ended(
        subprocess.Popen([*COMMAND, *arguments], cwd=place, env=ENVIRONMENT, stderr=subprocess.PIPE)
    ) as process:
        deadline = time.monotonic() + 1200
        while not sum(path.stat().st_size for path in written_to(place, before)):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        process.send_signal(by)
        assert process.stderr is not None
        assert (process.wait(600), process.stderr.read().decode()) == (status, "")
    left = [path for path in place.rglob("*") if path.name not in before]
    assert [path.name for path in left if path.is_file() or path.name.startswith(".")] == []


@pytest.mark.usefixtures("place", "spark")
def test_a_signal_while_the_session_starts() -> None:
    """Issue 13, 25: no Java is left that nobody speaks to."""
    arguments = (
        "spark",
        "run",
        "--query",
        PLAIN,
        "--quads",
        "dump.nt",
        "--output",
        "log.nq",
        *LOCAL,
    )
    with ended(
        subprocess.Popen([*COMMAND, *arguments], env=ENVIRONMENT, stderr=subprocess.PIPE)
    ) as process:
        deadline = time.monotonic() + 1200
        while not (
            java := [child for child in psutil.Process(process.pid).children() if is_spark(child)]
        ):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        assert (process.wait(600), process.stderr.read().decode()) == (143, "")
    while is_spark(java[0]):
        assert time.monotonic() < deadline + 600
        time.sleep(0.1)
    assert not Path("log.nq").exists()


@pytest.mark.usefixtures("spark")
def test_what_a_killed_program_leaves(place: Path, spark_here: Here, here: Here) -> None:
    """Issue 26, 36 and 37: a killed Java is told in a line; what a killed program has left goes with the next job."""
    Path("dump.nt").write_text(
        "".join(f"<urn:s{n}> <urn:q> <urn:o> .\n" for n in range(1500)), encoding="utf-8"
    )
    before = {path.name for path in place.iterdir()}
    arguments = (
        "spark",
        "run",
        "--query",
        ENDLESS,
        "--quads",
        "dump.nt",
        "--output",
        "logs",
        "--format",
        "trig",
        *LOCAL,
    )
    with ended(
        subprocess.Popen([*COMMAND, *arguments], cwd=place, env=ENVIRONMENT, stderr=subprocess.PIPE)
    ) as process:
        deadline = time.monotonic() + 1200
        while not sum(path.stat().st_size for path in written_to(place, before)):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        (left,) = place.glob("logs/.*")
        next(child for child in psutil.Process(process.pid).children() if is_spark(child)).kill()
        assert process.stderr is not None
        said = process.stderr.read().decode()
        assert process.wait(600) == 3
    assert re.fullmatch(
        "error: Spark's Java process has ended\nhint: .*spark.driver.memory=4g\n", said
    )
    assert left.exists(), "nobody was left to remove it"
    done = here("spark", "verify", "logs")
    assert (done.status, "a run that was stopped" in done.errors) == (3, True)
    query = "CONSTRUCT { ?s <urn:p> ?o } WHERE { ?s <urn:q> ?o }"
    arguments = (
        "run",
        "--query",
        query,
        "--quads",
        "@dump.nt",
        "--output",
        "@logs",
        "--format",
        "trig",
        "--quiet",
    )
    assert spark_here(*arguments, "--mode", "overwrite") == Done(0, "", "")
    assert list(Path("logs").glob(".*")) == []
    assert here("spark", "verify", "logs").log.startswith("logs: ok, 1,500 messages, 1,500 quads, ")


@contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not outlive its test, whatever becomes of that."""
    with process:
        try:
            yield process
        finally:
            process.kill()


def is_spark(process: psutil.Process) -> bool:
    return any("SparkSubmit" in part for part in command_line(process))


def written_to(place: Path, before: set[str]) -> list[Path]:
    """The files that a job writes its parts to."""
    new = [path for path in place.iterdir() if path.name not in before]
    return [
        path
        for folder in new
        for path in folder.rglob("*")
        if path.is_file() and path.name != "opening"
    ]


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
        done = here(
            *re.sub(r"\bcompanies\.(?=nt|quads|nq)", f"{place}/companies.", command).split()
        )
        shown, cut, _ = output.partition("…\n")
        log = done.log.replace(f"{place}/", "")
        assert (done.status, done.errors, log[: len(shown)] if cut else log) == (0, "", shown)
