"""Messages against SHACL shapes, each by itself: against pySHACL, for few and many quads, and few and many shapes.

`python -m benchmarks micro shacl`; seconds and ratios are of CPU. pySHACL validates a part of the messages, which it
parses as N-Triples: its time is multiplied. Both have read the shapes before.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyshacl
import rdflib

from benchmarks.harness import Figure, alternate, report
from construct_messages.construct.shapes import Shapes
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import RDF, Term, iri, literal

NAME = "http://example.org/"
PREFIXES = f"""\
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix ex: <{NAME}> .
"""
PART = 50  # of the messages, pySHACL validates one in so many
CLASSES = 1000  # of the hierarchy


def turtle(shapes: int) -> str:
    """Node shapes of four properties each, of which one has the messages as its targets."""
    return PREFIXES + "".join(
        f"""\
ex:S{n} a sh:NodeShape ; sh:targetClass ex:C{n} ;
  sh:property [ sh:path ex:p0 ; sh:minCount 1 ; sh:datatype xsd:string ] ;
  sh:property [ sh:path ex:p1 ; sh:datatype xsd:integer ; sh:minInclusive 0 ] ;
  sh:property [ sh:path ex:p2 ; sh:nodeKind sh:IRI ; sh:maxCount 1 ] ;
  sh:property [ sh:path ex:p3 ; sh:languageIn ("en" "de") ; sh:uniqueLang true ] .
"""
        for n in range(shapes)
    )


def messages(count: int, quads: int, *, valid: bool = True, kind: str = "C0") -> list[Message]:
    """Messages about one subject each."""
    return [Message(_quads(number, quads, valid=valid, kind=kind)) for number in range(count)]


def _quads(number: int, quads: int, *, valid: bool, kind: str) -> Iterator[Quad]:
    subject = iri(f"{NAME}item/{number}")
    objects: list[Term] = [
        literal(f"item {number}"),
        literal(number if valid else -1),
        iri(f"{NAME}place/{number % 7}"),
        literal(f"Ding {number}", language="de"),
        *(literal(f"value {place} of the item {number}") for place in range(4, quads - 1)),
    ]
    yield Quad(subject, iri(f"{RDF}type"), iri(f"{NAME}{kind}"))
    for place, object in enumerate(objects[: quads - 1]):
        yield Quad(subject, iri(f"{NAME}p{place}"), object)


def by_us(shapes: Shapes, given: list[Message]) -> list[bool]:
    """Whether each message conforms."""
    return [shapes.validate(message).conforms for message in given]


def by_pyshacl(shapes: rdflib.Graph, static: str, given: list[Message]) -> list[bool]:
    """The same by pySHACL, from N-Triples; with static data as a graph of ontologies."""
    ontology = rdflib.Graph().parse(data=static, format="turtle") if static else None
    return [
        bool(
            pyshacl.validate(
                rdflib.Graph().parse(data=message.lines, format="nt"),
                shacl_graph=shapes,
                ont_graph=ontology,
            )[0]
        )
        for message in given
    ]


def figures(count: int, rounds: int) -> Iterator[Figure]:
    """A line for each case."""
    hierarchy = PREFIXES + "".join(
        f"ex:D{n} rdfs:subClassOf ex:{f'D{n // 2}' if n > 1 else 'C0'} .\n"
        for n in range(1, CLASSES)
    )
    cases = [
        ("5 quads, 1 node shape", 1, messages(count, 5), ""),
        ("30 quads, 1 node shape", 1, messages(count, 30), ""),
        ("5 quads that do not conform, 1 node shape", 1, messages(count, 5, valid=False), ""),
        ("5 quads, 100 node shapes", 100, messages(count // 2, 5), ""),
        ("30 quads, 100 node shapes", 100, messages(count // 2, 30), ""),
        (
            f"5 quads, 1 node shape, a hierarchy of {CLASSES} classes",
            1,
            messages(count, 5, kind="D999"),
            hierarchy,
        ),
    ]
    for name, size, given, static in cases:
        with tempfile.TemporaryDirectory() as folder:
            path, data = Path(folder, "shapes.ttl"), Path(folder, "data.ttl")
            path.write_text(turtle(size))
            data.write_text(static)
            shapes = Shapes(path, data=data if static else ())
        theirs = rdflib.Graph().parse(data=turtle(size), format="turtle")
        part = given[:: PART * (5 if static else 1)]
        if by_us(shapes, part) != by_pyshacl(theirs, static, part):
            raise SystemExit(f"{name}: pySHACL finds something else")
        ours, other = alternate(
            rounds,
            [partial(by_us, shapes, given), partial(by_pyshacl, theirs, static, part)],
            clock=time.process_time,
        )
        ratio = other / len(part) / (ours / len(given))
        yield Figure(f"{len(given) / ours:,.0f}/s: {name}", ours, ratio, "≥ 10")
        yield Figure(f"{len(part) / other:,.0f}/s: by pySHACL, from a part", other)


def main() -> None:
    """`python -m benchmarks micro shacl`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    report(
        "shacl",
        "messages validated one by one; CPU seconds",
        list(figures(options.messages, options.rounds)),
    )
