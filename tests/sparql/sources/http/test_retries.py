"""What is sent again and what is not, and that no solution comes twice or is lost; through both HTTP clients."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from construct_messages.errors import IncompleteResult, SourceError, SourceTimeout, UsageError
from construct_messages.query.select import Select
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.terms import Term
from construct_messages.sparql.client import retries
from construct_messages.sparql.client.retries import Attempts, Timeouts
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.http.endpoint import EndpointSource
from tests.support.http.clients import CLIENTS, JSON_BODY, SELECT, TABLE, VARIABLES, read
from tests.support.http.fault_server import (
    JSON,
    RESET,
    STALL,
    TSV,
    XML,
    Act,
    Asked,
    FaultServer,
    response,
)
from tests.support.http.pauses import no_pauses, own_pauses
from tests.support.results.documents import json_document, tsv_document, xml_document
from tests.support.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("at_once")]

WHOLE = response(JSON_BODY)
HEAD, _, BODY = WHOLE.partition(b"\r\n\r\n")
FIRST = WHOLE.index(b"}}") + 2  # just behind the first solution


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def refusal(status: int, text: str = "no", **headers: str) -> bytes:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return response(text.encode(), "text/plain", status=f"{status} Refused", headers=given)


PASSING: dict[str, bytes | list[bytes | Act]] = {
    **{str(status): refusal(status) for status in (408, 425, 429, 502, 503, 504)},
    "429, for a moment": refusal(429, Retry_After="2"),
    "503 with a page": response(b"<html>", "text/html", status="503 Busy"),
    "reset": [RESET],
    "reset in the head": [WHOLE[:20], RESET],
    "no answer": b"",
    "cut behind the head": WHOLE[: len(HEAD) + 4],
    "cut before the first solution": WHOLE[: FIRST - 5],
    "cut, with a length": response(JSON_BODY, framing="length", cut=10),
    "cut, without a length": response(JSON_BODY, framing="close", cut=10),
}


@pytest.mark.parametrize("failure", PASSING.values(), ids=PASSING)
def test_what_passes_is_asked_again(
    server: FaultServer, client: str, failure: bytes | list[bytes | Act]
) -> None:
    server.play(failure, failure, WHOLE)
    came, error = read(client, EndpointSource(server.url, retries=2))
    assert error is None
    assert came == TABLE
    first, *others = server.asked
    assert [(asked.method, asked.target, asked.body) for asked in others] == [
        (first.method, first.target, first.body)
    ] * 2


def test_a_cut_in_the_head(server: FaultServer, client: str) -> None:
    server.play(WHOLE[:20], WHOLE)
    assert read(client, EndpointSource(server.url, retries=2)) == (TABLE, None)


LASTING: dict[str, bytes | list[bytes | Act]] = {
    **{
        str(status): refusal(status)
        for status in (400, 401, 403, 404, 405, 406, 410, 413, 414, 500, 501, 505)
    },
    "not HTTP": b"SSH-2.0\r\n\r\n",
    "another origin": response(
        b"", status="302 Found", headers={"Location": "http://other.example/"}
    ),
    "206": response(JSON_BODY, status="206 Partial Content"),
    "anytime": response(JSON_BODY, headers={"X-SQL-State": "S1TAT"}),
    "page": response(b"<html>", "text/html"),
    "text instead": response(b"!TIMEDOUT!"),
    "text behind": response(JSON_BODY + b"The SPARQL operation has been cancelled"),
    "whole body, short document": response(JSON_BODY[:-20], framing="length"),
    "busy for an hour": refusal(503, Retry_After="3600"),
    "stall": [WHOLE[:FIRST], STALL],
}


@pytest.mark.parametrize("failure", LASTING.values(), ids=LASTING)
def test_what_lasts_is_not_asked_again(
    server: FaultServer, client: str, failure: bytes | list[bytes | Act]
) -> None:
    for seconds in (0.5, 5, 60) if failure is LASTING["stall"] else (60,):
        server.play(failure, WHOLE)
        _, error = read(
            client, EndpointSource(server.url, retries=2), Request(SELECT, timeout=seconds)
        )
        assert isinstance(error, SourceError)
        if server.asked:  # else the machine was too slow for this time
            break
    assert len(server.asked) == 1


@pytest.mark.parametrize("cut", range(FIRST, len(WHOLE), 41))
def test_nothing_is_asked_again_behind_a_solution(
    server: FaultServer, client: str, cut: int
) -> None:
    server.play(WHOLE[:cut], WHOLE)
    came, error = read(client, EndpointSource(server.url, retries=2))
    assert isinstance(error, IncompleteResult)
    assert came == TABLE[: len(came)]
    assert came
    assert len(server.asked) == 1


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_the_last_failure_is_the_error(server: FaultServer, client: str, retries: int) -> None:
    server.play(*[refusal(503, f"busy {number}") for number in range(5)])
    came, error = read(client, EndpointSource(server.url, retries=retries))
    assert isinstance(error, SourceError)
    assert error.message.endswith(f"busy {retries}")
    assert (error.status, came, len(server.asked)) == (503, [], retries + 1)


def test_an_endpoint_that_comes_back(client: str) -> None:
    """Refused connections, until somebody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listening
        source = EndpointSource(f"http://127.0.0.1:{taken.getsockname()[1]}/sparql", retries=50)
        answering = threading.Thread(target=_answer_once, args=(taken,))
        with own_pauses():
            answering.start()
            came, error = read(client, source)
        answering.join()
    assert error is None
    assert came == TABLE


@pytest.mark.parametrize(
    ("number", "asked"), [(socket.EAI_AGAIN, 1), (socket.EAI_NONAME, 0)], ids=["for now", "at all"]
)
def test_a_name_that_is_not_known(
    server: FaultServer, client: str, monkeypatch: pytest.MonkeyPatch, number: int, asked: int
) -> None:
    calls = []

    def resolve(host: str, port: int, *_: object, **__: object) -> object:
        calls.append(host)
        if len(calls) == 1:
            raise socket.gaierror(number, "not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    server.play(WHOLE)
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    came, error = read(
        client, EndpointSource(f"http://sparql.example:{server.port}/sparql", retries=1)
    )
    assert (error is None, len(server.asked)) == (bool(asked), asked)
    assert came == (TABLE if asked else [])
    assert len(calls) == 1 + asked


def _answer_once(listener: socket.socket) -> None:
    time.sleep(0.1)
    listener.listen()
    connection, _ = listener.accept()
    with connection, connection.makefile("rb") as lines:
        length = 0
        while line := lines.readline().strip().lower():
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        lines.read(length)
        connection.sendall(WHOLE)


@pytest.mark.parametrize(
    ("profile", "answer", "status", "asked"),
    [
        ("qlever", refusal(429, '{"exception": "Operation timed out."}'), 504, 1),
        ("qlever", refusal(429, "too many requests"), 429, 3),
        ("virtuoso", refusal(500, "Virtuoso S1T00 Error SR171: Transaction timed out"), 504, 1),
        ("qlever", refusal(400, 'no column "timeout" in SELECT ?timeout'), 400, 1),
        (
            "virtuoso",
            refusal(500, "Virtuoso 42000 Error The estimated execution time 9999 (sec) exceeds"),
            502,
            1,
        ),
        ("virtuoso", refusal(500, "Virtuoso 22023 Error SR353: Sorted TOP clause"), 502, 1),
        ("blazegraph", refusal(500, "java.util.concurrent.TimeoutException"), 504, 1),
        ("generic", refusal(504, "S1T00"), 504, 3),
    ],
)
def test_what_an_engine_says_in_its_own_way(
    server: FaultServer, client: str, profile: str, answer: bytes, status: int, asked: int
) -> None:
    server.play(answer)
    _, error = read(client, EndpointSource(server.url, profile=profile, retries=2))
    assert isinstance(error, SourceTimeout) == (status == 504 and asked == 1)
    assert isinstance(error, SourceError)
    assert (error.status, len(server.asked)) == (status, asked)
    assert error.response_status == int(answer.split()[1])


def test_a_wait_beyond_the_time_left_is_not_begun(
    server: FaultServer, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.play(refusal(429, Retry_After="50"), WHOLE)
    _, error = read(client, EndpointSource(server.url), Request(SELECT, timeout=40))
    assert isinstance(error, SourceError)
    assert (error.status, error.retry_after, len(server.asked)) == (429, 50, 1)
    monkeypatch.setattr(retries, "_INITIAL", 130.0)
    monkeypatch.setattr(retries, "_LONGEST", 130.0)
    server.play(refusal(503), WHOLE)
    _, error = read(client, EndpointSource(server.url), Request(SELECT, timeout=120))
    assert isinstance(error, SourceError)
    assert (error.status, len(server.asked)) == (503, 1)


def test_how_long_the_waits_are(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("construct_messages.sparql.client.retries.time.sleep", waits.append)
    errors = [SourceError("busy", transient=True)] * 3 + [
        SourceError("wait", transient=True, retry_after=7.5)
    ] * 2
    remaining = iter(errors)

    def fail() -> None:
        for attempt in Attempts(4, Timeouts(None), lambda _: True):
            with attempt:
                raise next(remaining)

    with own_pauses(), pytest.raises(SourceError, match="wait"):
        fail()
    assert len(waits) == 4
    assert all(low <= wait <= low + 0.5 for wait, low in zip(waits, (0.5, 1, 2), strict=False))
    assert waits[3] == 7.5


def test_a_wait_ends_when_the_client_leaves(server: FaultServer) -> None:
    server.play(refusal(429, Retry_After="30"), WHOLE)

    async def leave() -> None:
        async def read_on() -> None:
            async for _ in EndpointSource(server.url).asolutions(Request(SELECT)):
                pass

        reading = asyncio.create_task(read_on())
        await eventually(lambda: server.asked)
        await asyncio.sleep(0.2)  # until it waits, most of the time
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    with own_pauses():
        asyncio.run(leave())
    assert len(server.asked) == 1


def test_nothing_of_it_shows_on_the_command_line(server: FaultServer) -> None:
    """The library that waits would report on standard output, which is the log's."""
    server.play(refusal(503), WHOLE)
    query = "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }"
    command = [
        sys.executable,
        "-m",
        "construct_messages",
        "run",
        "--query",
        query,
        "--source",
        server.url,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "".join(f"# @message\n{s} <urn:q> {o} .\n" for s, o in TABLE)
    server.play(refusal(503))
    done = subprocess.run(
        [*command, "--retries", "0"], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert len(server.asked) == 1


WRITING = """
import logging, sys
from construct_messages import construct_messages

if sys.argv[2:]:
    logging.basicConfig(level=sys.argv[2])
for chunk in construct_messages("CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }", sys.argv[1]).serialize():
    sys.stdout.buffer.write(chunk)
"""


@pytest.mark.parametrize(
    ("level", "said"), [((), []), (("INFO",), ["attempt 2", "attempt 3"])], ids=["quiet", "info"]
)
def test_the_library_logs_and_never_prints(
    server: FaultServer, level: tuple[str, ...], said: list[str]
) -> None:
    """Issue 13, 13: with structlog installed, as it is here, retries were reported on standard output."""
    server.play(refusal(503), [RESET], WHOLE)
    command = [sys.executable, "-c", WRITING, server.url, *level]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "".join(f"# @message\n{s} <urn:q> {o} .\n" for s, o in TABLE)
    assert done.returncode == 0
    retries = [
        line
        for line in done.stderr.splitlines()
        if "construct_messages.sparql.client.retries" in line
    ]
    assert [line.partition("seconds, ")[2] for line in retries] == said
    assert level or not done.stderr


def test_a_negative_number_is_refused() -> None:
    with pytest.raises(UsageError, match="retries=-1"):
        EndpointSource("http://example.org/", retries=-1)


# --- pages -----------------------------------------------------------------------------------------------------------

DOCUMENTS: dict[str, tuple[Callable[..., bytes], str]] = {
    "json": (json_document, JSON),
    "xml": (xml_document, XML),
    "tsv": (tsv_document, TSV),
}


def window(asked: Asked) -> tuple[int, int]:
    """LIMIT and OFFSET of what was asked."""
    found = re.search(r" LIMIT (\d+) OFFSET (\d+)$", asked.parameters["query"][0])
    assert found
    return int(found[1]), int(found[2])


def a_page(results: str = "json", **options: object) -> Callable[[Asked], bytes]:
    """Answers with the page that was asked for."""
    document, content_type = DOCUMENTS[results]

    def answer(asked: Asked) -> bytes:
        limit, offset = window(asked)
        return response(
            document(VARIABLES, TABLE[offset : offset + limit]), content_type, **options
        )  # type: ignore[arg-type] # any of its options

    return answer


@pytest.mark.one_in(2)
@pytest.mark.parametrize("framing", ["chunked", "length"])
@pytest.mark.parametrize("results", DOCUMENTS)
def test_a_page_that_is_cut_is_resumed(
    server: FaultServer, client: str, results: str, framing: str
) -> None:
    """Cut at every place, a page goes on where it was: everything comes, once, in order.

    A page of five begins with two solutions that have arrived before.
    """
    document, _ = DOCUMENTS[results]
    resumed = set()
    for cut in range(0, len(document(VARIABLES, TABLE[3:8])), 13):
        server.play(a_page(results), a_page(results, framing=framing, cut=cut), a_page(results))
        source = EndpointSource(server.url, results=results, retries=1)
        came, error = read(client, source, Request(SELECT, page_size=5, timeout=120))
        assert error is None, cut
        assert came == TABLE, cut
        first, second, third, *_ = map(window, server.asked)
        assert (first, second) == ((5, 0), (5, 3))
        assert sum(third) == 8 or third == (5, 6)  # the rest of the page, or all had come
        resumed.add(third)
    assert {(5, 3), (4, 4), (3, 5)} <= resumed


def test_every_page_is_cut_again_and_again(server: FaultServer, client: str) -> None:
    def three_at_a_time(asked: Asked) -> bytes:
        limit, offset = window(asked)
        body = response(json_document(VARIABLES, TABLE[offset : offset + limit]))
        parts = body.split(b"}}")
        return body if len(parts) <= 4 else b"}}".join(parts[:3]) + b"}},"

    server.play(three_at_a_time)
    came, error = read(
        client, EndpointSource(server.url, retries=5), Request(SELECT, page_size=5, timeout=120)
    )
    assert error is None
    assert came == TABLE


@settings(max_examples=40)
@given(
    size=st.integers(1, 13),
    failures=st.lists(
        st.one_of(st.just(0), st.integers(1, 900), st.sampled_from([-429, -503, -500])), max_size=12
    ),
)
@pytest.mark.parametrize("client", CLIENTS)
def test_whatever_fails_nothing_is_lost_or_doubled(
    server: FaultServer, client: str, size: int, failures: list[int]
) -> None:
    """Each number is what becomes of a request: cut at that place, refused with that status, or answered (0)."""

    def answering(failure: int) -> Callable[[Asked], bytes]:
        if failure < 0:
            return lambda _: refusal(-failure)
        return a_page() if failure == 0 else a_page(cut=failure)

    with no_pauses():
        server.play(*map(answering, failures), a_page())
        came, error = read(
            client,
            EndpointSource(server.url, retries=3),
            Request(SELECT, page_size=size, timeout=120),
        )
    assert came == TABLE if error is None else came == TABLE[: len(came)]
    if error is not None:
        assert -500 in failures or sum(map(bool, failures)) > 3
        assert isinstance(error, SourceError)


def test_a_page_that_is_busy_is_asked_again(server: FaultServer, client: str) -> None:
    server.play(a_page(), refusal(429, Retry_After="1"), refusal(503), a_page(), [RESET], a_page())
    came, error = read(
        client, EndpointSource(server.url), Request(SELECT, page_size=5, timeout=120)
    )
    assert error is None
    assert came == TABLE
    assert [window(asked) for asked in server.asked] == [
        *((5, 0), (5, 3), (5, 3), (5, 3), (5, 6), (5, 6), (5, 9), (1, 12))
    ]


def test_resuming_under_a_cap_below_the_page(server: FaultServer, client: str) -> None:
    """Pages of 10 from an endpoint that returns 4: the second is cut after its first new solution."""

    def capped(asked: Asked) -> bytes:
        limit, offset = window(asked)
        body = json_document(VARIABLES, TABLE[offset : offset + min(limit, 4)])
        whole = response(body, headers={"X-SPARQL-MaxRows": "4"})
        return b"}}".join(whole.split(b"}}")[:3]) + b"}}," if (limit, offset) == (4, 2) else whole

    server.play(capped)
    came, error = read(
        client, EndpointSource(server.url), Request(SELECT, page_size=10, timeout=120)
    )
    assert error is None
    assert came == TABLE
    assert [window(asked) for asked in server.asked][:3] == [(10, 0), (4, 2), (3, 3)]


def test_the_time_is_for_all_pages_and_attempts(server: FaultServer, client: str) -> None:
    server.play(a_page(), [RESET], [response(json_document(VARIABLES, TABLE[3:8]))[:-100], STALL])
    came, error = read(client, EndpointSource(server.url), Request(SELECT, page_size=5, timeout=2))
    assert isinstance(error, SourceTimeout)
    assert came == TABLE[: len(came)]


def test_blank_nodes_behind_a_cut_are_other_ones(server: FaultServer, client: str) -> None:
    one, two = (
        response(json_document(("s",), [(Term(f"_:{label}"),) for label in labels]))
        for labels in ("ab", "cb")
    )
    last, nothing = (
        response(json_document(("s",), solutions)) for solutions in ([(Term("_:b"),)], [])
    )
    select = Select("", "SELECT ?s ", ("s",), "WHERE ", "{ ?s ?p ?o }")
    # blank nodes cannot show whether OFFSET is obeyed: a request for a solution that no result has can
    server.play(one[: one.index(b"}}") + 4], two, nothing, last, nothing)
    came, error = read(
        client,
        EndpointSource(server.url),
        Request(select, page_size=2, timeout=120, labels=Labels("x")),
    )
    assert error is None
    assert came[:2] == [("_:x_p0_a",), ("_:x_p1_b",)]
