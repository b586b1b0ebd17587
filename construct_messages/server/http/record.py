"""The record of one request, for the request log and the metrics; kinds of endpoints add fields by subclasses."""

from __future__ import annotations

import ipaddress
import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Protocol

from aiohttp import web

from construct_messages.rdf.errors import (
    Forbidden,
    GroupError,
    IncompleteResult,
    LimitExceeded,
    SourceError,
    SourceTimeout,
    UnsupportedByFormat,
)

_RANDOM: Final = random.Random()
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._~:/+=-]{1,128}")

# The first matching class is used. A closed set, because each reason is a value of a metric's label.
_REASONS: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (SourceTimeout, "timeout"),
    (IncompleteResult, "incomplete"),
    (SourceError, "source"),
    (LimitExceeded, "limit"),
    (UnsupportedByFormat, "format"),
    (GroupError, "grouping"),
    (Forbidden, "expired"),
)
REASONS: Final = (*(reason for _, reason in _REASONS), "idle", "shutdown", "internal")
"""Why an answer was reset after its first byte: a failure of the source, a limit, the format, a token that expired
meanwhile, an idle client, the end of the server, or a fault of the server.
"""


def reason_of(error: BaseException | None) -> str:
    """Returns the reason, one of `REASONS`, for an error after the first byte.

    >>> reason_of(IncompleteResult("cut")), reason_of(KeyError("x"))
    ('incomplete', 'internal')
    """
    return next((reason for kind, reason in _REASONS if isinstance(error, kind)), "internal")


class Counted(Protocol):
    """Messages that are being written."""

    @property
    def message_count(self) -> int: ...


@dataclass(kw_only=True)
class RequestRecord:
    """The record of a request, filled in while it is answered.

    Args:
        id: the request's identifier, see `request_id`.
        method: the request method.
        endpoint: the path that names the endpoint, such as `/dbpedia/sparql`; None: another path was requested.
        client: the address of the client.
        format: the content type of the answer.
        messages: the messages of the answer, if it consists of messages.
        status: the status of the response; None: no response was sent.
        bytes: the number of body bytes written to the client's connection so far.
        outcome: `complete`, `refused` (a problem document), `client-left` or `aborted:` and a reason of `REASONS`.
        first_seconds: the time from the request to the first bytes of the body.
        observer: called on progress, for the metrics.
    """

    LABELS: ClassVar[Mapping[str, frozenset[str]]] = {}
    """The names and values of the labels of the request counter. The values are closed sets: text from clients is
    never one.
    """
    COUNTERS: ClassVar[Mapping[str, str]] = {
        "messages": "Messages written to clients.",
        "sent_bytes": "Bytes of bodies sent to clients.",
    }
    """The names and descriptions of the values of `counts`."""
    DURATIONS: ClassVar[Mapping[str, str]] = {
        "first_message": "From a request to the first bytes of its messages."
    }
    """The names and descriptions of the values of `durations`."""

    id: str
    method: str
    endpoint: str | None = None
    client: str | None = None
    format: str | None = None
    messages: Counted | None = None
    status: int | None = None
    bytes: int = 0
    outcome: str = "complete"
    first_seconds: float | None = None
    observer: Callable[[RequestRecord], None] = lambda _: None
    _started: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        """The time since the request began, in seconds."""
        return time.perf_counter() - self._started

    @property
    def answer(self) -> str:
        """The kind of answer: `messages`, `plain`, `problem`, or `none` if the client disconnected before an answer."""
        if self.outcome == "refused":
            return "problem"
        if self.status is None and not self.bytes:
            return "none"
        return "messages" if self.messages else "plain"

    def fields(self) -> dict[str, object]:
        """Returns the fields of the line in the request log; those with None are left out."""
        return {
            "request_id": self.id,
            "client": self.client,
            "method": self.method,
            "endpoint": self.endpoint,
            "format": self.format,
            "status": self.status,
            "outcome": self.outcome,
            "bytes": self.bytes,
            "seconds": self.seconds,
            "messages": self.messages.message_count if self.messages else None,
            "first_message_seconds": self.first_seconds if self.messages else None,
        }

    def texts(self) -> dict[str, object]:
        """Returns additional fields with text from the client, which are only logged if the settings allow it."""
        return {}

    def labels(self) -> Mapping[str, str]:
        """Returns values of `LABELS`; missing ones count as empty."""
        return {}

    def counts(self) -> Mapping[str, int]:
        """Returns the counts so far, by the names of `COUNTERS`."""
        return {
            "messages": self.messages.message_count if self.messages else 0,
            "sent_bytes": self.bytes,
        }

    def durations(self) -> Mapping[str, float | None]:
        """Returns durations in seconds, by the names of `DURATIONS`; None: not observed."""
        return {"first_message": self.first_seconds if self.messages else None}

    def sent(self, size: int) -> None:
        """Counts bytes of the body that are about to be sent."""
        if self.first_seconds is None:
            self.first_seconds = self.seconds
        self.bytes += size
        self.observer(self)

    def refused(self, status: int) -> None:
        """Records that the request is answered with a problem document."""
        self.status, self.outcome = status, "refused"

    def aborted(self, reason: str) -> None:
        """Records that the connection was reset after the first byte, for one of `REASONS`."""
        assert reason in REASONS, reason
        self.outcome = f"aborted:{reason}"

    def client_left(self) -> None:
        """Records that the client closed the connection before the answer ended."""
        self.outcome = "client-left"


RECORD: Final = web.RequestKey("record", RequestRecord)
"""The key of a request's record."""


def request_id(incoming: str | None) -> str:
    """Returns the identifier of a request: the client's own (`X-Request-ID`) if it is short and plain, else a new one.

    >>> request_id("7b3c-1"), len(request_id("two words")), len(request_id(None))
    ('7b3c-1', 36, 36)
    """
    if incoming is not None and _REQUEST_ID.fullmatch(incoming):
        return incoming
    # identifiers need not be unpredictable, and a system call for randomness would let other threads run
    return _uuid(_RANDOM.getrandbits(128))


_FOUR: Final = 0x4000_8000_0000_0000_0000
_FREE: Final = ~0xF000_C000_0000_0000_0000


def _uuid(bits: int) -> str:
    """Returns a random UUID (RFC 9562, section 5.4) as text, five times as fast as by an object of `uuid`.

    >>> import uuid
    >>> bits = _RANDOM.getrandbits(128)
    >>> _uuid(bits) == str(uuid.UUID(int=bits, version=4))
    True
    """
    text = f"{bits & _FREE | _FOUR:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def client_address(peer: str | None, forwarded: str | None, *, trust_forwarded: bool) -> str | None:
    """Returns the address of a client: that of the peer, or the one that a trusted proxy sends for its own peer.

    Args:
        peer: the address at the other end of the connection.
        forwarded: the value of `X-Forwarded-For`, repeated headers joined by commas. The proxy writes only the last
            entry; the client may have forged those before it.
        trust_forwarded: whether the peer is a trusted proxy.

    >>> client_address("127.0.0.1", "6.6.6.6, 192.0.2.7", trust_forwarded=True)
    '192.0.2.7'
    >>> client_address("127.0.0.1", "192.0.2.7\\n", trust_forwarded=False)
    '127.0.0.1'
    """
    if not trust_forwarded or forwarded is None:
        return peer
    try:
        return str(ipaddress.ip_address(forwarded.rpartition(",")[2].strip()))
    except ValueError:
        return peer
