"""The embedded engine: solutions from a `pyoxigraph.Store`.

The store evaluates in a thread and writes SPARQL TSV into a pipe, without the interpreter's lock, while the caller
decodes it at the other end; closing that end stops the evaluation at its next solution. So Ctrl-C works at once, a
consumer can stop at any time, and a slow consumer slows the evaluation down. See
docs/decisions/010-evaluation-in-processes.md. Files and directories are opened in `files.py`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import AsyncGenerator, Generator, Mapping

import pyoxigraph as ox

from construct_messages.errors import ConstructMessagesError
from construct_messages.query.checks import REWRITTEN
from construct_messages.rdf.solutions import Solutions
from construct_messages.sparql.engine import (
    Document,
    QueryResult,
    StoreQuery,
    adecoded,
    bulk_document,
    decoded,
    explain,
    small_document,
    write_solutions,
)
from construct_messages.sparql.sources import Request


class OxigraphSource:
    """Any `pyoxigraph.Store` as a source; it stays open.

    Oxigraph canonicalises stored values (`01` becomes `1`) and lower-cases language tags; messages show its values.
    """

    predefined: Mapping[str, str] = {}
    stable_blank_nodes = True

    def __init__(self, store: ox.Store) -> None:
        self._store = store

    def solutions(self, request: Request) -> Generator[Solutions]:
        deadline = None if request.timeout is None else time.monotonic() + request.timeout
        with _EvaluatingThread(self._store, request) as evaluation:
            yield from decoded(
                request.new_tsv_decoder, evaluation.documents, deadline, evaluation.end
            )

    async def asolutions(self, request: Request) -> AsyncGenerator[Solutions]:
        deadline = None if request.timeout is None else time.monotonic() + request.timeout
        with _EvaluatingThread(self._store, request) as evaluation:
            async for batch in adecoded(
                request.new_tsv_decoder, evaluation.documents, deadline, evaluation.aend
            ):
                yield batch

    def close(self) -> None:
        """Does nothing: the store belongs to the caller."""


class _EvaluatingThread:
    """One evaluation in its thread, and its two documents."""

    def __init__(self, store: ox.Store, request: Request) -> None:
        self._error: ConstructMessagesError | None = None
        first, bulk = small_document(), bulk_document()
        self.documents = (first[0], bulk[0])
        # a daemon: an abandoned evaluation cannot be stopped before its next solution, and must not delay the exit
        self._thread = threading.Thread(
            target=self._evaluate,
            args=(store, request, first[1], bulk[1]),
            name="construct-messages evaluation",
            daemon=True,
        )
        self._thread.start()

    def __enter__(self) -> _EvaluatingThread:
        return self

    def __exit__(self, *_: object) -> None:
        for document in self.documents:
            os.close(document.read_end)

    def end(self, document: Document) -> None:
        """Raises the evaluation's error, if any; to be called at the end of a document."""
        if document is self.documents[-1]:
            self._thread.join()
            if self._error is not None:
                raise self._error

    async def aend(self, document: Document) -> None:
        """`end` for asyncio; the thread is about to end."""
        self.end(document)

    def _evaluate(self, store: ox.Store, request: Request, first: int, bulk: int) -> None:
        select = request.select

        def begin() -> QueryResult:
            query = StoreQuery(str(select))
            return query.begin(store, request.default_graphs, request.named_graphs)

        try:
            write_solutions(begin, select.variables, first, bulk)
        except BaseException as error:  # noqa: BLE001 - passed to the consumer's thread, which raises it
            # without its traceback, which refers to the solutions, which must be released in their own thread
            self._error = explain(error, str(select), REWRITTEN, select.written)
