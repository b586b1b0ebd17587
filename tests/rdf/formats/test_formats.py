"""Names, media types and labels: what is found, what is refused."""

import pyoxigraph as ox
import pytest

from construct_messages.errors import UsageError
from construct_messages.rdf.formats import FORMATS, JELLY, LOGS, RDFM, TRIG, content_type
from construct_messages.rdf.formats.lookup import (
    default_format,
    document_file,
    find_format,
    find_log,
    find_syntax,
    format_of_file,
)

FOUND = {
    "nt": ("N-Triples", None),
    ".nq": ("N-Quads", None),
    "NTriples": ("N-Triples", None),
    "n-quads": ("N-Quads", None),
    "Turtle": ("Turtle", None),
    "TriG": ("TriG", None),
    "application/n-triples": ("N-Triples", None),
    "text/turtle;": ("Turtle", None),
    "text/turtle; charset=UTF-8": ("Turtle", None),
    "application/trig; version=1.2": ("TriG", None),
    "application/trig; version=1.2; messages=rdfm": ("TriG", "rdfm"),
    "Application/N-Quads;Messages=RDFM": ("N-Quads", "rdfm"),
    'text/turtle; charset=utf-8; messages="rdfm"': ("Turtle", "rdfm"),
    "text/turtle;version=1.2-messages": ("Turtle", "1.2-messages"),
    'application/trig; version="1.2-Basic-Messages"': ("TriG", "1.2-basic-messages"),
    "application/n-triples; version=1.1-messages": ("N-Triples", "1.1-messages"),
    "nt; version=1.1-messages": ("N-Triples", "1.1-messages"),
    "text/turtle; messages=rdfm; version=1.2-messages": ("Turtle", "1.2-messages"),
    "text/turtle; messages=rdfm; version=1.1": ("Turtle", "rdfm"),
    r'text/turtle; messages="\rdfm"': ("Turtle", "rdfm"),
    # formats that delimit messages by themselves: their syntax has no label, whatever asks for messages
    "ndjsonld": ("NDJSON-LD", ""),
    "NDJSON-LD": ("NDJSON-LD", ""),
    ".jsonl": ("NDJSON-LD", ""),
    "application/x-ld+ndjson": ("NDJSON-LD", ""),
    "Application/X-NDJSON; charset=utf-8": ("NDJSON-LD", ""),
    "application/x-ld+ndjson; messages=rdfm": ("NDJSON-LD", ""),
    "yaml-ld": ("YAML-LD", ""),
    "application/rdfm+yaml": ("YAML-LD", ""),
    "RDF/XML": ("RDF/XML", ""),
    "rdf": ("RDF/XML", ""),
    "application/rdfm+xml; version=1.1": ("RDF/XML", ""),
    "application/rdfm+xml; version=1.1-messages": ("RDF/XML", ""),
    "Jelly": ("Jelly", ""),
    "application/x-jelly-rdf": ("Jelly", ""),
    "application/x-jelly-rdf; version=1.2": ("Jelly", ""),
    "application/x-jelly-rdf; version=1.2-messages": ("Jelly", ""),
    "application/x-jelly-rdf; messages=rdfm; version=1.2": ("Jelly", ""),
}


@pytest.mark.parametrize("text", FOUND, ids=str)
def test_find_format(text: str) -> None:
    format, syntax = find_format(text)
    assert (format.name, syntax and syntax.label) == FOUND[text]


REFUSED = {
    "json": ("unknown format 'json'", "nt (application/n-triples)"),
    "": ("unknown format ''", "trig (application/trig)"),
    "application/ld+json; version=1.2-messages": ("unknown format", "text/turtle"),
    "text/turtle; version=1.1": ("version=1.1", "1.1-messages"),
    "text/turtle; version=rdfm": ("version=rdfm", "messages=rdfm"),
    "text/turtle; messages=1.2-messages": ("messages=1.2-messages", "version=1.2-messages"),
    "text/turtle; messages=rdfm; version=2.0": ("messages=rdfm; version=2.0", "1.2-basic or 1.1"),
    "text/turtle; messages=rdfm; version=9-messages": (
        "version=9-messages",
        "version=1.1-messages",
    ),
    "text/turtle; messages=1.2": ("messages=1.2", "version=1.2-messages"),
    "text/turtle; charset=latin1": ("charset=latin1", "UTF-8"),
    "text/turtle; q=0.3": ("q in", "version=…"),
    "text/turtle; version": ("malformed", "messages=rdfm"),
    'text/turtle; version="1.2': ("malformed", "messages=rdfm"),
    "text/turtle; version=1.2; version=1.1-messages": ("malformed", "messages=rdfm"),
    # Jelly has triple terms, so a log in it does not keep to a version that has none
    "application/x-jelly-rdf; version=1.2-basic-messages": (
        "than version=1.2-basic-messages",
        "application/n-quads",
    ),
    "application/x-jelly-rdf; version=1.1": ("a Jelly log may hold more", "leave the version out"),
    "application/x-jelly-rdf; messages=rdfm; version=1.1": (
        "than version=1.1 allows",
        "leave the version out",
    ),
    "application/x-jelly-rdf; messages=foo": ("messages=foo in", "messages=rdfm"),
    "application/x-jelly-rdf; version=9-messages": ("version=9-messages", "version=1.2-messages"),
    "application/rdfm+xml; level=1": ("level in", "messages=rdfm"),
    "application/rdfm+yaml; charset=utf-16": ("charset=utf-16", "UTF-8"),
    "application/rdf+xml": ("unknown format", "rdfxml (application/rdfm+xml)"),
}


@pytest.mark.parametrize("text", REFUSED, ids=str)
def test_find_format_refuses(text: str) -> None:
    with pytest.raises(UsageError) as error:
        find_format(text)
    message, hint = REFUSED[text]
    assert message in error.value.message
    assert hint in (error.value.hint or "")


@pytest.mark.parametrize("log", LOGS, ids=lambda log: content_type(*log))
def test_content_type_is_found_again(log) -> None:
    assert find_format(content_type(*log)) == log


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.extension)
def test_every_name_is_of_one_format(format) -> None:
    for name in (format.name, *format.media_types, *format.extensions, *format.names):
        assert [other for other in FORMATS if find_format(name)[0] is other] == [format]


def test_what_a_log_is_written_in() -> None:
    assert find_log("text/turtle") == find_log("ttl", "RDFM") == (find_format("ttl")[0], RDFM)
    assert find_log("text/turtle; version=1.1-messages", "rdfm")[1].label == "1.1-messages"
    assert find_log("jelly") == (JELLY, JELLY.own)
    for syntax in ("rdfm", "1.2-messages"):
        with pytest.raises(UsageError, match=f"Jelly delimits messages by itself: syntax={syntax}"):
            find_log("jelly", syntax)
    with pytest.raises(UsageError, match="unknown message syntax 'foo'"):
        find_log("jelly", "foo")


def test_find_syntax() -> None:
    assert find_syntax(" RDFM ") is RDFM
    with pytest.raises(UsageError, match=r"unknown message syntax '1\.2'") as error:
        find_syntax("1.2")
    assert "1.2-messages" in str(error.value)


@pytest.mark.parametrize(
    ("name", "extension"),
    [
        ("a.nq", "nq"),
        ("a.b/c.NT", "nt"),
        ("log.ttl.gz", "ttl"),
        ("log.trig.bz2", "trig"),
        ("log.nq.XZ", "nq"),
        ("log.nt.zst", "nt"),
        ("log.gz", None),
        ("trig", None),
        ("log.ttl.gz.gz", None),
        ("log.ndjsonld.gz", "ndjsonld"),
        ("log.jsonl", "ndjsonld"),
        ("log.NDJSON", "ndjsonld"),
        ("log.yml", "yamlld"),
        ("log.yaml.zst", "yamlld"),
        ("log.jelly", "jelly"),
        ("log.rdfxml", "rdfxml"),
        # documents that are no logs, though their formats have logs
        ("log.rdf", None),
        ("log.xml", None),
        ("log.jsonld", None),
        ("log.json", None),
    ],
    ids=str,
)
def test_format_of_file(name: str, extension: str | None) -> None:
    format = format_of_file(name)
    assert (format and format.extension) == extension


def test_default_format() -> None:
    assert [default_format(name) for name in ("a.jelly", "a.b/c", None)] == ["jelly", "nq", "nq"]
    assert [default_format(name, TRIG) for name in ("a.jelly", "a", "a.gz", None)] == [
        "jelly",
        "trig",
        "trig",
        "trig",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "a.rdf",
        "a.jsonld",
        "a.n3",
        "a.xml",
        "a.nq.zip",
        "a.turtle",
        "a.nq.lz4",
        "a.rdf.gz",
        "a.nq.gz.gz",
        "a.nq.part",
    ],
)
def test_an_extension_that_is_unknown(name: str) -> None:
    """Issue 13, 12: nothing is written under a name that says something else."""
    with pytest.raises(UsageError, match="is not the extension of a log format") as error:
        default_format(name)
    assert all(
        f".{extension}" in str(error.value.hint)
        for format in FORMATS
        for extension in format.extensions
    )


@pytest.mark.parametrize(
    ("file", "format", "expected"),
    [
        ("file:///a.nt", None, (ox.RdfFormat.N_TRIPLES, "", ".nt")),
        ("file:///a.b.NQ.gz", None, (ox.RdfFormat.N_QUADS, ".gz", ".NQ.gz")),
        ("s3a://b/a b.ttl.BZ2", None, (ox.RdfFormat.TURTLE, ".BZ2", ".ttl.BZ2")),
        ("hdfs:///part-0.zst", "trig", (ox.RdfFormat.TRIG, ".zst", ".zst")),
        ("hdfs:///part-0", "application/n-quads", (ox.RdfFormat.N_QUADS, "", "")),
        ("file:///a.rdf.xz", None, (ox.RdfFormat.RDF_XML, ".xz", ".rdf.xz")),
        ("file:///a.jsonld", None, (ox.RdfFormat.JSON_LD, "", ".jsonld")),
        pytest.param(
            "file:///a.owl.gz", None, (ox.RdfFormat.RDF_XML, ".gz", ".owl.gz"), id="13.29-owl"
        ),
        ("file:///README.txt", "txt", (ox.RdfFormat.N_TRIPLES, "", "")),
    ],
)
def test_names_of_documents_say_formats(
    file: str, format: str | None, expected: tuple[ox.RdfFormat, str, str]
) -> None:
    kind = document_file(file, format)
    assert (kind.format.parsed_as, kind.packing, kind.suffix) == expected


@pytest.mark.parametrize(
    ("file", "format", "part"),
    [
        ("file:///a.csv", None, "'.csv'"),
        ("file:///nt", None, "(none)"),
        ("file:///a.nt", "csv", "csv"),
    ],
)
def test_unknown_formats_of_documents_are_named(file: str, format: str | None, part: str) -> None:
    with pytest.raises(UsageError, match=r"is not an RDF format|is no format") as caught:
        document_file(file, format)
    assert part in caught.value.message
    assert caught.value.hint
