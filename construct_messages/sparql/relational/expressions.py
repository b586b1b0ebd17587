"""The exact evaluator of SPARQL's expressions outside of Oxigraph: over batches of distinct inputs.

SPARQL 1.1 Query, section 17. An engine's plan calls `terms` and `truths` with the distinct inputs of an expression, in
a stage after the filters that the engine evaluates itself, and `aggregates`. They may be pickled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from construct_messages.errors import UnsupportedQuery
from construct_messages.query.algebra.nodes import Call, Constant, Exists, Expression, Var
from construct_messages.rdf.terms import XSD
from construct_messages.sparql.relational.functions import (
    CASTS,
    FUNCTIONS,
    OF_TERMS,
    arithmetic,
    as_double,
    check_constants,
    is_number,
    text_of,
)
from construct_messages.sparql.relational.values import (
    NAMES,
    NUMERIC,
    NodeValue,
    Opaque,
    PlainString,
    Single,
    Tagged,
    TimePoint,
    single,
    term_of,
    value_of,
)

Row = Sequence[str | None]
Evaluated = Callable[[Row], Any]
"""Returns the value of an expression for a row: a term (`str`), a value of `values`, or None for an error."""

_DAY_AND_NIGHT: Final = 14 * 3600  # the greatest difference of a time zone from UTC


def check(expression: Expression) -> None:
    """Raises `UnsupportedQuery` for an expression that cannot be evaluated."""
    compiled(expression, {})


def terms(expression: Expression, names: Sequence[str], rows: Iterable[Row]) -> list[str | None]:
    """Returns the term of an expression for each row of the variables that are named; None is an error."""
    evaluated = compiled(expression, {name: place for place, name in enumerate(names)})
    found = map(evaluated, rows)
    return [None if value is None else term_of(value) for value in found]


def truths(expression: Expression, names: Sequence[str], rows: Iterable[Row]) -> list[bool | None]:
    """Returns the effective boolean value for each row of the variables that are named; None is an error.

    >>> from construct_messages.rdf.terms import number
    >>> truths(Call(">", (Var("x"), Constant(number("1.5")))), ["x"], [[number("2")], ['"a"']])
    [True, None]
    """
    evaluated = compiled(expression, {name: place for place, name in enumerate(names)})
    return [truth(evaluated(row)) for row in rows]


def aggregates(name: str, separator: str, groups: Iterable[Sequence[Any]]) -> list[str | None]:
    """Returns SUM or GROUP_CONCAT of each group; None is an error.

    The last value of a group has a line for each of its terms: their number, a space and the term. An error is no term.
    """
    found: list[str | None] = []
    for *_, counted in groups:
        lines = counted.split("\n") if counted else []
        parts = sorted(line.partition(" ")[::-2] for line in lines)
        pairs = [(term, int(size)) for term, size in parts]
        if pairs and not pairs[0][0]:
            found.append(None)
        else:
            found.append(_joined(pairs, separator) if name == "GROUP_CONCAT" else _sum(pairs))
    return found


def _joined(pairs: Iterable[tuple[str, int]], separator: str) -> str | None:
    texts = [text_of(value_of(term)) for term, count in pairs for _ in range(count)]
    if None in texts:
        return None
    return term_of(PlainString(separator.join(str(text) for text in texts)))


def _sum(pairs: Iterable[tuple[str, int]]) -> str | None:
    total: Any = 0
    for term, count in pairs:
        value = value_of(term)
        total = arithmetic("+", total, arithmetic("*", value, count) if count > 1 else value)
        if total is None:
            return None
    return term_of(total)


# --- compilation ----------------------------------------------------------------------------------


def compiled(expression: Expression, columns: Mapping[str, int]) -> Evaluated:
    """Returns the function of an expression without EXISTS; variables without a column are unbound.

    Raises:
        UnsupportedQuery: a function that is not known here, a pattern that cannot be translated, arithmetic of dates.
    """
    match expression:
        case Var(name):
            if name not in columns:
                return lambda _: None
            place = columns[name]
            return lambda row: row[place]
        case Constant(term):
            return lambda _: term
        case Call(name, arguments):
            constants = [one.term if isinstance(one, Constant) else None for one in arguments]
            check_constants(name, constants)
            return _call(name, [compiled(one, columns) for one in arguments])
        case Exists():
            raise UnsupportedQuery("EXISTS is not allowed here", fragment="EXISTS")


def _call(name: str, arguments: list[Evaluated]) -> Evaluated:
    match name:
        case "&&" | "||":
            return _junction(name == "||", *arguments)
        case "!":
            return _not(arguments[0])
        case "=" | "!=" | "<" | "<=" | ">" | ">=":
            return _comparison(name, *arguments)
        case "SAMEKEY":
            return lambda _: True  # a key that all values share: `=` decides
        case "IN":
            return _in(*arguments)
        case "IF":
            return _if(*arguments)
        case "COALESCE":
            return _coalesce(arguments)
        case "BOUND":
            return lambda row: arguments[0](row) is not None
        case "+" | "-" | "*" | "/":
            return _strict(lambda left, right: arithmetic(name, left, right), arguments, value)
        case "u+":
            return _strict(lambda one: one if is_number(one) else None, arguments, value)
        case "u-":
            return _strict(_negative, arguments, value)
        case _ if name in OF_TERMS:
            return _strict(OF_TERMS[name], arguments, term_of)
        case _ if name in FUNCTIONS:
            return _strict(FUNCTIONS[name], arguments, value)
        case _ if (cast := CASTS.get(name.removeprefix(f"<{XSD}").removesuffix(">"))) is not None:
            return _strict(cast, arguments, value)
    raise UnsupportedQuery(f"function {name} is not supported", fragment=name)


def value(found: Any) -> Any:
    """The value of a result of an expression, which may be a term."""
    return value_of(found) if isinstance(found, str) and type(found) is not PlainString else found


def _strict(
    function: Callable[..., Any], arguments: list[Evaluated], convert: Callable[[Any], Any]
) -> Evaluated:
    """A function that is an error where an argument is."""
    if len(arguments) == 1:
        (only,) = arguments

        def unary(row: Row) -> Any:
            found = only(row)
            return None if found is None else function(convert(found))

        return unary
    if len(arguments) == 2:
        left, right = arguments

        def binary(row: Row) -> Any:
            one = left(row)
            other = None if one is None else right(row)
            return None if other is None else function(convert(one), convert(other))

        return binary

    def strict(row: Row) -> Any:
        values = []
        for argument in arguments:
            found = argument(row)
            if found is None:
                return None
            values.append(convert(found))
        return function(*values)

    return strict


def _negative(number: Any) -> Any:
    if not is_number(number):
        return None
    return type(number)(-number) if type(number) is not Decimal else number.copy_negate()


# --- logic ----------------------------------------------------------------------------------------


def truth(found: Any) -> bool | None:
    """The effective boolean value (section 17.2.2); None is an error."""
    if found is None or type(found) is bool:
        return found
    one = value(found)
    kind = type(one)
    if kind is bool:
        return bool(one)
    if kind in (PlainString, Tagged):
        return text_of(one) != ""
    if kind in NAMES:
        return bool(one) and one == one
    if kind is Opaque and one.datatype.startswith(XSD):
        # an invalid form of a boolean or number is false
        name = one.datatype.removeprefix(XSD)
        return False if name == "boolean" or name in NUMERIC else None
    return None


def _junction(decisive: bool, left: Evaluated, right: Evaluated) -> Evaluated:
    def joined(row: Row) -> bool | None:
        first = truth(left(row))
        if first is decisive:
            return decisive
        second = truth(right(row))
        if second is decisive:
            return decisive
        return None if first is None or second is None else not decisive

    return joined


def _not(only: Evaluated) -> Evaluated:
    def negated(row: Row) -> bool | None:
        found = truth(only(row))
        return None if found is None else not found

    return negated


def _if(test: Evaluated, yes: Evaluated, no: Evaluated) -> Evaluated:
    def chosen(row: Row) -> Any:
        found = truth(test(row))
        return None if found is None else yes(row) if found else no(row)

    return chosen


def _coalesce(arguments: list[Evaluated]) -> Evaluated:
    def first(row: Row) -> Any:
        found = (argument(row) for argument in arguments)
        return next((one for one in found if one is not None), None)

    return first


def _in(needle: Evaluated, *members: Evaluated) -> Evaluated:
    def among(row: Row) -> bool | None:
        one, result = needle(row), False
        for member in members:
            other = member(row)
            found = None if one is None or other is None else equal(one, other)
            if found:
                return True
            result = None if found is None else result  # type: ignore[assignment]
        return result

    return among


# --- comparisons ----------------------------------------------------------------------------------


def _comparison(operator: str, left: Evaluated, right: Evaluated) -> Evaluated:
    negated, turned = operator == "!=", operator in (">", ">=")
    or_equal = operator.endswith("=")

    def compared(row: Row) -> bool | None:
        one, other = left(row), right(row)
        if one is None or other is None:
            return None
        if operator in ("=", "!="):
            found = equal(one, other)
            return (not found if negated else found) if found is not None else None
        if turned:
            one, other = other, one
        return less(value(one), value(other), or_equal=or_equal)

    return compared


def _kind(one: Any) -> str | None:
    """Values of one kind can be compared; None: the value is not known, or it is no literal."""
    kind = type(one)
    if kind is PlainString:
        return "string"
    if kind is Tagged:
        return str(one.suffix)
    if kind is bool:
        return "boolean"
    if kind in NAMES:
        return "number"
    return str(one.kind) if kind is TimePoint else None


def _comparable(one: Any, other: Any) -> tuple[Any, Any]:
    """Two numbers as values of the higher of their types."""
    kinds = {type(one), type(other)}
    if float in kinds:
        return as_double(one), as_double(other)
    if Single in kinds:
        return single(as_double(one)), single(as_double(other))
    return one, other


def equal(one: Any, other: Any) -> bool | None:
    """`=` of two terms or values; None is an error (section 17.4.1.7)."""
    first, second = value(one), value(other)
    kind, kind_other = _kind(first), _kind(second)
    if kind is not None and kind == kind_other:
        if kind == "number":
            one, other = _comparable(first, second)
            return bool(one == other)
        if type(first) is TimePoint:
            return _same_moment(first, second)
        return text_of(first) == text_of(second) if type(first) is not bool else first == second
    if term_of(first) == term_of(second):
        return True
    if NodeValue in (type(first), type(second)) or Tagged in (type(first), type(second)):
        return False
    return False if kind is not None and kind_other is not None else None


def less(first: Any, second: Any, *, or_equal: bool) -> bool | None:
    """`<` or `<=` of two values; None is an error."""
    one: Any
    other: Any
    kind = _kind(first)
    if kind is None or kind != _kind(second):
        return None
    if kind == "number":
        one, other = _comparable(first, second)
        return bool(one <= other if or_equal else one < other)
    if type(first) is TimePoint:
        return _earlier(first, second, or_equal=or_equal)
    one, other = (first, second) if type(first) is bool else (text_of(first), text_of(second))
    return bool(one <= other if or_equal else one < other)


def _point(moment: TimePoint) -> tuple[int, Any]:
    return moment.seconds, moment.fraction


def _apart(first: TimePoint, second: TimePoint) -> bool | None:
    """Whether the first is before the second in any zone (True) or after it (False)."""
    if (first.seconds + _DAY_AND_NIGHT, first.fraction) < _point(second):
        return True
    if (second.seconds + _DAY_AND_NIGHT, second.fraction) < _point(first):
        return False
    return None


def _same_moment(first: TimePoint, second: TimePoint) -> bool | None:
    if (first.zone is None) == (second.zone is None):
        return _point(first) == _point(second)
    return None if _apart(first, second) is None else False


def _earlier(first: TimePoint, second: TimePoint, *, or_equal: bool) -> bool | None:
    if (first.zone is None) == (second.zone is None):
        return _point(first) < _point(second) or (or_equal and _point(first) == _point(second))
    return _apart(first, second)
