"""What the server counts, for Prometheus: every metric is defined here, with its labels.

A registry of its own per server, so that several run in one process; where several processes serve, prometheus_client
keeps the values in the files of PROMETHEUS_MULTIPROC_DIR, and each process shows the sum of all. Label values are
closed sets: nothing a client sends becomes one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector

from construct_messages.server.http.request_log import REASONS, Record

DIRECTORY: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable that makes prometheus_client share values; read when it is imported."""

# which prometheus_client fails at, or gives back in its Content-Type
_NO_VERSION: Final = re.compile(r"version=(?![0-9]{1,3}(?:\.[0-9]{1,3}){0,2}[ \t]*+(?:[;,]|\Z))")
_FORMS: Final = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE", "UPDATE", "description")
# an embedded answer comes within milliseconds, a public endpoint's may take its whole time limit
_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


class Metrics:
    """The counters of one server.

    >>> metrics = Metrics()
    >>> with metrics.watch(Record(id="1", method="GET", endpoint="/sparql", form="ASK", status=200)):
    ...     pass
    >>> exposition, content_type = metrics.exposition(None)
    >>> print(next(line for line in exposition.decode().splitlines() if line.startswith("construct_messages_req")))
    construct_messages_requests_total{answer="plain",endpoint="/sparql",form="ASK",status="200"} 1.0
    """

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "construct_messages_requests",
            "Requests that ended, by form of the operation, kind of answer and HTTP status.",
            ("endpoint", "form", "answer", "status"),
            registry=registry,
        )
        # by the attribute of a record
        self._delivered = {
            name: Counter(f"construct_messages_{metric}", help, ("endpoint",), registry=registry)
            for name, metric, help in (
                ("message_count", "messages", "Messages written to clients."),
                ("solutions", "solutions", "Solutions read from sources for messages."),
                ("bytes", "sent_bytes", "Bytes of bodies sent to clients."),
            )
        }
        self._aborts = Counter(
            "construct_messages_aborts",
            "Answers that were reset behind their first byte, by reason.",
            ("endpoint", "reason"),
            registry=registry,
        )
        self._left = Counter(
            "construct_messages_clients_left",
            "Clients that closed the connection before the answer ended.",
            ("endpoint",),
            registry=registry,
        )
        self._first_message = Histogram(
            "construct_messages_first_message_seconds",
            "From a request to the first bytes of its log.",
            ("endpoint",),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._source = Histogram(
            "construct_messages_source_seconds",
            "From the question to a source to the first bytes that follow from its answer.",
            ("endpoint",),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._in_flight = Gauge(
            "construct_messages_in_flight",
            "Requests being answered now.",
            ("endpoint",),
            registry=registry,
            multiprocess_mode="livesum",
        )

    def begin(self, endpoints: Iterable[str]) -> None:
        """Begins to count for endpoints, so that a first abort is an increase and not a new series.

        Args:
            endpoints: their paths.
        """
        for endpoint in endpoints:
            for counter in (*self._delivered.values(), self._left):
                counter.labels(endpoint)
            for reason in REASONS:
                self._aborts.labels(endpoint, reason)

    @contextmanager
    def watch(self, record: Record) -> Generator[None]:
        """Counts a request while it is answered, and what its record says in the end."""
        endpoint = record.endpoint or ""
        counted = dict.fromkeys(self._delivered, 0)

        def progress(record: Record) -> None:
            # a log may run for hours: what it delivers is counted as it goes
            for name, counter in self._delivered.items():
                now = getattr(record, name)
                if more := now - counted[name]:
                    counter.labels(endpoint).inc(more)
                    counted[name] = now

        in_flight = self._in_flight.labels(endpoint)
        record.observer = progress
        in_flight.inc()
        try:
            yield
        finally:
            in_flight.dec()
            progress(record)
            self._end(record, endpoint)

    def _end(self, record: Record, endpoint: str) -> None:
        form = record.form if record.form in _FORMS else ""
        self._requests.labels(endpoint, form, record.answer, "" if record.status is None else str(record.status)).inc()
        outcome, _, reason = record.outcome.partition(":")
        if outcome == "aborted":
            self._aborts.labels(endpoint, reason).inc()
        elif outcome == "client-left":
            self._left.labels(endpoint).inc()
        if record.stream is not None and record.first_seconds is not None:
            self._first_message.labels(endpoint).observe(record.first_seconds)
        if record.source_seconds is not None:
            self._source.labels(endpoint).observe(record.source_seconds)

    def exposition(self, accept: str | None) -> tuple[bytes, str]:
        """All values, in the text format or OpenMetrics, whichever a scraper's `Accept` asks for; and its type."""
        registry = self._registry
        if DIRECTORY in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call] # prometheus_client leaves it untyped
        readable = "" if accept is None or _NO_VERSION.search(accept) else accept
        encode, content_type = choose_encoder(readable)
        return encode(registry), content_type
