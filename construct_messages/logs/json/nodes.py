"""The nodes of a message: their types and properties, with RDF lists as lists.

JSON-LD 1.1 API, section 8.4 (serialize RDF as JSON-LD), and section 4.6 of its framing (the graphs of a message are
merged). Values stay terms; `nodes.py` converts them to JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from construct_messages.rdf.errors import UnsupportedByFormat
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import RDF, XSD, Term, is_literal, literal_parts
from construct_messages.rdf.terms.natives import native

# --- values ---------------------------------------------------------------------------------------
# Converts literals to JSON: numbers and booleans, and value objects of JSON-LD for the others.
#
# JSON-LD 1.1 API, section 8.5 (RDF to object conversion), with `useNativeTypes` for all numbers of XML Schema. A
# decimal keeps its digits.

_NATIVE: Final = frozenset(
    XSD + name
    for name in (
        *("boolean", "decimal", "double", "float"),
        *("integer", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger"),
        *("negativeInteger", "long", "int", "short", "byte"),
        *("unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
    )
)
_JSON: Final = f"{RDF}JSON"
_MOST_DIGITS: Final = 300
"""The maximal length of numbers: readers of JSON take longer ones for infinity, or reject them."""


def json_of(text: str, datatype: str | None) -> str | None:
    """Returns a literal as a JSON number, boolean or JSON text; None: it is none of these. `datatype`: the IRI of the
    datatype; None: a string.

    >>> json_of("+007", f"{XSD}integer"), json_of("1.50", f"{XSD}decimal"), json_of("1e3", f"{XSD}double")
    ('7', '1.50', '1000.0')
    >>> json_of("INF", f"{XSD}double"), json_of("7", None), json_of("1", f"{XSD}boolean")
    (None, None, 'true')
    """
    if datatype == _JSON:
        try:
            return msgspec.json.encode(msgspec.json.decode(text)).decode()
        except msgspec.DecodeError as error:
            raise UnsupportedByFormat(f"the literal {text[:100]!r} is no JSON: {error}") from None
    if datatype not in _NATIVE or len(text) > _MOST_DIGITS:
        return None
    try:
        value = native(text, datatype)
    except (ValueError, ArithmeticError):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if isfinite(value) else None
    return str(value) if isinstance(value, int) else format(value, "f")


def is_native(datatype: str | None) -> bool:
    """Returns whether literals of a datatype may be numbers or booleans."""
    return datatype in _NATIVE or datatype == _JSON


def suffix_of(term: Term) -> str:
    """Returns the text after a literal's lexical form, with the closing quote; empty for other terms.

    >>> from construct_messages.rdf.terms import literal
    >>> suffix_of(literal("a", language="en"))
    '"@en'
    """
    return term[term.rindex('"') :] if term[:1] == '"' else ""


def string(term: Term) -> str:
    """Returns the text of a literal as a JSON string: canonical N-Triples has the escapes of JSON."""
    return term[: term.rindex('"') + 1]


def value_object(term: Term) -> dict[str, Any]:
    """Returns a literal as a value object, with `@value` as a string.

    >>> from construct_messages.rdf.terms import literal, number
    >>> value_object(literal("a", language="en")), value_object(number("7"))["@value"]
    ({'@value': 'a', '@language': 'en'}, '7')
    """
    text, datatype, language, direction = literal_parts(term)
    value: dict[str, Any] = {"@value": text}
    if language is not None:
        value["@language"] = language
        if direction is not None:
            value["@direction"] = direction
    elif datatype == _JSON:
        value["@type"] = "@json"
    elif datatype is not None:
        value["@type"] = datatype
    return value


def expanded_value(
    term: Term, *, natively: bool, is_expected: Callable[[str], bool]
) -> dict[str, Any]:
    """Returns a literal as a value object, with a number or boolean for `@value` if it is one. `is_expected`: whether
    the context has a term for its property and this datatype. Then a number keeps its datatype, so that the term is
    found.

    >>> from construct_messages.rdf.terms import number
    >>> expanded_value(number("7"), natively=True, is_expected=lambda datatype: False)
    {'@value': 7}
    """
    value = value_object(term)
    _, datatype, _, _ = literal_parts(term)
    if datatype is None or not natively:
        return value
    text = value["@value"]
    # a mark represents all literals of a kind, so its text is unknown: malformed numbers have no layout
    json = "0" if text.startswith("\0") and is_native(datatype) else json_of(text, datatype)
    if json is not None:
        value["@value"] = msgspec.json.decode(json)
        if value["@type"] != "@json" and not is_expected(datatype):
            del value["@type"]
    return value


def matches_value(
    pattern: tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]], value: Mapping[str, Any]
) -> bool:
    """Returns whether a value object matches the `@value`, `@type` and `@language` of a frame (Framing, section
    4.3.2).
    """
    keywords = ("@value", "@type", "@language")
    return all(
        _matches(listed, value.get(keyword))
        for listed, keyword in zip(pattern, keywords, strict=True)
    )


def _matches(pattern: tuple[Any, ...], found: Any) -> bool:
    if found is None:
        return not pattern
    return found in pattern or (bool(pattern) and pattern[0] == {})


# --- nodes ----------------------------------------------------------------------------------------

Value: TypeAlias = "Term | tuple[Value, ...]"
"""A term, or the items of a list."""

MOST_NESTED: Final = 128
"""The maximal nesting of nodes and lists: readers of JSON have similar limits, and Python's stack is short."""

MOST_EMBEDDED: Final = 1 << 16
"""The maximal number of nodes in a document, counted wherever they are embedded: a few nodes may have many paths to
others.
"""

RDF_TYPE: Final = Term(f"<{RDF}type>")
RDF_FIRST: Final = Term(f"<{RDF}first>")
RDF_REST: Final = Term(f"<{RDF}rest>")
RDF_NIL: Final = Term(f"<{RDF}nil>")
RDF_LIST: Final = Term(f"<{RDF}List>")


@dataclass(slots=True)
class NodeProperties:
    """The properties of an IRI or blank node in a message."""

    # its types, IRIs and blank nodes
    types: list[Term] = field(default_factory=list)
    # its other values by predicate
    properties: dict[Term, list[Value]] = field(default_factory=dict)


Nodes: TypeAlias = dict[Term, NodeProperties]


def too_deep() -> UnsupportedByFormat:
    """Returns the error for a document that is nested too deeply."""
    return UnsupportedByFormat(
        f"the document is nested more than {MOST_NESTED} levels deep",
        hint='refer to nodes instead of embedding them: "@embed": "@never" in the frame',
    )


def nodes_of(message: Message) -> Nodes:
    """Returns the subjects of a message and the nodes that they refer to, by their terms, in order of appearance.

    >>> from construct_messages.rdf.message import Quad
    >>> from construct_messages.rdf.terms import iri
    >>> quads = [Quad(iri("urn:a"), iri("urn:p"), Term("_:l")), Quad(Term("_:l"), RDF_FIRST, Term('"x"'))]
    >>> nodes_of(Message([*quads, Quad(Term("_:l"), RDF_REST, RDF_NIL)]))
    {'<urn:a>': NodeProperties(types=[], properties={'<urn:p>': [('"x"',)]})}
    """
    names = {quad.graph: None for quad in message if quad.graph is not None}
    if any(quad.object == RDF_NIL for quad in message):
        merged = _merged(graphs_of(message).values())
    else:
        triples = (quad[:3] for quad in message)
        merged = _subjects(dict.fromkeys(triples) if names else triples)
    return _with_references(merged, names)


def graphs_of(message: Message) -> dict[Term | None, Nodes]:
    """Returns the subjects of each graph of a message; None: the default graph, which is always present."""
    triples: dict[Term | None, list[tuple[Term, Term, Term]]] = {None: []}
    lists = False
    for quad in message:
        triples.setdefault(quad.graph, []).append(quad[:3])
        lists = lists or quad.object == RDF_NIL
    graphs = {name: _subjects(each) for name, each in triples.items()}
    if lists:
        _convert_lists(graphs)
    return graphs


def _subjects(triples: Iterable[tuple[Term, Term, Term]]) -> Nodes:
    nodes: Nodes = {}
    for subject, predicate, object in triples:
        node = nodes.get(subject)
        if node is None:
            node = nodes[subject] = NodeProperties()
        if predicate == RDF_TYPE and not is_literal(object):
            node.types.append(object)
        elif (values := node.properties.get(predicate)) is not None:
            values.append(object)
        else:
            node.properties[predicate] = [object]
    return nodes


def _with_references(nodes: Nodes, names: Iterable[Term] = ()) -> Nodes:
    """Adds the nodes that others refer to, and the names of graphs."""
    references = {
        value: None
        for node in nodes.values()
        for values in node.properties.values()
        for value in terms_in(values)
        if value[0] != '"'
    }
    for term in (*references, *names):
        if term not in nodes:
            nodes[term] = NodeProperties()
    return nodes


def terms_in(values: Iterable[Value]) -> Iterator[Term]:
    """Yields the terms among values and in their lists."""
    for value in values:
        if isinstance(value, tuple):
            yield from terms_in(value)
        else:
            yield value


def _merged(graphs: Iterable[Nodes]) -> Nodes:
    merged: Nodes = {}
    for nodes in graphs:
        for subject, node in nodes.items():
            into = merged.setdefault(subject, NodeProperties())
            into.types = list(dict.fromkeys(into.types + node.types))
            for predicate, values in node.properties.items():
                known = into.properties.get(predicate, [])
                into.properties[predicate] = list(dict.fromkeys(known + values))
    return merged


class _Use(NamedTuple):
    """An occurrence of a node as an object."""

    nodes: Nodes
    subject: Term
    node: NodeProperties
    predicate: Term
    place: int


def _convert_lists(graphs: Mapping[Term | None, Nodes]) -> None:
    """Replaces the head of each well-formed list with its items (section 8.4.2, step 6)."""
    uses: dict[Term, _Use | None] = {}  # None: used more than once
    ends: list[_Use] = []
    for nodes in graphs.values():
        for subject, node in nodes.items():
            for predicate, values in node.properties.items():
                for place, value in enumerate(values):
                    if isinstance(value, tuple) or is_literal(value):
                        continue
                    use = _Use(nodes, subject, node, predicate, place)
                    if value == RDF_NIL:
                        ends.append(use)
                    else:
                        uses[value] = None if value in uses else use
    heads: dict[tuple[int, Term, int], list[NodeProperties]] = {}
    found: list[tuple[NodeProperties, Term, int]] = []
    for nodes, subject, node, predicate, place in ends:
        cells: list[NodeProperties] = []
        while (
            predicate == RDF_REST
            and (found_use := uses.get(subject)) is not None
            and found_use.nodes is nodes  # a list is in one graph
            and set(node.properties) == {RDF_FIRST, RDF_REST}
            and len(node.properties[RDF_FIRST]) == len(node.properties[RDF_REST]) == 1
            and node.types in ([], [RDF_LIST])
        ):
            cells.append(node)
            del nodes[subject]
            subject, node, predicate, place = found_use[1:]
            if not subject.startswith("_:"):
                break
        heads[id(node), predicate, place] = cells[::-1]
        found.append((node, predicate, place))

    def items(node: NodeProperties, predicate: Term, place: int, depth: int) -> Value:
        cells = heads.get((id(node), predicate, place))
        if cells is None:
            return node.properties[predicate][place]
        if depth > MOST_NESTED:
            raise too_deep()
        return tuple(items(cell, RDF_FIRST, 0, depth + 1) for cell in cells)

    cells_of_others = {id(cell) for cells in heads.values() for cell in cells}
    for node, predicate, place in found:
        if id(node) not in cells_of_others:
            node.properties[predicate][place] = items(node, predicate, place, 1)
