"""The size of a session's input, as far as it is known before the session starts. No Spark here."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:")
_PACKED: Final = {".gz", ".bz2", ".xz", ".zst", ".parquet"}
_UNPACKED: Final = 10
"""The approximate ratio of the sizes of RDF files before and after compression."""


_MOST_FILES: Final = 10_000


def input_size(paths: Iterable[str]) -> int | None:
    """Estimates the size of files, unpacked, in bytes.

    Args:
        paths: files, folders or patterns, as Spark reads them.

    Returns:
        None if it is not known: for files that are not on this machine or that only Spark can find, and for more than
        10,000 files.

    >>> input_size(["s3a://bucket/dump.nt"]) is None
    True
    """
    found: list[str] = []
    for path in paths:
        local = path.removeprefix("file:")
        if _URL.match(local):
            return None
        matched = [local] if os.path.exists(local) else glob.glob(local)
        if not matched:
            return None
        found += matched
    try:
        files = list(islice(_files(found), _MOST_FILES + 1))
        return sum(map(_size, files)) if len(files) <= _MOST_FILES else None
    except OSError:
        return None


def _files(paths: Iterable[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        if path.is_dir():
            yield from (file for file in path.rglob("*") if file.is_file())
        else:
            yield path


def _size(file: Path) -> int:
    packed = file.suffix.lower() in _PACKED
    return file.stat().st_size * (_UNPACKED if packed else 1)
