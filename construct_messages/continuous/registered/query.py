"""One registered query: runs it, follows its streams, and restarts it after failures.

Its output is committed together with its progress, so each of its elements is appended exactly once, even if it is
killed. `evaluator.py` runs in a separate process. asyncio only; no
HTTP.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from construct_messages.continuous.registered.process import (
    QueryLimits,
    QueryProcess,
    Stepped,
    TakeElements,
)
from construct_messages.continuous.registered.registration import Registration
from construct_messages.continuous.transform import BATCH
from construct_messages.continuous.watching import Watch
from construct_messages.errors import (
    Conflict,
    ConstructMessagesError,
    IncompleteResult,
    LimitExceeded,
    NotFound,
    SourceError,
    SourceTimeout,
    UsageError,
)
from construct_messages.rdf.options import UNION, Dataset, Requests
from construct_messages.sparql.sources import Source
from construct_messages.streams.element import State
from construct_messages.streams.store import StreamStore

# --- recovery -------------------------------------------------------------------------------------
# Decides how to continue a registered query after its process ended or its evaluation failed. Starts nothing.
#
# The reason why a process has ended is unknown: a user may have killed it, or the system, for lack of memory. It is
# restarted, after longer and longer pauses, until it has failed repeatedly at one position. An error that the query
# itself returns pauses it at once. A query may be registered to leave out an element with which it keeps failing.
# docs/decisions/050-registered-queries.md.

TRIES: Final = 5
"""The number of times that a process may end at one position before the query is paused."""

MOST_SKIPPED: Final = 10
"""The number of successive elements that may be left out before the query is paused."""

_LONGEST_PAUSE: Final = 60.0  # seconds
# errors of the other process have the status of their kind; errors of a stream or the query are not caused by an
# element
_OF_ELEMENTS: Final = frozenset(
    kind.default_status for kind in (SourceError, SourceTimeout, LimitExceeded)
)


@dataclass(frozen=True)
class Again:
    """The query is to be restarted, after some seconds."""

    seconds: float


class Recovery:
    """The failures of a query since its last progress.

    The first pause takes `seconds`; each further one is twice as long, up to a minute. After `skip_after` failures with
    a single element, it is left out.


    >>> recovery = Recovery(1.0, None)
    >>> [recovery.after(IncompleteResult("killed")) for _ in range(TRIES)][::2]
    [Again(seconds=1.0), Again(seconds=4.0), None]
    >>> recovery.after(SourceTimeout("the evaluation took more than 30 seconds")) is None
    True
    """

    def __init__(self, seconds: float, skip_after: int | None) -> None:
        self._seconds, self._skip_after = seconds, skip_after
        self._tries = 0
        self._skipped = 0  # elements in a row
        self._skip = False
        self._singly = 0  # the number of elements to take one by one, to find the one that fails

    def after(
        self, error: ConstructMessagesError, *, due: bool = False, idle: bool = False
    ) -> Again | None:
        """Returns how to continue after a failure; None: pause the query with this error.

        No element can be left out while evaluations are `due`. If the process was `idle`, waiting for elements, the
        query is not the reason.
        """
        ended = isinstance(error, IncompleteResult) or (
            isinstance(error, SourceError) and error.transient
        )
        skips = (
            self._skip_after is not None and not due and not idle and error.status in _OF_ELEMENTS
        )
        if not ended and not skips:
            return None
        self._tries += 1
        if skips:
            alone, self._singly = self._singly > 0, BATCH
            assert self._skip_after is not None
            if alone and self._tries >= self._skip_after:
                if self._skipped == MOST_SKIPPED:
                    return None
                self._skip, self._tries = True, 0
                self._skipped += 1
        elif self._tries >= TRIES and not idle:
            return None
        return Again(min(self._seconds * 2 ** max(self._tries - 1, 0), _LONGEST_PAUSE))

    def order(self, last: dict[str, int], now: int | None) -> TakeElements:
        """The next order; see `TakeElements`."""
        return TakeElements(last, now, 1 if self._singly else BATCH, self._skip)

    def advanced(self, taken: int, *, evaluated: bool) -> None:
        """Records a completed order."""
        if self._skip:
            self._skip = False
        elif taken or evaluated:
            self._tries = 0
            if taken:
                self._skipped = 0
        self._singly = max(0, self._singly - taken)


# --- query ----------------------------------------------------------------------------------------

OWNER: Final = "query:"
"""The prefix of the owner of a query's state, before the name of its stream."""

REGISTRATION: Final = "registration"
"""The key of the registration in that state."""

_INPUTS: Final = "inputs"  # the numbers of the input streams, by their names
_TICK_SECONDS: Final = 0.5  # the interval at which windows are advanced without elements
_LOGGER: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class Watched:
    """A source that queries may watch. `seconds` limits an evaluation; static data is read from the store
    `directory`."""

    source: Source
    seconds: float | None = None
    union: bool = False
    directory: Path | None = None


class RegisteredQuery:
    """One query and its state.

    Attributes:
        name: the name of its output stream.
        registration: see `Registration`.
        taken: the number of elements it has read since its start.
        given: the number of elements it has appended since then.
        dropped: the number of elements so far that entered no window or were left out, by reason.
        evaluations, seconds: the number of evaluations since then, and their total time, including reading.
        slowest: the time of the slowest one, in seconds.
        memory_bytes: the memory of its process at the last answer; 0 without a process.
        plan: see `WindowedQuery.plan`; empty without windows.
        restarts: the number of restarts after failures.
        positions: the positions in its inputs, by their names.
    """

    def __init__(
        self,
        name: str,
        registration: Registration,
        store: StreamStore,
        limits: QueryLimits,
        sources: Mapping[str, Watched],
    ) -> None:
        self.name, self.registration = name, registration
        self._store, self._limits, self._sources = store, limits, sources
        self._task: asyncio.Task[None] | None = None
        self._process: QueryProcess | None = None
        self._timed = self._more = self._due = self._idle = False
        self._inputs: Mapping[str, int] = {}
        self.taken, self.given, self.evaluations = 0, 0, 0
        self.dropped: Mapping[str, int] = {}
        self.seconds, self.slowest, self.memory_bytes = 0.0, 0.0, 0
        self.plan = ""
        self.positions: Mapping[str, int] = registration.after
        self._last_error: str | None = None
        self._recovery = Recovery(limits.restart_seconds, registration.skip_after)
        self.restarts = 0

    @property
    def error(self) -> str | None:
        """The reason why it is paused, or why its last evaluation failed, which is retried."""
        return self.registration.error or self._last_error

    @property
    def lag(self) -> int:
        """The number of elements of its inputs that it has not read yet."""
        lag = 0
        for name, position in self.positions.items():
            with suppress(NotFound):  # the query will raise the error
                lag += self._store.state(name).last - position
        return lag

    async def prepare(self) -> None:
        """Starts a process for the query, if it reads streams."""
        if self.registration.source is not None:
            return
        saved = await self._store.asaved_state(self._owner)
        saved.pop(REGISTRATION, None)
        await self._check_inputs(saved.pop(_INPUTS, None))
        static = (
            None
            if self.registration.static is None
            else str(self._directory(self.registration.static))
        )
        self._process, started = await QueryProcess.start(
            str(self._store.path), self.registration, saved, self._limits, static
        )
        self.positions, self.dropped, self.memory_bytes = (
            started.positions,
            started.dropped,
            started.memory_bytes,
        )
        self._timed, self._more, self._due = started.timed, started.more, started.due
        self.plan = started.plan

    async def _check_inputs(self, known: bytes | None) -> None:
        """Checks that the inputs are those at its registration; records them the first time.

        Positions mean nothing in another stream of the same name. The first time, an input must keep elements as long
        as windows hold them.
        """
        if known is None:
            for name in self.positions:
                retention = self._store.state(name).description.retention
                await asyncio.to_thread(self.registration.check_retention, name, retention)
            self._inputs = {name: self._store.state(name).id for name in sorted(self.positions)}
            await self._store.acommit(self._owner, {_INPUTS: msgspec.json.encode(self._inputs)})
        else:
            self._inputs = msgspec.json.decode(known, type=dict[str, int])
            self._states()

    def _states(self) -> list[State]:
        """Returns the states of the inputs; see `_check_inputs`."""
        states = [self._store.state(name) for name in self.positions]
        for state in states:
            if state.id != self._inputs[state.name]:
                raise _another(state.name)
        return states

    def begin(self) -> None:
        """Starts running."""
        self._last_error = None
        self._recovery = Recovery(self._limits.restart_seconds, self.registration.skip_after)
        self._task = asyncio.create_task(self._live())

    async def end(self) -> None:
        """Stops running; commits are kept."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
            await self._store.anow()  # after all submitted changes
        await self._drop_process()

    async def save(self, registration: Registration) -> None:
        """Changes the status: on disk, and then in memory, even if the caller is cancelled in between."""
        await _whole(self._save(registration))

    async def _save(self, registration: Registration) -> None:
        await self._store.acommit(self._owner, {REGISTRATION: registration.encode()})
        self.registration = registration

    @property
    def _owner(self) -> str:
        return f"{OWNER}{self.name}"

    async def _live(self) -> None:
        """Runs until it is cancelled, or fails for good."""
        try:
            while True:
                try:
                    await self._run()
                except ConstructMessagesError as error:
                    again = self._recovery.after(error, due=self._due, idle=self._idle)
                    if (
                        again is None or self.registration.source is not None
                    ):  # a watch repeats evaluations itself
                        raise
                    self.restarts += 1
                    self._last_error = str(error)
                    _LOGGER.warning(
                        "the query of %s is restarted in %g seconds: %s",
                        self.name,
                        again.seconds,
                        type(error).__name__,
                    )
                    await self._drop_process()
                    await asyncio.sleep(again.seconds)
        except ConstructMessagesError as error:
            await self._fail(str(error), type(error).__name__)
        except Exception:  # a fault of this package, which must not be silent
            _LOGGER.exception("the query of %s failed unexpectedly", self.name)
            await self._fail("the server failed", "a fault of the server")

    async def _run(self) -> None:
        self._idle = False
        if self.registration.source is not None:
            await self._watch(self.registration.source)
        else:
            if self._process is None:
                await self.prepare()
            await self._follow()

    async def _fail(self, error: str, kind: str) -> None:
        await self._drop_process()
        # the error may quote the query, which only its description may contain
        _LOGGER.warning("the query of %s is paused: %s", self.name, kind)
        failed = replace(self.registration, status="failed", error=error)
        try:
            await self.save(failed)
        except ConstructMessagesError as unsaved:
            # it is paused until this process ends, and retried by the next one
            self.registration = failed
            _LOGGER.warning(
                "the pause of the query of %s could not be saved: %s", self.name, unsaved.message
            )

    async def _drop_process(self) -> None:
        process, self._process, self.memory_bytes = self._process, None, 0
        if process is not None:
            await process.kill()

    def _directory(self, endpoint: str) -> Path:
        """Returns the store directory of an endpoint's data."""
        watched = self._sources.get(endpoint)
        if watched is None or watched.directory is None:
            raise UsageError(
                f"there are no files at {endpoint}",
                hint="serve them again, or register the query again",
            )
        return watched.directory

    async def _watch(self, source: str) -> None:
        """Evaluates over a source repeatedly."""
        registration, watched = self.registration, self._sources.get(source)
        query = await asyncio.to_thread(registration.query)
        if watched is None:
            raise UsageError(
                f"there is no endpoint {source}", hint="serve it again, or register the query again"
            )
        assert registration.every is not None
        watch = Watch(
            query.query,
            watched.source,
            store=self._store,
            stream=self.name,
            owner=self._owner,
            operator=query.operator,
            base=registration.streams,
            requests=Requests(timeout=watched.seconds),
            dataset=Dataset(UNION if watched.union else ()),
        )
        async with aclosing(watch.evaluations(registration.every / 1_000_000)) as evaluations:
            async for evaluation in evaluations:
                self.given += evaluation.elements
                self._last_error = None if evaluation.error is None else str(evaluation.error)

    async def _follow(self) -> None:
        """Takes elements as they arrive, and advances the time."""
        process = self._process
        assert process is not None
        with self._store.changes() as changed:
            while True:
                changed.clear()
                await process.check()
                self._idle = False
                now = await self._store.anow() if self._timed else None
                last = {state.name: state.last for state in self._states()}
                is_new = any(last[name] > position for name, position in self.positions.items())
                if self._more or is_new or now is not None:
                    await _whole(self._commit(await process.step(self._recovery.order(last, now))))
                    if self._more:
                        continue
                self._idle = True
                # the query's own elements are a change, too, after which there is nothing to take
                with suppress(TimeoutError), process.tell_end(changed):
                    async with asyncio.timeout(_TICK_SECONDS if self._timed else None):
                        await changed.wait()

    async def _commit(self, stepped: Stepped) -> None:
        if stepped.state:
            await self._store.acommit(
                self._owner, stepped.state, stream=self.name, messages=stepped.messages
            )
        self.positions, self.dropped, self.memory_bytes = (
            stepped.positions,
            stepped.dropped,
            stepped.memory_bytes,
        )
        self._more, self._due, self.plan = stepped.more, stepped.due, stepped.plan
        self._recovery.advanced(stepped.taken, evaluated=stepped.evaluations > 0)
        if stepped.taken or stepped.evaluations:
            self._last_error = None
        self.taken += stepped.taken
        self.given += len(stepped.messages)
        self.evaluations += stepped.evaluations
        self.seconds += stepped.seconds
        self.slowest = max(self.slowest, stepped.slowest)


def _another(stream: str) -> Conflict:
    return Conflict(
        f"{stream} was deleted, and there is another stream of that name",
        hint="remove the query, and register it again",
    )


async def _whole(work: Awaitable[None]) -> None:
    """Waits for work that must end before the caller handles a cancellation."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
