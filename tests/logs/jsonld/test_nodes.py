"""What `Nodes` makes of documents is what PyLD and pyoxigraph make of them, wherever it makes anything."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pyoxigraph as ox
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from construct_messages.errors import LimitExceeded, LogError, Position, UsageError
from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.logs.jsonld.contexts import Contexts
from construct_messages.logs.jsonld.decoder import Documents
from construct_messages.logs.jsonld.json_text import prepare
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import XSD
from tests.support.logs.json_ld import BASE, known, suite

LABELS = Labels("x")
START = Position(1, 1)
MOST_OF_THE_SUITE = 140
"""The number of its documents that nothing rare keeps from `Nodes`."""


class Left(Exception):
    """A document is left to PyLD."""


class Direct(Documents):
    def by_pyld(self, *_arguments: Any) -> Message:
        raise Left


def directly(
    document: Any, active: Any = None, base: str | None = None, contexts: Any = None
) -> Message | None:
    """The message by `Nodes`; None: the document is left to PyLD."""
    documents = Direct(base, contexts, LABELS)
    if active is not None:
        documents.read({"@context": active}, 1, START)
    try:
        return documents.read(document, 1, START)
    except (Left, LimitExceeded):
        return None


def by_libraries(
    document: Any, active: Any = None, base: str | None = None, contexts: Any = None
) -> Message | None:
    """The message by PyLD and pyoxigraph; None: an error."""
    try:
        around = document if active is None else {"@graph": document}
        expanded = prepare(Contexts(contexts, base).expand(around, active))
        return to_message(ox.parse(msgspec.json.encode(expanded), format=ox.RdfFormat.JSON_LD))
    except (SyntaxError, UsageError):
        return None


# --- the suite ----------------------------------------------------------------------------------------------------


@pytest.mark.suite
def test_both_ways_give_the_same_for_the_suite() -> None:
    read = 0
    for name, case in suite().items():
        folder, options = case["folder"], case.get("option", {})
        document = json.loads((folder / case["input"]).read_text())
        if not isinstance(document, dict) or document.keys() == {"@context"}:
            continue
        active = None
        if "expandContext" in options:
            active = json.loads((folder / options["expandContext"]).read_text())["@context"]
        base, contexts = options.get("base", BASE + case["input"]), known(folder)
        try:
            came = directly(document, active, base, contexts)
        except LogError:  # of the context that is expanded with, by PyLD
            continue
        if came is not None:
            read += 1
            expected = by_libraries(document, active, base, contexts)
            assert expected is not None, name
            assert came.isomorphic(expected), name
    assert read >= MOST_OF_THE_SUITE


# --- any document -------------------------------------------------------------------------------------------------

IRIS = [
    "http://e/a",
    "http://e/b#",
    "ex:c",
    "urn:d",
    "http://e/é",
    "b:x",
    "T",
    "_:k",
    "http://e/%zz",
]
TYPES = ["@id", "@vocab", "@none", "@json", f"{XSD}date", f"{XSD}double", f"{XSD}string", "ex:t"]
CONTAINERS = [
    *(["@list"], "@set", "@language", "@index", "@id", "@type", "@graph"),
    *(["@language", "@set"], ["@index", "@set"], ["@graph", "@id"], ["@id", "@set"]),
]
LANGUAGES = ["en", "de-AT", None, "x y", ""]
TERMS = ["a", "b", "c", "T", "id", "type", "ex", "ex:f", "val"]
DEFINITIONS = st.one_of(
    st.sampled_from([*IRIS, "@id", "@type", "@value", "@graph", None]),
    st.fixed_dictionaries(
        {"@id": st.sampled_from(IRIS)},
        optional={
            "@type": st.sampled_from(TYPES),
            "@container": st.sampled_from(CONTAINERS),
            "@language": st.sampled_from(LANGUAGES),
            "@direction": st.sampled_from(["ltr", None]),
            "@prefix": st.booleans(),
        },
    ),
    st.sampled_from(
        [
            {"@reverse": "http://e/r"},
            {"@reverse": "http://e/r", "@type": "@id"},
            {"@id": "http://e/s", "@context": {"a": "http://e/scoped"}},
            {"@id": "@type", "@container": "@set"},
            {"@id": "http://e/n", "@nest": "@nest"},
            {"@id": "http://e/i", "@container": "@index", "@index": "b"},
        ]
    ),
)
SETTINGS = {
    "@vocab": st.sampled_from(["http://v/", "urn:v:", "ex:", "", None, "rel/"]),
    "@base": st.sampled_from(["http://base/x/y", "../z", None]),
    "@language": st.sampled_from(LANGUAGES),
    "@direction": st.sampled_from(["rtl", None]),
    "@protected": st.booleans(),
    "@propagate": st.just(False),
    "@version": st.just(1.1),
    "ex": st.sampled_from(["http://ex/", "urn:ex:", {"@id": "http://ex/q", "@prefix": True}]),
}


@st.composite
def contexts_(draw: st.DrawFn) -> dict[str, Any]:
    terms = draw(st.lists(st.sampled_from(TERMS), max_size=5, unique=True))
    context = {term: draw(DEFINITIONS) for term in terms}
    for name in draw(st.lists(st.sampled_from([*SETTINGS, "ex", "ex"]), max_size=2, unique=True)):
        context[name] = draw(SETTINGS[name])
    return context


NAMES = st.sampled_from(
    [
        *(
            "a",
            "T",
            "ex:s",
            "ex:s",
            "http://e/s",
            "http://e/s",
            "urn:s",
            "_:b",
            "_:b",
            "_:a b",
            "_:",
        ),
        *("", "#f", "?q", "../x", "s/t", "./x", ".x", "..", "a//b", "//h/p", "/abs", "g;x=1/./y"),
        *(
            "@f",
            "@id",
            "ex://a",
            "http:g",
            "x:%zz",
            "a b",
            "http://e/a/../b",
            "1:x",
            ":",
            "http://[::1]/",
        ),
    ]
)
NUMBERS = st.sampled_from([0, -3, 10**19, 10**20, 1.5, 5.0, -0.0, 1e30, 1e20, 5e-7])
TEXTS = st.sampled_from(["x", 'a "b"\\\n', "é\x7f\ufffe", "2020-01-01", "ex:s", ""]) | NAMES
SCALARS = st.one_of(TEXTS, TEXTS, NUMBERS, st.booleans(), st.none())
KEYS = [
    *("a", "b", "c", "a", "b", "c", "ex:p", "ex:f", "http://e/p", "ex", "id", "type", "val", "un"),
    *("_:p", ":", "http://e/%zz", "@f", "ex://p", "@index", "@reverse", "@nest", "@set", "@list"),
]


def several(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return values | st.lists(values, max_size=3)


VALUES = st.fixed_dictionaries(
    {"@value": SCALARS}, optional={"@type": NAMES | st.sampled_from(TYPES), "@index": SCALARS}
) | st.fixed_dictionaries(
    {"@value": SCALARS},
    optional={
        "@language": st.sampled_from(LANGUAGES),
        "@direction": st.sampled_from(["ltr", "rtl", "x", None]),
    },
)


@st.composite
def nodes(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    within = nodes(depth - 1) if depth else st.fixed_dictionaries({"@id": NAMES})
    keywords: dict[str, Any] = {"@id": NAMES, "@type": several(NAMES)}
    if draw(st.integers(0, 3)) == 0:
        keywords |= {"@graph": several(within), "@included": several(within)}
        keywords["@reverse"] = st.dictionaries(st.sampled_from(KEYS), several(within), max_size=2)
    node: dict[str, Any] = draw(st.fixed_dictionaries({}, optional=keywords))
    kinds = [
        *(SCALARS, SCALARS, within, VALUES),
        *(
            st.fixed_dictionaries({"@list": several(SCALARS | within)}),
            st.lists(SCALARS, max_size=2),
        ),
        st.dictionaries(
            st.sampled_from(["en", "de-AT", "@none", "x y", "a"]), several(SCALARS | within)
        ),
    ]
    for key in draw(st.lists(st.sampled_from(KEYS), max_size=4)):
        node[key] = draw(several(st.sampled_from(kinds).flatmap(lambda kind: kind)))
    return node


FOUND: list[tuple[Any, Any]] = [
    ({"a": "http://e/a"}, {"a": {"@list": None}}),
    ({"a": {"@id": "http://e/a", "@container": "@list"}}, {"a": {"@value": None}}),
    (
        {"a": "http://e/a", "@language": "en"},
        {"a": {"@value": "x", "@language": "en", "@index": 1}},
    ),
    ({"a": {"@id": "http://e/a", "@container": "@list"}}, {"a": [[1, []], None, {"@id": "urn:o"}]}),
]
"""What random documents and the suite have found before, and lists of lists."""


@pytest.mark.parametrize("case", FOUND, ids=json.dumps)
def test_both_ways_give_the_same_for_what_was_found(case: tuple[Any, Any]) -> None:
    compare(case[0], case[1], None)


@settings(max_examples=settings.default.max_examples)
@given(
    contexts_() | st.lists(contexts_(), max_size=2),
    nodes(),
    st.booleans(),
    st.sampled_from([None, "http://example.org/a/b?q#f", "http://example.org/a/../b"]),
)
def test_both_ways_give_the_same(
    context: Any, node: dict[str, Any], apart: bool, base: str | None
) -> None:
    try:
        came = compare(
            context if apart else None, node if apart else {"@context": context, **node}, base
        )
    except LogError:  # of the context, by PyLD
        event("malformed context")
    else:
        event("left to PyLD" if came is None else "quads" if len(came) else "empty")


def compare(active: Any, document: Any, base: str | None) -> Message | None:
    """The message by `Nodes`, which is that of the libraries; None: the document is left to PyLD."""
    came = directly(document, active, base)
    if came is not None:
        expected = by_libraries(document, active, base)
        assert expected is not None
        assert came.isomorphic(expected), (came.lines, expected.lines)
    return came


def shapes() -> list[tuple[Any, Any]]:
    """Documents as others write them."""
    terms = {
        "ex": "http://e/",
        "id": "@id",
        "type": "@type",
        "T": "ex:T",
        "name": "ex:name",
        "born": {"@id": "ex:born", "@type": f"{XSD}date"},
        "knows": {"@id": "ex:knows", "@type": "@id"},
        "kind": {"@id": "ex:kind", "@type": "@vocab"},
        "size": {"@id": "ex:size", "@type": f"{XSD}double"},
        "label": {"@id": "ex:label", "@container": "@language"},
        "said": {"@id": "ex:said", "@language": "ar", "@direction": "rtl"},
        "items": {"@id": "ex:items", "@container": "@list"},
        "at": {"@id": "ex:at", "@container": "@index"},
        "of": {"@reverse": "ex:has"},
    }
    node = {
        "id": "ex:s",
        "type": ["T", "ex:U"],
        "name": ["a", 1, 2.5, True, None, {"@value": "x", "@language": "DE"}],
        "born": "2020-01-01",
        "knows": ["ex:o", {"name": "b", "knows": {"id": "_:n"}}],
        "kind": "T",
        "size": [5, "5"],
        "label": {"en": ["x", "y"], "@none": "z"},
        "said": "s",
        "items": [[1, 2], [3], "x", {"name": "c"}],
        "at": {"x": {"name": "d"}, "y": "e"},
        "of": [{"id": "ex:w", "name": "w"}],
        "dropped": {"name": "nowhere"},
        "ex:p": {"@list": ["x", {"@value": None}]},
    }
    return [
        (terms, node),
        (terms, {"@graph": [node, {"name": "x"}]}),
        (terms, {"id": "ex:g", "@graph": [node], "name": "g"}),
        (terms, {"@included": [node, {"id": "ex:t", "name": "x"}]}),
        (terms, {"name": "x", "@reverse": {"ex:p": {"id": "ex:w"}}}),
        ([terms, {"@vocab": "http://v/", "@language": "en"}], {**node, "other": "x"}),
        ([terms, {"@vocab": "_:"}], {**node, "other": ["x", 1], "dropped": None}),
        (terms, {"name": "a graph without a name", "@graph": [node]}),
        ([terms, {"@base": "http://e/f/g?h"}], {"id": "/i/j.k", "knows": ["l/m", "#n"]}),
    ]


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("number", range(9))
def test_nodes_are_read_directly(number: int, apart: bool) -> None:
    context, node = shapes()[number]
    document, active = (node, context) if apart else ({"@context": context, **node}, None)
    assert compare(active, document, None) is not None
