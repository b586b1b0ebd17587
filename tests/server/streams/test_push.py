"""Server-sent events and WebSocket: history, then live; resume; every format; what ends a connection."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import aiohttp
import pytest

from construct_messages import Message, Quad, iri, literal
from construct_messages.rdf.formats import FORMATS, N_QUADS, Format
from construct_messages.rdf.wire import SUBPROTOCOLS
from tests.support.http.streams import StreamsServer, events, read, serving_streams, take
from tests.support.logs.kinds import isomorphic
from tests.support.places import shared_path
from tests.support.streams import numbered
from tests.support.waiting import SECONDS, eventually

HOSTILE = Message(
    Quad(iri("urn:s"), iri("urn:p"), literal(text))
    for text in (
        "a\r\nb\rc\nd",
        "\u2028\u2029\x85",
        "data: x\n\nevent: y",
        "é😀",
        "",
        " ",
        "\ufeff",
    )
)


GRAPH = Message([Quad(iri("urn:s"), iri("urn:p"), iri("urn:o"), iri("urn:g"))])

TEXTS = [format for format in FORMATS if not format.binary]


@pytest.mark.parametrize("format", TEXTS, ids=lambda format: format.extension)
async def test_events(served: StreamsServer, format: Format) -> None:
    sent = [numbered(1), Message(), HOSTILE, numbered(4)]
    await served.publish(sent[:2])
    taking = asyncio.create_task(
        take(served, f"/streams/a/events?after=0&format={format.extension}", 4)
    )
    await served.publish(sent[2:])
    taken = await taking
    assert [(event.type, event.id) for event in taken] == [
        ("rdf-message", str(n)) for n in (1, 2, 3, 4)
    ]
    assert [read(event.data, format) for event in taken] == sent


async def test_the_headers_of_events(served: StreamsServer) -> None:
    """Case 1.1.1: the header that says what events hold."""
    for name, type in (
        ("ndjson", "application/ld+json"),
        ("ttl", "text/turtle"),
        ("nq", "application/n-quads"),
    ):
        answer = await served.ask("HEAD", f"/streams/a/events?format={name}")
        assert (answer.headers["Content-Type"], answer.headers["RDF-Message-Content-Type"]) == (
            "text/event-stream",
            type,
        )


async def test_a_binary_format_has_no_events(served: StreamsServer) -> None:
    """Case 1.1.7."""
    answer = await served.ask("GET", "/streams/a/events?format=jelly")
    assert (answer.status, "WebSocket" in answer.json["hint"]) == (406, True)


@pytest.mark.parametrize(
    ("query", "header", "expected"),
    [
        ("after=3", None, [4, 5]),
        ("last=1", None, [5]),
        ("", "2", [3, 4, 5]),
        ("after=0", "4", [5]),
        ("", None, []),
    ],
)
async def test_where_events_begin(
    served: StreamsServer, query: str, header: str | None, expected: list[int]
) -> None:
    """`Last-Event-ID` wins, as a client that comes back sends it beside its URL; without a wish only new ones come."""
    await served.publish([numbered(number) for number in range(1, 6)])
    headers = {} if header is None else {"Last_Event_ID": header}
    taking = asyncio.create_task(
        take(served, f"/streams/a/events?{query}", len(expected) + 1, **headers)
    )
    await eventually(lambda: served.followers() == 1)
    await served.publish([numbered(6)])
    assert [int(event.id) for event in await taking] == [*expected, 6]


@pytest.mark.parametrize(
    ("query", "status"), [("after=9", 404), ("after=x", 400), ("after=0", 410), ("format=x", 400)]
)
async def test_refused_followers(served: StreamsServer, query: str, status: int) -> None:
    await served.ask("PUT", "/streams/a", b'{"retainedElements": 1}', "application/json")
    await served.publish([numbered(1), numbered(2)])
    assert (await served.ask("GET", f"/streams/a/events?{query}")).status == status
    assert (await served.ask("GET", "/streams/none/events")).status == 404
    if "format" not in query:
        with pytest.raises(aiohttp.WSServerHandshakeError) as raised:
            await served.client.ws_connect(f"{served.url}/streams/a/socket?{query}")
        assert raised.value.status == status


async def test_silence_behind_an_element_is_broken_too(tmp_path: Path) -> None:
    async with serving_streams(tmp_path / "streams.db", heartbeat_seconds=0.05) as server:
        await server.ask("PUT", "/streams/a")
        async with server.client.get(f"{server.url}/streams/a/events") as response:
            for number in (1, 2):
                await server.publish([numbered(number)])
                while await response.content.readline() != b"id: %d\n" % number:
                    pass
                while await response.content.readline() != b": still here\n":
                    pass


async def test_silence_is_broken_by_comments(tmp_path: Path) -> None:
    async with serving_streams(tmp_path / "streams.db", heartbeat_seconds=0.05) as server:
        await server.ask("PUT", "/streams/a")
        async with server.client.get(f"{server.url}/streams/a/events") as response:
            lines = [await response.content.readline() for _ in range(6)]
    assert lines[0].startswith(b"retry: ")
    assert [line for line in lines[2:] if line != b"\n"] == [b": still here\n"] * 2


@pytest.mark.parametrize("protocol", SUBPROTOCOLS)
async def test_frames(served: StreamsServer, protocol: str) -> None:
    """Case 1.1.2 with every format: one frame is one message."""
    sent = [numbered(1), Message(), HOSTILE, numbered(4)]
    await served.publish(sent[:2])
    url = f"{served.url}/streams/a/socket?after=0"
    async with served.client.ws_connect(url, protocols=("rdfm.unknown", protocol)) as socket:
        assert socket.protocol == protocol
        await served.publish(sent[2:])
        frames = [await socket.receive() for _ in sent]
    expected = aiohttp.WSMsgType.BINARY if protocol == "rdfm.jelly" else aiohttp.WSMsgType.TEXT
    assert {frame.type for frame in frames} == {expected}
    assert [read(frame.data, SUBPROTOCOLS[protocol]) for frame in frames] == sent


SIZES = (125, 126, 127, 65535, 65536, 65537, 200_000)


async def test_frames_of_each_size(served: StreamsServer) -> None:
    """RFC 6455, section 5.2: the size of a frame is written in one of three ways; many frames are written at once."""
    rest = len(numbered(0, size=0).lines)
    sent = [numbered(0, size=size - rest) for size in SIZES if size > rest] + [numbered(0)] * 500
    await served.publish(sent)
    async with served.client.ws_connect(f"{served.url}/streams/a/socket?after=0") as socket:
        assert [read((await socket.receive()).data, N_QUADS) for _ in sent] == sent


async def test_no_compression_is_agreed_on(served: StreamsServer) -> None:
    """Frames are made once for all followers."""
    async with served.client.ws_connect(
        f"{served.url}/streams/a/socket?after=0", compress=15
    ) as socket:
        assert socket.compress == 0
        await served.publish([numbered(1)])
        assert read((await socket.receive()).data, N_QUADS) == numbered(1)


async def test_a_follower_that_reads_nothing_for_a_while(served: StreamsServer) -> None:
    """The others go on, and it gets all when it reads."""
    big = [numbered(number, size=50_000) for number in range(1, 101)]
    url = f"{served.url}/streams/a"
    socket = await served.client.ws_connect(f"{url}/socket?after=0")
    response = await served.client.get(f"{url}/events?after=0")
    others = asyncio.create_task(take(served, "/streams/a/events?after=0", len(big)))
    for start in range(0, len(big), 10):
        await served.publish(big[start : start + 10])
    assert [event.id for event in await others] == [str(number) for number in range(1, 101)]
    assert [read((await socket.receive()).data, N_QUADS) for _ in big] == big
    late = events(response)
    assert [read((await anext(late)).data, N_QUADS) for _ in big] == big
    response.close()
    await socket.close()


async def test_the_case_of_the_specification(served: StreamsServer) -> None:
    """Case 1.1.2 as given: its request header, the answer to it, its frames as they come out."""
    cases = json.loads(
        (shared_path("suites/rdf-messages") / "cases.json").read_text(encoding="utf-8")
    )
    case = next(case for case in cases["cases"] if case["id"] == "1.1.2")
    offered = case["request_headers"]["Sec-WebSocket-Protocol"].split(", ")
    for frame in case["frames"]:
        assert (
            await served.ask("POST", "/streams/a/input", frame.encode(), "application/n-triples")
        ).status == 201
    async with served.client.ws_connect(
        f"{served.url}/streams/a/socket?after=0", protocols=offered
    ) as socket:
        assert socket.protocol in offered
        format = SUBPROTOCOLS[socket.protocol or ""]
        came = [read((await socket.receive()).data, format) for _ in case["frames"]]
    wanted = [read("\n".join(lines), N_QUADS) for lines in case["messages"]]
    assert isomorphic(came, wanted)
    labels = {quad.subject for message in came for quad in message}
    assert len(labels) == 2, "the same label in two frames is two nodes"
    only = case["response_headers"]["Sec-WebSocket-Protocol"]
    async with served.client.ws_connect(
        f"{served.url}/streams/a/socket", protocols=(only,)
    ) as socket:
        assert socket.protocol == only


async def test_a_client_without_subprotocols_gets_n_quads(served: StreamsServer) -> None:
    await served.publish([numbered(1)])
    async with served.client.ws_connect(f"{served.url}/streams/a/socket?after=0") as socket:
        assert read((await socket.receive()).data, N_QUADS) == numbered(1)
    refused = await served.ask("GET", "/streams/a/socket")
    assert (refused.status, "ws:" in refused.json["hint"]) == (426, True)


async def test_a_format_that_cannot_carry_a_message_ends_the_socket(served: StreamsServer) -> None:
    await served.publish([numbered(1), GRAPH, numbered(3)])
    url = f"{served.url}/streams/a/socket?after=0"
    async with served.client.ws_connect(url, protocols=("rdfm.turtle",)) as socket:
        assert read((await socket.receive()).data, SUBPROTOCOLS["rdfm.turtle"]) == numbered(1)
        closed = await socket.receive()
        assert (closed.data, "named graph" in (closed.extra or "")) == (4422, True)


async def test_a_format_that_cannot_carry_a_message_ends_the_events(served: StreamsServer) -> None:
    """An event says so behind those that can be sent; who comes back is refused, and stays away."""
    await served.publish([numbered(1), GRAPH, numbered(3)])
    first, last = await take(served, "/streams/a/events?after=0&format=ttl", 3)
    assert (first.id, read(first.data, SUBPROTOCOLS["rdfm.turtle"])) == ("1", numbered(1))
    assert (last.type, "named graph" in last.data, "application/trig" in last.data) == (
        "error",
        True,
        True,
    )
    for headers in ({}, {"Last_Event_ID": "1"}):
        query = "format=ttl" if headers else "format=ttl&after=1"
        refused = await served.ask("GET", f"/streams/a/events?{query}", **headers)
        assert (refused.status, "named graph" in refused.json["detail"]) == (406, True)
    (third,) = await take(served, "/streams/a/events?format=ttl&after=2", 1)
    assert third.id == "3"


async def test_a_fault_of_the_server_ends_the_socket(
    served: StreamsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bytes:
        raise KeyError("x")

    monkeypatch.setattr("construct_messages.server.streams.documents.ElementDocuments.encode", fail)
    await served.publish([numbered(1)])
    async with served.client.ws_connect(f"{served.url}/streams/a/socket?after=0") as socket:
        closed = await socket.receive()
        assert (closed.data, closed.extra) == (1011, "the server failed")


async def test_what_followers_say_is_refused(served: StreamsServer) -> None:
    async with served.client.ws_connect(f"{served.url}/streams/a/socket") as socket:
        await socket.send_str("<urn:s> <urn:p> <urn:o> .")
        closed = await socket.receive()
        assert (closed.data, closed.extra) == (1003, "publish to the input of the stream")
    assert (await served.ask("GET", "/streams/a")).json["lastSequence"] == 0


async def test_deleting_a_stream_ends_its_followers(served: StreamsServer) -> None:
    async with served.client.ws_connect(f"{served.url}/streams/a/socket") as socket:
        await served.ask("DELETE", "/streams/a")
        assert (await socket.receive()).data == 4404


async def test_the_end_of_the_server_is_a_proper_end(tmp_path: Path) -> None:
    """A follower sees a clean end, and resumes at the next server without a gap."""
    async with serving_streams(tmp_path / "streams.db", shutdown_seconds=SECONDS) as server:
        await server.ask("PUT", "/streams/a")
        await server.publish([numbered(1), numbered(2)])
        response = await server.client.get(f"{server.url}/streams/a/events?after=0")
        coming = events(response)
        taken = [await anext(coming) for _ in range(2)]
        socket = await server.client.ws_connect(f"{server.url}/streams/a/socket?after=1")
        assert (await socket.receive()).type == aiohttp.WSMsgType.TEXT
        going = asyncio.create_task(socket.receive())
        stopping = asyncio.create_task(server.served.stop())
        taken += [event async for event in coming]
        assert [event.id for event in taken] == ["1", "2"]
        closed = await going
        assert (closed.data, closed.extra) == (1001, "the server stops")
        await stopping
    async with serving_streams(tmp_path / "streams.db") as server:
        await server.publish([numbered(3)])
        (event,) = await take(server, "/streams/a/events", 1, Last_Event_ID=taken[-1].id)
        assert read(event.data, N_QUADS) == numbered(3)


async def test_the_number_of_followers_is_bounded(tmp_path: Path) -> None:
    async with serving_streams(tmp_path / "streams.db", followers=2) as server:
        await server.ask("PUT", "/streams/a")
        first = await server.client.get(f"{server.url}/streams/a/events")
        second = await server.client.ws_connect(f"{server.url}/streams/a/socket")
        refused = await server.ask("GET", "/streams/a/events")
        assert (refused.status, "Retry-After" in refused.headers) == (503, True)
        first.close()
        await second.close()
        await eventually(lambda: server.followers() == 0)
        third = await server.client.get(f"{server.url}/streams/a/events")
        assert third.status == 200
        third.close()


@pytest.mark.slow
async def test_many_followers(served: StreamsServer) -> None:
    """Fifty of each kind, from different places, while elements come: each gets all, in order."""
    total = 200
    await served.publish([numbered(number) for number in range(1, 101)])

    async def by_events(after: int) -> list[int]:
        taken = await take(served, f"/streams/a/events?after={after}", total - after)
        return [int(event.id) for event in taken]

    async def by_socket(after: int) -> list[Message]:
        url = f"{served.url}/streams/a/socket?after={after}"
        async with served.client.ws_connect(url, protocols=("rdfm.n-quads",)) as socket:
            return [read((await socket.receive()).data, N_QUADS) for _ in range(total - after)]

    async def publish() -> None:
        for number in range(101, total + 1):
            await served.publish([numbered(number)])

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as client:
        served.client, own = client, served.client
        starts = range(0, 100, 2)
        results = await asyncio.gather(publish(), *map(by_events, starts), *map(by_socket, starts))
        served.client = own
    for start, taken in zip(starts, results[1:51], strict=True):
        assert taken == list(range(start + 1, total + 1))
    for start, taken in zip(starts, results[51:], strict=True):
        assert taken == [numbered(number) for number in range(start + 1, total + 1)]
