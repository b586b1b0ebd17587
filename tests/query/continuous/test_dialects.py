"""`parse_continuous` over the shapes that RSP-QL, C-SPARQL, CQELS and SPARQLStream are written in."""

from dataclasses import dataclass, field

import pyoxigraph as ox
import pytest

from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.query.continuous.values import (
    CountWindow,
    Needs,
    Operator,
    Report,
    TimeWindow,
    Window,
)
from construct_messages.query.rewrite import ConstructQuery, query_form

SECOND = 1_000_000
PREFIX = "PREFIX : <http://example.org/> "
NUMBERED = "urn:construct-messages:window:"


@dataclass(frozen=True)
class Case:
    """A query, and what it says; what is not told is not looked at, but for the windows."""

    text: str
    windows: tuple[Window, ...]
    operator: Operator = Operator.RSTREAM
    output: str | None = None
    default: tuple[str, ...] = ()
    static: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    every: int | None = None
    report: Report | None = None
    needs: dict[str, Needs] = field(default_factory=dict)


def rsp_ql(bracket: str) -> str:
    return f"SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> {bracket} WHERE {{ WINDOW <urn:w> {{ ?s <urn:p> ?o }} }}"


CASES = {
    # --- RSP-QL ---
    "rsp-ql": Case(
        """BASE <http://example.org/>
        REGISTER ISTREAM <out> AS CONSTRUCT { ?s <p> ?o }
        FROM NAMED WINDOW <w> ON <s> [RANGE PT15S STEP PT5S]
        WHERE { WINDOW <w> { ?s <p> ?o } }""",
        (TimeWindow("http://example.org/w", "http://example.org/s", 15 * SECOND, 5 * SECOND),),
        operator=Operator.ISTREAM,
        output="http://example.org/out",
        needs={"http://example.org/w": Needs.UNION},
    ),
    "rsp-ql with an operator behind the form": Case(
        f"""{PREFIX} REGISTER STREAM :out AS CONSTRUCT ISTREAM {{ ?s :p ?o }}
        FROM NAMED WINDOW :w ON :s [RANGE PT30M step PT15M] WHERE {{ WINDOW :w {{ ?s :p ?o }} }}""",
        (TimeWindow("http://example.org/w", "http://example.org/s", 1800 * SECOND, 900 * SECOND),),
        operator=Operator.ISTREAM,
        output="http://example.org/out",
    ),
    "rsp-ql of rsp-js": Case(
        f"""{PREFIX} REGISTER RStream <output> AS SELECT *
        FROM NAMED WINDOW :w1 ON STREAM :s1 [RANGE 10 STEP 2]
        FROM NAMED WINDOW :w2 ON STREAM :s2 [RANGE 20 STEP 10]
        WHERE{{ ?o :hasInfo :someInfo . WINDOW :w1 {{ ?s ?p ?o}} WINDOW :w2 {{ ?s :p ?o2}} }}""",
        (
            TimeWindow("http://example.org/w1", "http://example.org/s1", 10_000, 2_000),
            TimeWindow("http://example.org/w2", "http://example.org/s2", 20_000, 10_000),
        ),
        output="output",
        needs={
            "http://example.org/w1": Needs.UNION | Needs.CONTEXT,
            "http://example.org/w2": Needs.UNION,
        },
    ),
    "rsp-ql star": Case(
        """BASE <http://base/> PREFIX ex: <http://example.org/>
        REGISTER STREAM <alert/low> COMPUTED EVERY PT10S AS
        SELECT ?activity (AVG(?hr) AS ?avgHr)
        FROM NAMED WINDOW <w/1> ON <s/activity> [RANGE PT10M STEP PT10S]
        FROM NAMED WINDOW <w/2> ON <s/heart> [RANGE PT1M STEP PT10S]
        WHERE {
          ?person ex:name "Rut" .
          WINDOW <w/1> { # reported by the system
            GRAPH ?g1 { [ ex:of ?person ; ex:result ?activity ] } }
          WINDOW <w/2> { GRAPH ?g2 { ?o ex:of ?person . <<?o ex:result ?hr>> ex:confidence ?c FILTER(?c > 0.95) } }
        } GROUP BY ?activity HAVING(?avgHr > 100)""",
        (
            TimeWindow("http://base/w/1", "http://base/s/activity", 600 * SECOND, 10 * SECOND),
            TimeWindow("http://base/w/2", "http://base/s/heart", 60 * SECOND, 10 * SECOND),
        ),
        output="http://base/alert/low",
        every=10 * SECOND,
        needs={"http://base/w/1": Needs.MEMBERS, "http://base/w/2": Needs.MEMBERS},
    ),
    "rsp-ql over all windows, with static data": Case(
        f"""{PREFIX} REGISTER RSTREAM <out> AS SELECT *
        FROM NAMED WINDOW <win2> ON :s [RANGE PT5S STEP PT0.5S] FROM <file:///static.ttl> FROM NAMED :g
        WHERE {{ ?a :name ?name . WINDOW ?w {{ ?a a :Artist ; :age ?age }} BIND(UUID() AS ?uuid) }}""",
        (TimeWindow(f"{NUMBERED}win2", "http://example.org/s", 5 * SECOND, SECOND // 2),),
        output="out",
        static=(("file:///static.ttl",), ("http://example.org/g",)),
        needs={f"{NUMBERED}win2": Needs.UNION},
    ),
    "rsp-ql without NAMED": Case(
        "SELECT * FROM WINDOW <urn:w> ON <urn:s> [RANGE PT5S STEP PT5S] WHERE { ?s <urn:p> ?o }",
        (TimeWindow("urn:w", "urn:s", 5 * SECOND, 5 * SECOND),),
        default=("urn:w",),
        needs={"urn:w": Needs.UNION},
    ),
    "rsp-ql with elements": Case(
        rsp_ql("[ELEMENTS 10 STEP 4]"), (CountWindow("urn:w", "urn:s", 10, 4),)
    ),
    "rsp-ql without step": Case(
        rsp_ql("[RANGE PT10S]"), (TimeWindow("urn:w", "urn:s", 10 * SECOND, 0),)
    ),
    "rsp-ql with a typed literal": Case(
        rsp_ql('[RANGE "PT10S"^^<http://www.w3.org/2001/XMLSchema#duration> STEP "PT1S"]'),
        (TimeWindow("urn:w", "urn:s", 10 * SECOND, SECOND),),
    ),
    "rsp-ql from now": Case(
        rsp_ql("[FROM NOW-PT2H TO NOW STEP PT1H]"),
        (TimeWindow("urn:w", "urn:s", 7200 * SECOND, 3600 * SECOND),),
    ),
    "rsp-ql of rsp4j, the bracket before ON": Case(
        """CONSTRUCT {?s ?p ?o} FROM NAMED WINDOW <urn:w> [RANGE 2s, SLIDE 2s] ON STREAM <urn:s>
        WHERE {WINDOW ?w {?s ?p ?o}}""",
        (TimeWindow("urn:w", "urn:s", 2 * SECOND, 2 * SECOND),),
        needs={"urn:w": Needs.UNION | Needs.CONTEXT},
    ),
    "rsp-ql of drafts, the name last": Case(
        """SELECT ISTREAM ?s FROM NAMED WINDOW ON STREAM <urn:s> [RANGE PT3H SLIDE PT10M] AS <urn:w>
        FROM NAMED GRAPH <urn:g> FROM GRAPH <urn:h> WHERE { WINDOW <urn:w> { ?s <urn:p> ?o } }""",
        (TimeWindow("urn:w", "urn:s", 10800 * SECOND, 600 * SECOND),),
        operator=Operator.ISTREAM,
        static=(("urn:h",), ("urn:g",)),
    ),
    "rsp-ql of drafts, without name": Case(
        """REGISTER QUERY q COMPUTED EVERY  1m AS SELECT * FROM  WINDOW  [RANGE 1h, SLIDE 15m] ON STREAM <urn:s>
        FROM WINDOW [RANGE 1h] ON STREAM <urn:t> WHERE { ?s <urn:p> ?o }""",
        (
            TimeWindow(f"{NUMBERED}1", "urn:s", 3600 * SECOND, 900 * SECOND),
            TimeWindow(f"{NUMBERED}2", "urn:t", 3600 * SECOND, 0),
        ),
        output="q",
        default=(f"{NUMBERED}1", f"{NUMBERED}2"),
        every=60 * SECOND,
    ),
    "rsp-ql of rsp4j, without ON": Case(
        "SELECT * FROM NAMED WINDOW <w1> <s1> [RANGE 3s STEP 1s] WHERE { WINDOW <w1> { ?s <urn:p> ?o } }",
        (TimeWindow(f"{NUMBERED}w1", "s1", 3 * SECOND, SECOND),),
    ),
    "rsp-ql of kolibrie": Case(
        rsp_ql("[SLIDING PT10M STEP PT1M REPORT ON_CONTENT_CHANGE TICK TIME_DRIVEN]"),
        (TimeWindow("urn:w", "urn:s", 600 * SECOND, 60 * SECOND),),
        report=Report.CONTENT_CHANGE,
    ),
    "rsp-ql of kolibrie, tumbling": Case(
        rsp_ql("[TUMBLING PT10M]"), (TimeWindow("urn:w", "urn:s", 600 * SECOND, 600 * SECOND),)
    ),
    "rsp-ql of kolibrie, with a prefix that nobody declares": Case(
        "SELECT * FROM NAMED WINDOW :w ON :s [RANGE 3 STEP 1] WHERE { WINDOW :w { ?s a <urn:C> } }",
        (TimeWindow(f"{NUMBERED}:w", ":s", 3_000, 1_000),),
    ),
    "rsp-ql of kolibrie, with a variable for the stream": Case(
        """REGISTER ISTREAM <http://out/stream> AS
        SELECT *
        FROM NAMED WINDOW :w ON ?stream [RANGE 3 STEP 1]
        WHERE { WINDOW :w { ?s a <http://test/IType> . } }""",
        (TimeWindow(f"{NUMBERED}:w", "?stream", 3_000, 1_000),),
        operator=Operator.ISTREAM,
        output="http://out/stream",
    ),
    "rsp-ql of janus, with clauses before REGISTER": Case(
        f"""{PREFIX} FROM NAMED WINDOW :w ON STREAM :s [RANGE 60000 STEP 1000]
        REGISTER RStream :out AS SELECT ?s WHERE {{ WINDOW :w {{ ?s :p ?o }} }}""",
        (TimeWindow("http://example.org/w", "http://example.org/s", 60 * SECOND, SECOND),),
        output="http://example.org/out",
    ),
    "a window that no pattern names": Case(
        "SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT1S STEP PT1S] WHERE { ?s ?p ?o }",
        (TimeWindow("urn:w", "urn:s", SECOND, SECOND),),
        needs={"urn:w": Needs.NOTHING},
    ),
    "dstream": Case(
        "REGISTER dstream <urn:out> as SELECT * { ?s ?p ?o }", (), Operator.DSTREAM, "urn:out"
    ),
    # --- C-SPARQL ---
    "c-sparql": Case(
        """REGISTER QUERY WhoLikesWhat AS PREFIX ex: <http://example.org/>
        SELECT ?s ?o FROM STREAM <http://example.org/stream> [RANGE 5s STEP 1s] WHERE { ?s ex:likes ?o }""",
        (TimeWindow("http://example.org/stream", "http://example.org/stream", 5 * SECOND, SECOND),),
        output="WhoLikesWhat",
        default=("http://example.org/stream",),
        needs={"http://example.org/stream": Needs.UNION},
    ),
    "c-sparql computed every, with static data": Case(
        """REGISTER STREAM q-1.x COMPUTED EVERY 5m AS CONSTRUCT { [] <urn:on> ?vm }
        FROM STREAM <urn:s> [RANGE 30m STEP 5m] FROM <urn:static>
        WHERE { ?m <urn:in> ?vm ; <urn:v> ?v } GROUP BY ?vm HAVING(AVG(?v) > 40)""",
        (TimeWindow("urn:s", "urn:s", 1800 * SECOND, 300 * SECOND),),
        output="q-1.x",
        default=("urn:s",),
        static=(("urn:static",), ()),
        every=300 * SECOND,
    ),
    "c-sparql over several streams": Case(
        """select ?a from <urn:static> from stream <urn:s> [range 3s step 1s]
        from stream <urn:t> [range 3000ms tumbling] where { { ?a <urn:p> ?b } { ?a <urn:q> ?c } }""",
        (
            TimeWindow("urn:s", "urn:s", 3 * SECOND, SECOND),
            TimeWindow("urn:t", "urn:t", 3 * SECOND, 3 * SECOND),
        ),
        default=("urn:s", "urn:t"),
        static=(("urn:static",), ()),
    ),
    "c-sparql by triples": Case(
        """REGISTER STREAM low AS CONSTRUCT { ?s <urn:is> 1 }
        FROM STREAM <urn:s> [RANGE TRIPLES 1] WHERE { ?s <urn:p> ?o }""",
        (CountWindow("urn:s", "urn:s", 1, 1),),
        output="low",
        default=("urn:s",),
    ),
    "c-sparql by triples, tumbling": Case(
        "SELECT * FROM STREAM <urn:s> [RANGE TRIPLES 10 TUMBLING] { ?s ?p ?o }",
        (CountWindow("urn:s", "urn:s", 10, 10),),
        default=("urn:s",),
        needs={"urn:s": Needs.UNION | Needs.CONTEXT},
    ),
    "c-sparql with a named stream": Case(
        "SELECT * FROM NAMED STREAM <urn:s> [RANGE 5s STEP 1s] WHERE { ?x <urn:p> ?y GRAPH <urn:s> { ?s <urn:p> ?o } }",
        (TimeWindow("urn:s", "urn:s", 5 * SECOND, SECOND),),
        needs={"urn:s": Needs.UNION},
    ),
    # --- CQELS ---
    "cqels": Case(
        """PREFIX lv: <http://deri.org/floorplan/> SELECT ?p1 ?p2 FROM NAMED <http://deri.org/floorplan/>
        WHERE { GRAPH <http://deri.org/floorplan/> { ?l1 lv:connected ?l2 }
          STREAM <http://deri.org/streams/rfid> [NOW] { ?p1 lv:at ?l1 }
          STREAM <http://deri.org/streams/rfid> [RANGE 3s] { ?p2 lv:at ?l2 }
          STREAM <http://deri.org/streams/rfid> [NOW] { ?p3 lv:at ?l1 } }""",
        (
            TimeWindow(f"{NUMBERED}1", "http://deri.org/streams/rfid", 0, 0),
            TimeWindow(f"{NUMBERED}2", "http://deri.org/streams/rfid", 3 * SECOND, 0),
        ),
        operator=Operator.ISTREAM,
        static=((), ("http://deri.org/floorplan/",)),
        needs={
            f"{NUMBERED}1": Needs.UNION | Needs.GRAPHS,
            f"{NUMBERED}2": Needs.UNION | Needs.GRAPHS,
        },
    ),
    "cqels sliding, in small letters": Case(
        "select ?a where { stream <urn:s> [range 2s slide 1s]\n{?a <urn:p> ?b} stream <urn:t>[all]{?a <urn:q> ?c} }",
        (
            TimeWindow(f"{NUMBERED}1", "urn:s", 2 * SECOND, SECOND),
            TimeWindow(f"{NUMBERED}2", "urn:t", None, 0),
        ),
        operator=Operator.ISTREAM,
    ),
    "cqels by count": Case(
        """CONSTRUCT { ?a <urn:p> ?b } WHERE { STREAM <urn:s> [TRIPLE 10] { ?a <urn:p> ?b }
        STREAM <urn:s> [ROWS 10 SLIDE 5] { ?b <urn:p> ?c }
        STREAM <urn:s> [TRIPLES 10 SLIDE TRIPLES 2] { ?c <urn:p> 1 } }""",
        (
            CountWindow(f"{NUMBERED}1", "urn:s", 10, 1),
            CountWindow(f"{NUMBERED}2", "urn:s", 10, 5),
            CountWindow(f"{NUMBERED}3", "urn:s", 10, 2),
        ),
        operator=Operator.ISTREAM,
    ),
    "cqels 2": Case(
        """PREFIX : <http://example.org/> REGISTER QUERY High AS SELECT ?x FROM STREAM Sensors [SLIDE 30s STEP 10s]
        WHERE { STREAM Sensors { ?x :temperature ?t } ?x :at ?room FILTER(?t > 30) }""",
        (TimeWindow(f"{NUMBERED}Sensors", "Sensors", 30 * SECOND, 10 * SECOND),),
        output="High",
        needs={f"{NUMBERED}Sensors": Needs.UNION},
    ),
    # --- SPARQLStream ---
    "sparqlstream": Case(
        "SELECT ?x FROM NAMED STREAM <urn:s>[NOW - 500 MS SLIDE 500 MS] WHERE { ?x <urn:p> ?y }",
        (TimeWindow("urn:s", "urn:s", SECOND // 2, SECOND // 2),),
        default=("urn:s",),
    ),
    "sparqlstream with two ends": Case(
        "SELECT RSTREAM ?x FROM NAMED STREAM <urn:s> [NOW-10 S TO NOW-0 S SLIDE 1 SEC] WHERE { ?x <urn:p> ?y }",
        (TimeWindow("urn:s", "urn:s", 10 * SECOND, SECOND),),
        default=("urn:s",),
    ),
    "sparqlstream of an instant": Case(
        "SELECT ?x FROM NAMED STREAM <urn:s> [NOW SLIDE 2 HOURS] WHERE { ?x <urn:p> ?y }",
        (TimeWindow("urn:s", "urn:s", 0, 7200 * SECOND),),
        default=("urn:s",),
    ),
    # --- no streams ---
    "plain": Case("CONSTRUCT { ?s ?p ?o } FROM <urn:g> WHERE { ?s ?p ?o }", (), Operator.ISTREAM),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_query_is_read(case: Case) -> None:
    read = parse_continuous(case.text)
    assert read.windows == case.windows
    assert (read.operator, read.output, read.every, read.report) == (
        case.operator,
        case.output,
        case.every,
        case.report,
    )
    assert read.default == case.default
    assert (read.default_graphs, read.named_graphs) == case.static
    assert read.needs.keys() == {window.name for window in read.windows}
    assert case.needs in ({}, read.needs)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_left_is_sparql(case: Case) -> None:
    query = parse_continuous(case.text).query
    select = ConstructQuery.parse(query).select if query_form(query) == "CONSTRUCT" else query
    ox.Store().query(select)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_lines_stay(case: Case) -> None:
    assert parse_continuous(case.text).query.count("\n") == case.text.count("\n")


def test_relative_names_are_resolved() -> None:
    text = """REGISTER RSTREAM <out> AS SELECT * FROM NAMED WINDOW <w> ON <s> [NOW] FROM <static>
    WHERE { WINDOW <w> { ?s <p> ?o } }"""
    read = parse_continuous(text, base="http://example.org/streams/")
    assert read.output == "http://example.org/streams/out"
    assert read.windows == (
        TimeWindow("http://example.org/streams/w", "http://example.org/streams/s", 0, 0),
    )
    assert read.default_graphs == ("http://example.org/streams/static",)
    assert read.query.startswith("BASE <http://example.org/streams/> ")
    ox.Store().query(read.query)
    assert (
        "BASE"
        not in parse_continuous("SELECT * { ?s <urn:p> ?o }", base="http://example.org/").query
    )


def test_bare_names_are_relative() -> None:
    text = "REGISTER QUERY a-1 AS SELECT * FROM STREAM Sensors [NOW] WHERE { STREAM Sensors { ?s ?p ?o } }"
    read = parse_continuous(text, base="http://example.org/streams/")
    assert read.output == "http://example.org/streams/a-1"
    name = "http://example.org/streams/Sensors"
    assert read.windows == (TimeWindow(name, name, 0, 0),)
    assert f"GRAPH <{name}>" in read.query


def test_relative_names_without_base_stay_as_they_are_written() -> None:
    read = parse_continuous(
        "REGISTER RSTREAM <out> AS SELECT * FROM STREAM <s/1> [NOW] FROM <a.ttl> { ?s ?p ?o }"
    )
    assert (read.output, read.windows[0].stream, read.default_graphs) == ("out", "s/1", ("a.ttl",))


def test_without_windows_only_register_is_taken_out() -> None:
    """What another engine knows, as a prefix that nobody declares, is none of ours."""
    text = "CONSTRUCT { ?s ?p ?o } FROM dbr:a FROM NAMED dbr:b WHERE { GRAPH dbr:b { ?s ?p ?o } GRAPH ?g { ?o ?p ?s } }"
    read = parse_continuous(f"REGISTER ISTREAM <urn:o> AS {text}")
    assert read.query.lstrip() == text
    assert (read.windows, read.needs, read.default_graphs, read.named_graphs) == ((), {}, (), ())
