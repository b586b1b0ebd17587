"""Endpoints that fail, cut or cap their answers while they are watched: nothing of it looks like a change."""

from __future__ import annotations

import asyncio
import math
from contextlib import aclosing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from SPARQLWrapper import SPARQLWrapper

from construct_messages import construct_messages
from construct_messages.continuous import Evaluation
from construct_messages.errors import (
    ConstructMessagesError,
    IncompleteResult,
    SourceError,
    SourceTimeout,
)
from construct_messages.streams import StreamStore
from tests.support.http.fault_server import RESET, STALL, Asked, FaultServer, response
from tests.support.http.faults import CASES, LOG, Case
from tests.support.http.pauses import no_pauses, no_retries
from tests.support.watching import QUERY, Given, answer, watching

# --- no false changes ---


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ([answer("a", "b", cut=120)], IncompleteResult),
        ([answer("a", "b", cut=120), RESET], IncompleteResult),
        ([answer("a", "b", framing="close", cut=150)], IncompleteResult),
        ([answer("a", "b", framing="length", cut=100)], IncompleteResult),
        ([answer("a", headers={"X-SQL-State": "S1TAT"})], IncompleteResult),
        ([answer("a", status="206 Partial Content")], IncompleteResult),
        ([answer("a", "b", headers={"X-SPARQL-MaxRows": "2"})], IncompleteResult),
        ([response(b"busy", "text/plain", status="503 Busy")], SourceError),
        ([response(b"late", "text/plain", status="504 Late")], SourceError),
        ([response(b"", "text/html")], SourceError),
        ([response(b"", status="304 Not Modified", framing="close")], SourceError),
        ([b""], SourceError),
        ([RESET], SourceError),
    ],
    ids=lambda value: "" if isinstance(value, list) else value.__name__,
)
@pytest.mark.parametrize("operator", ["ISTREAM", "DSTREAM"])
async def test_no_answer_looks_like_vanished_solutions(
    out: StreamStore,
    endpoint: FaultServer,
    operator: str,
    script: Any,
    error: type[ConstructMessagesError],
) -> None:
    """Issue 16: an endpoint that cuts its answer, caps it, or is down between two evaluations."""
    given = Given(out)
    endpoint.play(answer("a", "b", "c"))
    with no_retries():
        watched = watching(out, endpoint.url, operator)
        await watched.evaluate()
        assert given() == (["a", "b", "c"] if operator == "ISTREAM" else [])
        seen = out.seen("watch")
        endpoint.play(script)
        with pytest.raises(error):
            await watched.evaluate()
        assert given() == []
        assert out.seen("watch") == seen
        endpoint.play(answer("b", "c", "d"))
        await watched.evaluate()
    assert given() == (["d"] if operator == "ISTREAM" else ["a"])


@pytest.mark.one_in(4)
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_no_fault_of_the_table_is_a_change(
    out: StreamStore, endpoint: FaultServer, case: Case
) -> None:
    options: dict[str, dict[str, Any]] = {
        "tsv": {"results": "tsv"},
        "impatient": {"timeout": 2.5},
        "brief": {"timeout": 2.5},
        "generic": {},
    }
    asked = options.get(case.endpoint, {"profile": case.endpoint})
    with no_retries():
        endpoint.play(next(case for case in CASES.values() if case.log == LOG).script)
        watched = watching(out, endpoint.url, "DSTREAM")
        await watched.evaluate()
        again = watching(out, endpoint.url, "DSTREAM", **asked)
        endpoint.play(case.script)
        endpoint.go_on.set()
        if case.outcome.kind == "complete":
            await again.evaluate()
            assert len(list(out.read("out"))) == (0 if case.log == LOG else 12)
        else:
            with pytest.raises(SourceError):
                await again.evaluate()
            assert list(out.read("out")) == []


async def test_a_cut_answer_is_asked_for_again(out: StreamStore, endpoint: FaultServer) -> None:
    endpoint.play(answer("a", "b", framing="length", cut=180), answer("a", "b"))
    with no_pauses():
        assert await watching(out, endpoint.url).evaluate() == 2
    assert len(endpoint.asked) == 2
    assert Given(out)() == ["a", "b"]


async def test_an_endpoint_that_is_down_for_a_while(
    out: StreamStore, endpoint: FaultServer
) -> None:
    """A watch goes on; only what can never succeed ends it."""
    busy = response(b"busy", "text/plain", status="503 Busy")
    endpoint.play(
        busy,
        answer("a", "b"),
        busy,
        answer("b")[:150],
        response(b"", "text/html"),
        answer("b", "c"),
    )
    found: list[Evaluation] = []
    with no_retries():
        async with aclosing(watching(out, endpoint.url, "DSTREAM").evaluations(0)) as evaluations:
            async for evaluation in evaluations:
                found.append(evaluation)
                if len(found) == 6:
                    break
    assert [done.error is None for done in found] == [False, True, False, False, False, True]
    assert [done.elements for done in found] == [0, 0, 0, 0, 0, 1]
    assert Given(out)() == ["a"]


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (response(b"what?", "text/plain", status="400 Bad Request"), "refused the query"),
        (response(b"no", "text/plain", status="401 Unauthorized"), "status 401"),
        (answer("a", headers={"X-SPARQL-MaxRows": "1"}), "at most 1 solutions"),
    ],
)
async def test_what_can_never_succeed_is_said_at_once(
    out: StreamStore, endpoint: FaultServer, script: bytes, error: str
) -> None:
    endpoint.play(script)
    with pytest.raises(SourceError, match=error):
        await anext(watching(out, endpoint.url).evaluations(0))


@pytest.mark.slow
@pytest.mark.parametrize(
    "change_query", [None, "SELECT ?s ?o { ?s <urn:p> ?o }"], ids=["query", "change query"]
)
async def test_an_answer_that_stalls_does_not_end_the_watch(
    out: StreamStore,
    endpoint: FaultServer,
    monkeypatch: pytest.MonkeyPatch,
    change_query: str | None,
) -> None:
    """By default, within ten minutes, which are shorter here; the next evaluation goes on."""
    monkeypatch.setattr("construct_messages.continuous.watching.READ_SECONDS", 0.5)
    silent = [answer("a", "b")[:150], STALL]
    if change_query is None:
        endpoint.play(answer("a"), silent, [STALL], answer("b"))
    else:
        endpoint.play(answer("x"), answer("a"), silent, [STALL], answer("y"), answer("b"))
    watched = watching(out, endpoint.url, change_query=change_query)
    found: list[Evaluation] = []
    with no_retries():
        async with aclosing(watched.evaluations(0)) as evaluations:
            async for evaluation in evaluations:
                found.append(evaluation)
                if len(found) == 4:
                    break
    assert [done.elements for done in found] == [1, 0, 0, 1]
    assert [type(done.error) for done in found[1:3]] == [SourceTimeout] * 2
    assert "0.5 seconds between two bytes" in str(found[1].error)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [None, 1])
async def test_the_timeout_of_a_wrapper_and_no_limit(
    out: StreamStore, endpoint: FaultServer, seconds: int | None
) -> None:
    wrapper = SPARQLWrapper(endpoint.url)
    if seconds is not None:
        wrapper.setTimeout(seconds)
    endpoint.play([STALL])
    watched = watching(out, wrapper, read_seconds=math.inf)
    if seconds is None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(watched.evaluate(), 2)
    else:
        with no_retries(), pytest.raises(SourceTimeout):
            await watched.evaluate()


async def test_silent_connections_are_probed(out: StreamStore, endpoint: FaultServer) -> None:
    """By the system, of both clients, as it says while the endpoint evaluates (Linux, proc(5))."""
    port = urlsplit(endpoint.url).port
    timers: list[str] = []

    def answering(_: Asked) -> bytes:
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, _, remote, state, _, timer, *_ = line.split()
            if (remote, state) == (f"0100007F:{port:04X}", "01"):
                timers.append(timer[:2])
        return answer("a")

    endpoint.play(answering)
    await watching(out, endpoint.url).evaluate()
    assert timers == ["02"]
    assert len(list(construct_messages(QUERY, endpoint.url))) == 1
    assert timers == ["02"] * 2
