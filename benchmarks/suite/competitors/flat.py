"""Asks for the flat result of a CONSTRUCT query over HTTP; shared by the competitors that take it apart again."""

from __future__ import annotations

from typing import IO
from urllib.parse import urlencode
from urllib.request import Request, urlopen


def ask(endpoint: str, query: str) -> IO[bytes]:
    """The flat result as N-Triples, to be read as it comes."""
    body = urlencode({"query": query}).encode()
    headers = {
        "Accept": "application/n-triples, text/plain;q=0.5",
        "User-Agent": "construct-messages-benchmarks",
    }
    answer: IO[bytes] = urlopen(Request(endpoint, body, headers))  # raises for every status but 2xx
    return answer
