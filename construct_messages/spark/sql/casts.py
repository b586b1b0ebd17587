"""Casts as SQL: the functions that are named by a datatype.

SPARQL 1.1 Query, section 17.5, and xsd:date, which that section lacks; XPath and XQuery Functions 3.1, section 19. A
cast that the table of section 17.5 does not allow, or of text outside the lexical space of the type, is an error
(NULL). A cast to decimal is cut at 18 digits after the point. The lexical forms of numbers and dates are in `numbers`
and `datetimes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from construct_messages.errors import ValueOutOfRange
from construct_messages.rdf.terms import XSD
from construct_messages.spark.sql import comparisons, datetimes, numbers
from construct_messages.spark.sql.numbers import NUMERIC, as_type, in_range, positive
from construct_messages.spark.sql.values import (
    Scalar,
    Type,
    as_term,
    as_text,
    case,
    digits,
    fail,
    iri_text,
    is_iri,
    is_literal,
    is_simple,
    let,
    lexical_form,
    literal,
    xsd_type,
)


def _string(value: Scalar) -> Scalar:
    if value.type is not Type.TERM:
        return Scalar(as_text(Scalar(value.sql, value.type)), Type.STRING)

    def text(t: str, number: str, truth: str) -> str:
        return case(
            (f"{number} IS NOT NULL", lexical_form(number)),
            (f"{truth} IS NOT NULL", f"CAST({truth} AS STRING)"),
            (is_literal(t), lexical_form(t)),
            (is_iri(t), iri_text(t)),
        )

    def of_term(t: str) -> str:
        return let(
            positive(Scalar(t)).sql, lambda n: let(comparisons.boolean(t), lambda b: text(t, n, b))
        )

    return Scalar(let(value.sql, of_term, interpreted=True), Type.STRING)


def _boolean(value: Scalar) -> Scalar:
    if value.type is not Type.TERM:
        value = Scalar(as_term(value))

    def truth(t: str) -> str:
        return case(
            (is_simple(t), comparisons.boolean(f"concat({t}, {literal(f'^^<{XSD}boolean>')})")),
            (numbers.is_number(Scalar(t)), f"NOT {numbers.is_zero(digits(t))}"),
            otherwise=comparisons.boolean(t),
        )

    return Scalar(let(value.sql, truth), Type.BOOLEAN)


def _number(type: Type) -> Callable[[Scalar], Scalar]:
    def of_text(candidate: str) -> str:
        number = Scalar(candidate)
        return case((f"{numbers.rank(number)} = {NUMERIC.index(type)}", as_type(number, type)))

    def of_term(t: str, rank: str) -> str:
        boolean = comparisons.boolean(t)
        return case(
            (
                is_simple(t),
                let(f"concat({t}, {literal(f'^^<{XSD}{type.name.lower()}>')})", of_text),
            ),
            (f"{rank} IS NOT NULL", _FROM_NUMBER[type](t, rank)),
            (f"{boolean} IS NOT NULL", f"CAST(if({boolean}, 1, 0) AS {type.value})"),
        )

    def of(value: Scalar) -> Scalar:
        if value.type is type:
            return Scalar(value.sql, type)
        return Scalar(
            let(
                as_term(value),
                lambda t: let(numbers.rank(Scalar(t)), lambda rank: of_term(t, rank)),
                interpreted=True,
            ),
            type,
        )

    return of


def _integer_of(t: str, rank: str) -> str:
    def exact(whole: str) -> str:
        return in_range(
            f"try_cast(if({whole} RLIKE '[0-9]', {whole}, '0') AS {Type.INTEGER.value})",
            whole,
            Type.INTEGER,
        )

    def floating(d: str) -> str:
        return case(
            (f"isnan({d}) OR abs({d}) = CAST('Infinity' AS DOUBLE)", "NULL"),
            (f"abs({d}) < 9e18D", f"CAST(CAST({d} AS BIGINT) AS {Type.INTEGER.value})"),
            otherwise=fail(
                ValueOutOfRange,
                f"concat({digits(t)}, ' is beyond the integers that doubles are cast to')",
            ),
        )

    whole = let(f"substring_index({digits(t)}, '.', 1)", exact)
    return case((f"{rank} < 2", whole), otherwise=let(as_type(Scalar(t), Type.DOUBLE), floating))


def _decimal_of(t: str, rank: str) -> str:
    def floating(d: str) -> str:
        plain = as_text(Scalar(d, Type.DOUBLE))
        cut = f"regexp_extract({plain}, '^-?[0-9]+([.][0-9]{{1,18}})?', 0)"
        attempt = in_range(f"try_cast({cut} AS {Type.DECIMAL.value})", plain, Type.DECIMAL)
        return case((f"NOT isnan({d}) AND abs({d}) < CAST('Infinity' AS DOUBLE)", attempt))

    return case(
        (f"{rank} < 2", as_type(Scalar(t), Type.DECIMAL)),
        otherwise=let(as_type(Scalar(t), Type.DOUBLE), floating),
    )


_FROM_NUMBER: Final[Mapping[Type, Callable[[str, str], str]]] = {
    Type.INTEGER: _integer_of,
    Type.DECIMAL: _decimal_of,
    Type.FLOAT: lambda t, _: as_type(Scalar(t), Type.FLOAT),
    Type.DOUBLE: lambda t, _: as_type(Scalar(t), Type.DOUBLE),
}


def _date_time(value: Scalar) -> Scalar:
    def midnight(t: str) -> str:
        zone = datetimes.zone(digits(t))
        day = f"substring({digits(t)}, 1, length({digits(t)}) - length({zone}))"
        return f"""concat('"', {day}, 'T00:00:00', {zone}, '"')"""

    def candidate(t: str) -> str:
        lexical = case(
            (is_simple(t), t),
            (
                f"{xsd_type(t)} IN ('dateTime>', 'dateTimeStamp>')",
                f"""concat('"', {digits(t)}, '"')""",
            ),
            (f"{xsd_type(t)} = 'date>'", midnight(t)),
        )
        return f"concat({lexical}, {literal(f'^^<{XSD}dateTime>')})"

    def valid(t: str) -> str:
        return let(candidate(t), lambda c: case((datetimes.is_date(c), c)))

    return Scalar(let(as_term(value), valid, interpreted=True))


def _date(value: Scalar) -> Scalar:
    """F&O 19.1.10: of a dateTime its day, in its own time zone."""

    def day(d: str) -> str:
        zone = datetimes.zone(d)
        before = f"substring_index({d}, 'T', 1)"
        # 24:00:00 is midnight of the next day; Spark's own dates have years of four digits
        later = let(
            f"if({before} RLIKE '^[0-9]{{4}}-', CAST(date_add(try_cast({before} AS DATE), 1) AS STRING), NULL)",
            lambda next: (
                f"coalesce({next}, {fail(ValueOutOfRange, f'concat({d}, {_NO_NEXT_DAY})')})"
            ),
        )
        return f"""concat('"', if({d} LIKE '%T24:%', {later}, {before}), {zone}, '"')"""

    def candidate(t: str) -> str:
        lexical = case(
            (is_simple(t), t),
            (datetimes.is_date(t, "dateTime", "dateTimeStamp"), let(digits(t), day)),
            (f"{xsd_type(t)} = 'date>'", f"""concat('"', {digits(t)}, '"')"""),
        )
        return f"concat({lexical}, {literal(f'^^<{XSD}date>')})"

    def valid(t: str) -> str:
        return let(candidate(t), lambda c: case((datetimes.is_date(c, "date"), c)))

    return Scalar(let(as_term(value), valid, interpreted=True))


_NO_NEXT_DAY: Final = literal(" ends a day whose next Spark cannot represent")
CASTS: Final[Mapping[str, Callable[[Scalar], Scalar]]] = {
    f"<{XSD}string>": _string,
    f"<{XSD}boolean>": _boolean,
    f"<{XSD}dateTime>": _date_time,
    f"<{XSD}date>": _date,
} | {f"<{XSD}{type.name.lower()}>": _number(type) for type in NUMERIC}
"""Casts by the datatypes' IRIs, as in `Call.name`; NULL where a value cannot be cast."""
