"""Names, media types and labels: what is found, what is refused."""

import pytest

from construct_messages.errors import UsageError
from construct_messages.formats import FORMATS, RDFM, VARIANTS, content_type, find_format, find_syntax, format_of_file

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
    "text/turtle; messages=rdfm; version=9-messages": ("version=9-messages", "version=1.1-messages"),
    "text/turtle; messages=1.2": ("messages=1.2", "version=1.2-messages"),
    "text/turtle; charset=latin1": ("charset=latin1", "UTF-8"),
    "text/turtle; q=0.3": ("q in", "version=…"),
    "text/turtle; version": ("malformed", "messages=rdfm"),
    'text/turtle; version="1.2': ("malformed", "messages=rdfm"),
    "text/turtle; version=1.2; version=1.1-messages": ("malformed", "messages=rdfm"),
}


@pytest.mark.parametrize("text", REFUSED, ids=str)
def test_find_format_refuses(text: str) -> None:
    with pytest.raises(UsageError) as error:
        find_format(text)
    message, hint = REFUSED[text]
    assert message in error.value.message
    assert hint in (error.value.hint or "")


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.extension)
@pytest.mark.parametrize("syntax", VARIANTS, ids=lambda syntax: f"{syntax.label} {syntax.version}")
def test_content_type_is_found_again(format, syntax) -> None:
    assert find_format(content_type(format, syntax)) == (format, syntax)


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
        ("log.rdf", None),
    ],
    ids=str,
)
def test_format_of_file(name: str, extension: str | None) -> None:
    format = format_of_file(name)
    assert (format and format.extension) == extension
