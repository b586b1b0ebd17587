"""What docs/explanation/security.md promises about requests that are no HTTP, or hide another one."""

import pytest

from tests.support.http.security import IN_MODULE, over_socket
from tests.support.http.serving import Served

pytestmark = pytest.mark.slow


# --- HTTP -----------------------------------------------------------------------------------------------------------

SMUGGLED = {
    "two lengths": b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "the same length twice": b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "a list of lengths": b"Content-Length: 5, 5\r\n\r\nhello",
    "a signed length": b"Content-Length: +5\r\n\r\nhello",
    "a length with an underscore": b"Content-Length: 0_5\r\n\r\nhello",
    "length and chunks": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "another transfer coding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunks not last": b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "chunks twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a space before the colon": b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a folded line": b"X-A: b\r\n Content-Length: 5\r\n\r\nhello",
    "a bare carriage return": b"X-A: b\rContent-Length: 5\r\n\r\nhello",
    "a null": b"X-A: b\0c\r\n\r\n",
    "no number of a chunk": b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
    "a chunk without end": b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nhello\r\n0\r\n\r\n",
    "two hosts": b"Host: y\r\n\r\n",
}
NO_HTTP = {
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "line feeds alone": b"GET /sparql HTTP/1.1\nHost: x\n\n",
    "no host": b"GET /sparql HTTP/1.1\r\n\r\n",
    "garbage": b"\xff\x00\xfe garbage\r\n\r\n",
}


@pytest.mark.parametrize("name", SMUGGLED)
@IN_MODULE
async def test_no_second_request_hides_in_a_first(files: Served, name: str) -> None:
    """Where the end of a request could be told in two ways there is one answer, 400, and the connection is closed."""
    hidden = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"
    request = b"POST /sparql HTTP/1.1\r\nHost: x\r\nContent-Type: application/sparql-query\r\n"
    received = await over_socket(files.url, request + SMUGGLED[name] + hidden)
    assert received.startswith(b"HTTP/1.0 400 ")
    assert received.count(b"HTTP/1.") == 1


@pytest.mark.parametrize("name", NO_HTTP)
@IN_MODULE
async def test_what_is_no_http_is_refused(files: Served, name: str) -> None:
    received = await over_socket(files.url, NO_HTTP[name])
    assert received.startswith(b"HTTP/1.0 400 ")
    assert b"text/plain" in received
