"""Framing: arranges the nodes of a message as trees, by a compiled frame.

JSON-LD 1.1 Framing, section 4.3 (the framing algorithm). The result has terms for values; `documents.py` writes it.
tests/logs/json/test_framing.py compares it with PyLD.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from construct_messages.logs.json.frames import ANY_VALUE, NodeFrame
from construct_messages.logs.json.nodes import (
    MOST_EMBEDDED,
    MOST_NESTED,
    NodeProperties,
    Nodes,
    Value,
    too_deep,
)
from construct_messages.logs.json.values import matches_value
from construct_messages.rdf.errors import UnsupportedByFormat
from construct_messages.rdf.terms import Term


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
