"""Static data of a continuous query: all data of a source, read once. Does I/O, through `sparql/sources/`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from construct_messages.query.continuous.values import ContinuousQuery
from construct_messages.query.select import Select
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Quad
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.open import open_source

if TYPE_CHECKING:
    from construct_messages.sparql.sources.open import SourceLike

_VARIABLES: Final = ("s", "p", "o", "g")
_EVERYTHING: Final = Select(
    prologue="",
    head="SELECT ?s ?p ?o ?g ",
    variables=_VARIABLES,
    dataset="WHERE ",
    group="{ { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }",
)


def read_static(source: SourceLike, query: ContinuousQuery) -> list[Quad]:
    """Returns the quads of a source for a query: those of the graphs in its FROM and FROM NAMED, or else all.

    Args:
        source: see `open_source`.
        query: the query that uses the data.

    Raises:
        UsageError, SourceError: see `open_source`; the source cannot be read.

    >>> import pyoxigraph as ox
    >>> from construct_messages.query.continuous.parse import parse_continuous
    >>> store = ox.Store()
    >>> store.add(ox.Quad(ox.NamedNode("urn:s"), ox.NamedNode("urn:p"), ox.Literal(1), ox.NamedNode("urn:g")))
    >>> read_static(store, parse_continuous("SELECT * { ?s ?p ?o }"))[0].graph
    '<urn:g>'
    """
    opened = open_source(source)
    request = Request(_EVERYTHING, query.default_graphs, query.named_graphs, labels=Labels("s"))
    try:
        return [
            Quad(subject, predicate, object, graph or None)
            for solutions in opened.solutions(request)
            for subject, predicate, object, graph in solutions
        ]
    finally:
        if opened is not source:
            opened.close()
