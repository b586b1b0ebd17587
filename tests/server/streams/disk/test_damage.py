"""A server whose store is damaged: it does not start, or writes nothing more, and says which command checks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from construct_messages.streams import open_store
from tests.support.http.command import COMMAND
from tests.support.http.streams import StreamsServer
from tests.support.streams import numbered

PAGE = 4096


def spoil(path: Path) -> None:
    """Overwrites all but the first pages."""
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.seek(8 * PAGE)
        file.write(b"\xff" * (size - 8 * PAGE))


@pytest.mark.slow
@pytest.mark.process
def test_a_damaged_store_is_not_served(tmp_path: Path) -> None:
    path = tmp_path / "streams.db"
    with open_store(path) as store:
        store.create("a")
        store.append_all("a", [numbered(number, 1000) for number in range(500)])

    def check() -> tuple[int, str]:
        command = (sys.executable, "-m", "construct_messages", "streams", "check", str(path))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    assert check() == (0, f"a: elements 1 to 500\n{path} is whole\n")
    spoil(path)
    status, said = check()
    assert (status, "cannot be read" in said, f"{path} is damaged" in said) == (1, True, True)
    serve = [*COMMAND, "--streams", str(path), "--bind", "127.0.0.1:0"]
    done = subprocess.run(serve, capture_output=True, text=True, check=False)
    assert (done.returncode, "is damaged" in done.stderr) == (4, True)
    assert f"construct-messages streams check {path}" in done.stderr
    path.unlink()
    assert check()[0] == 2


async def test_damage_under_a_server(served: StreamsServer) -> None:
    await served.publish(numbered(number, 3_500) for number in range(250))
    store = served.streams._store
    path = store.path
    assert store._writer is not None
    store._writer._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert (await served.ask("GET", "/health/ready")).status == 200
    spoil(path)
    answers = [
        await served.ask("GET", f"/streams/a/output/{number}") for number in range(1, 250, 10)
    ]
    failed = [answer for answer in answers if answer.status != 200]
    assert failed
    assert {(answer.status, "is damaged" in answer.json["detail"]) for answer in failed} == {
        (500, True)
    }
    for method, path_, body in (
        ("POST", "/streams/a/input", b"<urn:s> <urn:p> 1 ."),
        ("PUT", "/streams/b", b""),
        ("DELETE", "/streams/a", b""),
    ):
        refused = await served.ask(method, path_, body, "text/turtle" if body else "")
        assert (refused.status, "streams check" in refused.json["hint"]) == (500, True)
    assert (await served.ask("GET", "/health/live")).status == 200
