"""The program of an evaluating process: evaluates over a read-only store directory, one query at a time.

The write ends of the pipes for an answer arrive with its order. Results are written to these pipes, and the end of the
evaluation is reported. Enforces no time limit and ignores signals: `pool.py` kills the process, which also ends when
its parent ends.
"""

from __future__ import annotations

import os
import resource
import sys
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec
import pyoxigraph as ox

from construct_messages.errors import ConstructMessagesError, NotAcceptable, SourceError
from construct_messages.query.checks import REWRITTEN
from construct_messages.query.select import OriginalQuery
from construct_messages.rdf.formats.media_types import TRIPLES
from construct_messages.rdf.formats.results import SOLUTIONS
from construct_messages.sparql.children import Failure, Parent
from construct_messages.sparql.engine import (
    RAISED,
    QueryResult,
    StoreQuery,
    explain,
    serialize,
    write_solutions,
)
from construct_messages.sparql.sources.files import open_directory


class Solve(msgspec.Struct, tag=True, frozen=True):
    """Evaluate a SELECT into two TSV documents (see `write_solutions`). Comes with two pipes."""

    text: str
    variables: tuple[str, ...]
    default_graphs: tuple[str, ...]
    named_graphs: tuple[str, ...]
    written: OriginalQuery | None = None


class Respond(msgspec.Struct, tag=True, frozen=True):
    """Evaluate a query of any form, report the format of its result, and serialize it. Comes with one pipe."""

    text: str
    default_graphs: tuple[str, ...]
    named_graphs: tuple[str, ...]
    # the media type for the result of SELECT and ASK; None: the client accepts none
    solutions_format: str | None
    # the media type for the result of CONSTRUCT and DESCRIBE; None: the client accepts none
    triples_format: str | None
    head: bool  # whether only the format is requested


class Formatted(msgspec.Struct, tag=True, frozen=True):
    """The query is legal; `media_type` is the format of its result."""

    media_type: str


class Ended(msgspec.Struct, tag=True, frozen=True):
    """The order, or the start of the process, ended; without `failure` it was successful."""

    failure: Failure | None = None


Order: TypeAlias = Solve | Respond
Report: TypeAlias = Formatted | Ended


def main() -> None:
    """`python -m construct_messages.sparql.sources.evaluators.child SOCKET DIRECTORY MEMORY`; MEMORY in bytes, or 0."""
    parent = Parent[Order](Order)
    parent.end_with()
    if memory := int(sys.argv[3]):
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    try:
        # the parent process has checked that there is no writer
        store = open_directory(Path(sys.argv[2]), allow_stale=True)
    except ConstructMessagesError as error:  # the directory existed before
        parent.report(Ended(Failure.of(SourceError(error.message, status=503, hint=error.hint))))
        return
    parent.report(Ended())
    for order, pipes in parent.orders():
        try:
            if isinstance(order, Solve):
                write_solutions(partial(_begin, store, order), order.variables, *pipes)
            else:
                _respond(store, order, parent, *pipes)
        except RAISED as error:
            hint, written = (REWRITTEN, order.written) if isinstance(order, Solve) else (None, None)
            parent.report(Ended(Failure.of(explain(error, order.text, hint, written))))
        else:
            parent.report(Ended())


def _begin(store: ox.Store, order: Order) -> QueryResult:
    return StoreQuery(order.text).begin(store, order.default_graphs, order.named_graphs)


def _respond(store: ox.Store, order: Respond, parent: Parent[Order], pipe: int) -> None:
    try:
        result = _begin(store, order)
        media_type, format = _format(result, order)
        parent.report(Formatted(media_type))
        if not order.head:
            serialize(result, pipe, format)
    finally:
        os.close(pipe)


def _format(
    result: QueryResult, order: Respond
) -> tuple[str, ox.QueryResultsFormat | ox.RdfFormat]:
    of_triples = isinstance(result, ox.QueryTriples)
    media_type = order.triples_format if of_triples else order.solutions_format
    if media_type is None:
        offered = tuple(each.media_type for each in (TRIPLES if of_triples else SOLUTIONS))
        raise NotAcceptable(
            "the client accepts no format that this query's result can be serialized in",
            hint=f"ask for one of {', '.join(offered)}",
            offered=offered,
        )
    format = (ox.RdfFormat if of_triples else ox.QueryResultsFormat).from_media_type(media_type)
    assert format is not None
    return media_type, format


if __name__ == "__main__":
    main()
