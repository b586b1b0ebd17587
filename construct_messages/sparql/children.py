"""Child processes: starts them, sends orders, receives reports, and ends them. All use one protocol.

A child is a module of this package. It is started with one end of a Unix socket for orders and reports, which are
values of MessagePack; an order may include descriptors (SCM_RIGHTS). Its standard output is closed, so that output of
libraries does not interfere. Both ends run the same version of the package. POSIX only.
"""

from __future__ import annotations

import asyncio
import os
import select as polling
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec

from construct_messages.errors import (
    ConstructMessagesError,
    IncompleteResult,
    NotAcceptable,
    Position,
    QueryError,
    SourceError,
    UsageError,
)

# --- values ---------------------------------------------------------------------------------------
# PackedValues on a stream: values of MessagePack, each with its length in four bytes as a prefix. No I/O here.

T = TypeVar("T")

RECEIVED: Final = 1 << 18  # the number of bytes to receive at once

_LENGTH: Final = struct.Struct(">I")
_MOST: Final = 1 << 30  # bytes; a greater length is invalid


def packed(value: object) -> bytes:
    """Returns a value that msgspec can encode, with its length."""
    data = msgspec.msgpack.encode(value)
    return _LENGTH.pack(len(data)) + data


class PackedValues(Generic[T]):
    """Reads values of one type, from bytes as they arrive.

    >>> values = PackedValues(int)
    >>> values.feed(packed(7) + packed(8)[:-1])
    >>> values.take(), values.take()
    (7, None)
    """

    def __init__(self, kind: Any) -> None:
        self._decoder: msgspec.msgpack.Decoder[T] = msgspec.msgpack.Decoder(kind)
        self._received = bytearray()

    def feed(self, data: bytes) -> None:
        self._received += data

    def take(self) -> T | None:
        """Returns the next value, or None if more bytes are needed; raises `ValueError` for other bytes."""
        if len(self._received) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._received)
        if length > _MOST:
            raise ValueError(f"a value of {length} bytes")
        end = _LENGTH.size + length
        if len(self._received) < end:
            return None
        data = bytes(self._received[_LENGTH.size : end])
        del self._received[:end]
        try:
            return self._decoder.decode(data)
        except msgspec.DecodeError as error:
            raise ValueError(str(error)) from error


# --- parent ---------------------------------------------------------------------------------------
# The child's side of its parent process: receives orders, and sends reports.


_DESCRIPTORS = 2  # the most in an order


class Parent(Generic[T]):
    """The other end of the socket whose descriptor is this process's first argument; `orders` is the type of its
    orders.
    """

    def __init__(self, orders: Any) -> None:
        self._socket = socket.socket(fileno=int(sys.argv[1]))
        self._orders = PackedValues[T](orders)

    def fileno(self) -> int:
        """The descriptor of the socket, which is readable after an order or the parent's end."""
        return self._socket.fileno()

    def end_with(self) -> None:
        """Ignores signals, and ends this process at once when its parent closes the socket, or ends."""
        for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(ignored, signal.SIG_IGN)

        def wait() -> None:
            poll = polling.poll()
            poll.register(self._socket, 0)  # hang-ups are always reported
            poll.poll()
            os._exit(0)

        threading.Thread(target=wait, daemon=True).start()

    def orders(self) -> Iterator[tuple[T, list[int]]]:
        """Yields each order with the descriptors that came with it, until the parent closes the socket."""
        descriptors = list[int]()
        while True:
            while (order := self._orders.take()) is None:
                data, came, _, _ = socket.recv_fds(self._socket, RECEIVED, _DESCRIPTORS)
                if not data:
                    return
                self._orders.feed(data)
                descriptors += came
            yield order, descriptors
            descriptors = []

    def report(self, value: object) -> None:
        """Sends a report; if the parent has ended, ends this process."""
        try:
            self._socket.sendall(packed(value))
        except ConnectionError:
            os._exit(1)


# --- failure --------------------------------------------------------------------------------------
# An error of this package as a value, to be sent from one process to another.


class Failure(msgspec.Struct, tag=True, frozen=True):
    """The error of an order.

    >>> Failure.of(UsageError("no such file")).error()
    UsageError('no such file')
    """

    kind: str
    message: str
    position: tuple[int, int] | None
    status: int
    hint: str | None
    offered: tuple[str, ...] = ()

    @classmethod
    def of(cls, error: ConstructMessagesError) -> Failure:
        offered = error.offered if isinstance(error, NotAcceptable) else ()
        return cls(
            type(error).__name__, error.message, error.position, error.status, error.hint, offered
        )

    def error(self) -> ConstructMessagesError:
        if self.kind == NotAcceptable.__name__:
            return NotAcceptable(self.message, hint=self.hint, offered=self.offered)
        kind = next(
            (kind for kind in (QueryError, UsageError) if kind.__name__ == self.kind), SourceError
        )
        position = Position(*self.position) if self.position else None
        return kind(self.message, position=position, status=self.status, hint=self.hint)


# --- child ----------------------------------------------------------------------------------------


_PACKAGES: Final = str(Path(__file__).parents[2])
# Oxigraph aborts if an allocation fails, and the system kills processes if memory is short
_CAUSES: Final = {
    signal.SIGABRT: "most likely because it needed more memory than its limit",
    signal.SIGKILL: "by a user, or by the system because memory was short",
}
_LAST_LINE_SECONDS: Final = (
    1.0  # for what was written before the end; a child of the child may still write
)


class Child(Generic[T]):
    """A process that runs a module of this package, which gets the descriptor of its socket as its first argument.

    What it writes to standard error appears on that of this process; with `last_line`, errors about its end quote the
    last line. `task` stands in errors after "the process that", `hint` in those for lack of memory. The threads of
    `executor` wait for its end; None: those of the event loop.
    """

    def __init__(
        self,
        module: str,
        *arguments: str,
        reports: Any,
        task: str,
        hint: str | None = None,
        last_line: bool = False,
        pass_fds: Sequence[int] = (),
        environment: Mapping[str, str] | None = None,
        executor: Executor | None = None,
    ) -> None:
        self._task, self._hint, self._executor = task, hint, executor
        self._reports = PackedValues[T](reports)
        paths = filter(None, (_PACKAGES, os.environ.get("PYTHONPATH")))
        try:
            self._socket, theirs = socket.socketpair()
            with theirs:
                try:
                    self._process = subprocess.Popen(
                        # -P: no imports from the working directory
                        [sys.executable, "-P", "-m", module, str(theirs.fileno()), *arguments],
                        pass_fds=[theirs.fileno(), *pass_fds],
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.PIPE if last_line else None,
                        env=os.environ
                        | {"PYTHONPATH": os.pathsep.join(paths)}
                        # a backtrace would come after the engine's reason
                        | ({"RUST_BACKTRACE": "0"} if last_line else {})
                        | dict(environment or {}),
                        start_new_session=True,  # this process handles Ctrl-C in the terminal
                    )
                except OSError:
                    self._socket.close()
                    raise
        except OSError as error:
            raise SourceError(
                f"no process that {task} could be started: {error}", status=503, transient=True
            ) from error
        self._socket.setblocking(False)
        self._last_line = ""
        self._forwarding = (
            threading.Thread(target=self._forward, daemon=True) if last_line else None
        )
        if self._forwarding is not None:
            self._forwarding.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    async def send(
        self, order: object, deadline: float | None = None, descriptors: Sequence[int] = ()
    ) -> None:
        """Sends an order to a waiting process, with at most two descriptors, which stay open here.

        Raises `TimeoutError` at the deadline, a time of `time.monotonic()`, and `IncompleteResult` if the process
        ended.
        """
        data = packed(order)
        try:
            sent = socket.send_fds(self._socket, [data], descriptors)
            async with asyncio.timeout(_seconds_until(deadline)):
                await asyncio.get_running_loop().sock_sendall(self._socket, data[sent:])
        except ConnectionError as error:
            raise await self.death() from error

    async def receive(self, deadline: float | None = None) -> T:
        """Returns the next report; nothing is lost if the wait is cancelled.

        Raises `TimeoutError` at the deadline, and `IncompleteResult` if the process ended or was killed for an invalid
        report.
        """
        while (report := self._take()) is None:
            await readable(self._socket.fileno(), _seconds_until(deadline))
            if not self._receive():
                raise await self.death()
        return report

    def reports(self) -> Iterator[T]:
        """Yields the reports until the process ends; blocks."""
        self._socket.setblocking(True)
        while True:
            while (report := self._take()) is not None:
                yield report
            if not self._receive():
                return

    def _take(self) -> T | None:
        try:
            return self._reports.take()
        except ValueError as error:
            self.kill()
            raise IncompleteResult(
                f"the process that {self._task} sent an invalid report: {error}"
            ) from error

    def _receive(self) -> bool:
        try:
            data = self._socket.recv(RECEIVED)
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        self._reports.feed(data)
        return bool(data)

    def watch(self, lost: Callable[[], object] | None) -> None:
        """Calls `lost` when the process ends while it waits for an order; None stops this."""
        loop = asyncio.get_running_loop()
        if lost is None:
            loop.remove_reader(self._socket.fileno())
        else:
            loop.add_reader(self._socket.fileno(), lost)

    def is_alive(self) -> bool:
        """Whether the process is running, with its end of the socket open."""
        try:
            return self._process.poll() is None and self._socket.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except ConnectionError:
            return False

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal, unless the process has ended."""
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()

    def kill_and_wait(self) -> int:
        """Kills the process, waits for its end, and closes the socket; returns its exit code."""
        self.kill()
        code = self._wait()
        self._socket.close()
        return code

    def _wait(self) -> int:
        code = self._process.wait()
        if self._forwarding is not None:
            self._forwarding.join(_LAST_LINE_SECONDS)
        return code

    def _forward(self) -> None:
        """Copies its standard error to that of this process, and keeps the last line."""
        assert self._process.stderr is not None
        with self._process.stderr as lines, suppress(OSError):  # ours may be closed
            for line in lines:
                text = line.decode(errors="replace").strip()
                if text and not text.startswith("note: "):  # Rust's, about its backtrace
                    self._last_line = text
                os.write(2, line)

    def ended(self, code: int) -> IncompleteResult:
        """Returns the error for its end during an order, with this exit code."""
        return ended(code, self._task, self._hint, self._last_line)

    async def akill(self) -> None:
        """`kill_and_wait` for asyncio."""
        await asyncio.get_running_loop().run_in_executor(self._executor, self.kill_and_wait)

    async def exited(self) -> int:
        """Waits until the process has ended; returns its exit code. Further reports are lost."""
        while self.is_alive():
            await readable(self._socket.fileno(), None)
            self._receive()
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._wait)

    async def death(self) -> IncompleteResult:
        """Returns the error for a process that ended during an order, after waiting for its end."""
        return self.ended(await self.exited())


def ended(code: int, task: str, hint: str | None, last_line: str = "") -> IncompleteResult:
    """The error for a process that ended during an order with this exit code; a negative one is that of a signal.

    >>> print(ended(-signal.SIGABRT, "loaded the files", "give it more memory"))
    the process that loaded the files was ended by SIGABRT, most likely because it needed more memory than its limit
      hint: give it more memory
    >>> print(ended(-signal.SIGABRT, "loaded the files", "give it more memory", "no total order"))
    the process that loaded the files was ended by SIGABRT; its last line was: no total order
    >>> print(ended(3, "loaded the files", "give it more memory"))
    the process that loaded the files ended with code 3
    """
    written = f"; its last line was: {last_line}" if last_line else ""
    try:
        how = signal.Signals(-code)
    except ValueError:  # some numbers have no name
        return IncompleteResult(f"the process that {task} ended with code {code}{written}")
    of_memory = how == signal.SIGKILL or not last_line or "memory" in last_line
    cause = f", {_CAUSES[how]}" if of_memory and how in _CAUSES else ""
    return IncompleteResult(
        f"the process that {task} was ended by {how.name}{cause}{written}",
        hint=hint if of_memory else None,
    )


def _seconds_until(deadline: float | None) -> float | None:
    return None if deadline is None else deadline - time.monotonic()


async def readable(descriptor: int, seconds: float | None) -> None:
    """Waits for bytes at a pipe or socket, or its end; cancelling the wait loses nothing. Raises `TimeoutError`."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        async with asyncio.timeout(seconds):
            await ready.wait()
    finally:
        loop.remove_reader(descriptor)
