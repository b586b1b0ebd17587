"""How long others wait while a server reads what a hostile endpoint sends.

One `construct-messages serve` over two endpoints: a hostile one, whose answers are made to take long to read, and
files. While the hostile answer is read, the server's check of health and a query over the files are asked again and
again; what is told is the longest that either took, beside the longest in a server that has nothing else to do. The
answers have the size that a compressed or an unbounded body may come to.

Run with `python -m benchmarks micro hostile`; `--megabytes` is the size of an answer.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.parse import urlencode, urlsplit

from benchmarks.harness import Figure, report
from benchmarks.micro.serving import listening
from tests.support.http.fault_server import FaultServer, response

QUERY: Final = "CONSTRUCT { ?s <urn:p> ?o } WHERE { ?s ?p ?o }"
RDFM: Final = "application/n-quads; messages=rdfm"
JSON: Final = "application/sparql-results+json"
XML: Final = "application/sparql-results+xml"
_HEAD: Final = b'{"head":{"vars":["s","o"]},"results":{"bindings":['
_SPARQL: Final = b'<sparql xmlns="http://www.w3.org/2005/sparql-results#">'
_VARIABLES: Final = b'<head><variable name="s"/><variable name="o"/></head><results>'
_SECONDS: Final = 60.0

HOSTILE: Final[dict[str, tuple[Callable[[int], bytes], str]]] = {
    "bindings in the head": (
        lambda size: b'{"head":{"link":[' + b'{"bindings":[]},' * (size // 16),
        JSON,
    ),
    "empty solutions": (lambda size: _HEAD + b"{}," * (size // 3), JSON),
    "a literal of braces and commas": (
        lambda size: (
            _HEAD
            + b'{"s":{"type":"uri","value":"urn:s"},"o":{"type":"literal","value":"'
            + b"{},{}," * (size // 6)
        ),
        JSON,
    ),
    "a literal of escapes": (
        lambda size: _HEAD + b'{"o":{"type":"literal","value":"' + rb"\n" * (size // 2) + b'"}}]}}',
        JSON,
    ),
    "nested triple terms": (
        lambda size: _HEAD + b'{"s":' + b'{"type":"triple","value":{"subject":' * (size // 36),
        JSON,
    ),
    "nested elements": (
        lambda size: (
            _SPARQL
            + _VARIABLES
            + b"<result><binding name='s'>"
            + b"<triple><subject>" * (size // 17)
        ),
        XML,
    ),
    "empty elements": (lambda size: _SPARQL + _VARIABLES + b"<result/>" * (size // 9), XML),
}


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=24, help="of an answer; default: 24")
    size = parser.parse_args().megabytes << 20
    upstream = FaultServer()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.nt"
        data.write_text("<urn:s> <urn:p> <urn:o> .\n")
        settings = Path(folder) / "server.toml"
        settings.write_text(
            f'[endpoints.hostile]\nsource = "{upstream.url}"\nretries = 0\n[endpoints.files]\nsource = "{data}"\n'
        )
        command = [sys.executable, "-m", "construct_messages", "serve", "--config", str(settings)]
        with listening([*command, "--bind", "127.0.0.1:0"], os.environ) as (url, _):
            figures = [Figure("nothing", *_waits(url, lambda: time.sleep(2)))]
            for what, (make, content_type) in HOSTILE.items():
                upstream.play(response(make(size), content_type, framing="length"))
                figures.append(Figure(what, *_waits(url, lambda: _ask(f"{url}/hostile/sparql"))))
    upstream.close()
    report("hostile", f"The longest wait of others while {size >> 20} MiB are read", figures)


def _waits(url: str, work: Callable[[], object]) -> tuple[float, None, str]:
    """The seconds that the slowest check of health took while something is done, and what a query over files took."""
    health, query = [0.0], [0.0]
    _ask(f"{url}/files/sparql")  # what the first request makes ready is ready
    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        for path, waits in (("/health/live", health), ("/files/sparql", query)):
            began = time.perf_counter()
            _ask(f"{url}{path}")
            waits.append(time.perf_counter() - began)
    thread.join()
    return max(health), None, f"query {max(query):.3f} s"


def _ask(url: str) -> None:
    target = (
        f"{url}?{urlencode({'query': QUERY})}" if urlsplit(url).path.endswith("/sparql") else url
    )
    # a hostile answer is an error, in the middle or before
    with suppress(OSError, HTTPException):
        request = urllib.request.Request(target, headers={"Accept": RDFM})
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            while answer.read(1 << 16):
                pass
