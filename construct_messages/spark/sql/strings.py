"""SPARQL's functions on strings as SQL: SPARQL 1.1 Query, section 17.4.3.

Arguments and results are `Scalar`s; for an argument that is not a string the result is NULL, SPARQL's error. A result
keeps the language of its first argument if the specification requires it. Characters are code points, in SPARQL as in
Spark. Expressions are compiled elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from construct_messages.rdf.errors import ValueOutOfRange
from construct_messages.spark.regex import (
    IllegalPattern,
    Regex,
    translate_pattern,
    translate_replacement,
)
from construct_messages.spark.sql.term_parts import (
    escape,
    escaped,
    is_string,
    suffix,
    tagged,
    text_of,
)
from construct_messages.spark.sql.values import ERROR, Scalar, Type, case, fail, let, literal

NO_STRING: Final = Scalar(ERROR.sql, Type.STRING)


def text(argument: Scalar) -> str:
    """Returns SQL of the characters of a string literal, simple or with a language; NULL for all other values."""
    match argument.type:
        case Type.STRING:
            return argument.sql
        case Type.TERM:
            return text_of(argument.sql)
    return NO_STRING.sql


def same_kind(argument: Scalar, change: Callable[[str], str]) -> Scalar:
    """Returns a string literal with changed characters and the same language.

    Args:
        change: returns SQL of the new characters for SQL of the old ones, which it uses once.

    >>> same_kind(Scalar("v_x", Type.STRING), lambda text: f"upper({text})").sql
    'upper(v_x)'
    """
    if argument.type is Type.TERM:
        return Scalar(let(argument.sql, lambda term: tagged(change(text_of(term)), suffix(term))))
    return Scalar(change(text(argument)), Type.STRING)


def compatible(first: Scalar, second: Scalar, body: Callable[[str, str], str]) -> str:
    """Returns SQL over the characters of two compatible strings (section 17.4.3.1.2); NULL if they are not compatible.

    They are compatible if the second has no language or both have the same.

    Args:
        body: returns SQL for the characters of both.
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
    """Returns STRLEN."""
    return Scalar(f"CAST(length({text(argument)}) AS DECIMAL(38,0))", Type.INTEGER)


def upper(argument: Scalar) -> Scalar:
    """Returns UCASE, with Unicode's full mapping: `ß` becomes `SS`."""
    return same_kind(argument, lambda chars: f"upper({chars})")


def lower(argument: Scalar) -> Scalar:
    """Returns LCASE."""
    return same_kind(argument, lambda chars: f"lower({chars})")


# no string has as many characters
_FAR: Final = 2**30


def substring(argument: Scalar, start: str, count: str | None = None) -> Scalar:
    """Returns SUBSTR; positions before the first count, but have no character (XPath's fn:substring).

    Args:
        argument: the string.
        start: SQL of the first position, from 1, an integer of any size; the result for NULL is NULL.
        count: SQL of the number of characters, likewise.

    >>> print(substring(Scalar("v_x", Type.STRING), "2").sql)
    CASE WHEN 2 IS NOT NULL THEN substring(v_x, CAST(least(greatest(2, 1), 1073741824) AS INT)) ELSE NULL END
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
    """Returns STRBEFORE; an empty simple literal if the first does not contain the second."""
    return _around(first, second, lambda a, b: f"left({a}, instr({a}, {b}) - 1)")


def after(first: Scalar, second: Scalar) -> Scalar:
    """Returns STRAFTER, likewise."""
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
    """Returns CONCAT; the result has a language if all arguments have that language."""
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
    """Returns ENCODE_FOR_URI: all but RFC 3986's unreserved characters percent-encoded (XPath's fn:encode-for-uri).

    >>> print(encode_for_uri(Scalar("v_x", Type.STRING)).sql)
    replace(replace(replace(url_encode(v_x), '+', '%20'), '*', '%2A'), '%7E', '~')
    """
    sql = f"url_encode({text(argument)})"  # the encoding of HTML forms
    for char, encoded in (("+", "%20"), ("*", "%2A"), ("%7E", "~")):
        sql = f"replace({sql}, {literal(char)}, {literal(encoded)})"
    return Scalar(sql, Type.STRING)


# --- conditions -----------------------------------------------------------------------------------------------------


def starts(first: Scalar, second: Scalar) -> Scalar:
    """Returns STRSTARTS."""
    return Scalar(compatible(first, second, lambda a, b: f"startswith({a}, {b})"), Type.BOOLEAN)


def ends(first: Scalar, second: Scalar) -> Scalar:
    """Returns STRENDS."""
    return Scalar(compatible(first, second, lambda a, b: f"endswith({a}, {b})"), Type.BOOLEAN)


def contains(first: Scalar, second: Scalar) -> Scalar:
    """Returns CONTAINS."""
    return Scalar(compatible(first, second, lambda a, b: f"contains({a}, {b})"), Type.BOOLEAN)


def language_matches(tag: str, range: str) -> Scalar:
    """Returns LANGMATCHES by basic filtering (RFC 4647, section 3.3.1), for SQL of a tag's and a range's characters."""

    def matches(r: str) -> str:
        prefix = f"startswith(concat(lower({tag}), '-'), concat(lower({r}), '-'))"
        return case((f"{r} = '*'", f"{tag} <> ''"), otherwise=prefix)

    return Scalar(let(range, matches), Type.BOOLEAN)


# --- regular expressions --------------------------------------------------------------------------------------------


def regex(argument: Scalar, pattern: str, flags: str) -> Scalar:
    """Returns REGEX with a constant pattern and flags; an illegal pattern is SPARQL's error.

    Raises:
        UnsupportedQuery: see `regex.translation`.
    """
    try:
        translated = translate_pattern(pattern, flags)
    except IllegalPattern:
        return Scalar("CAST(NULL AS BOOLEAN)", Type.BOOLEAN)
    java = literal(translated.java)
    return Scalar(
        _guarded(text(argument), translated, lambda chars: f"{chars} RLIKE {java}"), Type.BOOLEAN
    )


def replace(argument: Scalar, pattern: str, replacement: str, flags: str) -> Scalar:
    """Returns REPLACE with constants, likewise; a pattern that matches the empty string is an error too (err:FORX0003).

    Raises:
        UnsupportedQuery: see `regex.translation`.
    """
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
    """Returns SQL that matches, but ends the job if Java could run out of stack, which would end the whole process."""
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
