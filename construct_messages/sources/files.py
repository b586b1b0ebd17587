"""Opens RDF files and Oxigraph directories as a store.

Files, in every format that pyoxigraph reads, also compressed, are loaded into one store in memory; `rdfxml/` converts
RDF/XML to N-Triples. A directory is opened read-only. Evaluates nothing.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

import pyoxigraph as ox

from construct_messages.errors import LimitExceeded, SourceError, UsageError
from construct_messages.files.compression import COMPRESSIONS
from construct_messages.files.unpacking import UnpackedFile, unmarked, unpack_errors
from construct_messages.formats.documents import EXTENSIONS, format_of_document


def load_files(paths: Sequence[Path], *, lenient: bool = False) -> ox.Store:
    """Loads files into a new store in memory; blank nodes of different files are different.

    Args:
        paths: see `load_into`.
        lenient: whether malformed IRIs and language tags are loaded, too.

    Raises:
        UsageError: no such file, or a name without the extension of an RDF format.
        SourceError: a syntax error, with the file and line.
    """
    store = ox.Store()
    load_into(store, paths, lenient=lenient)
    return store


def load_into(
    store: ox.Store,
    paths: Sequence[Path],
    progress: Callable[[int], None] | None = None,
    *,
    lenient: bool = False,
) -> None:
    """Loads files into a store; blank nodes of different files are different.

    Args:
        store: the store.
        paths: all are checked before the first is read.
        progress: called for each piece with the number of bytes read, before decompression.
        lenient: see `load_files`.

    Raises:
        UsageError: no such file, or a name without the extension of an RDF format.
        SourceError: a syntax error, with the file and line.
    """
    for path, packing, format in [(path, *_kind(path)) for path in paths]:
        try:
            with path.open("rb") as raw:
                read: Any = raw if progress is None else _Counted(raw, progress)
                file: Any = unmarked(UnpackedFile(read, packing) if packing else read)
                _load(store, file, format, path.absolute().as_uri(), lenient)
        except LimitExceeded as error:
            raise SourceError(f"{path}: {error.message}", hint=error.hint) from error
        except MemoryError as error:  # of the parser's buffer, not of the machine
            hint = "shorten the literal, or load the file into a store directory by other means"
            raise SourceError(
                f"{path}: a term is too long for the parser: {error}", hint=hint
            ) from error
        except unpack_errors(SyntaxError, ValueError) as error:
            raise SourceError(
                f"{path}: {error}",
                hint="fix the file, check its extension, or load malformed IRIs leniently",
            ) from error


def _load(store: ox.Store, file: Any, format: ox.RdfFormat, base: str, lenient: bool) -> None:
    if format != ox.RdfFormat.RDF_XML:
        _in_thread(partial(store.bulk_load, file, format, base_iri=base, lenient=lenient))
        return
    from construct_messages.rdfxml import (
        NTriplesFile,
    )  # imports expat, which no other format needs

    statements: Any = NTriplesFile(file, base, lenient=lenient)
    try:
        _in_thread(partial(store.bulk_load, statements, ox.RdfFormat.N_TRIPLES, lenient=lenient))
    except SyntaxError as error:
        raise statements.located(error) from error


def _kind(path: Path) -> tuple[str | None, ox.RdfFormat]:
    """The extension of a file's compression, if any, and its format."""
    if not path.exists():
        raise UsageError(f"{path}: no such file")
    packing = path.suffix.lower() if path.suffix.lower() in COMPRESSIONS else None
    name = path.with_suffix("") if packing else path
    format = format_of_document(name.suffix[1:].lower())
    if format is None:
        raise UsageError(
            f"{path}: the extension {name.suffix or '(none)'!r} is not an RDF format",
            hint=f"end its name in one of {EXTENSIONS}; {', '.join(COMPRESSIONS)} may follow",
        )
    return packing, format.parsed_as


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
    """An Oxigraph store directory, read-only.

    Args:
        path: the directory.
        allow_stale: open it even while this or another process writes to it; the data may be old, and Oxigraph
            documents the behaviour as undefined.

    Raises:
        UsageError: no such directory, or not a store.
        SourceError: a writer has it open, or it cannot be read.
    """
    if not (path / "CURRENT").is_file():
        raise UsageError(
            f"{path} is not an Oxigraph store directory",
            hint="create one with `oxigraph load --location DIR --file FILE`, or pass the RDF files themselves",
        )
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
