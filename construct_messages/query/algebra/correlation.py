"""Correlation, as databases call it: finds the variables of a part of a query that need their values from outside.

SPARQL 1.1 Query, section 18.6, substitutes a solution into the body of the EXISTS that is evaluated for it. Most bodies
need no substitution: evaluated once and joined on the shared variables, they have the same result. The other variables
are `correlated_variables`: the evaluation must pass their values down to the leaves. A variable that a sub-select does
not project is a different variable, even if it has the same name. No engine here.
"""

from __future__ import annotations

from typing import assert_never

from construct_messages.query.algebra.nodes import (
    NOTHING,
    Call,
    Constant,
    Exists,
    Expression,
    Group,
    LeftJoin,
    Minus,
    Node,
    Project,
    Slice,
    Var,
    Vars,
)


def mentions(expression: Expression | None) -> Vars:
    """The variables that an expression can read, including all variables in the scope of an EXISTS body.

    >>> sorted(var.name for var in mentions(Call("<", (Var("x"), Call("STRLEN", (Var("y"),))))))
    ['x', 'y']
    """
    match expression:
        case None | Constant():
            return NOTHING
        case Var():
            return frozenset({expression})
        case Call():
            return NOTHING.union(*map(mentions, expression.arguments))
        case Exists(pattern):
            return pattern.possible | correlated_variables(pattern)
        case other:
            assert_never(other)


def correlated_variables(node: Node) -> Vars:
    """The variables whose outer values must be known inside a node; the others can be compared with its results.

    These are variables that an expression reads although the pattern below it may leave them unbound, and variables of
    optional, subtracted or counted parts, which affect the result even if the part has no solution.

    >>> from construct_messages.query.algebra.nodes import Bgp, Filter, Triple
    >>> from construct_messages.rdf.terms import iri
    >>> p, (x, y, z) = iri("urn:p"), map(Var, "xyz")
    >>> correlated_variables(Filter(Bgp((Triple(x, p, y),)), Call("<", (y, z)))) == {z}
    True
    """
    below = NOTHING.union(*map(correlated_variables, node.children))
    read = NOTHING.union(*map(mentions, node.expressions))
    match node:
        case LeftJoin(_, right) | Minus(_, right):
            read |= right.possible
        case Group(_, keys):
            read |= frozenset(keys)
        case Project(_, variables):
            return below & frozenset(variables)
        case Slice(pattern):
            return below | pattern.possible
    return below | read.difference(*(child.certain for child in node.children[:1]))
