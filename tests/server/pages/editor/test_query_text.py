"""What the page reads from the text of a query: its form, and the place that the server's line and column mean."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from construct_messages.errors import Position, QueryError
from construct_messages.query.rewrite import ConstructQuery, QueryText, query_form
from construct_messages.server.http.sending import problem
from tests.support.pages.modules import Modules
from tests.support.places import shared_path

pytestmark = [pytest.mark.slow, pytest.mark.engine]

PLACES = """
import { placeOf, tokenAt, tokens } from "./sparql.js";
const main = (cases) => cases.map(({ text, line, column }) => {
  const place = placeOf(text, line, column);
  const { start, end } = tokenAt(tokens(text), text, place);
  return { place, token: text.slice(start, end) };
});
"""
FORMS = """
import { queryForm, tokens } from "./sparql.js";
const main = (texts) => texts.map((text) => queryForm(tokens(text)));
"""
UNBOUND = """
import { soughtIn, tokens, unboundOf } from "./sparql.js";
const main = (texts) => texts.map(tokens).map((found) => ({ unbound: unboundOf(found), sought: soughtIn(found) }));
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Modules:
    return Modules(tmp_path_factory.mktemp("modules"))


def problem_of(text: str, position: Position) -> dict[str, object]:
    """The problem document that the server sends, and the text that it is about."""
    said = json.loads(problem(QueryError("unexpected token", position=position)).text or "")
    return {"text": text, "line": said["line"], "column": said["column"]}


def utf16(text: str) -> int:
    """The length of a text as JavaScript counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


TEXTS = st.text(st.sampled_from("a? \t\n\r\xe9\u0301\U0001f600\u2028\x0b"), max_size=20)


@settings(max_examples=10)
@given(texts=st.lists(TEXTS, min_size=50, max_size=50))
def test_a_position_is_the_place_that_it_was_made_of(modules: Modules, texts: list[str]) -> None:
    """Of every place of a text but that between CR and LF, with astral characters, and whatever ends a line."""
    cases = [
        (text, offset)
        for text in texts
        for offset in range(len(text) + 1)
        if not (text[:offset].endswith("\r") and text[offset:].startswith("\n"))
    ]
    found = modules.run(
        PLACES, [problem_of(text, Position.at(text, offset)) for text, offset in cases]
    )
    assert [each["place"] for each in found] == [utf16(text[:offset]) for text, offset in cases]


def test_a_position_that_is_not_in_the_text_is_the_nearest_place(modules: Modules) -> None:
    text = "a\nbc\n\U0001f600"
    cases = {(0, 0): 0, (1, 0): 0, (1, 9): 1, (2, 9): 4, (3, 2): 7, (3, 9): 7, (9, 1): 7, (9, 9): 7}
    found = modules.run(
        PLACES, [{"text": text, "line": line, "column": column} for line, column in cases]
    )
    assert [each["place"] for each in found] == list(cases.values())


MARKED = {
    "a word": ("SELECT * {\n  ?s nope:x ?o }", "nope:x", "nope:x"),
    "within a token": ("SELECT * { ?s <urn:wrong> ?o }", "wrong", "<urn:wrong>"),
    "behind an astral character": ("SELECT * { ?s '\U0001f600' nope:x }", "nope:x", "nope:x"),
    "behind CR LF": ("SELECT *\r\n{ ?s\r\n nope:x }", "nope:x", "nope:x"),
    "behind CR": ("SELECT *\r{ ?s\r nope:x }", "nope:x", "nope:x"),
    "a bracket": ("SELECT * { ?s ?p ?o } }", " }", " "),
    "the end of a line": ("SELECT * {\n ?s\n}", "\n}", ""),
    "an astral character": ("SELECT * { \U0001f600 }", "\U0001f600", "\U0001f600"),
}


@pytest.mark.parametrize(("text", "at", "token"), MARKED.values(), ids=MARKED)
def test_what_is_marked(modules: Modules, text: str, at: str, token: str) -> None:
    (found,) = modules.run(PLACES, [problem_of(text, Position.at(text, text.rindex(at)))])
    assert found == {"place": utf16(text[: text.rindex(at)]), "token": token}


def test_the_end_of_a_text_is_marked_by_nothing(modules: Modules) -> None:
    text = "SELECT * {"
    (found,) = modules.run(PLACES, [problem_of(text, Position.at(text, len(text)))])
    assert found == {"place": len(text), "token": ""}


@pytest.mark.suite
def test_forms_of_the_w3c(modules: Modules) -> None:
    """As the package tells them, of every query of the W3C's tests that has a form."""
    texts = []
    for path in sorted(shared_path("suites/w3c/sparql").rglob("*.rq")):
        if "bad" not in path.name:
            texts.append(path.read_text(encoding="utf-8"))
    forms = [query_form(QueryText(text)) for text in texts]
    assert {"CONSTRUCT", "SELECT", "ASK", "DESCRIBE"} <= set(forms)
    assert len(forms) > 500
    found = zip(texts, forms, modules.run(FORMS, texts), strict=True)
    assert [text for text, form, ours in found if form != ours] == []


@pytest.mark.suite
def test_typos_in_queries_of_the_w3c(modules: Modules) -> None:
    """A variable that the page takes for unbound is one for the package, and what it looks for is in the pattern."""
    texts = [
        text
        for path in sorted(shared_path("suites/w3c/sparql").rglob("*.rq"))
        if "bad" not in path.name
        and query_form(QueryText(text := path.read_text(encoding="utf-8"))) == "CONSTRUCT"
    ]
    texts += [re.sub(r"[?$](\w+)(?=[^{}]*\}\s*WHERE)", r"?\1x", text) for text in texts]
    counted = 0
    for text, found in zip(texts, modules.run(UNBOUND, texts), strict=True):
        try:
            query = ConstructQuery.parse(text)
        except QueryError:  # not one of ours to know
            continue
        unbound = {f"?{name}" for name in query.unbound}
        assert set(found["unbound"]) <= unbound
        counted += set(found["unbound"]) == unbound != set()
    assert counted > 10


SOUGHT = {
    "BASE <urn:b> PREFIX p: <urn:p> CONSTRUCT { ?s p:t <urn:t> } WHERE { ?s ^p:a/<urn:c>|p:d _:b }": [
        "p:a",
        "<urn:c>",
        "p:d",
    ],
    'SELECT * FROM <urn:g> { ?s a p:C ; <urn:q> "x"^^p:d FILTER(p:f(?s) = p:v) }': [
        "<urn:g>",
        "p:C",
        "<urn:q>",
        "p:v",
    ],
    "ASK { SERVICE SILENT <urn:s> { ?s <urn:q> ?o } SERVICE p:s {} } # <urn:c>": ["<urn:q>"],
    "CONSTRUCT WHERE { ?s <urn:q> <urn:q> }": ["<urn:q>"],
    "CONSTRUCT { ?s <urn:t> { ": [],
}


def test_what_is_looked_for(modules: Modules) -> None:
    found = modules.run(UNBOUND, list(SOUGHT))
    assert [each["sought"] for each in found] == list(SOUGHT.values())


@pytest.mark.parametrize(
    "text", ["", "# SELECT", "INSERT DATA {}", "nonsense", "PREFIX select: <urn:ASK>"]
)
def test_what_has_no_form(modules: Modules, text: str) -> None:
    assert modules.run(FORMS, [text]) == [None]


def test_a_refusal_of_the_package_is_marked_where_it_is(modules: Modules) -> None:
    """An error of the package itself, not one that was made for the test."""
    text = (
        "# \U0001f600\r\nCONSTRUCT {\r\n ?s <urn:p> '\U0001f600' , nope:x }\r\nWHERE { ?s ?p ?o }"
    )
    with pytest.raises(QueryError) as caught:
        ConstructQuery.parse(text)
    assert caught.value.position is not None
    (found,) = modules.run(PLACES, [problem_of(text, caught.value.position)])
    assert found["token"] == "nope:x"
