"""The request log: writes a structured line at the end of each request, as logfmt or JSON, to standard error.

Text from clients cannot start a line or a field. Query texts are only logged if the settings allow it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import ClassVar, Final, Protocol, TextIO
from uuid import UUID

import structlog
from aiohttp import web
from structlog.typing import EventDict, Processor

from construct_messages.errors import (
    Forbidden,
    GroupError,
    IncompleteResult,
    LimitExceeded,
    SourceError,
    SourceTimeout,
    UnsupportedByFormat,
)
from construct_messages.server.config import Config

# --- record ---------------------------------------------------------------------------------------
# The record of one request, for the request log and the metrics; kinds of endpoints add fields by subclasses.

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

    `endpoint` is the path that names it; None: another path was requested. `status` is None until a response is sent,
    and `bytes` counts the body so far. `outcome` is `complete`, `refused` (a problem document), `client-left`, or
    `aborted:` and one of `REASONS`. `observer` is called on progress, for the metrics.
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
        """Returns the values of `LABELS`, which are attributes; without one, a value is empty."""
        return {name: getattr(self, name) or "" for name in self.LABELS}

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
    return str(UUID(int=_RANDOM.getrandbits(128), version=4))


def client_address(peer: str | None, forwarded: str | None, *, trust_forwarded: bool) -> str | None:
    """Returns the address of a client: that of the peer, or the one that a trusted proxy sends for its own peer.

    `X-Forwarded-For` counts only from a trusted proxy, which writes its last entry; the client may have forged those
    before it.

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


# --- request log ----------------------------------------------------------------------------------

_REQUEST: Final[ContextVar[str]] = ContextVar("request_id")
_LEVELS: Final = logging.getLevelNamesMapping()


class RequestLog:
    """The server's log. Without a file, that is standard error.

    Lines of requests are written together, once in each turn of the event loop: each write is a system call, and lets
    other threads take the interpreter's lock.
    """

    def __init__(self, config: Config, file: TextIO | None = None) -> None:
        self._file = sys.stderr if file is None else file
        self._shows_queries = config.log_queries
        self._level = _LEVELS[config.log_level.upper()]
        self._processors: list[Processor] = [
            _of_request,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper("iso"),
            structlog.processors.format_exc_info,
        ]
        as_json = structlog.processors.JSONRenderer() if config.log_format == "json" else None
        self._render, self._render_request = as_json or _logfmt, as_json or _logfmt_of_request
        self._waiting: list[str] = []
        self._logger: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
            structlog.WriteLogger(self._file),
            processors=[*self._processors, self._render],
            wrapper_class=structlog.make_filtering_bound_logger(self._level),
        )

    @contextmanager
    def bound(self, record: RequestRecord) -> Iterator[None]:
        """Adds the request's identifier to every line that this task and its child tasks write within the block."""
        token = _REQUEST.set(record.id)
        try:
            yield
        finally:
            _REQUEST.reset(token)

    def log(self, level: str, event: str, **fields: object) -> None:
        """Writes a line of the server itself, at `debug`, `info`, `warning` or `error`."""
        self._flush()
        self._logger.log(_LEVELS[level.upper()], event, **fields)

    def exception(self, event: str, error: BaseException) -> None:
        """Writes an unforeseen error with its traceback."""
        self._flush()
        self._logger.error(event, exc_info=error)

    def write(self, record: RequestRecord) -> None:
        """Writes the line of a request that has ended, as `log` would."""
        failed = record.outcome.startswith("aborted") or (record.status or 0) >= 500
        if self._level > (logging.WARNING if failed else logging.INFO):
            return
        event: dict[str, object] = {
            "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
            "level": "warning" if failed else "info",
            "event": "request",
        }
        for name, value in record.fields().items():
            if value is not None:
                event[name] = round(value, 6) if type(value) is float else value
        if self._shows_queries:
            event |= {name: text for name, text in record.texts().items() if text is not None}
        self._waiting.append(f"{self._render_request(None, 'log', event)!s}\n")
        if len(self._waiting) == 1:
            try:
                asyncio.get_running_loop().call_soon(self._flush)
            except RuntimeError:  # without an event loop, the line is written immediately
                self._flush()

    def _flush(self) -> None:
        if self._waiting:
            lines, self._waiting = "".join(self._waiting), []
            self._file.write(lines)
            self._file.flush()

    def capture_logging(self) -> None:
        """Redirects the records of `logging`: those of this package from `log_level` on, warnings of all others."""
        logging.basicConfig(handlers=[self.handler()], level=logging.WARNING)
        logging.getLogger("construct_messages").setLevel(self._level)

    def handler(self) -> logging.Handler:
        """Returns a handler for the standard library's loggers, which writes lines in the same format."""
        handler = logging.StreamHandler(self._file)
        handler.setLevel(self._level)
        handler.setFormatter(
            structlog.stdlib.ProcessorFormatter(
                foreign_pre_chain=[*self._processors, structlog.stdlib.add_logger_name],
                processors=[
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    self._render,
                ],
            )
        )
        return handler


def _of_request(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Adds the identifier of the current request."""
    if (id := _REQUEST.get(None)) is not None:
        event.setdefault("request_id", id)
    return event


_LOGFMT: Final = structlog.processors.LogfmtRenderer(
    key_order=["timestamp", "level", "event"], drop_missing=True
)


def _logfmt(logger: object, method: str, event: EventDict) -> str:
    """Returns a line of logfmt, in which terminal control characters are escaped as well.

    >>> _logfmt(None, "", {"timestamp": "2026-11-22", "level": "info", "event": "request", "status": 200})
    'timestamp=2026-11-22 level=info event=request status=200'
    """
    text = _LOGFMT(logger, method, _printable(logger, method, event))
    assert isinstance(text, str)
    return text


def _logfmt_of_request(logger: object, method: str, event: EventDict) -> str:
    """Returns the same line for an event that begins with `timestamp`, `level` and `event`; few values need
    escaping.
    """
    template, values = _template(tuple(event)), tuple(event.values())
    line = template % values
    if (
        not line.isprintable()
        or '"' in line
        or "\\" in line
        or "=True" in line  # logfmt has lower case
        or "=False" in line
    ):
        return _logfmt(logger, method, event)
    if line.count("=") == len(event) == line.count(" ") + 1:
        return line
    return template % tuple(map(_quoted, map(str, values)))  # such as media types with parameters


def _quoted(text: str) -> str:
    return f'"{text}"' if " " in text or "=" in text else text


@lru_cache(maxsize=64)  # requests have few combinations of fields
def _template(names: tuple[str, ...]) -> str:
    return " ".join(f"{name}=%s" for name in names)


def _printable(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Escapes terminal control characters; logfmt itself escapes quotes, backslashes and line feeds."""
    return {
        name: _escaped(value) if isinstance(value, str) else value for name, value in event.items()
    }


def _escaped(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text
    )
