"""Reads results documents: by the package's decoders, and by other programs that know nothing of it."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import pyoxigraph as ox
import rdflib
from rdflib.query import Result

from construct_messages.rdf.terms import from_pyoxigraph, from_rdflib
from construct_messages.sparql.results import ResultsDecoder

Table: TypeAlias = list[tuple[str, ...]]

OXIGRAPH: Final = {
    "json": ox.QueryResultsFormat.JSON,
    "xml": ox.QueryResultsFormat.XML,
    "tsv": ox.QueryResultsFormat.TSV,
}


def in_pieces(document: bytes, size: int | None) -> Iterator[bytes]:
    """The document in pieces of this size; None: whole."""
    step = size or len(document) or 1
    return (document[start : start + step] for start in range(0, len(document), step))


def decode(decoder: ResultsDecoder, pieces: Iterable[bytes]) -> Table:
    """All solutions, those that only the end completes too."""
    solutions: Table = [
        solution for piece in pieces for batch in decoder.feed(piece) for solution in batch
    ]
    return solutions + [solution for batch in decoder.close() for solution in batch]


def by_oxigraph(format: str, document: bytes, variables: tuple[str, ...]) -> Table:
    """The solutions as pyoxigraph reads them; blank nodes get the scope of a decoder."""
    solutions = ox.parse_query_results(document, format=OXIGRAPH[format])
    assert isinstance(solutions, ox.QuerySolutions)
    return [
        tuple(
            "" if (term := solution[name]) is None else from_pyoxigraph(term, "d")
            for name in variables
        )
        for solution in solutions
    ]


def by_rdflib(format: str, document: bytes, variables: tuple[str, ...]) -> Table:
    """The solutions as rdflib reads them: XML by libxml2, JSON by the standard library."""
    result = Result.parse(io.BytesIO(document), format=format)
    return [
        tuple(
            "" if (term := solution.get(rdflib.Variable(name))) is None else from_rdflib(term, "d")
            for name in variables
        )
        for solution in result.bindings
    ]
