"""A pool of processes in which the embedded engine evaluates, so that every evaluation can be stopped.

The engine can neither limit nor cancel an evaluation; a process can be killed. The pool assigns a process to each
evaluation, waits a moment after its end for the process to be idle again, and otherwise kills and
replaces it. The engine's output is piped to its reader unchanged, so a slow reader delays only its own process. See
docs/decisions/010-evaluation-in-processes.md. asyncio only; reads no query.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from concurrent.futures import Executor
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any, Final, TypeAlias

from construct_messages.errors import Forbidden, SourceError, UsageError
from construct_messages.rdf.files.output import temporary_folder
from construct_messages.rdf.formats.media_types import TRIPLES
from construct_messages.rdf.formats.negotiation import choose
from construct_messages.rdf.formats.results import SOLUTIONS
from construct_messages.rdf.solutions import Solutions
from construct_messages.sparql.children import Child
from construct_messages.sparql.engine import (
    Document,
    adecoded,
    aread,
    bulk_document,
    small_document,
    timed_out,
)
from construct_messages.sparql.sources import Answer, Operation, Request
from construct_messages.sparql.sources.evaluators.child import (
    Ended,
    Formatted,
    Order,
    Report,
    Respond,
    Solve,
)
from construct_messages.sparql.sources.files import open_directory
from construct_messages.sparql.sources.tables import (
    check_directory,
    is_table,
)

# --- evaluation -----------------------------------------------------------------------------------
# One evaluation in a process of the pool: its order, the pipes of its answer, and its reports.
#
# `child.py` is the other end; the pool chooses the process for an evaluation.

Evaluator: TypeAlias = Child[Report]
"""A process that evaluates; it reports `Ended` when it is ready."""


def start_evaluator(
    directory: str, memory: int, spill: str, executor: Executor | None = None
) -> Evaluator:
    """Starts a process over a store directory or a table; see `EvaluatorPool`."""
    return Child(
        "construct_messages.sparql.sources.evaluators.child",
        *(directory, str(memory), spill),
        reports=Report,
        task="evaluated the query",
        hint="ask for less, or give the processes more memory",
        last_line=True,
        executor=executor,
    )


class PooledEvaluation:
    """One evaluation, until a deadline of `time.monotonic()`.

    `over`: the process reported the end of the evaluation or of its failure.
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


# --- pool -----------------------------------------------------------------------------------------

_GRACE: Final = 0.25  # seconds for a process to be idle again after its reader has stopped
_START_SECONDS: Final = 60.0
_WARM: Final = 2  # processes kept ready
_FIRST_BYTES: Final = 1 << 13
_FORMAT_PARAMETERS: Final = ("format", "output", "results")


class EvaluatorPool:
    """A store directory or a table of quads as a `Backend`, evaluated by at most `size` processes.

    `start()` starts processes in advance, others are started when they are needed. An evaluation waits up to
    `queue_seconds` for its turn, in the order of requests. Use it in one event loop, and close it.
    """

    predefined: Mapping[str, str] = {}
    stable_blank_nodes = True

    def __init__(
        self,
        directory: Path,
        *,
        size: int = 4,
        queue_seconds: float = 10.0,
        memory_bytes: int | None = None,
        executor: Executor | None = None,
    ) -> None:
        if size < 1:
            raise UsageError(f"{size} processes cannot evaluate anything", hint="pass at least 1")
        self._remove_spill: Callable[[], object] | None = None
        self._spill = ""
        if is_table(directory):
            check_directory(directory)
            # a process that is killed leaves its data there
            self._remove_spill, self._spill = temporary_folder(self)
        else:
            open_directory(directory)  # for its errors
        self._arguments = (str(directory.absolute()), memory_bytes or 0, executor)
        self._queue_seconds = queue_seconds
        self._warm = min(_WARM, size)
        self._turns = asyncio.Semaphore(size)
        self._processes: set[Evaluator] = set()
        self._idle: list[Evaluator] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def start(self) -> None:
        """Starts the processes that are kept ready, so that the first requests need not wait for them."""

        async def start_one() -> None:
            async with self._turns:
                await self._fill()

        started = await asyncio.gather(
            *(start_one() for _ in range(self._warm)), return_exceptions=True
        )
        for error in filter(None, started):
            raise error

    async def asolutions(self, request: Request) -> AsyncGenerator[Solutions]:
        """See `Source.asolutions`. Raises `SourceError` with status 503 if no process was free in time."""
        select = request.select
        order = Solve(
            str(select),
            select.variables,
            request.default_graphs,
            request.named_graphs,
            written=select.written,
        )
        evaluation = await self._evaluate(
            order, bulk_only=False, deadline=_deadline(request.timeout)
        )
        try:
            came = adecoded(
                request.new_tsv_decoder, evaluation.documents, evaluation.deadline, evaluation.aend
            )
            async with aclosing(came) as batches:
                async for batch in batches:
                    yield batch
        finally:
            self._release(evaluation)

    def solutions(self, request: Request) -> Generator[Solutions]:  # noqa: ARG002 - the protocol's
        """Always raises `UsageError`: the processes belong to an event loop."""
        raise UsageError(
            "a pool of processes answers asyncio only",
            hint="use asolutions(), or an OxigraphSource",
        )

    async def answer(self, operation: Operation) -> Answer:
        """See `Backend.answer`; updates are `Forbidden`.

        Solutions are serialized as JSON, XML, CSV or TSV, triples as Turtle, N-Triples, RDF/XML, JSON-LD, N-Quads or
        TriG; by default as the first of these. The parameters `format`, `output` and `results` take precedence over
        `Accept`.
        """
        if operation.update:
            raise Forbidden(
                "updates are refused: the store is read-only",
                hint="change the files, and load them again",
            )
        if operation.text is None:
            raise UsageError("there is no query", hint="send it in the parameter query")
        named = next(
            (value for name, value in operation.parameters if name in _FORMAT_PARAMETERS and value),
            None,
        )
        accept = operation.headers.get("Accept")
        solutions, triples = choose(SOLUTIONS, accept, named), choose(TRIPLES, accept, named)
        order = Respond(
            operation.text,
            operation.default_graphs,
            operation.named_graphs,
            solutions.media_type if solutions else None,
            triples.media_type if triples else None,
            operation.head,
        )
        body = self._body(order, _deadline(operation.timeout))
        media_type = (await anext(body)).decode()
        content_type = next(
            each.content_type for each in (*SOLUTIONS, *TRIPLES) if each.media_type == media_type
        )
        return Answer(200, (("Content-Type", content_type),), body)

    async def _body(self, order: Respond, deadline: float | None) -> AsyncGenerator[bytes]:
        """The media type, after the first part of the answer was successful, and then the body.

        One generator for both, so that closing it at any point releases the evaluation.
        """
        evaluation = await self._evaluate(order, bulk_only=True, deadline=deadline)
        try:
            report = await evaluation.report()
            assert isinstance(report, Formatted)
            (document,) = evaluation.documents
            chunk = b""
            # fewer bytes than the engine writes at once are the whole answer, or the start of a failure
            while len(chunk) < _FIRST_BYTES:
                more = await aread(document, evaluation.deadline)
                chunk += more
                if not more:
                    await evaluation.aend(document)
                    break
            yield report.media_type.encode()
            if chunk:
                yield chunk
            while not evaluation.over:
                if chunk := await aread(document, evaluation.deadline):
                    yield chunk
                else:
                    await evaluation.aend(document)
        finally:
            self._release(evaluation)

    async def check(self) -> None:
        """See `Backend.check`: living processes answer, even if only after a wait."""
        if not self._processes:
            self._give_back(await self._take())

    def close(self) -> None:
        """Kills all processes at once; evaluations under way end with an error."""
        self._closed = True
        for process in self._processes:
            process.kill()
        for process in self._idle:
            process.watch(None)
            self._dismiss(process)
        self._idle.clear()
        if self._remove_spill is not None:
            self._remove_spill()

    async def aclose(self) -> None:
        """`close` for asyncio, which also waits for the end of abandoned evaluations."""
        self.close()
        while self._tasks:
            await asyncio.wait(self._tasks)

    # --- one evaluation ---

    async def _evaluate(
        self, order: Order, *, bulk_only: bool, deadline: float | None
    ) -> PooledEvaluation:
        """Starts an evaluation in a process, in turn; the caller must release it."""
        evaluation = PooledEvaluation(await self._take(), deadline)
        try:
            await evaluation.begin(order, bulk_only)
        except BaseException:
            self._release(evaluation)
            raise
        return evaluation

    def _release(self, evaluation: PooledEvaluation) -> None:
        evaluation.close()
        if evaluation.over:
            self._give_back(evaluation.process)
        else:
            self._in_background(self._wait_for_idle(evaluation.process))

    async def _wait_for_idle(self, process: Evaluator) -> None:
        """Takes back a process, after its reader has stopped, when it is idle; or else replaces it."""
        try:
            while not isinstance(await process.receive(time.monotonic() + _GRACE), Ended):
                pass
        except (SourceError, TimeoutError):
            try:
                await self._replace(process)
            finally:
                self._turns.release()
        else:
            self._give_back(process)

    # --- processes; each that is not idle belongs to a turn, so there are never more than turns ---

    async def _take(self) -> Evaluator:
        try:
            async with asyncio.timeout(self._queue_seconds):
                await self._turns.acquire()
        except TimeoutError as error:
            raise SourceError(
                f"all processes are busy, and none became free within {self._queue_seconds:g} seconds",
                status=503,
                hint="ask again later",
                retry_after=self._queue_seconds,
                transient=True,
            ) from error
        try:
            if self._closed:
                raise SourceError("the pool of processes is closed", status=503)
            while self._idle:
                process = self._idle.pop()
                process.watch(None)
                if process.is_alive():
                    return process
                self._dismiss(process)
            return await self._spawn()
        except BaseException:
            self._turns.release()
            raise

    def _give_back(self, process: Evaluator) -> None:
        self._rest(process)
        self._turns.release()

    def _rest(self, process: Evaluator) -> None:
        if self._closed:
            self._dismiss(process)
            return
        self._idle.append(process)
        process.watch(partial(self._lost, process))

    def _lost(self, process: Evaluator) -> None:
        """Called when an idle process becomes readable: it has ended."""
        process.watch(None)
        self._idle.remove(process)
        self._in_background(self._replace_idle(process))

    async def _replace_idle(self, process: Evaluator) -> None:
        async with self._turns:
            await self._replace(process)

    async def _replace(self, process: Evaluator) -> None:
        await process.akill()
        self._forget(process)
        with suppress(SourceError):  # the next evaluation starts one, and raises the error
            await self._fill()

    def _dismiss(self, process: Evaluator) -> None:
        process.kill_and_wait()
        self._forget(process)

    def _forget(self, process: Evaluator) -> None:
        self._processes.discard(process)
        if self._spill:
            rmtree(Path(self._spill, str(process.pid)), ignore_errors=True)

    async def _fill(self) -> None:
        if len(self._processes) < self._warm and not self._closed:
            self._rest(await self._spawn())

    async def _spawn(self) -> Evaluator:
        directory, memory, executor = self._arguments
        process = start_evaluator(directory, memory, self._spill, executor)
        self._processes.add(process)
        try:
            try:
                report = await process.receive(time.monotonic() + _START_SECONDS)
            except TimeoutError as error:
                raise timed_out() from error
            assert isinstance(report, Ended)
            if report.failure:
                raise report.failure.error()
        except BaseException:
            self._forget(process)
            await process.akill()
            raise
        return process

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _deadline(seconds: float | None) -> float | None:
    return None if seconds is None else time.monotonic() + seconds
