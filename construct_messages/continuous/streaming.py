"""`continuous`: a continuous query over streams as iterables, as an asynchronous generator of elements.

The streams determine the time. Nothing is stored here, so the state does not survive a restart.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, aclosing
from datetime import datetime, timedelta
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, TypeVar

from construct_messages.continuous.dataset import read_static
from construct_messages.continuous.windowed import Firing, OnDrop, WindowedQuery
from construct_messages.continuous.windows import (
    ARRIVAL,
    EVERYTHING,
    Bounds,
    Compared,
    WindowOptions,
)
from construct_messages.errors import UsageError
from construct_messages.logs.checking import Checker
from construct_messages.logs.lines.decoder import to_text
from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.query.continuous.values import ContinuousQuery, Report
from construct_messages.rdf.arguments import checked
from construct_messages.rdf.message import Message
from construct_messages.rdf.single_use import each_of
from construct_messages.streams import Publication
from construct_messages.streams.element import Element, microseconds_of

if TYPE_CHECKING:
    from construct_messages.sparql.sources.open import SourceLike


# --- spool ----------------------------------------------------------------------------------------
# Holds messages until it is certain that they will be returned: on disk, if there are many.

PAGE_MESSAGES: Final = 1000
"""The number of messages that are committed together if few digests are known."""

_SHARE: Final = 8
_PAGE_BYTES: Final = 4 << 20
_IN_MEMORY: Final = 4 << 20  # bytes
_HEAD: Final = struct.Struct(">II")  # before each: the lengths of its text and of its time


def page_messages(known: int) -> int:
    """Returns the maximal number of messages that are committed together, with so many digests known.

    Digests have a random order, so each commit rewrites nearly all pages of their table, up to one for each digest.
    With this size, the total amount written is linear in the number of digests, not quadratic.


    >>> page_messages(0), page_messages(1_000_000)
    (1000, 125000)
    """
    return max(PAGE_MESSAGES, known // _SHARE)


class Spool:
    """Holds messages in order; a context manager, which removes them at the end.

    >>> with Spool() as spool:
    ...     spool.add(Message())
    ...     [len(page) for page in spool.pages()]
    [1]
    """

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed at the end of the context
        self._count = 0

    def add(self, message: Message) -> None:
        """Appends a checked message."""
        nquads, generated = Publication.of(message)
        time = (generated or "").encode()
        self._file.write(_HEAD.pack(len(nquads), len(time)) + nquads + time)
        self._count += 1

    def pages(self, known: int = 0) -> Iterator[list[Publication]]:
        """Yields all messages, in the groups that are committed together, see `page_messages`."""
        page, size = [], 0
        self._file.seek(0)
        for number in range(self._count):
            length, rest = _HEAD.unpack(self._file.read(_HEAD.size))
            page.append(
                Publication(self._file.read(length), self._file.read(rest).decode() or None)
            )
            size += length
            if len(page) >= page_messages(known + number + 1 - len(page)) or size > _PAGE_BYTES:
                yield page
                page, size = [], 0
        if page:
            yield page

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()


# --- streaming ------------------------------------------------------------------------------------

Timed: TypeAlias = Element | tuple[datetime, Message | None]
"""An element of a stream, a message with its time, or a time that has passed without a message."""

Stream: TypeAlias = str | AsyncIterable[Timed] | Iterable[Timed]
"""A stream: its URL, or an iterable of its elements."""

E = TypeVar("E", Bounds, Compared, Report)

_MICROSECOND: Final = timedelta(microseconds=1)


@checked
def continuous(
    query: str | ContinuousQuery,
    streams: Mapping[str, Stream],
    static: SourceLike = None,
    *,
    time: str = ARRIVAL,
    lateness: timedelta = timedelta(0),
    max_ahead: timedelta | None = None,
    bounds: str = "(o,c]",
    report: str | None = None,
    every: timedelta | None = None,
    origin: datetime | None = None,
    compare: str = "solutions",
    idle: timedelta | None = None,
    maintain: bool = True,
    on_drop: OnDrop | None = None,
    label_prefix: str | None = None,
    base: str | None = None,
) -> AsyncGenerator[Element]:
    """Evaluates a continuous query with windows over live streams.

    Elements are taken from the stream with the earliest time, because results are only certain when all streams have
    reached that time. A stream without elements delays the others: let it yield `(time, None)` now and then, or set
    `idle`. When all streams have ended, windows that still hold elements close. Other tasks of the event loop run
    between two evaluations, of which there may be very many after a long pause.

    Args:
        query: RSP-QL, C-SPARQL or CQELS, see docs/reference/continuous/syntax.md; or the result of `parse_continuous`.
        streams: by IRI, or by the variable for one (`"?s"`), each in its order: elements, or pairs of a time (with a
            time zone) and a message, or of a time and None, which means that this time has passed. Messages are
            numbered from 1. Or the URL of a stream, which is followed from its next element on; otherwise, pass the
            result of `construct_messages.feeds.subscribe`.
        static: static data, see `open_source`, or None.
        time: the time of an element: `"arrival"` (the time of the pair), `"generated"` (the publisher's time) or a
            property path; see `WindowOptions`.
        lateness: the maximal difference by which an element may be earlier than the newest of its stream.
        max_ahead: the maximal difference by which the time of an element may be later than its arrival; None: no limit.
            Elements that are dated further ahead enter no window.
        bounds: `"(o,c]"` or `"[o,c)"`: the end of a window by time that belongs to it.
        report: `"ON_WINDOW_CLOSE"`, `"ON_CONTENT_CHANGE"`, `"NON_EMPTY_CONTENT"` or `"PERIODIC"`; None: that of the
            query.
        every: the period of `"PERIODIC"`.
        origin: a time at which a window ends; None: the beginning of 1970, in UTC.
        compare: `"solutions"` or `"template"`: the variables that ISTREAM and DSTREAM compare, all of the pattern or
            those of the template.
        idle: how long an asynchronous iterable may yield nothing, by the clock: then the other streams no longer wait
            for it, until its next element. Its elements that are earlier than the last evaluation are late.
            None: any time.
        maintain: whether to maintain solutions by difference if possible; else the whole query is evaluated each time.
            The results are the same.
        on_drop: a function that is called with the IRI of the stream, the element, and `"late"`, `"untimed"` or
            `"ahead"`, for each element that enters no window.
        label_prefix: see `construct_messages`.
        base: resolve relative IRIs in the query against this absolute IRI.

    Returns:
        Elements of the stream named in REGISTER, one for each solution. Their times are those of the evaluations.

    Raises:
        QueryError: the query is not valid.
        UsageError: a stream of the query is missing, a stream is not in the query, or an option is invalid.
        SourceError: the static data cannot be read, or an evaluation failed.
        TermError: a message is not valid RDF.

    >>> import asyncio
    >>> from datetime import UTC
    >>> from construct_messages import Quad, iri
    >>> def seen(second, what):
    ...     quads = [Quad(iri(f"urn:{what}"), iri("urn:at"), iri("urn:gate"))]
    ...     return datetime(2026, 1, 1, 12, 0, second, tzinfo=UTC), Message(quads)
    >>> async def main():
    ...     query = '''REGISTER ISTREAM <urn:arrivals> AS CONSTRUCT { ?who <urn:arrivedAt> ?gate }
    ...         FROM NAMED WINDOW <urn:w> ON <urn:seen> [RANGE PT10S STEP PT5S]
    ...         WHERE { WINDOW <urn:w> { ?who <urn:at> ?gate } } ORDER BY ?who'''
    ...     streams = {"urn:seen": [seen(1, "ann"), seen(3, "bob"), seen(8, "ann"), seen(12, "cy")]}
    ...     async for element in continuous(query, streams):
    ...         print(element.time.time(), element.nquads.decode())
    >>> asyncio.run(main())
    12:00:05 <urn:ann> <urn:arrivedAt> <urn:gate> .
    12:00:05 <urn:bob> <urn:arrivedAt> <urn:gate> .
    12:00:15 <urn:cy> <urn:arrivedAt> <urn:gate> .
    """
    parsed = query if isinstance(query, ContinuousQuery) else parse_continuous(query, base=base)
    options = WindowOptions(
        time=time,
        lateness=lateness // _MICROSECOND,
        max_ahead=None if max_ahead is None else max_ahead // _MICROSECOND,
        bounds=_one_of(Bounds, "bounds", bounds),
        origin=0 if origin is None else microseconds_of(origin),
        report=None if report is None else _one_of(Report, "report", report),
        every=None if every is None else every // _MICROSECOND,
        compare=_one_of(Compared, "compare", compare),
    )
    engine = WindowedQuery(
        parsed,
        options,
        static=() if static is None else read_static(static, parsed),
        on_drop=on_drop,
        label_prefix=label_prefix,
        maintain=maintain,
    )
    if set(streams) != set(engine.streams):
        raise UsageError(
            f"the query has windows on {', '.join(engine.streams)}, and there are {', '.join(streams) or 'no streams'}",
            hint="pass each stream of the query by its IRI, without < and >, or by its variable",
        )
    if idle is not None and not idle > timedelta(0):
        raise UsageError(f"idle={idle} is no time to wait", hint="give more than 0")
    return _run(engine, streams, None if idle is None else idle.total_seconds())


def _one_of(kind: type[E], option: str, value: str) -> E:
    try:
        return kind(value)
    except ValueError:
        names = ", ".join(repr(one.value) for one in kind)
        raise UsageError(f"{option}={value!r} is unknown", hint=f"choose one of {names}") from None


async def _run(
    engine: WindowedQuery, streams: Mapping[str, Stream], idle_seconds: float | None
) -> AsyncGenerator[Element]:
    given = 0
    async with AsyncExitStack() as stack:
        inputs = [
            await stack.enter_async_context(aclosing(_Input(iri, streams[iri])))
            for iri in engine.streams
        ]
        while inputs:
            if idle_seconds is None:
                earliest = min(inputs, key=_time_of)
            else:
                earliest = await _next_of(inputs, idle_seconds)
            firings = await earliest.step(engine)
            if earliest.ended:
                inputs.remove(earliest)
            while True:
                for firing in firings:
                    for element in _elements(engine, firing, given):
                        given += 1
                        yield element
                if not engine.due:
                    break
                await asyncio.sleep(0)
                firings = engine.proceed(1)


async def _next_of(inputs: Sequence[_Input], idle_seconds: float) -> _Input:
    """Returns the input that comes next: the earliest, when it has an item or is idle; or an idle one with an item."""
    earliest = min((each for each in inputs if not each.idle), key=_time_of, default=None)
    waiting = [each for each in inputs if each.idle or each is earliest]
    ahead = [each.read_ahead() for each in waiting]
    left = None
    if earliest is not None:
        left = max(0.0, earliest.waits_since + idle_seconds - asyncio.get_running_loop().time())
    await asyncio.wait(ahead, timeout=left, return_when=asyncio.FIRST_COMPLETED)
    ready = (each for each, item in zip(waiting, ahead, strict=True) if item.done())
    found = min(ready, key=_time_of, default=earliest)
    assert found is not None  # without an earliest one, nothing ends the wait but an item
    return found


def _time_of(each: _Input) -> int:
    return each.time


def _elements(engine: WindowedQuery, firing: Firing, given: int) -> list[Element]:
    stream = engine.query.output or ""
    return [
        Element(stream, sequence, firing.time, to_text(message).encode())
        for sequence, message in enumerate(firing.messages, given + 1)
    ]


class _Input:
    """One input stream of a query.

    Attributes:
        time: its latest time.
        ended: whether it has ended.
        idle: whether it has been silent for so long that others do not wait for it.
        waits_since: when the wait for its next item began, by the clock of the event loop.
    """

    def __init__(self, iri: str, stream: Stream) -> None:
        self._iri, self._sequence, self._checker = iri, 0, Checker()
        if isinstance(stream, str):
            from construct_messages.feeds import (
                subscribe,
            )  # imported here because other callers need no HTTP client

            stream = subscribe(stream)
        if not isinstance(stream, AsyncIterable | Iterable):
            raise UsageError(f"{iri} is {stream!r:.80}", hint="pass an iterable")
        self._items = aiter(stream) if isinstance(stream, AsyncIterable) else each_of(stream)
        self.time, self.ended, self.idle = EVERYTHING, False, False
        self.waits_since = 0.0
        self._ahead: asyncio.Future[Any] | None = None

    def read_ahead(self) -> asyncio.Future[Any]:
        """Begins to wait for the next item, for `step`."""
        if self._ahead is None:
            self._ahead = asyncio.ensure_future(_next_item(self._items))
            self.waits_since = asyncio.get_running_loop().time()
        return self._ahead

    async def step(self, engine: WindowedQuery) -> list[Firing]:
        """Takes the next item, or the end; a wait for it that has not ended makes it idle. Makes at most one
        evaluation."""
        ahead, self.idle = self._ahead, False
        if ahead is not None and not ahead.done():
            self.idle = True
            return engine.idle(self._iri, 1)
        self._ahead = None
        try:
            item = await (anext(self._items) if ahead is None else ahead)
        except StopAsyncIteration:
            self.ended = True
            return engine.end(self._iri, 1)
        if isinstance(item, Element):
            self._sequence, element = item.sequence, item
        else:
            time, message = _timed(self._iri, item)
            if message is None:
                firings = engine.advance(microseconds_of(time), self._iri, 1)
                self.time = engine.watermark(self._iri)
                return firings
            self._checker.check(message)
            self._sequence += 1
            element = Element(
                self._iri, self._sequence, microseconds_of(time), to_text(message).encode()
            )
        firings = engine.take(self._iri, element, 1)
        self.time = engine.watermark(self._iri)
        return firings

    async def aclose(self) -> None:
        """Closes the stream, if it can be closed."""
        if self._ahead is not None:
            self._ahead.cancel()
            await asyncio.gather(self._ahead, return_exceptions=True)  # nobody needs its item
        close = getattr(self._items, "aclose", None)
        if close is not None:
            await close()


async def _next_item(items: AsyncIterator[Any]) -> Any:
    """Returns the next item as a coroutine, which `anext` of some iterators is not."""
    return await anext(items)


def _timed(stream: str, item: object) -> tuple[datetime, Message | None]:
    match item:
        case (datetime() as time, Message() | None as message):
            return time, message
    raise UsageError(
        f"{stream} gives {item!r:.80}",
        hint="yield elements, or pairs of a datetime with a time zone and a message",
    )
