"""The table of RDF documents: formats of input files, and of answers to CONSTRUCT and DESCRIBE without messages.

pyoxigraph reads and writes all of them. Logs are in another table (`__init__.py`), as documents have no delimiters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyoxigraph as ox

from construct_messages.rdf.formats.media_types import Serialization


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
