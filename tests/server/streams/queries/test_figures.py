"""What a server tells of how its registered queries are doing."""

from __future__ import annotations

import pytest

from construct_messages import Message, Quad, iri
from construct_messages.rdf.terms import Term
from tests.support.http.streams import StreamsServer
from tests.support.registered import ECHO, RSP_QL, SPARQL, described, location_of, until, until_true
from tests.support.streams import numbered


async def test_what_is_dated_far_ahead_is_left_out(served: StreamsServer) -> None:
    """By default, more than a day: one clock that is wrong does not make all others late."""
    timed = RSP_QL.replace(b"STEP 2", b"STEP 1")
    location = location_of(await served.ask("POST", "/streams?time=%3Curn:at%3E", timed, SPARQL))
    date_time = Term('"{}"^^<http://www.w3.org/2001/XMLSchema#dateTime>')
    messages = [
        Message(
            [*numbered(number), Quad(iri("urn:s"), iri("urn:at"), Term(date_time.format(time)))]
        )
        for number, time in enumerate(
            ("2026-01-01T00:00:01Z", "2999-01-01T00:00:00Z", "2026-01-01T00:00:02Z"), 1
        )
    ]
    await served.publish([*messages, Message()])
    assert [line.split()[-2] for line in await until(served, location, 2)] == ['"x1"', '"x3"']

    async def has_left_out() -> bool:
        said = await described(served, location)
        left_out = {name: count for name, count in said.items() if name.startswith("dropped")}
        return bool(left_out == {"dropped": 2, "droppedAhead": 1, "droppedUntimed": 1})

    await until_true(has_left_out)


FIGURES = {
    *("running", "paused", "failed", "lag", "restarts", "memory_bytes", "largest_bytes"),
    *("evaluations", "evaluation_seconds", "slowest_seconds"),
}


@pytest.mark.slow
async def test_metrics_tell_how_queries_are_doing(
    served: StreamsServer, caplog: pytest.LogCaptureFixture
) -> None:
    location = location_of(await served.ask("POST", "/streams/a/query", ECHO, SPARQL, Slug="seen"))
    await served.publish([numbered(1)])
    await until(served, location, 1)
    await served.ask("DELETE", "/streams/a")

    async def has_failed() -> bool:
        lines = (await served.ask("GET", "/metrics")).body.decode().splitlines()
        figures = {
            line.split("{")[0]: float(line.split()[-1])
            for line in lines
            if "queries_" in line and "{" in line
        }
        assert {name.removeprefix("construct_messages_queries_") for name in figures} == FIGURES
        assert figures["construct_messages_queries_evaluations"] == 1
        return figures["construct_messages_queries_failed"] == 1

    await until_true(has_failed)
    assert "the query of seen is paused: NotFound" in caplog.text or "SourceError" in caplog.text
