"""The request log: writes a structured line at the end of each request, as logfmt or JSON, to standard error.

Text from clients cannot start a line or a field. Query texts are only logged if the settings allow it. `record.py` has
the data of a request.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, TextIO

import structlog
from structlog.typing import EventDict, Processor

from construct_messages.server.config import Config
from construct_messages.server.http.record import RequestRecord

_REQUEST: Final[ContextVar[str]] = ContextVar("request_id")
_LEVELS: Final = logging.getLevelNamesMapping()


class RequestLog:
    """The server's log.

    Lines of requests are written together, once in each turn of the event loop: each write is a system call, and lets
    other threads take the interpreter's lock.

    Args:
        config: its format, its lowest level, and whether it shows queries.
        file: the file to write to; None: standard error.
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

    def bound(self, record: RequestRecord) -> AbstractContextManager[None]:
        """Adds the request's identifier to every line that this task and its child tasks write within the block."""
        return _Bound(record.id)

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
            "timestamp": _timestamp(time.time_ns() // 1000),
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


class _Bound:
    """See `RequestLog.bound`."""

    __slots__ = ("_id", "_token")

    def __init__(self, id: str) -> None:
        self._id = id

    def __enter__(self) -> None:
        self._token: Token[str] = _REQUEST.set(self._id)

    def __exit__(self, *_: object) -> None:
        _REQUEST.reset(self._token)


def _timestamp(microseconds: int) -> str:
    """Formats a time since 1970; each second is formatted once, because that takes most of the time.

    >>> _timestamp(86_400_000_007)
    '1970-01-02T00:00:00.000007Z'
    """
    second, fraction = divmod(microseconds, 1_000_000)
    return f"{_second(second)}.{fraction:06}Z"


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


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
    line = _template(tuple(event)) % tuple(event.values())
    plain = (
        line.isprintable()
        and line.count("=") == len(event) == line.count(" ") + 1
        and '"' not in line
        and "\\" not in line
        and "=True" not in line  # logfmt has lower case
        and "=False" not in line
    )
    return line if plain else _logfmt(logger, method, event)


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
