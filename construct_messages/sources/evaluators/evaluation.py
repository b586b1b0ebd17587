"""One evaluation by the embedded engine: from a store into the write ends of pipes, blocking until it ends.

Called where blocking holds up nothing else: in a thread (`oxigraph.py`), or in a process of its own (`child.py`). See
docs/decisions/005-embedded-evaluation-through-a-pipe.md. POSIX only (`/dev/fd`). Nothing here reads a pipe.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import pyoxigraph as ox

from construct_messages.errors import ConstructMessagesError, QueryError, SourceError, UsageError
from construct_messages.options import UNION
from construct_messages.query.depth import check_depth
from construct_messages.query.full_names import names_in_full
from construct_messages.query.refusals import refusal
from construct_messages.query.written import Written
from construct_messages.terms import from_pyoxigraph

_FIRST_SOLUTIONS: Final = 64
_SLOW: Final = 0.02  # seconds for that many

QueryResult: TypeAlias = ox.QuerySolutions | ox.QueryBoolean | ox.QueryTriples


def query(
    store: ox.Store, text: str, default_graphs: Sequence[str] = (), named_graphs: Sequence[str] = ()
) -> QueryResult:
    """Starts the evaluation over the SPARQL Protocol's dataset (section 2.1.4).

    Args:
        store: the store.
        text: the query.
        default_graphs, named_graphs: see `Request`.

    Raises:
        UsageError: graph names that make no dataset.
        QueryError: the query is too deep for the engine.
        SyntaxError: the engine refuses the query.
        OSError: the evaluation failed.
    """
    check_depth(text)
    union = UNION in default_graphs
    if union and len(default_graphs) > 1:
        raise UsageError(
            "default graph: union is all graphs already", hint="give union alone, or graph IRIs"
        )
    try:
        default: list[ox.NamedNode | ox.BlankNode | ox.DefaultGraph] = [
            ox.NamedNode(graph) for graph in default_graphs if graph != UNION
        ]
        named: list[ox.NamedNode | ox.BlankNode] = [ox.NamedNode(graph) for graph in named_graphs]
    except ValueError as error:
        raise UsageError(f"graph names must be absolute IRIs: {error}") from error
    return store.query(
        names_in_full(text),
        use_default_graph_as_union=union,
        # naming only named graphs leaves the default graph empty
        default_graph=default if default or named else None,
        named_graphs=named if default or named else None,
    )


def write_solutions(
    run: Callable[[], QueryResult], variables: Sequence[str], first: int, bulk: int
) -> None:
    """Evaluates a SELECT into two TSV documents, and closes both pipes.

    The first document is written solution by solution, so that a query that is slow after its first solutions has
    delivered them; once they come fast, the engine serializes the rest in bulk into the second.

    Args:
        run: starts the evaluation.
        variables: the columns to write.
        first, bulk: the write ends.

    Raises:
        SyntaxError: the engine refuses the query.
        OSError: the evaluation failed, or nobody reads any more.
    """
    try:
        with open(first, "wb") as pipe:
            solutions = run()
            assert isinstance(solutions, ox.QuerySolutions)
            ended = _write_first(solutions, variables, pipe.write, pipe.flush)
        if not ended:
            serialize(solutions, bulk, ox.QueryResultsFormat.TSV)
    finally:
        os.close(bulk)


def _write_first(
    solutions: ox.QuerySolutions,
    variables: Sequence[str],
    write: Callable[[bytes], int],
    flush: Callable[[], None],
) -> bool:
    """Writes solutions one by one until they come fast; whether that was all."""
    write("\t".join(f"?{name}" for name in variables).encode() + b"\n")
    count, started = 0, time.monotonic()
    for solution in solutions:
        terms = (
            "" if term is None else from_pyoxigraph(term)
            for term in (solution[v] for v in variables)
        )
        write("\t".join(terms).encode() + b"\n")
        flush()
        count += 1
        if count == _FIRST_SOLUTIONS:
            if time.monotonic() - started < _SLOW:
                return False
            count, started = 0, time.monotonic()
    return True


def serialize(result: QueryResult, pipe: int, format: ox.QueryResultsFormat | ox.RdfFormat) -> None:
    """Writes a result into a pipe, without the interpreter's lock.

    Raises:
        OSError: the evaluation failed, or nobody reads any more.
    """
    # pyoxigraph calls fsync() on what it wrote, after the last byte; a pipe has none, and says so in its own words
    try:
        os.fsync(pipe)
        no_fsync = None
    except OSError as error:
        no_fsync = f"(os error {error.errno})"
    try:
        result.serialize(f"/dev/fd/{pipe}", format)  # type: ignore[arg-type] # the caller pairs results and formats
    except OSError as error:
        if no_fsync is None or not str(error).endswith(no_fsync):
            raise


def explain(
    error: BaseException, text: str, hint: str | None, written: Written | None = None
) -> ConstructMessagesError:
    """The engine's exception as an error of this package.

    Args:
        error: what was raised.
        text: the query.
        hint: what to say about the position in a query that the engine refuses.
        written: what the text was made of; if the engine refuses that as well, the position is one in it.
    """
    if isinstance(error, ConstructMessagesError):
        return error
    if isinstance(error, RuntimeError) and str(error).startswith("The custom function"):
        return QueryError(
            f"the embedded engine refuses the query: {error}", hint="use the functions of SPARQL"
        )
    if not isinstance(error, SyntaxError):
        return SourceError(f"the embedded evaluation failed: {error}")
    refused = "the embedded engine refuses the query"
    if written is not None and (own := written.refusal()) is not None:
        return refusal(own, written.text, None, refused)
    return refusal(error, text, hint, refused)
