"""SQL of comparison: the operators that compare values of any type, the truth of a value, and the order of terms.

SPARQL 1.1 Query, sections 17.2.2 (effective boolean value), 17.3 (operators), 17.4.1.7 (RDFterm-equal) and 15.1
(ORDER BY). Beyond the table of section 17.3 there are, as in the embedded store, dates and times of the other XSD types
and literals of one language. What numbers and dates are, their own rooms know.
"""

from __future__ import annotations

from construct_messages.spark import datetimes, numbers
from construct_messages.spark.values import (
    Scalar,
    Type,
    any_of,
    as_term,
    case,
    digits,
    escaped,
    has_language,
    is_blank,
    is_iri,
    is_literal,
    is_string,
    let,
    suffix,
    text_of,
    unescape,
    xsd_type,
)
from construct_messages.terms import XSD

_TRUE, _FALSE = ([f'"{text}"^^<{XSD}boolean>' for text in texts] for texts in (("true", "1"), ("false", "0")))
_NULL = "CAST(NULL AS BOOLEAN)"
_NATIVE = (Type.STRING, Type.BOOLEAN, Type.INTEGER, Type.DECIMAL)
"""The types whose values Spark compares as SPARQL does."""


def equal(left: Scalar, right: Scalar) -> Scalar:
    """`=`: whether the values are the same; NULL for two literals of which that is not known.

    Terms that are no literals are the same or not. Two literals that are not the same term are told apart by their
    values; where the value of one is not known (an unknown datatype, a lexical form that its datatype has not), it may
    be that of the other.
    """
    if left.type is right.type and left.type in _NATIVE:
        return Scalar(f"({left.sql} = {right.sql})", Type.BOOLEAN)
    for side, other in ((left, right), (right, left)):
        if side.term is not None and not side.term.startswith('"'):
            return Scalar(f"({as_term(other)} = {side.sql})", Type.BOOLEAN)
    return _compare("=", left, right)


def less(left: Scalar, right: Scalar, *, or_equal: bool = False) -> Scalar:
    """`<`, or `<=`; NULL unless the values are of types whose values have an order."""
    operator = "<=" if or_equal else "<"
    if left.type is right.type and left.type in _NATIVE:
        return Scalar(f"({left.sql} {operator} {right.sql})", Type.BOOLEAN)
    return _compare(operator, left, right)


def same_term(left: Scalar, right: Scalar) -> Scalar:
    """sameTerm: whether two values are one term."""
    return Scalar(f"({as_term(left)} = {as_term(right)})", Type.BOOLEAN)


def _compare(operator: str, left: Scalar, right: Scalar) -> Scalar:
    def compared(x: str, y: str) -> str:
        a, b = Scalar(x, left.type, left.term), Scalar(y, right.type, right.term)
        tests = [numbers.compare(operator, a, b), _texts(operator, a, b), _truths(operator, a, b)]
        if left.type is right.type is Type.TERM:
            tests.append(datetimes.compare(operator, x, y))
        if operator == "=":
            tests.append(_terms(a, b))
        return f"coalesce({', '.join(test for test in tests if test != _NULL)}, {_NULL})"

    return Scalar(let(left.sql, lambda x: let(right.sql, lambda y: compared(x, y))), Type.BOOLEAN)


def _texts(operator: str, left: Scalar, right: Scalar) -> str:
    """Strings by code point, which is the order of their bytes; only strings of one language compare."""

    def parts(side: Scalar) -> tuple[str, str, str]:
        if side.type is Type.STRING:
            return "true", "''", side.sql
        return is_string(side.sql), suffix(side.sql), unescape(escaped(side.sql))

    if any(side.type not in (Type.TERM, Type.STRING) for side in (left, right)):
        return _NULL
    (is_a, tag, a), (is_b, other, b) = parts(left), parts(right)
    return case((f"{is_a} AND {is_b} AND {tag} = {other}", f"{a} {operator} {b}"), otherwise=_NULL)


def _truth_of(side: Scalar) -> str:
    if side.type is Type.BOOLEAN:
        return side.sql
    return case((any_of(side.sql, _TRUE), "true"), (any_of(side.sql, _FALSE), "false"), otherwise=_NULL)


def _truths(operator: str, left: Scalar, right: Scalar) -> str:
    if any(side.type not in (Type.TERM, Type.BOOLEAN) for side in (left, right)):
        return _NULL
    return f"({_truth_of(left)} {operator} {_truth_of(right)})"


def _terms(left: Scalar, right: Scalar) -> str:
    """RDFterm-equal, of terms that are not of one kind of values."""
    a, b = as_term(left), as_term(right)

    def terms(a: str, b: str) -> str:
        apart = [f"NOT {is_literal(t)} OR {has_language(t)}" for t in (a, b)]
        return case(
            (f"{a} = {b}", "true"),
            (f"{a} IS NULL OR {b} IS NULL", "NULL"),
            (" OR ".join(apart), "false"),
            (f"{_kind(left, a)} <> {_kind(right, b)}", "false"),
            otherwise=_NULL,
        )

    return let(a, lambda a: let(b, lambda b: terms(a, b)))


def _kind(value: Scalar, term: str) -> str:
    """The kind of values that a literal without language belongs to; NULL if its value is not known."""
    if value.type in numbers.NUMERIC:
        return "'number'"
    if value.type is not Type.TERM:
        return f"'{value.type.name}'"
    return case(
        (f"""endswith({term}, '"')""", f"'{Type.STRING.name}'"),
        (f"{_truth_of(value)} IS NOT NULL", f"'{Type.BOOLEAN.name}'"),
        (numbers.is_number(value), "'number'"),
        otherwise=f"{datetimes.point(term)}.type",
    )


# --- truth ----------------------------------------------------------------------------------------------------------


def truth(value: Scalar) -> str:
    """SQL: the effective boolean value; NULL where there is none.

    A literal of a boolean or numeric type whose lexical form that type has not is false (section 17.2.2).
    """
    match value.type:
        case Type.BOOLEAN:
            return value.sql
        case Type.STRING:
            return f"({value.sql} <> '')"
        case Type.INTEGER | Type.DECIMAL:
            return f"({value.sql} <> 0)"
        case Type.FLOAT | Type.DOUBLE:
            return let(value.sql, lambda d: f"({d} <> 0 AND NOT isnan({d}))")
    return let(value.sql, _truth_of_term)


def _truth_of_term(t: str) -> str:
    number = Scalar(t)
    typed = any_of(xsd_type(t), (f"{name}>" for name in ("boolean", *numbers.TYPES)))
    return case(
        (any_of(t, _TRUE), "true"),
        (is_string(t), f"{escaped(t)} <> ''"),
        (f"{numbers.is_exact(number)}", f"{digits(t)} RLIKE '[1-9]'"),
        (f"{numbers.is_number(number)}", f"({numbers.double_of(t)} <> 0 AND NOT isnan({numbers.double_of(t)}))"),
        (typed, "false"),
        otherwise=_NULL,
    )


# --- order ----------------------------------------------------------------------------------------------------------


def order(value: Scalar) -> tuple[str, ...]:
    """SQL by which ORDER BY sorts: all ascending with NULL first, or all descending with NULL last.

    Unbound, blank nodes by their labels, IRIs, and literals: numbers by value, strings by code point and then by
    language, booleans, dates and times by their points in time (read as UTC if they have no zone), other literals by
    their terms; then triple terms.
    """
    if value.type in _NATIVE or value.type in numbers.NUMERIC:
        return (value.sql,)
    t = value.sql

    def point(field: str) -> str:
        return let(t, lambda t: f"{datetimes.point(t)}.at.{field}")

    simple = let(t, lambda t: f"concat({text_of(t)}, chr(0), {suffix(t)})")
    is_number, is_point = numbers.is_number(value), f"{point('seconds')} IS NOT NULL"
    kinds = (
        (is_blank(t), "0"),
        (is_iri(t), "1"),
        (f"NOT {is_literal(t)}", "7"),
        (is_string(t), "3"),
        (any_of(t, (*_TRUE, *_FALSE)), "4"),
        (is_number, "2"),
        (is_point, "5"),
        (f"{t} IS NOT NULL", "6"),
    )
    exact = let(t, lambda t: case((numbers.is_exact(Scalar(t)), numbers.order_key(digits(t))), otherwise="''"))
    texts = (
        (f"NOT {is_literal(t)}", t),
        (is_string(t), simple),
        (any_of(t, _TRUE), "'true'"),
        (any_of(t, _FALSE), "'false'"),
        (is_number, exact),
        (is_point, point("fraction")),
    )
    values = ((is_number, numbers.double_of(t)), (is_point, f"CAST({point('seconds')} AS DOUBLE)"))
    return case(*kinds), case(*values), case(*texts, otherwise=t)
