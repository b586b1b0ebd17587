"""Opens tables of quads, where DuckDB is installed; imports it only then."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from construct_messages.errors import UsageError

if TYPE_CHECKING:
    from construct_messages.sparql.sources.duckdb import DuckDbSource

RECORD: Final = "_construct_messages.json"


def is_table(path: str | os.PathLike[str]) -> bool:
    """Returns whether a folder has the record of a table of quads.

    >>> is_table("no-such-folder")
    False
    """
    return (Path(path) / RECORD).exists()


def open_table(path: str | os.PathLike[str]) -> DuckDbSource:
    """Opens a table of quads.

    Raises:
        UsageError: DuckDB is not installed.
        QuadsError: the table is not complete.
    """
    try:
        from construct_messages.sparql.sources.duckdb import DuckDbSource
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{path} is a table of quads, which DuckDB reads: {error}",
            hint="install the extra duckdb: pip install 'construct-messages[duckdb]'",
        ) from error
    return DuckDbSource(path)
