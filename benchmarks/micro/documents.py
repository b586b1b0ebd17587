"""JSON documents by a frame: for a template, message by message, and by PyLD.

`python -m benchmarks micro documents`. The messages are those of the specification's query over generated data (5
triples), and of a node with 24 values of several kinds and a node in it (30 triples). Solutions and messages are made
before the clock starts. PyLD reads the messages as N-Quads, as its users do, and frames a part of them; its time is
multiplied. The documents are compared with PyLD's before they are measured.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pyld import jsonld  # type: ignore[import-untyped] # it has no type information

from benchmarks.harness import Figure, alternate, report
from benchmarks.micro import data
from benchmarks.micro.jsonld import BATCH, solutions
from construct_messages import ConstructQuery, JsonOptions
from construct_messages.logs import Encoder, EncoderOptions, encoder_for
from construct_messages.rdf.formats import JSON_DOCUMENTS
from construct_messages.rdf.message import Message
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Template
from construct_messages.rdf.terms import Term, iri, literal, number

PART = 20  # of the messages, PyLD frames one in so many
EX = "http://example.org/"
COMPANY = {
    "@context": {
        "dbo": data.DBO,
        "label": {"@id": data.LABEL.value, "@language": "en"},
        "population": f"{data.DBP}populationCensus",
        "location": "dbo:location",
    },
    "@type": "dbo:Company",
}
PLACE = {"@context": {"@vocab": EX, "name24": {"@language": "en"}}, "@type": "Place"}


@dataclass(frozen=True)
class Shape:
    """Messages of one shape, and their frame."""

    name: str
    frame: dict[str, Any]
    template: Template
    batches: Sequence[Solutions]


def main() -> None:
    """Measures both shapes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--companies", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    report("documents", *measure(arguments.companies, arguments.rounds))


def measure(companies: int, rounds: int) -> tuple[str, list[Figure]]:
    """The table's title and its lines."""
    figures = []
    for shape in (five(companies), thirty(companies // 4)):
        figures += _measured(shape, rounds)
    return "JSON documents", figures


def five(companies: int) -> Shape:
    """The messages of the specification's query: five triples of two nodes."""
    query = ConstructQuery.parse(data.SPECIFICATION)
    return Shape("5 triples", COMPANY, query.template, solutions(query, companies))


def thirty(places: int) -> Shape:
    """Messages of thirty triples: a place with 24 values, and its owner with four."""
    values = " ".join(f":name{number} ?v{number} ;" for number in range(24))
    owner = "?o a :Owner ; :name24 ?n ; :age ?a ; :knows ?k ."
    triples = f"?s a :Place ; {values} :owner ?o . {owner}"
    text = f"PREFIX : <{EX}> CONSTRUCT {{ {triples} }} WHERE {{ {triples} }}"
    template = ConstructQuery.parse(text).template
    rows = [tuple(_value(name, place) for name in template.variables) for place in range(places)]
    batches = [Solutions.of(rows[start : start + BATCH]) for start in range(0, places, BATCH)]
    return Shape("30 triples", PLACE, template, batches)


def _value(name: str, place: int) -> Term:
    if name in "sok":
        return iri(f"{EX}{name}/{place}")
    kind = sum(map(ord, name)) % 3
    if name == "a" or kind == 0:
        return number(str(place))
    if name == "n" or kind == 1:
        return literal(f"value {name} of {place}", language="en")
    return iri(f"{EX}{name}/{place % 50}")


def _encoder(shape: Shape, frame: dict[str, Any] | None) -> Encoder:
    assert JSON_DOCUMENTS.own is not None
    options = EncoderOptions(own=JsonOptions(frame=frame), template=shape.template)
    return encoder_for(JSON_DOCUMENTS, JSON_DOCUMENTS.own, options)


def _by_template(shape: Shape, frame: dict[str, Any] | None) -> bytes:
    encoder = _encoder(shape, frame).for_template(shape.template)
    return b"".join(
        bytes(encoder.encode(batch, BATCH * place)) for place, batch in enumerate(shape.batches)
    )


def by_pyld(lines: Sequence[str], frame: dict[str, Any]) -> list[dict[str, Any]]:
    """The documents of messages as N-Quads, by PyLD."""
    options = {"format": "application/n-quads", "useNativeTypes": True}
    return [jsonld.frame(jsonld.from_rdf(text, options), frame) for text in lines]


def _measured(shape: Shape, rounds: int) -> list[Figure]:
    messages = [
        Message(shape.template.instantiate(solution, place))
        for place, solution in enumerate(row for batch in shape.batches for row in batch)
    ]
    lines = [message.lines.decode() for message in islice(messages, max(1, len(messages) // PART))]
    documents = _by_template(shape, shape.frame)
    plain = _encoder(shape, shape.frame)
    if documents != b"".join(map(plain.encode, messages)):
        raise SystemExit("the two writers do not write the same")
    for document, expected in zip(
        documents.splitlines(), by_pyld(lines, shape.frame), strict=False
    ):
        del expected["@context"]
        if json.loads(document) != expected:
            raise SystemExit(f"PyLD frames {expected}, and not {document.decode()}")
    runs: list[Callable[[], object]] = [
        lambda: by_pyld(lines, shape.frame),
        lambda: list(map(plain.encode, messages)),
        lambda: _by_template(shape, shape.frame),
        lambda: _by_template(shape, None),
    ]
    pyld, one_by_one, by_template, default = alternate(rounds, runs, time.process_time)
    pyld *= len(messages) / len(lines)

    def figure(what: str, seconds: float, goal: str = "") -> Figure:
        rate = f"{len(messages) / seconds:,.0f} documents/s"
        ratio = None if seconds == pyld else pyld / seconds
        return Figure(f"{shape.name}: {what}, {rate}", seconds, ratio, goal)

    return [
        figure("PyLD's from_rdf and frame", pyld),
        figure("a frame, message by message", one_by_one, "≥ 5"),
        figure("a frame, for a template", by_template, "≥ 10"),
        figure("without a frame, for a template", default, "≥ 10"),
    ]
