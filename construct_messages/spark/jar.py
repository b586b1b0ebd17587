"""The jar of this package, and whether a session has it: a reader of lines in Java, which is the same as that in SQL.

Its source is in `java/`; docs/decisions/057-lines-in-java.md has the reasons for it. A session has the jar if it was
started with `settings`; every other session reads lines by SQL alone. Nothing here starts or changes a session.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAR: Final = Path(__file__).parent / "java" / "construct-messages.jar"
"""The jar; no file where the package was imported from a .zip."""

_CATALOG: Final = "construct_messages"
_NAME: Final = f"spark.sql.catalog.{_CATALOG}"
_JARS: Final = "spark.jars"
_NO_TEXT: Final = "CAST(NULL AS STRING)"


def settings(given: Mapping[str, str]) -> dict[str, str]:
    """The settings of a new session that has the jar: none where there is no file, or its name cannot be in a list.

    Args:
        given: the user's settings of the session; their jars are kept.

    >>> sorted(settings({})), settings({"spark.jars": "a.jar"})["spark.jars"].startswith("a.jar,")
    (['spark.jars', 'spark.sql.catalog.construct_messages'], True)
    """
    if not JAR.is_file() or "," in str(JAR):
        return {}
    jars = [given[_JARS]] if given.get(_JARS) else []
    return {_JARS: ",".join([*jars, str(JAR)]), _NAME: "construct_messages.spark.Functions"}


def has_functions(spark: SparkSession) -> bool:
    """Whether SQL in a session can call the functions of the jar."""
    from pyspark.errors import PySparkException

    refusals: tuple[type[Exception], ...] = (PySparkException,)
    if find_spec("py4j") is not None:  # the client of Spark Connect alone comes without
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types

        refusals += (Py4JJavaError,)
    if spark.conf.get(_NAME, None) is None:
        return False
    try:
        return bool(
            spark.sql(f"SELECT {statement(_NO_TEXT, _NO_TEXT, graphs=False, lenient=False)}").schema
        )
    except refusals:  # the setting without the jar
        return False


def statement(line: str, file: str, *, graphs: bool, lenient: bool) -> str:
    """SQL: a struct of the terms `subject`, `predicate`, `object` and `graph` of a line; NULL where it is malformed.

    The struct has no subject where the line is blank, a comment or a version.

    Args:
        line: SQL of strings: text without its line break.
        file: SQL of its file's name, of which labels of blank nodes get their scope (`labels.of_file`).
        graphs: whether a statement may name a graph (N-Quads).
        lenient: whether IRIs and language tags that are malformed are passed.
    """
    return f"{_CATALOG}.statement({line}, {file}, {str(graphs).lower()}, {str(lenient).lower()})"
