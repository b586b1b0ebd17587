"""The server's log: one line a request, whatever the request holds."""

import io
import json
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages import errors
from construct_messages.errors import (
    GroupError,
    IncompleteResult,
    LimitExceeded,
    SourceError,
    SourceTimeout,
    UnsupportedByFormat,
)
from construct_messages.server.config import Config
from construct_messages.server.http.request_log import (
    REASONS,
    RequestLog,
    RequestRecord,
    _logfmt,
    _logfmt_of_request,
    client_address,
    reason_of,
    request_id,
)
from construct_messages.server.sparql.messages import SparqlRecord


def lines(record: RequestRecord, **settings: Any) -> list[str]:
    file = io.StringIO()
    request_log = RequestLog(Config(endpoints={}, **settings), file)
    with request_log.bound(record):
        request_log.write(record)
    return file.getvalue().splitlines()


def fields(record: RequestRecord, **settings: Any) -> dict[str, Any]:
    (line,) = lines(record, log_format="json", **settings)
    document: dict[str, Any] = json.loads(line)
    return document


def test_the_line_of_a_log() -> None:
    record = SparqlRecord(
        id="abc", method="GET", endpoint="/sparql", client="192.0.2.7", form="CONSTRUCT", status=200
    )
    record.format = "application/n-quads; message_count=rdfm"
    record.source_asked()
    record.messages = SimpleNamespace(message_count=3, solution_count=4)
    record.sent(100)
    record.sent(23)
    found = fields(record)
    times = {
        name: found.pop(name)
        for name in ("timestamp", "seconds", "source_seconds", "first_message_seconds")
    }
    assert found == {
        "event": "request",
        "level": "info",
        "request_id": "abc",
        "client": "192.0.2.7",
        "method": "GET",
        "endpoint": "/sparql",
        "form": "CONSTRUCT",
        "format": "application/n-quads; message_count=rdfm",
        "status": 200,
        "outcome": "complete",
        "bytes": 123,
        "messages": 3,
        "solutions": 4,
    }
    assert 0 <= times["source_seconds"] <= times["first_message_seconds"] <= times["seconds"] < 60


def test_the_line_as_text() -> None:
    (line,) = lines(SparqlRecord(id="abc", method="POST", endpoint="/x/sparql", status=200))
    assert line.startswith("timestamp=")
    assert " level=info event=request " in line
    assert " method=POST endpoint=/x/sparql status=200 outcome=complete bytes=0 " in line


@pytest.mark.parametrize(
    ("end", "outcome", "level", "answer"),
    [
        (SparqlRecord.source_asked, "complete", "info", "none"),
        (lambda record: record.refused(400), "refused", "info", "problem"),
        (lambda record: record.refused(503), "refused", "warning", "problem"),
        (lambda record: record.aborted("incomplete"), "aborted:incomplete", "warning", "none"),
        (lambda record: record.client_left(), "client-left", "info", "none"),
    ],
    ids=["complete", "refused", "failed", "aborted", "left"],
)
def test_outcomes(end: Any, outcome: str, level: str, answer: str) -> None:
    record = SparqlRecord(id="1", method="GET")
    end(record)
    found = fields(record)
    assert (found["outcome"], found["level"], record.answer) == (outcome, level, answer)


def test_queries_are_logged_only_on_request() -> None:
    record = SparqlRecord(id="1", method="GET", query="SELECT * { ?secret ?p ?o }")
    for settings in ({}, {"log_level": "debug"}, {"log_format": "json"}):
        assert "secret" not in "".join(lines(record, **settings))
    assert fields(record, log_queries=True)["query"] == "SELECT * { ?secret ?p ?o }"


def test_the_level_is_a_threshold() -> None:
    assert lines(SparqlRecord(id="1", method="GET"), log_level="warning") == []
    failed = SparqlRecord(id="1", method="GET")
    failed.refused(502)
    assert len(lines(failed, log_level="warning")) == 1


@pytest.mark.parametrize("log_format", ["text", "json"])
@pytest.mark.parametrize("log_queries", [True, False])
@given(values=st.tuples(*[st.text() for _ in range(5)]))
def test_nothing_a_client_sends_starts_a_line(
    values: tuple[str, ...], log_format: str, log_queries: bool
) -> None:
    method, endpoint, client, format, query = values
    record = SparqlRecord(
        id="1", method=method, endpoint=endpoint, client=client, format=format, query=query
    )
    written = "\n".join(lines(record, log_format=log_format, log_queries=log_queries))
    assert written.isprintable()
    if log_format == "json":
        found = json.loads(written)
        assert (found["method"], found["endpoint"], found["client"]) == (method, endpoint, client)


@pytest.mark.parametrize(
    "hostile",
    [
        'x" level=error event="owned',
        "x\nlevel=error event=owned",
        "x\r\x1b[2K",
        "x\u2028y",
        "a=b c=d",
    ],
    ids=["quote", "line", "terminal", "separator", "fields"],
)
def test_nothing_a_client_sends_starts_a_field(hostile: str) -> None:
    (line,) = lines(SparqlRecord(id="1", method="GET", client=hostile))
    # what stands outside quotes, as a reader of logfmt sees it
    outside = "".join(
        part for number, part in enumerate(line.replace('\\"', "").split('"')) if number % 2 == 0
    )
    assert [word.split("=")[0] for word in outside.split()].count("level") == 1
    assert "owned" not in outside


@given(
    st.lists(
        st.text(st.sampled_from('a=" \\\n\x1b;/')) | st.booleans() | st.integers() | st.floats()
    )
)
def test_lines_of_requests_are_those_of_structlog(values: list[object]) -> None:
    event = {"timestamp": "now", "level": "info", "event": "request"}
    event |= {f"field{number}": value for number, value in enumerate(values)}  # type: ignore[misc] # of any type
    assert _logfmt_of_request(None, "", dict(event)) == _logfmt(None, "", dict(event))


@given(st.text() | st.none())
def test_request_ids_are_short_and_plain(incoming: str | None) -> None:
    identifier = request_id(incoming)
    assert identifier.isascii()
    assert 1 <= len(identifier) <= 128
    assert not set(identifier) & set(" \t\r\n\"'<>\\")
    assert request_id(identifier) == identifier


@pytest.mark.parametrize(
    ("incoming", "kept"),
    [
        ("7b3c-1", True),
        ("a" * 128, True),
        ("a" * 129, False),
        ("", False),
        ("two words", False),
        ("x\r\nSet-Cookie: a=b", False),
        ("é", False),
        ("abc\n", False),
    ],
    ids=repr,
)
def test_request_ids(incoming: str, kept: bool) -> None:
    assert (request_id(incoming) == incoming) is kept


@pytest.mark.parametrize(
    ("forwarded", "trusted", "client"),
    [
        (None, True, "127.0.0.1"),
        ("192.0.2.7", True, "192.0.2.7"),
        ("6.6.6.6, 192.0.2.7", True, "192.0.2.7"),
        ("6.6.6.6,2001:DB8::1", True, "2001:db8::1"),
        ("192.0.2.7", False, "127.0.0.1"),
        ("unknown", True, "127.0.0.1"),
        ("192.0.2.7\nlevel=error", True, "127.0.0.1"),
        ("", True, "127.0.0.1"),
    ],
    ids=repr,
)
def test_clients(forwarded: str | None, trusted: bool, client: str) -> None:
    assert client_address("127.0.0.1", forwarded, trust_forwarded=trusted) == client


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (SourceTimeout("x"), "timeout"),
        (IncompleteResult("x"), "incomplete"),
        (SourceError("x"), "source"),
        (LimitExceeded("x"), "limit"),
        (UnsupportedByFormat("x"), "format"),
        (GroupError("x"), "grouping"),
        (RuntimeError("x"), "internal"),
        (None, "internal"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_reasons(error: BaseException | None, reason: str) -> None:
    assert reason_of(error) == reason


def test_every_error_has_a_reason_of_the_closed_set() -> None:
    for name in dir(errors):
        kind = getattr(errors, name)
        if isinstance(kind, type) and issubclass(kind, errors.ConstructMessagesError):
            assert reason_of(kind.__new__(kind)) in REASONS


def test_an_unforeseen_error_is_one_line_with_its_traceback() -> None:
    file = io.StringIO()
    request_log = RequestLog(Config(endpoints={}), file)
    try:
        raise KeyError("x\ny")
    except KeyError as error:
        request_log.exception("fault", error)
    (line,) = file.getvalue().splitlines()
    assert "level=error" in line
    assert "test_request_log.py" in line


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_other_libraries_lines_look_the_same(log_format: Any) -> None:
    file = io.StringIO()
    request_log = RequestLog(Config(endpoints={}, log_format=log_format), file)
    logger = logging.Logger("aiohttp.server")
    logger.addHandler(request_log.handler())
    logger.debug("not shown")
    logger.warning("odd: %s", "a\nb")
    (line,) = file.getvalue().splitlines()
    if log_format == "json":
        found = json.loads(line)
        assert (found["event"], found["level"], found["logger"]) == (
            "odd: a\nb",
            "warning",
            "aiohttp.server",
        )
    else:
        assert 'level=warning event="odd: a\\nb" logger=aiohttp.server' in line
