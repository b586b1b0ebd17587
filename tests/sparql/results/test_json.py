"""The shapes of results that JSON comes in, and what is no such document."""

from __future__ import annotations

import json
from typing import Any

import pytest

from construct_messages.errors import IncompleteResult
from construct_messages.rdf.terms import XSD
from construct_messages.sparql.results.json import JsonDecoder
from tests.support.results import reading
from tests.support.results.reading import in_pieces

BINDING = {"x": {"type": "literal", "value": "1"}}


def decode(
    document: bytes,
    size: int | None = None,
    variables: tuple[str, ...] = ("x",),
) -> list[tuple[str, ...]]:
    return reading.decode(JsonDecoder(variables), in_pieces(document, size))


@pytest.mark.parametrize("size", [None, 1, 7])
@pytest.mark.parametrize(
    ("document", "values"),
    [
        pytest.param('{"results":{"bindings":[{"x":{"value":"1","type":"literal"}}]},"head":{"vars":["x"]}}', ['"1"'],
                     id="results-before-head"),
        pytest.param('{"head":{},"results":{"bindings":[]}}', [], id="head-without-vars"),
        pytest.param('{"results":{"bindings":[{}]}}', [""], id="no-head"),
        pytest.param('{"head":{"link":["a"],"vars":["x"]},"results":{"distinct":false,"ordered":true,"bindings":'
                     '[{},{},{}]}}', ["", "", ""], id="virtuoso"),
        pytest.param('{"head":{"vars":["x"]},"results":{"bindings":[{"x":{"type":"uri","value":"urn:a"}}]},'
                     '"metadata":{"httpRequests":3,"log":[{"a":[{}]},{"b":"}]}"}]}}', ["<urn:a>"],
                     id="trailing-metadata"),
        pytest.param('{"metadata":{"bindings":[{"bindings":[1]}],"text":"\\"bindings\\":["},'
                     '"results":{"bindings":[{}]}}', [""], id="other-bindings-before"),
        pytest.param('{"head":{"vars":["y","x"]},"results":{"x":[{"a":1},{"b":2}],"bindings":[{"y":[{},{},"]"],"x":{"type":"bnode","value":"b"}}'
                     ',{"y":[{},{}]}]}}', ["_:db", ""], id="arrays-inside"),
        pytest.param('{"results":{"bindings":[{"x":{"type":"typed-literal","value":"1","datatype":"' + XSD +
                     'integer"}}]}}', [f'"1"^^<{XSD}integer>'], id="typed-literal"),
        pytest.param('{"results":{"bindings":[{"x":{"type":"literal","value":"a","datatype":"' + XSD + 'string"}}]}}',
                     ['"a"'], id="xsd-string"),
        pytest.param('{"results":{"bindings":[{"x":{"type":"literal","value":"a","xml:lang":"EN-us"}}]}}',
                     ['"a"@en-us'], id="language"),
        pytest.param('{"results":{"bindings":[{"x":{"type":"literal","value":"a","xml:lang":"ar","its:dir":"rtl"}}]}}',
                     ['"a"@ar--rtl'], id="direction"),
        pytest.param('{"results":{"bindings":[{"x":{"type":"literal","value":"\\u0001\\"\\\\\\n\\ud83d\\ude00\\/"}}]}}',
                     ['"\\u0001\\"\\\\\\n😀/"'], id="escapes"),
        pytest.param('{"results":{"bindings":[{"x":{"type":"literal","value":"},{"}},{"x":{"type":"literal",'
                     '"value":"\\\\\\"},{\\"x\\":{"}}]}}', ['"},{"', '"\\\\\\"},{\\"x\\":{"'], id="json-in-strings"),
        pytest.param('{"results":{"bindings":[{"x":{"type":"uri","value":"http://a/\\nhttp://b"}}]}}',
                     ["<http://a/%0Ahttp://b>"], id="line-break-in-iri"),
        pytest.param('{"results":{"bindings":[{"x":{"type":"uri","value":"http://x y/<a>\\""}}]}}',
                     ["<http://x%20y/%3Ca%3E%22>"], id="unescaped-iri"),
        pytest.param('{"results":{"bindings":[{"x":{"type":"bnode","value":"nodeID://b1"}}]}}',
                     ["_:D6e6f646549443a2f2f6231"], id="virtuoso-blank-node"),
        pytest.param('\ufeff \t\r\n{ "results" : { "bindings" : [ { } \r\n , \t { } ] } } \n', ["", ""],
                     id="bom-and-white-space"),
        pytest.param('{"results":{"bindings":[{}' + " " * 200 + "," + " " * 200 + "{}]}}", ["", ""],
                     id="much-white-space"),
    ],
)  # fmt: skip
def test_shapes(document: str, values: list[str], size: int | None) -> None:
    assert decode(document.encode(), size) == [(value,) for value in values]


@pytest.mark.parametrize("size", [None, 1])
@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"", "ends before its first solution"),
        (b"[]", "expected a JSON object in UTF-8"),
        (b"<html>", "expected a JSON object in UTF-8, got '<"),
        ("{}".encode("utf-16"), "expected a JSON object in UTF-8"),
        (b'{"head":{},"boolean":true}', "got the result of an ASK"),
        (b'{"head":{"vars":["x"]}}', "has no results.bindings"),
        (b'{"results":{"bindings":{}}}', "has no results.bindings"),
        (b'{"x":{"results":{"bindings":[{}]}}}', "has no results.bindings"),
        (b'{"results":{"bindings":[{},]}}', "after solution 1: unexpected '\\]"),
        (b'{"results":{"bindings":[,{}]}}', "after solution 0: unexpected ',"),
        (b'{"results":{"bindings":[{} {}]}}', "after solution [01]: "),
        (b'{"results":{"bindings":[{},,{}]}}', "after solution [01]: "),
        (b'{"results":{"bindings":[1]}}', "after solution 0: unexpected '1"),
        (b'{"results":{"bindings":[{},"x"]}}', "after solution 1"),
        (b'{"results":{"bindings":[{}]}', "damaged after its 1 solutions"),
        (b'{"results":{"bindings":[{}]}}}', "damaged after its 1 solutions"),
        (b'{"results":{"bindings":[{}],"bindings":[{}]}}', "member 'bindings' is repeated"),
        (
            b'{"results":{"bindings":[{}]},"results":{"bindings":[{}]}}',
            "member 'results' is repeated",
        ),
        (
            b'{"results":{"bindings":[{"x":{"type":"literal","value":"a\nb"}}]}}',
            "after solution 0",
        ),
        (
            b'{"results":{"bindings":[{"x":{"type":"literal","value":"\xff"}}]}}',
            "after solution 0",
        ),
        (
            b'{"results":{"bindings":[{"x":{"type":"literal","value":"\\ud800"}}]}}',
            "after solution 0",
        ),
        (b'{"results":{"bindings":[{"x":{"type":"literal"}}]}}', "solution 1 .*value"),
        (b'{"results":{"bindings":[{"x":{"type":"thing","value":"a"}}]}}', "solution 1 .*thing"),
        (b'{"results":{"bindings":[{"x":{"type":"uri","value":7}}]}}', "solution 1 .*'x.value'"),
        (
            b'{"results":{"bindings":[{"x":{"type":"literal","value":"a","xml:lang":"e n"}}]}}',
            "solution 1 .*language",
        ),
        (
            b'{"results":{"bindings":[{"x":{"type":"literal","value":"a","datatype":"d"}}]}}',
            "solution 1 .*relative",
        ),
        (
            b'{"results":{"bindings":[{"x":{"type":"bnode","value":""}}]}}',
            "solution 1 .*blank node label",
        ),
    ],
)
def test_refused(document: bytes, words: str, size: int | None) -> None:
    with pytest.raises(IncompleteResult, match=words):
        decode(document, size)


def test_nesting_without_end() -> None:
    deep = b'{"results":{"bindings":[' + b'{"y":' * 5000 + b"}" * 5000 + b"]}}"
    with pytest.raises(IncompleteResult, match=r"solution 1 .*unknown field `y`"):
        decode(deep, 4096)


def test_the_number_of_a_bad_solution() -> None:
    bad = {"x": {"type": "uri", "value": "relative"}}
    document = json.dumps({"results": {"bindings": [BINDING] * 41 + [bad]}}).encode()
    with pytest.raises(
        IncompleteResult, match="solution 42 of the JSON result: IRI <relative> is relative"
    ):
        decode(document, 100)


def test_what_surrounds_the_solutions_is_bounded() -> None:
    around: dict[str, Any] = {"metadata": "x" * (1 << 21)}
    results = {"results": {"bindings": [BINDING]}}
    for document in (around | results, results | around):
        with pytest.raises(IncompleteResult, match="more than 1048576 bytes around its solutions"):
            decode(json.dumps(document).encode(), 1 << 16)


def test_variables_with_any_name() -> None:
    variables = ("1", "class", "été", "v0", "_x")
    binding = {name: {"type": "literal", "value": name} for name in variables}
    document = json.dumps({"results": {"bindings": [binding]}}).encode()
    assert decode(document, variables=variables) == [tuple(f'"{name}"' for name in variables)]
