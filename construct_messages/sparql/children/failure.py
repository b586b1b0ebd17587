"""An error of this package as a value, to be sent from one process to another."""

from __future__ import annotations

import msgspec

from construct_messages.rdf.errors import (
    ConstructMessagesError,
    NotAcceptable,
    Position,
    QueryError,
    SourceError,
    UsageError,
)


class Failure(msgspec.Struct, tag=True, frozen=True):
    """The error of an order.

    >>> Failure.of(UsageError("no such file")).error()
    UsageError('no such file')
    """

    kind: str
    message: str
    position: tuple[int, int] | None
    status: int
    hint: str | None
    offered: tuple[str, ...] = ()

    @classmethod
    def of(cls, error: ConstructMessagesError) -> Failure:
        """Creates the value for an error."""
        offered = error.offered if isinstance(error, NotAcceptable) else ()
        return cls(
            type(error).__name__, error.message, error.position, error.status, error.hint, offered
        )

    def error(self) -> ConstructMessagesError:
        """Returns the error."""
        if self.kind == NotAcceptable.__name__:
            return NotAcceptable(self.message, hint=self.hint, offered=self.offered)
        kind = next(
            (kind for kind in (QueryError, UsageError) if kind.__name__ == self.kind), SourceError
        )
        position = Position(*self.position) if self.position else None
        return kind(self.message, position=position, status=self.status, hint=self.hint)
