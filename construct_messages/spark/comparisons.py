"""SQL of comparison: the operators that compare values of any type, the truth of a value, and the order of terms.

SPARQL 1.1 Query, sections 17.2.2 (effective boolean value), 17.3 (operators), 17.4.1.7 (RDFterm-equal) and 15.1
(ORDER BY). Beyond the table of section 17.3 there are, as in the embedded store, dates and times of the other XSD types
and literals of one language. What numbers and dates are, their own rooms know.
"""

from __future__ import annotations

from construct_messages.spark import datetimes, numbers
from construct_messages.spark.numbers import Operand
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
    is_simple,
    is_string,
    let,
    suffix,
    unescape,
    xsd_type,
)
from construct_messages.terms import XSD

_TRUE, _FALSE = ([f'"{text}"^^<{XSD}boolean>' for text in texts] for texts in (("true", "1"), ("false", "0")))
_NULL = "CAST(NULL AS BOOLEAN)"
_NATIVE = (Type.STRING, Type.BOOLEAN, Type.INTEGER, Type.DECIMAL)
"""The types whose values Spark compares as SPARQL does."""


# --- operators ------------------------------------------------------------------------------------------------------


def equal(left: Scalar, right: Scalar) -> Scalar:
    """`=`: whether the values are the same; NULL for two literals of which that is not known.

    Terms that are no literals are the same or not. Two literals that are not the same term are told apart by their
    values; where the value of one is not known (an unknown datatype, a lexical form that its datatype has not), it may
    be that of the other.
    """
    for side, other in ((left, right), (right, left)):
        if side.term is not None and not side.term.startswith('"'):
            return Scalar(f"({as_term(other)} = {side.sql})", Type.BOOLEAN)
    return _compare("=", left, right)


def less(left: Scalar, right: Scalar, *, or_equal: bool = False) -> Scalar:
    """`<`, or `<=`; NULL unless the values are of types whose values have an order."""
    return _compare("<=" if or_equal else "<", left, right)


def same_term(left: Scalar, right: Scalar) -> Scalar:
    """sameTerm: whether two values are one term."""
    return Scalar(f"({as_term(left)} = {as_term(right)})", Type.BOOLEAN)


def _compare(operator: str, left: Scalar, right: Scalar) -> Scalar:
    """By what is known of the types: the less is known, the more there is to do for each solution."""
    if left.type is right.type and left.type in _NATIVE:
        return Scalar(f"({left.sql} {operator} {right.sql})", Type.BOOLEAN)

    def compared(x: str, y: str) -> str:
        a, b = Scalar(x, left.type, left.term), Scalar(y, right.type, right.term)
        for side, other in ((a, b), (b, a)):
            if side.term is not None and (point := datetimes.constant_point(side.term)) and other.type is Type.TERM:
                return _compare_point(operator, other.sql, point, swapped=side is a)
        if a.type is b.type is Type.TERM:
            return let(
                x, lambda x: let(y, lambda y: _compare_terms(operator, x, y), interpreted=True), interpreted=True
            )
        if Type.TERM in (a.type, b.type):
            return _compare_native(operator, a, b)
        if a.type in numbers.NUMERIC and b.type in numbers.NUMERIC:
            return numbers.compare(operator, Operand.of(a), Operand.of(b))
        return case((f"{x} IS NOT NULL AND {y} IS NOT NULL", "false" if operator == "=" else _NULL))

    return Scalar(let(left.sql, lambda x: let(right.sql, lambda y: compared(x, y))), Type.BOOLEAN)


def _compare_native(operator: str, left: Scalar, right: Scalar) -> str:
    """A term and a value of a native type, with no more ado than that type needs."""
    native, term = (left, right.sql) if right.type is Type.TERM else (right, left.sql)
    otherwise = _NULL
    if operator == "=":
        unknown = "false" if native.term is not None else f"{native.sql} IS NULL"
        otherwise = case((unknown, _NULL), otherwise=_apart(term))
    if native.type in numbers.NUMERIC:
        return numbers.compare(operator, Operand.of(left), Operand.of(right), otherwise)
    if native.type is Type.STRING and operator == "=":
        # as a disjunction, for in a filter Spark makes of it what it can push down
        return f"({term} = {as_term(native)} OR {otherwise})"
    is_a, value = f"{boolean(term)} IS NOT NULL", boolean(term)
    if native.type is Type.STRING:
        is_a, value = is_simple(term), unescape(escaped(term))
    x, y = (value if side.type is Type.TERM else side.sql for side in (left, right))
    return case((is_a, f"{x} {operator} {y}"), otherwise=otherwise)


def _compare_point(operator: str, term: str, point: str, *, swapped: bool) -> str:
    """A term and a constant date or time."""

    def compared(p: str) -> str:
        by_value = datetimes.compare(operator, *((point, p) if swapped else (p, point)))
        otherwise = _apart(term) if operator == "=" else _NULL
        return case((f"{p}.type = {point}.type", by_value), otherwise=otherwise)

    return let(datetimes.point(term), compared)


def _apart(term: str) -> str:
    """Of a term that is not of the kind of values it is compared with: false, or NULL if its value is not known."""
    known = [numbers.is_number(Scalar(term)), any_of(term, (*_TRUE, *_FALSE)), f"{datetimes.point(term)} IS NOT NULL"]
    return case(
        (f"NOT {is_literal(term)} OR NOT endswith({term}, '>')", "false"),
        *((test, "false") for test in known),
        otherwise=_NULL,
    )


def _compare_terms(operator: str, x: str, y: str) -> str:
    def by_value(a: str, b: str) -> str:
        first, second = (Operand.ranked(f"{value}.rank", f"{value}.text") for value in (a, b))
        points = datetimes.compare(operator, f"{a}.point", f"{b}.point")
        return case(
            (f"{a}.rank IS NOT NULL", numbers.compare(operator, first, second)),
            (f"{a}.point IS NOT NULL", points),
            otherwise=f"{a}.text {operator} {b}.text",
        )

    def compared(a: str, b: str) -> str:
        branches = [(f"{a}.kind = {b}.kind", by_value(a, b))]
        if operator == "=":
            apart = " OR ".join(f"NOT {is_literal(t)} OR {has_language(t)}" for t in (x, y))
            branches += [
                (f"{x} IS NULL OR {y} IS NULL", _NULL),
                (f"{x} = {y}", "true"),
                (f"{apart} OR {a}.kind IS NOT NULL AND {b}.kind IS NOT NULL", "false"),
            ]
        return case(*branches, otherwise=_NULL)

    return let(_decoded(x), lambda a: let(_decoded(y), lambda b: compared(a, b)))


def boolean(term: str) -> str:
    """SQL: the value of a term that is an xsd:boolean; NULL for another."""
    return case((any_of(term, _TRUE), "true"), (any_of(term, _FALSE), "false"), otherwise=_NULL)


def _decoded(term: str) -> str:
    """SQL of a term's value: STRUCT<kind, rank, text, point>.

    Values compare if they are of one kind; it is NULL if the value is not known. Numbers have a rank, and text that is
    their lexical form; dates and times have a point; strings (of each language) and booleans have text.
    """

    def value(kind: str, *, rank: str = "NULL", text: str = "NULL", point: str = "NULL") -> str:
        return (
            f"named_struct('kind', CAST({kind} AS STRING), 'rank', CAST({rank} AS INT), "
            f"'text', CAST({text} AS STRING), 'point', CAST({point} AS {datetimes.POINT}))"
        )

    def typed(t: str, rank: str) -> str:
        return case(
            (f"{rank} IS NOT NULL", value("'number'", rank=rank, text=digits(t))),
            (any_of(t, _TRUE), value("'boolean'", text="'true'")),
            (any_of(t, _FALSE), value("'boolean'", text="'false'")),
            otherwise=let(datetimes.point(t), lambda p: value(f"{p}.type", point=p)),
        )

    def of_term(t: str) -> str:
        return case(
            (is_string(t), value(f"""concat('"', {suffix(t)})""", text=unescape(escaped(t)))),
            (is_literal(t), let(numbers.rank(Scalar(t)), lambda rank: typed(t, rank))),
            otherwise=value("NULL"),
        )

    return let(term, of_term, interpreted=True)


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
    typed = ("boolean", *numbers.TYPES)
    return let(
        value.sql,
        lambda t: case(
            (any_of(t, _TRUE), "true"),
            (is_string(t), f"""NOT startswith({t}, '""')"""),
            (numbers.is_number(Scalar(t)), f"NOT {numbers.is_zero(digits(t))}"),
            (any_of(xsd_type(t), (f"{name}>" for name in typed)), "false"),
            otherwise=_NULL,
        ),
    )


# --- order ----------------------------------------------------------------------------------------------------------


def order(value: Scalar) -> str:
    """SQL by which ORDER BY sorts: ascending with NULL first, or descending with NULL last.

    Unbound, blank nodes by their labels, IRIs, and literals: numbers by value, strings by code point and then by
    language, booleans, dates and times by their points in time (read as UTC if they have no zone), other literals by
    their terms; then triple terms.
    """
    if value.type is not Type.TERM:
        return value.sql

    def key(t: str, v: str) -> str:
        kind = case(
            (is_blank(t), "0"),
            (is_iri(t), "1"),
            (f"{v}.rank IS NOT NULL", "2"),
            (is_string(t), "3"),
            (f"{v}.kind = 'boolean'", "4"),
            (f"{v}.point IS NOT NULL", "5"),
            (is_literal(t), "6"),
            otherwise="7",
        )
        number = case(
            (f"{v}.rank IS NOT NULL", numbers.double(f"{v}.text", f"{v}.rank = 2")),
            (f"{v}.point IS NOT NULL", f"CAST({v}.point.at.seconds AS DOUBLE)"),
        )
        text = case(
            (f"{v}.rank < 2", numbers.order_key(f"{v}.text")),
            (f"{v}.rank IS NOT NULL", "''"),
            (f"{v}.point IS NOT NULL", f"{v}.point.at.fraction"),
            (f"{v}.text IS NOT NULL", f"concat({v}.text, chr(0), {v}.kind)"),
            otherwise=t,
        )
        return f"named_struct('kind', {kind}, 'number', {number}, 'text', {text})"

    return let(value.sql, lambda t: case((f"{t} IS NOT NULL", let(_decoded(t), lambda v: key(t, v)))), interpreted=True)
