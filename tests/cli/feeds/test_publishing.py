"""The commands `publish` and `subscribe` as processes: killed, stopped, started again; their words and statuses."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from construct_messages import Message, read_log, write_log
from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.processes import run, start
from tests.support.streams import numbered, written
from tests.support.waiting import eventually

pytestmark = [pytest.mark.process, pytest.mark.slow]

COUNT = 200
SENT = [numbered(number) for number in range(1, COUNT + 1)]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[StreamsServer]:
    """A server with one stream, `a`."""
    async with serving_streams(tmp_path / "streams.db") as server:
        assert (await server.ask("PUT", "/streams/a")).status == 201
        yield server


async def last_sequence(server: StreamsServer) -> int:
    return int((await server.ask("GET", "/streams/a")).json["lastSequence"])


async def there(server: StreamsServer) -> list[Message]:
    body = (await server.ask("GET", "/streams/a/output?format=nq&messages=rdfm")).body
    return list(read_log(body, "nq", syntax="rdfm"))


# --- killed and started again -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("source", ["file", "standard input"])
async def test_publish_killed(served: StreamsServer, tmp_path: Path, source: str) -> None:
    """At random points, and started again each time: each message is there once, in order."""
    log, state = tmp_path / "log.nq", tmp_path / "state"
    write_log(SENT, log)
    random = Random(source)
    kills = 0
    for threshold in sorted(random.sample(range(1, COUNT), 4)):
        with log.open("rb") as file:
            process = await start(
                *(
                    "publish",
                    str(log) if source == "file" else "-",
                    "--to",
                    f"{served.url}/streams/a",
                ),
                *(
                    "--state",
                    str(state),
                    "--batch",
                    str(random.randrange(1, 8)),
                    "--input-format",
                    "nq",
                ),
                standard_input=file.fileno(),
            )
            while await last_sequence(served) < threshold and process.returncode is None:  # noqa: ASYNC110 # both are others'
                await asyncio.sleep(0.002)
            if process.returncode is None:
                process.kill()
                kills += 1
            await process.communicate()
    assert kills >= 2
    status, _, errors = await run(
        "publish", str(log), "--to", f"{served.url}/streams/a", "--state", str(state)
    )
    assert (status, errors) == (0, "")
    assert await there(served) == SENT
    assert json.loads(state.read_text())["acknowledged"] == COUNT


@pytest.mark.slow
@pytest.mark.parametrize("via", ["sse", "websocket", "pull"])
async def test_subscribe_killed(served: StreamsServer, tmp_path: Path, via: str) -> None:
    """The file is gone on with behind the last message that the state tells: each message is in it once, in order."""
    log, state = tmp_path / "log.trig", tmp_path / "state"
    command = (
        *("subscribe", f"{served.url}/streams/a", "--after", "0", "--follow", "--via", via),
        *("--state", str(state), "--output", str(log), "--syntax", "1.2-messages"),
    )
    done = 0
    for number in (60, 130, COUNT):
        process = await start(*command)
        if done:
            await served.publish(SENT[done : number - 10])
            await served.publish(SENT[number - 10 : number])
        else:
            await served.publish(SENT[:number])
        done = number
        # before the state tells of them, most of the time
        await eventually(
            lambda least=number - 20: log.exists() and log.read_bytes().count(b"MESSAGE") >= least
        )
        process.kill()
        await process.communicate()
    process = await start(*command)
    last = numbered(COUNT + 1)
    await served.publish(
        [last]
    )  # once this is there, the last process is surely at work, and heeds signals
    await eventually(lambda: written(state) == COUNT + 1)
    process.send_signal(signal.SIGINT)
    _, errors = await process.communicate()
    assert (process.returncode, errors) == (0, b"")
    assert list(read_log(log)) == [*SENT, last]


# --- what they write --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ([], [1, 2, 3]),
        (["--last", "1"], [3]),
        (["--after", "1"], [2, 3]),
        (["--since", "2020-01-01T00:00:00Z"], [1, 2, 3]),
    ],
    ids=str,
)
async def test_what_is_there(served: StreamsServer, where: list[str], expected: list[int]) -> None:
    await served.publish(SENT[:3])
    status, output, errors = await run("subscribe", f"{served.url}/streams/a", *where)
    assert (status, errors) == (0, "")
    assert list(read_log(output, "nq")) == [numbered(number) for number in expected]


@pytest.mark.parametrize("format", ["nq", "ttl", "jelly", "ndjsonld", "yamlld", "rdfxml"])
async def test_formats(served: StreamsServer, format: str, tmp_path: Path) -> None:
    await served.publish(SENT[:3])
    output = tmp_path / f"log.{format}.gz"
    status, _, errors = await run("subscribe", f"{served.url}/streams/a", "--output", str(output))
    assert (status, errors) == (0, "")
    assert list(read_log(output)) == SENT[:3]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_each_message_as_it_comes(served: StreamsServer, number: signal.Signals) -> None:
    """On standard output, until a signal ends it."""
    process = await start("subscribe", f"{served.url}/streams/a", "--follow", "--after", "0")
    assert process.stdout is not None
    for sent in SENT[:3]:
        await served.publish([sent])
        lines = [await process.stdout.readline() for _ in range(2)]
        assert list(read_log(b"".join(lines), "nq")) == [sent]
    process.send_signal(number)
    output, errors = await process.communicate()
    assert (process.returncode, output, errors) == (0, b"", b"")


async def test_from_one_stream_into_another(served: StreamsServer) -> None:
    """A publisher sends on what comes, and ends when its input does."""
    await served.publish(SENT[:2])
    following = await start("subscribe", f"{served.url}/streams/a", "--after", "0", "--follow")
    assert following.stdout is not None
    reading, writing = os.pipe()
    to = ("--to", f"{served.url}/streams/b", "--create", "--input-format", "nq")
    publishing = await start("publish", "-", *to, standard_input=reading)
    os.close(reading)
    for _ in range(4):  # of two messages, a delimiter and a statement each
        os.write(writing, await following.stdout.readline())
    os.write(writing, b"# @message\n")
    while (await served.ask("GET", "/streams/b/output/2")).status != 200:  # noqa: ASYNC110 # of another process
        await asyncio.sleep(0.01)
    assert publishing.returncode is None
    os.close(writing)
    following.terminate()
    for process in (publishing, following):
        _, errors = await process.communicate()
        assert (process.returncode, errors) == (0, b"")
    body = (await served.ask("GET", "/streams/b/output?format=nq&messages=rdfm")).body
    assert list(read_log(body, "nq", syntax="rdfm")) == [*SENT[:2], Message()]


async def test_a_refusal_does_not_wait_for_more_input(served: StreamsServer) -> None:
    reading, writing = os.pipe()
    process = await start(
        "publish", "-", "--to", f"{served.url}/streams/none", standard_input=reading
    )
    os.close(reading)
    _, errors = await asyncio.wait_for(process.communicate(), 120)
    os.close(writing)
    assert (process.returncode, b"status 404" in errors) == (3, True)


async def test_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_log(SENT[:1], tmp_path / "log.nq")
    monkeypatch.setenv("RIGHT", "secret")
    async with serving_streams(tmp_path / "streams.db", publish="RIGHT") as server:
        command = (
            "publish",
            str(tmp_path / "log.nq"),
            "--to",
            f"{server.url}/streams/a",
            "--create",
        )
        refused = await run(*command)
        assert (refused[0], "needs a token" in refused[2]) == (3, True)
        missing = await run(*command, "--token-variable", "NONE")
        assert (missing[0], "no such environment variable" in missing[2]) == (2, True)
        assert (await run(*command, "--token-variable", "RIGHT"))[0] == 0


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["subscribe", "URL", "--state", "s", "--format", "jelly"], 2, "cannot be continued"),
        (["subscribe", "URL", "--follow", "--output", "x.nq.gz"], 2, "cannot be compressed"),
        (["subscribe", "URL", "--via", "sse"], 2, "follows a stream"),
        (["subscribe", "URL", "--since", "yesterday"], 2, "is not a time"),
        (["subscribe", "URL", "--since", "2026-01-01"], 2, "no time zone"),
        (["subscribe", "URL", "--after", "7", "--last", "1"], 2, "not allowed with"),
        (["subscribe", "URL/none"], 3, "status 404"),
        (["subscribe", "URL", "--output", "no/where.nq"], 1, "cannot write"),
        (["subscribe", "x"], 2, "malformed"),
        (["publish", "none.nq", "--to", "URL"], 2, "cannot read none.nq"),
        (["publish", "broken.nq", "--to", "URL"], 3, "message 1"),
        (["publish", "broken.nq", "--to", "URL", "--batch", "0"], 2, "less than 1"),
        (
            ["publish", "broken.nq", "--to", "http://127.0.0.1:1/", "--retries", "0"],
            3,
            "could not be reached",
        ),
    ],
    ids=str,
)
async def test_what_goes_wrong(
    served: StreamsServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    status: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.nq").write_text("<urn:s>\n")
    code, _, errors = await run(
        *(each.replace("URL", f"{served.url}/streams/a") for each in arguments)
    )
    assert (code, said in errors) == (status, True), errors
    assert not (tmp_path / "x.nq.gz").exists()


@pytest.mark.slow
async def test_register(served: StreamsServer, tmp_path: Path) -> None:
    query = tmp_path / "query.rq"
    query.write_text("CONSTRUCT { ?s <urn:saw> ?n } WHERE { ?s <urn:number> ?n }")
    command = ("register", str(query), "--at", f"{served.url}/streams/a", "--name", "seen")
    assert await run(*command, "--set", "from=first") == (
        0,
        f"{served.url}/streams/seen\n".encode(),
        "",
    )
    status, output, errors = await run(*command, "--set", "from=soon")
    assert (status, output, "from=soon is not a beginning" in errors) == (3, b"", True)


# --- other commands ---------------------------------------------------------------------------------------------------


async def test_a_query_into_a_stream(served: StreamsServer, tmp_path: Path) -> None:
    data = tmp_path / "data.nt"
    data.write_text('<urn:a> <urn:p> "1" .\n<urn:b> <urn:p> "2" .\n')
    query = "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o } ORDER BY ?o"
    stream = f"{served.url}/streams/results"
    command = ("run", "--query", query, "--source", str(data), "--to")
    assert await run(*command, stream, "--create") == (0, b"", "")
    (_, log, _) = await run("run", "--query", query, "--source", str(data))
    (_, published, _) = await run("subscribe", stream)
    assert list(read_log(published, "nq")) == list(read_log(log, "nq"))
    for more, words in (
        ([stream, "--format", "ttl"], "--format is for a log"),
        (["results.nq"], "is not a URL"),
        ([f"{served.url}/streams/none"], "404"),
    ):
        status, _, errors = await run(*command, *more)
        assert (status in (2, 3), words in errors) == (True, True)


async def test_a_relay_of_pipes(served: StreamsServer, tmp_path: Path) -> None:
    """From standard input and to standard output, with a status for each end."""
    log = tmp_path / "log.nq"
    write_log(SENT, log)
    stream = f"{served.url}/streams/relayed"
    with log.open("rb") as file:
        process = await start(
            *("relay", "--from", "-", "--to", stream, "--create"), standard_input=file.fileno()
        )
        assert await process.communicate() == (b"", b"")
    status, output, errors = await run("relay", "--from", stream, "--to", "-", "--last", "3")
    assert (status, errors) == (0, "")
    assert list(read_log(output, "nq")) == SENT[-3:]
    for command, expected in (
        (("--from", stream, "--to", stream), 2),
        (("--from", f"{stream}x", "--to", "-"), 3),
        (("--from", stream, "--to", "none/log.nq"), 1),
        (("--from", "none.nq", "--to", "-"), 2),
    ):
        status, _, errors = await run("relay", *command)
        assert (status, "Traceback" in errors) == (expected, False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_relay_that_follows(
    served: StreamsServer, tmp_path: Path, number: signal.Signals
) -> None:
    log = tmp_path / "log.nq"
    command = ("relay", "--from", f"{served.url}/streams/a", "--follow", "--after", "0")
    process = await start(*command, "--to", str(log))
    await served.publish(SENT[:3])
    await eventually(lambda: log.exists() and log.read_bytes().count(b"@message") == 3)
    process.send_signal(number)
    assert await process.communicate() == (b"", b"")
    assert (process.returncode, list(read_log(log))) == (0, SENT[:3])
