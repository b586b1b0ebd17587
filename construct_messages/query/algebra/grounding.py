"""Whether solutions are of the active graph, and making them so.

SPARQL 1.1 Query, section 18.6: `GRAPH` evaluates its group once for each graph, and not at all for a graph that is not
in the dataset. Leaves carry their graph; a group without leaves, or with leaves that need not match, is joined with
the graph's name. No parse tree here.
"""

from __future__ import annotations

from construct_messages.query.algebra.nodes import (
    Bgp,
    Distinct,
    Extend,
    Filter,
    Graphs,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    Number,
    OrderBy,
    Path,
    Position,
    Project,
    Slice,
    Star,
    Union,
    Unit,
    Values,
    Var,
)
from construct_messages.query.algebra.property_paths import Closure


def grounded(node: Node, graph: Position | None) -> Node:
    """The node, joined with the active graph's name where its solutions do not depend on that.

    >>> grounded(Unit(), Var(".g0"))
    Graphs(graph=Var(name='.g0'))
    """
    if graph is None or _depends(node, graph):
        return node
    return Graphs(graph) if isinstance(node, Unit) else Join(node, Graphs(graph))


def _depends(node: Node, graph: Position) -> bool:
    """Whether there is no solution without the graph, and each solution binds it if it is a variable."""
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
            return _depends(left, graph) or _depends(right, graph)
        case LeftJoin(left, _, _) | Minus(left, _, _):
            return _depends(left, graph)
        case Union(left, right):
            return _depends(left, graph) and _depends(right, graph)
        case Group(pattern, keys, _):
            return bool(keys) and _depends(pattern, graph)
        case (
            Filter(pattern)
            | Extend(pattern)
            | Number(pattern)
            | Project(pattern)
            | Distinct(pattern)
            | OrderBy(pattern)
            | Slice(pattern)
        ):
            return _depends(pattern, graph)
        case Unit() | Values():
            return False
