"""NDJSON-LD logs as data: messages and the lines that they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyoxigraph as ox

from construct_messages.logs import EncoderOptions, encoder_for
from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.rdf.formats import NDJSON_LD
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import RDF, XSD, Term, iri, literal
from tests.support.logs.kinds import Kind

LINES = Kind(NDJSON_LD, NDJSON_LD.own)

EX = {"ex": "http://example.org/"}
HEAD = '{"@context":{"ex":"http://example.org/"}}\n'


def ex(local: str) -> Term:
    return iri(f"http://example.org/{local}")


S, P, Q, O, G = map(ex, "spqog")  # noqa: E741 - the usual letter for an object
TYPE = iri(RDF + "type")
B = Term("_:b")


def message(*quads: tuple[Term, ...]) -> Message:
    return Message(Quad(*quad) for quad in quads)


EMPTY, ONE = Message(), message((S, P, O))

# messages, prefixes, and the log: what the encoder writes, and the decoder reads
LOGS: dict[str, tuple[list[Message], dict[str, str], str]] = {
    "no message": ([], {}, ""),
    "no message, prefixes": ([], EX, HEAD),
    "empty ones": ([EMPTY, EMPTY], {}, "{}\n{}\n"),
    "empty ones, prefixes": (
        [EMPTY, ONE, EMPTY],
        EX,
        HEAD + '{}\n{"@id":"ex:s","ex:p":{"@id":"ex:o"}}\n{}\n',
    ),
    "one": (
        [ONE],
        {},
        '{"@id":"http://example.org/s","http://example.org/p":{"@id":"http://example.org/o"}}\n',
    ),
    "many values": (
        [
            message(
                (S, P, literal("a")),
                (S, P, O),
                (S, Q, literal("b", language="en")),
                (S, P, literal("c")),
            )
        ],
        EX,
        HEAD
        + '{"@id":"ex:s","ex:p":["a",{"@id":"ex:o"},"c"],"ex:q":{"@value":"b","@language":"en"}}\n',
    ),
    "types": (
        [message((S, TYPE, O), (S, TYPE, B), (O, TYPE, literal("t")), (O, TYPE, Q))],
        EX,
        HEAD + '{"@included":[{"@id":"ex:s","@type":["ex:o","_:b"]},'
        f'{{"@id":"ex:o","{RDF}type":"t","@type":"ex:q"}}]}}\n',
    ),
    "a named graph": (
        [message((S, P, O, G), (O, P, B, G))],
        EX,
        HEAD
        + '{"@id":"ex:g","@graph":[{"@id":"ex:s","ex:p":{"@id":"ex:o"}},{"@id":"ex:o","ex:p":{"@id":"_:b"}}]}\n',
    ),
    "graphs": (
        [message((S, P, O, B), (S, P, O), (G, P, O), (S, P, literal("x"), G), (B, Q, B, B))],
        EX,
        HEAD + '{"@included":[{"@id":"_:b","@graph":[{"@id":"ex:s","ex:p":{"@id":"ex:o"}},'
        '{"@id":"_:b","ex:q":{"@id":"_:b"}}]},{"@id":"ex:s","ex:p":{"@id":"ex:o"}},'
        '{"@id":"ex:g","ex:p":{"@id":"ex:o"}},{"@id":"ex:g","@graph":[{"@id":"ex:s","ex:p":"x"}]}]}\n',
    ),
    "literals": (
        [
            message(
                (S, P, literal("01.50", datatype=XSD + "double")),
                (S, P, literal("{ }", datatype=RDF + "JSON")),
                (S, P, literal("x", datatype="http://example.org/d")),
                (S, P, literal("x", language="ar", direction="rtl")),
                (S, P, literal('{"@id": "a"}\n\u2028\x00\x7f')),
            )
        ],
        EX,
        HEAD + f'{{"@id":"ex:s","ex:p":[{{"@value":"01.50","@type":"{XSD}double"}},'
        f'{{"@value":"{{ }}","@type":"{RDF}JSON"}},{{"@value":"x","@type":"ex:d"}},'
        '{"@value":"x","@language":"ar","@direction":"rtl"},'
        '"{\\"@id\\": \\"a\\"}\\n\u2028\\u0000\x7f"]}\n',
    ),
    "an IRI that begins like a prefix": (
        [message((S, P, iri("ex:o"))), ONE],
        EX,
        HEAD
        + '{"@context":null,"@id":"http://example.org/s","http://example.org/p":{"@id":"ex:o"}}\n'
        '{"@id":"ex:s","ex:p":{"@id":"ex:o"}}\n',
    ),
    "a datatype that begins like a prefix": (
        [message((S, P, literal("x", datatype="ex:d")), (O, P, O))],
        EX,
        HEAD + '{"@context":null,"@included":[{"@id":"http://example.org/s",'
        '"http://example.org/p":{"@value":"x","@type":"ex:d"}},'
        '{"@id":"http://example.org/o","http://example.org/p":{"@id":"http://example.org/o"}}]}\n',
    ),
    "what would read as an authority": (
        [message((iri("http://example.org///s"), iri("ex://p"), iri("http://example.org/")))],
        EX,
        HEAD + '{"@id":"http://example.org///s","ex://p":{"@id":"ex:"}}\n',
    ),
    "prefixes of all kinds": (
        [message((iri("urn:a:b"), iri("http://example.org/ab"), iri("urn:c")))],
        {
            "a": "http://example.org/a",
            "urn": "urn:a:",
            "": "http://example.org/",
            "u": "urn:a:",
            "@x": "urn:x:",
            "r": "/",
        },
        '{"@context":{"a":{"@id":"http://example.org/a","@prefix":true},"u":"urn:a:"}}\n'
        '{"@id":"u:b","a:b":{"@id":"urn:c"}}\n',
    ),
}


def log(written: Sequence[Message], prefixes: Mapping[str, str] | None = None) -> str:
    encoder = encoder_for(NDJSON_LD, NDJSON_LD.own, EncoderOptions(prefixes))
    return b"".join([encoder.start(), *map(encoder.encode, written), encoder.finish()]).decode()


def parse(quads: str) -> Message:
    return to_message(ox.parse(quads, format=ox.RdfFormat.N_QUADS))
