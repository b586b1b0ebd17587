"""The compressions of files, by extension: the one list for what is read, what is written, and what a name says.

Nothing is opened here, and nothing is known of what the files hold. How they are read is said in `unpacking.py`.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable, Mapping
from typing import Any, Final

import zstandard

COMPRESSIONS: Final[Mapping[str, Callable[..., Any]]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": zstandard.open,
}
"""What opens a file for writing (a path or a binary file object, then the mode) by its extension in lower case."""
