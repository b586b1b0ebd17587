"""How much a session is going to read, told without a session; and what its settings are for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from construct_messages.spark import session as module
from construct_messages.spark.session import input_size

pytest.importorskip("pyspark")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name, size in (("a/1.nt", 5), ("a/b/2.nt", 7), ("a/3.nt.gz", 2), ("[x].nt", 1)):
        (tmp_path / name).write_bytes(b"#" * size)
    return tmp_path


@pytest.mark.parametrize(
    ("paths", "size"),
    [
        (["a/1.nt"], 5),
        (["file:a/1.nt", "a/b"], 12),
        (["a"], 32),
        (["a/*.nt"], 5),
        (["a/*"], 32),
        (["[x].nt"], 1),
        (["a/{1,2}.nt"], None),
        (["a", "absent.nt"], None),
        (["hdfs:///a/1.nt"], None),
    ],
    ids=str,
)
def test_sizes(
    monkeypatch: pytest.MonkeyPatch, folder: Path, paths: list[str], size: int | None
) -> None:
    monkeypatch.chdir(folder)
    prefixed = [path.replace("file:", f"file:{folder}/") for path in paths]
    assert input_size(prefixed) == size


def test_many_files_are_not_counted(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(module, "_MOST_FILES", 2)
    assert input_size([str(folder / "a" / "b")]) == 7
    assert input_size([str(folder)]) is None


_JAVA, _PARTITIONS = "spark.driver.extraJavaOptions", "spark.sql.shuffle.partitions"
_LONG_LIVED = (
    "-XX:+UseParallelGC -XX:MetaspaceSize=256m "
    "-XX:Tier4InvocationThreshold=15000 -XX:Tier4MinInvocationThreshold=1800 -XX:Tier4CompileThreshold=45000"
)
_SHORT_LIVED = "-XX:+UseSerialGC -XX:MetaspaceSize=256m -XX:TieredStopAtLevel=1"


@pytest.mark.parametrize(
    ("size", "given", "java", "partitions"),
    [
        (None, {}, _LONG_LIVED, None),
        (1 << 30, {}, _LONG_LIVED, "34"),
        (1 << 40, {}, _LONG_LIVED, "200"),
        (0, {}, _SHORT_LIVED, "2"),
        (20 << 20, {}, _SHORT_LIVED, "2"),
        (0, {_JAVA: "-XX:+UseG1GC", _PARTITIONS: "7"}, "-XX:+UseG1GC", "7"),
    ],
    ids=["unknown", "large", "huge", "none", "small", "the user's own"],
)
def test_settings(
    size: int | None,
    given: dict[str, str],
    java: str,
    partitions: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from construct_messages.spark.session import new_settings

    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    settings = new_settings(given, input_bytes=size)
    assert (settings[_JAVA], settings.get(_PARTITIONS)) == (java, partitions)
