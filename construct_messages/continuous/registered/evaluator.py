"""The program of a process that evaluates one registered query over streams: elements of a store in, messages out.

Reads orders from standard input and answers on standard output; elements come from the store, which it only reads. What
it answers is committed by the process that started it (`process.py`), which also kills it when an answer takes too
long: there is no time limit here. Ends when that process ends. Both run the same version of this package.
"""

from __future__ import annotations

import resource
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from itertools import islice, takewhile
from pathlib import Path
from typing import BinaryIO, Final, Protocol, TypeAlias

import msgspec

from construct_messages.continuous.event_time import ARRIVAL
from construct_messages.continuous.registered.registration import Registration
from construct_messages.continuous.static import read_static
from construct_messages.continuous.transform import BATCH, Transformation
from construct_messages.continuous.windowed import WindowedQuery
from construct_messages.errors import ConstructMessagesError, LimitExceeded
from construct_messages.logs.lines.texts import to_text
from construct_messages.message import Message
from construct_messages.sources.evaluators.child import Failure, end_with
from construct_messages.streams.element import Element
from construct_messages.streams.store import StreamStore, open_store

LENGTH: Final = struct.Struct(">I")
"""What stands before each frame: its length."""


_POSITIONS: Final = "positions"
"""The key of what is kept of them."""


class Begin(msgspec.Struct, tag=True, frozen=True):
    """Take up a query.

    Args:
        store: the path of the store.
        registration: the query, as `Registration.encode` gives it.
        saved: what was kept of its state.
        memory_bytes: how much this process may take for itself.
        output_bytes: how large the messages of one answer may be together.
        static: the store directory of the data beside the windows; None: there are none.
    """

    store: str
    registration: bytes
    saved: dict[str, bytes]
    memory_bytes: int
    output_bytes: int
    static: str | None = None


class Step(msgspec.Struct, tag=True, frozen=True):
    """Evaluate over what came.

    Args:
        last: by the names of the input streams: the sequence up to which elements are read.
        now: behind these, no element is to come that is earlier than this time in microseconds; None: unknown.
    """

    last: dict[str, int]
    now: int | None = None


class Stepped(msgspec.Struct, tag=True, frozen=True):
    """The result of an order.

    Args:
        messages: what is given out, as N-Quads.
        state: what is to be kept in one transaction with it.
        positions: by the names of the input streams: the sequences up to which they are read now.
        taken: how many elements were read.
        dropped: how many of all elements so far entered no window.
        more: whether there are further elements to read.
        timed: whether the query is to be told the time, as windows of arrival time are.
    """

    messages: list[str] = []
    state: dict[str, bytes] = {}
    positions: dict[str, int] = {}
    taken: int = 0
    dropped: int = 0
    more: bool = False
    timed: bool = False


class Failed(msgspec.Struct, tag=True, frozen=True):
    """The query failed, and so will the next order."""

    failure: Failure


Order: TypeAlias = Begin | Step
Answer: TypeAlias = Stepped | Failed


def positions_of(registration: Registration, saved: Mapping[str, bytes]) -> dict[str, int]:
    """Up to where the input streams of a query are read, by their names.

    Args:
        registration: the query.
        saved: what was kept of its state.
    """
    kept = saved.get(_POSITIONS)
    return registration.after if kept is None else msgspec.json.decode(kept, type=dict[str, int])


class _Engine(Protocol):
    """A query that takes elements; the part of `Stepped` that it knows."""

    @property
    def positions(self) -> dict[str, int]: ...

    @property
    def dropped(self) -> int: ...

    def take(self, elements: Iterable[tuple[str, Element]]) -> Iterable[Message]: ...

    def advance(self, time: int) -> Iterable[Message]: ...

    def save(self) -> dict[str, bytes]: ...


class _Stateless:
    """A query that sees each message alone."""

    def __init__(self, registration: Registration, saved: Mapping[str, bytes]) -> None:
        self._transformation = Transformation(registration.query().query, base=registration.streams)
        ((self._stream, self._position),) = positions_of(registration, saved).items()
        self.dropped = 0

    @property
    def positions(self) -> dict[str, int]:
        return {self._stream: self._position}

    def take(self, elements: Iterable[tuple[str, Element]]) -> Iterable[Message]:
        batch = [element for _, element in elements]
        if batch:
            self._position = batch[-1].sequence
        return self._transformation.batch([element.nquads for element in batch])

    def advance(self, time: int) -> Iterable[Message]:  # noqa: ARG002 - the protocol's
        return ()

    def save(self) -> dict[str, bytes]:
        return {}


class _Windows:
    """A query with windows."""

    def __init__(
        self, registration: Registration, saved: Mapping[str, bytes], store: StreamStore, static: str | None
    ) -> None:
        names = registration.inputs
        query, options = registration.query(), registration.options()
        beside = () if static is None else read_static(static, query)

        def read(stream: str, first: int, last: int) -> Iterable[Element]:
            return _elements(store, names[stream], first - 1, last)

        if "engine" in saved:
            self._engine = WindowedQuery.restore(
                saved["engine"], read, query, options, static=beside, element_iri=registration.element_iri
            )
        else:
            self._engine = WindowedQuery(query, options, static=beside, element_iri=registration.element_iri)
        self._iris = {name: iri for iri, name in names.items()}
        self._after = registration.after

    @property
    def positions(self) -> dict[str, int]:
        return {name: self._engine.position(iri) or self._after[name] for name, iri in self._iris.items()}

    @property
    def dropped(self) -> int:
        return sum(sum(reasons.values()) for reasons in self._engine.dropped.values())

    def take(self, elements: Iterable[tuple[str, Element]]) -> Iterator[Message]:
        for name, element in elements:
            for firing in self._engine.take(self._iris[name], element):
                yield from firing.messages

    def advance(self, time: int) -> Iterator[Message]:
        for firing in self._engine.advance(time):
            yield from firing.messages

    def save(self) -> dict[str, bytes]:
        return {"engine": self._engine.save()}


class _Query:
    """One registered query over a store."""

    def __init__(self, begin: Begin) -> None:
        registration = Registration.decode(begin.registration)
        windows = registration.query().windows
        self._store = open_store(Path(begin.store), read_only=True)
        self._output_bytes = begin.output_bytes
        self._timed = bool(windows) and registration.time == ARRIVAL
        self._engine: _Engine
        if windows:
            self._engine = _Windows(registration, begin.saved, self._store, begin.static)
        else:
            self._engine = _Stateless(registration, begin.saved)

    def begun(self) -> Stepped:
        """Returns the initial position."""
        return Stepped(positions=self._engine.positions, dropped=self._engine.dropped, timed=self._timed)

    def step(self, step: Step) -> Stepped:
        """Takes the next elements; behind the last of them, the time."""
        positions = self._engine.positions
        streams = [
            [(name, element) for element in islice(_elements(self._store, name, after, step.last[name]), BATCH)]
            for name, after in positions.items()
        ]
        # in the order of their times, so that windows hold back little
        elements = list(islice(merge(*streams, key=lambda pair: pair[1].microseconds), BATCH))
        texts = self._texts(self._engine.take(elements))
        positions = self._engine.positions
        more = any(positions[name] < last for name, last in step.last.items())
        if step.now is not None and not more:
            texts += self._texts(self._engine.advance(step.now))
        changed = bool(elements or texts)
        return Stepped(
            messages=texts,
            state={_POSITIONS: msgspec.json.encode(positions), **self._engine.save()} if changed else {},
            positions=positions,
            taken=len(elements),
            dropped=self._engine.dropped,
            more=more,
        )

    def _texts(self, messages: Iterable[Message]) -> list[str]:
        texts, size = [], 0
        for message in messages:
            text = to_text(message)
            texts.append(text)
            size += len(text)
            if size > self._output_bytes:
                raise LimitExceeded(
                    f"the messages of one evaluation have more than {self._output_bytes} bytes",
                    hint="construct less of each message or window",
                )
        return texts


def _elements(store: StreamStore, name: str, after: int, last: int) -> Iterator[Element]:
    """The elements behind one, up to another."""
    if after >= last:
        return iter(())
    return takewhile(lambda element: element.sequence <= last, store.read(name, after))


def main() -> None:
    """`python -m construct_messages.continuous.registered.evaluator`, started by `process.py`."""
    end_with(sys.stdin.fileno())
    query: _Query | None = None
    for order in _orders(sys.stdin.buffer):
        answer: Answer
        try:
            if isinstance(order, Begin):
                resource.setrlimit(resource.RLIMIT_DATA, (order.memory_bytes, order.memory_bytes))
                query = _Query(order)
                answer = query.begun()
            else:
                assert query is not None  # nothing is asked before it began well
                answer = query.step(order)
        except ConstructMessagesError as error:
            answer = Failed(Failure.of(error))
        except MemoryError:
            answer = Failed(Failure.of(LimitExceeded("the query needs more memory than it may take")))
        write_frame(sys.stdout.buffer, msgspec.msgpack.encode(answer))


def write_frame(file: BinaryIO, data: bytes) -> None:
    """Writes a frame."""
    file.write(LENGTH.pack(len(data)) + data)
    file.flush()


def _orders(file: BinaryIO) -> Iterator[Order]:
    decoder = msgspec.msgpack.Decoder(Order)
    while length := file.read(LENGTH.size):
        yield decoder.decode(file.read(LENGTH.unpack(length)[0]))


if __name__ == "__main__":
    main()
