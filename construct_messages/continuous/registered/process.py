"""A process that evaluates one registered query, as seen by the process that started it; `evaluator.py` runs in it.

asyncio only. What it answers is for `registry.py` to commit.
"""

from __future__ import annotations

import asyncio
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self

import msgspec

from construct_messages.continuous.registered.orders import (
    LENGTH,
    SLICE_SECONDS,
    Answer,
    Begin,
    Failed,
    Order,
    Step,
    Stepped,
)
from construct_messages.continuous.registered.registration import Registration
from construct_messages.errors import SourceError, SourceTimeout
from construct_messages.sources.evaluators.process import ended, module_command, module_environment

_HINT: Final = (
    "make windows or messages smaller, or give registered queries more memory (query_bytes)"
)
_START_SECONDS: Final = 60.0
_SPARE: Final = 1 << 20  # bytes of an answer in addition to its messages and their lengths
_ANSWERS: Final = msgspec.msgpack.Decoder(Answer)


@dataclass(frozen=True)
class QueryLimits:
    """The limits of a registered query.

    Args:
        seconds: for one evaluation.
        memory_bytes: of the process that evaluates it.
        output_bytes: of the messages of one evaluation.
        restart_seconds: how long to wait before a process that ended is started again, the first time.
    """

    seconds: float = 30.0
    memory_bytes: int = 1 << 29
    output_bytes: int = 1 << 26
    restart_seconds: float = 1.0


class QueryProcess:
    """A process; made by `start`."""

    def __init__(self, process: asyncio.subprocess.Process, limits: QueryLimits) -> None:
        self._process, self._limits = process, limits

    @classmethod
    async def start(
        cls,
        store: str,
        registration: Registration,
        saved: dict[str, bytes],
        limits: QueryLimits,
        static: str | None = None,
    ) -> tuple[Self, Stepped]:
        """Starts a process, which takes up a query.

        Args:
            store: the path of the store of streams.
            registration: the query.
            saved: what was kept of its state.
            limits: see `QueryLimits`.
            static: the store directory of the static data.

        Returns:
            The process, and the position of the query.

        Raises:
            QueryError, UsageError: the query is not legal, or its options make no sense.
            SourceError: it cannot be evaluated.
        """
        try:
            started = await asyncio.create_subprocess_exec(
                *module_command("construct_messages.continuous.registered.evaluator"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=module_environment(),
                start_new_session=True,  # Ctrl-C in the terminal is this process's business
            )
        except OSError as error:
            message = f"no process for the query could be started: {error}"
            raise SourceError(message, status=503, transient=True) from error
        process = cls(started, limits)
        begin = Begin(
            store, registration.encode(), saved, limits.memory_bytes, limits.output_bytes, static
        )
        try:
            return process, await process._ask(begin, _START_SECONDS + limits.seconds)
        except BaseException:
            await process.kill()
            raise

    async def step(self, step: Step) -> Stepped:
        """Has the query take elements, see `Step`.

        Raises:
            SourceTimeout: it takes too long.
            IncompleteResult: the process ended.
            ConstructMessagesError: the evaluation failed.
        """
        return await self._ask(step, self._limits.seconds, SLICE_SECONDS)

    async def _ask(self, order: Order, seconds: float, before: float = 0.0) -> Stepped:
        """Sends an order, and waits for the answer: some seconds of work before an evaluation, and those for it."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        data = msgspec.msgpack.encode(order)
        try:
            async with asyncio.timeout(before + seconds):
                stdin.write(LENGTH.pack(len(data)) + data)
                await stdin.drain()
                (length,) = LENGTH.unpack(await stdout.readexactly(LENGTH.size))
                answer: Answer = _ANSWERS.decode(await stdout.readexactly(length))
        except TimeoutError as error:
            raise SourceTimeout(
                f"the evaluation took more than {seconds:g} seconds", hint="ask for less at a time"
            ) from error
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise ended(await self._process.wait(), _HINT) from error
        if isinstance(answer, Failed):
            raise answer.failure.error()
        return answer

    async def tell_end(self, event: asyncio.Event) -> None:
        """Sets an event when the process ends."""
        await self._process.wait()
        event.set()

    def check(self) -> None:
        """Checks that the process is there.

        Raises:
            IncompleteResult: it ended.
        """
        if self._process.returncode is not None:
            raise ended(self._process.returncode, _HINT)

    async def kill(self) -> None:
        """Ends the process, even if it is busy."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await (
            self._process.communicate()
        )  # reads what is left of an answer, as else its pipe stays open
