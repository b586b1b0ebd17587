"""SQL of arithmetic, by the types of XPath.

SPARQL 1.1 Query, section 17.3; XPath and XQuery Functions 3.1, section 4.2. Both operands are promoted to the higher of
their types: integer, decimal, float, double. Integers and decimals are exact within `Type.INTEGER` and `Type.DECIMAL`,
and other values raise `ValueOutOfRange`; products and quotients are cut at the 18th digit after the point. Each step
has a native type without rounding in Spark, for each value of `spark.sql.decimalOperations.allowPrecisionLoss`.
"""

from __future__ import annotations

from collections.abc import Callable

from construct_messages.spark.sql.numbers import NUMERIC, as_type, in_range, rank
from construct_messages.spark.sql.term_parts import as_term
from construct_messages.spark.sql.values import ERROR, Scalar, Type, case, let, literal

_TRY = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}
_LAST_DIGIT = "0.000000000000000001BD"


def arithmetic(operator: str, left: Scalar, right: Scalar) -> Scalar:
    """`+`, `-`, `*` or `/` of two values; NULL unless both are numbers.

    Division of two integers results in a decimal; by zero it is an error (NULL), except for floats and doubles.

    Raises (in the job):
        ValueOutOfRange: an operand or a result that INTEGER or DECIMAL cannot hold.
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
    """Returns the type of a number as a bit; types that are promoted to others have lower bits. NULL for
    other values.
    """
    return f"shiftleft(1, {rank(value)})"


def map_number(value: Scalar, function: Callable[[str, Type], str]) -> Scalar:
    """Returns a function that keeps the type of a number; NULL unless the value is a number.

    Args:
        value: of any type.
        function: SQL of the result for SQL of the value and its type, one of `NUMERIC`.

    Raises (in the job):
        ValueOutOfRange: a value that INTEGER or DECIMAL cannot hold.
    """
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
    """Unary minus; NULL unless the value is a number."""
    return map_number(value, negated)


def negated(number: str, type: Type) -> str:
    """Returns SQL of a number of one of `NUMERIC` with the other sign."""
    if type in (Type.FLOAT, Type.DOUBLE):
        return f"(- {number})"
    return f"CAST(0 - {number} AS {type.value})"  # Spark's minus of one operand keeps 34 digits of a decimal


def positive(value: Scalar) -> Scalar:
    """Unary plus, which returns a number in its canonical form; NULL unless the value is a number."""
    return map_number(value, lambda number, _: number)


def _in(type: Type, operator: str, left: Scalar, right: Scalar) -> Scalar:
    """Returns the operation on operands promoted to a type."""
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
