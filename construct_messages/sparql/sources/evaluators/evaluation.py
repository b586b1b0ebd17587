"""One evaluation in a process of the pool: its order, the pipes of its answer, and its reports.

`child.py` is the other end; `pool.py` chooses the process for an evaluation.
"""

from __future__ import annotations

import os
from concurrent.futures import Executor
from typing import TypeAlias

from construct_messages.rdf.errors import SourceError
from construct_messages.sparql.children.child import Child
from construct_messages.sparql.engine.pipes import (
    Document,
    bulk_document,
    small_document,
    timed_out,
)
from construct_messages.sparql.sources.evaluators.child import Ended, Order, Report

Evaluator: TypeAlias = Child[Report]
"""A process that evaluates; it reports `Ended` when it is ready."""


def start_evaluator(directory: str, memory: int, executor: Executor | None = None) -> Evaluator:
    """Starts a process over a store directory; see `EvaluatorPool`.

    Raises:
        SourceError: the process cannot be started.
    """
    return Child(
        "construct_messages.sparql.sources.evaluators.child",
        *(directory, str(memory)),
        reports=Report,
        task="evaluated the query",
        hint="ask for less, or give the processes more memory",
        last_line=True,
        executor=executor,
    )


class PooledEvaluation:
    """One evaluation.

    Attributes:
        process: the evaluating process.
        deadline: by `time.monotonic()`; None: no deadline.
        documents: the documents that the process writes.
        over: whether the process reported the end of the evaluation or of its failure.
    """

    def __init__(self, process: Evaluator, deadline: float | None) -> None:
        self.process = process
        self.deadline = deadline
        self.documents: list[Document] = []
        self.over = False

    async def begin(self, order: Order, bulk_only: bool) -> None:
        """Sends the order, with the write ends of the pipes for the answer."""
        write_ends: list[int] = []
        try:
            try:
                for pipe in (bulk_document,) if bulk_only else (small_document, bulk_document):
                    document, write_end = pipe()
                    self.documents.append(document)
                    write_ends.append(write_end)
                    os.set_blocking(document.read_end, False)
            except OSError as error:
                raise SourceError(
                    f"no pipe for the answer could be opened: {error}", status=503
                ) from error
            try:
                await self.process.send(order, self.deadline, write_ends)
            except TimeoutError as error:
                raise timed_out() from error
        finally:
            # a pipe ends when its last writer closes it, which must be the other process
            for write_end in write_ends:
                os.close(write_end)

    async def report(self) -> Report:
        """Returns the next report of the process; raises the error of a failed evaluation."""
        try:
            report = await self.process.receive(self.deadline)
        except TimeoutError as error:
            raise timed_out() from error
        if isinstance(report, Ended):
            self.over = True
            if report.failure:
                raise report.failure.error()
        return report

    async def aend(self, document: Document) -> None:
        """Raises the evaluation's error, if any; to be called at the end of a document."""
        if document is self.documents[-1]:
            await self.report()

    def close(self) -> None:
        """Stops reading, so that a process that still writes gets an error."""
        for document in self.documents:
            os.close(document.read_end)
