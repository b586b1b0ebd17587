"""The metrics: what a request changes, and what a scraper reads."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from construct_messages.server.http.metrics import DIRECTORY, Metrics
from construct_messages.server.http.request_log import REASONS
from construct_messages.server.sparql.messages import SparqlRecord
from tests.support.places import ROOT

Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def new_metrics() -> Metrics:
    return Metrics({"/sparql": SparqlRecord})


def values(metrics: Metrics) -> Values:
    body, _ = metrics.exposition(None)
    return {
        (
            sample.name.removeprefix("construct_messages_"),
            tuple(sorted(sample.labels.items())),
        ): sample.value
        for family in read_text(body.decode())
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def of(metrics: Metrics, name: str, **labels: str) -> float | None:
    return values(metrics).get((name, tuple(sorted(labels.items()))))


def test_a_log_is_counted_as_it_goes() -> None:
    metrics, log = new_metrics(), SimpleNamespace(message_count=0, solution_count=0)
    record = SparqlRecord(id="1", method="GET", endpoint="/sparql", form="CONSTRUCT")
    with metrics.watch(record):
        assert of(metrics, "in_flight", endpoint="/sparql") == 1
        record.source_asked()
        record.messages = log
        log.message_count, log.solution_count = 2, 3
        record.sent(100)
        assert of(metrics, "messages_total", endpoint="/sparql") == 2
        log.message_count, log.solution_count = 5, 6
        record.sent(50)
        assert of(metrics, "solutions_total", endpoint="/sparql") == 6
        assert of(metrics, "sent_bytes_total", endpoint="/sparql") == 150
        log.message_count = 7  # after the last bytes
        record.status = 200
    assert of(metrics, "messages_total", endpoint="/sparql") == 7
    assert of(metrics, "in_flight", endpoint="/sparql") == 0
    assert of(metrics, "first_message_seconds_count", endpoint="/sparql") == 1
    assert of(metrics, "source_seconds_count", endpoint="/sparql") == 1
    assert (
        of(
            metrics,
            "requests_total",
            endpoint="/sparql",
            form="CONSTRUCT",
            answer="messages",
            status="200",
        )
        == 1
    )


@pytest.mark.parametrize("reason", REASONS)
def test_aborts_by_reason(reason: str) -> None:
    metrics, record = (
        new_metrics(),
        SparqlRecord(id="1", method="GET", endpoint="/x/sparql", form="CONSTRUCT"),
    )
    with metrics.watch(record):
        record.aborted(reason)
    assert of(metrics, "aborts_total", endpoint="/x/sparql", reason=reason) == 1


def test_every_reason_is_there_from_the_start() -> None:
    """Issue 13, 24: a rate over a series that begins with its first abort would miss that."""
    metrics = Metrics({"/sparql": SparqlRecord, "/x/sparql": SparqlRecord})
    for endpoint in ("/sparql", "/x/sparql"):
        assert [
            of(metrics, "aborts_total", endpoint=endpoint, reason=reason) for reason in REASONS
        ] == [0] * len(REASONS)
        assert (
            of(metrics, "clients_left_total", endpoint=endpoint)
            == of(metrics, "messages_total", endpoint=endpoint)
            == 0
        )


def test_an_answer_of_another_kind() -> None:
    metrics = new_metrics()
    for form, end, labels in (
        ("ASK", lambda record: setattr(record, "status", 200), ("ASK", "plain", "200")),
        ("SELECT", lambda record: record.refused(503), ("SELECT", "problem", "503")),
        ("SELECT", SparqlRecord.client_left, ("SELECT", "none", "")),
        ("'; DROP", lambda record: record.refused(400), ("", "problem", "400")),
    ):
        record = SparqlRecord(id="1", method="GET", endpoint="/sparql", form=form)
        with metrics.watch(record):
            end(record)
        found = dict(zip(("form", "answer", "status"), labels, strict=True))
        assert of(metrics, "requests_total", endpoint="/sparql", **found) == 1
    assert of(metrics, "clients_left_total", endpoint="/sparql") == 1
    assert of(metrics, "messages_total", endpoint="/sparql") == 0
    assert of(metrics, "first_message_seconds_count", endpoint="/sparql") is None


def test_an_error_leaves_nothing_in_flight() -> None:
    metrics = new_metrics()
    with (
        pytest.raises(KeyError),
        metrics.watch(SparqlRecord(id="1", method="GET", endpoint="/sparql")),
    ):
        raise KeyError
    assert of(metrics, "in_flight", endpoint="/sparql") == 0


def test_servers_count_apart() -> None:
    one, other = new_metrics(), new_metrics()
    with one.watch(SparqlRecord(id="1", method="GET", endpoint="/sparql")):
        pass
    assert any(name == "requests_total" for name, _ in values(one))
    assert not any(name == "requests_total" for name, _ in values(other))


@pytest.mark.parametrize(
    ("accept", "media_type", "read"),
    [
        (None, "text/plain", read_text),
        ("text/plain;version=0.0.4", "text/plain", read_text),
        (
            "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
            "application/openmetrics-text",
            read_openmetrics,
        ),
        ("text/html", "text/plain", read_text),
        ("application/openmetrics-text;version=latest", "text/plain", read_text),
        ("text/plain;version=1.x", "text/plain", read_text),
        ("application/openmetrics-text;version=1.0.0.\udcff", "text/plain", read_text),
    ],
)
def test_exposition(accept: str | None, media_type: str, read: object) -> None:
    metrics = new_metrics()
    with metrics.watch(SparqlRecord(id="1", method="GET", endpoint="/sparql", status=200)):
        pass
    body, content_type = metrics.exposition(accept)
    assert content_type.partition(";")[0] == media_type
    assert callable(read)
    assert {family.name for family in read(body.decode())} >= {"construct_messages_requests"}


COUNTING = """
import os
import sys
from construct_messages.server.sparql.messages import SparqlRecord
from construct_messages.server.http.metrics import Metrics
metrics = Metrics({"/sparql": SparqlRecord})
record = SparqlRecord(id="1", method="GET", endpoint="/sparql", form="ASK")
with metrics.watch(record):
    record.sent(10)
    record.status = 200
if "leave" in sys.argv:
    left = metrics.watch(SparqlRecord(id="2", method="GET", endpoint="/sparql"))
    left.__enter__()
    os._exit(0)  # as a process that is killed
print(metrics.exposition(None)[0].decode())
"""


@pytest.mark.slow
def test_processes_show_the_sum_of_all(tmp_path: Path) -> None:
    environment = os.environ | {DIRECTORY: str(tmp_path), "PYTHONPATH": str(ROOT)}

    def count(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", COUNTING, *arguments],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    count()
    count("leave")
    (tmp_path / "counter_1.db").touch()  # of a process that is just starting
    samples = (
        line.rpartition(" ") for line in count().splitlines() if line and not line.startswith("#")
    )
    found = {name: float(value) for name, _, value in samples}
    labels = 'answer="plain",endpoint="/sparql",form="ASK",status="200"'
    assert found[f"construct_messages_requests_total{{{labels}}}"] == 3
    assert found['construct_messages_sent_bytes_total{endpoint="/sparql"}'] == 30
    assert (
        found['construct_messages_in_flight{endpoint="/sparql"}'] == 1
    )  # of the process that nobody buried


def test_every_metric_is_documented() -> None:
    page = (ROOT / "docs" / "guides" / "production.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `construct_messages_(\w+)` \|", page, re.MULTILINE))
    body, _ = new_metrics().exposition("application/openmetrics-text;version=1.0.0")
    suffix = {"counter": "_total"}
    defined = {
        family.name.removeprefix("construct_messages_") + suffix.get(family.type, "")
        for family in read_openmetrics(body.decode())
    }
    assert documented == defined
    assert all(f"`{reason}`" in page for reason in REASONS)
