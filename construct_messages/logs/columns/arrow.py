"""Imports pyarrow, and the libraries that use its tables, on first use."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

from construct_messages.rdf.errors import UsageError


@cache
def arrow(module: str = "") -> Any:
    """Returns pyarrow, or one of its modules.

    >>> arrow().schema([("age", arrow().int64())]).names, arrow("parquet").__name__
    (['age'], 'pyarrow.parquet')
    """
    return needed(
        f"pyarrow.{module}" if module else "pyarrow", "pip install 'construct-messages[arrow]'"
    )


def joined(arrays: Sequence[Any]) -> Any:
    """Returns arrays of strings as one; a single one is not copied.

    >>> joined([arrow().array(["a"]), arrow().array(["b"])]).to_pylist(), len(joined([]))
    (['a', 'b'], 0)
    """
    if len(arrays) == 1:
        return arrays[0]
    return arrow().concat_arrays(arrays) if arrays else arrow().nulls(0, arrow().string())


def needed(module: str, install: str) -> Any:
    """Returns a module of another library.

    >>> needed("pyarrows", "pip install pyarrows")
    Traceback (most recent call last):
    construct_messages.rdf.errors.UsageError: columns need pyarrows, which is not installed
      hint: pip install pyarrows
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"columns need {error.name}, which is not installed", hint=install
        ) from error
