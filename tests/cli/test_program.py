"""The process of the command line: how it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import ENVIRONMENT, ROOT

QUERY = "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }"
# what the end of a process does: what waits for it, and what frees what is left
PROGRAM = """
import atexit, sys, threading
from construct_messages.__main__ import program
from construct_messages.sparql.sources.oxigraph import OxigraphSource

def freed(self):
    print("freed", file=sys.stderr)

class Held:
    __del__ = freed

OxigraphSource.__del__ = freed  # that of the query

def work():
    threading.main_thread().join()
    print("thread", file=sys.stderr)

held = Held()
threading.Thread(target=work).start()
register = atexit.register
atexit.register = lambda call: (register(call), register(print, "exit", file=sys.stderr))
program()
"""


def ended(tmp_path: Path, *arguments: str, code: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    """A process that ran the program over a file with one triple."""
    data = tmp_path / "data.nt"
    data.write_text('<urn:s> <urn:p> "o" .\n')
    command = [
        sys.executable,
        "-c",
        code,
        "run",
        "--query",
        QUERY,
        "--source",
        str(data),
        *arguments,
    ]
    return subprocess.run(
        command, capture_output=True, text=True, env=ENVIRONMENT, cwd=ROOT, check=False
    )


@pytest.mark.process
def test_a_process_ends_when_all_that_waits_for_it_is_done_and_frees_nothing(
    tmp_path: Path,
) -> None:
    done = ended(tmp_path, "--quiet")
    assert done.returncode == 0
    assert '<urn:s> <urn:q> "o" .' in done.stdout
    assert done.stderr.split() == ["thread", "exit"]


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["--format", "none"], 2), (["--no-such-option"], 2)],
    ids=["value", "option"],
)
def test_the_status_of_a_failure_is_that_of_the_process(
    arguments: list[str], status: int, tmp_path: Path
) -> None:
    done = ended(tmp_path, *arguments)
    assert done.returncode == status
    assert "error: " in done.stderr


@pytest.mark.process
def test_output_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    with full.open("w") as output:
        command = [sys.executable, "-m", "construct_messages", "run", "--query", QUERY, "--source"]
        data = tmp_path / "data.nt"
        data.write_text('<urn:s> <urn:p> "o" .\n')
        done = subprocess.run(
            [*command, str(data)], stdout=output, stderr=subprocess.PIPE, env=ENVIRONMENT, cwd=ROOT
        )
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: cannot write")
