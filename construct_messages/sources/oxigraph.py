"""The embedded engine: solutions from a `pyoxigraph.Store`.

The store evaluates in a thread and writes SPARQL TSV into a pipe, without the interpreter's lock, while the caller
formats what it reads at the other end; closing that end stops the evaluation at its next solution. So Ctrl-C and a
consumer that leaves are heard at once, and a slow consumer holds the evaluation back. See
docs/decisions/005-embedded-evaluation-through-a-pipe.md. POSIX only (`/dev/fd`). Files and directories are opened in
`files.py`.
"""

from __future__ import annotations

import asyncio
import os
import re
import select as polling
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

import pyoxigraph as ox

from construct_messages.errors import (
    ConstructMessagesError,
    Position,
    QueryError,
    SourceError,
    SourceTimeout,
    UsageError,
)
from construct_messages.results.tsv import TsvDecoder
from construct_messages.solutions import Solutions
from construct_messages.sources import REWRITTEN, UNION, Request
from construct_messages.terms import from_pyoxigraph

_CHUNK: Final = 1 << 16
_WIDE: Final = 1 << 20  # bytes in flight; what Linux grants anybody
_FIRST_SOLUTIONS: Final = 64
_SLOW: Final = 0.02  # seconds for that many
_PATIENCE: Final = 0.001  # seconds to wait for a chunk to fill: larger batches cost less a solution


class OxigraphSource:
    """A store as a source.

    Args:
        store: any `pyoxigraph.Store`; it stays open.

    Oxigraph canonicalises stored values (`01` becomes `1`) and lower-cases language tags; messages show its values.
    """

    predefined: Mapping[str, str] = {}
    stable_blank_nodes = True

    def __init__(self, store: ox.Store) -> None:
        self._store = store

    def solutions(self, request: Request) -> Generator[Solutions]:
        """See `Source.solutions`."""
        deadline = None if request.timeout is None else time.monotonic() + request.timeout
        with _Evaluation(self._store, request) as evaluation:
            for document in evaluation.documents:
                decoder = TsvDecoder(request.select.variables)
                received = False
                while chunk := _read(document, deadline):
                    received = True
                    yield from decoder.feed(chunk)
                evaluation.end(document)
                if received:
                    decoder.close()

    async def asolutions(self, request: Request) -> AsyncGenerator[Solutions]:
        """See `Source.asolutions`."""
        deadline = None if request.timeout is None else time.monotonic() + request.timeout
        with _Evaluation(self._store, request) as evaluation:
            for document in evaluation.documents:
                os.set_blocking(document.read_end, False)
                decoder = TsvDecoder(request.select.variables)
                received = False
                while chunk := await _aread(document, deadline):
                    received = True
                    for batch in decoder.feed(chunk):
                        yield batch
                evaluation.end(document)
                if received:
                    decoder.close()

    def close(self) -> None:
        """Nothing to do: the store is the caller's."""


class _Document(NamedTuple):
    """What a pipe brings, and how to read it: `chunk` bytes at once, where more come within `patience` seconds."""

    read_end: int
    chunk: int
    patience: float


def _read(document: _Document, deadline: float | None) -> bytes:
    """The next bytes; empty at the end."""
    descriptor, chunk, patience = document
    poll = polling.poll()
    poll.register(descriptor, polling.POLLIN)
    if deadline is not None:
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            raise _timeout()
    data = os.read(descriptor, chunk)
    while patience and 0 < len(data) < chunk and poll.poll(patience * 1000):
        more = os.read(descriptor, chunk - len(data))
        if not more:
            break  # the next call meets the end again
        data += more
    return data


async def _aread(document: _Document, deadline: float | None) -> bytes:
    """`_read` for asyncio."""
    descriptor, chunk, patience = document
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        async with asyncio.timeout(None if deadline is None else deadline - time.monotonic()):
            await ready.wait()
    except TimeoutError as error:
        raise _timeout() from error
    finally:
        loop.remove_reader(descriptor)
    data = os.read(descriptor, chunk)
    while patience and 0 < len(data) < chunk:
        await asyncio.sleep(patience)
        try:
            more = os.read(descriptor, chunk - len(data))
        except BlockingIOError:
            break
        if not more:
            break
        data += more
    return data


def _timeout() -> SourceTimeout:
    return SourceTimeout(
        "the embedded evaluation did not end within the time allowed", hint="raise timeout, or add a LIMIT"
    )


class _Evaluation:
    """One evaluation in its thread, and the read ends of its two TSV documents.

    The first document is written solution by solution, so that a query that is slow after its first solutions has
    delivered them; once they come fast, the engine serializes the rest in bulk into the second.
    """

    def __init__(self, store: ox.Store, request: Request) -> None:
        self._error: ConstructMessagesError | None = None
        self._variables = request.select.variables
        self._run = _query_call(store, request)
        first, bulk = os.pipe(), os.pipe()
        # a reader that gathers more than a part of what the pipe holds makes the writer wait
        self.documents = (_Document(first[0], _CHUNK, 0.0), _Document(bulk[0], _widen(bulk[1]) // 4, _PATIENCE))
        # a daemon: an abandoned evaluation, which nothing can stop before its next solution, must not hold up the exit
        self._thread = threading.Thread(
            target=self._evaluate, args=(first[1], bulk[1]), name="construct-messages evaluation", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> _Evaluation:
        return self

    def __exit__(self, *_: object) -> None:
        for document in self.documents:
            os.close(document.read_end)

    def end(self, document: _Document) -> None:
        """At the end of a file, which alone does not mean that the evaluation ended well: raises its error."""
        if document is self.documents[-1]:
            self._thread.join()
            if self._error is not None:
                raise self._error

    def _evaluate(self, first: int, bulk: int) -> None:
        try:
            try:
                with open(first, "wb") as pipe:
                    solutions = self._run()
                    ended = self._write_first(solutions, pipe.write, pipe.flush)
                if not ended:
                    _serialize(solutions, bulk)
            finally:
                os.close(bulk)
        except BaseException as error:  # noqa: BLE001 - carried to the consumer's thread, which raises it
            # without its traceback, which holds the solutions, and these must die in their own thread
            self._error = _explain(error)

    def _write_first(
        self, solutions: ox.QuerySolutions, write: Callable[[bytes], int], flush: Callable[[], None]
    ) -> bool:
        """Writes solutions one by one until they come fast; whether that was all."""
        write("\t".join(f"?{name}" for name in self._variables).encode() + b"\n")
        count, started = 0, time.monotonic()
        for solution in solutions:
            terms = ("" if term is None else from_pyoxigraph(term) for term in (solution[v] for v in self._variables))
            write("\t".join(terms).encode() + b"\n")
            flush()
            count += 1
            if count == _FIRST_SOLUTIONS:
                if time.monotonic() - started < _SLOW:
                    return False
                count, started = 0, time.monotonic()
        return True


def _widen(pipe: int) -> int:
    """Makes a pipe hold more than usual, where the system lets it: then its ends wait less. How many bytes it holds."""
    import fcntl  # Windows has none, and the rest of the package runs there

    if not hasattr(fcntl, "F_SETPIPE_SZ"):
        return 4 * _CHUNK
    with suppress(PermissionError):  # the user has many pipes already
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _WIDE)
    return max(fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ), 4 * _CHUNK)


def _serialize(solutions: ox.QuerySolutions, pipe: int) -> None:
    # pyoxigraph calls fsync() on what it wrote, after the last byte; a pipe has none, and says so in its own words
    try:
        os.fsync(pipe)
        no_fsync = None
    except OSError as error:
        no_fsync = f"(os error {error.errno})"
    try:
        solutions.serialize(f"/dev/fd/{pipe}", ox.QueryResultsFormat.TSV)
    except OSError as error:
        if no_fsync is None or not str(error).endswith(no_fsync):
            raise


def _query_call(store: ox.Store, request: Request) -> Callable[[], ox.QuerySolutions]:
    union = UNION in request.default_graphs
    if union and len(request.default_graphs) > 1:
        raise UsageError("default graph: union is all graphs already", hint="give union alone, or graph IRIs")
    try:
        default: list[ox.NamedNode | ox.BlankNode | ox.DefaultGraph] = [
            ox.NamedNode(graph) for graph in request.default_graphs if graph != UNION
        ]
        named: list[ox.NamedNode | ox.BlankNode] = [ox.NamedNode(graph) for graph in request.named_graphs]
    except ValueError as error:
        raise UsageError(f"graph names must be absolute IRIs: {error}") from error

    def run() -> ox.QuerySolutions:
        solutions = store.query(
            str(request.select),
            use_default_graph_as_union=union,
            # the SPARQL Protocol's dataset: naming only named graphs leaves the default graph empty
            default_graph=default if default or named else None,
            named_graphs=named if default or named else None,
        )
        assert isinstance(solutions, ox.QuerySolutions)
        return solutions

    return run


_AT: Final = re.compile(r"(?:error )?at (\d+):(\d+)(?:-\d+:\d+)?: ", re.IGNORECASE)
# among the tokens it would have taken, the engine's message may hold a sentence that says what is wrong
_SENTENCE: Final = re.compile(r"(?:expected (?:one of )?|, )([A-Z][A-Za-z]*(?: [A-Za-z]+)+)")


def _explain(error: BaseException) -> ConstructMessagesError:
    if not isinstance(error, SyntaxError):
        return SourceError(f"the embedded evaluation failed: {error}")
    place, said = _AT.search(str(error)), _SENTENCE.search(str(error))
    return QueryError(
        f"the embedded engine refuses the query: {said[1] if said else 'unexpected token'}",
        position=Position(int(place[1]), int(place[2])) if place else None,
        hint=REWRITTEN,
    )
