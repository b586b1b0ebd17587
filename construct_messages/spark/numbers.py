"""SQL over numbers: which terms are numbers, what they are worth, and how they compare.

SPARQL 1.1 Query, section 17.1; XPath and XQuery Functions 3.1, section 4. A term is a number only if its lexical form
is in the lexical space of its datatype, whatever Spark's casts would take. Comparison is exact at any length; a native
value is `ValueOutOfRange` if its type cannot hold it. Arithmetic is the business of `arithmetic`.
"""

from __future__ import annotations

import re
from typing import Final

from construct_messages.errors import ValueOutOfRange
from construct_messages.spark.values import Scalar, Type, any_of, as_text, case, digits, fail, let, literal, xsd_type
from construct_messages.terms import XSD, Term, literal_parts
from construct_messages.terms import is_literal as is_a_literal

NUMERIC: Final = (Type.INTEGER, Type.DECIMAL, Type.FLOAT, Type.DOUBLE)
"""The types of numbers; each is promoted to those behind it."""

_INTEGER: Final = "'^[+-]?[0-9]+$'"
_DECIMAL: Final = "'^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)$'"
_FLOATING: Final = "'^([+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN)$'"
# the constants that every native type holds
_NATIVE: Final = {
    "integer": (Type.INTEGER, "[+-]?[0-9]{1,38}"),
    "decimal": (Type.DECIMAL, "[+-]?[0-9]{1,19}([.][0-9]{0,18})?"),
    "float": (Type.FLOAT, "[+-]?[0-9]+([.][0-9]*)?([eE][+-]?[0-9]+)?"),
    "double": (Type.DOUBLE, "[+-]?[0-9]+([.][0-9]*)?([eE][+-]?[0-9]+)?"),
}
_BOOLEANS: Final = {"true": "true", "1": "true", "false": "false", "0": "false"}
_BITS: Final = {"byte": 8, "short": 16, "int": 32, "long": 64}
_BOUNDED: Final = {name: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for name, bits in _BITS.items()} | {
    f"unsigned{name.title()}": (0, 2**bits - 1) for name, bits in _BITS.items()
}
_SIGNED: Final = {
    "nonNegativeInteger": ">= 0",
    "positiveInteger": "> 0",
    "nonPositiveInteger": "<= 0",
    "negativeInteger": "< 0",
}


TYPES: Final = ("integer", "decimal", "float", "double", *_BOUNDED, *_SIGNED)
"""The local names of the types of numbers."""


# --- reading a term -------------------------------------------------------------------------------------------------


def constant(term: Term) -> Scalar:
    """A constant of the query: of a native type if it is a string, boolean or number that has one.

    >>> from construct_messages.terms import number
    >>> constant(number("01")).sql
    "CAST('01' AS DECIMAL(38,0))"
    """
    if is_a_literal(term):
        text, datatype, language, _ = literal_parts(term)
        name = (datatype or f"{XSD}string").removeprefix(XSD)
        if datatype is None and language is None:
            return Scalar(literal(text), Type.STRING, term)
        if name == "boolean" and text in _BOOLEANS:
            return Scalar(_BOOLEANS[text], Type.BOOLEAN, term)
        if name in _NATIVE and re.fullmatch(_NATIVE[name][1], text):
            type = _NATIVE[name][0]
            return Scalar(f"CAST('{text}' AS {type.value})", type, term)
    return Scalar(literal(term), Type.TERM, term)


def _has_type(term: str, name: str) -> str:
    return f"endswith({term}, {literal(f'{chr(34)}^^<{XSD}{name}>')})"


def is_integer(term: str) -> str:
    """SQL: whether it is an integer of xsd:integer or a type derived from it, within that type's range."""
    form = digits(term)
    exact = f"try_cast({form} AS {Type.INTEGER.value})"
    ranges = [
        (f"{xsd_type(term)} = '{name}>'", f"coalesce({exact} BETWEEN {low} AND {high}, false)")
        for name, (low, high) in _BOUNDED.items()
    ]
    ranges += [(f"{xsd_type(term)} = '{name}>'", f"{double_of(term)} {sign}") for name, sign in _SIGNED.items()]
    derived = any_of(xsd_type(term), (f"{name}>" for name in (*_BOUNDED, *_SIGNED)))
    return case(
        (_has_type(term, "integer"), f"{form} RLIKE {_INTEGER}"),
        (derived, f"({form} RLIKE {_INTEGER} AND {case(*ranges)})"),
        otherwise="false",
    )


def is_decimal(term: str) -> str:
    """SQL: whether it is an xsd:decimal."""
    return f"({_has_type(term, 'decimal')} AND {digits(term)} RLIKE {_DECIMAL})"


def is_float(term: str) -> str:
    """SQL: whether it is an xsd:float."""
    return f"({_has_type(term, 'float')} AND {digits(term)} RLIKE {_FLOATING})"


def is_double(term: str) -> str:
    """SQL: whether it is an xsd:double."""
    return f"({_has_type(term, 'double')} AND {digits(term)} RLIKE {_FLOATING})"


_TESTS: Final = {Type.INTEGER: is_integer, Type.DECIMAL: is_decimal, Type.DOUBLE: is_double, Type.FLOAT: is_float}


def is_of(type: Type, scalar: Scalar) -> str:
    """SQL: whether it is a number of one of the types `NUMERIC`; NULL or false if not."""
    if scalar.type is Type.TERM:
        return _TESTS[type](scalar.sql)
    return f"({scalar.sql} IS NOT NULL)" if scalar.type is type else "false"


def is_number(scalar: Scalar) -> str:
    """SQL: whether it is a number; NULL or false if not."""
    if scalar.type is Type.TERM:
        return let(scalar.sql, lambda t: f"({' OR '.join(test(t) for test in _TESTS.values())})")
    return f"({scalar.sql} IS NOT NULL)" if scalar.type in NUMERIC else "false"


def double_of(term: str) -> str:
    """SQL: the value of a term that is a number, as DOUBLE."""
    return f"try_cast({digits(term)} AS DOUBLE)"


def in_range(attempt: str, text: str, type: Type) -> str:
    """SQL: an attempt that is NULL only if a number does not fit a type; then the job fails, naming it by `text`."""
    message = f" does not fit {type.value}"
    return f"coalesce({attempt}, {fail(ValueOutOfRange, f'concat({text}, {literal(message)})')})"


def as_type(scalar: Scalar, type: Type) -> str:
    """SQL: a number as one of the types that it may be promoted to; NULL for NULL, no matter what for other terms.

    Raises (in the job):
        ValueOutOfRange: what INTEGER or DECIMAL cannot hold.
    """
    if scalar.type is type:
        return scalar.sql

    def checked(number: str) -> str:
        attempt = f"try_cast({number} AS {type.value})"
        if type in (Type.FLOAT, Type.DOUBLE):
            return attempt
        if type is Type.DECIMAL and scalar.type is Type.TERM:  # the cast would round
            attempt = case((f"NOT {number} RLIKE '[.][0-9]{{18}}[0-9]*[1-9]'", attempt))
        return case((f"{number} IS NOT NULL", in_range(attempt, number, type)))

    return let(digits(scalar.sql) if scalar.type is Type.TERM else scalar.sql, checked)


# --- comparison -----------------------------------------------------------------------------------------------------


def order_key(number: str) -> str:
    """SQL of text that orders numbers of equal DOUBLE value, for SQL of lexical forms of integers and decimals."""

    def key(magnitude: str) -> str:
        whole = f"substring_index({magnitude}, '.', 1)"
        fraction = f"trim(TRAILING '0' FROM substring({magnitude}, length({whole}) + 2))"
        return f"concat(lpad(length({whole}), 9, '0'), {whole}, '.', {fraction})"

    def signed(d: str) -> str:
        positive = let(f"trim(LEADING '+-0' FROM {d})", key)
        negative = f"concat(translate({positive}, '0123456789', '9876543210'), '~')"
        return case((f"startswith({d}, '-') AND {d} RLIKE '[1-9]'", negative), otherwise=positive)

    return let(number, signed)


def compare(operator: str, left: Scalar, right: Scalar) -> str:
    """SQL: whether `=`, `<` or `<=` holds between the values of two numbers; NULL unless both are numbers."""
    if any(side.type not in (*NUMERIC, Type.TERM) for side in (left, right)):
        return "CAST(NULL AS BOOLEAN)"
    if left.type is right.type and left.type in (Type.INTEGER, Type.DECIMAL):
        return f"({left.sql} {operator} {right.sql})"
    return let(
        left.sql, lambda x: let(right.sql, lambda y: _compare(operator, Scalar(x, left.type), Scalar(y, right.type)))
    )


def _compare(operator: str, left: Scalar, right: Scalar) -> str:
    doubles = _compare_floating(operator, as_type(left, Type.DOUBLE), as_type(right, Type.DOUBLE))
    floats = _compare_floating(operator, as_type(left, Type.FLOAT), as_type(right, Type.FLOAT))
    return case(
        (f"{is_exact(left)} AND {is_exact(right)}", _compare_exact(operator, left, right)),
        (f"NOT coalesce({is_number(left)} AND {is_number(right)}, false)", "CAST(NULL AS BOOLEAN)"),
        (f"{is_of(Type.DOUBLE, left)} OR {is_of(Type.DOUBLE, right)}", doubles),
        otherwise=floats,
    )


def is_exact(scalar: Scalar) -> str:
    return f"({is_of(Type.INTEGER, scalar)} OR {is_of(Type.DECIMAL, scalar)})"


def _compare_exact(operator: str, left: Scalar, right: Scalar) -> str:
    """Decided by the DOUBLE values, which rounding keeps in order, unless they are equal."""
    x, y = as_type(left, Type.DOUBLE), as_type(right, Type.DOUBLE)
    a, b = (order_key(digits(side.sql) if side.type is Type.TERM else as_text(side)) for side in (left, right))
    tie = f"{x} = {y} AND {a} {operator} {b}"
    return f"({tie})" if operator == "=" else f"({x} < {y} OR {tie})"


def _compare_floating(operator: str, x: str, y: str) -> str:
    # to Spark NaN equals itself and is the greatest number
    return f"({x} {operator} {y} AND NOT isnan({y}))"
