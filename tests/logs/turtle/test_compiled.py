"""The compiled module reads and writes what Python does, or leaves messages to it."""

from __future__ import annotations

import gc
import sys
from functools import lru_cache
from typing import Final, NamedTuple

import pyoxigraph as ox
import pytest
from hypothesis import event, given, reject, settings
from hypothesis import strategies as st

from construct_messages.errors import UnsupportedByFormat
from construct_messages.logs import EncoderOptions
from construct_messages.logs.turtle.decoder import _mended
from construct_messages.logs.turtle.encoder import TurtleEncoder
from construct_messages.rdf import compiled
from construct_messages.rdf.compiled import Wire
from construct_messages.rdf.formats import RDFM, TRIG, TURTLE, Format
from construct_messages.rdf.formats.lookup import find_syntax
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message, Quad, of_terms
from construct_messages.rdf.terms import RDF, XSD, Term
from tests.support.logs.kinds import Kind, isomorphic
from tests.support.logs.lines import the_compiled_module
from tests.support.logs.simple import read_simply
from tests.support.strategies import messages

NEW: Final = find_syntax("1.2-messages")
PREFIXES: Final = {"": "http://example.org/", "p": "urn:p:", "é-1.a": "urn:q#", "h": "http://h"}
BASE: Final = "http://user@[::1]:80/a/b;c?d#e"
HEAD: Final = (
    "".join(f"PREFIX {prefix}: <{iri}> " for prefix, iri in PREFIXES.items()) + f"BASE <{BASE}> "
)
MOST: Final = 1 << 20
READ: Final = [
    f':a :b """x\n"y\\\' "" z\\t""" , "\t"@en-US , """é"""@De, "x"^^<{XSD}string>, """"""^^p:d .',
    ':a p:b <urn:c> , "x\\n\\"é"@en ; a é-1.a:é , "x"^^p:d .',
    '_:a.b :b -1.50,true,"x"^^<urn:d>;p:c%41 1e5 , false , +7 ; .',
    "# a é MESSAGE \"\n:a:b<urn:p>:d. :c <urn:p> h::80 # '\n, p:1 .\tPREFIX p: <urn:p:> @prefix\n:<http://example.org/>.",
    "[ :a [] ; p:b ( 1 '2'[:c :d;;]() ) ]. ( :a(_:a)) a[];:b :c. []<urn:a>(),_:b.c.",
    r":a :b '\u00e9\U0001F600\u0022\\', 'x'@En-Latn-us, 'x'^^<d> , '''a N \'b'''@ar--rtl .".replace(
        "N", '\n"'
    ),
    r"<> <#a> <b>,</c/../d>,<../../e?f#g>,<?h>,<./i/.>,<//j/k>,<%41/..>, <j:k> .",
    "base <l/m>PREFIX : #x\n<n> @base <http://o>.\n@prefix e.f:<#>.<p>e.f: :q. <r> a e.f:s .",
    r":a\,b\-.d :\~c <http://u:v@w/x>,<http://é.example/>,<http://[1:2::3:4]/>,:d\%41\.\+.e .",
    ':a :b <<(:c :d "e"@fr--ltr)>>,<<( []a<<( _:b :c 1 )>>)>>; :c"x"@de-CH-1996,<http://[::1]/\\u00e9> .',
]
GRAPHS: Final = "GRAPH<urn:g>{:a :b :c}:g#\n{ _:a :b 1 ; :c 2. :d :e '' .}{}graph _:g {:a :b[:c 1].} <i> {[] :b(_:g) }"
OTHERS: Final = [
    "<< :a :b :c >> :d :e .",
    ":a :b :c {| :d :e |} .",
    r"<\u0061> :b :c .",
    ":a :b 'x' @en .",
    r':a :b "\u0007" .',
    "_:é :b :c .",
    "PREFIX é: <urn:z:>",
    f":a :b {'[:c ' * 99}1{']' * 99} .",
    "[] { :a :b :c }",
    ":a :b :c ,",
    "{ :a :b",
]
PIECES: Final = [
    *(bytes([each]) for each in b"<>_:.,;\"'\\@^#%{}() \n\r\t\0\x0b-+a1eZ"),
    *(b"\xc3", b"\xa9", b"\xed\xa0\x80", b"\xef\xbf\xbe", b"\xe0\xa5\xa4"),
    *(b"^^", b" .\n", b"MESSAGE\n", b"# @message\n", b"true", b"PREFIX ", b"GRAPH "),
]
each_way = pytest.mark.parametrize(
    ("graphs", "by_comment"),
    [(True, False), (True, True), (False, False)],
    ids=["TriG", "TriG with comments", "Turtle"],
)


def document(messages: list[str], by_comment: bool) -> bytes:
    return "".join(
        f"{each}{' # @message x' if by_comment else ' MESSAGE'}\n" for each in messages
    ).encode()


class Read(NamedTuple):
    """What the compiled module read of a text."""

    messages: list[list[Term | None]]
    # the terms of the open message, the size of what was read, and where that message begins
    left: list[Term | None]
    size: int
    start: int
    base: str | None
    graph: str


def read(
    wire: Wire,
    text: bytes,
    graphs: bool = True,
    by_comment: bool = False,
    *,
    prefixes: dict[str, str] = PREFIXES,
    base: str | None = BASE,
    is_whole: bool = False,
    restricted: bool = False,
    most: int = MOST,
) -> Read:
    found = wire.turtle_messages(
        text,
        is_whole,
        graphs,
        not is_whole,
        by_comment,
        restricted,
        dict(prefixes),
        {},
        Labels("x").in_message,
        None,
        _mended,
        base,
        "",
        None,
        1,
        0,
        most,
        most,
    )
    return Read(*found[:6])


def alike(wire: Wire, text: bytes, graphs: bool, by_comment: bool) -> int:
    """Asserts that pyoxigraph reads the same messages; returns their number."""
    messages, left, size, start, _, graph = read(wire, text, graphs, by_comment)
    assert start <= size
    if size == 0:
        assert not messages
        assert not left
        return 0
    log = text[:size] + b"\n" + b"}" * bool(graph)
    compare(log, graphs, by_comment, tuple(map(tuple, [*messages, left])))
    return len(messages)


@lru_cache(1 << 14)  # what stops the reading at the same place leaves the same text before it
def compare(
    log: bytes, graphs: bool, by_comment: bool, found: tuple[tuple[Term | None, ...], ...]
) -> None:
    head, kind = (HEAD, Kind(TRIG if graphs else TURTLE, RDFM if by_comment else NEW))
    log = document([head], by_comment) + log
    log = b"# @message\n" + log if by_comment else NEW.announcement.encode() + log
    reading = read_simply([log], kind, shared_labels=False)
    assert reading.error is None
    last = [Message()] * (len(reading.messages) == len(found))
    assert isomorphic([*reading.messages, *last][1:], [of_terms(list(each)) for each in found])


@pytest.fixture
def wire() -> Wire:
    return the_compiled_module()


@each_way
def test_usual_messages_are_read(wire: Wire, graphs: bool, by_comment: bool) -> None:
    usual = ["", *READ, *[GRAPHS] * graphs]
    assert alike(wire, document(usual, by_comment), graphs, by_comment) == len(usual)
    for other in OTHERS if graphs else [*OTHERS, GRAPHS]:
        assert alike(wire, document([READ[0], other, ""], by_comment), graphs, by_comment) == 1


@pytest.mark.slow
@each_way
@pytest.mark.parametrize("part", range(4))
def test_cut_and_changed_at_every_byte(
    wire: Wire, graphs: bool, by_comment: bool, part: int, pytestconfig: pytest.Config
) -> None:
    """Each piece at every second byte; at every byte with `make sanitize`."""
    step = 1 if pytestconfig.getoption("--combinations") else 2
    for each in [*READ, GRAPHS][part::4]:
        text = document([each, ""], by_comment)
        for place in range(len(text)):
            alike(wire, text[:place], graphs, by_comment)
            for piece in PIECES[place % step :: step]:
                alike(wire, text[:place] + piece + text[place:], graphs, by_comment)
                if len(piece) == 1:
                    alike(wire, text[:place] + piece + text[place + 1 :], graphs, by_comment)


@each_way
@settings(max_examples=50)
@given(
    parts=st.lists(
        st.sampled_from([each.encode() for each in [*READ, GRAPHS, *OTHERS]])
        | st.sampled_from([*PIECES, b" MESSAGE\n", b"\n# @message\n"])
        | st.binary(max_size=4),
        max_size=12,
    )
)
def test_any_bytes(graphs: bool, by_comment: bool, parts: list[bytes]) -> None:
    text = b" ".join(parts)
    event(f"messages: {alike(the_compiled_module(), text, graphs, by_comment)}")


def test_limits(wire: Wire) -> None:
    """A few bytes must not make terms of many."""
    text = document([":a :b :c .", ":a :b :c, :d."], by_comment=False)
    nothing = ([], [], 0, 0, BASE, "")
    assert read(wire, text, prefixes={"": "urn:" + "x" * 300}) == nothing
    assert read(wire, b"<a> <a> <a> . ", base="http://" + "x" * 300).size == 0
    assert read(wire, f"BASE <http://{'x' * 300}/> ".encode()) == nothing
    assert read(wire, text, prefixes={}) == nothing
    assert len(read(wire, text, most=90).messages) == 1
    assert read(wire, b":a :b <<( :c :d :e )>> . ", restricted=True) == nothing
    assert read(wire, b":a :b 'x'@en--ltr . ", restricted=True) == nothing


def test_what_is_open(wire: Wire) -> None:
    """What was read of a message whose end is not there."""
    assert read(wire, b"<urn:g> { <urn:a> a <urn:b> . <urn:c>").graph == "<urn:g>"
    assert read(wire, b"{ <urn:a> a <urn:b> . <urn:c>").graph == "{"
    # nothing else can open that graph
    assert read(wire, b"_:g { <urn:a> a <urn:b> . <urn:c>").size == 0
    found = read(wire, b"<urn:a> a 1 . MESSAGE BASE <urn:b> <urn:a> a 2 . <urn:a> a 3")
    assert (len(found.messages), len(found.left), found.start, found.size) == (1, 4, 21, 48)
    assert found.base == "urn:b"
    text = b"<urn:a> a <urn:b>. # x\n"
    assert read(wire, text[:-5]).size == 0  # the next character may belong to it
    assert read(wire, text, is_whole=True).size == len(text)


def test_many_prefixes(wire: Wire) -> None:
    """More than are remembered."""
    prefixes = {f"p{number}": f"urn:{number}:" for number in range(500)}
    text = document([f"p{number}:a p{499 - number}:b 1 ." for number in range(500)], False)
    messages = read(wire, text, graphs=False, prefixes=prefixes).messages
    assert [message[:2] for message in messages] == [
        [f"<urn:{number}:a>", f"<urn:{499 - number}:b>"] for number in range(500)
    ]


references = st.lists(
    st.sampled_from(["", ".", "..", "a", "b:c", "%41", "/", "//", "?", "#", "é", "u@h", "[::1]:8"]),
    max_size=9,
).map("".join)


@given(
    base=st.sampled_from(["http://a/b/c/d;p?q#f", "http://a", "http://a?b", "file:///a", "urn:a"])
    | references.map("http://{}".format),
    reference=references,
)
def test_relative_iris_are_resolved_as_pyoxigraph_resolves_them(base: str, reference: str) -> None:
    """RFC 3986, section 5.2. What the compiled module does not know is left to pyoxigraph."""
    text = f"<urn:a> <urn:b> <{reference}> . ".encode()
    try:
        parser = ox.parse(text, format=ox.RdfFormat.TURTLE, base_iri=base)
    except ValueError:
        reject()  # no base, which a decoder refuses before it asks the module
    terms = read(the_compiled_module(), text, base=base).left
    if terms:
        (quad,) = parser
        assert str(quad.object) == terms[2]
    event(f"known: {bool(terms)}")


@pytest.mark.parametrize("base", ["http://a/b/c/d;p?q", "http://a"])
def test_the_references_of_the_standard_are_known(wire: Wire, base: str) -> None:
    """RFC 3986, section 5.4, but those that are absolute."""
    for reference in REFERENCES:
        text = f"<urn:a> <urn:b> <{reference}> . ".encode()
        (quad,) = ox.parse(text, format=ox.RdfFormat.TURTLE, base_iri=base)
        assert read(wire, text, base=base).left[2] == str(quad.object)


REFERENCES: Final = [
    *("g", "./g", "g/", "/g", "//g", "?y", "g?y", "#s", "g#s", "g?y#s", ";x", "g;x", "g;x?y#s"),
    *("", ".", "./", "..", "../", "../g", "../..", "../../", "../../g", "../../../g"),
    *("../../../../g", "/./g", "/../g", "g.", ".g", "g..", "..g", "./../g", "./g/.", "g/./h"),
    *("g/../h", "g;x=1/./y", "g;x=1/../y", "g?y/./x", "g?y/../x", "g#s/./x", "g#s/../x"),
]


# --- writing --------------------------------------------------------------------------------------------------------

NAMESPACES: Final = {
    "ex": "http://example.org/",
    "": "http://example.org/a",
    "xsd": XSD,
    "é": "http://é.example/#",
    "urn": "urn:",
}
SUBJECT, PREDICATE = Term("<http://example.org/s>"), Term("<http://example.org/p>")
TERMS: Final = [
    *(f"<http://example.org/{local}>" for local in ("ab.c", "a.", "-", "%41:é", "b%4", "ü/a", "")),
    *("<http://é.example/#日>", "<urn:x>", "<other:x>", f"<{RDF}type>", "_:b", "_:é.1"),
    *(f'"{value}"^^<{XSD}integer>' for value in ("0", "-1", "120", "-0", "01", "+1", "", "1x")),
    *(f'"{value}"^^<{XSD}decimal>' for value in ("0.0", "-0.50", "1.", ".5", "00.1", "12.3")),
    *(f'"{value}"^^<{XSD}double>' for value in ("1.0E0", "-2.5E-10", "1.0e0", "12.0E1", "1.0E01")),
    *(f'"{value}"^^<{XSD}boolean>' for value in ("true", "false", "1", "truest")),
    *('"é\\n\\" \\\\"', '"x"@en', '"x"@ar--rtl', '"x\0"', '"--ltr"', '"x"^^<http://example.org/d>'),
    "<<( <urn:a> <urn:b> <urn:c> )>>",
]


def encoded(encoder: TurtleEncoder, log: list[Message]) -> list[bytes | str]:
    """What is written for each message, or why it is refused."""
    found: list[bytes | str] = []
    for message in log:
        try:
            found.append(encoder.encode(message))
        except UnsupportedByFormat as error:
            found.append(str(error))
    return found


def written_alike(log: list[Message], format: Format, label: str = "1.2-messages") -> None:
    def encoder() -> TurtleEncoder:
        return TurtleEncoder(format, find_syntax(label), EncoderOptions(NAMESPACES))

    found = encoded(encoder(), log)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "wire", None)
        assert encoded(encoder(), log) == found


def packed(namespaces: dict[str, str]) -> bytes:
    return "".join(f"{iri}\0{prefix}\0" for prefix, iri in namespaces.items()).encode()


@given(
    log=messages(),
    format=st.sampled_from([TRIG, TURTLE]),
    label=st.sampled_from(["1.2-messages", "rdfm"]),
)
def test_any_messages_are_written_alike(log: list[Message], format: Format, label: str) -> None:
    written_alike(log, format, label)


def test_terms_are_written_alike(wire: Wire) -> None:
    for term in TERMS[:-1]:
        changed = {
            term[:place] + piece + term[place + cut :]
            for place in range(len(term))
            for piece in ["", "é", "0", ">"]
            for cut in (0, 1)
        }
        log = [
            Message(
                [
                    Quad(SUBJECT, PREDICATE, Term(each)),
                    Quad(Term(each), PREDICATE, SUBJECT, Term(each)),
                ]
            )
            for each in (term, *changed)
            if each[:2] not in ("", "<<")
        ]
        written_alike(log, TRIG)
        assert wire.turtle_statements(log[0].statements, b"", True) or "--rtl" in term


def test_groups_are_in_order_of_appearance() -> None:
    terms = [Term(f"<urn:{number}>") for number in range(40)]
    quads = [
        Quad(terms[3 * number % 5], terms[number % 7], terms[number], [None, *terms][number % 3])
        for number in range(40)
    ]
    written_alike([Message(quads), Message(quads[::-1]), Message()], TRIG)


def test_what_is_left_to_python(wire: Wire) -> None:
    statement = (SUBJECT, PREDICATE, SUBJECT, SUBJECT)
    assert wire.turtle_statements([statement], b"", True)
    assert wire.turtle_statements([statement], b"", False) is None
    assert wire.turtle_statements([(*statement[:3], None)] * 70_000, b"", False) is None
    assert (
        wire.turtle_statements([statement], packed({str(n): "urn:" for n in range(200)}), True)
        is None
    )
    for broken in (b"urn:", b"\0x\0", b"urn:\0"):
        assert wire.turtle_statements([statement], broken, True) is None
    for term in ("", "x", '"', "<", "\ud800", '"x>', 1, None):
        assert wire.turtle_statements([(SUBJECT, PREDICATE, term, None)], b"", True) is None  # type: ignore[list-item]


# --- both ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_nothing_is_left_in_memory(wire: Wire) -> None:
    statements = [(SUBJECT, PREDICATE, Term(term), SUBJECT) for term in TERMS]
    text = document([*READ, GRAPHS] * 50, by_comment=False)
    ends = (b"", b":a :b \xff", b":g { :a :b :c , ", b"_:g { :a ([ :b <<( :c :d 1", b"<a> a << :a")
    for broken in (text[:-20], *(text + end for end in ends)):
        for most in (MOST, 20):
            for _ in range(2):  # the first time, Python keeps some memory for itself
                gc.collect()
                before = sys.getallocatedblocks()
                for _ in range(50):
                    read(wire, broken, most=most)
                    wire.turtle_statements(iter(statements[:-1]), packed(NAMESPACES), True)
                    wire.turtle_statements(iter(statements), packed(NAMESPACES), True)
                gc.collect()
                left = sys.getallocatedblocks() - before
            assert left < 50


def test_labels_that_are_no_text(wire: Wire) -> None:
    def given(in_message: object, in_log: object) -> tuple[object, ...]:
        flags = (False, True, True, False, False)
        rest = (_mended, None, "", None, 1, 0, MOST, MOST)
        return (b"_:a a _:a, [] . ", *flags, {}, {}, in_message, in_log, *rest)

    for in_message, in_log in [
        (lambda _: {}, None),
        (lambda _: 1, None),
        (lambda _: {"_:a": 1}, None),
        (Labels("x").in_message, lambda _: 1),
        (lambda _: 1 / 0, None),
    ]:
        with pytest.raises((TypeError, KeyError, AttributeError, ZeroDivisionError)):
            wire.turtle_messages(*given(in_message, in_log))  # type: ignore[arg-type, call-arg]


@pytest.mark.parametrize("arguments", [(), ("text", {}, 1, 1, 1), (b"", [], 1, 1, 1)])
def test_wrong_arguments(wire: Wire, arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        wire.turtle_messages(*arguments)  # type: ignore[arg-type, call-arg]
    with pytest.raises(TypeError):
        wire.turtle_statements(*arguments[::-1])  # type: ignore[arg-type, call-arg]
    wrong: dict[str, str] = {"": 1}  # type: ignore[dict-item]
    assert read(wire, b":a :b 1 . MESSAGE ", prefixes=wrong).size == 0
