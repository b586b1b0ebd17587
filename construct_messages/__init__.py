"""One RDF Message per SPARQL CONSTRUCT solution.

>>> from construct_messages import construct_messages
"""

from construct_messages.construct import MessageStream, construct_messages
from construct_messages.errors import (
    CannotCarry,
    CannotFold,
    ConstructMessagesError,
    GroupError,
    IncompleteResult,
    LimitExceeded,
    LogError,
    NotConstruct,
    QueryError,
    SourceError,
    SourceTimeout,
    TermError,
    UsageError,
)
from construct_messages.message import Message, Quad
from construct_messages.query.rewrite import ConstructQuery, query_form
from construct_messages.reading import LogReader, read_log
from construct_messages.sources import Source
from construct_messages.sources.open import open_source
from construct_messages.terms import Term
from construct_messages.writing import awrite_log, write_log

__all__ = [
    "CannotCarry",
    "CannotFold",
    "ConstructMessagesError",
    "ConstructQuery",
    "GroupError",
    "IncompleteResult",
    "LimitExceeded",
    "LogError",
    "LogReader",
    "Message",
    "MessageStream",
    "NotConstruct",
    "Quad",
    "QueryError",
    "Source",
    "SourceError",
    "SourceTimeout",
    "Term",
    "TermError",
    "UsageError",
    "awrite_log",
    "construct_messages",
    "open_source",
    "query_form",
    "read_log",
    "write_log",
]
