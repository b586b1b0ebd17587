"""Tables of quads: what is written, replaced and refused, and that nothing looks whole after an interruption."""

from __future__ import annotations

import bz2
import fcntl
import gzip
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pyoxigraph as ox
import pytest

pytest.importorskip("duckdb")

import duckdb

from construct_messages import construct_messages
from construct_messages.errors import CannotWrite, QuadsError, UsageError
from construct_messages.rdf.terms import from_pyoxigraph, map_blanks
from construct_messages.sparql.relational import quads
from construct_messages.sparql.relational.quads import RECORD, load, read_quads

# what the compiled module leaves to the parser: relative spaces, escapes, comments, CRLF, tags in capitals
LINES = (
    '<urn:a> <urn:p> "x" .\n'
    '<urn:a>   <urn:p>\t"\\u0041\\n\\"" .\r\n'
    '# a comment\n\n<urn:a> <urn:p> "chat"@EN . # behind it\n'
    "_:b <urn:q> _:c .\n"
    "_:b <urn:q> _:c .\n"
    '<urn:a> <urn:p> "x"^^<http://www.w3.org/2001/XMLSchema#string> .\n'
    '<urn:a> <urn:p> "\\u0001 é😀" .'
)


def rows_of(folder: Path) -> list[tuple[str | None, ...]]:
    files = [str(path) for path in read_quads(folder).files]
    # by no means DuckDB's columns of folders such as `graph=2024`
    quads = (
        "SELECT subject, predicate, object, graph FROM read_parquet(?, hive_partitioning = FALSE)"
    )
    return duckdb.connect().execute(f"{quads} ORDER BY ALL", [files]).fetchall() if files else []


def by_pyoxigraph(text: str, format: ox.RdfFormat) -> set[tuple[str | None, ...]]:
    found = set()
    for quad in ox.parse(text, format):
        graph = None if isinstance(quad.graph_name, ox.DefaultGraph) else quad.graph_name
        parts = (quad.subject, quad.predicate, quad.object, graph)
        found.add(tuple(None if part is None else from_pyoxigraph(part) for part in parts))
    return found


def unscoped(rows: list[tuple[str | None, ...]]) -> set[tuple[str | None, ...]]:
    return {
        tuple(
            None
            if term is None
            else map_blanks(
                term, lambda node: type(node)("_:" + node.partition("_")[2].partition("_")[2])
            )
            for term in row
        )
        for row in rows
    }


def test_lines_are_as_the_parser_reads_them(tmp_path: Path) -> None:
    source = tmp_path / "a.nt"
    source.write_bytes(LINES.encode())
    statistics = load([source], tmp_path / "a.quads")
    found = rows_of(tmp_path / "a.quads")
    assert unscoped(found) == by_pyoxigraph(LINES, ox.RdfFormat.N_TRIPLES)
    assert statistics.rows == len(found) == 5
    assert statistics.distinct


@pytest.mark.parametrize("size", [16, 61, 1 << 20])
def test_blocks_may_end_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(quads, "_BLOCK", size)
    source = tmp_path / "a.nt"
    source.write_bytes(b"\xef\xbb\xbf" + LINES.encode())
    load([source], tmp_path / "a.quads")
    assert unscoped(rows_of(tmp_path / "a.quads")) == by_pyoxigraph(LINES, ox.RdfFormat.N_TRIPLES)


def test_other_formats_and_packings(tmp_path: Path) -> None:
    trig = "PREFIX : <urn:> :g { :a :p [ :q (1 2.50) ] } :a :p 'x'@en ."
    (tmp_path / "a.trig.bz2").write_bytes(bz2.compress(trig.encode()))
    (tmp_path / "b.nq.gz").write_bytes(gzip.compress(b"<urn:a> <urn:p> <urn:b> <urn:g> .\n"))
    (tmp_path / "c.rdf").write_text(
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:u="urn:">'
        '<rdf:Description rdf:about="urn:a"><u:p>é</u:p></rdf:Description></rdf:RDF>'
    )
    load([tmp_path / name for name in ("a.trig.bz2", "b.nq.gz", "c.rdf")], tmp_path / "t")
    found = rows_of(tmp_path / "t")
    assert len(found) == 9
    assert ("<urn:a>", "<urn:p>", "<urn:b>", "<urn:g>") in found
    assert ("<urn:a>", "<urn:p>", '"é"', None) in found
    assert not read_quads(tmp_path / "t").statistics.distinct
    assert read_quads(tmp_path / "t").repeated == {"<urn:p>"}


def test_blank_nodes_of_files_stay_apart(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.nt").write_text("_:x <urn:p> _:x .\n")
    load([tmp_path / "a.nt", tmp_path / "b.nt"], tmp_path / "t")
    (one, _, same, _), (other, *_) = rows_of(tmp_path / "t")
    assert one == same != other


def test_a_file_is_replaced_and_the_others_stay(tmp_path: Path) -> None:
    a, b, table = tmp_path / "a.nt", tmp_path / "b.nt", tmp_path / "t"
    a.write_text('<urn:a> <urn:p> "1" .\n')
    b.write_text('<urn:b> <urn:p> "2" .\n')
    load([a, b], table)
    before = set(read_quads(table).files)
    a.write_text('<urn:a> <urn:p> "3" .\n')
    statistics = load([a], table)
    assert [row[2] for row in rows_of(table)] == ['"3"', '"2"']
    assert statistics.rows == 2
    assert len(before & set(read_quads(table).files)) == 1
    assert len(list(table.glob("*.parquet"))) == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"<urn:a> <urn:p> .\n", "line 3"),
        (b'<urn:a> <urn:p> "\xff" .\n', "line 3 is not UTF-8"),
        (b"<relative> <urn:p> <urn:o> .\n", "line 3"),
        (b'"a" <urn:p> <urn:o> .\n', "line 3"),
        (b'<urn:a> <urn:p> "never ends\n', "line 3"),
    ],
)
def test_a_malformed_line_leaves_the_table_as_it_was(
    tmp_path: Path, line: bytes, said: str
) -> None:
    source, table = tmp_path / "a.nt", tmp_path / "t"
    source.write_bytes(b"<urn:a> <urn:p> <urn:b> .\n" * 2 + line + b"<urn:a> <urn:p> <urn:c> .\n")
    with pytest.raises(QuadsError, match=said) as raised:
        load([source], table)
    assert str(raised.value).count(str(source)) == 1
    with pytest.raises(QuadsError, match="not a complete table"):
        read_quads(table)
    source.write_text("<urn:a> <urn:p> <urn:b> .\n")
    load([source], table)
    whole = rows_of(table)
    source.write_bytes(line)
    with pytest.raises(QuadsError):
        load([source], table)
    assert rows_of(table) == whole
    assert sorted(path.name for path in table.iterdir()) == sorted(
        [RECORD, *(path.name for path in read_quads(table).files)]
    )


def test_packed_data_that_was_cut_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "a.nt.bz2"
    source.write_bytes(bz2.compress(b"<urn:a> <urn:p> <urn:b> .\n" * 10_000)[:-20])
    with pytest.raises(QuadsError):
        load([source], tmp_path / "t")


def test_data_in_several_streams(tmp_path: Path) -> None:
    lines = [f"<urn:a> <urn:p> <urn:{n}> .\n".encode() for n in range(3)]
    (tmp_path / "a.nt.bz2").write_bytes(b"".join(map(bz2.compress, lines)))
    (tmp_path / "b.nt.gz").write_bytes(b"".join(map(gzip.compress, lines)) + b"\0" * 512)
    for name in ("a.nt.bz2", "b.nt.gz"):
        assert load([tmp_path / name], tmp_path / name[0]).rows == 3
    whole = gzip.compress(b"".join(lines) * 10_000)
    (tmp_path / "b.nt.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(QuadsError, match=r"b\.nt\.gz: the data end early"):
        load([tmp_path / "b.nt.gz"], tmp_path / "b")
    assert len(rows_of(tmp_path / "b")) == 3


def test_a_file_that_is_named_twice_or_has_a_namesake(tmp_path: Path) -> None:
    paths = [tmp_path / folder / "a.nt" for folder in ("one", "other")]
    for number, path in enumerate(paths):
        path.parent.mkdir()
        path.write_text(f"_:b <urn:p> <urn:{number}> .\n")
    read: list[str] = []
    load([*paths, paths[0]], tmp_path / "t", report=lambda name, *_: read.append(name))
    assert read == list(map(str, paths))
    assert len({row[0] for row in rows_of(tmp_path / "t")}) == 2
    assert len(list((tmp_path / "t").glob("*.parquet"))) == 2


@pytest.mark.parametrize("name", ["graph=é x", "subject=__HIVE_DEFAULT_PARTITION__", "a%20[1]*?'"])
def test_names_that_mean_something_to_duckdb(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "predicate=1 é%3D.nt").write_text("<urn:a> <urn:p> <urn:b> .\n")
    load(folder.iterdir(), folder / "object=t")
    assert rows_of(folder / "object=t") == [("<urn:a>", "<urn:p>", "<urn:b>", None)]
    (message,) = construct_messages("CONSTRUCT WHERE { ?s ?p ?o }", folder / "object=t")
    assert message.lines == b"<urn:a> <urn:p> <urn:b> .\n"


def test_a_file_that_changes_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, table = tmp_path / "a.nt", tmp_path / "t"
    source.write_text('<urn:a> <urn:p> "1" .\n')
    load([source], table)
    figures = quads._state

    def grown(path: Path) -> object:
        """What it is before it is read; then it grows."""
        before = figures(path)
        with path.open("a") as file:
            file.write('<urn:a> <urn:p> "2" .\n')
        return before

    with monkeypatch.context() as patched:
        patched.setattr(quads, "_state", grown)
        with pytest.raises(QuadsError, match=r"a\.nt changed while it was read"):
            load([source], table)
    assert [row[2] for row in rows_of(table)] == ['"1"']
    load([source], table)
    assert [row[2] for row in rows_of(table)] == ['"1"', '"2"']


def test_graphs_in_n_triples_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("<urn:a> <urn:p> <urn:b> .\n<urn:a> <urn:p> <urn:b> <urn:g> .\n")
    with pytest.raises(QuadsError, match="line 2"):
        load([tmp_path / "a.nt"], tmp_path / "t")
    (tmp_path / "a.nt").rename(tmp_path / "a.nq")
    load([tmp_path / "a.nq"], tmp_path / "t")
    assert {row[3] for row in rows_of(tmp_path / "t")} == {None, "<urn:g>"}


def test_folders_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("<urn:a> <urn:p> <urn:b> .\n")
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"mine\.txt"):
        load([tmp_path / "a.nt"], tmp_path / "t")
    with pytest.raises(CannotWrite):
        load([tmp_path / "a.nt"], tmp_path / "a.nt" / "t")
    with pytest.raises(UsageError, match="not an RDF format"):
        load([tmp_path / "t" / "mine.txt"], tmp_path / "u")
    assert (tmp_path / "t" / "mine.txt").read_text() == "mine"


def test_other_versions_and_missing_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("<urn:a> <urn:p> <urn:b> .\n")
    load([tmp_path / "a.nt"], tmp_path / "t")
    (file,) = read_quads(tmp_path / "t").files
    file.rename(tmp_path / "elsewhere")
    with pytest.raises(QuadsError, match="is missing"):
        read_quads(tmp_path / "t")
    (part,) = (tmp_path / "t" / RECORD).iterdir()
    for other in (
        '{"version": 99}',
        '{"version": 1, "files": ["f"], "predicates": {"<urn:p>": [1]}}',
    ):
        part.write_text(other)
        with pytest.raises(QuadsError, match="another version"):
            read_quads(tmp_path / "t")


def test_a_record_without_its_part_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("<urn:a> <urn:p> <urn:b> .\n")
    (tmp_path / "t" / RECORD).mkdir(parents=True)
    with pytest.raises(QuadsError, match="not a complete table"):
        read_quads(tmp_path / "t")
    load([tmp_path / "a.nt"], tmp_path / "t")
    assert len(rows_of(tmp_path / "t")) == 1


def test_two_loads_at_once_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("<urn:a> <urn:p> <urn:b> .\n")
    load([tmp_path / "a.nt"], tmp_path / "t")
    descriptor = os.open(tmp_path / "t", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(UsageError, match="another process"):
        load([tmp_path / "a.nt"], tmp_path / "t")
    os.close(descriptor)
    assert load([tmp_path / "a.nt"], tmp_path / "t").rows == 1


def size_of(table: Path) -> int | None:
    """The rows of a table; None: it is refused as incomplete."""
    try:
        return len(rows_of(table))
    except QuadsError as error:
        if "not a complete table" not in str(error):
            raise
        return None


def test_a_load_that_is_killed_leaves_nothing_that_looks_whole(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """The table is the old or the new one; a new folder is no table, or the whole one. Another load clears the rest."""
    count = pytestconfig.getoption("--kills")
    random, table, source = Random(count), tmp_path / "t", tmp_path / "a.nt"
    other = tmp_path / "b.nt"
    other.write_text("<urn:b> <urn:p> <urn:o> .\n")
    lines = [f'<urn:s{n}> <urn:p{n % 9}> "{n}" .\n' for n in range(60_000)]
    source.write_text("".join(lines))
    command = [sys.executable, "-m", "construct_messages", "load", "--quiet", "--threads", "1"]
    began = time.monotonic()
    subprocess.run([*command, str(source), "--output", str(tmp_path / "timed")], check=True)
    seconds = time.monotonic() - began
    whole = {60_001}
    for number in range(count):
        known = size_of(table)
        process = subprocess.Popen([*command, str(source), str(other), "--output", str(table)])
        time.sleep(random.uniform(0.2, 1.0) * seconds)
        process.kill()
        process.wait()
        found = size_of(table)
        assert found == known or found in whole, number
        if number % 3 == 0:  # begins without a table again
            shutil.rmtree(table, ignore_errors=True)
    load([source, other], table)
    assert len(rows_of(table)) == 60_001
    assert len(list(table.iterdir())) == 3  # the record and two files


def test_terms_that_are_not_rdf(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.nt").write_text(
        '<urn:a> <urn:p> "x"@toolonglanguage .\n<urn:a> <urn:p> <urn:a b> .\n<urn:a> <urn:p> <urn:c> .\n'
    )
    (tmp_path / "b.ttl").write_text("<urn:b> <urn:p> <urn:%4>, <urn:c> .")
    sources = [tmp_path / "a.nt", tmp_path / "b.ttl"]
    for source in sources:
        with pytest.raises(QuadsError, match=source.name):
            load([source], tmp_path / "strict")
    kept: dict[str, int] = {}
    load(
        sources,
        tmp_path / "t",
        lenient=True,
        report=lambda name, rows, _: kept.update({name: rows}),
    )
    assert list(kept.values()) == [3, 2]
    assert "<urn:a%20b>" in [row[2] for row in rows_of(tmp_path / "t")]
    said = []
    load(
        sources,
        tmp_path / "t",
        lenient="skip",
        report=lambda _, rows, found: said.append((rows, str(found))),
    )
    assert [rows for rows, _ in said] == [1, 1]
    assert all(text.startswith("left out") for _, text in said)
    assert "line 2 is left out: <urn:a> <urn:p> <urn:a b> ." in caplog.text
    (tmp_path / "c.nt").write_text("<urn:a> <urn:p>\n")  # no statement at all
    with pytest.raises(QuadsError, match="line 1"):
        load([tmp_path / "c.nt"], tmp_path / "t", lenient="skip")
