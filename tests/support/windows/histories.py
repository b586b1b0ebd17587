"""Hypothesis strategies for continuous queries, streams, and how their windows are read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import strategies as st

from construct_messages.continuous import Bounds, Compared, Firing, WindowedQuery, WindowOptions
from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.query.continuous.values import (
    CountWindow,
    Operator,
    Report,
    TimeWindow,
    Window,
)
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import XSD, Term, iri, literal
from construct_messages.streams.element import Element
from tests.support.windows.oracle import Case, Event

PREFIX = "PREFIX cm: <https://w3id.org/construct-messages#> PREFIX : <urn:> "
ONE = "FROM NAMED WINDOW :w ON :in [RANGE 1 STEP 1] "
TWO = ONE + "FROM NAMED WINDOW :v ON :in [RANGE 1 STEP 1] "
JOINED = ONE + "FROM NAMED WINDOW :v ON :other [RANGE 1 STEP 1] "

QUERIES = {
    text: parse_continuous(PREFIX + text)
    for text in (
        f"CONSTRUCT {{ ?s :is ?o }} {ONE} WHERE {{ WINDOW :w {{ ?s :p ?o }} }}",
        f"CONSTRUCT {{ ?s :in ?m }} {ONE} WHERE {{ WINDOW :w {{ GRAPH ?m {{ ?s :p ?o }} ?m cm:sequence ?n }} }}",
        f"CONSTRUCT {{ :all :count ?n }} {ONE} WHERE {{ SELECT (COUNT(*) AS ?n) {{ WINDOW :w {{ ?s :p ?o }} }} }}",
        f"CONSTRUCT {{ ?s :of ?g }} {ONE} WHERE {{ WINDOW :w {{ ?m cm:graph ?g }} GRAPH ?g {{ ?s :p ?o }} }}",
        f"CONSTRUCT {{ ?s :there ?o }} {ONE} WHERE {{ GRAPH ?g {{ ?s :p ?o }} }}",
        f"CONSTRUCT {{ ?s :both ?o }} {TWO} WHERE {{ WINDOW :w {{ ?s :p ?o }} WINDOW :v {{ ?s :q ?x }} }}",
        f"CONSTRUCT {{ ?s :late ?o }} {TWO} WHERE {{ WINDOW :w {{ ?s ?p ?o }} MINUS {{ WINDOW :v {{ ?s ?p ?o }} }} }}",
        f"CONSTRUCT {{ ?s :join ?x }} {JOINED} WHERE {{ WINDOW :w {{ ?s :p ?o }} WINDOW :v {{ ?x :p ?o }} }}",
        f"CONSTRUCT {{ ?s :static ?c }} {JOINED} WHERE {{ WINDOW :w {{ ?s :p ?o }} OPTIONAL {{ ?o a ?c }} }}",
        f"CONSTRUCT {{ ?s :is ?o }} {ONE.replace('NAMED ', '')} WHERE {{ ?s :p ?o }}",
    )
}

SUBJECTS = st.sampled_from([iri("urn:a"), iri("urn:b"), Term("_:x")])
OBJECTS = st.sampled_from(
    [
        iri("urn:a"),
        iri("urn:o"),
        literal("1", datatype=f"{XSD}integer"),
        literal("01", datatype=f"{XSD}integer"),
        Term("_:y"),
    ]
)
GRAPHS = st.sampled_from([None, None, None, iri("urn:g"), iri("urn:a")])
QUADS = st.builds(Quad, SUBJECTS, st.sampled_from([iri("urn:p"), iri("urn:q")]), OBJECTS, GRAPHS)
MESSAGES = st.lists(QUADS, max_size=3).map(Message)
STATIC = (
    Quad(iri("urn:a"), iri("urn:p"), iri("urn:o"), iri("urn:g")),
    Quad(iri("urn:o"), iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), iri("urn:Class")),
)
TIMES = st.integers(0, 15)


@st.composite
def windows(draw: st.DrawFn, window: Window) -> Window:
    """A window of the same name on the same stream."""
    if draw(st.integers(0, 3)) == 0:
        return CountWindow(
            window.name, window.stream, draw(st.integers(1, 4)), draw(st.integers(1, 3))
        )
    width = draw(st.sampled_from([*range(9), None]))
    return TimeWindow(window.name, window.stream, width, draw(st.integers(0, 4)))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Queries with windows of random sizes, by time and by count."""
    parsed = draw(st.sampled_from(list(QUERIES.values())))
    query = replace(
        parsed,
        operator=draw(st.sampled_from(list(Operator))),
        windows=tuple(draw(windows(window)) for window in parsed.windows),
    )
    return Case(
        query,
        report=draw(st.sampled_from(list(Report))),
        every=draw(st.integers(1, 4)),
        bounds=draw(st.sampled_from(list(Bounds))),
        origin=draw(st.integers(-2, 2)),
        lateness=draw(st.sampled_from([0, 0, 2, 5])),
        compare=draw(st.sampled_from(list(Compared))),
        static=STATIC if draw(st.booleans()) else (),
    )


@st.composite
def event_lists(draw: st.DrawFn, streams: int) -> list[Event]:
    """Elements out of order within some bounds, now and then a time that has passed, at the end maybe the end."""
    sequences = [0] * streams
    events, time = [], 0
    for _ in range(draw(st.integers(0, 9))):
        if draw(st.integers(0, 8)) == 0:
            events.append(Event(None, time=draw(TIMES)))
            continue
        stream = draw(st.integers(0, streams - 1))
        sequences[stream] += 1
        time = max(0, time + draw(st.sampled_from([0, 0, 1, 1, 2, 3, 7, -1, -4])))
        nquads = draw(MESSAGES).lines[:-1]
        events.append(Event(stream, Element(str(stream), sequences[stream], time, nquads)))
    if draw(st.booleans()):
        events += [Event(stream) for stream in range(streams)]
    return events


@st.composite
def histories(draw: st.DrawFn) -> tuple[Case, list[Event]]:
    """A query and what happens to it."""
    case = draw(cases())
    return case, draw(event_lists(len(case.streams)))


def options_of(case: Case) -> WindowOptions:
    """How the engine is told to read the windows of a case."""
    return WindowOptions(
        lateness=case.lateness,
        bounds=case.bounds,
        origin=case.origin,
        report=case.report,
        every=case.every,
        compare=case.compare,
    )


def happen(
    engine: WindowedQuery, case: Case, event: Event, most: int | None = None
) -> list[Firing]:
    """What an event causes; at most so many evaluations."""
    if event.time is not None:
        return engine.advance(event.time, most=most)
    assert event.stream is not None
    stream = case.streams[event.stream]
    return (
        engine.end(stream, most)
        if event.element is None
        else engine.take(stream, event.element, most)
    )


def unordered(firings: list[Firing]) -> list[Firing]:
    """Firings whose solutions have an order, which is the engine's own otherwise."""
    return [
        replace(
            firing,
            solutions=sorted(firing.solutions),
            messages=sorted(firing.messages, key=lambda m: m.lines),
        )
        for firing in firings
    ]


def restored(engine: WindowedQuery, case: Case, events: list[Event]) -> WindowedQuery:
    """The query after a restart."""

    def read(stream: str, first: int, last: int) -> Iterable[Element]:
        number = case.streams.index(stream)
        assert first == engine.needs_from(stream)
        for event in events:
            if (
                event.stream == number
                and event.element is not None
                and first <= event.element.sequence <= last
            ):
                yield event.element

    assert len(engine.save()) < 1000
    again = WindowedQuery.restore(
        engine.save(), read, case.query, options_of(case), static=case.static
    )
    assert again.save() == engine.save()
    return again
