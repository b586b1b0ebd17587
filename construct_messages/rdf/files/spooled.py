"""A temporary file for formats that are read from the end, such as Parquet; it is in memory while it is small.

The contents are not interpreted here.
"""

from __future__ import annotations

from tempfile import SpooledTemporaryFile
from typing import IO, Final, cast

_IN_MEMORY: Final = 1 << 24


def spooled_file() -> IO[bytes]:
    """Returns a private file that is removed when it is closed.

    >>> with spooled_file() as file:
    ...     file.write(b"PAR1")
    4
    """
    return cast("IO[bytes]", SpooledTemporaryFile(_IN_MEMORY))
