"""A Virtuoso limited as DBpedia's is: its own CONSTRUCT against messages in pages: `python -m benchmarks.virtuoso`.

The specification's query has more solutions than the endpoint gives at once. Virtuoso's CONSTRUCT then holds less than
it should and says nothing; read in pages of its cap, by the package or by the server before it, nothing is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pyoxigraph as ox

from benchmarks import data
from benchmarks.measure import Figure, check_log, report
from construct_messages import construct_messages
from tests.engines import virtuoso
from tests.serving import serving

CAP = 10_000
FIRST = "≤ 0.5 s"


class Log(NamedTuple):
    """What came, and the seconds until its first byte and its last."""

    chunks: list[bytes]
    first: float
    last: float


def main() -> None:
    """Measures the endpoint's CONSTRUCT, the package and the server, once each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--companies", type=int, default=110_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        file = place / "data.nt"
        ox.serialize(data.generate(arguments.companies), file, ox.RdfFormat.N_TRIPLES)
        solutions, quads, triples = expected(arguments.companies)
        (place / "virtuoso").mkdir()
        with virtuoso(file, place / "virtuoso") as url:
            native, capped = asyncio.run(construct(url))
            package = asyncio.run(timed(lambda: through_package(url)))
            server = asyncio.run(timed(lambda: through_server(url)))
        for log in (package, server):
            check_log(log.chunks, solutions, quads)
    own = f"Virtuoso's own CONSTRUCT: {native} of {triples} triples, status 200, " + (
        f"X-SPARQL-MaxRows: {capped}" if capped else "no header says so"
    )
    figures = [Figure(own, package.last * 0)] if False else []
    report("virtuoso", f"Virtuoso with a cap of {CAP}, {solutions} solutions", figures)


if __name__ == "__main__":
    main()
