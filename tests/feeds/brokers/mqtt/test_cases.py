"""Case 1.1.4 of the specification as given, over Mosquitto, with its own programs as the other side."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from construct_messages import Message
from construct_messages.errors import LogError, SourceError
from construct_messages.feeds import Subscription, publish, subscribe
from construct_messages.logs import encoder_for
from construct_messages.rdf.formats import FORMATS, N_QUADS, RDFM, Format
from tests.support.engines.broker_logs import same
from tests.support.engines.brokers import Mosquitto
from tests.support.engines.servers import Missing, program
from tests.support.http.streams import read
from tests.support.places import absent, shared_path
from tests.support.streams import numbered
from tests.support.waiting import eventually


def case() -> tuple[dict[str, Any], list[Message]]:
    cases = json.loads((shared_path("suites/rdf-messages") / "cases.json").read_text())["cases"]
    given = next(case for case in cases if case["id"] == "1.1.4")
    return given, [read("\n".join(lines), N_QUADS) for lines in given["messages"]]


def mosquitto(name: str) -> str:
    try:
        return program(name, "apt-get install mosquitto-clients")
    except Missing as missing:
        absent(str(missing))


async def send(
    broker: Mosquitto, payload: bytes, content_type: str | None, *arguments: str
) -> None:
    """Publishes by `mosquitto_pub`."""
    command = [mosquitto("mosquitto_pub"), "-V", "5", "-p", str(broker.port), "-t", "rooms/a"]
    if content_type is not None:
        command += ["-D", "publish", "content-type", content_type]
    done = await asyncio.to_thread(
        subprocess.run,
        [*command, "-q", "1", "-s" if payload else "-n", *arguments],
        input=payload,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@asynccontextmanager
async def receiving(
    broker: Mosquitto, count: int
) -> AsyncIterator[asyncio.Future[list[list[str]]]]:
    """What `mosquitto_sub` prints of a number of messages: content type, user properties, retained, payload in hex."""
    process = await asyncio.create_subprocess_exec(
        mosquitto("mosquitto_sub"),
        *("-V", "5", "-p", str(broker.port), "-t", "rooms/a", "-q", "1", "-C", str(count)),
        *("-F", "message %C|%P|%r|%x"),
        stdout=asyncio.subprocess.PIPE,
    )
    await eventually(lambda: "1 rooms/a" in broker.output())

    async def rest() -> list[list[str]]:
        printed = (await process.communicate())[0].decode().splitlines()
        return [line[8:].split("|") for line in printed if line.startswith("message ")]

    task = asyncio.ensure_future(rest())
    try:
        yield task
    finally:
        if process.returncode is None:
            process.kill()
        await asyncio.wait([task])


async def taken(elements: Subscription, count: int) -> list[Message]:
    return [(await anext(elements)).message for _ in range(count)]


async def read_while(url: str, sending: Sequence[Any], count: int, **options: Any) -> list[Message]:
    """The messages that come to a reader while others are sent."""
    async with aclosing(subscribe(url, retries=0, **options)) as elements:
        await elements.start()
        for each in sending:
            await each
        return await asyncio.wait_for(taken(elements, count), 300)


@pytest.mark.engine
@pytest.mark.parametrize("media_type", ["application/n-quads", "application/trig"])
async def test_two_messages_in_one_record(broker: Mosquitto, media_type: str) -> None:
    """They were merged into one. Without the parameter, the delimiter is a comment."""
    payload = b'<urn:s> <urn:p> "x" .\n# @message\n<urn:s> <urn:p> "y" .\n'
    async with aclosing(subscribe(broker.url("rooms/a"), retries=0)) as elements:
        await elements.start()
        for each in (media_type, f"{media_type}; messages=rdfm"):
            await send(broker, payload, each)
        assert len((await anext(elements)).message) == 2
        with pytest.raises(LogError, match="message 2: the document holds 2 messages"):
            await anext(elements)


@pytest.mark.engine
async def test_as_given(broker: Mosquitto) -> None:
    given, expected = case()
    content_type = given["properties"]["Content Type"]
    sending = [send(broker, frame.encode(), content_type) for frame in given["frames"]]
    assert same(await read_while(broker.url("rooms/a"), sending, 2), expected)


@pytest.mark.engine
async def test_as_given_from_here(broker: Mosquitto) -> None:
    given, expected = case()
    content_type = given["properties"]["Content Type"]
    async with receiving(broker, 3) as received:
        await publish(
            [*expected, Message()], broker.url("rooms/a"), media_type=content_type, key="k"
        )
        lines = await asyncio.wait_for(received, 300)
    assert [line[0] for line in lines] == 3 * [content_type]
    for number, line in enumerate(lines, 1):
        assert f"Idempotency-Key:k-1-{number}" in line[1]
        assert "time:2" in line[1]
        assert line[2] == "0", "it is not retained"
    documents = [json.loads(bytes.fromhex(line[3])) for line in lines[:2]]
    assert [document["@id"] for document in documents] == [
        "http://example.org/s1",
        "http://example.org/s2",
    ]


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.extension)
async def test_every_format(broker: Mosquitto, format: Format) -> None:
    sent = [numbered(1), Message(), numbered(3)]
    sending = [publish(sent, broker.url("rooms/a"), media_type=format.document_type)]
    assert same(await read_while(broker.url("rooms/%2B"), sending, 3), sent)


@pytest.mark.engine
async def test_types_in_other_places(broker: Mosquitto) -> None:
    """A user property, as bridges from other brokers have it; the caller; and no bytes, which need none."""
    line = b"<urn:s> <urn:p> <urn:o> ."
    header = ("-D", "publish", "user-property", "RDF-Message-Content-Type", "text/turtle")
    url, expected = broker.url("rooms/a"), read(line.decode(), N_QUADS)
    assert same(await read_while(url, [send(broker, line, None, *header)], 1), [expected])
    sending = [send(broker, line, None), send(broker, b"", None)]
    read_ = await read_while(url, sending, 2, media_type="application/n-triples")
    assert same(read_, [expected, Message()])
    with pytest.raises(SourceError, match="record 1 names no media type"):
        await read_while(url, [send(broker, line, None)], 1)
    with pytest.raises(LogError, match="message 1"):
        await read_while(url, [send(broker, b"<urn:s>", "text/turtle")], 1)


@pytest.mark.engine
async def test_dead_letters(broker: Mosquitto, tmp_path: Path) -> None:
    place = tmp_path / "dead.jsonl"
    encoder = encoder_for(N_QUADS, RDFM)
    sending = [
        send(broker, b"<urn:s>", "text/turtle"),
        send(broker, encoder.encode_document(numbered(2)), "application/n-quads"),
    ]
    url = broker.url("rooms/a")
    assert same(await read_while(url, sending, 1, dead_letters=place), [numbered(2)])
    (letter,) = map(json.loads, place.read_text().splitlines())
    assert (letter["sequence"], letter["contentType"]) == (1, "text/turtle")
    async with aclosing(subscribe(broker.url("dead"), media_type="text/turtle")) as dead:
        await dead.start()
        sending = [send(broker, b"<urn:s>", "text/turtle"), send(broker, b"", None)]
        await read_while(url, sending, 1, dead_letters=broker.url("dead"))
        with pytest.raises(LogError):
            await anext(dead)
    # whoever writes them does not end the session of the reader
    sending = [send(broker, b"<urn:s>", "text/turtle"), send(broker, b"", None)]
    options = {"identifier": "reader"}
    read = await read_while(url, sending, 1, dead_letters=broker.url("dead"), options=options)
    assert same(read, [Message()])


@pytest.mark.engine
async def test_retained_messages(broker: Mosquitto) -> None:
    """They are the newest state of a topic, and have come before: only who asks gets them."""
    url, line = broker.url("rooms/a"), b'<urn:s> <urn:p> "1" .'
    await send(broker, line, "text/turtle", "-r")
    live = [publish([numbered(2)], url)]
    assert same(await read_while(url, live, 1), [numbered(2)])
    live = [publish([numbered(2)], url)]
    got = await read_while(url, live, 2, options={"retain_handling": "0"})
    assert same(got, [read(line.decode(), N_QUADS), numbered(2)])
    # an empty message that is not retained does not delete what is
    await publish([Message()], url)
    live = [publish([Message()], url)]
    got = await read_while(url, live, 2, options={"retain_handling": "0"})
    assert same(got, [read(line.decode(), N_QUADS), Message()])
    # of other programs, it does; followers get it as an empty message
    live = [send(broker, b"", "text/turtle", "-r")]
    assert same(await read_while(url, live, 1), [Message()])
    live = [publish([numbered(3)], url)]
    got = await read_while(url, live, 1, options={"retain_handling": "0"})
    assert same(got, [numbered(3)])
