"""Jelly logs against pyjelly's generic API: `python -m benchmarks micro jelly [--messages N] [--rounds N]`.

Messages of ten triples, and twice as many of five quads, both as a template gives them for made-up solutions. Each side
has its own terms ready in memory: writing goes from these to bytes, reading back to them. Our writer for a template
goes from the solutions to bytes. All runs are taken in turn in one process, on one core.
"""

from __future__ import annotations

import argparse
import gc
import io
from collections.abc import Sequence
from typing import Any

from pyjelly import jelly
from pyjelly.integrations.generic import generic_sink as generic
from pyjelly.integrations.generic.parse import parse_jelly_grouped
from pyjelly.integrations.generic.serialize import grouped_stream_to_file
from pyjelly.options import StreamParameters
from pyjelly.serialize.streams import SerializerOptions

from benchmarks.harness import Figure, alternate, report
from construct_messages.logs import EncoderOptions, decoder_for, encoder_for
from construct_messages.rdf.formats import JELLY, RDFM
from construct_messages.rdf.message import Message
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Constant, Pattern, Template, Variable
from construct_messages.rdf.terms import (
    RDF,
    XSD,
    Term,
    iri,
    is_blank,
    is_literal,
    literal,
    literal_parts,
)

CHUNK = 1 << 16
BATCH = 1000
EX = "http://example.org/"

COMPANY = Template(
    ("company", "name", "label", "motto", "street", "size", "founded", "country", "sector"),
    tuple(
        Pattern(Variable(0), Constant(iri(predicate)), object)
        for predicate, object in (
            (RDF + "type", Constant(iri(EX + "ns#Company"))),
            (EX + "ns#name", Variable(1)),
            (EX + "ns#label", Variable(2)),
            (EX + "ns#motto", Variable(3)),
            (EX + "ns#street", Variable(4)),
            (EX + "ns#employees", Variable(5)),
            (EX + "ns#founded", Variable(6)),
            (EX + "ns#country", Variable(7)),
            (EX + "ns#sector", Variable(8)),
            (EX + "ns#source", Constant(iri(EX + "register/current"))),
        )
    ),
)
OBSERVATION = Template(
    ("observation", "sensor", "time", "result", "label", "day"),
    tuple(
        Pattern(Variable(0), Constant(iri(predicate)), object, Variable(5))
        for predicate, object in (
            (RDF + "type", Constant(iri("http://www.w3.org/ns/sosa/Observation"))),
            ("http://www.w3.org/ns/sosa/madeBySensor", Variable(1)),
            ("http://www.w3.org/ns/sosa/resultTime", Variable(2)),
            ("http://www.w3.org/ns/sosa/hasSimpleResult", Variable(3)),
            ("http://www.w3.org/2000/01/rdf-schema#label", Variable(4)),
        )
    ),
)


def company(number: int) -> tuple[Term, ...]:
    """Made-up values for `COMPANY`."""
    return (
        iri(f"{EX}company/{number:07}"),
        literal(f"Company № {number}"),
        literal(f"Société {number}", language="fr"),
        literal(f"We know {number * 7919 % 1000} ways"),
        literal(f"Rue {number * 31 % 977}, boîte {number % 13}"),
        literal(str(number * 17 % 5000), datatype=XSD + "integer"),
        literal(f"{1900 + number % 120}-0{1 + number % 9}-15", datatype=XSD + "date"),
        iri(f"{EX}country/{number * 13 % 200}"),
        iri(f"{EX}ns#Sector{number * 7 % 40}"),
    )


def observation(number: int) -> tuple[Term, ...]:
    """Made-up values for `OBSERVATION`."""
    return (
        iri(f"{EX}observation/{number:07}"),
        iri(f"{EX}sensor/{number * 31 % 500}"),
        literal(
            f"2026-01-{1 + number % 28:02}T{number % 24:02}:{number * 7 % 60:02}:00Z",
            datatype=XSD + "dateTime",
        ),
        literal(f"{number * 7919 % 6000 / 100 - 20:.2f}", datatype=XSD + "decimal"),
        literal(f"Température à Liège, № {number}", language="fr"),
        iri(f"{EX}day/{number // 1000}"),
    )


def main() -> None:
    """Measures both kinds of messages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    few, many = arguments.messages, 2 * arguments.messages
    figures = [
        *measure(
            f"{few} × 10 triples", COMPANY, [company(n) for n in range(few)], arguments.rounds
        ),
        *measure(
            f"{many} × 5 quads",
            OBSERVATION,
            [observation(n) for n in range(many)],
            arguments.rounds,
        ),
    ]
    report("jelly", "Jelly logs, against pyjelly's generic API", figures)


def measure(
    what: str, template: Template, solutions: Sequence[tuple[Term, ...]], rounds: int
) -> list[Figure]:
    """Runs all in turn, after a check that the logs hold what they should."""
    syntax, graphs = (
        JELLY.syntax(RDFM),
        any(pattern.graph is not None for pattern in template.patterns),
    )
    messages = [
        Message(template.instantiate(solution, number)) for number, solution in enumerate(solutions)
    ]
    batches = [
        (start, Solutions.of(solutions[start : start + BATCH]))
        for start in range(0, len(solutions), BATCH)
    ]
    sinks = [sink(message, graphs) for message in messages]

    def write() -> bytes:
        encoder = encoder_for(JELLY, syntax, EncoderOptions(graphs=graphs))
        return b"".join(map(encoder.encode, messages))

    def write_solutions() -> bytes:
        frames = encoder_for(JELLY, syntax, EncoderOptions(graphs=graphs)).for_template(template)
        return b"".join(bytes(frames.encode(batch, start)) for start, batch in batches)

    def peer_write() -> bytes:
        kind = jelly.LOGICAL_STREAM_TYPE_DATASETS if graphs else jelly.LOGICAL_STREAM_TYPE_GRAPHS
        out = io.BytesIO()
        options = SerializerOptions(logical_type=kind, params=StreamParameters(rdf_star=True))
        grouped_stream_to_file(iter(sinks), out, options=options)
        return out.getvalue()

    log = write()

    def read() -> int:
        decoder, quads = decoder_for(JELLY), 0
        for start in range(0, len(log), CHUNK):
            quads += sum(map(len, decoder.feed(log[start : start + CHUNK])))
        return quads + sum(map(len, decoder.close()))

    def peer_read() -> int:
        return sum(map(len, parse_jelly_grouped(io.BytesIO(log))))

    if (
        log != write_solutions()
        or list(decoder_for(JELLY).feed(log)) != messages
        or read() != peer_read()
    ):
        raise SystemExit(f"{what}: the logs differ")
    gc.collect()
    gc.freeze()  # what all have ready in memory is no garbage of whoever allocates next
    try:
        peer_writes, writes, of_solutions, peer_reads, reads = alternate(
            rounds, (peer_write, write, write_solutions, peer_read, read)
        )
    finally:
        gc.unfreeze()
    rate = sum(map(len, messages)) / 1000
    size = f"{len(log) / len(peer_write()):.3f} of its size"
    return [
        Figure(f"{what}: pyjelly writes {rate / peer_writes:.0f} k/s", peer_writes),
        Figure(
            f"{what}: written, {rate / writes:.0f} k/s, {size}", writes, peer_writes / writes, "≥ 4"
        ),
        Figure(
            f"{what}: written from solutions, {rate / of_solutions:.0f} k/s",
            of_solutions,
            peer_writes / of_solutions,
            "≥ 4",
        ),
        Figure(f"{what}: pyjelly reads {rate / peer_reads:.0f} k/s", peer_reads),
        Figure(f"{what}: read, {rate / reads:.0f} k/s", reads, peer_reads / reads, "≥ 2.5"),
    ]


def sink(message: Message, graphs: bool) -> generic.GenericStatementSink:
    """A message as pyjelly holds one."""
    filled = generic.GenericStatementSink()
    for quad in message:
        terms = [peer_term(term) for term in (quad if graphs else quad[:3])]
        filled.add(generic.Quad(*terms) if graphs else generic.Triple(*terms))
    return filled


def peer_term(term: Term | None) -> Any:
    """A term as pyjelly holds it."""
    if term is None:
        return generic.DefaultGraph
    if is_blank(term):
        return generic.BlankNode(term[2:])
    if is_literal(term):
        value, datatype, language, _ = literal_parts(term)
        return generic.Literal(value, language, datatype)
    return generic.IRI(term[1:-1])
