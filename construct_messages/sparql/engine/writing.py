"""Writes the result of one evaluation into the write ends of pipes, blocking until it ends.

Called where it may block: in a thread (`sparql/sources/oxigraph.py`), or in a separate process. See
docs/decisions/005-embedded-evaluation-through-a-pipe.md. POSIX only (`/dev/fd`). `pipes.py` reads the pipes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Final

import pyoxigraph as ox

from construct_messages.rdf.terms import from_pyoxigraph
from construct_messages.sparql.engine.query import QueryResult

_FIRST_SOLUTIONS: Final = 64
_SLOW: Final = 0.02  # seconds for this number


def write_solutions(
    begin: Callable[[], QueryResult], variables: Sequence[str], first: int, bulk: int
) -> None:
    """Evaluates a SELECT into two TSV documents, and closes both pipes.

    The first document is written solution by solution, so that the first solutions of a slow query are delivered at
    once; when solutions are fast, the engine serializes the rest in bulk into the second.

    Args:
        begin: starts the evaluation.
        variables: the columns to write.
        first, bulk: the write ends.

    Raises:
        SyntaxError: the engine rejects the query.
        OSError: the evaluation failed, or the reader has closed the pipe.
    """
    try:
        with open(first, "wb") as pipe:
            solutions = begin()
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
    """Writes solutions one by one until they are fast; returns whether these were all."""
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
        OSError: the evaluation failed, or the reader has closed the pipe.
    """
    # pyoxigraph calls fsync() after the last byte, which fails on a pipe with its own message
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
