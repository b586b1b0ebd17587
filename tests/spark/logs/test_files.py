"""Logs on Spark without Spark: what options mean, which files are found, and what tasks read."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from construct_messages.errors import (
    ConstructMessagesError,
    IncompleteResult,
    LimitExceeded,
    LogError,
    UsageError,
)
from construct_messages.logs import MESSAGE_BYTES
from construct_messages.logs.jelly.options import JellyOptions, LogicalType
from construct_messages.logs.lines.decoder import to_messages, to_text
from construct_messages.logs.reading import read_log
from construct_messages.logs.writing import write_log
from construct_messages.rdf.formats import N_QUADS, RDFM
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import Term, iri, triple
from construct_messages.spark.logs.files import File, find, place_of, read_from, remove_folder
from construct_messages.spark.logs.options import ReadOptions, WriteOptions
from construct_messages.spark.logs.source import Block, partitions, texts_of
from tests.support.logs.kinds import KINDS, Kind, isomorphic, write
from tests.support.logs.seeds import DIRECTIONS, GRAPHS, PLAIN, TRIPLE_TERMS

A, B = "<urn:a> <urn:p> <urn:o> .", "<urn:b> <urn:p> <urn:o> ."
LOG = f"# @message\n{A}\n# @message\n{B}\n".encode()


def read_texts(options: ReadOptions) -> list[tuple[Block, str]]:
    """What all tasks read, in order."""
    files = [file for path in options.paths for file in find(path)]
    return [
        (block, text)
        for blocks in partitions(files, options)
        for block in blocks
        for text in texts_of(block, options)
    ]


def read_all(path: Path, **options: object) -> list[Message]:
    given = {name.lower(): str(value) for name, value in options.items()}
    return to_messages(
        [text for _, text in read_texts(ReadOptions.of({"path": str(path), **given}))]
    )


def test_a_flat_jelly_stream_keeps_its_nodes(tmp_path: Path) -> None:
    """Issue 13, 6: rows of a DataFrame share a node where frames do."""
    quads = [Quad(Term("_:a"), iri("urn:p"), Term(f"_:b{number}")) for number in range(3)]
    flat = JellyOptions(logical_type=LogicalType.FLAT_TRIPLES)
    write_log([Message([quad]) for quad in quads], tmp_path / "log.jelly", options=flat)
    first, *others = [quad for message in read_all(tmp_path) for quad in message]
    assert [quad.subject for quad in others] == [first.subject] * 2
    assert len({quad.object for quad in (first, *others)}) == 3


# --- options ---------------------------------------------------------------------------------------------------------

WRONG_TO_READ = {
    "no path": ({}, "no path to read"),
    "an unknown option": ({"path": "x", "sep": ","}, "unknown option sep"),
    "an unknown format": ({"path": "x", "format": "csv"}, "unknown format 'csv'"),
    "an unknown syntax": ({"path": "x", "syntax": "2.0"}, "unknown message syntax '2.0'"),
    "a syntax beside a format of its own": (
        {"path": "x", "format": "jelly", "syntax": "rdfm"},
        "by itself",
    ),
    "no number of bytes": (
        {"path": "x", "maxpartitionbytes": "much"},
        "maxPartitionBytes=much is not a number of bytes",
    ),
    "no bytes": ({"path": "x", "messagebytes": "0k"}, "messageBytes=0k is not a number of bytes"),
    "no JSON": ({"path": "x", "contexts": "{"}, "contexts is not JSON"),
    "no object": ({"path": "x", "contexts": "[]"}, "contexts is not a JSON object"),
}


@pytest.mark.parametrize("case", WRONG_TO_READ)
def test_wrong_options_to_read(case: str) -> None:
    options, message = WRONG_TO_READ[case]
    with pytest.raises(UsageError) as caught:
        ReadOptions.of(options)
    assert message in caught.value.message
    assert caught.value.hint


WRONG_TO_WRITE = {
    "no path": ({}, "no path to write"),
    "several paths": ({"paths": '["x", "y"]'}, "2 paths to write to"),
    "an unknown option": (
        {"path": "x", "maxpartitionbytes": "1"},
        "unknown option maxpartitionbytes",
    ),
    "an unknown format": ({"path": "x", "format": "csv"}, "unknown format 'csv'"),
    "a syntax beside a format of its own": (
        {"path": "x", "format": "jelly", "syntax": "rdfm"},
        "by itself",
    ),
    "an unknown compression": (
        {"path": "x", "compression": "snappy"},
        "compression=snappy is not known",
    ),
    "neither true nor false": (
        {"path": "x", "single": "yes"},
        "single=yes is neither true nor false",
    ),
    "an option of Jelly": (
        {"path": "x", "format": "jelly", "jelly": '{"star": true}'},
        "unknown option 'star' of Jelly",
    ),
    "a value of Jelly": (
        {"path": "x", "format": "jelly", "jelly": '{"rdf_star": 2}'},
        "rdf_star=2 is neither true",
    ),
    "Jelly beside another format": (
        {"path": "x", "jelly": "{}"},
        "options of Jelly have no meaning for N-Quads",
    ),
}


@pytest.mark.parametrize("case", WRONG_TO_WRITE)
def test_wrong_options_to_write(case: str) -> None:
    options, message = WRONG_TO_WRITE[case]
    with pytest.raises(UsageError) as caught:
        WriteOptions.of(options)
    assert message in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("3k", 3072), ("2 MB", 2 << 20), ("1GiB", 1 << 30), ("1t", 1 << 40)],
    ids=str,
)
def test_numbers_of_bytes(text: str, size: int) -> None:
    assert ReadOptions.of({"path": "x", "maxpartitionbytes": text}).max_partition_bytes == size


def test_defaults() -> None:
    assert ReadOptions.of({"path": "x"}) == ReadOptions(("x",), message_bytes=MESSAGE_BYTES)
    written = WriteOptions.of({"path": "logs.ttl.gz"})
    assert (written.format, written.syntax, written.packing, written.single) == (
        N_QUADS,
        RDFM,
        "",
        False,
    )
    # of a single log the name tells
    written = WriteOptions.of({"path": "log.ttl.gz", "single": "true"})
    assert (written.format.name, written.packing) == ("Turtle", ".gz")


# --- files -----------------------------------------------------------------------------------------------------------

FOUND: dict[str, list[str]] = {
    "b.nq": ["b.nq"],
    "": ["a.nt", "b.nq", "deep/er/d.nq", "deep/f.trig", "[x].nq"],
    "deep": ["deep/er/d.nq", "deep/f.trig"],
    "*.nq": ["[x].nq", "b.nq"],
    "?.n[qt]": ["a.nt", "b.nq"],
    "[x].nq": ["[x].nq"],
    "deep/*": ["deep/er/d.nq", "deep/f.trig"],
    "*/*.trig": ["deep/f.trig"],
    "*/er": ["deep/er/d.nq"],
    "_x.nq": ["_x.nq"],
    "_*.nq": ["_x.nq"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "a.nt",
        "b.nq",
        "[x].nq",
        "_x.nq",
        "_SUCCESS",
        ".hidden.nq",
        "deep/er/d.nq",
        "deep/f.trig",
        "_temporary/g.nq",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


@pytest.mark.parametrize("prefix", ["", "file:", "file://"], ids=["path", "file:", "file://"])
@pytest.mark.parametrize("path", FOUND)
def test_files_that_are_found(path: str, prefix: str, folder: Path) -> None:
    expected = sorted((f"file://{folder}/{name}", len(name)) for name in FOUND[path])
    assert [(file.uri, file.size) for file in find(f"{prefix}{folder}/{path}")] == expected


@pytest.mark.parametrize("path", ["nothing.nq", "*.ttl", "b.nq/*", "nothing/*.nq"])
def test_no_files(path: str, folder: Path) -> None:
    with pytest.raises(UsageError, match="there are no files at") as caught:
        find(f"{folder}/{path}")
    assert caught.value.hint


def test_relative_paths(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert [(file.uri, file.size) for file in find("deep/../b.nq")] == [
        (f"file://{folder}/b.nq", 4)
    ]


def test_other_file_systems() -> None:
    # pyarrow's own for tests, which is not the local one
    place = place_of("mock://x/logs")
    place.files.create_dir(f"{place.path}/deep")
    for name in ("a.nq", "deep/b.nq", "_c.nq"):
        with place.files.open_output_stream(f"{place.path}/{name}") as file:
            file.write(LOG)
    assert [file.uri for file in find("mock://x/logs")] == [
        "mock://x/logs/a.nq",
        "mock://x/logs/deep/b.nq",
    ]
    assert [file.uri for file in find("mock://x/*/*.nq")] == ["mock://x/logs/a.nq"]
    assert b"".join(read_from("mock://x/logs/deep/b.nq", 5)) == LOG[5:]
    assert [
        text for _, text in read_texts(ReadOptions(("mock://x/logs",), max_partition_bytes=30))
    ] == [A, B] * 2


@pytest.mark.parametrize("uri", ["ftp://example.org/a.nq", "dbfs:/a.nq", "logs:a.nq"])
def test_file_systems_that_are_missing(uri: str) -> None:
    with pytest.raises(UsageError, match="cannot reach") as caught:
        find(uri)
    assert "s3a:" in (caught.value.hint or "")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*gone\.nq"):
        next(read_from(f"{tmp_path}/gone.nq"))
    with pytest.raises((UsageError, IncompleteResult), match="cannot read"):
        next(read_from(str(tmp_path)))


def test_chunks_begin_anywhere_and_let_go(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"0123456789")
    chunks = read_from(str(tmp_path / "x"), 3)
    assert next(chunks) == b"3456789"
    chunks.close()


# --- texts -----------------------------------------------------------------------------------------------------------


def test_texts() -> None:
    x, y, p = Term("_:x"), Term("_:y"), iri("urn:p")
    message = Message([Quad(x, p, triple(y, p, Term('"_:x"'))), Quad(iri("urn:_:s"), p, y, x)])
    text = '_:x <urn:p> <<( _:y <urn:p> "_:x" )>> .\n<urn:_:s> <urn:p> _:y _:x .'
    assert to_text(message) == text
    assert to_messages([text]) == [message]
    assert to_text(Message()) == ""


def test_messages_of_texts() -> None:
    every = [*PLAIN, *GRAPHS, *TRIPLE_TERMS, *DIRECTIONS]
    texts = [to_text(message) for message in every]
    assert isomorphic(to_messages(texts), every)
    assert [
        to_text(message)
        for message in to_messages(["  # c\n\n<urn:a>  <urn:p> 'x'@EN.\r\n".replace("'", '"')])
    ] == ['<urn:a> <urn:p> "x"@en .']
    assert to_messages([]) == []


WRONG_TEXTS = {
    "no statement": ("nonsense", (1, 1), "subject"),
    "the second line": (f"{A}\nnonsense", (2, 1), "subject"),
    "a delimiter": (f"{A}\n# @message\n{B}", None, "a delimiter within a message"),
    "a delimiter after a statement": (f"{A} # @message", None, "a delimiter within a message"),
    "a delimiter of the labelled syntaxes": (f"{A}\nMESSAGE", (2, 1), "MESSAGE"),
    "an announcement": ('VERSION "1.2-messages"', (1, 1), "VERSION"),
}


@pytest.mark.parametrize("case", WRONG_TEXTS)
def test_texts_that_are_no_messages(case: str) -> None:
    text, position, word = WRONG_TEXTS[case]
    with pytest.raises(LogError) as caught:
        to_messages([A, "", text, B], first=11)
    assert (caught.value.number, caught.value.position) == (13, position)
    assert word in caught.value.message


# --- blocks ----------------------------------------------------------------------------------------------------------

EVERY = {
    kind: [
        *PLAIN,
        *(GRAPHS if kind.format.graphs else []),
        *(TRIPLE_TERMS if kind.syntax.triple_terms else []),
    ]
    for kind in KINDS
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_kind(kind: Kind, tmp_path: Path) -> None:
    (tmp_path / f"log.{kind.format.extension}").write_bytes(write(EVERY[kind], kind))
    whole = read_all(tmp_path)
    assert isomorphic(whole, EVERY[kind])
    for size in (1, 10, 100):
        assert isomorphic(read_all(tmp_path, maxPartitionBytes=size), whole)


PACKINGS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress}


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("named", [True, False], ids=["named", "not named"])
def test_packed(packing: str, named: bool, tmp_path: Path) -> None:
    name = f"log.nq{packing}" if named else "log.nq"
    (tmp_path / name).write_bytes(PACKINGS[packing](LOG))
    read = read_texts(ReadOptions((str(tmp_path),), max_partition_bytes=10))
    written = (tmp_path / name).stat().st_mtime_ns
    block = Block(f"file://{tmp_path}/{name}", 0, None if named else 10, written)
    assert read == [(block, A), (block, B)]


def test_archives(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "log.tar.gz", "w:gz") as archive:
        for number, document in enumerate((A, B)):
            member = tarfile.TarInfo(f"{number}.nt")
            member.size = len(document)
            archive.addfile(member, io.BytesIO(document.encode()))
    assert [
        text for _, text in read_texts(ReadOptions((str(tmp_path),), max_partition_bytes=10))
    ] == [
        A,
        B,
    ]


def test_what_is_announced_from_outside(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(f"{A}\nMESSAGE\n{B}\nMESSAGE\n".encode())
    for options in (
        {"format": "application/n-quads; version=1.2-messages"},
        {"format": "nt", "syntax": "1.2-messages"},
    ):
        for size in (1, 40):
            assert len(read_all(tmp_path, maxPartitionBytes=size, **options)) == 2
    with pytest.raises(LogError, match="MESSAGE without an announcement"):
        read_all(tmp_path, format="nq")


def test_contexts_and_bases(tmp_path: Path) -> None:
    (tmp_path / "log.ndjsonld").write_bytes(b'{"@context": "urn:c", "@id": "s", "p": "o"}\n')
    options = {"contexts": '{"urn:c": {"p": "urn:p"}}', "base": "http://example.org/"}
    assert read_all(tmp_path, **options) == to_messages(['<http://example.org/s> <urn:p> "o" .'])


def test_labels_hold_in_a_log_under_rdfm_and_in_a_message_elsewhere(tmp_path: Path) -> None:
    node = "_:x <urn:p> <urn:o> ."
    (tmp_path / "a.nq").write_bytes(f"# @message\n{node}\n".encode() * 3)
    (tmp_path / "b.nq").write_bytes(f"# @message\n{node}\n".encode() * 3)
    (tmp_path / "c.nq").write_bytes(b'VERSION "1.2-messages"\n' + f"{node}\nMESSAGE\n".encode() * 3)
    for size in (1, 35, 1000):
        nodes = [
            text.split(" ")[0]
            for _, text in read_texts(ReadOptions((str(tmp_path),), max_partition_bytes=size))
        ]
        assert [len(set(nodes[start : start + 3])) for start in (0, 3, 6)] == [1, 1, 3]
        assert len(set(nodes)) == 5


def test_labels_of_a_log_that_is_written_over_are_others(tmp_path: Path) -> None:
    """Issue 13, 7: else messages that were kept of the old log would share nodes with those of the new one."""
    log = tmp_path / "log.nq"
    log.write_bytes(b"_:x <urn:p> <urn:o> .\n")
    os.utime(log, ns=(1, 1))
    once, again = (
        [text for _, text in read_texts(ReadOptions((str(tmp_path),)))] for _ in range(2)
    )
    os.utime(log, ns=(2, 2))
    assert once == again != [text for _, text in read_texts(ReadOptions((str(tmp_path),)))]


def test_small_logs_share_a_partition() -> None:
    files = [File(f"{number}.nq", 40) for number in range(5)]
    assert [
        len(blocks) for blocks in partitions(files, ReadOptions((), max_partition_bytes=100))
    ] == [
        2,
        2,
        1,
    ]
    assert partitions([File("a.nq", 0)], ReadOptions(())) == []
    assert partitions([File("a.ttl", 0)], ReadOptions(())) == [(Block("a.ttl", 0, None),)]


def test_errors_name_their_block(tmp_path: Path) -> None:
    log = tmp_path / "log.nq"
    log.write_bytes(LOG + b"# @message\nnonsense\n")
    start = len(LOG) + 5
    for at, line, number in ((0, 6, 3), (start, 1, 1)):
        with pytest.raises(LogError) as caught:
            list(texts_of(Block(f"file://{log}", at, 200), ReadOptions(())))
        where = f"file://{log} from byte {at}" if at else f"file://{log}"
        assert str(caught.value).startswith(
            f"line {line}, column 1: message {number}: in {where}: "
        )
    with pytest.raises(LimitExceeded, match=f"in file://{log}: message 1 is longer than 20 bytes"):
        list(texts_of(Block(f"file://{log}", 0, 200), ReadOptions((), message_bytes=20)))


@pytest.mark.parametrize(
    ("name", "data"),
    [("log.nq.gz", gzip.compress(LOG)[:-4]), ("log.jelly", b"nonsense"), ("log.ttl", b"nonsense")],
    ids=["packed", "jelly", "turtle"],
)
def test_malformed_whole_logs(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ConstructMessagesError) as expected:
        list(read_log(tmp_path / name))
    with pytest.raises(type(expected.value), match=f"in file://{tmp_path}/{name}: "):
        read_all(tmp_path)


def test_a_folder_that_a_task_still_writes_to_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    place, late = place_of(str(folder)), iter(["a", "b"])

    class Files:
        def __getattr__(self, name: str) -> object:
            return getattr(place.files, name)

        def delete_dir(self, path: str) -> None:
            if name := next(late, None):
                (folder / name).touch()
                raise OSError(errno.ENOTEMPTY, "Directory not empty")
            place.files.delete_dir(path)

    remove_folder(place._replace(files=Files()))
    assert not folder.exists()
    remove_folder(place)


def test_a_folder_that_cannot_be_removed_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="not a directory"):
        remove_folder(place_of(f"{tmp_path}/file"))
