"""SQL over terms: their kinds and parts, the text of literals, and terms made from parts.

RDF 1.2 N-Triples, canonical form (https://www.w3.org/TR/rdf12-n-triples/#canonical-ntriples); SPARQL 1.1 Query, section
17.4.2. Nothing about numbers or dates, and no pyspark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from construct_messages.rdf.terms import NEEDS_ESCAPE, RDF, XSD, literal_parts
from construct_messages.spark.sql.values import Scalar, Type, case, let, literal

# --- the kinds and parts of a term ----------------------------------------------------------------------------------
# All of these take SQL of a term and return SQL, whose value is described; NULL for NULL.


def is_iri(term: str) -> str:
    """Returns SQL that tests whether a term is an IRI."""
    return f"(startswith({term}, '<') AND NOT startswith({term}, '<<('))"


def iri_text(term: str) -> str:
    """Returns the characters of an IRI; undefined for other terms."""
    return f"substring({term}, 2, length({term}) - 2)"


def is_blank(term: str) -> str:
    """Returns SQL that tests whether a term is a blank node."""
    return f"startswith({term}, '_:')"


def is_literal(term: str) -> str:
    """Returns SQL that tests whether a term is a literal."""
    return f"""startswith({term}, '"')"""


def is_simple(term: str) -> str:
    """Returns SQL that tests whether a term is a simple literal, that is an xsd:string."""
    return f"""({is_literal(term)} AND endswith({term}, '"'))"""


def suffix(term: str) -> str:
    """Returns SQL of the text after a literal's closing quote: nothing, `@language` or `^^<datatype>`."""
    return f"""substring_index({term}, '"', -1)"""


def has_language(term: str) -> str:
    """Returns SQL that tests whether a term is a language-tagged literal."""
    return f"({is_literal(term)} AND startswith({suffix(term)}, '@'))"


def is_string(term: str) -> str:
    """Returns SQL that tests whether a term is a string literal as SPARQL's functions take it: simple or
    language-tagged (section 17.4.3.1).
    """
    return f"""({is_literal(term)} AND NOT endswith({term}, '>'))"""


def escaped(term: str) -> str:
    """Returns the escaped characters between a literal's quotes; undefined for other terms."""
    return let(term, lambda t: f"substring({t}, 2, length({t}) - length({suffix(t)}) - 2)")


def lexical_form(term: str) -> str:
    """Returns the lexical form of a literal as raw text; NULL for another term."""
    return let(term, lambda t: case((is_literal(t), characters(t))))


def digits(term: str) -> str:
    """Returns the lexical form of a literal without escapes, such as a number or date; undefined for other terms."""
    return f"""substring_index(substring({term}, 2), '"', 1)"""


def text_of(term: str) -> str:
    """Returns the raw text of a string literal, simple or language-tagged; NULL for another term."""
    return let(term, lambda t: case((is_string(t), characters(t))))


def characters(term: str) -> str:
    """Returns the raw text between a literal's quotes; undefined for other terms."""
    # nearly all terms have no escapes
    return case(
        (f"contains({term}, {_BACKSLASH})", unescape(escaped(term))), otherwise=escaped(term)
    )


def language(term: str) -> str:
    """Returns the language tag of a literal, empty if it has none; NULL for another term."""
    tag = f"substring_index(substring({suffix(term)}, 2), '--', 1)"
    return case((has_language(term), tag), (is_literal(term), "''"))


def datatype(term: str) -> str:
    """Returns the datatype of a literal as a term; NULL for another term."""
    tag = suffix(term)
    return case(
        (f"NOT {is_literal(term)}", "NULL"),
        (f"startswith({tag}, '^^')", f"substring({tag}, 3)"),
        (f"startswith({tag}, '@') AND contains({tag}, '--')", literal(f"<{RDF}dirLangString>")),
        (f"startswith({tag}, '@')", literal(f"<{RDF}langString>")),
        (f"{term} IS NOT NULL", literal(f"<{XSD}string>")),
    )


def xsd_type(term: str) -> str:
    """Returns the local name of an XSD datatype with its closing bracket, as in `integer>`; otherwise NULL or another
    text.

    >>> print(xsd_type("v_x"))
    CASE WHEN endswith(v_x, '>') THEN substring_index(v_x, '"^^<http://www.w3.org/2001/XMLSchema#', -1) ELSE NULL END
    """
    # a quote inside a literal has a backslash before it, and no datatype holds a quote: the last one is the closing one
    return case(
        (f"endswith({term}, '>')", f"substring_index({term}, {literal(f'{chr(34)}^^<{XSD}')}, -1)")
    )


def has_form(term: str, forms: Mapping[str, str]) -> str:
    """Returns SQL that tests whether a term is a literal of one of some XSD types in a form of this type.

    Args:
        term: SQL.
        forms: patterns of the lexical forms, in Java's syntax, by the local names of the types.

    >>> print(has_form("v_x", {"gDay": "---[0-9]+"}))
    (v_x RLIKE '^"(---[0-9]+"..<http://www[.]w3[.]org/2001/XMLSchema#gDay>)$')
    """
    # `..` matches `^^`, the only text of two characters between a closing quote and a bracket
    namespace = XSD.replace(".", "[.]")
    patterns = "|".join(f'{form}"..<{namespace}{name}>' for name, form in forms.items())
    pattern = literal(f'^"({patterns})$')
    return f"({term} RLIKE {pattern})"


# --- text in a literal ----------------------------------------------------------------------------------------------

_BACKSLASH: Final = literal("\\")
_TWO_BACKSLASHES: Final = literal(r"\\")
_UNICODE: Final = literal(r"\u00")
# the characters after the backslash in canonical N-Triples, except for control characters as \u00XX
_ESCAPES: Final = dict(zip('"nrtbf', '"\n\r\t\b\f', strict=True)) | {
    "uFFFE": "\ufffe",
    "uFFFF": "\uffff",
}
_CONTROLS: Final = sorted({*range(0x20), 0x7F} - {ord(char) for char in _ESCAPES.values()})
_BACKSLASH_HERE: Final = literal("\x01")
_UNICODE_HERE: Final = literal("\x02")
_TO_ESCAPE: Final = literal(NEEDS_ESCAPE.pattern)


def unescape(escaped: str) -> str:
    r"""Returns the raw text for the characters between the quotes of a canonical literal.

    The text contains no control characters: two of them temporarily replace `\\` and `\u00`, so that the second half of
    an escaped backslash cannot begin another escape, and no text after a `\u00` is taken for one.
    """
    text = f"replace(replace({escaped}, {_TWO_BACKSLASHES}, {_BACKSLASH_HERE}), {_UNICODE}, {_UNICODE_HERE})"
    for letter, char in _ESCAPES.items():
        text = f"replace({text}, {literal(chr(92) + letter)}, {literal(char)})"
    text = f"replace({text}, {_BACKSLASH_HERE}, {_BACKSLASH})"
    char = "concat(chr(CAST(conv(substring(s, 1, 2), 16, 10) AS INT)), substring(s, 3))"
    return (
        f"array_join(transform(split({text}, {_UNICODE_HERE}), (s, i) -> if(i = 0, s, {char})), '')"
    )


def escape(text: str) -> str:
    """Returns the characters of raw text as canonical N-Triples writes them between quotes."""

    def encoded(t: str) -> str:
        t = f"replace({t}, {_BACKSLASH}, {_TWO_BACKSLASHES})"
        for letter, char in _ESCAPES.items():
            t = f"replace({t}, {literal(char)}, {literal(chr(92) + letter)})"
        codes = f"array({', '.join(map(str, _CONTROLS))})"
        return f"aggregate({codes}, {t}, (s, c) -> replace(s, chr(c), concat({_UNICODE}, lpad(hex(c), 2, '0'))))"

    return let(text, lambda t: case((f"{t} RLIKE {_TO_ESCAPE}", encoded(t)), otherwise=t))


# --- making terms ---------------------------------------------------------------------------------------------------


def tagged(text: str, suffix: str) -> str:
    """Returns a literal of raw text with a suffix (both SQL): `''`, `'@en'`, `'^^<urn:t>'`; NULL if one of them is
    NULL.
    """
    return f"""concat('"', {escape(text)}, '"', {suffix})"""


def typed(lexical: str, name: str) -> str:
    """Returns a literal of an XSD type (a Python string, its local name) whose lexical form needs no escapes."""
    return f"""concat('"', {lexical}, {literal(f'"^^<{XSD}{name}>')})"""


def as_term(scalar: Scalar) -> str:
    """Returns SQL of the canonical term. Numbers are written as by the embedded store, without exponents and extra
    zeros.
    """
    sql = scalar.sql
    if scalar.term is not None:
        return literal(scalar.term)
    match scalar.type:
        case Type.TERM:
            return sql
        case Type.STRING:
            return tagged(sql, "''")
        case Type.BOOLEAN:
            true, false = (literal(f'"{value}"^^<{XSD}boolean>') for value in ("true", "false"))
            return let(sql, lambda b: case((b, true), (f"NOT {b}", false)))
        case _:
            return typed(as_text(scalar), scalar.type.name.lower())


def as_text(scalar: Scalar) -> str:
    """Returns SQL of the lexical form, as raw text; NULL for a term that is not a literal."""
    sql = scalar.sql
    if scalar.term is not None and scalar.term.startswith('"'):
        return literal(literal_parts(scalar.term)[0])
    match scalar.type:
        case Type.TERM:
            return lexical_form(sql)
        case Type.STRING:
            return sql
        case Type.BOOLEAN | Type.INTEGER:
            return f"CAST({sql} AS STRING)"
        case Type.DECIMAL:
            return let(sql, _decimal_text)
        case Type.FLOAT | Type.DOUBLE:
            return let(f"CAST({sql} AS STRING)", _floating_text)


def _decimal_text(d: str) -> str:
    # without ANSI mode Spark writes small decimals with an exponent, but none that has an integer part
    fraction = f"substring(CAST(1 + abs({d} % 1) AS STRING), 3)"
    whole = f"CAST(CAST(abs({d}) - abs({d} % 1) AS DECIMAL(19,0)) AS STRING)"
    digits = f"trim(TRAILING '.' FROM trim(TRAILING '0' FROM concat({whole}, '.', {fraction})))"
    return f"concat(if({d} < 0, '-', ''), {digits})"


def _floating_text(java: str) -> str:
    """Returns Java's shortest decimal form, without an exponent."""
    digits = f"replace(substring_index(trim(LEADING '-' FROM {java}), 'E', 1), '.', '')"
    exponent = f"CAST(substring_index({java}, 'E', -1) AS INT)"
    large = f"concat(rpad({digits}, {exponent} + 1, '0'), '.', substring({digits}, {exponent} + 2))"
    small = f"concat('0.', repeat('0', -1 - {exponent}), {digits})"
    plain = case(
        (f"NOT contains({java}, 'E')", f"trim(LEADING '-' FROM {java})"),
        (f"contains({java}, 'E-')", small),
        otherwise=large,
    )
    # only the text shows the sign of zero
    sign = f"if(startswith({java}, '-'), '-', '')"
    return case(
        (f"{java} = 'NaN'", "'NaN'"),
        (f"endswith({java}, 'Infinity')", f"concat({sign}, 'INF')"),
        otherwise=f"concat({sign}, trim(TRAILING '.' FROM trim(TRAILING '0' FROM {plain})))",
    )
