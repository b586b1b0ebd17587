"""What a part of a query must know of its surroundings; without Spark."""

from __future__ import annotations

import pytest

from construct_messages.query.algebra.calls import (
    conjunction,
    conjuncts,
    exists_in,
    is_volatile,
)
from construct_messages.query.algebra.nodes import (
    Aggregation,
    Bgp,
    Call,
    Closure,
    Constant,
    Distinct,
    Exists,
    Expression,
    Extend,
    Filter,
    Group,
    Join,
    LeftJoin,
    Link,
    Minus,
    Node,
    OrderBy,
    Path,
    Project,
    Slice,
    Triple,
    Union,
    Unit,
    Values,
    Var,
    correlated_variables,
    join_order,
    mentions,
)
from construct_messages.rdf.terms import iri

V, W, X, Y, Z = map(Var, "vwxyz")
P = iri("urn:p")
XY, YZ, ZW = (Bgp((Triple(one, P, other),)) for one, other in ((X, Y), (Y, Z), (Z, W)))
LESS = Call("<", (Y, Z))
MAYBE = Values((X, Y), ((None, P), (P, P)))

DEPENDENT = {
    "a pattern": (XY, ""),
    "a condition on what is bound": (Filter(XY, Call("<", (X, Y))), ""),
    "a condition on what is not": (Filter(XY, LESS), "z"),
    "a condition on what may be bound": (Filter(MAYBE, Call("BOUND", (X,))), "x"),
    "a value of what is not bound": (Extend(XY, V, Call("+", (Z, W))), "zw"),
    "on either side": (Join(XY, Union(Filter(XY, LESS), Extend(XY, V, W))), "zw"),
    "what is optional": (LeftJoin(XY, YZ, None), "z"),
    "a condition of what is optional": (LeftJoin(XY, YZ, Call("<", (X, W))), "zw"),
    "what is subtracted": (Minus(XY, YZ), "z"),
    "what is subtracted from": (Minus(Filter(XY, LESS), XY), "z"),
    "an EXISTS within": (Filter(XY, Exists(YZ)), "z"),
    "a condition within an EXISTS": (Filter(XY, Exists(Filter(YZ, Call("<", (X, W))))), "zw"),
    "a sub-select's own variable": (Project(Filter(XY, LESS), (X, Y)), ""),
    "a sub-select's projected variable": (Distinct(Project(Filter(XY, LESS), (X, Z))), "z"),
    "what is cut": (Slice(XY, 0, 1), "xy"),
    "what is sorted by": (OrderBy(XY, ((Z, False),)), "z"),
    "what is counted": (Group(XY, (X,), ((V, Aggregation("SUM", Z)),)), "z"),
    "a key that may be unbound": (Group(MAYBE, (X,), ()), "x"),
}


@pytest.mark.parametrize(("node", "names"), DEPENDENT.values(), ids=DEPENDENT)
def test_dependent(node: Node, names: str) -> None:
    assert correlated_variables(node) == set(map(Var, names))


def test_conditions() -> None:
    both = Call("&&", (Exists(XY), Call("&&", (LESS, Call("!", (Exists(YZ),))))))
    assert len(conjuncts(both)) == 3
    assert conjuncts(conjunction(conjuncts(both)) or Constant(P)) == conjuncts(both)
    assert conjunction(()) is None
    assert exists_in(both) == (Exists(XY), Exists(YZ))
    assert mentions(both) == {X, Y, Z}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (Call("RAND", ()), True),
        (Call("STRLEN", (Call("STR", (Call("UUID", ()),)),)), True),
        (Call("FRESH", (Constant(P), X)), False),
        (LESS, False),
    ],
)
def test_volatile(expression: Expression, expected: bool) -> None:
    assert is_volatile(expression) is expected


def path(start: Var, end: Var) -> Path:
    return Path(start, Closure(Link(P), "*"), end)


@pytest.mark.parametrize(
    ("join", "bound", "order"),
    [
        pytest.param(Join(Join(XY, ZW), YZ), "", [XY, YZ, ZW], id="what shares nothing waits"),
        pytest.param(Join(path(X, V), XY), "", [XY, path(X, V)], id="a path waits for its end"),
        pytest.param(Join(path(X, V), ZW), "v", [path(X, V), ZW], id="an end known from outside"),
        pytest.param(
            Join(Join(path(V, W), path(X, V)), XY),
            "",
            [XY, path(X, V), path(V, W)],
            id="a path begins where one ends",
        ),
        pytest.param(Join(Unit(), Join(XY, Unit())), "", [XY], id="units change nothing"),
        pytest.param(Join(Unit(), Unit()), "", [Unit()], id="but where they are all there is"),
        pytest.param(
            Join(Filter(path(X, V), LESS), Join(YZ, XY)),
            "",
            [YZ, XY, Filter(path(X, V), LESS)],
            id="inside a filter",
        ),
    ],
)
def test_arranged(join: Join, bound: str, order: list[Node]) -> None:
    assert join_order(join, frozenset(map(Var, bound))) == order
