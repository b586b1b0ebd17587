"""A server with a stream; and the table of pairs that relays were killed between."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.http.streams import StreamsServer, serving_streams


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StreamsServer]:
    """A server with one stream, `a`, whose clients need not wait long before they come back."""
    monkeypatch.setattr("construct_messages.server.http.sending._RETRY_MILLISECONDS", 1)
    async with serving_streams(tmp_path / "streams.db") as server:
        assert (await server.ask("PUT", "/streams/a")).status == 201
        yield server


@pytest.fixture
async def small_pages(tmp_path: Path) -> AsyncIterator[StreamsServer]:
    """A server with one stream, `a`, whose event stream has pages of ten members."""
    async with serving_streams(tmp_path / "streams.db", ldes_page=10) as server:
        assert (await server.ask("PUT", "/streams/a")).status == 201
        yield server


_COLUMNS = ("kills", "cut", "messages", "lost", "doubled", "guarantee")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints what was lost and doubled between each pair of kinds; see `make soak-relay`."""
    rows: dict[str, dict[str, list[object]]] = {}
    for result in ("passed", "failed"):
        for report in terminalreporter.getreports(result):
            noted = dict(getattr(report, "user_properties", ()))
            if report.when == "call" and "pair" in noted:
                test = report.nodeid.partition("[")[0].rpartition("::")[2]
                cells = [noted.get(name, "") for name in _COLUMNS]
                rows.setdefault(test, {})[noted["pair"]] = [*cells, result]
    for test, pairs in rows.items():
        terminalreporter.write_sep("-", test)
        terminalreporter.write_line("| pair | " + " | ".join((*_COLUMNS, "result")) + " |")
        terminalreporter.write_line("|---" * (len(_COLUMNS) + 2) + "|")
        for pair, cells in sorted(pairs.items()):
            terminalreporter.write_line(f"| {pair} | {' | '.join(map(str, cells))} |")
