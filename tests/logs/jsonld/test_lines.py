"""NDJSON-LD logs: exact bytes, what is refused and where, and documents that others write."""

from __future__ import annotations

import json
import random

import pytest

from construct_messages.errors import LimitExceeded, LogError, UnsupportedByFormat
from construct_messages.logs import decoder_for
from construct_messages.logs.jsonld.json_text import DEPTH, JsonReader
from construct_messages.rdf.formats import NDJSON_LD, YAML_LD
from construct_messages.rdf.terms import RDF, XSD, iri, literal, triple
from tests.support.logs.cases.jsonld import EMPTY, EX, HEAD, LINES, LOGS, ONE, O, P, S, log, message
from tests.support.logs.kinds import Kind, isomorphic, read, single_bytes, write

assert NDJSON_LD.own is not None
assert YAML_LD.own is not None
YAML = Kind(YAML_LD, YAML_LD.own)


@pytest.mark.parametrize("case", LOGS)
def test_writes(case: str) -> None:
    written, prefixes, expected = LOGS[case]
    assert log(written, prefixes) == expected


@pytest.mark.parametrize("kind", [LINES, YAML], ids=str)
@pytest.mark.parametrize("case", LOGS)
def test_reads(case: str, kind: Kind) -> None:
    written, prefixes, text = LOGS[case]
    data = text.encode() if kind is LINES else write(written, kind, prefixes)
    for chunks in ([data], single_bytes(data), [data.removesuffix(b"\n")], [b"\xef\xbb\xbf", data]):
        came = read(chunks, kind)
        assert came.error is None
        assert isomorphic(came.messages, written)


def test_the_context_names_the_prefixes() -> None:
    decoder = decoder_for(NDJSON_LD)
    list(
        decoder.feed(
            (
                HEAD + '{"@context":{"a":{"@id":"urn:a","@prefix":true},"b":"urn:b","c":"ex:c#"}}\n'
            ).encode()
        )
    )
    assert decoder.prefixes == {"ex": "http://example.org/", "a": "urn:a", "c": "ex:c#"}
    assert decoder.syntax is NDJSON_LD.own


VOCABULARY = {"https://example.org/v": {"@vocab": "http://example.org/"}}

# the log; quads of each message read before the error; line, column; what the error says
ERRORS: dict[str, tuple[bytes, list[int], tuple[int, int], str]] = {
    "a blank line": (b"{}\n\n{}\n", [0], (2, 1), "the line is blank"),
    "a blank first line": (b"\n", [], (1, 1), "the line is blank"),
    "a line of spaces": (b"{}\n \t\r", [0], (2, 1), "the line is blank"),
    "an array": (b"[{}]\n", [], (1, 1), "no JSON object: [{}]"),
    "a string": (b'{}\n"x"', [0], (2, 1), 'no JSON object: "x"'),
    "cut off": (b'{"@id": "urn:a", "urn', [], (1, 18), "Unterminated string"),
    "a comma too many": (b'{}\n{"@id": "urn:a",}\n', [0], (2, 17), "no JSON: "),
    "two objects on a line": (b"{} {}\n", [], (1, 4), "Extra data"),
    "not UTF-8": ('{}\n{"é": "'.encode() + b'\xff"}\n', [0], (2, 8), "0xFF is not UTF-8"),
    "half a character": (b'{"@id": "\\ud83d"}\n', [], (1, 10), "\\ud83d is half a character"),
    "the other half": (b'{"a": "\\\\\\ude00"}\n', [], (1, 10), "\\ude00 is half a character"),
    "a control character": (b'{"a": "\x01"}\n', [], (1, 8), "Invalid control character"),
    "a key twice": (
        b'{"@id": "urn:a", "urn:p": [{"a": 1, "b": 2, "a": 1}]}\n',
        [],
        (1, 1),
        'key "a" occurs twice',
    ),
    "no number": (b'{"urn:p": NaN}\n', [], (1, 1), "NaN is no JSON number"),
    "a number too large": (b'{"urn:p": 1e400}\n', [], (1, 1), "past the range of xsd:double"),
    "an integer too large": (
        b'{"urn:p": ' + b"9" * 5000 + b"}\n",
        [],
        (1, 1),
        "past the range of xsd:double",
    ),
    "too deep": (
        b'{"urn:p": ' + b"[" * DEPTH + b"]" * DEPTH + b"}\n",
        [],
        (1, 138),
        f"more than {DEPTH} levels",
    ),
    "too deep to end": (b'{"urn:p":' * 100_000 + b"\n", [], (1, 1153), f"more than {DEPTH} levels"),
    "an unknown context": (
        b'{}\n{"@context": "https://example.org/c"}\n{}\n',
        [0],
        (2, 1),
        "context <https://example.org/c> is not known",
    ),
    "an unknown local context": (
        b'{"@context": "https://example.org/c", "a": "b"}\n',
        [],
        (1, 1),
        "is not known",
    ),
    "a relative context": (b'{"@context": "c"}\n', [], (1, 1), "is not known"),
    "an unknown context within": (
        b'{"@context": {"@import": "https://example.org/c"}, "a": "b"}\n',
        [],
        (1, 1),
        "<https://example.org/c> is not known",
    ),
    "no context": (
        b'{"@context": 5}\n',
        [],
        (1, 1),
        "@context must be an object (invalid local context)",
    ),
    "terms in a circle": (b'{"@context": {"a": "b:x", "b": "a:x"}}\n', [], (1, 1), "cyclic"),
    "terms in a long chain": (
        json.dumps(
            {"@context": {f"t{number}": f"t{number + 1}:x" for number in range(2000)}}
        ).encode(),
        [],
        (1, 1),
        "too long a chain",
    ),
    "no node": (b'{"@id": 5}\n', [], (1, 1), '"@id" value must be a string'),
    "what is included is no node": (
        b'{"@included": {"@id": "urn:a"}}\n',
        [],
        (1, 1),
        "values of @included must expand to node objects",
    ),
    "nothing said of what is included": (
        b'{"urn:p": {"@included": [{"@id": "urn:a"}]}}\n',
        [],
        (1, 1),
        "values of @included must expand to node objects",
    ),
    "a relative datatype": (
        b'{"urn:p": {"@value": "x", "@type": "t"}}\n',
        [],
        (1, 1),
        "@type value 't' must be an IRI",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    data, before, position, words = ERRORS[case]
    for chunks in ([data], single_bytes(data)) if len(data) < 10_000 else ([data],):
        came = read(chunks, LINES, contexts=VOCABULARY)
        assert [len(each) for each in came.messages] == before
        assert isinstance(came.error, LogError)
        assert came.error.number == len(before) + 1
        assert came.error.position == position
        assert words.lower() in came.error.message.lower()


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*_: object) -> None:
        raise AssertionError("a connection is opened")

    monkeypatch.setattr("socket.socket.connect", no_network)
    monkeypatch.setattr("socket.getaddrinfo", no_network)
    for context in (
        "http://127.0.0.1:9/c",
        "https://example.org/c",
        "file:///etc/hostname",
        {"@import": "http://a/"},
    ):
        for document in (
            {"@context": context},
            {"@context": [context], "a": "b"},
            {"urn:a": {"@context": context}},
        ):
            error = read([json.dumps(document).encode()], LINES, base="http://example.org/").error
            assert error is not None
            assert "is not known, and none is fetched" in error.message


def test_the_error_for_a_context_says_how_to_give_it() -> None:
    error = read([b'{"@context": "https://example.org/c"}'], LINES).error
    assert error is not None
    assert error.hint == (
        'give it: contexts={"https://example.org/c": …}, on the command line --context https://example.org/c=FILE'
    )


def test_refuses_triple_terms() -> None:
    with pytest.raises(UnsupportedByFormat, match="message 3: NDJSON-LD has no triple terms"):
        log([ONE, EMPTY, message((S, P, O), (S, P, triple(S, P, O)))])


# --- documents that others write ----------------------------------------------------------------------------------

INTEGERS = ("5", "0", "100000000000000000000", "12345678901234567890", "123456789012345678901")

OTHERS = {
    "numbers": (
        '{"@id": "urn:s", "urn:p": [5, 5.0, -0.0, 1.5, 1e20, 12345678901234567890, '
        "123456789012345678901, 1234567890123456789012, true]}",
        [
            *(f'"{value}"^^<{XSD}integer>' for value in INTEGERS),
            *(f'"{value}"^^<{XSD}double>' for value in ("1.5E0", "1.234567890123457E21")),
            f'"true"^^<{XSD}boolean>',
        ],
    ),
    "JSON": (
        '{"@id": "urn:s", "urn:p": {"@value": {"b": [1.0, 1e30], "a": null}, "@type": "@json"}}',
        [f'"{{\\"a\\":null,\\"b\\":[1,1e+30]}}"^^<{RDF}JSON>'],
    ),
    "escapes": (
        '{"@id": "urn:s", "urn:p": "\\ud83d\\ude00\\\\ud800\\u0000"}',
        ['"\U0001f600\\\\ud800\\u0000"'],
    ),
    "what is relative is dropped": (
        '{"@id": "urn:s", "urn:p": ["x", {"@id": "a"}, {"@id": "//a/b"}], "q": 1}',
        ['"x"'],
    ),
    "what is no language tag is dropped": (
        '{"@id": "urn:s", "urn:p": ["x", {"@value": "y", "@language": "a b"}]}',
        ['"x"'],
    ),
    "a direction without a language is dropped": (
        '{"@id": "urn:s", "urn:p": {"@value": "x", "@direction": "rtl"}}',
        ['"x"'],
    ),
    "a known context": ('{"@context": "https://example.org/v", "@id": "urn:s", "p": "x"}', ['"x"']),
    "white space": ('\t{ "@id" :"urn:s", "urn:p":"x" }\r', ['"x"']),
}


@pytest.mark.parametrize("case", OTHERS)
def test_reads_what_others_write(case: str) -> None:
    text, objects = OTHERS[case]
    came = read([text.encode()], LINES, contexts=VOCABULARY)
    assert came.error is None
    (found,) = came.messages
    assert sorted(quad.object for quad in found) == sorted(objects)


def test_base() -> None:
    text = b'{"@id": "s", "urn:p": {"@id": "../o"}}\n{"@context": {"@base": "b/"}, "@id": "s", "urn:p": "x"}\n'
    came = read([text], LINES, base="http://example.org/a/b")
    assert came.messages == [
        message((iri("http://example.org/a/s"), iri("urn:p"), iri("http://example.org/o"))),
        message((iri("http://example.org/a/b/s"), iri("urn:p"), literal("x"))),
    ]


def test_a_local_context_does_not_stay() -> None:
    text = '{"@context": {"p": "urn:q"}, "p": "x"}\n{"p": "x"}\n{"@context": null, "p": "x"}\n'
    came = read([b'{"@context": {"p": "urn:p"}}\n', text.encode()], LINES)
    assert [[quad.predicate for quad in each] for each in came.messages] == [
        ["<urn:q>"],
        ["<urn:p>"],
        [],
    ]


def test_blank_nodes_are_of_their_message() -> None:
    came = read(
        [
            b'{"@id": "_:x", "urn:p": [{"urn:q": 1}, {"@id": "_:x"}]}\n{"@id": "_:x", "urn:p": "o"}\n'
        ],
        LINES,
    )
    assert [[str(quad) for quad in each] for each in came.messages] == [
        [
            "_:x_m1b0 <urn:p> _:x_m1b1 .",
            f'_:x_m1b1 <urn:q> "1"^^<{XSD}integer> .',
            "_:x_m1b0 <urn:p> _:x_m1b0 .",
        ],
        ['_:x_m2b0 <urn:p> "o" .'],
    ]


@pytest.mark.parametrize("kind", [LINES, YAML], ids=str)
@pytest.mark.parametrize("bound", [60, 100])
def test_a_message_is_bounded(kind: Kind, bound: int) -> None:
    data = write([EMPTY, ONE, message((S, P, literal("x" * bound)))], kind, EX)
    for chunks in ([data], single_bytes(data)):
        came = read(chunks, kind, message_bytes=bound)
        assert len(came.messages) == 2
        assert isinstance(came.error, LimitExceeded)
        assert f"message 3 is longer than {bound} bytes" in came.error.message


@pytest.mark.parametrize("kind", ["urn:t", "@json"])
def test_a_string_is_only_bounded_where_pyoxigraph_reads_it(kind: str) -> None:
    value = b'{"@type": "%s", "@value": "%s"}' % (kind.encode(), b"x" * (9 << 20))
    came = read([b'{"@id": "urn:s", "urn:p": ' + value + b"}"], LINES)
    assert [len(each) for each in came.messages] == ([] if kind == "@json" else [1])
    assert isinstance(came.error, LimitExceeded if kind == "@json" else type(None))


def nested(text: str, drawn: random.Random, depth: int) -> str:
    """Brackets to a depth, with strings of other brackets between them, and complete arrays beside them."""
    for _ in range(depth):
        beside = drawn.choice(["", '"]}\\"[", ', '"{", ', "[], ", "{}, "])
        text = f"[{beside}{text}]" if drawn.random() < 0.5 else f'{{"[": {text}}}'
    return text


def test_the_depth_is_that_of_brackets_outside_of_strings() -> None:
    drawn = random.Random(42)
    for depth in (*range(50, 70), *range(DEPTH - 3, DEPTH + 4), 2 * DEPTH - 1, 2 * DEPTH, 1000):
        for _ in range(10):
            text = nested("1", drawn, depth)
            if depth <= DEPTH:
                assert JsonReader().read(text, 1, 1) == json.loads(text)
            else:
                with pytest.raises(LogError, match=f"more than {DEPTH} levels"):
                    JsonReader().read(text, 1, 1)
