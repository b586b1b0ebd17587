"""The file of a log: complete or absent, also after a power failure, and compressed according to its extension.

The contents are not interpreted here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final, cast

from construct_messages.rdf.errors import CannotWrite, UsageError
from construct_messages.rdf.files.unpacking import COMPRESSIONS, opener

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
    texts, which are no names, are compared as texts.
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
