"""Errors of this package in the exceptions of Spark that wrap them, and failures of Spark that a user can fix.

SQL raises errors by `raise_error('ClassName: message')`, and Python workers raise them themselves. Both arrive as text
in an exception of Spark. All other failures are handled by `failures`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from construct_messages.rdf.errors import (
    CannotWrite,
    ConstructMessagesError,
    IncompleteResult,
    LimitExceeded,
    LogError,
    Position,
    QuadsError,
    SparkUnavailable,
    UnsupportedByFormat,
    UsageError,
    ValueOutOfRange,
)
from construct_messages.spark.failures import disk_full, files_removed

_RAISED: Final = {
    error.__name__: error
    for error in (
        CannotWrite,
        UnsupportedByFormat,
        IncompleteResult,
        LimitExceeded,
        QuadsError,
        UsageError,
        ValueOutOfRange,
    )
}
# of raise_error, which ends with its SQLSTATE, or in the last lines of a worker's traceback
_OWN: Final = re.compile(
    rf"(?:\[USER_RAISED_EXCEPTION\] |^construct_messages\.errors\.)({'|'.join(_RAISED)}|LogError): "
    r"(.*?)(?:\n  hint: ([^\n]*?))?\s*(?: SQLSTATE: \w{5}|\n\s*at [\w.$]+\(|\n\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
_IN_LOG: Final = re.compile(r"(?:line (\d+), column (\d+): )?message (\d+): (.*)", re.DOTALL)
_MENDABLE: Final[tuple[tuple[re.Pattern[str], Callable[[str], ConstructMessagesError]], ...]] = (
    (
        re.compile(r"\[PATH_NOT_FOUND\] Path does not exist: (.*?)\. SQLSTATE"),
        lambda path: UsageError(f"{path} does not exist"),
    ),
    (
        re.compile(r"URISyntaxException: Relative path in absolute URI: ([^\n]*)"),
        lambda name: UsageError(
            f"{name}: Hadoop's patterns match no name with a colon",
            hint="rename it, or write a pattern that leaves it out",
        ),
    ),
    (
        re.compile(r"\[PATH_ALREADY_EXISTS\] Path (.*?) already exists\."),
        lambda path: UsageError(
            f"{path} exists already", hint="choose another path, or ask for it to be overwritten"
        ),
    ),
    (
        re.compile(r"Unable to clear output directory (?:file:)?(.*?) prior to writing to it"),
        lambda path: CannotWrite(
            f"{path} cannot be overwritten: not all of it could be removed",
            hint="check its rights, and that no other job writes there: give each a folder of its own",
        ),
    ),
    (
        re.compile(r"\[FAILED_READ_FILE[.\w]*\] Encountered error while reading file (.*?)\. "),
        lambda file: QuadsError(
            f"{file} cannot be read",
            hint="check that it is complete, and compressed according to its name",
        ),
    ),
    (
        re.compile(r"ModuleNotFoundError: No module named '([^']+)'"),
        lambda module: SparkUnavailable(
            f"Spark's Python workers have no module {module}",
            hint="ship this package to them by --py-files, as a .zip, and install its requirements where they run",
        ),
    ),
    (
        re.compile(
            r"No FileSystem for scheme \"([^\"]+)\"|Class org\.apache\.hadoop\.fs\.(\w+)\.\w+ not found"
        ),
        lambda scheme: UsageError(
            f"Spark has no file system for {scheme}:",
            hint="start it with the connector as a package (for s3a: "
            "--conf spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION, with the version of Spark's Hadoop)",
        ),
    ),
)


def error_in(text: str) -> ConstructMessagesError | None:
    r"""Returns the error of this package in the text of an exception of Spark; None if there is none.

    >>> error_in("[USER_RAISED_EXCEPTION] QuadsError: a.nt: no triple\n  hint: mend it SQLSTATE: P0001")
    QuadsError('a.nt: no triple')
    >>> error_in("[DIVIDE_BY_ZERO] Division by zero.") is None
    True
    """
    if own := _OWN.search(text):
        name, message, hint = own.groups()
        if name == "LogError":
            log = _IN_LOG.fullmatch(message)
            if log is None:
                return None
            line, column, number, message = log.groups()
            position = Position(int(line), int(column)) if line else None
            return LogError(message, number=int(number), position=position, hint=hint)
        return _RAISED[name](message, hint=hint)
    for pattern, error in _MENDABLE:
        if found := pattern.search(text):
            return error(next(filter(None, found.groups())))
    return disk_full(text) or files_removed(text)
