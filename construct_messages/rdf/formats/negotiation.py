"""Content negotiation: messages in a format and syntax, or the source's own answer.

RFC 9110, section 12.5.1 (Accept), and the parameters `format` and `messages` of a URL for
clients that cannot set headers. A range requests messages by its parameters (`messages=rdfm`, `version=1.2-messages`)
or by a type that only logs have (`application/rdfm+xml`); all other ranges are plain, and are left to the source. In
between are the types that logs share with plain RDF (`application/x-jelly-rdf`, `application/x-ld+ndjson`): without
parameters they only request messages if no plain range has the same or a higher weight, so that a client that lists all
types that it reads gets plain RDF as before. Of HTTP, only the field's value is parsed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, TypeVar

from construct_messages.errors import NotAcceptable, UsageError
from construct_messages.rdf.formats import (
    FORMATS,
    LABELLED,
    LOGS,
    RDFM,
    VARIANTS,
    Format,
    LogType,
    Syntax,
    content_type,
)
from construct_messages.rdf.formats.lookup import asks_for_messages, find_format, find_syntax
from construct_messages.rdf.formats.media_types import (
    DOCUMENTS,
    HTML,
    JSON,
    XHTML,
    Serialization,
    read_media_type,
)

# --- ranges ---------------------------------------------------------------------------------------
# Parses the header `Accept`: its ranges, their weights, and the logs that each requests.
#
# RFC 9110, section 12.5.1.
#
# Ranges are parsed by the grammar of RFC 9110 and not by a library: available libraries only parse `Content-Type`,
# accept malformed ranges, or take quadratic time for a hostile header.

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
    """A pattern for the media types of logs."""

    # `*/*`, `type/*` or `type/subtype`
    media_type: str
    # label, version: of the syntax; None: any
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
    """One element of the header."""

    # as written, with surrounding white space
    text: str
    # None if the element is malformed
    pattern: RangePattern | None
    # in thousandths; 0 if the element is malformed
    weight: int
    # whether it requests messages
    asks: bool = False
    # whether it may request messages or plain RDF
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


# --- negotiation ----------------------------------------------------------------------------------

S = TypeVar("S", bound=Serialization)


@dataclass(frozen=True)
class Plain:
    """The client requests the source's own answer."""

    # the `Accept` to forward: the client's own without the ranges for messages; None: none
    accept: str | None


Choice: TypeAlias = LogType | Plain

OFFERED: Final = tuple(content_type(*log) for log in LOGS)
"""The media types of all logs, best first."""

_HOW_TO_ASK: Final = (
    f"ask for {', '.join(format.media_type for format in FORMATS if format.own is None)} with messages=rdfm, "
    + ", ".join(f"version={syntax.label}" for syntax in LABELLED)
    + f"; or for {', '.join(format.media_type for format in FORMATS if format.own is not None)}"
)


def negotiate(
    accept: str | None,
    *,
    format: str | None = None,
    messages: str | None = None,
    construct: bool = True,
) -> Choice:
    """Chooses the answer for a request. `accept`: the value of the header; several values are joined with a comma.
    `format`: the parameter of that name, decoded: a name, extension or media type. Other formats than those of logs are
    left to the source. `messages`: the parameter of that name: a label, which requests messages and overrides the
    header. `construct`: whether the query is a CONSTRUCT; other queries have no messages.

    A header without a range for messages is forwarded unchanged, even if it is malformed. Otherwise malformed ranges
    are ignored. A log has the weight of the most specific range that matches it, and is chosen unless a plain range has
    a higher weight (or the same weight, for a type that logs share with plain RDF). At equal weights a named format
    precedes a wildcard, and then the earlier range comes first.

    >>> content_type(*negotiate("text/turtle;q=0.9, application/trig;messages=rdfm"))
    'application/trig; version=1.2; messages=rdfm'
    >>> negotiate("text/turtle, application/trig;messages=rdfm;q=0.9, */*;q=0.1")
    Plain(accept='text/turtle, */*;q=0.1')
    >>> content_type(*negotiate("text/html", format="ttl", messages="1.2-messages"))
    'text/turtle; version=1.2-messages'
    >>> content_type(*negotiate("application/x-jelly-rdf, text/turtle;q=0.9"))
    'application/x-jelly-rdf'
    >>> negotiate("application/x-jelly-rdf, text/turtle")
    Plain(accept='application/x-jelly-rdf, text/turtle')
    """
    ranges = tuple(read_ranges(accept or ""))
    if (named := _named(format or "", messages or "", ranges, construct)) is not None:
        if not construct:
            raise _unmet("the URL asks for messages", construct)
        return named
    if construct and not format:
        ranges = _with_shared_types(ranges)
    if not any(range.asks for range in ranges):
        return Plain(accept)
    plain = max((range.weight for range in ranges if not range.asks), default=0)
    best, weight = _best(ranges) if construct else (None, 0)
    other = _format(format) if format else None
    if best is not None and weight >= plain and (other or not format):
        wanted, asked = best
        wanted = other or wanted
        return LogType(wanted, wanted.syntax(asked))
    rest = ",".join(range.text for range in ranges if not range.asks).strip()
    if plain == 0 and not format:
        raise _unmet(f"no available format matches Accept: {_shown(accept or '')}", construct)
    return Plain(rest or None)


def prefer(accept: str | None, offered: Sequence[str]) -> str:
    """Returns the preferred media type of a client among several without messages. `accept`: the value of the header;
    several values are joined with a comma. `offered`: media types without parameters, in lower case; best first.

    Malformed ranges are ignored, and a header without a well-formed range means `*/*`; at equal weights, the first
    offered one is chosen.

    >>> prefer("text/html, application/*;q=0.8, */*;q=0.1", ["text/turtle", "application/n-triples"])
    'application/n-triples'
    """
    ranges = tuple(read_ranges(accept or ""))
    if all(range.pattern is None for range in ranges):
        return offered[0]
    plain: dict[RangePattern, int] = {}
    for _, pattern, weight, asks, _ in ranges:
        if pattern is not None and not asks and any(map(pattern.includes, offered)):
            plain.setdefault(pattern, weight)
    weights = []
    for media_type in offered:
        matching = [pattern for pattern in plain if pattern.includes(media_type)]
        weights.append(
            plain[max(matching, key=lambda pattern: pattern.precision)] if matching else 0
        )
    if not any(weights):
        raise NotAcceptable(
            f"no available format matches Accept: {_shown(accept or '')}",
            hint=f"ask for one of {', '.join(offered)}",
            offered=tuple(offered),
        )
    return offered[weights.index(max(weights))]


def choose(offered: Sequence[S], accept: str | None, format: str | None = None) -> S | None:
    """Returns the preferred serialization of a client; None: it accepts none of them. `accept`: the header's value;
    None or empty: anything. `format`: a name or media type, which takes precedence over the header.

    A serialization has the weight of the most specific range that matches it. At equal weights, a named one precedes a
    wildcard, then the earlier range, then the first offered one. Malformed ranges are ignored.

    >>> from construct_messages.rdf.formats.media_types import TRIPLES
    >>> from construct_messages.rdf.formats.results import SOLUTIONS
    >>> choose(SOLUTIONS, "text/csv;q=0.5, application/json").media_type
    'application/sparql-results+json'
    >>> choose(TRIPLES, "text/turtle;q=0, */*;q=0.1").media_type
    'application/n-triples'
    >>> choose(TRIPLES, "text/csv", format="NT").media_type
    'application/n-triples'
    >>> choose(TRIPLES, "text/csv") is None
    True
    """
    if format:
        wanted = format.partition(";")[0].strip().lower()
        return next((each for each in offered if wanted in (each.media_type, *each.names)), None)
    if not accept or not accept.strip():
        return offered[0]
    ranges = _ranges(accept)
    best, highest = None, (0, 0, 0)
    for each in offered:
        rank = max(
            (rank for pattern, rank in ranges.items() if _takes(pattern, each)),
            key=lambda rank: rank[1:],
            default=None,
        )
        if rank is not None and rank[0] and (best is None or rank > highest):
            best, highest = each, rank
    return best


_DATA: Final = frozenset(
    (
        JSON,
        *(format.media_type for format in DOCUMENTS),
        *(type for format in FORMATS for type in format.media_types),
    )
)


def prefers_html(accept: str | None) -> bool:
    """Whether a client prefers a page to data: it names HTML with a higher weight than all types of RDF. `accept`: the
    value of the header; None: there is no header.

    Wildcards do not request a page, and at equal weights data are preferred, so that programs still get data.

    >>> prefers_html("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"), prefers_html("*/*")
    (True, False)
    >>> prefers_html("application/n-quads,text/turtle;q=0.9,text/html;q=0.2"), prefers_html("text/html, */*")
    (False, False)
    """
    weights: dict[str, int] = {}
    for media_type, weight in media_ranges(accept or ""):
        weights.setdefault(media_type, weight)

    def weight_of(media_type: str) -> int:
        wildcards = f"{media_type.partition('/')[0]}/*", "*/*"
        return next((weights[name] for name in (media_type, *wildcards) if name in weights), 0)

    return max(weights.get(HTML, 0), weights.get(XHTML, 0)) > max(map(weight_of, _DATA))


def _with_shared_types(ranges: Sequence[AcceptRange]) -> tuple[AcceptRange, ...]:
    """The ranges; those of shared types request messages if they have the highest weight and are not excluded."""
    plain = max((range.weight for range in ranges if not (range.asks or range.shared)), default=0)
    refused = {
        media_type
        for pattern in {range.pattern for range in ranges if range.asks and range.weight == 0}
        for format, _ in (pattern.logs() if pattern else ())
        for media_type in format.media_types
    }
    return tuple(
        range._replace(asks=True)
        if range.shared
        and range.weight > plain
        and range.pattern
        and range.pattern.media_type not in refused
        else range
        for range in ranges
    )


def _best(ranges: Iterable[AcceptRange]) -> tuple[tuple[Format, Syntax] | None, int]:
    """The log with the highest weight, the request for it, and the weight: that of the most specific matching range.

    Plain ranges only matter if they exclude something. The number of patterns for logs is limited for any header.
    """
    patterns: dict[RangePattern, tuple[int, bool]] = {}
    for _, pattern, weight, asks, _ in ranges:
        if pattern is not None and (asks or weight == 0) and any(pattern.logs()):
            patterns.setdefault(pattern, (weight, asks))
    found: tuple[Format, Syntax] | None = None
    highest = 0, 0
    for pattern, (weight, asks) in patterns.items():
        for format, asked in pattern.logs() if asks and weight else ():
            decisive = max(
                (p for p in patterns if p.takes(format) and p.fits(asked)),
                key=lambda p: p.precision,
            )
            rank = patterns[decisive][0], decisive.precision[0]
            if rank[0] and (found is None or rank > highest):
                found, highest = (format, asked), rank
    return found, highest[0]


def _named(
    format: str, messages: str, ranges: Iterable[AcceptRange], construct: bool
) -> LogType | None:
    """Returns the type of log that the parameters of the URL request, or None.

    A media type is read like a header; a name may be that of a plain format.
    """
    name, _, parameters = format.partition(";")
    range = read_range(format if "/" in name else f"*/*;{parameters}")
    if range.asks or (range.shared and construct and not messages):
        found, syntax = find_format(format)
        return None if syntax is None else LogType(found, syntax)
    if not messages:
        return None
    asked = find_syntax(messages)
    if not format:
        found = _named_format(ranges, asked)
        return LogType(found, found.syntax(asked))
    # so that a version with it restricts the content of messages
    found, restricted = find_format(f"{format}; messages=rdfm" if asked is RDFM else format)
    return LogType(found, found.syntax(asked if found.own else restricted or asked))


def _named_format(ranges: Iterable[AcceptRange], asked: Syntax) -> Format:
    """The conforming format with the highest weight in the header; else the most preferred one."""
    named = {
        media_type: format
        for format in FORMATS
        if format.can(asked)
        for media_type in format.media_types
    }
    best = max(
        ranges,
        key=lambda r: r.weight if r.pattern and r.pattern.media_type in named else 0,
        default=None,
    )
    if best is None or best.pattern is None or best.weight == 0:
        return FORMATS[0]
    return named.get(best.pattern.media_type, FORMATS[0])


def _format(text: str) -> Format | None:
    try:
        return find_format(text)[0]
    except UsageError:
        return None  # not a log format: the source may have it


def _unmet(message: str, construct: bool) -> NotAcceptable:
    if not construct:
        return NotAcceptable(
            f"{message}, and only CONSTRUCT queries return messages",
            hint="request a media type without messages",
        )
    return NotAcceptable(message, hint=_HOW_TO_ASK, offered=OFFERED)


def _shown(header: str) -> str:
    return header if len(header) <= 200 else f"{header[:200]}…"


def _ranges(accept: str) -> dict[str, tuple[int, int, int]]:
    """Weight, precision and position (more is earlier) by range."""
    found: dict[str, tuple[int, int, int]] = {}
    for place, (media_type, weight) in enumerate(media_ranges(accept)):
        found.setdefault(media_type, (weight, -media_type.count("*"), -place))
    return found


def _takes(pattern: str, serialization: Serialization) -> bool:
    kind = serialization.media_type.partition("/")[0]
    return pattern in ("*/*", f"{kind}/*", serialization.media_type, *serialization.names)
