"""Spark's SQL: the dialect of plans, literals, branches, and errors of this package that end a job.

All SQL has the same meaning under any setting of a session: ANSI mode, time zone, escaped string literals. No pyspark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from construct_messages.errors import ConstructMessagesError

_PLAIN: Final = re.compile(r"[^\x00-\x1f\x7f'\\\ud800-\udfff]*")


class SparkSql:
    """See `dialects.Dialect`.

    >>> SparkSql().array("a", "'b'"), SparkSql().matches("x", "[0-9]+")
    ("array(a, 'b')", "(x RLIKE CAST(X'5E283F3A5B302D395D2B295C7A' AS STRING))")
    """

    @property
    def null(self) -> str:
        return "CAST(NULL AS STRING)"

    def text(self, value: str) -> str:
        return literal(value)

    def array(self, *values: str) -> str:
        return f"array({', '.join(values)})"

    def explode(self, array: str) -> str:
        return f"explode({array})"

    def matches(self, value: str, pattern: str) -> str:
        return f"({value} RLIKE {literal(rf'^(?:{pattern}){chr(92)}z')})"

    @property
    def number(self) -> str:
        return "monotonically_increasing_id()"

    def once(self, value: str) -> str:
        # Spark would move filters below this and copy the SQL to each place that names the variable, nesting it without
        # limit; it moves nothing below an expression that depends on the partition
        return f"if(spark_partition_id() < 0, NULL, {value})"


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


def case(*branches: tuple[str, str], otherwise: str = "NULL") -> str:
    """A searched CASE."""
    if not branches:
        return otherwise
    return f"CASE {' '.join(f'WHEN {when} THEN {then}' for when, then in branches)} ELSE {otherwise} END"


def any_of(value: str, texts: Iterable[str]) -> str:
    return f"{value} IN ({', '.join(map(literal, texts))})"


def fail(error: type[ConstructMessagesError], message: str) -> str:
    """SQL that ends the job with an error of this package, which `session.translated` raises; its message is SQL.

    >>> from construct_messages.errors import QuadsError
    >>> fail(QuadsError, "'no term'")
    "raise_error(concat_ws(' ', 'QuadsError:', 'no term'))"
    """
    return f"raise_error(concat_ws(' ', '{error.__name__}:', {message}))"
