"""Starts the server in this process, on a free port of loopback."""

from __future__ import annotations

import io
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from construct_messages.server.config import Config, EndpointSettings, Limits
from construct_messages.server.http.app import make_app, runner_of
from construct_messages.server.http.endpoint import Endpoint
from construct_messages.server.http.metrics import Metrics
from construct_messages.server.http.request_log import RequestLog
from construct_messages.server.pages.endpoint import problem_page
from construct_messages.server.runtime.endpoints import open_endpoints
from construct_messages.server.runtime.process import THREAD_NAMES, THREADS
from tests.support.waiting import SECONDS

UNHURRIED: Final = Limits(seconds=SECONDS, idle_seconds=SECONDS)
"""Time limits that no test reaches, however slow the machine is."""


def unlabelled(log: bytes) -> bytes:
    """A log with one prefix for all labels of blank nodes, which each answer makes anew and of the same length."""
    return re.sub(rb"[b-z][0-9b-z]{11}(?=_[a-z])", b"x" * 12, log)


@dataclass
class Served:
    """A server that runs."""

    url: str
    """Of the server, without a path."""
    request_log: io.StringIO
    metrics: Metrics
    endpoints: Sequence[Endpoint]
    stop: Callable[[], Awaitable[None]]
    """Ends it as SIGTERM would."""

    @property
    def sparql(self) -> str:
        """The URL of the endpoint without a name."""
        return f"{self.url}/sparql"


@asynccontextmanager
async def serving(
    *source: str | Path,
    endpoints: Mapping[str, EndpointSettings] | None = None,
    settings: Mapping[str, Any] | None = None,
    shutdown_seconds: float = 0.2,
    **options: Any,
) -> AsyncIterator[Served]:
    """A server over one source, or over `endpoints`; `options` are those of the one endpoint.

    Requests that have not ended `shutdown_seconds` after the server was stopped are cancelled.
    """
    if endpoints is None:
        endpoints = {
            "": EndpointSettings(
                source=tuple(str(part) for part in source), **{"limits": UNHURRIED} | options
            )
        }
    config = Config(
        endpoints=dict(endpoints), bind="127.0.0.1:0", **{"log_level": "debug", **(settings or {})}
    )
    lines = io.StringIO()
    request_log = RequestLog(config, lines)
    with ThreadPoolExecutor(THREADS, THREAD_NAMES) as executor:
        served = open_endpoints(config, {}, request_log, executor)
        metrics = Metrics({endpoint.path: endpoint.record for endpoint in served})
        page = problem_page if config.page else None
        app = make_app(config, served, request_log=request_log, metrics=metrics, problem_page=page)
        runner = runner_of(app, shutdown_seconds=shutdown_seconds)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            yield Served(site.name, lines, metrics, served, runner.cleanup)
        finally:
            await runner.cleanup()
