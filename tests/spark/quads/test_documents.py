"""Documents in a worker: the formats of files by their names, quads of their content, and what is wrong with them."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Iterator

import pytest
import zstandard

from construct_messages.errors import QuadsError

pytest.importorskip("pyarrow")
import pyarrow as pa

from construct_messages.spark.quads.documents import failures, quads, reasons

TURTLE = b"<#a> <p> [ <urn:q> _:x ], _:x ; <urn:r> <<( <urn:s> <urn:p> _:x )>> ."


def batches(*files: tuple[str, bytes]) -> Iterator[pa.RecordBatch]:
    for file, content in files:
        yield pa.RecordBatch.from_pydict({"file": [file], "content": [content]})


def read(*files: tuple[str, bytes], format: str | None = None) -> list[tuple[str | None, ...]]:
    return [
        tuple(row.values()) for batch in quads(format)(batches(*files)) for row in batch.to_pylist()
    ]


def test_blank_nodes_have_the_same_labels_in_each_evaluation_and_others_in_each_file() -> None:
    one, again, other = (
        read((file, TURTLE)) for file in ("file:///d/a.ttl", "file:///d/a.ttl", "file:///d/b.ttl")
    )
    assert one == again
    assert "<file:///d/a.ttl#a>" in {row[0] for row in one}
    labels = {term for row in one for term in row if term and term.startswith("_:")}
    assert len(labels) == 2
    assert all(
        (label.startswith("_:f") and f"{label} )>>" in str(one)) or label.endswith("b0")
        for label in labels
    )
    assert not labels & {term for row in other for term in row}


@pytest.mark.parametrize(
    ("extension", "pack"),
    [
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
        (".zst", zstandard.compress),
        ("", bytes),
    ],
    ids=["gz", "bz2", "xz", "zst", "plain"],
)
def test_packed_files_are_unpacked_whole_or_refused(extension: str, pack: object) -> None:
    assert callable(pack)
    content = pack(b"<urn:s> <urn:p> 'o'@EN .")
    assert read((f"file:///a.ttl{extension}", content)) == [("<urn:s>", "<urn:p>", '"o"@en', None)]
    with pytest.raises(QuadsError, match=r"file:///a\.ttl"):
        read((f"file:///a.ttl{extension}", content[:-3]))


@pytest.mark.slow
def test_batches_are_bounded() -> None:
    content = b"".join(b"<urn:s> <urn:p> '%d' .\n" % number for number in range(25_000))
    sizes = [batch.num_rows for batch in quads(None)(batches(("file:///a.ttl", content)))]
    assert sizes == [10_000, 10_000, 5_000]
    content = b"".join(
        b"<urn:s> <urn:p> '%s' .\n" % (b"%d" % number * 1_000_000) for number in range(10, 50)
    )
    assert len(list(quads(None)(batches(("file:///a.ttl", content))))) > 2


def test_failures_name_files_and_reasons_name_lines() -> None:
    files = batches(
        ("file:///a.ttl", TURTLE),
        ("file:///b.ttl", b"<urn:s> <urn:p> .\n"),
        ("file:///c.ttl.gz", b"x"),
    )
    rows = [row for batch in failures(None)(files) for row in batch.to_pylist()]
    assert [(row["file"], row["text"]) for row in rows] == [
        ("file:///b.ttl", None),
        ("file:///c.ttl.gz", None),
    ]
    assert "line 1" in rows[0]["reason"]
    batch = pa.RecordBatch.from_pydict(
        {"file": ["f", "f"], "line": [7, 9], "text": [b"<urn:s> <urn:p> <rel> .", b"\xff"]}
    )
    rows = [row for batch in reasons(graphs=True)(iter([batch])) for row in batch.to_pylist()]
    assert [(row["line"], row["text"]) for row in rows] == [
        (7, "<urn:s> <urn:p> <rel> ."),
        (9, "\ufffd"),
    ]
    assert "No scheme found" in rows[0]["reason"]


def test_rdf_xml_is_read_whole() -> None:
    """Issue 26, 7: what pyoxigraph's reader loses; errors say where."""
    document = (
        b'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">\n'
        b'<e:C r:about="a"><e:p r:parseType="other">x</e:p></e:C></r:RDF>'
    )
    rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    assert set(read(("http://h/x.rdf", document))) == {
        ("<http://h/a>", f"<{rdf}type>", "<http://e/C>", None),
        ("<http://h/a>", "<http://e/p>", f'"x"^^<{rdf}XMLLiteral>', None),
    }
    with pytest.raises(QuadsError, match=r"x\.rdf: .*line 2 column 18: rdf:bagID"):
        read(("http://h/x.rdf", document.replace(b"r:parseType", b"r:bagID")))
