"""SPARQL's built-in functions as SQL, by their names: SPARQL 1.1 Query, section 17.4.

The compiler of expressions itself compiles BOUND, IF, COALESCE and IN. For an argument of the
wrong kind the result is NULL, SPARQL's error. UUID, STRUUID and RAND have one value for each solution only in a
projection: their SQL must not be copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from construct_messages.errors import UnsupportedQuery, ValueOutOfRange
from construct_messages.rdf.terms import RDF, XSD, Term, literal_parts
from construct_messages.spark.sql import comparisons, datetimes, iris, numbers
from construct_messages.spark.sql.values import (
    ERROR,
    Scalar,
    Type,
    any_of,
    as_term,
    as_text,
    case,
    datatype,
    escape,
    escaped,
    fail,
    iri_text,
    is_blank,
    is_iri,
    is_literal,
    is_simple,
    is_string,
    language,
    let,
    lexical_form,
    literal,
    suffix,
    tagged,
    text_of,
)
from construct_messages.sparql.relational.regex import (
    IllegalPattern,
    Regex,
    translate_pattern,
    translate_replacement,
)

# --- strings (section 17.4.3) ---------------------------------------------------------------------------------------
# A result keeps the language of its first argument if the specification requires it. Characters are code points, in
# SPARQL as in Spark.

NO_STRING: Final = Scalar(ERROR.sql, Type.STRING)


def text(argument: Scalar) -> str:
    """The characters of a string literal, simple or with a language; NULL for all other values."""
    match argument.type:
        case Type.STRING:
            return argument.sql
        case Type.TERM:
            return text_of(argument.sql)
    return NO_STRING.sql


def same_kind(argument: Scalar, change: Callable[[str], str]) -> Scalar:
    """A string literal with changed characters (SQL for SQL, used once) and the same language."""
    if argument.type is Type.TERM:
        return Scalar(let(argument.sql, lambda term: tagged(change(text_of(term)), suffix(term))))
    return Scalar(change(text(argument)), Type.STRING)


def compatible(first: Scalar, second: Scalar, body: Callable[[str, str], str]) -> str:
    """SQL over the characters of two compatible strings (section 17.4.3.1.2); NULL if they are not compatible.

    They are compatible if the second has no language or both have the same.
    """
    if second.type is not Type.TERM:
        return body(text(first), text(second))
    if first.type is not Type.TERM:
        return let(second.sql, lambda b: case((f"{suffix(b)} = ''", body(text(first), text_of(b)))))

    def both(a: str, b: str) -> str:
        return case((f"{suffix(b)} IN ('', {suffix(a)})", body(text_of(a), text_of(b))))

    return let(first.sql, lambda a: let(second.sql, lambda b: both(a, b)))


# --- strings of strings ---------------------------------------------------------------------------------------------


def length(argument: Scalar) -> Scalar:
    return Scalar(f"CAST(length({text(argument)}) AS DECIMAL(38,0))", Type.INTEGER)


# no string has as many characters
_FAR: Final = 2**30


def substring(argument: Scalar, start: str, count: str | None = None) -> Scalar:
    """SUBSTR; positions before the first count, but have no character (XPath's fn:substring).

    The first position and the number of characters are SQL of integers of any size; the result for NULL is NULL.
    """
    # greatest and least ignore NULL

    def from_start(chars: str, s: str) -> str:
        return case(
            (
                f"{s} IS NOT NULL",
                f"substring({chars}, CAST(least(greatest({s}, 1), {_FAR}) AS INT))",
            )
        )

    def counted(chars: str, s: str, c: str) -> str:
        # the operands of the sum have opposite signs, so it has no more digits than they have
        kept = case((f"{s} > 0", c), otherwise=f"{c} + {s} - 1")
        part = f"left({from_start(chars, s)}, CAST(least(greatest({kept}, 0), {_FAR}) AS INT))"
        return case((f"{c} <= 0 AND {s} IS NOT NULL", f"left({chars}, 0)"), (f"{c} > 0", part))

    def cut(chars: str) -> str:
        if count is None:
            return let(start, lambda s: from_start(chars, s))
        return let(start, lambda s: let(count, lambda c: counted(chars, s, c)))

    return same_kind(argument, cut)


def before(first: Scalar, second: Scalar) -> Scalar:
    """STRBEFORE; an empty simple literal if the first does not contain the second."""
    return _around(first, second, lambda a, b: f"left({a}, instr({a}, {b}) - 1)")


def after(first: Scalar, second: Scalar) -> Scalar:
    return _around(first, second, lambda a, b: f"substring({a}, instr({a}, {b}) + length({b}))")


def _around(first: Scalar, second: Scalar, part: Callable[[str, str], str]) -> Scalar:
    def found(a: str, b: str, tag: str | None) -> str:
        result = part(a, b) if tag is None else tagged(part(a, b), tag)
        return case(
            (f"contains({a}, {b})", result),
            (f"NOT contains({a}, {b})", "''" if tag is None else """'""'"""),
        )

    def bound(tag: str | None) -> Callable[[str, str], str]:
        return lambda a, b: let(a, lambda a: let(b, lambda b: found(a, b, tag)))

    if first.type is not Type.TERM:
        return Scalar(compatible(first, second, bound(None)), Type.STRING)
    return Scalar(let(first.sql, lambda a: compatible(Scalar(a), second, bound(suffix(a)))))


def concat(arguments: Sequence[Scalar]) -> Scalar:
    """CONCAT; the result has a language if all arguments have that language."""
    if all(argument.type is not Type.TERM for argument in arguments):
        return Scalar(
            f"concat({', '.join(map(text, arguments))})" if arguments else "''", Type.STRING
        )

    def joined(rest: Sequence[Scalar], characters: list[str], tags: list[str]) -> str:
        """Binds one argument after the other; joining escaped strings is the same as escaping the joined string."""
        if not rest:
            tag = case(
                (" AND ".join(f"{tag} = {tags[0]}" for tag in tags), tags[0]), otherwise="''"
            )
            return f"""concat('"', {", ".join(characters)}, '"', {tag})"""
        head, *tail = rest
        if head.type is not Type.TERM:
            return joined(tail, [*characters, escape(text(head))], [*tags, "''"])
        return let(
            head.sql,
            lambda t: joined(
                tail, [*characters, case((is_string(t), escaped(t)))], [*tags, suffix(t)]
            ),
        )

    return Scalar(joined(arguments, [], []))


def encode_for_uri(argument: Scalar) -> Scalar:
    """ENCODE_FOR_URI: percent-encodes all but RFC 3986's unreserved characters (XPath's fn:encode-for-uri)."""
    sql = f"url_encode({text(argument)})"  # the encoding of HTML forms
    for char, encoded in (("+", "%20"), ("*", "%2A"), ("%7E", "~")):
        sql = f"replace({sql}, {literal(char)}, {literal(encoded)})"
    return Scalar(sql, Type.STRING)


# --- conditions -----------------------------------------------------------------------------------------------------


def string_test(function: str) -> Callable[[Scalar, Scalar], Scalar]:
    """STRSTARTS, STRENDS or CONTAINS, by the function of Spark."""
    return lambda first, second: Scalar(
        compatible(first, second, lambda a, b: f"{function}({a}, {b})"), Type.BOOLEAN
    )


def language_matches(tag: str, range: str) -> Scalar:
    """LANGMATCHES by basic filtering (RFC 4647, section 3.3.1)."""

    def matches(r: str) -> str:
        prefix = f"startswith(concat(lower({tag}), '-'), concat(lower({r}), '-'))"
        return case((f"{r} = '*'", f"{tag} <> ''"), otherwise=prefix)

    return Scalar(let(range, matches), Type.BOOLEAN)


# --- regular expressions --------------------------------------------------------------------------------------------


def regex(argument: Scalar, pattern: str, flags: str) -> Scalar:
    """REGEX with a constant pattern and flags; an illegal pattern is SPARQL's error."""
    try:
        translated = translate_pattern(pattern, flags)
    except IllegalPattern:
        return Scalar("CAST(NULL AS BOOLEAN)", Type.BOOLEAN)
    java = literal(translated.java)
    return Scalar(
        _guarded(text(argument), translated, lambda chars: f"{chars} RLIKE {java}"), Type.BOOLEAN
    )


def replace(argument: Scalar, pattern: str, replacement: str, flags: str) -> Scalar:
    """REPLACE with constants, likewise; a pattern that matches the empty string is an error (err:FORX0003)."""
    try:
        translated = translate_pattern(pattern, flags)
        new = literal(translate_replacement(replacement, translated))
    except IllegalPattern:
        return NO_STRING
    java = literal(translated.java)

    def replaced(chars: str) -> str:
        return case((f"NOT '' RLIKE {java}", f"regexp_replace({chars}, {java}, {new})"))

    return same_kind(argument, lambda chars: _guarded(chars, translated, replaced))


def _guarded(chars: str, translated: Regex, matching: Callable[[str], str]) -> str:
    """SQL that matches, but ends the job if Java could run out of stack, which would end the whole process."""
    if translated.limit is None:
        return f"({matching(chars)})"
    message = literal(
        f"a string of more than {translated.limit} characters is too long for a regular expression that repeats groups"
    )
    return let(
        chars,
        lambda chars: case(
            (f"length({chars}) > {translated.limit}", fail(ValueOutOfRange, message)),
            otherwise=matching(chars),
        ),
    )


# --- terms (section 17.4.2) -----------------------------------------------------------------------------------------


def _simple(value: Scalar) -> str:
    """The characters of a simple literal; NULL for all other values."""
    if value.type is Type.TERM:
        return let(value.sql, lambda term: case((is_simple(term), text_of(term))))
    return text(value)


def _simple_term(value: Scalar) -> str:
    """A simple literal as a term; NULL for all other values."""
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
    """The characters of a constant simple literal; None for other values."""
    return (
        literal_parts(value.term)[0]
        if value.term is not None and value.type is Type.STRING
        else None
    )


def _iri(value: Scalar, base: Scalar | None = None) -> Scalar:
    return iris.iri(value, None if base is None else _constant(base))


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
    return regex(value, *texts) if texts else Scalar("CAST(NULL AS BOOLEAN)", Type.BOOLEAN)


def _replace(
    value: Scalar, pattern: Scalar, replacement: Scalar, flags: Scalar = _NO_FLAGS
) -> Scalar:
    texts = _patterns("REPLACE", pattern=pattern, replacement=replacement, flags=flags)
    return replace(value, *texts) if texts else NO_STRING


# --- numbers (section 17.4.4) ---------------------------------------------------------------------------------------


def _integer(value: Scalar) -> str:
    """An integer; NULL for all other values, also for a decimal without fraction."""
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
        return let(sql, lambda d: case((f"{d} < 0", numbers.negated(d, type)), otherwise=d))

    return numbers.map_number(value, of)


def _whole(of_decimal: str, of_double: Callable[[str], str]) -> Callable[[Scalar], Scalar]:
    """ROUND, CEIL or FLOOR, by SQL with `{}` in place of the decimal, and SQL for SQL of the double.

    Spark's own functions return BIGINT for a double; `rint` rounds to the nearest whole double, to the even one of two.
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

    return lambda value: numbers.map_number(value, of)


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


FUNCTIONS: Final[Mapping[str, Callable[..., Scalar]]] = {
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
    "CONCAT": lambda *values: concat(values),
    "REGEX": _regex,
    "REPLACE": _replace,
    "STRLEN": length,
    "SUBSTR": lambda text, *places: substring(text, *map(_integer, places)),
    # with Unicode's full mapping: the upper case of ß is SS
    "UCASE": lambda text: same_kind(text, lambda chars: f"upper({chars})"),
    "LCASE": lambda text: same_kind(text, lambda chars: f"lower({chars})"),
    "STRSTARTS": string_test("startswith"),
    "STRENDS": string_test("endswith"),
    "CONTAINS": string_test("contains"),
    "STRBEFORE": before,
    "STRAFTER": after,
    "ENCODE_FOR_URI": encode_for_uri,
    "LANGMATCHES": lambda tag, range: language_matches(_simple(tag), _simple(range)),
    "ABS": _abs,
    "ROUND": _whole("floor({} + 0.5)", _round),
    "CEIL": _whole("ceil({})", _ceil),
    "FLOOR": _whole("floor({})", _floor),
    "RAND": lambda: Scalar("rand()", Type.DOUBLE),
    **datetimes.PARTS,
    "MD5": _hash("md5({})"),
    "SHA1": _hash("sha1({})"),
    "SHA256": _hash("sha2({}, 256)"),
    "SHA384": _hash("sha2({}, 384)"),
    "SHA512": _hash("sha2({}, 512)"),
}
"""SPARQL's functions, as in `Call.name`; some regular expressions raise `UnsupportedQuery`."""
