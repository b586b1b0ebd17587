"""The registered queries of a store: each runs on its own, and what it gives out is a stream of the store.

A query is kept in the state of the owner `query:NAME`, where NAME is its output stream; its progress is committed with
what it gives out, so that wherever it ends, each of its elements is there once. A query that fails is paused, and says
why. docs/decisions/050-registered-queries.md. asyncio only; no HTTP.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec.structs import replace

from construct_messages.continuous.registered.evaluator import Step, Stepped, positions_of
from construct_messages.continuous.registered.process import QueryLimits, QueryProcess
from construct_messages.continuous.registered.registration import Registration, Status
from construct_messages.continuous.watching import Watch
from construct_messages.errors import Conflict, ConstructMessagesError, NotFound, StoreError, UsageError
from construct_messages.logs.lines.texts import to_messages
from construct_messages.sources import UNION, Source
from construct_messages.streams.element import Description, State
from construct_messages.streams.store import StreamStore

_OWNER: Final = "query:"
_KEY: Final = "registration"
_INPUTS: Final = "inputs"  # the numbers of the input streams, by their names
_TICK_SECONDS: Final = 0.5  # how often windows are told that time has passed where no elements come
_THREADS: Final = 4  # that commit
_LOGGER: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class Watched:
    """A source that queries may watch.

    Args:
        source: answers asyncio; it is closed elsewhere.
        seconds: how long an evaluation may take; None: any time.
        union: whether the default graph is all graphs, merged.
        directory: the store directory of its data; None: they are elsewhere, and cannot be beside windows.
    """

    source: Source
    seconds: float | None = None
    union: bool = False
    directory: Path | None = None


class RegisteredQuery:
    """One query, and how it is doing.

    Attributes:
        name: of the stream that it gives out.
        registration: see `Registration`.
        taken: how many elements it has read since it was taken up.
        given: how many elements it has given out since then.
        dropped: how many elements so far entered no window.
        positions: by the names of its inputs: up to where they are read.
    """

    def __init__(
        self,
        name: str,
        registration: Registration,
        store: StreamStore,
        limits: QueryLimits,
        threads: Executor,
        sources: Mapping[str, Watched],
    ) -> None:
        self.name, self.registration = name, registration
        self._store, self._limits, self._threads, self._sources = store, limits, threads, sources
        self._task: asyncio.Task[None] | None = None
        self._process: QueryProcess | None = None
        self._timed = False
        self._inputs: Mapping[str, int] = {}
        self.taken, self.given, self.dropped = 0, 0, 0
        self.positions: Mapping[str, int] = registration.after
        self._watched_error: str | None = None

    @property
    def error(self) -> str | None:
        """Why it is paused, or why its last evaluation failed, which is made again."""
        return self.registration.error or self._watched_error

    @property
    def lag(self) -> int:
        """The number of elements of its inputs that it has not read yet."""
        lag = 0
        for name, position in self.positions.items():
            with suppress(NotFound):  # which the query will meet
                lag += self._store.state(name).last - position
        return lag

    async def prepare(self) -> None:
        """Has a process take the query up, where it reads streams.

        Raises:
            ConstructMessagesError: see `QueryProcess.start`.
        """
        if self.registration.source is not None:
            return
        saved = await self._store.asaved_state(self._owner)
        saved.pop(_KEY, None)
        await self._check_inputs(saved.pop(_INPUTS, None))
        static = None if self.registration.static is None else str(self._directory(self.registration.static))
        self._process, stands = await QueryProcess.start(
            str(self._store.path), self.registration, saved, self._limits, static
        )
        self.positions, self.dropped, self._timed = stands.positions, stands.dropped, stands.timed

    async def _check_inputs(self, known: bytes | None) -> None:
        """Checks that the inputs are those that it was registered over; the first time, keeps which they are.

        Raises:
            Conflict: one of them is another stream of the same name, to which positions say nothing.
            NotFound: one of them is gone.
        """
        if known is None:
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
        """Runs from now on."""
        self._task = asyncio.create_task(self._live())

    async def end(self) -> None:
        """Stops running; what was committed stays."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
            await self._store.anow()  # behind what was handed in to be committed
        await self._drop_process()

    async def save(self, registration: Registration) -> None:
        """Keeps another status: on disk, and then here, also where the caller is cancelled in between."""
        await _whole(self._save(registration))

    async def _save(self, registration: Registration) -> None:
        await self._store.acommit(self._owner, {_KEY: registration.encode()})
        self.registration = registration

    @property
    def _owner(self) -> str:
        return f"{_OWNER}{self.name}"

    async def _live(self) -> None:
        """Runs until it is cancelled, or fails."""
        try:
            if self.registration.source is not None:
                await self._watch(self.registration.source)
            else:
                if self._process is None:
                    await self.prepare()
                await self._follow()
        except ConstructMessagesError as error:
            await self._fail(str(error), type(error).__name__)
        except Exception:  # a fault of this package, which must not be silent
            _LOGGER.exception("the query of %s met a fault", self.name)
            await self._fail("the server failed", "a fault of the server")

    async def _fail(self, error: str, kind: str) -> None:
        await self._drop_process()
        # the error may quote the query, which only its description may tell
        _LOGGER.warning("the query of %s is paused: %s", self.name, kind)
        failed = replace(self.registration, status="failed", error=error)
        try:
            await self.save(failed)
        except ConstructMessagesError as unsaved:
            # it is paused as long as this process lives, and tried again by the next one
            self.registration = failed
            _LOGGER.warning("that the query of %s is paused could not be kept: %s", self.name, unsaved.message)

    async def _drop_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.kill()

    def _directory(self, endpoint: str) -> Path:
        """Where the data of an endpoint are."""
        watched = self._sources.get(endpoint)
        if watched is None or watched.directory is None:
            raise UsageError(f"there are no files at {endpoint}", hint="serve them again, or register the query anew")
        return watched.directory

    async def _watch(self, source: str) -> None:
        """Evaluates over a source again and again."""
        registration, watched = self.registration, self._sources.get(source)
        query = await asyncio.get_running_loop().run_in_executor(self._threads, registration.query)
        if watched is None:
            raise UsageError(f"there is no endpoint {source}", hint="serve it again, or register the query anew")
        assert registration.every is not None
        watch = Watch(
            query.query,
            watched.source,
            store=self._store,
            stream=self.name,
            owner=self._owner,
            operator=query.operator,
            base=registration.streams,
            timeout=watched.seconds,
            default_graph=(UNION,) if watched.union else (),
        )
        async with aclosing(watch.evaluations(registration.every / 1_000_000)) as evaluations:
            async for evaluation in evaluations:
                self.given += evaluation.elements
                self._watched_error = None if evaluation.error is None else str(evaluation.error)

    async def _follow(self) -> None:
        """Takes elements as they come, and time as it passes."""
        process = self._process
        assert process is not None
        with self._store.changes() as changed:
            while True:
                changed.clear()
                now = await self._store.anow() if self._timed else None
                last = {state.name: state.last for state in self._states()}
                if now is not None or any(last[name] > position for name, position in self.positions.items()):
                    stepped = await process.step(Step(last, now))
                    await _whole(self._commit(stepped))
                    if stepped.more:
                        continue
                # one's own elements are a change, too, and after it there is nothing to take
                with suppress(TimeoutError):
                    async with asyncio.timeout(_TICK_SECONDS if self._timed else None):
                        await changed.wait()

    async def _commit(self, stepped: Stepped) -> None:
        if stepped.state:
            await asyncio.get_running_loop().run_in_executor(self._threads, self._commit_in_thread, stepped)
        self.positions, self.dropped = stepped.positions, stepped.dropped
        self.taken += stepped.taken
        self.given += len(stepped.messages)

    def _commit_in_thread(self, stepped: Stepped) -> None:
        messages = to_messages(stepped.messages)
        self._store.commit(self._owner, stepped.state, stream=self.name, messages=messages)


def _another(stream: str) -> Conflict:
    return Conflict(
        f"{stream} was deleted, and there is another stream of that name", hint="remove the query, and register it anew"
    )


async def _whole(work: Awaitable[None]) -> None:
    """Waits for work that must be over, one way or the other, before anything follows a cancellation."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


class Registry:
    """The registered queries of a store, which run between `start` and `stop`.

    Args:
        store: of the streams, opened to write.
        limits: what each query may take.
        sources: what may be watched, by the path of its endpoint.
    """

    def __init__(
        self, store: StreamStore, limits: QueryLimits, sources: Mapping[str, Watched] = MappingProxyType({})
    ) -> None:
        self._store, self._limits, self._sources = store, limits, sources
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="registered-queries")
        self._queries: dict[str, RegisteredQuery] = {}
        self._registering: set[str] = set()
        self._changing = asyncio.Lock()

    async def start(self) -> None:
        """Takes up the queries that ran when the store was last open.

        Raises:
            StoreError: one of them was saved by another version of this package; no query runs then.
        """
        known = {state.name for state in self._store.streams()}
        for owner in await asyncio.to_thread(self._store.owners):
            if not owner.startswith(_OWNER):
                continue
            name = owner.removeprefix(_OWNER)
            state = await self._store.asaved_state(owner)
            if name not in known or _KEY not in state:
                # the process ended between the one and the other, and nobody was told that it is registered
                await self._store.aforget(owner)
                continue
            try:
                registration = Registration.decode(state[_KEY])
            except StoreError as error:
                raise StoreError(f"{self._store.path}, {name}: {error.message}", hint=error.hint) from error
            query = self._queries[name] = self._query(name, registration)
            query.positions = positions_of(query.registration, state)
        for query in self._queries.values():
            if query.registration.status == "running":
                query.begin()

    async def stop(self) -> None:
        """Stops all queries; they go on when they are started again."""
        await asyncio.gather(*(query.end() for query in self._queries.values()))
        self._threads.shutdown()

    def __len__(self) -> int:
        return len(self._queries) + len(self._registering)

    def count(self, status: Status) -> int:
        """How many queries have a status."""
        return sum(query.registration.status == status for query in self._queries.values())

    def lag(self) -> int:
        """How many elements of their inputs the queries that run have not read yet."""
        return sum(query.lag for query in self._queries.values() if query.registration.status == "running")

    def get(self, name: str) -> RegisteredQuery | None:
        """The query that gives out a stream; None: that stream is no query's."""
        return self._queries.get(name)

    async def register(self, name: str, registration: Registration, description: Description) -> None:
        """Takes up a new query, and makes its stream.

        Args:
            name: of the stream that it gives out.
            registration: the query.
            description: of the stream.

        Raises:
            ConstructMessagesError: the query is not legal, there is a stream of that name, or it is no name. Nothing is
                registered then.
        """
        taken = {*self._queries, *self._registering, *(state.name for state in self._store.streams())}
        if name in taken:
            raise Conflict(f"the stream {name} exists already", hint="choose another name, or delete it first")
        self._registering.add(name)
        query = self._query(name, registration)
        try:
            await query.prepare()
            # the stream last: a query without one is forgotten, and a stream without its query would look like another
            await query.save(registration)
            await self._store.acreate(name, description)
        except BaseException:
            await query.end()
            await self._store.aforget(f"{_OWNER}{name}")
            raise
        finally:
            self._registering.discard(name)
        self._queries[name] = query
        query.begin()

    async def pause(self, name: str) -> None:
        """Stops a query until it is resumed, also over restarts.

        Raises:
            NotFound: no query gives out such a stream.
        """
        async with self._changing:
            query = self._known(name)
            await query.end()
            if query.registration.status == "running":
                await query.save(replace(query.registration, status="paused"))

    async def resume(self, name: str) -> None:
        """Has a query that is paused, or failed, go on where it was.

        Raises:
            NotFound: no query gives out such a stream.
        """
        async with self._changing:
            query = self._known(name)
            if query.registration.status != "running":
                await query.end()
                await query.save(replace(query.registration, status="running", error=None))
                query.begin()

    async def remove(self, name: str) -> None:
        """Stops a query for good, and deletes its stream.

        Raises:
            NotFound: no query gives out such a stream.
        """
        async with self._changing:
            query = self._known(name)
            await query.end()
            await self._store.aforget(f"{_OWNER}{name}")
            await self._store.adelete(name)
            del self._queries[name]

    def _known(self, name: str) -> RegisteredQuery:
        query = self._queries.get(name)
        if query is None:
            raise NotFound(f"no query gives out {name}", hint="pause and resume streams that registered queries fill")
        return query

    def _query(self, name: str, registration: Registration) -> RegisteredQuery:
        return RegisteredQuery(name, registration, self._store, self._limits, self._threads, self._sources)
