"""What reads and writes the logs of `micro shapes` in Python, each in a process that is asked by lines of JSON."""

from __future__ import annotations

import io
import json
import resource
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyoxigraph as ox

from benchmarks.micro import texts
from construct_messages.logs import DecoderOptions, EncoderOptions, decoder_for, encoder_for
from construct_messages.rdf.formats import JELLY, N_QUADS, NDJSON_LD, RDF_XML, RDFM, TRIG, TURTLE
from construct_messages.rdf.message import Message

FORMATS = {
    format.extension: format for format in (N_QUADS, TURTLE, TRIG, NDJSON_LD, JELLY, RDF_XML)
}
CHUNK = 1 << 16
CONTEXTS = {texts.SCHEMA: texts.schema_context()}

Run = Callable[[], int]
"""Reads or writes a log once, and returns the number of its quads."""


def serve(side: str) -> None:
    """Answers what standard input asks, as peers.cjs does."""
    for line in sys.stdin:
        asked = json.loads(line)
        path, extension = Path(asked["path"]), asked["extension"]
        if asked["do"] == "dump":
            print(json.dumps({"messages": DUMPS[side](path, extension)}), flush=True)
            continue
        run = (WRITE if asked["do"] == "write" else READ)[side](path, extension)
        started = time.process_time()
        quads = run()
        cpu = time.process_time() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps({"cpu": cpu, "quads": quads, "peak": peak}), flush=True)


# --- this package ---


def _ours(path: Path, extension: str) -> Iterator[Message]:
    decoder = decoder_for(FORMATS[extension], options=DecoderOptions(contexts=CONTEXTS))
    with path.open("rb") as log:
        while chunk := log.read(CHUNK):
            yield from decoder.feed(chunk)
    yield from decoder.close()


def _run_ours(path: Path, extension: str) -> Run:
    return lambda: sum(map(len, _ours(path, extension)))


def _write_ours(path: Path, extension: str) -> Run:
    held = [Message(tuple(message)) for message in _ours(path, extension)]
    quads = sum(map(len, held))

    def write() -> int:
        format = FORMATS[extension]
        options = EncoderOptions(prefixes=texts.NAMES, triple_terms=True)
        encoder = encoder_for(format, format.own or RDFM, options)
        b"".join((encoder.start(), *map(encoder.encode, held), encoder.finish()))
        return quads

    return write


def _dump_ours(path: Path, extension: str) -> list[str]:
    return [message.lines.decode() for message in _ours(path, extension)]


# --- pyoxigraph: to quads, without messages except where each line is a document ---

_OX = {"ndjsonld": ox.RdfFormat.JSON_LD, "rdfxml": ox.RdfFormat.RDF_XML}


def _documents(path: Path, extension: str) -> tuple[list[bytes], ox.RdfFormat]:
    data = path.read_bytes()
    if extension in _OX:
        return data.splitlines(), _OX[extension]
    known = ox.RdfFormat.from_extension(extension)
    assert known is not None
    return [texts.document(data)], known


def _run_pyoxigraph(path: Path, extension: str) -> Run:
    documents, format = _documents(path, extension)

    def parse() -> int:
        count = 0
        for document in documents:
            # enumerating costs less than a list of its quads
            last = deque(enumerate(ox.parse(document, format=format), 1), maxlen=1)
            count += last[0][0]
        return count

    return parse


def _dump_pyoxigraph(path: Path, extension: str) -> list[str]:
    documents, format = _documents(path, extension)
    return [
        "".join(f"{quad} .\n" for quad in ox.parse(document, format=format))
        for document in documents
    ]


# --- PyLD ---


def _loader(iri: str, _: object) -> dict[str, object]:
    return {"documentUrl": iri, "document": CONTEXTS[iri], "contextUrl": None}


def _run_pyld(path: Path, _: str) -> Run:
    from pyld import jsonld  # type: ignore[import-untyped] # it has no type information

    lines = path.read_bytes().splitlines()

    def read() -> int:
        datasets = (jsonld.to_rdf(json.loads(line), {"documentLoader": _loader}) for line in lines)
        return sum(len(graph) for dataset in datasets for graph in dataset.values())

    return read


def _dump_pyld(path: Path, _: str) -> list[str]:
    from pyld import jsonld

    options = {"documentLoader": _loader, "format": "application/n-quads"}
    return [jsonld.to_rdf(json.loads(line), options) for line in path.read_bytes().splitlines()]


# --- rdflib ---


def _run_rdflib(path: Path, _: str) -> Run:
    from rdflib import Graph

    lines = path.read_bytes().splitlines()

    def read() -> int:
        # without the namespaces that it binds to each graph, which takes longer than to read a short one
        graphs = (Graph(bind_namespaces="none").parse(data=line, format="xml") for line in lines)
        return sum(map(len, graphs))

    return read


def _dump_rdflib(path: Path, _: str) -> list[str]:
    import rdflib

    rdflib.NORMALIZE_LITERALS = False
    return [
        rdflib.Graph().parse(data=line, format="xml").serialize(format="nt11")
        for line in path.read_bytes().splitlines()
    ]


def _write_rdflib(path: Path, extension: str) -> Run:
    from rdflib import Graph

    graphs = []
    for message in _ours(path, extension):
        graph = Graph(bind_namespaces="none")
        for name, iri in texts.NAMES.items():
            graph.bind(name, iri)
        graphs.append(graph.parse(data=message.lines, format="nt"))
    format = {"rdfxml": "xml", "ndjsonld": "json-ld", "ttl": "turtle"}[extension]
    quads = sum(map(len, graphs))
    return lambda: quads if [graph.serialize(format=format) for graph in graphs] else 0


# --- pyjelly ---


def _run_pyjelly(path: Path, _: str) -> Run:
    from pyjelly.integrations.generic.parse import parse_jelly_grouped

    data = path.read_bytes()
    return lambda: sum(map(len, parse_jelly_grouped(io.BytesIO(data))))


def _dump_pyjelly(path: Path, _: str) -> list[str]:
    from pyjelly.integrations.generic.parse import parse_jelly_grouped

    return [
        "".join(f"{' '.join(map(_line, statement))} .\n" for statement in sink.store)
        for sink in parse_jelly_grouped(io.BytesIO(path.read_bytes()))
    ]


def _line(term: Any) -> str:
    from pyjelly.integrations.generic.generic_sink import Triple

    return f"<<( {' '.join(map(_line, term))} )>>" if isinstance(term, Triple) else str(term)


def _write_pyjelly(path: Path, _: str) -> Run:
    from pyjelly.integrations.generic.parse import parse_jelly_grouped

    data = path.read_bytes()
    sinks = [*parse_jelly_grouped(io.BytesIO(data))]
    physical = "TRIPLES" if sinks[0].is_triples_sink else "QUADS"
    quads = sum(map(len, sinks))
    return lambda: quads if _by_pyjelly(sinks, physical) else 0


def jelly(messages: list[list[ox.Quad]], physical: str) -> bytes:
    """A Jelly log of the messages, written by pyjelly. `physical`: TRIPLES, QUADS or GRAPHS."""
    from pyjelly.integrations.generic import generic_sink as sink

    def term(value: Any) -> Any:
        if isinstance(value, ox.Triple):
            return sink.Triple(term(value.subject), term(value.predicate), term(value.object))
        if isinstance(value, ox.NamedNode):
            return sink.IRI(value.value)
        if isinstance(value, ox.BlankNode):
            return sink.BlankNode(value.value)
        if isinstance(value, ox.DefaultGraph):
            return sink.DefaultGraph
        plain = value.language or value.datatype.value == f"{texts.NAMES['xsd']}string"
        return sink.Literal(value.value, value.language, None if plain else value.datatype.value)

    sinks = []
    for quads in messages:
        store = sink.GenericStatementSink()
        for quad in quads:
            triple = [term(each) for each in (quad.subject, quad.predicate, quad.object)]
            if physical == "TRIPLES":
                store.add(sink.Triple(*triple))
            else:
                store.add(sink.Quad(*triple, term(quad.graph_name)))
        sinks.append(store)
    return _by_pyjelly(sinks, physical)


def _by_pyjelly(sinks: Sequence[Any], physical: str) -> bytes:
    from pyjelly import jelly
    from pyjelly.integrations.generic import serialize
    from pyjelly.options import StreamParameters
    from pyjelly.serialize import streams
    from pyjelly.serialize.ioutils import write_delimited

    kind = {
        "TRIPLES": streams.TripleStream,
        "QUADS": streams.QuadStream,
        "GRAPHS": streams.GraphStream,
    }[physical]
    logical = "GRAPHS" if physical == "TRIPLES" else "DATASETS"
    options = streams.SerializerOptions(
        logical_type=getattr(jelly, f"LOGICAL_STREAM_TYPE_{logical}"),
        params=StreamParameters(rdf_star=True),
    )
    encoder = serialize.GenericSinkTermEncoder(lookup_preset=options.lookup_preset)
    stream, out = kind(encoder=encoder, options=options), io.BytesIO()
    for sink in sinks:
        for frame in serialize.stream_frames(stream, sink):
            write_delimited(frame, out)
    return out.getvalue()


READ = {
    "ours": _run_ours,
    "pyoxigraph": _run_pyoxigraph,
    "PyLD": _run_pyld,
    "rdflib": _run_rdflib,
    "pyjelly": _run_pyjelly,
}
DUMPS = {
    "ours": _dump_ours,
    "pyoxigraph": _dump_pyoxigraph,
    "PyLD": _dump_pyld,
    "rdflib": _dump_rdflib,
    "pyjelly": _dump_pyjelly,
}
WRITE = {"ours": _write_ours, "rdflib": _write_rdflib, "pyjelly": _write_pyjelly}
