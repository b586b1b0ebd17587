"""Endpoints that misbehave, through both HTTP clients: no short answer ever ends cleanly."""

from __future__ import annotations

import asyncio
import gzip
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from SPARQLWrapper import BASIC, DIGEST, POST, SPARQLWrapper

from construct_messages.errors import (
    IncompleteResult,
    SourceError,
    SourceTimeout,
    UsageError,
)
from construct_messages.labels import Labels
from construct_messages.query.select import Select
from construct_messages.results import Decoder
from construct_messages.results.json import JsonDecoder
from construct_messages.results.tsv import TsvDecoder
from construct_messages.results.xml import XmlDecoder
from construct_messages.solutions import Solutions
from construct_messages.sources import UNION, Request
from construct_messages.sources.http.endpoint import EndpointSource, WrapperSource, new_wrapper
from construct_messages.terms import Term, iri, literal
from tests.support.commands import Done
from tests.support.http.clients import BODIES, JSON_BODY, SELECT, TABLE, VARIABLES, read
from tests.support.http.fault_server import JSON, PAUSE, RESET, STALL, Asked, FaultServer, chunks, response
from tests.support.http.faults import CASES, QUERY, Case, log_of
from tests.support.http.pauses import no_retries
from tests.support.results.documents import json_document, tsv_document, xml_document


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with closing(FaultServer()) as server:
        yield server


@pytest.fixture(autouse=True)
def once() -> Iterator[None]:
    """No retries: they are tested in `test_retries.py`."""
    with no_retries():
        yield


@pytest.fixture(params=["blocking", "asyncio"])
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
@pytest.mark.parametrize("results", BODIES)
def test_a_whole_answer(server: FaultServer, client: str, results: str, framing: str) -> None:
    server.play(response(*BODIES[results], framing=framing))
    came, error = read(client, EndpointSource(server.url, results=results))
    if (results, framing) == ("tsv", "close"):
        assert isinstance(error, IncompleteResult)
        assert "without saying how long it is" in str(error)
        assert came == []
    else:
        assert error is None
        assert came == TABLE


@pytest.mark.parametrize("chunk", [1, 7, 64, 10_000])
@pytest.mark.parametrize("results", BODIES)
def test_chunks_of_any_size(server: FaultServer, client: str, results: str, chunk: int) -> None:
    whole = response(*BODIES[results], chunk=chunk)
    for answer in (whole, [whole[start : start + 11] for start in range(0, len(whole), 11)]):
        server.play(answer)
        came, error = read(client, EndpointSource(server.url, results=results))
        assert error is None
        assert came == TABLE


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
@pytest.mark.parametrize("results", BODIES)
def test_a_cut_answer(server: FaultServer, client: str, results: str, framing: str) -> None:
    body, content_type = BODIES[results]
    # everywhere in the last solutions, behind whole lines too, and inside the framing
    cuts = [0, 1, len(body) // 2, *range(len(body) - 45, len(body), 3), len(body) - 1]
    if framing == "chunked":
        last = (
            response(body, content_type).index(b"\r\n0\r\n\r\n") - response(body, content_type).index(b"\r\n\r\n") - 4
        )
        cuts += [last - 40, last, last + 2]  # up to the last chunk, which is empty
    for cut in cuts:
        server.play(response(body, content_type, framing=framing, cut=cut))
        came, error = read(client, EndpointSource(server.url, results=results))
        assert isinstance(error, IncompleteResult), cut
        assert came == TABLE[: len(came)]


@pytest.mark.parametrize("frame", [b"none\r\n", b"-1\r\n", b"3\r\nabcdef\r\n0\r\n\r\n", b"\r\n0\r\n\r\n"])
def test_chunks_that_are_framed_wrongly(server: FaultServer, client: str, frame: bytes) -> None:
    server.play([response(JSON_BODY).removesuffix(b"0\r\n\r\n"), PAUSE, frame])
    came, error = read(client, EndpointSource(server.url), Request(SELECT, timeout=60))
    assert isinstance(error, IncompleteResult)  # at once, not when the time is up
    assert came == TABLE


@pytest.mark.parametrize("results", ["json", "xml"])
def test_a_reset_is_no_end(server: FaultServer, client: str, results: str) -> None:
    server.play([response(*BODIES[results], framing="close"), PAUSE, RESET])
    came, error = read(client, EndpointSource(server.url))
    assert isinstance(error, IncompleteResult)
    assert came == TABLE


@pytest.mark.parametrize("results", BODIES)
@pytest.mark.parametrize("text", ["The SPARQL operation has been cancelled", "!TIMEDOUT!\n", "<html></html>"])
def test_text_behind_the_result(server: FaultServer, client: str, results: str, text: str) -> None:
    body, content_type = BODIES[results]
    server.play(response(body + text.encode(), content_type))
    _, error = read(client, EndpointSource(server.url, results=results))
    assert isinstance(error, IncompleteResult)


# --- every fault of the table, by both clients and the command line ---

OPTIONS: dict[str, dict[str, Any]] = {
    **{name: {"profile": name} for name in ("virtuoso", "blazegraph", "qlever")},
    "generic": {},
    "tsv": {"results": "tsv"},
    "impatient": {"read_seconds": 0.3},
    "brief": {},
}
MOST_WORDS = 1000
"""Characters of an error, whatever an endpoint sends."""


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_fault(server: FaultServer, client: str, case: Case) -> None:
    server.play(case.script)
    server.go_on.set()
    source = WrapperSource(new_wrapper(server.url), **OPTIONS[case.endpoint])
    came, error = read(client, source, Request(SELECT, timeout=2.5 if case.endpoint == "brief" else 60))
    if case.outcome.kind == "complete":
        assert error is None
        assert log_of(came) == case.log
    else:
        assert isinstance(error, SourceError)
        assert case.outcome.words in error.message
        assert len(str(error)) < MOST_WORDS
        assert error.status == case.outcome.status
        assert came == TABLE[: len(came)]
        assert case.outcome.kind == "breaks" or not came


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_fault_on_the_command_line(
    server: FaultServer, here: Callable[..., Done], tmp_path: Path, case: Case
) -> None:
    server.play(case.script)
    server.go_on.set()
    options = {**OPTIONS[case.endpoint], "timeout": {"brief": 2.5, "impatient": 0.5}.get(case.endpoint, 60)}
    options.pop("read_seconds", None)
    given = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    log = tmp_path / "log.nq"
    done = here("run", "--query", QUERY, "--source", server.url, "--output", str(log), "--retries", "0", *given)
    if case.outcome.kind == "complete":
        assert (done.status, log.read_bytes()) == (0, case.log)
    else:
        assert done.status in (3, 4)
        assert not log.exists()
        assert len(done.errors) < MOST_WORDS


@pytest.mark.parametrize("text", [b"\r\n", b"\n", b"x", b"!ERROR!", response(JSON_BODY), JSON_BODY, b"\0" * 100_000])
@pytest.mark.parametrize("results", BODIES)
@pytest.mark.parametrize("at_once", [True, False])
def test_what_follows_a_length(server: FaultServer, client: str, results: str, text: bytes, at_once: bool) -> None:
    """Issue 13, 17: it is not of the answer (RFC 9112, section 6.3). Where it is there already, aiohttp refuses it."""
    whole = response(*BODIES[results], framing="length")
    server.play([whole + text] if at_once else [whole, PAUSE, text, STALL])
    came, error = read(client, EndpointSource(server.url, results=results), Request(SELECT, timeout=60))
    if client == "asyncio" and at_once and text.strip():
        assert isinstance(error, SourceError)
        assert came == TABLE[: len(came)]
    else:
        assert error is None
        assert came == TABLE


PAGE = "<!DOCTYPE html><html><body>secret page</body></html>"
# within the day that the tests may take
SOON = format_datetime(datetime.now(UTC) + timedelta(days=365), usegmt=True)


@pytest.mark.parametrize(
    ("answer", "kind", "status", "words", "hint"),
    [
        pytest.param(
            response(JSON_BODY, status="206 Partial Content", headers={"X-SQL-State": "S1TAT"}),
            IncompleteResult, 502, "sent a part of the result only: S1TAT", "more time", id="206",
        ),
        pytest.param(
            response(JSON_BODY, headers={"X-SQL-State": "S1TAT", "X-SQL-Message": "Returning incomplete results"}),
            IncompleteResult, 502, "Returning incomplete results", "more time", id="anytime",
        ),
        pytest.param(
            response(b"slow down", "text/plain", status="429 Too Many Requests", headers={"Retry-After": "120"}),
            SourceError, 429, "HTTP status 429: slow down", "try again in 120 seconds", id="429",
        ),
        pytest.param(
            response(b"busy", "text/plain", status="503 Service Unavailable", headers={"Retry-After": SOON}),
            SourceError, 503, "HTTP status 503: busy", "try again in 31", id="503-date",
        ),
        pytest.param(
            response(b"Virtuoso S1T00 Error\n\n  SR171: Transaction timed out", "text/plain", status="500 Oops"),
            SourceError, 502, "HTTP status 500: Virtuoso S1T00 Error SR171: Transaction timed out", None, id="500",
        ),
        pytest.param(
            response(PAGE.encode(), "text/html", status="500 Oops"),
            SourceError, 502, "HTTP status 500", None, id="500-html",
        ),
        pytest.param(
            response(b"x" * 100_000, "text/plain", status="500 Oops", cut=50_000),
            SourceError, 502, "HTTP status 500: xxx", None, id="500-long-and-cut",
        ),
        pytest.param(
            response(b"Parse error: unexpected }", "text/plain", status="400 Bad Request"),
            SourceError, 400, "refused the query: Parse error: unexpected }", None, id="400",
        ),
        pytest.param(
            response(b"", "text/plain", status="401 Unauthorized"),
            SourceError, 502, "HTTP status 401", "CONSTRUCT_MESSAGES_TOKEN", id="401",
        ),
        pytest.param(
            response(b"", "text/plain", status="403 Forbidden"),
            SourceError, 502, "HTTP status 403", "CONSTRUCT_MESSAGES_USER", id="403",
        ),
        pytest.param(
            response(b"", "text/plain", status="204 No Content", framing="length"),
            SourceError, 502, "HTTP status 204", None, id="204",
        ),
        pytest.param(
            response(PAGE.encode(), "text/html; charset=utf-8"),
            SourceError, 502, "answered with text/html, not with SPARQL results", "query form", id="html",
        ),
        pytest.param(response(b"s,o", "text/csv"), SourceError, 502, "answered with text/csv", None, id="csv"),
        pytest.param(
            response(*BODIES["tsv"]),
            SourceError, 502, "answered with text/tab-separated-values", None, id="tsv-unasked",
        ),
        pytest.param(
            response(JSON_BODY.decode().encode("utf-16"), f"{JSON}; charset=utf-16"),
            SourceError, 502, "in utf-16, not in UTF-8", None, id="charset",
        ),
        pytest.param(
            response(JSON_BODY.decode().encode("utf-16"), JSON),
            IncompleteResult, 502, "expected a JSON object in UTF-8", None, id="utf-16",
        ),
        pytest.param(
            response(b'{"head":{},"boolean":true}'),
            IncompleteResult, 502, "got the result of an ASK", None, id="ask",
        ),
        pytest.param(
            response(gzip.compress(JSON_BODY)[:-9], headers={"Content-Encoding": "gzip"}),
            IncompleteResult, 502, "compressed result ends before its end", None, id="gzip-cut",
        ),
        pytest.param(
            response(gzip.compress(JSON_BODY) + b"x", headers={"Content-Encoding": "gzip"}),
            IncompleteResult, 502, "something follows the compressed result", None, id="gzip-trailing",
        ),
        pytest.param(
            response(JSON_BODY, headers={"Content-Encoding": "gzip"}),
            IncompleteResult, 502, "compressed result is damaged", None, id="gzip-damaged",
        ),
        pytest.param(
            response(JSON_BODY, headers={"Content-Encoding": "br"}),
            SourceError, 502, "content coding 'br'", None, id="brotli",
        ),
        pytest.param(
            response(JSON_BODY, headers={"X-SPARQL-MaxRows": "12"}),
            IncompleteResult, 502, "gives at most 12 solutions, and 12 came", "page_size=12", id="capped",
        ),
        pytest.param(
            response(JSON_BODY, framing="length", length=len(JSON_BODY) + 1),
            IncompleteResult, 502, "after 12 solutions", None, id="short-content-length",
        ),
        pytest.param(
            response(b"", status="302 Found", headers={"Location": "http://other.example/sparql?key=1"}),
            SourceError, 502, "redirects to http://other.example/sparql,", "if you trust it", id="redirect-elsewhere",
        ),
        pytest.param(
            response(b"", status="302 Found", headers={"Location": "file:///etc/passwd"}),
            SourceError, 502, "redirects to file:///etc/passwd", None, id="redirect-to-file",
        ),
        pytest.param(
            response(b"", status="303 See Other", headers={"Location": "/status"}),
            SourceError, 502, "redirects to", None, id="redirect-to-something-else",
        ),
        pytest.param(
            response(b"", status="307 Temporary Redirect", headers={"Location": "/again"}),
            SourceError, 502, "redirected more than 5 times", None, id="redirect-loop",
        ),
        pytest.param(b"", SourceError, 502, "could not be reached", "that the endpoint runs", id="no-answer"),
        pytest.param(b"SSH-2.0\r\n\r\n", SourceError, 502, "could not be reached", None, id="not-http"),
    ],
)  # fmt: skip
def test_errors(
    server: FaultServer, client: str, answer: bytes, kind: type[SourceError], status: int, words: str, hint: str | None
) -> None:
    server.play(answer)
    _, error = read(client, EndpointSource(server.url))
    assert type(error) is kind
    assert error.status == status
    assert words in error.message
    assert "secret page" not in str(error)
    assert hint is None or hint in (error.hint or "")


def test_retry_after(server: FaultServer, client: str) -> None:
    for value, low, high in [
        ("120", 120, 120),
        (SOON, 364 * 86_400, 365 * 86_400),
        ("soon", None, None),
        ("9" * 400, 1e9, 1e9),
    ]:
        server.play(response(b"", status="429 Too Many Requests", headers={"Retry-After": value}))
        _, error = read(client, EndpointSource(server.url))
        assert isinstance(error, SourceError)
        if low is None:
            assert error.retry_after is None
        else:
            assert error.retry_after is not None
            assert high is not None
            assert low <= error.retry_after <= high


def test_nobody_listens(client: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listening
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/sparql?key=secret"
        _, error = read(client, EndpointSource(url))
    assert type(error) is SourceError
    assert url.partition("?")[0] in error.message
    assert "secret" not in error.message


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse what does not fit in the queue")
def test_nobody_accepts(client: str) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.socket() as first, socket.socket() as second:
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        wrapper = SPARQLWrapper(f"http://127.0.0.1:{full.getsockname()[1]}/sparql")
        _, error = read(client, WrapperSource(wrapper, connect_seconds=0.2), Request(SELECT))
        assert isinstance(error, SourceTimeout)
        assert "took no connection within 0.2 seconds" in error.message
        _, error = read(client, WrapperSource(wrapper, connect_seconds=10), Request(SELECT, timeout=0.2))
        assert isinstance(error, SourceTimeout)
        assert "(0.2 seconds in all)" in error.message


def test_long_headers(server: FaultServer, client: str) -> None:
    server.play(response(JSON_BODY, headers={"X-SQL-Message": "x" * 60_000}))
    assert read(client, EndpointSource(server.url)) == (TABLE, None)


@pytest.mark.parametrize("results", BODIES)
@pytest.mark.parametrize(
    ("count", "chunk", "whole_chunks"),
    [(0, 10_000, True), (1, 10_000, True), (10, 10_000, True), (10, 10_000, False), (10, 9, True), (10, 9, False)],
)
def test_a_stall_has_delivered_what_came(
    server: FaultServer, client: str, results: str, count: int, chunk: int, whole_chunks: bool
) -> None:
    body, content_type = BODIES[results]
    ends = {"json": b"}}", "xml": b"</result>", "tsv": b"\n"}[results]
    begins = {"json": b"[", "xml": b"<results>", "tsv": b"\n"}[results]
    end = body.index(b"[", body.index(b"bindings")) + 1 if results == "json" else body.index(begins) + len(begins)
    for _ in range(count):
        end = body.index(ends, end) + len(ends)
    head = response(b"", content_type, framing="close", headers={"Transfer-Encoding": "chunked"})
    sent = chunks(body[:end], chunk)
    server.play([head, sent if whole_chunks else sent[:-2], STALL])
    started = time.monotonic()
    came, error = read(client, EndpointSource(server.url, results=results), Request(SELECT, timeout=0.3))
    assert isinstance(error, SourceTimeout)
    assert came == TABLE[:count]
    assert 0.25 < time.monotonic() - started < 3
    assert server.left.wait(5)


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-"], ids=["nothing", "half-a-head"])
def test_a_stall_before_the_result(server: FaultServer, client: str, sent: bytes) -> None:
    server.play([sent, STALL])
    _, error = read(client, EndpointSource(server.url), Request(SELECT, timeout=0.3))
    assert isinstance(error, SourceTimeout)
    assert error.status == 504


def test_the_wrappers_timeout_bounds_a_stall(server: FaultServer, client: str) -> None:
    wrapper = SPARQLWrapper(server.url)
    wrapper.setTimeout(1)
    server.play([response(JSON_BODY)[:-400], STALL])
    came, error = read(client, WrapperSource(wrapper), Request(SELECT))
    assert isinstance(error, SourceTimeout)
    assert came == TABLE[: len(came)]
    assert came


def test_closing_the_generator_ends_the_request(server: FaultServer, client: str) -> None:
    server.play([response(JSON_BODY)[:-200], STALL])
    source = EndpointSource(server.url)
    if client == "blocking":
        batches = source.solutions(Request(SELECT))
        assert list(next(batches))[:1] == TABLE[:1]
        batches.close()
    else:

        async def leave() -> None:
            abatches = source.asolutions(Request(SELECT))
            assert list(await anext(abatches))[:1] == TABLE[:1]
            await abatches.aclose()

        asyncio.run(leave())
    assert server.left.wait(5)


# --- caps and pages --------------------------------------------------------------------------------------------------


def _page(start: int, end: int, cap: int | None = None) -> bytes:
    headers = {} if cap is None else {"X-SPARQL-MaxRows": str(cap)}
    return response(json_document(VARIABLES, TABLE[start:end]), headers=headers)


def _limits(server: FaultServer) -> list[str]:
    return [asked.parameters["query"][0].partition(" LIMIT ")[2] for asked in server.asked]


@pytest.mark.parametrize(
    ("limit", "page_size", "answers", "sent", "count"),
    [
        pytest.param(None, 5, [_page(0, 5), _page(5, 10), _page(10, 12), _page(12, 12)],
                     ["5 OFFSET 0", "5 OFFSET 5", "5 OFFSET 10", "1 OFFSET 12"], 12, id="until-a-short-page"),
        pytest.param(None, 6, [_page(0, 6), _page(6, 12), _page(12, 12)],
                     ["6 OFFSET 0", "6 OFFSET 6", "6 OFFSET 12"], 12, id="until-an-empty-page"),
        pytest.param(7, 5, [_page(0, 5), _page(5, 7)], ["5 OFFSET 0", "2 OFFSET 5"], 7, id="inside-the-limit"),
        pytest.param(5, 5, [_page(0, 5)], ["5 OFFSET 0"], 5, id="limit-of-a-page"),
        pytest.param(None, 8, [_page(0, 5, 5), _page(5, 10, 5), _page(10, 12, 5), _page(12, 12, 5)],
                     ["8 OFFSET 0", "5 OFFSET 5", "5 OFFSET 10", "1 OFFSET 12"], 12, id="cap-below-the-page"),
        pytest.param(None, 5, [_page(0, 5, 5), _page(5, 10, 5), _page(10, 12, 5), _page(12, 12, 5)],
                     ["5 OFFSET 0", "5 OFFSET 5", "5 OFFSET 10", "1 OFFSET 12"], 12, id="cap-of-a-page"),
        pytest.param(None, 20, [_page(0, 12, 15), _page(12, 12)], ["20 OFFSET 0", "1 OFFSET 12"], 12,
                     id="cap-not-reached"),
        pytest.param(5, None, [_page(0, 5, 5)], [""], 5, id="unpaged-limit-of-the-cap"),
        pytest.param(3, None, [_page(0, 3, 5)], [""], 3, id="unpaged-limit-below-the-cap"),
        pytest.param(None, None, [_page(0, 5, 6)], [""], 5, id="unpaged-below-the-cap"),
        pytest.param(None, None, [_page(0, 12, 12), _page(12, 12, 12)], ["", "1 OFFSET 12"], 12,
                     id="unpaged-whole-at-the-cap"),
        pytest.param(20, None, [_page(0, 12, 12), _page(12, 12)], ["", "1 OFFSET 12"], 12,
                     id="unpaged-whole-at-the-cap-below-the-limit"),
        pytest.param(None, 4, [_page(0, 4, 4), _page(4, 8, 4), _page(8, 12, 4), _page(12, 12, 4)],
                     ["4 OFFSET 0", "4 OFFSET 4", "4 OFFSET 8", "4 OFFSET 12"], 12, id="multiple-of-cap-and-page"),
        pytest.param(12, 4, [_page(0, 4, 4), _page(4, 8, 4), _page(8, 12, 4)],
                     ["4 OFFSET 0", "4 OFFSET 4", "4 OFFSET 8"], 12, id="multiple-of-the-page-is-the-limit"),
        pytest.param(12, 5, [_page(0, 3, 3), _page(3, 6, 3), _page(6, 9, 3), _page(9, 12, 3)],
                     ["5 OFFSET 0", "3 OFFSET 3", "3 OFFSET 6", "3 OFFSET 9"], 12, id="cap-below-page-up-to-the-limit"),
    ],
)  # fmt: skip
def test_pages(
    server: FaultServer,
    client: str,
    limit: int | None,
    page_size: int | None,
    answers: list[bytes],
    sent: list[str],
    count: int,
) -> None:
    server.play(*answers)
    select = Select("", "SELECT ?s ?o ", VARIABLES, "WHERE ", "{ ?s ?p ?o }", limit=limit)
    came, error = read(client, EndpointSource(server.url), Request(select, page_size=page_size, timeout=10))
    assert error is None
    assert came == TABLE[:count]
    assert _limits(server) == sent


@pytest.mark.parametrize(
    ("limit", "page_size", "answer", "words"),
    [
        pytest.param(None, None, _page(0, 5, 5), "gives at most 5 solutions, and 5 came", id="cap"),
        pytest.param(None, None, _page(0, 6, 5), "gives at most 5 solutions, and 6 came", id="past-the-cap"),
        pytest.param(6, None, _page(0, 5, 5), "gives at most 5 solutions", id="cap-below-the-limit"),
        pytest.param(None, 4, _page(0, 5), "does not heed LIMIT", id="limit-ignored"),
        pytest.param(4, None, _page(0, 5), "more solutions than LIMIT 4 allows", id="13.19-limit-ignored"),
        pytest.param(0, None, _page(0, 5), "more solutions than LIMIT 0 allows", id="13.19-limit-0-ignored"),
    ],
)
def test_caps(
    server: FaultServer, client: str, limit: int | None, page_size: int | None, answer: bytes, words: str
) -> None:
    server.play(answer)
    select = Select("", "SELECT ?s ?o ", VARIABLES, "WHERE ", "{ ?s ?p ?o }", limit=limit)
    _, error = read(client, EndpointSource(server.url), Request(select, page_size=page_size, timeout=10))
    assert isinstance(error, IncompleteResult)
    assert words in error.message


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(response(b"SR353", "text/plain", status="500 Oops"), id="refused"),
        pytest.param(response(b"busy", "text/plain", status="503 Busy"), id="busy"),
        pytest.param(response(JSON_BODY, status="206 Partial Content"), id="partial"),
        pytest.param(response(JSON_BODY)[:-20], id="cut"),
        pytest.param(response(b"", status="302 Found", headers={"Location": "http://other.example/"}), id="redirected"),
    ],
)
def test_a_probe_that_fails_says_nothing(server: FaultServer, client: str, answer: bytes) -> None:
    server.play(_page(0, 12, 12), answer)
    came, error = read(client, EndpointSource(server.url))
    assert came == TABLE
    assert isinstance(error, IncompleteResult)
    assert "gives at most 12 solutions, and 12 came" in error.message
    assert isinstance(error.__cause__, SourceError)
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("profile", "order", "offset", "sent"),
    [
        ("generic", "", 3, "SELECT ?s ?o WHERE { ?s ?p ?o } LIMIT 1 OFFSET 15"),
        ("virtuoso", "", 9_999, "SELECT ?s ?o WHERE { ?s ?p ?o } LIMIT 1 OFFSET 10011"),
        ("generic", " ORDER BY ?o", 9_999, "SELECT ?s ?o WHERE { ?s ?p ?o } ORDER BY ?o LIMIT 1 OFFSET 10011"),
        ("virtuoso", " ORDER BY ?o", 9_987, "SELECT ?s ?o WHERE { ?s ?p ?o } ORDER BY ?o LIMIT 1 OFFSET 9999"),
        (
            "virtuoso",
            " ORDER BY ?o",
            9_988,
            "SELECT ?s ?o WHERE { { SELECT ?s ?o WHERE { ?s ?p ?o } ORDER BY ?o } } LIMIT 1 OFFSET 10000",
        ),
    ],
)
def test_what_a_probe_asks(server: FaultServer, client: str, profile: str, order: str, offset: int, sent: str) -> None:
    server.play(_page(0, 12, 12), _page(12, 12))
    select = Select(
        "", "SELECT ?s ?o ", VARIABLES, "WHERE ", "{ ?s ?p ?o }", order=order, slice=f" OFFSET {offset}", offset=offset
    )
    assert read(client, EndpointSource(server.url, profile=profile), Request(select, timeout=10)) == (TABLE, None)
    assert server.asked[1].parameters["query"] == [sent]


def test_a_limit_that_cannot_be_told(server: FaultServer, client: str) -> None:
    server.play(_page(0, 12, 12))
    select = Select("", "SELECT ?s ?o ", VARIABLES, "WHERE ", "{ ?s ?p ?o }", slice=" LIMIT ${n}")
    _, error = read(client, EndpointSource(server.url), Request(select, timeout=10))
    assert isinstance(error, IncompleteResult)
    assert len(server.asked) == 1


def test_a_probe_gives_nothing(server: FaultServer, client: str) -> None:
    server.play(_page(0, 11, 11), _page(11, 12))
    came, error = read(client, EndpointSource(server.url))
    assert came == TABLE[:11]
    assert isinstance(error, IncompleteResult)


@pytest.mark.parametrize(
    ("profile", "labels"),
    [("generic", ["_:x_p0_b", "_:x_p0_c", "_:x_p2_b"]), ("virtuoso", ["_:x_db", "_:x_dc", "_:x_db"])],
)
def test_blank_nodes_of_pages(server: FaultServer, client: str, profile: str, labels: list[str]) -> None:
    pages = [json_document(("s",), [(Term(label),) for label in page]) for page in (["_:b", "_:c"], ["_:b"])]
    nothing = json_document(("s",), [])
    # behind the first page is seen whether OFFSET is heeded, behind the last, which is short, whether it is the last
    server.play(*map(response, [pages[0], nothing, pages[1], nothing]))
    select = Select("", "SELECT ?s ", ("s",), "WHERE ", "{ ?s ?p ?o }")
    request = Request(select, page_size=2, timeout=10, labels=Labels("x"))
    came, error = read(client, EndpointSource(server.url, profile=profile), request)
    assert error is None
    assert [term for (term,) in came] == labels


def test_pages_are_numbered_responses(server: FaultServer) -> None:
    server.play(_page(0, 5), _page(5, 10), _page(10, 12), _page(12, 12))
    batches = list(EndpointSource(server.url).solutions(Request(SELECT, page_size=5)))
    assert [batch.response for batch in batches for _ in batch] == [0] * 5 + [1] * 5 + [2] * 2


# --- what an endpoint makes of LIMIT and OFFSET ---


class Windows:
    """Answers with the part of a result that is asked for, as an endpoint with ways of its own understands it."""

    def __init__(
        self, table: Sequence[tuple[Term, ...]], *, cap: int = 1 << 40, limit: bool = True, offset: bool = True
    ) -> None:
        self._table, self._cap, self._heeds_limit, self._heeds_offset = table, cap, limit, offset

    def __call__(self, asked: Asked) -> bytes:
        found = re.search(r" LIMIT (\d+) OFFSET (\d+)$", asked.parameters["query"][0])
        assert found
        start = int(found[2]) if self._heeds_offset else 0
        most = min(int(found[1]) if self._heeds_limit else len(self._table), self._cap)
        return response(json_document(VARIABLES, self._table[start : start + most]))


MANY = sorted((iri(f"urn:{n}"), literal(f"label {n}")) for n in range(2000))
ALIKE = [TABLE[0]] * 2000
BLANK = [(Term(f"_:b{n}"), TABLE[0][1]) for n in range(1200)]


@pytest.mark.parametrize(
    ("table", "cap"),
    [(table, cap) for table in (MANY, ALIKE) for cap in (300, 500, 1000, 1001, 1 << 40)]
    + [(table, cap) for table in (MANY[:20], ALIKE[:20], MANY[:1], []) for cap in (1, 7, 20, 1000)],
)
def test_an_unannounced_cap(server: FaultServer, client: str, table: list[tuple[Term, ...]], cap: int) -> None:
    """Issue 13, 19: what pages give is the whole, whatever the endpoint gives at most."""
    server.play(Windows(table, cap=cap))
    came, error = read(client, EndpointSource(server.url), Request(SELECT, page_size=1000, timeout=60))
    assert error is None
    assert came == table


def test_blank_nodes_in_capped_pages(server: FaultServer, client: str) -> None:
    server.play(Windows(BLANK, cap=300))
    came, error = read(client, EndpointSource(server.url), Request(SELECT, page_size=1000, timeout=60))
    assert error is None
    assert [s.rpartition("_")[2] for s, _ in came] == [s[2:] for s, _ in BLANK]


@pytest.mark.parametrize("cap", [3, 500, 1 << 40])
@pytest.mark.parametrize("limit", [True, False], ids=["limit", "no-limit"])
@pytest.mark.parametrize("table", [MANY[:1], MANY[:20], MANY, ALIKE[:1], ALIKE[:20], ALIKE, BLANK[:1], BLANK])
def test_an_endpoint_that_ignores_offset(
    server: FaultServer, client: str, table: list[tuple[Term, ...]], limit: bool, cap: int
) -> None:
    """Issue 13, 19: it sends the same page again and again."""
    server.play(Windows(table, cap=cap, limit=limit, offset=False))
    came, error = read(client, EndpointSource(server.url), Request(SELECT, page_size=1000, timeout=60))
    assert isinstance(error, IncompleteResult)
    assert len(came) <= len(table)
    assert len(server.asked) <= 4


def test_a_page_that_comes_again_is_given_once(server: FaultServer, client: str) -> None:
    """Issue 13, 19."""
    server.play(Windows(TABLE, offset=False))
    came, error = read(client, EndpointSource(server.url), Request(SELECT, page_size=5, timeout=10))
    assert isinstance(error, IncompleteResult)
    assert "sent the same page again: it does not heed OFFSET" in error.message
    assert came == TABLE[:5]


PERIODIC = [TABLE[n % 5] for n in range(20)]


@pytest.mark.parametrize("limit", [None, 10])
@pytest.mark.parametrize("heeds", [True, False])
def test_pages_in_an_order_of_the_query_s_own(server: FaultServer, client: str, heeds: bool, limit: int | None) -> None:
    """Solutions may come again in an order by what they do not hold; that is no reason to refuse them."""
    server.play(Windows(PERIODIC if heeds else TABLE, offset=heeds))
    slice = "" if limit is None else f" LIMIT {limit}"
    select = replace(SELECT, order=" ORDER BY ?hidden", slice=slice, limit=limit)
    came, error = read(client, EndpointSource(server.url), Request(select, page_size=5, timeout=10))
    if heeds:
        assert error is None
        assert came == PERIODIC[:limit]
    else:
        assert isinstance(error, IncompleteResult)
        assert "does not heed OFFSET" in error.message


def test_solutions_without_end_for_a_limit(server: FaultServer, client: str) -> None:
    """Issue 13, 19: the error comes with the first solution that is one too many, not with the end of the answer."""
    server.play([response(JSON_BODY)[:-200], STALL])
    select = replace(SELECT, slice=" LIMIT 3", limit=3)
    _, error = read(client, EndpointSource(server.url), Request(select))
    assert isinstance(error, IncompleteResult)
    assert "does not heed LIMIT" in error.message


# --- what is asked ---------------------------------------------------------------------------------------------------


def test_the_form(server: FaultServer, client: str) -> None:
    server.play(response(JSON_BODY))
    request = Request(SELECT, ("urn:g1", "urn:g2"), ("urn:g3",), timeout=10)
    assert read(client, EndpointSource(server.url, headers={"x-key": "ä".encode().hex()}), request)[1] is None
    (asked,) = server.asked
    assert (asked.method, asked.target) == ("POST", "/sparql")
    assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
    assert asked.headers["content-length"] == str(len(asked.body))
    assert "transfer-encoding" not in asked.headers
    assert asked.headers["accept"] == "application/sparql-results+json, application/sparql-results+xml;q=0.5"
    assert asked.headers["accept-encoding"] == "identity"
    assert asked.headers["user-agent"].startswith("construct-messages/")
    assert asked.headers["x-key"] == "c3a4"
    assert asked.parameters == {
        "query": [str(SELECT)],
        "default-graph-uri": ["urn:g1", "urn:g2"],
        "named-graph-uri": ["urn:g3"],
    }


def test_get(server: FaultServer, client: str) -> None:
    server.play(response(JSON_BODY))
    select = Select("", "SELECT ?s ?o ", VARIABLES, "", '{ ?s ?p "a+b & ü" . ?s ?p ?o }')
    source = EndpointSource(f"{server.url}?key=k%20e", method="get")
    assert read(client, source, Request(select, timeout=10))[1] is None
    (asked,) = server.asked
    assert (asked.method, asked.body) == ("GET", b"")
    assert asked.target.count("?") == 1
    assert asked.parameters == {"query": [str(select)], "key": ["k e"]}


def test_post_keeps_the_urls_parameters(server: FaultServer, client: str) -> None:
    server.play(response(JSON_BODY))
    assert read(client, EndpointSource(f"{server.url}?key=k%20e"))[1] is None
    assert server.asked[0].target == "/sparql?key=k%20e"


@pytest.mark.parametrize("method", ["get", "post"])
def test_redirects_within_the_origin(server: FaultServer, client: str, method: str) -> None:
    server.play(
        response(b"", status="308 Permanent Redirect", headers={"Location": f"{server.url}/?moved=1"}),
        response(JSON_BODY),
    )
    came, error = read(client, EndpointSource(server.url, method=method))
    assert error is None
    assert came == TABLE
    first, second = server.asked
    assert second.target == "/sparql/?moved=1"
    assert (second.method, second.body) == (first.method, first.body)
    assert second.headers["accept"] == first.headers["accept"]


def test_a_compressed_answer(server: FaultServer, client: str) -> None:
    server.play(response(gzip.compress(JSON_BODY), headers={"Content-Encoding": "gzip"}, framing="length"))
    came, error = read(client, EndpointSource(server.url, headers={"Accept-Encoding": "gzip"}))
    assert error is None
    assert came == TABLE
    assert server.asked[0].headers["accept-encoding"] == "gzip"


@pytest.mark.parametrize(
    ("environment", "headers", "sent"),
    [
        ({}, {}, None),
        ({"USER": "me", "PASSWORD": "s:ü"}, {}, "Basic bWU6czrDvA=="),
        ({"TOKEN": "t0"}, {}, "Bearer t0"),
        ({"TOKEN": "t0"}, {"authorization": "Bearer other"}, "Bearer other"),
    ],
    ids=["none", "basic", "bearer", "header"],
)
def test_credentials(
    server: FaultServer,
    client: str,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    headers: dict[str, str],
    sent: str | None,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(f"CONSTRUCT_MESSAGES_{name}", value)
    server.play(response(JSON_BODY))
    assert read(client, EndpointSource(server.url, headers=headers))[1] is None
    assert server.asked[0].headers.get("authorization") == sent


def test_a_callers_wrapper(server: FaultServer, client: str) -> None:
    wrapper = SPARQLWrapper(server.url, agent="mine/1 (me@example.org)", defaultGraph="urn:g0")
    wrapper.setMethod(POST)
    wrapper.setHTTPAuth(BASIC)
    wrapper.setCredentials("me", "secret")
    wrapper.addCustomHttpHeader("X-Key", "k")
    wrapper.addParameter("timeout", "1000")
    wrapper.addParameter("format", "text/turtle")
    wrapper.setQuery("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }")
    before = {name: repr(value) for name, value in vars(wrapper).items()}
    server.play(response(JSON_BODY))
    source = WrapperSource(wrapper)
    came, error = read(client, source, Request(SELECT, ("urn:g1",), timeout=10))
    assert error is None
    assert came == TABLE
    assert {name: repr(value) for name, value in vars(wrapper).items()} == before
    (asked,) = server.asked
    assert asked.method == "POST"
    assert asked.headers["user-agent"] == "mine/1 (me@example.org)"
    assert asked.headers["authorization"] == "Basic bWU6c2VjcmV0"
    assert asked.headers["x-key"] == "k"
    assert asked.headers["accept"].startswith(JSON)
    assert asked.parameters == {
        "query": [str(SELECT)],
        "default-graph-uri": ["urn:g0", "urn:g1"],
        "timeout": ["1000"],
    }


def test_digest_authentication(server: FaultServer, client: str) -> None:
    wrapper = SPARQLWrapper(server.url)
    wrapper.setHTTPAuth(DIGEST)
    wrapper.setCredentials("me", "secret")
    challenge = 'Digest realm="r", nonce="n", qop="auth", algorithm=MD5'
    refusal = response(b"", "text/plain", status="401 Unauthorized", headers={"WWW-Authenticate": challenge})
    server.play(refusal, response(JSON_BODY))
    came, error = read(client, WrapperSource(wrapper))
    assert error is None
    assert came == TABLE
    assert server.asked[1].headers["authorization"].startswith('Digest username="me"')
    server.play(refusal)
    _, error = read(client, WrapperSource(wrapper))
    assert isinstance(error, SourceError)
    assert error.status == 502
    assert "HTTP status 401" in error.message


# --- the event loop ---


@pytest.mark.parametrize("coding", ["identity", "gzip"])
@pytest.mark.parametrize("count", [1, 5, 200], ids=["one variable", "5 variables", "200 variables"])
@pytest.mark.parametrize("results", ["json", "xml", "tsv"])
def test_the_event_loop_has_its_turn(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch, results: str, count: int, coding: str
) -> None:
    """Issue 13, 20: between two turns of the loop a decoder gets few bytes, the fewer the more variables there are."""
    names = tuple(f"v{number}" for number in range(count))
    document, decoder = {
        "json": (json_document, JsonDecoder),
        "xml": (xml_document, XmlDecoder),
        "tsv": (tsv_document, TsvDecoder),
    }[results]
    body = document(names, [(Term(""),) * count] * (300_000 // count))
    packed = gzip.compress(body, 1) if coding == "gzip" else body
    server.play(response(packed, BODIES[results][1], framing="length", headers={"Content-Encoding": coding}))
    turn, fed = 0, []

    def feed(self: Decoder, data: bytes) -> list[Solutions]:
        fed.append((turn, len(data)))
        return by_decoder(self, data)

    by_decoder = decoder.feed
    monkeypatch.setattr(decoder, "feed", feed)

    async def gather() -> int:
        async def count_turns() -> None:
            nonlocal turn
            while True:
                turn += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count_turns())
        select = Select("", "SELECT * ", names, "", "{}")
        try:
            return sum([len(b) async for b in EndpointSource(server.url, results=results).asolutions(Request(select))])
        finally:
            counting.cancel()

    assert asyncio.run(gather()) == 300_000 // count
    assert sum(size for _, size in fed) == len(body)
    assert max(size for _, size in fed) * max(count, 4) <= 1 << 16
    assert len({turn for turn, _ in fed}) == len(fed)


# --- what is refused before anything is sent -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "options", "words"),
    [
        ("ftp://example.org/", {}, "is not the URL of an endpoint"),
        ("file:///etc/passwd", {}, "is not the URL of an endpoint"),
        ("example.org/sparql", {}, "is not the URL of an endpoint"),
        ("http://", {}, "is not the URL of an endpoint"),
        ("http://example.org:port/", {}, "is not a URL"),
        ("http://me:secret@example.org/", {}, "holds a user name or password"),
        ("http://example.org/ü", {}, "percent-encode"),
        ("http://example.org/\r\nX: y", {}, "percent-encode"),
        ("http://example.org/", {"method": "put"}, "no method 'put'"),
        ("http://example.org/", {"results": "csv"}, "no results in 'csv'"),
        ("http://example.org/", {"profile": "mine"}, "no endpoint profile 'mine'"),
        ("http://example.org/", {"headers": {"X Y": "z"}}, "is not the name of an HTTP header"),
        ("http://example.org/", {"headers": {"X": "y\r\nZ: 1"}}, "value that HTTP cannot send"),
        ("http://example.org/?query=x", {"method": "get"}, "holds the parameter 'query'"),
    ],
)
def test_refused_options(url: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        EndpointSource(url, **options)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("names", [["USER"], ["PASSWORD"], ["USER", "PASSWORD", "TOKEN"]], ids="+".join)
def test_refused_credentials(monkeypatch: pytest.MonkeyPatch, names: list[str]) -> None:
    for name in names:
        monkeypatch.setenv(f"CONSTRUCT_MESSAGES_{name}", "secret")
    with pytest.raises(UsageError, match="half of the credentials"):
        EndpointSource("http://example.org/")


def test_the_union_of_all_graphs_is_refused(server: FaultServer, client: str) -> None:
    server.play(response(JSON_BODY))
    _, error = read(client, EndpointSource(server.url), Request(SELECT, (UNION,)))
    assert isinstance(error, UsageError)
    assert server.asked == []
