"""No command replaces what it reads, by whatever name: the input is as before, and nothing else appears."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyoxigraph as ox
import pytest

from construct_messages import construct_messages
from construct_messages.errors import UsageError
from tests.support.commands import COMMAND, ENVIRONMENT, Done

LOG = b'VERSION "1.2-messages"\n<urn:a> <urn:p> "1" .\nMESSAGE\n<urn:b> <urn:p> "2" .\n'
QUERY = "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }"
COMMANDS: dict[str, tuple[str, ...]] = {
    "run": ("run", "--query", QUERY, "--source", "in/data.nq", "--output"),
    "run, several": ("run", "--query", QUERY, "--source", "other.nt", "in/data.nq", "--output"),
    "run, its query": ("run", "in/data.nq", "--source", "other.nt", "--output"),
    "head": ("head", "in/log.nq", "--output"),
    "cat": ("cat", "in/log.nq", "in/log.nq", "--output"),
    "slice": ("slice", "in/log.nq", "--from", "1", "--output"),
    "tail": ("tail", "in/log.nq", "--output"),
    "convert": ("convert", "in/log.nq"),
    "invalid messages": ("convert", "in/log.nq", "new.nq", "--shapes", "other.nt", "--invalid-to"),
    "reports": ("convert", "in/log.nq", "new.nq", "--shapes", "other.nt", "--report"),
    "spark run": (
        *("spark", "run", "--query", QUERY, "--quads", "in", "--mode", "overwrite", "--output"),
    ),
    "spark run, a pattern": (
        *(
            "spark",
            "run",
            "--query",
            QUERY,
            "--quads",
            "in/*.nq",
            "--mode",
            "overwrite",
            "--output",
        ),
    ),
    "spark convert": ("spark", "convert", "in", "--mode", "overwrite", "--output"),
    "spark load": ("spark", "load", "in/log.nq", "--mode", "overwrite", "--output"),
}
NAMES = {
    "the name": lambda name: name,
    "another name": lambda name: f"in/../{name}",
    "absolute": os.path.abspath,
    "a hard link": lambda name: linked(name, os.link),
    "a symbolic link": lambda name: linked(name, lambda old, new: os.symlink(f"../{old}", new)),
}


def linked(name: str, link: Callable[[str, str], None]) -> str:
    os.makedirs("links")
    new = f"links/{os.path.basename(name)}"
    if os.path.isdir(name):
        os.symlink(f"../{name}", new)
    else:
        link(name, new)
    return new


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for name in ("in/data.nq", "in/log.nq", "other.nt"):
        (tmp_path / name).write_bytes(LOG if "log" in name else b'<urn:a> <urn:p> "1" .\n')
    return tmp_path


def files(place: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in place.rglob("*")
        if path.is_file() and path.parent.name != "links"
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_that_is_read_is_refused(
    command: str, name: str, place: Path, here: Callable[..., Done]
) -> None:
    before = files(place)
    arguments = COMMANDS[command]
    read = next(one for one in arguments if one.startswith("in"))
    read = "in" if arguments[0] == "spark" else read
    done = here(*arguments, NAMES[name](read))
    assert done.status == 2
    assert "is what is read, or in the same folder" in done.errors
    assert files(place) == before


@pytest.mark.parametrize("output", ["in/out", "in/out/deeper", "."])
def test_folders_around_and_inside_are_refused(
    output: str, place: Path, here: Callable[..., Done]
) -> None:
    before = files(place)
    done = here(*COMMANDS["spark run"], output)
    assert (done.status, files(place)) == (2, before)


def test_the_source_of_the_environment_is_one(
    place: Path, here: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONSTRUCT_MESSAGES_SOURCE", "in/data.nq")
    done = here("run", "--query", QUERY, "--output", "in/data.nq")
    assert (done.status, files(place)["in/data.nq"]) == (2, b'<urn:a> <urn:p> "1" .\n')


def test_a_store_directory_is_not_written_into(place: Path, here: Callable[..., Done]) -> None:
    ox.Store(str(place / "store")).flush()
    done = here("run", "--query", QUERY, "--source", "store", "--output", "store/log.nq")
    assert (done.status, (place / "store" / "log.nq").exists()) == (2, False)


def test_a_file_beside_the_source_is_written(place: Path, here: Callable[..., Done]) -> None:
    for output in ("in/new.nq", "in/new.nq", "new/../in/newer.nq"):
        (place / "new").mkdir(exist_ok=True)
        assert here(*COMMANDS["run"], output).status == 0
        assert b"urn:q" in (place / output).read_bytes()
    assert here("convert", "in/log.nq", "in/log.trig").status == 0


@pytest.mark.process
@pytest.mark.parametrize("name", ["in/log.nq", "-", "/dev/stdin"])
def test_standard_output_that_is_appended_to_the_input(name: str, place: Path) -> None:
    with (place / "in/log.nq").open("ab") as output, (place / "in/log.nq").open("rb") as read:
        done = subprocess.run(
            [*COMMAND, "cat", name],
            env=ENVIRONMENT,
            stdin=read,
            stdout=output,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 2
    assert b"standard output is what is read" in done.stderr
    assert (place / "in/log.nq").read_bytes() == LOG


@pytest.mark.parametrize("name", NAMES)
def test_in_python(name: str, place: Path) -> None:
    with pytest.raises(UsageError, match="is what is read"):
        construct_messages(QUERY, ["other.nt", "in/data.nq"]).write(NAMES[name]("in/data.nq"))
    assert (place / "in/data.nq").read_bytes() == b'<urn:a> <urn:p> "1" .\n'
