"""The page's reader of SPARQL results in JSON, beside Python's: documents of engines and of the W3C, whole and cut."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyoxigraph as ox
import pytest

from tests.support.pages.modules import Modules
from tests.support.places import shared_path

pytestmark = pytest.mark.engine

SIZES = (1, 2, 7, 1 << 20)
"""The sizes of the pieces that documents come in."""

READ = """
import { CutError, LogError } from "./log.js";
import { SolutionsReader } from "./solutions.js";
function read(bytes, size) {
  const solutions = [];
  let variables = null;
  const reader = new SolutionsReader((solution) => {
    variables ??= reader.variables;
    solutions.push(solution);
  });
  try {
    for (let start = 0; start < bytes.length; start += size) reader.feed(bytes.subarray(start, start + size));
    return { document: reader.close(), solutions, variables, error: null };
  } catch (thrown) {
    if (!(thrown instanceof LogError)) throw thrown;
    return { document: null, solutions, variables, error: thrown instanceof CutError ? "cut" : "malformed" };
  }
}
function main({ documents, sizes }) {
  return documents.map((data) => {
    const bytes = new Uint8Array(Buffer.from(data, "base64"));
    const [first, ...others] = sizes.map((size) => read(bytes, size));
    return { ...first, differ: others.some((other) => JSON.stringify(other) !== JSON.stringify(first)) };
  });
}
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Modules:
    return Modules(tmp_path_factory.mktemp("modules"))


def read(modules: Modules, *documents: bytes, sizes: tuple[int, ...] = SIZES) -> list[Any]:
    given = [base64.b64encode(document).decode() for document in documents]
    found = modules.run(READ, {"documents": given, "sizes": sizes})
    assert not any(each.pop("differ") for each in found), "the pieces must make no difference"
    return list(found)


def expected(document: bytes) -> Any:
    """What the reader makes of a document, by Python's own reader of JSON."""
    said = json.loads(document)
    solutions = said["results"]["bindings"] if "results" in said else []
    rest = {**said, "results": {**said["results"], "bindings": []}} if "results" in said else said
    early = list(said).index("head") < list(said).index("results") if solutions else False
    return {
        "document": rest,
        "solutions": solutions,
        "variables": said["head"].get("vars") if early else None,
        "error": None,
    }


def of_pyoxigraph() -> list[bytes]:
    store = ox.Store()
    text = 'a"b\\c{[}],:\n\u2028 \U0001f600 \x00' * 30
    quads = [
        ox.Quad(ox.NamedNode("urn:s"), ox.NamedNode("urn:p"), ox.Literal(text[n:]))
        for n in range(40)
    ]
    store.extend(
        [*quads, ox.Quad(ox.BlankNode(), ox.NamedNode("urn:x,y"), ox.Literal("x", language="en"))]
    )
    queries = [
        "SELECT * { ?s ?p ?o }",
        "SELECT * { ?s <urn:none> ?o }",
        "SELECT (1 AS ?results) (2 AS ?bindings) {}",
    ]
    results = [store.query(query) for query in [*queries, "ASK {}", "ASK { FILTER(false) }"]]
    return [each.serialize(format=ox.QueryResultsFormat.JSON) for each in results]  # type: ignore[union-attr]


ODD = {
    "the head comes last": b'{"results": {"bindings": [{"a": {"type": "uri", "value": "x"}}]}, '
    b'"head": {"vars": ["a"]}}',
    "other members": b'{"head": {"vars": [], "link": ["bindings", "results"]}, "x": {"bindings": [{"y": [1, [2]]}]}, '
    b'"results": {"distinct": false, "ordered": "bindings", "bindings": [{}, {} , {}]}}',
    "escaped names": b'{"\\u0068ead": {"vars": ["\\u00e9"]}, "\\u0072esults": {"bindin\\u0067s": [{"\\u00e9": {}}]}}',
    "white space": b' \n{ "head" : { "vars" : [ ] } , "results" : { "bindings" : [ \t{ } \r\n, { } ] } } \n',
    "no variables": b'{"head": {}, "boolean": true}',
}


def test_results_of_engines(modules: Modules) -> None:
    documents = [*of_pyoxigraph(), *ODD.values()]
    assert read(modules, *documents) == [expected(document) for document in documents]


@pytest.mark.suite
def test_results_of_the_w3c(modules: Modules) -> None:
    paths = sorted(shared_path("suites/w3c/sparql").rglob("*.srj"))
    assert len(paths) > 50
    documents = [path.read_bytes() for path in paths]
    for path, found, document in zip(paths, read(modules, *documents), documents, strict=True):
        assert found == expected(document), path


@pytest.mark.slow
def test_every_cut_is_told(modules: Modules) -> None:
    """Whatever is missing at the end, but for white space; solutions before it are right."""
    for whole in (of_pyoxigraph()[2], of_pyoxigraph()[3], *ODD.values()):
        solutions = json.loads(whole).get("results", {}).get("bindings", [])
        cuts = [whole[:end] for end in range(len(whole.rstrip()))]
        for cut, found in zip(cuts, read(modules, *cuts, sizes=(1 << 20, 5)), strict=True):
            assert found["error"] == "cut", cut
            assert found["solutions"] == solutions[: len(found["solutions"])]


MALFORMED = {
    "no JSON": b"<html></html>",
    "no results": b'{"head": {}}',
    "a list": b"[]",
    "a list of results": b'["results", ["bindings", [{}]]]',
    "no comma": b'{"head": {}, "results": {"bindings": [{} {}]}}',
    "two commas": b'{"head": {}, "results": {"bindings": [{},,{}]}}',
    "a comma at the end": b'{"head": {}, "results": {"bindings": [{},]}}',
    "a comma at the beginning": b'{"head": {}, "results": {"bindings": [,{}]}}',
    "a number": b'{"head": {}, "results": {"bindings": [1]}}',
    "a string": b'{"head": {}, "results": {"bindings": ["x"]}}',
    "a list within": b'{"head": {}, "results": {"bindings": [[]]}}',
    "brackets that are no pair": b'{"head": {}, "results": {"bindings": [}]}',
    "a broken solution": b'{"head": {}, "results": {"bindings": [{"a" 1}]}}',
    "more behind it": b'{"head": {}, "results": {"bindings": [{}]}} {}',
    "no UTF-8": b'{"head": {}, "results": {"bindings": [{"a": "\xff"}]}}',
}


def test_what_is_no_result_is_refused(modules: Modules) -> None:
    found = read(modules, *MALFORMED.values())
    assert {
        name: each["error"] for name, each in zip(MALFORMED, found, strict=True)
    } == dict.fromkeys(MALFORMED, "malformed")
