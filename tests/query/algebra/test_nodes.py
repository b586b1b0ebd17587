"""`nodes.py`: operands, variables and expressions of each node."""

from __future__ import annotations

from typing import get_args

import pytest

from construct_messages.query.algebra.nodes import (
    Aggregation,
    Bgp,
    Call,
    Closure,
    Distinct,
    Expression,
    Extend,
    Filter,
    Graphs,
    Group,
    Join,
    LeftJoin,
    Link,
    Minus,
    Node,
    Number,
    OrderBy,
    Path,
    Project,
    Slice,
    Star,
    Triple,
    Union,
    Unit,
    Values,
    Var,
)
from construct_messages.rdf.terms import iri

X, Y, Z = map(Var, "xyz")
P = iri("urn:p")
LEFT, RIGHT = Bgp((Triple(X, P, Y),)), Bgp((Triple(Y, P, Z),))
ISIRI = Call("ISIRI", (X,))

# node, operands, possible and certain variables, expressions
NODES: dict[str, tuple[Node, tuple[Node, ...], str, str, tuple[Expression, ...]]] = {
    "unit": (Unit(), (), "", "", ()),
    "patterns": (LEFT, (), "xy", "xy", ()),
    "star": (Star(X, LEFT.patterns, (Triple(X, P, Z),)), (), "xyz", "xy", ()),
    "path": (Path(X, Closure(Link(P), "+"), Y), (), "xy", "xy", ()),
    "graphs": (Graphs(X), (), "x", "x", ()),
    "values": (Values((X, Y), ((P, None), (P, P))), (), "xy", "x", ()),
    "join": (Join(LEFT, RIGHT), (LEFT, RIGHT), "xyz", "xyz", ()),
    "left join": (LeftJoin(LEFT, RIGHT), (LEFT, RIGHT), "xyz", "xy", ()),
    "left join with a condition": (
        LeftJoin(LEFT, RIGHT, ISIRI),
        (LEFT, RIGHT),
        "xyz",
        "xy",
        (ISIRI,),
    ),
    "union": (Union(LEFT, RIGHT), (LEFT, RIGHT), "xyz", "y", ()),
    "minus": (Minus(LEFT, RIGHT), (LEFT, RIGHT), "xy", "xy", ()),
    "filter": (Filter(LEFT, ISIRI), (LEFT,), "xy", "xy", (ISIRI,)),
    "extend": (Extend(LEFT, Z, ISIRI), (LEFT,), "xyz", "xy", (ISIRI,)),
    "extend by a bound variable": (Extend(LEFT, Z, X), (LEFT,), "xyz", "xyz", (X,)),
    "number": (Number(LEFT, Z), (LEFT,), "xyz", "xyz", ()),
    "group": (Group(LEFT, (X,), ((Z, Aggregation("SUM", Y)),)), (LEFT,), "xz", "x", (Y,)),
    "count": (Group(LEFT, (X,), ((Z, Aggregation("COUNT", None)),)), (LEFT,), "xz", "xz", ()),
    "project": (Project(LEFT, (Y, Z)), (LEFT,), "y", "y", ()),
    "distinct": (Distinct(LEFT), (LEFT,), "xy", "xy", ()),
    "order": (OrderBy(LEFT, ((Y, True), (ISIRI, False))), (LEFT,), "xy", "xy", (Y, ISIRI)),
    "slice": (Slice(LEFT, 1, 2), (LEFT,), "xy", "xy", ()),
}


def test_every_node_is_here() -> None:
    assert {type(node) for node, *_ in NODES.values()} == set(get_args(Node))


@pytest.mark.parametrize(
    ("node", "children", "possible", "certain", "expressions"), NODES.values(), ids=NODES
)
def test_nodes(
    node: Node,
    children: tuple[Node, ...],
    possible: str,
    certain: str,
    expressions: tuple[Expression, ...],
) -> None:
    assert node.children == children
    assert (node.possible, node.certain) == (
        frozenset(map(Var, possible)),
        frozenset(map(Var, certain)),
    )
    assert node.expressions == expressions


@pytest.mark.parametrize("node", [node for node, *_ in NODES.values()], ids=NODES)
def test_what_changes_nothing_gives_the_same_node(node: Node) -> None:
    assert node.with_children(node.children) == node
    assert node.map_expressions(lambda expression: expression) == node


@pytest.mark.parametrize("node", [node for node, *_ in NODES.values()], ids=NODES)
def test_operands_and_expressions_are_replaced(node: Node) -> None:
    others: tuple[Node, ...] = tuple(Unit() for _ in node.children)
    changed = node.with_children(others).map_expressions(lambda _: Var("other"))
    assert type(changed) is type(node)
    assert changed.children == others
    assert changed.expressions == tuple(Var("other") for _ in node.expressions)
