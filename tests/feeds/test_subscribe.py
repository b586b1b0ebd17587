"""Subscriptions over real connections: where they begin, what cuts them, what ends them."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from construct_messages import Message, blank, iri, literal
from construct_messages.errors import (
    ConstructMessagesError,
    LimitExceeded,
    LogError,
    SourceError,
    UsageError,
)
from construct_messages.feeds import Subscription, subscribe
from construct_messages.rdf.message import Quad
from construct_messages.streams.element import Element
from tests.support.http.feeds import answering, first, numbers
from tests.support.http.relay import relay
from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.logs.kinds import isomorphic
from tests.support.streams import numbered
from tests.support.waiting import eventually

VIAS = ["sse", "websocket", "pull"]
FAST = {"retries": 20, "poll_seconds": 0.01}


@pytest.mark.parametrize("via", VIAS)
async def test_history_and_then_what_comes(served: StreamsServer, via: Any) -> None:
    sent = [
        numbered(1),
        Message(),
        Message([Quad(blank("b"), iri("urn:p"), literal("\r\n\u2028é😀"), iri("urn:g"))]),
    ]
    await served.publish(sent[:2])
    url = f"{served.url}/streams/a"
    taking = asyncio.create_task(first(subscribe(url, after=0, via=via, **FAST), 4))
    await served.publish([sent[2], numbered(4)])
    taken = await taking
    assert numbers(taken) == [1, 2, 3, 4]
    assert isomorphic([element.message for element in taken], [*sent, numbered(4)])
    assert {element.stream for element in taken} == {url}
    assert all(abs(element.time - datetime.now(UTC)) < timedelta(hours=1) for element in taken)


@pytest.mark.slow
@pytest.mark.parametrize("via", VIAS)
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"after": 3}, [4, 5, 6]),
        ({"last": 2}, [4, 5, 6]),
        ({"last": 9}, [1, 2, 3, 4, 5, 6]),
        ({}, [6]),
        ({"last": 0}, [6]),
    ],
    ids=str,
)
async def test_where_a_follower_begins(
    served: StreamsServer, via: Any, where: dict[str, Any], expected: list[int]
) -> None:
    await served.publish([numbered(number) for number in range(1, 6)])
    got: list[int] = []

    async def follow() -> None:
        async with aclosing(
            subscribe(f"{served.url}/streams/a", via=via, **where, **FAST)
        ) as elements:
            async for element in elements:
                got.append(element.sequence)
                if element.sequence == 6:
                    return

    following = asyncio.create_task(follow())
    if via != "pull":
        await eventually(lambda: served.followers() == 1)
    else:
        await eventually(lambda: "pull" in served.served.request_log.getvalue() or following.done())
    await served.publish([numbered(6)])
    await following
    assert got == expected


@pytest.mark.parametrize("via", VIAS)
async def test_since(served: StreamsServer, via: Any) -> None:
    await served.publish([numbered(1), numbered(2)])
    element = await served.ask("GET", "/streams/a/output?after=1", Accept="application/ld+json")
    time = datetime.fromisoformat(element.json["@graph"][0]["prov:generatedAtTime"]["@value"])
    await served.publish([numbered(3)])
    url = f"{served.url}/streams/a"
    (one,) = await first(subscribe(url, since=time + timedelta(microseconds=1), via=via, **FAST), 1)
    assert (one.sequence, one.message) == (3, numbered(3))


@pytest.mark.parametrize(
    ("where", "expected"),
    [({}, [1, 2, 3]), ({"last": 2}, [2, 3]), ({"after": 2}, [3]), ({"after": 3}, [])],
    ids=str,
)
async def test_what_is_there(
    served: StreamsServer, where: dict[str, Any], expected: list[int]
) -> None:
    await served.publish([numbered(number) for number in range(1, 4)])
    for url in (f"{served.url}/streams/a", f"{served.url}/streams/a/output"):
        assert [each.sequence async for each in subscribe(url, follow=False, **where)] == expected


@pytest.mark.parametrize("endpoint", ["", "/events", "/socket", "/output", "/inbox"])
async def test_urls(served: StreamsServer, endpoint: str) -> None:
    await served.publish([numbered(1), numbered(2)])
    taken = await first(subscribe(f"{served.url}/streams/a{endpoint}", after=0, **FAST), 2)
    assert [(each.sequence, each.message) for each in taken] == [(1, numbered(1)), (2, numbered(2))]


async def test_a_socket_by_its_own_url(served: StreamsServer) -> None:
    await served.publish([numbered(1)])
    url = f"ws{served.url.removeprefix('http')}/streams/a/socket"
    assert numbers(await first(subscribe(url, after=0), 1)) == [1]
    with pytest.raises(UsageError, match="number of its elements"):
        await first(subscribe(url), 1)


# --- cut and resumed --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("via", "seed"), [*product(VIAS, range(3)), ("ldes", 0)])
async def test_connections_that_are_cut(served: StreamsServer, via: Any, seed: int) -> None:
    """Anywhere: in a header, an event, a frame, a line. Nothing is lost, and nothing comes twice."""
    await served.publish([numbered(number) for number in range(1, 101)])
    random = Random(seed)
    cuts = (
        2 if via == "ldes" else 6
    )  # each is followed by a longer pause, unless a message came between
    async with relay([random.randrange(1, 8000) for _ in range(cuts)]) as between:
        between.target = served.url
        taking = asyncio.create_task(
            first(subscribe(f"{between.url}/streams/a", after=0, via=via, **FAST), 200)
        )
        for number in range(101, 201):
            await served.publish([numbered(number)])
        taken = await taking
    assert [(each.sequence, each.message) for each in taken] == [
        (n, numbered(n)) for n in range(1, 201)
    ]


@pytest.mark.parametrize("via", [*VIAS, "ldes"])
@pytest.mark.slow
async def test_servers_that_stop_and_start(
    tmp_path: Path, via: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("construct_messages.server.http.sending._RETRY_MILLISECONDS", 1)
    got: list[Element] = []

    async def follow(elements: Subscription) -> None:
        async with aclosing(elements):
            async for element in elements:
                got.append(element)

    async with relay() as between:
        following: asyncio.Task[None] | None = None
        for run in range(3):
            async with serving_streams(tmp_path / "streams.db") as server:
                between.target = server.url
                if following is None:
                    await server.ask("PUT", "/streams/a")
                    await server.publish([numbered(1)])
                    elements = subscribe(f"{between.url}/streams/a", via=via, **FAST)
                    await elements.start()
                    following = asyncio.create_task(follow(elements))
                start = 2 + 10 * run
                await server.publish([numbered(number) for number in range(start, start + 5)])
                await eventually(lambda start=start: got and got[-1].sequence >= start)
                await server.publish([numbered(number) for number in range(start + 5, start + 10)])
            between.target = None
        assert following is not None
        async with serving_streams(tmp_path / "streams.db") as server:
            between.target = server.url
            await eventually(lambda: len(got) == 30)
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
    assert [(each.sequence, each.message) for each in got] == [
        (n, numbered(n)) for n in range(2, 32)
    ]


# --- what ends a subscription -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("via", VIAS)
async def test_statuses(served: StreamsServer, via: Any) -> None:
    await served.ask("PUT", "/streams/a", b'{"retainedElements": 1}', "application/json")
    await served.publish([numbered(1), numbered(2)])
    for path, after, status in (("none", 0, 404), ("a", 0, 410)):
        with pytest.raises(SourceError) as raised:
            await first(subscribe(f"{served.url}/streams/{path}", after=after, via=via, **FAST), 1)
        assert raised.value.response_status == status


@pytest.mark.parametrize("via", VIAS)
async def test_a_stream_that_is_deleted(served: StreamsServer, via: Any) -> None:
    await served.publish([numbered(1)])
    elements = subscribe(f"{served.url}/streams/a", after=0, via=via, **FAST)
    assert (await anext(elements)).sequence == 1
    await served.ask("DELETE", "/streams/a")
    with pytest.raises(SourceError) as raised:
        await anext(elements)
    assert raised.value.response_status == 404


@pytest.mark.parametrize("via", VIAS)
@pytest.mark.parametrize("size", [1100, 100_000])
async def test_messages_that_are_too_large(served: StreamsServer, via: Any, size: int) -> None:
    await served.publish([numbered(1), numbered(2, size=size)])
    elements = subscribe(f"{served.url}/streams/a", after=0, via=via, message_bytes=1000, **FAST)
    assert (await anext(elements)).sequence == 1
    with pytest.raises(
        (LimitExceeded, SourceError), match=r"more than|larger|too large|longer|1009"
    ):
        await anext(elements)


async def test_nobody_there() -> None:
    async with relay() as nowhere:
        with pytest.raises(SourceError) as raised:
            await first(subscribe(f"{nowhere.url}/streams/a", retries=1), 1)
        assert raised.value.transient
        assert nowhere.connections >= 2, "it was tried again"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"after": 1, "last": 1}, "do not go together"),
        ({"after": -1}, "less than 0"),
        ({"via": "carrier pigeon"}, "no transport"),
        ({"follow": False, "via": "sse"}, "follows a stream"),
        ({"since": datetime(2026, 1, 1)}, "no time zone"),
    ],
)
def test_arguments(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        subscribe("http://127.0.0.1/", **arguments)


# --- other servers ----------------------------------------------------------------------------------------------------


EVENTS = {"Content-Type": "text/event-stream", "RDF-Message-Content-Type": "application/n-quads"}


@pytest.mark.parametrize(
    ("headers", "body", "error", "said"),
    [
        ({"RDF-Message-Content-Type": ""}, b"", SourceError, "which is not read"),
        ({"RDF-Message-Content-Type": "text/html"}, b"", SourceError, "which is not read"),
        ({"Content-Type": "text/html"}, b"<html>", SourceError, "describes no stream"),
        ({"Content-Type": "application/ld+json"}, b"{", SourceError, "describes no stream"),
        (
            {"Content-Type": "application/ld+json"},
            b'{"push": "http://example.org/"}',
            SourceError,
            "another origin",
        ),
        (
            {"Content-Type": "application/ld+json"},
            b'{"push": "file:///etc/passwd"}',
            UsageError,
            "malformed",
        ),
        ({}, b"event: rdf-message\nid: 7\ndata: <urn:s>\n\n", LogError, "message 7: "),
        ({}, b"event: rdf-message\nid: 7\ndata: \xff\n\n", LogError, "message 7: "),
        (
            {},
            b'event: rdf-message\ndata: VERSION "1.2-messages"\ndata: MESSAGE\ndata: MESSAGE\n\n',
            LogError,
            "2 messages",
        ),
        ({}, b"data: " + b"x" * 9000, LimitExceeded, "an event has more"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_hostile_servers(
    headers: dict[str, str], body: bytes, error: type[ConstructMessagesError], said: str
) -> None:
    async with answering(EVENTS | headers, body) as (url, _):
        with pytest.raises(error, match=said):
            await first(subscribe(url, message_bytes=1000, retries=0), 1)


async def test_events_that_say_nothing_of_their_format() -> None:
    async with answering({"Content-Type": "text/event-stream"}, b"") as (url, _):
        with pytest.raises(SourceError, match="RDF-Message-Content-Type is missing"):
            await first(subscribe(url), 1)


async def test_only_messages_are_messages() -> None:
    body = b"event: other\nid: 1\ndata: x\n\ndata: y\n\nevent: rdf-message\nid: 5\ndata:\n\n"
    async with answering(EVENTS, body) as (url, requests):
        elements = subscribe(url)
        element = await anext(elements)
        assert (element.sequence, element.message) == (5, Message())
        waiting = asyncio.ensure_future(anext(elements))
        await eventually(lambda: len(requests) > 3)
        assert requests[-1].headers["Last-Event-ID"] == "5", "and what came is not given again"
        assert not waiting.done()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def test_events_of_other_servers() -> None:
    """Ids stay, repeat, and have no order; events have the default type (WHATWG HTML, section 9.2.6)."""
    document = "data: <urn:s> <urn:p> {} .\n\n"
    ids = ("9", "4", "", "7", "x y", "x y")
    body = "\ufeff: hello\nretry: 100\n\nevent: ping\ndata: no message\n\n" + "".join(
        (f"id: {id}\n" if id else "") + document.format(number) for number, id in enumerate(ids)
    )
    headers = {"Content-Type": "text/event-stream"}
    async with answering(headers, body.encode()) as (url, requests):
        options = {"media_type": "text/turtle"}
        taken = await first(subscribe(f"{url}/?topic=a", **options), len(ids))  # type: ignore[arg-type]
        assert [quad[2][1] for each in taken for quad in each.message.statements] == [*"012345"]
        assert numbers(taken) == sorted(set(numbers(taken)))
        async with aclosing(subscribe(f"{url}/?topic=a", **options)) as elements:  # type: ignore[arg-type]
            for _ in range(len(ids) + 1):
                await anext(elements)
        assert requests[-1].headers["Last-Event-ID"] == "x y"
        assert requests[-1].path_qs == "/?topic=a"


async def test_an_id_without_data_is_resumed_after() -> None:
    body = b"id: a\ndata: <urn:s> <urn:p> 1 .\n\nid: b\n\n"
    async with answering({"Content-Type": "text/event-stream"}, body) as (url, requests):
        async with aclosing(subscribe(url, media_type="text/turtle")) as elements:
            await anext(elements)
            await anext(elements)
        assert requests[-1].headers["Last-Event-ID"] == "b"


async def test_a_server_that_says_why_no_more_can_come() -> None:
    """What came before is given, and nobody comes back for more: the next answer would be the same."""
    body = b"event: rdf-message\nid: 5\ndata:\n\nevent: error\ndata: no named graphs:\ndata: ask for\x1b[1m TriG\n\n"
    async with answering(EVENTS, body) as (url, requests):
        elements = subscribe(url, retries=5)
        assert (await anext(elements)).sequence == 5
        asked = len(requests)
        with pytest.raises(SourceError, match="ended with an error: no named graphs:") as raised:
            await anext(elements)
        assert "ask for" in str(raised.value)
        assert "\x1b" not in str(raised.value), (
            "what a server says does not reach a terminal as it is"
        )
        assert len(requests) == asked


@pytest.mark.parametrize(
    "url",
    [
        "http://me:secret@127.0.0.1/",
        "ftp://127.0.0.1/",
        "streams.db",
        "http://[",
        "http://127.0.0.1:x/",
    ],
)
async def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(UsageError) as raised:
        await first(subscribe(url), 1)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "place", "words"),
    [
        ("http://127.0.0.1:9/streams/a", "dead.jsonl", "has none"),
        ("grpc://127.0.0.1:9/a", "mqtt://127.0.0.1:9/dead", "has none"),
        ("mqtt://127.0.0.1:9/a", "http://127.0.0.1:9/streams/dead", "cannot go to"),
        ("mqtt://127.0.0.1:9/a", "mqtt://127.0.0.1:9/a", "cannot go to"),
    ],
)
def test_places_of_no_dead_letters(url: str, place: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        subscribe(url, follow=True, dead_letters=place)
