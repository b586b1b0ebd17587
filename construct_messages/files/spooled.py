"""A temporary file for what is read from its end, such as Parquet: in memory while it is small.

Nothing here knows what is written.
"""

from __future__ import annotations

from tempfile import SpooledTemporaryFile
from typing import IO, Final, cast

_IN_MEMORY: Final = 1 << 24


def spooled_file() -> IO[bytes]:
    """Returns a file that nobody else sees, and that is gone when it is closed.

    >>> with spooled_file() as file:
    ...     file.write(b"PAR1")
    4
    """
    return cast("IO[bytes]", SpooledTemporaryFile(_IN_MEMORY))
