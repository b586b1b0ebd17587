"""Reading dirty data leniently: what is passed, counted and told, by every door; and that the strict way refuses it."""

from __future__ import annotations

import asyncio
import io
import logging
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pyoxigraph as ox
import pytest
import rdflib

from construct_messages import (
    ConstructMessagesError,
    Message,
    Quad,
    construct_messages,
    read_log,
    write_log,
)
from construct_messages.errors import IncompleteResult, LogError, TermError
from construct_messages.rdf.formats import FORMATS, JELLY, NDJSON_LD, SYNTAXES, YAML_LD, Format
from construct_messages.rdf.options import Requests
from construct_messages.rdf.terms import RDF, Term, iri, literal
from tests.support.http.fault_server import JSON, TSV, XML, FaultServer, response
from tests.support.logs.archives import archive
from tests.support.results.documents import json_document, tsv_document, xml_document

DIRTY = """\
<http://e/100%> <http://e/p> "x"@zh-classical .
<http://e/s> <http://e/p> <http://e/[b]> .
<http://e/s> <http://e/p> "1"^^<http://e/a#b#c> .
<http://e/s> <http://e/p> <http://e/fine> .
"""
QUERY = "CONSTRUCT { ?s <http://e/q> ?o } WHERE { ?s <http://e/p> ?o } ORDER BY STR(?o)"
LINES = {line.replace("http://e/p>", "http://e/q>") for line in DIRTY.splitlines()}
REFUSED = r"is no IRI|percent encoding|is not a language tag|subtag|code point"
COUNT = re.compile(
    r"passed as found: (?=.*3 malformed IRIs \(the first: <)(?=.*1 malformed language tag \(the first: @zh-classical)"
)


@pytest.fixture
def dirty(tmp_path: Path) -> Path:
    path = tmp_path / "dirty.nt"
    path.write_text(DIRTY)
    return path


def as_path(path: Path) -> object:
    return path


def as_store(path: Path) -> object:
    store = ox.Store()
    store.load(path=path, lenient=True)
    return store


def as_directory(path: Path) -> object:
    store = ox.Store(str(path.with_suffix("")))
    store.load(path=path, lenient=True)
    store.flush()
    return path.with_suffix("")


def as_rdflib(_: Path) -> object:
    graph, p = rdflib.Graph(), rdflib.URIRef("http://e/p")
    s = rdflib.URIRef("http://e/s")
    # rdflib takes no such tag, and a datatype of another kind for the count
    graph.add((rdflib.URIRef("http://e/100%"), p, rdflib.URIRef("http://e/[b]")))
    graph.add((s, p, rdflib.Literal("1", datatype=rdflib.URIRef("http://e/a#b#c"))))
    return graph


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("source", [as_path, as_store, as_directory])
def test_sources(
    source: Callable[[Path], object],
    asynchronous: bool,
    dirty: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Issue 13, 9: IRIs are passed with a warning and a count."""

    def read(lenient: bool) -> list[Message]:
        stream = construct_messages(QUERY, source(dirty), lenient=lenient)  # type: ignore[arg-type]
        if not asynchronous:
            return list(stream)

        async def collect() -> list[Message]:
            return [message async for message in stream]

        return asyncio.run(collect())

    with pytest.raises(ConstructMessagesError, match=REFUSED):
        read(False)
    assert not caplog.records
    messages = read(True)
    assert {str(quad) for message in messages for quad in message} == LINES
    (record,) = caplog.records
    assert (record.levelno, record.name) == (
        logging.WARNING,
        "construct_messages.rdf.terms.wellformed",
    )
    assert COUNT.match(record.getMessage())


def test_rdflib(dirty: Path, caplog: pytest.LogCaptureFixture) -> None:
    (one, two) = construct_messages(QUERY, as_rdflib(dirty), lenient=True)  # type: ignore[arg-type]
    assert {str(quad) for quad in (*one, *two)} == {
        "<http://e/100%> <http://e/q> <http://e/[b]> .",
        '<http://e/s> <http://e/q> "1"^^<http://e/a#b#c> .',
    }
    assert [
        record.getMessage()
        for record in caplog.records
        if "passed as found: 3" in record.getMessage()
    ]


def command(*arguments: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of the command line in a process of its own, logging as it is."""
    done = subprocess.run(
        [sys.executable, "-m", "construct_messages", *arguments],
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    return done.returncode, done.stdout, done.stderr


def test_run(dirty: Path) -> None:
    """The log goes to standard output, the count to standard error."""
    arguments = ["run", "--query", QUERY, "--source", str(dirty), "--format", "nt"]
    status, out, err = command(*arguments)
    assert (status, out) == (3, "")
    assert "percent encoding" in err
    status, out, err = command(*arguments, "--lenient")
    assert (status, set(out.splitlines()) - {"# @message"}) == (0, LINES)
    assert COUNT.match(err)


ROWS = 30_000
WORST = [
    "<#Wine>",
    "<http://e/a b>",
    "<http://e/100%>",
    '"x"@zh-classical',
    f'"Wine"^^<{RDF}langString>',
    '"1"^^<http://e/a#b#c>',
    '"2"^^<unit/kg>',
]


def of_rows(*, sound: bool) -> set[str]:
    return {f'<urn:s{row}> <http://e/q> "{row}" .' for row in range(ROWS) if sound or row % 999}


@pytest.fixture(scope="module")
def worst() -> ox.Store:
    """Data as public endpoints have them: a bad term here and there among many sound ones."""
    store, lines = ox.Store(), []
    for row in range(ROWS):
        term = WORST[row // 999 % len(WORST)] if row % 999 == 0 else f'"{row}"'
        lines.append(f"<urn:s{row}> <http://e/p> {term} .")
    store.bulk_load("\n".join(lines).encode(), ox.RdfFormat.N_TRIPLES, lenient=True)
    return store


def answer(store: ox.Store, format: ox.QueryResultsFormat, media_type: str) -> bytes:
    """What pyoxigraph writes for the SELECT of the query below."""
    written = store.query("SELECT ?s ?o { ?s <http://e/p> ?o }").serialize(format=format)
    assert written is not None
    return response(written, media_type)


OF_WORST = "CONSTRUCT { ?s <http://e/q> ?o } WHERE { ?s <http://e/p> ?o }"


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with closing(FaultServer()) as server:
        yield server


@pytest.fixture(
    params=[
        pytest.param((ox.QueryResultsFormat.JSON, JSON, "json"), id="json"),
        pytest.param((ox.QueryResultsFormat.XML, XML, "xml"), id="xml"),
        pytest.param((ox.QueryResultsFormat.TSV, TSV, "tsv"), id="tsv"),
    ]
)
def results(request: pytest.FixtureRequest, server: FaultServer, worst: ox.Store) -> str:
    """The name of a format of results, in which the server gives the worst data."""
    format, media_type, name = request.param
    server.play(answer(worst, format, media_type))
    return str(name)


def quads_of(server: FaultServer, results: str, **options: Any) -> set[str]:
    messages = construct_messages(
        OF_WORST, server.url, requests=Requests(results=results), **options
    )
    return {str(quad) for message in messages for quad in message}


@pytest.mark.slow
@pytest.mark.parametrize("base", [None, "http://b/dir/page"], ids=["the endpoint's", "the query's"])
def test_no_bad_term_ends_a_log(
    server: FaultServer, results: str, base: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    found = quads_of(server, results, base=base, lenient=True)
    url = base or server.url
    (record,) = caplog.records
    message = record.getMessage()
    others = found - of_rows(sound=False)
    bad = {quad.split(" <http://e/q> ", 1)[1].removesuffix(" .") for quad in others}
    expected = {
        f"<{urljoin(url, '#Wine')}>",
        "<http://e/100%>",
        '"x"@zh-classical',
        f'"Wine"^^<{RDF}langString>',
        '"1"^^<http://e/a#b#c>',
        f'"2"^^<{urljoin(url, "unit/kg")}>',
    }
    # the field of TSV with a space is no term: its solutions are left out
    encoded = {"<http://e/a%20b>"} if results != "tsv" else set()
    assert bad == expected | encoded
    assert found >= of_rows(sound=False)
    assert "resolved: 9 relative IRIs (the first: <#Wine>)" in message
    assert 'literals without the language tag of its datatype (the first: "Wine' in message
    assert ("left out: 5 solutions with a term" in message) == (results == "tsv")


def test_solutions_with_bad_terms_are_left_out(
    server: FaultServer, results: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = quads_of(server, results, lenient="skip")
    # a space is percent-encoded in any case, where the format can hold it
    assert found - {
        f"<urn:s{row}> <http://e/q> <http://e/a%20b> ." for row in range(ROWS)
    } == of_rows(sound=False)
    count = 31 if results == "tsv" else 26
    assert [record.getMessage().partition(" (")[0] for record in caplog.records] == [
        f"left out: {count} solutions with a term that is not RDF"
    ]


def test_a_language_string_without_a_language_is_a_string(caplog: pytest.LogCaptureFixture) -> None:
    """Virtuoso and DBpedia have such literals, so that they are no error by default."""
    store = ox.Store()
    for subject in ("<urn:a>", "<urn:b>"):
        line = f'{subject} <http://e/p> "Wine"^^<{RDF}langString> .'
        store.load(line.encode(), ox.RdfFormat.N_TRIPLES, lenient=True)
    messages = list(construct_messages(OF_WORST, store))
    assert {quad.object for message in messages for quad in message} == {'"Wine"'}
    assert [record.getMessage().partition(" (")[0] for record in caplog.records] == [
        "read as a string: 2 literals without the language tag of its datatype"
    ]


def test_skipping_on_the_command_line(dirty: Path) -> None:
    status, out, err = command(
        "run", "--query", QUERY, "--source", str(dirty), "--format", "nt", "--skip-invalid"
    )
    assert (status, out.splitlines()) == (
        0,
        ["# @message", "<http://e/s> <http://e/q> <http://e/fine> ."],
    )
    assert err.startswith("left out: 3 solutions with a term that is not RDF (the first: ")


TABLE = [
    (Term("<http://e/100%>"), Term('"x"@zh-classical')),
    (Term("<http://e/s>"), Term("<http://e/[b]>")),
    (Term("<http://e/s>"), Term('"1"^^<http://e/a#b#c>')),
    (Term("<http://e/s>"), Term("<http://e/fine>")),
]


@pytest.mark.parametrize(
    ("name", "document", "media_type"),
    [("json", json_document, JSON), ("xml", xml_document, XML), ("tsv", tsv_document, TSV)],
    ids=["json", "xml", "tsv"],
)
def test_endpoints(
    server: FaultServer,
    name: str,
    document: Any,
    media_type: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server.play(*[response(document(("s", "o"), TABLE), media_type)] * 2)
    query, requests = QUERY.partition("ORDER")[0], Requests(results=name)
    with pytest.raises(IncompleteResult, match=r"is no IRI|is not a language tag") as error:
        list(construct_messages(query, server.url, requests=requests))
    assert "read leniently" in (error.value.hint or "")
    messages = list(construct_messages(query, server.url, requests=requests, lenient=True))
    assert {str(quad) for message in messages for quad in message} == LINES
    assert [record.getMessage() for record in caplog.records if COUNT.match(record.getMessage())]


# --- logs -------------------------------------------------------------------------------------------------------------

S, P = iri("http://e/s"), iri("http://e/p")
PASSED = Message(
    Quad(*terms)
    for terms in (
        (Term("<http://e/100%>"), P, Term('"x"@zh-classical')),
        (S, P, Term("<http://e/[b]>")),
        (S, P, Term('"1"^^<http://e/a#b#c>')),
        (S, Term("<http://e:80x/p>"), S),
    )
)


@pytest.fixture(params=["blocking", "asynchronous"])
def read(request: pytest.FixtureRequest) -> Callable[..., list[Message]]:
    def blocking(*arguments: Any, **options: Any) -> list[Message]:
        return list(read_log(*arguments, **options))

    def asynchronous(*arguments: Any, **options: Any) -> list[Message]:
        async def collect() -> list[Message]:
            return [message async for message in read_log(*arguments, **options)]

        return asyncio.run(collect())

    return blocking if request.param == "blocking" else asynchronous


@pytest.mark.parametrize("syntax", [syntax.label for syntax in SYNTAXES])
@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_logs(
    format: Format,
    syntax: str,
    read: Callable[..., list[Message]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Issue 13, 9: what is written leniently is read leniently, and the strict way refuses it at both ends."""
    label = syntax if format.own is None else None
    with pytest.raises(TermError, match="message 2: "):
        write_log([Message(), PASSED], io.BytesIO(), format.extension, syntax=label)
    log = io.BytesIO()
    write_log([Message(), PASSED, PASSED], log, format.extension, syntax=label, lenient=True)
    caplog.clear()
    with pytest.raises(LogError) as error:
        read(log.getvalue(), format.extension)
    assert error.value.number == 2
    assert not caplog.records
    messages = read(log.getvalue(), format.extension, lenient=True)
    assert messages == [Message(), PASSED, PASSED]
    (record,) = caplog.records
    iris = 4 if format == JELLY else 8  # where a term is said once for both messages
    assert record.getMessage().startswith(f"passed as found: {iris} malformed IRIs (the first: ")
    assert "2 malformed language tags (the first: @zh-classical" in record.getMessage()
    # what was read leniently is written without another word
    again = io.BytesIO()
    write_log(messages, again, "nq")
    assert list(read_log(again.getvalue(), lenient=True)) == messages


@pytest.mark.parametrize("format", [NDJSON_LD, YAML_LD], ids=lambda format: format.name)
def test_json_ld(format: Format) -> None:
    """Its readers drop what is malformed without a word, and lenient ones count that."""
    document = (
        b'{"@id": "http://e/100%", "http://e/p": '
        b'[{"@id": "a"}, {"@id": "http://e/[b]"}, {"@value": "x", "@language": "zh-classical"}]}\n'
    )
    assert list(read_log(document, format.extension)) == [Message()]
    (message,) = reader = read_log(document, format.extension, lenient=True)
    assert [str(quad.object) for quad in message] == ["<http://e/[b]>", '"x"@zh-classical']
    assert reader.malformed == 6  # the subject counts in each statement


@pytest.mark.parametrize("format", ["nt", "nq", "ttl", "trig"])
def test_characters_that_no_iri_may_hold(format: str) -> None:
    line = rb"<urn:s> <urn:p> <http://e/\u0020b\u003E> ."
    with pytest.raises(LogError) as error:
        list(read_log(line, format))
    assert "leniently" in (error.value.hint or "")
    reader = read_log(line, format, lenient=True)
    (message,) = reader
    assert [quad.object for quad in message] == ["<http://e/%20b%3E>"]
    assert reader.malformed == 1


def test_relative_iris_of_lines_resolve_leniently() -> None:
    reader = read_log(b"<#Wine> <urn:p> <a b> .", "nt", base="http://e/x", lenient=True)
    (message,) = reader
    assert [str(quad) for quad in message] == ["<http://e/x#Wine> <urn:p> <http://e/a%20b> ."]
    assert reader.malformed == 2


@pytest.mark.parametrize("extension", ["ttl", "trig"])
@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("<urn:s> <urn:p> <http://e/x", (1, 17)),
        ("<urn:s> <urn:p> <urn:o> .\n<urn:s> <urn:p> <http://e/x", (2, 17)),
        ('<urn:s> <urn:p>\n <<( <urn:a> <urn:q> "x"^^<urn:', (2, 32)),
    ],
)
def test_an_iri_that_does_not_end(extension: str, text: str, position: tuple[int, int]) -> None:
    with pytest.raises(LogError) as error:
        list(read_log(text.encode(), extension, lenient=True))
    assert (error.value.message, error.value.position) == (
        "a string or an IRI that does not end",
        position,
    )


def test_an_error_about_half_a_character_can_be_printed() -> None:
    for make in (iri, lambda value: literal("x", datatype=value), literal):
        with pytest.raises(TermError) as error:
            make("http://e/\ud800\x1b")  # type: ignore[operator]
        assert str(error.value).replace("\n", "").isprintable()
        assert str(error.value).encode()


def test_relative_iris_resolve_leniently() -> None:
    (message,) = read_log(b"<a%> <urn:p> <b> .", "ttl", base="http://e/", lenient=True)
    assert [str(quad) for quad in message] == ["<http://e/a%> <urn:p> <http://e/b> ."]


def test_an_archive() -> None:
    log = archive(
        ("1.ttl", b"<http://e/[> <urn:p> <urn:o> ."), ("2.nt", b"<urn:s> <urn:p> <urn:o> .")
    )
    with pytest.raises(LogError):
        list(read_log(log))
    assert len(list(reader := read_log(log, lenient=True))) == 2
    assert reader.malformed == 1


@pytest.mark.parametrize("options", [[], ["--fold"], ["--unfold"]], ids=["plain", "fold", "unfold"])
def test_convert(options: list[str], tmp_path: Path) -> None:
    source, target = tmp_path / "a.nt", tmp_path / "b.ttl"
    source.write_text(DIRTY)
    status, out, err = command("convert", str(source), str(target), *options)
    assert (status, out, target.exists()) == (3, "", False)
    assert "hint: mend it, or read leniently" in err
    status, out, err = command("convert", str(source), str(target), "--lenient", *options)
    assert (status, out) == (0, "")
    assert COUNT.search(err)
    assert err.startswith(f"{source}: ")
    (message,) = read_log(target, lenient=True)
    assert {str(quad) for quad in message} == set(DIRTY.splitlines())


@pytest.mark.slow
def test_other_commands(dirty: Path) -> None:
    for name in ("head", "validate", "inspect"):
        assert command(name, str(dirty))[0] != 0
        status, out, err = command(name, str(dirty), "--lenient")
        assert status == 0
        assert out
        assert COUNT.search(err)
