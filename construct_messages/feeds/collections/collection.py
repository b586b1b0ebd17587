"""What readers of collections are told, be it an event stream or an inbox: what is asked for again and again.

No I/O.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from datetime import datetime

from construct_messages.documents.contexts import KnownContexts
from construct_messages.feeds.state import Checkpoint
from construct_messages.terms import XSD, literal


@dataclass(frozen=True)
class Collection:
    """The options of a reader of a collection: an event stream or an inbox.

    Args:
        contexts: JSON-LD contexts by their IRI, as parsed JSON.
        message_bytes: how large a message may be, and how large a page.
        poll_seconds: how long to wait before asking again, where the source says nothing.
        origins: other ones that pages may be at, as `client.origin_of` writes them.
        after: begin behind this sequence; None: not said.
        last: begin with as many of the newest; None: not said.
        since: begin with what has this time; None: not said.
        checkpoint: begin behind it; None: there is none.
    """

    contexts: KnownContexts
    message_bytes: int
    poll_seconds: float
    origins: Container[str] = ()
    after: int | None = None
    last: int | None = None
    since: datetime | None = None
    checkpoint: Checkpoint | None = None

    @property
    def start(self) -> Checkpoint:
        """Returns the start of reading, as far as it is known without a request."""
        if self.checkpoint is not None:
            return self.checkpoint
        if self.since is not None:
            return Checkpoint(0, (literal(self.since.isoformat(), datatype=f"{XSD}dateTime"),))
        return Checkpoint(self.after or 0)
