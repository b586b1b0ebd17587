"""One RDF Message per SPARQL CONSTRUCT solution.

>>> from construct_messages import construct_messages
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from construct_messages.construct import QueryMessages, construct_messages
from construct_messages.errors import (
    CannotFold,
    CannotWrite,
    ConstructMessagesError,
    GroupError,
    IncompleteResult,
    LimitExceeded,
    LogError,
    NotConstruct,
    QuadsError,
    QueryError,
    SourceError,
    SourceTimeout,
    SparkUnavailable,
    TermError,
    UnsupportedByFormat,
    UnsupportedQuery,
    UsageError,
    ValueOutOfRange,
)
from construct_messages.logs.jelly.options import JellyOptions, LogicalType, PhysicalType
from construct_messages.message import Message, Quad
from construct_messages.query.rewrite import ConstructQuery, query_form
from construct_messages.reading import LogReader, read_log
from construct_messages.sources import Source
from construct_messages.sources.open import open_source
from construct_messages.terms import Term, blank, iri, literal, triple
from construct_messages.writing import awrite_log, write_log

if TYPE_CHECKING:
    from construct_messages.continuous.transform import transform

__all__ = [
    "CannotFold",
    "CannotWrite",
    "ConstructMessagesError",
    "ConstructQuery",
    "GroupError",
    "IncompleteResult",
    "JellyOptions",
    "LimitExceeded",
    "LogError",
    "LogReader",
    "LogicalType",
    "Message",
    "NotConstruct",
    "PhysicalType",
    "Quad",
    "QuadsError",
    "QueryError",
    "QueryMessages",
    "Source",
    "SourceError",
    "SourceTimeout",
    "SparkUnavailable",
    "Term",
    "TermError",
    "UnsupportedByFormat",
    "UnsupportedQuery",
    "UsageError",
    "ValueOutOfRange",
    "awrite_log",
    "blank",
    "construct_messages",
    "iri",
    "literal",
    "open_source",
    "query_form",
    "read_log",
    "transform",
    "triple",
    "write_log",
]


def __getattr__(name: str) -> Any:
    if name != "transform":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # imported when it is used: it needs rdflib, which takes long to load
    from construct_messages.continuous.transform import transform

    return transform
