"""A folder of logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.logs.cases.commands import LOG, NAMED


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with a log that all formats can carry and one with named graphs."""
    (tmp_path / "log.ttl").write_text(LOG, encoding="utf-8")
    (tmp_path / "named.trig").write_text(NAMED, encoding="utf-8")
    (tmp_path / "broken.nt").write_text(
        "<urn:a> <urn:p> <urn:o> .\n# @message\n<urn:b> <urn:p>\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path
