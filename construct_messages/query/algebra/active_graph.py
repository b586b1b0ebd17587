"""The active graph of a group: finds the patterns that match in it, and joins the others with its name.

SPARQL 1.1 Query, section 18.6: `GRAPH` evaluates its group once for each named graph of the dataset, and not at all for
a graph that is not in it. Leaves carry their graph; a group without leaves, or whose leaves need not match, is joined
with the name of the graph. No parse tree here.
"""

from __future__ import annotations

from construct_messages.query.algebra.nodes import (
    Bgp,
    Graphs,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    Path,
    Star,
    Unary,
    Union,
    Unit,
    Values,
    Var,
    VarOrTerm,
)
from construct_messages.query.algebra.property_paths import Closure


def join_active_graph(node: Node, graph: VarOrTerm | None) -> Node:
    """The node, joined with the name of the active graph unless all of its solutions are of that graph.

    >>> join_active_graph(Unit(), Var(".g0"))
    Graphs(graph=Var(name='.g0'))
    """
    if graph is None or _is_in_graph(node, graph):
        return node
    return Graphs(graph) if isinstance(node, Unit) else Join(node, Graphs(graph))


def _is_in_graph(node: Node, graph: VarOrTerm) -> bool:
    """Whether the node has solutions only in the graph and, if the graph is a variable, each of them binds it."""
    if isinstance(graph, Var):
        return graph in node.certain
    match node:
        case Bgp(patterns) | Star(_, patterns, _):
            return any(pattern.graph == graph for pattern in patterns)
        case Path(_, path, _, other):
            # a path of length zero may match without a triple
            return other == graph and not isinstance(path, Closure)
        case Graphs(other):
            return other == graph
        case Join(left, right):
            return _is_in_graph(left, graph) or _is_in_graph(right, graph)
        case LeftJoin(left, _, _) | Minus(left, _, _):
            return _is_in_graph(left, graph)
        case Union(left, right):
            return _is_in_graph(left, graph) and _is_in_graph(right, graph)
        case Group(pattern, keys, _):
            return bool(keys) and _is_in_graph(pattern, graph)
        case Unary(pattern):
            return _is_in_graph(pattern, graph)
        case Unit() | Values():
            return False
