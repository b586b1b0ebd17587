"""The embedded engine in processes of its own, so that an evaluation can be stopped, whatever it is doing.

A store's evaluation has neither time limit nor cancel; a process can be killed. The pool leases one process (see
`worker.py`) to each evaluation, waits a moment at its end for the process to be idle again, and kills and replaces it
otherwise. What the engine writes goes through a pipe to whoever reads it, untouched, so a slow reader holds back its
own process only. See docs/decisions/010-evaluation-in-processes.md. asyncio only; no query is read here.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from construct_messages.errors import IncompleteResult, SourceError, UsageError
from construct_messages.solutions import Solutions
from construct_messages.sources import Request
from construct_messages.sources.files import open_directory
from construct_messages.sources.operations import Answer, Operation
from construct_messages.sources.pipes import (
    Document,
    adecoded,
    aread,
    bulk_document,
    readable,
    small_document,
    timed_out,
)
from construct_messages.sources.serializations import SOLUTIONS, TRIPLES, choose
from construct_messages.sources.worker import Ended, Formatted, Order, Report, Respond, Solve

_PACKAGES: Final = str(Path(__file__).parents[2])
_GRACE: Final = 0.25  # seconds for a process to be idle again once nobody reads its answer any more
_START_SECONDS: Final = 60.0
_WARM: Final = 2  # processes kept ready
_RECEIVED: Final = 1 << 16  # bytes at once
_REPORTS: Final = msgspec.json.Decoder(Report)
_FORMAT_PARAMETERS: Final = ("format", "output", "results")


class WorkerPool:
    """A store directory as a `Backend`, evaluated by processes.

    Processes are started ahead by `start()`, else when they are needed. To be used in one event loop, and closed.

    Args:
        directory: an Oxigraph store directory, which nothing writes to meanwhile.
        size: how many processes, and so evaluations at once, at most.
        queue_seconds: how long an evaluation may wait for its turn; turns are taken in the order of asking.
        memory_bytes: bound of each process's own memory; an evaluation that needs more ends with an error.
        allow_stale: see `open_directory`.

    Raises:
        UsageError: no such directory, not a store, or a size below 1.
        SourceError: a writer holds the directory, or it cannot be read.
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
        allow_stale: bool = False,
    ) -> None:
        if size < 1:
            raise UsageError(f"{size} processes cannot evaluate anything", hint="give at least 1")
        open_directory(directory, allow_stale=allow_stale)  # for its errors
        self._arguments = (str(directory.absolute()), str(memory_bytes or 0))
        self._queue_seconds = queue_seconds
        self._warm = min(_WARM, size)
        self._turns = asyncio.Semaphore(size)
        self._workers: set[_Worker] = set()
        self._idle: list[_Worker] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def start(self) -> None:
        """Starts what is kept ready, so that the first requests need not wait for it.

        Raises:
            SourceError: a process does not start.
        """

        async def start_one() -> None:
            async with self._turns:
                await self._top_up()

        await asyncio.gather(*(start_one() for _ in range(self._warm)))

    async def asolutions(self, request: Request) -> AsyncGenerator[Solutions]:
        """See `Source.asolutions`.

        Raises:
            SourceError: also with status 503, where no process was free in time.
            IncompleteResult: also where the process ended under the evaluation.
        """
        order = Solve(str(request.select), request.select.variables, request.default_graphs, request.named_graphs)
        evaluation = await self._evaluate(order, bulk_only=False, deadline=_deadline(request.timeout))
        try:
            documents, variables = evaluation.documents, request.select.variables
            async with aclosing(adecoded(documents, variables, evaluation.deadline, evaluation.aend)) as batches:
                async for batch in batches:
                    yield batch
        finally:
            self._release(evaluation)

    def solutions(self, request: Request) -> Generator[Solutions]:  # noqa: ARG002 - the protocol's
        """There is no blocking form: the processes belong to an event loop.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            "a pool of processes answers asyncio only", hint="use asolutions(), or OxigraphSource where threads will do"
        )

    async def answer(self, operation: Operation) -> Answer:
        """See `Backend.answer`.

        Solutions come as JSON, XML, CSV or TSV, triples as Turtle, N-Triples, RDF/XML, JSON-LD, N-Quads or TriG; the
        first where the client does not care. The parameters `format`, `output` and `results` go before `Accept`.

        Raises:
            NotAcceptable: the client takes none of these.
            UsageError: with status 403, an update; no query at all.
            SourceError: also with status 503, where no process was free in time.
        """
        if operation.update:
            raise UsageError("this endpoint is read-only: updates are refused", status=403)
        if operation.text is None:
            raise UsageError("there is no query", hint="give one in the parameter query")
        named = next((value for name, value in operation.parameters if name in _FORMAT_PARAMETERS and value), None)
        accept = operation.headers.get("Accept")
        solutions, triples = choose(SOLUTIONS, accept, named), choose(TRIPLES, accept, named)
        order = Respond(
            operation.text,
            operation.default_graphs,
            operation.named_graphs,
            solutions and solutions.media_type,
            triples and triples.media_type,
            operation.head,
        )
        body = self._body(order, _deadline(operation.timeout))
        media_type = (await anext(body)).decode()
        content_type = next(each.content_type for each in (*SOLUTIONS, *TRIPLES) if each.media_type == media_type)
        return Answer(200, (("Content-Type", content_type),), body)

    async def _body(self, order: Respond, deadline: float | None) -> AsyncGenerator[bytes]:
        """The media type, once it is known that the answer begins well, and then the body.

        One generator for both, so that whoever closes it, at whichever point, lets go of the evaluation.
        """
        evaluation = await self._evaluate(order, bulk_only=True, deadline=deadline)
        try:
            report = await evaluation.report()
            assert isinstance(report, Formatted)
            (document,) = evaluation.documents
            chunk = await aread(document, evaluation.deadline)
            if not chunk:
                await evaluation.aend(document)
            yield report.media_type.encode()
            while chunk:
                yield chunk
                chunk = await aread(document, evaluation.deadline)
            await evaluation.aend(document)
        finally:
            self._release(evaluation)

    async def check(self) -> None:
        """See `Backend.check`: processes that are alive answer, if only in their turn."""
        if not self._workers:
            self._give_back(await self._take())

    def close(self) -> None:
        """Kills all processes at once; evaluations under way end with an error."""
        self._closed = True
        for worker in self._workers:
            worker.kill()
        for worker in self._idle:
            worker.watch(None)
            worker.let_go()
            self._workers.discard(worker)
        self._idle.clear()

    async def aclose(self) -> None:
        """`close` for asyncio, which waits until evaluations that were given up are over, too."""
        self.close()
        while self._tasks:
            await asyncio.wait(self._tasks)

    # --- one evaluation ---

    async def _evaluate(self, order: Order, *, bulk_only: bool, deadline: float | None) -> _Evaluation:
        """Has a process begin, in turn. Whoever gets the evaluation releases it."""
        evaluation = _Evaluation(await self._take(), deadline)
        try:
            await evaluation.begin(order, bulk_only)
        except BaseException:
            self._release(evaluation)
            raise
        return evaluation

    def _release(self, evaluation: _Evaluation) -> None:
        evaluation.close()
        if evaluation.over:
            self._give_back(evaluation.worker)
        else:
            self._in_background(self._settle(evaluation.worker))

    async def _settle(self, worker: _Worker) -> None:
        """Gets a process that nobody listens to any more back, or another one in its place."""
        try:
            while not isinstance(await worker.receive(time.monotonic() + _GRACE), Ended):
                pass
        except SourceError:
            try:
                await self._replace(worker)
            finally:
                self._turns.release()
        else:
            self._give_back(worker)

    # --- processes; each that is not idle belongs to a turn, so there are never more than turns ---

    async def _take(self) -> _Worker:
        if self._closed:
            raise SourceError("the pool of processes is closed", status=503)
        try:
            async with asyncio.timeout(self._queue_seconds):
                await self._turns.acquire()
        except TimeoutError as error:
            raise SourceError(
                f"all evaluations are taken, and none ended within {self._queue_seconds:g} seconds",
                status=503,
                hint="ask again later",
                retry_after=self._queue_seconds,
                transient=True,
            ) from error
        if self._idle:
            worker = self._idle.pop()
            worker.watch(None)
            return worker
        try:
            return await self._spawn()
        except BaseException:
            self._turns.release()
            raise

    def _give_back(self, worker: _Worker) -> None:
        self._rest(worker)
        self._turns.release()

    def _rest(self, worker: _Worker) -> None:
        if self._closed:
            worker.let_go()
            self._workers.discard(worker)
            return
        self._idle.append(worker)
        worker.watch(self._lost)

    def _lost(self, worker: _Worker) -> None:
        """An idle process said something: its end."""
        worker.watch(None)
        self._idle.remove(worker)
        self._in_background(self._replace_idle(worker))

    async def _replace_idle(self, worker: _Worker) -> None:
        async with self._turns:
            await self._replace(worker)

    async def _replace(self, worker: _Worker) -> None:
        await asyncio.to_thread(worker.let_go)
        self._workers.discard(worker)
        with suppress(SourceError):  # whoever needs a process next starts one, and meets the error
            await self._top_up()

    async def _top_up(self) -> None:
        if len(self._workers) < self._warm and not self._closed:
            self._rest(await self._spawn())

    async def _spawn(self) -> _Worker:
        worker = _Worker.start(*self._arguments)
        self._workers.add(worker)
        try:
            report = await worker.receive(time.monotonic() + _START_SECONDS)
            assert isinstance(report, Ended)
            if report.failure:
                raise report.failure.error()
        except BaseException:
            self._workers.discard(worker)
            await asyncio.to_thread(worker.let_go)
            raise
        return worker

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _deadline(seconds: float | None) -> float | None:
    return None if seconds is None else time.monotonic() + seconds


class _Evaluation:
    """One evaluation in a process, as this process sees it.

    Attributes:
        worker: the process.
        deadline: by `time.monotonic()`; None: none.
        documents: what it writes.
        over: whether the process said that it ended, well or not.
    """

    def __init__(self, worker: _Worker, deadline: float | None) -> None:
        self.worker = worker
        self.deadline = deadline
        self.documents: list[Document] = []
        self.over = False

    async def begin(self, order: Order, bulk_only: bool) -> None:
        """Sends the order, with the write ends of the pipes for the answer."""
        write_ends: list[int] = []
        try:
            for pipe in (bulk_document,) if bulk_only else (small_document, bulk_document):
                document, write_end = pipe()
                self.documents.append(document)
                write_ends.append(write_end)
                os.set_blocking(document.read_end, False)
            await self.worker.send(order, write_ends, self.deadline)
        finally:
            # the end of a pipe is the end of its last writer: that must be the other process
            for write_end in write_ends:
                os.close(write_end)

    async def report(self) -> Report:
        """What the process says next; raises the error of an evaluation that failed."""
        report = await self.worker.receive(self.deadline)
        if isinstance(report, Ended):
            self.over = True
            if report.failure:
                raise report.failure.error()
        return report

    async def aend(self, document: Document) -> None:
        """At the end of a document: raises the evaluation's error, once it is known."""
        if document is self.documents[-1]:
            await self.report()

    def close(self) -> None:
        """Stops reading: a process that still writes notices."""
        for document in self.documents:
            os.close(document.read_end)


class _Worker:
    """A process, and the socket to it."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self._process = process
        self._socket = control
        self._received = b""
        control.setblocking(False)

    @classmethod
    def start(cls, directory: str, memory: str) -> _Worker:
        """Starts a process; it reports `Ended` when it is ready."""
        ours, theirs = socket.socketpair()
        environment = dict(os.environ)
        # the package that runs here, wherever it lies, and not what lies in the working directory
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (_PACKAGES, environment.get("PYTHONPATH"))))
        module = "construct_messages.sources.worker"
        with theirs:
            try:
                process = subprocess.Popen(
                    [sys.executable, "-P", "-m", module, str(theirs.fileno()), directory, memory],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    env=environment,
                    start_new_session=True,  # Ctrl-C in the terminal is this process's business
                )
            except OSError as error:
                ours.close()
                raise SourceError(f"no process for the evaluation could be started: {error}", status=503) from error
        return cls(process, ours)

    async def send(self, order: Order, pipes: list[int], deadline: float | None) -> None:
        """Sends an order to a process that is idle."""
        line = msgspec.json.encode(order) + b"\n"
        try:
            sent = socket.send_fds(self._socket, [line], pipes)
            async with asyncio.timeout(None if deadline is None else deadline - time.monotonic()):
                await asyncio.get_running_loop().sock_sendall(self._socket, line[sent:])
        except ConnectionError as error:
            raise await self._death() from error
        except TimeoutError as error:
            raise timed_out() from error

    async def receive(self, deadline: float | None) -> Report:
        """The next report; whoever is cancelled while waiting has taken nothing.

        Raises:
            SourceTimeout: none came before the deadline.
            IncompleteResult: the process ended.
        """
        while b"\n" not in self._received:
            await readable(self._socket.fileno(), deadline)
            try:
                data = self._socket.recv(_RECEIVED)
            except ConnectionError:
                data = b""
            if not data:
                raise await self._death()
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        report: Report = _REPORTS.decode(line)
        return report

    def watch(self, lost: Callable[[_Worker], None] | None) -> None:
        """Calls `lost` when the process, which is idle, ends; None: no longer."""
        loop = asyncio.get_running_loop()
        if lost is None:
            loop.remove_reader(self._socket.fileno())
        else:
            loop.add_reader(self._socket.fileno(), lost, self)

    def kill(self) -> None:
        """Ends the process, whatever it does."""
        self._process.kill()

    def let_go(self) -> None:
        """Ends the process, waits until it is gone, and closes the socket."""
        self.kill()
        self._process.wait()
        self._socket.close()

    async def _death(self) -> IncompleteResult:
        code = await asyncio.to_thread(self._process.wait)
        with suppress(ValueError):  # not every number has a name
            how = signal.Signals(-code).name
            return IncompleteResult(
                f"the process that evaluated the query was ended by {how}",
                hint="ask for less, or give the processes more memory",
            )
        return IncompleteResult(f"the process that evaluated the query ended with code {code}")
