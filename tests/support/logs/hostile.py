"""Logs made to hurt their reader, as data: deep, long, many, or much from little.

Each grows with a number, so that the same attack is small in a test of growth and large in a test of limits.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

from construct_messages.logs import encoder_for
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
from construct_messages.rdf.formats.lookup import find_syntax
from construct_messages.rdf.message import Message
from tests.support.logs.kinds import Kind

_LABELLED: Final = find_syntax("1.2-messages")
_RDF: Final = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'


def _kind(format: Format) -> Kind:
    return Kind(format, format.own or _LABELLED)


# --- deep ------------------------------------------------------------------------------------------------------------

Deep = Callable[[int], bytes]


def _turtle(opening: str, inmost: str, closing: str) -> Deep:
    return lambda depth: f"<urn:s> <urn:p> {opening * depth}{inmost}{closing * depth} .\n".encode()


def _json(opening: str, inmost: str, closing: str) -> Deep:
    return lambda depth: (
        f'{{"@id": "urn:s", "urn:p": {opening * depth}{inmost}{closing * depth}}}\n'.encode()
    )


def _xml(opening: str, inmost: str, closing: str, *, around: str = "{}") -> Deep:
    document = f"<rdf:RDF {_RDF} xmlns:e='urn:'>{around}</rdf:RDF>\n"
    return lambda depth: document.format(opening * depth + inmost + closing * depth).encode()


def varint(number: int) -> bytes:
    """A number as protocol buffers write it.

    >>> varint(300)
    b'\\xac\\x02'
    """
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


@lru_cache(16)  # a million rows alike are made as tests are collected
def field(number: int, value: bytes | int) -> bytes:
    """A field of a protocol buffer: a length and bytes, or a number.

    >>> field(1, b"ab"), field(2, 1)
    (b'\\n\\x02ab', b'\\x10\\x01')
    """
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def jelly(*rows: bytes, names: int = 4000) -> bytes:
    """A delimited frame of Jelly: the options of a stream of triples (rdf.proto, RdfStreamOptions), and more rows."""
    options = b"".join((field(2, 1), field(4, 1), field(9, names), field(14, 3), field(15, 1)))
    frame = b"".join(field(1, row) for row in (field(1, options), *rows))
    return varint(len(frame)) + frame


PREDICATE: Final = field(9, field(2, b"urn:p"))
ALIKE: Final = field(2, b"b") + field(5, field(2, 1))  # a subject and a predicate


def _quoted(depth: int) -> bytes:
    """A row with triples quoted within triples; each level needs the length of what is within it."""
    inmost = ALIKE + field(10, b"b")
    heads, size = [], len(inmost)
    for _ in range(depth):
        heads.append(ALIKE + varint(12 << 3 | 2) + varint(size))
        size += len(heads[-1])
    return field(2, b"".join(reversed(heads)) + inmost)


DEEP: Final[dict[str, tuple[Kind, Deep]]] = {
    **{
        f"triple terms in {format.name}": (
            _kind(format),
            _turtle("<<( <urn:s> <urn:p> ", "<urn:o>", " )>>"),
        )
        for format in (N_TRIPLES, N_QUADS, TURTLE, TRIG)
    },
    **{
        f"{what} in {format.name}": (_kind(format), _turtle(*parts))
        for format in (TURTLE, TRIG)
        for what, parts in {
            "blank nodes": ("[ <urn:p> ", "1", " ]"),
            "lists": ("( ", "1", " )"),
            "open brackets": ("[ <urn:p> ", "", ""),
            "open lists": ("( ", "", ""),
            "reified triples": ("<< <urn:s> <urn:p> ", "<urn:o>", " >>"),
            "annotations": ("<urn:o> {| <urn:p> ", "<urn:o>", " |}"),
        }.items()
    },
    **{
        f"{what} in {format.name}": (_kind(format), _json(*parts))
        for format in (NDJSON_LD, YAML_LD)
        for what, parts in {
            "arrays": ("[", "1", "]"),
            "nodes": ('{"urn:p": ', "1", "}"),
            "lists": ('{"@list": [', "1", "]}"),
            "graphs": ('{"@graph": ', "{}", "}"),
            "contexts": ('{"@context": {"p": {"@id": "urn:q"}}, "p": ', "1", "}"),
            "open arrays": ("[", "", ""),
            "open nodes": ('{"urn:p": ', "", ""),
            "json literals": ('{"@type": "@json", "@value": [', "1", "]}"),
        }.items()
    },
    "context definitions in NDJSON-LD": (
        _kind(NDJSON_LD),
        lambda depth: ('{"@context": ' * depth + "{}" + "}" * depth + "\n").encode(),
    ),
    "block sequences in YAML-LD": (
        _kind(YAML_LD),
        lambda depth: b"---\nurn:p:\n" + b"- " * depth + b"1\n",
    ),
    "block mappings in YAML-LD": (
        _kind(YAML_LD),
        lambda depth: (
            b"---\n" + b"".join(b" " * level + b"urn:p:\n" for level in range(min(depth, 3000)))
        ),
    ),
    "nodes in RDF/XML": (
        _kind(RDF_XML),
        _xml("<rdf:Description><e:p>", "<rdf:Description/>", "</e:p></rdf:Description>"),
    ),
    "resources in RDF/XML": (
        _kind(RDF_XML),
        _xml("<e:p rdf:parseType='Resource'>", "", "</e:p>", around="<rdf:Bag>{}</rdf:Bag>"),
    ),
    "XML literals in RDF/XML": (
        _kind(RDF_XML),
        _xml(
            "<e:x>", "", "</e:x>", around="<rdf:Bag><e:p rdf:parseType='Literal'>{}</e:p></rdf:Bag>"
        ),
    ),
    "open elements in RDF/XML": (_kind(RDF_XML), _xml("<rdf:Bag><e:p>", "", "")),
    "quoted triples in Jelly": (_kind(JELLY), lambda depth: jelly(PREDICATE, _quoted(depth))),
}


# --- long ------------------------------------------------------------------------------------------------------------


def long_literal(format: Format, size: int) -> Iterator[bytes]:
    """A log of one message, whose one literal has so many characters, in pieces."""
    before, after = {
        JELLY: (_jelly_head(size), b""),
        NDJSON_LD: (b'{"@id":"urn:s","urn:p":"', b'"}\n'),
        YAML_LD: (b'---\n"@id": "urn:s"\n"urn:p": "', b'"\n'),
        RDF_XML: (
            f'<rdf:RDF {_RDF}><rdf:Description rdf:about="urn:s"><p xmlns="urn:">'.encode(),
            b"</p></rdf:Description></rdf:RDF>\n",
        ),
    }.get(format, (b'VERSION "1.2-messages"\n<urn:s> <urn:p> "', b'" .\nMESSAGE\n'))
    yield before
    for start in range(0, size, PIECE):
        yield b"x" * min(PIECE, size - start)
    yield after


PIECE: Final = 1 << 16


def _jelly_head(size: int) -> bytes:
    """All of a frame with one triple but the bytes of the literal that ends it."""
    lengths = [size]
    heads = [varint(1 << 3 | 2) + varint(size)]  # RdfLiteral.lex
    for head in (
        ALIKE + varint(11 << 3 | 2),
        varint(2 << 3 | 2),
        varint(1 << 3 | 2),
    ):  # o_literal, triple, row
        lengths.append(lengths[-1] + len(heads[-1]))
        heads.append(head + varint(lengths[-1]))
    frame = jelly(PREDICATE)[1:] + b"".join(reversed(heads))  # whose length was one byte
    return varint(len(frame) + size) + frame


def endless(format: Format) -> Iterator[bytes]:
    """A message without an end, for ever."""
    before, piece = {
        JELLY: (varint(1 << 62), b"\x0a"),
        NDJSON_LD: (b'{"urn:p":"', b"x"),
        YAML_LD: (b'---\n"urn:p": "', b"x"),
        RDF_XML: (f"<rdf:RDF {_RDF}><!--".encode(), b"x"),
    }.get(format, (b'<urn:s> <urn:p> "', b"x"))
    yield before
    yield from itertools.repeat(piece * PIECE)


def empty_messages(kind: Kind, count: int) -> Iterator[bytes]:
    """A log of nothing but empty messages, in pieces."""
    encoder = encoder_for(kind.format, kind.syntax)
    yield encoder.start()
    yield encoder.encode(Message())
    one = encoder.encode(Message())  # the first of Jelly has the options, too
    for start in range(1, count, 1 << 14):
        yield one * min(1 << 14, count - start)
    yield encoder.finish()


# --- many ------------------------------------------------------------------------------------------------------------

STATEMENT: Final = b'<urn:s> <urn:p> "o" .\n'


def redeclared(count: int) -> bytes:
    """A Turtle log of one message, behind many declarations of one prefix."""
    declarations = "".join(f"PREFIX p: <urn:{number % 7}:>\n" for number in range(count))
    return f'VERSION "1.2-messages"\n{declarations}p:s p:p p:o .\nMESSAGE\n'.encode()


def many_prefixes(count: int, messages: int) -> bytes:
    """A Turtle log with many prefixes, and then many messages."""
    declarations = "".join(f"PREFIX p{number}: <urn:{number}:>\n" for number in range(count))
    return f'VERSION "1.2-messages"\n{declarations}'.encode() + (
        b"p0:s p1:p p2:o .\nMESSAGE\n" * messages
    )


def many_contexts(count: int) -> bytes:
    """An NDJSON-LD log with a context of its own before each message."""
    return b"".join(
        b'{"@context":{"p%d":{"@id":"urn:p","@type":"@id"}}}\n{"@id":"urn:s","p%d":"urn:o"}\n'
        % (number, number)
        for number in range(count)
    )


# --- much from little ------------------------------------------------------------------------------------------------


def _entities(kind: str) -> bytes:
    document = f"<rdf:RDF {_RDF}><rdf:Bag><rdf:li>&a;</rdf:li></rdf:Bag></rdf:RDF>\n"
    doctype = {
        "laughs": '<!ENTITY z "ha">'
        + "".join(
            f'<!ENTITY {name} "{f"&{inner};" * 10}">'
            for name, inner in itertools.pairwise("abcdefghijklmz")
        ),
        "quadratic": f'<!ENTITY z "{"x" * 100_000}"><!ENTITY a "{"&z;" * 10_000}">',
        "external": '<!ENTITY a SYSTEM "file:///etc/passwd">',
        "parameter": '<!ENTITY % x SYSTEM "http://127.0.0.1:1/x.dtd"> %x;',
    }[kind]
    return f"<!DOCTYPE rdf:RDF [{doctype}]>{document}".encode()


def _aliases(depth: int, width: int = 9) -> bytes:
    levels = ["a0: &a0 [x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, depth)]
    return ("---\n'@context': {'@vocab': 'urn:'}\n" + "\n".join(levels) + "\n").encode()


BOMBS: Final[dict[str, tuple[Format, bytes]]] = {
    **{
        f"entities: {kind}": (RDF_XML, _entities(kind))
        for kind in ("laughs", "quadratic", "external", "parameter")
    },
    "aliases: laughs": (YAML_LD, _aliases(12)),
    "aliases: cycle": (YAML_LD, b"--- &a\nurn:p: *a\n"),
    "aliases: merge keys": (
        YAML_LD,
        b"---\n"
        + b"".join(
            b"a%d: &a%d {<<: [*a%d, *a%d]}\n" % (n, n, n - 1, n - 1) for n in range(1, 40)
        ).replace(b"[*a0, *a0]", b"{}"),
    ),
    "an anchor for each node": (YAML_LD, b"---\nurn:p: [" + b"&a x, " * 20_000 + b"*a]\n"),
    "a Python object": (YAML_LD, b"--- !!python/object/apply:os.system ['true']\n"),
    "a table of 2^31 names": (JELLY, jelly(names=1 << 31)),
    "a frame of 2^62 bytes": (JELLY, varint(1 << 62) + b"\x0a\x00"),
    "a length without end": (JELLY, b"\xff" * 1000),
    "a number of 300,000 digits": (NDJSON_LD, b'{"@id":"urn:s","urn:p":' + b"9" * 300_000 + b"}\n"),
    "a number of 300,000 digits in YAML": (YAML_LD, b"---\nurn:p: " + b"9" * 300_000 + b"\n"),
    "an exponent of nine digits": (NDJSON_LD, b'{"@id":"urn:s","urn:p":1e999999999}\n'),
    "a sexagesimal number": (YAML_LD, b"---\nurn:p: " + b"1:" * 20_000 + b"1\n"),
    "a context that includes itself": (
        NDJSON_LD,
        b'{"@context":{"a":{"@id":"urn:a","@context":{"a":{"@id":"urn:a"}}}},"a":{"a":{}}}\n' * 10,
    ),
    "a term that is defined by itself": (
        NDJSON_LD,
        b'{"@context":{"a":"b:x","b":"a:x"},"a":"x"}\n',
    ),
}

HARMLESS: Final = {
    "an anchor for each node",
    "a context that includes itself",
    "a sexagesimal number",
}
"""What of these a careful reader may take as it is."""
