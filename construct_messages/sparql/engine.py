"""The embedded engine: evaluates queries over a `pyoxigraph.Store` and returns solutions.

A query is evaluated to its end, or writes its solutions into a pipe, from which they are read incrementally. SPARQL 1.1
Protocol, section 2.1.4 (the dataset). No files, no sources and no windows here; no I/O except for the store and pipes.
"""

from __future__ import annotations

import os
import select as polling
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import pyoxigraph as ox

from construct_messages.errors import (
    ConstructMessagesError,
    QueryError,
    SourceError,
    SourceTimeout,
    UsageError,
)
from construct_messages.query.checks import check, refusal
from construct_messages.query.embedded import check_depth, for_embedded, names_in_full
from construct_messages.query.select import OriginalQuery
from construct_messages.query.syntax.parser import parse
from construct_messages.rdf.options import UNION
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import from_pyoxigraph
from construct_messages.sparql.results.tsv import TsvDecoder

# --- pipes ----------------------------------------------------------------------------------------
# Reads the documents that evaluations write into pipes: opens the pipes, reads them, and decodes the solutions.
#
# The writer is a thread of this process or another process, and a query its end. Starts no evaluation.

_CHUNK: Final = 1 << 16
_WIDE: Final = 1 << 20  # bytes in flight; the maximum for ordinary users in Linux
_FILL_SECONDS: Final = 0.001  # to wait for a full chunk: larger batches cost less per solution


class Document(NamedTuple):
    """The read end of a pipe, and how to read it."""

    read_end: int
    chunk: int
    wait_seconds: float  # seconds to wait for more after the first bytes


def small_document() -> tuple[Document, int]:
    """Opens a pipe for output in small pieces, each of which is read at once; returns it with its write end."""
    read_end, write_end = os.pipe()
    return Document(read_end, _CHUNK, 0.0), write_end


def bulk_document() -> tuple[Document, int]:
    """Opens a pipe for output in bulk; returns it with its write end."""
    read_end, write_end = os.pipe()
    # a reader that gathers more than a part of the pipe's capacity makes the writer wait
    return Document(read_end, _widen(write_end) // 4, _FILL_SECONDS), write_end


def decoded(
    new_decoder: Callable[[], TsvDecoder],
    documents: Sequence[Document],
    deadline: float | None,
    end: Callable[[Document], None],
) -> Generator[Solutions]:
    """Yields the solutions of an evaluation's TSV documents, whose read ends block, one document after the other.

    `end` is called at the end of each document, and raises the error of the evaluation, if any. The deadline is a time
    of `time.monotonic()`.
    """
    for document in documents:
        decoder = new_decoder()
        received = False
        while chunk := read(document, deadline):
            received = True
            yield from decoder.feed(chunk)
        end(document)
        if received:
            yield from decoder.close()


async def adecoded(
    new_decoder: Callable[[], TsvDecoder],
    documents: Sequence[Document],
    deadline: float | None,
    end: Callable[[Document], Awaitable[None]],
) -> AsyncGenerator[Solutions]:
    """`decoded` for asyncio; makes the read ends non-blocking."""
    for document in documents:
        os.set_blocking(document.read_end, False)
        decoder = new_decoder()
        received = False
        while chunk := await aread(document, deadline):
            received = True
            for batch in decoder.feed(chunk):
                yield batch
        await end(document)
        if received:
            for batch in decoder.close():
                yield batch


def read(document: Document, deadline: float | None) -> bytes:
    """Returns the next bytes of a document whose read end blocks; none at its end. Raises `SourceTimeout` at the
    deadline.
    """
    descriptor, chunk, wait_seconds = document
    poll = polling.poll()
    poll.register(descriptor, polling.POLLIN)
    if deadline is not None:
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            raise timed_out()
    pieces = [os.read(descriptor, chunk)]
    missing = chunk - len(pieces[0])
    while wait_seconds and pieces[-1] and missing:
        # sleeps instead of waiting for the pipe, so that the writer need not wake this thread for each write
        time.sleep(wait_seconds)
        if not poll.poll(0):
            break
        pieces.append(os.read(descriptor, missing))  # empty at the end, as in the next call
        missing -= len(pieces[-1])
    return b"".join(pieces)


async def aread(document: Document, deadline: float | None) -> bytes:
    """`read` for asyncio; the read end does not block."""
    import asyncio  # imported here because it takes longer than a query over a small file

    from construct_messages.sparql.children import readable

    descriptor, chunk, wait_seconds = document
    try:
        await readable(descriptor, None if deadline is None else deadline - time.monotonic())
    except TimeoutError as error:
        raise timed_out() from error
    pieces = [os.read(descriptor, chunk)]
    missing = chunk - len(pieces[0])
    while wait_seconds and pieces[-1] and missing:
        await asyncio.sleep(wait_seconds)
        try:
            pieces.append(os.read(descriptor, missing))
        except BlockingIOError:
            break
        missing -= len(pieces[-1])
    return b"".join(pieces)


def timed_out() -> SourceTimeout:
    """Returns the error for an evaluation past its deadline."""
    return SourceTimeout(
        "the embedded evaluation did not end within the time allowed",
        hint="raise timeout, or add a LIMIT",
    )


def _widen(pipe: int) -> int:
    """Enlarges the buffer of a pipe, if the system allows it, so that its ends wait less; returns the size in bytes."""
    import fcntl  # Windows does not have this module, but runs the rest of the package

    if not hasattr(fcntl, "F_SETPIPE_SZ"):
        return 4 * _CHUNK
    with suppress(PermissionError):  # the user already has many pipes
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _WIDE)
    return max(fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ), 4 * _CHUNK)


# --- writing --------------------------------------------------------------------------------------
# Writes the result of one evaluation into the write ends of pipes, blocking until it ends.
#
# Called where it may block: in a thread (`sparql/sources/oxigraph.py`), or in a separate process. See
# docs/decisions/010-evaluation-in-processes.md. POSIX only (`/dev/fd`).

_FIRST_SOLUTIONS: Final = 64
_SLOW: Final = 0.02  # seconds for this number


def write_solutions(
    begin: Callable[[], QueryResult], variables: Sequence[str], first: int, bulk: int
) -> None:
    """Evaluates a SELECT into two TSV documents, and closes both pipes.

    The first document is written solution by solution, so that the first solutions of a slow query are delivered at
    once; when solutions are fast, the engine serializes the rest in bulk into the second.
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


class Serializable(Protocol):
    """What pyoxigraph serializes."""

    def serialize(self, output: str, format: Any, /) -> object:
        """Writes it into a file, in a format for it."""


def serialize(
    result: QueryResult | Serializable, pipe: int, format: ox.QueryResultsFormat | ox.RdfFormat
) -> None:
    """Writes a result into a pipe, without the interpreter's lock.

    Raises `OSError` if the evaluation failed, or the reader has closed the pipe.
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


# --- query ----------------------------------------------------------------------------------------

QueryResult: TypeAlias = ox.QuerySolutions | ox.QueryBoolean | ox.QueryTriples
Functions: TypeAlias = Callable[[ox.Store], Mapping[ox.NamedNode, Callable[..., Any]]]
"""Extension functions of a query, by their IRIs, given the store."""

RAISED: Final = (
    ConstructMessagesError,
    SyntaxError,
    OSError,
    ValueError,
    RuntimeError,
    MemoryError,
)
"""The exceptions of an evaluation, which `StoreQuery.error` converts."""


class Solved(NamedTuple):
    """All solutions of a query."""

    variables: tuple[str, ...]  # in the order of the projection
    total: int
    # the solutions by column, with the engine's own labels; None without solutions or variables
    solutions: Solutions | None
    has_blanks: bool  # whether there may be blank nodes among their terms


class StoreQuery:
    """A query to evaluate over stores.

    If the engine rejects it, and also the `written` query that it was made from, errors have positions in that;
    otherwise the `hint` is about positions. Raises `QueryError` for a query that is too deep for the engine, or that it
    would evaluate wrongly: see `for_embedded`.

    >>> store = ox.Store()
    >>> store.add(ox.Quad(ox.NamedNode("urn:s"), ox.NamedNode("urn:p"), ox.Literal(1), ox.NamedNode("urn:g")))
    >>> list(StoreQuery("SELECT ?s { ?s ?p 1 }").solve(store, (UNION,)).solutions)
    [('<urn:s>',)]
    """

    def __init__(
        self,
        text: str,
        hint: str | None = None,
        written: OriginalQuery | None = None,
        functions: Functions | None = None,
    ) -> None:
        check_depth(text)
        self.text = text
        self._hint, self._written, self._functions = hint, written, functions
        self._embedded = for_embedded(text)

    def begin(
        self, store: ox.Store, default_graphs: Sequence[str] = (), named_graphs: Sequence[str] = ()
    ) -> QueryResult:
        """Starts the evaluation over the union of the default graphs, `(UNION,)` for all, and the named graphs.

        Raises `UsageError` if they are no dataset, and the engine's `SyntaxError` and `OSError`.
        """
        union = UNION in default_graphs
        if union and len(default_graphs) > 1:
            raise UsageError(
                "default graph: union is all graphs already", hint="use union alone, or graph IRIs"
            )
        try:
            default: list[ox.NamedNode | ox.BlankNode | ox.DefaultGraph] = [
                ox.NamedNode(graph) for graph in default_graphs if graph != UNION
            ]
            named: list[ox.NamedNode | ox.BlankNode] = list(map(ox.NamedNode, named_graphs))
        except ValueError as error:
            raise UsageError(f"graph names must be absolute IRIs: {error}") from error
        return store.query(
            self._embedded,
            use_default_graph_as_union=union,
            # with only named graphs, the default graph is empty
            default_graph=default if default or named else None,
            named_graphs=named if default or named else None,
            custom_functions=None if self._functions is None else dict(self._functions(store)),
        )

    def check(self) -> tuple[str, ...]:
        """Checks a SELECT by the engine, and returns its variables; evaluates nothing."""
        try:
            result = self.begin(ox.Store())
        except RAISED as error:
            raise self.error(error) from error
        assert isinstance(result, ox.QuerySolutions)
        return tuple(variable.value for variable in result.variables)

    def solve(self, store: ox.Store, default_graphs: Sequence[str] = ()) -> Solved:
        """Evaluates a SELECT to its end."""
        try:
            result = self.begin(store, default_graphs)
            assert isinstance(result, ox.QuerySolutions)
            variables = tuple(variable.value for variable in result.variables)
            if not variables:
                return Solved((), sum(1 for _ in result), None, False)
            document = result.serialize(format=ox.QueryResultsFormat.TSV)
        except RAISED as error:
            raise self.error(error) from error
        assert document is not None  # without a file, it returns the bytes
        decoder = TsvDecoder(variables, scope="")
        batches = decoder.feed(document)
        decoder.close()
        solutions = batches[0] if batches else None
        return Solved(
            variables, 0 if solutions is None else len(solutions), solutions, b"_:" in document
        )

    def error(self, error: BaseException) -> ConstructMessagesError:
        """Converts the engine's exception to an error of this package."""
        return explain(error, self.text, self._hint, self._written)


def explain(
    error: BaseException, text: str, hint: str | None = None, written: OriginalQuery | None = None
) -> ConstructMessagesError:
    """Converts the engine's exception to an error of this package; see `StoreQuery`."""
    if isinstance(error, ConstructMessagesError):
        return error
    if isinstance(error, RuntimeError) and str(error).startswith("The custom function"):
        return QueryError(
            f"the embedded engine refuses the query: {error}", hint="use the functions of SPARQL"
        )
    if not isinstance(error, SyntaxError):
        return SourceError(f"the embedded evaluation failed: {error}")
    refused = "the embedded engine refuses the query"
    known = written or OriginalQuery(text)
    if (own := _grammatical(known)) is not None:
        return QueryError(f"{refused}: {own.message}", position=own.position, hint=own.hint)
    found = refusal(error, refused, hint)
    if for_embedded(text) != names_in_full(
        text
    ):  # the position is in the text that the engine was asked
        return QueryError(found.message, hint=found.hint)
    return found


def _grammatical(query: OriginalQuery) -> QueryError | None:
    """Returns why a query is not SPARQL, by this package's own parser; None if it is, or is of the engine's dialect.

    The engine's parser tries all that may follow, and gives the position of the last.
    """
    try:
        check(parse(query.text, base=query.base, prefixes=query.prefixes))
    except QueryError as error:
        return None if error.message.endswith("found LATERAL") else error
    return None
