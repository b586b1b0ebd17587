"""Messages that are validated on the command line: `--shapes` of run, convert, publish and relay."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from construct_messages import Message, read_log
from construct_messages.construct.shapes import without_report
from tests.support.commands import Done
from tests.support.conformance.shapes import PREFIXES, SH, results_in

pytestmark = pytest.mark.process

EX = "http://example.org/"
SHAPES = (
    f"{PREFIXES}ex:Cities sh:targetSubjectsOf ex:name ;\n"
    "  sh:property [ sh:path ex:population ; sh:minInclusive 3 ] ."
)
QUERY = "CONSTRUCT { ?c ex:name ?n ; ex:population ?p } WHERE { ?c ex:name ?n ; ex:population ?p } ORDER BY ?c"
RUN = ["run", "--query", QUERY, "--prefix", f"ex={EX}", "--source", "data.ttl"]
DROP = ["--shapes", "shapes.ttl", "--on-invalid", "drop", "--invalid-to", "bad.nq"]
FORMATS = ["nq", "ttl", "trig", "ndjsonld", "jelly", "json"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five cities, of which the populations of the first three are too small."""
    monkeypatch.chdir(tmp_path)
    cities = "".join(f'ex:c{n} ex:name "{n}" ; ex:population {n} .\n' for n in range(5))
    (tmp_path / "data.ttl").write_text(PREFIXES + cities)
    (tmp_path / "shapes.ttl").write_text(SHAPES)
    (tmp_path / "broken.ttl").write_text(SHAPES.replace("sh:minInclusive", "sh:mininclusive"))
    (tmp_path / "all.ttl").write_text(SHAPES.replace("minInclusive 3", "minInclusive 0"))
    return tmp_path


def cities(name: str) -> list[str]:
    return [city(message) for message in read_log(name)]


def city(message: Message) -> str:
    (subject,) = without_report(message).subjects()
    return subject.removeprefix(f"<{EX}").removesuffix(">")


@pytest.mark.usefixtures("folder")
def test_report(here: Callable[..., Done]) -> None:
    done = here(*RUN, "--output", "log.nq", "--shapes", "shapes.ttl")
    assert done.status == 5
    *reports, count = done.errors.splitlines()
    assert [line.split()[:3] for line in reports] == [
        ["message", f"{n + 1}:", f"<{EX}c{n}>"] for n in range(3)
    ]
    assert reports[0].endswith(f"sh:minInclusive 3 (shape <{EX}Cities>, shapes.ttl:7)")
    assert count == "messages: 5, not conforming: 3, results: 3"
    assert cities("log.nq") == ["c0", "c1", "c2", "c3", "c4"]
    assert here(*RUN, "--shapes", "all.ttl", "--quiet").status == 0


@pytest.mark.usefixtures("folder")
def test_drop(here: Callable[..., Done]) -> None:
    done = here(*RUN, "--output", "log.nq", *DROP, "--report", "reports.jsonl")
    assert (done.status, len(done.errors.splitlines())) == (0, 1)
    assert cities("log.nq") == ["c3", "c4"]
    assert cities("bad.nq") == ["c0", "c1", "c2"]
    reports = [json.loads(line) for line in Path("reports.jsonl").read_text().splitlines()]
    assert [report["message"] for report in reports] == [1, 2, 3]
    assert [report["results"][0]["value"] for report in reports] == [
        f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>' for n in range(3)
    ]
    # dead letters are validated again without their reports
    again = here("convert", "bad.nq", "mended.nq", "--shapes", "all.ttl", "--on-invalid", "stop")
    assert again.status == 0
    assert [str(message) for message in read_log("mended.nq")] == [
        str(without_report(message)) for message in read_log("bad.nq")
    ]


@pytest.mark.usefixtures("folder")
def test_reports_as_rdf(here: Callable[..., Done]) -> None:
    assert (
        here(*RUN, "--output", "log.nq", "--shapes", "shapes.ttl", "--report", "r.ttl.gz").status
        == 5
    )
    reports = list(read_log("r.ttl.gz"))
    assert [results_in(report.lines.decode()) for report in reports] == [
        {
            (
                f"<{EX}c{n}>",
                f"<{EX}population>",
                f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>',
                f"<{SH}MinInclusiveConstraintComponent>",
                f"<{SH}Violation>",
                None,
            ): 1
        }
        for n in range(3)
    ]


@pytest.mark.parametrize("format", FORMATS)
def test_stop(folder: Path, here: Callable[..., Done], format: str) -> None:
    """Nothing has the final name, and no log ends."""
    before = sorted(folder.iterdir())
    done = here(
        *RUN,
        "--output",
        f"log.{format}",
        "--shapes",
        "shapes.ttl",
        "--on-invalid",
        "stop",
        "--report",
        "r.nq",
    )
    assert done.status == 5
    assert "message 1 does not conform to the shapes" in done.errors
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("grouped", [[], ["--group-by", "?c"]], ids=["plain", "grouped"])
@pytest.mark.usefixtures("folder")
def test_a_log_is_the_same_if_all_conform(
    here: Callable[..., Done], format: str, grouped: list[str]
) -> None:
    run = [*RUN, *grouped, "--label-prefix", "x"]
    assert here(*run, "--output", f"plain.{format}").status == 0
    assert here(*run, "--output", f"shaped.{format}", "--shapes", "all.ttl").status == 0
    assert Path(f"plain.{format}").read_bytes() == Path(f"shaped.{format}").read_bytes()


@pytest.mark.usefixtures("folder")
def test_convert(here: Callable[..., Done]) -> None:
    assert here(*RUN, "--output", "log.nq").status == 0
    assert here("convert", "log.nq", "good.ttl", *DROP).status == 0
    assert cities("good.ttl") == ["c3", "c4"]
    assert here("convert", "log.nq", "same.ttl", "--shapes", "shapes.ttl").status == 5
    assert cities("same.ttl") == cities("log.nq")


@pytest.mark.usefixtures("folder")
def test_relay_and_its_transformation(here: Callable[..., Done]) -> None:
    """What is validated is what is written: the result of the transformation."""
    assert here(*RUN, "--output", "log.nq").status == 0
    Path("double.rq").write_text(
        f"PREFIX ex: <{EX}> CONSTRUCT {{ ?c ex:name ?n ; ex:population ?d }}"
        " WHERE { ?c ex:name ?n ; ex:population ?p BIND(2 * ?p AS ?d) FILTER(?p != 4) }"
    )
    done = here(
        "relay",
        "--from",
        "log.nq",
        "--to",
        "out.nq",
        "--transform",
        "double.rq",
        "--one-per-message",
        *DROP,
    )
    assert done.status == 0
    assert cities("bad.nq") == ["c0", "c1"]
    assert [len(message) for message in read_log("out.nq")] == [2, 2, 0]
    assert (
        here("convert", "log.nq", "out.ttl", "--transform", "double.rq", "--one-per-message").status
        == 0
    )
    assert [len(message) for message in read_log("out.ttl")] == [2, 2, 2, 2, 0]
    assert here("convert", "log.nq", "out.ttl", "--transform", "double.rq").status == 0
    assert [len(message) for message in read_log("out.ttl")] == [2, 2, 2, 2]


@pytest.mark.parametrize(
    ("options", "status", "error"),
    [
        (["--shapes", "broken.ttl"], 2, "line 7, column 41: broken.ttl: shape"),
        (["--shapes", "none.ttl"], 2, "cannot read the shapes none.ttl"),
        (["--shapes-data", "data.ttl"], 2, "--shapes-data needs --shapes"),
        (["--on-invalid", "drop"], 2, "--on-invalid needs --shapes"),
        (["--shapes", "shapes.ttl", "--on-invalid", "drop"], 2, "need each other"),
        (["--shapes", "shapes.ttl", "--invalid-to", "bad.nq"], 2, "need each other"),
        ([*DROP[:-1], "bad.ttl"], 2, "Turtle has no named graphs"),
        ([*DROP[:-1], "no/bad.nq"], 1, "no/bad.nq"),
        (["--shapes", "shapes.ttl", "--shapes-data", "none.ttl"], 2, "none.ttl"),
        (["--shapes", "shapes.ttl", "--report", "-"], 2, "name a file"),
        ([*DROP, "--report", "./bad.nq"], 2, "--report and --invalid-to are both"),
        ([*DROP, "--output", "bad.nq"], 2, "--output and --invalid-to are both"),
        (["--shapes", "shapes.ttl", "--select"], 2, "--select do not go together"),
    ],
)
def test_errors(
    folder: Path, here: Callable[..., Done], options: list[str], status: int, error: str
) -> None:
    """Before any message is read, and without a file."""
    before = sorted(folder.iterdir())
    done = here(*RUN, "--output", "log.nq", *options)
    assert (done.status, done.log) == (status, "")
    assert error in done.errors
    assert sorted(folder.iterdir()) == before


def test_static_data(folder: Path, here: Callable[..., Done]) -> None:
    (folder / "classes.ttl").write_text(f"{PREFIXES}ex:Town rdfs:subClassOf ex:Place .")
    (folder / "log.ttl").write_text(f"{PREFIXES}ex:t a ex:Town .")
    (folder / "places.ttl").write_text(
        f"{PREFIXES}ex:Places sh:targetClass ex:Place ; sh:property [ sh:path ex:name ; sh:minCount 1 ] ."
    )
    convert = ["convert", "log.ttl", "-", "--shapes", "places.ttl"]
    assert here(*convert).status == 0
    assert here(*convert, "--shapes-data", "classes.ttl").status == 5
