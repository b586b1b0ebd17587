"""Delimiters of Turtle and TriG are found where they stand, and nowhere else, however hostile the statements are."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyoxigraph as ox
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.logs.turtle.scanner import MarkKind, TurtleScanner
from construct_messages.rdf.formats import RDFM, TRIG, TURTLE, Format
from construct_messages.rdf.formats.lookup import find_syntax
from construct_messages.rdf.message import Message
from tests.support.growth import assert_linear, cpu_seconds
from tests.support.logs.kinds import Kind, cut, isomorphic, read, single_bytes

pytestmark = pytest.mark.slow

NEW = find_syntax("1.2-messages")

# --- hostile Turtle, which is Turtle all the same -------------------------------------------------------------------

PREFIXES = ["", "MESSAGE", "message", "Version", "a.MESSAGE", "x-y"]
HEAD = "".join(f"PREFIX {prefix}: <urn:p{number}:>\n" for number, prefix in enumerate(PREFIXES))

LOCALS = [
    *("", "a", "MESSAGE", "a.b", "a..MESSAGE", "a:MESSAGE", "1", "%41", "é", "VERSION", "x.1"),
    *("\\'", "\\#MESSAGE", "a\\.", "a\\.MESSAGE", "\\(", "a\\@message", "a\\-"),
]
names = st.builds("{}:{}".format, st.sampled_from(PREFIXES), st.sampled_from(LOCALS))
iris = st.sampled_from(
    [
        "<urn:a>",
        "<urn:MESSAGE>",
        "<urn:#@message>",
        "<urn:'>",
        "<urn:a;MESSAGE=.>",
        "<urn:\\u0041>",
        "<urn:#>",
    ]
)
labels = st.sampled_from(["_:a", "_:MESSAGE", "_:a.MESSAGE", "_:message", "_:1", "_:a-b"])
content = st.lists(
    st.sampled_from(
        [
            *("\"'# .;<>{}[]()@aé\U0001f600"),
            *(
                "MESSAGE",
                "\n",
                "\nMESSAGE\n",
                "# @message",
                "@message .",
                "VERSION '1.2-messages'",
                "<<(",
                ")>>",
            ),
            *('\\"', "\\'", "\\\\", "\\n", "\\u0022", "\r"),
        ]
    ),
    max_size=6,
).map("".join)


@st.composite
def strings(draw: st.DrawFn, short: bool = False) -> str:
    text = draw(content)
    quote = draw(st.sampled_from(['"', "'"]))
    if not short and draw(st.booleans()):
        # three quotes would be the end, and one at the end one too many
        return (
            quote * 3
            + re.sub(f"{quote}{{3,}}", quote * 2, text)
            + "." * text.endswith(quote)
            + quote * 3
        )
    return quote + re.sub(rf"(\\.)|[{quote}\r\n]", lambda match: match[1] or "", text) + quote


spaces = st.sampled_from(
    [" ", "\n", "\t", "\r\n", " # MESSAGE\n", "\n#\n", ' # "\n', " # '''\n", " # <\n", " #@\n"]
)
tags = st.sampled_from(
    [
        "@en",
        "@message",
        " @message",
        "\n@message",
        " # 'x'\n@message",
        "@ar--rtl",
        "^^<urn:MESSAGE>",
    ]
)
literals = st.one_of(
    strings(),
    st.builds("{}{}".format, strings(), tags),
    st.sampled_from(["1", "1.5", ".5", "-1.5E-3", "1.e5", "1E5", "+7", "true", "false"]),
)
verbs = st.one_of(iris, names, st.just("a"))
subjects = st.one_of(iris, names, labels)


@st.composite
def triple_terms(draw: st.DrawFn, object: st.SearchStrategy[str]) -> str:
    space = draw(spaces)
    return f"<<({space}{draw(subjects)}{space}{draw(verbs)}{space}{draw(object)} )>>"


@st.composite
def predicates(draw: st.DrawFn, object: st.SearchStrategy[str], annotated: bool = False) -> str:
    space = draw(spaces)
    pairs = []
    for _ in range(draw(st.integers(1, 2))):
        objects = draw(st.lists(object, min_size=1, max_size=2))
        if annotated and draw(st.integers(0, 4)) == 0:
            objects.append(
                f"{draw(object)} ~ {draw(subjects)}{space}{{|{space}{draw(verbs)}{space}{draw(object)} |}}"
            )
        pairs.append(f"{draw(verbs)}{space}{f' ,{space}'.join(objects)}")
    return f"{space};{space}".join(pairs) + draw(st.sampled_from(["", " ;", f"{space};"]))


def nodes(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        predicates(inner).map("[ {} ]".format),
        st.lists(inner, max_size=3).map(lambda parts: f"( {' '.join(parts)} )"),
        # pyoxigraph takes no long strings in these
        triple_terms(st.one_of(iris, strings(short=True))),
        triple_terms(triple_terms(strings(short=True))),
        st.builds("<< {} {} {} >>".format, subjects, verbs, strings(short=True)),
    )


objects = st.recursive(st.one_of(subjects, literals, st.just("[]")), nodes, max_leaves=4)


@st.composite
def triples(draw: st.DrawFn) -> str:
    if draw(st.integers(0, 5)) == 0:
        return f"[ {draw(predicates(objects))} ]"
    return f"{draw(subjects)}{draw(spaces)}{draw(predicates(objects, annotated=True))}"


directives = st.sampled_from(
    [
        *(
            "PREFIX z: <urn:z:>",
            "prefix z: <urn:z2:>",
            "@prefix z: <urn:z3:>.",
            "@prefix z:<urn:MESSAGE:> .",
        ),
        *(
            "BASE <urn:b:>",
            "@base <urn:'>.",
            'VERSION "1.2"',
            "@version '1.1' .",
            "version '1.2-basic'",
        ),
    ]
)


@st.composite
def statements(draw: st.DrawFn, graphs: bool) -> tuple[str, bool]:
    """A statement with its dot or brace, and whether it is a directive."""
    if draw(st.integers(0, 4)) == 0:
        return draw(directives), True
    triple = draw(triples())
    if graphs and draw(st.booleans()):
        name = draw(st.one_of(st.just(""), subjects, subjects.map("GRAPH {}".format)))
        return f"{name} {{{draw(spaces)}{triple}{draw(st.sampled_from(['', ' .']))} }}", False
    return f"{triple}{draw(st.sampled_from([' .', draw(spaces) + '.']))}", False


def parse(text: str, format: Format) -> Message:
    return to_message(ox.parse(text, format=ox.RdfFormat.from_extension(format.extension)))


@pytest.mark.parametrize("syntax", [NEW, RDFM], ids=lambda syntax: syntax.label)
@pytest.mark.parametrize("format", [TURTLE, TRIG], ids=lambda format: format.name)
@given(data=st.data())
def test_messages_are_what_stands_between_delimiters(
    format: Format, syntax: object, data: st.DataObject
) -> None:
    messages = data.draw(
        st.lists(st.lists(statements(format.graphs), max_size=3), min_size=1, max_size=4)
    )
    delimiters = {
        NEW: st.sampled_from(["MESSAGE", "message", "@message .", "@message\n#\n."]),
        RDFM: st.sampled_from(["# @message", "#@message '''"]),
    }[syntax]  # type: ignore[index]
    log = HEAD if syntax is RDFM else f"{HEAD}{NEW.announcement}"
    before, expected = HEAD, []
    for message in messages:
        text = "".join(f"{statement}{data.draw(spaces)}" for statement, _ in message)
        expected.append(parse(before + text, format))
        before += "".join(f"{statement}\n" for statement, is_directive in message if is_directive)
        space = data.draw(spaces)
        log += f"{data.draw(delimiters)}{space if syntax is NEW else chr(10)}{text}"
    if syntax is NEW and len(expected[-1]) == 0:
        expected.pop()
    event(f"messages: {len(expected)}, quads: {min(sum(map(len, expected)), 3)}")
    # the first delimiter of the old syntax opens a message, of the new one it ends an empty one
    expected = expected if syntax is RDFM else [Message(), *expected]
    encoded = log.encode()
    places = data.draw(st.lists(st.integers(0, len(encoded)), max_size=5))
    for chunks in (cut(encoded, places), single_bytes(encoded)):
        reading = read(chunks, Kind(format, syntax), announced=False)  # type: ignore[arg-type]
        assert reading.error is None, reading
        assert isomorphic(reading.messages, expected)


@given(
    text=st.lists(
        st.one_of(
            st.sampled_from(
                [
                    "MESSAGE",
                    " MESSAGE ",
                    "@message",
                    ".",
                    "# @message\n",
                    "\n",
                    " ",
                    "@version",
                    "VERSION",
                ]
            ),
            st.sampled_from(
                [
                    '"',
                    "'",
                    '"""',
                    "'''",
                    "\\",
                    "<",
                    ">",
                    "<<(",
                    ")>>",
                    "{",
                    "}",
                    "[",
                    "]",
                    ":",
                    "_:",
                    "#",
                ]
            ),
            st.sampled_from(
                [
                    "<urn:a> ",
                    "a ",
                    "1",
                    "true",
                    "-",
                    "..",
                    "é",
                    "\r",
                    "'1.2-messages'",
                    '"1.2-messages"',
                    "1.1",
                ]
            ),
            st.sampled_from(
                [
                    "<urn:a> <urn:a> <urn:a> .",
                    "VERSION '1.2-messages'",
                    "\xa0",
                    "\U0001f600",
                    "\x00",
                    "\x0b",
                ]
            ),
            statements(True).map(lambda statement: statement[0]),
        ),
        max_size=12,
    ).map("".join),
    announced=st.booleans(),
    data=st.data(),
)
def test_chunks_make_no_difference(text: str, announced: bool, data: st.DataObject) -> None:
    log = ((NEW.announcement if announced else "") + HEAD + text).encode()
    kind = Kind(TRIG, NEW)
    whole = read([log], kind, announced=False)
    event(f"{len(whole.messages) > 1} {type(whole.error).__name__}")
    places = data.draw(st.lists(st.integers(0, len(log)), max_size=5))
    for chunks in (cut(log, places), single_bytes(log)):
        other = read(chunks, kind, announced=False)
        assert isomorphic(other.messages, whole.messages)
        assert str(other.error) == str(whole.error)


@given(
    text=st.lists(statements(True).map(lambda statement: statement[0]), max_size=4), joint=spaces
)
def test_nothing_is_found_in_statements(text: list[str], joint: str) -> None:
    scanner = TurtleScanner()
    document = HEAD + joint.join(text)
    assert [
        mark for mark in scanner.feed(f"{document}\n".encode()) if mark.kind is not MarkKind.VERSION
    ] == []
    parse(document, TRIG)


# --- time -----------------------------------------------------------------------------------------------------------

ENDLESS: dict[str, Callable[[int], bytes]] = {
    "a string": lambda size: b'<urn:s> <urn:p> "' + b"x " * (size // 2),
    "a long string": lambda size: b"<urn:s> <urn:p> '''" + b"''x " * (size // 4),
    "a comment": lambda size: b"#" + b" MESSAGE" * (size // 8),
    "comments": lambda size: b"#\n" * (size // 2),
    "comments behind strings": lambda size: b'"x" #\n' * (size // 6),
    "a comment behind @message": lambda size: (
        b"VERSION '1.2-messages' @message #" + b" ." * (size // 2)
    ),
    "a comment behind a string": lambda size: b'<urn:s> <urn:p> "x" #' + b" @en" * (size // 4),
    "spaces behind VERSION": lambda size: b"VERSION" + b" \n" * (size // 2),
    "an IRI": lambda size: b"<urn:" + b"x" * size,
    "a name": lambda size: b"MESSAGE" * (size // 7),
    "a name of dots": lambda size: b"x" + b"." * size,
    "a name of escapes": lambda size: b"x:" + b"\\." * (size // 2),
    "a language tag": lambda size: b'"x"@' + b"message-" * (size // 8),
    "dots": lambda size: b"." * size,
    "brackets": lambda size: b"[ <urn:p> " * (size // 10),
    "quotes": lambda size: b'"' * size,
    "statements": lambda size: b'<urn:s> <urn:p> "x"@en ; a x:y , 1.5 .\n' * (size // 40),
}


@pytest.mark.parametrize(
    ("piece", "size"),
    [(1, 10_000), (61, 60_000), (1 << 20, 60_000)],
    ids=["byte by byte", "in pieces", "whole"],
)
@pytest.mark.parametrize("case", ENDLESS)
def test_a_message_without_an_end_takes_linear_time(case: str, piece: int, size: int) -> None:
    def seconds(size: int) -> float:
        data, scanner = ENDLESS[case](size), TurtleScanner()

        def feed() -> None:
            for at in range(0, len(data), piece):
                assert [
                    mark
                    for mark in scanner.feed(data[at : at + piece])
                    if mark.kind is not MarkKind.VERSION
                ] == []

        return cpu_seconds(feed)

    assert_linear(seconds, size, 10)
