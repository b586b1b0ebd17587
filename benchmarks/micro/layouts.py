"""Logs written for a template, by layouts: `python -m benchmarks micro layouts [--companies N] [--rounds N]`.

The messages are those of the specification's query over generated data, once with its template, and once with one in
which predicates are variables. The solutions are made before the clock starts: measured is what turns them into bytes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from benchmarks.harness import Figure, alternate, report
from benchmarks.micro import data
from benchmarks.micro.jsonld import solutions, writers
from construct_messages import ConstructQuery
from construct_messages.rdf.formats import (
    NDJSON_LD,
    RDF_XML,
    RDFM,
    TRIG,
    TURTLE,
    YAML_LD,
    Format,
    LogType,
)
from construct_messages.rdf.solutions import Solutions

FORMATS = (TURTLE, TRIG, NDJSON_LD, YAML_LD, RDF_XML)
ANY = f"{data.PROLOGUE}CONSTRUCT {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o }}"


def main() -> None:
    """Measures writing by layouts against writing message by message."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--companies", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    report(
        "layouts",
        f"Logs of {arguments.companies} companies",
        measure(arguments.companies, arguments.rounds),
    )


def measure(companies: int, rounds: int) -> list[Figure]:
    """The table's lines."""
    figures = []
    for what, text in (("the specification's query", data.SPECIFICATION), ("?s ?p ?o", ANY)):
        query = ConstructQuery.parse(text)
        batches = solutions(query, companies)
        for format in FORMATS:
            figures += compare(format, query, batches, rounds, f"{format.name}, {what}")
    return figures


def compare(
    format: Format, query: ConstructQuery, batches: Sequence[Solutions], rounds: int, what: str
) -> list[Figure]:
    """The two lines of a format."""
    by_layouts, one_by_one = writers(query, batches, LogType(format, format.own or RDFM))
    if by_layouts() != one_by_one():
        raise SystemExit("the two writers do not write the same")
    plain, fast = alternate(rounds, [one_by_one, by_layouts])
    return [
        Figure(f"{what}: written message by message", plain),
        Figure(f"{what}: by layouts, against that", fast, plain / fast, "≥ 2"),
    ]
