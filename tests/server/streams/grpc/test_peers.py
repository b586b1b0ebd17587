"""Case 1.1.6 of the specification's tests: our server, and npm's @grpc/grpc-js as its client. pyjelly reads the frames,
and writes those that are published.
"""

from __future__ import annotations

import json

import pytest
from pyjelly.options import LookupPreset

from construct_messages import Message, Quad, blank, iri, literal
from construct_messages.logs import DecoderOptions
from construct_messages.logs.jelly.options import JellyOptions
from construct_messages.logs.jelly.service import FrameReader, find_metadata, read_metadata
from construct_messages.rdf.formats import N_QUADS
from tests.support.grpc.peer import asked, decoded, frames_of, grpc_peer, split, texts
from tests.support.grpc.serving import GrpcServer
from tests.support.http.streams import read
from tests.support.logs.kinds import isomorphic
from tests.support.logs.pyjelly import write_by_peer
from tests.support.places import shared_path
from tests.support.streams import numbered

pytestmark = pytest.mark.slow

NODE = Message([Quad(blank("b0"), iri("urn:p"), literal("é😀", language="fr"), iri("urn:g"))])
SENT = [numbered(1), Message(), NODE, NODE, numbered(2, 5000)]
SMALL = LookupPreset(max_names=8, max_prefixes=4, max_datatypes=2)
QUADS = {
    "physical_type": "PHYSICAL_STREAM_TYPE_QUADS",
    "generalized_statements": True,
    "rdf_star": True,
    "max_name_table_size": 128,
    "max_prefix_table_size": 16,
    "max_datatype_table_size": 16,
    "version": 2,
}


def case() -> list[Message]:
    """The messages of case 1.1.6."""
    cases = json.loads(
        (shared_path("suites/rdf-messages") / "cases.json").read_text(encoding="utf-8")
    )
    (given,) = (case for case in cases["cases"] if case["id"] == "1.1.6")
    return [read("\n".join(lines), N_QUADS) for lines in given["messages"]]


gzip = pytest.mark.parametrize("gzip", [False, True], ids=["plain", "gzip"])


@gzip
@pytest.mark.parametrize("options", [None, QUADS], ids=["no options", "options"])
async def test_subscribe(served: GrpcServer, gzip: bool, options: dict[str, object] | None) -> None:
    sent = [*case(), *SENT]
    await served.publish(*sent)
    request = {"topic": "a"} | ({} if options is None else {"requested_options": options})
    orders = {"rdf-stream-after": "0", "rdf-stream-follow": "false"}
    lines = await asked(
        "subscribe", address=served.address, request=request, metadata=orders, gzip=gzip
    )
    assert {"end": True} in lines, lines
    (headers,) = (line["headers"] for line in lines if "headers" in line)
    assert headers["rdf-stream-after"] == "0"
    frames = frames_of(lines)
    assert isomorphic(decoded(frames), sent), "one frame is one message"
    assert {read_options(frames[0]).version} == {1 if options is None else 2}
    numbers = [find_metadata(frame).get("rdf-stream-sequence") for frame in frames]
    assert numbers == [None if options is None else b"%d" % n for n in range(1, len(sent) + 1)]


def read_options(frame: bytes) -> JellyOptions:
    reader = FrameReader(DecoderOptions())
    reader.read(read_metadata(frame)[1])
    assert reader.options is not None
    return reader.options


@gzip
@pytest.mark.parametrize("key", [None, "k"], ids=["as they come", "by a key"])
async def test_publish(served: GrpcServer, gzip: bool, key: str | None) -> None:
    sent = [*case(), *[message for message in SENT if len(message)]]  # pyjelly drops empty ones
    frames = split(write_by_peer(sent, True, SMALL))
    metadata = {"rdf-stream-topic": "a"} | ({} if key is None else {"idempotency-key": key})
    for _ in range(2):
        lines = await asked(
            "publish", address=served.address, frames=texts(frames), metadata=metadata, gzip=gzip
        )
        assert {"reply": {}} in lines, lines
        assert lines[-1]["trailers"]["rdf-stream-last"] == str(len(served.elements()))
    expected = sent if key else sent * 2
    assert isomorphic([element.message for element in served.elements()], expected)


async def test_following(served: GrpcServer) -> None:
    """What is published later comes as well, until the subscriber leaves."""
    await served.publish(numbered(1))
    request = {"topic": "a"}
    async with grpc_peer("subscribe", address=served.address, request=request, count=2) as peer:
        headers = await peer.tells("headers")
        assert headers["rdf-stream-after"] == "1", "without metadata it begins with what is new"
        await served.publish(numbered(2))
        await peer.tells("frame")
        await served.publish(numbered(3))
        lines = await peer.rest()
    assert isomorphic(decoded(frames_of(lines)), [numbered(2), numbered(3)])
    assert 1 in [line.get("code") for line in lines], "CANCELLED, by itself"
