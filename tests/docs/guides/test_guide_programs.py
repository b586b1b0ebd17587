"""Programs of guides that need a server: a load into a search engine, and a page that reads an answer as events."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest

from construct_messages import construct_messages, to_json
from tests.support.docs import BLOCKS
from tests.support.http.serving import serving
from tests.support.pages.reporting import reporting
from tests.support.places import ROOT
from tests.support.waiting import SECONDS, eventually

pytestmark = [pytest.mark.process, pytest.mark.slow]


@contextmanager
def bulk_api(index: dict[tuple[str, str], Any]) -> Iterator[str]:
    """The bulk API of Elasticsearch, as far as its clients ask for it; its URL. Documents are put into `index`."""

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            assert self.path.partition("?")[0] == "/_bulk"
            lines = self.rfile.read(int(self.headers["Content-Length"])).splitlines()
            items = []
            for action, document in zip(lines[::2], lines[1::2], strict=True):
                ((kind, place),) = json.loads(action).items()
                assert kind == "index"
                index[place["_index"], place["_id"]] = json.loads(document)
                items.append({kind: {**place, "status": 201}})
            body = json.dumps({"errors": False, "items": items}).encode()
            self.send_response(200)
            self.send_header("X-Elastic-Product", "Elasticsearch")
            self.send_header("Content-Type", "application/vnd.elasticsearch+json;compatible-with=9")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PUT

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            serving.join()


def test_documents_are_loaded_into_a_search_engine() -> None:
    page = [block for block in BLOCKS if block.page == "docs/guides/search-engine.md"]
    (place,) = (number for number, block in enumerate(page) if block.title == "load.py")
    index: dict[tuple[str, str], Any] = {}
    with bulk_api(index) as url:
        program = page[place].text.replace("http://127.0.0.1:9200", url)
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    assert (done.stderr, done.stdout) == ("", page[place + 1].text)
    query = (ROOT / "queries/country-documents.rq").read_text(encoding="utf-8")
    frame = json.loads((ROOT / "queries/country-documents.json").read_bytes())
    data = ROOT / "queries/data/companies.ttl"
    documents = [
        to_json(message, frame) for message in construct_messages(query, data, group_by="?country")
    ]
    assert index == {("countries", document["uri"]): document for document in documents}


@pytest.mark.engine
async def test_a_page_reads_an_answer_as_events(tmp_path: Path) -> None:
    (block,) = (block for block in BLOCKS if block.language == "js")
    store = ox.Store(str(tmp_path / "store"))
    store.load(path=str(ROOT / "queries/data/companies.ttl"))
    store.flush()
    del store
    async with serving(str(tmp_path / "store"), settings={"cors": ("*",)}) as server:
        script = block.text.replace("http://127.0.0.1:8080", server.url)
        told = "console.log = (said) => report({ said });"
        async with reporting(f'<script type="module">{told}\n{script}</script>') as said:
            await eventually(lambda: said and str(said[-1].get("said", "")).startswith("all "))
    *documents, end = [each["said"] for each in said]
    assert end == f"all {len(documents)} messages"
    assert all(isinstance(document, dict) for document in documents)
    assert len(documents) > 10
