"""Streams with shapes: what is published is validated before it is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from construct_messages import Message
from construct_messages.construct.shapes import ValidationReport, dead_letter, without_report
from construct_messages.feeds import publish, subscribe
from construct_messages.rdf.wire import Header
from construct_messages.server.config import BridgeSettings
from tests.support.conformance.shapes import PREFIXES, message
from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.waiting import SECONDS

GOOD, BAD = (f"<http://example.org/a> <http://example.org/p> {n} ." for n in (5, 1))
LOG = f"# @message\n{GOOD}\n# @message\n{BAD}\n".encode()
TURTLE, LOGGED = "text/turtle", "text/turtle; messages=rdfm"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[StreamsServer]:
    """A server whose stream `strict` refuses, and whose stream `sorted` has dead letters."""
    shapes = tmp_path / "shapes.ttl"
    shapes.write_text(
        f"{PREFIXES}ex:S sh:targetSubjectsOf ex:p ; sh:property [ sh:path ex:p ; sh:minInclusive 3 ] ."
    )
    files = (str(shapes),)
    settings: dict[str, Any] = {
        "strict": BridgeSettings(shapes=files),
        "sorted": BridgeSettings(shapes=files, invalid_to="letters"),
    }
    async with serving_streams(tmp_path / "streams.db", bridges=settings) as served:
        for name in ("strict", "sorted", "free"):
            assert (await served.ask("PUT", f"/streams/{name}")).status == 201
        yield served


async def there(server: StreamsServer, stream: str) -> list[Message]:
    url = f"{server.url}/streams/{stream}"
    return [element.message async for element in subscribe(url, after=0, follow=False)]


async def test_refused(server: StreamsServer) -> None:
    """With 422 and the report; of a log, all or none is stored."""
    assert (await server.ask("POST", "/streams/strict/input", GOOD.encode(), TURTLE)).status == 201
    refused = await server.ask("POST", "/streams/strict/input", BAD.encode(), TURTLE)
    assert refused.status == 422
    assert "does not conform" in refused.json["detail"]
    (result,) = refused.json["report"]["results"]
    assert result["constraint"] == "sh:minInclusive 3"
    refused = await server.ask("POST", "/streams/strict/input", LOG, LOGGED)
    assert (refused.status, refused.json["report"]["message"]) == (422, 2)
    assert len(await there(server, "strict")) == 1
    assert (await server.ask("POST", "/streams/free/input", BAD.encode(), TURTLE)).status == 201


async def test_dead_letters(server: StreamsServer) -> None:
    """Under a key, each is stored once; a body that is only checked is not stored at all."""
    checked = await server.ask("POST", "/streams/sorted/input?check", LOG, LOGGED)
    assert (checked.status, checked.headers[Header.INVALID]) == (200, "1")
    for _ in range(2):
        answer = await server.ask(
            "POST", "/streams/sorted/input", LOG, LOGGED, Idempotency_Key='"k"'
        )
        assert answer.status == 201
        assert (answer.json["elements"], answer.json["invalid"]) == (1, 1)
    assert await there(server, "sorted") == [message(GOOD)]
    (letter,) = await there(server, "letters")
    assert without_report(letter) == message(BAD)
    assert len(letter) > 5
    answer = await server.ask("POST", "/streams/sorted/input", BAD.encode(), TURTLE)
    assert (answer.status, answer.json) == (202, {"elements": 0, "invalid": 1})


async def test_dead_letters_of_several_streams(tmp_path: Path) -> None:
    """Their publishers may have the same keys."""
    (tmp_path / "shapes.ttl").write_text(
        f"{PREFIXES}ex:S sh:targetSubjectsOf ex:p ; sh:property [ sh:path ex:p ; sh:minInclusive 3 ] ."
    )
    shaped = BridgeSettings(shapes=(str(tmp_path / "shapes.ttl"),), invalid_to="letters")
    async with serving_streams(tmp_path / "s.db", bridges={"a": shaped, "b": shaped}) as server:
        for name in ("a", "b"):
            assert (await server.ask("PUT", f"/streams/{name}")).status == 201
            for _ in range(2):
                answer = await server.ask(
                    "POST",
                    f"/streams/{name}/input",
                    BAD.replace("org/a", f"org/{name}").encode(),
                    TURTLE,
                    Idempotency_Key='"k"',
                )
                assert answer.status == 202
        subjects = [without_report(letter).subjects() for letter in await there(server, "letters")]
        assert subjects == [["<http://example.org/a>"], ["<http://example.org/b>"]]


async def test_a_websocket(server: StreamsServer) -> None:
    async with server.client.ws_connect(
        f"{server.url}/streams/sorted/input", protocols=["rdfm.turtle"]
    ) as socket:
        for text in (BAD, GOOD):
            await socket.send_str(text)
        assert (await socket.receive_json()) == {"elements": 0, "invalid": 1}
        assert (await socket.receive_json())["elements"] == 1
    async with server.client.ws_connect(
        f"{server.url}/streams/strict/input", protocols=["rdfm.turtle"]
    ) as socket:
        await socket.send_str(BAD)
        closed = await socket.receive()
        assert "does not conform" in str(closed.extra)


async def test_a_stream_that_is_fed(server: StreamsServer, tmp_path: Path) -> None:
    shapes = (str(tmp_path / "shapes.ttl"),)
    url = f"{server.url}/streams/free"
    repaired = dead_letter(message(GOOD), ValidationReport(False, failure="as it was"))
    await publish([*(message(text) for text in (GOOD, BAD)), repaired], url)
    bridges = {
        "fed": BridgeSettings(source=url, shapes=shapes, invalid_to="letters"),
        "stopped": BridgeSettings(source=url, shapes=shapes),
    }
    async with serving_streams(tmp_path / "fed.db", bridges=bridges) as fed:
        async with asyncio.timeout(SECONDS):
            while (await fed.ask("GET", "/streams/fed")).json.get("lastSequence") != 2:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            while "does not conform" not in str((await fed.ask("GET", "/health/ready")).json):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert await there(fed, "fed") == [message(GOOD)] * 2
        assert [without_report(letter) for letter in await there(fed, "letters")] == [message(BAD)]
        assert await there(fed, "stopped") == []
