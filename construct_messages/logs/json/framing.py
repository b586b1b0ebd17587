"""Framing: arranges the nodes of a message as trees, by a compiled frame.

JSON-LD 1.1 Framing, section 4.3 (the framing algorithm). The result has terms for values; `documents.py` writes it.
tests/logs/json/test_framing.py compares it with PyLD.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from construct_messages.errors import UnsupportedByFormat, UsageError
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import RDF, XSD, Term, is_literal, literal_parts
from construct_messages.rdf.terms.natives import native

# --- nodes ----------------------------------------------------------------------------------------
# The nodes of a message: their types and properties, with RDF lists as lists.
#
# JSON-LD 1.1 API, section 8.4 (serialize RDF as JSON-LD), and section 4.6 of its framing (the graphs of a message are
# merged). Values stay terms; `framing.py` converts them to JSON.

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


# --- frames ---------------------------------------------------------------------------------------
# Compiled frames: the conditions for matching nodes, and the embedded properties.
#
# JSON-LD 1.1 Framing, section 4 (https://www.w3.org/TR/json-ld11-framing/), over frames that PyLD has expanded.
# Frames with features that are not compiled here are left to PyLD. No messages here.

EMBEDS: Final = ("@once", "@always", "@never")
ANY_VALUE: Final[tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]] = (({},), (), ())
"""The pattern of `{"@value": {}}`."""
_FLAGS: Final = ("@embed", "@explicit", "@requireAll", "@omitDefault", "@default")
_COMPILED: Final = {"@id", "@type", *_FLAGS, "@value", "@language", "@list"}


class NotCompiled(Exception):
    """Raised for a feature of a frame or context that is left to PyLD; it does not leave this folder."""


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags of a frame (section 4.1.1); an implied frame has the flags of the enclosing one."""

    embed: str = "@once"
    explicit: bool = False
    require_all: bool = False


@dataclass(frozen=True, slots=True)
class NodeFrame:
    """A frame for nodes and values."""

    # the flags of the frame
    flags: Flags = Flags()
    # the IRIs that match; empty: any; None: the frame has no `@id`
    ids: frozenset[Term] | None = None
    # the types that match; None: the frame has no `@type`
    types: frozenset[Term] | None = None
    # whether nodes with any type match (`"@type": {}`)
    any_type: bool = False
    # the types of nodes without one
    default_types: tuple[Term, ...] = ()
    # the frames of properties by predicate, in order
    properties: Mapping[Term, NodeFrame | None] = field(default_factory=dict)
    # the frame of the items of a list
    items: NodeFrame | None = None
    # the pattern of literals: `@value`, `@type` and `@language`, each with its listed values
    value: tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]] | None = None
    # the JSON value of a property without values; Ellipsis: the frame has no `@default`
    default: Any = ...
    # whether such a property is omitted
    omit_default: bool = False
    # whether it is only for literals: it has `@value`
    is_value: bool = False
    # whether it consists of `@id`
    is_reference: bool = False

    def implied(self) -> NodeFrame:
        """Returns the frame for values of a property that it does not mention."""
        return NodeFrame(self.flags)


def compile_frame(expanded: Any, default_flags: Flags = Flags()) -> NodeFrame:
    """Compiles a frame.

    >>> frame = compile_frame([{"@type": ["urn:A"], "urn:p": [{"@embed": ["@never"]}]}])
    >>> sorted(frame.types), frame.properties["<urn:p>"].flags.embed
    (['<urn:A>'], '@never')
    """
    if not isinstance(expanded, list) or len(expanded) != 1 or not isinstance(expanded[0], dict):
        raise NotCompiled
    frame = expanded[0]
    if not all(key in _COMPILED for key in frame if key.startswith("@")):
        raise NotCompiled
    for keyword in ("@id", "@type"):
        for name in _values(frame, keyword):
            if isinstance(name, str) and name.startswith("_:"):
                raise UsageError(
                    f'the frame has "{keyword}": "{name}"',
                    hint="blank nodes have no names: write an IRI, or {} for any",
                )
    flags = Flags(
        _embed(_first(frame, "@embed", default_flags.embed)),
        _first(frame, "@explicit", default_flags.explicit),
        _first(frame, "@requireAll", default_flags.require_all),
    )
    types, default_types = _types(frame)
    value = tuple(tuple(_values(frame, key)) for key in ("@value", "@type", "@language"))
    default = ...
    if "@default" in frame:
        default = _first(frame, "@default", "@null")
        if isinstance(default, (dict, list)):
            raise NotCompiled
    properties: dict[Term, NodeFrame | None] = {}
    for key in sorted(frame):
        if not key.startswith("@"):
            inner = frame[key]
            if (isinstance(inner, list) and len(inner) > 1) or key.startswith("_:"):
                raise NotCompiled
            properties[Term(f"<{key}>")] = compile_frame(inner) if inner else None
    return NodeFrame(
        flags,
        _ids(frame),
        types,
        _values(frame, "@type") == [{}],
        default_types,
        properties,
        compile_frame(frame["@list"]) if "@list" in frame else None,
        value if any(value) else None,  # type: ignore[arg-type] # three of them
        default,
        bool(_first(frame, "@omitDefault", False)),
        is_value="@value" in frame,
        is_reference=set(frame) == {"@id"},
    )


def _ids(frame: Mapping[str, Any]) -> frozenset[Term] | None:
    """Returns the IRIs that match; empty: any; None: the frame has no `@id`."""
    if "@id" not in frame:
        return None
    given = _values(frame, "@id")
    if not all(isinstance(each, str) or each == {} for each in given):
        raise NotCompiled
    if given[:1] == [{}]:
        return frozenset()
    return frozenset(Term(f"<{each}>") for each in given if each != {})


def _types(frame: Mapping[str, Any]) -> tuple[frozenset[Term] | None, tuple[Term, ...]]:
    """Returns the types that match, and the default type of nodes without one."""
    if "@type" not in frame:
        return None, ()
    given = list(_values(frame, "@type"))
    if given == [{}]:
        return frozenset(), ()
    default: tuple[Term, ...] = ()
    if given and isinstance(given[0], dict):
        names = given.pop(0).get("@default")
        if not (isinstance(names, list) and names and all(map(_is_name, names))):
            raise NotCompiled
        default = (Term(f"<{names[0]}>"),)
    if not all(isinstance(each, str) for each in given):
        raise NotCompiled
    return frozenset(Term(f"<{name}>") for name in given), default


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and ":" in value


def _values(frame: Mapping[str, Any], key: str) -> list[Any]:
    values = frame.get(key, [])
    return values if isinstance(values, list) else [values]


def _first(frame: Mapping[str, Any], key: str, otherwise: Any) -> Any:
    values = _values(frame, key)
    return values[0] if values else otherwise


def _embed(value: Any) -> str:
    if isinstance(value, bool):
        return "@once" if value else "@never"
    if value not in EMBEDS:
        raise UsageError(
            f'the frame has "@embed": {value!r}', hint=f"choose one of {', '.join(EMBEDS)}"
        )
    return str(value)


# --- framing --------------------------------------------------------------------------------------


@dataclass(slots=True)
class Tree:
    """A node in a document, with its embedded nodes; without types and properties it is a reference."""

    # its term; None: a blank node without references
    id: Term | None
    types: Sequence[Term] = ()
    # the values of each property, in order
    properties: list[tuple[Term, list[Item]]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Default:
    """The JSON value of a frame for a property without values."""

    value: Any


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: list[Item]


Item: TypeAlias = Tree | Term | Items | Default
"""The value of a property: a node, a literal, a list, or the frame's default."""


def in_order(term: Term) -> str:
    """Returns the sort key of a term: IRIs are sorted by their characters alone."""
    return term[1:-1] if term[0] == "<" else term


class Framing:
    """Frames the nodes of one message. `expand`: returns a literal of a property as a value object. `sort`: whether the
    properties of a node are in the order of their predicates, which decides where a node is embedded that is only
    embedded once; otherwise they are in the order of the message.
    """

    def __init__(
        self, nodes: Nodes, expand: Callable[[Term, Term], Mapping[str, Any]], *, sort: bool = True
    ) -> None:
        self._nodes, self._expand, self._sort = nodes, expand, sort
        self._embedded: set[Term] = set()  # within one top-level node
        self._around: list[Term] = []
        self._blanks = Counter[Term]()
        self._trees: list[Tree] = []
        self._count = 0

    def trees(self, roots: Iterable[Term], frame: NodeFrame) -> list[Tree]:
        """Returns the nodes that match a frame, with their embedded nodes."""
        trees = []
        for root in roots:
            if self.matches(self._nodes[root], root, frame):
                self._embedded = set()
                trees.append(self._embed(root, frame))
        for tree in self._trees:
            if tree.id is not None and self._blanks[tree.id] == 1:
                tree.id = None
        return trees

    def _tree(self, term: Term) -> Tree:
        self._count += 1
        if self._count > MOST_EMBEDDED:
            raise UnsupportedByFormat(
                f"the document has more than {MOST_EMBEDDED} nodes, as nodes are embedded wherever they occur",
                hint='write a frame that embeds them once: "@embed": "@once"',
            )
        tree = Tree(term)
        if term[0] == "_":
            self._blanks[term] += 1
            self._trees.append(tree)
        return tree

    def _embed(self, term: Term, frame: NodeFrame) -> Tree:
        tree, node = self._tree(term), self._nodes[term]
        self._embedded.add(term)
        if len(self._around) >= MOST_NESTED:
            raise too_deep()
        self._around.append(term)
        if node.types:
            tree.types = node.types
            self._blanks.update(type for type in node.types if type[0] == "_")
        implied = None
        for predicate in sorted(node.properties, key=in_order) if self._sort else node.properties:
            if predicate in frame.properties:
                inner = frame.properties[predicate] or NodeFrame()
            elif frame.flags.explicit:
                continue
            else:
                inner = implied = implied or frame.implied()
            items = self._items(predicate, node.properties[predicate], inner, frame)
            if items:
                tree.properties.append((predicate, items))
        if frame.properties:
            present = {predicate for predicate, _ in tree.properties}
            for predicate, given in frame.properties.items():
                if predicate not in present and not (given and given.omit_default):
                    default = None if given is None or given.default is ... else given.default
                    tree.properties.append((predicate, [Default(default)]))
        if frame.default_types and not tree.types:
            tree.types = frame.default_types
        self._around.pop()
        return tree

    def _items(
        self, predicate: Term, values: Iterable[Value], frame: NodeFrame, around: NodeFrame
    ) -> list[Item]:
        items: list[Item] = []
        for value in values:
            if isinstance(value, tuple):
                inner = frame.items or around.implied()
                items.append(Items(self._list(value, inner)))
            elif value[0] == '"':
                if frame.value is None or self._matches_value(predicate, value, frame):
                    items.append(value)
            elif self.matches(self._nodes[value], value, frame):
                items.append(self._node(value, frame))
        return items

    def _list(self, values: Iterable[Value], frame: NodeFrame) -> list[Item]:
        items: list[Item] = []
        for value in values:
            if isinstance(value, tuple):
                items.append(Items(self._list(value, frame)))
            elif value[0] == '"':
                items.append(value)
            elif self.matches(self._nodes[value], value, frame):
                items.append(self._node(value, frame))
        return items

    def _node(self, term: Term, frame: NodeFrame) -> Tree:
        embed = frame.flags.embed
        if (
            embed == "@never"
            or (embed == "@once" and term in self._embedded)
            or term in self._around
        ):
            return self._tree(term)
        return self._embed(term, frame)

    def matches(self, node: NodeProperties, term: Term, frame: NodeFrame) -> bool:
        """Returns whether a node matches a frame (section 4.3.2)."""
        require_all, some, wildcard = frame.flags.require_all, False, True
        if frame.ids is not None:
            some = not frame.ids or term in frame.ids
            if not require_all or not some:
                return some
        if frame.types is not None:
            wildcard = False
            if frame.any_type:
                matched = bool(node.types)
            elif frame.default_types:
                matched = True
            elif frame.types:
                matched = not frame.types.isdisjoint(node.types)
            elif node.types:
                return False
            else:
                matched = True
            if (frame.types or frame.default_types) and not require_all:
                return matched
            if require_all and not matched:
                return False
            some = some or matched
        for predicate, inner in frame.properties.items():
            wildcard = False
            values = node.properties.get(predicate, [])
            if not values and inner is not None and inner.default is not ...:
                continue
            if inner is None:
                if values:
                    return False
                matched = True
            else:
                matched = self._matches_any(predicate, values, inner)
            if require_all and not matched:
                return False
            some = some or matched
        return wildcard or some

    def _matches_any(self, predicate: Term, values: Sequence[Value], frame: NodeFrame) -> bool:
        if frame.items is not None:
            first = values[0] if values else None
            return isinstance(first, tuple) and self._matches_item(predicate, first, frame.items)
        if frame.is_value or frame.is_reference:
            return self._matches_item(predicate, values, frame)
        return bool(values)

    def _matches_item(self, predicate: Term, values: Sequence[Value], frame: NodeFrame) -> bool:
        for value in values:
            if isinstance(value, tuple) or value[0] != '"':
                if frame.is_value:
                    if frame.value == ANY_VALUE:
                        return True  # in processors, this also matches nodes and lists
                elif isinstance(value, str) and self.matches(self._nodes[value], value, frame):
                    return True
            elif frame.is_value and self._matches_value(predicate, value, frame):
                return True
        return False

    def _matches_value(self, predicate: Term, literal: Term, frame: NodeFrame) -> bool:
        assert frame.value is not None
        return matches_value(frame.value, self._expand(predicate, literal))
