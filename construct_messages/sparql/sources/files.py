"""Opens RDF files and Oxigraph directories as a store.

Files, in every format that pyoxigraph reads, also compressed, are loaded into one store in memory; `logs/rdfxml/`
converts RDF/XML to N-Triples. A directory is opened read-only. Evaluates nothing.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, cast

import pyoxigraph as ox

from construct_messages.errors import SourceError, UsageError
from construct_messages.logs.sniff import SNIFF_BYTES, sniff
from construct_messages.rdf.files.unpacking import (
    MAGIC,
    UnpackedFile,
    packing_of,
    reading_errors,
    unmarked,
)
from construct_messages.rdf.formats.lookup import document_file, document_format
from construct_messages.rdf.formats.media_types import (
    EXTENSIONS,
    find_document_format,
)
from construct_messages.sparql.sources.tables import check_directory

# what may be the address of an endpoint, whose scheme is missing
_ADDRESS: Final = re.compile(r"(?:[\w-]+(?:\.[\w-]+)+|localhost)(?::\d+)?/\w|localhost:\d+")
_MAGIC_BYTES: Final = max(map(len, MAGIC))
_HINT: Final = (
    "fix the file, check its format, load it leniently, or write it anew by convert --skip-invalid"
)


def load_files(
    paths: Sequence[Path], format: str | None = None, *, lenient: bool = False
) -> ox.Store:
    """Loads files into a new store in memory; see `load_into`."""
    store = ox.Store()
    load_into(store, paths, format=format, lenient=lenient)
    return store


def load_open_file(file: IO[bytes], format: str | None, *, lenient: bool = False) -> ox.Store:
    """Loads an open binary file, such as standard input, compressed or not, into a new store in memory; it stays open.

    Without a name of its format, that is detected from its first bytes.
    """
    name = getattr(file, "name", None)
    name = name if isinstance(name, str) else "the file"
    found = None if format is None else document_format(format).parsed_as
    store = ox.Store()
    with reading_errors(name, SourceError, _HINT):
        begun = _Begun(file)
        if packing := packing_of(begun.head(_MAGIC_BYTES)):
            begun = _Begun(UnpackedFile(cast(IO[bytes], begun), packing))
        if found is None:
            found = _detected(begun, name)
        _load(store, unmarked(begun), found, None, lenient)
    return store


def _detected(file: _Begun, name: str) -> ox.RdfFormat:
    size = SNIFF_BYTES
    while (format := sniff(head := file.head(size), whole=len(head) < size)) is None:
        size *= 2
    for media_type in format.media_types + format.documents:
        if (found := find_document_format(media_type)) is not None:
            return found.parsed_as
    raise UsageError(
        f"{name} looks like {format.name}, which is no format of documents",
        hint=f"name its format: {EXTENSIONS}",
    )


def load_into(
    store: ox.Store,
    paths: Sequence[Path],
    progress: Callable[[int], None] | None = None,
    *,
    format: str | None = None,
    lenient: bool = False,
) -> None:
    """Loads files into a store; blank nodes of different files are different.

    All paths are checked before the first is read. The format is named for all files, or that of each extension;
    `progress` gets the number of bytes of each piece before decompression; `lenient` also loads malformed IRIs and
    language tags. Raises `UsageError` for paths, and `SourceError` with the file and line.
    """
    for path, packing, found in [(path, *_kind(path, format)) for path in paths]:
        with reading_errors(path, SourceError, _HINT), path.open("rb") as raw:
            read: Any = raw if progress is None else _Counted(raw, progress)
            file: Any = unmarked(UnpackedFile(read, packing) if packing else read)
            _load(store, file, found, path.absolute().as_uri(), lenient)


def _load(
    store: ox.Store, file: Any, format: ox.RdfFormat, base: str | None, lenient: bool
) -> None:
    if format != ox.RdfFormat.RDF_XML:
        _in_thread(partial(store.bulk_load, file, format, base_iri=base, lenient=lenient))
        return
    # imports expat, which no other format needs
    from construct_messages.logs.rdfxml import NTriplesFile

    statements: Any = NTriplesFile(file, base, lenient=lenient)
    try:
        _in_thread(partial(store.bulk_load, statements, ox.RdfFormat.N_TRIPLES, lenient=lenient))
    except SyntaxError as error:
        raise statements.located(error) from error


def _kind(path: Path, format: str | None) -> tuple[str, ox.RdfFormat]:
    """The extension of a file's compression, if any, and its format, unless that is named."""
    if not path.exists():
        is_address = _ADDRESS.match(str(path)) is not None
        raise UsageError(
            f"{path}: no such file",
            hint=f"write https://{path} or http://{path} for an endpoint" if is_address else None,
        )
    found = document_file(str(path), format, named=True)
    return found.packing.lower(), found.format.parsed_as


class _Begun:
    """A binary file whose first bytes can be looked at before they are read."""

    def __init__(self, file: Any) -> None:
        self._file, self._head = file, b""

    def head(self, size: int) -> bytes:
        """Returns the first bytes, fewer only at the end of the file."""
        while len(self._head) < size and (data := self._file.read(size - len(self._head))):
            self._head += data
        return self._head[:size]

    def read(self, size: int = -1) -> bytes:
        """See `io.RawIOBase.read`."""
        if not self._head:
            return bytes(self._file.read(size))
        data = self._head if size < 0 else self._head[:size]
        self._head = self._head[len(data) :]
        return data + bytes(self._file.read()) if size < 0 else data


class _Counted:
    """A binary file that reports the number of bytes read from it."""

    def __init__(self, file: IO[bytes], progress: Callable[[int], None]) -> None:
        self._file = file
        self._progress = progress

    def read(self, size: int = -1) -> bytes:
        """See `io.RawIOBase.read`."""
        data = self._file.read(size)
        self._progress(len(data))
        return data


def open_directory(path: Path, *, allow_stale: bool = False) -> ox.Store:
    """Opens an Oxigraph store directory read-only.

    With `allow_stale`, also while a process writes to it: the data may be old, and Oxigraph documents the behaviour as
    undefined.
    """
    check_directory(path)
    if not allow_stale and _has_writer(path):
        raise SourceError(
            f"{path} is open for writing elsewhere; reading it now is undefined",
            status=503,
            hint="stop the writer, query its endpoint instead, read a copy (Store.backup), or set allow_stale",
        )
    try:
        return ox.Store.read_only(str(path))
    except (
        OSError,
        RuntimeError,
    ) as error:  # a damaged store is RocksDB's own error, not the system's
        raise SourceError(f"{path}: {error}") from error


def _has_writer(path: Path) -> bool:
    import subprocess

    # RocksDB's writer holds a POSIX lock on LOCK. A process does not see its own POSIX locks, and loses them when it
    # closes any descriptor of the file, so another process must check.
    lock = path / "LOCK"
    if not lock.exists():
        return False
    look = (
        "import fcntl, sys\n"
        "with open(sys.argv[1]) as file:\n"
        "    try: fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)\n"
        "    except (BlockingIOError, PermissionError): sys.exit(3)\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", look, str(lock)], capture_output=True, check=False
    )
    if done.returncode not in (0, 3):
        raise SourceError(
            f"{path}: cannot find out whether a writer has it open: {done.stderr.decode().strip()}"
        )
    return done.returncode == 3


def _in_thread(work: Callable[[], None]) -> None:
    """Runs `work` in a thread, so that Ctrl-C works while the engine loads."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again below, in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=run, name="construct-messages load", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
