"""Translation of triple patterns and property paths to the algebra.

SPARQL 1.1 Query, sections 18.2.2.3 (property path expressions) and 18.2.2.4 (property path patterns): sequences become
joins, inverses swapped triples and alternatives unions, which keep duplicates; what is left to `Path` is `?`, `*`, `+`
and negated sets. No groups and no expressions here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, cast

import rdflib
from rdflib.plugins.sparql.parserutils import CompValue

from construct_messages.query.algebra.nodes import (
    Bgp,
    Join,
    Node,
    Path,
    Position,
    Triple,
    Union,
    Unit,
    Var,
)
from construct_messages.query.algebra.parse_tree import ParseTree
from construct_messages.query.algebra.property_paths import (
    Alternative,
    Closure,
    Inverse,
    Link,
    Negated,
    PathExpression,
)
from construct_messages.query.algebra.property_paths import Sequence as Steps

Fresh: TypeAlias = Callable[[str], Var]
"""A new hidden variable whose name begins with a dot and a letter."""


def triples(tree: ParseTree, block: Sequence[Any], graph: Position | None, fresh: Fresh) -> Node:
    """The triples of one basic graph pattern, paths among them.

    Args:
        tree: what the leaves are of.
        block: subjects, predicates and objects in turn, as rdflib expands `;`, `,`, `[]` and `()`.
        graph: the active graph; None for the default graph.
        fresh: makes the variables between the steps of a path.

    Raises:
        QueryError, UnsupportedQuery: see `ParseTree.term` and `_path`.
    """
    leaves = _Leaves(graph, fresh)
    for subject, predicate, object in zip(block[::3], block[1::3], block[2::3], strict=True):
        start, end = tree.position(subject), tree.position(object)
        if isinstance(predicate, rdflib.Variable):
            leaves.patterns.append(Triple(start, tree.variable(predicate), end, graph))
        else:
            leaves.connect(start, _path(tree, predicate), end)
    return leaves.node()


def join(left: Node, right: Node) -> Node:
    """Both, without needless units."""
    if isinstance(left, Unit):
        return right
    return left if isinstance(right, Unit) else Join(left, right)


def union(nodes: Sequence[Node]) -> Node:
    """All of them, as a tree of little depth."""
    if len(nodes) == 1:
        return nodes[0]
    middle = len(nodes) // 2
    return Union(union(nodes[:middle]), union(nodes[middle:]))


class _Leaves:
    """Collects the leaves between which paths run: plain triples, and what is to be joined with them."""

    def __init__(self, graph: Position | None, fresh: Fresh) -> None:
        self.patterns: list[Triple] = []
        self._others: list[Node] = []
        self._graph, self._fresh = graph, fresh

    def connect(self, start: Position, path: PathExpression, end: Position) -> None:
        match path:
            case Link(predicate):
                self.patterns.append(Triple(start, predicate, end, self._graph))
            case Inverse(inner):
                self.connect(end, inner, start)
            case Steps(paths):
                for step in paths[:-1]:
                    stop = self._fresh("p")
                    self.connect(start, step, stop)
                    start = stop
                self.connect(start, paths[-1], end)
            case Alternative(paths):
                ways = []
                for way in paths:
                    leaves = _Leaves(self._graph, self._fresh)
                    leaves.connect(start, way, end)
                    ways.append(leaves.node())
                self._others.append(union(ways))
            case Closure() | Negated():
                self._others.append(Path(start, path, end, self._graph))

    def node(self) -> Node:
        node: Node = Bgp(tuple(self.patterns)) if self.patterns else Unit()
        for other in self._others:
            node = join(node, other)
        return node


def _path(tree: ParseTree, part: Any) -> PathExpression:
    """A path of the tree.

    Raises:
        UnsupportedQuery: a path that SPARQL 1.1 does not know.
    """
    match part:
        case CompValue(name="PathAlternative"):
            ways = tuple(_path(tree, way) for way in dict.__getitem__(part, "part"))
            return ways[0] if len(ways) == 1 else Alternative(ways)
        case CompValue(name="PathSequence"):
            steps = tuple(_path(tree, step) for step in dict.__getitem__(part, "part"))
            return steps[0] if len(steps) == 1 else Steps(steps)
        case CompValue(name="PathEltOrInverse"):
            return Inverse(_path(tree, dict.__getitem__(part, "part")))
        case CompValue(name="PathElt"):
            path = _path(tree, dict.__getitem__(part, "part"))
            kind = dict.get(part, "mod")
            return path if kind is None else Closure(path, cast(Literal["?", "*", "+"], kind))
        case CompValue(name="PathNegatedPropertySet"):
            members = dict.get(part, "part", [])
            backward = tuple(member for member in map(tree.inverse, members) if member is not None)
            forward = tuple(tree.term(member) for member in members if tree.inverse(member) is None)
            return Negated(forward if forward or not backward else None, backward or None)
        case rdflib.URIRef():
            return Link(tree.term(part))
    raise tree.unsupported(
        part,
        "the path is of a kind that SPARQL 1.1 does not have",
        str(getattr(part, "name", part)),
    )
