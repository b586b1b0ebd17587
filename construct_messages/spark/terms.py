r"""Functions over columns of terms, for DataFrames: the kind and the parts of a term, and terms of other values.

Terms are canonical N-Triples strings, as in tables of quads, in solutions with `raw=True` and in `Messages.quads`
with `raw=True`. All functions are native expressions of Spark: there are no Python functions, and no regular
expressions to write. They take columns, or names of columns; the result for NULL is NULL.

>>> from construct_messages.spark import terms as T
>>> frame = spark.createDataFrame([('"caf\u00e9"@fr',), ("<urn:a>",)], ["term"])
>>> frame.select(T.term_value("term").alias("value"), T.term_kind("term").alias("kind")).collect()
[Row(value='café', kind='literal'), Row(value='urn:a', kind='iri')]
"""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Final, TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F

from construct_messages.errors import ConstructMessagesError, QuadsError, TermError, UsageError
from construct_messages.rdf.terms import NEEDS_ESCAPE, RDF, XSD
from construct_messages.rdf.terms import literal as literal_of
from construct_messages.rdf.terms.grammar import HEX, SUB_DELIMS, UCSCHAR, UNRESERVED

__all__ = ["datatype", "iri", "language", "literal", "term_kind", "term_value", "to_term"]

ColumnOrName: TypeAlias = Column | str

_ESCAPES: Final = dict(zip('"nrtbf', '"\n\r\t\b\f', strict=True)) | {
    "uFFFE": "\ufffe",
    "uFFFF": "\uffff",
}
"""The characters after a backslash in canonical N-Triples, except for the backslash and other control characters."""
_CONTROLS: Final = sorted({*range(0x20), 0x7F} - {ord(char) for char in _ESCAPES.values()})


# --- patterns -------------------------------------------------------------------------------------
# RFC 3986 over the characters of RFC 3987; RFC 5646, section 2.1. The patterns of Java accept what pyoxigraph accepts.
# They are possessive where a stack could overflow; there, sets of single characters are faster than ranges.


def _set(chars: str) -> str:
    """Returns a set of single characters of ASCII, which Java looks up in one table."""
    return "[" + "".join(char if char.isalnum() else f"\\x{ord(char):02x}" for char in chars) + "]"


_ALPHANUMERIC: Final = string.ascii_letters + string.digits
_UNRESERVED: Final = _ALPHANUMERIC + UNRESERVED
_UCSCHAR: Final = UCSCHAR + "".join(
    f"\\x{{{plane:x}{'1000' if plane == 14 else '0000'}}}-\\x{{{plane:x}fffd}}"
    for plane in range(1, 15)
)
_PRIVATE: Final = "\\ue000-\\uf8ff\\x{f0000}-\\x{ffffd}\\x{100000}-\\x{10fffd}"


def _chars(more: str, others: str = _UCSCHAR) -> str:
    ascii = _set(_UNRESERVED + SUB_DELIMS + more)
    return f"{ascii}*(?:(?:%{HEX}{{2}}|[{others}]+){ascii}*)*+"


_SCHEME: Final = f"{_set(string.ascii_letters)}{_set(_ALPHANUMERIC + '+.-')}*:"
_PORT: Final = f"(?::{_set(string.digits)}*)?+"
_FRAGMENT: Final = f"(?:#{_chars(':@/?')})?+"
_OCTET: Final = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_LAST: Final = f"(?:{HEX}{{1,4}}:{HEX}{{1,4}}|{_OCTET}(?:\\.{_OCTET}){{3}})"
_IP_V6: Final = "|".join(
    [f"(?:{HEX}{{1,4}}:){{6}}{_LAST}", f"::(?:{HEX}{{1,4}}:){{5}}{_LAST}"]
    + [
        f"(?:(?:{HEX}{{1,4}}:){{0,{before}}}{HEX}{{1,4}})?::(?:{HEX}{{1,4}}:){{{4 - before}}}{_LAST}"
        for before in range(5)
    ]
    + [
        f"(?:(?:{HEX}{{1,4}}:){{0,5}}{HEX}{{1,4}})?::{HEX}{{1,4}}",
        f"(?:(?:{HEX}{{1,4}}:){{0,6}}{HEX}{{1,4}})?::",
    ]
)
_IP: Final = f"\\[(?:{_IP_V6}|[vV]{HEX}+\\.{_set(_UNRESERVED + SUB_DELIMS + ':')}+)\\]"
_IRI: Final = (
    f"^{_SCHEME}(?://(?:{_chars(':')}@)?(?:{_IP}|{_chars('')}){_PORT}(?=[/?#>]|\\z)|(?!//))"
    f"{_chars(':@/')}(?:\\?{_chars(':@/?', _UCSCHAR + _PRIVATE)})?+{_FRAGMENT}\\z"
)
_GRANDFATHERED: Final = (
    "en-gb-oed|i-ami|i-bnn|i-default|i-enochian|i-hak|i-klingon|i-lux|i-mingo|i-navajo|i-pwn|i-tao|i-tay|i-tsu|"
    "sgn-be-fr|sgn-be-nl|sgn-ch-de|art-lojban|cel-gaulish|no-bok|no-nyn|zh-guoyu|zh-hakka|zh-min|zh-min-nan|zh-xiang"
)
_LANGUAGE: Final = (
    "^(?i:(?:[a-z]{2,3}(?:-[a-z]{3}){0,3}|[a-z]{4,8})(?:-[a-z]{4})?(?:-(?:[a-z]{2}|[0-9]{3}))?"
    "(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*(?:-[a-wy-z0-9](?:-[a-z0-9]{2,8})+)*(?:-x(?:-[a-z0-9]{1,8})+)?"
    f"|x(?:-[a-z0-9]{{1,8}})+|{_GRANDFATHERED})\\z"
)


# --- parts ----------------------------------------------------------------------------------------


def term_kind(term: ColumnOrName) -> Column:
    """Returns the kind of a term: `"iri"`, `"literal"`, `"blank node"` or `"triple term"`.

    >>> frame = spark.createDataFrame([("_:b",), ("<<( <urn:s> <urn:p> <urn:o> )>>",)], ["term"])
    >>> [row.kind for row in frame.select(term_kind("term").alias("kind")).collect()]
    ['blank node', 'triple term']
    """
    of = _column(term)
    found = (
        F.when(of.startswith('"'), "literal")
        .when(of.startswith("<<("), "triple term")
        .when(of.startswith("<"), "iri")
        .when(of.startswith("_:"), "blank node")
    )
    return _named("term_kind", term, found)


def term_value(term: ColumnOrName) -> Column:
    r"""Returns the characters of a term: an IRI without brackets, or the characters of a literal.

    Blank nodes and triple terms stay as they are. Cast the result for numbers and dates: `term_value("o").cast("int")`.

    >>> frame = spark.createDataFrame([(r'"two\nlines"@en',), ("<urn:a>",), ("_:b",)], ["term"])
    >>> [row.value for row in frame.select(term_value("term").alias("value")).collect()]
    ['two\nlines', 'urn:a', '_:b']
    """
    of = _column(term)
    inside = F.substring(of, F.lit(2), F.length(of) - F.length(_suffix(of)) - 2)
    found = (
        F.when(of.startswith('"') & of.contains("\\"), _unescaped(inside))
        .when(of.startswith('"'), inside)
        .when(
            of.startswith("<") & ~of.startswith("<<("),
            F.substring(of, F.lit(2), F.length(of) - 2),
        )
        .otherwise(of)
    )
    return _named("term_value", term, found)


def language(term: ColumnOrName) -> Column:
    """Returns the language tag of a literal, in lower case and without its base direction; NULL if it has none.

    >>> frame = spark.createDataFrame([('"chat"@fr',), ('"cat"',), ("<urn:a>",)], ["term"])
    >>> [row.tag for row in frame.select(language("term").alias("tag")).collect()]
    ['fr', None, None]
    """
    of = _column(term)
    suffix = _suffix(of)
    found = F.when(
        of.startswith('"') & suffix.startswith("@"),
        F.substring_index(F.substring(suffix, F.lit(2), F.length(suffix)), "--", 1),
    )
    return _named("language", term, found)


def datatype(term: ColumnOrName) -> Column:
    """Returns the IRI of the datatype of a literal, without brackets; NULL for other terms.

    >>> frame = spark.createDataFrame([('"chat"@fr',), ('"cat"',), ("<urn:a>",)], ["term"])
    >>> [row.type for row in frame.select(datatype("term").alias("type")).collect()][1:]
    ['http://www.w3.org/2001/XMLSchema#string', None]
    """
    of = _column(term)
    suffix = _suffix(of)
    found = F.when(
        of.startswith('"'),
        F.when(suffix.startswith("^^"), F.substring(suffix, F.lit(4), F.length(suffix) - 4))
        .when(suffix.contains("--"), f"{RDF}dirLangString")
        .when(suffix.startswith("@"), f"{RDF}langString")
        .otherwise(f"{XSD}string"),
    )
    return _named("datatype", term, found)


def _suffix(term: Column) -> Column:
    """The text after the last quote, which no datatype and no language tag has."""
    return F.substring_index(term, '"', -1)


# --- terms ----------------------------------------------------------------------------------------


def iri(value: ColumnOrName) -> Column:
    """Returns IRIs as terms; the value is an absolute IRI without brackets.

    A value that is no IRI ends the job with a `QuadsError`. `pyspark.sql.functions.url_encode` makes any text a part of
    an IRI.

    >>> frame = spark.createDataFrame([("a",)], ["name"])
    >>> frame.select(iri(F.concat(F.lit("http://example.org/"), "name")).alias("iri")).collect()
    [Row(iri='<http://example.org/a>')]
    """
    return _named("iri", value, _bound_once(_column(value), _iri_of))


def _iri_of(value: Column) -> Column:
    checked = F.when(value.rlike(_IRI), value).otherwise(
        _failure(
            QuadsError,
            value,
            " is not an absolute IRI",
            "write it in full, and percent-encode what no IRI may hold, as by url_encode() for its last part",
        )
    )
    return F.when(value.isNotNull(), F.concat(F.lit("<"), checked, F.lit(">")))


def literal(
    value: ColumnOrName,
    *,
    datatype: str | None = None,
    language: ColumnOrName | None = None,
) -> Column:
    """Returns literals as terms.

    Args:
        value: their characters; columns that are not strings are cast to strings.
        datatype: the IRI of their datatype, without brackets; None: they are strings.
        language: the column of their language tags; a literal whose tag is NULL is a string. For the same tag in each
            row, use `lit("en")`.

    Raises:
        UsageError: a datatype and languages, or a datatype that is no IRI or needs a language.

    >>> frame = spark.createDataFrame([("chat", "FR"), ("7", None)], ["value", "tag"])
    >>> [row.term for row in frame.select(literal("value", language="tag").alias("term")).collect()]
    ['"chat"@fr', '"7"']
    """
    if datatype is not None and language is not None:
        raise UsageError("a literal with a language has no other datatype", hint="leave one out")
    suffix = F.lit("") if language is None else _bound_once(_column(language), _tag)
    if datatype is not None:
        try:
            suffix = F.lit(literal_of("", datatype=datatype)[2:])
        except TermError as error:
            raise UsageError(error.message, hint=error.hint) from None
    text = _column(value).cast("string")
    made = F.concat(F.lit('"'), _bound_once(text, _escaped), F.lit('"'), suffix)
    return _named("literal", value, made)


def _tag(language: Column) -> Column:
    failure = _failure(
        QuadsError, language, " is not a language tag", "write it as in en or zh-hant"
    )
    checked = F.when(language.rlike(_LANGUAGE), F.lower(language)).otherwise(failure)
    return F.when(language.isNull(), "").otherwise(F.concat(F.lit("@"), checked))


def to_term(value: ColumnOrName) -> Column:
    """Returns the literals of the values of a column, with the datatype of its type.

    Integers are `xsd:integer`; decimals, doubles, booleans, dates and strings have their own. Timestamps are
    `xsd:dateTime` in UTC, those without a time zone `xsd:dateTime` without one. Values of other types end the job with
    a `UsageError`; IRIs are made by `iri`.

    >>> from datetime import date
    >>> frame = spark.createDataFrame([(3, date(2024, 5, 1))], ["n", "day"])
    >>> frame.select(to_term("n").alias("n"), to_term("day").alias("day")).collect()[0].n
    '"3"^^<http://www.w3.org/2001/XMLSchema#integer>'
    """
    return _named("to_term", value, _term_of(_column(value)))


def _term_of(value: Column) -> Column:
    kind, text = F.typeof(value), value.cast("string")

    def typed(lexical: Column, name: str) -> Column:
        return F.concat(F.lit('"'), lexical, F.lit(f'"^^<{XSD}{name}>'))

    floating = F.replace(text, F.lit("Infinity"), F.lit("INF"))
    return (
        F.when(value.isNull(), F.lit(None).cast("string"))
        .when(kind == "string", F.concat(F.lit('"'), _bound_once(text, _escaped), F.lit('"')))
        .when(kind.isin("tinyint", "smallint", "int", "bigint"), typed(text, "integer"))
        .when(kind.startswith("decimal"), typed(text, "decimal"))
        .when(kind == "double", typed(floating, "double"))
        .when(kind == "float", typed(floating, "float"))
        .when(kind == "boolean", typed(text, "boolean"))
        .when(kind == "date", typed(_year(text), "date"))
        .when(kind == "timestamp_ntz", typed(F.translate(_year(text), " ", "T"), "dateTime"))
        .when(kind == "timestamp", typed(_in_utc(value), "dateTime"))
        .otherwise(
            _failure(
                UsageError,
                kind,
                " has no datatype of RDF",
                "cast the column to string, or use literal(…, datatype=…)",
            )
        )
    )


def _year(text: Column) -> Column:
    """The text of a date: Spark writes a plus before years of five digits, and XML Schema does not have it."""
    return F.ltrim(text, F.lit("+"))


def _in_utc(value: Column) -> Column:
    """The text of a timestamp in UTC, whatever the time zone of the session is."""
    # only the writer of JSON takes a time zone; it takes a value of any type, as all branches of a CASE must
    options = {"timestampFormat": "G:yyyy:-MM-dd'T'HH:mm:ss.SSSSSS'Z'", "timeZone": "UTC"}
    text = F.get_json_object(F.to_json(F.struct(value.alias("t")), options), "$.t")
    parts = F.split(text, ":", 3)  # the era, the year in it, and the rest
    year = _year(parts[1]).cast("int")
    # the year before the year 1 is the year 0
    before = F.concat(
        F.when(year > 1, "-").otherwise(""), F.lpad((year - 1).cast("string"), 4, "0")
    )
    rest = F.regexp_replace(parts[2], r"[.]?0*Z$", "Z")
    return F.concat(F.when(parts[0] == "BC", before).otherwise(_year(parts[1])), rest)


# --- text -----------------------------------------------------------------------------------------


def _escaped(text: Column) -> Column:
    """The characters of a literal as canonical N-Triples writes them between quotes."""
    written = F.replace(text, F.lit("\\"), F.lit("\\\\"))
    for letter, char in _ESCAPES.items():
        written = F.replace(written, F.lit(char), F.lit(f"\\{letter}"))
    codes = F.array(*map(F.lit, _CONTROLS))

    def control(found: Column, code: Column) -> Column:
        return F.replace(found, F.chr(code), F.concat(F.lit("\\u00"), F.lpad(F.hex(code), 2, "0")))

    written = F.aggregate(codes, written, control)
    return F.when(text.rlike(NEEDS_ESCAPE.pattern), written).otherwise(text)


def _unescaped(written: Column) -> Column:
    """The characters of a literal that canonical N-Triples writes between quotes."""

    def piece(found: Column) -> Column:
        # without escaped backslashes, each backslash begins an escape
        for letter, char in _ESCAPES.items():
            found = F.replace(found, F.lit(f"\\{letter}"), F.lit(char))
        parts = F.split(found, r"\\u00")
        return F.array_join(F.transform(parts, _control), "")

    def _control(part: Column, place: Column) -> Column:
        code = F.conv(F.substring(part, 1, 2), 16, 10).cast("int")
        return F.when(place == 0, part).otherwise(
            F.concat(F.chr(code), F.substring(part, F.lit(3), F.length(part)))
        )

    return F.array_join(F.transform(F.split(written, r"\\\\"), piece), "\\")


# --- expressions ----------------------------------------------------------------------------------


def _column(value: ColumnOrName) -> Column:
    return F.col(value) if isinstance(value, str) else value


def _named(function: str, value: ColumnOrName, made: Column) -> Column:
    """Names a column as Spark names those of its functions; without a name, it would be the whole expression."""
    return made.alias(f"{function}({value})" if isinstance(value, str) else function)


def _bound_once(value: Column, body: Callable[[Column], Column]) -> Column:
    """The body over a value that is computed once, and not wherever the body names it."""
    return F.transform(F.array(value), body)[0]


def _failure(error: type[ConstructMessagesError], value: Column, message: str, hint: str) -> Column:
    """Ends the job with an error of this package, which `translated` raises."""
    text = F.concat(F.lit(f"{error.__name__}: "), value, F.lit(f"{message}\n  hint: {hint}"))
    return F.raise_error(text).cast("string")
