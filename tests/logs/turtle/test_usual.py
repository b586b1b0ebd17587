"""Usual messages of Turtle and TriG: which ones the compiled module takes, and that it reads what the parser reads."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any, Final
from unittest.mock import patch

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from construct_messages.errors import LogError, Position
from construct_messages.logs import DecoderOptions
from construct_messages.logs.turtle.decoder import TurtleDecoder, TurtleStatements
from construct_messages.rdf.formats import RDFM, TRIG, TURTLE, Format
from construct_messages.rdf.formats.lookup import find_syntax
from tests.support.logs.fuzzer import check, inputs
from tests.support.logs.kinds import Kind, Reading, cut, isomorphic, read, single_bytes
from tests.support.logs.lines import the_compiled_module
from tests.support.logs.simple import read_simply

NEW: Final = find_syntax("1.2-messages")
HEAD: Final = "PREFIX : <http://example.org/> PREFIX p: <urn:p:> PREFIX host: <http://h> PREFIX q-1.a: <urn:q#>\n"
delimiters = pytest.mark.parametrize("syntax", [NEW, RDFM], ids=lambda syntax: syntax.label)


def log_of(messages: list[str], syntax: object) -> bytes:
    """The log of some messages behind one that declares prefixes."""
    if syntax is NEW:
        delimited = "".join(f"{message} MESSAGE\n" for message in [HEAD, *messages])
        return f"{NEW.announcement}{delimited}".encode()
    delimited = "".join(f"# @message\n{message} " for message in [HEAD, *messages])
    return f"{delimited}# @message\n".encode()


@pytest.fixture(autouse=True, scope="module")
def _the_compiled_module() -> None:
    the_compiled_module()


def both(log: bytes, kind: Kind, *chunks: list[bytes], announced: bool = False) -> int:
    """Asserts that both ways read the same; returns how many messages of the whole log the parser was given."""
    simple = read_simply([log], kind, announced=announced)
    given, parse = [], TurtleStatements.read

    def counted(
        statements: TurtleStatements, text: bytes, place: Position, number: int, *rest: Any
    ) -> list[str]:
        given.append(number)
        return parse(statements, text, place, number, *rest)

    with patch.object(TurtleStatements, "read", counted):
        whole = read([log], kind, announced=announced)
    for reading in (whole, *(read(each, kind, announced=announced) for each in chunks)):
        assert_same(reading, simple)
    return len(set(given))


def assert_same(reading: Reading, simple: Reading) -> None:
    assert [list(message) for message in reading.messages] == [
        list(message) for message in simple.messages
    ] or isomorphic(reading.messages, simple.messages)
    assert type(reading.error) is type(simple.error)
    if isinstance(simple.error, LogError):
        assert isinstance(reading.error, LogError)
        assert reading.error.position == simple.error.position
        assert str(reading.error) == str(simple.error)


USUAL: Final = {
    "nothing": "",
    "IRIs": "<urn:a> <urn:b> <http://example.org/c?d#e> .",
    "names": ":a p:b q-1.a:c , :%41 , :é , :a.b , :a:b , : ; :1 p:- .".replace("p:-", "p:_"),
    "a": ":a a :b ; a :c .",
    "numbers": ":a :b 1, -1.50 , +2 , 1e5 , 1.0E-3, 007 .",
    "booleans": ":a :b true, false .",
    "strings": r''':a :b "", "x", "é № \"\\\n\t", "é\'", "	", "\\" , """a "b"
    MESSAGE # @message
    c""", "MESSAGE . # @message" .''',
    "languages": ':a :b "x"@en , "x"@EN-us, "x"@zh-Hant , "x\\n"@fr .',
    "datatypes": ':a :b "x"^^p:d , "x"^^<urn:d> , "1"^^<http://www.w3.org/2001/XMLSchema#string> .',
    "blank nodes": "_:a :b _:b . _:b :c _:a.1 .",
    "line ends": ":a\r\n:b\r:c\n.\r",
    "no spaces": ":a<urn:b>:c,<urn:d>;<urn:e>'' .".replace("''", '""'),
    "comments": ":a # MESSAGE ' <\n :b # \"\n :c . # the end\n",
    "a semicolon before the dot": ":a :b :c ;\n. :d :e :f ; .",
    "declared again": "PREFIX p: <urn:p:> @prefix : <http://example.org/> . p:a :b p:c .",
    "twice the same": ":a :b :c , :c . :a :b :c .",
}
GRAPHS: Final = {
    "graphs": ":g { :a :b :c . :d :e 1 } GRAPH <urn:g>{:a :b :c} :a :b :c . { :d :e :f . } _:g { _:g :a :b }",
    "empty graphs": ":g {} {} GRAPH :h { }",
}
OTHERS: Final = {
    "collections": ":a :b (:c (1 [:d ()]) 'x') . (:a) :b () .",
    "anonymous nodes": "[] :b [ :c :d ; :e [] ], [] . [ :f 1 ] . [:g 2] :h 3 .",
    "triple terms": ":a :b <<( :c :d <<( [] a 'e'@en )>> )>> .",
    "a new prefix": "PREFIX n: <urn:n:> n:a :b :c . @prefix n: <urn:m:> . n:b :c :d .",
    "another namespace": "prefix p: <urn:other:> p:a :b :c .",
    "a base": "BASE <http://example.org/x/y> <a> <../b> <?c> . @base </d> . <#e> <> <//f/g> .",
    "other quotes": """:a :b 'c"', '''d'
    MESSAGE''', "" .""",
    "escaped names": r":a :b :c\,d, :\-e.f .",
    "escapes by number": r':a :b "\u00e9\U0001F600\u0022", <urn:\u0041> .',
    "users and addresses": ":a :b <http://u:p@example.org:80/>, <http://[::1]/a>, <http://é.example/> .",
    "numbers without digits before or after the point": ":a :b .5, 1.e5, -.5E-3 .",
    "unusual languages": ":a :b 'x'@de-CH-1996, 'x'@X-y--ltr, 'x'@i-Klingon .",
    "a direction": ':a :b "x"@ar--rtl .',
    "a version": 'VERSION "1.2" :a :b :c .',
    "delimiters in small letters": ":a :b 1 . message :a :b 2 . @message . :a :b 3 .",
}
LEFT: Final = {
    "a reifier": "<< :a :b :c >> :d << :e :f _:g ~ :r >> .",
    "a space before a language": ":a :b 'x' @en .",
    "an escape of a control character": r':a :b "\u0007" .',
    "a label beyond ASCII": "_:é :b :c .",
    "a graph without a label": "[] { :a :b :c }",
    "many nodes in each other": f":a :b {'[:c ' * 99}1{']' * 99} .",
    "an annotation": ":a :b :c {| :d 1 |} .",
    "a relative IRI with an escape": r"BASE <urn:a> <#\u0061> :b :c .",
}
WRONG: Final = {
    "no dot": ":a :b :c",
    "two dots": ":a :b :c . .",
    "an unknown prefix": "x:a :b :c .",
    "an IRI with a space": "<urn:a b> :b :c .",
    "a literal as a subject": '"a" :b :c .',
    "a blank predicate": ":a _:b :c .",
    "a name with a language": ":a :b :c@en .",
    "a number with a datatype": ":a :b 1^^p:d .",
    "an escape of nothing": r':a :b "\q" .',
    "an escape of a surrogate": r':a :b "\ud800" .',
    "a string over two lines": ':a :b "x\ny" .',
    "rdf:langString": ':a :b "x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> .',
    "a comma before the dot": ":a :b :c , .",
    "a delimiter within": ":a :b MESSAGE :c .",
    "a language of one letter": ':a :b "x"@a .',
    "a predicate after a comma": ":a :b :c , a :d .",
    "two subjects": ":a :b :c ; :d :e :f .",
    "an open graph": ":g { :a :b :c .",
    "a closed graph": ":a :b :c . }",
}


def with_delimiters(message: str, syntax: object) -> str:
    return message if syntax is NEW else re.sub("(?i)@?message( [.])?", "# @message\n", message)


@delimiters
@pytest.mark.parametrize("case", USUAL | OTHERS | GRAPHS)
def test_usual_messages(case: str, syntax: object) -> None:
    for format in (TRIG,) if case in GRAPHS else (TURTLE, TRIG):
        message = (USUAL | OTHERS | GRAPHS)[case]
        if case == "delimiters in small letters":
            message = with_delimiters(message, syntax)
        log = log_of([":before :it 1 .", message, ":behind :it 2 ."], syntax)
        kind = Kind(format, syntax)  # type: ignore[arg-type]
        assert both(log, kind, single_bytes(log)) == 0, "the parser is not needed"


@delimiters
@pytest.mark.parametrize("case", LEFT | WRONG)
def test_other_messages(case: str, syntax: object) -> None:
    log = log_of([":before :it 1 .", (LEFT | WRONG)[case], ":behind :it 2 ."], syntax)
    assert both(log, Kind(TRIG, syntax), single_bytes(log)) == 1  # type: ignore[arg-type]


@delimiters
@pytest.mark.parametrize("case", LEFT | WRONG)
def test_a_part_of_a_message_is_left(case: str, syntax: object) -> None:
    """The parser gets what follows, in the graph that is open, with prefixes and a base that it has not met."""
    for graph in ("", "{ ", "<g> { ", "_:g {"):
        before = f"PREFIX n: <#n> BASE <http://base/> {graph}<s> n:p _:o, [] . "
        after = f" <s> n:p _:o . {'}' * bool(graph)}"
        log = log_of([before + (LEFT | WRONG)[case] + after, "<#s> n:p n:o ."], syntax)
        base = "http://given/"
        kind = Kind(TRIG, syntax)  # type: ignore[arg-type]
        simple = read_simply([log], kind, announced=False, base=base)
        for chunks in ([log], single_bytes(log)):
            assert_same(read(chunks, kind, announced=False, base=base), simple)


def test_absolute_iris_are_kept_where_there_is_a_base() -> None:
    messages = [
        "<http://e/a/../b> :b :c .",
        "BASE <http://e/> ",
        "<http://e/./a> :b 1 . #" + "x" * 99 + "\n",
    ]
    log = log_of(messages, NEW)
    assert both(log, Kind(TURTLE, NEW), single_bytes(log)) == 0


def test_labels_are_those_of_the_simple_path() -> None:
    message = ":a :b _:z , _:y . _:y :c _:z . _:0a1b :d _:e ."
    log = log_of([message, message], NEW)
    assert both(log, Kind(TURTLE, NEW)) == 0


def test_a_comment_has_one_line() -> None:
    data = (
        f"# @message\n{HEAD}# @message\n:a :b :c . #\n @message . :a :b :d .\n# @message\n".encode()
    )
    both(data, Kind(TURTLE, RDFM), single_bytes(data))


@pytest.mark.parametrize("end", [";", ",", ".", "}", "MESSAGE"])
def test_what_delimiters_end_with_means_nothing(end: str) -> None:
    log = f"# @message\n:a :b 1 .\n# @message {end}\n:b 2 .\n# @message\n"
    data = f"# @message\n{HEAD}{log}".encode()
    both(data, Kind(TURTLE, RDFM), single_bytes(data))


def test_a_namespace_may_end_within_a_host() -> None:
    log = log_of([":a :b 1 .", "host::80 :b host:x . host::8 :b 1 ."], NEW)
    assert both(log, Kind(TURTLE, NEW), single_bytes(log)) == 0


def test_a_new_namespace_holds_for_what_follows() -> None:
    log = log_of(
        ["p:a p:b p:c .", "PREFIX p: <urn:new:>" + " " * 99, "p:a p:b p:c .", "p:a p:b p:d ."], NEW
    )
    assert both(log, Kind(TURTLE, NEW), single_bytes(log)) == 0


def test_a_message_is_there_with_its_delimiter() -> None:
    reading = TurtleDecoder(TURTLE, NEW, DecoderOptions())
    for _ in range(3):
        assert len(list(reading.feed(b"<urn:a> <urn:b> <urn:c> .\nMESSAGE\n"))) == 1


def test_long_messages_and_namespaces_are_left() -> None:
    """A few bytes must not make terms of many."""
    log = (
        f"{NEW.announcement}PREFIX : <urn:{'x' * 5000}:> MESSAGE\n{':a :b :c . ' * 3000} MESSAGE\n"
    )
    simple = read_simply([log.encode()], Kind(TURTLE, NEW), announced=False)
    assert_same(read([log.encode()], Kind(TURTLE, NEW), announced=False), simple)


# --- anything -------------------------------------------------------------------------------------------------------

WORDS: Final = [
    *(
        ":a",
        "p:b",
        "q-1.a:c",
        "x:y",
        "<urn:a>",
        "<urn:b c>",
        "_:a",
        "_:b.c",
        "a",
        "true",
        "1",
        "-1.5",
        "1e5",
    ),
    *(
        '"x"',
        r'"\"\\"',
        '"\\u00e9"',
        '"""x"y\n"""',
        "'x'",
        '"',
        "'",
        '"""',
        "@en",
        "@EN",
        "^^p:d",
        "^^",
        "\\",
    ),
    *(
        "MESSAGE",
        "message",
        "@message .",
        "# @message\n",
        "# MESSAGE\n",
        "#\n",
        "#",
        "VERSION",
        '"1.2"',
    ),
    *(
        "PREFIX p: <urn:p:>",
        "PREFIX p: <urn:z:>",
        "@prefix : <urn:y:> .",
        "PREFIX",
        "BASE <http://e/a/>",
    ),
    *("[", "]", "(", ")", "<<(", ")>>", "{", "}", "GRAPH", "é", "\r", "\t", "%41", "//"),
    *(
        ":a :b :c .",
        ':a :b 1 ; p:c "x"@en , _:a .',
        ":g { :a :b :c }",
        "<urn:a> <urn:b> <urn:c> . MESSAGE\n",
    ),
]
words = st.lists(
    st.tuples(
        st.one_of(st.sampled_from(WORDS), st.sampled_from([".", ";", ",", ":a", "p:b", "MESSAGE"])),
        st.sampled_from(["", " ", " ", " ", "\n"]),
    ),
    max_size=25,
).map(lambda pairs: "".join(word + space for word, space in pairs))


@pytest.mark.slow
@settings(max_examples=4 * settings.default.max_examples)
@given(
    text=words,
    format=st.sampled_from([TURTLE, TRIG]),
    syntax=st.sampled_from([NEW, RDFM]),
    data=st.data(),
)
def test_both_paths_read_the_same(
    text: str, format: Format, syntax: object, data: st.DataObject
) -> None:
    log = log_of([":before :it 1 .", text, ":behind :it 2 ."], syntax)
    places = data.draw(st.lists(st.integers(0, len(log)), max_size=4))
    end = data.draw(st.one_of(st.just(len(log)), st.integers(0, len(log))))
    parsed = both(log[:end], Kind(format, syntax), cut(log[:end], places), single_bytes(log[:end]))  # type: ignore[arg-type]
    event(f"messages for the parser: {min(parsed, 4)}")


@pytest.mark.slow
@pytest.mark.parametrize("format", [TURTLE, TRIG], ids=lambda format: format.extension)
def test_mutated_logs_are_read_the_same(format: Format) -> None:
    """The fuzzer compares both paths; its long run is `make fuzz-logs`."""
    for input in islice(inputs(format.extension, seed=28), 300):
        check(input)
