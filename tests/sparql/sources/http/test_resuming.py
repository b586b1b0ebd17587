"""Results in pages that end early, and continue from their file: every solution once, no whole page asked for twice."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest

from construct_messages import Message, construct_messages
from construct_messages.errors import IncompleteResult, SourceError, UsageError
from construct_messages.rdf.options import Requests
from tests.support.engines.servers import Serve
from tests.support.http.fault_server import JSON, Asked, FaultServer, response
from tests.support.processes import run

pytestmark = pytest.mark.usefixtures("at_once")

QUERY = "CONSTRUCT { ?s <urn:has> ?o ; <urn:also> [ <urn:is> ?o ] } WHERE { ?s <urn:p> ?o }"
PAGED: dict[str, dict[str, Any]] = {
    "offset": {"profile": "generic"},
    "chosen-key": {"profile": "oxigraph"},
    "key": {"profile": "generic", "page_key": "?s"},
    "auto": {"profile": "generic", "page_size": "auto"},
}


def store_of(count: int) -> ox.Store:
    """Subjects with one to three values each, of several kinds."""
    store = ox.Store()
    store.bulk_load(
        "\n".join(
            f"<urn:s{n:04}> <urn:p> {value} ."
            for n in range(count)
            for value in [f'"é {n}"@en', n, f"<urn:o{n}>"][: n % 3 + 1]
        ).encode(),
        ox.RdfFormat.TURTLE,
    )
    return store


class Evaluating:
    """Answers with pyoxigraph; the answers to some requests are bad."""

    def __init__(self, store: ox.Store, bad: dict[int, Callable[[bytes], bytes]]) -> None:
        self.store, self.bad = store, bad
        self.good: list[str] = []  # the queries with a whole answer
        self.count = 0

    def __call__(self, asked: Asked) -> bytes:
        query = asked.parameters["query"][0]
        solutions = self.store.query(query)
        assert isinstance(solutions, ox.QuerySolutions)
        body = solutions.serialize(format=ox.QueryResultsFormat.JSON)
        assert body is not None
        self.count += 1
        if (spoil := self.bad.get(self.count)) is not None:
            return spoil(response(body, JSON))
        self.good.append(query)
        return response(body, JSON)


def cut(answer: bytes) -> bytes:
    return answer[: len(answer) * 2 // 3]


def busy(_: bytes) -> bytes:
    return response(b"busy", "text/plain", status="503 Busy")


def refused(_: bytes) -> bytes:
    return response(b"out of memory", "text/plain", status="500 Internal Server Error")


def contents(messages: Iterable[Message]) -> Counter[tuple[str, ...]]:
    """Each message without the labels of its nodes."""
    return Counter(
        tuple(sorted(str(quad).partition("_:")[0] or "_" for quad in message))
        for message in messages
    )


def requests(tmp_path: Path, retries: int = 0, **options: Any) -> Requests:
    given = {"page_size": 20} | options
    return Requests(resume=str(tmp_path / "state"), retries=retries, **given)


def read(client: str, server: FaultServer, asked: Requests) -> Counter[tuple[str, ...]]:
    messages = construct_messages(QUERY, server.url, requests=asked)

    async def gather() -> list[Message]:
        return [message async for message in messages]

    return contents(asyncio.run(gather()) if client == "asyncio" else messages)


@pytest.mark.slow
@pytest.mark.one_in(3)
@pytest.mark.parametrize("paged", PAGED)
@pytest.mark.parametrize("spoil", [cut, busy])
def test_a_result_continues_after_its_last_whole_page(
    server: FaultServer, client: str, tmp_path: Path, paged: str, spoil: Callable[[bytes], bytes]
) -> None:
    """It fails at each request in turn, with and without a retry that succeeds before."""
    store = store_of(60)
    expected = contents(construct_messages(QUERY, store))
    failures = 0
    for bad in (1, 2, 5):
        for before in (0, 1):
            server.play(answering := Evaluating(store, {bad - 1: cut, bad + before: spoil}))
            state = tmp_path / f"{bad}-{before}"
            state.mkdir()
            asked = requests(state, retries=before, **PAGED[paged])
            found = None
            while found is None:
                try:
                    found = read(client, server, asked)
                except SourceError:
                    failures += 1
            assert found == expected
            again = [query for query, times in Counter(answering.good).items() if times > 1]
            assert not again
            # the file answers alone now
            count = answering.count
            assert read(client, server, asked) == expected
            assert answering.count == count
    assert failures


def test_changed_data_are_detected(server: FaultServer, client: str, tmp_path: Path) -> None:
    store, asked = store_of(60), requests(tmp_path)
    server.play(Evaluating(store, {4: refused}))
    with pytest.raises(SourceError):
        read(client, server, asked)
    for quad in sorted(store, key=str)[:25]:
        store.remove(quad)
    server.play(Evaluating(store, {}))
    with pytest.raises(
        IncompleteResult, match=r"other solutions for the same place|became shorter"
    ):
        read(client, server, asked)


def test_files_of_other_results_are_refused(
    server: FaultServer, client: str, tmp_path: Path
) -> None:
    asked = requests(tmp_path)
    server.play(Evaluating(store_of(20), {2: refused}))
    with pytest.raises(SourceError):
        read(client, server, asked)
    state = Path(str(asked.resume))
    before = state.read_bytes()
    for other in (requests(tmp_path, page_size=21), requests(tmp_path, profile="oxigraph")):
        with pytest.raises(UsageError, match="another query, or to other options"):
            read(client, server, other)
    assert state.read_bytes() == before
    state.write_text("CONSTRUCT WHERE { ?s ?p ?o }")
    with pytest.raises(UsageError, match="no file to resume a result from"):
        read(client, server, asked)
    assert state.read_text().startswith("CONSTRUCT")
    state.unlink()
    with closing(sqlite3.connect(state)) as database:
        database.execute("CREATE TABLE of_somebody (name)")
    with pytest.raises(UsageError, match="no file to resume a result from"):
        read(client, server, asked)
    with pytest.raises(UsageError, match="needs page_size"):
        Requests(resume="state")


def test_two_runs_cannot_have_one_file(server: FaultServer, tmp_path: Path) -> None:
    server.play(Evaluating(store_of(60), {}))
    asked = requests(tmp_path)
    with construct_messages(QUERY, server.url, requests=asked) as first:
        next(iter(first))
        with pytest.raises(UsageError, match="another process resumes"):
            read("blocking", server, asked)


async def test_the_command_removes_the_file_at_the_end(server: FaultServer, tmp_path: Path) -> None:
    state, log = tmp_path / "state", tmp_path / "log.nq"
    command = [
        "run",
        "--query",
        QUERY,
        "--source",
        server.url,
        "--page-size",
        "20",
        "--retries",
        "0",
    ]
    command += ["--resume", str(state), "--output", str(log), "--contact", "me@example.org"]
    server.play(answering := Evaluating(store_of(40), {3: refused}))
    status, _, _ = await run(*command)
    assert (status, log.exists(), state.exists()) == (3, False, True)
    status, _, errors = await run(*command)
    assert status == 0, errors
    assert not state.exists()
    assert len(set(answering.good)) == len(answering.good)
    assert all("; me@example.org)" in asked.headers["user-agent"] for asked in server.asked)
    status, _, errors = await run(*command[:-4], "--to", "nats://127.0.0.1/x")
    assert (status, "--resume is for a log" in errors) == (2, True)


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.engine
@pytest.mark.parametrize("paging", [["--profile", "generic"], ["--profile", "oxigraph"]])
def test_a_run_that_is_killed_again_and_again(
    oxigraph_server: Serve, tmp_path: Path, paging: list[str], pytestconfig: pytest.Config
) -> None:
    """`make kill-runs` kills it a hundred times."""
    data = tmp_path / "data.nt"
    store_of(800).dump(data, ox.RdfFormat.N_TRIPLES, from_graph=ox.DefaultGraph())
    state, log = tmp_path / "state", tmp_path / "log.nq"
    command = [
        sys.executable,
        "-m",
        "construct_messages",
        "run",
        "--query",
        QUERY,
        *paging,
        "--quiet",
    ]
    command += ["--source", oxigraph_server(data), "--page-size", "50"]
    plain = subprocess.run([*command], check=True, capture_output=True).stdout
    command += ["--resume", str(state), "--output", str(log)]
    points, kept, kills = random.Random(7), 0, 0
    while kills < pytestconfig.getoption("--kills"):
        with subprocess.Popen(command) as process:
            size = size_of(state)
            while size_of(state) <= size and process.poll() is None:
                time.sleep(0.01)
            time.sleep(points.random() * 0.1)
            process.kill()
        if log.exists():
            assert contents_of(log.read_bytes()) == contents_of(plain)
            log.unlink()
            kept = 0
            continue
        kills, before, kept = kills + 1, kept, pages_of(state)
        assert kept >= before
    subprocess.run(command, check=True)
    assert contents_of(log.read_bytes()) == contents_of(plain)
    assert not state.exists()


def size_of(state: Path) -> int:
    return state.stat().st_size if state.exists() else 0


def pages_of(state: Path) -> int:
    """The number of responses that are on disk."""
    with closing(sqlite3.connect(state)) as database:
        if not database.execute("SELECT 1 FROM sqlite_master").fetchone():
            return 0  # it was killed at once
        (count,) = database.execute("SELECT count(*) FROM response").fetchone()
    return int(count)


def contents_of(log: bytes) -> Counter[bytes]:
    return Counter(
        b"\n".join(sorted(line.partition(b"_:")[0] for line in message.splitlines()))
        for message in log.split(b"# @message")[1:]
    )
