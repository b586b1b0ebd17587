"""What `subscribe` keeps in its state, and what it reads besides streams of this package: event streams, inboxes."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from construct_messages import Message, Quad, iri, read_log
from tests.support.http.ldes import members, pages, site
from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.processes import run, start
from tests.support.streams import numbered, written
from tests.support.waiting import eventually

pytestmark = [pytest.mark.process, pytest.mark.slow]

SENT = [numbered(number) for number in range(1, 301)]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[StreamsServer]:
    """A server with one stream, `a`, whose event stream has pages of ten members."""
    async with serving_streams(tmp_path / "streams.db", ldes_page=10) as server:
        assert (await server.ask("PUT", "/streams/a")).status == 201
        yield server


@pytest.mark.parametrize("path", ["", pytest.param("/ldes", marks=pytest.mark.slow)])
async def test_the_state_is_there_before_the_first_message(
    served: StreamsServer, tmp_path: Path, path: str
) -> None:
    """What comes while nobody listens is not lost, though it began with what comes next."""
    await served.publish(SENT[:2])
    log, state = tmp_path / "log.nq", tmp_path / "state"
    command = (
        "subscribe",
        f"{served.url}/streams/a{path}",
        "--follow",
        "--state",
        str(state),
        "--output",
        str(log),
    )
    process = await start(*command)
    await eventually(state.exists)
    process.kill()
    _, errors = await process.communicate()
    assert errors == b"begins with the next message; --after 0 begins with the first one\n"
    assert written(state) == 2
    await served.publish(SENT[2:5])
    process = await start(*command)
    await eventually(lambda: written(state) == 5)
    process.send_signal(signal.SIGTERM)
    _, errors = await process.communicate()
    assert (process.returncode, errors) == (0, b"")
    assert list(read_log(log)) == SENT[2:5]


@pytest.mark.slow
async def test_an_event_stream_killed(served: StreamsServer, tmp_path: Path) -> None:
    """Each message is in the file once, in order, whenever the state was written."""
    log, state = tmp_path / "log.nq", tmp_path / "state"
    url = f"{served.url}/streams/a/ldes"
    command = (
        "subscribe",
        url,
        "--after",
        "0",
        "--follow",
        "--state",
        str(state),
        "--output",
        str(log),
    )
    done = 0
    for number in (90, 180, 300):
        process = await start(*command)
        await served.publish(SENT[done : number - 20])
        await served.publish(SENT[number - 20 : number])
        done = number
        await eventually(
            lambda least=number - 25: log.exists() and log.read_bytes().count(b"# @") >= least
        )
        process.kill()
        await process.communicate()
    process = await start(*command)
    last = numbered(301)
    await served.publish(
        [last]
    )  # once this is there, the last process is surely at work, and heeds signals
    await eventually(lambda: written(state) == 301)
    process.send_signal(signal.SIGINT)
    assert (await process.communicate(), process.returncode) == ((b"", b""), 0)
    assert list(read_log(log)) == [*SENT, last]


@pytest.mark.slow
async def test_a_message_that_cannot_be_written_is_not_told_of(
    served: StreamsServer, tmp_path: Path
) -> None:
    named = Message([Quad(iri("urn:s"), iri("urn:p"), iri("urn:o"), iri("urn:g"))])
    await served.publish([SENT[0], named])
    log, state = tmp_path / "log.ttl", tmp_path / "state"
    command = ("subscribe", f"{served.url}/streams/a", "--state", str(state), "--output", str(log))
    for _ in range(2):
        status, _, errors = await run(*command)
        assert (status, "named graphs" in errors) == (2, True)
        assert json.loads(state.read_text())["checkpoint"]["sequence"] in (0, 1)


@pytest.mark.slow
async def test_pages_and_notifications_of_other_hands(tmp_path: Path) -> None:
    async with site() as where:
        pages(where)
        where.page("/inbox", "<> <http://www.w3.org/ns/ldp#contains> </n> .")
        where.page("/n", "<urn:s> <urn:p> <urn:o> .")
        state = tmp_path / "state"
        status, output, errors = await run(
            "subscribe", f"{where.url}/#stream", "--state", str(state)
        )
        assert (status, errors, len(list(read_log(output, "nq")))) == (0, "", 6)
        where.page("/b", members(4, 5, 6, 7))
        status, output, errors = await run(
            "subscribe", f"{where.url}/#stream", "--state", str(state)
        )
        assert (status, errors, len(list(read_log(output, "nq")))) == (0, "", 1)
        status, output, errors = await run("subscribe", f"{where.url}/inbox")
        assert (status, errors, len(list(read_log(output, "nq")))) == (0, "", 1)


@pytest.mark.slow
async def test_other_origins() -> None:
    async with site() as where, site() as other:
        where.page("/", f"</#s> tree:view <> . <> tree:relation [ tree:node <{other.url}/> ] .")
        other.page("/", f"<{where.url}/#s> tree:member <urn:m> . <urn:m> <urn:p> 1 .")
        status, _, errors = await run("subscribe", where.url)
        assert (status, "another origin" in errors, "--allow-origin" in errors) == (
            3,
            True,
            True,
        ), errors
        status, output, errors = await run("subscribe", where.url, "--allow-origin", other.url)
        assert (status, errors, len(list(read_log(output, "nq")))) == (0, "", 1)
