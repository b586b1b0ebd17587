"""Translation of triple patterns and property paths to the algebra.

SPARQL 1.1 Query, sections 18.2.2.3 (property path expressions) and 18.2.2.4 (property path patterns): sequences become
joins, inverses swapped triples and alternatives unions, which keep duplicates; only `?`, `*`, `+` and negated sets
become a `Path`. No groups and no expressions here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, TypeAlias, assert_never, cast

from construct_messages.query.algebra.nodes import (
    Bgp,
    Join,
    Node,
    Path,
    Triple,
    Union,
    Unit,
    Var,
    VarOrTerm,
)
from construct_messages.query.algebra.property_paths import (
    Alternative,
    Closure,
    Inverse,
    Link,
    Negated,
    PathExpression,
)
from construct_messages.query.algebra.property_paths import Sequence as Steps
from construct_messages.query.syntax.nodes import (
    BlankNode,
    IriNode,
    LiteralNode,
    PathAlternative,
    PathInverse,
    PathNegation,
    PathNode,
    PathRepetition,
    PathSequence,
    SyntaxNode,
    TermNode,
    TripleNode,
    TripleTermNode,
    VariableNode,
)
from construct_messages.query.syntax.parser import Query
from construct_messages.rdf.errors import UnsupportedQuery
from construct_messages.rdf.terms import Term

# --- leaves ---------------------------------------------------------------------------------------
# The leaves of a syntax tree in the algebra: variables, terms, and hidden variables for blank nodes.
#
# SPARQL 1.1 Query, section 4. The terms that SPARQL 1.2 adds are rejected by name. No patterns and no expressions
# here.

HINT_1_1: Final = "write the query in SPARQL 1.1"


class Leaves:
    """Translates the leaves of one query."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self._blanks: dict[str, Var] = {}

    def position(self, node: TermNode) -> VarOrTerm:
        """Returns the variable or term of a triple pattern; a blank node is a hidden variable, one for each label."""
        match node:
            case VariableNode():
                return self.variable(node)
            case BlankNode(label=label):
                return self._blanks.setdefault(label, Var(f".b{len(self._blanks)}"))
            case _:
                return self.term(node)

    def variable(self, node: VariableNode) -> Var:
        """Returns the variable of a node."""
        return Var(node.name)

    def term(self, node: TermNode) -> Term:
        """Returns an IRI or literal. Triple terms and literals with a base direction are not supported."""
        if isinstance(node, TripleTermNode) or (
            isinstance(node, LiteralNode) and "--" in (node.language or "")
        ):
            message = "triple terms and base directions belong to SPARQL 1.2, which is not supported in WHERE"
            raise self.query.unsupported(node, message, hint=HINT_1_1)
        return self.query.term(node)

    def unknown(self, node: SyntaxNode) -> UnsupportedQuery:
        """Returns the error for a part of the query that SPARQL 1.1 does not have."""
        return self.query.unsupported(node, "this is not part of SPARQL 1.1", hint=HINT_1_1)


# --- patterns -------------------------------------------------------------------------------------

Fresh: TypeAlias = Callable[[str], Var]
"""A new hidden variable whose name begins with a dot and a letter."""


def triples(
    leaves: Leaves, block: Iterable[TripleNode], graph: VarOrTerm | None, fresh: Fresh
) -> Node:
    """The triples of one basic graph pattern, paths among them.

    `fresh` makes the variables between the steps of a path.
    """
    found = _Conjunction(graph, fresh)
    for triple in block:
        start, end = leaves.position(triple.subject), leaves.position(triple.object)
        if isinstance(triple.predicate, VariableNode):
            found.patterns.append(Triple(start, leaves.variable(triple.predicate), end, graph))
        else:
            found.connect(start, _path(leaves, triple.predicate), end)
    return found.node()


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


class _Conjunction:
    """Collects the leaves that paths are translated to: plain triples, and the nodes to join with them."""

    def __init__(self, graph: VarOrTerm | None, fresh: Fresh) -> None:
        self.patterns: list[Triple] = []
        self._others: list[Node] = []
        self._graph, self._fresh = graph, fresh

    def connect(self, start: VarOrTerm, path: PathExpression, end: VarOrTerm) -> None:
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
                    found = _Conjunction(self._graph, self._fresh)
                    found.connect(start, way, end)
                    ways.append(found.node())
                self._others.append(union(ways))
            case Closure() | Negated():
                self._others.append(Path(start, path, end, self._graph))

    def node(self) -> Node:
        node: Node = Bgp(tuple(self.patterns)) if self.patterns else Unit()
        for other in self._others:
            node = join(node, other)
        return node


def _path(leaves: Leaves, node: PathNode) -> PathExpression:
    match node:
        case IriNode():
            return Link(leaves.term(node))
        case PathAlternative(paths=ways):
            return Alternative(tuple(_path(leaves, way) for way in ways))
        case PathSequence(paths=steps):
            return Steps(tuple(_path(leaves, step) for step in steps))
        case PathInverse(path=path):
            return Inverse(_path(leaves, path))
        case PathRepetition(path=path, modifier=modifier):
            return Closure(_path(leaves, path), cast(Literal["?", "*", "+"], modifier))
        case PathNegation(members=members):
            inverse = (one.path for one in members if isinstance(one, PathInverse))
            backward = tuple(leaves.term(one) for one in inverse if isinstance(one, IriNode))
            forward = tuple(leaves.term(one) for one in members if isinstance(one, IriNode))
            return Negated(forward if forward or not backward else None, backward or None)
        case other:
            assert_never(other)
