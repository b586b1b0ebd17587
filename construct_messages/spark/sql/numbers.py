"""SQL over numbers: which terms are numbers, their values, and comparisons of them.

SPARQL 1.1 Query, section 17.1; XPath and XQuery Functions 3.1, section 4. A term is a number only if its lexical form
is in the lexical space of its datatype. Spark's casts accept more. Comparison is exact at any length; a value that its
native type cannot represent raises `ValueOutOfRange`. Arithmetic is in `arithmetic`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from construct_messages.rdf.errors import ValueOutOfRange
from construct_messages.rdf.terms import XSD, Term, literal_parts
from construct_messages.rdf.terms import is_literal as is_a_literal
from construct_messages.spark.sql.term_parts import as_text, digits, has_form
from construct_messages.spark.sql.values import (
    Scalar,
    Type,
    all_of,
    case,
    fail,
    let,
    literal,
    one_of,
)

NUMERIC: Final = (Type.INTEGER, Type.DECIMAL, Type.FLOAT, Type.DOUBLE)
"""The types of numbers; each is promoted to those after it."""

_WHOLE: Final = "[+-]?[0-9]+"
_DECIMAL: Final = "[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)"
_FLOATING: Final = f"({_DECIMAL}([eE][+-]?[0-9]+)?|[+-]?INF|NaN)"
# the constants that every native type can represent
_NATIVE: Final = {
    "integer": (Type.INTEGER, "[+-]?[0-9]{1,38}"),
    "decimal": (Type.DECIMAL, "[+-]?[0-9]{1,19}([.][0-9]{0,18})?"),
    "float": (Type.FLOAT, "[+-]?[0-9]+([.][0-9]*)?([eE][+-]?[0-9]+)?"),
    "double": (Type.DOUBLE, "[+-]?[0-9]+([.][0-9]*)?([eE][+-]?[0-9]+)?"),
}
_BOOLEANS: Final = {"true": "true", "1": "true", "false": "false", "0": "false"}


def _up_to(greatest: int) -> str:
    """Returns a pattern for the digits of natural numbers up to `greatest`, with any leading zeros.

    >>> _up_to(127)
    '0*([0-9]{1,2}|[0-0][0-9]{2}|1[0-1][0-9]{1}|12[0-6][0-9]{0}|127)'
    """
    digits = str(greatest)
    first_different = [
        f"{digits[:place]}[0-{int(digit) - 1}][0-9]{{{len(digits) - place - 1}}}"
        for place, digit in enumerate(digits)
        if digit != "0"
    ]
    return f"0*({'|'.join([f'[0-9]{{1,{len(digits) - 1}}}', *first_different, digits])})"


# the lexical spaces of the types derived from xsd:integer
_INTEGERS: Final = {
    "integer": _WHOLE,
    "nonNegativeInteger": "([+]?[0-9]+|-0+)",
    "positiveInteger": "[+]?0*[1-9][0-9]*",
    "nonPositiveInteger": "(-[0-9]+|[+]?0+)",
    "negativeInteger": "-0*[1-9][0-9]*",
} | {
    name: pattern
    for bits, (signed, unsigned) in {
        8: ("byte", "unsignedByte"),
        16: ("short", "unsignedShort"),
        32: ("int", "unsignedInt"),
        64: ("long", "unsignedLong"),
    }.items()
    for name, pattern in (
        (signed, f"([+]?{_up_to(2 ** (bits - 1) - 1)}|-{_up_to(2 ** (bits - 1))})"),
        (unsigned, f"([+]?{_up_to(2**bits - 1)}|-0+)"),
    )
}
TYPES: Final = (*_INTEGERS, "decimal", "float", "double")
"""The local names of the types of numbers."""


# --- reading a term -------------------------------------------------------------------------------------------------


def constant(term: Term) -> Scalar:
    """Returns a constant of the query: of a native type if it is a string, boolean or number that has one.

    >>> from construct_messages.rdf.terms import number
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


_FORMS: Final = {
    Type.INTEGER: _INTEGERS,
    Type.DECIMAL: {"decimal": _DECIMAL},
    Type.FLOAT: {"float": _FLOATING},
    Type.DOUBLE: {"double": _FLOATING},
}


def is_of(term: str, *types: Type) -> str:
    """Returns SQL that tests whether a term is a number of one of some types, or of a type derived from one of them."""
    return has_form(term, {name: form for type in types for name, form in _FORMS[type].items()})


def is_short_integer(term: str) -> str:
    """Returns SQL that tests whether a term is an xsd:integer of at most 18 digits, which a BIGINT holds."""
    return has_form(term, {"integer": "[+-]?[0-9]{1,18}"})


def has_type(term: str, *types: Type) -> str:
    """Returns SQL that tests whether a literal has one of some types, in any form; faster than `is_of`."""
    names = "|".join(name for type in types for name in _FORMS[type])
    return f"({term} RLIKE '#({names})>$')"


def rank(value: Scalar) -> str:
    """Returns SQL of the index of a number's type in `NUMERIC`; NULL for all other values."""
    if value.type is Type.TERM:
        return let(
            value.sql,
            lambda t: case(*((is_of(t, type), str(rank)) for rank, type in enumerate(NUMERIC))),
        )
    if value.type in NUMERIC:
        return case((f"{value.sql} IS NOT NULL", str(NUMERIC.index(value.type))))
    return "CAST(NULL AS INT)"


def is_number(value: Scalar) -> str:
    """Returns SQL that tests whether a value is a number; NULL or false if not."""
    if value.type is Type.TERM:
        return is_of(value.sql, *NUMERIC)
    return f"({value.sql} IS NOT NULL)" if value.type in NUMERIC else "false"


def double(form: str, is_float: str) -> str:
    """Returns SQL of a number as DOUBLE, for SQL of its lexical form; the DOUBLE of an xsd:float is the
    float's value.
    """
    exact = f"try_cast({form} AS DOUBLE)"
    return (
        exact
        if is_float == "false"
        else f"if({is_float}, CAST(try_cast({form} AS FLOAT) AS DOUBLE), {exact})"
    )


def single(form: str, is_float: str) -> str:
    """Returns SQL of a number as FLOAT, for SQL of its lexical form.

    The FLOAT of another type than xsd:float is that of its DOUBLE: so numbers that are equal by any rule, as decimals,
    as doubles or as floats, have the same FLOAT.
    """
    by_double = f"CAST(try_cast({form} AS DOUBLE) AS FLOAT)"
    return (
        by_double
        if is_float == "false"
        else case((is_float, f"try_cast({form} AS FLOAT)"), otherwise=by_double)
    )


def is_zero(form: str) -> str:
    """Returns SQL that tests whether a number's lexical form is that of zero or NaN."""
    double = f"try_cast({form} AS DOUBLE)"
    return case(
        (f"{form} RLIKE '[eEN]'", f"{double} = 0 OR isnan({double})"),
        otherwise=f"NOT {form} RLIKE '[1-9]'",
    )


def in_range(attempt: str, text: str, type: Type) -> str:
    """Returns SQL of an attempt; if this is NULL, as the number does not fit a type, the job fails, naming it by
    `text`.
    """
    message = f" does not fit {type.value}"
    return f"coalesce({attempt}, {fail(ValueOutOfRange, f'concat({text}, {literal(message)})')})"


def as_type(scalar: Scalar, type: Type) -> str:
    """Returns SQL of a number promoted to a type; NULL for NULL, undefined for other terms.

    Raises (in the job):
        ValueOutOfRange: a number that INTEGER or DECIMAL cannot represent.
    """
    if scalar.type is type:
        return scalar.sql
    if scalar.type is Type.TERM and type is Type.DOUBLE:
        return let(scalar.sql, lambda t: double(digits(t), is_of(t, Type.FLOAT)))

    def checked(number: str) -> str:
        attempt = f"try_cast({number} AS {type.value})"
        if type in (Type.FLOAT, Type.DOUBLE):
            return attempt
        if type is Type.DECIMAL and scalar.type is Type.TERM:  # the cast would round
            attempt = case((f"NOT {number} RLIKE '[.][0-9]{{18}}[0-9]*[1-9]'", attempt))
        return case((f"{number} IS NOT NULL", in_range(attempt, number, type)))

    return let(digits(scalar.sql) if scalar.type is Type.TERM else scalar.sql, checked)


# --- comparison -----------------------------------------------------------------------------------------------------


_OPERANDS: Final = ((Type.INTEGER, Type.DECIMAL), (Type.FLOAT,), (Type.DOUBLE,))


@dataclass(frozen=True)
class Operand:
    """SQL of an operand of a comparison: tests of its type, and its lexical form if it is a number."""

    is_number: str
    is_exact: str
    is_float: str
    is_double: str
    form: str

    @classmethod
    def of(cls, value: Scalar) -> Operand:
        """Returns the operand of a value whose SQL is a column, or whose type is known: this SQL is used more than
        once.
        """
        if value.type is Type.TERM:
            t = value.sql
            exact, single, double = (is_of(t, *types) for types in _OPERANDS)
            return cls(is_number(value), exact, single, double, digits(t))
        exact, float, double = ("true" if value.type in types else "false" for types in _OPERANDS)
        known = "true" if value.term is not None else is_number(value)
        return cls(known, exact, float, double, as_text(value))


def compare(operator: str, left: Operand, right: Operand, otherwise: str = "NULL") -> str:
    """Returns SQL that tests whether `=`, `<` or `<=` holds between two numbers.

    Args:
        operator: one of these operators.
        left, right: the operands.
        otherwise: SQL of the result if one of them is not a number.
    """
    doubles = (double(side.form, side.is_float) for side in (left, right))
    floats = (single(side.form, side.is_float) for side in (left, right))
    is_double = one_of(
        all_of(left.is_double, right.is_number), all_of(right.is_double, left.is_number)
    )
    is_float = one_of(
        all_of(left.is_float, right.is_number), all_of(right.is_float, left.is_number)
    )
    return case(
        (all_of(left.is_exact, right.is_exact), _compare_exact(operator, left.form, right.form)),
        (is_double, compare_floating(operator, *doubles)),
        (is_float, compare_floating(operator, *floats)),
        otherwise=otherwise,
    )


def _compare_exact(operator: str, left: str, right: str) -> str:
    """Compares by the DOUBLE values, as rounding keeps the order, unless these are equal."""
    x, y = f"try_cast({left} AS DOUBLE)", f"try_cast({right} AS DOUBLE)"
    tie = f"{x} = {y} AND {order_key(left)} {operator} {order_key(right)}"
    return f"({left} = {right} OR {tie})" if operator == "=" else f"({x} < {y} OR {tie})"


def compare_floating(operator: str, x: str, y: str) -> str:
    """Returns SQL that tests whether `=`, `<` or `<=` holds between two floats or doubles."""
    # in Spark, NaN equals itself and is the greatest number
    return f"({x} {operator} {y} AND NOT isnan({y}))"


def order_key(form: str) -> str:
    """Returns SQL of text that orders integers and decimals with equal DOUBLE values, for SQL of their
    lexical forms.
    """
    plain = f"regexp_replace({form}, '^[+-]?0*([0-9]*)([.]([0-9]*?)0*)?$', '$1.$3')"
    positive = f"concat(lpad(instr({plain}, '.'), 9, '0'), {plain})"
    negative = f"concat(translate({positive}, '0123456789', '9876543210'), '~')"
    return case((f"{form} RLIKE '^-.*[1-9]'", negative), otherwise=positive)
