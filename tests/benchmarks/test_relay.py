"""`benchmarks/suite/relay.py`: it hands on what comes and counts it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from benchmarks.suite.relay import Requests, relay

GET = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
POST = (
    b"POST / HTTP/1.1\r\ncontent-length: 30\r\n\r\n"
    + b"\r\n\r\nGET / HTTP/1.1\r\n\r\nbody...."[:30]
)


@pytest.mark.parametrize(
    ("sent", "count"),
    [(GET, 1), (GET * 3, 3), (POST, 1), (POST + GET + POST, 3), (GET[:-1], 0), (b"", 0)],
    ids=["get", "pipelined", "body like a head", "mixed", "unfinished", "nothing"],
)
@pytest.mark.parametrize("size", [1, 7, 1000], ids=["bytes", "pieces", "whole"])
def test_requests_are_counted_however_they_come(sent: bytes, count: int, size: int) -> None:
    requests = Requests()
    assert sum(requests.feed(sent[at : at + size]) for at in range(0, len(sent), size)) == count


def test_what_cannot_be_counted_is_refused() -> None:
    with pytest.raises(ValueError, match="without Content-Length"):
        Requests().feed(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")


class _Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])) * 3
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def echo() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/sparql"
        server.shutdown()


def test_a_competitor_that_leaves_ends_the_request() -> None:
    with socket.create_server(("127.0.0.1", 0)) as endpoint:
        endpoint.settimeout(60)
        with relay(f"http://127.0.0.1:{endpoint.getsockname()[1]}/sparql") as running:
            there = urlsplit(running.url)
            with socket.create_connection(
                (str(there.hostname), int(there.port or 0))
            ) as competitor:
                competitor.sendall(GET)
                connection, _ = endpoint.accept()
                connection.settimeout(60)
                assert connection.recv(1000) == GET
            with connection:
                assert connection.recv(1000) == b""
            assert running.traffic().requests == 1


def test_an_endpoint_that_is_not_there_is_a_closed_connection() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        with relay(f"http://127.0.0.1:{nobody.getsockname()[1]}/sparql") as running:
            there = urlsplit(running.url)
            with socket.create_connection(
                (str(there.hostname), int(there.port or 0)), timeout=60
            ) as competitor:
                assert competitor.recv(1000) == b""


def test_it_hands_on_and_counts(echo: str) -> None:
    body = bytes(range(256)) * 4000
    with relay(echo) as running:
        there = urlsplit(running.url)
        assert there.path == "/sparql"
        connection = HTTPConnection(there.netloc)
        for _ in range(2):
            connection.request("POST", there.path, body)
            assert connection.getresponse().read() == body * 3
        first, second = running.traffic(), running.traffic()
        connection.close()
    assert first.requests == 2
    assert 2 * len(body) < first.sent < 2 * len(body) + 1000
    assert 6 * len(body) < first.received < 6 * len(body) + 1000
    assert (second.requests, second.sent, second.received) == (0, 0, 0)
