"""A process that evaluates one registered query, as seen by the process that started it; `evaluator.py` runs in it.

asyncio only. `registry.py` commits its answers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Self

from construct_messages.continuous.registered.orders import (
    SLICE_SECONDS,
    Answer,
    Begin,
    Order,
    Stepped,
    TakeElements,
)
from construct_messages.continuous.registered.registration import Registration
from construct_messages.rdf.errors import SourceTimeout
from construct_messages.sparql.children import Child, Failure

_HINT: Final = (
    "make windows or messages smaller, or give registered queries more memory (query_bytes)"
)
_START_SECONDS: Final = 60.0


@dataclass(frozen=True)
class QueryLimits:
    """The limits of a registered query.

    Args:
        seconds: the maximal time of one evaluation.
        memory_bytes: the memory of the process that evaluates it.
        output_bytes: the size of the messages of one evaluation.
        restart_seconds: the first pause before a process that ended is restarted.
    """

    seconds: float = 30.0
    memory_bytes: int = 1 << 29
    output_bytes: int = 1 << 26
    restart_seconds: float = 1.0


class QueryProcess:
    """A process, created by `start`."""

    def __init__(self, child: Child[Answer], limits: QueryLimits) -> None:
        self._child, self._limits = child, limits

    @classmethod
    async def start(
        cls,
        store: str,
        registration: Registration,
        saved: dict[str, bytes],
        limits: QueryLimits,
        static: str | None = None,
    ) -> tuple[Self, Stepped]:
        """Starts a process for a query.

        Args:
            store: the path of the store of streams.
            registration: the query.
            saved: what was kept of its state.
            limits: see `QueryLimits`.
            static: the store directory of the static data.

        Returns:
            The process, and the position of the query.

        Raises:
            QueryError, UsageError: the query or its options are not valid.
            SourceError: it cannot be evaluated.
        """
        child = Child[Answer](
            "construct_messages.continuous.registered.evaluator",
            reports=Answer,
            task="evaluated the query",
            hint=_HINT,
            last_line=True,
        )
        process = cls(child, limits)
        begin = Begin(
            store, registration.encode(), saved, limits.memory_bytes, limits.output_bytes, static
        )
        try:
            return process, await process._ask(begin, _START_SECONDS + limits.seconds)
        except BaseException:
            await process.kill()
            raise

    async def step(self, step: TakeElements) -> Stepped:
        """Makes the query take elements, see `TakeElements`.

        Raises:
            SourceTimeout: it takes too long.
            IncompleteResult: the process ended.
            ConstructMessagesError: the evaluation failed.
        """
        return await self._ask(step, self._limits.seconds, SLICE_SECONDS)

    async def _ask(self, order: Order, seconds: float, before: float = 0.0) -> Stepped:
        """Sends an order, and waits for the answer: some seconds, and the time limit of an evaluation."""
        deadline = time.monotonic() + before + seconds
        try:
            await self._child.send(order, deadline)
            answer = await self._child.receive(deadline)
        except TimeoutError as error:
            raise SourceTimeout(
                f"the evaluation took more than {seconds:g} seconds",
                hint="make windows smaller, or raise the limit",
            ) from error
        if isinstance(answer, Failure):
            raise answer.error()
        return answer

    @contextmanager
    def tell_end(self, event: asyncio.Event) -> Iterator[None]:
        """Sets an event when the process ends; it must not be used meanwhile."""
        self._child.watch(event.set)
        try:
            yield
        finally:
            self._child.watch(None)

    async def check(self) -> None:
        """Checks that the idle process is running.

        Raises:
            IncompleteResult: it ended.
        """
        if not self._child.is_alive():
            raise await self._child.death()

    async def kill(self) -> None:
        """Kills the process."""
        await self._child.akill()
