"""Turtle and TriG logs: written for a template, and read.

`python -m benchmarks micro turtle [--companies N] [--rounds N]`. The messages are those of the specification's query
over generated data. The solutions are made before the clock starts: measured is what turns them into bytes, and bytes
into messages. pyoxigraph reads the same statements as one document, without delimiters, into objects of its own.
"""

from __future__ import annotations

import argparse

import pyoxigraph as ox

from benchmarks.harness import Figure, alternate, report
from benchmarks.micro import data
from benchmarks.micro.jsonld import CHUNK, solutions, writers
from construct_messages import ConstructQuery
from construct_messages.logs import decoder_for
from construct_messages.rdf.formats import TRIG, TURTLE, Format, LogType
from construct_messages.rdf.formats.lookup import find_syntax

SYNTAX = find_syntax("1.2-messages")


def main() -> None:
    """Measures writing and reading, with the query's prefixes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--companies", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    figures = [
        figure
        for format in (TURTLE, TRIG)
        for figure in measure(format, arguments.companies, arguments.rounds)
    ]
    report("turtle", f"Turtle and TriG logs, {arguments.companies} companies", figures)


def measure(format: Format, companies: int, rounds: int) -> list[Figure]:
    """The table's lines for one of the formats."""
    query = ConstructQuery.parse(data.SPECIFICATION)
    batches = solutions(query, companies)
    count = sum(map(len, batches))
    by_template, one_by_one = writers(query, batches, LogType(format, SYNTAX))
    log = by_template()
    if log != one_by_one():
        raise SystemExit("the two writers do not write the same")
    document = log.replace(b"MESSAGE\n", b"").replace(SYNTAX.version.encode(), b"1.2")

    def read() -> tuple[int, int]:
        decoder, messages, quads = decoder_for(format), 0, 0
        for start in range(0, len(log), CHUNK):
            for message in decoder.feed(log[start : start + CHUNK]):
                messages, quads = messages + 1, quads + len(message)
        return messages + len(list(decoder.close())), quads

    def by_pyoxigraph() -> int:
        return sum(
            1 for _ in ox.parse(document, format=ox.RdfFormat.from_extension(format.extensions[0]))
        )

    messages, quads = read()
    if (messages, quads) != (count, by_pyoxigraph()):
        raise SystemExit("what is read is not what was written")
    plain, fast, reading, parsing = alternate(
        rounds, [one_by_one, by_template, read, by_pyoxigraph]
    )
    name = f"{format.name}, {messages} messages, {quads} quads"
    return [
        Figure(f"{name}: written message by message", plain),
        Figure(
            f"{format.name}: written for the template, against message by message",
            fast,
            plain / fast,
            "≥ 2",
        ),
        Figure(f"{format.name}: pyoxigraph reads the statements as one document", parsing),
        Figure(f"{format.name}: the log read, against that", reading, reading / parsing),
    ]
