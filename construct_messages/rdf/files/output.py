"""The file of a log: complete or absent, also after a power failure, and compressed according to its extension.

The contents are not interpreted here.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import time
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final, cast
from zlib import crc32

from construct_messages.errors import CannotWrite, IncompleteResult, UsageError
from construct_messages.rdf.files.unpacking import COMPRESSIONS, opener

# --- growing --------------------------------------------------------------------------------------
# A file that grows by whole parts: an unfinished part is removed before the next one is appended.
#
# While a part is written, a journal next to the file contains its offset, its length and its checksum. So a kill or a
# power failure loses only this part, and appending writes each byte once. Processes lock the file. Other readers may
# see an unfinished part. The parts are not interpreted here.

# Reading a file that another program still writes: its bytes as they are appended.
#
# The name is followed, as with `tail --follow=name`: when another file has the name, or the file became shorter, the
# bytes end. The bytes are not interpreted here.

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


# --- growing --------------------------------------------------------------------------------------

_PIECE_BYTES: Final = 1 << 20
_JOURNAL: Final = re.compile(rb"(\d+) (\d+) (\d+)\n")
"""The offset of the part, its length, and its checksum."""


def settled_size(path: Path) -> int:
    """Removes an unfinished part, and returns the size of the file; 0 if there is no file."""
    with _errors(path):
        if _journal(path).exists():
            with _locked(path) as file:
                _settle(path, file)
        try:
            return path.stat().st_size
        except FileNotFoundError:
            return 0


def append_once(path: Path, data: bytes, at: int) -> None:
    """Appends a part to a file, unless the file already has it, and syncs it to disk. `data`: the part; it must not be
    empty. `at`: the result of `settled_size` before the part was first appended.

    A missing file is created. Other than regular files (`/dev/stdout`, a FIFO) are written directly.

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
    """Opens a file without a buffer, truncates it to its first `at` bytes, and appends.

    A missing file is created. Other than regular files are written directly.
    """
    with _errors(path):
        file = open(path, "r+b" if at else "wb", buffering=0)  # noqa: SIM115 - closed below
        if not at and path.is_file():
            sync_folder(path.resolve().parent)  # what is synced later has a name then
    with file:
        if at:
            if file.seek(0, os.SEEK_END) < at:
                raise _shorter(path)
            file.truncate(at)
            file.seek(at)
        yield file


def _is_due(path: Path, file: IO[bytes], data: bytes, at: int) -> bool:
    """Whether the file ends at the offset of the part; otherwise it has the part already."""
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
    sync_folder(
        path.resolve().parent
    )  # the names of journal and file are on disk before the part is
    write_whole(file, data)
    os.fsync(file.fileno())
    journal.unlink()


def _settle(path: Path, file: IO[bytes]) -> None:
    """Removes the part in the journal from the file, unless it is complete, and removes the journal."""
    try:
        journal = _JOURNAL.fullmatch(_journal(path).read_bytes())
    except FileNotFoundError:
        return
    # a part is begun after the complete journal is on disk
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
        hint="restore it, or remove the state, too, and begin again",
    )


def _not_as_left(path: Path, at: int) -> UsageError:
    return UsageError(
        f"{path.absolute()} was changed by another program after byte {at}",
        hint=f"truncate it there, and remove {_journal(path)} if it exists, or write to another file",
    )


def _journal(path: Path) -> Path:
    real = path.resolve()
    return real.with_name(f".{real.name}.appending")


@contextmanager
def _locked(path: Path) -> Iterator[IO[bytes]]:
    """Opens the file to read and append, and locks it against other processes during the block."""
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
    """Writes all of the data to an unbuffered file, whose writes may be partial."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (
        OSError,
        RuntimeError,
    ) as error:  # before Python 3.13, circular links raise RuntimeError
        reason = error.strerror if isinstance(error, OSError) else error
        raise CannotWrite(f"cannot write {path}: {reason}", hint="choose another place") from error


# --- spooled --------------------------------------------------------------------------------------
# A temporary file for formats that are read from the end, such as Parquet; it is in memory while it is small.
#
# The contents are not interpreted here.

_IN_MEMORY: Final = 1 << 24


def spooled_file() -> IO[bytes]:
    """Returns a private file that is removed when it is closed.

    >>> with spooled_file() as file:
    ...     file.write(b"PAR1")
    4
    """
    from tempfile import SpooledTemporaryFile  # imports every compression

    return cast("IO[bytes]", SpooledTemporaryFile(_IN_MEMORY))


# --- output ---------------------------------------------------------------------------------------

_SHOWN: Final = 3  # names in an error
# the URLs that have folders: topics of brokers that begin alike are not within one another
_REMOTE: Final = ("s3", "hdfs:", "gs:", "abfs", "wasb", "viewfs:")


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that appears under its name only when the block ends without an exception.

    It is written in the same folder, under a hidden name, synced to disk and renamed; `.gz`, `.bz2`, `.xz` and `.zst`
    are compressed. When the block has ended, the file is on disk under its name.

    A target that is not a regular file (`/dev/stdout`, a FIFO) is written directly.
    """
    target = Path(path)
    try:
        if target.is_dir():
            raise CannotWrite(f"{target} is a directory", hint="name a file in it")
        direct = target.open("wb") if target.exists() and not target.is_file() else None
        real = target.resolve()  # the target of a link is replaced, not the link
    except (OSError, RuntimeError) as error:  # before Python 3.13, for circular links
        raise _cannot_write(target, error) from error
    if direct is not None:
        with direct:
            yield direct
        return
    # the name is known before the file exists, so that the file is removed at any signal
    beside = real.with_name(f".{real.name}.{os.urandom(8).hex()}.part")
    try:
        extension = target.suffix.lower()
        with _create(beside, target) as raw:
            if extension in COMPRESSIONS:
                with opener(extension)(raw, "wb") as packed:
                    yield packed
            else:
                yield raw
            raw.flush()
            os.chmod(beside, _mode(real))
            # a file system may store the new name before the bytes; after a power failure the file would be empty
            os.fsync(raw.fileno())
        os.replace(beside, real)
        sync_folder(real.parent)
    except BaseException:
        with suppress(OSError):  # the folder may be missing
            os.unlink(beside)
        raise


def sync_folder(folder: Path) -> None:
    """Syncs the names of files in a folder to disk: syncing a new or renamed file does not store its name."""
    with suppress(PermissionError):  # a folder that may be written and not read cannot be synced
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def refuse_input(
    target: str | os.PathLike[str] | int, inputs: Iterable[str | os.PathLike[str] | int]
) -> None:
    """Checks that a file or folder is none that is read, by any name or link, nor in one, nor has one in it. `target`:
    its name, or the descriptor of a file that is open. `inputs`: the names or descriptors of what is read; URLs and
    texts, which are not names, are compared as texts.
    """
    for read in inputs:
        if _is_within(target, read) or _is_within(read, target):
            message = f"{_shown(target)} is what is read, or in the same folder: {_shown(read)}"
            raise UsageError(message, hint="write to another place, and move it afterwards")


def refuse_foreign(folder: str, found: Iterable[str], recorded: Container[str]) -> None:
    """Checks that the files in a folder that is going to be overwritten are those of a record."""
    foreign = sorted(name for name in found if name not in recorded)
    if foreign:
        more = f", and {len(foreign) - _SHOWN} more" if len(foreign) > _SHOWN else ""
        raise UsageError(
            f"{folder} has files that no earlier run has recorded: {', '.join(foreign[:_SHOWN])}{more}",
            hint="write to another folder, or remove them yourself: only recorded files are overwritten",
        )


def _is_within(inner: str | os.PathLike[str] | int, outer: str | os.PathLike[str] | int) -> bool:
    """Whether both are the same regular file, or the first is the second folder or is in it."""
    if not isinstance(inner, int) and not isinstance(outer, int):
        inner, outer = _local(inner), _local(outer)
        if inner == outer or (outer.startswith(_REMOTE) and inner.startswith(f"{outer}/")):
            return True
        if not os.path.exists(outer):  # such as a log and a state that are both new
            return "://" not in outer and os.path.realpath(inner) == os.path.realpath(outer)
    try:
        folder = os.stat(outer)
        if isinstance(inner, int):
            return stat.S_ISREG(folder.st_mode) and os.path.samestat(os.stat(inner), folder)
        real = Path(inner).resolve()
        if stat.S_ISREG(folder.st_mode):
            return real.exists() and os.path.samestat(real.stat(), folder)
        return stat.S_ISDIR(folder.st_mode) and any(
            os.path.samestat(above.stat(), folder)
            for above in (real, *real.parents)
            if above.exists()
        )
    except (OSError, RuntimeError, ValueError):  # no such file, or no name of one
        return False


def _local(name: str | os.PathLike[str]) -> str:
    return os.fspath(name).removeprefix("file://").removeprefix("file:").rstrip("/") or "/"


def _shown(place: str | os.PathLike[str] | int) -> str:
    if isinstance(place, int):
        return "standard output" if place else "standard input"
    return os.fspath(place)


def _create(beside: Path, target: Path) -> IO[bytes]:
    try:
        return open(beside, "xb", opener=lambda name, flags: os.open(name, flags, 0o600))
    except OSError as error:
        raise _cannot_write(target, error) from error


def _cannot_write(target: Path, error: Exception) -> CannotWrite:
    reason = error.strerror if isinstance(error, OSError) else error
    return CannotWrite(f"cannot write {target}: {reason}", hint="choose another place")


def _mode(target: Path) -> int:
    """Returns the mode for the file: the existing file's mode, or the mode by the umask."""
    if target.exists():
        return target.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def temporary_folder(owner: object) -> tuple[Callable[[], object], str]:
    """Makes a folder for data beyond the memory; returns a function that removes it, and its name.

    It is also removed with its owner, and at the end of the program.
    """
    # imported here because most commands do without, and it takes long
    import weakref
    from shutil import rmtree
    from tempfile import mkdtemp

    folder = mkdtemp(prefix="construct-messages-")
    return weakref.finalize(owner, rmtree, folder, ignore_errors=True), folder
