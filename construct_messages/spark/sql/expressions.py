"""The compiler of expressions to SQL.

SPARQL 1.1 Query, sections 17.2 and 17.4.1, with three-valued logic: NULL is an error. Functional forms are compiled
here; operators, casts, functions and aggregates in other modules. EXISTS has been replaced by a variable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from construct_messages.errors import UnsupportedQuery
from construct_messages.query.algebra.nodes import (
    Aggregation,
    Call,
    Constant,
    Exists,
    Expression,
    Var,
)
from construct_messages.rdf.terms import XSD
from construct_messages.spark.sql import (
    aggregates,
    casts,
    comparisons,
    functions,
    numbers,
)
from construct_messages.spark.sql.values import (
    ERROR,
    Scalar,
    Type,
    as_term,
    case,
    column,
    compiled_if_short,
    let,
)


def term(expression: Expression) -> str:
    """The expression's value: a canonical term as STRING, NULL for an error."""
    return as_term(compiled(expression))


def condition(expression: Expression) -> str:
    """The expression's effective boolean value (section 17.2.2): BOOLEAN, NULL for an error."""
    return comparisons.truth(compiled(expression))


def order(expression: Expression) -> str:
    """SQL by which ORDER BY sorts: ascending with NULL first, or descending with NULL last; see `comparisons.order`."""
    return comparisons.order(compiled(expression))


def aggregate(aggregation: Aggregation) -> str:
    """An aggregate over a group of solutions: a term, NULL for an error. `COUNT(DISTINCT *)` needs columns."""
    if aggregation.argument is None:
        return as_term(aggregates.count_all())
    value = compiled(aggregation.argument)
    return as_term(
        aggregates.aggregate(
            aggregation.name, value, distinct=aggregation.distinct, separator=aggregation.separator
        )
    )


def compiled(expression: Expression) -> Scalar:
    """The expression as a value of its type, as far as it is known. Raises `UnsupportedQuery`."""
    match expression:
        case Var():
            return Scalar(column(expression))
        case Constant(constant):
            return numbers.constant(constant)
        case Exists():
            raise UnsupportedQuery("EXISTS is not allowed here", fragment="EXISTS")
        case Call("BOUND", (argument,)):
            return Scalar(f"({as_term(compiled(argument))} IS NOT NULL)", Type.BOOLEAN)
        case Call(name, arguments):
            value = _call(name, [compiled(argument) for argument in arguments])
            # operands of AND stay separate, because Spark pushes each of them down as far as possible, and joins by
            # keys
            return (
                value
                if name in ("&&", "SAMEKEY")
                else replace(value, sql=compiled_if_short(value.sql))
            )


def _call(name: str, values: Sequence[Scalar]) -> Scalar:
    for table in (_FORMS, casts.CASTS, functions.FUNCTIONS):
        if name in table:
            _check_dates(name, values)
            return table[name](*values)
    raise UnsupportedQuery(f"function {name} is not supported", fragment=name)


def _check_dates(operator: str, values: Sequence[Scalar]) -> None:
    """Refuses operations that are errors for each solution in SPARQL 1.1, but extensions of many engines."""
    durations = any(_has_datatype(value, _DURATIONS) for value in values)
    if operator in _ORDERS and durations:
        raise UnsupportedQuery("durations have no order here", fragment=operator, hint=_DATES_HINT)
    if operator in _ARITHMETIC and (
        durations or any(_has_datatype(value, _DATES) for value in values)
    ):
        raise UnsupportedQuery(
            "dates and durations have no arithmetic here", fragment=operator, hint=_DATES_HINT
        )


def _has_datatype(value: Scalar, names: tuple[str, ...]) -> bool:
    return value.term is not None and value.term.endswith(names)


def _not(value: Scalar) -> Scalar:
    return Scalar(f"(NOT {comparisons.truth(value)})", Type.BOOLEAN)


def _logical(operator: str) -> Callable[[Scalar, Scalar], Scalar]:
    # SQL's AND and OR are like SPARQL's: a decisive value takes precedence over an error
    return lambda left, right: Scalar(
        f"({comparisons.truth(left)} {operator} {comparisons.truth(right)})", Type.BOOLEAN
    )


def _unequal(left: Scalar, right: Scalar) -> Scalar:
    return Scalar(f"(NOT {comparisons.equal(left, right).sql})", Type.BOOLEAN)


def _in(needle: Scalar, *values: Scalar) -> Scalar:
    if not values:
        return Scalar("false", Type.BOOLEAN)
    if needle.type is Type.TERM:

        def among(x: str) -> str:
            return f"({' OR '.join(comparisons.equal(Scalar(x), value).sql for value in values)})"

        return Scalar(let(needle.sql, among), Type.BOOLEAN)
    return Scalar(
        f"({' OR '.join(comparisons.equal(needle, value).sql for value in values)})", Type.BOOLEAN
    )


def _alternatives(values: Sequence[Scalar]) -> tuple[Type, list[str]]:
    """Returns values as SQL of one type: their own if they share it, otherwise terms."""
    types = {value.type for value in values}
    # the term of a constant may differ from the canonical term of its value
    if len(types) == 1 and not any(value.term for value in values):
        return types.pop(), [value.sql for value in values]
    return Type.TERM, [as_term(value) for value in values]


def _if(test: Scalar, yes: Scalar, no: Scalar) -> Scalar:
    type, (then, otherwise) = _alternatives((yes, no))
    choice = let(comparisons.truth(test), lambda t: case((t, then), (f"NOT {t}", otherwise)))
    return Scalar(choice, type)


def _coalesce(*values: Scalar) -> Scalar:
    if not values:
        return ERROR
    type, choices = _alternatives(values)
    return Scalar(f"coalesce({', '.join(choices)})", type)


_ORDERS: Final = ("<", "<=", ">", ">=")
_ARITHMETIC: Final = ("+", "-", "*", "/", "u+", "u-")
_DURATIONS: Final = tuple(
    f"^^<{XSD}{name}>" for name in ("duration", "dayTimeDuration", "yearMonthDuration")
)
_DATES: Final = tuple(f"^^<{XSD}{name}>" for name in ("date", "time", "dateTime", "dateTimeStamp"))
_DATES_HINT: Final = "compare dates with each other, or their YEAR(), MONTH() and DAY()"

_FORMS: Final[Mapping[str, Callable[..., Scalar]]] = {
    "&&": _logical("AND"),
    "||": _logical("OR"),
    "!": _not,
    "=": comparisons.equal,
    "!=": _unequal,
    "<": comparisons.less,
    "<=": lambda left, right: comparisons.less(left, right, or_equal=True),
    ">": lambda left, right: comparisons.less(right, left),
    ">=": lambda left, right: comparisons.less(right, left, or_equal=True),
    "SAMEKEY": comparisons.same_key,
    "IN": _in,
    "IF": _if,
    "COALESCE": _coalesce,
    "u+": numbers.positive,
    "u-": numbers.negative,
    "+": partial(numbers.arithmetic, "+"),
    "-": partial(numbers.arithmetic, "-"),
    "*": partial(numbers.arithmetic, "*"),
    "/": partial(numbers.arithmetic, "/"),
}
