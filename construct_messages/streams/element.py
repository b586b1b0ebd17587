"""The values of streams: elements, and the description, retention and state of a stream. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import repeat
from typing import Any, Final, NamedTuple, cast

from construct_messages.errors import UsageError
from construct_messages.logs.lines.decoder import count_canonical, to_messages
from construct_messages.rdf.arguments import checked_fields
from construct_messages.rdf.message import Message, of_lines
from construct_messages.rdf.terms import XSD, Term, is_literal, literal_parts
from construct_messages.rdf.terms.values import TYPES, date_time_of, microseconds_of_date_time

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

_TIMES: Final = TYPES | {f"{XSD}string"}

GENERATED_AT: Final = "http://www.w3.org/ns/prov#generatedAtTime"


class Element(NamedTuple):
    """A message in a stream.

    Args:
        stream: the name of the stream.
        sequence: its number in the stream, from 1 without gaps, assigned by the commit.
        microseconds: the time when it was committed, since 1970 in UTC; never less than that of the previous element.
        nquads: the message as canonical N-Quads lines in UTF-8, see `logs/lines/decoder.py`.
        generated: the time when it was generated, by its publisher, see `generated_at`.

    >>> element = Element("measured", 1, 1_800_000_000_000_000, b"<urn:s> <urn:p> <urn:o> .")
    >>> print(element.time, len(element.message))
    2027-01-15 08:00:00+00:00 1
    """

    stream: str
    sequence: int
    microseconds: int
    nquads: bytes
    generated: str | None = None

    @property
    def time(self) -> datetime:
        """The time of the commit, in UTC."""
        return time_at(self.microseconds)

    @property
    def message(self) -> Message:
        """The message; a new object each time."""
        lines = self.nquads + b"\n"
        if count_canonical((lines,), graphs=True) is None:
            return messages_of([self])[0]
        return of_lines(lines)


make_elements = cast(
    "Callable[[Iterable[tuple[object, ...]]], Iterator[Element]]",
    partial(map, tuple.__new__, repeat(Element)),
)
"""Makes an element from each row of five columns, like `Element._make`, but without checking their number."""


def messages_of(elements: Iterable[Element]) -> list[Message]:
    """Returns the messages of elements. Parsing many together takes a third of the time.

    >>> messages_of([Element("measured", 1, 0, b"<urn:s> <urn:p> <urn:o> ."), Element("measured", 2, 0, b"")])
    [<Message of 1 quad: <urn:s> <urn:p> <urn:o> .>, <Message, empty>]
    """
    return to_messages([element.nquads.decode() for element in elements])


def microseconds_of(time: datetime) -> int:
    """Converts a time to microseconds since 1970 in UTC.

    >>> microseconds_of(datetime(1970, 1, 2, tzinfo=UTC))
    86400000000
    """
    if time.tzinfo is None:
        raise UsageError(
            f"the time {time.isoformat()} has no time zone", hint="add one, such as +00:00"
        )
    return (time - _EPOCH) // _MICROSECOND


def time_at(microseconds: int) -> datetime:
    """Converts microseconds since the beginning of 1970 to a time, in UTC.

    >>> time_at(86_400_000_000).isoformat()
    '1970-01-02T00:00:00+00:00'
    """
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        message = f"{date_time_of(microseconds)} is outside of the years 1 to 9999 of a datetime"
        raise UsageError(message, hint="read the microseconds since 1970 instead") from None


def generated_at(message: Message) -> str | None:
    """Returns the publisher's time of a message, as an xsd:dateTime; None if the message has none, or several.

    It is the only object of `prov:generatedAtTime` in the default graph. The subject is a named graph of the message,
    as in LDN for RDF streams, or the topic of the message. That paper writes it as a plain string, which is accepted
    here if it has the form of an xsd:dateTime. A time without a zone does not count.

    >>> from construct_messages import Quad, iri, literal
    >>> generated_at(Message([Quad(iri("urn:g"), iri(GENERATED_AT), literal("2016-05-01T11:04:59Z"))]))
    '2016-05-01T11:04:59Z'
    """
    predicate = f"<{GENERATED_AT}>"
    return _one_time(
        quad.object for quad in message if quad.predicate == predicate and quad.graph is None
    )


def _one_time(terms: Iterable[Term]) -> str | None:
    """The lexical form of the time, if all terms are the same instant, which may be written in several zones."""
    forms = set()
    for term in terms:
        text, datatype, language, _ = (
            literal_parts(term) if is_literal(term) else ("", None, "", None)
        )
        if language is not None or (datatype is not None and datatype not in _TIMES):
            return None
        forms.add(text)
    instants = set(map(microseconds_of_date_time, forms))
    return min(forms) if len(instants) == 1 and None not in instants else None


@checked_fields
@dataclass(frozen=True)
class Retention:
    """The limits of the elements that are kept; the oldest are removed when a limit is exceeded.

    Args:
        count: the maximal number; None: no limit.
        seconds: the maximal age; None: no limit.
        bytes: the maximal number of bytes of N-Quads of all elements; None: no limit.

    Raises:
        UsageError: a limit below 1.

    >>> Retention(count=1000).count
    1000
    """

    count: int | None = None
    seconds: float | None = None
    bytes: int | None = None

    def __post_init__(self) -> None:
        for name, bound in asdict(self).items():
            if bound is not None and not bound > 0:
                raise UsageError(
                    f"retention: {name} is {bound}", hint="use a number above 0, or leave it out"
                )


@checked_fields
@dataclass(frozen=True)
class Description:
    """The description of a stream.

    Args:
        label: a name for display.
        retention: the elements that are kept.
        publish: the access to publishing: `"deny"` for no one, `"allow"` for everyone, or the name of an environment
            variable with a token; None: the server's default.

    >>> Description.from_json(Description("Measured", Retention(count=10)).to_json()).retention.count
    10
    """

    label: str = ""
    retention: Retention = field(default_factory=Retention)
    publish: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns the description in a form that JSON can represent."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Description:
        """Creates a description from the result of `to_json`."""
        return cls(**{**value, "retention": Retention(**value["retention"])})


class State(NamedTuple):
    """The state of a stream.

    Args:
        name: the name of the stream.
        description: the description of the stream.
        first: the sequence of its oldest kept element; `next` if there is none.
        next: the sequence of its next element.
        bytes: the number of bytes of N-Quads of all elements.
        id: its number in the store, which is never reused, even for a later stream of the same name.
    """

    name: str
    description: Description
    first: int
    next: int
    bytes: int
    id: int = 0

    @property
    def last(self) -> int:
        """The sequence of the newest element ever, even if it was removed; 0: there was none."""
        return self.next - 1
