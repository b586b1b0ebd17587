"""The one small tree of errors, each with what a reader needs to mend it.

Every error this package raises on purpose is a `ConstructMessagesError`. It carries the position in the user's text,
the HTTP status it stands for and a hint; the command line maps classes to exit codes, the server maps `status`.
No other module may define an exception that reaches a caller.
"""

from __future__ import annotations

from typing import NamedTuple


class Position(NamedTuple):
    """A place in a text, both counted from 1.

    >>> str(Position(3, 14))
    'line 3, column 14'
    """

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"

    @classmethod
    def at(cls, text: str, offset: int) -> Position:
        """The position of character `offset` of `text`; lines end at LF, CRLF or CR.

        >>> Position.at("ab\\ncd", 4)
        Position(line=2, column=2)
        """
        before = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
        return cls(before.count("\n") + 1, len(before) - before.rfind("\n"))


class ConstructMessagesError(Exception):
    """The root: `str(error)` is the message, with the position in front and the hint behind, on one or two lines.

    Args:
        message: what is wrong, naming the value.
        position: where in the user's text, if there is such a text.
        status: the HTTP status this stands for: what a server answers where it meets the error.
        hint: how to mend it, as an imperative sentence without a full stop.

    >>> print(QueryError("prefix ex: is not declared", position=Position(2, 5), hint="add PREFIX ex: <...>"))
    line 2, column 5: prefix ex: is not declared
      hint: add PREFIX ex: <...>
    """

    default_status: int = 500

    def __init__(
        self,
        message: str,
        *,
        position: Position | None = None,
        status: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.status = self.default_status if status is None else status
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.position}: {self.message}" if self.position else self.message
        return f"{text}\n  hint: {self.hint}" if self.hint else text


_SHOWN: int = 300


def shown(text: str) -> str:
    """What somebody else sent or said, as a message may hold it: on one line, and not more than its beginning.

    >>> shown("out of\\r\\n  memory")
    'out of memory'
    >>> len(shown("x" * 20_000))
    301
    """
    # the spaces of a text that is longer are not all looked at
    line = " ".join(text[: 10 * _SHOWN].split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


class UsageError(ConstructMessagesError, ValueError):
    """An option or argument that makes no sense, or does not go with another."""

    default_status = 400


class CannotWrite(UsageError):
    """A place where no file can be written."""

    default_status = 500


class ProtocolError(ConstructMessagesError):
    """An HTTP request that is no operation of the SPARQL Protocol."""

    default_status = 400


class Forbidden(ConstructMessagesError):
    """What is asked for is possible, and not allowed here."""

    default_status = 403


class NotAcceptable(ConstructMessagesError):
    """The client takes none of what there is (RFC 9110, section 12.5.1).

    Attributes:
        offered: the media types that there are, with their parameters; empty where messages cannot be had at all.
    """

    default_status = 406

    def __init__(self, message: str, *, hint: str | None = None, offered: tuple[str, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.offered = offered


class TermError(ConstructMessagesError, ValueError):
    """A text that is not an RDF term, or a term that N-Triples cannot write."""

    default_status = 400


class QueryError(ConstructMessagesError, ValueError):
    """A query that is refused: by this package, or by the embedded engine."""

    default_status = 400


class NotConstruct(QueryError):
    """The query is legal as far as it was read, but has another form than CONSTRUCT.

    Attributes:
        form: `"SELECT"`, `"ASK"`, `"DESCRIBE"` or `"UPDATE"`.
    """

    def __init__(self, form: str, *, position: Position | None = None) -> None:
        super().__init__(
            f"expected a CONSTRUCT query, got {form}",
            position=position,
            hint="only CONSTRUCT queries give messages; send other forms to the endpoint itself",
        )
        self.form = form


class SourceError(ConstructMessagesError):
    """The source could not answer: connection, HTTP status, evaluation.

    Attributes:
        retry_after: seconds to wait, where the source said so (`Retry-After`), else None.
        transient: whether the same request may well succeed in a moment.
    """

    default_status = 502

    def __init__(
        self,
        message: str,
        *,
        position: Position | None = None,
        status: int | None = None,
        hint: str | None = None,
        retry_after: float | None = None,
        transient: bool = False,
    ) -> None:
        super().__init__(message, position=position, status=status, hint=hint)
        self.retry_after = retry_after
        self.transient = transient


class SourceTimeout(SourceError, TimeoutError):
    """The source did not answer within the time allowed."""

    default_status = 504


class IncompleteResult(SourceError):
    """The source's answer ended early, was capped, or is not the document it claims to be. Never ends a log cleanly."""


class LimitExceeded(ConstructMessagesError):
    """A bound the user set (or its default) was reached; what was held so far is not a whole result."""

    default_status = 413


class GroupError(ConstructMessagesError):
    """A grouping that cannot be told: a key that came back, or a blank node key across responses."""

    default_status = 422


class UnsupportedByFormat(ConstructMessagesError):
    """A quad that the chosen format has no syntax for; nothing is dropped in silence."""

    default_status = 422


class LogError(ConstructMessagesError, ValueError):
    """Bytes that are no log of the format they are read as.

    Attributes:
        number: of the message that the error is in, counted from 1.
    """

    default_status = 400

    def __init__(self, message: str, *, number: int, position: Position | None = None, hint: str | None = None) -> None:
        super().__init__(message, position=position, hint=hint)
        self.number = number

    def __str__(self) -> str:
        text = f"message {self.number}: {self.message}"
        text = f"{self.position}: {text}" if self.position else text
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class CannotFold(ConstructMessagesError, ValueError):
    """A dataset that has no fold, or a graph that has no strict unfold."""

    default_status = 422


class UnsupportedQuery(QueryError):
    """A legal query with a part that this way of evaluation does not have; nothing of it is left out in silence.

    Attributes:
        fragment: the part, as the query writes it or by its name.
    """

    default_status = 501

    def __init__(
        self, message: str, *, fragment: str, position: Position | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, position=position, hint=hint)
        self.fragment = fragment


class ValueOutOfRange(ConstructMessagesError, ValueError):
    """A number or date that the engine cannot hold exactly; never taken for an error of the query's own."""

    default_status = 422


class QuadsError(ConstructMessagesError, ValueError):
    """RDF data that cannot be read as quads; the message names the file and the text."""

    default_status = 422


class StoreError(ConstructMessagesError):
    """A store of streams that cannot be opened, read or written."""

    default_status = 500


class StoreLocked(StoreError):
    """Another process writes to the store."""

    default_status = 503


class StoreFull(StoreError):
    """There is no room on the disk; what was to be stored is not there, and what was there before is."""

    default_status = 507


class NotFound(ConstructMessagesError, LookupError):
    """There is no such stream or element, and there never was."""

    default_status = 404


class Gone(ConstructMessagesError, LookupError):
    """An element that was there, and is kept no longer.

    Attributes:
        first: the sequence of the oldest element that is kept.
    """

    default_status = 410

    def __init__(self, message: str, *, first: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.first = first


class Conflict(ConstructMessagesError):
    """What is asked for contradicts what is there: a stream of that name, or another message under the same key."""

    default_status = 409


class SparkUnavailable(ConstructMessagesError):
    """pyspark or Java is missing; the hint says how to install it."""

    default_status = 501
