"""The program of an evaluating process: evaluates over a read-only store directory or table, one query at a time.

The write ends of the pipes for an answer arrive with its order. Results are written to these pipes, and the end of the
evaluation is reported. Enforces no time limit and ignores signals: `pool.py` kills the process, which also ends when
its parent ends.
"""

from __future__ import annotations

import os
import resource
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

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
from construct_messages.sparql.sources.tables import is_table

if TYPE_CHECKING:
    from construct_messages.sparql.sources.duckdb import DuckDbSource
    from construct_messages.sparql.sources.evaluators.tables import TableResult

# `evaluators.tables` is imported for tables only, as it needs the extra `duckdb`


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
    """`python -m construct_messages.sparql.sources.evaluators.child SOCKET DIRECTORY MEMORY SPILL`.

    MEMORY is in bytes, or 0; SPILL is a folder for data of tables beyond it.
    """
    parent = Parent[Order](Order)
    parent.end_with()
    if memory := int(sys.argv[3]):
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    try:
        data = _opened(sys.argv[2], memory, sys.argv[4])
    except ConstructMessagesError as error:  # the directory existed before
        parent.report(Ended(Failure.of(SourceError(error.message, status=503, hint=error.hint))))
        return
    parent.report(Ended())
    for order, pipes in parent.orders():
        try:
            if isinstance(order, Solve):
                _solve(data, order, *pipes)
            else:
                _respond(data, order, parent, *pipes)
        except RAISED as error:
            if not isinstance(data, ox.Store):
                _end_without_memory(error)
            hint, written = (REWRITTEN, order.written) if isinstance(order, Solve) else (None, None)
            parent.report(Ended(Failure.of(explain(error, order.text, hint, written))))
        else:
            parent.report(Ended())


def _opened(directory: str, memory: int, spill: str) -> ox.Store | DuckDbSource:
    if is_table(directory):
        from construct_messages.sparql.sources.evaluators.tables import open_for

        return open_for(directory, memory, spill)
    # the parent process has checked that there is no writer
    return open_directory(Path(directory), allow_stale=True)


def _solve(data: ox.Store | DuckDbSource, order: Solve, first: int, bulk: int) -> None:
    if isinstance(data, ox.Store):
        write_solutions(partial(_begin, data, order), order.variables, first, bulk)
        return
    from construct_messages.sparql.sources.evaluators import tables

    os.close(first)  # DuckDB has no first solutions before the others
    dataset = order.default_graphs, order.named_graphs
    tables.write_solutions(data, order.text, order.written, dataset, bulk)


def _end_without_memory(error: BaseException) -> None:
    """Ends the process if memory was short: DuckDB does not give enough of it back, so another process takes over."""
    from construct_messages.sparql.sources.evaluators.tables import is_short_of_memory

    if is_short_of_memory(error):
        sys.exit(f"{error}")


def _begin(store: ox.Store, order: Order) -> QueryResult:
    return StoreQuery(order.text).begin(store, order.default_graphs, order.named_graphs)


def _respond(
    data: ox.Store | DuckDbSource, order: Respond, parent: Parent[Order], pipe: int
) -> None:
    result: QueryResult | TableResult
    try:
        with ExitStack() as stack:
            if isinstance(data, ox.Store):
                result = _begin(data, order)
            else:
                from construct_messages.sparql.sources.evaluators.tables import answered

                dataset = order.default_graphs, order.named_graphs
                result = stack.enter_context(answered(data, order.text, dataset, pipe))
            media_type, format = _format(result, order)
            parent.report(Formatted(media_type))
            if not order.head:
                serialize(result, pipe, format)
    finally:
        os.close(pipe)


def _format(
    result: QueryResult | TableResult, order: Respond
) -> tuple[str, ox.QueryResultsFormat | ox.RdfFormat]:
    of_triples = not isinstance(result, ox.QuerySolutions | ox.QueryBoolean)
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
