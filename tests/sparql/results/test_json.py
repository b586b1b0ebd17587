"""The shapes of results that JSON comes in, and what is no such document."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.rdf.errors import IncompleteResult
from construct_messages.rdf.terms import XSD
from construct_messages.sparql.results.json import PLAIN_BYTES, JsonDecoder
from tests.support.results import reading
from tests.support.results.reading import ByStandardLibrary, ByStructs, in_pieces

_READERS = (ByStandardLibrary, ByStructs)
BINDING = {"x": {"type": "literal", "value": "1"}}


def decode(
    document: bytes,
    size: int | None = None,
    variables: tuple[str, ...] = ("x",),
    *,
    new_decoder: type[JsonDecoder] | None = None,
) -> list[tuple[str, ...]]:
    """The solutions, as both readers decode them; each has to raise the same error."""
    if new_decoder is None:
        found = [outcome(document, size, variables, each) for each in _READERS]
        assert found[0] == found[1]
        new_decoder = ByStructs
    return reading.decode(new_decoder(variables), in_pieces(document, size))


def outcome(
    document: bytes,
    size: int | None,
    variables: tuple[str, ...],
    new_decoder: type[JsonDecoder],
) -> list[tuple[str, ...]] | str:
    try:
        return decode(document, size, variables, new_decoder=new_decoder)
    except IncompleteResult as error:
        return str(error)


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


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        st.text(max_size=4),
        st.sampled_from(["urn:a", "en", "e n", XSD + "integer", "relative", "b1", ""]),
    ),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=3,
)
MEMBERS = dict.fromkeys(("datatype", "xml:lang", "its:dir", "other"), VALUES)
BINDINGS = st.one_of(
    VALUES,
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(
                ["uri", "bnode", "literal", "typed-literal", "triple", "thing"]
            ),
            "value": st.sampled_from(["urn:a", "a", "\U0001f600", '"\\', "http://b c/"]) | VALUES,
        },
        optional=MEMBERS,
    ),
)


@given(
    solutions=st.lists(
        st.dictionaries(st.sampled_from("xyz"), BINDINGS, max_size=3), min_size=1, max_size=4
    ),
    damage=st.sampled_from(["", "", "", "\\ud800", "NaN", '"x":null,', "\x01", "01", ","]),
    at=st.floats(0, 1),
    declared=st.booleans(),
    size=st.sampled_from([None, 5]),
)
def test_the_standard_library_decodes_the_same(
    solutions: list[dict[str, Any]], damage: str, at: float, declared: bool, size: int | None
) -> None:
    head = {"vars": ["x", "y"]} if declared else {}
    document = json.dumps({"head": head, "results": {"bindings": solutions}})
    place = int(at * len(document))
    damaged = (document[:place] + damage + document[place:]).encode()
    plain, structs = (outcome(damaged, size, ("x",), each) for each in _READERS)
    assert plain == structs


def test_long_results_are_decoded_by_structs() -> None:
    solutions = [{"x": {"type": "literal", "value": str(number) * 100}} for number in range(999)]
    document = json.dumps({"results": {"bindings": solutions}}).encode()
    assert len(document) > 2 * PLAIN_BYTES
    expected = [(f'"{solution["x"]["value"]}"',) for solution in solutions]
    for size in (None, 999, PLAIN_BYTES):
        assert decode(document, size) == expected


@pytest.mark.parametrize(
    ("solutions", "is_needed"),
    [(10, False), (PLAIN_BYTES, True)],
    ids=["short", "long"],
)
def test_what_is_imported(solutions: int, is_needed: bool) -> None:
    code = (
        "import sys; from construct_messages.sparql.results.json import JsonDecoder; decoder = JsonDecoder(('x',)); "
        f"decoder.feed(b'{{\"results\":{{\"bindings\":[{{}}' + b',{{}}' * {solutions} + b']}}}}'); decoder.close(); "
        "print('msgspec' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(is_needed)
