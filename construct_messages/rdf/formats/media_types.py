"""Media types: their grammar, the media types of a format, and those of HTTP that are in no table of formats.

Media types are parsed by RFC 9110, section 8.3.1. The formats are in the tables of this folder. `negotiation.py`
chooses one for a client.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

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
