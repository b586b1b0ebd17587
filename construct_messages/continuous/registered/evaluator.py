"""The program of a process that evaluates one registered query over streams: reads elements, and sends messages.

It only reads the store. The process that started it (`process.py`) commits its answers, and kills it when an answer
takes too long. Answers are short: after a second, or a thousand messages, an answer ends with the current evaluation,
and the next order continues. The process ends with its parent.
"""

from __future__ import annotations

import resource
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice, takewhile
from pathlib import Path
from typing import Final, Protocol

import msgspec

from construct_messages.continuous.dataset import read_static
from construct_messages.continuous.registered.process import (
    DROPPED,
    POSITIONS,
    SKIPPED,
    SLICE_SECONDS,
    Answer,
    Begin,
    Order,
    Stepped,
    TakeElements,
    positions_of,
)
from construct_messages.continuous.registered.registration import Registration
from construct_messages.continuous.transform import Transformation
from construct_messages.continuous.windowed import Firing, WindowedQuery
from construct_messages.continuous.windows import ARRIVAL
from construct_messages.errors import ConstructMessagesError, LimitExceeded, UsageError
from construct_messages.logs.checking import Checker
from construct_messages.rdf.message import Message
from construct_messages.sparql.children import Failure, Parent
from construct_messages.streams import Publication
from construct_messages.streams.element import Element
from construct_messages.streams.store import StreamStore, open_store

_SLICE_MESSAGES: Final = 1000
_SLICE_BYTES: Final = 1 << 20


class _Engine(Protocol):
    """A query that takes elements, with or without windows."""

    @property
    def positions(self) -> dict[str, int]: ...

    @property
    def dropped(self) -> dict[str, int]: ...

    @property
    def plan(self) -> str: ...

    @property
    def due(self) -> bool:
        """Whether evaluations may be due."""

    def run(
        self, elements: Iterable[tuple[str, Element]], now: int | None
    ) -> Iterator[Iterable[Message] | None]:
        """Makes the due evaluations, takes elements, and then advances the time.

        Yields the messages of each evaluation, and None after an element without one. If it is not read to its end, the
        next call continues.
        """

    def skip(self, stream: str, element: Element) -> None:
        """Leaves out an element."""

    def save(self) -> dict[str, bytes]: ...


class _Stateless:
    """A query over single messages."""

    due = False
    plan = ""

    def __init__(self, registration: Registration, saved: Mapping[str, bytes]) -> None:
        self._transformation = Transformation(registration.query().query, base=registration.streams)
        ((self._stream, self._position),) = positions_of(registration, saved).items()
        self.dropped = msgspec.json.decode(saved.get(DROPPED, b"{}"), type=dict[str, int])

    @property
    def positions(self) -> dict[str, int]:
        return {self._stream: self._position}

    def run(
        self,
        elements: Iterable[tuple[str, Element]],
        now: int | None,  # noqa: ARG002 - the protocol's
    ) -> Iterator[Iterable[Message] | None]:
        batch = [element for _, element in elements]
        if batch:
            self._position = batch[-1].sequence
            yield self._transformation.batch([element.nquads for element in batch])

    def skip(self, stream: str, element: Element) -> None:  # noqa: ARG002 - the protocol's
        self._position = element.sequence
        self.dropped[SKIPPED] = self.dropped.get(SKIPPED, 0) + 1

    def save(self) -> dict[str, bytes]:
        return {DROPPED: msgspec.json.encode(self.dropped)} if self.dropped else {}


class _Windows:
    """A query with windows."""

    def __init__(
        self,
        registration: Registration,
        saved: Mapping[str, bytes],
        store: StreamStore,
        static: str | None,
    ) -> None:
        names = registration.inputs
        query, options = registration.query(), registration.options()
        beside = () if static is None else read_static(static, query)

        def read(stream: str, first: int, last: int) -> Iterable[Element]:
            state = store.state(names[stream])
            if state.first > first:
                registration.check_retention(state.name, state.description.retention)
                raise UsageError(
                    f"the windows of the query hold the messages from {first} on of {state.name}, which has those from "
                    f"{state.first} on: the query cannot be resumed",
                    hint=f"let {state.name} keep more, remove the query, and register it again",
                )
            return _elements(store, names[stream], first - 1, last)

        if "engine" in saved:
            self._engine = WindowedQuery.restore(
                saved["engine"],
                read,
                query,
                options,
                static=beside,
                element_iri=registration.element_iri,
                maintain=registration.maintain,
            )
        else:
            self._engine = WindowedQuery(
                query,
                options,
                static=beside,
                element_iri=registration.element_iri,
                maintain=registration.maintain,
            )
        self._iris = {name: iri for iri, name in names.items()}
        self._after = registration.after
        self._idle = None if registration.time == ARRIVAL else registration.idle
        self._heard: dict[str, int] = {}  # when the last element of each stream arrived

    @property
    def positions(self) -> dict[str, int]:
        return {
            name: self._engine.position(iri) or self._after[name]
            for name, iri in self._iris.items()
        }

    @property
    def dropped(self) -> dict[str, int]:
        return dict(sum(self._engine.dropped.values(), Counter()))

    @property
    def due(self) -> bool:
        return self._engine.due

    @property
    def plan(self) -> str:
        return self._engine.plan

    def run(
        self, elements: Iterable[tuple[str, Element]], now: int | None
    ) -> Iterator[Iterable[Message] | None]:
        engine = self._engine
        if engine.due:
            yield from self._evaluated(engine.proceed(1))
        for name, element in elements:
            self._heard[name] = element.microseconds
            firings = engine.take(self._iris[name], element, 1)
            if engine.due:
                yield from self._evaluated(firings)
            else:
                yield None
        if now is None:
            return
        if self._idle is None:
            yield from self._evaluated(engine.advance(now, most=1))
            return
        for name, iri in self._iris.items():
            if now - self._heard.setdefault(name, now) >= self._idle:
                yield from self._evaluated(engine.idle(iri, 1))

    def _evaluated(self, firings: Sequence[Firing]) -> Iterator[Iterable[Message]]:
        """Yields the messages of an evaluation, if there was one, and of due ones after it."""
        engine = self._engine
        while engine.due or firings:
            yield firings[0].messages if firings else ()
            firings = engine.proceed(1) if engine.due else []

    def skip(self, stream: str, element: Element) -> None:
        self._engine.skip(self._iris[stream], element)

    def save(self) -> dict[str, bytes]:
        return {"engine": self._engine.save()}


class _Query:
    """One registered query over a store."""

    def __init__(self, begin: Begin) -> None:
        registration = Registration.decode(begin.registration)
        windows = registration.query().windows
        self._store = open_store(Path(begin.store), read_only=True)
        self._output_bytes = begin.output_bytes
        self._timed = bool(windows) and (
            registration.time == ARRIVAL or registration.idle is not None
        )
        self._engine: _Engine
        if windows:
            self._engine = _Windows(registration, begin.saved, self._store, begin.static)
        else:
            self._engine = _Stateless(registration, begin.saved)

    def begun(self) -> Stepped:
        """Returns the initial position."""
        engine = self._engine
        return Stepped(
            positions=engine.positions,
            dropped=engine.dropped,
            more=engine.due,
            due=engine.due,
            timed=self._timed,
            memory_bytes=_resident(),
            plan=engine.plan,
        )

    def step(self, step: TakeElements) -> Stepped:
        """Does some of the work: takes the next elements, and advances the time after the last one."""
        began = time.monotonic()
        before = self._engine.positions
        elements = self._next(before, step)
        results, evaluations, slowest = _Results(self._output_bytes), 0, 0.0
        if step.skip:
            for name, element in elements[:1]:
                self._engine.skip(name, element)
        else:
            is_last = all(
                before[name] + _count(elements, name) >= last for name, last in step.last.items()
            )
            made = began
            for messages in self._engine.run(elements, step.now if is_last else None):
                made_before, made = made, time.monotonic()
                if messages is not None:
                    results.add(messages)
                    evaluations, slowest = evaluations + 1, max(slowest, made - made_before)
                if made - began > SLICE_SECONDS or results.is_full:
                    break
        positions = self._engine.positions
        taken = sum(positions[name] - before[name] for name in positions)
        return Stepped(
            messages=results.messages,
            state={POSITIONS: msgspec.json.encode(positions), **self._engine.save()}
            if taken or evaluations
            else {},
            positions=positions,
            taken=taken,
            dropped=self._engine.dropped,
            more=self._engine.due
            or any(positions[name] < last for name, last in step.last.items()),
            due=self._engine.due,
            evaluations=evaluations,
            seconds=time.monotonic() - began,
            slowest=slowest,
            memory_bytes=_resident(),
            plan=self._engine.plan,
        )

    def _next(self, after: Mapping[str, int], step: TakeElements) -> list[tuple[str, Element]]:
        """Returns the next elements with the names of their streams, ordered by time, so that windows hold back few."""
        streams = [
            [
                (name, element)
                for element in islice(
                    _elements(self._store, name, position, step.last[name]), step.most
                )
            ]
            for name, position in after.items()
        ]
        return list(islice(merge(*streams, key=lambda pair: pair[1].microseconds), step.most))


class _Results:
    """The messages of an answer, in their stored form, at most `most` bytes of them in an evaluation."""

    def __init__(self, most: int) -> None:
        self._most, self._size = most, 0
        self._checker = Checker()
        self.messages: list[Publication] = []

    @property
    def is_full(self) -> bool:
        """Whether to end the answer."""
        return len(self.messages) >= _SLICE_MESSAGES or self._size >= _SLICE_BYTES

    def add(self, messages: Iterable[Message]) -> None:
        """Adds the messages of an evaluation."""
        before = self._size
        for message in messages:
            self._checker.check(message)
            self.messages.append(publication := Publication.of(message))
            self._size += len(publication.nquads)
            if self._size - before > self._most:
                raise LimitExceeded(
                    f"the messages of one evaluation have more than {self._most} bytes",
                    hint="construct fewer triples from each message or window",
                )


def _count(elements: Iterable[tuple[str, Element]], name: str) -> int:
    return sum(of == name for of, _ in elements)


def _resident() -> int:
    """Returns the number of bytes of this process in memory; 0 if the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def _elements(store: StreamStore, name: str, after: int, last: int) -> Iterator[Element]:
    """Returns the elements after one, up to another."""
    if after >= last:
        return iter(())
    return takewhile(lambda element: element.sequence <= last, store.read(name, after))


def main() -> None:
    """`python -m construct_messages.continuous.registered.evaluator SOCKET`, started by `process.py`."""
    parent = Parent[Order](Order)
    parent.end_with()
    query: _Query | None = None
    for order, _ in parent.orders():
        answer: Answer
        try:
            if isinstance(order, Begin):
                resource.setrlimit(resource.RLIMIT_DATA, (order.memory_bytes, order.memory_bytes))
                query = _Query(order)
                answer = query.begun()
            else:
                assert query is not None  # the parent sends no order before a successful start
                answer = query.step(order)
        except ConstructMessagesError as error:
            answer = Failure.of(error)
        except MemoryError:
            answer = Failure.of(LimitExceeded("the query needs more memory than its limit"))
        parent.report(answer)


if __name__ == "__main__":
    main()
