"""The values of expressions as SQL, and the SQL that all expressions are made of.

A value is a `Scalar`: SQL text and the type of its result. Most are of type TERM, a canonical N-Triples string; a value
of a known type stays native until it is needed as a term. NULL is SPARQL's error and the unbound variable alike (SPARQL
1.1 Query, section 17.2). All SQL has the same meaning under any setting of a session: ANSI mode, time zone, escaped
string literals, the precision of decimal operations. `term_parts.py` has the SQL of terms. Nothing about numbers or
dates, and no pyspark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Final

from construct_messages.query.algebra.nodes import Var
from construct_messages.rdf.errors import ConstructMessagesError, ValueOutOfRange
from construct_messages.rdf.terms import Term


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
    """SQL text and the type of its value.

    Args:
        sql: the text; it needs no parentheses around it.
        type: of the value.
        term: the term of a constant; `sql` is its value, which other terms may share.
    """

    sql: str
    type: Type = Type.TERM
    term: Term | None = None


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
    """Returns SQL that uses a value more than once, and computes it once.

    A column, field or literal is used as it is, because Spark compiles it, but not a lambda. The variable of a lambda
    inside another is named by its depth.

    Args:
        value: SQL.
        body: returns SQL for the name (or the atom) of the value; it is called once.
        interpreted: a lambda in any case, of a function that Spark does not compile to code: Spark compiles long SQL
            for seconds, and then gives up at 64 KB.

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
    """Returns SQL as it is, or, if it is long, inside a function that Spark does not compile to code.

    Four comparisons of sums are more than the 64 KB that Java allows a method: Spark would try for seconds, log some
    hundred lines, and then compile nothing of the whole stage. Java runs methods far shorter than that slowly, too:
    interpreted SQL is as fast.

    >>> compiled_if_short("v_x")
    'v_x'
    """
    return (
        sql
        if len(_CONSTANT.sub("", sql)) <= _LONGEST_COMPILED
        else f"zip_with(array(0), array(0), (zero, one) -> {sql})[0]"
    )


def case(*branches: tuple[str, str], otherwise: str = "NULL") -> str:
    """Returns a searched CASE, without the branches whose condition is `false`.

    >>> case(("a > 0", "1"), ("false", "0"), ("a < 0", "-1"))
    'CASE WHEN a > 0 THEN 1 WHEN a < 0 THEN -1 ELSE NULL END'
    """
    branches = tuple(branch for branch in branches if branch[0] != "false")
    if not branches:
        return otherwise
    return f"CASE {' '.join(f'WHEN {when} THEN {then}' for when, then in branches)} ELSE {otherwise} END"


def all_of(*conditions: str) -> str:
    """Returns a conjunction, without the conditions that are constant.

    >>> all_of("a", "true"), all_of("a", "false")
    ('a', 'false')
    """
    return _junction("AND", conditions, neutral="true", dominant="false")


def one_of(*conditions: str) -> str:
    """Returns a disjunction, without the conditions that are constant.

    >>> one_of("a", "true"), one_of("a", "false")
    ('true', 'a')
    """
    return _junction("OR", conditions, neutral="false", dominant="true")


def _junction(operator: str, conditions: Iterable[str], neutral: str, dominant: str) -> str:
    rest = [condition for condition in conditions if condition != neutral]
    if dominant in rest:
        return dominant
    return f"({f' {operator} '.join(rest)})" if len(rest) > 1 else rest[0] if rest else neutral


@contextmanager
def out_of_range_unbound(unbound: bool) -> Iterator[None]:
    """Decides for a block whether the SQL made in it treats a value out of range as an error of the query.

    Args:
        unbound: True: as an error of the query, which leaves a variable unbound and fails a FILTER; False: it ends the
            job.
    """
    token = _out_of_range_unbound.set(unbound)
    try:
        yield
    finally:
        _out_of_range_unbound.reset(token)


def is_out_of_range_unbound() -> bool:
    """Returns whether SQL is made inside `out_of_range_unbound(True)`, so that NULL may mean a value out of range."""
    return _out_of_range_unbound.get()


def fail(error: type[ConstructMessagesError], message: str) -> str:
    """Returns SQL that ends the job with an error of this package, which `session.translated` raises.

    Inside `out_of_range_unbound`, a `ValueOutOfRange` is NULL instead.

    Args:
        error: its class.
        message: SQL of its text; NULL counts as no text.

    >>> from construct_messages.rdf.errors import ValueOutOfRange
    >>> fail(ValueOutOfRange, "'too large'")
    "raise_error(concat_ws(' ', 'ValueOutOfRange:', 'too large'))"
    """
    if error is ValueOutOfRange and is_out_of_range_unbound():
        return "NULL"
    return f"raise_error(concat_ws(' ', '{error.__name__}:', {message}))"


def may_fail(sql: str) -> bool:
    """Returns whether SQL can end a job: such SQL must be evaluated for solutions of the query only.

    >>> from construct_messages.rdf.errors import ValueOutOfRange
    >>> may_fail(case(("v_x > 9", fail(ValueOutOfRange, "v_x")), otherwise="v_x")), may_fail("'a'")
    (True, False)
    """
    return "raise_error(" in sql


def any_of(value: str, texts: Iterable[str]) -> str:
    """Returns SQL that tests whether a value is one of some texts.

    >>> any_of("x", ["a", "b"])
    "x IN ('a', 'b')"
    """
    return f"{value} IN ({', '.join(map(literal, texts))})"
