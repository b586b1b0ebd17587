"""The service over TLS: npm's @grpc/grpc-js and our client, each with the authority, and clients without it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pyjelly.options import LookupPreset

from construct_messages.errors import SourceError
from construct_messages.feeds import publish, subscribe
from tests.support.certificates import Certificate, certificate_in
from tests.support.grpc.peer import asked, decoded, frames_of, split, texts
from tests.support.grpc.serving import GrpcServer, serving_grpc
from tests.support.logs.kinds import isomorphic
from tests.support.logs.pyjelly import write_by_peer
from tests.support.streams import numbered

SENT = [numbered(1), numbered(2, 50_000), numbered(3)]


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    return certificate_in(tmp_path)


@pytest.fixture
async def secured(tmp_path: Path, certificate: Certificate) -> AsyncIterator[GrpcServer]:
    files = {"grpc_certificate": str(certificate.certificate), "grpc_key": str(certificate.key)}
    async with serving_grpc(tmp_path, **files) as server:
        yield server


async def test_our_client(secured: GrpcServer, certificate: Certificate) -> None:
    """It finds the URL in the description of the stream."""
    url = (await secured.http.ask("GET", "/streams/a")).json["grpc"]
    assert url == f"grpcs://{secured.address}/a"
    options = {"ca_certs": str(certificate.certificate)}
    assert await publish(SENT, url, options=options) == 3
    elements = [element async for element in subscribe(url, follow=False, options=options)]
    assert [element.message for element in elements] == SENT


async def test_clients_that_are_refused(secured: GrpcServer) -> None:
    url = f"grpcs://{secured.address}/a"
    with pytest.raises(SourceError, match="certificate verify failed"):
        await publish(SENT, url)
    with pytest.raises(SourceError):
        await publish(SENT, secured.url, retries=0, idle_seconds=10)
    reader, writer = await asyncio.open_connection(*secured.address.split(":"))
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert b"HTTP" not in await reader.read(100), "nothing is answered without TLS"
    writer.close()
    assert secured.elements() == []


@pytest.mark.slow
async def test_grpc_js(secured: GrpcServer, certificate: Certificate) -> None:
    orders = {"address": secured.address, "ca": str(certificate.certificate)}
    frames = split(write_by_peer(SENT, True, LookupPreset.small()))
    metadata = {"rdf-stream-topic": "a"}
    lines = await asked("publish", frames=texts(frames), metadata=metadata, **orders)
    assert {"reply": {}} in lines, lines
    assert isomorphic([element.message for element in secured.elements()], SENT)
    metadata = {"rdf-stream-after": "0", "rdf-stream-follow": "false"}
    lines = await asked("subscribe", request={"topic": "a"}, metadata=metadata, **orders)
    assert {"end": True} in lines, lines
    assert isomorphic(decoded(frames_of(lines)), SENT)
