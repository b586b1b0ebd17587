"""SQL over numbers: which terms are numbers, their values, and comparisons of them.

SPARQL 1.1 Query, section 17.1; XPath and XQuery Functions 3.1, section 4. A term is a number only if its lexical form
is in the lexical space of its datatype. Spark's casts accept more. Comparison is exact at any length; a value that its
native type cannot represent raises `ValueOutOfRange`. Arithmetic is in `arithmetic`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from construct_messages.errors import ValueOutOfRange
from construct_messages.rdf.terms import XSD, Term, literal_parts
from construct_messages.rdf.terms import is_literal as is_a_literal
from construct_messages.spark.sql.values import (
    ERROR,
    Scalar,
    Type,
    all_of,
    as_term,
    as_text,
    case,
    digits,
    fail,
    has_form,
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
    """A constant of the query: of a native type if it is a string, boolean or number that has one."""
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
    """Tests whether a term is a number of one of some types, or of a type derived from one of them."""
    return has_form(term, {name: form for type in types for name, form in _FORMS[type].items()})


def is_short_integer(term: str) -> str:
    """Tests whether a term is an xsd:integer of at most 18 digits, which a BIGINT holds."""
    return has_form(term, {"integer": "[+-]?[0-9]{1,18}"})


def has_type(term: str, *types: Type) -> str:
    """Tests whether a literal has one of some types, in any form; faster than `is_of`."""
    names = "|".join(name for type in types for name in _FORMS[type])
    return f"({term} RLIKE '#({names})>$')"


def rank(value: Scalar) -> str:
    """The index of a number's type in `NUMERIC`; NULL for all other values."""
    if value.type is Type.TERM:
        return let(
            value.sql,
            lambda t: case(*((is_of(t, type), str(rank)) for rank, type in enumerate(NUMERIC))),
        )
    if value.type in NUMERIC:
        return case((f"{value.sql} IS NOT NULL", str(NUMERIC.index(value.type))))
    return "CAST(NULL AS INT)"


def is_number(value: Scalar) -> str:
    """Whether a value is a number; NULL or false if not."""
    if value.type is Type.TERM:
        return is_of(value.sql, *NUMERIC)
    return f"({value.sql} IS NOT NULL)" if value.type in NUMERIC else "false"


def double(form: str, is_float: str) -> str:
    """A number as DOUBLE, of its lexical form; the DOUBLE of an xsd:float is the float's value."""
    exact = f"try_cast({form} AS DOUBLE)"
    return (
        exact
        if is_float == "false"
        else f"if({is_float}, CAST(try_cast({form} AS FLOAT) AS DOUBLE), {exact})"
    )


def single(form: str, is_float: str) -> str:
    """A number as FLOAT, of its lexical form.

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
    """Whether a number's lexical form is that of zero or NaN."""
    double = f"try_cast({form} AS DOUBLE)"
    return case(
        (f"{form} RLIKE '[eEN]'", f"{double} = 0 OR isnan({double})"),
        otherwise=f"NOT {form} RLIKE '[1-9]'",
    )


def in_range(attempt: str, text: str, type: Type) -> str:
    """An attempt; if it is NULL, as the number does not fit a type, the job fails, naming it by `text`."""
    message = f" does not fit {type.value}"
    return f"coalesce({attempt}, {fail(ValueOutOfRange, f'concat({text}, {literal(message)})')})"


def as_type(scalar: Scalar, type: Type) -> str:
    """A number promoted to a type; NULL for NULL, undefined for other terms. The job ends if it does not fit."""
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
    """An operand of a comparison: tests of its type, and its lexical form if it is a number."""

    is_number: str
    is_exact: str
    is_float: str
    is_double: str
    form: str

    @classmethod
    def of(cls, value: Scalar) -> Operand:
        """The operand of a value whose SQL, used more than once, is a column, or whose type is known."""
        if value.type is Type.TERM:
            t = value.sql
            exact, single, double = (is_of(t, *types) for types in _OPERANDS)
            return cls(is_number(value), exact, single, double, digits(t))
        exact, float, double = ("true" if value.type in types else "false" for types in _OPERANDS)
        known = "true" if value.term is not None else is_number(value)
        return cls(known, exact, float, double, as_text(value))


def compare(operator: str, left: Operand, right: Operand, otherwise: str = "NULL") -> str:
    """Whether `=`, `<` or `<=` holds between two numbers; `otherwise` if one of them is not a number."""
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
    # in Spark, NaN equals itself and is the greatest number
    return f"({x} {operator} {y} AND NOT isnan({y}))"


def order_key(form: str) -> str:
    """Text that orders integers and decimals with equal DOUBLE values, of their lexical forms."""
    plain = f"regexp_replace({form}, '^[+-]?0*([0-9]*)([.]([0-9]*?)0*)?$', '$1.$3')"
    positive = f"concat(lpad(instr({plain}, '.'), 9, '0'), {plain})"
    negative = f"concat(translate({positive}, '0123456789', '9876543210'), '~')"
    return case((f"{form} RLIKE '^-.*[1-9]'", negative), otherwise=positive)


# --- arithmetic -----------------------------------------------------------------------------------
# SQL of arithmetic, by the types of XPath.
#
# SPARQL 1.1 Query, section 17.3; XPath and XQuery Functions 3.1, section 4.2. Both operands are promoted to the
# higher of their types: integer, decimal, float, double. Integers and decimals are exact within `Type.INTEGER` and
# `Type.DECIMAL`, and other values raise `ValueOutOfRange`; products and quotients are cut at the 18th digit after the
# point. Each step has a native type without rounding in Spark, for each value of
# `spark.sql.decimalOperations.allowPrecisionLoss`.

_TRY = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}
_LAST_DIGIT = "0.000000000000000001BD"


def arithmetic(operator: str, left: Scalar, right: Scalar) -> Scalar:
    """`+`, `-`, `*` or `/` of two values; NULL unless both are numbers.

    Division of two integers results in a decimal; by zero it is an error (NULL), except for floats and doubles.
    """
    if any(side.type not in (*NUMERIC, Type.TERM) for side in (left, right)):
        return ERROR
    known = [side.type for side in (left, right) if side.type in NUMERIC]
    lowest = max(known, key=NUMERIC.index, default=Type.INTEGER)
    if len(known) == 2:
        return _in(lowest, operator, left, right)

    def on_terms(x: str, y: str, types: str) -> str:
        a, b = Scalar(x, left.type), Scalar(y, right.type)
        branches = (
            (f"{types} >= {_bit(type)}", as_term(_in(type, operator, a, b)))
            for type in reversed(NUMERIC[NUMERIC.index(lowest) :])
        )
        return case(*branches)

    def of(x: str, y: str) -> str:
        types = (_type_bit(Scalar(side, scalar.type)) for side, scalar in ((x, left), (y, right)))
        return let(f"({' | '.join(types)})", lambda types: on_terms(x, y, types))

    return Scalar(let(left.sql, lambda x: let(right.sql, lambda y: of(x, y))))


def _bit(type: Type) -> int:
    return 1 << NUMERIC.index(type)


def _type_bit(value: Scalar) -> str:
    """The type of a number as a bit, lower for types that are promoted to others; NULL for other values."""
    return f"shiftleft(1, {rank(value)})"


def map_number(value: Scalar, function: Callable[[str, Type], str]) -> Scalar:
    """A function that keeps the type of a number: SQL for SQL of it and its type; NULL unless the value is a number."""
    if value.type in NUMERIC:
        return Scalar(function(value.sql, value.type), value.type)
    if value.type is not Type.TERM:
        return ERROR

    def on_term(t: str, rank: str) -> str:
        term = Scalar(t)
        return case(
            *(
                (f"{rank} = {index}", as_term(Scalar(function(as_type(term, type), type), type)))
                for index, type in enumerate(NUMERIC)
            )
        )

    return Scalar(let(value.sql, lambda t: let(rank(Scalar(t)), lambda rank: on_term(t, rank))))


def negative(value: Scalar) -> Scalar:
    return map_number(value, negated)


def negated(number: str, type: Type) -> str:
    if type in (Type.FLOAT, Type.DOUBLE):
        return f"(- {number})"
    return f"CAST(0 - {number} AS {type.value})"  # Spark's minus of one operand keeps 34 digits of a decimal


def positive(value: Scalar) -> Scalar:
    """Unary plus, which returns a number in its canonical form; NULL unless the value is a number."""
    return map_number(value, lambda number, _: number)


def _in(type: Type, operator: str, left: Scalar, right: Scalar) -> Scalar:
    if type is Type.INTEGER and operator == "/":
        type = Type.DECIMAL
    operate = _floating if type in (Type.FLOAT, Type.DOUBLE) else _exact
    x, y = as_type(left, type), as_type(right, type)
    return Scalar(let(x, lambda x: let(y, lambda y: operate(operator, type, x, y))), type)


def _floating(operator: str, type: Type, x: str, y: str) -> str:
    if operator == "/":
        # Spark returns an error or NULL, depending on its mode, where IEEE 754 requires an infinity
        infinity = f"if(({x} < 0) = startswith(CAST({y} AS STRING), '-'), 'Infinity', '-Infinity')"
        by_zero = f"CAST({case((f'isnan({x}) OR {x} = 0', literal('NaN')), otherwise=infinity)} AS DOUBLE)"
        result = case((f"{y} = 0", by_zero), otherwise=f"try_divide({x}, {y})")
    else:
        result = f"({x} {operator} {y})"
    return f"CAST({result} AS FLOAT)" if type is Type.FLOAT else result


def _exact(operator: str, type: Type, x: str, y: str) -> str:
    error = f"{x} IS NULL OR {y} IS NULL"
    match type, operator:
        case _, "/":
            result, error = _quotient(x, y), f"{error} OR {y} = 0"
        case Type.DECIMAL, "*":
            result = _product(x, y)
        case _:
            result = f"{_TRY[operator]}({x}, {y})"
    attempt = f"try_cast({result} AS {type.value})"
    return case(
        (error, "NULL"), otherwise=in_range(attempt, f"concat({x}, ' {operator} ', {y})", type)
    )


def _product(x: str, y: str) -> str:
    """Multiplies integer and fractional parts, whose products have exact types."""

    def split(number: str, body: Callable[[str, str], str]) -> str:
        whole, fraction = (
            f"CAST({number} - {number} % 1BD AS DECIMAL(19,0))",
            f"CAST({number} % 1BD AS DECIMAL(18,18))",
        )
        return let(whole, lambda w: let(fraction, lambda f: body(w, f)))

    def product(w: str, f: str, v: str, g: str) -> str:
        total, *rest = (
            f"{w} * {v}",
            f"{w} * {g}",
            f"{f} * {v}",
            f"{f} * {g} - {f} * {g} % {_LAST_DIGIT}",
        )
        total = f"try_cast({total} AS {Type.DECIMAL.value})"
        for term in rest:
            total = (
                f"try_cast({total} + CAST({term} AS {Type.DECIMAL.value}) AS {Type.DECIMAL.value})"
            )
        return total

    return split(x, lambda w, f: split(y, lambda v, g: product(w, f, v, g)))


def _quotient(x: str, y: str) -> str:
    """Divides six digits at a time: DECIMAL(38,18) has room for six more digits after a remainder below 10^12."""
    rest = "DECIMAL(30,18)"

    def divided(a: str, b: str) -> str:
        digits = f"concat(s.digits, lpad(CAST(s.rest * 1000000BD DIV {b} AS STRING), 6, '0'))"
        step = f"(s, i) -> named_struct('digits', {digits}, 'rest', CAST(s.rest * 1000000BD % {b} AS {rest}))"
        whole = f"concat({sign}, CAST({a} DIV {b} AS STRING), '.')"
        start = f"named_struct('digits', {whole}, 'rest', CAST({a} % {b} AS {rest}))"
        return f"aggregate(array(1, 2, 3), {start}, {step}, s -> s.digits)"

    def shifted(number: str) -> str:
        return f"CAST(CAST({number} AS DECIMAL(30,11)) * 0.0000001BD AS {Type.DECIMAL.value})"

    def on_magnitudes(a: str, b: str) -> str:
        return case(
            # DIV returns a BIGINT, and overflows silently
            (f"try_divide(CAST({a} AS DOUBLE), CAST({b} AS DOUBLE)) > 9e18D", "NULL"),
            (f"{b} < 1000000000000", divided(a, b)),
            (
                f"{a} = CAST({a} AS DECIMAL(30,11)) AND {b} = CAST({b} AS DECIMAL(30,11))",
                let(shifted(a), lambda a: let(shifted(b), lambda b: divided(a, b))),
            ),
        )

    sign = f"if(({x} < 0) = ({y} < 0), '', '-')"
    return let(f"abs({x})", lambda a: let(f"abs({y})", lambda b: on_magnitudes(a, b)))
