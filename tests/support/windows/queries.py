"""Random continuous queries, most of them of the kinds whose solutions are maintained, and streams for them.

Values are few, so that joins find something, and of many types, as comparisons and aggregates depend on these.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from construct_messages.continuous import Bounds, Compared
from construct_messages.errors import ConstructMessagesError
from construct_messages.message import Message, Quad
from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.query.continuous.values import Operator, Report
from construct_messages.streams.element import Element
from construct_messages.terms import XSD, Term, iri, literal
from tests.support.windows.histories import PREFIX, TIMES, windows
from tests.support.windows.oracle import Case, Event

NODES = ["urn:a", "urn:b", "urn:c", "urn:g"]
PREDICATES = ["urn:p", "urn:q", "urn:r"]
INTEGERS = [literal(text, datatype=f"{XSD}integer") for text in ("1", "01", "2", "3", "-4", "20")]
VALUES = [
    *INTEGERS,
    *(literal(text, datatype=f"{XSD}decimal") for text in ("1.0", "2.5", "-0.25")),
    literal("1.5e0", datatype=f"{XSD}double"),
    literal("NaN", datatype=f"{XSD}double"),
    literal("true", datatype=f"{XSD}boolean"),
    literal("x", datatype=f"{XSD}integer"),
    literal("99999999999999999999", datatype=f"{XSD}integer"),
    literal("2026-01-01T00:00:00Z", datatype=f"{XSD}dateTime"),
    literal("b"),
    literal('a\n"<urn:p> '),
    literal("a <urn:p> b"),
    literal("a", language="en"),
    literal("a", datatype="urn:type"),
]


def terms(values: list[Term]) -> st.SearchStrategy[Term]:
    return st.sampled_from([*map(iri, NODES), Term("_:x"), Term("_:y"), *values])


@st.composite
def quad_lists(draw: st.DrawFn, values: list[Term], size: int) -> list[Quad]:
    return [
        Quad(
            draw(st.sampled_from([*map(iri, NODES[:2]), Term("_:x")])),
            iri(draw(st.sampled_from(PREDICATES))),
            draw(terms(values)),
            draw(st.sampled_from([None, None, None, iri("urn:g"), iri("urn:a")])),
        )
        for _ in range(draw(st.integers(0, size)))
    ]


VARIABLES = ["?s", "?o", "?x", "?y"]


@st.composite
def triples(draw: st.DrawFn, most: int = 3) -> str:
    found = []
    for _ in range(draw(st.integers(1, most))):
        subject = draw(st.sampled_from(["?s", "?s", "?s", "?x", "?o", ":a", "[]", "?m"]))
        predicate = draw(st.sampled_from([":p", ":p", ":q", ":r", "?p", ":p/:q", "^:p", "cm:sequence"]))
        object = draw(st.sampled_from(["?o", "?o", "?x", "?y", "?s", ":a", "1", "01", '"b"']))
        found.append(f"{subject} {predicate} {object} .")
    return " ".join(found)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2) -> str:
    variable = st.sampled_from(VARIABLES)
    value = st.sampled_from(["1", "2.5", "1.0", '"b"', "true", ":a", "1e0", "3"])
    kind = draw(st.integers(0, 12 if depth else 7))
    if kind <= 3:
        operator = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
        return f"({draw(variable)} {operator} {draw(st.one_of(variable, value))})"
    if kind == 4:
        return f"BOUND({draw(variable)})"
    if kind == 5:
        return f"({draw(variable)} IN ({draw(value)}, {draw(value)}))"
    if kind == 6:
        operator = draw(st.sampled_from(["+", "-", "*", "/"]))
        return f"(({draw(variable)} {operator} {draw(st.one_of(variable, value))}) > 1)"
    if kind == 7:
        return draw(st.sampled_from(["ISIRI({})", "(STR({}) = \"b\")", "{}", "(COALESCE({}, 1) = 1)"])).format(draw(variable))
    if kind <= 9:
        return f"(!{draw(expressions(depth - 1))})"
    operator = draw(st.sampled_from(["&&", "||"]))
    return f"({draw(expressions(depth - 1))} {operator} {draw(expressions(depth - 1))})"


@st.composite
def groups(draw: st.DrawFn, depth: int = 2) -> str:
    """What a window matches."""
    parts = [draw(triples())]
    if draw(st.integers(0, 2)) == 0:
        graph = draw(st.sampled_from(["?m", "?m", "?n", "?s"]))
        inner = draw(groups(depth - 1)) if depth and draw(st.integers(0, 3)) == 0 else draw(triples())
        parts = [f"GRAPH {graph} {{ {inner} }}", *(parts if draw(st.booleans()) else [])]
        if draw(st.integers(0, 2)) == 0:
            predicate = draw(st.sampled_from(["cm:sequence", "prov:generatedAtTime", "cm:graph", "cm:stream"]))
            parts.append(f"{graph} {predicate} ?t .")
    for _ in range(draw(st.integers(0, 2))):
        match draw(st.integers(0, 9)):
            case 0 | 1:
                parts.append(f"FILTER({draw(expressions())})")
            case 2:
                condition = f"FILTER({draw(expressions(1))})" if draw(st.booleans()) else ""
                parts.append(f"OPTIONAL {{ {draw(triples(2))} {condition} }}")
            case 3:
                parts.append(f"MINUS {{ {draw(triples(2))} }}")
            case 4:
                no = draw(st.sampled_from(["", "NOT "]))
                condition = f"FILTER({draw(expressions(1))})" if draw(st.booleans()) else ""
                parts.append(f"FILTER {no}EXISTS {{ {draw(triples(2))} {condition} }}")
            case 5:
                name = draw(st.sampled_from(["?z", "?y"]))
                parts.append(f"BIND({draw(expressions(1))} AS {name})")
            case 6:
                parts.append(f"BIND(({draw(st.sampled_from(VARIABLES))} + 1) AS ?z)")
            case 7 if depth:
                parts.append(f"{{ {draw(groups(depth - 1))} }} UNION {{ {draw(groups(depth - 1))} }}")
            case 8 if depth:
                parts.append(f"{{ SELECT {draw(st.sampled_from(['?s', '?s ?o', '?o ?x']))} {{ {draw(groups(depth - 1))} }} }}")
            case _:
                parts.append(f"VALUES ?o {{ {draw(st.sampled_from([':a 1', '1 01', '1 2 3']))} }}")
    return " ".join(parts)


AGGREGATES = ["COUNT(*)", "COUNT(?o)", "COUNT(DISTINCT ?o)", "SUM(?o)", "AVG(?o)", "MIN(?o)", "MAX(?o)", "SUM(?o * 2)", "SUM(DISTINCT ?o)"]  # fmt: skip
WINDOW = "FROM NAMED WINDOW :w ON :in [RANGE 1 STEP 1] "
OTHER = "FROM NAMED WINDOW :v ON :other [RANGE 1 STEP 1] "


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A continuous query."""
    clauses = WINDOW
    pattern = f"WINDOW :w {{ {draw(groups())} }}"
    match draw(st.integers(0, 7)):
        case 0:
            pattern += f" WINDOW :v {{ {draw(triples())} }}"
            clauses += draw(st.sampled_from([OTHER, OTHER.replace(":other", ":in")]))
        case 1:
            pattern += f" {draw(triples(1))}"
        case 2:
            pattern += f" GRAPH ?g {{ {draw(triples(1))} }}"
        case 3:
            clauses, pattern = clauses.replace("NAMED ", ""), draw(groups())
    if draw(st.integers(0, 2)) == 0:
        keys = draw(st.sampled_from(["?s", "?s ?o", "", "", "(STR(?s) AS ?k)"]))
        names = keys if keys in ("?s", "?s ?o") else "?k" if keys else ""
        aggregates = " ".join(
            f"({draw(st.sampled_from(AGGREGATES))} AS ?a{number})"
            for number in range(draw(st.integers(1, 2)))
        )
        grouped = f"GROUP BY {keys}" if keys else ""
        having = draw(st.sampled_from(["", "", "HAVING(COUNT(*) > 1)"]))
        pattern = f"{{ SELECT {names} {aggregates} {{ {pattern} }} {grouped} {having} }}"
        head = "?s :is ?o . ?k :has ?a0 . :all :has ?a0 , ?a1"
    else:
        head = "?s :is ?o , ?z , ?x , ?t . ?m :of ?y"
    if draw(st.integers(0, 9)) == 0:
        distinct = draw(st.sampled_from(["DISTINCT ", "DISTINCT ", "REDUCED ", ""]))
        return f"SELECT {distinct}{draw(st.sampled_from(['?s', '?s ?o', '*']))} {clauses} WHERE {{ {pattern} }}"
    tail = draw(st.sampled_from(["", "", "", "", "", "", "", "ORDER BY ?s", "GROUP BY ?s"]))
    return f"CONSTRUCT {{ {head} }} {clauses} WHERE {{ {pattern} }} {tail}"


@st.composite
def differential_cases(draw: st.DrawFn) -> tuple[Case, list[Event]]:
    """A query that the engine takes, how its windows are read, and what happens to it."""
    try:
        text = f"PREFIX prov: <http://www.w3.org/ns/prov#> {PREFIX}{draw(texts())}"
        parsed = parse_continuous(text)
    except ConstructMessagesError:
        parsed = parse_continuous(f"{PREFIX}CONSTRUCT {{ ?s :is ?o }} {WINDOW} {{ WINDOW :w {{ ?s :p ?o }} }}")
    values = draw(st.sampled_from([VALUES, INTEGERS, INTEGERS]))
    query = replace(
        parsed,
        operator=draw(st.sampled_from(list(Operator))),
        windows=tuple(draw(windows(window)) for window in parsed.windows),
    )
    case = Case(
        query,
        report=draw(st.sampled_from(list(Report))),
        every=draw(st.integers(1, 4)),
        bounds=draw(st.sampled_from(list(Bounds))),
        origin=draw(st.integers(-2, 2)),
        lateness=draw(st.sampled_from([0, 0, 2, 5])),
        compare=draw(st.sampled_from(list(Compared))),
        static=tuple(draw(quad_lists(values, 4))) if draw(st.booleans()) else (),
    )
    return case, draw(streams(len(case.streams), values))


@st.composite
def streams(draw: st.DrawFn, count: int, values: list[Term]) -> list[Event]:
    """Elements in and out of order, late, equal and empty ones; times that pass; at the end maybe the end."""
    sequences, time, events = [0] * count, 0, list[Event]()
    known = [draw(quad_lists(values, 4)) for _ in range(draw(st.integers(1, 4)))]
    for _ in range(draw(st.integers(1, 12))):
        if draw(st.integers(0, 8)) == 0:
            events.append(Event(None, time=draw(TIMES)))
            continue
        stream = draw(st.integers(0, count - 1))
        sequences[stream] += 1
        time = max(0, time + draw(st.sampled_from([0, 0, 1, 1, 2, 3, 7, -1, -4])))
        quads = draw(st.one_of(st.sampled_from(known), quad_lists(values, 4)))
        nquads = Message(quads).lines[:-1]
        events.append(Event(stream, Element(str(stream), sequences[stream], time, nquads)))
    if draw(st.booleans()):
        events += [Event(stream) for stream in range(count)]
    return events
