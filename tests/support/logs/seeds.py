"""Valid logs of each format, small and with as much of its syntax as goes in, and words that mean something in it.

What the fuzzer starts from; that they are valid is tested (tests/logs/hostile/test_fuzz.py).
"""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from typing import Final

from pyjelly import jelly
from pyjelly.integrations.generic.generic_sink import (
    IRI,
    BlankNode,
    DefaultGraph,
    GenericStatementSink,
    Literal,
)
from pyjelly.integrations.generic.generic_sink import Quad as JellyQuad
from pyjelly.integrations.generic.generic_sink import Triple as JellyTriple
from pyjelly.integrations.generic.serialize import GenericSinkTermEncoder, stream_frames
from pyjelly.options import LookupPreset, StreamParameters
from pyjelly.serialize.ioutils import write_delimited
from pyjelly.serialize.streams import GraphStream, QuadStream, SerializerOptions, TripleStream

from construct_messages.rdf.formats import (
    JELLY,
    N_QUADS,
    N_TRIPLES,
    NDJSON_LD,
    RDF_XML,
    TRIG,
    TURTLE,
    YAML_LD,
    Format,
)
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import RDF, XSD, Term, iri, literal, triple
from tests.support.logs.kinds import KINDS, write

_S, _P, _O, _G = (iri(f"http://example.org/{name}") for name in "spog")
_B, _C = Term("_:b0"), Term("_:c")

PLAIN: Final = [
    Message(),
    Message(
        [
            Quad(_S, _P, _O),
            Quad(_S, _P, literal('a "b"\n\\é\U0001f600')),
            Quad(_S, iri(f"{RDF}type"), _C),
        ]
    ),
    Message(
        [
            Quad(_B, _P, literal("chat", language="fr-be")),
            Quad(_B, _O, literal("01", datatype=f"{XSD}integer")),
        ]
    ),
    Message([Quad(_B, _P, _C), Quad(_C, _P, literal("\n# @message\nMESSAGE\n"))]),
    Message(),
]
"""What every kind of log can carry."""
GRAPHS: Final = [
    Message([Quad(_S, _P, _O, _G), Quad(_S, _P, _B, _B), Quad(_S, _P, _O), Quad(_C, _P, _O, _G)])
]
TRIPLE_TERMS: Final = [
    Message([Quad(_S, _P, triple(_B, _P, triple(_S, _P, literal(")>>")))), Quad(_B, _P, _O)])
]
DIRECTIONS: Final = [Message([Quad(_S, _P, literal("x", language="ar", direction="rtl"))])]

_BY_HAND: Final = Path(__file__).parent / "documents"
_READ_ALSO: Final = {N_QUADS: (N_TRIPLES,), TURTLE: (N_TRIPLES,), TRIG: (N_TRIPLES, TURTLE)}


@cache
def seeds(format: Format) -> list[bytes]:
    """Valid logs in a format: written by hand, by this package in every syntax, and by pyjelly."""
    readable = {format, *_READ_ALSO.get(format, ())}
    paths = sorted(path for each in readable for path in _BY_HAND.glob(f"*.{each.extension}"))
    logs = [path.read_bytes() for path in paths]
    for kind in KINDS:
        if kind.format is format:
            messages = [
                *PLAIN,
                *(GRAPHS if format.graphs else []),
                *(TRIPLE_TERMS if kind.syntax.triple_terms else []),
                *(DIRECTIONS if kind.syntax.directions else []),
            ]
            logs += [
                write(messages, kind),
                write(messages, kind, {"ex": "http://example.org/", "rdf": RDF}),
            ]
    return logs + (_by_pyjelly() if format is JELLY else [])


def _by_pyjelly() -> list[bytes]:
    """Logs of each physical type, with small tables and namespace declarations."""
    s, p, b = IRI("http://example.org/ns#s"), IRI("http://example.org/p"), BlankNode("b")
    o = [
        Literal("x"),
        Literal("y", "en"),
        Literal("1", None, f"{XSD}integer"),
        JellyTriple(b, p, s),
        IRI("urn:o"),
    ]
    triples = [JellyTriple(s, p, each) for each in o]
    quads = [
        JellyQuad(s, p, each, graph)
        for each, graph in zip(o, [s, s, b, DefaultGraph, p], strict=True)
    ]
    logs = []
    for stream_class, statements, logical in (
        (TripleStream, triples, jelly.LOGICAL_STREAM_TYPE_GRAPHS),
        (QuadStream, quads, jelly.LOGICAL_STREAM_TYPE_DATASETS),
        (GraphStream, quads, jelly.LOGICAL_STREAM_TYPE_DATASETS),
    ):
        for size, declarations in ((8, True), (4000, False)):
            options = SerializerOptions(
                logical_type=logical,
                params=StreamParameters(
                    generalized_statements=False, rdf_star=True, namespace_declarations=declarations
                ),
                lookup_preset=LookupPreset(max_names=size, max_prefixes=size, max_datatypes=size),
            )
            stream = stream_class(
                encoder=GenericSinkTermEncoder(lookup_preset=options.lookup_preset), options=options
            )
            out = io.BytesIO()
            for message in (statements, statements[:2]):
                sink = GenericStatementSink()
                sink.bind(
                    "ex", "http://example.org/"
                )  # an IRI, as it wants, would be written with its brackets
                for statement in message:
                    sink.add(statement)
                for frame in stream_frames(stream, sink):
                    write_delimited(frame, out)
            logs.append(out.getvalue())
    return logs


_OF_ALL: Final = (
    b"",
    b"\x00",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\xc3",
    b"\r",
    b"\n",
    b"\r\n",
    b" ",
    b"\xe2\x80\xa8",
)
_OF_LINES: Final = (
    *(
        b"MESSAGE\n",
        b"\nMESSAGE\n",
        b"# @message\n",
        b"#@message",
        b'VERSION "1.2-messages"\n',
        b'VERSION "1.1-messages"\n',
    ),
    *(
        b'VERSION "1.2"\n',
        b"<urn:a>",
        b"<a>",
        b"_:b0",
        b"_:",
        b'"x"',
        b'"',
        b"@en",
        b"--ltr",
        b"^^",
        b"<<( ",
        b" )>>",
    ),
    *(
        b'"x"@en_US',
        b'"\\uD800',
        b"<http://e/\\udfff>",
        b'"C:\\w"',
        b"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>",
    ),
    *(
        b" .",
        b".",
        b"\\u0041",
        b"\\uD800",
        b"\\U0010FFFF",
        b"\\U00110000",
        b"\\n",
        b"\\",
        b"#",
        b"<",
        b">",
        b"<urn:a b>",
        b"@",
    ),
)
_OF_TURTLE: Final = (
    *_OF_LINES,
    *(
        b'"""',
        b"'''",
        b"'",
        b"[",
        b"]",
        b"(",
        b")",
        b"{",
        b"}",
        b";",
        b",",
        b"a",
        b"ex:",
        b":",
        b"PREFIX ex: <urn:e:>\n",
    ),
    *(
        b"@prefix : <urn:d:> .\n",
        b"BASE <urn:b:x/>\n",
        b"@base <y> .",
        b"@message .",
        b'@version "1.2-messages" .',
    ),
    *(
        b"message ",
        b"<<",
        b">>",
        b"{|",
        b"|}",
        b"~",
        b"GRAPH ",
        b"1",
        b"1.",
        b"1.0e",
        b"true",
        b"-",
        b"%20",
        b"\\,",
    ),
)
_OF_JSON: Final = (
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b'"',
        b'"@id"',
        b'"@context"',
        b'"@graph"',
        b'"@type"',
        b'"@value"',
        b'"@list"',
    ),
    *(
        b'"@included"',
        b'"@reverse"',
        b'"@base"',
        b'"@vocab"',
        b'"@language"',
        b'"@container"',
        b'"@json"',
        b'"@import"',
    ),
    *(
        b'"@set"',
        b'"@index"',
        b'"@nest"',
        b'"@propagate"',
        b'"@protected"',
        b'"@version"',
        b'"@direction"',
        b"null",
    ),
    *(
        b"1",
        b"-0",
        b"1e999",
        b"1e400",
        b"NaN",
        b"Infinity",
        b"true",
        b"{}",
        b"\n{}\n",
        b'"_:b"',
        b'"urn:a"',
        b'"x":1,',
    ),
    *(b'"\\ud800"', b"\\", b'{"@context":{}}\n', b'{"@context":"urn:c"}\n', b"9" * 400),
)

_TOKENS: Final[dict[Format, tuple[bytes, ...]]] = {
    N_TRIPLES: _OF_LINES,
    N_QUADS: _OF_LINES,
    TURTLE: _OF_TURTLE,
    TRIG: _OF_TURTLE,
    NDJSON_LD: _OF_JSON,
    YAML_LD: (
        *_OF_JSON,
        *(
            b"---\n",
            b"...\n",
            b"--- ",
            b"%YAML 1.2\n",
            b"%TAG ! urn:\n",
            b"&a ",
            b"*a",
            b"!!str ",
            b"!!python/name:x ",
            b"!x ",
        ),
        *(
            b"|\n",
            b">-\n",
            b"- ",
            b"? ",
            b": ",
            b"<<: ",
            b"# ",
            b"~",
            b"no",
            b"12:30",
            b"0o7",
            b".inf",
            b"  ",
            b"\t",
            b"'",
        ),
    ),
    RDF_XML: (
        *(
            b"<",
            b">",
            b"/>",
            b"</",
            b"&",
            b"&amp;",
            b"&#0;",
            b"&#10;",
            b"&#xD800;",
            b"&x;",
            b"<!DOCTYPE x>",
            b"<!--",
            b"-->",
        ),
        *(
            b"<![CDATA[",
            b"]]>",
            b"<?xml version='1.0'?>",
            b"<?x?>",
            b" rdf:about=''",
            b" rdf:ID='i'",
            b" rdf:nodeID='n'",
        ),
        *(
            b" rdf:parseType='Literal'",
            b" rdf:parseType='Collection'",
            b" rdf:parseType='Resource'",
            b" rdf:resource='x'",
        ),
        *(
            b" rdf:datatype='urn:d'",
            b" xml:lang='en'",
            b" xml:base='urn:b'",
            b" xmlns:x='urn:x'",
            b" xmlns='urn:y'",
        ),
        *(
            b"<rdf:li/>",
            b"<rdf:Description>",
            b"</rdf:Description>",
            b"<x:y/>",
            b"\n",
            b'<rdf:RDF xmlns:rdf="">',
        ),
    ),
    JELLY: (
        *(
            b"\x00",
            b"\x01",
            b"\x0a",
            b"\x12",
            b"\x80",
            b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
            b"\xff" * 9 + b"\x01",
        ),
        *(
            b"\xff\xff\xff\xff\x0f",
            b"\x0a\x00",
            b"\x0a\x02\x0a\x00",
            b"\x7b",
            b"\xfa\x01\x00",
            b"\x1a\x02\x08\x01",
            b"\x7f",
        ),
    ),
}


def tokens(format: Format) -> tuple[bytes, ...]:
    """Words of a format, and bytes that are trouble in any."""
    return (*_TOKENS[format], *_OF_ALL)
