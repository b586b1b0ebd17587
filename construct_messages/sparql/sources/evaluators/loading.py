"""Loads RDF files into a new store directory, in a separate process.

The end of the process releases RocksDB's lock and the memory of bulk loading, and the process can be stopped at any
point. Read the directory with `files.open_directory` or `pool.EvaluatorPool`; `files.py` reads the files.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
import pyoxigraph as ox

from construct_messages.errors import ConstructMessagesError, SourceError, UsageError
from construct_messages.sparql.children import Child, Failure, Parent
from construct_messages.sparql.sources.evaluators.child import Ended
from construct_messages.sparql.sources.files import load_into

_STRICT, _LENIENT = "strict", "lenient"
_STEP_SECONDS: Final = 0.1


class _Read(msgspec.Struct, tag=True, frozen=True):
    """The number of bytes that have been read so far."""

    count: int


def load_directory(
    paths: Sequence[Path],
    directory: Path,
    progress: Callable[[int, int], None] | None = None,
    *,
    lenient: bool = False,
) -> None:
    """Loads files into a new or empty directory; blocks until it is complete, and removes it after an error.

    `progress` is called repeatedly with the number of bytes read, compressed or not, and the size of all files.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{directory} is not empty", hint="name a directory that does not exist")
    for path in paths:
        if not path.is_file():
            raise UsageError(f"{path}: no such file")
    total = sum(path.stat().st_size for path in paths)
    process = Child[_Read | Ended](
        *(__name__, str(directory), _LENIENT if lenient else _STRICT, *map(str, paths)),
        reports=_Read | Ended,
        task="loaded the files",
        hint="load less at once, or on a machine with more memory",
        last_line=True,
    )
    is_whole = False
    try:
        for report in process.reports():
            if isinstance(report, Ended):
                if report.failure:
                    raise report.failure.error()
                is_whole = True
            elif progress is not None:
                progress(report.count, total)
    finally:
        code = process.kill_and_wait()
        if not is_whole and directory.exists():
            shutil.rmtree(directory)
    if not is_whole:
        raise process.ended(code)


def main() -> None:
    """`python -m …evaluators.loading SOCKET DIRECTORY strict|lenient FILE...`, started by `load_directory`."""
    parent = Parent[None](None)
    parent.end_with()
    directory, mode, *paths = sys.argv[2:]
    count, reported = 0, time.monotonic()

    def read(bytes_read: int) -> None:
        nonlocal count, reported
        count += bytes_read
        if time.monotonic() - reported >= _STEP_SECONDS:
            reported = time.monotonic()
            parent.report(_Read(count))

    try:
        store = ox.Store(directory)
        load_into(store, [Path(path) for path in paths], read, lenient=mode == _LENIENT)
        store.flush()
    except ConstructMessagesError as error:
        parent.report(Ended(Failure.of(error)))
    except OSError as error:
        parent.report(Ended(Failure.of(SourceError(f"{directory}: {error}"))))
    else:
        del store
        parent.report(_Read(count))
        parent.report(Ended())


if __name__ == "__main__":
    main()
