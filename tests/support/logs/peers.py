"""Readers and writers of other makers, as functions from bytes to messages and back."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyling
import pyoxigraph as ox
import pytest
import rdflib
import ruamel.yaml
import yaml
from pyjelly import jelly
from pyjelly.integrations.generic import generic_sink
from pyjelly.integrations.generic.parse import parse_jelly_grouped
from pyjelly.integrations.generic.serialize import grouped_stream_to_file
from pyjelly.options import StreamParameters
from pyjelly.serialize.streams import SerializerOptions
from pyld import jsonld

from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.rdf.formats import (
    JELLY,
    N_QUADS,
    N_TRIPLES,
    NDJSON_LD,
    RDF_XML,
    RDFM,
    TRIG,
    TURTLE,
    YAML_LD,
    Format,
)
from construct_messages.rdf.formats.lookup import find_syntax
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import (
    XSD,
    Term,
    blank,
    from_rdflib,
    iri,
    is_blank,
    is_literal,
    is_triple,
    literal,
    literal_parts,
    triple,
    triple_parts,
)
from tests.support.logs import rdfjs_jelly
from tests.support.logs.kinds import Kind
from tests.support.places import ROOT, absent

LABELLED: Final = find_syntax("1.2-messages")
PREFIXES: Final = {
    "dbo": "http://dbpedia.org/ontology/",
    "dbr": "http://dbpedia.org/resource/",
    "qudt": "http://qudt.org/schema/qudt/",
    "unit": "http://qudt.org/vocab/unit/",
    "brick": "https://brickschema.org/schema/Brick#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
}

# --- peers -----------------------------------------------------------------------------------------------------------

Reader = Callable[[bytes, Format], list[Message]]
Writer = Callable[[list[Message], Format], bytes]


class Peer(NamedTuple):
    """A program that reads logs, or writes them, or both."""

    name: str
    kinds: list[Kind]
    read: Reader | None
    write: Writer | None = None
    flat: bool = False  # whether it reads all messages as one


def parsed(text: str | bytes, format: Format = N_QUADS) -> Message:
    as_format = (
        ox.RdfFormat.RDF_XML if format is RDF_XML else ox.RdfFormat.from_extension(format.extension)
    )
    return to_message(ox.parse(text, format=as_format))


def quads_of(message: Message) -> str:
    return "".join(f"{quad}\n" for quad in message)


@cache
def node_process() -> subprocess.Popen[str]:
    modules = Path(os.environ.get("CONSTRUCT_MESSAGES_NODE", "nowhere")) / "node_modules"
    if (
        shutil.which("node") is None
        or not (modules / "n3").exists()
        or not (modules / "jsonld").exists()
    ):
        absent(
            "npm's n3 and jsonld are absent: set CONSTRUCT_MESSAGES_NODE to the folder that holds their node_modules"
        )
    return subprocess.Popen(
        ["node", str(ROOT / "tests" / "support" / "logs" / "peers.cjs")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "NODE_PATH": str(modules)},
    )


def node(mode: str, format: str, input: str | list[str]) -> Any:
    process = node_process()
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps({"mode": mode, "format": format, "input": input}) + "\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    assert "result" in answer, answer
    return answer["result"]


def n3_reads(log: bytes, format: Format) -> list[Message]:
    return list(map(parsed, node("n3-read", format.name, log.decode())))


def n3_writes(messages: list[Message], format: Format) -> bytes:
    return bytes(node("n3-write", format.name, list(map(quads_of, messages))), "utf-8")


def pyling_reads(log: bytes, _: Format) -> list[Message]:
    def term(found: Any) -> Term:
        match found:
            case pyling.Iri(value):
                return iri(value)
            case pyling.Blank(label):
                return blank(label.removeprefix("_:"))
            case pyling.Literal():
                return literal(
                    found.lexical,
                    datatype=None if found.lang else found.datatype,
                    language=found.lang,
                )
            case pyling.GraphTerm((one,)):
                return triple(term(one.s), term(one.p), term(one.o))
        raise AssertionError(f"pyling's {found!r}")

    messages = []
    for document in pyling.iter_rdf_message_documents(log.decode()):
        payloads = [each.o.triples for each in document.triples if each.p.value.endswith("nameOf")]
        messages.append(
            Message(Quad(term(t.s), term(t.p), term(t.o)) for triples in payloads for t in triples)
        )
    return messages


def pyoxigraph_reads(log: bytes, format: Format) -> list[Message]:
    return [parsed(log, format)]


def pyoxigraph_writes(messages: list[Message], format: Format) -> bytes:
    as_format = ox.RdfFormat.from_extension(format.extension)
    # prefixes are declared once more for each
    return b"".join(
        b"# @message\n"
        + (ox.serialize(message.to_pyoxigraph(), format=as_format, prefixes=PREFIXES) or b"")
        for message in messages
    )


RDFLIB: Final = {N_TRIPLES: "nt", N_QUADS: "nquads", TURTLE: "turtle", TRIG: "trig", RDF_XML: "xml"}


def rdflib_parses(log: bytes, format: Format) -> Message:
    dataset = rdflib.Dataset()
    default = dataset.default_graph.identifier
    dataset.parse(data=log, format=RDFLIB[format])
    return Message(
        Quad(*map(from_rdflib, (s, p, o)), None if graph in (None, default) else from_rdflib(graph))
        for s, p, o, graph in dataset.quads()
    )


def rdflib_reads(log: bytes, format: Format) -> list[Message]:
    return [rdflib_parses(log, format)]


def rdflib_writes(messages: list[Message], format: Format) -> bytes:
    log = b""
    for message in messages:
        dataset = message.to_rdflib()
        graph = dataset if format.graphs else dataset.default_graph
        log += b"# @message\n" + graph.serialize(format=RDFLIB[format], encoding="utf-8")
    return log


def xml_lines(read_one: Callable[[bytes], Message]) -> Reader:
    return lambda log, _: [read_one(line) for line in log.split(b"\n")[:-1]]


def on_one_line(document: bytes) -> bytes:
    """An XML document as a line: line ends in literals as references, those around elements as spaces."""
    text = re.sub(
        r">([^<]*)<",
        lambda match: (
            f">{match[1] if match[1].strip() == '' else match[1].replace(chr(10), '&#10;')}<"
        ),
        document.decode(),
    )
    return text.replace("\n", " ").encode() + b"\n"


def rdflib_writes_xml(messages: list[Message], _: Format) -> bytes:
    return b"".join(
        on_one_line(message.to_rdflib().default_graph.serialize(format="xml", encoding="utf-8"))
        for message in messages
    )


def pyoxigraph_writes_xml(messages: list[Message], _: Format) -> bytes:
    return b"".join(
        on_one_line(ox.serialize(message.to_pyoxigraph(), format=ox.RdfFormat.RDF_XML) or b"")
        for message in messages
    )


def documents_to_messages(documents: Iterable[Mapping[str, Any]]) -> list[Message]:
    """Documents of JSON-LD, with the rule of the active context."""
    messages = []
    active: list[Any] = []
    for document in documents:
        if document.keys() == {"@context"}:
            active = [document["@context"]]
            continue
        whole = {"@context": active[0], "@graph": document} if active else document
        messages.append(parsed(jsonld.to_rdf(whole, {"format": "application/n-quads"})))
    return messages


def pyld_documents(messages: Iterable[Message]) -> list[dict[str, Any]]:
    return [{"@graph": jsonld.from_rdf(quads_of(message))} for message in messages]


def pyld_reads(log: bytes, _: Format) -> list[Message]:
    return documents_to_messages(map(json.loads, log.split(b"\n")[:-1]))


def pyld_writes(messages: list[Message], _: Format) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in pyld_documents(messages))


def jsonld_reads(log: bytes, _: Format) -> list[Message]:
    return list(map(parsed, node("jsonld-read", "", log.decode())))


def jsonld_writes(messages: list[Message], _: Format) -> bytes:
    return bytes(node("jsonld-write", "", list(map(quads_of, messages))), "utf-8")


def pyyaml_reads(log: bytes, _: Format) -> list[Message]:
    return documents_to_messages(yaml.safe_load_all(log))


def pyyaml_writes(messages: list[Message], _: Format) -> bytes:
    return yaml.safe_dump_all(
        pyld_documents(messages), encoding="utf-8", explicit_start=True, allow_unicode=True
    )


def ruamel_reads(log: bytes, _: Format) -> list[Message]:
    return documents_to_messages(ruamel.yaml.YAML(typ="safe", pure=True).load_all(log))


def ruamel_writes(messages: list[Message], _: Format) -> bytes:
    out = io.BytesIO()
    dumper = ruamel.yaml.YAML(typ="safe", pure=True)
    dumper.explicit_start = True
    dumper.dump_all(pyld_documents(messages), out)
    return out.getvalue()


def rdfjs_jelly_reads(log: bytes, _: Format) -> list[Message]:
    modules = Path(os.environ.get("CONSTRUCT_MESSAGES_NODE", "nowhere")) / "node_modules"
    if not (modules / "rdfjs-jelly").exists():
        # not `absent`: no machine can be expected to have what no registry has
        pytest.skip(
            "rdfjs-jelly is on GitHub only: put it into the node_modules of CONSTRUCT_MESSAGES_NODE"
        )
    return list(map(parsed, node("jelly-read", "", base64.b64encode(log).decode())))


def pyjelly_reads(log: bytes, _: Format) -> list[Message]:
    def term(found: Any) -> Term:
        match found:
            case generic_sink.IRI():
                return iri(found._iri)
            case generic_sink.BlankNode():
                return blank(found._identifier)
            case generic_sink.Literal():
                return literal(found._lex, datatype=found._datatype, language=found._langtag)
            case generic_sink.Triple():
                return triple(*map(term, found))
        raise AssertionError(f"pyjelly's {found!r}")

    def quad(statement: Any) -> Quad:
        subject, predicate, object = map(term, statement[:3])
        named = len(statement) == 4 and statement[3] is not generic_sink.DefaultGraph
        return Quad(subject, predicate, object, term(statement[3]) if named else None)

    return [Message(map(quad, sink)) for sink in parse_jelly_grouped(io.BytesIO(log))]


def pyjelly_writes(messages: list[Message], _: Format) -> bytes:
    def term(ours: Term) -> Any:
        if is_triple(ours):
            return generic_sink.Triple(*map(term, triple_parts(ours)))
        if is_blank(ours):
            return generic_sink.BlankNode(ours[2:])
        if is_literal(ours):
            value, datatype, language, _ = literal_parts(ours)
            return generic_sink.Literal(
                value, language, datatype or (None if language else f"{XSD}string")
            )
        return generic_sink.IRI(ours[1:-1])

    def sink(message: Message) -> generic_sink.GenericStatementSink:
        filled = generic_sink.GenericStatementSink()
        for s, p, o, g in message:
            graph = generic_sink.DefaultGraph if g is None else term(g)
            filled.add(generic_sink.Quad(term(s), term(p), term(o), graph))
        return filled

    out = io.BytesIO()
    options = SerializerOptions(
        logical_type=jelly.LOGICAL_STREAM_TYPE_DATASETS, params=StreamParameters(rdf_star=True)
    )
    grouped_stream_to_file(map(sink, messages), out, options=options)
    return out.getvalue()


def labelled(*formats: Format) -> list[Kind]:
    return [Kind(format, LABELLED) for format in formats]


def rdfm(*formats: Format) -> list[Kind]:
    return [Kind(format, RDFM) for format in formats]


def own(format: Format) -> list[Kind]:
    assert format.own
    return [Kind(format, format.own)]


FOUR: Final = (N_TRIPLES, N_QUADS, TURTLE, TRIG)
PEERS: Final = [
    Peer("npm n3", labelled(*FOUR), n3_reads, n3_writes),
    Peer("pyling-n3", labelled(N_TRIPLES, TURTLE), pyling_reads),
    Peer("pyoxigraph", rdfm(*FOUR), pyoxigraph_reads, pyoxigraph_writes, flat=True),
    Peer("rdflib", rdfm(*FOUR), rdflib_reads, rdflib_writes, flat=True),
    Peer("PyLD", own(NDJSON_LD), pyld_reads, pyld_writes),
    Peer("npm jsonld", own(NDJSON_LD), jsonld_reads, jsonld_writes),
    Peer("PyYAML and PyLD", own(YAML_LD), pyyaml_reads, pyyaml_writes),
    Peer("ruamel.yaml and PyLD", own(YAML_LD), ruamel_reads, ruamel_writes),
    Peer(
        "rdflib, XML",
        own(RDF_XML),
        xml_lines(lambda line: rdflib_parses(line, RDF_XML)),
        rdflib_writes_xml,
    ),
    Peer(
        "pyoxigraph, XML",
        own(RDF_XML),
        xml_lines(lambda line: parsed(line, RDF_XML)),
        pyoxigraph_writes_xml,
    ),
    Peer("pyjelly", own(JELLY), pyjelly_reads, pyjelly_writes),
    Peer("npm rdfjs-jelly", own(JELLY), rdfjs_jelly_reads),
    Peer("rules of rdfjs-jelly", own(JELLY), lambda log, _: rdfjs_jelly.read(log)),
]

# What peers do otherwise: peer, way, extension and messages, each as a regular expression, and why.
ANY: Final = ".*"
YAML: Final = "(PyYAML|ruamel.yaml) and PyLD"
THEIRS: Final[dict[tuple[str, str, str, str], str]] = {
    (
        "pyling-n3",
        "reads",
        "nt",
        "triple terms",
    ): "a label within a triple term is another node than outside of it",
    (
        "pyling-n3",
        "reads",
        ANY,
        "directions",
    ): "base directions are dropped in N-Triples, and no syntax in Turtle",
    ("pyling-n3", "reads", ANY, "no message"): "a log of no messages is read as one empty message",
    (
        "pyling-n3|rdflib",
        "reads",
        "ttl|trig",
        "units",
    ): "rdflib writes decimals anew: 0.000001 as 1E-6",
    ("rdflib", ANY, ANY, "triple terms|directions"): "rdflib 7 knows RDF 1.1 only",
    ("rdflib", "writes", "ttl|trig", "units"): "rdflib writes decimals and doubles anew: 0 as 0.0",
    (
        "rdflib",
        "writes",
        "trig",
        "graphs",
    ): "rdflib writes [] for a blank node that names a graph, too",
    (
        "PyLD|npm jsonld",
        "reads",
        ANY,
        "units",
    ): "doubles are written anew: 0 as 0.0E0, with their @type, too",
    (YAML, "reads", ANY, "units"): "PyLD writes doubles anew: 0 as 0.0E0, with their @type, too",
    (
        f"PyLD|npm jsonld|{YAML}",
        "reads",
        ANY,
        "directions",
    ): "base directions are dropped unless rdfDirection is given",
    (f"PyLD|npm jsonld|{YAML}", "writes", ANY, "directions"): "N-Quads are read as of RDF 1.1",
    (
        f"PyLD|{YAML}",
        "writes",
        ANY,
        "units",
    ): "PyLD reads the escapes of N-Quads in turn: \\\\t as a backslash and a tab",
    (
        "npm jsonld",
        "writes",
        ANY,
        "graphs",
    ): "a blank node that names a graph loses its _: and so is relative",
    ("pyjelly", "reads", ANY, "no message"): "a file without frames is refused",
    ("pyjelly", "writes", ANY, "plain|graphs"): "empty messages are left out",
    (".* rdfjs-jelly", "reads", ANY, "triple terms"): "RDF-star is not supported",
    (".* rdfjs-jelly", "reads", ANY, "no message"): "a stream without options is refused",
}
