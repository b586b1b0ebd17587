"""Windows by tables: what they hold and when they are evaluated, and what of the solutions is given out."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyoxigraph as ox
import pytest

from construct_messages.continuous import Bounds, Compared, Firing, WindowedQuery, WindowOptions
from construct_messages.continuous.windows import time_of
from construct_messages.errors import QueryError, UsageError
from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.query.continuous.values import MEMBER, STATIC, WINDOWS_GRAPH, Report
from construct_messages.rdf.message import Quad
from construct_messages.rdf.terms import iri, literal
from construct_messages.rdf.terms.values import date_time_of
from construct_messages.streams.element import Element

SECOND = 1_000_000


def element(
    sequence: int, second: float, nquads: str | None = None, generated: str | None = None
) -> Element:
    """One that says its own sequence, where nothing else is to be said."""
    text = f"<urn:m{sequence}> <urn:p> <urn:o> ." if nquads is None else nquads
    return Element("in", sequence, round(second * SECOND), text.encode(), generated)


def engine_of(
    window: str,
    where: str = "WINDOW <urn:w> { ?m <urn:p> ?o }",
    operator: str = "RSTREAM",
    options: WindowOptions | None = None,
    **others: object,
) -> WindowedQuery:
    query = parse_continuous(
        f"REGISTER {operator} <urn:out> AS CONSTRUCT {{ ?m <urn:is> ?o }}"
        f" FROM NAMED WINDOW <urn:w> ON <urn:in> {window} WHERE {{ {where} }}"
    )
    return WindowedQuery(query, options, **others)  # type: ignore[arg-type] # as given


def seen(firings: list[Firing]) -> list[tuple[float, list[str]]]:
    """The times of firings, and the names in their solutions."""
    return [
        (
            firing.time / SECOND,
            sorted(solution[0][len("<urn:") : -1] for solution in firing.solutions),
        )
        for firing in firings
    ]


@dataclass
class Case:
    window: str
    seconds: list[float]
    expected: list[tuple[float, list[str]]]
    operator: str = "RSTREAM"
    options: WindowOptions = field(default_factory=WindowOptions)


OPEN, CHANGE = WindowOptions(bounds=Bounds.CLOSED_OPEN), WindowOptions(report=Report.CONTENT_CHANGE)
CASES = {
    "the end belongs to a window": Case(
        "[RANGE PT10S STEP PT10S]", [1, 10, 11, 20], [(10, ["m1", "m2"]), (20, ["m3", "m4"])]
    ),
    "the beginning belongs to a window": Case(
        "[RANGE PT10S STEP PT10S]",
        [1, 10, 11, 20],
        [(10, ["m1"]), (20, ["m2", "m3"]), (30, ["m4"])],
        options=OPEN,
    ),
    "windows overlap": Case(
        "[RANGE PT10S STEP PT5S]", [1, 7], [(5, ["m1"]), (10, ["m1", "m2"]), (15, ["m2"])]
    ),
    "windows have gaps": Case("[RANGE PT2S STEP PT10S]", [1, 9, 10], [(10, ["m2", "m3"])]),
    "elements of one time": Case("[RANGE PT5S STEP PT5S]", [5, 5, 5], [(5, ["m1", "m2", "m3"])]),
    "the same again": Case("[RANGE PT3S STEP PT1S]", [1], [(1, ["m1"]), (2, ["m1"]), (3, ["m1"])]),
    "only what is new": Case(
        "[RANGE PT3S STEP PT1S]", [1, 2], [(1, ["m1"]), (2, ["m2"])], "ISTREAM"
    ),
    "what vanished": Case(
        "[RANGE PT3S STEP PT1S]", [1, 2, 9], [(4, ["m1"]), (5, ["m2"])], "DSTREAM"
    ),
    "a window at each element": Case(
        "[RANGE PT2S]", [1, 2, 3], [(1, ["m1"]), (2, ["m1", "m2"]), (3, ["m2", "m3"])]
    ),
    "the elements of now": Case("[NOW]", [1, 1, 2], [(1, ["m1"]), (1, ["m1", "m2"]), (2, ["m3"])]),
    "all elements": Case("[ALL]", [1, 50], [(1, ["m1"]), (50, ["m1", "m2"])]),
    "the last two": Case(
        "[ROWS 2]", [1, 1, 9], [(1, ["m1"]), (1, ["m1", "m2"]), (9, ["m2", "m3"])]
    ),
    "the last two, at each second": Case(
        "[ELEMENTS 2 STEP 2]", [1, 2, 3, 4], [(2, ["m1", "m2"]), (4, ["m3", "m4"])]
    ),
    "the last ones, fewer than two": Case(
        "[ELEMENTS 2 STEP 2]", [1, 2, 3], [(2, ["m1", "m2"]), (3, ["m3"])]
    ),
    "the last ones, of windows that overlap": Case(
        "[ELEMENTS 3 STEP 2]", [1, 2, 3], [(2, ["m1", "m2"]), (3, ["m2", "m3"])]
    ),
    "the last ones, between two windows": Case("[ELEMENTS 1 STEP 2]", [1, 2, 3], [(2, ["m2"])]),
    "whatever changes": Case(
        "[RANGE PT2S STEP PT1S]", [1, 5], [(1, ["m1"]), (5, ["m2"])], "ISTREAM", CHANGE
    ),
    "whatever has changed since": Case(
        "[RANGE PT2S STEP PT1S]", [1, 5], [(2.000001, ["m1"])], "DSTREAM", CHANGE
    ),
    "periodically": Case(
        "[RANGE PT10S STEP PT10S]",
        [1, 7],
        [(4, ["m1"]), (8, ["m1", "m2"])],
        options=WindowOptions(report=Report.PERIODIC, every=4 * SECOND),
    ),
    "from an origin": Case(
        "[RANGE PT10S STEP PT10S]",
        [1, 7],
        [(3, ["m1"]), (13, ["m2"])],
        options=WindowOptions(origin=3 * SECOND),
    ),
    "out of order": Case(
        "[RANGE PT5S STEP PT5S]",
        [1, 7, 4, 9],
        [(5, ["m1", "m3"]), (10, ["m2", "m4"])],
        options=WindowOptions(lateness=3 * SECOND),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_windows(case: Case) -> None:
    engine = engine_of(case.window, operator=case.operator, options=case.options)
    firings = [
        firing
        for sequence, second in enumerate(case.seconds, 1)
        for firing in engine.take("urn:in", element(sequence, second))
    ]
    assert seen([*firings, *engine.end("urn:in")]) == case.expected


def test_a_long_silence_takes_no_time() -> None:
    engine = engine_of("[RANGE PT1S STEP PT0.001S]", operator="ISTREAM")
    engine.take("urn:in", element(1, 1))
    assert seen(engine.take("urn:in", element(2, 10**9))) == [
        (1, ["m1"])
    ]  # thirty years, a thousand times a second


def test_empty_firings_are_given_where_they_are_wanted() -> None:
    engine = engine_of("[RANGE PT1S STEP PT1S]", options=WindowOptions(empty=True))
    engine.take("urn:in", element(1, 0.5, ""))
    assert seen(engine.take("urn:in", element(2, 3.5))) == [(1, []), (2, []), (3, [])]


def test_time_passes_without_elements() -> None:
    engine = engine_of("[RANGE PT5S STEP PT5S]")
    assert engine.take("urn:in", element(1, 1)) == []
    assert engine.advance(5 * SECOND) == []  # another element of that time may come
    assert seen(engine.advance(5 * SECOND + 1)) == [(5, ["m1"])]
    assert engine.take("urn:in", element(2, 4)) == []
    assert engine.dropped["urn:in"] == {"late": 1}


def test_streams_wait_for_each_other() -> None:
    query = parse_continuous("""CONSTRUCT { ?m <urn:with> ?n }
        FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT5S STEP PT5S]
        FROM NAMED WINDOW <urn:v> ON <urn:other> [RANGE PT5S STEP PT5S]
        WHERE { WINDOW <urn:w> { ?m <urn:p> ?o } WINDOW <urn:v> { ?n <urn:p> ?o } }""")
    engine = WindowedQuery(query)
    assert engine.take("urn:in", element(1, 1)) == []
    assert engine.take("urn:in", element(2, 8)) == []
    assert engine.take("urn:other", element(1, 2)) == []
    assert seen(engine.advance(6 * SECOND, "urn:other")) == [(5, ["m1"])]
    assert (engine.watermark(), engine.watermark("urn:in")) == (6 * SECOND, 8 * SECOND)
    assert (engine.position("urn:in"), engine.needs_from("urn:in")) == (2, 1)


PROV = "http://www.w3.org/ns/prov#"
DATE_TIME = "^^<http://www.w3.org/2001/XMLSchema#dateTime>"
THREE, FOUR = (f'"1970-01-01T00:00:0{second}Z"{DATE_TIME}' for second in (3, 4))
TIMES = {
    "of the publisher": ("generated", element(1, 99, "", "1970-01-01T00:00:03Z"), {}),
    "with another zone": ("generated", element(1, 99, "", "1970-01-01T01:00:03+01:00"), {}),
    "in the message": (
        "generated",
        element(1, 99, f"<urn:g> <{PROV}generatedAtTime> {THREE} ."),
        {},
    ),
    "a predicate": ("<urn:at>", element(1, 99, f"<urn:m> <urn:at> {THREE} ."), {}),
    "a path": (
        "<urn:seen>/<urn:at>",
        element(1, 99, f"<urn:m> <urn:seen> _:x .\n_:x <urn:at> {THREE} <urn:g> ."),
        {},
    ),
    "in two zones": (
        "<urn:at>",
        element(
            1,
            99,
            f"<urn:m> <urn:at> {THREE} .\n<urn:n> <urn:at> {THREE.replace('00:00:03Z', '14:00:03+14:00')} .",
        ),
        {},
    ),
    "in two zones, of the publisher": (
        "generated",
        element(
            1,
            99,
            f"<urn:g> <{PROV}generatedAtTime> {THREE} .\n"
            f"<urn:h> <{PROV}generatedAtTime> {THREE.replace('00:00:03Z', '03:30:03+03:30')} .",
        ),
        {},
    ),
    "with a zone for certain": (
        "<urn:at>",
        element(1, 99, f"<urn:m> <urn:at> {THREE.replace('Time>', 'TimeStamp>')} ."),
        {},
    ),
    "at 24 o'clock": (
        "<urn:at>",
        element(
            1,
            99,
            f"<urn:m> <urn:at> {THREE.replace('1970-01-01T00:00:03Z', '1969-12-31T24:00:00-00:00')} .",
        ),
        {},
    ),
    "a string": (
        "<urn:at>",
        element(1, 99, '<urn:m> <urn:at> "1970-01-01T00:00:03Z" .'),
        {"untimed": 1},
    ),
    "of ISO 8601 only": (
        "<urn:at>",
        element(1, 99, f"<urn:m> <urn:at> {THREE.replace(':', '', 2)} ."),
        {"untimed": 1},
    ),
    "a date": (
        "generated",
        element(1, 99, f"<urn:g> <{PROV}generatedAtTime> {THREE.replace('Time>', '>')} ."),
        {"untimed": 1},
    ),
    "a time and a name": (
        "generated",
        element(
            1,
            99,
            f"<urn:g> <{PROV}generatedAtTime> {THREE} .\n<urn:g> <{PROV}generatedAtTime> <urn:now> .",
        ),
        {"untimed": 1},
    ),
    "none": ("<urn:at>", element(1, 99), {"untimed": 1}),
    "two": (
        "<urn:at>",
        element(1, 99, f"<urn:m> <urn:at> {THREE} .\n<urn:m> <urn:at> {FOUR} ."),
        {"untimed": 1},
    ),
    "without a zone": (
        "<urn:at>",
        element(1, 99, f"<urn:m> <urn:at> {THREE.replace('Z', '')} ."),
        {"untimed": 1},
    ),
    "an IRI": ("<urn:at>", element(1, 99, "<urn:m> <urn:at> <urn:now> ."), {"untimed": 1}),
}


@pytest.mark.parametrize(("time", "taken", "dropped"), TIMES.values(), ids=TIMES.keys())
def test_event_time(time: str, taken: Element, dropped: dict[str, int]) -> None:
    told = []
    engine = engine_of(
        "[RANGE PT5S STEP PT5S]",
        "WINDOW <urn:w> { ?m <https://w3id.org/construct-messages#sequence> ?n ;"
        " <http://www.w3.org/ns/prov#generatedAtTime> ?o }",
        options=WindowOptions(time=time),
        on_drop=lambda stream, element, reason: told.append((stream, element.sequence, reason)),
    )
    engine.take("urn:in", taken)
    firings = engine.end("urn:in")
    assert engine.dropped["urn:in"] == dropped
    assert told == [("urn:in", 1, reason) for reason in dropped]
    if not dropped:
        ((said,),) = [firing.solutions for firing in firings]
        assert said[0] == "<urn:in/1>"
        assert said[1] in (THREE, THREE.replace("03", "00"))


ODD = [
    f'<urn:m> <urn:at> {THREE} .\n<urn:m> <urn:says> "a <urn:at> b" .',
    f"<urn:m> <urn:says> <<( <urn:m> <urn:at> {FOUR} )>> .\n<urn:m> <urn:at> {THREE} <urn:g> .\r",
    f"_:m <urn:at> {THREE} .\n<urn:at> <urn:at> {THREE} _:g .",
    f"<urn:m> <urn:at> {THREE} .\n<urn:m> <urn:at> <urn:now> .",
    f"<urn:m>  <urn:at>\t{THREE} .",
    f"<urn:m> <urn:at> {THREE.replace('T', chr(92) + 'u0054', 1)} .",
    f"<urn:m> <urn:at> {THREE.replace('03Z', '03.0000019999999999999Z')} .",
    f"<urn:m> <urn:at> {THREE.replace('1970-01-01', '2026-02-30')} .",
    f"<urn:m> <urn:at> {THREE.replace('Z', '+14:01')} .",
    f"<urn:m> <urn:at> {THREE.replace('1970', '-0001')} .",
    '<urn:m> <urn:at> "1970-01-01T00:00:03Z"^^<urn:type> .',
]


@pytest.mark.parametrize("text", [*ODD, *(taken.nquads.decode() for _, taken, _ in TIMES.values())])
def test_times_are_found_without_a_store(text: str) -> None:
    path, taken = "<urn:at>", element(1, 99, text)
    assert time_of(path, "")(taken) == time_of(f"({path})", "")(taken)


FAR = {
    "a window that closes beyond the year 9999": ("9999-12-31T23:59:58Z", "10000-01-01T00:00:00Z"),
    "a message beyond it": ("12026-01-01T00:00:02Z", "12026-01-01T00:00:05Z"),
    "a message before the year 1": ("-0044-03-15T12:00:02Z", "-0044-03-15T12:00:05Z"),
}


@pytest.mark.parametrize(("said", "closes"), FAR.values(), ids=FAR.keys())
def test_years_that_datetime_has_not(said: str, closes: str) -> None:
    engine = engine_of(
        "[RANGE PT5S STEP PT5S]",
        f"WINDOW <urn:w> {{ ?m <{PROV}generatedAtTime> ?o }}",
        options=WindowOptions(time="<urn:at>"),
    )
    engine.take("urn:in", element(1, 1, f'<urn:m> <urn:at> "{said}"{DATE_TIME} .'))
    (firing,) = engine.end("urn:in")
    assert (date_time_of(firing.time), firing.solutions) == (
        closes,
        [("<urn:in/1>", f'"{said}"{DATE_TIME}')],
    )


def test_what_is_dated_too_far_ahead_is_dropped() -> None:
    """One clock that is wrong does not make all others late."""
    told = []
    engine = engine_of(
        "[RANGE PT5S STEP PT5S]",
        options=WindowOptions(time="<urn:at>", max_ahead=60 * SECOND),
        on_drop=lambda stream, element, reason: told.append((stream, element.sequence, reason)),
    )
    for sequence, (arrived, said) in enumerate(
        ((3, THREE), (3, THREE.replace("1970", "2970")), (4, FOUR)), 1
    ):
        node = f"<urn:m{sequence}>"
        engine.take(
            "urn:in",
            element(sequence, arrived, f"{node} <urn:at> {said} .\n{node} <urn:p> <urn:o> ."),
        )
    assert (told, engine.dropped["urn:in"]) == ([("urn:in", 2, "ahead")], {"ahead": 1})
    assert seen(engine.end("urn:in")) == [(5, ["m1", "m3"])]


def test_evaluations_are_made_a_few_at_a_time() -> None:
    where = "{ SELECT (<urn:all> AS ?m) (COUNT(*) AS ?o) { WINDOW <urn:w> { ?x <urn:p> ?y } } }"
    engine = engine_of("[RANGE PT10S STEP PT1S]", where)
    engine.take("urn:in", element(1, 0.5))
    month = 30 * 86_400
    firings = engine.take("urn:in", element(2, month), most=3)
    assert ([firing.time // SECOND for firing in firings], engine.due) == ([1, 2, 3], True)
    firings = engine.proceed(20)
    assert [firing.solutions[0][1][1] for firing in firings] == ["1"] * 7 + ["0"] * 13
    assert all(firing.messages == firings[-1].messages for firing in firings[7:])
    assert engine.evaluations == 23
    # those of a month are not made, and the state is that of a few messages
    assert len(engine.save()) < 600
    again = WindowedQuery.restore(
        engine.save(),
        lambda _, first, last: [element(1, 0.5), element(2, month)][first - 1 : last],
        engine.query,
    )
    assert again.due
    assert [firing.time // SECOND for firing in again.proceed(2)] == [24, 25]


def test_late_elements_are_told() -> None:
    told = []
    options = WindowOptions(lateness=2 * SECOND)
    engine = engine_of(
        "[RANGE PT5S STEP PT5S]", options=options, on_drop=lambda *what: told.append(what)
    )
    late = element(3, 7.9)
    for each in (element(1, 1), element(2, 10), late, element(4, 8)):
        engine.take("urn:in", each)
    assert told == [("urn:in", late, "late")]
    assert seen(engine.end("urn:in")) == [(10, ["m2", "m4"])]


# --- solutions ---


def test_blank_nodes_of_a_stream_are_themselves() -> None:
    """A label is one node in its stream: it is not new in the next window, nor is it the node of another label."""
    engine = engine_of("[RANGE PT2S STEP PT1S]", operator="ISTREAM")
    taken = [
        *engine.take("urn:in", element(1, 0.5, "_:a <urn:p> <urn:o> .")),
        *engine.take("urn:in", element(2, 1.5, "_:a <urn:p> <urn:o> .\n_:b <urn:p> <urn:o> .")),
        *engine.end("urn:in"),
    ]
    assert [(firing.time // SECOND, len(firing.messages)) for firing in taken] == [(1, 1), (2, 1)]
    assert taken[0].solutions != taken[1].solutions


def test_blank_nodes_that_a_query_makes_are_compared_by_place() -> None:
    where = "WINDOW <urn:w> { ?s <urn:p> ?o } BIND(BNODE() AS ?m)"
    engine = engine_of("[RANGE PT3S STEP PT1S]", where, operator="ISTREAM")
    engine.take("urn:in", element(1, 0.5))
    firings = engine.end("urn:in")
    assert [(firing.time // SECOND, len(firing.messages)) for firing in firings] == [(1, 1)]
    engine = engine_of("[RANGE PT3S STEP PT1S]", where, operator="RSTREAM")
    engine.take("urn:in", element(1, 0.5))
    assert (
        len({message for firing in engine.end("urn:in") for message in firing.messages}) == 1
    )  # nothing changed


def test_equal_solutions_are_counted() -> None:
    where = "WINDOW <urn:w> { ?m <urn:p> ?x } BIND(1 AS ?o)"
    engine = engine_of("[RANGE PT2S STEP PT1S]", where, operator="ISTREAM")
    engine.take("urn:in", element(1, 0.5, '<urn:m> <urn:p> "1" .'))
    engine.take("urn:in", element(2, 1.5, '<urn:m> <urn:p> "2" .\n<urn:m> <urn:p> "3" .'))
    assert [len(firing.messages) for firing in engine.advance(2 * SECOND + 1)] == [2]


@pytest.mark.parametrize(("compare", "times"), [("solutions", [1, 2]), ("template", [1])])
def test_other_variables_than_those_of_the_template(compare: str, times: list[int]) -> None:
    """RSP-QL compares whole solutions: the same sensor with another value is a new one."""
    query = parse_continuous("""REGISTER ISTREAM <urn:out> AS CONSTRUCT { ?m <urn:is> "there" }
        FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT1S STEP PT1S]
        WHERE { WINDOW <urn:w> { ?m <urn:p> ?x } }""")
    engine = WindowedQuery(query, WindowOptions(compare=Compared(compare)))
    firings = [
        *engine.take("urn:in", element(1, 0.5, '<urn:m> <urn:p> "1" .')),
        *engine.take("urn:in", element(2, 1.5, '<urn:m> <urn:p> "2" .')),
        *engine.end("urn:in"),
    ]
    assert [firing.time // SECOND for firing in firings] == times
    quads = {quad for firing in firings for message in firing.messages for quad in message}
    assert quads == {Quad(iri("urn:m"), iri("urn:is"), literal("there"))}


def test_nodes_of_templates_are_new_in_each_message() -> None:
    query = parse_continuous("""CONSTRUCT { [] <urn:is> ?m }
        FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT2S STEP PT1S]
        WHERE { WINDOW <urn:w> { ?m <urn:p> ?o } }""")
    engine = WindowedQuery(query)
    engine.take("urn:in", element(1, 0.5))
    messages = [message for firing in engine.end("urn:in") for message in firing.messages]
    assert len({quad.subject for message in messages for quad in message}) == len(messages) == 2


def test_select_gives_rows() -> None:
    query = parse_continuous("""SELECT ?m FROM NAMED WINDOW <urn:w> ON <urn:in> [NOW]
        WHERE { WINDOW <urn:w> { ?m <urn:p> ?o } }""")
    (firing,) = WindowedQuery(query).take("urn:in", element(1, 1))
    assert firing.variables == ("m",)
    assert literal("m") in {quad.object for quad in firing.messages[0]}


# --- contents ---


def test_static_data_stays_where_a_window_says_the_same() -> None:
    """What a message says of a static graph is taken back with the message, and what is static stays."""
    engine = engine_of(
        "[RANGE PT1S STEP PT1S]",
        "GRAPH <urn:g> { ?m <urn:p> ?o }",
        static=[Quad(iri("urn:m1"), iri("urn:p"), iri("urn:o"), iri("urn:g"))],
        options=CHANGE,
    )
    said = "<urn:m1> <urn:p> <urn:o> <urn:g> .\n<urn:m2> <urn:p> <urn:o> <urn:g> ."
    assert seen(engine.take("urn:in", element(1, 0.5, said))) == [(0.5, ["m1", "m2"])]
    assert seen(engine.advance(9 * SECOND)) == [(1.000001, ["m1"])]


HOSTILE = [
    f"<urn:x> <urn:p> <urn:forged> <{graph}> ."
    for graph in (
        *("urn:w", "urn:v", "urn:g", "urn:in/1", "urn:in/2", "urn:in/3", "urn:other/2"),
        *(WINDOWS_GRAPH, STATIC),
    )
] + [
    f"<{group}> <{MEMBER}> <{graph}> <{WINDOWS_GRAPH}> ."
    for group in ("urn:w", "urn:v", STATIC)
    for graph in ("urn:g", "urn:in/1", "urn:w")
]


@pytest.mark.parametrize("maintain", [True, False], ids=["maintained", "whole"])
@pytest.mark.parametrize(
    "where",
    [
        "WINDOW <urn:w> { ?s <urn:p> ?o }",
        "WINDOW <urn:w> { GRAPH ?m { ?s <urn:p> ?o } }",
        "WINDOW <urn:w> { GRAPH ?m { ?s ?any ?o } }",
        "WINDOW <urn:w> { GRAPH ?m { ?s <urn:p> ?o } ?m cm:sequence ?n }",
    ],
)
def test_a_stream_cannot_write_into_the_window_of_another(where: str, maintain: bool) -> None:
    """Nor forge its messages, although the query reads the named graphs of messages, too."""
    query = parse_continuous(
        "PREFIX cm: <https://w3id.org/construct-messages#> SELECT DISTINCT ?s ?o ?m "
        "FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT9S STEP PT9S] "
        "FROM NAMED WINDOW <urn:v> ON <urn:other> [RANGE PT9S STEP PT9S] "
        f"WHERE {{ {where} OPTIONAL {{ GRAPH ?g {{ ?a <urn:p> ?b }} }} WINDOW <urn:v> {{ ?x ?y ?z }} }}"
    )
    found = []
    for lines in (["<urn:x> <urn:p> <urn:y> ."], HOSTILE):
        engine = WindowedQuery(query, maintain=maintain)
        for sequence in (1, 2):
            engine.take("urn:in", element(sequence, 1))
        engine.take("urn:other", Element("other", 1, SECOND, "\n".join(lines).encode()))
        (firing,) = engine.advance(20 * SECOND)
        found.append(sorted(firing.solutions))
    assert found[0] == found[1]
    assert found[0]


@pytest.mark.parametrize("maintain", [True, False], ids=["maintained", "whole"])
@pytest.mark.parametrize(
    "select",
    [
        "?s { ?s <urn:p> ?o }",
        "DISTINCT ?s { ?s <urn:p>|<urn:q> ?o }",
        "* { ?s <urn:q> ?o }",
        "?s (COUNT(*) AS ?o) { ?s <urn:p>|<urn:q> ?x } GROUP BY ?s",
        "?s (COUNT(*) AS ?o) { ?s <urn:p>|<urn:q> ?x } GROUP BY ?s HAVING (COUNT(*) > 1)",
    ],
)
def test_sub_selects_are_evaluated_in_each_message(select: str, maintain: bool) -> None:
    """SPARQL 1.1 Query, section 13.3: the solutions are those of the sub-select over each message by itself."""
    messages = [
        '<urn:a> <urn:p> "1" .\n<urn:b> <urn:q> "1" .',
        '<urn:a> <urn:p> "2" .\n<urn:b> <urn:p> "2" .\n<urn:b> <urn:q> "3" .',
        '<urn:b> <urn:q> "2" .',
    ]
    query = parse_continuous(
        "SELECT ?s ?o ?m FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT9S STEP PT9S] "
        f"WHERE {{ WINDOW <urn:w> {{ GRAPH ?m {{ {{ SELECT {select} }} }} }} }}"
    )
    engine = WindowedQuery(query, maintain=maintain)
    expected = []
    for number, lines in enumerate(messages, 1):
        engine.take("urn:in", element(number, 1, lines))
        store = ox.Store()
        store.load(lines, format=ox.RdfFormat.N_QUADS)
        expected += [
            (*(str(row[name]) if row[name] else "" for name in ("s", "o")), f"<urn:in/{number}>")
            for row in store.query(f"SELECT ?s ?o {{ {{ SELECT {select} }} }}")
        ]
    (firing,) = engine.advance(20 * SECOND)
    assert sorted(firing.solutions) == sorted(expected)
    assert expected


@pytest.mark.parametrize("maintain", [True, False], ids=["maintained", "whole"])
def test_graphs_of_messages_have_no_reserved_names(maintain: bool) -> None:
    query = parse_continuous(
        "SELECT DISTINCT ?g FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT9S STEP PT9S] "
        "WHERE { WINDOW <urn:w> { ?s ?p ?o } GRAPH ?g { ?x <urn:p> <urn:forged> } }"
    )
    engine = WindowedQuery(query, maintain=maintain)
    engine.take("urn:in", element(1, 1, "\n".join(HOSTILE)))
    (firing,) = engine.advance(20 * SECOND)
    # no windows of this query: urn:v, and messages of urn:other
    graphs = {"<urn:g>", "<urn:v>", "<urn:other/2>", f"<{STATIC}>"}
    assert {graph for (graph,) in firing.solutions} == graphs


# --- errors ---


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }", "has no windows"),
        (
            "SELECT * FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE 1 REPORT PERIODIC] { ?s ?p ?o }",
            "no period",
        ),
    ],
    ids=["windows", "period"],
)
def test_queries_that_make_no_sense(text: str, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        WindowedQuery(parse_continuous(text))


def test_what_the_engine_refuses() -> None:
    with pytest.raises(QueryError, match="refuses"):
        engine_of("[NOW]", "WINDOW <urn:w> { ?m ?p }")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"lateness": -1}, "lateness=-1 is negative"),
        ({"max_ahead": -1}, "ahead=-1"),
        ({"every": 0}, "not a period"),
    ],
    ids=["lateness", "max_ahead", "every"],
)
def test_options_that_make_no_sense(options: dict[str, int], error: str) -> None:
    with pytest.raises(UsageError, match=error):
        WindowOptions(**options)  # type: ignore[arg-type] # as given


def test_a_path_that_is_none() -> None:
    with pytest.raises(UsageError, match="not a property path"):
        engine_of("[NOW]", options=WindowOptions(time="at noon"))


def test_elements_come_once_and_of_known_streams() -> None:
    engine = engine_of("[NOW]")
    engine.take("urn:in", element(2, 1))
    with pytest.raises(UsageError, match="came after element 2"):
        engine.take("urn:in", element(2, 2))
    with pytest.raises(UsageError, match="no window on the stream urn:other"):
        engine.take("urn:other", element(3, 2))
