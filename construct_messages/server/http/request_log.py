"""What the server says of itself: one structured line when a request ends, as logfmt or JSON, to standard error.

A `Record` gathers what there is to say while the request is answered; the metrics read the same record. Nothing a
client sends can start a line or a field of its own. No query text unless it is asked for. Nothing here answers a
request.
"""

from __future__ import annotations

import ipaddress
import logging
import re
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TextIO

import structlog
from structlog.typing import EventDict, Processor

from construct_messages.errors import (
    GroupError,
    IncompleteResult,
    LimitExceeded,
    SourceError,
    SourceTimeout,
    UnsupportedByFormat,
)
from construct_messages.server.config import Config

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._~:/+=-]{1,128}")

# The first class that fits. A closed set, since each is a value of a metric's label.
_REASONS: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (SourceTimeout, "timeout"),
    (IncompleteResult, "incomplete"),
    (SourceError, "source"),
    (LimitExceeded, "limit"),
    (UnsupportedByFormat, "format"),
    (GroupError, "grouping"),
)
REASONS: Final = (*(reason for _, reason in _REASONS), "idle", "shutdown", "internal")
"""Why an answer that had begun was reset: what the source did, what a bound or the format said; a client that took
nothing for too long; the server's end; a fault of the server."""


def reason_of(error: BaseException | None) -> str:
    """The reason, of `REASONS`, that an error behind the first byte stands for.

    >>> reason_of(IncompleteResult("cut")), reason_of(KeyError("x"))
    ('incomplete', 'internal')
    """
    return next((reason for kind, reason in _REASONS if isinstance(error, kind)), "internal")


class Counted(Protocol):
    """What a log under way has delivered so far."""

    @property
    def message_count(self) -> int: ...

    @property
    def solutions(self) -> int: ...


@dataclass(kw_only=True, slots=True)
class Record:
    """What is known of one request, filled in while it is answered.

    Args:
        id: the request's identifier, see `request_id`.
        method: of the request.
        endpoint: the path of the endpoint, such as `/dbpedia/sparql`; None: another path was asked for.
        client: its address.
        form: of the operation: `SELECT`, `CONSTRUCT`, `ASK`, `DESCRIBE`, `UPDATE`, or `description`; None: not known.
        format: the content type of the answer.
        query: the text, which is logged only where the settings say so.
        stream: the log, where the answer is one.
        status: of the response; None: none was sent.
        bytes: of the body, handed to the client's connection so far.
        outcome: `complete`, `refused` (a problem document), `client-left` or `aborted:` and a reason of `REASONS`.
        first_seconds: from the request to the first bytes of the body, and with a log to its first message.
        source_seconds: from the question to the source to its first bytes.
        observer: told of progress; the metrics'.
    """

    id: str
    method: str
    endpoint: str | None = None
    client: str | None = None
    form: str | None = None
    format: str | None = None
    query: str | None = None
    stream: Counted | None = None
    status: int | None = None
    bytes: int = 0
    outcome: str = "complete"
    first_seconds: float | None = None
    source_seconds: float | None = None
    observer: Callable[[Record], None] = lambda _: None
    _started: float = field(default_factory=time.perf_counter)
    _asked: float | None = None

    @property
    def seconds(self) -> float:
        """Since the request began."""
        return time.perf_counter() - self._started

    @property
    def message_count(self) -> int:
        """Written so far."""
        return self.stream.message_count if self.stream else 0

    @property
    def solutions(self) -> int:
        """Read so far."""
        return self.stream.solutions if self.stream else 0

    @property
    def answer(self) -> str:
        """The kind of answer: `messages`, `plain`, `problem`, or `none` where the client left before one."""
        if self.outcome == "refused":
            return "problem"
        if self.status is None and not self.bytes:
            return "none"
        return "messages" if self.stream else "plain"

    def asked(self) -> None:
        """The source is asked now."""
        self._asked = time.perf_counter()

    def sent(self, size: int) -> None:
        """So many bytes of the body go to the client now."""
        if self.first_seconds is None:
            now = time.perf_counter()
            self.first_seconds = now - self._started
            if self._asked is not None:
                self.source_seconds = now - self._asked
        self.bytes += size
        self.observer(self)

    def refused(self, status: int) -> None:
        """The request is answered with a problem document."""
        self.status, self.outcome = status, "refused"

    def aborted(self, reason: str) -> None:
        """The connection was reset behind the first byte, for one of `REASONS`."""
        assert reason in REASONS, reason
        self.outcome = f"aborted:{reason}"

    def client_left(self) -> None:
        """The client closed the connection before the answer ended."""
        self.outcome = "client-left"


def request_id(incoming: str | None) -> str:
    """The identifier of a request: the client's own (`X-Request-ID`) if it is short and plain, else a new one.

    >>> request_id("7b3c-1"), len(request_id("two words")), len(request_id(None))
    ('7b3c-1', 36, 36)
    """
    return incoming if incoming is not None and _REQUEST_ID.fullmatch(incoming) else str(uuid.uuid4())


def client_address(peer: str | None, forwarded: str | None, *, trust_forwarded: bool) -> str | None:
    """Whom a request comes from: the peer, or whom a trusted proxy names as its own peer.

    Args:
        peer: the address at the other end of the connection.
        forwarded: the value of `X-Forwarded-For`, several joined by commas; only its last entry is the proxy's own
            word, the ones before it are what the client claims.
        trust_forwarded: whether the peer is such a proxy.

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


class RequestLog:
    """The server's log.

    Args:
        config: its format, its least level, and whether it shows queries.
        file: where it goes; None: standard error.
    """

    def __init__(self, config: Config, file: TextIO | None = None) -> None:
        self._file = sys.stderr if file is None else file
        self._shows_queries = config.log_queries
        self._level = logging.getLevelNamesMapping()[config.log_level.upper()]
        self._processors: list[Processor] = [
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper("iso"),
            structlog.processors.format_exc_info,
        ]
        self._renderers: list[Processor] = (
            [structlog.processors.JSONRenderer()]
            if config.log_format == "json"
            else [
                _printable,
                structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"], drop_missing=True),
            ]
        )
        self._logger: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
            structlog.WriteLogger(self._file),
            processors=[*self._processors, *self._renderers],
            wrapper_class=structlog.make_filtering_bound_logger(self._level),
        )

    def bound(self, record: Record) -> AbstractContextManager[None]:
        """While it is entered, every line of this task and of those it starts carries the request's identifier."""
        return structlog.contextvars.bound_contextvars(request_id=record.id)

    def log(self, level: str, event: str, **fields: object) -> None:
        """Writes a line of the server's own, at `debug`, `info`, `warning` or `error`."""
        self._logger.log(logging.getLevelNamesMapping()[level.upper()], event, **fields)

    def exception(self, event: str, error: BaseException) -> None:
        """Writes an error nobody foresaw, with its traceback."""
        self._logger.error(event, exc_info=error)

    def write(self, record: Record) -> None:
        """Writes the line of a request that has ended."""
        fields: dict[str, Any] = {
            "request_id": record.id,
            "client": record.client,
            "method": record.method,
            "endpoint": record.endpoint,
            "form": record.form,
            "format": record.format,
            "status": record.status,
            "outcome": record.outcome,
            "bytes": record.bytes,
            "seconds": round(record.seconds, 6),
            "source_seconds": _rounded(record.source_seconds),
        }
        if record.stream is not None:
            fields |= {
                "messages": record.message_count,
                "solutions": record.solutions,
                "first_message_seconds": _rounded(record.first_seconds),
            }
        if self._shows_queries:
            fields["query"] = record.query
        failed = record.outcome.startswith("aborted") or (record.status or 0) >= 500
        self.log(
            "warning" if failed else "info",
            "request",
            **{name: value for name, value in fields.items() if value is not None},
        )

    def capture_logging(self) -> None:
        """Takes over what goes to `logging`: this package's lines from `log_level` on, warnings of all others."""
        logging.basicConfig(handlers=[self.handler()], level=logging.WARNING)
        logging.getLogger("construct_messages").setLevel(self._level)

    def handler(self) -> logging.Handler:
        """A handler for the standard library's loggers, which writes lines of the same form."""
        handler = logging.StreamHandler(self._file)
        handler.setLevel(self._level)
        handler.setFormatter(
            structlog.stdlib.ProcessorFormatter(
                foreign_pre_chain=[*self._processors, structlog.stdlib.add_logger_name],
                processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *self._renderers],
            )
        )
        return handler


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)


def _printable(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Escapes what could move a terminal's cursor; quotes, backslashes and line feeds are escaped by logfmt itself."""
    return {name: _escaped(value) if isinstance(value, str) else value for name, value in event.items()}


def _escaped(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
