"""The protocol of transports: elements from a position on, and batches of messages. No I/O, and no transport.

What a transport can do is in `table.py`; `opening.py` opens one for a URL. docs/decisions/079-transports.md
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from construct_messages.documents.contexts import CONTEXTS, KnownContexts
from construct_messages.errors import UsageError, shown
from construct_messages.feeds.record import DeadLetters
from construct_messages.feeds.state import Checkpoint
from construct_messages.logs import MESSAGE_BYTES
from construct_messages.message import Message
from construct_messages.net.oauth import BearerToken
from construct_messages.streams import Element

RETRIES: Final = 10
"""How often in a row a request is sent again, by default: about a minute."""

IDLE_SECONDS: Final = 60.0
"""How long a server may be silent, by default."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What is allowed to transports, and how long they wait.

    Args:
        contexts: JSON-LD contexts by their IRI, as parsed JSON.
        message_bytes: the maximal size of a message, and of a page.
        poll_seconds: the time before a source is asked again that does not push.
        origins: other origins that pages may be at, as `client.origin_of` returns them.
        token: for the authorization of requests, or the credentials that tokens are fetched with; None: there is none.
        retries: how often in a row a request is repeated.
        idle_seconds: the maximal time that the other side may be silent.
        create: whether to create a stream that does not exist, before it is written to.
        repeatable: whether batches may be written again by another process, under the keys that they had in this one.
        media_type: of messages whose type the other side does not name, and of those that are written; None: there is
            none, and messages are written as N-Quads.
        options: the transport's own, by name, as its library calls them. A value that begins with `$` is the name of an
            environment variable that has the value. See `option_values`.
        dead_letters: the place of what is no message; None: it ends reading with an error.
    """

    contexts: KnownContexts = field(default_factory=lambda: CONTEXTS)
    message_bytes: int = MESSAGE_BYTES
    poll_seconds: float = 1.0
    origins: frozenset[str] = frozenset()
    token: BearerToken | None = None
    retries: int = RETRIES
    idle_seconds: float = IDLE_SECONDS
    create: bool = False
    repeatable: bool = True
    media_type: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    dead_letters: DeadLetters | None = None


def option_values(settings: Settings, names: Container[str] | None = None) -> dict[str, str]:
    """Returns the options of a transport, with the values of environment variables.

    Args:
        settings: with the options.
        names: those that the transport has; None: its library checks them.

    Raises:
        UsageError: another option, or a variable that is not set. The value is not shown.

    >>> from construct_messages.documents.contexts import CONTEXTS
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
    """Where reading starts; without arguments, with the oldest element. At most one argument is not None.

    Args:
        after: after this sequence; 0: with the first element.
        last: with this number of newest elements.
        since: with elements stored at this time or later; a time with a time zone.
        checkpoint: after the position of an earlier reader.
    """

    after: int | None = None
    last: int | None = None
    since: datetime | None = None
    checkpoint: Checkpoint | None = None


class Transport(ABC):
    """A stream elsewhere, by one transport, which `table.TRANSPORTS` describes."""

    @property
    @abstractmethod
    def position(self) -> Checkpoint | None:
        """The position after the last element that `read` yielded, to start from again; None: not known yet.

        It moves with an element, and neither while the next one is awaited nor when `read` ends with an error.

        Only the transport knows what it means. Positions of one stream can be compared by their `sequence` if the
        transport is `numbered`, and cannot be compared otherwise.
        """

    @property
    def writes_lines(self) -> bool:
        """Whether `write` sends the lines of messages as they are, so that messages made of lines take less time."""
        return False

    @property
    def behind(self) -> int | None:
        """How many elements are known to come after `position`; None: it is not known."""
        return None

    @abstractmethod
    def read(self, start: Start, *, follow: bool) -> AsyncGenerator[Element | None]:
        """The elements from a position on, each once, over as many connections as it takes.

        Yields None first, once it is known where to start: what comes after that is not missed.

        Args:
            start: the position.
            follow: wait for more elements; otherwise end after the newest.

        Raises:
            SourceError: the other side refuses, cannot be reached, or has removed the next element (410).
            LogError, LimitExceeded: an element is no message, or too large.
        """

    def check_resumable(self) -> None:  # noqa: B027 - complete for all others
        """Makes sure that another process can start from a position of this one, before the first is stored.

        Raises:
            UsageError: nothing keeps what comes after it.
        """

    async def acknowledge(self, position: Checkpoint) -> None:  # noqa: B027 - complete for those that keep nothing
        """Acknowledges that all elements up to a position were processed durably, if the other side stores that.

        May be called while `read` waits for the next element, and after it has ended.
        """

    async def aclose(self) -> None:  # noqa: B027 - an HTTP client is closed by its owner
        """Closes the connections that it opened by itself."""

    async def write(self, batch: Sequence[Message], key: str) -> None:
        """Sends messages until they are acknowledged.

        Args:
            batch: at least one. A label of a blank node means the same node in all batches.
            key: the same each time that the batch is written: a name, `-`, and a number that grows. The name is the
                same for all batches of one writer.

        Raises:
            UsageError: it takes no messages.
            SourceError: the other side refuses, or cannot be reached.
        """
        raise UsageError(
            f"{type(self).__name__} takes no messages: batch {key} has {len(batch)}",
            hint="write to a transport that can, see table.TRANSPORTS",
        )
