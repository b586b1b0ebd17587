"""Files by their URIs on any file system of pyarrow: listing by globs and folders, opening, removing. No logs here.

A Python data source cannot call Spark's readers on an executor, so files are opened there by `pyarrow.fs`: local files,
S3, Google Cloud Storage, Azure and HDFS. URIs are read as Hadoop reads them: the text after the authority is the path,
without percent-encoding. S3 is reached by the settings of Spark, which are those of Hadoop (`fs.s3a.…`).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyarrow import fs

from construct_messages.errors import IncompleteResult, UsageError
from construct_messages.spark.session import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_URI: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*):(?://(?P<authority>[^/]*+))?(?P<path>.*)", re.DOTALL
)
# Hadoop's names, and those of pyarrow
_SCHEMES: Final = {"s3a": "s3", "s3n": "s3"}
_WILD: Final = re.compile(r"[*?\[]")
_CHUNK_BYTES: Final = 1 << 20
_ATTEMPTS: Final = 5
_PAUSE_SECONDS: Final = 0.2
_HINT: Final = "use file:, s3a:, gs:, abfss: or hdfs:, or copy the files to such a place"


_S3A: Final = "fs.s3a."
_S3_SETTINGS: Final = (
    "access.key",
    "secret.key",
    "session.token",
    "endpoint",
    "endpoint.region",
    "path.style.access",
    "connection.ssl.enabled",
    "aws.credentials.provider",
)

S3Settings = tuple[tuple[str, str], ...]
"""Names (without `fs.s3a.`) and values of settings, also of single buckets (`bucket.NAME.…`)."""


class Place(NamedTuple):
    """The location of a file or folder, which need not exist."""

    files: Any  # the file system of pyarrow
    path: str  # in that file system
    root: str  # the beginning of the path that is not part of the URI
    prefix: str  # the beginning of the URI, in place of `root`

    @property
    def uri(self) -> str:
        return f"{self.prefix}/{self.path.removeprefix(self.root).lstrip('/')}"

    @property
    def is_local(self) -> bool:
        return isinstance(self.files, fs.LocalFileSystem)

    def __truediv__(self, name: str) -> Place:
        """The place of a file or folder in this folder."""
        return self._replace(path=f"{self.path}/{name}")


class File(NamedTuple):
    uri: str
    size: int  # in bytes
    written: int = 0  # in nanoseconds, if the file system stores it


def s3_settings(spark: SparkSession) -> S3Settings:
    """Returns the settings of a session for S3, those of Hadoop and of Spark."""
    found: dict[str, str] = {}
    if not is_remote(spark):
        hadoop = spark.sparkContext._jsc.hadoopConfiguration()
        found = {name: value for name in _S3_SETTINGS if (value := hadoop.get(_S3A + name))}
    return s3_settings_of(found, spark.conf.getAll)


def s3_settings_of(found: Mapping[str, str], options: Mapping[str, str]) -> S3Settings:
    """Returns settings with those of some options, of Spark or of a data source.

    >>> s3_settings_of({"endpoint": "h"}, {"spark.hadoop.fs.s3a.bucket.b.endpoint": "i", "path": "s3a://b"})
    (('bucket.b.endpoint', 'i'), ('endpoint', 'h'))
    """
    own = {name.removeprefix("spark.hadoop."): value for name, value in options.items()}
    given = {name.removeprefix(_S3A): own[name] for name in own if name.startswith(_S3A)}
    kept = {n: v for n, v in given.items() if n.startswith("bucket.") or n in _S3_SETTINGS}
    return tuple(sorted({**found, **kept}.items()))


def place_of(path: str, s3: S3Settings = ()) -> Place:
    """Returns the place of a path or a URI. Without settings, S3 is reached by those of the environment.

    >>> place_of("file:/tmp/a%20b").uri, place_of("/tmp//logs/").path
    ('file:///tmp/a%20b', '/tmp/logs')
    """
    match = _URI.fullmatch(path)
    if match is None or match["scheme"].lower() == "file":
        local = os.path.abspath(match["path"] if match else path)
        return Place(fs.LocalFileSystem(), local, "", "file://")
    prefix = f"{match['scheme'].lower()}://{match['authority'] or ''}"
    files, root = _file_system(prefix, s3)
    within = match["path"].strip("/")
    return Place(files, f"{root}/{within}" if within else root, root, prefix)


@lru_cache(maxsize=16)
def _file_system(prefix: str, s3: S3Settings) -> tuple[Any, str]:
    """Returns a file system by scheme and authority, and the path in it that they name."""
    scheme, rest = prefix.split(":", 1)
    scheme = _SCHEMES.get(scheme, scheme)
    try:
        if scheme == "s3" and s3:
            bucket = rest.removeprefix("//")
            return _s3(bucket, dict(s3)), bucket
        files, root = fs.FileSystem.from_uri(f"{scheme}:{rest}/")
    except (ValueError, OSError, NotImplementedError) as error:
        raise UsageError(f"cannot reach {prefix}: {error}", hint=_HINT) from error
    return files, root.rstrip("/")


def _s3(bucket: str, settings: Mapping[str, str]) -> Any:
    """Returns S3 as Hadoop's S3A would reach it."""
    own = {
        name: settings.get(f"bucket.{bucket}.{name}", settings.get(name)) for name in _S3_SETTINGS
    }
    endpoint = own["endpoint"] or ""
    scheme, _, host = endpoint.rpartition("://")
    plain = scheme == "http" or (not scheme and own["connection.ssl.enabled"] == "false")
    keys = {
        "access_key": own["access.key"],
        "secret_key": own["secret.key"],
        "session_token": own["session.token"],
    }
    anonymous = "AnonymousAWSCredentialsProvider" in (own["aws.credentials.provider"] or "")
    return fs.S3FileSystem(
        **({} if anonymous or not own["access.key"] else keys),
        anonymous=anonymous,
        region=own["endpoint.region"] or (None if host else fs.resolve_s3_region(bucket)),
        endpoint_override=host or None,
        scheme="http" if plain else "https",
        force_virtual_addressing=bool(host) and own["path.style.access"] != "true",
    )


def find(path: str, s3: S3Settings = (), *, grows: bool = False) -> list[File]:
    """Returns the files of a path, at least one: the file itself, all files in a folder, or those of a pattern.

    If it `grows`, a folder that exists may be empty, and a pattern may match nothing yet. A pattern has `*`, `?` and
    `[…]`. Names that begin with `.` or `_` are ignored, as in Spark, unless named.
    """
    place, files = place_of(path, s3), list[File]()
    try:
        infos = [place.files.get_file_info(place.path)]
        may_be_empty = grows and infos[0].type == fs.FileType.Directory
        if infos[0].type == fs.FileType.NotFound:
            may_be_empty = grows and _WILD.search(place.path) is not None
            infos = _matching(place)
        for info in infos:
            found = [info] if info.type == fs.FileType.File else []
            for each in found or visible_below(place._replace(path=info.path)).values():
                uri = place._replace(path=each.path).uri
                files.append(File(uri, each.size, each.mtime_ns or 0))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    if not files and not may_be_empty:
        raise UsageError(
            f"there are no files at {path}",
            hint="name a file, a folder or a pattern such as logs/*.nq",
        )
    return sorted(files)


def _matching(place: Place) -> list[Any]:
    fixed, *segments = re.split(r"/(?=[^/]*[*?\[])", place.path, maxsplit=1)
    infos = [place.files.get_file_info(fixed or "/")]
    for pattern in "/".join(segments).split("/"):
        infos = [
            info
            for folder in infos
            if folder.type == fs.FileType.Directory
            for info in place.files.get_file_info(fs.FileSelector(folder.path))
            if fnmatchcase(info.base_name, pattern)
            and (is_visible(info.base_name) or not is_visible(pattern))
        ]
    return infos


def entries(folder: Place) -> list[Any]:
    """Returns the files and folders in a folder itself; none if it does not exist."""
    selector = fs.FileSelector(folder.path, allow_not_found=True)
    return list(folder.files.get_file_info(selector))


def listing(folder: Place) -> dict[str, Any]:
    """Returns the files and folders in a folder, at any depth, by path in it; none if it does not exist."""
    selector = fs.FileSelector(folder.path, recursive=True, allow_not_found=True)
    infos = folder.files.get_file_info(selector)
    return {info.path.removeprefix(folder.path).lstrip("/"): info for info in infos}


def files_below(folder: Place) -> dict[str, Any]:
    return {name: info for name, info in listing(folder).items() if info.type == fs.FileType.File}


def visible_below(folder: Place) -> dict[str, Any]:
    return {name: info for name, info in files_below(folder).items() if is_visible(name)}


def is_visible(name: str) -> bool:
    """Whether no part of a path is hidden, as in Spark."""
    return not any(part.startswith((".", "_")) for part in name.split("/"))


def kind_of(place: Place) -> fs.FileType:
    return place.files.get_file_info(place.path).type


def is_there(place: Place) -> bool:
    return bool(kind_of(place) != fs.FileType.NotFound)


def make_folder(place: Place) -> None:
    """Makes a folder, and those above, unless they exist."""
    place.files.create_dir(place.path, recursive=True)


def move(place: Place, to: Place) -> None:
    """Renames a file or a folder; a file that has the name is replaced."""
    if place.files.type_name == "hdfs":  # its rename replaces no file
        remove_file(to)
    place.files.move(place.path, to.path)


def read_bytes(place: Place) -> bytes:
    with place.files.open_input_stream(place.path, compression=None) as file:
        return bytes(file.read())


def write_bytes(place: Place, contents: bytes, before: Place) -> None:
    """Writes a file, which is complete when it has its name, and has the name `before` until then."""
    with before.files.open_output_stream(before.path, compression=None) as file:
        file.write(contents)
    move(before, place)


def remove_file(place: Place) -> None:
    """Removes a file, if there is one."""
    try:
        place.files.delete_file(place.path)
    except FileNotFoundError:  # another run may have made it again since
        return
    except OSError:
        if is_there(place):  # HDFS has no error of its own for a file that is missing
            raise


def remove_folder(place: Place) -> None:
    """Removes a folder, if there is one, although tasks of a job that has ended may still make files in it."""
    for attempt in range(_ATTEMPTS):
        try:
            place.files.delete_dir(place.path)
        except OSError:  # a task has made another file in an emptied folder
            if is_there(place) and attempt == _ATTEMPTS - 1:
                raise
        if not is_there(place):
            break
        time.sleep(_PAUSE_SECONDS)


def read_from(uri: str, start: int = 0, s3: S3Settings = ()) -> Iterator[bytes]:
    """Yields the bytes of a file from `start` on, in chunks; the file is open until the iterator ends or is closed."""
    place = place_of(uri, s3)
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
