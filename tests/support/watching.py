"""What tests of watches share: a query, an endpoint's answers to it, and what was given out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from construct_messages import Term, iri, literal
from construct_messages.continuous import Watch
from construct_messages.query.continuous.values import Operator
from construct_messages.streams import StreamStore
from tests.support.http.fault_server import response
from tests.support.queries.options import arguments
from tests.support.results.documents import json_document

QUERY = "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }"
VARIABLES = ("s", "o")

Table = Sequence[tuple[Term, Term]]


def table(*names: str) -> Table:
    return [(iri(f"urn:{name}"), literal(name)) for name in names]


def answer(*names: str, **options: Any) -> bytes:
    return response(json_document(VARIABLES, table(*names)), **options)


def watching(store: StreamStore, source: Any, operator: str = "ISTREAM", **options: Any) -> Watch:
    return Watch(
        QUERY,
        source,
        store=store,
        stream="out",
        owner="watch",
        operator=Operator(operator),
        **arguments(options),
    )


class Given:
    """What a watch gave out since it was asked last: the literals of its messages, sorted."""

    def __init__(self, store: StreamStore) -> None:
        self._store, self._position = store, 0

    def __call__(self) -> list[str]:
        elements = list(self._store.read("out", self._position))
        self._position += len(elements)
        return sorted(
            str(quad.object).strip('"') for element in elements for quad in element.message
        )
