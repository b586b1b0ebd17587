"""Records of brokers: the bytes of one message, with the broker's metadata; and the interface of dead letters. No I/O.

RDF Messages, section 3: a record of a broker is one message, and a header names its media type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, cast

from construct_messages.rdf.wire import Header

_NONE: Final[Mapping[str, str]] = MappingProxyType({})

TYPE_HEADERS: Final = (Header.CONTENT_TYPE.value, "content-type")
"""The headers with the media type of a record. Both are written; the first existing one is read, case-insensitively."""


class Record(NamedTuple):
    """A record of a broker, whose value is one message.

    Args:
        value: the bytes of the message; none: a message without statements.
        content_type: the media type of the value, from a header or a property; None: it has none.
        key: distinguishes the record from others; empty: it has none.
        sequence: its number, from 1, counted by the transport.
        microseconds: when the broker stored it, since 1970 in UTC; None: unknown.
        headers: the other headers.
        partition, offset: its position at the broker, if that is not its sequence.
    """

    value: bytes
    content_type: str | None = None
    key: str = ""
    sequence: int = 0
    microseconds: int | None = None
    headers: Mapping[str, str] = _NONE
    partition: int | None = None
    offset: int = 0

    @property
    def place(self) -> str:
        """Its position at the broker, as text; empty: its sequence is the position.

        >>> Record(b"", partition=1, offset=7).place
        '1:7'
        """
        return "" if self.partition is None else f"{self.partition}:{self.offset}"

    @property
    def named(self) -> dict[str, str]:
        """The headers, with those for the media type.

        >>> Record(b"", "application/n-quads").named
        {'RDF-Message-Content-Type': 'application/n-quads', 'content-type': 'application/n-quads'}
        """
        if self.content_type is None:
            return dict(self.headers)
        return {**self.headers, **dict.fromkeys(TYPE_HEADERS, self.content_type)}


make_records = cast(
    "Callable[[Iterable[tuple[object, ...]]], Iterator[Record]]",
    partial(map, tuple.__new__, repeat(Record)),
)
"""Creates a record from a row of its eight parts, like `Record._make`, but without counting them."""


def records_of(values: Sequence[bytes], content_type: str, key: str) -> list[Record]:
    """Returns the records of a batch; the key of each is that of the batch and the number of the record, from 1.

    Args:
        values: the values of the records.
        content_type: the media type of all values.
        key: the key of the batch.

    >>> records = records_of([b"", b""], "application/n-quads", "a1-1")
    >>> records == [Record(b"", "application/n-quads", f"a1-1-{number}", number) for number in (1, 2)]
    True
    """
    numbers = range(1, len(values) + 1)
    keys = [f"{key}-{number}" for number in numbers]
    shared = map(repeat, (None, _NONE, None, 0))
    return list(make_records(zip(values, repeat(content_type), keys, numbers, *shared)))


def content_type_in(headers: Mapping[str, str]) -> str | None:
    """Returns the media type in the headers of a record, whose names are case-insensitive; None: they have none.

    >>> content_type_in({"Content-Type": "text/turtle"}), content_type_in({})
    ('text/turtle', None)
    """
    lower = {name.lower(): value for name, value in headers.items()}
    return next((lower[name.lower()] for name in TYPE_HEADERS if name.lower() in lower), None)


class DeadLetters(Protocol):
    """The destination of records that are not messages."""

    async def put(self, record: Record, source: str, reason: str) -> None:
        """Stores a record durably.

        Args:
            record: the unchanged record.
            source: the URL of its source.
            reason: why it is not a message.

        Raises:
            CannotWrite: the destination cannot be written.
            SourceError: the broker of the destination rejects it, or cannot be reached.
        """
