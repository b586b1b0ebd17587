"""Case 1.1.5 of the specification as given, over a NATS server, and with messages of nats.js."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from nats.js.client import JetStreamContext

from construct_messages import Message
from construct_messages.errors import LogError, SourceError
from construct_messages.feeds import publish, subscribe
from construct_messages.logs import encoder_for
from construct_messages.rdf.formats import FORMATS, N_QUADS, RDFM, Format
from tests.support.engines.broker_logs import same
from tests.support.engines.brokers import NatsServer
from tests.support.engines.servers import NODE
from tests.support.http.streams import read
from tests.support.places import ROOT, absent, shared_path
from tests.support.streams import numbered

HEADERS = ("RDF-Message-Content-Type", "Content-Type", "content-type")


def case() -> tuple[dict[str, Any], list[Message]]:
    cases = json.loads((shared_path("suites/rdf-messages") / "cases.json").read_text())["cases"]
    given = next(case for case in cases if case["id"] == "1.1.5")
    return given, [read("\n".join(lines), N_QUADS) for lines in given["messages"]]


async def messages(url: str, **options: Any) -> list[Message]:
    return [element.message async for element in subscribe(url, follow=False, **options)]


async def test_as_given(server: NatsServer, streams: JetStreamContext) -> None:
    given, expected = case()
    await streams.add_stream(name="a", subjects=["a"])
    for frame in given["frames"]:
        await streams.publish("a", frame.encode(), headers=given["record_headers"])
    assert same(await messages(server.url("a")), expected)


async def test_as_given_from_here(server: NatsServer, streams: JetStreamContext) -> None:
    given, expected = case()
    media_type = given["record_headers"]["RDF-Message-Content-Type"]
    await publish(expected, server.url("a"), create=True, media_type=media_type)
    subscription = await streams.subscribe("a", ordered_consumer=True)
    for message in expected:
        record = await subscription.next_msg(timeout=60)
        assert record.headers is not None
        assert {record.headers[name] for name in HEADERS[:2]} == {media_type}
        document = record.data.decode()
        assert document.count("{") == 1, "one graph, as TriG"
        assert len(message) == 1
    assert same(await messages(server.url("a")), expected)


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.extension)
@pytest.mark.parametrize("header", HEADERS)
async def test_every_format(
    server: NatsServer, streams: JetStreamContext, format: Format, header: str
) -> None:
    sent = [numbered(1), Message(), numbered(3)]
    encoder = encoder_for(format, format.own or RDFM)
    await streams.add_stream(name="a", subjects=["a"])
    for message in sent:
        document = encoder.encode_document(message)
        await streams.publish("a", document, headers={header: format.document_type})
    await streams.publish("a", b"", headers={})  # no bytes need no type
    assert same(await messages(server.url("a")), [*sent, Message()])


@pytest.mark.parametrize("media_type", ["application/n-quads", "application/trig"])
async def test_two_messages_in_one_record(
    server: NatsServer, streams: JetStreamContext, media_type: str
) -> None:
    """They were merged into one. Without the parameter, the delimiter is a comment."""
    await streams.add_stream(name="a", subjects=["a"])
    value = b'<urn:s> <urn:p> "x" .\n# @message\n<urn:s> <urn:p> "y" .\n'
    for each in (media_type, f"{media_type}; messages=rdfm"):
        await streams.publish("a", value, headers={"Content-Type": each})
    async with aclosing(subscribe(server.url("a"), follow=False)) as elements:
        assert len((await anext(elements)).message) == 2
        with pytest.raises(LogError, match="message 2: the document holds 2 messages"):
            await anext(elements)


async def test_records_that_name_no_type(
    server: NatsServer, streams: JetStreamContext, tmp_path: Path
) -> None:
    await streams.add_stream(name="a", subjects=["a"])
    await streams.publish("a", b"<urn:s> <urn:p> <urn:o> .")
    await streams.publish("a", b"<urn:s> <urn:p>", headers={"Content-Type": "text/turtle"})
    await streams.publish("a", b"<urn:s> <urn:p> <urn:o2> .")
    with pytest.raises(SourceError, match="record 1 names no media type"):
        await messages(server.url("a"))
    with pytest.raises(LogError, match="message 2"):
        await messages(server.url("a"), media_type="application/n-triples")
    place = tmp_path / "dead.jsonl"
    read = await messages(server.url("a"), media_type="text/turtle", dead_letters=place)
    assert [len(message) for message in read] == [1, 1]
    (letter,) = map(json.loads, place.read_text().splitlines())
    assert letter["sequence"] == 2
    # another stream as the place
    await streams.add_stream(name="dead", subjects=["dead"])
    await messages(server.url("a"), media_type="text/turtle", dead_letters=server.url("dead"))
    dead = await streams.get_last_msg("dead", "dead")
    assert dead.data == b"<urn:s> <urn:p>"
    assert dead.headers is not None
    assert dead.headers["Content-Type"] == "text/turtle"


def node(server: NatsServer, *arguments: str, input: str = "") -> str:
    folder = os.environ.get(NODE)
    if folder is None or not (Path(folder) / "node_modules" / "nats").is_dir():
        absent(
            f"npm's nats is not installed: npm install --prefix FOLDER nats@2, and {NODE}=FOLDER"
        )
    program = ROOT / "tests" / "support" / "engines" / "nats.cjs"
    done = subprocess.run(
        ["node", program, str(server.port), *arguments],
        env={**os.environ, "NODE_PATH": f"{folder}/node_modules"},
        input=input,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.engine
@pytest.mark.slow
async def test_messages_of_another_client(server: NatsServer, streams: JetStreamContext) -> None:
    given, expected = case()
    await streams.add_stream(name="a", subjects=["a"])
    sent = [[given["record_headers"], frame] for frame in given["frames"]]
    sent += [[{"content-type": "application/n-quads"}, ""]]
    node(server, "a", "publish", input=json.dumps(sent))
    assert same(await messages(server.url("a")), [*expected, Message()])


@pytest.mark.engine
@pytest.mark.slow
async def test_messages_for_another_client(server: NatsServer) -> None:
    _, expected = case()
    sent = [*expected, Message()]
    await publish(sent, server.url("a"), create=True, media_type="application/trig", key="k")
    taken = json.loads(node(server, "a", "read", "3"))
    assert [headers["RDF-Message-Content-Type"] for headers, _ in taken] == 3 * ["application/trig"]
    assert [headers["Nats-Msg-Id"] for headers, _ in taken] == ["k-1-1", "k-1-2", "k-1-3"]
    assert taken[2][1] == ""
