"""Endpoints that misbehave, through both HTTP clients: no short answer ever ends cleanly."""

from __future__ import annotations

import asyncio
import gzip
import socket
import sys
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial

import pytest
from SPARQLWrapper import SPARQLWrapper

from construct_messages.errors import (
    IncompleteResult,
    SourceError,
    SourceTimeout,
)
from construct_messages.query.select import Select
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import Term, iri, literal
from construct_messages.sparql.results import ResultsDecoder
from construct_messages.sparql.results.json import JsonDecoder
from construct_messages.sparql.results.tsv import TsvDecoder
from construct_messages.sparql.results.xml import XmlDecoder
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.http.endpoint import Endpoint, EndpointSource
from tests.support.http.clients import BODIES, JSON_BODY, SELECT, TABLE, VARIABLES, read
from tests.support.http.fault_server import JSON, PAUSE, RESET, STALL, FaultServer, chunks, response
from tests.support.results.documents import json_document, tsv_document, xml_document
from tests.support.waiting import ENOUGH

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("once")]


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
@pytest.mark.parametrize("results", BODIES)
def test_a_whole_answer(server: FaultServer, client: str, results: str, framing: str) -> None:
    server.play(response(*BODIES[results], framing=framing))
    came, error = read(client, EndpointSource(server.url, results=results))
    if (results, framing) == ("tsv", "close"):
        assert isinstance(error, IncompleteResult)
        assert "without its length" in str(error)
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
            response(body, content_type).index(b"\r\n0\r\n\r\n")
            - response(body, content_type).index(b"\r\n\r\n")
            - 4
        )
        cuts += [last - 40, last, last + 2]  # up to the last chunk, which is empty
    for cut in cuts:
        server.play(response(body, content_type, framing=framing, cut=cut))
        came, error = read(client, EndpointSource(server.url, results=results))
        assert isinstance(error, IncompleteResult), cut
        assert came == TABLE[: len(came)]


@pytest.mark.parametrize(
    "frame", [b"none\r\n", b"-1\r\n", b"3\r\nabcdef\r\n0\r\n\r\n", b"\r\n0\r\n\r\n"]
)
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
@pytest.mark.parametrize(
    "text", ["The SPARQL operation has been cancelled", "!TIMEDOUT!\n", "<html></html>"]
)
def test_text_behind_the_result(server: FaultServer, client: str, results: str, text: str) -> None:
    body, content_type = BODIES[results]
    server.play(response(body + text.encode(), content_type))
    _, error = read(client, EndpointSource(server.url, results=results))
    assert isinstance(error, IncompleteResult)


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
            response(JSON_BODY, f"{JSON}; charset=iso-2022-jp"),
            SourceError, 502, "in iso-2022-jp, which cannot be read", "should send UTF-8", id="charset",
        ),
        pytest.param(
            response(BODIES["json"][0], "text/sparql-results+tsv"),
            SourceError, 502, "answered with text/sparql-results+tsv", "query form", id="tsv-of-ontop",
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
            IncompleteResult, 502, "is truncated", None, id="gzip-cut",
        ),
        pytest.param(
            response(gzip.compress(JSON_BODY) + b"!TIMEDOUT!", headers={"Content-Encoding": "gzip"}),
            IncompleteResult, 502, "compressed result is damaged", "Accept-Encoding", id="gzip-trailing",
        ),
        pytest.param(
            response(JSON_BODY, headers={"Content-Encoding": "gzip"}),
            IncompleteResult, 502, "declares Content-Encoding: gzip", "Accept-Encoding", id="gzip-damaged",
        ),
        pytest.param(
            response(JSON_BODY, headers={"Content-Encoding": "br"}),
            SourceError, 502, "content coding 'br'", None, id="brotli",
        ),
        pytest.param(
            response(JSON_BODY, headers={"X-SPARQL-MaxRows": "12"}),
            IncompleteResult, 502, "returns at most 12 solutions, and 12 came", "page_size=12", id="capped",
        ),
        pytest.param(
            response(JSON_BODY, framing="length", length=len(JSON_BODY) + 1),
            IncompleteResult, 502, "after 12 solutions", None, id="short-content-length",
        ),
        pytest.param(
            response(JSON_BODY, framing="close", headers={"Content-Length": "9" * 5000}),
            SourceError, 502, "could not be reached", None, id="content-length-of-5000-digits",
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
    server: FaultServer,
    client: str,
    answer: bytes,
    kind: type[SourceError],
    status: int,
    words: str,
    hint: str | None,
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


@pytest.mark.skipif(
    sys.platform != "linux", reason="other systems refuse what does not fit in the queue"
)
def test_nobody_accepts(client: str) -> None:
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as full,
        socket.socket() as first,
        socket.socket() as second,
    ):
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        wrapper = SPARQLWrapper(f"http://127.0.0.1:{full.getsockname()[1]}/sparql")
        _, error = read(
            client,
            EndpointSource(Endpoint.of_wrapper(wrapper), connect_seconds=0.2),
            Request(SELECT),
        )
        assert isinstance(error, SourceTimeout)
        assert "accepted no connection within 0.2 seconds" in error.message
        _, error = read(
            client,
            EndpointSource(Endpoint.of_wrapper(wrapper), connect_seconds=10),
            Request(SELECT, timeout=0.2),
        )
        assert isinstance(error, SourceTimeout)
        assert "(0.2 seconds in all)" in error.message


def test_long_headers(server: FaultServer, client: str) -> None:
    server.play(response(JSON_BODY, headers={"X-SQL-Message": "x" * 60_000}))
    assert read(client, EndpointSource(server.url)) == (TABLE, None)


@pytest.mark.parametrize("results", BODIES)
@pytest.mark.parametrize(
    ("count", "chunk", "whole_chunks"),
    [
        (0, 10_000, True),
        (1, 10_000, True),
        (10, 10_000, True),
        (10, 10_000, False),
        (10, 9, True),
        (10, 9, False),
    ],
)
def test_a_stall_has_delivered_what_came(
    server: FaultServer, client: str, results: str, count: int, chunk: int, whole_chunks: bool
) -> None:
    body, content_type = BODIES[results]
    ends = {"json": b"}}", "xml": b"</result>", "tsv": b"\n"}[results]
    begins = {"json": b"[", "xml": b"<results>", "tsv": b"\n"}[results]
    end = (
        body.index(b"[", body.index(b"bindings")) + 1
        if results == "json"
        else body.index(begins) + len(begins)
    )
    for _ in range(count):
        end = body.index(ends, end) + len(ends)
    head = response(b"", content_type, framing="close", headers={"Transfer-Encoding": "chunked"})
    sent = chunks(body[:end], chunk)
    for seconds in ENOUGH:
        server.play([head, sent if whole_chunks else sent[:-2], STALL])
        came, error = read(
            client, EndpointSource(server.url, results=results), Request(SELECT, timeout=seconds)
        )
        assert isinstance(error, SourceTimeout)
        if len(came) == count and server.left.wait(60):
            break
    assert came == TABLE[:count]
    assert server.left.is_set()


@pytest.mark.parametrize(
    "sent", [b"", b"HTTP/1.1 200 OK\r\nContent-"], ids=["nothing", "half-a-head"]
)
def test_a_stall_before_the_result(server: FaultServer, client: str, sent: bytes) -> None:
    server.play([sent, STALL])
    _, error = read(client, EndpointSource(server.url), Request(SELECT, timeout=0.3))
    assert isinstance(error, SourceTimeout)
    assert error.status == 504


def test_the_wrappers_timeout_bounds_a_stall(server: FaultServer, client: str) -> None:
    wrapper = SPARQLWrapper(server.url)
    for seconds in (1, 10, 60):
        wrapper.setTimeout(seconds)
        server.play([response(JSON_BODY)[:-400], STALL])
        came, error = read(client, EndpointSource(Endpoint.of_wrapper(wrapper)), Request(SELECT))
        assert isinstance(error, SourceTimeout)
        assert came == TABLE[: len(came)]
        if came:
            break
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
    assert server.left.wait(60)


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
    server.play(
        response(packed, BODIES[results][1], framing="length", headers={"Content-Encoding": coding})
    )
    turn, fed = 0, []

    def feed(self: ResultsDecoder, data: bytes) -> list[Solutions]:
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
            return sum(
                [
                    len(b)
                    async for b in EndpointSource(server.url, results=results).asolutions(
                        Request(select)
                    )
                ]
            )
        finally:
            counting.cancel()

    assert asyncio.run(gather()) == 300_000 // count
    assert sum(size for _, size in fed) == len(body)
    assert max(size for _, size in fed) * max(count, 4) <= 1 << 16
    assert len({turn for turn, _ in fed}) == len(fed)


# --- charsets ---

LATIN, WIDE, OTHER = "Café, ¡olé! 50 %", "日本 é", "Москва"
AMBIGUOUS = "CAFÉ» Ã©"  # of which Latin-1 is UTF-8, too
TEXTS = {
    "ASCII": "label",
    "Latin": LATIN,
    "ambiguous": AMBIGUOUS,
    "wide": WIDE,
    "other": OTHER,
}
DECLARED = (
    "us-ascii",
    "iso-8859-1",
    "windows-1252",
    "koi8-r",
    "shift_jis",
    "utf-16",
    "utf-16le",
    "utf-32",
    "utf-8",
)


def _document(results: str, text: str, encoding: str = "") -> tuple[list[tuple[Term, ...]], str]:
    table = [(iri(f"urn:{n}"), literal(f"{text} {n}", language="en")) for n in range(30)]
    document = {
        "json": partial(json_document, ensure_ascii=False),
        "xml": xml_document,
        "tsv": tsv_document,
    }
    whole = document[results](VARIABLES, table).decode()
    if results == "xml":
        whole = whole[whole.index("<sparql") :]
        whole = f'<?xml version="1.0" encoding="{encoding}"?>{whole}' if encoding else whole
    return table, whole


@pytest.mark.parametrize("results", ["json", "xml", "tsv"])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_charsets(server: FaultServer, results: str, text: str) -> None:
    """A result is read as it was meant, or refused, whatever charset it is in and is said to be in."""
    outcomes = {}
    for declared in DECLARED:
        for encoding in dict.fromkeys(("", declared, "iso-8859-1") if results == "xml" else ("",)):
            table, document = _document(results, text, encoding)
            for written in dict.fromkeys((declared, encoding or declared, "utf-8")):
                try:
                    body = document.encode(written)
                except UnicodeEncodeError:
                    continue
                content_type = f"{BODIES[results][1]}; charset={declared}"
                for chunk in (3, 1 << 20):
                    server.play([response(body, content_type, chunk=chunk)])
                    came, error = read("blocking", EndpointSource(server.url, results=results))
                    whole = came == table and error is None
                    outcomes[declared, encoding, written, chunk] = whole
                    if declared == encoding != written or (results, text) == ("json", AMBIGUOUS):
                        continue  # all that is said, or JSON's own rule, is not what was meant
                    assert whole or isinstance(error, SourceError), (declared, encoding, written)
                    assert came == table[: len(came)], (declared, encoding, written)
    for (declared, encoding, written, _), whole in outcomes.items():
        is_json = results == "json" and written == "utf-8"
        # the parser of XML knows no encodings of several bytes but UTF-8 and UTF-16
        is_known = encoding != "shift_jis" and (results, written) != ("xml", "utf-32")
        is_meant = declared == written and encoding in ("", written) and text != AMBIGUOUS
        assert whole or not (is_json or (is_meant and is_known)), (declared, encoding, written)
        assert whole or not (text.isascii() and is_known and "utf-" not in written + declared)


@pytest.mark.parametrize("results", ["json", "xml", "tsv"])
def test_what_ends_within_a_character(server: FaultServer, client: str, results: str) -> None:
    for charset, cut in (("utf-16", 1), ("shift_jis", 0)):
        _, document = _document(results, "日本")
        body = document.encode(charset)
        body = body[:-cut] if cut else body[: body.rindex("本".encode(charset)) + 1]
        server.play([response(body, f"{BODIES[results][1]}; charset={charset}")])
        _, error = read(client, EndpointSource(server.url, results=results))
        assert isinstance(error, IncompleteResult)


@pytest.mark.parametrize("results", ["json", "xml", "tsv"])
def test_a_result_that_a_proxy_changed(server: FaultServer, client: str, results: str) -> None:
    """Status 203 is that of an answer (RFC 9110, section 15.3.4), with the same checks as 200."""
    status = "203 Non-Authoritative Information"
    server.play([response(*BODIES[results], status=status)])
    assert read(client, EndpointSource(server.url, results=results)) == (TABLE, None)
    body, content_type = BODIES[results]
    server.play([response(body[:-20], content_type, status=status)])
    assert isinstance(
        read(client, EndpointSource(server.url, results=results))[1], IncompleteResult
    )
