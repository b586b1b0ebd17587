"""Media types: their grammar, the media types of a format, and those of HTTP that are in no table of formats.

Media types are parsed by RFC 9110, section 8.3.1. The formats are in the tables of this folder. `negotiation.py`
chooses one for a client.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import pyoxigraph as ox

# --- media types ----------------------------------------------------------------------------------

# RFC 9110, section 8.3; HTML; CSS; RFC 9239; SVG; RFC 9457
OCTET_STREAM: Final = "application/octet-stream"
HTML: Final = "text/html"
CSS: Final = "text/css"
JAVASCRIPT: Final = "text/javascript"
SVG: Final = "image/svg+xml"
XHTML: Final = "application/xhtml+xml"
EVENT_STREAM: Final = "text/event-stream"
JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
# Activity Streams 2.0, section 2.1: JSON-LD whose context is implied
ACTIVITY_JSON: Final = "application/activity+json"
# gRPC over HTTP/2
GRPC: Final = "application/grpc"
PROBLEM: Final = "application/problem+json"
# the encodings of a request's parameters: the URL Standard and RFC 7578
FORM: Final = "application/x-www-form-urlencoded"
MULTIPART_FORM: Final = "multipart/form-data"
# SPARQL 1.1 Protocol, sections 2.1.3 and 2.2.2
SPARQL_QUERY: Final = "application/sparql-query"
MERGE_PATCH: Final = "application/merge-patch+json"
SPARQL_UPDATE: Final = "application/sparql-update"


@dataclass(frozen=True, slots=True, kw_only=True)
class Serialization:
    """A format of answers or of input documents."""

    name: str
    media_type: str
    # further names and common media types that request it, in lower case
    names: tuple[str, ...]
    # whether the media type has the parameter `charset` in the output
    charset: bool = False
    # whether the embedded engine can serialize results in it
    written: bool = True

    @property
    def content_type(self) -> str:
        """The value of the header Content-Type."""
        return f"{self.media_type}; charset=utf-8" if self.charset else self.media_type


# RFC 9110: section 5.6.2 (token), 5.6.4 (quoted-string), 5.6.6 (parameters), 8.3.1 (media-type), in possessive
# repetitions, so that a hostile header takes linear time
_TOKEN: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
_MEDIA_TYPE: Final = re.compile(rf"[ \t]*+({_TOKEN}/{_TOKEN})[ \t]*+")
_PARAMETER: Final = re.compile(
    rf';[ \t]*+(?:({_TOKEN})=(?:({_TOKEN})|"((?:[^"\\]|\\.)*+)"))?[ \t]*+'
)
_QUOTED_PAIR: Final = re.compile(r"\\(.)")


def read_media_type(text: str) -> tuple[str, dict[str, str]] | None:
    """Parses a media type or range to `type/subtype` and its parameters, all in lower case; None if it is malformed.

    >>> read_media_type('Text/Turtle; Version="1.2-messages";')
    ('text/turtle', {'version': '1.2-messages'})
    >>> read_media_type("text/turtle; version"), read_media_type("text/turtle; q=1; q=0")
    (None, None)
    """
    match = _MEDIA_TYPE.match(text)
    if match is None:
        return None
    parameters = read_parameters(text[match.end() :])
    return None if parameters is None else (match[1].lower(), parameters)


def read_parameters(text: str) -> dict[str, str] | None:
    """Parses the parameters of a media type, names and values in lower case; None if the text is malformed.

    >>> read_parameters("; q=0.5; Charset=UTF-8")
    {'q': '0.5', 'charset': 'utf-8'}
    """
    parameters: dict[str, str] = {}
    place = 0
    while place < len(text):
        match = _PARAMETER.match(text, place)
        if match is None:
            return None
        place = match.end()
        name, token, quoted = match.groups()
        if name is None:
            continue
        if name.lower() in parameters:
            return None
        parameters[name.lower()] = (
            token if quoted is None else _QUOTED_PAIR.sub(r"\1", quoted)
        ).lower()
    return parameters


# --- documents ------------------------------------------------------------------------------------
# The table of RDF documents: formats of input files, and of answers to CONSTRUCT and DESCRIBE without messages.
#
# pyoxigraph reads and writes all of them. Logs are in another table (`__init__.py`), as documents have no delimiters.


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFormat(Serialization):
    """An RDF serialization of documents."""

    # of files, without the dot
    extensions: tuple[str, ...]
    # extensions that other files use, too: they determine the format of a single file, but do not mark a file in a
    # folder as RDF
    shared_extensions: tuple[str, ...] = ()
    # whether each statement is a line
    line_based: bool = False

    @property
    def parsed_as(self) -> ox.RdfFormat:
        """The format of pyoxigraph."""
        format = ox.RdfFormat.from_media_type(self.media_type)
        assert format is not None, self.media_type
        return format


TURTLE: Final = DocumentFormat(
    name="Turtle",
    media_type="text/turtle",
    # every Turtle document is one of N3
    names=("ttl", "turtle", "application/x-turtle", "n3", "text/n3", "text/rdf+n3"),
    charset=True,
    extensions=("ttl",),
)
N_TRIPLES: Final = DocumentFormat(
    name="N-Triples",
    media_type="application/n-triples",
    names=("nt", "ntriples", "n-triples", "text/plain"),
    extensions=("nt",),
    shared_extensions=("txt",),
    line_based=True,
)
RDF_XML: Final = DocumentFormat(
    name="RDF/XML",
    media_type="application/rdf+xml",
    names=("rdf", "rdfxml", "rdf+xml", "xml", "application/xml", "text/xml"),
    extensions=("rdf", "owl", "xml"),
)
JSON_LD: Final = DocumentFormat(
    name="JSON-LD",
    media_type="application/ld+json",
    names=("jsonld", "json-ld", "json", "application/json"),
    extensions=("jsonld",),
    shared_extensions=("json",),
)
N_QUADS: Final = DocumentFormat(
    name="N-Quads",
    media_type="application/n-quads",
    names=("nq", "nquads", "n-quads"),
    extensions=("nq",),
    line_based=True,
)
TRIG: Final = DocumentFormat(
    name="TriG", media_type="application/trig", names=("trig",), extensions=("trig",)
)
N3: Final = DocumentFormat(
    name="N3", media_type="text/n3", names=(), extensions=("n3",), written=False
)

DOCUMENTS: Final = (TURTLE, N_TRIPLES, RDF_XML, JSON_LD, N_QUADS, TRIG, N3)
"""All formats, in the order of preference for clients without preference."""

TRIPLES: Final = tuple(format for format in DOCUMENTS if format.written)
"""The formats of the embedded engine's answers to CONSTRUCT and DESCRIBE."""

EXTENSIONS: Final = ", ".join(
    f".{extension}" for format in DOCUMENTS for extension in format.extensions
)
"""The extensions of files, for hints."""


def format_of_document(extension: str, *, named: bool = True) -> DocumentFormat | None:
    """Returns the format of a file with an extension, without dot and in lower case; None: it is not RDF. `named`:
    whether the user named the file, rather than its folder.

    >>> format_of_document("owl").name, format_of_document("txt").name, format_of_document("txt", named=False)
    ('RDF/XML', 'N-Triples', None)
    """
    for format in DOCUMENTS:
        if extension in format.extensions or (named and extension in format.shared_extensions):
            return format
    return None


def find_document_format(text: str) -> DocumentFormat | None:
    """Returns the format with an extension, a name or a media type, in any case, or None.

    >>> find_document_format("n3").name, find_document_format("Text/Turtle; charset=utf-8").name
    ('N3', 'Turtle')
    """
    name = text.partition(";")[0].strip().lower()
    for format in DOCUMENTS:
        if name == format.media_type:
            return format
    # for answers, N3 is also a name for Turtle
    by_name = (format for format in DOCUMENTS if name in format.names)
    return format_of_document(name) or next(by_name, None)
