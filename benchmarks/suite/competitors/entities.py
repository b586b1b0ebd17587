"""One query for each entity: `SELECT DISTINCT ?root`, then a CONSTRUCT with `VALUES ?root { <entity> }` for each.

Connections are kept, and four requests are under way at a time. Cannot know how many solutions an entity has: several
are one group. An entity that is a blank node cannot be named in a query, so its solutions are missing.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any
from urllib.parse import urlencode, urlsplit

from benchmarks.suite.competitors.printing import SLOT, cannot, pieces, print_groups

AT_A_TIME = 4
_own = threading.local()


def main() -> None:
    """Arguments: the pieces and the endpoint."""
    query, (endpoint,) = pieces()
    if query["key"] is None:
        cannot("no variable names the entity")
    print_groups(_groups(query, endpoint))


def _groups(query: dict[str, Any], endpoint: str) -> Iterator[list[str]]:
    key = query["key"]
    answer = json.loads(_ask(endpoint, query["entities"], "application/sparql-results+json"))
    found = (binding[key[1:]] for binding in answer["results"]["bindings"])
    entities = iter([entity["value"] for entity in found if entity["type"] == "uri"])

    def describe(entity: str) -> list[str]:
        asked = query["entity"].replace(SLOT, f"VALUES {key} {{ <{entity}> }}")
        lines = _ask(endpoint, asked, "application/n-triples, text/plain;q=0.5").decode()
        return [f"{line}\n" for line in lines.split("\n") if line and line[0] != "#"]

    with ThreadPoolExecutor(AT_A_TIME) as executor:
        while some := list(islice(entities, 8 * AT_A_TIME)):
            yield from executor.map(describe, some)


def _ask(endpoint: str, query: str, accept: str) -> bytes:
    there = urlsplit(endpoint)
    connection = getattr(_own, "connection", None)
    if connection is None:
        connection = _own.connection = http.client.HTTPConnection(there.netloc)
    headers = {
        "Accept": accept,
        "Content-Type": "application/x-www-form-urlencoded",
        "User-Agent": "construct-messages-benchmarks",
    }
    connection.request("POST", there.path, urlencode({"query": query}), headers)
    answer = connection.getresponse()
    body: bytes = answer.read()
    if answer.status != 200:
        raise OSError(f"HTTP {answer.status}: {body[:200]!r}")
    return body


if __name__ == "__main__":
    main()
