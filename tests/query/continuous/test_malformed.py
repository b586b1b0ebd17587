"""Malformed continuous queries are refused, each at the exact place and with what to do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import QueryError
from construct_messages.query.continuous.parse import parse_continuous

FROM = "SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE 2s STEP 1s]"

# `§` marks the place of the error, and is no part of the query.
MALFORMED = {
    "REGISTER without name": (
        "REGISTER RSTREAM §AS SELECT * {}",
        "expected a name for the output, found AS",
    ),
    "REGISTER of something": (
        "REGISTER §MSTREAM <urn:o> AS SELECT * {}",
        "expected ISTREAM, DSTREAM, RSTREAM, STREAM",
    ),
    "REGISTER without AS": ("REGISTER RSTREAM <urn:o> §SELECT * {}", "expected AS, found SELECT"),
    "REGISTER with an undeclared prefix": (
        "REGISTER RSTREAM §ex:o AS SELECT * {}",
        "prefix ex: is not declared",
    ),
    "COMPUTED without EVERY": (
        "REGISTER STREAM q COMPUTED §5s AS SELECT * {}",
        "expected EVERY, found 5",
    ),
    "COMPUTED EVERY nothing": (
        "REGISTER STREAM q COMPUTED EVERY §AS SELECT * {}",
        "expected a duration, found AS",
    ),
    "no form": ("REGISTER STREAM q AS {}§", "there is no CONSTRUCT and no SELECT"),
    "ASK": ("REGISTER STREAM q AS §ASK { }", "expected CONSTRUCT or SELECT, found ASK"),
    "DESCRIBE": (
        "REGISTER STREAM q AS §describe <urn:a>",
        "expected CONSTRUCT or SELECT, found describe",
    ),
    "an update": (
        "INSERT DATA { <urn:s> <urn:p> <urn:o> }§",
        "there is no CONSTRUCT and no SELECT",
    ),
    "another brace": ("SELECT * §{ { }", "this { is never closed"),
    "FROM nothing": (
        "SELECT * FROM §WHERE {}",
        "expected the IRI of a graph, WINDOW or STREAM after FROM, found WHERE",
    ),
    "window without name": (
        "SELECT * FROM NAMED WINDOW ON <urn:s> [NOW] §{}",
        "expected AS and the IRI of the window",
    ),
    "window with a bare name": (
        "SELECT * FROM NAMED WINDOW §w ON <urn:s> [NOW] {}",
        "expected the IRI of the window",
    ),
    "window over a log": (
        "SELECT * FROM NAMED WINDOW <urn:w> ON §LOG <urn:s> [NOW] {}",
        "expected the IRI of a stream",
    ),
    "REGISTER of a file, of kolibrie": (
        "REGISTER STREAM <urn:o> §FROM <urn:f> WITH TIMESTAMP AS SELECT * {}",
        "REGISTER with a file is not supported",
    ),
    "streams of a catalogue, of kolibrie": (
        "§RETRIEVE SOME ACTIVE STREAM ?s FROM <urn:c> WITH { ?s a <urn:C> } SELECT * {}",
        "RETRIEVE is not supported",
    ),
    "a policy, of kolibrie": (
        "SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> [NOW] §WITH POLICY steal {}",
        "WITH POLICY is not supported",
    ),
    "a variable for a stream of CQELS": (
        "SELECT * { STREAM §?s [NOW] {} }",
        "expected the IRI of a stream, found ?s",
    ),
    "a window within one of an undeclared prefix": (
        "SELECT * FROM NAMED WINDOW :w ON :s [NOW] { WINDOW :w { §WINDOW :w {} } }",
        "WINDOW cannot be used within the window :w",
    ),
    "a name of an undeclared prefix twice": (
        "SELECT * FROM NAMED WINDOW :w ON :s [NOW] §FROM NAMED WINDOW :w ON :s [NOW] {}",
        "the window :w is declared twice",
    ),
    "an entailment regime": (
        "REGISTER STREAM <urn:o> §UNDER ENTAILMENT REGIME <urn:r> AS SELECT * {}",
        "UNDER ENTAILMENT REGIME is not supported",
    ),
    "window without stream": (
        "SELECT * FROM NAMED WINDOW <urn:w> ON §[NOW] {}",
        "expected the IRI of a stream, found [",
    ),
    "window without bracket": (
        "SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> §{}",
        "expected [ with the width",
    ),
    "stream without bracket": (
        "SELECT * FROM STREAM <urn:s> §{}",
        "expected [ with the width of the window, found {",
    ),
    "bracket without end": ("SELECT * FROM STREAM <urn:s> [RANGE 2s §{}", "expected ], found {"),
    "bracket and the end": (
        "SELECT * {} FROM STREAM <urn:s> [RANGE 2s§",
        "expected ], and the query ends",
    ),
    "empty bracket": (
        "SELECT * FROM STREAM <urn:s> [§] {}",
        "expected RANGE, NOW, ALL or TRIPLES, found ]",
    ),
    "no width": (
        "SELECT * FROM STREAM <urn:s> [RANGE §STEP 2s] {}",
        "expected a duration, found STEP",
    ),
    "no step": (
        "SELECT * FROM STREAM <urn:s> [RANGE 2s STEP §] {}",
        "expected a duration, found ]",
    ),
    "an unknown unit": (
        "SELECT * FROM STREAM <urn:s> [RANGE 2 §fortnights] {}",
        "expected ], found fortnights",
    ),
    "no width at all": (
        "SELECT * FROM STREAM <urn:s> [RANGE §0s] {}",
        "0s is less than a microsecond",
    ),
    "a width below zero": (
        "SELECT * FROM STREAM <urn:s> [RANGE §-2s] {}",
        "-2s is less than a microsecond",
    ),
    "a step of nothing": (
        "SELECT * FROM STREAM <urn:s> [RANGE 2s STEP §PT0S] {}",
        "PT0S is less than a microsecond",
    ),
    "a width for ever": (
        "SELECT * FROM STREAM <urn:s> [RANGE §999999999999d] {}",
        "999999999999d is too long",
    ),
    "a number with an exponent": (
        "SELECT * FROM STREAM <urn:s> [RANGE §1e9] {}",
        "1e9 is no duration",
    ),
    "months": (
        "SELECT * FROM STREAM <urn:s> [RANGE §P1M] {}",
        "P1M is no duration of days, hours, minutes and seconds",
    ),
    "half a duration": ("SELECT * FROM STREAM <urn:s> [RANGE §PT] {}", "PT is no duration of days"),
    "no duration": ("SELECT * FROM STREAM <urn:s> [RANGE §PT5] {}", "PT5 is no duration of days"),
    "a literal that is none": (
        "SELECT * FROM STREAM <urn:s> [RANGE §'5 s'] {}",
        "5 s is no duration of days",
    ),
    "no messages": (
        "SELECT * FROM STREAM <urn:s> [TRIPLES §0] {}",
        "expected a number of messages, from 1, found 0",
    ),
    "half a message": (
        "SELECT * FROM STREAM <urn:s> [ROWS §0.5] {}",
        "expected a number of messages, from 1, found 0.5",
    ),
    "a step of time by count": (
        "SELECT * FROM STREAM <urn:s> [TRIPLES 2 STEP 1§s] {}",
        "expected ], found s",
    ),
    "a window in the past": (
        "SELECT * FROM STREAM <urn:s> [NOW - 2 h TO §NOW - 1 h] {}",
        "that ends before now",
    ),
    "a window between times": (
        "SELECT * FROM STREAM <urn:s> [§START 0 END 5] {}",
        "START looks into the past",
    ),
    "a window to come": (
        "SELECT * FROM STREAM <urn:s> [§FUTURE 20s] {}",
        "expected RANGE, NOW, ALL or TRIPLES",
    ),
    "no report policy": (
        "SELECT * FROM STREAM <urn:s> [RANGE 2s REPORT §NEVER] {}",
        "expected one of ON_WINDOW_CLOSE",
    ),
    "a name twice": (
        "SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> [NOW] §FROM NAMED WINDOW <urn:w> ON <urn:t> [NOW] {}",
        "the window <urn:w> is declared twice",
    ),
    "undeclared window": (
        f"{FROM} {{ WINDOW §<urn:v> {{}} }}",
        "the window <urn:v> is not declared",
    ),
    "undeclared window, by no clause": (
        "SELECT * { WINDOW §<urn:v> {} }",
        "the window <urn:v> is not declared",
    ),
    "undeclared window of a variable": (
        "SELECT * { WINDOW §?w {} }",
        "?w has no window that it could be bound to",
    ),
    "undeclared prefix": (f"{FROM} {{ WINDOW §ex:w {{}} }}", "prefix ex: is not declared"),
    "undeclared stream": (
        f"{FROM} {{ STREAM Sensors §{{}} }}",
        "expected [ with the width of the window, found {",
    ),
    "WINDOW without name": (f"{FROM} {{ WINDOW §{{}} }}", "expected the name of a window, found {"),
    "WINDOW without group": (
        f"{FROM} {{ WINDOW <urn:w> §?s ?p ?o }}",
        "expected { after <urn:w>, found ?s",
    ),
    "STREAM without name": (
        "SELECT * { STREAM §[NOW] {} }",
        "expected the IRI of a stream, found [",
    ),
    "STREAM without group": (
        "SELECT * { STREAM <urn:s> [NOW] §?s ?p ?o }",
        "expected { after the window, found ?s",
    ),
    "a name that is no IRI": (
        "SELECT * FROM WINDOW §<urn:a%> ON <urn:s> [NOW] {}",
        "<urn:a%> is no IRI",
    ),
    "very many windows": (
        "SELECT * " + "FROM WINDOW ON <urn:s> [NOW] " * 100 + "§FROM WINDOW ON <urn:s> [NOW] {}",
        "more than 100 windows",
    ),
    "very many windows in patterns": (
        "SELECT * {"
        + "".join(f"STREAM <urn:s> [RANGE {number}s] {{}} " for number in range(1, 101))
        + "STREAM <urn:s> [RANGE 100s] {} §STREAM <urn:s> [NOW] {} }",
        "more than 100 windows",
    ),
    "WINDOW in WINDOW": (
        f"{FROM} {{ WINDOW <urn:w> {{ {{ §WINDOW <urn:w> {{}} }} }} }}",
        "WINDOW cannot be used within the window <urn:w>",
    ),
    "STREAM in WINDOW": (
        f"{FROM} {{ WINDOW <urn:w> {{ §STREAM <urn:s> [NOW] {{}} }} }}",
        "STREAM cannot be used within the window <urn:w>",
    ),
    "WINDOW in SERVICE": (
        f"{FROM} {{ SERVICE SILENT <urn:e> {{ §WINDOW <urn:w> {{}} }} }}",
        "WINDOW cannot be used within SERVICE",
    ),
    "a sub-select within GRAPH": (
        f"{FROM} {{ WINDOW <urn:w> {{ GRAPH ?m {{ OPTIONAL {{ {{ §SELECT ?s {{ ?s ?p ?m }} }} }} }} }} }}",
        "the embedded engine would take ?m in this sub-select for the graph",
    ),
    "a sub-select within any window": (
        f"{FROM} {{ WINDOW ?w {{ SELECT * {{ GRAPH <urn:m> {{ ?s ?p ?o }} }} §LIMIT 1 }} }}",
        "LIMIT to all graphs together, not to each ?w",
    ),
    "STREAM in SERVICE": (
        "SELECT * { SERVICE <urn:e> { §STREAM <urn:s> [NOW] {} } }",
        "STREAM cannot be used within SERVICE",
    ),
    "on another line": (
        "SELECT *\r\nFROM STREAM <urn:s>\r\n  [RANGE 2s §STOP] {}",
        "expected ], found STOP",
    ),
}


@pytest.mark.parametrize(("marked", "message"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_is_refused_at_its_place(marked: str, message: str) -> None:
    before, _, after = marked.partition("§")
    with pytest.raises(QueryError) as caught:
        parse_continuous(before + after)
    lines = before.replace("\r\n", "\n").split("\n")
    assert caught.value.position == (len(lines), len(lines[-1]) + 1)
    assert message in caught.value.message


HINTS = {
    "undeclared window": (
        f"{FROM} {{ WINDOW <urn:v> {{}} }}",
        "add FROM NAMED WINDOW <urn:v> ON <stream> [RANGE PT15S STEP PT5S], or use one of <urn:w>",
    ),
    "names as they are written": (
        "SELECT * FROM NAMED WINDOW :w ON :s [NOW] FROM NAMED WINDOW <v> ON :s [NOW] { WINDOW :u {} }",
        "add FROM NAMED WINDOW :u ON <stream> [RANGE PT15S STEP PT5S], or use one of :w, <v>",
    ),
    "months": (
        "SELECT * FROM STREAM <urn:s> [RANGE P1M] {}",
        "months and years have no fixed length: write days",
    ),
    "REGISTER without AS": (
        "REGISTER RSTREAM <urn:o> SELECT * {}",
        "write REGISTER RSTREAM <output> AS CONSTRUCT ...",
    ),
    "no width": (
        "SELECT * FROM STREAM <urn:s> [RANGE STEP 2s] {}",
        "write it as in PT15S, 15s, 5m, 1h or 100ms",
    ),
}


@pytest.mark.parametrize(("text", "hint"), HINTS.values(), ids=HINTS)
def test_error_says_what_to_do(text: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_continuous(text)
    assert caught.value.hint == hint


PIECES = st.sampled_from(
    [
        *(
            "SELECT",
            "CONSTRUCT",
            "REGISTER",
            "AS",
            "FROM",
            "NAMED",
            "WINDOW",
            "STREAM",
            "ON",
            "WHERE",
            "GRAPH",
        ),
        *(
            "RANGE",
            "STEP",
            "NOW",
            "TO",
            "-",
            "TRIPLES",
            "ALL",
            "COMPUTED",
            "EVERY",
            "SERVICE",
            "FILTER",
            "ISTREAM",
        ),
        *(
            "[",
            "]",
            "{",
            "}",
            "{}",
            "?s ?p ?o",
            "?w",
            "<urn:a>",
            "<a>",
            ":a",
            "ex:a",
            "a",
            "15s",
            "PT5S",
            "P",
            "10",
        ),
        *(
            "'",
            ",",
            "*",
            "[NOW]",
            "FROM STREAM <urn:s> [RANGE 5s]",
            "FROM NAMED WINDOW <urn:w> ON <urn:s> [ROWS 5]",
        ),
    ]
)


@given(st.lists(PIECES, max_size=20))
def test_any_text_is_read_or_refused(pieces: list[str]) -> None:
    read = position = None
    try:
        read = parse_continuous(" ".join(["SELECT * {", *pieces, "}"]))
    except QueryError as refused:
        position = refused.position
    assert (read is None) == (position is not None)
    assert read is None or set(read.needs) == {window.name for window in read.windows}
