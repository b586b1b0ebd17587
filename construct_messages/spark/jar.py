"""The jar of this package: a reader of lines in Java, and how a session gets it.

Its source is in `java/`; docs/decisions/057-lines-in-java.md explains the reasons. Sessions that this package starts
have it by `settings`; it is added to every other session, for this session alone, when that first reads lines.
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
_CLASS: Final = "construct_messages.spark.Functions"
_JARS: Final = "spark.jars"
_NO_TEXT: Final = "CAST(NULL AS STRING)"


def settings(given: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings of a new session with the jar; none if there is no jar, or a comma in its path.

    Args:
        given: the user's settings of the session; their jars are kept.

    >>> sorted(settings({})), settings({"spark.jars": "a.jar"})["spark.jars"].startswith("a.jar,")
    (['spark.jars', 'spark.sql.catalog.construct_messages'], True)
    """
    if not JAR.is_file() or "," in str(JAR):
        return {}
    jars = [given[_JARS]] if given.get(_JARS) else []
    return {_JARS: ",".join([*jars, str(JAR)]), _NAME: _CLASS}


def add_functions(spark: SparkSession) -> bool:
    """Makes the functions of the jar callable by SQL in a session; returns whether they are.

    The jar is added to a session that was started without it. Other sessions of the same Spark do not see it.
    """
    if has_functions(spark):
        return True
    if not JAR.is_file() or spark.conf.get(_NAME, None) is not None:
        return False
    try:
        if "connect" in type(spark).__module__:
            spark.addArtifacts(str(JAR))
        else:
            path = str(JAR).replace("\\", "\\\\").replace("'", "\\'")
            spark.sql(f"ADD JAR '{path}'")
        spark.conf.set(_NAME, _CLASS)
    except _refusals():
        return False  # the rights of the user do not allow it
    return has_functions(spark)


def has_functions(spark: SparkSession) -> bool:
    """Returns whether SQL in a session can call the functions of the jar."""
    if spark.conf.get(_NAME, None) is None:
        return False
    try:
        return bool(
            spark.sql(f"SELECT {statement(_NO_TEXT, _NO_TEXT, graphs=False, lenient=False)}").schema
        )
    except _refusals():  # the catalog is set, but the jar is missing
        return False


def _refusals() -> tuple[type[Exception], ...]:
    from pyspark.errors import PySparkException

    if find_spec("py4j") is None:  # not part of the client of Spark Connect
        return (PySparkException,)
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types

    return (PySparkException, Py4JJavaError)


def statement(line: str, file: str, *, graphs: bool, lenient: bool) -> str:
    """SQL: a struct of the terms `subject`, `predicate`, `object` and `graph` of a line; NULL where it is malformed.

    The struct has no subject where the line is blank, a comment or a version. Line and file are SQL; labels of blank
    nodes get the scope of their file (`labels.of_file`).
    """
    return f"{_CATALOG}.statement({line}, {file}, {str(graphs).lower()}, {str(lenient).lower()})"
