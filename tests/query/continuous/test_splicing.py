"""Splicing: what a continuous query says does not depend on layout, and what is not of streams stays as written."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyoxigraph as ox
from hypothesis import given, settings
from hypothesis import strategies as st

from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.query.continuous.values import CountWindow, TimeWindow, Window
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.query.tokens import tokenize

KEYWORDS = {
    *(
        "REGISTER",
        "RSTREAM",
        "ISTREAM",
        "STREAM",
        "AS",
        "FROM",
        "NAMED",
        "WINDOW",
        "ON",
        "RANGE",
        "STEP",
        "SLIDE",
    ),
    *(
        "TRIPLES",
        "ROWS",
        "TUMBLING",
        "NOW",
        "ALL",
        "COMPUTED",
        "EVERY",
        "CONSTRUCT",
        "WHERE",
        "GRAPH",
    ),
}
CM = "https://w3id.org/construct-messages#"
GAPS = st.sampled_from(
    [" ", "\t", "\n", "\r\n", "  ", " # WINDOW <urn:x> { '\n", "\n#STREAM <urn:x> [NOW] {\r\n"]
)

# what stands in groups: nothing of it may change, whatever it looks like
OPAQUE = st.sampled_from(
    [
        '?s <urn:p> "WINDOW <urn:w> { STREAM <urn:s> [NOW] {"',
        "?s <urn:p> '''\nGRAPH ?g { \"'''@en",
        "?s <urn:p> ?o # GRAPH ?g { WINDOW\n",
        "?s <urn:p>/<urn:q>* [ <urn:window> ( 1 2.0 -3e0 true ) ; a ?t ]",
        "OPTIONAL { ?s <urn:p> ?o FILTER(?o>1&&?o<5) }",
        "{ SELECT ?m ?g ?s (COUNT(*) AS ?n) WHERE { ?s ?p ?o } GROUP BY ?m ?g ?s HAVING(COUNT(*) > 1) ORDER BY ?s }",
        "VALUES ( ?s ?window ) { ( <urn:from> UNDEF ) ( <urn:stream> 'FROM' ) }",
        "FILTER NOT EXISTS { ?s <urn:p> ?window }",
        "BIND(IF(?s = <urn:graph>, 'x', \"y\"@en-GB) AS ?y) MINUS { ?s <urn:p> ?stream }",
        "<< ?s <urn:p> ?o >> <urn:q> ?stream",
        "",
    ]
)


class Declared(NamedTuple):
    """What stands in the brackets of a window, and which window that is."""

    bracket: tuple[str, ...]
    window: Callable[[str, str], Window]


def by_time(*bracket: str, range: int | None, step: int) -> Declared:
    return Declared(
        ("[", *bracket, "]"), lambda name, stream: TimeWindow(name, stream, range, step)
    )


def by_count(*bracket: str, count: int, step: int) -> Declared:
    return Declared(
        ("[", *bracket, "]"), lambda name, stream: CountWindow(name, stream, count, step)
    )


DECLARED = st.sampled_from(
    [
        by_time("RANGE", "PT1.5S", "STEP", "PT1S", range=1_500_000, step=1_000_000),
        by_time("RANGE", "15s", "SLIDE", "100ms", range=15_000_000, step=100_000),
        by_time(
            "RANGE", "1", "h", "STEP", "30", "minutes", range=3_600_000_000, step=1_800_000_000
        ),
        by_time("RANGE", "10", "STEP", "2", range=10_000, step=2_000),
        by_time("RANGE", "P1DT1M", "TUMBLING", range=86_460_000_000, step=86_460_000_000),
        by_time("RANGE", "5m", range=300_000_000, step=0),
        by_time("NOW", range=0, step=0),
        by_time("ALL", range=None, step=0),
        by_count("TRIPLES", "10", count=10, step=1),
        by_count("RANGE", "TRIPLES", "10", "TUMBLING", count=10, step=10),
        by_count("ROWS", "10", "SLIDE", "5", count=10, step=5),
    ]
)


class Drawn(NamedTuple):
    """A query as its pieces, and what is expected of it; pieces that begin with `=` are opaque."""

    pieces: Sequence[str]
    windows: tuple[Window, ...]
    expected: Sequence[str]


@st.composite
def queries(draw: st.DrawFn) -> Drawn:
    """Queries with declared windows (RSP-QL), windows of patterns (CQELS), and patterns of graphs and of neither."""
    pieces = [
        "REGISTER",
        "ISTREAM",
        "<urn:out>",
        "AS",
        "CONSTRUCT",
        "=",
        "{",
        "?s",
        "<urn:is>",
        "?o",
        "}",
    ]
    expected = ["CONSTRUCT", "=", "{", "?s", "<urn:is>", "?o", "}"]
    windows: list[Window] = []
    for number, declared in enumerate(draw(st.lists(DECLARED, max_size=3))):
        pieces += [
            "FROM",
            "NAMED",
            "WINDOW",
            f"<urn:w{number}>",
            "ON",
            f"<urn:s{number}>",
            *declared.bracket,
        ]
        windows.append(declared.window(f"urn:w{number}", f"urn:s{number}"))
    pieces += ["WHERE", "{"]
    expected += ["WHERE", "{"]
    names = [f"<{window.name}>" for window in windows]
    kinds = ["window", "opaque", "stream", "graph"] if names else ["opaque", "stream"]
    for kind in draw(st.lists(st.sampled_from(kinds), max_size=5)):
        opaque = f"={draw(OPAQUE)}"
        if kind == "opaque":
            pieces += ["{", opaque, "}"]
            expected += ["{", opaque, "}"]
        elif kind == "graph":
            member = ["{", "<urn:construct-messages:static>", f"<{CM}member>", "?g", "}"]
            pieces += ["GRAPH", "?g", "{", opaque, "}"]
            expected += [
                "GRAPH",
                "<urn:construct-messages:windows>",
                *member,
                "GRAPH",
                "?g",
                "{",
                opaque,
                "}",
            ]
        elif kind == "window":
            name = draw(st.sampled_from(names))
            inner, inserted = draw(contents(name))
            pieces += ["WINDOW", name, "{", *inner, "}"]
            expected += ["GRAPH", name, "{", *inserted, "}"]
        else:
            declared = draw(DECLARED)
            stream = draw(st.sampled_from(["urn:t", "urn:u"]))
            numbered = "urn:construct-messages:window:"
            name = next(
                (known.name for known in windows if declared.window(known.name, stream) == known),
                f"{numbered}{1 + sum(known.name.startswith(numbered) for known in windows)}",
            )
            if name not in [known.name for known in windows]:
                windows.append(declared.window(name, stream))
            inner, inserted = draw(contents(f"<{name}>"))
            pieces += ["STREAM", f"<{stream}>", *declared.bracket, "{", *inner, "}"]
            expected += ["GRAPH", f"<{name}>", "{", *inserted, "}"]
    return Drawn([*pieces, "}"], tuple(windows), [*expected, "}"])


@st.composite
def contents(draw: st.DrawFn, window: str) -> tuple[list[str], list[str]]:
    """What stands in the group of a window, and what is to become of it."""
    pieces: list[str] = []
    expected: list[str] = []
    for graph in draw(st.lists(st.sampled_from(["", "?m", "<urn:m>"]), max_size=3)):
        opaque = f"={draw(OPAQUE)}"
        if not graph:
            pieces += ["{", opaque, "}"]
            expected += ["{", opaque, "}"]
        else:
            member = ["{", window, f"<{CM}member>", graph, "}"]
            pieces += ["GRAPH", graph, "{", opaque, "}"]
            expected += [
                "GRAPH",
                "<urn:construct-messages:windows>",
                *member,
                "GRAPH",
                graph,
                "{",
                opaque,
                "}",
            ]
    return pieces, expected


def written(pieces: Sequence[str]) -> str:
    return " ".join(piece.removeprefix("=") for piece in pieces)


@settings(max_examples=settings.default.max_examples // 3)
@given(queries(), st.data())
def test_layout_says_nothing(drawn: Drawn, data: st.DataObject) -> None:
    plain = parse_continuous(written(drawn.pieces))
    pieces = [
        data.draw(st.sampled_from([str.upper, str.lower, str.title]))(piece)
        if piece in KEYWORDS
        else piece
        for piece in drawn.pieces
    ]
    text = "".join(piece.removeprefix("=") + data.draw(GAPS) for piece in pieces)
    read = parse_continuous(text)
    assert (read.output, read.operator, read.windows, read.needs) == (
        plain.output,
        plain.operator,
        plain.windows,
        plain.needs,
    )
    assert [token.text.upper() for token in tokenize(read.query)] == [
        token.text.upper() for token in tokenize(plain.query)
    ]
    assert read.query.count("\n") == text.count("\n")


@settings(max_examples=settings.default.max_examples // 2)
@given(queries())
def test_only_what_is_of_streams_is_replaced(drawn: Drawn) -> None:
    read = parse_continuous(written(drawn.pieces))
    assert read.windows == drawn.windows
    if drawn.windows:
        found, wanted = tokenize(read.query), tokenize(written(drawn.expected))
        assert [token.text for token in found] == [token.text for token in wanted]
    else:
        assert read.query.lstrip() == written(drawn.pieces).partition(" AS ")[2]
    place = 0
    for opaque in (piece.removeprefix("=") for piece in drawn.expected if piece.startswith("=")):
        place = read.query.index(opaque, place) + len(opaque)
    ox.Store().query(ConstructQuery.parse(read.query).select)
