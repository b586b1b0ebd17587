"""The table of SPARQL results formats: media types, what else asks for them, and where their decoders are.

A new format is a module in `results/` and a record here; which one a client gets is decided in `negotiation.py`. No
bytes of a result are read here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from construct_messages.formats.media_types import Serialization


@dataclass(frozen=True, kw_only=True)
class ResultsFormat(Serialization):
    """A format of solutions.

    Args:
        decoder: `module:name` within `results/`, imported when it is first asked for; None: it is not read.
        declares_encoding: whether a document declares its encoding; otherwise it must be UTF-8.
        tells_end: whether a truncated document is recognisable; otherwise the transfer must announce its length, and
            the format is only accepted if it was requested.
    """

    decoder: str | None = None
    declares_encoding: bool = False
    tells_end: bool = True


JSON: Final = ResultsFormat(
    name="JSON",
    media_type="application/sparql-results+json",
    names=("json", "srj", "application/json"),
    decoder="json:JsonDecoder",
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
    names=("tsv",),
    charset=True,
    decoder="tsv:TsvDecoder",
    tells_end=False,
)

RESULTS: Final = (JSON, XML, CSV, TSV)
"""All of them, in the order in which one is chosen where a client does not care."""

SOLUTIONS: Final = tuple(format for format in RESULTS if format.written)
"""What SELECT and ASK are answered in by the embedded engine."""

READ: Final[Mapping[str, ResultsFormat]] = {
    format.names[0]: format for format in RESULTS if format.decoder is not None
}
"""The formats that are read, by the names that users write."""


def find_results(media_type: str) -> ResultsFormat | None:
    """The format of an answer with a media type, in lower case and without parameters; None: it is no results format.

    >>> find_results("application/json").name, find_results("text/html")
    ('JSON', None)
    """
    return next(
        (format for format in RESULTS if media_type in (format.media_type, *format.names)), None
    )
