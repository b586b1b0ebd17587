"""YAML-LD logs: exact bytes, where documents end, the core schema, and what aliases may cost."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from construct_messages.errors import LimitExceeded, LogError
from construct_messages.logs import EncoderOptions, encoder_for
from construct_messages.logs.jsonld.json_text import DEPTH
from construct_messages.logs.yamlld.decoder import YamlReader
from construct_messages.logs.yamlld.encoder import _Dumper
from construct_messages.rdf.formats import NDJSON_LD, YAML_LD
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import Term, iri, literal
from tests.support.logs.kinds import Kind, isomorphic, read, single_bytes, write
from tests.support.strategies import messages

assert YAML_LD.own is not None
assert NDJSON_LD.own is not None
DOCUMENTS, LINES = Kind(YAML_LD, YAML_LD.own), Kind(NDJSON_LD, NDJSON_LD.own)

EX = {"ex": "http://example.org/"}
S, P, O, G = (iri(f"http://example.org/{name}") for name in "spog")  # noqa: E741 - the usual letter for an object
EMPTY, ONE = Message(), Message([Quad(S, P, O)])
HEAD = '---\n"@context":\n  "ex": "http://example.org/"\n...\n'

# messages, prefixes, and the log
LOGS: dict[str, tuple[list[Message], dict[str, str], str]] = {
    "no message": ([], {}, ""),
    "no message, prefixes": ([], EX, HEAD),
    "empty ones": ([EMPTY, EMPTY], {}, "--- {}\n...\n--- {}\n...\n"),
    "one": ([ONE], EX, HEAD + '---\n"@id": "ex:s"\n"ex:p":\n  "@id": "ex:o"\n...\n'),
    "graphs": (
        [
            Message(
                [
                    Quad(S, P, O, G),
                    Quad(S, P, literal("no")),
                    Quad(S, P, literal("---\n...\n\u2028\x85", language="en")),
                ]
            )
        ],
        EX,
        HEAD
        + '---\n"@included":\n- "@id": "ex:g"\n  "@graph":\n  - "@id": "ex:s"\n    "ex:p":\n      "@id": "ex:o"\n'
        '- "@id": "ex:s"\n  "ex:p":\n  - "no"\n  - "@value": "---\\n...\\n\\L\\N"\n    "@language": "en"\n...\n',
    ),
    "a value twice": (
        [
            Message(
                [Quad(S, P, literal("x", language="en")), Quad(O, P, literal("x", language="en"))]
            )
        ],
        {},
        '---\n"@included":\n'
        + "".join(
            f'- "@id": "http://example.org/{name}"\n  "http://example.org/p":\n'
            '    "@value": "x"\n    "@language": "en"\n'
            for name in "so"
        )
        + "...\n",
    ),
    "without the context": (
        [Message([Quad(S, P, iri("ex:o"))])],
        EX,
        HEAD
        + '---\n"@context": null\n"@id": "http://example.org/s"\n"http://example.org/p":\n  "@id": "ex:o"\n...\n',
    ),
}


@pytest.mark.parametrize("case", LOGS)
def test_writes_and_reads(case: str) -> None:
    written, prefixes, text = LOGS[case]
    encoder = encoder_for(YAML_LD, YAML_LD.own, EncoderOptions(prefixes))
    assert (
        b"".join([encoder.start(), *map(encoder.encode, written), encoder.finish()])
        == text.encode()
    )
    data = text.encode()
    for chunks in ([data], single_bytes(data), [data.removesuffix(b"\n")]):
        came = read(chunks, DOCUMENTS)
        assert came.error is None
        assert isomorphic(came.messages, written)


def test_a_message_is_whole_with_its_end_marker() -> None:
    encoded = encoder_for(YAML_LD, YAML_LD.own).encode(ONE)
    assert encoded.endswith(b"\n...\n")
    assert len(read([encoded, b"--"], DOCUMENTS).messages) == 1


# --- where documents end ------------------------------------------------------------------------------------------

A, B = '{"@id": urn:a, "urn:p": x}', '{"@id": urn:b, "urn:p": x}'
# the log, and the subjects of its messages
BOUNDARIES: dict[str, tuple[str, list[str]]] = {
    "nothing": ("", []),
    "comments": ("# a\n\n  # b", []),
    "no marker": (A, ["a"]),
    "a separator": (f"{A}\n---\n{B}\n", ["a", "b"]),
    "markers first": (f"---\n{A}\n---\n{B}", ["a", "b"]),
    "on the marker's line": (f"--- {A}\n---\t{B}\n", ["a", "b"]),
    "end markers": (f"{A}\n...\n{B}\n...\n", ["a", "b"]),
    "end markers more than needed": (f"...\n{A}\n...\n...\n---\n{B}\n...\n...\n", ["a", "b"]),
    "comments between": (f"# x\n---  # y\n{A}\n... # z\n\n# w\n---\n# v\n{B}\n...", ["a", "b"]),
    "directives": (f"%YAML 1.2\n---\n{A}\n...\n# x\n%YAML 1.2\n# y\n---\n{B}\n...\n", ["a", "b"]),
    "an end marker at last": (f"{A}\n---\n{B}\n...\n# z", ["a", "b"]),
    "CRLF": (f"---\r\n{A}\r\n...\r\n---\r\n{B}\r\n...\r\n", ["a", "b"]),
    "a byte order mark": (f"\ufeff---\n{A}\n", ["a"]),
    "only a byte order mark": ("\ufeff", []),
    "what looks like a marker": (
        '---\n"@id": urn:a\nurn:p: |\n  ---\n  ...\nurn:q: " ---"\nurn:r: a\n ---\n ...\n',
        ["aaa"],
    ),
    "more than a marker": (
        f'---\n"@id": urn:a\nurn:p:\n- ----\n- ....\n- ---x\n---\n{B}',
        ["aaa", "b"],
    ),
    "an empty message": ("{}\n---\n{}\n", ["", ""]),
}


@pytest.mark.parametrize("case", BOUNDARIES)
def test_boundaries(case: str) -> None:
    text, subjects = BOUNDARIES[case]
    for chunks in ([text.encode()], single_bytes(text.encode())):
        came = read(chunks, DOCUMENTS)
        assert came.error is None
        assert ["".join(quad.subject[5:-1] for quad in each) for each in came.messages] == subjects


@pytest.mark.parametrize(
    "end", ["", "---\n", f"---\n{B}\n...\n"], ids=["the end", "a separator", "a document"]
)
@pytest.mark.parametrize(
    "head", [f"---\n{A}\n...\n", '--- {"@context": {}}\n...\n'], ids=["message", "context"]
)
def test_end_markers_are_due_behind_the_first(head: str, end: str) -> None:
    """As a document in block style that was cut may be another document."""
    data = f'{head}---\n"@id": urn:b\nurn:p:\n- x\n{end}'.encode()
    for chunks in ([data], single_bytes(data)):
        came = read(chunks, DOCUMENTS)
        assert len(came.messages) == head.count("urn:a")
        assert isinstance(came.error, LogError)
        assert came.error.number == len(came.messages) + 1
        assert came.error.position == (head.count("\n") + 1, 1)
        assert "does not end with ..." in came.error.message


# --- values -------------------------------------------------------------------------------------------------------

VALUES = {
    "a: no": "no",
    "a: Yes": "Yes",
    "a: on": "on",
    "a: 12:30": "12:30",
    "a: 2001-12-14": "2001-12-14",
    "a: =": "=",
    "a: 1_000": "1_000",
    "a: 0b1": "0b1",
    "a: <<": "<<",
    "a: tRue": "tRue",
    "a: True": True,
    "a: FALSE": False,
    "a:": None,
    "a: ~": None,
    "a: Null": None,
    "a: 'null'": "null",
    "a: 010": 10,
    "a: +12": 12,
    "a: 0o17": 15,
    "a: 0xFf": 255,
    "a: 1e3": 1000.0,
    "a: .5": 0.5,
    "a: -1.": -1.0,
    'a: "5"': "5",
    "a: !!str 5": "5",
    "a: ! 5": "5",
    "a: !!int 5": 5,
    "a: !!float 5": 5.0,
    'a: !!null ""': None,
    "a: !!map {b: !!seq []}": {"b": []},
    "%TAG !y! tag:yaml.org,2002:\n---\na: !y!str 5": "5",
    "? a\n: b": "b",
    "b: &x c\na: [*x, *x]": ["c", "c"],
    "b: &x {c: 1}\na: [*x, *x]": [{"c": 1}, {"c": 1}],
    "b: [&x 1, &x 2]\na: *x": 2,
    "a: |\n  x\n  y\n": "x\ny\n",
    "a: >-\n  x\n  y\n": "x y",
    'a: "\\u2028\\N\\x7f\\U0001F600"': "\u2028\x85\x7f\U0001f600",
    "a: é": "é",
}


@pytest.mark.parametrize("text", VALUES)
def test_the_core_schema(text: str) -> None:
    found = YamlReader(100).read(text, 1, 1)["a"]
    assert (found, type(found)) == (VALUES[text], type(VALUES[text]))


# what ruamel.yaml, a reader of YAML 1.2, has beyond the core schema, or warns of
NOT_RUAMEL = {
    "a: 2001-12-14",
    "a: 1_000",
    "a: 0b1",
    "a: =",
    "a: <<",
    "a: ! 5",
    "b: [&x 1, &x 2]\na: *x",
}


@pytest.mark.parametrize(
    "text", [text for text in VALUES if text not in NOT_RUAMEL and not text.startswith("%")]
)
def test_another_reader_of_yaml_1_2_agrees(text: str) -> None:
    assert YAML(typ="safe", pure=True).load(text)["a"] == VALUES[text]


# a log, how many messages come before the error, its line and column, and what it says
ERRORS: dict[str, tuple[str, int, tuple[int, int], str]] = {
    "an empty document": ("---\n---\n{}\n", 0, (1, 1), "the document is empty"),
    "an empty document at the end": ("{}\n---\n", 1, (2, 1), "the document is empty"),
    "a sequence": ("---\n- a\n", 0, (1, 1), "the document is no mapping"),
    "a string": ("{}\n---\n\n# x\nabc\n", 1, (2, 1), "the document is no mapping"),
    "two values": (
        "---\n{}\n--- {}\nx: y\n",
        1,
        (4, 1),
        "no YAML: did not find expected <document start>",
    ),
    "no YAML": (
        "---\n{}\n---\na: [\nb: c\n",
        1,
        (6, 1),
        "no YAML: did not find expected ',' or ']'",
    ),
    "a tab": (
        "---\na:\n\tb: c\n",
        0,
        (3, 1),
        "no YAML: found character that cannot start any token",
    ),
    "directives without a document": (
        "%YAML 1.2\n",
        0,
        (2, 1),
        "no YAML: did not find expected <document start>",
    ),
    "directives at the end": (
        "{}\n...\n%YAML 1.2\n",
        1,
        (4, 1),
        "no YAML: did not find expected <document start>",
    ),
    "another version": (
        "%YAML 2.0\n---\n{}\n",
        0,
        (1, 1),
        "no YAML: found incompatible YAML document",
    ),
    "a bare CR": ("---\n{}\r---\r{}\n", 0, (1, 1), "a bare CR"),
    "a control character": (
        '---\na: "\x01"\n',
        0,
        (2, 5),
        "no YAML: control characters are not allowed (U+0001)",
    ),
    "an old line break": ("---\nb: c\na: x\u2028y\n", 0, (3, 5), "U+2028 is in the document"),
    "half a character": (
        '---\na: "\\ud800"\n',
        0,
        (2, 7),
        "no YAML: found invalid Unicode character escape code",
    ),
    "a key that is no string": ("---\ntrue: x\n", 0, (2, 1), "the key of a mapping is no string"),
    "a key that is a mapping": (
        "---\n? {a: b}\n: x\n",
        0,
        (2, 8),
        "the key of a mapping is no string",
    ),
    "a key twice": (
        "---\na: x\nb: y\n'a': z\n",
        0,
        (4, 1),
        'the key "a" occurs twice in one mapping',
    ),
    "a foreign tag": (
        "---\na: !date 2001-12-14\n",
        0,
        (2, 4),
        "the tag !date is none of the core schema",
    ),
    "a foreign tag of a mapping": (
        "---\na: !!set {b}\n",
        0,
        (2, 4),
        "2002:set is none of the core schema",
    ),
    "a code tag": ("---\na: !!python/name:os.system x\n", 0, (2, 4), "is none of the core schema"),
    "a tag that does not fit": ("---\na: !!int x\n", 0, (2, 4), '"x" is no !!int'),
    "not a number": ("---\na: .NaN\n", 0, (2, 4), ".NaN is no JSON number"),
    "infinity": ("---\na: -.inf\n", 0, (2, 4), "-.inf is no JSON number"),
    "a number too large": ("---\na: 1e999\n", 0, (2, 4), "past the range of xsd:double"),
    "an integer too large": (f"---\na: 0x{'f' * 300}\n", 0, (2, 4), "past the range of xsd:double"),
    "an alias of nothing": ("---\na: *x\n", 0, (2, 4), "*x is an alias of nothing before it"),
    "an alias of another document": (
        "---\nurn:a: &x y\n---\nb: *x\n",
        1,
        (4, 4),
        "*x is an alias of nothing before it",
    ),
    "an alias of itself": (
        "---\na: &x [*x]\n",
        0,
        (2, 8),
        "*x is within the node that it is an alias of",
    ),
    "too deep": ("---\na: " + "[" * DEPTH, 0, (2, 3 + DEPTH), f"nested more than {DEPTH} levels"),
    "too deep by aliases": (
        "---\na: &a0 []\n" + "".join(f"b{n}: &a{n} [*a{n - 1}]\n" for n in range(1, DEPTH + 9)),
        0,
        (DEPTH + 1, 14),
        f"nested more than {DEPTH} levels",
    ),
    "JSON-LD's own": ('{}\n---\n"@id": 5\n', 1, (2, 1), '"@id" value must be a string'),
    "an unknown context": ('---\n"@context": https://example.org/c\n', 0, (1, 1), "is not known"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    text, before, position, words = ERRORS[case]
    for chunks in ([text.encode()], single_bytes(text.encode())):
        came = read(chunks, DOCUMENTS)
        assert len(came.messages) == before
        assert isinstance(came.error, LogError)
        assert came.error.number == before + 1
        assert words in came.error.message
        assert came.error.position == position


def test_not_utf_8() -> None:
    error = read([b"{}\n---\na: x\n\xc3\xa9\xff: y\n"], DOCUMENTS).error
    assert str(error).startswith("line 4, column 2: message 2: the byte 0xFF is not UTF-8")


def test_aliases_may_not_explode() -> None:
    bomb = '---\na0: &a0 ["x"]\n' + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)
    )
    came = read([bomb.encode()], DOCUMENTS, message_bytes=10_000)
    assert isinstance(came.error, LimitExceeded)
    assert came.error.message == "aliases add more than 10000 characters to message 1"


# --- round trips --------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    messages(triple_terms=False),
    st.sampled_from([{}, EX, {"urn": "urn:x:", "no": "http://example.org/"}]),
)
def test_other_readers_of_yaml_find_the_same_documents(
    written: list[Message], prefixes: dict[str, str]
) -> None:
    log = write(written, DOCUMENTS, prefixes).decode()
    expected = [json.loads(line) for line in write(written, LINES, prefixes).split(b"\n")[:-1]]
    assert list(yaml.safe_load_all(log)) == expected
    assert list(yaml.load_all(log, Loader=yaml.CSafeLoader)) == expected
    assert list(YAML(typ="safe", pure=True).load_all(log)) == expected


@settings(max_examples=60)
@given(messages(triple_terms=False), st.sampled_from([{}, EX]))
def test_pyyaml_would_write_the_same(written: list[Message], prefixes: dict[str, str]) -> None:
    expected = b"".join(
        yaml.dump(
            json.loads(line),
            Dumper=_Dumper,
            default_flow_style=False,
            explicit_start=True,
            explicit_end=True,
            sort_keys=False,
            allow_unicode=True,
            encoding="utf-8",
            width=1 << 30,
        )
        for line in write(written, LINES, prefixes).split(b"\n")[:-1]
    )
    assert write(written, DOCUMENTS, prefixes) == expected


UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04X}"


@settings(max_examples=60)
@given(messages(triple_terms=False))
def test_every_line_of_json_is_a_document(written: list[Message]) -> None:
    lines = write(written, LINES, EX).decode().split("\n")[:-1]
    # what is no printable character, or was a line break, must be escaped in YAML
    log = "".join(f"---\n{UNPRINTABLE.sub(escaped, line)}\n" for line in lines)
    came = read([log.encode()], DOCUMENTS)
    assert came.error is None
    assert isomorphic(came.messages, written)


LONG = iri("http://example.org/" + "p" * 5000)


@pytest.mark.parametrize(
    "objects", [(Term('"o"'),), (P,), (Term('"o"'), P)], ids=["string", "object", "array"]
)
@pytest.mark.parametrize("graph", [None, G], ids=["default graph", "named graph"])
def test_long_keys(objects: tuple[Term, ...], graph: Term | None) -> None:
    long = Message(
        [Quad(S, LONG, object, graph) for object in objects]
        + [Quad(S, P, P, graph), Quad(P, LONG, S)]
    )
    log = write([long], DOCUMENTS)
    assert read([log], DOCUMENTS).messages == [long]
    (document,) = [json.loads(line) for line in write([long], LINES).splitlines()]
    assert yaml.safe_load(log) == document
    assert YAML(typ="safe", pure=True).load(log.decode()) == document
