"""Opens sources for DuckDB, where it is installed: tables of quads, and files if they are to be read by it.

DuckDB takes longer to import than a small query to answer, so that nothing here imports it before.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from construct_messages.errors import UsageError
from construct_messages.sparql.client.urls import is_object_url

if TYPE_CHECKING:
    from construct_messages.sparql.sources.duckdb import DuckDbSource

RECORD: Final = "_construct_messages.json"


def is_table(path: str | os.PathLike[str]) -> bool:
    """Returns whether a folder has the record of a table of quads, or a URL is that of Parquet in an object store.

    >>> is_table("no-such-folder"), is_table("s3://bucket/dump.quads/*.parquet")
    (False, True)
    """
    return is_object_url(path) or (Path(path) / RECORD).exists()


def check_directory(path: Path) -> None:
    """Checks that a directory is a store of Oxigraph, or a table of quads where DuckDB is installed.

    >>> check_directory(Path("/"))
    Traceback (most recent call last):
    construct_messages.errors.UsageError: / is not an Oxigraph store directory, nor a table of quads
      hint: make one with `oxigraph load` or `construct-messages load`, or pass the RDF files themselves
    """
    if is_table(path):
        if find_spec("duckdb") is None or find_spec("pyarrow") is None:
            raise _missing(f"{path} is a table of quads, which DuckDB reads")
    elif not (path / "CURRENT").is_file():
        raise UsageError(
            f"{path} is not an Oxigraph store directory, nor a table of quads",
            hint="make one with `oxigraph load` or `construct-messages load`, or pass the RDF files themselves",
        )


def open_table(path: str | os.PathLike[str], **limits: Any) -> DuckDbSource:
    """Opens a table of quads; `limits` are those of `DuckDbSource`.

    Raises:
        UsageError: DuckDB is not installed.
        QuadsError: the table is not complete.
    """
    try:
        from construct_messages.sparql.sources.duckdb import DuckDbSource
    except ModuleNotFoundError as error:
        raise _missing(f"{path} is a table of quads, which DuckDB reads: {error}") from error
    return DuckDbSource(path, **limits)


def open_files(
    paths: Sequence[str | os.PathLike[str]], format: str | None, **options: Any
) -> DuckDbSource:
    """Opens RDF files for DuckDB; `options` are those of `DuckDbFiles`.

    Raises:
        UsageError: DuckDB is not installed; or there is no such file.
    """
    try:
        from construct_messages.sparql.sources.duckdb import DuckDbFiles
    except ModuleNotFoundError as error:
        raise _missing(f"the engine is DuckDB, which is not installed: {error}") from error
    return DuckDbFiles(paths, format, **options)


def _missing(message: str) -> UsageError:
    hint = "install the extra duckdb: pip install 'construct-messages[duckdb]'"
    return UsageError(message, hint=hint)
