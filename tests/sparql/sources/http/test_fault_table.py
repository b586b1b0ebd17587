"""Every fault of the table, by both HTTP clients and by the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from construct_messages.errors import (
    SourceError,
)
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.http.endpoint import EndpointSource
from tests.support.commands import Done
from tests.support.http.clients import BODIES, JSON_BODY, SELECT, TABLE, read
from tests.support.http.fault_server import PAUSE, STALL, FaultServer, response
from tests.support.http.faults import CASES, QUERY, Case, log_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("once")]

# --- every fault of the table, by both clients and the command line ---

OPTIONS: dict[str, dict[str, Any]] = {
    **{name: {"profile": name} for name in ("virtuoso", "blazegraph", "qlever")},
    "generic": {},
    "tsv": {"results": "tsv"},
    "impatient": {"read_seconds": 0.3},
    "brief": {},
}
MOST_WORDS = 1000
"""Characters of an error, whatever an endpoint sends."""


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_fault(server: FaultServer, client: str, case: Case) -> None:
    server.play(case.script)
    server.go_on.set()
    source = EndpointSource(server.url, **OPTIONS[case.endpoint])
    came, error = read(
        client, source, Request(SELECT, timeout=2.5 if case.endpoint == "brief" else 60)
    )
    if case.outcome.kind == "complete":
        assert error is None
        assert log_of(came) == case.log
    else:
        assert isinstance(error, SourceError)
        assert case.outcome.words in error.message
        assert len(str(error)) < MOST_WORDS
        assert error.status == case.outcome.status
        assert came == TABLE[: len(came)]
        assert case.outcome.kind == "breaks" or not came


@pytest.mark.one_in(4)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_fault_on_the_command_line(
    server: FaultServer, here: Callable[..., Done], tmp_path: Path, case: Case
) -> None:
    server.play(case.script)
    server.go_on.set()
    options = {
        **OPTIONS[case.endpoint],
        "timeout": {"brief": 2.5, "impatient": 0.5}.get(case.endpoint, 60),
    }
    options.pop("read_seconds", None)
    given = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    log = tmp_path / "log.nq"
    done = here(
        "run",
        "--query",
        QUERY,
        "--source",
        server.url,
        "--output",
        str(log),
        "--retries",
        "0",
        *given,
    )
    if case.outcome.kind == "complete":
        assert (done.status, log.read_bytes()) == (0, case.log)
    else:
        assert done.status in (3, 4)
        assert not log.exists()
        assert len(done.errors) < MOST_WORDS


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "text", [b"\r\n", b"\n", b"x", b"!ERROR!", response(JSON_BODY), JSON_BODY, b"\0" * 100_000]
)
@pytest.mark.parametrize("results", BODIES)
@pytest.mark.parametrize("at_once", [True, False])
def test_what_follows_a_length(
    server: FaultServer, client: str, results: str, text: bytes, at_once: bool
) -> None:
    """Issue 13, 17: it is not of the answer (RFC 9112, section 6.3). Where it is there already, aiohttp refuses it.

    Issue 26, 12: it is an error where the result does not tell its end, so that the length may be wrong.
    """
    whole = response(*BODIES[results], framing="length")
    server.play([whole + text] if at_once else [whole, PAUSE, text, STALL])
    came, error = read(
        client, EndpointSource(server.url, results=results), Request(SELECT, timeout=60)
    )
    if text.strip() and (results == "tsv" or (client == "asyncio" and at_once)):
        assert isinstance(error, SourceError)
        assert came == TABLE[: len(came)]
    else:
        assert error is None
        assert came == TABLE
