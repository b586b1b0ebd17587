"""Publishing over real connections: batches, keys, cuts, and going on where a state file says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from random import Random

import pytest

from construct_messages import Message, blank, iri, literal, read_log
from construct_messages.errors import ConstructMessagesError, SourceError, UsageError
from construct_messages.feeds import publish, subscribe
from construct_messages.rdf.message import Quad
from tests.support.http.relay import relay
from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.logs.kinds import isomorphic
from tests.support.streams import numbered
from tests.support.waiting import eventually


async def there(url: str) -> list[Message]:
    """All messages of a stream."""
    return [element.message async for element in subscribe(url, follow=False)]


@pytest.mark.parametrize("batch", [1, 3, 1000])
@pytest.mark.parametrize("endpoint", ["", "/input", "/inbox"])
async def test_publish(served: StreamsServer, batch: int, endpoint: str) -> None:
    sent = [
        numbered(1),
        Message(),
        Message([Quad(blank("b"), iri("urn:p"), literal("\r\n"), iri("urn:g"))]),
        numbered(4),
    ]
    url = f"{served.url}/streams/a"
    assert await publish(sent, f"{url}{endpoint}", batch=batch) == 4
    assert isomorphic(await there(url), sent)


@pytest.mark.parametrize("batch", [1, 1000])
async def test_a_label_means_the_same_node_in_all_messages(
    served: StreamsServer, batch: int
) -> None:
    """And another one than in another log."""
    url = f"{served.url}/streams/a"
    message = Message([Quad(blank("b"), iri("urn:p"), literal("x"))])
    for _ in range(2):
        await publish([message, message], url, batch=batch)
    nodes = [next(iter(message)).subject for message in await there(url)]
    assert nodes[0] == nodes[1] != nodes[2] == nodes[3]


async def test_an_empty_log(served: StreamsServer, tmp_path: Path) -> None:
    assert await publish([], f"{served.url}/streams/a", state=tmp_path / "state") == 0
    assert await there(f"{served.url}/streams/a") == []


async def test_what_waits_is_sent(served: StreamsServer) -> None:
    """A slow source is not held back until a batch is full."""
    more = asyncio.Event()

    async def slowly() -> AsyncIterator[Message]:
        yield numbered(1)
        yield numbered(2)
        await more.wait()
        yield numbered(3)

    publishing = asyncio.create_task(publish(slowly(), f"{served.url}/streams/a"))
    (first, second) = [
        each
        async for each in _take(subscribe(f"{served.url}/streams/a", after=0, poll_seconds=0.01), 2)
    ]
    assert (first, second) == (numbered(1), numbered(2))
    more.set()
    assert await publishing == 3


async def _take(elements: AsyncIterator[object], count: int) -> AsyncIterator[object]:
    async for element in elements:
        yield element.message  # type: ignore[attr-defined]
        count -= 1
        if not count:
            return


async def test_what_stands_before_an_error_is_sent(served: StreamsServer) -> None:
    log = b"<urn:s> <urn:p> <urn:o> .\n# @message\n<urn:s> <urn:p>"
    with pytest.raises(ConstructMessagesError, match="message 2"):
        await publish(read_log(log, "nt"), f"{served.url}/streams/a")
    assert len(await there(f"{served.url}/streams/a")) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_connections_that_are_cut(served: StreamsServer, seed: int) -> None:
    """Before a request, within its answer, behind it: each message is there once, in order."""
    random = Random(seed)
    sent = [numbered(number) for number in range(1, 101)]
    # an answer to a batch has some 500 bytes; the stream's description, which is asked for at first, would have more
    async with relay([2000, *(random.randrange(1, 900) for _ in range(3))]) as between:
        between.target = served.url
        assert await publish(sent, f"{between.url}/streams/a/input", batch=10, retries=8) == 100
        assert between.connections > 3
    assert await there(f"{served.url}/streams/a") == sent


@pytest.mark.slow
async def test_a_server_that_stops_and_starts(tmp_path: Path) -> None:
    sent = [numbered(number) for number in range(1, 301)]
    came = 0

    async def counted() -> AsyncIterator[Message]:
        nonlocal came
        for message in sent:
            came += 1
            yield message

    async with relay() as between:
        async with serving_streams(tmp_path / "streams.db") as server:
            between.target = server.url
            await server.ask("PUT", "/streams/a")
            publishing = asyncio.create_task(
                publish(counted(), f"{between.url}/streams/a", batch=1, retries=8)
            )
            await eventually(lambda: came > 50)
        async with serving_streams(tmp_path / "streams.db") as server:
            between.target = server.url
            assert await publishing == 300
            assert await there(f"{server.url}/streams/a") == sent


# --- keys and states --------------------------------------------------------------------------------------------------


async def test_the_same_key_again(served: StreamsServer) -> None:
    url = f"{served.url}/streams/a"
    sent = [Message([Quad(blank("b"), iri("urn:p"), literal(str(number)))]) for number in range(5)]
    for _ in range(2):
        assert await publish(sent, url, key="k", batch=2) == 5
    assert len(await there(url)) == 5
    with pytest.raises(SourceError) as raised:
        await publish([numbered(1), numbered(2)], url, key="k", batch=2)
    assert (raised.value.response_status, "other messages" in raised.value.message) == (422, True)


async def test_a_state(served: StreamsServer, tmp_path: Path) -> None:
    """What is acknowledged is skipped, and a longer log is gone on with."""
    url, state = f"{served.url}/streams/a", tmp_path / "state"
    sent = [numbered(number) for number in range(1, 6)]
    for count in (2, 2, 5):
        assert await publish(sent[:count], url, state=state) == count
        assert await there(url) == sent[:count]
    with pytest.raises(UsageError, match="5 messages were sent before, and there are 4"):
        await publish(sent[:4], url, state=state)
    with pytest.raises(UsageError, match="the state is of"):
        await publish(sent, f"{url}/input", state=state)


@pytest.mark.parametrize("arrived", [False, True], ids=["it was lost", "it arrived"])
async def test_a_batch_that_was_under_way(
    served: StreamsServer, tmp_path: Path, arrived: bool
) -> None:
    """The state has it: it is sent again whatever `batch` is now. If it arrived, it is not appended again."""
    url, state = f"{served.url}/streams/a", tmp_path / "state"
    sent = [numbered(number) for number in range(1, 11)]
    await publish(sent[:3], url, key="k", batch=3)
    acknowledged = {"url": url, "key": "k", "acknowledged": 3}
    if arrived:
        (tmp_path / "other").write_text(json.dumps(acknowledged))
        await publish(sent[:7], url, state=tmp_path / "other")
    in_flight = [message.lines.decode()[:-1] for message in sent[3:7]]
    state.write_text(json.dumps(acknowledged | {"in_flight": in_flight}))
    assert await publish(sent, url, state=state, batch=2) == 10
    assert await there(url) == sent
    assert json.loads(state.read_text()) == acknowledged | {"acknowledged": 10}


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "x", '{"url": 1, "key": "k"}', '{"url": "u", "key": "k", "z": 1}']
)
async def test_what_is_no_state(tmp_path: Path, text: str) -> None:
    (tmp_path / "state").write_text(text)
    with pytest.raises(UsageError, match="is no state"):
        await publish([], "http://127.0.0.1:1/", state=tmp_path / "state")


# --- refusals ---------------------------------------------------------------------------------------------------------


async def test_create(served: StreamsServer) -> None:
    url = f"{served.url}/streams/b"
    with pytest.raises(SourceError) as raised:
        await publish([numbered(1)], url)
    assert raised.value.response_status == 404
    for _ in range(2):
        await publish([numbered(1)], url, create=True)
    assert await there(url) == [numbered(1), numbered(1)]


async def test_create_by_many_at_once(served: StreamsServer) -> None:
    """All find that there is no such stream; one of them creates it."""
    url = f"{served.url}/streams/b"
    sent = [numbered(number) for number in range(8)]
    await asyncio.gather(*(publish([message], url, create=True) for message in sent))
    assert set(await there(url)) == set(sent)


async def test_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "right")
    async with serving_streams(tmp_path / "streams.db", publish="TOKEN") as server:
        url = f"{server.url}/streams/a"
        for token, status in ((None, 401), ("wrong", 401)):
            with pytest.raises(SourceError) as raised:
                await publish([numbered(1)], url, create=True, token=token)
            assert (raised.value.response_status, "right" in str(raised.value)) == (status, False)
        assert await publish([numbered(1)], url, create=True, token="right") == 1


async def test_a_message_that_is_too_large(tmp_path: Path) -> None:
    async with serving_streams(tmp_path / "streams.db", message_bytes=500) as server:
        with pytest.raises(SourceError) as raised:
            await publish([numbered(1, size=1000)], f"{server.url}/streams/a", create=True)
        assert raised.value.response_status == 413


async def test_messages_that_are_none(served: StreamsServer) -> None:
    def messages() -> Iterator[object]:
        yield numbered(1)
        yield "x"

    with pytest.raises(UsageError):
        await publish(messages(), f"{served.url}/streams/a")  # type: ignore[arg-type]
    assert await there(f"{served.url}/streams/a") == [numbered(1)]
    with pytest.raises(UsageError, match="less than 1"):
        await publish([], f"{served.url}/streams/a", batch=0)
