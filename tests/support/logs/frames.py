"""Random JSON-LD contexts, frames, and messages that they are about."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import RDF, XSD, Term

EX = "http://example.org/"
IRIS = [Term(f"<{EX}{name}>") for name in "abcd"]
BLANKS = [Term("_:x"), Term("_:y")]
CLASSES = [Term(f"<{EX}{name}>") for name in ("City", "Land")]
PREDICATES = [Term(f"<{EX}{name}>") for name in ("p", "q", "r")]
LITERALS = [
    Term(text)
    for text in (
        '"one"',
        '"two\\n"',
        '"en"@en',
        '"nl"@nl',
        f'"7"^^<{XSD}integer>',
        f'"2.5E0"^^<{XSD}double>',
        f'"true"^^<{XSD}boolean>',
        f'"2020-01-01"^^<{XSD}date>',
        f'"no"^^<{XSD}integer>',
    )
]
FIRST, REST, NIL, TYPE = (Term(f"<{RDF}{name}>") for name in ("first", "rest", "nil", "type"))
NODES = st.sampled_from([*IRIS, *BLANKS])
VALUES = NODES | st.sampled_from(LITERALS)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """Messages of few nodes, so that they are connected, with lists and types."""
    quads = draw(
        st.lists(
            st.builds(Quad, NODES, st.sampled_from(PREDICATES), VALUES, st.none())
            | st.builds(Quad, NODES, st.just(TYPE), st.sampled_from(CLASSES), st.none()),
            max_size=9,
        )
    )
    for number in range(draw(st.integers(0, 2))):
        items = draw(st.lists(VALUES, max_size=3))
        cells = [Term(f"_:l{number}x{place}") for place in range(len(items))]
        head = (*cells, NIL)[0]
        quads.append(Quad(draw(NODES), PREDICATES[number], head))
        for cell, item, rest in zip(cells, items, [*cells[1:], NIL], strict=False):
            quads += [Quad(cell, FIRST, item), Quad(cell, REST, rest)]
    if draw(st.integers(0, 4)) == 0:
        quads = [quad._replace(graph=draw(st.sampled_from([None, *IRIS[:2]]))) for quad in quads]
    return Message(quads)


_DEFINITIONS = st.sampled_from(
    [
        {},
        {"@type": "@id"},
        {"@type": "@vocab"},
        {"@type": f"{XSD}integer"},
        {"@type": f"{XSD}date"},
        {"@container": "@set"},
        {"@container": "@list"},
        {"@container": "@list", "@type": "@id"},
        {"@container": "@language"},
        {"@container": ["@language", "@set"]},
        {"@language": "en"},
        {"@language": None},
        {"@type": "@id", "@container": "@set"},
        {"@type": "@none"},
    ]
)


@st.composite
def contexts(draw: st.DrawFn) -> dict[str, Any]:
    """Contexts of the features that are compiled."""
    context: dict[str, Any] = {}
    if draw(st.booleans()):
        context["@vocab"] = EX
    if draw(st.booleans()):
        context["ex"] = EX
    if draw(st.integers(0, 3)) == 0:
        context["@language"] = draw(st.sampled_from(["en", "nl"]))
    if draw(st.booleans()):
        context |= {"id": "@id", "type": draw(st.sampled_from(["@type", TYPES_ARE_SET]))}
    for name in draw(st.lists(st.sampled_from("pqr"), max_size=4)):
        term = name if name not in context else f"{name}2"
        context[term] = {"@id": f"{EX}{name}", **draw(_DEFINITIONS)}
    if draw(st.integers(0, 4)) == 0:
        context["city"] = {"@id": f"{EX}City"}
    if draw(st.integers(0, 6)) == 0:
        context["anA"] = {"@id": f"{EX}a"}
    return context


TYPES_ARE_SET = {"@id": "@type", "@container": "@set"}
_FLAGS = {
    "@embed": ["@once", "@always", "@never", True, False],
    "@explicit": [True, False],
    "@requireAll": [True, False],
    "@omitDefault": [True, False],
}


def frames(depth: int = 2) -> st.SearchStrategy[dict[str, Any]]:
    """Frames, but for their context, of the features that are compiled."""
    entries: dict[str, st.SearchStrategy[Any]] = {
        flag: st.sampled_from(values) for flag, values in _FLAGS.items()
    }
    entries["@type"] = st.sampled_from(
        [f"{EX}City", [f"{EX}City", f"{EX}Land"], {}, [], {"@default": f"{EX}Land"}]
    )
    entries["@id"] = st.sampled_from([f"{EX}a", {}, [f"{EX}a", f"{EX}b"]])
    inner: st.SearchStrategy[Any] = st.sampled_from(
        [
            {},
            [],
            {"@default": "none"},
            {"@default": 5, "@omitDefault": False},
            {"@omitDefault": True},
            {"@value": {}},
            {"@value": "one"},
            {"@value": {}, "@language": "en"},
            {"@value": {}, "@language": {}},
            {"@value": {}, "@type": f"{XSD}date"},
            {"@list": [{}]},
            {"@list": [{"@embed": "@never"}]},
            {"@id": f"{EX}a"},
        ]
    )
    if depth:
        inner |= frames(depth - 1)
    for predicate in PREDICATES:
        entries[predicate[1:-1]] = inner
    return st.lists(
        st.sampled_from(sorted(entries)),
        unique=True,
        min_size=depth // 2,
        max_size=3 if depth else 2,
    ).flatmap(lambda keys: st.fixed_dictionaries({key: entries[key] for key in keys}))


def comparable(document: Any, *, arrays: bool = True) -> Any:
    """A document without what is not determined: blank node labels, and the order of top-level blank nodes.

    Args:
        document: as parsed JSON.
        arrays: whether the order of arrays is determined: not where values come from several graphs.
    """
    top = document.get("@graph", document) if isinstance(document, dict) else document

    def renamed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: renamed(value[key]) for key in sorted(value)}
        if isinstance(value, list):
            found = [renamed(each) for each in value]
            return found if arrays else sorted(found, key=json.dumps)
        if isinstance(value, str) and value.startswith("_:"):
            return "_:"
        return value

    if isinstance(top, list):
        return sorted((renamed(each) for each in top), key=json.dumps)
    return renamed(top)
