"""The registered queries of a store: each runs separately, and its output is a stream of the store.

A query is kept in the state of the owner `query:NAME`, where NAME is its output stream; its progress is committed with
its output, so each of its elements is appended exactly once, even if it is killed. A query that fails is paused, with
its error. docs/decisions/050-registered-queries.md. asyncio only; no HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from types import MappingProxyType

from msgspec.structs import replace

from construct_messages.continuous.registered.process import QueryLimits, positions_of
from construct_messages.continuous.registered.query import (
    OWNER,
    REGISTRATION,
    RegisteredQuery,
    Watched,
)
from construct_messages.continuous.registered.registration import Registration, Status
from construct_messages.errors import Conflict, NotFound, StoreError
from construct_messages.streams.element import Description, Retention
from construct_messages.streams.store import StreamStore


class Registry:
    """The registered queries of a store, which run between `start` and `stop`.

    `sources` are those that may be watched, by the path of the endpoint.
    """

    def __init__(
        self,
        store: StreamStore,
        limits: QueryLimits,
        sources: Mapping[str, Watched] = MappingProxyType({}),
    ) -> None:
        self._store, self._limits, self._sources = store, limits, sources
        self._queries: dict[str, RegisteredQuery] = {}
        self._registering: set[str] = set()
        self._changing = asyncio.Lock()

    async def start(self) -> None:
        """Starts the queries that were running when the store was last closed; none, if another version saved one."""
        known = {state.name for state in self._store.streams()}
        for owner in await asyncio.to_thread(self._store.owners):
            if not owner.startswith(OWNER):
                continue
            name = owner.removeprefix(OWNER)
            state = await self._store.asaved_state(owner)
            if name not in known or REGISTRATION not in state:
                # the process ended in between, and the registration was not acknowledged
                await self._store.aforget(owner)
                continue
            try:
                registration = Registration.decode(state[REGISTRATION])
            except StoreError as error:
                raise StoreError(
                    f"{self._store.path}, {name}: {error.message}", hint=error.hint
                ) from error
            query = self._queries[name] = self._query(name, registration)
            query.positions = positions_of(query.registration, state)
        for query in self._queries.values():
            if query.registration.status == "running":
                query.begin()

    async def stop(self) -> None:
        """Stops all queries; they continue after the next start."""
        await asyncio.gather(*(query.end() for query in self._queries.values()))

    def __len__(self) -> int:
        return len(self._queries) + len(self._registering)

    def count(self, status: Status) -> int:
        """The number of queries with each status."""
        return sum(query.registration.status == status for query in self._queries.values())

    def lag(self) -> int:
        """The number of elements that the running queries have not read yet."""
        return sum(
            query.lag for query in self._queries.values() if query.registration.status == "running"
        )

    def queries(self) -> Collection[RegisteredQuery]:
        """Returns all queries."""
        return self._queries.values()

    def get(self, name: str) -> RegisteredQuery | None:
        """Returns the query whose output is a stream, or None."""
        return self._queries.get(name)

    async def register(
        self, name: str, registration: Registration, description: Description
    ) -> None:
        """Registers a new query, and creates its stream; does neither if it raises an error."""
        taken = {
            *self._queries,
            *self._registering,
            *(state.name for state in self._store.streams()),
        }
        if name in taken:
            raise Conflict(
                f"the stream {name} exists already", hint="choose another name, or delete it first"
            )
        self._registering.add(name)
        query = self._query(name, registration)
        try:
            await query.prepare()
            # the stream is created last: a query without a stream is removed, but a stream without its query would look
            # like an ordinary one
            await query.save(registration)
            await self._store.acreate(name, description)
        except BaseException:
            await query.end()
            await self._store.aforget(f"{OWNER}{name}")
            raise
        finally:
            self._registering.discard(name)
        self._queries[name] = query
        query.begin()

    def check_retention(self, stream: str, retention: Retention) -> None:
        """Raises `Conflict` if a stream would keep fewer elements than the windows of all queries hold."""
        for query in self._queries.values():
            if stream in query.positions:
                query.registration.check_retention(stream, retention)

    async def pause(self, name: str) -> None:
        """Stops a query until it is resumed, even after a restart of the server."""
        async with self._changing:
            query = self._known(name)
            await query.end()
            if query.registration.status == "running":
                await query.save(replace(query.registration, status="paused"))

    async def resume(self, name: str) -> None:
        """Resumes a query that is paused or failed."""
        async with self._changing:
            query = self._known(name)
            if query.registration.status != "running":
                await query.end()
                await query.save(replace(query.registration, status="running", error=None))
                query.begin()

    async def remove(self, name: str) -> None:
        """Removes a query, and deletes its stream."""
        async with self._changing:
            query = self._known(name)
            await query.end()
            await self._store.aforget(f"{OWNER}{name}")
            await self._store.adelete(name)
            del self._queries[name]

    def _known(self, name: str) -> RegisteredQuery:
        query = self._queries.get(name)
        if query is None:
            raise NotFound(
                f"no query has the output {name}",
                hint="pause and resume output streams of registered queries",
            )
        return query

    def _query(self, name: str, registration: Registration) -> RegisteredQuery:
        return RegisteredQuery(name, registration, self._store, self._limits, self._sources)
