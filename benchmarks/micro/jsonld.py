"""NDJSON-LD logs: for a template against message by message, and reading against PyLD.

`python -m benchmarks micro jsonld`. The messages are those of the specification's query over generated data. The
solutions are made before the clock starts: measured is what turns them into bytes, and bytes into messages. PyLD
reads a hundredth of the log, and its time is multiplied.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from functools import partial

import pyoxigraph as ox
from pyld import jsonld  # type: ignore[import-untyped] # it has no type information

from benchmarks.harness import Figure, alternate, report
from benchmarks.micro import data
from construct_messages import ConstructQuery
from construct_messages.logs import EncoderOptions, decoder_for, encoder_for
from construct_messages.logs.text_encoder import PlainTemplateEncoder
from construct_messages.rdf.formats import N_QUADS, NDJSON_LD, RDFM, LogType
from construct_messages.rdf.message import Message
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import UNBOUND, from_pyoxigraph

BATCH = 1024
CHUNK = 1 << 16
PART = 100  # of the messages, PyLD reads one in so many


def main() -> None:
    """Measures writing and reading, with the query's prefixes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--companies", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    report("jsonld", *measure(arguments.companies, arguments.rounds))


def measure(companies: int, rounds: int) -> tuple[str, list[Figure]]:
    """The table's title and its lines."""
    query = ConstructQuery.parse(data.SPECIFICATION)
    batches = solutions(query, companies)
    by_template, one_by_one = writers(query, batches, LogType(NDJSON_LD, RDFM))
    lines_by_template, _ = writers(query, batches, LogType(N_QUADS, RDFM))
    log = by_template()
    if log != one_by_one():
        raise SystemExit("the two writers do not write the same")
    messages = read(log)
    count, quads = len(messages), sum(map(len, messages))
    head, *lines = log.decode().split("\n")[:-1]
    context = json.loads(head)["@context"]
    part = lines[: max(1, count // PART)]
    if sum(len(triples) for line in part for triples in by_pyld(context, line).values()) != sum(
        len(message) for message in messages[: len(part)]
    ):
        raise SystemExit("PyLD reads something else")
    plain, fast, nquads, reading, pyld = alternate(
        rounds,
        [
            one_by_one,
            by_template,
            lines_by_template,
            lambda: read(log),
            lambda: [by_pyld(context, line) for line in part],
        ],
    )
    pyld *= count / len(part)
    return f"NDJSON-LD logs of {count} messages, {quads} quads", [
        Figure("written message by message", plain),
        Figure("written for a template, against message by message", fast, plain / fast, "≥ 2"),
        Figure("N-Quads for a template, against NDJSON-LD for it", nquads, fast / nquads),
        Figure("read, against PyLD line by line", reading, pyld / reading),
        Figure("read by PyLD, from a part", pyld),
    ]


def solutions(query: ConstructQuery, companies: int) -> list[Solutions]:
    """The solutions of the query over generated data, in batches."""
    found = data.store(companies).query(query.select)
    assert isinstance(found, ox.QuerySolutions)
    terms = [
        tuple(UNBOUND if term is None else from_pyoxigraph(term, "d") for term in solution)
        for solution in found
    ]
    return [Solutions.of(terms[start : start + BATCH]) for start in range(0, len(terms), BATCH)]


def writers(
    query: ConstructQuery, batches: Sequence[Solutions], type: LogType
) -> tuple[Callable[[], bytes], Callable[[], bytes]]:
    """What writes the log of some solutions: with an encoder that is made for the template, and message by message."""

    def write(*, specialised: bool) -> bytes:
        encoder, template = encoder_for(*type, EncoderOptions(query.prefixes)), query.template
        by = (
            encoder.for_template(template)
            if specialised
            else PlainTemplateEncoder(encoder.encode, template)
        )
        return b"".join(
            [
                encoder.start(),
                *(bytes(by.encode(batch, BATCH * place)) for place, batch in enumerate(batches)),
            ]
        )

    return partial(write, specialised=True), partial(write, specialised=False)


def read(log: bytes) -> list[Message]:
    """The messages of a log, chunk by chunk."""
    decoder = decoder_for(NDJSON_LD)
    found = [
        message
        for start in range(0, len(log), CHUNK)
        for message in decoder.feed(log[start : start + CHUNK])
    ]
    return [*found, *decoder.close()]


def by_pyld(context: object, line: str) -> dict[str, list[object]]:
    """What PyLD makes of a line, by graph."""
    dataset: dict[str, list[object]] = jsonld.to_rdf(
        {"@context": context, "@graph": json.loads(line)}
    )
    return dataset
