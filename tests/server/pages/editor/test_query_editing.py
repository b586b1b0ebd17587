"""What the editor makes of the text of a query: formatting keeps its tokens, and completion knows where it is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.pages.modules import Modules
from tests.support.places import shared_path

pytestmark = [pytest.mark.slow, pytest.mark.engine]

FORMAT = """
import { formatted } from "./formatting.js";
import { tokens } from "./sparql.js";
const signs = (text) => tokens(text).filter((each) => each.text.trim() !== "")
  .map(({ kind, text }) => (kind === "keyword" ? text.toUpperCase() : text));
const main = (texts) => texts.map((text) => {
  const made = formatted(text);
  return { made, same: JSON.stringify(signs(made)) === JSON.stringify(signs(text)), again: formatted(made) === made };
});
"""
PLACE = """
import { at } from "./completion.js";
const main = (texts) => texts.map((text) => {
  const place = text.indexOf("\\u2038");
  const { slot, wanted } = at(text.replace("\\u2038", ""), place, { ex: "http://example.org/" });
  return [slot, wanted && wanted.kind, wanted && wanted.namespace];
});
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Modules:
    return Modules(tmp_path_factory.mktemp("modules"))


@pytest.mark.suite
def test_formatting_changes_no_token(modules: Modules) -> None:
    """Of all queries of the W3C, also those that are wrong; and a formatted query stays as it is."""
    paths = sorted(shared_path("suites/w3c/sparql").rglob("*.rq"))
    texts = [path.read_text(encoding="utf-8").replace("\r\n", "\n") for path in paths]
    assert len(texts) > 1000
    made = zip(paths, modules.run(FORMAT, texts), strict=True)
    assert [path.name for path, each in made if not (each["same"] and each["again"])] == []


def test_what_is_formatted(modules: Modules) -> None:
    text = (
        "prefix ex: <urn:x:> construct { ?s ex:p ?o } where { ?s ex:p ?o ; ex:q 'a  b' . optional { ?o a ?c } "
        "{ ?s ?p 1 } union { ?s ?p 2 } filter(?o<?s) # why\n ?s ex:r ex:a } order by ?s"
    )
    (found,) = modules.run(FORMAT, [text])
    assert found["made"] == (
        "PREFIX ex: <urn:x:>\nCONSTRUCT { ?s ex:p ?o }\nWHERE {\n  ?s ex:p ?o ;\n    ex:q 'a  b' .\n"
        "  OPTIONAL { ?o a ?c }\n  { ?s ?p 1 } UNION { ?s ?p 2 }\n  FILTER(?o<?s) # why\n  ?s ex:r ex:a\n}\n"
        "ORDER BY ?s\n"
    )


EX = "http://example.org/"
PLACES: dict[str, list[Any]] = {
    "SELECT * { ?s a ex:C‸ }": ["class", "class", EX],
    "SELECT * { ?s kn‸ }": ["predicate", "predicate", ""],
    "SELECT * { ?s ex:kn‸ ?x }": ["predicate", "predicate", EX],
    "SELECT * { ?s no:kn‸ ?x }": ["predicate", None, None],
    "SELECT * { ?s ex:p/kn‸ ?x }": ["predicate", "predicate", ""],
    "SELECT * { ?s ex:p ?o ; ex:q‸ }": ["predicate", "predicate", EX],
    "SELECT * { ?s ex:p [ na‸ ] }": ["predicate", "predicate", ""],
    "SELECT * { ?s a ex:C , D‸ }": ["class", "class", ""],
    "SELECT * { ?s ?p ?o {| pr‸ |} }": ["predicate", "predicate", ""],
    "SELECT * { ?s ?p <<( ?a pr‸ )>> }": ["predicate", "predicate", ""],
    "SELECT * { ?s a ex:C . FILTER(?x) ?s pr‸ }": ["predicate", "predicate", ""],
    "CONSTRUCT { ?s pr‸ } WHERE { ?s ?p ?o }": ["predicate", "predicate", ""],
    "SELECT * { ?s a ex:C . FILTER(str‸) }": ["expression", None, None],
    "SELECT * { ?s ?p 'x pr‸ ' }": ["none", None, None],
    "# pr‸": ["none", None, None],
    "SELECT * { OPT‸ }": ["subject", None, None],
    "SELECT * { ?s ?p ?o } ORD‸": ["expression", None, None],
    "SELECT * { ?s ?p‸ }": ["predicate", None, None],
}


def test_where_something_is_typed(modules: Modules) -> None:
    """And so what the endpoint is asked for, which is mostly nothing."""
    assert dict(zip(PLACES, modules.run(PLACE, list(PLACES)), strict=True)) == PLACES
