"""Whether a source may have changed since it was read: what files look like, HTTP's validators, a query's result.

What cannot be told counts as changed. Nothing here evaluates the watched query.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from construct_messages.errors import SourceError

_SETTLED_SECONDS: Final = 2.0
"""A file that changed later may change again without looking different: clocks of file systems are coarse."""


class Freshness(msgspec.Struct, frozen=True):
    """What a source looked like when it was read.

    Args:
        source: what names it; None: an object of a library.
        files: of each file: inode, size, times of change; None: no files, or they may have changed since.
        etag, modified: see `Condition`.
        change: the digest of the change query's result, in hexadecimal.
    """

    source: str | None = None
    files: list[list[int]] | None = None
    etag: str | None = None
    modified: str | None = None
    change: str | None = None

    def encode(self) -> bytes:
        """As it is kept."""
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, kept: bytes | None) -> Self | None:
        """What `encode` gave; None: nothing is kept."""
        return None if kept is None else msgspec.json.decode(kept, type=cls)


def name_of(source: Any) -> str | None:
    """What names a source: its URL or paths; None where it is an object of a library."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    if isinstance(source, Sequence):
        return "\n".join(os.fspath(path) for path in source)
    return None


class Files:
    """The files of a source, as they look before they are read.

    Args:
        source: see `construct_messages`.

    Attributes:
        settled: what they look like, where a later change would show in it; None: it might not, or there are none.
    """

    def __init__(self, source: Any) -> None:
        named = name_of(source)
        self._paths = [] if named is None else [Path(path) for path in named.split("\n")]
        self._look = self._looks()
        newest = max((max(look[2:]) for look in self._look or ()), default=0)
        self.settled = self._look if newest < time.time_ns() - _SETTLED_SECONDS * 1e9 else None

    async def check(self) -> None:
        """Checks, after they were read, that they are still the same.

        Raises:
            SourceError: they changed meanwhile.
        """
        if self._look is not None and await asyncio.to_thread(self._looks) != self._look:
            raise SourceError(f"{self._paths[0]} changed while it was read", transient=True)

    def _looks(self) -> list[list[int]] | None:
        try:
            stats = [path.stat() for path in self._paths if path.is_file()]
        except OSError:
            return None
        if not stats or len(stats) < len(self._paths):
            return None
        return [[stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns] for stat in stats]
