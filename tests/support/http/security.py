"""Requests that the tests of security send."""

import asyncio
import contextlib

import pytest

from tests.support.waiting import SECONDS

IN_MODULE = pytest.mark.asyncio(loop_scope="module")
CONSTRUCT = "CONSTRUCT { ?s <urn:p> ?o } WHERE { ?s ?p ?o }"
RDFM = "application/n-quads; messages=rdfm"
EMPTY = b'{"head":{"vars":["s","o"]},"results":{"bindings":[]}}'
FORM = "application/x-www-form-urlencoded"
SECRET = "s3cr3t-t0ken"


async def over_socket(url: str, request: bytes, *pieces: bytes) -> bytes:
    """All that the server sends until it closes the connection."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    received = b""
    try:
        async with asyncio.timeout(SECONDS):
            for piece in pieces:
                await asyncio.sleep(0.05)
                writer.write(piece)
            with contextlib.suppress(ConnectionError):
                while chunk := await reader.read(1 << 16):
                    received += chunk
    finally:
        writer.close()
    return received
