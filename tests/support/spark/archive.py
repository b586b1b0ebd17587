"""Makes Java's archive of Spark's classes, and waits for it: sessions of Spark start in half the time with one.

`python -m tests.support.spark.archive` makes it in the folder that `CONSTRUCT_MESSAGES_CACHE` names, where the package
is installed. Tests use what is in that folder, and make none.
"""

from __future__ import annotations

from construct_messages.spark.archiving import make
from construct_messages.spark.class_archive import CACHE, archive_path, failure, is_usable
from construct_messages.spark.session import java_version


def main() -> None:
    archive = archive_path(java_version())
    if archive is None:
        raise SystemExit(f"name a folder in {CACHE}, and install this package")
    archive.parent.mkdir(parents=True, exist_ok=True)
    make(archive)
    if not is_usable(archive):
        raise SystemExit(f"no archive was made: {failure(archive).read_text(encoding='utf-8')}")


if __name__ == "__main__":
    main()
