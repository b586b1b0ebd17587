"""A file that grows by whole parts: a part that a process did not finish is cut off before the next one.

While a part is written, a journal next to the file contains its beginning, its length and its checksum. So a kill or a
power failure costs nothing but the part, and appending writes each byte once. A lock on the file keeps processes apart.
Who reads the file meanwhile may see a part of a part. Nothing here knows what is written.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final
from zlib import crc32

from construct_messages.errors import CannotWrite, UsageError

_PIECE_BYTES: Final = 1 << 20
_JOURNAL: Final = re.compile(rb"(\d+) (\d+) (\d+)\n")
"""Where the part begins, its length, and its checksum."""


def settled_size(path: Path) -> int:
    """The bytes of a file, after a part that was not finished was cut off; 0 where there is no file.

    Raises:
        CannotWrite: the place cannot be read or written.
        UsageError: another program wrote after a part that was not finished.
    """
    with _errors(path):
        if _journal(path).exists():
            with _locked(path) as file:
                _settle(path, file)
        try:
            return path.stat().st_size
        except FileNotFoundError:
            return 0


def append_once(path: Path, data: bytes, at: int) -> None:
    """Appends a part to a file, unless it is there; then it is on disk.

    A file that does not exist is created. What is no regular file (`/dev/stdout`, a FIFO) is written as it is.

    Args:
        path: of the file.
        data: the part, which is not empty.
        at: what `settled_size` returned before the part was appended for the first time.

    Raises:
        CannotWrite: the place cannot be written.
        UsageError: the file is shorter than it was, or goes on with other bytes than those of the part.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.nq"
    ...     append_once(path, b"one", 0)
    ...     append_once(path, b"two", 3)
    ...     append_once(path, b"two", 3)
    ...     path.read_bytes()
    b'onetwo'
    """
    with _errors(path):
        if path.exists() and not path.is_file():
            with open(path, "wb", buffering=0) as target:
                write_whole(target, data)
            return
        with _locked(path) as file:
            _settle(path, file)
            if _is_due(path, file, data, at):
                _append(path, file, data, at)


@contextmanager
def growing(path: Path, at: int) -> Iterator[IO[bytes]]:
    """Opens a file to write without a buffer after its first `at` bytes; what follows them is cut off.

    A file that does not exist is created. What is no regular file is written as it is.

    Raises:
        CannotWrite: the place cannot be written.
        UsageError: the file is shorter.
    """
    with _errors(path):
        file = open(path, "r+b" if at else "wb", buffering=0)  # noqa: SIM115 - closed below
    with file:
        if at:
            if file.seek(0, os.SEEK_END) < at:
                raise _shorter(path)
            file.truncate(at)
            file.seek(at)
        yield file


def _is_due(path: Path, file: IO[bytes], data: bytes, at: int) -> bool:
    """Whether the file ends where the part begins; else it holds the part."""
    size = file.seek(0, os.SEEK_END)
    if size < at:
        raise _shorter(path)
    if size == at:
        return True
    file.seek(at)
    if _read(file, len(data)) != data:
        raise _not_as_left(path, at)
    return False


def _append(path: Path, file: IO[bytes], data: bytes, at: int) -> None:
    journal = _journal(path)
    with open(journal, "wb", buffering=0) as kept:
        write_whole(kept, b"%d %d %d\n" % (at, len(data), crc32(data)))
        os.fsync(kept.fileno())
    _sync_folder(path)  # the names of journal and file are on disk before the part is
    write_whole(file, data)
    os.fsync(file.fileno())
    journal.unlink()


def _settle(path: Path, file: IO[bytes]) -> None:
    """Cuts off the part that the journal names, unless it is whole, and removes the journal."""
    try:
        journal = _JOURNAL.fullmatch(_journal(path).read_bytes())
    except FileNotFoundError:
        return
    # a part is begun when the journal is whole, and on disk
    at, size, checksum = map(int, journal.groups()) if journal else (0, 0, 0)
    if journal and file.seek(0, os.SEEK_END) > at:
        file.seek(at)
        found, left = 0, size
        while left and (piece := file.read(min(left, _PIECE_BYTES))):
            found, left = crc32(piece, found), left - len(piece)
        # a power failure may leave the whole length, but zeros in it
        if left or found != checksum:
            if file.read(1):
                raise _not_as_left(path, at)
            file.truncate(at)
            os.fsync(file.fileno())
    _journal(path).unlink()


def _shorter(path: Path) -> UsageError:
    return UsageError(
        f"{path.absolute()} is shorter than it was",
        hint="put it back, or remove the state, too, and begin again",
    )


def _not_as_left(path: Path, at: int) -> UsageError:
    return UsageError(
        f"{path.absolute()} was changed by another program after byte {at}",
        hint=f"cut it off there, and remove {_journal(path)} if it exists, or write to another file",
    )


def _journal(path: Path) -> Path:
    real = path.resolve()
    return real.with_name(f".{real.name}.appending")


@contextmanager
def _locked(path: Path) -> Iterator[IO[bytes]]:
    """The file, open to read and to append, while no other process is in such a block."""
    with open(path, "a+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def _read(file: IO[bytes], size: int) -> bytes:
    parts = []
    while size > 0 and (part := file.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def write_whole(file: IO[bytes], data: bytes) -> None:
    """Writes all of the data to a file without a buffer, which may take a part at a time."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def _sync_folder(path: Path) -> None:
    folder = os.open(path.resolve().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (
        OSError,
        RuntimeError,
    ) as error:  # before Python 3.13, RuntimeError of links in a circle
        reason = error.strerror if isinstance(error, OSError) else error
        raise CannotWrite(f"cannot write {path}: {reason}", hint="choose another place") from error
