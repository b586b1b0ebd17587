"""The jar is what its source gives; sessions without it get it, and where one refuses it, Python reads lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from construct_messages.spark import jar
from tests.support.places import absent
from tests.support.spark.jar import classes, compiled, compiler, digest, told, write
from tests.support.spark.sessions import UNCOMPILED, new_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_jar_is_of_this_source() -> None:
    assert told()[1] == digest(), "run `make jar`"


@pytest.mark.slow
def test_the_jar_is_what_the_source_gives(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    if (release := compiler()) is None:
        absent("no javac on PATH")
    if release != told()[0]:
        pytest.skip(f"the jar is of javac {told()[0]}, and this is javac {release}")
    assert compiled(tmp_path) == classes()
    names = ("Functions", "Recent", "Statement", "Tokens")
    assert set(classes()) == {f"construct_messages/spark/{name}.class" for name in names}


@pytest.mark.slow
def test_the_same_source_gives_the_same_bytes(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    if compiler() is None:
        absent("no javac on PATH")
    for name in ("a.jar", "b.jar"):
        write(tmp_path / name)
    assert (tmp_path / "a.jar").read_bytes() == (tmp_path / "b.jar").read_bytes()


def test_settings_keep_the_jars_of_the_user() -> None:
    assert jar.settings({"spark.jars": "a.jar,b.jar"})["spark.jars"] == f"a.jar,b.jar,{jar.JAR}"


def test_no_settings_without_a_jar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where the package was imported from a .zip."""
    monkeypatch.setattr(jar, "JAR", tmp_path / "no.jar")
    assert jar.settings({}) == {}


SOUND = (
    b"<http://e.x/s> <urn:p> <http://e.x/\xc3\xa4#f> .",
    b'_:a <urn:p> "\\"\xf0\x9f\x98\x80"@de-at--ltr _:g .',
    b'<urn:s>\t<urn:p>"\\u0041"^^<urn:d>.# not canonical',
    b"<http://[::1]/> <urn:p> _:b .",
    b"<urn:s> <urn:p> <<( _:a <urn:p> _:b )>> <urn:g> .",
    b"# nothing",
    b"",
)


@pytest.mark.slow
def test_the_jar_is_added_to_a_session_without_it(spark: SparkSession, tmp_path: Path) -> None:
    from construct_messages.spark.quads.loading import load_quads

    (tmp_path / "dump.nt").write_text("<urn:s> <urn:p> <urn:o> .\n")
    foreign, other = new_session(spark, UNCOMPILED), new_session(spark, UNCOMPILED)
    for session in (foreign, other):
        session.conf.unset("spark.sql.catalog.construct_messages")
    assert (jar.has_functions(foreign), jar.add_functions(foreign)) == (False, True)
    assert load_quads(foreign, tmp_path / "dump.nt").count() == 1
    assert not jar.has_functions(other)


@pytest.mark.slow
def test_a_session_that_refuses_the_jar_reads_the_same(spark: SparkSession, tmp_path: Path) -> None:
    from construct_messages.spark.quads.loading import load_quads

    dump = tmp_path / "dump.nq"
    dump.write_bytes(b"\n".join([*SOUND, b"broken", b""]))
    foreign = new_session(spark, UNCOMPILED)
    foreign.conf.set("spark.sql.catalog.construct_messages", "construct_messages.spark.NoSuchClass")
    assert (jar.has_functions(spark), jar.has_functions(foreign)) == (True, False)
    found = []
    for number, session in enumerate([spark, foreign]):
        quarantine = str(tmp_path / f"quarantine-{number}")
        quads = load_quads(session, dump, on_error="quarantine", quarantine=quarantine)
        plan = quads._jdf.queryExecution().optimizedPlan().toString()  # type: ignore[operator]  # Java's
        assert ("construct_messages.spark.Statement" in plan) == (session is spark)
        rows = {tuple(row) for row in quads.collect()}
        found.append((rows, [row.text for row in session.read.parquet(quarantine).collect()]))
    assert found[0] == found[1]
    assert len(found[0][0]) == len(SOUND) - 2
    assert found[0][1] == ["broken"]
