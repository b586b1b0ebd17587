"""An evaluating process, and an evaluation in it, as seen by the process that started it.

`child.py` runs at the other end; `pool.py` chooses the process for an evaluation.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Final

import msgspec

from construct_messages.errors import IncompleteResult, SourceError
from construct_messages.sources.evaluators.child import Ended, Order, Report
from construct_messages.sources.evaluators.pipes import (
    Document,
    bulk_document,
    readable,
    small_document,
    timed_out,
)

_PACKAGES: Final = str(Path(__file__).parents[2])
# Oxigraph aborts where it gets no memory, and the system kills processes where there is none
_CAUSES: Final = {
    signal.SIGABRT: ", most likely because it needed more memory than it may take",
    signal.SIGKILL: ", by a user, or by the system because memory was short",
}
_RECEIVED: Final = 1 << 16  # bytes at once
_REPORTS: Final = msgspec.json.Decoder(Report)


def module_command(module: str) -> tuple[str, ...]:
    """The command that runs a module of this package, which `module_environment` lets it find."""
    return sys.executable, "-P", "-m", module


def module_environment() -> dict[str, str]:
    """The environment in which a process has the package that runs here, wherever it lies.

    And not what lies in the working directory.
    """
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, (_PACKAGES, os.environ.get("PYTHONPATH"))))
    }


def start_module(
    module: str, *arguments: str, stdout: int, pass_fds: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Starts a module of this package as a process that shares this one's standard error, and nothing else.

    Raises:
        OSError: it cannot be started.
    """
    return subprocess.Popen(
        [*module_command(module), *arguments],
        pass_fds=pass_fds,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        env=module_environment(),
        start_new_session=True,  # Ctrl-C in the terminal is this process's business
    )


def ended(code: int, hint: str) -> IncompleteResult:
    """The error for a process that ended under an evaluation.

    Args:
        code: its exit code; negative: the signal that ended it.
        hint: for one that a signal ended, most likely for want of memory.

    >>> ended(-signal.SIGABRT, "give it more memory").message.partition(", ")[2]
    'most likely because it needed more memory than it may take'
    >>> print(ended(3, "give it more memory"))
    the process that evaluated the query ended with code 3
    """
    try:
        how = signal.Signals(-code)
    except ValueError:  # not every number has a name
        return IncompleteResult(f"the process that evaluated the query ended with code {code}")
    cause = _CAUSES.get(how, "")
    return IncompleteResult(
        f"the process that evaluated the query was ended by {how.name}{cause}", hint=hint
    )


class Evaluation:
    """One evaluation in a process, as this process sees it.

    Attributes:
        process: the one that evaluates.
        deadline: by `time.monotonic()`; None: none.
        documents: what it writes.
        over: whether the process said that it ended, well or not.
    """

    def __init__(self, process: EvaluatorProcess, deadline: float | None) -> None:
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
            await self.process.send(order, write_ends, self.deadline)
        finally:
            # the end of a pipe is the end of its last writer: that must be the other process
            for write_end in write_ends:
                os.close(write_end)

    async def report(self) -> Report:
        """Returns the next report of the process; raises the error of a failed evaluation."""
        report = await self.process.receive(self.deadline)
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
        """Stops reading, which a process that still writes notices."""
        for document in self.documents:
            os.close(document.read_end)


class EvaluatorProcess:
    """A process, and the socket to it."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        control: socket.socket,
        executor: Executor | None = None,
    ) -> None:
        self._process = process
        self._socket = control
        self._executor = executor
        self._received = b""
        control.setblocking(False)

    @classmethod
    def start(
        cls, directory: str, memory: str, executor: Executor | None = None
    ) -> EvaluatorProcess:
        """Starts a process; it reports `Ended` when it is ready."""
        try:
            ours, theirs = socket.socketpair()
            with theirs:
                try:
                    process = start_module(
                        "construct_messages.sources.evaluators.child",
                        *(str(theirs.fileno()), directory, memory),
                        pass_fds=[theirs.fileno()],
                        stdout=subprocess.DEVNULL,
                    )
                except OSError:
                    ours.close()
                    raise
        except OSError as error:
            raise SourceError(
                f"no process for the evaluation could be started: {error}", status=503
            ) from error
        return cls(process, ours, executor)

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
        """The next report; nothing is lost where the wait is cancelled.

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

    def watch(self, lost: Callable[[EvaluatorProcess], None] | None) -> None:
        """Calls `lost` when the process, which is idle, ends; None: no longer."""
        loop = asyncio.get_running_loop()
        if lost is None:
            loop.remove_reader(self._socket.fileno())
        else:
            loop.add_reader(self._socket.fileno(), lost, self)

    def is_alive(self) -> bool:
        """Whether the process is there still."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Ends the process, whatever it does."""
        self._process.kill()

    def kill_and_wait(self) -> None:
        """Kills the process, waits for its end, and closes the socket."""
        self.kill()
        self._process.wait()
        self._socket.close()

    async def _death(self) -> IncompleteResult:
        code = await asyncio.get_running_loop().run_in_executor(self._executor, self._process.wait)
        return ended(code, "ask for less, or give the processes more memory")
