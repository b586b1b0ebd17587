"""SQL of join keys for values: strings that are equal if SPARQL's `=` is true.

SPARQL 1.1 Query, section 17.3. Spark joins by equal columns only; a key is such a column, and `=` is then evaluated for
the pairs that it joins. Keys are coarser than `=`: numbers of any type have the same key if they are the same
xsd:float. A key never ends a job. Values are compared in `comparisons`. No key of numbers is exact,
because `=` between them is not transitive: the decimal 0.1 equals the float 0.1 and the double 0.1, which differ.
"""

from __future__ import annotations

from typing import Final

from construct_messages.rdf.terms import XSD
from construct_messages.spark.sql import datetimes, numbers
from construct_messages.spark.sql.comparisons import FALSE, NATIVE, TRUE, is_typed
from construct_messages.spark.sql.term_parts import as_term, digits
from construct_messages.spark.sql.values import Scalar, Type, any_of, case, let, literal, may_fail

_NAN: Final = tuple(f'"NaN"^^<{XSD}{name}>' for name in ("float", "double"))


def same_key(left: Scalar, right: Scalar) -> Scalar:
    """Returns SQL that tests whether two values have the same key, which is true if `=` is.

    It is always true if computing a value may end the job, which must not happen for a solution that is in no pair.
    Values that Spark compares as SPARQL does are their own keys.

    >>> same_key(Scalar("v_x", Type.STRING), Scalar("v_y", Type.STRING)).sql
    '(v_x = v_y)'
    """
    native = left.type is right.type and left.type in NATIVE
    keys = (left.sql, right.sql) if native else (key(left), key(right))
    return Scalar("true" if any(map(may_fail, keys)) else f"({keys[0]} = {keys[1]})", Type.BOOLEAN)


def key(value: Scalar) -> str:
    """Returns SQL of a value's key; NULL for NULL, and for NaN, which equals nothing.

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
            (datetimes.has_type(t), let(t, _date, interpreted=True)),
            otherwise=t,
        )

    return let(as_term(value), of_term)


def _number(t: str) -> str:
    single = numbers.single(digits(t), numbers.has_type(t, Type.FLOAT))
    # both zeros have the same key
    return f"concat('n', CAST({single} + CAST(0 AS FLOAT) AS STRING))"


def _date(t: str) -> str:
    point = datetimes.point(t, beyond="NULL")
    # those beyond the years of timestamps have the same key, so that comparing them raises the error
    seconds = f"coalesce(CAST({point.seconds} AS STRING), {literal('beyond')})"
    by_point = (
        f"concat_ws(' ', {point.type}, CAST({point.zoned} AS STRING), {seconds}, {point.fraction})"
    )
    return case((datetimes.is_date(t), by_point), otherwise=t)
