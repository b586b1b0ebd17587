"""Hostile terms by every door, in every format and syntax: refused before a byte is written, or read again as written.

"Read again" is by this package and, where it reads the format, by pyoxigraph, neither of them lenient.
"""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from construct_messages import (
    ConstructMessagesError,
    Message,
    Quad,
    construct_messages,
    read_log,
    write_log,
)
from construct_messages.errors import UnsupportedByFormat
from construct_messages.rdf.formats import (
    FORMATS,
    JELLY,
    N_QUADS,
    NDJSON_LD,
    RDF_XML,
    SYNTAXES,
    YAML_LD,
    Format,
)
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import Term
from construct_messages.sparql.results.json import JsonDecoder
from construct_messages.sparql.results.tsv import TsvDecoder
from construct_messages.sparql.results.xml import XmlDecoder
from construct_messages.sparql.sources import Request
from tests.support.strategies import HOSTILE_IRIS, HOSTILE_LANGUAGES, TEXT

pytestmark = pytest.mark.slow

QUERY = "CONSTRUCT { ?s <http://e/q> ?o . ?s ?o _:new } WHERE { ?s <http://e/p> ?o }"


class Raw(NamedTuple):
    """A term as somebody has it: its parts, which may be anything."""

    kind: str
    value: str
    language: str | None = None
    datatype: str | None = None

    @property
    def line(self) -> str:
        """As careless writers of N-Triples write it: with the escapes of strings, and nothing else."""
        if self.kind == "uri":
            return f"<{self.value}>"
        if self.kind == "bnode":
            return f"_:{self.value}"
        text = (
            self.value.replace("\\", "\\\\")
            .replace('"', '\\"')
            .replace("\n", "\\n")
            .replace("\r", "\\r")
        )
        suffix = (
            f"@{self.language}"
            if self.language
            else f"^^<{self.datatype}>"
            if self.datatype is not None
            else ""
        )
        return f'"{text}"{suffix}'

    @property
    def json(self) -> dict[str, str]:
        """As in results in JSON."""
        given = {"xml:lang": self.language, "datatype": self.datatype}
        return {"type": self.kind, "value": self.value} | {
            name: text for name, text in given.items() if text is not None
        }

    @property
    def xml(self) -> str:
        """As in results in XML."""
        tag, attribute = self.kind, ""
        if self.language is not None:
            attribute = f' xml:lang="{_escaped(self.language)}"'
        elif self.datatype is not None:
            attribute = f' datatype="{_escaped(self.datatype)}"'
        return f"<{tag}{attribute}>{_escaped(self.value)}</{tag}>"

    @property
    def rdflib(self) -> rdflib.term.Identifier:
        """As rdflib has it."""
        if self.kind == "uri":
            return rdflib.URIRef(self.value)
        if self.kind == "bnode":
            return rdflib.BNode(self.value)
        datatype = None if self.datatype is None else rdflib.URIRef(self.datatype)
        return rdflib.Literal(self.value, lang=self.language, datatype=datatype, normalize=False)


def _escaped(text: str) -> str:
    return "".join(f"&#{ord(char)};" if char in '<>&"\r\n\t' else char for char in text)


IRIS = st.builds(Raw, st.just("uri"), HOSTILE_IRIS)
NODES = IRIS | st.builds(
    Raw, st.just("bnode"), st.sampled_from(["b", "a.", "a b", "", "é", "0.1", "-", "nodeID://1"])
)
TERMS = (
    NODES
    | st.builds(Raw, st.just("literal"), TEXT | st.text(max_size=5))
    | st.builds(Raw, st.just("literal"), TEXT, HOSTILE_LANGUAGES)
    | st.builds(Raw, st.just("literal"), TEXT, st.none(), HOSTILE_IRIS)
)
FINE = Raw("uri", "http://e/fine")
SOLUTIONS = st.lists(
    st.tuples(st.just(FINE) | st.just(FINE) | NODES, TERMS), min_size=1, max_size=2
)

Table = list[tuple[Raw, Raw]]
Door = Callable[[Table, str, str | None], bytes]


class Results:
    """A source that answers with a document, as an endpoint does."""

    predefined: Mapping[str, str] = {}
    stable_blank_nodes = True

    def __init__(self, decoder: Any, document: bytes) -> None:
        self._decoder, self._document = decoder, document

    def solutions(self, request: Request) -> Generator[Solutions]:
        decoder = self._decoder(request.select.variables)
        yield from decoder.feed(self._document)
        yield from decoder.close()

    async def asolutions(self, request: Request) -> AsyncGenerator[Solutions]:
        for batch in self.solutions(request):
            yield batch

    def close(self) -> None: ...


def from_source(source: Any, format: str, label: str | None) -> bytes:
    return b"".join(construct_messages(QUERY, source).serialize(format, label))


def json_results(table: Table, format: str, label: str | None) -> bytes:
    bindings = [{"s": subject.json, "o": object.json} for subject, object in table]
    try:
        document = msgspec.json.encode(
            {"head": {"vars": ["s", "o"]}, "results": {"bindings": bindings}}
        )
    except UnicodeEncodeError:
        return b""  # there are no such bytes
    return from_source(Results(JsonDecoder, document), format, label)


def xml_results(table: Table, format: str, label: str | None) -> bytes:
    results = "".join(
        f'<result><binding name="s">{subject.xml}</binding><binding name="o">{object.xml}</binding></result>'
        for subject, object in table
    )
    head = (
        "<sparql "
        'xmlns="http://www.w3.org/2005/sparql-results#"><head><variable name="s"/><variable name="o"/></head>'
    )
    document = f"{head}<results>{results}</results></sparql>".encode(errors="replace")
    return from_source(Results(XmlDecoder, document), format, label)


def tsv_results(table: Table, format: str, label: str | None) -> bytes:
    lines = "".join(f"{subject.line}\t{object.line}\n" for subject, object in table)
    return from_source(
        Results(TsvDecoder, f"?s\t?o\n{lines}".encode(errors="replace")), format, label
    )


def rdflib_graph(table: Table, format: str, label: str | None) -> bytes:
    graph = rdflib.Graph()
    try:
        for subject, object in table:
            graph.add((subject.rdflib, rdflib.URIRef("http://e/p"), object.rdflib))  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return b""  # rdflib has no such term
    return from_source(graph, format, label)


def handed_over(table: Table, format: str, label: str | None) -> bytes:
    log = io.BytesIO()
    messages = [
        Message([Quad(Term(subject.line), Term("<http://e/p>"), Term(object.line))])
        for subject, object in table
    ]
    try:
        write_log(messages, log, format, syntax=label)
    except ConstructMessagesError:
        # messages before the error may have gone to an open file, and are to be read
        assert log.getvalue().count(b"http://e/p") < len(table)
        raise
    return log.getvalue()


def converted(table: Table, format: str, label: str | None) -> bytes:
    lines = "".join(
        f"# @message\n{subject.line} <http://e/p> {object.line} .\n" for subject, object in table
    )
    log = io.BytesIO()
    write_log(read_log(lines.encode(errors="replace"), "nt"), log, format, syntax=label)
    return log.getvalue()


def constants(table: Table, format: str, label: str | None) -> bytes:
    """Terms of the query: in its template, computed by the engine, and bound from outside."""
    subject, object = table[0]
    query = f"CONSTRUCT {{ {subject.line} <http://e/q> {object.line} , ?x , ?y }} WHERE {{ BIND(IRI(?t) AS ?x) }}"
    text = Raw("literal", subject.value).line
    try:
        stream = construct_messages(
            query, ox.Store(), bindings={"t": text, "y": object.line}, base="http://e/"
        )
        return b"".join(stream.serialize(format, label))
    except UnicodeEncodeError:
        return b""  # there is no such text


DOORS: list[Door] = [
    json_results,
    xml_results,
    tsv_results,
    rdflib_graph,
    handed_over,
    converted,
    constants,
]


def documents_of(log: bytes, format: Format) -> Iterable[bytes]:
    """What a log is to a reader that knows no messages: one document, or one a line."""
    return log.splitlines() if format in (NDJSON_LD, RDF_XML) else [log]


def assert_readable(log: bytes, format: Format, label: str | None) -> list[Message]:
    """The messages of a log, which pyoxigraph reads, too, as far as it knows the format."""
    messages = list(read_log(log, format.extension, syntax=label, keep_labels=True))
    if format not in (JELLY, YAML_LD) and label in (None, "rdfm"):
        name = {NDJSON_LD: "jsonld", RDF_XML: "rdf"}.get(format, format.extension)
        parser = ox.RdfFormat.from_extension(name)
        by_pyoxigraph = [
            quad
            for document in documents_of(log, format)
            for quad in ox.parse(document, format=parser)
        ]
        ours = Message(quad for message in messages for quad in message).to_pyoxigraph()
        if label == "rdfm":
            assert set(by_pyoxigraph) == set(ours)
        else:
            assert len(by_pyoxigraph) == sum(map(len, messages))
    return messages


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(
    table=SOLUTIONS,
    format=st.sampled_from(FORMATS),
    label=st.sampled_from([syntax.label for syntax in SYNTAXES]),
)
def test_what_is_written_is_read(door: Door, table: Table, format: Format, label: str) -> None:
    """Issue 13, 9: whatever the source, what would not be read back is refused by name."""
    own = label if format.own is None else None
    try:
        plain = door(table, "nq", "rdfm")
    except ConstructMessagesError as error:
        event(f"refused as {type(error).__name__}")
        with pytest.raises(type(error)):
            door(table, format.extension, own)
        return
    event("written")
    expected = assert_readable(plain, N_QUADS, "rdfm")
    try:
        log = door(table, format.extension, own)
    except UnsupportedByFormat:
        return
    messages = assert_readable(log, format, own)
    assert len(messages) == len(expected)
    for one, other in zip(messages, expected, strict=True):
        assert one.isomorphic(other)
