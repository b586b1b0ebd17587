"""Makes a class archive: `python -m construct_messages.spark.archiving ARCHIVE`, started by `class_archive.begin`.

A session runs a short query of each common kind, and Java writes the loaded classes to a file when the session
ends. The complete file is then renamed to the archive. One process makes an archive at a time; others exit at once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from construct_messages.spark.class_archive import OPTIONS, failure, is_usable, summary, summary_of

_SESSION: Final = "--session"
_MODULE: Final = "construct_messages.spark.archiving"
_NICE: Final = 10
_DUMP: Final = """\
<http://e.x/a> <http://e.x/p> "a"@en .
<http://e.x/a> <http://e.x/q> <http://e.x/b> .
<http://e.x/b> <http://e.x/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
_:c   <http://e.x/q> <http://e.x/b> .
"""
_QUERY: Final = """\
CONSTRUCT { ?a <http://e.x/p> ?text . ?b <http://e.x/q> ?number } WHERE {
  ?a <http://e.x/p> ?text ; <http://e.x/q> ?b . OPTIONAL { ?b <http://e.x/p> ?number FILTER(?number > 0) }
  FILTER(LANG(?text) = "en")
} ORDER BY ?a"""


def make(archive: Path) -> None:
    """Makes an archive, unless another process does, and waits for Java to end.

    Raises:
        OSError: the folder cannot be written.
    """
    with archive.with_suffix(".lock").open("w") as lock:
        if not _locked(lock.fileno()) or is_usable(archive):
            return
        folder = archive.with_suffix(".making")
        shutil.rmtree(folder, ignore_errors=True)  # left by a process that was killed
        folder.mkdir()
        made = folder / "classes.jsa"
        command = [sys.executable, "-m", _MODULE, _SESSION, str(made), str(folder)]
        # Java has the end of the pipe, too: it has written all when the pipe ends
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if done.returncode == 0 and made.is_file():
            summary_of(archive).write_text(summary(made), encoding="ascii")
            made.replace(archive)
        else:
            failure(archive).write_bytes(done.stdout)
        shutil.rmtree(folder, ignore_errors=True)


def _locked(file: int) -> bool:
    try:
        import fcntl
    except (
        ImportError
    ):  # Windows: two processes make the same archive, and the last one replaces the other
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _run_session(archive: str, folder: str) -> None:
    """Runs the operations of a usual session over four statements."""
    from construct_messages.spark.construct import construct_messages
    from construct_messages.spark.quads.loading import load_quads, read_quads, write_quads
    from construct_messages.spark.session import local_session

    options = f"-XX:+UseParallelGC -XX:ArchiveClassesAtExit={archive}"
    spark = local_session("local[1]", {OPTIONS: options}, class_archive=False)
    dump, table = Path(folder, "dump.nt"), Path(folder, "table")
    dump.write_text(_DUMP, encoding="utf-8")
    construct_messages(_QUERY, load_quads(spark, dump)).write(str(Path(folder, "text")))
    write_quads(load_quads(spark, dump), table)
    construct_messages(_QUERY, read_quads(spark, table)).write(str(Path(folder, "parquet")))
    spark.stop()


def main(arguments: list[str]) -> None:
    """Makes the named archive, or runs the session whose classes become the archive."""
    if arguments[0] == _SESSION:
        _run_session(*arguments[1:])
        return
    if hasattr(os, "nice"):
        os.nice(_NICE)
    make(Path(arguments[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
