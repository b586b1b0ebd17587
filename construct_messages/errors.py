"""The exceptions and the warning of the package. No other module defines one that reaches a caller.

Each exception derives from `ConstructMessagesError` and carries a position in the user's text, a hint, and `status`:
the HTTP status that our server answers with (RFC 9110, section 15). The status that a source or server answered us with
is `SourceError.response_status`. The command line maps classes to exit statuses.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Position(NamedTuple):
    """A position in a text; line and column are counted from 1.

    >>> str(Position(3, 14))
    'line 3, column 14'
    """

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"

    @classmethod
    def at(cls, text: str, offset: int) -> "Position":
        """Returns the position of character `offset` of `text`. Lines end at LF, CRLF or CR.

        >>> Position.at("ab\\ncd", 4)
        Position(line=2, column=2)
        """
        before = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
        return cls(before.count("\n") + 1, len(before) - before.rfind("\n"))


class QueryWarning(UserWarning):
    """A legal query that is probably not what was meant: a variable of its template that no solution binds, such as a
    misspelt one, or a result without solutions.

    >>> import warnings
    >>> warnings.filterwarnings("ignore", category=QueryWarning)  # turns it off
    """


class ConstructMessagesError(Exception):
    """The base class of all errors. `str(error)` is the position, the message, and the hint on a second line.

    Args:
        message: the problem, with the value.
        position: the position in the user's text, if there is one.
        status: the HTTP status that our server answers with; None: that of the class.
        hint: the fix, as an imperative sentence without a full stop.

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
        # values may have characters that no terminal, log or document can show
        message = "\n".join(map(_printable, message.split("\n")))
        super().__init__(message)
        self.message = message
        self.position = position
        self.status = self.default_status if status is None else status
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.position}: {self._text()}" if self.position else self._text()
        return f"{text}\n  hint: {self.hint}" if self.hint else text

    def _text(self) -> str:
        return self.message


_SHOWN: int = 300


def _printable(line: str) -> str:
    """Escapes characters that could move the cursor of a terminal or hide other text, and surrogates."""
    if line.isprintable():
        return line
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in line
    )


def shown(text: str) -> str:
    """Returns text of other programs for an error message: on one line, printable, and cut to its beginning.

    >>> shown("out of\\r\\n  memory")
    'out of memory'
    >>> print(shown("\\x1b[31mno \\x07 bell"))
    \\x1b[31mno \\x07 bell
    >>> len(shown("x" * 20_000))
    301
    """
    # the spaces of a text that is longer are not all looked at
    line = " ".join(text[: 10 * _SHOWN].split())
    line = _printable(line)
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


class UsageError(ConstructMessagesError, ValueError):
    """An option or argument is invalid, or does not go with another one."""

    default_status = 400


class WrongType(UsageError, TypeError):
    """An argument of a function is of another type than the function takes."""


class CannotWrite(UsageError):
    """A file cannot be written."""

    default_status = 500


class ProtocolError(ConstructMessagesError):
    """An HTTP request is not an operation of the SPARQL Protocol."""

    default_status = 400


class Forbidden(ConstructMessagesError):
    """The request is not allowed here.

    Attributes:
        challenge: the value of `WWW-Authenticate` (RFC 9110, section 11.6.1); None: credentials would not help.
    """

    default_status = 403

    def __init__(
        self,
        message: str,
        *,
        position: Position | None = None,
        status: int | None = None,
        hint: str | None = None,
        challenge: str | None = None,
    ) -> None:
        super().__init__(message, position=position, status=status, hint=hint)
        self.challenge = challenge


class NotAcceptable(ConstructMessagesError):
    """The client accepts none of the available media types (RFC 9110, section 12.5.1).

    Attributes:
        offered: the available media types, with their parameters; empty if no messages are available.
    """

    default_status = 406

    def __init__(
        self, message: str, *, hint: str | None = None, offered: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.offered = offered


class TermError(ConstructMessagesError, ValueError):
    """A text is not an RDF term, or N-Triples cannot represent it.

    Attributes:
        kind: the kind of term, with its article; empty: an IRI with what an IRI that does not end has.
    """

    default_status = 400

    def __init__(
        self,
        message: str,
        *,
        position: Position | None = None,
        hint: str | None = None,
        kind: str = "a term that is not RDF",
    ) -> None:
        super().__init__(message, position=position, hint=hint)
        self.kind = kind


class QueryError(ConstructMessagesError, ValueError):
    """A query is refused by this package or by the embedded engine."""

    default_status = 400


class NotConstruct(QueryError):
    """The query has another form than CONSTRUCT.

    Attributes:
        form: `"SELECT"`, `"ASK"`, `"DESCRIBE"` or `"UPDATE"`.
    """

    def __init__(self, form: str, *, position: Position | None = None) -> None:
        super().__init__(
            f"expected a CONSTRUCT query, got {form}",
            position=position,
            hint="only CONSTRUCT queries return messages; send other forms to the endpoint itself",
        )
        self.form = form


class SourceError(ConstructMessagesError):
    """The source failed: connection, HTTP status, or evaluation.

    Attributes:
        response_status: the HTTP status of the response that failed; None: there was none, or the status is not what is
            wrong with it.
        retry_after: seconds to wait, if the source requests it (`Retry-After`), else None.
        transient: whether the same request may succeed soon.
    """

    default_status = 502

    def __init__(
        self,
        message: str,
        *,
        position: Position | None = None,
        status: int | None = None,
        hint: str | None = None,
        response_status: int | None = None,
        retry_after: float | None = None,
        transient: bool = False,
    ) -> None:
        super().__init__(message, position=position, status=status, hint=hint)
        self.response_status = response_status
        self.retry_after = retry_after
        self.transient = transient


class SourceTimeout(SourceError, TimeoutError):
    """The source did not answer in time."""

    default_status = 504


class IncompleteResult(SourceError):
    """The answer of the source was truncated, capped, or is not a complete document."""


class LimitExceeded(ConstructMessagesError):
    """A limit (of the user, or its default) was exceeded; the result so far is incomplete."""

    default_status = 413


class GroupError(ConstructMessagesError):
    """A group is ambiguous: its key came back in a sorted result, or is a blank node of several responses."""

    default_status = 422


class UnsupportedByFormat(ConstructMessagesError):
    """The format cannot represent a quad."""

    default_status = 422


class ColumnError(ConstructMessagesError, ValueError):
    """A value does not fit into its column.

    Attributes:
        number: the number of the solution, counted from 1; None: several solutions do not fit together.
        variable: the variable, without `?`.
    """

    default_status = 422

    def __init__(
        self, message: str, *, variable: str, number: int | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.variable, self.number = variable, number

    def _text(self) -> str:
        if self.number is None:
            return self.message
        return f"solution {self.number}: ?{self.variable} is {self.message}"


class LogError(ConstructMessagesError, ValueError):
    """Bytes are not a log of the expected format.

    Attributes:
        number: the number of the message with the error, counted from 1.
    """

    default_status = 400

    def __init__(
        self,
        message: str,
        *,
        number: int,
        position: Position | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, position=position, hint=hint)
        self.number = number

    def _text(self) -> str:
        return f"message {self.number}: {self.message}"


class CannotFold(ConstructMessagesError, ValueError):
    """A dataset cannot be folded, or a graph cannot be unfolded strictly."""

    default_status = 422


class UnsupportedQuery(QueryError):
    """A valid query has a part that this kind of evaluation does not support.

    Attributes:
        fragment: the part, as written in the query or by its name.
    """

    default_status = 501

    def __init__(
        self,
        message: str,
        *,
        fragment: str,
        position: Position | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, position=position, hint=hint)
        self.fragment = fragment


class ValueOutOfRange(ConstructMessagesError, ValueError):
    """The engine cannot represent a number or date exactly."""

    default_status = 422


class QuadsError(ConstructMessagesError, ValueError):
    """RDF data cannot be read as quads; the message contains the file and the text."""

    default_status = 422


class StoreError(ConstructMessagesError):
    """A store of streams cannot be opened, read or written."""

    default_status = 500


class StoreLocked(StoreError):
    """Another process is writing to the store."""

    default_status = 503


class StoreDamaged(StoreError):
    """The file of the store is damaged. Writing stops; readable elements are still served."""


class StoreFull(StoreError):
    """The disk is full; nothing new was stored, and existing data is intact."""

    default_status = 507


class NotFound(ConstructMessagesError, LookupError):
    """The stream or element does not exist and never has."""

    default_status = 404


class Gone(ConstructMessagesError, LookupError):
    """The element existed, but is no longer kept.

    Attributes:
        first: the sequence of the oldest element that is kept.
    """

    default_status = 410

    def __init__(self, message: str, *, first: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.first = first


class Conflict(ConstructMessagesError):
    """The request contradicts the stored state: the stream exists, or the key was used for another message."""

    default_status = 409


class ShapesError(ConstructMessagesError, ValueError):
    """A shapes graph is not valid, or has a part that is not supported."""

    default_status = 400


class DoesNotConform(ConstructMessagesError, ValueError):
    """A message does not conform to the shapes.

    Attributes:
        number: of the message, counted from 1.
        report: the report, as JSON has it.
    """

    default_status = 422

    def __init__(
        self, message: str, *, number: int, report: Mapping[str, object], hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.number, self.report = number, report


class SparkUnavailable(ConstructMessagesError):
    """pyspark or Java is missing; the hint contains the install command."""

    default_status = 501
