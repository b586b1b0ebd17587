"""JSON documents on the command line: `--format json` with `--frame`, `--context`, `--array` and `--no-native`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import Done

pytestmark = pytest.mark.process

EX = "http://example.org/"
TRIPLES = "?s :is ?n ; :in ?c . ?c :label ?l"
QUERY = f"PREFIX : <{EX}> CONSTRUCT {{ {TRIPLES} }} WHERE {{ {TRIPLES} }} ORDER BY ?s"
DATA = f'PREFIX : <{EX}> :a :is 1 ; :in :c . :b :is 2.50 ; :in :c . :c :label "C"@en .'
CONTEXT = {"@vocab": EX, "id": "@id"}
FRAME = {"@context": CONTEXT, "is": {}}
PLAIN = [
    {"id": f"{EX}{name}", "is": number, "in": {"id": f"{EX}c", "label": {"en": "C"}}}
    for name, number in (("a", 1), ("b", 2.5))
]
FRAMED = [
    document | {"in": {"id": f"{EX}c", "label": {"@language": "en", "@value": "C"}}}
    for document in PLAIN
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.ttl").write_text(DATA)
    (tmp_path / "frame.json").write_text(json.dumps(FRAME))
    (tmp_path / "context.json").write_text(json.dumps({"@context": CONTEXT}))
    (tmp_path / "named.json").write_text(json.dumps({"@context": f"{EX}context", "is": {}}))
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "broken.json").write_text("{")
    return tmp_path


RUN = ["run", "--query", QUERY, "--source", "data.ttl"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], PLAIN),
        (["--frame", "frame.json"], FRAMED),
        (["--frame", "context.json"], FRAMED),
        (["--frame", "named.json", "--context", f"{EX}context=context.json"], FRAMED),
        (["--no-native", "--group-by", "?s", "--group-by", "?n", "--group-by", "?c"], None),
    ],
    ids=["default", "frame", "context alone", "context by its IRI", "strings"],
)
@pytest.mark.parametrize("array", [False, True], ids=["lines", "array"])
@pytest.mark.usefixtures("folder")
def test_run(here: Callable[..., Done], options: list[str], expected: Any, array: bool) -> None:
    done = here(*RUN, "--format", "json", *options, *(["--array"] if array else []))
    assert (done.status, done.errors) == (0, "")
    found = json.loads(done.log) if array else list(map(json.loads, done.log.splitlines()))
    if expected is None:
        assert [document["is"] for document in found] == ["1", "2.5"]
    else:
        assert found == expected


def test_convert(folder: Path, here: Callable[..., Done]) -> None:
    assert here(*RUN, "--output", "log.nq").status == 0
    done = here("convert", "log.nq", "log.json", "--frame", "frame.json")
    assert (done.status, done.errors) == (0, "")
    assert list(map(json.loads, (folder / "log.json").read_text().splitlines())) == FRAMED
    assert json.loads(here("head", "-n", "1", "log.nq", "--format", "json").log) == PLAIN[0]


@pytest.mark.parametrize(
    ("options", "error", "hint"),
    [
        (["--frame", "none.json"], "cannot read the frame none.json", None),
        (["--frame", "broken.json"], "the frame broken.json is not JSON", None),
        (["--frame", "list.json"], "the frame is no JSON object", "write one such as"),
        (["--frame", "named.json"], f"<{EX}context> is not known", "--context"),
        (["--frame", "frame.json", "--format", "nq"], "no meaning for N-Quads", "leave them out"),
        (["--syntax", "rdfm"], "JSON delimits messages by itself", "leave it out"),
    ],
)
def test_errors(
    folder: Path, here: Callable[..., Done], options: list[str], error: str, hint: str | None
) -> None:
    before = sorted(folder.iterdir())
    done = here(*RUN, "--output", "out.json", *options)
    assert (done.status, done.log) == (2, "")
    assert error in done.errors
    assert hint is None or hint in done.errors
    assert sorted(folder.iterdir()) == before


def test_no_part_of_documents_has_the_final_name(folder: Path, here: Callable[..., Done]) -> None:
    (folder / "data.ttl").write_text(f"{DATA} :d :is <<( :a :b :c )>> ; :in :c .")
    done = here(*RUN, "--output", "out.json")
    assert done.status == 2
    assert "message 3: JSON has no triple terms" in done.errors
    assert not (folder / "out.json").exists()
