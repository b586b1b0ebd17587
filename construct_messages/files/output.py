"""The file of a log: complete or absent, also after a power failure, and compressed according to its extension.

The contents are not interpreted here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from construct_messages.errors import CannotWrite
from construct_messages.files.compression import COMPRESSIONS, opener


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that appears under its name only when the block ends without an exception.

    It is written in the same folder, under a hidden name, synced to disk and renamed; `.gz`, `.bz2`, `.xz` and `.zst`
    are compressed. When the block has ended, the file is on disk under its name.

    A target that is not a regular file (`/dev/stdout`, a FIFO) is written directly.

    Raises:
        CannotWrite: the file cannot be written.
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
