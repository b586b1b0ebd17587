"""The values of expressions as SQL, and the SQL that all expressions are made of.

A value is a `Scalar`: SQL text and the type of its result. Most are of type TERM, a canonical N-Triples string; a value
of a known type stays native until it is needed as a term. NULL is SPARQL's error and the unbound variable alike (SPARQL
1.1 Query, section 17.2). All SQL has the same meaning under any setting of a session: ANSI mode, time zone, escaped
string literals, the precision of decimal operations. `values.py` has the SQL of terms. Nothing about numbers or
dates, and no pyspark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Final

from construct_messages.errors import ConstructMessagesError, ValueOutOfRange
from construct_messages.query.algebra.nodes import Var
from construct_messages.rdf.terms import NEEDS_ESCAPE, RDF, XSD, Term, literal_parts


class Type(Enum):
    """The type of the result of a `Scalar`."""

    TERM = "a canonical term"
    STRING = "the raw text of a simple literal"
    BOOLEAN = "BOOLEAN"
    INTEGER = "DECIMAL(38,0)"
    DECIMAL = "DECIMAL(37,18)"  # the widest type whose sums Spark does not round, under any setting
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"


@dataclass(frozen=True, slots=True)
class Scalar:
    """SQL text, which needs no parentheses around it, and the type of its value."""

    sql: str
    type: Type = Type.TERM
    term: Term | None = None  # of a constant: `sql` is its value, which other terms may share


ERROR: Final = Scalar("CAST(NULL AS STRING)")


def column(variable: Var) -> str:
    """Returns the name of a variable's column: unique even where case is ignored, and an SQL identifier without quotes.

    >>> column(Var("company")), column(Var("aName")), column(Var(".g0"))
    ('v_company', 'v_a_4e_ame', 'v__2e_g0')
    """
    return "v_" + "".join(
        char if char.isascii() and (char.islower() or char.isdigit()) else f"_{ord(char):x}_"
        for char in variable.name
    )


# --- SQL ------------------------------------------------------------------------------------------------------------

_PLAIN: Final = re.compile(r"[^\x00-\x1f\x7f'\\\ud800-\udfff]*")


def literal(text: str) -> str:
    r"""Returns an SQL string literal, with the same meaning under every setting of the parser.

    A quote, a backslash (whose meaning depends on `spark.sql.parser.escapedStringLiterals`, which takes the `r` of a
    raw literal for a part of its text) and `${`, where Spark would substitute a variable, are written as bytes.

    >>> print(literal("a"), literal(r"\d+"), literal("it's"))
    'a' CAST(X'5C642B' AS STRING) CAST(X'69742773' AS STRING)
    """
    if "${" not in text and _PLAIN.fullmatch(text):
        return f"'{text}'"
    return f"CAST(X'{text.encode().hex().upper()}' AS STRING)"


_ATOM: Final = re.compile(r"[\w.]+|'[^']*'|CAST\(X?'[^']*' AS [A-Z]+(?:\(\d+,\d+\))?\)")
_depth: ContextVar[int] = ContextVar("depth", default=0)
_out_of_range_unbound: ContextVar[bool] = ContextVar("out_of_range_unbound", default=False)


def let(value: str, body: Callable[[str], str], *, interpreted: bool = False) -> str:
    """SQL that uses a value more than once, and computes it once; `body` is called once, with the value's name.

    A column, field or literal is used as it is, because Spark compiles it, but not a lambda. The variable of a lambda
    inside another is named by its depth. If `interpreted`, the value is always bound by a lambda, of a function that
    Spark does not compile to code: Spark compiles long SQL for seconds, and then gives up at 64 KB.

    >>> let("v_x", lambda x: f"concat({x}, {x})")
    'concat(v_x, v_x)'
    >>> let("upper(v_x)", lambda x: f"concat({x}, {x})")
    'transform(array(upper(v_x)), x0 -> concat(x0, x0))[0]'
    """
    if _ATOM.fullmatch(value) and not interpreted:
        return body(value)
    depth = _depth.get()
    token = _depth.set(depth + 1)
    try:
        name = f"x{depth}"
        if interpreted:
            return f"zip_with(array({value}), array(0), ({name}, zero) -> {body(name)})[0]"
        return f"transform(array({value}), {name} -> {body(name)})[0]"
    finally:
        _depth.reset(token)


_LONGEST_COMPILED: Final = 4_000  # characters
# a constant of any length is a reference in Java's code; those of types have thousands of characters
_CONSTANT: Final = re.compile(r"'(?:[^'\\]|\\.)*+'")


def compiled_if_short(sql: str) -> str:
    """SQL as it is, or, if it is long, inside a function that Spark does not compile to code.

    Four comparisons of sums are more than the 64 KB that Java allows a method: Spark would try for seconds, log some
    hundred lines, and then compile nothing of the whole stage. Java runs methods far shorter than that slowly, too:
    interpreted SQL is as fast.
    """
    return (
        sql
        if len(_CONSTANT.sub("", sql)) <= _LONGEST_COMPILED
        else f"zip_with(array(0), array(0), (zero, one) -> {sql})[0]"
    )


def case(*branches: tuple[str, str], otherwise: str = "NULL") -> str:
    branches = tuple(branch for branch in branches if branch[0] != "false")
    if not branches:
        return otherwise
    return f"CASE {' '.join(f'WHEN {when} THEN {then}' for when, then in branches)} ELSE {otherwise} END"


def all_of(*conditions: str) -> str:
    """A searched CASE, without the branches whose condition is `false`."""
    return _junction("AND", conditions, neutral="true", dominant="false")


def one_of(*conditions: str) -> str:
    return _junction("OR", conditions, neutral="false", dominant="true")


def _junction(operator: str, conditions: Iterable[str], neutral: str, dominant: str) -> str:
    rest = [condition for condition in conditions if condition != neutral]
    if dominant in rest:
        return dominant
    return f"({f' {operator} '.join(rest)})" if len(rest) > 1 else rest[0] if rest else neutral


@contextmanager
def out_of_range_unbound(unbound: bool) -> Iterator[None]:
    """Decides for the SQL made in a block whether a value out of range is an error of the query, or ends the job.

    An error of the query leaves a variable unbound and fails a FILTER.
    """
    token = _out_of_range_unbound.set(unbound)
    try:
        yield
    finally:
        _out_of_range_unbound.reset(token)


def is_out_of_range_unbound() -> bool:
    """Whether NULL may mean a value out of range in the SQL that is made now."""
    return _out_of_range_unbound.get()


def fail(error: type[ConstructMessagesError], message: str) -> str:
    """SQL that ends the job with an error of this package, which `session.translated` raises; its message is SQL.

    Inside `out_of_range_unbound`, a `ValueOutOfRange` is NULL instead.

    >>> fail(ValueOutOfRange, "'too large'")
    "raise_error(concat_ws(' ', 'ValueOutOfRange:', 'too large'))"
    """
    if error is ValueOutOfRange and is_out_of_range_unbound():
        return "NULL"
    return f"raise_error(concat_ws(' ', '{error.__name__}:', {message}))"


def may_fail(sql: str) -> bool:
    """Whether SQL can end a job: such SQL must be evaluated for solutions of the query only."""
    return "raise_error(" in sql


def any_of(value: str, texts: Iterable[str]) -> str:
    return f"{value} IN ({', '.join(map(literal, texts))})"


# --- terms ------------------------------------------------------------------------------------------------------------
# Functions over SQL of terms in the canonical form of N-Triples, https://www.w3.org/TR/rdf12-n-triples/. They return
# SQL, which is NULL for NULL.


def is_iri(term: str) -> str:
    return f"(startswith({term}, '<') AND NOT startswith({term}, '<<('))"


def iri_text(term: str) -> str:
    return f"substring({term}, 2, length({term}) - 2)"


def is_blank(term: str) -> str:
    return f"startswith({term}, '_:')"


def is_literal(term: str) -> str:
    return f"""startswith({term}, '"')"""


def is_simple(term: str) -> str:
    """Tests for a simple literal, that is an xsd:string."""
    return f"""({is_literal(term)} AND endswith({term}, '"'))"""


def suffix(term: str) -> str:
    """The text after a literal's closing quote: nothing, `@language` or `^^<datatype>`."""
    return f"""substring_index({term}, '"', -1)"""


def has_language(term: str) -> str:
    return f"({is_literal(term)} AND startswith({suffix(term)}, '@'))"


def is_string(term: str) -> str:
    """Tests for a string literal as SPARQL's functions take it: simple or language-tagged (section 17.4.3.1)."""
    return f"""({is_literal(term)} AND NOT endswith({term}, '>'))"""


def escaped(term: str) -> str:
    """The escaped characters between a literal's quotes; undefined for other terms."""
    return let(term, lambda t: f"substring({t}, 2, length({t}) - length({suffix(t)}) - 2)")


def lexical_form(term: str) -> str:
    """The lexical form of a literal as raw text; NULL for another term."""
    return let(term, lambda t: case((is_literal(t), characters(t))))


def digits(term: str) -> str:
    """The lexical form of a literal without escapes, such as a number or date; undefined for other terms."""
    return f"""substring_index(substring({term}, 2), '"', 1)"""


def text_of(term: str) -> str:
    """The raw text of a string literal, simple or language-tagged; NULL for another term."""
    return let(term, lambda t: case((is_string(t), characters(t))))


def characters(term: str) -> str:
    """The raw text between a literal's quotes; undefined for other terms."""
    # nearly all terms have no escapes
    return case(
        (f"contains({term}, {_BACKSLASH})", unescape(escaped(term))), otherwise=escaped(term)
    )


def language(term: str) -> str:
    """The language tag of a literal, empty if it has none; NULL for another term."""
    tag = f"substring_index(substring({suffix(term)}, 2), '--', 1)"
    return case((has_language(term), tag), (is_literal(term), "''"))


def datatype(term: str) -> str:
    """The datatype of a literal as a term; NULL for another term."""
    tag = suffix(term)
    return case(
        (f"NOT {is_literal(term)}", "NULL"),
        (f"startswith({tag}, '^^')", f"substring({tag}, 3)"),
        (f"startswith({tag}, '@') AND contains({tag}, '--')", literal(f"<{RDF}dirLangString>")),
        (f"startswith({tag}, '@')", literal(f"<{RDF}langString>")),
        (f"{term} IS NOT NULL", literal(f"<{XSD}string>")),
    )


def xsd_type(term: str) -> str:
    """The local name of an XSD datatype with its closing bracket, as in `integer>`; otherwise NULL or another text."""
    # a quote inside a literal has a backslash before it, and no datatype holds a quote: the last one is the closing one
    return case(
        (f"endswith({term}, '>')", f"substring_index({term}, {literal(f'{chr(34)}^^<{XSD}')}, -1)")
    )


def has_form(term: str, forms: Mapping[str, str]) -> str:
    """Tests for a literal of one of some XSD types, by local names, in a form of this type (a pattern of Java)."""
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
    """The characters of raw text as canonical N-Triples writes them between quotes."""

    def encoded(t: str) -> str:
        t = f"replace({t}, {_BACKSLASH}, {_TWO_BACKSLASHES})"
        for letter, char in _ESCAPES.items():
            t = f"replace({t}, {literal(char)}, {literal(chr(92) + letter)})"
        codes = f"array({', '.join(map(str, _CONTROLS))})"
        return f"aggregate({codes}, {t}, (s, c) -> replace(s, chr(c), concat({_UNICODE}, lpad(hex(c), 2, '0'))))"

    return let(text, lambda t: case((f"{t} RLIKE {_TO_ESCAPE}", encoded(t)), otherwise=t))


# --- making terms ---------------------------------------------------------------------------------------------------


def tagged(text: str, suffix: str) -> str:
    """A literal of raw text with a suffix (both SQL): `''`, `'@en'`, `'^^<urn:t>'`; NULL if one of them is NULL."""
    return f"""concat('"', {escape(text)}, '"', {suffix})"""


def typed(lexical: str, name: str) -> str:
    return f"""concat('"', {lexical}, {literal(f'"^^<{XSD}{name}>')})"""


def as_term(scalar: Scalar) -> str:
    """The canonical term. Numbers are written as by the embedded store, without exponents and extra zeros."""
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
    """The lexical form, as raw text; NULL for a term that is not a literal."""
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
