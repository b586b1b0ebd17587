"""The table of SPARQL results formats: media types, other names, and decoders.

A new format is a module in `results/` and a record here; `negotiation.py` chooses one for a client. No bytes of a
result are read here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from construct_messages.rdf.formats.media_types import Serialization


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsFormat(Serialization):
    """A format of solutions."""

    # `module:name` within `results/`, imported on first use; None: the format is not read
    decoder: str | None = None
    # whether a document declares its encoding; otherwise it must be UTF-8
    declares_encoding: bool = False
    # whether truncated documents can be detected; otherwise the transfer must announce its length, and the format is
    # only accepted if it was requested
    tells_end: bool = True
    # media types of the same format that are requested, too, and read
    variants: tuple[str, ...] = ()


JSON: Final = ResultsFormat(
    name="JSON",
    media_type="application/sparql-results+json",
    names=("json", "srj", "application/json"),
    decoder="json:JsonDecoder",
    # in which RDF4J and GraphDB write triple terms. After the media type of the recommendation with the same weight:
    # RDF4J then chooses this one, and Virtuoso, which takes XML if the first is unknown to it, the other
    variants=("application/x-sparqlstar-results+json",),
)
XML: Final = ResultsFormat(
    name="XML",
    media_type="application/sparql-results+xml",
    names=("xml", "srx", "application/xml", "text/xml"),
    decoder="xml:XmlDecoder",
    declares_encoding=True,
)
CSV: Final = ResultsFormat(
    name="CSV", media_type="text/csv", names=("csv",), charset=True, tells_end=False
)
TSV: Final = ResultsFormat(
    name="TSV",
    media_type="text/tab-separated-values",
    # not text/sparql-results+tsv, under which Ontop writes strings as if they were other terms
    names=("tsv",),
    charset=True,
    decoder="tsv:TsvDecoder",
    tells_end=False,
)

RESULTS: Final = (JSON, XML, CSV, TSV)
"""All formats, in the order of preference for clients without preference."""

SOLUTIONS: Final = tuple(format for format in RESULTS if format.written)
"""The formats of the embedded engine's answers to SELECT and ASK."""

READ: Final[Mapping[str, ResultsFormat]] = {
    format.names[0]: format for format in RESULTS if format.decoder is not None
}
"""The formats that can be read, by the names that users write."""


def find_results(media_type: str) -> ResultsFormat | None:
    """Returns the results format with a media type, in lower case and without parameters, or None.

    >>> find_results("application/json").name, find_results("text/html")
    ('JSON', None)
    """
    return next(
        (
            format
            for format in RESULTS
            if media_type in (format.media_type, *format.variants, *format.names)
        ),
        None,
    )
