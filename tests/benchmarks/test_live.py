"""`benchmarks/suite/live.py`: a live endpoint is asked at a rate, by name, and not without end."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.suite.datasets import write_dbpedia_shaped
from benchmarks.suite.engines import engine
from benchmarks.suite.live import live, polite
from benchmarks.suite.records import Results
from benchmarks.suite.workload import queries


class Endpoint(ThreadingHTTPServer):
    """An endpoint that keeps what it was asked, and when."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[float, str, bytes, dict[str, str]]] = []


class Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, body: bytes) -> None:
        self.server.asked.append((time.monotonic(), self.path, body, dict(self.headers)))
        self.send_response(503 if b"fail" in body else 200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("X-SPARQL-MaxRows", "10000")
        self.end_headers()
        self.wfile.write(b"answer")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.slow
def test_requests_are_handed_on_at_a_rate_with_a_contact_and_not_without_end(
    endpoint: Endpoint,
) -> None:
    there = f"http://127.0.0.1:{endpoint.server_port}/sparql"
    with polite(there, "a@example.org", every=0.2, requests=4) as url:
        for number in range(3):
            headers = {"Accept": "text/plain", "User-Agent": "another", "X-Other": "1"}
            request = urllib.request.Request(url, f"query={number}".encode(), headers)
            with urllib.request.urlopen(request, timeout=60) as response:
                assert response.read() == b"answer"
                assert response.headers["X-SPARQL-MaxRows"] == "10000"
        with urllib.request.urlopen(f"{url}?query=4", timeout=60) as response:
            assert response.read() == b"answer"
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(url, b"query=5", timeout=60)
        assert refused.value.code == 429
        assert b"all 4 requests" in refused.value.read()
    assert [(path, body) for _, path, body, _ in endpoint.asked] == [
        ("/sparql", b"query=0"), ("/sparql", b"query=1"), ("/sparql", b"query=2"), ("/sparql?query=4", b""),
    ]  # fmt: skip
    # each is sent after the answer to the one before
    first, *_, last = [when for when, *_ in endpoint.asked]
    assert last - first >= 0.3
    for _, _, _, headers in endpoint.asked:
        assert headers["User-Agent"] == "construct-messages-benchmarks (+a@example.org)"
        assert "X-Other" not in headers


def test_errors_are_handed_on(endpoint: Endpoint, tmp_path: Path) -> None:
    there = f"http://127.0.0.1:{endpoint.server_port}/sparql"
    with polite(there, "a@example.org", every=0) as url:
        with pytest.raises(urllib.error.HTTPError) as failed:
            urllib.request.urlopen(url, b"fail", timeout=60)
        assert failed.value.code == 503
        failed.value.close()
    with (
        polite("http://127.0.0.1:9/", "a@example.org", every=0) as url,
        pytest.raises(SystemExit, match="502"),
    ):
        live(url, queries()[:1], tmp_path)


@pytest.mark.slow
@pytest.mark.engine
def test_a_live_endpoint_is_measured(tmp_path: Path) -> None:
    write_dbpedia_shaped(tmp_path / "data.nt", 5_000)
    output = tmp_path / "results.json"
    (tmp_path / "engine").mkdir()
    with engine("oxigraph", tmp_path / "data.nt", tmp_path / "engine") as url:
        main(
            ["run", "--endpoint", url, "--contact", "a@example.org", "--every", "0", "--profile", "smoke",
             "--output", str(output), "--queries", "star", "--only", "ours", "ours-endpoint", "entities"]
        )  # fmt: skip
    ours, entities = Results.read(output).rows
    assert (ours.competitor, ours.engine, ours.dataset, ours.status) == (
        "ours-endpoint",
        "endpoint",
        "endpoint",
        "ok",
    )
    assert ours.groups is not None
    assert ours.groups.right == ours.groups.expected >= 10
    assert entities.groups is not None
    assert entities.groups.right < entities.groups.expected
    assert ours.requests is not None
    assert ours.requests < (entities.requests or 0)
