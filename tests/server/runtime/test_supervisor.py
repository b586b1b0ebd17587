"""The real command as a process: how it starts, stops, and keeps its processes; over real sockets and signals."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.server.config import Config, EndpointSettings
from construct_messages.server.runtime.supervisor import bound, share, url_of
from tests.support.http.command import (
    COMMAND,
    DATA,
    HALF,
    QUERY,
    WHOLE,
    Held,
    Running,
    begin,
    drain,
    eventually,
    refuses,
)
from tests.support.http.fault_server import STALL, FaultServer, Script, response
from tests.support.places import ROOT
from tests.support.processes import below, command_line
from tests.support.waiting import SECONDS

pytestmark = [pytest.mark.process, pytest.mark.slow]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def start_one(*arguments: str, **variables: str) -> Running:
        temporary = tmp_path / f"tmp{len(started)}"
        temporary.mkdir()
        started.append(Running(temporary, *arguments, **variables))
        return started[-1]

    yield start_one
    for running in started:
        running.kill()


@pytest.fixture
def upstream() -> Iterator[FaultServer]:
    server = FaultServer()
    yield server
    server.close()


def evaluates_or_serves(process: psutil.Process) -> bool:
    return any("construct_messages" in part for part in command_line(process))


@pytest.mark.parametrize(("workers", "number"), [(1, signal.SIGINT), (2, signal.SIGTERM)])
def test_it_serves_and_stops(
    start: Callable[..., Running], workers: int, number: signal.Signals
) -> None:
    running = start("--source", DATA, "--workers", str(workers))
    with urlopen(f"{running.url}/sparql?{QUERY}", timeout=120) as answer:
        assert answer.read().count(b"# @message\n") > 5
        identifier = answer.headers["X-Request-ID"]
    with urlopen(f"{running.url}/health/ready", timeout=120) as answer:
        assert answer.status == 200
    labels = b'answer="messages",endpoint="/sparql",form="CONSTRUCT",status="200"'

    def counted() -> bool:  # whichever process it is that answers
        with urlopen(f"{running.url}/metrics", timeout=120) as answer:
            return b"construct_messages_requests_total{%b} 1.0" % labels in answer.read()

    eventually(counted, running)  # a request ends a moment after its client has everything
    eventually(lambda: len(running.children) == (workers if workers > 1 else 0), running)
    started = below(running.process.pid)
    running.process.send_signal(number)
    assert running.wait() == 0
    assert running.events("stopped")
    (line,) = running.events("request")
    assert (line["request_id"], line["outcome"], line["form"]) == (
        identifier,
        "complete",
        "CONSTRUCT",
    )
    assert list(running.temporary.iterdir()) == []
    # what evaluated for it ends with it, if not before it
    eventually(lambda: not any(map(evaluates_or_serves, started)), running)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_answer_under_way_may_end(
    start: Callable[..., Running], upstream: FaultServer, workers: str
) -> None:
    held = Held(WHOLE[:HALF], WHOLE[HALF:])
    upstream.play(held)
    running = start("--source", upstream.url, "--workers", workers)
    url = running.url
    connection, came = begin(url)
    running.process.terminate()
    eventually(lambda: running.events("stopping"), running)
    eventually(lambda: refuses(url), running)
    held.go.set()
    with connection:
        came += drain(connection)
    assert came.count(b"# @message\n") == 20
    assert came.endswith(b"0\r\n\r\n")
    assert running.wait() == 0
    (line,) = running.events("request")
    assert line["outcome"] == "complete"


def test_a_retry_is_logged_with_the_id_of_its_request(
    start: Callable[..., Running], upstream: FaultServer
) -> None:
    upstream.play(response(b"busy", "text/plain", status="503 Service Unavailable"), WHOLE)
    running = start("--source", upstream.url, "--workers", "2")
    with urlopen(
        Request(f"{running.url}/sparql?{QUERY}", headers={"X-Request-ID": "retried"}), timeout=120
    ) as answer:
        assert answer.read().count(b"# @message\n") == 20
    running.process.terminate()
    assert running.wait() == 0
    retries = [
        line
        for line in running.log
        if line.get("logger") == "construct_messages.sparql.client.retries"
    ]
    assert [(line["level"], line["request_id"]) for line in retries] == [("info", "retried")]


@pytest.mark.parametrize(
    ("workers", "insist", "version"),
    [("1", False, "1.0"), ("2", True, "1.1")],
    ids=["one, too slow", "two, a second signal"],
)
def test_an_answer_that_does_not_end_is_reset(
    start: Callable[..., Running], upstream: FaultServer, workers: str, insist: bool, version: str
) -> None:
    script: Script = [WHOLE[:HALF], STALL]
    upstream.play(script)
    seconds = {"CONSTRUCT_MESSAGES_SERVER_SHUTDOWN_SECONDS": "600" if insist else "0.2"}
    running = start("--source", upstream.url, "--workers", workers, **seconds)
    connection, _ = begin(running.url, version)
    with connection:
        running.process.terminate()
        eventually(lambda: running.events("stopping"), running)
        if insist:
            running.process.terminate()
        with pytest.raises(ConnectionResetError):
            drain(connection)
    assert running.wait() == 0
    (line,) = running.events("request")
    assert line["outcome"] == "aborted:shutdown"
    assert upstream.left.wait(SECONDS)


def test_a_worker_that_dies_is_replaced(start: Callable[..., Running]) -> None:
    running = start("--source", DATA, "--workers", "2")
    url = running.url
    eventually(lambda: len(running.children) == 2, running)
    before = running.children
    started = below(before[0])
    os.kill(before[0], signal.SIGKILL)
    eventually(lambda: len(running.children) == 2 and before[0] not in running.children, running)
    for _ in range(6):
        with urlopen(f"{url}/sparql?{QUERY}", timeout=120) as answer:
            assert b"# @message\n" in answer.read()
    eventually(lambda: running.events("a worker ended"), running)  # its log is read aside
    (line,) = running.events("a worker ended")
    assert (line["pid"], line["code"], line["level"]) == (before[0], -signal.SIGKILL, "error")
    # what evaluated for it has ended with it
    eventually(lambda: not any(map(evaluates_or_serves, started)), running)
    running.process.terminate()
    assert running.wait() == 0


def test_workers_end_with_the_supervisor(start: Callable[..., Running]) -> None:
    running = start("--source", DATA, "--workers", "2")
    assert running.url
    eventually(lambda: len(running.children) == 2, running)
    started = below(running.process.pid)
    running.process.kill()
    eventually(lambda: not any(map(evaluates_or_serves, started)), running)


@pytest.mark.parametrize(("workers", "status"), [("1", 3), ("2", 1)])
def test_it_gives_up_loudly(
    start: Callable[..., Running], tmp_path: Path, workers: str, status: int
) -> None:
    """A directory that looks like a store from outside only."""
    broken = tmp_path / "store"
    broken.mkdir()
    (broken / "CURRENT").write_text("no such manifest\n")
    running = start("--source", str(broken), "--workers", workers)
    assert running.wait() == status
    assert not running.events("listening")
    if workers == "1":
        assert "CURRENT file corrupted" in running.last_words
    else:
        assert len(running.events("cannot serve")) >= 3
        assert running.events("giving up")


def run(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [*COMMAND, *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT), "CONSTRUCT_MESSAGES_SOURCE": ""},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.returncode, done.stderr


def test_an_address_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        bind = f"127.0.0.1:{taken.getsockname()[1]}"
        status, errors = run("--source", DATA, "--bind", bind)
    assert status == 1
    assert f"cannot listen at {bind}: Address already in use" in errors


def test_files_that_cannot_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "broken.ttl").write_text("<urn:a> <urn:b>\n<urn:c>, .")
    status, errors = run("--source", str(tmp_path / "broken.ttl"), "--bind", "127.0.0.1:0")
    assert status == 3
    assert re.search(r"^error: .*broken\.ttl: .*line 2", errors)


# --- the parts ---


@given(
    workers=st.integers(1, 9),
    extra=st.integers(0, 50),
    queue=st.integers(0, 50),
    rate=st.floats(0.1, 100),
)
def test_shares_add_up(workers: int, extra: int, queue: int, rate: float) -> None:
    endpoint = EndpointSettings(
        source=("a.ttl",),
        concurrency=workers + extra,
        queue_length=queue,
        evaluators=workers + extra,
        rate=rate,
    )
    config = Config(endpoints={"": endpoint}, workers=workers)
    shares = [share(config, worker).endpoints[""] for worker in range(workers)]
    for name in ("concurrency", "queue_length", "evaluators"):
        assert sum(getattr(one, name) for one in shares) == getattr(endpoint, name)
    assert min(one.concurrency for one in shares) >= 1
    assert sum(one.rate or 0 for one in shares) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("bind", "url"), [("127.0.0.1:0", "http://127.0.0.1:"), ("[::1]:0", "http://[::1]:")]
)
def test_addresses(bind: str, url: str) -> None:
    with bound(Config(endpoints={}, bind=bind)) as listening:
        listening.listen()
        assert re.fullmatch(re.escape(url) + r"[1-9]\d*", url_of(listening))
        with socket.create_connection(listening.getsockname()[:2], timeout=120):
            pass


def test_a_host_that_is_none() -> None:
    with pytest.raises(OSError, match=r"cannot listen at no-such-host\.invalid:80: "):
        bound(Config(endpoints={}, bind="no-such-host.invalid:80"))
