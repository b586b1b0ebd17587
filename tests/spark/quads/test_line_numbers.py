"""Numbers of malformed lines: those of the file, in however many parts it is read."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from construct_messages.errors import QuadsError
from construct_messages.spark.quads.loading import load_quads
from construct_messages.spark.session import translated
from tests.support.spark.sessions import activate, new_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

GOOD = b"<urn:s> <urn:p> <urn:o> .\r\n# a comment\n\n"
PACK: dict[str, Callable[[bytes], bytes]] = {
    ".nt": bytes,
    ".nt.gz": gzip.compress,
    ".nt.bz2": bz2.compress,
}


@pytest.mark.parametrize(
    "bad", [b"<urn:s> <urn:p> .", b'<urn:s> <urn:p> "\xff [x]"  ', b"<" + b"x" * 3000], ids=len
)
@pytest.mark.parametrize("extension", PACK)
def test_the_number_of_a_line(
    spark: SparkSession, tmp_path: Path, extension: str, bad: bytes
) -> None:
    path = tmp_path / f"a b[1]{extension}"
    path.write_bytes(PACK[extension](GOOD * 41 + bad + b"\n" + GOOD * 20 + bad + b"\n"))
    session = new_session(spark, {"spark.sql.files.maxPartitionBytes": "300"})
    activate(session)
    try:
        with pytest.raises(QuadsError) as caught, translated():
            load_quads(session, path).collect()
    finally:
        activate(spark)
    shown = bad[:1000].decode(errors="replace")
    assert caught.value.message.endswith(f"{extension}: malformed line 124: {shown}")
    assert "on_error='quarantine'" in str(caught.value.hint)


@pytest.mark.parametrize("extension", PACK)
def test_numbers_in_the_quarantine(
    spark: SparkSession,
    tmp_path: Path,
    extension: str,
) -> None:
    """The same bad line several times in files of many parts, and parts of many files."""
    bad = "<urn:s> <urn:p> ."
    random = Random(extension)
    expected = []
    (tmp_path / "in").mkdir()
    for name in "abc":
        lines = [bad if random.random() < 0.05 else "<urn:s> <urn:p> <urn:o> ." for _ in range(200)]
        path = tmp_path / "in" / f"{name}{extension}"
        path.write_bytes(PACK[extension]("\n".join(lines).encode()))
        expected += [(path.name, n) for n, line in enumerate(lines, 1) if line == bad]
    session = new_session(spark, {"spark.sql.files.maxPartitionBytes": "700"})
    activate(session)
    kept = str(tmp_path / "quarantine")
    try:
        load_quads(session, tmp_path / "in", on_error="quarantine", quarantine=kept)
    finally:
        activate(spark)
    rows = spark.read.parquet(kept).collect()
    assert sorted((Path(row.file).name, row.line) for row in rows) == expected
    assert {row.text for row in rows} == {bad}


def test_a_file_that_has_gone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from construct_messages.spark import line_numbers

    path = tmp_path / "a.nt"
    path.write_bytes(GOOD + b"<urn:s>\n")
    found = line_numbers.line_number

    def gone(session: SparkSession, uri: str, text: str) -> int | None:
        path.unlink(missing_ok=True)
        return found(session, uri, text)

    monkeypatch.setattr(line_numbers, "line_number", gone)
    with pytest.raises(QuadsError, match=r"a\.nt: malformed line: <urn:s>"), translated():
        load_quads(spark, path).collect()
