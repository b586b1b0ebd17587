"""Documents as messages: the W3C suite, and what is kept of contexts. `test_nodes.py` compares both ways."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from pyld import jsonld  # type: ignore[import-untyped] # it has no type information

from construct_messages.errors import LogError, Position, UsageError
from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.logs.jsonld.contexts import Contexts
from construct_messages.logs.jsonld.decoder import Documents
from construct_messages.rdf.formats import NDJSON_LD
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import Term, is_literal, literal_parts
from tests.support.logs.json_ld import BASE, known, suite
from tests.support.logs.kinds import Kind, read

assert NDJSON_LD.own is not None
LINES = Kind(NDJSON_LD, NDJSON_LD.own)
LABELS = Labels("x")

# --- the toRdf suite of JSON-LD 1.1 -------------------------------------------------------------------------------


EXCEPTIONS = {
    # another processor than that of JSON-LD 1.1 is asked for
    **dict.fromkeys(
        ["#tc029", "#tep02", "#ter21", "#ter42", "#ttn01"], "processing mode json-ld-1.0"
    ),
    **dict.fromkeys(
        ["#te014", "#te026", "#te071", "#te115", "#te116", "#ter24", "#ter32"],
        "of JSON-LD 1.0, which 1.1 changed",
    ),
    **dict.fromkeys(
        ["#tdi09", "#tdi10", "#tdi11", "#tdi12"],
        "rdfDirection: directions are those of RDF 1.2 here",
    ),
    **dict.fromkeys(["#t0118", "#te075"], "generalized RDF, which no message is"),
}
"""What is not as the suite has it, and why."""

DIRECTIONS = {"#tdi02", "#tdi04", "#tdi05", "#tdi06"}
"""JSON-LD 1.1 drops the directions that RDF 1.2 has a place for: equal but for them."""


def names() -> Sequence[object]:
    """The cases as parameters; one that skips where there is no suite."""
    try:
        return [case for case in suite() if case not in EXCEPTIONS]
    except pytest.skip.Exception as absent:
        return [pytest.param("", marks=pytest.mark.skip(str(absent)))]


def outcome(case: Any) -> Message | LogError:
    """A document by the decoder where it is an object, else by what the decoder reads documents with."""
    folder, options = case["folder"], case.get("option", {})
    document = json.loads((folder / case["input"]).read_text())
    base, contexts = options.get("base", BASE + case["input"]), known(folder)
    lines = [document]
    if "expandContext" in options:
        lines.insert(0, json.loads((folder / options["expandContext"]).read_text()))
    if all(isinstance(line, dict) for line in lines) and document.keys() != {"@context"}:
        came = read(
            [json.dumps(line).encode() + b"\n" for line in lines],
            LINES,
            base=base,
            contexts=contexts,
        )
        if came.error is None:
            (message,) = came.messages
            return message
        assert isinstance(came.error, LogError)
        return came.error
    try:
        return Documents(base, contexts, LABELS).read(document, 1, Position(1, 1)) or Message()
    except LogError as error:
        return error


def meets(case: Any, came: Message | LogError) -> bool:
    if "jld:NegativeEvaluationTest" in case["@type"]:
        return isinstance(came, LogError)
    if isinstance(came, LogError):
        return False
    if "jld:PositiveSyntaxTest" in case["@type"]:
        return True
    return came.isomorphic(expected(case))


def expected(case: Any) -> Message:
    return to_message(
        ox.parse((case["folder"] / case["expect"]).read_text(), format=ox.RdfFormat.N_QUADS)
    )


@pytest.mark.suite
@pytest.mark.parametrize("case", names())
def test_suite(case: str) -> None:
    came = outcome(suite()[case])
    if case in DIRECTIONS:
        assert isinstance(came, Message)
        assert not meets(suite()[case], came)
        came = Message(Quad(s, p, without_direction(o), g) for s, p, o, g in came)
    assert meets(suite()[case], came), came


def without_direction(term: Term) -> Term:
    if is_literal(term) and literal_parts(term)[3]:
        return Term(term.rpartition("--")[0])
    return term


@pytest.mark.suite
@pytest.mark.parametrize(
    "case",
    [case for case in EXCEPTIONS if EXCEPTIONS[case] != "generalized RDF, which no message is"],
)
def test_exceptions_are_needed(case: str) -> None:
    assert not meets(suite()[case], outcome(suite()[case])), "no exception any more"


@pytest.mark.suite
def test_tally() -> None:
    positive = {
        name for name, case in suite().items() if "jld:NegativeEvaluationTest" not in case["@type"]
    }
    assert len(positive) == 361
    assert len(positive - EXCEPTIONS.keys() - DIRECTIONS) == 348


REFERENCES = [
    "",
    "s",
    "#f",
    "?q",
    "../x",
    "../../../y",
    "//h/p",
    "/abs/../d",
    "./x",
    "g;x=1/./y",
    ".x",
    "..",
    "a//b",
    "@",
]
NAMES = st.sampled_from(
    [
        *REFERENCES,
        "urn:a",
        "ex:a",
        "a:b",
        "ex://a",
        "http:g",
        "x:%zz",
        "a b",
        "_:b",
        "_:",
        "_:a b",
        "http://e/a/../b",
        "@f",
    ]
)
KEYS = st.sampled_from(
    [
        "urn:p",
        "http://example.org/p",
        "ex:p",
        "_:p",
        "a:p",
        "ex:",
        ":",
        "p:%zz",
        "ex://p",
        "p",
        "@f",
    ]
)
NUMBERS = st.sampled_from([0, -3, 10**19, 10**20, 1.5, 5.0, -0.0, 1e30, 1e20, 5e-7])
SCALARS = st.one_of(NAMES, st.booleans(), NUMBERS, st.none())


def test_what_is_kept_of_contexts_is_bounded() -> None:
    contexts = Contexts({"urn:c": {"p": "urn:p"}}, None)
    for number in range(300):
        contexts.expand({"@context": ["urn:c", {"q": f"urn:q{number}"}], "@id": "urn:s", "q": "x"})
    assert 0 < len(contexts._processed) <= 102


KEYWORDS = [
    "@id",
    "@type",
    "@value",
    "@language",
    "@direction",
    "@graph",
    "@included",
    "@list",
    "@set",
    "@index",
    "@reverse",
    "@nest",
    "@json",
    "@context",
    "@vocab",
    "@base",
    "@container",
    "@import",
    "@protected",
    "@prefix",
    "@propagate",
    "@version",
]
MALFORMED = st.recursive(
    SCALARS | st.sampled_from(KEYWORDS),
    lambda values: (
        st.lists(values, max_size=3)
        | st.dictionaries(KEYS | st.sampled_from(KEYWORDS), values, max_size=4)
    ),
    max_leaves=10,
)


@settings(max_examples=settings.default.max_examples)
@given(st.dictionaries(st.just("@context") | KEYS, MALFORMED, max_size=3), MALFORMED)
def test_only_our_errors_come_out(node: dict[str, Any], context: Any) -> None:
    documents = Documents(None, {"urn:a": {"p": "urn:p"}}, LABELS)
    for document in ({"@context": context}, node, {"@graph": node}):
        try:
            documents.read(document, 1, Position(1, 1))
        except LogError:
            event("refused")


# --- the active context is processed once, and means what it would mean around each document -------------------------

ACTIVE: dict[str, Any] = {
    "terms": {"a": "urn:a", "b": {"@id": "urn:b", "@type": "@id"}},
    "none": None,
    "several": [{"a": "urn:a"}, {"a": "urn:x:a", "b": "a:b"}, None, {"b": "urn:b"}],
    "nothing": [],
    "a vocabulary and a base": {
        "@vocab": "urn:v:",
        "@base": "http://example.org/x/",
        "@language": "en",
    },
    "no propagation": {"@propagate": False, "a": "urn:a", "@vocab": "urn:v:"},
    "several without propagation": [{"@propagate": False, "a": "urn:a"}, {"b": "urn:b"}],
    "scoped by type": {"T": {"@id": "urn:T", "@context": {"a": "urn:t:a"}}, "a": "urn:a"},
    "scoped by property": {
        "b": {"@id": "urn:b", "@context": {"a": "urn:p:a", "@propagate": True}},
        "a": "urn:a",
    },
    "protected": {"@protected": True, "a": "urn:a", "b": "urn:b"},
    "loaded": ["http://example.org/context", {"b": "urn:b"}],
    "containers": {
        "a": {"@id": "urn:a", "@container": "@language"},
        "b": {"@id": "urn:b", "@container": "@list"},
    },
}
UNDER: list[Any] = [
    {"@id": "urn:s", "a": "x", "b": [{"@id": "o", "a": "y"}, "z"]},
    {"@id": "urn:s", "@type": "T", "a": "x", "b": {"@type": "T", "a": {"@value": 1}}},
    {"@context": {"a": "urn:other"}, "@id": "", "a": "x", "b": "y"},
    {"@context": None, "@id": "urn:s", "a": "x", "urn:p": "y"},
    {"@graph": [{"@id": "urn:s", "a": "x"}], "@id": "urn:g", "b": "y"},
    {"@included": [{"@id": "urn:s", "a": {"en": "x"}}, {"@id": "urn:t", "b": "y"}]},
]


@pytest.mark.parametrize("name", ACTIVE)
def test_the_active_context_is_one_around_the_document(name: str) -> None:
    given = {"http://example.org/context": {"a": "urn:loaded:a"}}
    active, once = ACTIVE[name], Contexts(given, None)

    def outcome(expand: Callable[[], list[Any]]) -> Any:
        try:
            return expand()
        except UsageError as error:
            return str(error)

    for document in UNDER * 2:
        around = outcome(
            lambda: Contexts(given, None).expand({"@context": active, "@graph": document})  # noqa: B023
        )
        assert outcome(lambda: once.expand({"@graph": document}, active)) == around  # noqa: B023


def test_the_active_context_is_processed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 13, 15: what a log of many messages costs under a large context grows with their number only."""
    made = 0
    define = jsonld.JsonLdProcessor._create_term_definition

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal made
        made += 1
        return define(*arguments, **options)

    monkeypatch.setattr(jsonld.JsonLdProcessor, "_create_term_definition", counted)
    contexts, active = (
        Contexts(None, None),
        {f"t{number}": {"@id": f"urn:{number}"} for number in range(50)},
    )
    for _ in range(20):
        contexts.expand({"@graph": {"@id": "urn:s", "t1": 1}}, active)
    assert made == 50
