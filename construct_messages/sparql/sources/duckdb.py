"""Quads that DuckDB queries by our own plan: a table in Parquet, or RDF files that are read for each query.

See docs/decisions/108-one-relational-layer.md. `relational/quads.py` writes the tables, and reads the files.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from datetime import UTC, datetime
from itertools import count
from typing import Final

import duckdb
import pyarrow as pa

from construct_messages.errors import SourceError, UsageError
from construct_messages.query.algebra.nodes import Plan, Var
from construct_messages.query.algebra.translation import translate
from construct_messages.query.optimizer.optimize import Hints, Statistics, explanation, optimize
from construct_messages.query.syntax.parser import Query
from construct_messages.rdf.files.output import temporary_folder
from construct_messages.rdf.labels import Labels, may_have_labels
from construct_messages.rdf.options import UNION
from construct_messages.rdf.solutions import ArrowSolutions, Solutions
from construct_messages.rdf.terms import XSD, Lenient, Term, literal, map_blanks
from construct_messages.sparql.client.urls import is_object_url
from construct_messages.sparql.relational.documents import strings
from construct_messages.sparql.relational.duckdb import DuckDbEngine, connected
from construct_messages.sparql.relational.evaluation import PlanSelect, check
from construct_messages.sparql.relational.quads import (
    QuadsTable,
    RdfFile,
    in_parquet,
    read_files,
    read_quads,
    read_remote_quads,
    shortage,
    version_of,
)
from construct_messages.sparql.relational.relation import column
from construct_messages.sparql.relational.scans import COLUMNS, Quads, predicates
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.threads import ain_thread, in_thread

_BATCH: Final = 10_000  # solutions


class PlanEvaluation:
    """The evaluation of one plan, in a connection of its own, whose temporary tables end with it."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, plan: Plan, *, union: bool, labels: Labels
    ) -> None:
        self.connection, self.plan, self.union, self.labels = connection, plan, union, labels
        self.engine = DuckDbEngine(connection)
        self.statistics = Statistics()

    def sql(self, source: DuckDbSource) -> str:
        """Returns the SELECT of the plan, whose stages before the last have been evaluated."""
        check(self.plan.pattern)
        quads = source.quads(self)
        # DuckDB puts joins in an order of its own
        self.plan = optimize(self.plan, self.statistics, hints=Hints(join="joins"))
        return PlanSelect(self.engine, quads, self.labels).select(self.plan)

    def batches(self, source: DuckDbSource) -> Generator[pa.RecordBatch]:
        """Yields the solutions: a column of terms for each variable of the plan, NULL where it is unbound."""
        with _errors():
            try:
                select = self.sql(source)
                for batch in self.connection.sql(select).to_arrow_reader(_BATCH):
                    if batch.num_rows:
                        yield batch
            finally:
                self.connection.close()

    def solutions(self, source: DuckDbSource) -> Generator[Solutions]:
        """Yields the solutions with the labels of the request."""
        for batch in self.batches(source):
            yield ArrowSolutions([self._scoped(column) for column in batch.columns])

    def descriptions(self, source: DuckDbSource) -> Generator[pa.RecordBatch]:
        """Yields the triples that describe all terms of the solutions, each triple once.

        They are those of the default graph with such a subject, and so on for the blank nodes that are their objects.
        """
        with _errors():
            try:
                names = [column(Var(name)) for name in self.plan.variables]
                self.connection.execute(f"CREATE TEMP TABLE found AS {self.sql(source)}")
                nodes = " UNION ".join(f"SELECT {name} FROM found" for name in names) or "SELECT ''"
                graph = source.quads(self).in_graph(None)
                self.connection.execute(
                    "CREATE TEMP TABLE described AS SELECT 0 AS step, subject, predicate, object FROM quads LIMIT 0"
                )
                for step in count(1):
                    self.connection.execute(
                        f"INSERT INTO described SELECT DISTINCT {step}, subject, predicate, object FROM quads "
                        f"WHERE {graph} AND subject IN ({nodes})"
                    )
                    new = f"FROM described WHERE step = {step}"
                    triples = self.connection.sql(f"SELECT subject, predicate, object {new}")
                    yield from triples.to_arrow_reader(_BATCH)
                    nodes = (
                        f"SELECT object {new} AND starts_with(object, '_:') "
                        "AND object NOT IN (SELECT subject FROM described)"
                    )
                    if self.connection.execute(nodes).fetchone() is None:
                        return
            finally:
                self.connection.close()

    def interrupt(self) -> None:
        """Ends the evaluation, if it runs."""
        self.engine.stopped = True
        with suppress(duckdb.ConnectionException):  # it has ended
            self.connection.interrupt()

    def _scoped(self, column: pa.Array) -> pa.Array:
        data = column.buffers()[2]  # of all strings
        if data is None or not may_have_labels(data.to_pybytes()):
            return column
        scope = self.labels.of_data

        def scoped(node: Term) -> Term:
            return Term(f"_:{scope}{node[2:]}")

        return strings(
            term
            if term is None or not term.startswith(("_:", "<<("))
            else scoped(term)
            if term.startswith("_:")
            else map_blanks(term, scoped)
            for term in column.to_pylist()
        )


class DuckDbSource:
    """A table of quads that `relational.quads.load`, or Spark, has written.

    Args:
        path: the folder; or the URL of Parquet files in an object store.
        memory_limit: of DuckDB, as in `"1500MB"`; None: its default, 80 % of the memory.
        threads: of DuckDB; None: one for each core.
        spill: the folder for data beyond the memory; None: a temporary one, which is removed at the end.

    Raises:
        QuadsError: there is no complete table.
    """

    predefined: Mapping[str, str] = {}
    stable_blank_nodes = True
    _table: QuadsTable
    _spill: Callable[[], object] | None = None  # removes the temporary folder

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        memory_limit: str | None = None,
        threads: int | None = None,
        spill: str | os.PathLike[str] | None = None,
    ) -> None:
        self._open(memory_limit, threads, spill)
        self._path, self._reading = path, threading.Lock()
        self._version: object = None
        self._read()

    def _read(self) -> None:
        """Reads the record of the table, if that has changed since it was read: another process may load files."""
        with self._reading:
            if is_object_url(self._path):
                if self._version is None:
                    self._table, self._version = read_remote_quads(str(self._path)), True
                return
            version = version_of(self._path)
            if version == self._version:
                return
            self._table = read_quads(self._path)
            files = self._table.files
            quads = in_parquet(files) if files else f"(SELECT {_NO_QUADS} WHERE FALSE)"
            self._connection.execute(
                f"CREATE OR REPLACE VIEW quads AS SELECT {', '.join(COLUMNS)} FROM {quads}"
            )
            self._version = version

    def _open(
        self,
        memory_limit: str | None,
        threads: int | None,
        spill: str | os.PathLike[str] | None,
    ) -> None:
        if spill is None:
            self._spill, spill = temporary_folder(self)
        self._connection = connected(
            memory_limit=memory_limit,
            threads=threads,
            temp_directory=spill,
        )

    def solutions(self, request: Request) -> Generator[Solutions]:
        """See `Source.solutions`. With a time limit, it runs in a thread, which is interrupted at the end."""
        evaluation = self._asked(request)
        try:
            batches = evaluation.solutions(self)
            if request.timeout is None:
                yield from batches
            else:
                yield from in_thread(batches, time.monotonic() + request.timeout)
        finally:
            evaluation.interrupt()

    async def asolutions(self, request: Request) -> AsyncGenerator[Solutions]:
        """See `Source.asolutions`; runs in a thread, which is interrupted when the reader stops."""
        deadline = None if request.timeout is None else time.monotonic() + request.timeout
        evaluation = self._asked(request)
        try:
            batches = evaluation.solutions(self)
            async with aclosing(ain_thread(batches, deadline)) as found:
                async for batch in found:
                    yield batch
        finally:
            evaluation.interrupt()

    def close(self) -> None:
        """Closes the database, which is in memory; tables and files stay."""
        # an evaluation that was interrupted in its thread is about to end, and the database with it
        with suppress(duckdb.ResourceInUseException):
            self._connection.close()
        if self._spill is not None:
            self._spill()

    def explain(self, request: Request) -> str:
        """Returns the plan of a request and its SQL; stages before the last are evaluated for it."""
        evaluation = self._asked(request)
        with _errors():
            sql = evaluation.sql(self)
        evaluation.connection.close()
        return f"{explanation(evaluation.plan, evaluation.statistics)}\n\n{sql}"

    def evaluation(
        self,
        query: Query,
        default_graphs: Sequence[str] = (),
        named_graphs: Sequence[str] = (),
        labels: Labels | None = None,
    ) -> PlanEvaluation:
        """Begins the evaluation of a SELECT or ASK."""
        self._read()
        union = UNION in default_graphs
        if union and len(default_graphs) > 1:
            raise UsageError(
                "default graph: union is all graphs already", hint="use union alone, or graph IRIs"
            )
        plan = translate(
            query,
            now=literal(datetime.now(UTC).isoformat(), datatype=XSD + "dateTime"),
            default_graphs=() if union else default_graphs,
            named_graphs=named_graphs,
        )
        cursor = self._connection.cursor()
        return PlanEvaluation(cursor, plan, union=union, labels=labels or Labels())

    def quads(self, evaluation: PlanEvaluation) -> Quads:
        """Returns the quads for an evaluation, which gets their statistics."""
        statistics = evaluation.statistics = self._table.statistics
        if self._table.remote is not None:  # a name of one connection only
            evaluation.connection.register("quads", self._table.remote)
        return Quads(
            "quads",
            statistics.distinct,
            evaluation.plan.dataset,
            evaluation.engine.dialect,
            self._table.repeated,
            evaluation.union,
        )

    def _asked(self, request: Request) -> PlanEvaluation:
        return self.evaluation(
            request.select.tree, request.default_graphs, request.named_graphs, request.labels
        )


_NO_QUADS: Final = ", ".join(f"CAST(NULL AS VARCHAR) AS {name}" for name in COLUMNS)


class DuckDbFiles(DuckDbSource):
    """RDF files, of which each query reads the quads that its patterns may match.

    They are in a temporary table of DuckDB while the query runs, on disk where the memory does not suffice. Reading
    takes most of the time, so that files which are queried again are better loaded into a table.

    Args:
        paths: N-Triples, N-Quads, Turtle, TriG, RDF/XML or JSON-LD, also compressed.
        format: that of all files, by extension, name or media type; None: that of each extension.
        lenient: accept terms that are not RDF; `"skip"`: leave out their statements. Both are logged.
        memory_limit, threads, spill: see `DuckDbSource`.

    Raises:
        UsageError: there is no such file, or an unknown format.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        format: str | None = None,
        *,
        lenient: Lenient = False,
        memory_limit: str | None = None,
        threads: int | None = None,
        spill: str | os.PathLike[str] | None = None,
    ) -> None:
        self._files = [RdfFile.at(path, format) for path in paths]
        self._lenient = lenient
        self._open(memory_limit, threads, spill)

    def _read(self) -> None:
        """Does nothing: files are read for each query."""

    def quads(self, evaluation: PlanEvaluation) -> Quads:
        """Reads the files into a temporary table; see `DuckDbSource.quads`."""
        dialect = evaluation.engine.dialect
        evaluation.statistics = read_files(
            evaluation.connection, self._files, predicates(evaluation.plan), self._lenient
        )
        return Quads("quads", True, evaluation.plan.dataset, dialect, None, evaluation.union)


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise SourceError(
            f"the memory does not suffice: {shortage(error)}",
            hint="raise the memory limit, or name a spill folder with more room",
        ) from error
    except duckdb.Error as error:
        raise SourceError(f"DuckDB's evaluation failed: {error}") from error
