"""The request log: a structured line when a request ends, as logfmt or JSON, to standard error.

Nothing that a client sends can start a line or a field. Query texts are only logged if the settings allow it. What is
known of a request is in `record.py`.
"""

from __future__ import annotations

import logging
import sys
from contextlib import AbstractContextManager
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor

from construct_messages.server.config import Config
from construct_messages.server.http.record import RequestRecord


class RequestLog:
    """The server's log.

    Args:
        config: its format, its least level, and whether it shows queries.
        file: where to write; None: standard error.
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
                structlog.processors.LogfmtRenderer(
                    key_order=["timestamp", "level", "event"], drop_missing=True
                ),
            ]
        )
        self._logger: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
            structlog.WriteLogger(self._file),
            processors=[*self._processors, *self._renderers],
            wrapper_class=structlog.make_filtering_bound_logger(self._level),
        )

    def bound(self, record: RequestRecord) -> AbstractContextManager[None]:
        """Adds the request's identifier to every line that this task, and those it starts, write within the block."""
        return structlog.contextvars.bound_contextvars(request_id=record.id)

    def log(self, level: str, event: str, **fields: object) -> None:
        """Writes a line of the server's own, at `debug`, `info`, `warning` or `error`."""
        self._logger.log(logging.getLevelNamesMapping()[level.upper()], event, **fields)

    def exception(self, event: str, error: BaseException) -> None:
        """Writes an unforeseen error with its traceback."""
        self._logger.error(event, exc_info=error)

    def write(self, record: RequestRecord) -> None:
        """Writes the line of a request that has ended."""
        fields = record.fields() | (record.texts() if self._shows_queries else {})
        failed = record.outcome.startswith("aborted") or (record.status or 0) >= 500
        self.log(
            "warning" if failed else "info",
            "request",
            **{name: _rounded(value) for name, value in fields.items() if value is not None},
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
                processors=[
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    *self._renderers,
                ],
            )
        )
        return handler


def _rounded(value: object) -> object:
    return round(value, 6) if isinstance(value, float) else value


def _printable(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Escapes what could move a terminal's cursor; quotes, backslashes and line feeds are escaped by logfmt itself."""
    return {
        name: _escaped(value) if isinstance(value, str) else value for name, value in event.items()
    }


def _escaped(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text
    )
