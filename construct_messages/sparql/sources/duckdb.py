"""A table of quads in Parquet as a source, which DuckDB queries by our own plan.

See docs/decisions/108-one-relational-layer.md. `relational/quads.py` writes the tables.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing, contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from construct_messages.errors import SourceError, UsageError
from construct_messages.query.algebra.nodes import Plan
from construct_messages.query.algebra.translation import translate
from construct_messages.query.optimizer.optimize import Hints, explanation, optimize
from construct_messages.rdf.options import UNION
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import XSD, Term, literal, map_blanks
from construct_messages.sparql.relational.duckdb import DuckDbEngine, connected
from construct_messages.sparql.relational.evaluation import PlanSelect
from construct_messages.sparql.relational.expressions import Evaluator, PythonEvaluator
from construct_messages.sparql.relational.quads import read_quads
from construct_messages.sparql.relational.scans import Quads
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.threads import ain_thread, in_thread

if TYPE_CHECKING:
    from collections.abc import Iterator

_BATCH: Final = 10_000  # solutions


class DuckDbSource:
    """A table of quads that `relational.quads.load`, or Spark, has written.

    Args:
        path: the folder.
        memory_limit: of DuckDB, as in `"1500MB"`; None: its default, 80 % of the memory.
        threads: of DuckDB; None: one for each core.
        spill: the folder for data beyond the memory; None: DuckDB's default.
        evaluator: evaluates the expressions that are not native SQL; None: in Python.

    Raises:
        QuadsError: there is no complete table.
    """

    predefined: Mapping[str, str] = {}
    stable_blank_nodes = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        memory_limit: str | None = None,
        threads: int | None = None,
        spill: str | os.PathLike[str] | None = None,
        evaluator: Evaluator | None = None,
    ) -> None:
        self._table = read_quads(path)
        self._evaluator = evaluator or PythonEvaluator()
        self._connection = connected(
            memory_limit=memory_limit, threads=threads, temp_directory=spill
        )
        if self._table.files:
            files = ", ".join(
                "'" + str(file).replace("'", "''") + "'" for file in self._table.files
            )
            self._connection.execute(
                f"CREATE VIEW quads AS SELECT subject, predicate, object, graph FROM read_parquet([{files}])"
            )
        else:
            self._connection.execute(
                "CREATE TABLE quads (subject VARCHAR, predicate VARCHAR, object VARCHAR, graph VARCHAR)"
            )

    def solutions(self, request: Request) -> Generator[Solutions]:
        """See `Source.solutions`. With a time limit, it runs in a thread, which is interrupted at the end."""
        query = _Query(self._connection.cursor(), self.plan(request), request)
        try:
            batches = query.batches(self._quads(query), self._evaluator)
            if request.timeout is None:
                yield from batches
            else:
                yield from in_thread(batches, time.monotonic() + request.timeout)
        finally:
            query.interrupt()

    async def asolutions(self, request: Request) -> AsyncGenerator[Solutions]:
        """See `Source.asolutions`; runs in a thread, which is interrupted when the reader stops."""
        deadline = None if request.timeout is None else time.monotonic() + request.timeout
        query = _Query(self._connection.cursor(), self.plan(request), request)
        try:
            batches = query.batches(self._quads(query), self._evaluator)
            async with aclosing(ain_thread(batches, deadline)) as found:
                async for batch in found:
                    yield batch
        finally:
            query.interrupt()

    def close(self) -> None:
        """Closes the database, which is in memory; the table stays."""
        # an evaluation that was interrupted in its thread is about to end, and the database with it
        with suppress(duckdb.ResourceInUseException):
            self._connection.close()

    def plan(self, request: Request) -> Plan:
        """Returns the plan of a request."""
        if UNION in request.default_graphs:
            raise UsageError(
                "a table of quads has no union of all graphs", hint="name the graphs to merge"
            )
        plan = translate(
            request.select.tree,
            now=literal(datetime.now(UTC).isoformat(), datatype=XSD + "dateTime"),
            default_graphs=request.default_graphs,
            named_graphs=request.named_graphs,
        )
        # DuckDB puts joins in an order of its own
        return optimize(plan, self._table.statistics, hints=Hints(join="joins"))

    def explain(self, request: Request) -> str:
        """Returns the plan of a request and its SQL; stages before the last are evaluated for it."""
        plan = self.plan(request)
        query = _Query(self._connection.cursor(), plan, request)
        sql = query.sql(self._quads(query), self._evaluator)
        return f"{explanation(plan, self._table.statistics)}\n\n{sql}"

    def _quads(self, query: _Query) -> Quads:
        statistics, repeated = self._table.statistics, self._table.repeated
        return Quads(
            "quads", statistics.distinct, query.plan.dataset, query.engine.dialect, repeated
        )


class _Query:
    """The evaluation of one request, in a connection of its own, whose temporary tables end with it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, plan: Plan, request: Request) -> None:
        self.connection, self.plan, self._request = connection, plan, request
        self.engine = DuckDbEngine(connection)

    def sql(self, quads: Quads, evaluator: Evaluator) -> str:
        evaluation = PlanSelect(self.engine, quads, evaluator, self._request.labels)
        return evaluation.select(self.plan)

    def batches(self, quads: Quads, evaluator: Evaluator) -> Generator[Solutions]:
        with _errors():
            try:
                select = self.sql(quads, evaluator)
                for batch in self.connection.sql(select).to_arrow_reader(_BATCH):
                    if batch.num_rows:
                        yield Solutions(list(map(self._column, batch.columns)))
            finally:
                self.connection.close()

    def interrupt(self) -> None:
        """Ends the evaluation, if it runs."""
        self.engine.stopped = True
        with suppress(duckdb.ConnectionException):  # it has ended
            self.connection.interrupt()

    def _column(self, column: pa.Array) -> list[Term]:
        terms: list[Term] = pc.fill_null(column, "").to_pylist()
        has_nodes = pc.any(pc.or_(pc.starts_with(column, "_:"), pc.starts_with(column, "<<(")))
        if not has_nodes.as_py():
            return terms
        scope = self._request.labels.of_data

        def scoped(node: Term) -> Term:
            return Term(f"_:{scope}{node[2:]}")

        return [
            scoped(term)
            if term.startswith("_:")
            else map_blanks(term, scoped)
            if term.startswith("<<(")
            else term
            for term in terms
        ]


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise SourceError(
            f"the memory does not suffice: {error}",
            hint="raise the memory limit, or name a spill folder with more room",
        ) from error
    except duckdb.Error as error:
        raise SourceError(f"DuckDB's evaluation failed: {error}") from error
