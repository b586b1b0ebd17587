"""SQL of comparisons: the operators on values of any type, the effective boolean value, and the order of terms.

SPARQL 1.1 Query, sections 17.2.2 (effective boolean value), 17.3 (operators), 17.4.1.7 (RDFterm-equal) and 15.1
(ORDER BY). As in the embedded store, dates and times of the other XSD types and literals of the same language can be
compared, too. Numbers and dates themselves are in `numbers` and `datetimes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from construct_messages.rdf.terms import XSD
from construct_messages.spark.sql import datetimes, numbers
from construct_messages.spark.sql.datetimes import Point
from construct_messages.spark.sql.numbers import NUMERIC, Operand
from construct_messages.spark.sql.values import (
    Scalar,
    Type,
    any_of,
    as_term,
    case,
    characters,
    digits,
    escaped,
    has_language,
    is_blank,
    is_iri,
    is_literal,
    is_out_of_range_unbound,
    is_simple,
    is_string,
    let,
    literal,
    may_fail,
    one_of,
    suffix,
    xsd_type,
)

TRUE, FALSE = (
    [f'"{text}"^^<{XSD}boolean>' for text in texts] for texts in (("true", "1"), ("false", "0"))
)
_NULL = "CAST(NULL AS BOOLEAN)"
_BACKSLASH = literal("\\")
NATIVE = (Type.STRING, Type.BOOLEAN, Type.INTEGER, Type.DECIMAL)
"""The types whose values Spark compares as SPARQL does."""


def is_typed(term: str) -> str:
    """Tests for a literal with a datatype, not a string with or without a language."""
    return f"({is_literal(term)} AND endswith({term}, '>'))"


# --- operators ------------------------------------------------------------------------------------------------------


def equal(left: Scalar, right: Scalar) -> Scalar:
    """`=`: whether the values are equal; NULL for two literals if this is unknown.

    Terms that are not literals are equal if they are the same. Two literals that are different terms are compared by
    value; the value of one with an unknown datatype or an ill-typed lexical form may be that of the other.
    """
    for side, other in ((left, right), (right, left)):
        if side.term is not None and not side.term.startswith('"'):
            return Scalar(f"({as_term(other)} = {side.sql})", Type.BOOLEAN)
    return _compare("=", left, right)


def less(left: Scalar, right: Scalar, *, or_equal: bool = False) -> Scalar:
    """`<` or `<=`; NULL unless the types of the values have an order."""
    return _compare("<=" if or_equal else "<", left, right)


def same_term(left: Scalar, right: Scalar) -> Scalar:
    return Scalar(f"({as_term(left)} = {as_term(right)})", Type.BOOLEAN)


def _compare(operator: str, left: Scalar, right: Scalar) -> Scalar:
    """Compares two values; unknown types are tested for each solution."""
    if left.type is right.type and left.type in NATIVE:
        return Scalar(f"({left.sql} {operator} {right.sql})", Type.BOOLEAN)

    def compared(x: str, y: str) -> str:
        a, b = Scalar(x, left.type, left.term), Scalar(y, right.type, right.term)
        for side, other in ((a, b), (b, a)):
            if (
                side.term is not None
                and (point := datetimes.constant_point(side.term))
                and other.type is Type.TERM
            ):
                return _compare_point(operator, other.sql, point, swapped=side is a)
        if a.type is b.type is Type.TERM:
            return _compare_terms(operator, x, y)
        if Type.TERM in (a.type, b.type):
            return _compare_native(operator, a, b)
        if a.type in NUMERIC and b.type in NUMERIC:
            return numbers.compare(operator, Operand.of(a), Operand.of(b))
        return case((f"{x} IS NOT NULL AND {y} IS NOT NULL", "false" if operator == "=" else _NULL))

    return Scalar(let(left.sql, lambda x: let(right.sql, lambda y: compared(x, y))), Type.BOOLEAN)


def _compare_native(operator: str, left: Scalar, right: Scalar) -> str:
    """Compares a term with a value of a native type."""
    native, term = (left, right.sql) if right.type is Type.TERM else (right, left.sql)
    otherwise = _NULL
    if operator == "=":
        unknown = "false" if native.term is not None else f"{native.sql} IS NULL"
        otherwise = case((unknown, _NULL), otherwise=_other_kind(term))
    if native.type in NUMERIC:
        return numbers.compare(operator, Operand.of(left), Operand.of(right), otherwise)
    if native.type is Type.STRING and operator == "=":
        # a disjunction, because Spark can push this down from a filter
        return f"({term} = {as_term(native)} OR {otherwise})"
    is_a, value = f"{boolean(term)} IS NOT NULL", boolean(term)
    if native.type is Type.STRING:
        is_a, value = is_simple(term), characters(term)
    x, y = (value if side.type is Type.TERM else side.sql for side in (left, right))
    return case((is_a, f"{x} {operator} {y}"), otherwise=otherwise)


def _other_kind(term: str) -> str:
    """`=` of a term and a value of another kind: false, or NULL if the value of the term is unknown."""
    return case(
        (f"NOT {is_literal(term)} OR NOT endswith({term}, '>') OR {_has_value(term)}", "false"),
        otherwise=_NULL,
    )


def _has_value(term: str) -> str:
    """Tests whether a typed literal is a number, boolean, date or time."""
    return one_of(
        numbers.is_number(Scalar(term)), any_of(term, (*TRUE, *FALSE)), datetimes.is_date(term)
    )


def _compare_point(operator: str, term: str, constant: Point, *, swapped: bool) -> str:
    """Compares a term with a constant date or time."""
    types = (
        ("dateTime", "dateTimeStamp")
        if constant.type == "'dateTime'"
        else (constant.type.strip("'"),)
    )
    fixed, point = _date(constant), datetimes.point(term)
    by_value = let(
        _date(point), lambda p: _compare_dates(operator, *((fixed, p) if swapped else (p, fixed)))
    )
    return case(
        (datetimes.is_date(term, *types), by_value),
        otherwise=_other_kind(term) if operator == "=" else _NULL,
    )


def _date(point: Point) -> str:
    return f"named_struct('zoned', {point.zoned}, 'key', {_key(point.seconds, point.fraction)})"


def _key(number: str, text: str) -> str:
    """A struct that Spark orders like the values of one kind."""
    return f"named_struct('number', {number}, 'text', {text})"


def _compare_dates(operator: str, a: str, b: str) -> str:
    """Compares two points of one type, as SQL of structs; NULL if their order is undetermined."""

    def later(point: str) -> str:
        # by 14 hours, the greatest difference of a time zone from UTC
        return _key(f"{point}.key.number + 50400D", f"{point}.key.text")

    before, after = f"{later(a)} < {b}.key", f"{later(b)} < {a}.key"
    # Spark orders NULL in a struct before all values
    unknown = (
        [(f"{a}.key.number IS NULL OR {b}.key.number IS NULL", _NULL)]
        if is_out_of_range_unbound()
        else []
    )
    return case(
        *unknown,
        (f"{a}.zoned = {b}.zoned", f"{a}.key {operator} {b}.key"),
        *(
            [(f"{before} OR {after}", "false")]
            if operator == "="
            else [(before, "true"), (after, "false")]
        ),
    )


def _compare_terms(operator: str, x: str, y: str) -> str:
    def compared(a: str, b: str) -> str:
        branches = [(f"{a}.kind = {b}.kind", _compare_values(operator, a, b))]
        if operator == "=":
            apart = " OR ".join(f"NOT {is_literal(t)} OR {has_language(t)}" for t in (x, y))
            branches += [
                (f"{x} IS NULL OR {y} IS NULL", _NULL),
                (f"{x} = {y}", "true"),
                (f"{apart} OR {a}.kind IS NOT NULL AND {b}.kind IS NOT NULL", "false"),
            ]
        return case(*branches, otherwise=_NULL)

    # equality of two texts does not require unescaping them
    text = escaped if operator == "=" else characters
    decoded = let(_decoded(x, text), lambda a: let(_decoded(y, text), lambda b: compared(a, b)))
    return case(*_compare_as_they_are(operator, x, y), otherwise=decoded)


def _compare_as_they_are(operator: str, x: str, y: str) -> Iterator[tuple[str, str]]:
    """Branches for the most common pairs of terms, which are compared without decoding every kind of value.

    The cost of decoding matters where a join compares all pairs that have one key.
    """
    if operator == "=":
        yield " AND ".join(f"NOT {is_typed(t)}" for t in (x, y)), f"{x} = {y}"
    else:
        plain = (f"{is_simple(t)} AND NOT contains({t}, {_BACKSLASH})" for t in (x, y))
        yield " AND ".join(plain), f"{escaped(x)} {operator} {escaped(y)}"
    short = (numbers.is_short_integer(t) for t in (x, y))
    whole = (f"try_cast({digits(t)} AS BIGINT)" for t in (x, y))
    yield " AND ".join(short), f" {operator} ".join(whole)


def _compare_values(operator: str, a: str, b: str) -> str:
    """Compares two values of one kind, as SQL of structs from `_decoded`."""

    highest = f"greatest({a}.rank, {b}.rank)"
    return case(
        (
            f"{highest} = 3",
            numbers.compare_floating(operator, f"{a}.key.number", f"{b}.key.number"),
        ),
        (f"{highest} = 2", numbers.compare_floating(operator, f"{a}.single", f"{b}.single")),
        (f"{a}.zoned IS NOT NULL", _compare_dates(operator, a, b)),
        otherwise=f"{a}.key {operator} {b}.key",
    )


def boolean(term: str) -> str:
    """The value of an xsd:boolean; NULL for other terms."""
    return case((any_of(term, TRUE), "true"), (any_of(term, FALSE), "false"), otherwise=_NULL)


def _decoded(term: str, text: Callable[[str], str]) -> str:
    """A term's value: STRUCT<kind, rank, single, zoned, key: STRUCT<number, text>>.

    Values compare if they are of one kind, by their keys; the kind is NULL if the value is not known. Numbers also have
    a rank and a value as FLOAT; dates and times may be zoned. The key of a string is `text` of its term.
    """
    number, is_date, form = Scalar(term), datetimes.is_date(term), digits(term)
    point, is_number, is_text = datetimes.point(term), numbers.is_number(number), is_string(term)
    # a term that is not a number has no kind, so testing the type suffices for its key and value
    seems_number, seems_exact = (numbers.has_type(term, *types) for types in (NUMERIC, NUMERIC[:2]))
    true, false, is_float = any_of(term, TRUE), any_of(term, FALSE), numbers.is_of(term, Type.FLOAT)
    kind = case(
        (is_text, f"""concat('"', {suffix(term)})"""),
        (is_number, "'number'"),
        (f"{true} OR {false}", "'boolean'"),
        (is_date, point.type),
    )
    key = _key(
        case(
            (seems_number, numbers.double(form, is_float)), (is_date, point.seconds), otherwise="0D"
        ),
        case(
            (is_text, text(term)),
            (seems_exact, numbers.order_key(form)),
            (true, "'1'"),
            (is_date, point.fraction),
            otherwise="''",
        ),
    )
    single = case((seems_number, numbers.single(form, numbers.has_type(term, Type.FLOAT))))
    return (
        f"named_struct('kind', {kind}, 'rank', {numbers.rank(number)}, 'single', {single}, "
        f"'zoned', {case((is_date, point.zoned))}, 'key', {key})"
    )


# --- truth ----------------------------------------------------------------------------------------------------------


def truth(value: Scalar) -> str:
    """The effective boolean value; NULL if there is none.

    A literal of a boolean or numeric type with an invalid lexical form is false (section 17.2.2).
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
            (any_of(t, TRUE), "true"),
            (is_string(t), f"""NOT startswith({t}, '""')"""),
            (numbers.is_number(Scalar(t)), f"NOT {numbers.is_zero(digits(t))}"),
            (any_of(xsd_type(t), (f"{name}>" for name in typed)), "false"),
            otherwise=_NULL,
        ),
    )


# --- order ----------------------------------------------------------------------------------------------------------


def order(value: Scalar) -> str:
    """Returns SQL by which ORDER BY sorts: ascending with NULL first, or descending with NULL last.

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
            (f"{v}.kind = 'number'", "2"),
            (is_string(t), "3"),
            (f"{v}.kind = 'boolean'", "4"),
            (f"{v}.kind IS NOT NULL", "5"),
            (is_literal(t), "6"),
            otherwise="7",
        )
        text = case(
            (
                is_iri(t),
                f"rtrim('>', {t})",
            ),  # this bracket is after the characters that IRIs go on with
            (is_string(t), f"concat({v}.key.text, chr(0), {v}.kind)"),
            (f"{v}.kind IS NOT NULL", f"{v}.key.text"),
            otherwise=t,
        )
        number = case((f"{v}.kind IS NOT NULL", f"{v}.key.number"), otherwise="0D")
        return f"named_struct('kind', {kind}, 'number', {number}, 'text', {text})"

    return let(
        value.sql,
        lambda t: case((f"{t} IS NOT NULL", let(_decoded(t, characters), lambda v: key(t, v)))),
    )


# --- join keys: strings that are equal if `=` is true ---------------------------------------------
# Spark joins by equal columns only; a key is such a column, and `=` is evaluated for the pairs that it joins. Keys are
# coarser than `=`: numbers of any type have the same key if they are the same xsd:float. No key of numbers is exact,
# because `=` between them is not transitive: the decimal 0.1 equals the float 0.1 and the double 0.1, which differ. A
# key never ends a job.

_NAN: Final = tuple(f'"NaN"^^<{XSD}{name}>' for name in ("float", "double"))


def same_key(left: Scalar, right: Scalar) -> Scalar:
    """Tests whether two values have the same key, which is true if `=` is.

    It is always true if computing a value may end the job, which must not happen for a solution that is in no pair.
    Values that Spark compares as SPARQL does are their own keys.
    """
    native = left.type is right.type and left.type in NATIVE
    keys = (left.sql, right.sql) if native else (key(left), key(right))
    return Scalar("true" if any(map(may_fail, keys)) else f"({keys[0]} = {keys[1]})", Type.BOOLEAN)


def key(value: Scalar) -> str:
    """A value's key; NULL for NULL, and for NaN, which equals nothing.

    A term that is not a number, boolean, date or time equals only itself, and is its own key; so is a literal whose
    lexical form is not one of its datatype.
    """

    def of_term(t: str) -> str:
        return case(
            (f"NOT {is_typed(t)}", t),
            (any_of(t, _NAN), "NULL"),
            (numbers.has_type(t, *numbers.NUMERIC), f"coalesce({_number(t)}, {t})"),
            (any_of(t, TRUE), "'true'"),
            (any_of(t, FALSE), "'false'"),
            # dates are rare, and their SQL is long: no code is compiled for it
            (datetimes.has_type(t), let(t, _date_key, interpreted=True)),
            otherwise=t,
        )

    return let(as_term(value), of_term)


def _number(t: str) -> str:
    single = numbers.single(digits(t), numbers.has_type(t, Type.FLOAT))
    # both zeros have the same key
    return f"concat('n', CAST({single} + CAST(0 AS FLOAT) AS STRING))"


def _date_key(t: str) -> str:
    point = datetimes.point(t, beyond="NULL")
    # those beyond the years of timestamps have the same key, so that comparing them raises the error
    seconds = f"coalesce(CAST({point.seconds} AS STRING), {literal('beyond')})"
    by_point = (
        f"concat_ws(' ', {point.type}, CAST({point.zoned} AS STRING), {seconds}, {point.fraction})"
    )
    return case((datetimes.is_date(t), by_point), otherwise=t)
