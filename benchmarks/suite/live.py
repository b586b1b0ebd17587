"""A live endpoint, such as DBpedia's own, asked politely: few queries, few results, one request a second, a contact.

Competitors ask a server on loopback, which hands each request on when its time has come, names the contact and stops
at a number of requests. What is true about data that change is asked right before, by one SELECT a query; the query is
narrowed to the subjects of a few solutions, so that all who ask it ask the same.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyoxigraph as ox

from benchmarks.suite.datasets import Dataset
from benchmarks.suite.records import Group
from benchmarks.suite.truth import Solution, instantiate, root, select
from benchmarks.suite.workload import Query

QUERIES = ("star", "tree", "blank-template", "optional", "languages")
SUBJECTS = 10
_HANDED_ON = ("Content-Type", "Accept")
_SECONDS = 130.0  # DBpedia itself stops after 120


@contextmanager
def polite(endpoint: str, contact: str, every: float = 1.0, requests: int = 2_000) -> Iterator[str]:
    """The URL of a server on loopback that hands requests on to an endpoint.

    Args:
        endpoint: URL of a SPARQL endpoint.
        contact: an address of mail or the web, for the header User-Agent.
        every: seconds between two requests, at least.
        requests: after so many it refuses.
    """
    agent = f"construct-messages-benchmarks (+{contact})"
    turn, sent, last = threading.Lock(), 0, 0.0

    def asked(request: urllib.request.Request) -> tuple[int, dict[str, str], bytes]:
        nonlocal sent, last
        with turn:
            if sent >= requests:
                return (
                    429,
                    {"Content-Type": "text/plain"},
                    f"all {requests} requests of this run are used".encode(),
                )
            time.sleep(max(0.0, last + every - time.monotonic()))
            sent, last = sent + 1, time.monotonic()
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as response:
                return response.status, _kept(response.headers), response.read()
        except urllib.error.HTTPError as error:
            return error.code, _kept(error.headers), error.read()
        except OSError as error:
            return 502, {"Content-Type": "text/plain"}, str(error).encode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._hand_on(None)

        def do_POST(self) -> None:
            self._hand_on(self.rfile.read(int(self.headers["Content-Length"])))

        def _hand_on(self, body: bytes | None) -> None:
            _, mark, asked_for = self.path.partition("?")
            headers = {name: self.headers[name] for name in _HANDED_ON if name in self.headers}
            request = urllib.request.Request(
                f"{endpoint}{mark}{asked_for}", body, headers | {"User-Agent": agent}
            )
            status, answered, content = asked(request)
            self.send_response(status)
            for name, value in {**answered, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass  # the endpoint's own log has it

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/sparql"
        finally:
            server.shutdown()


def _kept(headers: Any) -> dict[str, str]:
    names = ("Content-Type", "Retry-After", "X-SPARQL-MaxRows", "X-SQL-State", "X-SQL-Message")
    return {name: headers[name] for name in names if name in headers}


def live(
    url: str, queries: list[Query], place: Path, subjects: int = SUBJECTS
) -> tuple[Dataset, list[Query]]:
    """The data of an endpoint, as a few queries see them, and these queries, narrowed to a few subjects.

    Args:
        url: the endpoint, or rather the server of `polite` before it.
        queries: those that are asked, as they are in the workload.
        place: the folder that the narrowed queries are written to.
        subjects: how many each is narrowed to.

    Raises:
        SystemExit: the endpoint fails.
    """
    asked: list[Query] = []
    groups: dict[str, list[Group]] = {}
    for query in queries:
        about = root(query.text)
        found = _solutions(url, f"{select(query.text, f'DISTINCT ?{about}')} LIMIT {subjects}")
        names = [solution[about] for solution in found if solution[about].startswith("<")]
        if not names:
            continue
        head, where, pattern = query.text.partition("WHERE {")
        text = f"{head}{where} VALUES ?{about} {{ {' '.join(names)} }}{pattern}"
        path = place / query.path.name
        path.write_text(text, encoding="utf-8")
        asked.append(replace(query, text=text, path=path))
        groups[query.name] = list(instantiate(text, _solutions(url, select(text))))
    return Dataset("endpoint", 0, lambda: place, endpoint=url, truth=groups), asked


def _solutions(url: str, query: str) -> list[Solution]:
    accept = {"Accept": "application/sparql-results+json"}
    request = urllib.request.Request(url, urlencode({"query": query}).encode(), accept)
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as response:
            bindings = json.load(response)["results"]["bindings"]
    except urllib.error.HTTPError as error:
        raise SystemExit(
            f"{error}: {error.read()[:300].decode(errors='replace')}\nof {query}"
        ) from error
    return [{name: str(_term(value)) for name, value in binding.items()} for binding in bindings]


def _term(value: dict[str, str]) -> ox.NamedNode | ox.BlankNode | ox.Literal:
    match value["type"]:
        case "uri":
            return ox.NamedNode(value["value"])
        case "bnode":
            return ox.BlankNode(value["value"].replace(":", "x").replace("/", "x"))
    if language := value.get("xml:lang"):
        return ox.Literal(value["value"], language=language)
    datatype = value.get("datatype")
    return ox.Literal(value["value"], datatype=ox.NamedNode(datatype) if datatype else None)
