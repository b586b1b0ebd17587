"""The action for pull requests: its steps run here, over a repository of Git."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.places import ROOT

pytestmark = [pytest.mark.process, pytest.mark.slow]

FOLDER = ROOT / "docs" / "action"
ACTION = yaml.safe_load((FOLDER / "action.yml").read_text(encoding="utf-8"))
SCRIPT = (FOLDER / "check.sh").read_text(encoding="utf-8")
SHAPES = (ROOT / "queries" / "company-shapes.ttl").read_text(encoding="utf-8")
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
WHOLE = "# @message\n<urn:a> <urn:p> <urn:b> .\n# @message\n<urn:c> <urn:p> <urn:d> .\n"


class Repository:
    """A repository with a commit, and the action in it."""

    def __init__(self, place: Path) -> None:
        self.place, self.runner = place / "work", place / "runner"
        self.runner.mkdir()
        self.place.mkdir()
        self.git("init", "--quiet")
        self.write("data/same.nq", WHOLE)
        self.write("data/deep/changed log.nq", WHOLE)
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "base")
        self.base = self.git("rev-parse", "HEAD").strip()

    def git(self, *arguments: str) -> str:
        own = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        done = subprocess.run(
            ["git", *own, *arguments], cwd=self.place, capture_output=True, text=True, check=True
        )
        return done.stdout

    def write(self, name: str, text: str) -> None:
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def check(self, logs: str, shapes: str = "", base: str = "") -> tuple[int, str]:
        """Runs the step; its files are emptied before."""
        for name in ("summary", "output"):
            (self.runner / name).write_text("")
        (step,) = (each for each in ACTION["runs"]["steps"] if each.get("id") == "check")
        given = {"inputs.logs": logs, "inputs.shapes": shapes, "inputs.base": base}
        variables = {
            name: given[re.fullmatch(r"\$\{\{ (.*) \}\}", value)[1]]  # type: ignore[index] # fails as it should
            for name, value in step["env"].items()
        }
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=self.place,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
                "GITHUB_ACTION_PATH": str(FOLDER),
                "GITHUB_STEP_SUMMARY": str(self.runner / "summary"),
                "GITHUB_OUTPUT": str(self.runner / "output"),
                **variables,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert done.stderr == ""
        return done.returncode, done.stdout

    @property
    def summary(self) -> str:
        return (self.runner / "summary").read_text()

    @property
    def changed(self) -> list[str]:
        first, *names, last = (self.runner / "output").read_text().splitlines()
        assert (first, last) == ("changed<<END_OF_LOGS", "END_OF_LOGS")
        return [name for name in names if name]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    if shutil.which("git") is None:
        pytest.skip("git is absent")
    return Repository(tmp_path)


def test_well_formed_logs_pass(repository: Repository) -> None:
    status, said = repository.check("data/**/*.nq", base=repository.base)
    assert (status, repository.summary, repository.changed) == (0, "", [])
    assert said.count(": ok, 2 messages") == 2


def test_a_malformed_log_fails(repository: Repository) -> None:
    repository.write("data/cut.nq", WHOLE[:-3])
    status, said = repository.check("data/**/*.nq")
    assert status == 1
    assert "::error file=data/cut.nq::error: in data/cut.nq: line 4" in said
    assert said.count("ok, 2 messages") == 2


def test_changed_and_new_logs_are_shown(repository: Repository) -> None:
    repository.write("data/new.nq", WHOLE)
    repository.write("data/deep/changed log.nq", WHOLE.replace("urn:d", "urn:e"))
    status, _ = repository.check("data/**/*.nq", base=repository.base)
    assert status == 0
    assert repository.changed == ["data/deep/changed log.nq", "data/new.nq"]
    assert repository.summary == (
        "### `data/deep/changed log.nq`\n````diff\n--- before: data/deep/changed log.nq\n"
        "+++ data/deep/changed log.nq\nmessage 2\n- <urn:c> <urn:p> <urn:d> .\n"
        "+ <urn:c> <urn:p> <urn:e> .\n````\n### `data/new.nq` is new\n"
    )
    many = "".join(f'<urn:a> <urn:p> "{number}" .\n' for number in range(300))
    repository.write("data/same.nq", many)
    repository.check("data/same.nq", base=repository.base)
    assert re.search(r"^… and \d+ more lines$", repository.summary, re.MULTILINE)


def test_messages_are_checked_against_shapes(repository: Repository) -> None:
    repository.write("shapes.ttl", SHAPES)
    subject = "<http://dbpedia.org/resource/Portugal>"
    ontology = "http://dbpedia.org/ontology/"
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    few = (
        f"{subject} <{RDF_TYPE}> <{ontology}Country> .\n"
        + f'{subject} <{ontology}populationTotal> "10"^^<{integer}> .\n'
    )
    repository.write("data/few.nq", f"# @message\n{few}")
    status, said = repository.check("data/*.nq", shapes="shapes.ttl nothing*.ttl")
    assert status == 1
    assert "::error file=data/few.nq::message 1: " in said
    assert "same.nq::" not in said


@pytest.mark.parametrize(
    ("logs", "shapes", "why"),
    [("none*.nq", "", "no log matches"), ("data/*.nq", "none*.ttl", "no file with shapes")],
)
def test_patterns_that_match_nothing_fail(
    repository: Repository, logs: str, shapes: str, why: str
) -> None:
    status, said = repository.check(logs, shapes)
    assert status == 1
    assert f"::error::{why}" in said


def test_the_action_sets_what_the_script_reads() -> None:
    (step,) = (each for each in ACTION["runs"]["steps"] if each.get("id") == "check")
    assert set(step["env"]) == {"LOGS", "SHAPES", "BASE"}
    assert all(f"${name}" in SCRIPT for name in step["env"])
    assert {f"inputs.{name}" for name in ACTION["inputs"]} == set(
        re.findall(r"\$\{\{ (inputs\.\w+) \}\}", str(ACTION["runs"]))
    )
    assert all(each["shell"] == "bash" for each in ACTION["runs"]["steps"])
