"""The command `watch` as a process: killed, stopped, started again; where messages go, its words and statuses."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from random import Random

import pytest

from construct_messages import Message, read_log
from construct_messages.errors import LogError
from tests.support.commands import Done
from tests.support.http.fault_server import STALL, FaultServer, response
from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.places import ROOT
from tests.support.waiting import SECONDS, eventually
from tests.support.watching import QUERY, answer

pytestmark = pytest.mark.process


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[StreamsServer]:
    """A server with one stream, `a`."""
    async with serving_streams(tmp_path / "streams.db") as server:
        assert (await server.ask("PUT", "/streams/a")).status == 201
        yield server


@pytest.fixture
def endpoint() -> Iterator[FaultServer]:
    with closing(FaultServer()) as server:
        yield server


async def start(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "construct_messages", "watch", "--query", QUERY, *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


def names(messages: list[Message]) -> list[str]:
    return [str(quad.object).strip('"') for message in messages for quad in message]


def read(log: Path) -> list[str]:
    """What is in a log, of which the last message may be cut while it is written and after a kill."""
    found: list[Message] = []
    with suppress(LogError):
        found.extend(read_log(log, "nq", syntax="rdfm") if log.exists() else ())
    return names(found)


class Data:
    """A file that is replaced by a longer one."""

    def __init__(self, path: Path) -> None:
        self.path, self.count = path, 0
        self.grow(1)

    def grow(self, count: int) -> None:
        self.count += count
        beside = self.path.with_suffix(".part")
        beside.write_text(
            "".join(f'<urn:{number}> <urn:p> "{number}" .\n' for number in range(self.count))
        )
        beside.replace(self.path)

    @property
    def names(self) -> Counter[str]:
        return Counter(map(str, range(self.count)))


@pytest.mark.slow
@pytest.mark.parametrize("to", ["file", "stream"])
async def test_killed(served: StreamsServer, tmp_path: Path, to: str) -> None:
    """At random points, and started again each time: each message once."""
    data, log, random = Data(tmp_path / "data.nt"), tmp_path / "log.nq", Random(to)
    url = f"{served.url}/streams/a"
    arguments = ["--source", str(data.path), "--every", "10ms", "--state", str(tmp_path / "state")]
    arguments += ["--to", str(log) if to == "file" else url]

    async def there() -> list[str]:
        if to == "file":
            return read(log)
        body = (await served.ask("GET", "/streams/a/output?format=nq&messages=rdfm")).body
        return names(list(read_log(body, "nq", syntax="rdfm")))

    for _ in range(4):
        running = await start(*arguments)
        last = data.count + random.randrange(20, 200)
        async with asyncio.timeout(SECONDS):
            while len(await there()) < last - 20:
                assert running.returncode is None
                if data.count < last:
                    data.grow(random.randrange(1, 9))
                await asyncio.sleep(random.random() / 50)
        data.grow(3)
        await asyncio.sleep(random.random() / 20)
        running.kill()
        await running.communicate()
        assert max(Counter(await there()).values()) == 1
    data.grow(1)  # so that what is there tells that the command is at work
    running = await start(*arguments)
    async with asyncio.timeout(SECONDS):
        while True:
            if len(await there()) == data.count:
                break
            await asyncio.sleep(0.01)
    running.terminate()
    output, errors = await running.communicate()
    assert (running.returncode, output, errors) == (0, b"", b"")
    assert Counter(await there()) == data.names
    if to == "file":
        assert Counter(names(list(read_log(log, "nq", syntax="rdfm")))) == data.names, (
            "the log is whole"
        )


@pytest.mark.parametrize(
    "by", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM]
)
@pytest.mark.slow
@pytest.mark.parametrize("quiet", [False, True], ids=["", "quiet"])
async def test_an_endpoint_that_fails_meanwhile(
    endpoint: FaultServer, by: signal.Signals, quiet: bool
) -> None:
    """Standard output has each message as soon as it is there; warnings say what is made again."""
    cut, busy = answer("b")[:150], response(b"busy", "text/plain", status="503 Busy")
    endpoint.play(answer("a", "b"), cut, busy, answer("b", "c"))
    options = ("--quiet",) if quiet else ()
    running = await start("--source", endpoint.url, "--every", "1ms", "--retries", "0", *options)
    assert running.stdout is not None
    log = b""
    async with asyncio.timeout(SECONDS):
        while log.count(b"\n") < 6:
            log += await running.stdout.readline()
    asked = len(endpoint.asked)
    await eventually(lambda: len(endpoint.asked) > asked)
    running.send_signal(by)
    rest, errors = await running.communicate()
    assert (running.returncode, rest) == (0, b"")
    assert names(list(read_log(log, "nq", syntax="rdfm"))) == ["a", "b", "c"]
    warnings = errors.decode().splitlines()
    if quiet:
        assert not warnings
        return
    assert len(warnings) == 2
    assert "warning: the evaluation failed and is retried: " in warnings[0]
    assert "was cut" in warnings[0]
    assert "status 503" in warnings[1]


@pytest.mark.slow
async def test_a_stream_that_cannot_be_reached_for_a_while(
    tmp_path: Path, endpoint: FaultServer
) -> None:
    """The messages wait, and are sent when it is there."""
    endpoint.play(answer("a"))
    file = tmp_path / "streams.db"
    state = str(tmp_path / "state")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # nobody else can listen here
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/streams/new"
        running = await start(
            *(
                "--source",
                endpoint.url,
                "--every",
                "1ms",
                "--retries",
                "0",
                "--state",
                state,
                "--to",
                url,
            )
        )
        assert running.stderr is not None
        async with asyncio.timeout(SECONDS):
            assert b"warning: the messages wait: " in await running.stderr.readline()
        running.terminate()
        await running.communicate()
        assert running.returncode == 0
    async with serving_streams(file) as served:
        url = f"{served.url}/streams/new"
        done = await start(
            "--source", endpoint.url, "--once", "--state", state, "--to", url, "--create"
        )
        assert await done.communicate() == (b"", b"")
        assert (await served.ask("GET", "/streams/new")).json["lastSequence"] == 1


# --- in this process ---


def test_once(here: Callable[..., Done], endpoint: FaultServer, tmp_path: Path) -> None:
    log, state = tmp_path / "log.trig", tmp_path / "state"

    def watch(*arguments: str) -> Done:
        given = ("--query", QUERY, "--source", endpoint.url, "--once", "--retries", "0", *arguments)
        return here("watch", *given)

    endpoint.play(answer("a", "b"))
    assert watch("--to", str(log), "--state", str(state)) == (0, "", "")
    endpoint.play(answer("b", "c")[:200])
    done = watch("--to", str(log), "--state", str(state))
    assert done.status == 4
    assert "was cut" in done.errors
    endpoint.play(answer("b", "c"))
    assert watch("--to", str(log), "--state", str(state)) == (0, "", "")
    assert names(list(read_log(log))) == ["a", "b", "c"]
    done = watch("--to", str(log), "--state", str(state), "--operator", "dstream")
    assert done.status == 2
    assert "another query, operator or dataset" in done.errors
    gone = ("--operator", "dstream", "--state", str(tmp_path / "gone"), "--format", "ttl")
    assert watch(*gone).log == ""
    endpoint.play(answer("c"))
    assert watch(*gone).log == '# @message\n<urn:b> <urn:q> "b" .\n'
    assert watch("--skip-first").log == ""
    assert watch("--operator", "rstream", "--syntax", "1.2-messages").log.startswith(
        'VERSION "1.2-messages"\n'
    )


def test_an_answer_that_stalls(here: Callable[..., Done], endpoint: FaultServer) -> None:
    endpoint.play([answer("a", "b")[:150], STALL])
    arguments = ("--source", endpoint.url, "--once", "--retries", "0", "--read-seconds", "0.5")
    done = here("watch", "--query", QUERY, *arguments)
    assert (done.status, done.log) == (3, "")
    assert "0.5 seconds between two bytes" in done.errors
    assert "read_seconds" in done.errors


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ("--every 60", 2, "--every 60 is not a duration"),
        ("--every soon", 2, "--every soon is not a duration"),
        ("--to log.jelly", 2, "a Jelly log cannot be continued"),
        ("--to log.nq.gz", 2, "a growing log cannot be compressed"),
        ("--to log.txt", 2, "txt"),
        ("--to none/log.nq", 1, "cannot write none/log.nq"),
        ("--to http://127.0.0.1:1/a --format nq", 2, "--format is for a log"),
        ("--to log.nq --create", 2, "--create is for a stream"),
        ("--to log.nq --token-variable NAME", 2, "--token-variable is for a stream"),
        (
            "--to http://127.0.0.1:1/a --token-variable NAME_OF_NOTHING",
            2,
            "no such environment variable",
        ),
        ("--source none.nt", 2, "none.nt: no such file"),
        ("--bind x=1", 2, "no variable ?x"),
        ("--state log.txt", 4, "not a database"),
        ("--to data.nt", 2, "data.nt is what is read"),
        ("--state seen.nq --to ./seen.nq", 2, "./seen.nq is what is read"),
        ("--state link.nq --to new.nq", 2, "new.nq is what is read"),
        ("--state data.nt --to data.nt", 2, "data.nt is what is read"),
    ],
)
def test_refusals(
    here: Callable[..., Done],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: str,
    status: int,
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data.nt").write_text('<urn:a> <urn:p> "a" .\n')
    Path("log.txt").write_text("no database\n" * 100)
    Path("link.nq").symlink_to("new.nq")
    source = () if "--source" in arguments else ("--source", "data.nt")
    done = here("watch", "--query", QUERY, "--once", *source, *arguments.split())
    assert done.status == status
    assert words in done.errors
    assert not done.log
    assert not {"seen.nq", "new.nq"} & set(os.listdir())
