"""SPARQL's built-in functions as SQL, by their names: SPARQL 1.1 Query, section 17.4.

`call` is for the compiler of expressions, which itself compiles BOUND, IF, COALESCE and IN. For an argument of the
wrong kind the result is NULL, SPARQL's error. UUID, STRUUID and RAND have one value for each solution only in a
projection: their SQL must not be copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from construct_messages.query.algebra.nodes import Call
from construct_messages.rdf.errors import UnsupportedQuery, ValueOutOfRange
from construct_messages.rdf.terms import RDF, XSD, Term, literal_parts
from construct_messages.spark.sql import arithmetic, comparisons, date_parts, iris, numbers, strings
from construct_messages.spark.sql.term_parts import (
    as_term,
    as_text,
    datatype,
    iri_text,
    is_blank,
    is_iri,
    is_literal,
    is_simple,
    language,
    lexical_form,
    text_of,
)
from construct_messages.spark.sql.values import (
    ERROR,
    Scalar,
    Type,
    any_of,
    case,
    fail,
    let,
    literal,
)


def call(node: Call, arguments: Sequence[Scalar]) -> Scalar:
    """Compiles a call of one of `NAMES`.

    Args:
        node: the call.
        arguments: its compiled arguments.

    Raises:
        UnsupportedQuery: a regular expression that is computed, or cannot be translated.

    >>> from construct_messages.query.algebra.nodes import Var
    >>> call(Call("STRLEN", (Var("x"),)), [Scalar("v_x", Type.STRING)]).sql
    'CAST(length(v_x) AS DECIMAL(38,0))'
    """
    return _FUNCTIONS[node.name](*arguments)


# --- terms (section 17.4.2) -----------------------------------------------------------------------------------------


def _simple(value: Scalar) -> str:
    """Returns SQL of the characters of a simple literal; NULL for all other values."""
    if value.type is Type.TERM:
        return let(value.sql, lambda term: case((is_simple(term), text_of(term))))
    return strings.text(value)


def _simple_term(value: Scalar) -> str:
    """Returns SQL of a simple literal as a term; NULL for all other values."""
    if value.type is Type.TERM:
        return let(value.sql, lambda term: case((is_simple(term), term)))
    return as_term(value) if value.type is Type.STRING else ERROR.sql


def _if_bound(value: Scalar, result: str, type: Type = Type.TERM) -> Scalar:
    return Scalar(case((f"{value.sql} IS NOT NULL", result)), type)


def _str(value: Scalar) -> Scalar:
    if value.type is not Type.TERM:
        return Scalar(as_text(value), Type.STRING)

    def of_term(term: str) -> str:
        return case((is_iri(term), iri_text(term)), otherwise=lexical_form(term))

    return Scalar(let(value.sql, of_term), Type.STRING)


def _lang(value: Scalar) -> Scalar:
    if value.type is not Type.TERM:
        return _if_bound(value, "''", Type.STRING)
    return Scalar(let(value.sql, language), Type.STRING)


def _datatype(value: Scalar) -> Scalar:
    if value.type is not Type.TERM:
        return _if_bound(value, literal(f"<{XSD}{value.type.name.lower()}>"))
    return Scalar(let(value.sql, datatype))


def _strdt(lexical: Scalar, type: Scalar) -> Scalar:
    if type.type is not Type.TERM:
        return ERROR

    def of_datatype(t: str) -> str:
        with_tag = any_of(t, (f"<{RDF}langString>", f"<{RDF}dirLangString>"))
        mark = case((f"{t} = {literal(f'<{XSD}string>')}", "''"), otherwise=f"concat('^^', {t})")
        return case((f"{is_iri(t)} AND NOT {with_tag}", f"concat({_simple_term(lexical)}, {mark})"))

    return Scalar(let(type.sql, of_datatype))


def _strlang(lexical: Scalar, tag: Scalar) -> Scalar:
    well_formed = literal(
        r"^([A-Za-z]{2,8}|[XxIi](?=-))(-[A-Za-z0-9]{1,8})*+\z"
    )  # BCP 47, simplified

    def of_tag(t: str) -> str:
        return case(
            (f"{t} RLIKE {well_formed}", f"concat({_simple_term(lexical)}, '@', lower({t}))")
        )

    return Scalar(let(_simple(tag), of_tag))


def _bnode(label: Scalar, number: Scalar) -> Scalar:
    """Returns one blank node for each label and solution; FRESH makes the labels `_:sf…`."""
    return Scalar(f"concat('_:sl', {number.sql}, 'x', hex({_simple(label)}))")


def _fresh(site: Scalar, number: Scalar) -> Scalar:
    return Scalar(f"concat('_:sf', {as_text(site)}, 'x', {number.sql})")


def _is(test: Callable[[str], str]) -> Callable[[Scalar], Scalar]:
    """Returns a test of the kind of a term; values of all other types are literals."""
    of_literal = "true" if test is is_literal else "false"

    def of(value: Scalar) -> Scalar:
        if value.type is not Type.TERM:
            return _if_bound(value, of_literal, Type.BOOLEAN)
        return Scalar(let(value.sql, test), Type.BOOLEAN)

    return of


def _is_numeric(value: Scalar) -> Scalar:
    test = let(
        value.sql, lambda v: case((f"{v} IS NOT NULL", numbers.is_number(Scalar(v, value.type))))
    )
    return Scalar(test, Type.BOOLEAN)


def _constant(value: Scalar) -> str | None:
    """Returns the characters of a constant simple literal; None for other values."""
    return (
        literal_parts(value.term)[0]
        if value.term is not None and value.type is Type.STRING
        else None
    )


def _iri(value: Scalar, base: Scalar | None = None) -> Scalar:
    return iris.iri(value, None if base is None else _constant(base))


def _lang_matches(tag: Scalar, range: Scalar) -> Scalar:
    return strings.language_matches(_simple(tag), _simple(range))


# --- regular expressions (sections 17.4.3.14 and 17.4.3.15) ---------------------------------------------------------

_NO_FLAGS: Final = Scalar("''", Type.STRING, Term('""'))


def _patterns(name: str, **patterns: Scalar) -> list[str] | None:
    """Returns the characters of arguments that must be constant; None if one of them is not a simple literal."""
    for role, pattern in patterns.items():
        if pattern.term is None:
            raise UnsupportedQuery(
                f"the {role} of {name} is computed, and known only when Spark runs",
                fragment=name,
                hint="write the regular expression, its flags and the replacement as plain strings",
            )
    texts = [text for text in map(_constant, patterns.values()) if text is not None]
    return texts if len(texts) == len(patterns) else None


def _regex(value: Scalar, pattern: Scalar, flags: Scalar = _NO_FLAGS) -> Scalar:
    texts = _patterns("REGEX", pattern=pattern, flags=flags)
    return strings.regex(value, *texts) if texts else Scalar("CAST(NULL AS BOOLEAN)", Type.BOOLEAN)


def _replace(
    value: Scalar, pattern: Scalar, replacement: Scalar, flags: Scalar = _NO_FLAGS
) -> Scalar:
    texts = _patterns("REPLACE", pattern=pattern, replacement=replacement, flags=flags)
    return strings.replace(value, *texts) if texts else strings.NO_STRING


# --- numbers (section 17.4.4) ---------------------------------------------------------------------------------------


def _integer(value: Scalar) -> str:
    """Returns SQL of an integer; NULL for all other values, also for a decimal without fraction."""
    if value.type is Type.INTEGER:
        return value.sql
    if value.type is not Type.TERM:
        return "CAST(NULL AS INT)"
    return let(
        value.sql,
        lambda t: case((numbers.is_of(t, Type.INTEGER), numbers.as_type(Scalar(t), Type.INTEGER))),
    )


def _abs(value: Scalar) -> Scalar:
    def of(sql: str, type: Type) -> str:
        if type in (Type.FLOAT, Type.DOUBLE):
            return f"abs({sql})"
        # Spark's own function keeps 34 digits of a decimal
        return let(sql, lambda d: case((f"{d} < 0", arithmetic.negated(d, type)), otherwise=d))

    return arithmetic.map_number(value, of)


def _whole(of_decimal: str, of_double: Callable[[str], str]) -> Callable[[Scalar], Scalar]:
    """Returns ROUND, CEIL or FLOOR.

    Args:
        of_decimal: SQL with `{}` in place of the decimal.
        of_double: SQL for SQL of the double. Spark's own functions return BIGINT there; `rint` rounds to the nearest
            whole double, and to the even one of two.
    """

    def of(sql: str, type: Type) -> str:
        match type:
            case Type.INTEGER:
                return sql
            case Type.DECIMAL:
                return let(
                    sql, lambda d: case((f"{d} IS NOT NULL", _fitting(of_decimal.format(d))))
                )
        return let(
            f"CAST({sql} AS DOUBLE)",
            lambda d: f"CAST({_signed_zero(d, of_double(d))} AS {type.value})",
        )

    return lambda value: arithmetic.map_number(value, of)


def _fitting(decimal: str) -> str:
    message = "'a decimal has no room for the next whole number'"
    return (
        f"coalesce(try_cast({decimal} AS {Type.DECIMAL.value}), {fail(ValueOutOfRange, message)})"
    )


def _signed_zero(value: str, result: str) -> str:
    """Returns the result, with a negative zero for a negative value, as in XPath."""
    return let(
        result, lambda r: case((f"{value} < 0 AND {r} = 0", "CAST('-0.0' AS DOUBLE)"), otherwise=r)
    )


def _floor(d: str) -> str:
    return let(f"rint({d})", lambda r: case((f"{r} > {d}", f"{r} - 1"), otherwise=r))


def _ceil(d: str) -> str:
    return let(f"rint({d})", lambda r: case((f"{r} < {d}", f"{r} + 1"), otherwise=r))


def _round(d: str) -> str:
    # the difference is exact, where adding 0.5 may round; halves go up
    return let(_floor(d), lambda f: case((f"{d} - {f} >= 0.5", f"{f} + 1"), otherwise=f))


# --- hashes (section 17.4.6) ----------------------------------------------------------------------------------------


def _hash(sql: str) -> Callable[[Scalar], Scalar]:
    return lambda value: Scalar(sql.format(f"CAST({_simple(value)} AS BINARY)"), Type.STRING)


_FUNCTIONS: Final[Mapping[str, Callable[..., Scalar]]] = {
    "ISIRI": _is(is_iri),
    "ISBLANK": _is(is_blank),
    "ISLITERAL": _is(is_literal),
    "ISNUMERIC": _is_numeric,
    "SAMETERM": comparisons.same_term,
    "STR": _str,
    "LANG": _lang,
    "DATATYPE": _datatype,
    "IRI": _iri,
    "BNODE": _bnode,
    "FRESH": _fresh,
    "STRDT": _strdt,
    "STRLANG": _strlang,
    "UUID": lambda: Scalar("concat('<urn:uuid:', uuid(), '>')"),
    "STRUUID": lambda: Scalar("uuid()", Type.STRING),
    "CONCAT": lambda *values: strings.concat(values),
    "REGEX": _regex,
    "REPLACE": _replace,
    "STRLEN": strings.length,
    "SUBSTR": lambda text, *places: strings.substring(text, *map(_integer, places)),
    "UCASE": strings.upper,
    "LCASE": strings.lower,
    "STRSTARTS": strings.starts,
    "STRENDS": strings.ends,
    "CONTAINS": strings.contains,
    "STRBEFORE": strings.before,
    "STRAFTER": strings.after,
    "ENCODE_FOR_URI": strings.encode_for_uri,
    "LANGMATCHES": _lang_matches,
    "ABS": _abs,
    "ROUND": _whole("floor({} + 0.5)", _round),
    "CEIL": _whole("ceil({})", _ceil),
    "FLOOR": _whole("floor({})", _floor),
    "RAND": lambda: Scalar("rand()", Type.DOUBLE),
    "YEAR": date_parts.year,
    "MONTH": date_parts.month,
    "DAY": date_parts.day,
    "HOURS": date_parts.hours,
    "MINUTES": date_parts.minutes,
    "SECONDS": date_parts.seconds,
    "TIMEZONE": date_parts.timezone,
    "TZ": date_parts.tz,
    "MD5": _hash("md5({})"),
    "SHA1": _hash("sha1({})"),
    "SHA256": _hash("sha2({}, 256)"),
    "SHA384": _hash("sha2({}, 384)"),
    "SHA512": _hash("sha2({}, 512)"),
}
NAMES: Final = frozenset(_FUNCTIONS)
"""The functions that `call` supports, as in `Call.name`."""
