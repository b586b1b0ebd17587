"""The options of messages as parameters of a request: their values, and the settings of the server beside them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from construct_messages.errors import ProtocolError
from construct_messages.rdf.options import Grouping
from construct_messages.server.config import Limits
from construct_messages.server.sparql.protocol import MessageParameters, ProtocolRequest
from tests.support.http.fault_server import FaultServer, response
from tests.support.http.serving import serving

CONSTRUCT = "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }"
LOG = {"query": CONSTRUCT, "messages": "rdfm", "format": "nq"}

VALUES: dict[str, tuple[list[tuple[str, str]], MessageParameters]] = {
    "none": ([], MessageParameters()),
    "all": (
        [
            ("group-by", "?a"),
            ("distinct", "true"),
            ("group-by", " $b"),
            ("max-messages", "0"),
            ("page-size", "1"),
            ("lenient", "true"),
        ],
        MessageParameters(Grouping(["a", "b"]), True, 0, 1, True),
    ),
    "switched off": (
        [("distinct", "false"), ("lenient", "false")],
        MessageParameters(lenient=False),
    ),
    "left out": ([("lenient", "skip")], MessageParameters(lenient="skip")),
    "of others": ([("Distinct", "x"), ("page_size", "x")], MessageParameters()),
}


@pytest.mark.parametrize("case", VALUES)
def test_values(case: str) -> None:
    parameters, expected = VALUES[case]
    request = ProtocolRequest("query", CONSTRUCT, parameters=tuple(parameters))
    assert request.message_options == expected


REFUSED: dict[str, str] = {
    "distinct=yes": "distinct=yes is neither true nor false",
    "distinct=": "distinct= is neither true nor false",
    "lenient=skip&lenient=true": "lenient has 2 values",
    "lenient=1": "lenient=1 is neither true nor false",
    "max-messages=-1": "max-messages=-1 is not a whole number of at least 0",
    "max-messages=٣": "max-messages=٣ is not a whole number of at least 0",
    "max-messages=1e3": "max-messages=1e3 is not a whole number of at least 0",
    "page-size=0": "page-size=0 is not a whole number of at least 1",
    f"page-size={'9' * 19}": "is not a whole number of at least 1",
    "page-size=1&page-size=1": "page-size has 2 values",
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    said = REFUSED[case]
    parameters = tuple(tuple(each.split("=")) for each in case.split("&"))
    with pytest.raises(ProtocolError) as refused:
        _ = ProtocolRequest("query", CONSTRUCT, parameters=parameters).message_options  # type: ignore[arg-type]
    assert (refused.value.status, said in refused.value.message) == (400, True)
    assert refused.value.hint


# --- over HTTP -------------------------------------------------------------------------------------------------------


def solutions(*pairs: tuple[str, str]) -> bytes:
    bindings = [
        {"s": {"type": "uri", "value": s}, "o": {"type": "uri", "value": o}} for s, o in pairs
    ]
    document = {"head": {"vars": ["s", "o"]}, "results": {"bindings": bindings}}
    return response(json.dumps(document).encode())


FOUR = solutions(("urn:1", "urn:a"), ("urn:2", "urn:b"), ("urn:1", "urn:a"), ("urn:1", "urn:c"))


@pytest.fixture
def upstream() -> Iterator[FaultServer]:
    with closing(FaultServer()) as server:
        yield server


@pytest_asyncio.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.mark.parametrize(
    ("parameters", "messages", "statements"),
    [
        ({}, 4, 4),
        ({"distinct": "true"}, 3, 3),
        ({"max-messages": "2"}, 2, 2),
        ({"max-messages": "9"}, 4, 4),
        ({"max-messages": "0"}, 0, 0),
        ({"group-by": "s", "max-messages": "1"}, 1, 2),
        ({"group-by": "s", "distinct": "true"}, 2, 3),
    ],
    ids=str,
)
async def test_logs(
    upstream: FaultServer,
    session: aiohttp.ClientSession,
    parameters: dict[str, str],
    messages: int,
    statements: int,
) -> None:
    upstream.play(FOUR)
    async with (
        serving(upstream.url) as server,
        session.post(server.sparql, data=LOG | parameters) as answer,
    ):
        log = await answer.read()
    assert (answer.status, log.count(b"# @message"), log.count(b" .\n")) == (
        200,
        messages,
        statements,
    )
    for asked in upstream.asked:
        assert {"distinct", "max-messages", "group-by"}.isdisjoint(asked.parameters)


async def test_events(upstream: FaultServer, session: aiohttp.ClientSession) -> None:
    upstream.play(FOUR)
    data = {"query": CONSTRUCT, "distinct": "true", "max-messages": "2"}
    async with (
        serving(upstream.url) as server,
        session.post(server.sparql, data=data, headers={"Accept": "text/event-stream"}) as answer,
    ):
        events = await answer.text()
    assert events.count("event: rdf-message") == 2
    assert events.endswith("event: end\nid: end\ndata: 2\n\n")


async def test_a_bad_value_is_refused_where_messages_are_asked_for(
    upstream: FaultServer, session: aiohttp.ClientSession
) -> None:
    upstream.play(FOUR)
    async with serving(upstream.url) as server:
        async with session.post(server.sparql, data=LOG | {"page-size": "many"}) as answer:
            problem = await answer.json()
        assert (answer.status, problem["detail"], upstream.asked) == (
            400,
            "page-size=many is not a whole number of at least 1",
            [],
        )
        plain = {"query": CONSTRUCT, "page-size": "many"}
        async with session.post(server.sparql, data=plain) as answer:
            assert answer.status == 200
    assert upstream.asked[0].parameters["page-size"] == ["many"]


@pytest.mark.parametrize(
    ("settings", "asked", "sent"),
    [({}, "50", 50), ({"page_size": 20}, "50", 20), ({"page_size": 20}, "10", 10)],
    ids=["no setting", "more than the setting", "less than the setting"],
)
async def test_pages_are_no_larger_than_the_setting(
    upstream: FaultServer,
    session: aiohttp.ClientSession,
    settings: dict[str, Any],
    asked: str,
    sent: int,
) -> None:
    upstream.play(solutions())
    async with (
        serving(upstream.url, **settings) as server,
        session.post(server.sparql, data=LOG | {"page-size": asked}) as answer,
    ):
        assert answer.status == 200
    (query,) = upstream.asked[0].parameters["query"]
    assert f"LIMIT {sent}" in query


@pytest.mark.parametrize(
    ("setting", "asked", "status"),
    [(False, None, 502), (False, "true", 200), (True, None, 200), (True, "false", 502)],
)
async def test_malformed_terms(
    upstream: FaultServer,
    session: aiohttp.ClientSession,
    setting: bool,
    asked: str | None,
    status: int,
) -> None:
    upstream.play(solutions(("urn:s", "http://example.org/100%")))
    parameters = {} if asked is None else {"lenient": asked}
    async with (
        serving(upstream.url, lenient=setting) as server,
        session.post(server.sparql, data=LOG | parameters) as answer,
    ):
        assert answer.status == status


@pytest.mark.parametrize(("asked", "count"), [("true", 2), ("skip", 1)])
async def test_solutions_with_malformed_terms(
    upstream: FaultServer, session: aiohttp.ClientSession, asked: str, count: int
) -> None:
    upstream.play(solutions(("urn:s", "http://example.org/100%"), ("urn:s", "urn:o")))
    async with (
        serving(upstream.url) as server,
        session.post(server.sparql, data=LOG | {"lenient": asked}) as answer,
    ):
        assert (await answer.text()).count(" .\n") == count


async def test_limits_of_the_settings_are_errors_whatever_is_asked_for(
    upstream: FaultServer, session: aiohttp.ClientSession
) -> None:
    upstream.play(FOUR)
    async with serving(upstream.url, limits=Limits(messages=2)) as server:
        seen = []
        for most in ("2", "3"):
            async with session.post(server.sparql, data=LOG | {"max-messages": most}) as answer:
                seen.append(answer.status)
    assert seen == [200, 413]
