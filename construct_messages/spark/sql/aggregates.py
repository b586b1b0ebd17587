"""Aggregates as SQL: SPARQL 1.1 Query, section 18.5.1.

The argument is SQL. COUNT and SAMPLE ignore errors (NULL); the other aggregates return an error if one of the values
is an error, as in the embedded store. SUM and AVG are partial sums before the shuffle, so that no group is held in
memory; only their DISTINCT, and GROUP_CONCAT, hold the values of a group.
"""

from __future__ import annotations

from construct_messages.spark.sql import comparisons
from construct_messages.spark.sql.numbers import arithmetic, as_type, in_range, is_of, rank
from construct_messages.spark.sql.values import (
    Scalar,
    Type,
    as_term,
    case,
    is_string,
    let,
    literal,
    tagged,
    text_of,
)

_ZERO = as_term(Scalar("CAST(0 AS DECIMAL(38,0))", Type.INTEGER))


def count_all() -> Scalar:
    return Scalar("CAST(count(1) AS DECIMAL(38,0))", Type.INTEGER)


def aggregate(name: str, value: Scalar, *, distinct: bool = False, separator: str = " ") -> Scalar:
    """An aggregate (by its name in `algebra.Aggregation`) over the value's values in a group."""
    term = as_term(value)
    match name:
        case "COUNT":
            return Scalar(
                f"CAST(count({'DISTINCT ' if distinct else ''}{term}) AS DECIMAL(38,0))",
                Type.INTEGER,
            )
        case "SAMPLE":
            return Scalar(f"first({term}, true)")
        case "MIN" | "MAX":
            # chooses the same term among equal values in each run
            key = f"named_struct('value', {comparisons.order(value)}, 'term', {term})"
            return Scalar(_unless_error(term, f"{name.lower()}_by({term}, {key})"))
        case "GROUP_CONCAT":
            return Scalar(_unless_error(term, _joined(term, distinct, separator)))
        case "SUM" if distinct:
            return Scalar(_unless_error(term, _distinct_sum(term)))
        case "SUM":
            return Scalar(_sum(term))
        case "AVG" if distinct:
            size = Scalar(f"CAST(count(DISTINCT {term}) AS DECIMAL(38,0))", Type.INTEGER)
            mean = arithmetic("/", Scalar(_distinct_sum(term)), size).sql
            return Scalar(case(("count(1) = 0", _ZERO), otherwise=_unless_error(term, mean)))
        case "AVG":
            return Scalar(_sum(term, mean=True))
    raise ValueError(f"{name} is not an aggregate")


def _unless_error(term: str, result: str) -> str:
    return case((f"count({term}) = count(1)", result))


def _sum(term: str, *, mean: bool = False) -> str:
    """Sums each exact type, and all values as DOUBLE: the types of the values decide which sum is the result."""

    def of_type(type: Type) -> str:
        values = let(term, lambda t: case((is_of(t, type), as_type(Scalar(t), type))))
        # try_sum is NULL without values, and also for a sum out of range
        return case(
            (f"count({values}) > 0", in_range(f"try_sum({values})", "'a sum'", type)), otherwise="0"
        )

    integers, decimals = of_type(Type.INTEGER), of_type(Type.DECIMAL)
    doubles = f"sum({let(term, lambda t: as_type(Scalar(t), Type.DOUBLE))})"
    ranks = let(term, lambda t: rank(Scalar(t)))
    exact = " + ".join(f"try_cast({part} AS {Type.DECIMAL.value})" for part in (integers, decimals))
    exact = in_range(f"try_cast({exact} AS {Type.DECIMAL.value})", "'a sum'", Type.DECIMAL)

    def result(sql: str, type: Type) -> str:
        total = Scalar(sql, type)
        return as_term(arithmetic("/", total, count_all()) if mean else total)

    def by_rank(highest: str) -> str:
        return case(
            ("false" if mean else f"{highest} = 0", result(integers, Type.INTEGER)),
            (f"{highest} < 2", result(exact, Type.DECIMAL)),
            (f"{highest} = 2", result(f"CAST({doubles} AS FLOAT)", Type.FLOAT)),
            otherwise=result(doubles, Type.DOUBLE),
        )

    return case(
        ("count(1) = 0", _ZERO),
        (f"count({ranks}) = count(1)", let(f"max({ranks})", by_rank)),
    )


def _distinct_sum(term: str) -> str:
    plus = arithmetic("+", Scalar("total"), Scalar("term")).sql
    return f"aggregate(collect_set({term}), {_ZERO}, (total, term) -> {plus})"


def _joined(term: str, distinct: bool, separator: str) -> str:
    """Joins strings in the order of their terms; the result is a simple literal for strings in any language."""

    def joined(terms: str) -> str:
        texts = f"array_join(transform({terms}, term -> {text_of('term')}), {literal(separator)})"
        return case(
            (f"exists({terms}, term -> NOT {is_string('term')})", "NULL"),
            otherwise=tagged(texts, "''"),
        )

    return let(f"sort_array(collect_{'set' if distinct else 'list'}({term}))", joined)
