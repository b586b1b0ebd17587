"""The compiled module reads and writes what Python does, or leaves messages to it."""

from __future__ import annotations

import gc
import sys
from typing import Final

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from construct_messages.errors import UnsupportedByFormat
from construct_messages.logs import EncoderOptions
from construct_messages.logs.turtle.encoder import TurtleEncoder
from construct_messages.rdf import compiled
from construct_messages.rdf.compiled import Wire
from construct_messages.rdf.formats import RDFM, TRIG, TURTLE, Format
from construct_messages.rdf.formats.lookup import find_syntax
from construct_messages.rdf.message import Message, Quad, of_terms
from construct_messages.rdf.terms import RDF, XSD, Term
from tests.support.logs.kinds import Kind, isomorphic
from tests.support.logs.lines import the_compiled_module
from tests.support.logs.simple import read_simply
from tests.support.strategies import messages

NEW: Final = find_syntax("1.2-messages")
PREFIXES: Final = {"": "http://example.org/", "p": "urn:p:", "é-1.a": "urn:q#", "h": "http://h"}
HEAD: Final = "".join(f"PREFIX {prefix}: <{iri}> " for prefix, iri in PREFIXES.items())
MOST: Final = 1 << 20
READ: Final = [
    f':a :b """x\n"y\\\' "" z\\t""" , "\t"@en-US , """é"""@De, "x"^^<{XSD}string>, """"""^^p:d .',
    ':a p:b <urn:c> , "x\\n\\"é"@en ; a é-1.a:é , "x"^^p:d .',
    '_:a.b :b -1.50,true,"x"^^<urn:d>;p:c%41 1e5 , false , +7 ; .',
    "# a é MESSAGE \"\n:a:b<urn:p>:d. :c <urn:p> h::80 # '\n, p:1 .\tPREFIX p: <urn:p:> @prefix\n:<http://example.org/>.",
]
GRAPHS: Final = (
    "GRAPH<urn:g>{:a :b :c}:g#\n{ _:a :b 1 ; :c 2. :d :e '' .}{}_:g {:a :b :c.}".replace("''", '""')
)
OTHERS: Final = [
    ":a :b (:c) .",
    "[] :b :c .",
    "<a> :b :c .",
    r':a :b "\u00e9" .',
    ":a :b :c\\,d .",
    "PREFIX p: <urn:z:>",
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


def alike(wire: Wire, text: bytes, graphs: bool, by_comment: bool) -> int:
    """Asserts that pyoxigraph reads the same messages; returns their number."""
    messages, size, has_blanks = wire.turtle_messages(text, PREFIXES, graphs, by_comment, MOST)
    if not messages:
        assert size == 0
        return 0
    assert has_blanks or not any(term and term[0] == "_" for each in messages for term in each)
    head, kind = (HEAD, Kind(TRIG if graphs else TURTLE, RDFM if by_comment else NEW))
    log = document([head], by_comment) + text[:size] + b"\n"
    log = b"# @message\n" + log if by_comment else NEW.announcement.encode() + log
    reading = read_simply([log], kind, shared_labels=False)
    assert reading.error is None
    found = [of_terms(message) for message in messages]  # type: ignore[arg-type] # terms, as above
    assert isomorphic(reading.messages[1 : 1 + len(found)], found)
    return len(messages)


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
def test_cut_and_changed_at_every_byte(wire: Wire, graphs: bool, by_comment: bool) -> None:
    for each in [*READ, GRAPHS]:
        text = document([each, ""], by_comment)
        for place in range(len(text)):
            alike(wire, text[:place], graphs, by_comment)
            for piece in PIECES:
                alike(wire, text[:place] + piece + text[place:], graphs, by_comment)
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
    long = {"": "urn:" + "x" * 300}
    assert wire.turtle_messages(text, long, True, False, MOST) == ([], 0, False)
    messages, *_ = wire.turtle_messages(text, PREFIXES, True, False, 90)
    assert len(messages) == 1
    assert wire.turtle_messages(text, {}, True, False, MOST) == ([], 0, False)


def test_many_prefixes(wire: Wire) -> None:
    """More than are remembered."""
    prefixes = {f"p{number}": f"urn:{number}:" for number in range(500)}
    text = document([f"p{number}:a p{499 - number}:b 1 ." for number in range(500)], False)
    messages, *_ = wire.turtle_messages(text, prefixes, False, False, MOST)
    assert [message[:2] for message in messages] == [
        [f"<urn:{number}:a>", f"<urn:{499 - number}:b>"] for number in range(500)
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
    for broken in (text, text + b":a :b \xff", text[:-20], text + b":g { :a :b :c , "):
        for most in (MOST, 20):
            for _ in range(2):  # the first time, Python keeps some memory for itself
                gc.collect()
                before = sys.getallocatedblocks()
                for _ in range(50):
                    wire.turtle_messages(broken, PREFIXES, True, False, most)
                    wire.turtle_statements(iter(statements[:-1]), packed(NAMESPACES), True)
                    wire.turtle_statements(iter(statements), packed(NAMESPACES), True)
                gc.collect()
                left = sys.getallocatedblocks() - before
            assert left < 50


@pytest.mark.parametrize(
    "arguments", [(), ("text", {}, 1, 1, 1), (b"", [], 1, 1, 1), (b"", {}, 1, 1)]
)
def test_wrong_arguments(wire: Wire, arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        wire.turtle_messages(*arguments)  # type: ignore[arg-type, call-arg]
    with pytest.raises(TypeError):
        wire.turtle_statements(*arguments[::-1])  # type: ignore[arg-type, call-arg]
    assert wire.turtle_messages(b":a :b 1 . MESSAGE ", {"": 1}, True, True, 9) == ([], 0, False)  # type: ignore[dict-item]
