"""`sparql/sources/files.py`: RDF files, packed or not, and store directories."""

from __future__ import annotations

import bz2
import gzip
import lzma
import subprocess
import sys
import zlib
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path

import pyoxigraph as ox
import pytest
import rdflib
import zstandard

from construct_messages import Requests, construct_messages
from construct_messages.errors import SourceError, UsageError
from construct_messages.rdf.files.output import atomic_file
from construct_messages.rdf.formats.media_types import DOCUMENTS, DocumentFormat
from construct_messages.sparql.sources.files import load_files, load_open_file, open_directory
from construct_messages.sparql.sources.open import open_source

QUERY = "CONSTRUCT WHERE { ?s ?p ?o }"
TURTLE = b"@prefix ex: <http://example.org/> . ex:a ex:p [ ex:q <relative> ] ."
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("packed", PACKERS)
def test_a_file_packed_or_not(packed: str, tmp_path: Path) -> None:
    path = tmp_path / f"data.TTL{packed}"
    path.write_bytes(PACKERS[packed](TURTLE))
    store = load_files([path])
    assert len(store) == 2
    relative = ox.NamedNode((tmp_path / "relative").as_uri())
    assert list(store.quads_for_pattern(None, None, relative)), (
        "relative IRIs resolve against the file"
    )


@pytest.mark.parametrize("packed", [extension for extension in PACKERS if extension])
def test_a_cut_packed_file_is_an_error(packed: str, tmp_path: Path) -> None:
    path = tmp_path / f"data.nt{packed}"
    lines = b"".join(
        b"<http://example.org/%d> <http://example.org/p> <http://example.org/o> .\n" % n
        for n in range(9999)
    )
    data = PACKERS[packed](lines)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(SourceError, match=r"data\.nt"):
        load_files([path])


FORMATS = [ox.RdfFormat.N_TRIPLES, ox.RdfFormat.N_QUADS, ox.RdfFormat.TURTLE, ox.RdfFormat.TRIG]
FORMATS += [ox.RdfFormat.RDF_XML, ox.RdfFormat.JSON_LD]


@pytest.mark.parametrize("format", FORMATS, ids=str)
def test_every_format(format: ox.RdfFormat, tmp_path: Path) -> None:
    path = tmp_path / f"data.{format.file_extension}"
    quad = ox.Quad(
        ox.NamedNode("http://example.org/s"), ox.NamedNode("http://example.org/p"), ox.Literal("é")
    )
    path.write_bytes(ox.serialize([quad], format=format) or b"")
    assert list(load_files([path])) == [quad]


RDF_XML = b"""<?xml version="1.0" encoding="iso-8859-1"?>
<!DOCTYPE r:RDF [<!ENTITY e "http://e/">]>
<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="&e;" xml:lang="en">
  <r:Description r:about="relative">
    <e:p r:parseType="daml:collection"><e:x/></e:p>
    <e:p xml:lang="">\xe9<!-- c --></e:p>
    <e:q r:nodeID="b"/>
  </r:Description>
</r:RDF>"""


@pytest.mark.parametrize("packed", PACKERS)
def test_rdf_xml_is_read_whole(packed: str, tmp_path: Path) -> None:
    """Issue 26, 7: what pyoxigraph's reader loses or refuses; blank nodes of two files stay apart."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.rdf{packed}").write_bytes(PACKERS[packed](RDF_XML))
    store = load_files([tmp_path / f"a.rdf{packed}", tmp_path / f"b.rdf{packed}"])
    subject = f"<{(tmp_path / 'relative').as_uri()}>"
    literal = ox.Literal(
        '<e:x xmlns:e="http://e/"></e:x>',
        datatype=ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral"),
    )
    found = {(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in store}
    assert {triple for triple in found if not triple[2].startswith("_:")} == {
        (subject, "<http://e/p>", str(literal)),
        (subject, "<http://e/p>", '"\u00e9"'),
    }
    assert len(found) == 4


@pytest.mark.parametrize("lenient", [False, True])
def test_an_error_of_rdf_xml_says_where(lenient: bool, tmp_path: Path) -> None:
    for name, replaced, by, line in (
        ("IRI", b"&e;", b"relative", 5),
        ("value", b"r:nodeID", b"r:resource='urn:o' r:nodeID", 7),
        ("entity", b"daml:", b"&daml;", 5),
        ("end", b"</r:RDF>", b"", 9),
        ("external", b'"http://e/"', b'SYSTEM "file:///etc/passwd"', 3),
    ):
        path = tmp_path / f"{name}.owl"
        path.write_bytes(RDF_XML.replace(replaced, by))
        if name == "IRI" and lenient:
            assert len(load_files([path], lenient=True)) == 3
            continue
        with pytest.raises(SourceError, match=rf"{name}\.owl: .*line {line}\b"):
            load_files([path], lenient=lenient)


@pytest.mark.parametrize("extension", ["nt", "ttl", "rdf"])
def test_a_literal_that_is_too_long_is_an_error(extension: str, tmp_path: Path) -> None:
    """No `MemoryError`: the machine has room, and the file is named."""
    text = "x" * (17 << 20)
    path = tmp_path / f"long.{extension}"
    if extension == "rdf":
        path.write_bytes(RDF_XML.replace(b"daml:", b"").replace(b"<e:x/>", text.encode()))
    else:
        path.write_text(f'<urn:s> <urn:p> "{text}" .')
    with pytest.raises(SourceError, match=rf"long\.{extension}: a term is too long"):
        load_files([path])


# flushed so that a statement is whole where the data are cut
CUT: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: (
        (packer := zlib.compressobj(wbits=31)).compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)
    ),
    ".zst": lambda data: (
        (packer := zstandard.ZstdCompressor().compressobj()).compress(data)
        + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    ),
}


@pytest.mark.parametrize("packing", CUT)
def test_packed_files_that_were_cut(packing: str, tmp_path: Path) -> None:
    path = tmp_path / f"data.nt{packing}"
    path.write_bytes(CUT[packing](b"<urn:s> <urn:p> <urn:o> .\n"))
    with pytest.raises(SourceError, match="the data end early"):
        load_files([path])


def test_a_packed_file_that_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "data.nt.gz"
    path.write_bytes(gzip.compress(b"<urn:s> <urn:p> <urn:o> .\n" * 9)[:-9] + b"\xff" * 9)
    with pytest.raises(SourceError, match=r"data\.nt\.gz: "):
        load_files([path])


def test_blank_nodes_of_two_files_stay_apart(tmp_path: Path) -> None:
    for name in ("a.nt", "b.nt"):
        (tmp_path / name).write_text("_:b <http://example.org/p> <http://example.org/o> .")
    store = load_files([tmp_path / "a.nt", tmp_path / "b.nt"])
    assert len({str(quad.subject) for quad in store}) == 2


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        load_files([tmp_path / "absent.ttl"])
    (tmp_path / "data.doc.gz").write_bytes(b"")
    with pytest.raises(UsageError, match="is not an RDF format"):
        load_files([tmp_path / "data.doc.gz"])
    (tmp_path / "bad.ttl").write_text("ex:a ex:b\n ex:c .")
    with pytest.raises(SourceError, match=r"bad\.ttl: .*line 1"):
        load_files([tmp_path / "bad.ttl"])


def test_a_store_directory(tmp_path: Path) -> None:
    store = ox.Store(tmp_path / "store")
    store.add(ox.Quad(ox.NamedNode("urn:s"), ox.NamedNode("urn:p"), ox.Literal(1)))
    store.flush()
    with pytest.raises(SourceError, match="open for writing elsewhere"):
        open_directory(tmp_path / "store")
    # looking must not have cost the writer its lock
    with pytest.raises(SourceError, match="open for writing elsewhere"):
        open_directory(tmp_path / "store")
    assert len(open_directory(tmp_path / "store", allow_stale=True)) == 1
    del store
    assert len(open_directory(tmp_path / "store")) == 1


def test_a_writer_in_another_process(tmp_path: Path) -> None:
    code = "import sys, pyoxigraph; s = pyoxigraph.Store(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    writer = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "store")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert writer.stdin is not None
    assert writer.stdout is not None
    with writer:
        writer.stdout.readline()
        with pytest.raises(SourceError, match="stop the writer"):
            open_directory(tmp_path / "store")
        writer.stdin.close()
        writer.wait()
    assert len(open_directory(tmp_path / "store")) == 0


def test_what_is_no_store_directory(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not an Oxigraph store directory"):
        open_directory(tmp_path)


@pytest.mark.parametrize(
    "format", [each for each in DOCUMENTS if each.written], ids=attrgetter("name")
)
@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
@pytest.mark.parametrize("named", [True, False])
def test_an_open_file(format: DocumentFormat, packed: str, named: bool, tmp_path: Path) -> None:
    """rdflib writes the documents."""
    graph = rdflib.Dataset()
    for number in range(300):
        subject = rdflib.URIRef(f"http://example.org/{number}")
        graph.add((subject, rdflib.URIRef("http://example.org/p"), rdflib.Literal("é " * 20)))
    written = graph.serialize(format=format.media_type, encoding="utf-8")
    with atomic_file(tmp_path / f"data{packed}") as file:
        file.write(written)
    with (tmp_path / f"data{packed}").open("rb") as opened:
        store = load_open_file(opened, format.extensions[0] if named else None)
    assert {quad.subject.value for quad in store} == {str(node) for node in graph.subjects()}


def test_file_urls_and_named_formats(tmp_path: Path) -> None:
    path = tmp_path / "some data.unknown"
    path.write_text("<urn:s> <urn:p> 1 .")
    for source in (str(path), path.as_uri(), path.as_uri().replace("file://", "FILE://localhost")):
        requests = Requests(source_format="text/turtle")
        assert len(list(construct_messages(QUERY, source, requests=requests))) == 1
    with pytest.raises(UsageError, match="a file of the host"):
        open_source("file://example.org/data.ttl")
    with pytest.raises(UsageError, match="unheard is no format of documents"):
        open_source(path, source_format="unheard")
    with pytest.raises(UsageError) as refused:
        open_source(path)
    assert refused.value.hint is not None
    assert refused.value.hint.startswith("name its format, or end its name")
    with path.open() as text, pytest.raises(UsageError, match="open for text"):
        open_source(text)  # type: ignore[arg-type]
