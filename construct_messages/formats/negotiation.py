"""Content negotiation: messages in a format and syntax, or the source's own answer.

RFC 9110, section 12.5.1 (Accept, which `ranges.py` reads), and the parameters `format` and `messages` of a URL for
those who cannot set headers. A range asks for messages by its parameters (`messages=rdfm`,
`version=1.2-messages`) or by a type that only logs have (`application/rdfm+xml`); every other range is plain, and the
source knows what it can do about it. In between are the types that logs share with plain RDF
(`application/x-jelly-rdf`, `application/x-ld+ndjson`): without parameters they ask for messages only where no plain
range weighs as much, so that a client that names all it can read gets what it always got. No HTTP here beyond the
field's value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from construct_messages.errors import NotAcceptable, UsageError
from construct_messages.formats import (
    FORMATS,
    LABELLED,
    LOGS,
    RDFM,
    Format,
    LogType,
    Syntax,
    content_type,
)
from construct_messages.formats.documents import DOCUMENTS
from construct_messages.formats.lookup import find_format, find_syntax
from construct_messages.formats.media_types import HTML, JSON, XHTML, Serialization
from construct_messages.formats.ranges import (
    AcceptRange,
    RangePattern,
    media_ranges,
    read_range,
    read_ranges,
)

S = TypeVar("S", bound=Serialization)


@dataclass(frozen=True)
class Plain:
    """The client wants the source's own answer.

    Args:
        accept: the `Accept` to send on: the client's own without what asks for messages; None: none.
    """

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
    """Chooses the answer for a request.

    A header without a range that asks for messages is not judged here, however odd: it goes on as it came. Otherwise
    malformed ranges count for nothing, a log has the weight of the most specific range that matches it, and is chosen
    where no plain range weighs more (for a type that logs share with plain RDF: as much). At equal weights a named
    format goes before a wildcard, and else the earlier range.

    Args:
        accept: the value of the header; several are joined with a comma.
        format: the parameter of that name, decoded: a name, extension or media type. What is none of a log's is the
            source's business.
        messages: the parameter of that name: a label, which asks for messages and overrides the header.
        construct: whether the query is a CONSTRUCT; only these have messages.

    Raises:
        NotAcceptable: nothing that there is, is wanted.
        UsageError: `messages`, or a `format` that asks for messages, is unknown, or the two contradict each other.

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
        raise _unmet(f"nothing that there is matches Accept: {_shown(accept or '')}", construct)
    return Plain(rest or None)


def prefer(accept: str | None, offered: Sequence[str]) -> str:
    """The media type that a client would rather have, of several that carry no messages.

    Malformed ranges count for nothing, and a header without a well-formed one for `*/*`; at equal weights what is
    offered earlier is chosen.

    Args:
        accept: the value of the header; several are joined with a comma.
        offered: media types without parameters, in lower case; best first.

    Raises:
        NotAcceptable: none of them is wanted.

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
            f"nothing that there is matches Accept: {_shown(accept or '')}",
            hint=f"ask for one of {', '.join(offered)}",
            offered=tuple(offered),
        )
    return offered[weights.index(max(weights))]


def choose(offered: Sequence[S], accept: str | None, format: str | None = None) -> S | None:
    """The serialization a client wants most; None: it takes none of them.

    A serialization has the weight of the most specific range that matches it. At equal weights a named one goes before
    a wildcard, then the earlier range, then what is offered first. Malformed ranges count for nothing.

    Args:
        offered: what there is, the default first.
        accept: the header's value; None or empty: anything.
        format: a name or media type, which wins over the header.

    >>> from construct_messages.formats.documents import TRIPLES
    >>> from construct_messages.formats.results import SOLUTIONS
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
    """Whether a client would rather have a page for people than data: it names HTML, with more weight than any RDF.

    Wildcards ask for no page, and at equal weights data are preferred, so that programs get what they always got.

    Args:
        accept: the value of the header; None: there was none.

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
    """The ranges, where those of shared types ask for messages if no plain one weighs as much, and none is refused."""
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
    """The log that weighs most, as what it is asked for, and its weight: that of the most specific range matching it.

    Plain ranges count where they exclude something. Patterns that can match a log are few, however long the header.
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

    A media type counts as in a header of its own; a name may be that of a plain format.
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
    """The format that the header names with the highest weight, of those that can; else the most preferred one."""
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
        return None  # not a log's: the source may know it


def _unmet(message: str, construct: bool) -> NotAcceptable:
    if not construct:
        return NotAcceptable(
            f"{message}, and only CONSTRUCT queries return messages",
            hint="ask for a media type without messages",
        )
    return NotAcceptable(message, hint=_HOW_TO_ASK, offered=OFFERED)


def _shown(header: str) -> str:
    return header if len(header) <= 200 else f"{header[:200]}…"


def _ranges(accept: str) -> dict[str, tuple[int, int, int]]:
    """Weight, precision and place (more is earlier) by range."""
    found: dict[str, tuple[int, int, int]] = {}
    for place, (media_type, weight) in enumerate(media_ranges(accept)):
        found.setdefault(media_type, (weight, -media_type.count("*"), -place))
    return found


def _takes(pattern: str, serialization: Serialization) -> bool:
    kind = serialization.media_type.partition("/")[0]
    return pattern in ("*/*", f"{kind}/*", serialization.media_type, *serialization.names)
