"""`continuous`: iterables in, elements out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pyoxigraph as ox
import pytest

from construct_messages.continuous import continuous
from construct_messages.continuous.streaming import Timed
from construct_messages.errors import QueryError, TermError, UsageError
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import Term, iri
from construct_messages.streams.element import Element

MET = """REGISTER ISTREAM <urn:met> AS CONSTRUCT { ?a <urn:met> ?b }
    FROM NAMED WINDOW <urn:w> ON <urn:here> [RANGE PT10S STEP PT10S]
    FROM NAMED WINDOW <urn:v> ON <urn:there> [RANGE PT10S STEP PT10S]
    WHERE { WINDOW <urn:w> { ?a <urn:at> ?place } WINDOW <urn:v> { ?b <urn:at> ?place } } ORDER BY ?a ?b"""
AT = """REGISTER RSTREAM <urn:out> AS CONSTRUCT { ?who <urn:at> ?place }
    FROM NAMED WINDOW <urn:w> ON <urn:here> [RANGE PT10S STEP PT10S]
    WHERE { WINDOW <urn:w> { ?who <urn:at> ?place } } ORDER BY ?who"""


def at(second: int) -> datetime:
    return datetime(2026, 1, 1, 12, 0, tzinfo=UTC) + timedelta(seconds=second)


def seen(second: int, who: str, place: str = "gate") -> tuple[datetime, Message]:
    return at(second), Message([Quad(iri(f"urn:{who}"), iri("urn:at"), iri(f"urn:{place}"))])


Streams = Mapping[str, AsyncIterable[Timed] | Iterable[Timed]]


async def all_of(query: str, streams: Streams, **options: Any) -> list[tuple[int, str]]:
    """The seconds of what comes, and who is in it."""
    return [
        (
            int((element.time - at(0)).total_seconds()),
            " ".join(str(quad.subject)[5:-1] for quad in element.message),
        )
        async for element in continuous(query, streams, **options)
    ]


class Live:
    """An asynchronous stream that tells when it is closed."""

    def __init__(self, items: list[Timed]) -> None:
        self._items = iter(items)
        self.taken, self.closed = 0, False

    def __aiter__(self) -> AsyncIterator[Timed]:
        return self

    async def __anext__(self) -> Timed:
        await asyncio.sleep(0)
        self.taken += 1
        try:
            return next(self._items)
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self.closed = True


HERE, THERE = (
    [seen(1, "ann"), seen(2, "bob", "hall"), seen(15, "cy")],
    [seen(3, "dan"), seen(4, "eve"), seen(16, "fay")],
)


@pytest.mark.parametrize("kind", [list, Live, iter], ids=["list", "async", "iterator"])
async def test_streams_of_each_kind(kind: Any) -> None:
    streams = {"urn:here": kind(HERE), "urn:there": kind(THERE)}
    assert await all_of(MET, streams) == [(10, "ann"), (10, "ann"), (20, "cy")]


async def test_a_variable_stands_for_a_stream() -> None:
    query = MET.replace("<urn:here>", "?any").replace("<urn:there>", "$any")
    assert await all_of(query, {"?any": HERE}) == [(10, "ann"), (10, "bob"), (20, "cy")]
    with pytest.raises(UsageError, match=r"has windows on \?any, and there are urn:here"):
        continuous(query, {"urn:here": HERE})


async def test_elements_of_the_output() -> None:
    elements = [element async for element in continuous(AT, {"urn:here": HERE})]
    assert [(element.stream, element.sequence) for element in elements] == [
        ("urn:out", n) for n in (1, 2, 3)
    ]


async def test_a_query_over_the_output_of_a_query() -> None:
    first = continuous(AT, {"urn:here": HERE})
    second = AT.replace("<urn:here>", "<urn:out>")
    assert await all_of(second, {"urn:out": first}) == [(10, "ann"), (10, "bob"), (20, "cy")]


async def test_a_window_that_closes_when_datetime_has_ended() -> None:
    last = datetime.max.replace(tzinfo=UTC), seen(1, "ann")[1]
    (element,) = [element async for element in continuous(AT, {"urn:here": [last]})]
    assert element.microseconds == 253_402_300_800_000_000
    with pytest.raises(UsageError, match="10000-01-01T00:00:00Z is outside of the years 1 to 9999"):
        _ = element.time


async def test_elements_keep_their_sequences() -> None:
    query = """CONSTRUCT { ?m <urn:n> ?n } FROM NAMED WINDOW <urn:w> ON <urn:here> [NOW]
        WHERE { WINDOW <urn:w> { ?m <https://w3id.org/construct-messages#sequence> ?n } }"""
    elements = [Element("here", sequence, sequence, b"") for sequence in (7, 9)]
    assert [who async for _, who in _pairs(query, elements)] == ["urn:here/7", "urn:here/9"]


async def _pairs(query: str, elements: list[Element]) -> AsyncIterator[tuple[int, str]]:
    async for element in continuous(query, {"urn:here": elements}):
        for quad in element.message:
            yield element.sequence, str(quad.subject)[1:-1]


async def test_a_time_that_passes_without_a_message() -> None:
    """What is certain is given at once, before the next item is asked for."""
    here = Live([seen(1, "ann"), (at(11), None), seen(12, "bob")])
    elements = continuous(AT, {"urn:here": here})
    assert [quad.subject for quad in (await anext(elements)).message] == ["<urn:ann>"]
    assert here.taken == 2
    await elements.aclose()
    assert here.closed


async def test_a_silent_stream_does_not_hold_back_the_others() -> None:
    """It counts again when it yields; what came too late by then enters no window."""
    back, caught_up, dropped = asyncio.Event(), asyncio.Event(), list[tuple[str, int, str]]()

    async def here() -> AsyncIterator[Timed]:
        for second, who in ((1, "ann"), (12, "bob")):
            yield seen(second, who)
        await caught_up.wait()
        for second, who in ((23, "cy"), (32, "hal")):
            yield seen(second, who)

    async def there() -> AsyncIterator[Timed]:
        yield seen(2, "dan")
        await back.wait()
        yield seen(3, "eve")  # the window of this time has closed
        caught_up.set()
        yield seen(24, "fay")
        yield seen(31, "gus")

    elements = continuous(
        MET,
        {"urn:here": here(), "urn:there": there()},
        idle=timedelta(seconds=0.3),
        on_drop=lambda stream, element, reason: dropped.append((stream, element.sequence, reason)),
    )
    met = [_met((await anext(elements)).message)]
    following = asyncio.ensure_future(anext(elements))
    await asyncio.sleep(0.5)  # both are silent, which is no end
    assert not following.done()
    back.set()
    met.append(_met((await following).message))
    met += [_met(element.message) async for element in elements]
    assert met == ["ann dan", "cy fay", "hal gus"]
    assert dropped == [("urn:there", 2, "late")]


async def test_idle_streams_are_closed() -> None:
    class Silent(Live):
        async def __anext__(self) -> Timed:
            await asyncio.Event().wait()
            raise AssertionError("it waits for ever")

    here, there = Live([seen(1, "ann"), seen(12, "bob")]), Silent([])
    query = MET.replace("WINDOW <urn:v> { ?b", "OPTIONAL { WINDOW <urn:v> { ?b") + ""
    query = query.replace("?place } } ORDER", "?place } } } ORDER")
    elements = continuous(
        query, {"urn:here": here, "urn:there": there}, idle=timedelta(seconds=0.05)
    )
    assert _met((await anext(elements)).message) == ""
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(elements), 0.3)
    await elements.aclose()
    assert here.closed
    assert there.closed
    with pytest.raises(UsageError, match="no time to wait"):
        continuous(query, {"urn:here": here, "urn:there": there}, idle=timedelta(0))


def _met(message: Message) -> str:
    return " ".join(f"{quad.subject[5:-1]} {quad.object[5:-1]}" for quad in message)


async def test_other_tasks_run_while_a_long_pause_is_caught_up_with() -> None:
    """A month of windows that close each second are evaluated one by one, as they are asked for."""
    turns = 0

    async def another_task() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    query = """REGISTER RSTREAM <urn:out> AS CONSTRUCT { <urn:all> <urn:count> ?n }
        FROM NAMED WINDOW <urn:w> ON <urn:here> [RANGE PT10S STEP PT1S]
        WHERE { SELECT (COUNT(*) AS ?n) { WINDOW <urn:w> { ?who <urn:at> ?place } } }"""
    task = asyncio.create_task(another_task())
    elements = continuous(query, {"urn:here": [seen(0, "ann"), seen(30 * 86_400, "bob")]})
    times = [(await anext(elements)).microseconds // 1_000_000 for _ in range(50)]
    assert turns >= 49
    assert [later - earlier for earlier, later in pairwise(times)] == [1] * 49
    await elements.aclose()
    task.cancel()


async def test_static_data_by_from() -> None:
    store = ox.Store()
    towns = b"<urn:gate> <urn:in> <urn:a> . <urn:hall> <urn:in> <urn:b> ."
    store.load(towns, ox.RdfFormat.TURTLE, to_graph=ox.NamedNode("urn:g"))
    query = """CONSTRUCT { ?who <urn:in> ?town } FROM <urn:g>
        FROM NAMED WINDOW <urn:w> ON <urn:here> [RANGE PT10S STEP PT10S]
        WHERE { WINDOW <urn:w> { ?who <urn:at> ?place } ?place <urn:in> ?town } ORDER BY ?who"""
    assert await all_of(query, {"urn:here": HERE}, static=store) == [
        (10, "ann"),
        (10, "bob"),
        (20, "cy"),
    ]
    assert await all_of(query.replace("FROM <urn:g>", ""), {"urn:here": HERE}, static=store) == []


@pytest.mark.parametrize("maintain", [True, False])
async def test_options(maintain: bool) -> None:
    dropped: list[tuple[str, int, str]] = []
    out_of_order = [seen(1, "ann"), seen(12, "bob"), seen(9, "cy"), seen(2, "dan")]
    found = await all_of(
        AT,
        {"urn:here": out_of_order},
        lateness=timedelta(seconds=5),
        max_ahead=timedelta(0),
        bounds="[o,c)",
        report="PERIODIC",
        every=timedelta(seconds=4),
        origin=at(1),
        maintain=maintain,
        on_drop=lambda stream, element, reason: dropped.append((stream, element.sequence, reason)),
    )
    assert dropped == [("urn:here", 4, "late")]
    # windows are [1, 11), [11, 21); cy came and went between two evaluations
    assert found == [(5, "ann"), (9, "ann"), (13, "bob"), (17, "bob"), (21, "bob")]


@pytest.mark.parametrize(
    ("query", "streams", "options", "error"),
    [
        (AT, {}, {}, UsageError),
        (AT, {"urn:here": [], "urn:there": []}, {}, UsageError),
        (AT, {"urn:here": []}, {"bounds": "(o,c)"}, UsageError),
        (AT, {"urn:here": []}, {"report": "NOW AND THEN"}, UsageError),
        (AT, {"urn:here": []}, {"origin": datetime(2026, 1, 1)}, UsageError),
        (AT.replace("?who <urn:at>", "?who"), {"urn:here": []}, {}, QueryError),
        (
            AT.replace("<urn:at>", "<at>").replace("CONSTRUCT { ?who <at> ?place }", "SELECT *"),
            {},
            {},
            QueryError,
        ),
    ],
    ids=["no stream", "another stream", "bounds", "report", "time zone", "query", "no base"],
)
def test_refused_at_once(
    query: str, streams: Streams, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        continuous(query, streams, **options)


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (1, "urn:here is 1"),
        ([Message()], "urn:here gives <Message, empty>"),
        ([("2026-01-01T12:00:00Z", Message())], "urn:here gives \\('2026-01-01"),
        ([(at(1), "<urn:a> <urn:p> <urn:o> .")], "urn:here gives"),
    ],
    ids=["a number", "no time", "a time as text", "a message as text"],
)
async def test_what_is_no_stream(stream: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        async for _ in continuous(AT, {"urn:here": stream}):
            pass
    assert (raised.value.hint or "").startswith(("pass an iterable", "yield elements"))


async def test_a_message_that_is_no_rdf() -> None:
    here = Live([(at(1), Message([Quad(Term("urn:a"), iri("urn:at"), iri("urn:gate"))]))])
    with pytest.raises(TermError, match="not an RDF term"):
        await all_of(AT, {"urn:here": here})
    assert here.closed


async def test_an_error_of_a_stream_is_raised() -> None:
    async def failing() -> AsyncIterator[Timed]:
        yield seen(1, "ann")
        raise ConnectionError("the line is dead")

    there = Live([seen(1, "bob")])
    with pytest.raises(ConnectionError, match="dead"):
        await all_of(MET, {"urn:here": failing(), "urn:there": there})
    assert there.closed
