"""The formats in which the embedded engine serializes results, and which of them a client wants.

SPARQL 1.1 Protocol, section 2.1.6, with RFC 9110, section 12.5.1 (Accept), and the parameter `format` that endpoints
take besides. Messages are none of these: whether a client asks for those is decided before (`negotiation.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from construct_messages.formats.negotiation import media_ranges


class Serialization(NamedTuple):
    """A format of results.

    Args:
        media_type: without parameters.
        names: what else asks for it: names, and media types that are common for it.
        charset: whether the media type has the parameter `charset`.
    """

    media_type: str
    names: tuple[str, ...]
    charset: bool = False

    @property
    def content_type(self) -> str:
        """The value of the header Content-Type.

        >>> SOLUTIONS[0].content_type, TRIPLES[0].content_type
        ('application/sparql-results+json', 'text/turtle; charset=utf-8')
        """
        return f"{self.media_type}; charset=utf-8" if self.charset else self.media_type


SOLUTIONS: Final = (
    Serialization("application/sparql-results+json", ("json", "srj", "application/json")),
    Serialization("application/sparql-results+xml", ("xml", "srx", "application/xml", "text/xml")),
    Serialization("text/csv", ("csv",), charset=True),
    Serialization("text/tab-separated-values", ("tsv",), charset=True),
)
"""For SELECT and ASK, the default first."""

TRIPLES: Final = (
    # every Turtle document is one of N3
    Serialization("text/turtle", ("ttl", "turtle", "application/x-turtle", "n3", "text/n3", "text/rdf+n3"), True),
    Serialization("application/n-triples", ("nt", "ntriples", "n-triples", "text/plain")),
    Serialization("application/rdf+xml", ("rdf", "rdfxml", "rdf+xml", "xml", "application/xml", "text/xml")),
    Serialization("application/ld+json", ("jsonld", "json-ld", "json", "application/json")),
    Serialization("application/n-quads", ("nq", "nquads", "n-quads")),
    Serialization("application/trig", ("trig",)),
)
"""For CONSTRUCT and DESCRIBE, the default first."""


def choose(offered: Sequence[Serialization], accept: str | None, format: str | None = None) -> Serialization | None:
    """The serialization a client wants most; None: it takes none of them.

    A serialization has the weight of the most specific range that matches it. At equal weights a named one goes before
    a wildcard, then the earlier range, then what is offered first. Malformed ranges count for nothing.

    Args:
        offered: what there is, the default first.
        accept: the header's value; None or empty: anything.
        format: a name or media type, which wins over the header.

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
            (rank for pattern, rank in ranges.items() if _takes(pattern, each)), key=lambda rank: rank[1:], default=None
        )
        if rank is not None and rank[0] and (best is None or rank > highest):
            best, highest = each, rank
    return best


def _ranges(accept: str) -> dict[str, tuple[int, int, int]]:
    """Weight, precision and place (more is earlier) by range."""
    found: dict[str, tuple[int, int, int]] = {}
    for place, (media_type, weight) in enumerate(media_ranges(accept)):
        found.setdefault(media_type, (weight, -media_type.count("*"), -place))
    return found


def _takes(pattern: str, serialization: Serialization) -> bool:
    kind = serialization.media_type.partition("/")[0]
    return pattern in ("*/*", f"{kind}/*", serialization.media_type, *serialization.names)
