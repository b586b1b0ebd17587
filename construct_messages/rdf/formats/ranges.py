"""Parses the header `Accept`: its ranges, their weights, and the logs that each requests.

RFC 9110, section 12.5.1. `negotiation.py` chooses among the ranges.

Ranges are parsed by the grammar of RFC 9110 and not by a library: available libraries only parse `Content-Type`, accept
malformed ranges, or take quadratic time for a hostile header.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from construct_messages.rdf.formats import FORMATS, RDFM, VARIANTS, Format, Syntax
from construct_messages.rdf.formats.lookup import asks_for_messages
from construct_messages.rdf.formats.media_types import read_media_type

# the types that logs share with plain RDF
_SHARED: Final = frozenset(
    media_type
    for format in FORMATS
    if format.own is not None
    for media_type in format.media_types
    if not asks_for_messages(media_type, {})
)
# the elements of a list (RFC 9110, section 5.6.1): commas within quotes are not separators; an open quote extends to
# the end
_ELEMENT: Final = re.compile(r'(?:[^",]++|"(?:[^"\\]++|\\(?:.|\Z))*+(?:"|\Z))*+', re.DOTALL)
_WEIGHT: Final = re.compile(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")


class RangePattern(NamedTuple):
    """A pattern for the media types of logs.

    Args:
        media_type: `*/*`, `type/*` or `type/subtype`.
        label, version: of the syntax; None: any.
    """

    media_type: str
    label: str | None
    version: str | None

    def includes(self, media_type: str) -> bool:
        return self.media_type in ("*/*", f"{media_type.partition('/')[0]}/*", media_type)

    def takes(self, format: Format) -> bool:
        return any(map(self.includes, format.media_types))

    def fits(self, syntax: Syntax) -> bool:
        return self.label in (None, syntax.label) and self.version in (None, syntax.version)

    def logs(self) -> Iterator[tuple[Format, Syntax]]:
        """The logs that it requests: for each matching format, the format and the requested syntax."""
        for format in filter(self.takes, FORMATS):
            if asked := next(filter(format.can, filter(self.fits, VARIANTS)), None):
                yield format, asked

    @property
    def precision(self) -> tuple[int, int]:
        """A higher value is more specific: the type precedes the parameters."""
        return -self.media_type.count("*"), (self.label is not None) + (self.version is not None)


class AcceptRange(NamedTuple):
    """One element of the header.

    Args:
        text: as written, with surrounding white space.
        pattern: None if the element is malformed.
        weight: in thousandths; 0 if the element is malformed.
        asks: whether it requests messages.
        shared: whether it may request messages or plain RDF.
    """

    text: str
    pattern: RangePattern | None
    weight: int
    asks: bool = False
    shared: bool = False


def read_ranges(header: str) -> Iterator[AcceptRange]:
    place = 0
    while place < len(header):
        element = _ELEMENT.match(header, place)
        text = element.group() if element else ""
        place += len(text) + 1
        yield read_range(text)


def read_range(text: str) -> AcceptRange:
    media_type, parameters = read_media_type(text) or ("", {})
    weight = parameters.pop("q", "1")
    kind, _, subtype = media_type.partition("/")
    if (
        not media_type
        or not _WEIGHT.fullmatch(weight)
        or ("*" in media_type and (subtype != "*" or "*" in kind[1:]))
    ):
        return AcceptRange(text, None, 0)
    if parameters.get("charset") == "utf-8":
        del parameters["charset"]  # logs are UTF-8 anyway
    asks = asks_for_messages(media_type, parameters)
    label, version = parameters.pop("messages", None), parameters.pop("version", None)
    if version is not None and version.endswith("-messages"):
        label = version  # it takes precedence over messages=rdfm
    elif label != RDFM.label and label is not None:
        label = ""  # other labels are versions
    if parameters:
        label = ""  # no log has other parameters
    pattern = RangePattern(media_type, label, version)
    shared = not asks and media_type in _SHARED and any(pattern.logs())
    return AcceptRange(text, pattern, round(float(weight) * 1000), asks, shared)


def media_ranges(accept: str) -> Iterator[tuple[str, int]]:
    """The well-formed ranges of an Accept header, without their parameters, and their weights in thousandths.

    >>> list(media_ranges("text/csv;q=0.5, nonsense, */*"))
    [('text/csv', 500), ('*/*', 1000)]
    """
    for range in read_ranges(accept):
        if range.pattern is not None:
            yield range.pattern.media_type, range.weight
