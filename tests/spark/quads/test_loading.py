"""Dumps to quads on Spark, and tables of quads: every file read whole or told, every quad once."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
from collections import Counter
from hashlib import sha256
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING, Any, TypeAlias

import pyoxigraph as ox
import pytest
import zstandard

from construct_messages.errors import QuadsError, UsageError
from construct_messages.query.optimizer.optimize import PredicateStatistics, Statistics
from construct_messages.rdf.terms import Term, from_pyoxigraph, parse_term
from tests.support.places import shared_path
from tests.support.spark.sessions import executed, new_session

pytest.importorskip("pyspark")
from construct_messages.spark.quads.loading import load_quads, read_quads, write_quads
from construct_messages.spark.quads.table import QuadTable
from construct_messages.spark.session import translated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

LINE = "<urn:s> <urn:p> <urn:{}> .\n"
Quad: TypeAlias = tuple[str | None, ...]


def rows(frame: DataFrame) -> list[Quad]:
    with translated():
        return sorted((tuple(row) for row in frame.collect()), key=str)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with names that globs, URLs and shells would change, and files in folders in it."""
    made = tmp_path / "dump [1] {a,b}*%20é"
    (made / "in a=b").mkdir(parents=True)
    return made


def objects(frame: DataFrame) -> list[str]:
    return sorted(str(row[2]) for row in rows(frame))


def test_files_of_all_kinds_in_one_folder(spark: SparkSession, folder: Path) -> None:
    packers: dict[str, Any] = {
        "a.nt": bytes,
        "b [1]{2}.nq": bytes,
        "c.NT.gz": gzip.compress,
        "d.nt.bz2": bz2.compress,
        "e.nq.zst": zstandard.compress,
        "f.nt.xz": lzma.compress,
        "in a=b/g.nt": bytes,
        "h.ttl.gz": gzip.compress,
        "i.trig": bytes,
    }
    for name, pack in packers.items():
        (folder / name).write_bytes(
            pack(LINE.format(name[:1] if "/" not in name else "g").encode())
        )
    (folder / "j.jsonld").write_text('{"@id": "urn:s", "urn:p": {"@id": "urn:j"}}')
    (folder / "_SUCCESS").write_text("no data, by convention")
    # in a path globs count, so a name with them is escaped
    path = str(folder).replace("[", "\\[").replace("{", "\\{").replace("*", "\\*")
    frame = load_quads(spark, path)
    assert objects(frame) == [f"<urn:{letter}>" for letter in "abcdefghij"]
    assert objects(load_quads(spark, [f"{path}/a.nt", f"{path}/*.bz2"])) == ["<urn:a>", "<urn:d>"]
    assert frame.columns == ["subject", "predicate", "object", "graph"]


NAMES = [
    "a[1].nt",
    "b{x,y}.nt",
    "e f.nt",
    "g%20h.ttl",
    "i*.nt",
    "j?.ttl",
    "k#l.nt",
    r"m\n.nt",
    "o^$.nt",
    "p[1].ttl.gz",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_read_as_they_stand(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Issue 13, 29: of a file and a folder that are here, beside files that a pattern would match."""
    place = tmp_path / name.partition(".")[0]
    place.mkdir()
    for beside in (tmp_path, place):
        (beside / "a1.nt").write_text(LINE.format("other"))
    content = LINE.format("o").encode()
    (place / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert objects(load_quads(spark, place / name)) == ["<urn:o>"]
    assert (
        objects(load_quads(spark, place))
        == objects(load_quads(spark, f"file:{place}"))
        == ["<urn:o>", "<urn:other>"]
    )
    write_quads(load_quads(spark, place / name), place / "table")
    assert objects(read_quads(spark, place / "table").frame) == ["<urn:o>"]


def test_a_colon_in_a_name_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Issue 13, 29: Hadoop cannot read it, and would say so by two hundred lines."""
    (tmp_path / "a:b.nt").write_text(LINE.format("o"))
    for path in (tmp_path, tmp_path / "a:b.nt", tmp_path / "*"):
        with pytest.raises(UsageError, match=r"a:b.nt: Hadoop"):
            load_quads(spark, path)


def test_ends_of_lines_and_files(spark: SparkSession, tmp_path: Path) -> None:
    content = (
        b"\xef\xbb\xbf<urn:s> <urn:p> <urn:a> .\r\n\r\n# c\r<urn:s> <urn:p> "
        b"<urn:b> .\n\n \t\n<urn:s> <urn:p> <urn:c> ."
    )
    (tmp_path / "a.nt").write_bytes(content)
    assert objects(load_quads(spark, tmp_path)) == ["<urn:a>", "<urn:b>", "<urn:c>"]


def test_blank_nodes_stay_apart_between_files_and_together_between_partitions(
    spark: SparkSession, tmp_path: Path
) -> None:
    many = "".join(f"_:x <urn:p> <urn:{number}> _:g .\n" for number in range(3000))
    (tmp_path / "a.nq").write_text(many)
    (tmp_path / "b.nq").write_text("_:x <urn:p> <<( _:x <urn:q> _:x )>> .\n")
    (tmp_path / "c.ttl").write_text("_:x <urn:p> [] .")
    small = new_session(spark, {"spark.sql.files.maxPartitionBytes": "10000"})
    frame = load_quads(small, tmp_path)
    found = frame.collect()
    subjects = Counter(row.subject for row in found)
    assert sorted(subjects.values()) == [1, 1, 3000]
    assert all(subject.startswith("_:f") for subject in subjects)
    (inner,) = (row for row in found if row.object.startswith("<<("))
    assert inner.object == f"<<( {inner.subject} <urn:q> {inner.subject} )>>"
    assert sorted(frame.collect()) == sorted(found)


@pytest.mark.suite
def test_w3c_suites(spark: SparkSession, tmp_path: Path) -> None:
    root = shared_path("suites/w3c/rdf")
    expected: dict[str, set[Quad] | None] = {}
    for number, path in enumerate(sorted(root.glob("rdf1*/rdf-n-*/**/*.n[tq]"))):
        copy = tmp_path / "all" / f"{number}{path.suffix}"
        copy.parent.mkdir(exist_ok=True)
        copyfile(path, copy)
        expected[copy.as_uri()] = as_pyoxigraph_reads(copy)
        assert (expected[copy.as_uri()] is None) == ("bad" in path.name)
    quarantine = str(tmp_path / "quarantine")
    frame = load_quads(spark, tmp_path / "all", on_error="quarantine", quarantine=quarantine)
    malformed = {row.file for row in spark.read.parquet(quarantine).collect()}
    assert malformed == {file for file, quads in expected.items() if quads is None}
    assert len(malformed) > 100
    # what else stands in a malformed file is read, and equal to what stands in others
    assert set().union(*(quads or () for quads in expected.values())) == set(rows(frame))


def as_pyoxigraph_reads(path: Path) -> set[Quad] | None:
    """The quads of a file with the labels that `load_quads` gives; None if it is malformed."""
    scope = f"f{sha256(path.as_uri().encode()).hexdigest()[:16]}_"

    def term(found: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> Term:
        return parse_term(from_pyoxigraph(found), scope)

    format = ox.RdfFormat.N_TRIPLES if path.suffix == ".nt" else ox.RdfFormat.N_QUADS
    try:
        return {
            (
                *(term(part) for part in (quad.subject, quad.predicate, quad.object)),
                None if isinstance(quad.graph_name, ox.DefaultGraph) else term(quad.graph_name),
            )
            for quad in ox.parse(path.read_bytes(), format)
        }
    except SyntaxError:
        return None


MALFORMED = b"""<urn:s> <urn:p> <urn:o> .
<urn:s> <urn:p> "it's ${x} \\ "@en .
<urn:s> <urn:p> "\xff" .
<urn:s> <urn:p> <rel> .
"""


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("a.nt", b"<urn:s> <urn:p> <rel> .\n", ("a.nt", "<urn:s> <urn:p> <rel> .")),
        (
            "a b.nq.gz",
            gzip.compress(b'<urn:s> <urn:p> "\xff" .\n'),
            ("a%20b.nq.gz", '<urn:s> <urn:p> "\ufffd" .'),
        ),
        ("a.nt", b"<urn:s> <urn:p> <urn:o> <urn:g> .", ("a.nt", "<urn:g>")),
        ("a.ttl", b"<urn:s> <urn:p> <urn:o> .\n<urn:s> a .", ("a.ttl", "line 2")),
        ("a.nt.gz", b"not packed", ("a.nt.gz", "cannot be read")),
        ("a.nt.xz", b"not packed", ("a.nt.xz", "format not supported")),
    ],
    ids=["relative", "utf8", "graph", "turtle", "gz", "xz"],
)
def test_what_is_malformed_ends_the_job(
    spark: SparkSession, tmp_path: Path, name: str, content: bytes, parts: tuple[str, str]
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(QuadsError) as caught:
        rows(load_quads(spark, tmp_path))
    assert all(part in caught.value.message for part in parts)
    assert caught.value.hint


def test_quarantine_takes_each_malformed_line_once(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.nt").write_bytes(MALFORMED)
    (tmp_path / "in" / "b.ttl").write_text("<urn:s> <urn:p> <urn:half> . <urn:s>")
    (tmp_path / "in" / "c.ttl").write_text("<urn:s> <urn:p> <urn:whole> .")
    quarantine = str(tmp_path / "quarantine")
    frame = load_quads(spark, tmp_path / "in", on_error="quarantine", quarantine=quarantine)
    assert objects(frame) == ["<urn:o>", "<urn:whole>"]
    assert objects(frame) == ["<urn:o>", "<urn:whole>"]
    found = sorted(
        (row.file[-4:], row.line or 0, row.text or "")
        for row in spark.read.parquet(quarantine).collect()
    )
    lines = MALFORMED.decode("utf-8", "replace").splitlines()
    bad = [("a.nt", number, line) for number, line in enumerate(lines, 1) if number > 1]
    assert found == sorted([*bad, (".ttl", 0, "")])
    assert all(row.reason for row in spark.read.parquet(quarantine).collect())
    of_lines = spark.read.parquet(quarantine).filter("text IS NOT NULL").collect()
    assert any(" column" in row.reason for row in of_lines)
    assert not any("line 1" in row.reason for row in of_lines)  # each is read as a text of its own
    with pytest.raises(UsageError, match="exists already"):
        load_quads(spark, tmp_path / "in", on_error="quarantine", quarantine=quarantine)


@pytest.mark.parametrize(
    ("paths", "options", "part"),
    [
        ([], {}, "no paths"),
        ("absent", {}, "does not exist"),
        ("empty", {}, "no files"),
        ("csv", {}, "'.csv' is not an RDF format"),
        ("csv", {"format": "tsv"}, "tsv is no format of documents"),
        ("csv", {"on_error": "skip"}, "'skip' is unknown"),
        ("csv", {"on_error": "quarantine"}, "belong together"),
        ("csv", {"quarantine": "q"}, "belong together"),
        ("nosuch://host/a.nt", {}, "no file system for nosuch:"),
    ],
)
def test_mistakes_are_told_before_a_job_runs(
    spark: SparkSession, tmp_path: Path, paths: str | list[str], options: dict[str, str], part: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "a.csv").write_text("x")
    asked = (
        [str(tmp_path / paths) if "://" not in paths else paths]
        if isinstance(paths, str)
        else paths
    )
    with pytest.raises(UsageError) as caught:
        load_quads(spark, asked, **options)
    assert part in caught.value.message


def test_a_format_may_be_given(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "part-0").write_text(LINE.format("a"))
    (tmp_path / "part-1.bz2").write_bytes(bz2.compress(LINE.format("b").encode()))
    assert objects(load_quads(spark, tmp_path, format="nt")) == ["<urn:a>", "<urn:b>"]
    (tmp_path / "part-2.xz").write_bytes(lzma.compress(LINE.format("c").encode()))
    assert objects(load_quads(spark, tmp_path, format="application/n-quads")) == [
        "<urn:a>",
        "<urn:b>",
        "<urn:c>",
    ]


def test_lines_are_read_once(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.nq").write_text(LINE.format("a"))
    frame = load_quads(spark, tmp_path).filter("predicate = '<urn:p>'").select("object")
    assert executed(frame).count("MapInArrow parsed(") == 1


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_settings_of_the_session_change_nothing(
    spark: SparkSession, tmp_path: Path, ansi: str
) -> None:
    (tmp_path / "a.nq").write_text("_:a <urn:p> \"\\u0041\\t\\\\ '${x}'\"@EN <urn:g> .\n")
    settings = {
        "spark.sql.ansi.enabled": ansi,
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.caseSensitive": "true",
        "spark.sql.files.ignoreMissingFiles": "true",
        "spark.sql.files.ignoreCorruptFiles": "true",
    }
    other = new_session(spark, settings)
    assert [row[2:] for row in rows(load_quads(other, tmp_path))] == [
        ("\"A\\t\\\\ '${x}'\"@en", "<urn:g>")
    ]
    (tmp_path / "b.nq.gz").write_bytes(gzip.compress(LINE.format("b").encode() * 1000)[:-20])
    with pytest.raises(QuadsError, match="cannot be read"):
        rows(load_quads(other, tmp_path))


# --- tables -------------------------------------------------------------------------------------------------------


QUADS = [
    *[("<urn:a>", "<urn:p>", f"<urn:{number}>", None) for number in range(5)],
    ("<urn:b>", "<urn:p>", "<urn:0>", None),
    ("<urn:b>", "<urn:p>", "<urn:0>", "<urn:g>"),
    ("<urn:b>", "<urn:q>", '"it\'s"@en', None),
]
STATISTICS = Statistics(
    rows=8,
    distinct=True,
    predicates={
        Term("<urn:p>"): PredicateStatistics(7, 2, 5),
        Term("<urn:q>"): PredicateStatistics(1, 1, 1),
    },
)


def test_a_table_is_a_set_with_its_statistics(spark: SparkSession, tmp_path: Path) -> None:
    doubled = spark.createDataFrame(
        QUADS * 2, "subject string, predicate string, object string, graph string"
    )
    path = tmp_path / "table"
    assert write_quads(doubled, path) == STATISTICS
    table = read_quads(spark, path)
    assert table.statistics == STATISTICS
    assert rows(table.frame) == sorted(QUADS, key=str)
    # any other reader takes it for plain Parquet
    assert spark.read.parquet(str(path)).count() == len(QUADS)
    with pytest.raises(UsageError, match="exists already"):
        write_quads(doubled, path)
    assert write_quads(doubled.filter("predicate = '<urn:q>'"), path, overwrite=True).rows == 1
    assert read_quads(spark, path).statistics.rows == 1


def test_statistics_of_another_version_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    write_quads(
        spark.createDataFrame(
            QUADS, "subject string, predicate string, object string, graph string"
        ),
        path,
    )
    (statistics,) = path.glob("_construct_messages.json/part-*")
    statistics.write_text(statistics.read_text().replace('"version":2', '"version":1'))
    statistics.with_name(f".{statistics.name}.crc").unlink()
    with pytest.raises(QuadsError, match="another version"):
        read_quads(spark, path)


def test_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    none = spark.createDataFrame(
        [], "subject string, predicate string, object string, graph string"
    )
    assert write_quads(QuadTable.of(none), tmp_path / "t") == Statistics(0, True, {})
    assert read_quads(spark, tmp_path / "t").frame.count() == 0


def test_a_table_that_is_not_whole_is_none(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    frame = spark.createDataFrame(
        QUADS, "subject string, predicate string, object string, graph string"
    )
    frame.write.parquet(str(path))
    with pytest.raises(QuadsError, match="not a complete table"):
        read_quads(spark, path)
    with pytest.raises(QuadsError, match="not a complete table"):
        read_quads(spark, tmp_path / "absent")
    with pytest.raises(UsageError, match=r"has files that no earlier run has recorded: part-"):
        write_quads(frame, path, overwrite=True)
    shutil.rmtree(path)
    write_quads(frame, path, overwrite=True)
    frame.write.mode("append").parquet(str(path))
    with pytest.raises(QuadsError, match="other files") as caught:
        read_quads(spark, path)
    assert "QuadTable.of" in str(caught.value.hint)


@pytest.mark.parametrize("foreign", ["a.nt", "sub/a.nt", "_notes", ".hidden"])
def test_files_of_others_are_not_overwritten(
    spark: SparkSession, tmp_path: Path, foreign: str
) -> None:
    path = tmp_path / "table"
    frame = spark.createDataFrame(
        QUADS, "subject string, predicate string, object string, graph string"
    )
    write_quads(frame, path)
    (path / foreign).parent.mkdir(exist_ok=True)
    (path / foreign).write_text("notes")
    with pytest.raises(UsageError, match="no earlier run has recorded"):
        write_quads(frame, path, overwrite=True)
    assert (path / foreign).read_text() == "notes"
    assert spark.read.parquet(str(path / "part-*.parquet")).count() == len(QUADS)


@pytest.mark.parametrize("name", ["table", "table/../table", "link"])
def test_a_table_is_not_written_over_what_it_reads(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    (tmp_path / "link").symlink_to("table")
    frame = spark.createDataFrame(
        QUADS, "subject string, predicate string, object string, graph string"
    )
    write_quads(frame, tmp_path / "table")
    table = read_quads(spark, tmp_path / "table")
    with pytest.raises(UsageError, match="is what is read"):
        write_quads(table.frame.distinct(), tmp_path / name, overwrite=True)
    assert read_quads(spark, tmp_path / "table").statistics == STATISTICS


def test_a_failed_load_leaves_no_table(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_bytes(MALFORMED)
    with pytest.raises(QuadsError, match=r"a\.nt: malformed line \d+: "):
        write_quads(load_quads(spark, tmp_path / "a.nt"), tmp_path / "table")
    with pytest.raises(QuadsError, match="not a complete table"):
        read_quads(spark, tmp_path / "table")
