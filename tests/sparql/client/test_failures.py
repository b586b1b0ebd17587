"""Failures of requests: which pass, and that they never show the URL of a request."""

from __future__ import annotations

import errno
import socket
import ssl
from types import SimpleNamespace
from typing import Any
from urllib.request import Request

import aiohttp
import pytest

from construct_messages.errors import SourceError
from construct_messages.sparql.client.aiohttp_client import asend, unreachable
from construct_messages.sparql.client.retries import Timeouts
from tests.support.http.relay import relay

URL = "http://example.org/sparql"


def caused(error: Exception, cause: Exception) -> Exception:
    """An exception as `raise … from …` leaves it."""
    error.__cause__ = cause
    return error


def connecting(cause: OSError) -> aiohttp.ClientConnectorError:
    key: Any = SimpleNamespace(host="example.org", port=80, ssl=True)
    return aiohttp.ClientConnectorError(key, cause)


CASES = {
    "refused": (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), True),
    "refused, of aiohttp": (connecting(ConnectionRefusedError(errno.ECONNREFUSED, "no")), True),
    "no network": (OSError(errno.ENETUNREACH, "no network"), True),
    "no such host": (socket.gaierror(socket.EAI_NONAME, "no such host"), False),
    "names cannot be resolved now": (socket.gaierror(socket.EAI_AGAIN, "later"), True),
    "no such host, of aiohttp": (connecting(socket.gaierror(socket.EAI_NONAME, "no")), False),
    "a certificate": (ssl.SSLCertVerificationError(1, "self-signed"), False),
    "closed before an answer": (aiohttp.ServerDisconnectedError(), True),
    "closed while the body is sent": (
        caused(
            aiohttp.ClientOSError(None, f"Can not write request body for {URL}?query=secret"),
            aiohttp.ClientConnectionResetError("Cannot write to closing transport"),
        ),
        True,
    ),
    "reset while the body is sent": (
        caused(
            aiohttp.ClientOSError(errno.ECONNRESET, f"Can not write request body for {URL}"),
            ConnectionResetError(errno.ECONNRESET, "reset by peer"),
        ),
        True,
    ),
    "a body that cannot be read": (
        caused(
            aiohttp.ClientConnectionError(f"Failed to send bytes to {URL}?query=secret"),
            ValueError("no bytes"),
        ),
        False,
    ),
    "an answer that is not HTTP": (aiohttp.InvalidURL("x"), False),
}


@pytest.mark.parametrize(("cause", "passes"), CASES.values(), ids=CASES)
def test_a_request_without_a_response(cause: Exception, passes: bool) -> None:
    error = unreachable(URL, cause)
    assert error.transient is passes
    assert "secret" not in str(error)
    assert str(error).startswith(f"{URL} could not be reached: ")


class Cut(aiohttp.BytesPayload):
    """A body whose connection ends before its first byte is sent."""

    async def write_with_length(self, writer: Any, content_length: int | None) -> None:
        writer.transport.abort()
        await super().write_with_length(writer, content_length)


async def test_a_connection_that_ends_while_the_body_is_sent() -> None:
    async with relay() as server, aiohttp.ClientSession() as session:
        body: Any = Cut(b"x")
        request = Request(f"{server.url}/?query=secret", data=body, method="POST")
        with pytest.raises(SourceError, match="closing transport") as caught:
            await asend(session, request, server.url, Timeouts(None))
    assert caught.value.transient
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"http_proxy": "http://127.0.0.1:9"}, True),
        ({"http_proxy": "http://127.0.0.1:9", "no_proxy": "example.org"}, False),
        ({"https_proxy": "http://127.0.0.1:9"}, False),
    ],
)
def test_a_proxy_of_the_environment_is_named(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], named: bool
) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    hint = unreachable(URL, ConnectionRefusedError(errno.ECONNREFUSED, "refused")).hint
    assert hint is not None
    assert ("http_proxy" in hint) == named
