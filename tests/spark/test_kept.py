"""The record of a kept session: found while its server runs, by its user alone, and used by commands."""

from __future__ import annotations

import fcntl
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from construct_messages import read_log
from construct_messages.spark import kept
from tests.support.commands import COMMAND, ENVIRONMENT
from tests.support.processes import end_group
from tests.support.waiting import wait_until

DUMP = """\
<http://example.org/a> <http://example.org/p> "1" .
<http://example.org/b> <http://example.org/p> "é" .
"""
QUERY = "CONSTRUCT { ?s <urn:p> ?o } WHERE { ?s <http://example.org/p> ?o } ORDER BY ?s"

KEEPS = """\
import os, sys
from construct_messages.spark import kept
print(kept.record(kept.KeptSession.here(sys.argv[1])), flush=True)
os.execv("/bin/cat", ["cat"])
"""
"""A program that records a session and replaces itself by another one, as `spark serve` does."""


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A runtime folder of the test's own."""
    monkeypatch.setenv(kept.RUNTIME, str(tmp_path))
    return tmp_path


class Keeping:
    """A process that keeps a session at a URL, until the block ends."""

    def __init__(self, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", KEEPS, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.is_recorded = self._process.stdout.readline() == "True\n"

    def __enter__(self) -> Keeping:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def test_found_while_its_server_runs() -> None:
    assert kept.find() is None
    with Keeping("sc://127.0.0.1:1") as first:
        assert first.is_recorded
        found = kept.find()
        assert found == kept.KeptSession.here("sc://127.0.0.1:1")
        assert found.mismatch() is None
        with Keeping("sc://127.0.0.1:2") as second:
            assert not second.is_recorded
        assert kept.find() == found
    assert kept.find() is None  # killed: the lock ends with the process
    with Keeping("sc://127.0.0.1:3"):
        assert kept.find() == kept.KeptSession.here("sc://127.0.0.1:3")


def test_recorded_while_a_client_looks(runtime: Path) -> None:
    """A client that looks for a session locks the record for a moment, which hides no server that starts."""
    with Keeping("sc://127.0.0.1:1"):
        pass  # which leaves its record there
    with next((runtime / "construct-messages").iterdir()).open("rb") as record:
        fcntl.flock(record, fcntl.LOCK_SH)
        with ThreadPoolExecutor(1) as pool:
            keeping = pool.submit(Keeping, "sc://127.0.0.1:2")
            with pytest.raises(TimeoutError):
                keeping.result(timeout=0.05)
            fcntl.flock(record, fcntl.LOCK_UN)
            with keeping.result() as second:
                assert second.is_recorded


def test_a_folder_of_others_is_not_used(runtime: Path) -> None:
    with Keeping("sc://127.0.0.1:1"):
        folder = runtime / "construct-messages"
        folder.chmod(0o777)  # where anybody could put the address of a server of theirs
        assert kept.find() is None
        folder.chmod(0o700)
        moved = folder.rename(runtime / "moved")
        folder.symlink_to(moved)
        assert kept.find() is None


@pytest.mark.parametrize("content", ["", "{", '{"url": 1}'])
def test_a_record_that_cannot_be_read(runtime: Path, content: str) -> None:
    with Keeping("sc://127.0.0.1:1"):
        next((runtime / "construct-messages").iterdir()).write_text(content)
        assert kept.find() is None


def test_mismatch() -> None:
    theirs = kept.KeptSession("sc://127.0.0.1:1", "3.5.0", "0.0.1", "3.8")
    assert re.fullmatch(
        r"Spark 3\.5\.0, not \S+, construct-messages 0\.0\.1, not \S+, Python 3\.8, not \S+",
        str(theirs.mismatch()),
    )


# --- the commands -----------------------------------------------------------------------------------------------------


@pytest.fixture
def server(runtime: Path) -> Iterator[int]:
    """The port of a server of `spark serve`, started in another folder than the commands run in."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    elsewhere = runtime / "elsewhere"
    elsewhere.mkdir()
    with (runtime / "server.txt").open("wb") as log:
        process = subprocess.Popen(
            [*COMMAND, "spark", "serve", "--bind", f"127.0.0.1:{port}", "--master", "local[1]"],
            cwd=elsewhere,
            env={**ENVIRONMENT, kept.RUNTIME: str(runtime)},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_until(lambda: _listens(port))
        yield port
    finally:
        end_group(process)


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.process
def test_commands_use_it(server: int, runtime: Path) -> None:
    place = runtime / "work"
    place.mkdir()
    (place / "dump.nt").write_text(DUMP, encoding="utf-8")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, "spark", *arguments],
            cwd=place,
            # no Java: what runs without is run by the server
            env={**ENVIRONMENT, kept.RUNTIME: str(runtime), "JAVA_HOME": str(place)},
            capture_output=True,
            text=True,
        )

    done = run("run", "--query", QUERY, "--quads", "dump.nt", "--output", "log.nq")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert re.fullmatch(r"2 messages, 2 quads \(session .*\)\n", done.stderr)
    assert [len(message) for message in read_log(place / "log.nq")] == [1, 1]
    done = run("load", "*.nt", "--output", "table/")
    assert done.returncode == 0, done.stderr
    done = run("run", "--query", QUERY, "--quads", "table", "--output", "logs/", "--quiet")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert (place / "logs" / "_SUCCESS").exists()
    assert list((runtime / "elsewhere").iterdir()) == []

    # a session that is named is used instead of it
    done = run(
        "run", "--query", QUERY, "--quads", "dump.nt", "--output", "x.nq", "--master", "local"
    )
    assert (done.returncode, "Spark needs Java" in done.stderr) == (2, True)
    assert not (place / "x.nq").exists()

    # so is one of this program, where the versions differ
    record = runtime / "construct-messages" / "spark-session.json"
    record.write_text(re.sub('"spark": "[^"]*"', '"spark": "3.5.0"', record.read_text()))
    done = run("run", "--query", QUERY, "--quads", "dump.nt", "--output", "x.nq")
    assert (done.returncode, "Spark needs Java" in done.stderr) == (2, True)
    assert (
        f"not using the session that is kept at sc://127.0.0.1:{server}: it has Spark"
        in done.stderr
    )
