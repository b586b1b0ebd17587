"""Reading a file that another program still writes: its bytes as they are appended.

The name is followed, as with `tail --follow=name`: when another file has the name, or the file became shorter, the
bytes end. The bytes are not interpreted here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Final

from construct_messages.rdf.errors import IncompleteResult, UsageError

_CHUNK_BYTES: Final = 1 << 16
_POLL_SECONDS: Final = 0.1


class GrowingFile:
    """The bytes of a file; they end only when it is replaced or truncated. `waits`: called each time that all bytes
    have been read, before waiting for more.
    """

    def __init__(self, path: str, waits: Callable[[], object]) -> None:
        # name: the name of the file
        self.name, self._waits = path, waits

    def __iter__(self) -> Iterator[bytes]:
        """Yields bytes as they are appended."""
        try:
            file = open(self.name, "rb", buffering=0)  # noqa: SIM115 - closed below; only errors of opening are caught here
        except OSError as error:
            raise UsageError(f"cannot read {self.name}: {error.strerror}") from error
        with file:
            try:
                while True:
                    if chunk := file.read(_CHUNK_BYTES):
                        yield chunk
                    elif self._has_ended(file.fileno(), file.tell()):
                        return
                    else:
                        self._waits()
                        time.sleep(_POLL_SECONDS)
            except OSError as error:
                raise IncompleteResult(
                    f"cannot read the rest of {self.name}: {error.strerror}"
                ) from error

    def _has_ended(self, descriptor: int, position: int) -> bool:
        here = os.fstat(descriptor)
        if here.st_size < position:
            return True
        try:
            named = os.stat(self.name)
        except FileNotFoundError:
            return False  # it was moved away, and its writer may still have it open
        # the rest of the replaced file is read first
        return not os.path.samestat(here, named) and here.st_size == position
