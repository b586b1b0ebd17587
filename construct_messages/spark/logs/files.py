"""Files by their URIs on any file system of pyarrow: listing by globs and folders, opening, removing. No logs here.

A Python data source cannot call Spark's readers on an executor, so files are opened there by `pyarrow.fs`: local files,
S3, Google Cloud Storage, Azure and HDFS. URIs are read as Hadoop reads them: the text after the authority is the path,
without percent-encoding.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final, NamedTuple

from pyarrow import fs

from construct_messages.errors import IncompleteResult, UsageError

_URI: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*):(?://(?P<authority>[^/]*+))?(?P<path>.*)", re.DOTALL
)
# Hadoop's names, and those of pyarrow
_SCHEMES: Final = {"s3a": "s3", "s3n": "s3"}
_CHUNK_BYTES: Final = 1 << 20
_ATTEMPTS: Final = 5
_PAUSE_SECONDS: Final = 0.2
_HINT: Final = "use file:, s3a:, gs:, abfss: or hdfs:, or copy the files to such a place"


class Place(NamedTuple):
    """The location of a file or folder, which need not exist.

    Args:
        files: the file system of pyarrow.
        path: the path in it.
        root: the beginning of the path that is not part of the URI.
        prefix: the beginning of the URI, in place of `root`.
    """

    files: Any
    path: str
    root: str
    prefix: str

    @property
    def uri(self) -> str:
        """The URI, as in messages to users."""
        return f"{self.prefix}/{self.path.removeprefix(self.root).lstrip('/')}"

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine's file system."""
        return isinstance(self.files, fs.LocalFileSystem)

    def at(self, path: str) -> Place:
        """Returns another path in the same file system."""
        return self._replace(path=path)


class File(NamedTuple):
    """A file that was found.

    Args:
        uri: its URI.
        size: its size in bytes.
        written: when it was last written, in nanoseconds, if the file system stores it.
    """

    uri: str
    size: int
    written: int = 0


def place_of(path: str) -> Place:
    """Returns the place of a path or a URI.

    Raises:
        UsageError: pyarrow cannot reach it.

    >>> place_of("file:/tmp/a%20b").uri, place_of("/tmp//logs/").path
    ('file:///tmp/a%20b', '/tmp/logs')
    """
    match = _URI.fullmatch(path)
    if match is None or match["scheme"].lower() == "file":
        local = os.path.abspath(match["path"] if match else path)
        return Place(fs.LocalFileSystem(), local, "", "file://")
    prefix = f"{match['scheme'].lower()}://{match['authority'] or ''}"
    files, root = _file_system(prefix)
    within = match["path"].strip("/")
    return Place(files, f"{root}/{within}" if within else root, root, prefix)


@lru_cache(maxsize=16)
def _file_system(prefix: str) -> tuple[Any, str]:
    """Returns a file system by scheme and authority, and the path in it that they name."""
    scheme, rest = prefix.split(":", 1)
    try:
        files, root = fs.FileSystem.from_uri(f"{_SCHEMES.get(scheme, scheme)}:{rest}/")
    except (ValueError, OSError, NotImplementedError) as error:
        raise UsageError(f"cannot reach {prefix}: {error}", hint=_HINT) from error
    return files, root.rstrip("/")


def find(path: str) -> list[File]:
    """Returns the files of a path: the file itself, all files in a folder, or those that match `*`, `?` and `[…]`.

    Names that begin with `.` or `_` are ignored, as in Spark, unless the path contains them.

    Returns:
        at least one file, in order of their URIs.

    Raises:
        UsageError: there are none, or the path cannot be reached.
    """
    place = place_of(path)
    try:
        infos = [place.files.get_file_info(place.path)]
        if infos[0].type == fs.FileType.NotFound:
            infos = _matching(place)
        files = [file for info in infos for file in _files_of(place, info)]
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    if not files:
        raise UsageError(
            f"there are no files at {path}",
            hint="name a file, a folder or a pattern such as logs/*.nq",
        )
    return sorted(files)


def _matching(place: Place) -> list[Any]:
    """Returns the files and folders that match a path with wildcards."""
    fixed, *segments = re.split(r"/(?=[^/]*[*?\[])", place.path, maxsplit=1)
    infos = [place.files.get_file_info(fixed or "/")]
    for pattern in "/".join(segments).split("/"):
        infos = [
            info
            for folder in infos
            if folder.type == fs.FileType.Directory
            for info in place.files.get_file_info(fs.FileSelector(folder.path))
            if fnmatchcase(info.base_name, pattern)
            and (not _is_hidden(info.base_name) or _is_hidden(pattern))
        ]
    return infos


def _files_of(place: Place, info: Any) -> Iterator[File]:
    if info.type == fs.FileType.File:
        yield File(place.at(info.path).uri, info.size, info.mtime_ns or 0)
    elif info.type == fs.FileType.Directory:
        for found in visible_below(place, info.path):
            yield File(place.at(found.path).uri, found.size, found.mtime_ns or 0)


def visible_below(place: Place, folder: str) -> Iterator[Any]:
    """Returns the files in a folder, at any depth, without hidden ones; nothing if there is no folder."""
    for info in place.files.get_file_info(
        fs.FileSelector(folder, recursive=True, allow_not_found=True)
    ):
        below = info.path.removeprefix(folder).split("/")
        if info.type == fs.FileType.File and not any(map(_is_hidden, below)):
            yield info


def read_bytes(place: Place, path: str) -> bytes:
    """Returns the contents of a small file in the same file system.

    Raises:
        OSError: it cannot be read; FileNotFoundError if there is none.
    """
    with place.files.open_input_stream(path, compression=None) as file:
        return bytes(file.read())


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def remove_folder(place: Place) -> None:
    """Removes a folder, if there is one, although tasks of a job that has ended may still make files in it.

    Raises:
        OSError: it cannot be removed.
    """
    for attempt in range(_ATTEMPTS):
        try:
            place.files.delete_dir(place.path)
        except FileNotFoundError:
            return
        except OSError:  # a task has made another file in an emptied folder
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return


def read_from(uri: str, start: int = 0) -> Iterator[bytes]:
    """Yields the bytes of a file from `start` on, in chunks; the file is open until the iterator is exhausted or
    closed.

    Raises:
        UsageError: the file cannot be opened.
        IncompleteResult: a later part cannot be read.
    """
    place = place_of(uri)
    try:
        file = place.files.open_input_file(place.path)
    except OSError as error:
        raise UsageError(f"cannot read {uri}: {error}") from error
    with file:
        try:
            file.seek(start)
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
        except OSError as error:
            raise IncompleteResult(f"cannot read the rest of {uri}: {error}") from error
