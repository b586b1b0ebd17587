"""Publishing as one log that is acknowledged on the way: what is sent, connections and servers that end within it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest
from aiohttp import web

from construct_messages import Message
from construct_messages.errors import SourceError
from construct_messages.feeds import publish, relay, subscribe
from construct_messages.feeds.state import BatchKey, Sent, write_state
from construct_messages.rdf.wire import Header
from tests.support.http.command import Running
from tests.support.http.relay import relay as passing_on
from tests.support.http.streams import StreamsServer
from tests.support.streams import numbered
from tests.support.waiting import eventually

SENT = [numbered(number) for number in range(1, 101)]


async def there(url: str) -> list[Message]:
    return [element.message async for element in subscribe(url, follow=False)]


async def publications(served: StreamsServer) -> int:
    """How many requests have published something, and have ended."""
    text = (await served.ask("GET", "/metrics")).body.decode()
    found = re.findall(r'requests_total\{.*action="publish".*\} ([0-9.]+)', text)
    return int(sum(map(float, found)))


async def test_all_batches_are_one_request(served: StreamsServer, tmp_path: Path) -> None:
    url = f"{served.url}/streams/a"
    assert await publish(SENT[:50], url, batch=1) == 50
    await publish(SENT[50:], f"{served.url}/streams/b", batch=1, create=True)
    assert await relay(f"{served.url}/streams/b", url, batch=1, state=tmp_path / "state") == 50
    assert await there(url) == SENT

    while await publications(served) < 3:  # noqa: ASYNC110 # the server notices that the connections ended
        await asyncio.sleep(0.01)
    assert await publications(served) == 3


@pytest.mark.parametrize("how", ["the input is named", "the key is the caller's"])
async def test_others_are_sent_in_batches(served: StreamsServer, how: str) -> None:
    url, key = f"{served.url}/streams/a", None
    if how == "the input is named":
        url += "/input"
    else:
        key = "k"
    assert await publish(SENT, url, key=key, batch=30) == 100
    assert await publications(served) == 4
    assert await there(f"{served.url}/streams/a") == SENT


async def test_a_log_that_the_server_does_not_have(served: StreamsServer, tmp_path: Path) -> None:
    """Its messages were stored otherwise, or its key was forgotten."""
    url, state = f"{served.url}/streams/a", tmp_path / "state"
    write_state(state, Sent(url, BatchKey.new_writer(), acknowledged=50))
    assert await publish(SENT, url, state=state, batch=10) == 100
    assert await there(url) == SENT[50:]
    assert await publications(served) == 6


@pytest.mark.parametrize("arrived", [0, 3, 10])
async def test_a_batch_that_was_under_way(
    served: StreamsServer, tmp_path: Path, arrived: int
) -> None:
    """None, some or all of it is stored; the state has it, and it is sent again."""
    url, state, key = f"{served.url}/streams/a", tmp_path / "state", BatchKey.new_writer()
    write_state(state, Sent(url, key))
    assert await publish(SENT[: 20 + arrived], url, state=state) == 20 + arrived
    in_flight = tuple(message.lines.decode()[:-1] for message in SENT[20:30])
    write_state(state, Sent(url, key, acknowledged=20, in_flight=in_flight))
    assert await publish(SENT, url, state=state, batch=7) == 100
    assert await there(url) == SENT


async def test_a_refusal(served: StreamsServer) -> None:
    """Names the message; those before it are stored."""
    large = numbered(51, size=20 << 20)
    with pytest.raises(SourceError) as raised:
        await publish([*SENT[:50], large], f"{served.url}/streams/a")
    assert raised.value.response_status == 413
    assert await there(f"{served.url}/streams/a") == SENT[:50]


async def test_a_proxy_that_reads_all_of_a_request_first(
    served: StreamsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer does not begin, so that the request ends, as do those after it, without a pause."""
    monkeypatch.setattr("construct_messages.feeds.http.log._ANSWER_SECONDS", 0.2)
    asked: list[str | None] = []

    async def pass_on(request: web.Request) -> web.Response:
        body = await request.read()
        asked.append(request.headers.get(Header.LOG_AFTER))
        headers = {
            name: request.headers[name]
            for name in ("Host", "Accept", "Content-Type", Header.KEY, Header.LOG_AFTER)
            if name in request.headers
        }
        answer = await served.ask(request.method, request.path_qs, body, **headers)
        content_type = {"Content-Type": answer.headers["Content-Type"]}
        return web.Response(status=answer.status, body=answer.body, headers=content_type)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", pass_on)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    try:
        assert await publish(SENT, f"http://127.0.0.1:{port}/streams/a", batch=30) == 100
    finally:
        await runner.cleanup()
    assert await there(f"{served.url}/streams/a") == SENT
    assert asked == [None, "0", "30", "60", "90"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
async def test_connections_that_are_cut(served: StreamsServer, seed: int) -> None:
    """Within the answer to the log: each message is there once, in order."""
    random = Random(seed)
    described = len((await served.ask("GET", "/streams/a")).body) + 1000
    cuts = [random.randrange(1, 2000) for _ in range(5)]
    async with passing_on([described + cuts[0], *cuts[1:]]) as between:
        between.target = served.url

        async def slowly() -> AsyncIterator[Message]:
            for message in SENT:
                yield message
                await asyncio.sleep(0)

        stream = f"{between.url}/streams/a"
        assert await publish(slowly(), stream, batch=3, retries=20) == 100
        assert between.connections > 3
    assert await there(f"{served.url}/streams/a") == SENT


@pytest.mark.slow
@pytest.mark.process
async def test_a_server_that_is_killed(tmp_path: Path) -> None:
    """Within the log, three times: each message is there once, in order."""
    random = Random(1)
    came = 0

    async def counted() -> AsyncIterator[Message]:
        nonlocal came
        for came, message in enumerate(SENT * 30):  # noqa: B007 # see below
            yield message
            await asyncio.sleep(0.001)

    async with passing_on() as between:
        publishing: asyncio.Task[int] | None = None
        for kills in range(4):
            server = await asyncio.to_thread(
                Running, tmp_path, "--streams", str(tmp_path / "streams.db")
            )
            between.target = server.url
            if publishing is None:
                publishing = asyncio.create_task(
                    publish(
                        counted(), f"{between.url}/streams/a", batch=20, create=True, retries=1000
                    )
                )
            if kills == 3:
                break
            until = came + random.randrange(300, 600)
            await eventually(lambda: came > until)  # noqa: B023 # called at once
            await asyncio.to_thread(server.kill)
        assert await publishing == 3000
        assert await there(f"{server.url}/streams/a") == SENT * 30
        await asyncio.to_thread(server.kill)
