"""Jobs that are done in two ways: the simple one and the one that is kept for its speed, in turn.

`python -m benchmarks micro doubles [GROUP …]` fails where the second way is slower than the first: then it should go.
Both give the same bytes or messages, or nothing is printed. Seconds are of CPU; the compiled module is measured in
processes of its own, with and without it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

import pyoxigraph as ox
from pyld import jsonld  # type: ignore[import-untyped] # it has no type information

from benchmarks.harness import Figure, alternate, completed, report
from benchmarks.micro import data
from benchmarks.micro.continuous import QUERIES, continuous_query, elements
from construct_messages import ConstructQuery, Message, Quad, iri, literal, write_log
from construct_messages.continuous import Bounds, WindowedQuery, WindowOptions
from construct_messages.continuous.transform import BATCH, Transformation
from construct_messages.errors import Position
from construct_messages.logs import EncoderOptions, encoder_for
from construct_messages.logs.jsonld.decoder import Documents
from construct_messages.logs.text_encoder import PlainTemplateEncoder
from construct_messages.options import JsonOptions
from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.rdf.compiled import PURE
from construct_messages.rdf.formats import FORMATS, JSON_DOCUMENTS, RDFM
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import UNBOUND, from_pyoxigraph

PART = 20  # PyLD frames one message in so many
COMPANY = {
    "@context": {
        "dbo": data.DBO,
        "label": {"@id": data.LABEL.value, "@language": "en"},
        "population": f"{data.DBP}populationCensus",
        "location": "dbo:location",
    },
    "@type": "dbo:Company",
}

Way = Callable[[], object]


def writing(size: int) -> Iterator[tuple[str, Way, Way]]:
    """Logs of a query's solutions: by message, and by an encoder that is made for the template."""
    anything = f"{data.PROLOGUE}CONSTRUCT {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o }}"
    for what, text in (("five triples", data.SPECIFICATION), ("?s ?p ?o", anything)):
        query = ConstructQuery.parse(text)
        batches = solutions(query, size)

        def write(make: Callable[[], tuple[Any, Any]], batches: list[Solutions] = batches) -> bytes:
            encoder, by = make()
            encoded = (by.encode(batch, BATCH * place) for place, batch in enumerate(batches))
            return b"".join([encoder.start(), *map(bytes, encoded)])

        for format in FORMATS:
            options = EncoderOptions(query.prefixes, template=query.template)
            make = partial(encoder_for, format, format.own or RDFM, options)
            template = query.template
            if isinstance(make().for_template(template), PlainTemplateEncoder):
                continue

            def simple(make: Any = make, template: Any = template) -> tuple[Any, Any]:
                encoder = make()
                return encoder, PlainTemplateEncoder(encoder.encode, template)

            def fast(make: Any = make, template: Any = template) -> tuple[Any, Any]:
                encoder = make()
                return encoder, encoder.for_template(template)

            yield f"{format.name}, {what}", partial(write, simple), partial(write, fast)


def solutions(query: ConstructQuery, companies: int) -> list[Solutions]:
    """The solutions of the query over generated data, in batches."""
    found = data.store(companies).query(query.select)
    assert isinstance(found, ox.QuerySolutions)
    terms = [
        tuple(UNBOUND if term is None else from_pyoxigraph(term, "d") for term in solution)
        for solution in found
    ]
    return [Solutions.of(terms[start : start + BATCH]) for start in range(0, len(terms), BATCH)]


def framing(size: int) -> Iterator[tuple[str, Way, Way]]:
    """JSON documents by a frame: by PyLD, which reads messages as N-Quads, and by the frame's compiled form."""
    query = ConstructQuery.parse(data.SPECIFICATION)
    template = query.template
    rows = islice((row for batch in solutions(query, size) for row in batch), size // PART)
    messages = [Message(template.instantiate(row, place)) for place, row in enumerate(rows)]
    lines = [message.lines.decode() for message in messages]
    assert JSON_DOCUMENTS.own is not None
    options = EncoderOptions(own=JsonOptions(frame=COMPANY), template=template)
    encoder = encoder_for(JSON_DOCUMENTS, JSON_DOCUMENTS.own, options)

    def by_pyld() -> list[object]:
        native = {"format": "application/n-quads", "useNativeTypes": True}
        framed = [jsonld.frame(jsonld.from_rdf(text, native), COMPANY) for text in lines]
        for document in framed:
            del document["@context"]
        return framed

    yield (
        "JSON documents by a frame",
        by_pyld,
        lambda: [json.loads(encoder.encode(message)) for message in messages],
    )


def transforming(size: int) -> Iterator[tuple[str, Way, Way]]:
    """A CONSTRUCT over each message alone: a store for each, and one for a thousand."""
    lines = [message.lines for message in each_message(size)]
    for what, pattern in {
        "two of five properties": "?s <urn:p1> ?a ; <urn:p2> ?b",
        "each with each": "?s ?a ?b",
        "none": "?s <urn:p7> ?a , ?b",
    }.items():
        query = f"CONSTRUCT {{ ?s <urn:a> ?a ; <urn:b> ?b }} WHERE {{ {pattern} }}"

        def together(query: str = query) -> int:
            transformation = Transformation(query)
            rest = iter(lines)
            batches = iter(lambda: list(islice(rest, BATCH)), [])
            return sum(1 for batch in batches for _ in transformation.batch(batch))

        def singly(query: str = query) -> int:
            return sum(1 for _ in Transformation(query).plain(lines))

        yield f"transform, {what}", singly, together


def each_message(count: int) -> Iterator[Message]:
    """Messages of five quads."""
    for number in range(count):
        yield Message(
            Quad(iri(f"http://example.org/{number}"), iri(f"urn:p{each}"), literal(f"{each} and"))
            for each in range(5)
        )


def windows(size: int) -> Iterator[tuple[str, Way, Way]]:
    """Windows of 1,000 messages with a step of 100: asked as a whole, and maintained."""
    sent = elements(1000 + size // 2)
    for what, (construct, _, pattern) in QUERIES.items():
        query = parse_continuous(continuous_query(construct, pattern, "RSTREAM"))

        def way(*, maintain: bool, query: Any = query) -> int:
            options = WindowOptions(bounds=Bounds.CLOSED_OPEN)
            engine = WindowedQuery(query, options, maintain=maintain)
            firings = (engine.take("http://example.org/in", element) for element in sent)
            found = sum(len(each.messages) for fired in firings for each in fired)
            assert found
            return found

        yield f"windows, {what}", partial(way, maintain=False), partial(way, maintain=True)


def reading(size: int) -> Iterator[tuple[str, Way, Way]]:
    """JSON-LD documents under a context of terms: expanded by PyLD, and in one walk."""
    documents = [
        {
            "@context": COMPANY["@context"],
            "@id": f"urn:s{number}",
            "@type": "dbo:Company",
            "label": f"Company {number}",
            "population": number,
            "location": {"@id": f"urn:o{number}", "label": f"City {number}"},
        }
        for number in range(size // PART)
    ]

    def read(reader: Callable[[Documents], Any]) -> list[list[str]]:
        made = Documents(None, None, Labels("x"))
        messages = [reader(made)(document, 1) for document in documents]
        return [sorted(message.lines.decode().splitlines()) for message in messages]

    yield (
        "JSON-LD documents",
        lambda: read(lambda made: partial(made.by_pyld, most=inf, mask="")),
        lambda: read(lambda made: partial(made.read, position=Position(1, 1))),
    )


GROUPS = {
    "writing": writing,
    "framing": framing,
    "reading": reading,
    "transforming": transforming,
    "windows": windows,
}
COMPILED = "compiled"


def compiled(size: int, rounds: int) -> Iterator[Figure]:
    """Logs converted by the command line, with the compiled module and without: two lines a pair of formats."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.nq"
        write_log(each_message(size * 4), log)
        convert = [sys.executable, "-m", "construct_messages", "convert"]
        for extension in ("nq", "ttl", "trig", "jelly"):
            other, back = log.with_name(f"other.{extension}"), log.with_name("back.nq")
            for source, target in ((log, other), (other, back)):
                seconds: dict[str, list[float]] = {"": [], "1": []}
                written = set()
                for _ in range(rounds):
                    for pure, times in seconds.items():
                        target.unlink(missing_ok=True)
                        done = completed(
                            [*convert, str(source), str(target)], env=os.environ | {PURE: pure}
                        )
                        times.append(done.cpu_seconds)
                        written.add(target.read_bytes())
                if len(written) > 1:
                    raise SystemExit(f"{source.name} → {target.name}: the two ways differ")
                what = f"convert {source.suffix} → {target.suffix}"
                yield from _lines(what, *(median(seconds[pure]) for pure in ("1", "")))


def _lines(what: str, slow: float, fast: float) -> tuple[Figure, Figure]:
    return (
        Figure(f"{what}: the simple way", slow),
        Figure(f"{what}: the fast way, against that", fast, slow / fast, "> 1"),
    )


def measure(groups: list[str], size: int, rounds: int) -> list[Figure]:
    """The table's lines, two for each job."""
    figures: list[Figure] = []
    for group in groups:
        if group == COMPILED:
            figures += compiled(size, rounds)
            continue
        for what, simple, fast in GROUPS[group](size):
            if simple() != fast():
                raise SystemExit(f"{what}: the two ways differ")
            figures += _lines(what, *alternate(rounds, [simple, fast], time.process_time))
    return figures


def main() -> None:
    """Measures each job in both ways."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [*GROUPS, COMPILED]
    parser.add_argument("groups", nargs="*", default=names, metavar="GROUP", help=", ".join(names))
    parser.add_argument("--size", type=int, default=5_000, help="companies or messages")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    figures = measure(arguments.groups, arguments.size, arguments.rounds)
    report("doubles", "CPU seconds of each job in both ways", figures)
    slower = [figure.what for figure in figures if figure.ratio is not None and figure.ratio <= 1]
    if slower:
        raise SystemExit("not faster: " + "; ".join(slower))
