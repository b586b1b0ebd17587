"""The class archive: made aside and renamed, used where it is whole, and never a reason for a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from construct_messages.spark import archiving, class_archive
from construct_messages.spark.class_archive import (
    CACHE,
    OPTIONS,
    archive_path,
    begin,
    failure,
    is_usable,
    settings,
    summary,
    summary_of,
)
from construct_messages.spark.session import java_version

JAVA = 'openjdk version "17.0.15"'


def test_the_folder_is_named_by_a_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    versions = {"pyspark": "4.3.0", "construct-messages": "1.0"}
    monkeypatch.setattr(class_archive, "version", versions.__getitem__)
    monkeypatch.setenv(CACHE, "")
    assert archive_path(JAVA) is None
    monkeypatch.delenv(CACHE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert (archive_path(JAVA) or Path()).parent == tmp_path / "xdg" / "construct-messages"
    monkeypatch.setenv(CACHE, str(tmp_path))
    first = archive_path(JAVA)
    assert (first or Path()).parent == tmp_path
    assert first == archive_path(JAVA)
    assert first != archive_path("another Java")
    versions["construct-messages"] = "2.0"
    assert first != archive_path(JAVA)


def write(archive: Path, content: bytes) -> Path:
    """An archive of any content, with its summary."""
    archive.write_bytes(content)
    summary_of(archive).write_text(summary(archive), encoding="ascii")
    return archive


@pytest.mark.parametrize(
    ("name", "options", "used"),
    [
        ("a.jsa", "", True),
        ("a.jsa", "-XX:+UseSerialGC", True),
        ("a.jsa", "-XX:SharedArchiveFile=other.jsa", False),
        ("a.jsa", "-XX:ArchiveClassesAtExit=other.jsa", False),
        ("a.jsa", "-Xshare:off", False),
        ("a b.jsa", "", False),
    ],
    ids=[
        "alone",
        "beside others",
        "the user's own",
        "the user's to make",
        "switched off",
        "a space",
    ],
)
def test_an_archive_is_used_where_it_can_be(
    tmp_path: Path, name: str, options: str, used: bool
) -> None:
    archive = tmp_path / name
    given = {OPTIONS: options} if options else {}
    assert settings(given, archive) == {}
    write(archive, b"classes")
    found = settings(given, archive).get(OPTIONS, "")
    assert found.startswith(f"{options} -XX:SharedArchiveFile={archive} ".lstrip()) is used
    assert settings(given, None) == {}


@pytest.mark.parametrize(
    "damaged",
    [b"class", b"clasSes", b"", b"classes, and more", None],
    ids=["truncated", "changed", "empty", "longer", "removed"],
)
def test_a_damaged_archive_is_not_used(tmp_path: Path, damaged: bytes | None) -> None:
    """Java would crash."""
    archive = write(tmp_path / "a.jsa", b"classes")
    assert settings({}, archive)
    if damaged is None:
        archive.unlink()
    else:
        archive.write_bytes(damaged)
    assert settings({}, archive) == {}
    archive.write_bytes(b"classes")
    summary_of(archive).write_bytes(b"\xff")
    assert settings({}, archive) == {}


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The archives that processes were started for; none is."""
    begun: list[str] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: begun.append(command[-1]))
    return begun


def test_an_archive_is_made_again_when_spark_was_installed_again(
    begun: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The versions and places are the same, and Java ignores an archive of jars of another time."""
    jar = tmp_path / "spark" / "jars" / "a.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"a")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    archive = write(tmp_path / "a.jsa", b"classes")
    begin(archive)
    assert (bool(settings({}, archive)), begun) == (True, [])
    os.utime(jar, ns=(0, jar.stat().st_mtime_ns + 10**9))
    begin(archive)
    assert (settings({}, archive), begun) == ({}, [str(archive)])


def test_a_damaged_archive_is_made_again(begun: list[str], tmp_path: Path) -> None:
    archive = write(tmp_path / "a.jsa", b"classes")
    archive.write_bytes(b"clasSes")
    begin(archive)
    assert begun == [str(archive)]


def test_nothing_is_begun_where_it_is_of_no_use(begun: list[str], tmp_path: Path) -> None:
    made, failed = write(tmp_path / "made.jsa", b""), tmp_path / "failed.jsa"
    failure(failed).write_bytes(b"")
    (tmp_path / "file").write_bytes(b"")
    for archive in (None, made, failed, tmp_path / "file" / "a.jsa", tmp_path / "a b.jsa"):
        begin(archive)
    assert begun == []
    begin(tmp_path / "new" / "a.jsa")
    assert begun == [str(tmp_path / "new" / "a.jsa")]


def test_one_process_makes_an_archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(sys, "executable", "no such program")
    archive = tmp_path / "a.jsa"
    with archive.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock.fileno(), fcntl.LOCK_EX)
        archiving.make(archive)
    assert [path.name for path in tmp_path.iterdir()] == ["a.lock"]


def test_a_failure_is_told_and_nothing_remains(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho broken\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    archive = tmp_path / "cache" / "a.jsa"
    (archive.parent / "a.making").mkdir(parents=True)  # of a process that was killed
    archiving.make(archive)
    assert failure(archive).read_bytes() == b"broken\n"
    assert {path.name for path in archive.parent.iterdir()} == {"a.failed", "a.lock"}


@pytest.mark.process
@pytest.mark.slow
def test_java_uses_what_is_whole(tmp_path: Path) -> None:
    """One test, as an archive takes long to make."""
    pytest.importorskip("pyspark")
    archive = archive_path(java_version())
    if archive is None or not is_usable(archive):  # otherwise it was made for these tests
        archive = tmp_path / "cache" / "a.jsa"
        archive.parent.mkdir()
        archiving.make(archive)
    made = {path.suffix for path in archive.parent.iterdir() if path.stem == archive.stem}
    assert made == {".crc32", ".jsa", ".lock"}
    assert was_used(archive, tmp_path)
    assert not was_used(write(tmp_path / "foreign.jsa", b"no archive"), tmp_path)


def was_used(archive: Path, folder: Path) -> bool:
    """Whether Java has loaded classes from an archive."""
    import pyspark

    log = folder / "classes.log"
    options = settings({OPTIONS: f"-XX:+UseParallelGC -Xlog:class+load:file={log}"}, archive)[
        OPTIONS
    ]
    assert f"-XX:SharedArchiveFile={archive}" in options
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    done = subprocess.run(
        [submit, "--driver-java-options", options, "--version"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""  # where Java would warn
    return "shared objects file (top)" in log.read_text()
