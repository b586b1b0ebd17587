"""The protocol of transports: elements from a position on, and batches of messages. No I/O, and no transport.

`table.py` has their capabilities; `opening.py` opens one for a URL. docs/decisions/079-transports.md
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncGenerator,
    Callable,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import repeat
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, cast

from construct_messages.errors import UsageError, shown
from construct_messages.feeds.state import Checkpoint
from construct_messages.logs.documents import CONTEXTS, KnownContexts
from construct_messages.rdf.message import Message
from construct_messages.rdf.options import TransportOptions
from construct_messages.rdf.wire import Header
from construct_messages.sparql.client.oauth import BearerToken
from construct_messages.streams import Element

# --- record ---------------------------------------------------------------------------------------
# Records of brokers: the bytes of one message, with the broker's metadata; and the interface of dead letters. No I/O.
#
# RDF Messages, section 3: a record of a broker is one message, and a header names its media type.

_NONE: Final[Mapping[str, str]] = MappingProxyType({})

TYPE_HEADERS: Final = (Header.CONTENT_TYPE.value, "content-type")
"""The headers with the media type of a record. Both are written; the first existing one is read, case-insensitively."""


class Record(NamedTuple):
    """A record of a broker, whose value is one message."""

    value: bytes  # the bytes of the message; none: a message without statements
    # the media type of the value, from a header or a property; None: it has none
    content_type: str | None = None
    key: str = ""  # distinguishes the record from others; empty: it has none
    sequence: int = 0  # its number, from 1, counted by the transport
    microseconds: int | None = None  # when the broker stored it, since 1970 in UTC; None: unknown
    headers: Mapping[str, str] = _NONE
    partition: int | None = None  # its position at the broker, if that is not its sequence
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
        """Stores an unchanged record durably, with the URL of its source and the reason why it is not a message."""


# --- transport ------------------------------------------------------------------------------------

RETRIES: Final = TransportOptions.retries
IDLE_SECONDS: Final = TransportOptions.idle_seconds


@dataclass(frozen=True, kw_only=True)
class Settings(TransportOptions):
    """The limits, timeouts and credentials of transports."""

    # JSON-LD contexts by their IRI, as parsed JSON
    contexts: KnownContexts = field(default_factory=lambda: CONTEXTS)
    poll_seconds: float = 1.0  # the time between requests to a source that does not push
    # other origins that pages may be at, as `client.origin_of` returns them
    origins: frozenset[str] = frozenset()
    # a token for the authorization of requests, or the credentials for fetching tokens; None: no token
    token: BearerToken | None = None
    repeatable: bool = True  # whether another process may write batches again, under the same keys
    # the media type of messages without one, and of written messages; None: no default, and messages are written as
    # N-Quads
    media_type: str | None = None
    # the transport's own options, by their names in its library. A value that begins with `$` is the name of an
    # environment variable with the value. See `option_values`
    options: Mapping[str, str] = field(default_factory=dict)
    # the destination of records that are not messages; None: they end reading with an error
    dead_letters: DeadLetters | None = None


def option_values(settings: Settings, names: Container[str] | None = None) -> dict[str, str]:
    """Returns the options of a transport, with the values of environment variables.

    Raises `UsageError` for an unknown option, unless `names` is None because the library checks them, and for a
    variable that is not set. The error does not show the value.

    >>> from construct_messages.logs.documents import CONTEXTS
    >>> settings = Settings(contexts=CONTEXTS, message_bytes=1, retries=0, idle_seconds=1, options={"user": "$NOBODY"})
    >>> option_values(settings)
    Traceback (most recent call last):
    construct_messages.errors.UsageError: the option user names the environment variable NOBODY, which is not set
      hint: set it, or write the value itself
    """
    values = {}
    for name, value in settings.options.items():
        if names is not None and name not in names:
            raise UsageError(
                f"the transport has no option {shown(name)}",
                hint="see the options of the transport in docs/reference/streams/clients.md",
            )
        if value.startswith("$"):
            found = os.environ.get(value[1:])
            if found is None:
                raise UsageError(
                    f"the option {name} names the environment variable {value[1:]}, which is not set",
                    hint="set it, or write the value itself",
                )
            value = found
        values[name] = value
    return values


@dataclass(frozen=True, kw_only=True)
class Start:
    """The start position of reading; without arguments, the oldest element. At most one argument is not None."""

    after: int | None = None  # start after this sequence; 0: with the first element
    last: int | None = None  # start with this number of newest elements
    # start with elements stored at this time or later; a time with a time zone
    since: datetime | None = None
    checkpoint: Checkpoint | None = None  # start after the position of an earlier reader


class Transport(ABC):
    """A remote stream, by one transport, which `table.TRANSPORTS` describes."""

    @property
    @abstractmethod
    def position(self) -> Checkpoint | None:
        """The position after the last element that `read` yielded, for continuing later; None: unknown yet.

        It advances with an element, and neither while the next one is awaited nor when `read` ends with an error.

        Only the transport interprets it. Positions of one stream can be compared by their `sequence` if the transport
        is `numbered`, and cannot be compared otherwise.
        """

    @property
    def writes_lines(self) -> bool:
        """Whether `write` sends the lines of messages unchanged, so that messages created from lines are faster."""
        return False

    @property
    def acknowledges(self) -> bool:
        """Whether the other side stores the positions that `acknowledge` is called with."""
        return False

    @property
    def behind(self) -> int | None:
        """The number of elements after `position`; None: unknown."""
        return None

    @abstractmethod
    def read(self, start: Start, *, follow: bool) -> AsyncGenerator[Element | None]:
        """Yields the elements from a position on, each once, over as many connections as necessary.

        Yields None first, once the start position is known: later elements are not missed. With `follow`, waits for
        more elements; otherwise ends after the newest. Raises `SourceError` if the other side rejects the request,
        cannot be reached, or has removed the next element (410), and `LogError` or `LimitExceeded` for an element that
        is not a message.
        """

    def check_resumable(self) -> None:  # noqa: B027 - complete for all others
        """Checks that another process can start from a position of this one, before the first is stored.

        Raises `UsageError` if the other side does not keep the elements after it.
        """

    async def acknowledge(self, position: Checkpoint) -> None:  # noqa: B027 - complete for those that keep nothing
        """Acknowledges that all elements up to a position were processed durably, if the other side stores that.

        May be called while `read` waits for the next element, and after it has ended, until `aclose`.
        """

    async def aclose(self) -> None:  # noqa: B027 - an HTTP client is closed by its owner
        """Closes the connections that it opened itself."""

    async def write(self, batch: Sequence[Message], key: str) -> None:
        """Sends messages, at least one, until they are acknowledged.

        A label of a blank node means the same node in all batches. The key is the same each time that the batch is
        written: a name, `-`, and a number that grows. The name is the same for all batches of one writer. Raises
        `SourceError` if the other side rejects the batch, or cannot be reached.
        """
        raise UsageError(
            f"{type(self).__name__} takes no messages: batch {key} has {len(batch)}",
            hint="write to a transport that can, see table.TRANSPORTS",
        )
