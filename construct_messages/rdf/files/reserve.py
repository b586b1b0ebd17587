"""A reserve on the disk of a store: a file that is emptied when the disk is full, for changes that free space.

A change that removes elements is written before it frees space, which fails on a full disk. No database here.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_LEFT_BYTES: Final = 8 << 20
"""The free bytes to leave when the reserve is created again."""


class Reserve:
    """The reserve of one store. `path`: the path of the store; the reserve is in the same folder.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     reserve = Reserve(Path(folder, "streams.db"), 4096)
    ...     reserve.keep()
    ...     reserve.is_there, os.listdir(folder), reserve.release(), reserve.released, reserve.release()
    (True, ['streams.db-reserve'], True, True, False)
    """

    def __init__(self, path: Path, size: int) -> None:
        self._path, self._size = Path(f"{path}-reserve"), size
        # released: whether it was released, by an earlier process, too, and the disk has no space to create it again
        # is_there: whether it can be released
        self.is_there = self.released = False

    def keep(self) -> None:
        """Creates the reserve if it is missing and the disk has enough space."""
        if self.is_there or not self._size:
            return
        with suppress(OSError):  # a full disk, or a folder that cannot hold it
            if self._path.exists():
                self.is_there = self._path.stat().st_blocks * 512 >= self._size
                self.released = not self.is_there
            if self.is_there:
                return
            disk = os.statvfs(self._path.parent)
            if disk.f_bavail * disk.f_frsize < self._size + min(self._size, _LEFT_BYTES):
                return
            with open(self._path, "wb") as file:
                try:
                    os.posix_fallocate(file.fileno(), 0, self._size)
                    self.is_there, self.released = True, False
                finally:
                    if self.released:
                        file.truncate(0)
                    elif not self.is_there:
                        self._path.unlink()

    def release(self) -> bool:
        """Empties the reserve; returns whether there was one. The file stays, so that a restarted process knows."""
        if not self.is_there:
            return False
        self.is_there, self.released = False, True
        with suppress(OSError):
            os.truncate(self._path, 0)
        return True
