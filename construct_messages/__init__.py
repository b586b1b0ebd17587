"""One RDF Message per SPARQL CONSTRUCT solution.

>>> from construct_messages import construct_messages
"""

from construct_messages.construct import MessageStream, construct_messages
from construct_messages.errors import (
    CannotCarry,
    ConstructMessagesError,
    GroupError,
    IncompleteResult,
    LimitExceeded,
    NotConstruct,
    QueryError,
    SourceError,
    SourceTimeout,
    TermError,
    UsageError,
)
from construct_messages.message import Message, Quad
from construct_messages.query.rewrite import ConstructQuery, query_form
from construct_messages.sources import Source
from construct_messages.sources.open import open_source
from construct_messages.terms import Term

__all__ = [
    "CannotCarry",
    "ConstructMessagesError",
    "ConstructQuery",
    "GroupError",
    "IncompleteResult",
    "LimitExceeded",
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
    "construct_messages",
    "open_source",
    "query_form",
]
