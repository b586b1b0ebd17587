"""The table of compressions by extension, for reading, writing and names.

Nothing is opened here. `unpacking.py` reads compressed files.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import IO, Any, Final

ZSTD: Final = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
"""The module for Zstandard, of Python or of its backport."""

COMPRESSIONS: Final[Mapping[str, str]] = {
    ".gz": "gzip:open",
    ".bz2": "bz2:open",
    ".xz": "lzma:open",
    ".zst": f"{__name__}:_open_zstd",
}
"""The function that opens a file for writing, by its extension in lower case: `module:name`, imported on use."""


def opener(extension: str) -> Callable[..., Any]:
    """The function that opens a file of one of these extensions: a path or a binary file object, then the mode."""
    found: Callable[..., Any] = resolve_name(COMPRESSIONS[extension])
    return found


def _open_zstd(file: Any, mode: str) -> IO[bytes]:
    """Opens a Zstandard file with the optional checksum (RFC 8878, section 3.1.1), as other compressions have."""
    checksum = resolve_name(f"{ZSTD}:CompressionParameter").checksum_flag
    opened: IO[bytes] = resolve_name(f"{ZSTD}:open")(file, mode, options={checksum: 1})
    return opened
