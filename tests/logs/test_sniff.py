"""`logs/sniff.py`: formats by their first bytes, however many come at once."""

from __future__ import annotations

import tarfile

import pyoxigraph as ox
import pytest

from construct_messages.logs import EncoderOptions, encoder_for
from construct_messages.logs.sniff import SNIFF_BYTES, is_archive, sniff
from construct_messages.rdf.formats import FORMATS, JELLY, N_QUADS, RDFM, TRIG, Format
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import iri, literal
from tests.support.places import shared_path

LINE = b"<http://example.org/s> <http://example.org/p> <http://example.org/o> .\n"
IN_GRAPH = LINE.replace(b" .", b" <http://example.org/g> .")

BEGINNINGS = {
    "nothing": (b"", "TriG"),
    "blanks": (b" \n\t\r\n", "TriG"),
    "a mark alone": (b"\xef\xbb\xbf", "TriG"),
    "a comment": (b"# nothing but this", "TriG"),
    "delimiters": (b"# @message\n# @message\n", "TriG"),
    "an announcement": (b'VERSION "1.2-messages"\nMESSAGE\n', "TriG"),
    "a triple": (LINE, "N-Quads"),
    "a quad": (IN_GRAPH, "N-Quads"),
    "a quad behind triples": (LINE * 3 + IN_GRAPH, "N-Quads"),
    "a labelled log": (
        b'VERSION "1.2-messages"\n' + LINE + b"MESSAGE\n" + IN_GRAPH + b"MESSAGE # the second\n",
        "N-Quads",
    ),
    "an rdfm log": (b"# @message\n" + LINE + b"# @message\n" + IN_GRAPH, "N-Quads"),
    "CRLF": (IN_GRAPH.replace(b"\n", b"\r\n"), "N-Quads"),
    "a triple term": (b'_:r <urn:p> <<( <urn:s> <urn:p> "o"@en--ltr )>> .', "N-Quads"),
    "a long first line": (
        b'<urn:s> <urn:p> "' + b"x" * 3 * SNIFF_BYTES + b'" <urn:g> .\n',
        "N-Quads",
    ),
    "many empty messages": (b"# @message\n" * SNIFF_BYTES + IN_GRAPH, "N-Quads"),
    "Turtle behind a triple": (
        LINE + b"<http://example.org/s> a <http://example.org/T> .\n",
        "TriG",
    ),
    "relative IRIs": (b"<s> <p> <o> .\n", "TriG"),
    "a predicate list": (LINE.replace(b" .", b" ;") + b"    a <http://example.org/T> .", "TriG"),
    "a prefix": (b"PREFIX ex: <http://example.org/>\n", "TriG"),
    "an old prefix": (b"@prefix ex: <http://example.org/> .\n", "TriG"),
    "a base": (b"base <http://example.org/>", "TriG"),
    "a graph": (b"{ <http://example.org/s> a <http://example.org/T> }", "TriG"),
    "a blank node": (b"[ <http://example.org/p> 1 ] .", "TriG"),
    "keywords in lower case": (b'version "1.2-messages"\n' + LINE + b"message\n", "TriG"),
    "an old announcement": (b'@version "1.2-messages" .\n' + LINE + b"@message .\n", "TriG"),
    "a mark and a prefix": (b"\xef\xbb\xbfPREFIX ex: <http://example.org/>\n", "TriG"),
    "an object": (b'{"@id": "urn:s"}\n', "NDJSON-LD"),
    "an empty object": (b"{}\n", "NDJSON-LD"),
    "an object with blanks": (b'{ \n "@id": "urn:s"}\n', "NDJSON-LD"),
    "objects in a list": (b'[{"@id": "urn:s"}]\n', "NDJSON-LD"),
    "a document marker": (b"---\n{}\n", "YAML-LD"),
    "a YAML directive": (b"%YAML 1.2\n---\n", "YAML-LD"),
    "a comment and a marker": (b"# a log\n---\n", "YAML-LD"),
    "a quoted key": (b'"@id": urn:s\n', "YAML-LD"),
    "an XML declaration": (b'<?xml version="1.0"?><rdf:RDF/>', "RDF/XML"),
    "an RDF element": (
        b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>',
        "RDF/XML",
    ),
    "any element": (b'<Thing xmlns="http://example.org/"/>', "RDF/XML"),
    "a document type": (b"<!DOCTYPE rdf:RDF [", "RDF/XML"),
}


def assert_same_for_longer(data: bytes) -> None:
    """What a beginning tells, all longer ones tell too."""
    told = None
    # of long data, not each beginning: they differ little
    for end in [*range(min(len(data), 300)), *range(300, len(data), 997)]:
        found = sniff(data[:end])
        assert told in (None, found), data[:end]
        told = found
    assert told in (None, sniff(data, whole=True))


@pytest.mark.parametrize("case", BEGINNINGS)
def test_beginnings(case: str) -> None:
    head, name = BEGINNINGS[case]
    found = sniff(head, whole=True)
    assert found is not None
    assert found.name == name
    assert_same_for_longer(head)


# what reads the format as well
WIDER = {"N-Triples": "N-Quads", "Turtle": "TriG"}


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_what_is_written_here(format: Format) -> None:
    encoder = encoder_for(format, format.own or RDFM, EncoderOptions({"ex": "http://example.org/"}))
    quad = Quad(iri("http://example.org/s"), iri("http://example.org/p"), literal("o"))
    log = (
        encoder.start()
        + encoder.encode(Message([quad]))
        + encoder.encode(Message())
        + encoder.finish()
    )
    found = sniff(log, whole=True)
    assert found is not None
    assert found.name == WIDER.get(format.name, format.name)
    assert_same_for_longer(log)


@pytest.mark.suite
def test_jelly_files_of_others() -> None:
    files = sorted(shared_path("suites/jelly/test/rdf").rglob("*.jelly"))
    assert len(files) > 200
    for file in files:
        data = file.read_bytes()
        assert sniff(data, whole=True) is JELLY, file
        assert_same_for_longer(data[:2000])


@pytest.mark.suite
@pytest.mark.parametrize("extension", ["nt", "nq", "ttl", "trig"])
def test_documents_of_the_suites(extension: str) -> None:
    """A document is taken for what it is, if pyoxigraph reads it; as N-Quads only where it reads the same so."""
    kind = ox.RdfFormat.from_extension(extension)
    assert kind is not None
    seen = 0
    for file in sorted(shared_path("suites/w3c/rdf").rglob(f"*.{extension}")):
        data = file.read_bytes()
        try:
            quads = set(ox.parse(data, format=kind, base_iri="http://example.org/"))
        except SyntaxError:
            continue
        found = sniff(data, whole=True)
        assert found in ((N_QUADS,) if extension in ("nt", "nq") and quads else (N_QUADS, TRIG)), (
            file
        )
        if found is N_QUADS and not any(has_blank_nodes(quad) for quad in quads):
            assert quads == set(ox.parse(data, format=ox.RdfFormat.N_QUADS)), file
        seen += 1
    assert seen > 20


def has_blank_nodes(quad: ox.Quad) -> bool:
    return "_:" in str(quad)


ARCHIVES = {
    "a file": ("0000000000.ttl", {}, True),
    "GNU": ("0000000000.ttl", {"format": tarfile.GNU_FORMAT}, True),
    "pax": ("0000000000.ttl", {"format": tarfile.PAX_FORMAT}, True),
    "a folder": ("stream/0000000000.ttl", {}, True),
    "a long name": ("s" * 99 + "/" + "0" * 40, {}, True),
}


@pytest.mark.parametrize("case", ARCHIVES)
def test_archives(case: str) -> None:
    name, options, expected = ARCHIVES[case]
    head = tarfile.TarInfo(name).tobuf(**options)
    assert is_archive(head) is expected
    assert {is_archive(head[:end]) for end in range(262)} == {None}


@pytest.mark.parametrize("case", BEGINNINGS)
def test_a_log_is_no_archive(case: str) -> None:
    head, _ = BEGINNINGS[case]
    assert not is_archive(head)
    assert not is_archive(head.ljust(1000, b"\n"))


def test_bounds() -> None:
    """A statement that does not end, and lines without one, are waited for, but not for ever."""
    assert sniff(b"# @message\n" * (1 << 16)) is None
    assert sniff(b"# @message\n" * (1 << 17)) is TRIG
    endless = b'<urn:s> <urn:p> "' + b"x" * (1 << 20)
    assert sniff(endless[: 1 << 19]) is None
    assert sniff(endless) is TRIG
