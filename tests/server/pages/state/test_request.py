"""Requests of the page as values: what addresses name, and how queries are titled. Run in Node.js."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pages.modules import Modules

pytestmark = pytest.mark.engine

SCRIPT = """
import { described, fragmentOf, linkIn, requestIn, titleOf } from "./request.js";
const main = ({ links, values, titles }) => ({
  links: links.map(([search, hash]) => linkIn({ search, hash })),
  again: links.map(([search, hash]) => linkIn({ search: "", hash: fragmentOf(linkIn({ search, hash }), "table") })),
  requests: values.map(requestIn),
  titles: titles.map((query) => titleOf({ query })),
  described: described([["distinct", "true"], ["group-by", "a"], ["max-messages", "2"], ["timeout", "5"]]),
});
"""
LINKS = (
    ("?query=ASK%20%7B%7D%0D%0A&group-by=%3Fb&group-by=a&distinct=true&format=json", "#view=map"),
    ("?query=ignored&distinct=true", "#endpoint=a/sparql&query=ASK+{}&default-graph-uri=urn:g"),
    ("", "#results"),
)
VALUES = (
    {"endpoint": "a", "query": "b\r\nc", "parameters": [["update", "x"], ["lenient", "true"]]},
    {"endpoint": "a", "query": "b"},
    *({"endpoint": 1, "query": "b"}, {"endpoint": "a", "query": "b", "parameters": [["c"]]}),
    *(None, [], "x"),
)
TITLES = {
    "# Companies \nASK {}": "Companies",
    "PREFIX a: <urn:a> BASE <urn:b>\nprefix : <urn:c>\nSELECT  *\n{ }": "SELECT * { }",
    "PREFIX a: <urn:a>\n\n# of a\nBASE <urn:b> ASK {\n  ?s ?p ?o }": "ASK { ?s ?p ?o }",
    "PREFIX a: <urn:a>": "PREFIX a: <urn:a>",
    " \n": "empty",
    "": "empty",
    f"PREFIX{' ' * 9000}": "PREFIX",
}


def test_requests(tmp_path: Path) -> None:
    seen = Modules(tmp_path).run(SCRIPT, {"links": LINKS, "values": VALUES, "titles": list(TITLES)})
    first = {
        "endpoint": None,
        "query": "ASK {}\n",
        "parameters": [["distinct", "true"], ["group-by", "b"], ["group-by", "a"]],
        "view": "map",
        "isAsked": True,
    }
    second = {
        "endpoint": "a/sparql",
        "query": "ASK {}",
        "parameters": [["default-graph-uri", "urn:g"]],
        "view": None,
        "isAsked": False,
    }
    none = {"endpoint": None, "query": None, "parameters": [], "view": None, "isAsked": False}
    assert seen["links"] == [first, second, none]  # a fragment without a query names nothing
    assert seen["again"][1] == second | {"view": "table"}
    assert seen["requests"] == [
        {"endpoint": "a", "query": "b\nc", "parameters": [["lenient", "true"]]},
        {"endpoint": "a", "query": "b", "parameters": []},
        *[None] * 5,
    ]
    assert seen["titles"] == list(TITLES.values())
    assert seen["described"] == "distinct, group by ?a, max messages 2, timeout=5"
