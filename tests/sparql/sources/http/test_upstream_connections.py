"""An endpoint behind a server: retries, stalls, and what becomes of its connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from construct_messages.errors import IncompleteResult, SourceError, SourceTimeout
from construct_messages.sparql.sources import Operation, Request
from construct_messages.sparql.sources.http.upstream import Upstream
from tests.support.http.clients import JSON_BODY, SELECT, TABLE, VARIABLES
from tests.support.http.fault_server import PAUSE, RESET, STALL, FaultServer, response
from tests.support.http.pauses import own_pauses
from tests.support.http.upstream import ASK, TEXT, body_of, busy, solutions
from tests.support.results.documents import json_document
from tests.support.waiting import ENOUGH, eventually

pytestmark = pytest.mark.usefixtures("at_once")

# --- time ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent", [b"", response(JSON_BODY)[:20], response(JSON_BODY)[:300]], ids=["", "head", "body"]
)
@pytest.mark.parametrize("bound", ["total", "read"])
async def test_a_stall(server: FaultServer, sent: bytes, bound: str) -> None:
    for seconds in ENOUGH:
        read_seconds, timeout = (60.0, seconds) if bound == "total" else (seconds, None)
        left = []
        async with aclosing(Upstream(server.url, read_seconds=read_seconds)) as upstream:
            server.play([sent, STALL])
            with pytest.raises(SourceTimeout) as caught:
                await body_of(await upstream.answer(Operation(TEXT, timeout=timeout)))
            assert caught.value.status == 504
            left.append(await asyncio.to_thread(server.left.wait, 60))
            server.play([sent, STALL])
            with pytest.raises(SourceTimeout):
                await solutions(upstream, Request(SELECT, timeout=timeout))
            left.append(await asyncio.to_thread(server.left.wait, 60))
        if all(left):  # else the time was up before the endpoint was asked
            break
    assert all(left)


@pytest.mark.parametrize(
    "failure", [busy(429), busy(502), busy(503, Retry_After="1"), busy(504), b"", [RESET]]
)
async def test_an_operation_is_sent_again(
    server: FaultServer, upstream: Upstream, failure: Any
) -> None:
    server.play(failure, failure, response(b"ok", "text/plain"))
    answer = await upstream.answer(ASK)
    assert (answer.status, await body_of(answer)) == (200, b"ok")
    assert len({(asked.method, asked.body) for asked in server.asked}) == 1
    assert len(server.asked) == 3


async def test_the_last_refusal_is_relayed(server: FaultServer, upstream: Upstream) -> None:
    server.play(busy(503), busy(429), busy(503, Retry_After="3"), busy(429))
    answer = await upstream.answer(ASK)
    assert (answer.status, await body_of(answer)) == (503, b"busy")
    assert dict(answer.headers)["Retry-After"] == "3"
    assert len(server.asked) == 3


async def test_a_failure_behind_a_refusal_is_the_failure(
    server: FaultServer, upstream: Upstream
) -> None:
    server.play(
        busy(503),
        busy(503),
        response(b"", status="302 Found", headers={"Location": "http://other.example/"}),
    )
    with pytest.raises(SourceError, match="was not followed"):
        await upstream.answer(ASK)


async def test_a_refusal_for_longer_is_relayed_at_once(
    server: FaultServer, upstream: Upstream
) -> None:
    server.play(busy(429, Retry_After="31"))
    answer = await upstream.answer(replace(ASK, timeout=30))
    assert (answer.status, await body_of(answer)) == (429, b"busy")
    assert len(server.asked) == 1


UPDATE = Operation("CLEAR ALL", update=True, timeout=120)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_an_update_that_is_refused_is_not_sent_again(
    server: FaultServer, upstream: Upstream, status: int
) -> None:
    server.play(busy(status, Retry_After="1"))
    answer = await upstream.answer(UPDATE)
    assert (answer.status, await body_of(answer)) == (status, b"busy")
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "failure", [b"", [RESET], [busy(200)[:20], RESET]], ids=["nothing", "reset", "half a head"]
)
async def test_an_update_that_may_have_been_done_is_not_sent_again(
    server: FaultServer, upstream: Upstream, failure: Any
) -> None:
    server.play(failure)
    with pytest.raises(SourceError, match="could not be reached"):
        await upstream.answer(UPDATE)
    assert len(server.asked) == 1


async def test_an_update_that_was_never_sent_is_sent_again() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listening
        async with aclosing(
            Upstream(f"http://127.0.0.1:{taken.getsockname()[1]}/", retries=3)
        ) as upstream:
            with own_pauses():
                answering = asyncio.create_task(upstream.answer(UPDATE))
                await asyncio.sleep(0.1)
                taken.listen()
                connection, _ = await asyncio.to_thread(taken.accept)
                with connection:
                    assert b"update=CLEAR" in await asyncio.to_thread(_all_of, connection)
                    connection.sendall(busy(200))
                    assert (await answering).status == 200


def _all_of(connection: socket.socket) -> bytes:
    request = b""
    while not request.endswith(b"ALL"):
        request += connection.recv(1 << 16)
    return request


async def test_a_relayed_answer_that_has_begun_is_not_sent_again(
    server: FaultServer, upstream: Upstream
) -> None:
    server.play(response(JSON_BODY, cut=0), response(JSON_BODY))
    with pytest.raises(IncompleteResult):
        await body_of(await upstream.answer(ASK))
    assert len(server.asked) == 1


# --- connections -----------------------------------------------------------------------------------------------------


async def test_a_complete_answer_gives_its_connection_back(
    server: FaultServer, upstream: Upstream
) -> None:
    server.play(response(JSON_BODY, keep_alive=True))
    for _ in range(3):
        assert await body_of(await upstream.answer(ASK)) == JSON_BODY
        assert await solutions(upstream) == TABLE
    assert (len(server.asked), server.connections) == (6, 1)


def _pages() -> Iterator[bytes]:
    """The answers for pages of five, which begin with two solutions of the one before, and for what follows."""
    for start in (0, 3, 6, 9, len(TABLE)):
        yield response(json_document(VARIABLES, TABLE[start : start + 5]), keep_alive=True)


async def test_pages_share_a_connection(server: FaultServer, upstream: Upstream) -> None:
    server.play(*_pages())
    assert await solutions(upstream, Request(SELECT, page_size=5)) == TABLE
    assert (len(server.asked), server.connections) == (5, 1)


@pytest.mark.parametrize("at_once", [True, False])
async def test_chunks_of_http_1_0_are_the_last_of_their_connection(
    server: FaultServer, upstream: Upstream, at_once: bool
) -> None:
    """Issue 13, 23: the framing counts as faulty (RFC 9112, section 6.1)."""
    whole = response(JSON_BODY, keep_alive=True).replace(b"HTTP/1.1", b"HTTP/1.0", 1)
    server.play([whole] if at_once else [whole[:300], PAUSE, whole[300:]])
    for _ in range(3):
        assert await solutions(upstream) == TABLE
    assert (len(server.asked), server.connections) == (3, 3)


@pytest.mark.parametrize("read_first", [False, True])
async def test_closing_the_body_ends_the_request(
    server: FaultServer, upstream: Upstream, read_first: bool
) -> None:
    server.play([response(JSON_BODY, keep_alive=True)[:-200], STALL])
    answer = await upstream.answer(ASK)
    if read_first:
        assert await anext(answer.body)
    await answer.body.aclose()
    assert await asyncio.to_thread(server.left.wait, 60)


async def test_closing_the_solutions_ends_the_request(
    server: FaultServer, upstream: Upstream
) -> None:
    server.play([response(JSON_BODY, keep_alive=True)[:-200], STALL])
    batches = upstream.asolutions(Request(SELECT))
    assert await anext(batches)
    await batches.aclose()
    assert await asyncio.to_thread(server.left.wait, 60)


async def cancel_once_asked(server: FaultServer, task: asyncio.Task[Any]) -> None:
    """Cancels what waits for the endpoint, which must notice."""
    await eventually(lambda: server.asked)
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.left.wait, 60)


@pytest.mark.parametrize(
    "sent", [b"", response(JSON_BODY)[:300]], ids=["before the answer", "within it"]
)
@pytest.mark.parametrize("what", ["answer", "solutions"])
async def test_a_task_that_is_cancelled_ends_the_request(
    server: FaultServer, upstream: Upstream, sent: bytes, what: str
) -> None:
    server.play([sent, STALL])

    async def answer() -> None:
        await body_of(await upstream.answer(ASK))

    async def read() -> None:
        await solutions(upstream)

    task = asyncio.create_task(answer() if what == "answer" else read())
    await cancel_once_asked(server, task)


async def test_cancelled_while_it_waits_for_a_busy_endpoint(
    server: FaultServer, upstream: Upstream
) -> None:
    server.play([busy(503, Retry_After="30")[:-3], STALL])
    with own_pauses():
        task = asyncio.create_task(upstream.answer(Operation(TEXT)))
        await cancel_once_asked(server, task)


async def test_many_at_once(server: FaultServer, upstream: Upstream) -> None:
    server.play(response(JSON_BODY, keep_alive=True))
    answers = await asyncio.gather(*(solutions(upstream) for _ in range(40)))
    assert answers == [TABLE] * 40


async def test_no_more_connections_than_allowed(server: FaultServer) -> None:
    server.play(response(JSON_BODY, keep_alive=True))
    async with aclosing(Upstream(server.url, connections=3)) as upstream:
        assert await asyncio.gather(*(solutions(upstream) for _ in range(20))) == [TABLE] * 20
    assert server.connections <= 3


async def test_clients_that_leave_keep_no_connection(server: FaultServer) -> None:
    """Cancelled at many moments over a pool of two, whose connections all come back."""
    whole = response(JSON_BODY, keep_alive=True)
    drip = [whole[start : start + 40] for start in range(0, len(whole), 40)]
    server.play(drip)

    async def relay(upstream: Upstream) -> None:
        await body_of(await upstream.answer(Operation(TEXT)))

    async def read(upstream: Upstream) -> None:
        await solutions(upstream, Request(SELECT))

    async with aclosing(Upstream(server.url, connections=2)) as upstream:
        for moment in range(60):
            task = asyncio.create_task((relay if moment % 2 else read)(upstream))
            await asyncio.sleep(moment / 20_000)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert await asyncio.gather(*(solutions(upstream) for _ in range(6))) == [TABLE] * 6


async def test_closing_ends_what_is_under_way(server: FaultServer) -> None:
    server.play([response(JSON_BODY)[:300], STALL])
    upstream = Upstream(server.url)
    answer = await upstream.answer(ASK)
    await upstream.aclose()
    with pytest.raises(IncompleteResult):
        await body_of(answer)
    assert await asyncio.to_thread(server.left.wait, 60)
    for failing in (upstream.answer(ASK), solutions(upstream)):
        with pytest.raises(SourceError, match="are closed") as caught:
            await failing
        assert caught.value.status == 503


@pytest.mark.slow
async def test_a_rate_makes_requests_wait_their_turn(server: FaultServer) -> None:
    """At two a second, the third page waits for half a second; it does not fail."""
    server.play(*_pages())
    loop = asyncio.get_running_loop()
    async with aclosing(Upstream(server.url, rate=2)) as upstream:
        started = loop.time()
        assert await solutions(upstream, Request(SELECT, page_size=5, timeout=120)) == TABLE
        assert loop.time() - started >= 0.4  # never less, however slow the machine
