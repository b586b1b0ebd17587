"""Expressions of the algebra: their conjunctions, and the EXISTS in them.

SPARQL 1.1 Query, section 17. No query text here, and no evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, assert_never

from construct_messages.query.algebra.nodes import Call, Constant, Exists, Expression, Node, Var

_VOLATILE: Final = {"RAND", "UUID", "STRUUID"}


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """The conditions that must all be true for `expression` to be.

    >>> x, y, z = map(Var, "xyz")
    >>> conjuncts(Call("&&", (Call("&&", (x, y)), z))) == (x, y, z)
    True
    """
    if isinstance(expression, Call) and expression.name == "&&":
        return tuple(
            conjunct for argument in expression.arguments for conjunct in conjuncts(argument)
        )
    return (expression,)


def conjunction(conditions: Iterable[Expression]) -> Expression | None:
    """The inverse of `conjuncts`; None for no condition."""
    together: Expression | None = None
    for condition in conditions:
        together = condition if together is None else Call("&&", (together, condition))
    return together


def exists_in(expression: Expression) -> tuple[Exists, ...]:
    """The EXISTS in an expression, except for those in their bodies."""
    match expression:
        case Constant() | Var():
            return ()
        case Exists():
            return (expression,)
        case Call():
            return tuple(
                exists for argument in expression.arguments for exists in exists_in(argument)
            )
        case other:
            assert_never(other)


def replace_exists(expression: Expression, by: Callable[[Exists], Expression]) -> Expression:
    """The expression with each EXISTS in it replaced."""
    match expression:
        case Constant() | Var():
            return expression
        case Exists():
            return by(expression)
        case Call(name, arguments):
            return Call(name, tuple(replace_exists(argument, by) for argument in arguments))
        case other:
            assert_never(other)


def map_bodies(expression: Expression, change: Callable[[Node], Node]) -> Expression:
    """The expression with the body of each EXISTS in it changed."""
    return replace_exists(expression, lambda exists: Exists(change(exists.pattern)))


def is_volatile(expression: Expression) -> bool:
    """Whether two evaluations of the expression for one solution may have different values.

    >>> is_volatile(Call("+", (Var("x"), Call("RAND", ())))), is_volatile(Var("x"))
    (True, False)
    """
    match expression:
        case Call(name, arguments):
            return name in _VOLATILE or any(map(is_volatile, arguments))
    return False
