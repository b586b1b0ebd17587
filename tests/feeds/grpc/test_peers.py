"""Case 1.1.6 of the specification's tests: npm's @grpc/grpc-js as the server of our client. pyjelly writes the frames
that come, and reads those that are sent. Such a server has no sequences.
"""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from pyjelly.jelly import RdfStreamOptions
from pyjelly.options import LookupPreset

from construct_messages import Message, Quad, blank, iri, literal
from construct_messages.errors import SourceError, UsageError
from construct_messages.feeds import publish, subscribe
from construct_messages.rdf.formats import N_QUADS
from tests.support.grpc.peer import GrpcPeer, decoded, grpc_peer, split, texts
from tests.support.http.streams import read
from tests.support.logs.kinds import isomorphic
from tests.support.logs.pyjelly import write_by_peer
from tests.support.places import shared_path
from tests.support.streams import numbered

pytestmark = pytest.mark.slow

NODE = Message([Quad(blank("b0"), iri("urn:p"), literal("é😀", language="fr"), iri("urn:g"))])
UNAVAILABLE, NOT_FOUND = 14, 5


def case() -> list[Message]:
    """The messages of case 1.1.6."""
    cases = json.loads(
        (shared_path("suites/rdf-messages") / "cases.json").read_text(encoding="utf-8")
    )
    (given,) = (case for case in cases["cases"] if case["id"] == "1.1.6")
    return [read("\n".join(lines), N_QUADS) for lines in given["messages"]]


def frames(messages: list[Message], *, graphs: bool = True) -> list[str]:
    """Frames by pyjelly, which drops empty messages."""
    return texts(split(write_by_peer(messages, graphs, LookupPreset.small())))


@asynccontextmanager
async def serving(**orders: Any) -> AsyncIterator[tuple[GrpcPeer, str]]:
    """A server of Node, and its address."""
    async with grpc_peer("serve", **orders) as peer:
        yield peer, f"127.0.0.1:{await peer.tells('port')}"


gzip = pytest.mark.parametrize("gzip", [False, True], ids=["plain", "gzip"])


@gzip
async def test_subscribe(gzip: bool) -> None:
    """Only requests can be compressed here: servers of grpc-js compress nothing; see `test_grpcio.py`."""
    sent = [*case(), NODE, NODE, numbered(1, 5000)]
    options = {"compression": "gzip" if gzip else "none"}
    async with serving(frames=frames(sent), gzip=gzip) as (peer, address):
        elements = [
            element
            async for element in subscribe(f"grpc://{address}/a/b", follow=False, options=options)
        ]
        request = await peer.tells("request")
    assert isomorphic([element.message for element in elements], sent)
    assert [element.sequence for element in elements] == list(range(1, len(sent) + 1))
    assert request["topic"] == "a/b"
    assert request["requested_options"]["physical_type"] == "PHYSICAL_STREAM_TYPE_QUADS"
    nodes = [next(iter(element.message)).subject for element in elements[2:4]]
    assert nodes[0] != nodes[1], "the same label in two frames is two nodes"


@gzip
async def test_publish(gzip: bool) -> None:
    sent = [*case(), NODE, Message(), NODE, numbered(1, 5000)]
    options = {"compression": "gzip" if gzip else "none"}
    async with serving() as (peer, address):
        url = f"grpc://{address}/a"
        assert await publish(sent, url, key="k", token="secret", options=options) == len(sent)
        metadata, taken = await peer.tells("metadata"), await peer.tells("taken")
    assert isomorphic(decoded([base64.b64decode(frame) for frame in taken]), sent)
    assert metadata["idempotency-key"] == "k-1"
    assert metadata["authorization"] == "Bearer secret"


async def test_a_server_that_has_no_quads() -> None:
    """It refuses the options that are requested, and sends triples when none are."""
    sent = [numbered(1), numbered(2)]
    async with serving(frames=frames(sent, graphs=False), plain=True) as (_, address):
        url = f"grpc://{address}/a"
        elements = [element async for element in subscribe(url, follow=False)]
    assert [element.message for element in elements] == sent


async def test_passing_failures() -> None:
    """UNAVAILABLE is tried again, after the pause that the server asks for; both ways."""
    orders = {"code": UNAVAILABLE, "refusals": 2, "trailers": {"grpc-retry-pushback-ms": "10"}}
    async with serving(frames=frames([numbered(1)]), **orders) as (peer, address):
        url = f"grpc://{address}/a"
        assert [each.message async for each in subscribe(url, follow=False)] == [numbered(1)]
        for _ in range(3):
            await peer.tells("request")
    async with serving(**orders) as (peer, address):
        assert await publish([numbered(1)], f"grpc://{address}/a") == 1
        assert len(await peer.tells("taken")) == 1


async def test_refusals() -> None:
    async with serving(code=NOT_FOUND, refusals=9) as (_, address):
        url = f"grpc://{address}/a"
        for doing in (publish([numbered(1)], url), anext(subscribe(url))):
            with pytest.raises(SourceError, match="answered with NOT_FOUND: not now") as refused:
                await doing
            assert refused.value.response_status == 404


async def test_positions_without_sequences() -> None:
    """A server that numbers nothing cannot begin at an earlier element, unless it is known to send all."""
    sent = [numbered(number) for number in range(1, 6)]
    async with serving(frames=frames(sent)) as (_, address):
        url = f"grpc://{address}/a"
        with pytest.raises(UsageError, match="does not number its elements") as refused:
            await anext(subscribe(url, after=3))
        assert "replays=true" in (refused.value.hint or "")
        replays = {"replays": "true"}
        elements = [
            element async for element in subscribe(url, after=3, follow=False, options=replays)
        ]
        assert [(each.sequence, each.message) for each in elements] == [
            (4, numbered(4)),
            (5, numbered(5)),
        ]


async def test_following_over_the_end_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server ends each call after the same frames. With `replays` these come once, otherwise they come again."""
    monkeypatch.setattr("construct_messages.feeds.connections._PAUSE_SECONDS", 0)
    sent = [numbered(number) for number in range(1, 4)]
    async with serving(frames=frames(sent)) as (peer, address):
        url = f"grpc://{address}/a"
        async with aclosing(subscribe(url)) as following:
            elements = [await anext(following) for _ in range(6)]
        assert [element.message for element in elements] == sent * 2
        assert [element.sequence for element in elements] == list(range(1, 7))
        async with aclosing(subscribe(url, options={"replays": "true"})) as following:
            elements = [await anext(following) for _ in range(3)]
            waiting = asyncio.create_task(anext(following))
            for _ in range(5):  # it asks again, and skips what it has
                await peer.tells("request")
            assert not waiting.done()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        assert [element.message for element in elements] == sent


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate of localhost, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = "subjectAltName=DNS:localhost"
    options = ["-subj", "/CN=localhost", "-addext", names, "-keyout", str(key), "-out", str(made)]
    subprocess.run([*command, *options], check=True, capture_output=True)
    return str(made), str(key)


async def test_tls(certificate: tuple[str, str]) -> None:
    made, key = certificate
    sent = [numbered(1), numbered(2)]
    async with serving(frames=frames(sent), certificate=made, key=key) as (_, address):
        url = f"grpcs://localhost:{address.rpartition(':')[2]}/a"
        elements = [
            element async for element in subscribe(url, follow=False, options={"ca_certs": made})
        ]
        assert [element.message for element in elements] == sent
        assert await publish(sent, url, options={"ca_certs": made}) == 2
        with pytest.raises(SourceError, match="certificate verify failed") as refused:
            await anext(subscribe(url))
        assert not refused.value.transient


async def test_a_request_as_protobuf_reads_it() -> None:
    """Our requested options are those that pyjelly's protobuf reads."""
    from construct_messages.logs.jelly.service import PREFERRED_OPTIONS

    options = RdfStreamOptions.FromString(PREFERRED_OPTIONS.encode())
    assert (options.physical_type, options.version, options.rdf_star) == (2, 2, True)
