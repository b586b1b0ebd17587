"""The metrics of a server, for Prometheus: those of all requests, and those of its endpoints' records.

Each server has its own registry: several can run in one process. With several server processes,
prometheus_client keeps the values in the files of PROMETHEUS_MULTIPROC_DIR, and each process shows the sums. Label
values are closed sets: text from clients is never a label value. Values are increased once in each turn of the event
loop, because prometheus_client takes a lock each time.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from construct_messages.server.http.endpoint import Measure
from construct_messages.server.http.request_log import REASONS, RequestRecord

DIRECTORY: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable that makes prometheus_client share values; read when it is imported."""

_PREFIX: Final = "construct_messages_"
# prometheus_client fails for these, or returns them in its Content-Type
_NO_VERSION: Final = re.compile(r"version=(?![0-9]{1,3}(?:\.[0-9]{1,3}){0,2}[ \t]*+(?:[;,]|\Z))")
# an embedded store answers within milliseconds, a public endpoint may use its whole time limit
_BUCKETS: Final = (
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    120.0,
    300.0,
)


class Metrics:
    """The counters of one server; the classes of its endpoints' records define those beside the common ones.

    >>> metrics = Metrics({"/sparql": RequestRecord})
    >>> with metrics.watch(RequestRecord(id="1", method="GET", endpoint="/sparql", status=200)):
    ...     pass
    >>> exposition, content_type = metrics.exposition(None)
    >>> print(next(line for line in exposition.decode().splitlines() if line.startswith("construct_messages_req")))
    construct_messages_requests_total{answer="plain",endpoint="/sparql",status="200"} 1.0
    """

    def __init__(self, endpoints: Mapping[str, type[RequestRecord]]) -> None:
        self._registry = CollectorRegistry()
        kinds: set[type[RequestRecord]] = {RequestRecord, *endpoints.values()}
        self._labels = {name: values for kind in kinds for name, values in kind.LABELS.items()}
        labels = ("endpoint", *self._labels, "answer", "status")
        self._requests = self._counter(
            "requests", "Requests that ended, by kind of answer and HTTP status.", *labels
        )
        counters = {name: help for kind in kinds for name, help in kind.COUNTERS.items()}
        self._counters = {
            name: self._counter(name, help, "endpoint") for name, help in counters.items()
        }
        durations = {name: help for kind in kinds for name, help in kind.DURATIONS.items()}
        self._durations = {
            name: Histogram(
                f"{_PREFIX}{name}_seconds",
                help,
                ("endpoint",),
                buckets=_BUCKETS,
                registry=self._registry,
            )
            for name, help in durations.items()
        }
        aborts = "Answers that were reset after their first byte, by reason."
        self._aborts = self._counter("aborts", aborts, "endpoint", "reason")
        clients_left = "Clients that closed the connection before the answer ended."
        self._clients_left = self._counter("clients_left", clients_left, "endpoint")
        in_flight = "Requests being answered now."
        self._in_flight = self._gauge("in_flight", in_flight, multiprocess_mode="livesum")
        self._counts: dict[tuple[str, type[RequestRecord]], _Counts] = {}
        self._increases = _Increases()
        # from the start, so that the first abort increases an existing series
        for endpoint, kind in endpoints.items():
            for counter in (*(self._counters[name] for name in kind.COUNTERS), self._clients_left):
                counter.labels(endpoint)
            for reason in REASONS:
                self._aborts.labels(endpoint, reason)

    def show(self, endpoint: str, gauges: Mapping[str, Sequence[Measure]]) -> None:
        """Adds the gauges of an endpoint of this process, which are evaluated at each scrape."""
        for name, measures in gauges.items():
            gauge = self._gauge(name, measures[0].help, *measures[0].labels)
            for measure in measures:
                gauge.labels(endpoint, *measure.labels.values()).set_function(measure.ask)

    def _counter(self, name: str, help: str, *labels: str) -> Counter:
        return Counter(f"{_PREFIX}{name}", help, labels, registry=self._registry)

    def _gauge(self, name: str, help: str, *labels: str, **options: Any) -> Gauge:
        return Gauge(
            f"{_PREFIX}{name}", help, ("endpoint", *labels), registry=self._registry, **options
        )

    def watch(self, record: RequestRecord) -> AbstractContextManager[None]:
        """Counts a request while it is answered, and the values of its record at the end."""
        endpoint = record.endpoint or ""
        counts = self._counts.get((endpoint, type(record)))
        if counts is None:
            counts = self._counts[endpoint, type(record)] = self._counts_of(endpoint, record)
        return _Watch(counts, record)

    def _counts_of(self, endpoint: str, record: RequestRecord) -> _Counts:
        return _Counts(
            increases=self._increases,
            in_flight=self._in_flight.labels(endpoint),
            counters={name: self._counters[name].labels(endpoint) for name in record.COUNTERS},
            durations=lambda name: self._durations[name].labels(endpoint),
            aborts=lambda reason: self._aborts.labels(endpoint, reason),
            clients_left=self._clients_left.labels(endpoint),
            requests=lambda labels: self._requests.labels(endpoint, *labels),
            labels=self._labels,
        )

    def exposition(self, accept: str | None) -> tuple[bytes, str]:
        """Returns all values, in the text format or OpenMetrics according to the scraper's `Accept`, and the media
        type.
        """
        self._increases.flush()
        registry = self._registry
        if DIRECTORY in os.environ:
            registry = CollectorRegistry()
            registry.register(_SharedValues(Path(os.environ[DIRECTORY])))
        readable = "" if accept is None or _NO_VERSION.search(accept) else accept
        encode, content_type = choose_encoder(readable)
        return encode(registry), content_type


class _SharedValues(Collector):
    """The sums of the values of all processes.

    prometheus_client creates the file of a process empty, and fails if it reads it before it has a length.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def collect(self) -> Iterable[Metric]:
        files = [str(file) for file in self._directory.glob("*.db") if _has_length(file)]
        metrics: Iterable[Metric] = MultiProcessCollector.merge(files)  # type: ignore[no-untyped-call] # it has no types
        return metrics


def _has_length(file: Path) -> bool:
    with suppress(FileNotFoundError):  # the supervisor removes files of processes that have ended
        return file.stat().st_size > 0
    return False


class _Increases:
    """The amounts by which counters and gauges have to be increased."""

    def __init__(self) -> None:
        self._amounts: dict[Counter | Gauge, int] = {}

    def add(self, value: Counter | Gauge, amount: int = 1) -> None:
        """Increases a value in the next turn of the event loop."""
        amounts = self._amounts
        is_first = not amounts
        amounts[value] = amounts.get(value, 0) + amount
        if is_first:
            try:
                asyncio.get_running_loop().call_soon(self.flush)
            except RuntimeError:  # no event loop is running
                self.flush()

    def flush(self) -> None:
        """Increases all values now."""
        amounts, self._amounts = self._amounts, {}
        for value, amount in amounts.items():
            value.inc(amount)


@dataclass
class _Counts:
    """The values of one endpoint, kept because looking up a value by its labels takes longer than counting."""

    increases: _Increases
    in_flight: Gauge
    counters: Mapping[str, Counter]
    durations: Callable[[str], Histogram]
    aborts: Callable[[str], Counter]
    clients_left: Counter
    requests: Callable[[Sequence[str]], Counter]
    labels: Mapping[str, Collection[str]]
    _known: dict[Sequence[str], Counter] = field(default_factory=dict)

    def end(self, record: RequestRecord) -> None:
        """Counts a request that has ended."""
        given = record.labels()
        named = [
            value if (value := given.get(name, "")) in values else ""
            for name, values in self.labels.items()
        ]
        labels = (*named, record.answer, "" if record.status is None else str(record.status))
        requests = self._known.get(labels)
        if requests is None:
            requests = self._known[labels] = self.requests(labels)
        add = self.increases.add
        add(requests)
        if record.outcome != "complete":
            outcome, _, reason = record.outcome.partition(":")
            if outcome == "aborted":
                add(self.aborts(reason))
            elif outcome == "client-left":
                add(self.clients_left)
        for name, seconds in record.durations().items():
            if seconds is not None:
                self.durations(name).observe(seconds)


class _Watch:
    __slots__ = ("_counted", "_counts", "_record")

    def __init__(self, counts: _Counts, record: RequestRecord) -> None:
        self._counts, self._record = counts, record
        self._counted: dict[str, int] = {}

    def __enter__(self) -> None:
        self._record.observer = self._progress
        self._counts.increases.add(self._counts.in_flight)

    def __exit__(self, *_: object) -> None:
        self._counts.increases.add(self._counts.in_flight, -1)
        self._progress(self._record)
        self._counts.end(self._record)

    def _progress(self, record: RequestRecord) -> None:
        # an answer may take hours, so it is counted while it is sent
        for name, count in record.counts().items():
            if count and (more := count - self._counted.get(name, 0)):
                self._counts.increases.add(self._counts.counters[name], more)
                self._counted[name] = count
