"""The W3C's tests of SHACL (w3c/data-shapes, data-shapes-test-suite/tests), and what other libraries find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlparse

import pyoxigraph as ox

from construct_messages.construct.shapes import ValidationReport
from construct_messages.rdf.message import Message

SH = "http://www.w3.org/ns/shacl#"
_MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_SHT = "http://www.w3.org/ns/shacl-test#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

PREFIXES = f"""\
@prefix sh: <{SH}> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix rdf: <{_RDF}> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix ex: <http://example.org/> .
"""

Found = Counter[tuple[str | None, ...]]
"""How often each result is there: focus node, path, value, component, severity and shape; `_` is a blank node."""

_PARTS = (
    "focusNode",
    "resultPath",
    "value",
    "sourceConstraintComponent",
    "resultSeverity",
    "sourceShape",
)


def message(turtle: str) -> Message:
    """The message of a Turtle or TriG document, with the prefixes above."""
    return Message.from_pyoxigraph(ox.parse(PREFIXES + turtle, format=ox.RdfFormat.TRIG))


class ShaclCase(NamedTuple):
    """A test: the files, and the results that are expected; None: validation must fail."""

    name: str
    data: Path
    shapes: Path
    expected: Found | None


def cases(folder: Path) -> Iterator[ShaclCase]:
    """The tests of a folder."""
    for path in sorted(folder.rglob("*.ttl")):
        data = _read(path)
        for entries in data.quads_for_predicate(ox.NamedNode(f"{_MF}entries")):
            for entry in _members(data, entries.object):
                action, result = (
                    _object(data, entry, f"{_MF}{name}") for name in ("action", "result")
                )
                graphs = [
                    Path(unquote(urlparse(_object(data, action, f"{_SHT}{name}").value).path))  # type: ignore[union-attr]
                    for name in ("dataGraph", "shapesGraph")
                ]
                failure = result == ox.NamedNode(f"{_SHT}Failure")
                yield ShaclCase(
                    f"{path.parent.name}/{path.stem}",
                    graphs[0],
                    graphs[1],
                    None if failure else results_of(data, result),
                )


def results_of(data: ox.Dataset, report: object) -> Found:
    """The results of a report."""
    return Counter(
        tuple(_key(_object(data, result, f"{SH}{part}", default=True)) for part in _PARTS)
        for result in _objects(data, report, f"{SH}result")
    )


def results_in(report: str) -> Found:
    """The results of the only report of an N-Triples document."""
    data = ox.Dataset(ox.parse(report, format=ox.RdfFormat.N_TRIPLES))
    (conforms,) = data.quads_for_predicate(ox.NamedNode(f"{SH}conforms"))
    return results_of(data, conforms.subject)


def found(report: ValidationReport) -> Found:
    """The results of a report of ours."""
    return Counter(
        tuple(
            "_" if part is not None and part.startswith("_:") else part
            for part in (
                result.focus_node,
                result.path_node,
                result.value,
                result.component,
                result.severity,
                result.source_shape or "_",
            )
        )
        for result in report.results
    )


def _read(path: Path) -> ox.Dataset:
    return ox.Dataset(ox.parse(path=str(path), format=ox.RdfFormat.TURTLE, base_iri=path.as_uri()))


def _objects(data: ox.Dataset, subject: object, predicate: str) -> list[ox.Term]:
    return [
        quad.object
        for quad in data.quads_for_subject(subject)  # type: ignore[arg-type]
        if quad.predicate.value == predicate
    ]


def _object(
    data: ox.Dataset, subject: object, predicate: str, default: bool = False
) -> ox.Term | None:
    found = _objects(data, subject, predicate)
    return found[0] if found or not default else None


def _members(data: ox.Dataset, node: object) -> Iterator[ox.Term]:
    while node != ox.NamedNode(f"{_RDF}nil"):
        yield _object(data, node, f"{_RDF}first")  # type: ignore[misc]
        node = _object(data, node, f"{_RDF}rest")


def _key(term: ox.Term | None) -> str | None:
    if term is None:
        return None
    return "_" if isinstance(term, ox.BlankNode) else str(term)
